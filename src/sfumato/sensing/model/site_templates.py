"""Sites that many have: where sensors are and how heat spreads there, to begin with. All of it is public.

A template says nothing of what a source adds to a reading (`beside`, `per_source`), and of what sensors round
to only where it names the sensor: who describes a site must say that, for noise follows from it.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

from sfumato._validate import require, whole
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.sensors import Sensors

Template = Literal["corridor", "floor", "amg8833", "roads"]

PIXELS = 8  # on a side of the array
VIEW = 60  # degrees that it sees on each axis, by its data sheet


def template_arguments(
    template: str,
    *,
    length: float | None = None,
    count: int | None = None,
    height: float | None = None,
    sensors: Sensors | None = None,
) -> dict[str, Any]:
    """What a template says of a site, as `describe_site` takes it; metres and degrees Celsius.

    Args:
        template: corridor, floor, amg8833 or roads.
        length: Of a corridor, in metres; 30 unless given.
        count: Sensors along a corridor; 30 unless given.
        height: Of the ceiling above heads, where the array hangs; 1.5 unless given.
        sensors: Where the sensors of a floor are: its bounds are theirs and half the way to the next one.

    Returns:
        Parameters by name.

    Raises:
        InvalidParameter: There is no such template, or a number is not of it; nothing was built.
    """
    if template not in get_args(Template):
        raise InvalidParameter(
            f"a `template` is one of {', '.join(get_args(Template))}, got {template!r}; nothing was built"
        )
    for name, value, of in (("count", count, "corridor"), ("height", height, "amg8833")):
        if value is not None and template != of:
            raise InvalidParameter(f"`{name}` is of the template {of}; nothing was built")
    match template:
        case "corridor":
            return _corridor(30.0 if length is None else length, 30 if count is None else count)
        case "floor":
            return _floor(sensors)
        case "amg8833":
            return _array(1.5 if height is None else height)
        case _:
            return {"rate": 0.5, "largest_part": True}


def _corridor(length: float, count: int) -> dict[str, Any]:
    require(0 < length < 1e6, "the `length` of a corridor lies above 0 and below 1e6", length)
    number = whole("count", count, low=1, high=1000)
    places = [(one + 0.5) * length / number for one in range(number)]
    digits = len(str(number))
    return {
        "line": max(100, 4 * number),
        "length": length,
        "sensors": Sensors(places, [f"s{one + 1:0{digits}}" for one in range(number)]),
        # Heat of somebody reaches about as far as to the next sensor.
        "diffusion_time": (length / number) ** 2 / 2,
        "radius": str(length / number),
        "ambient": "20C",
    }


def _floor(sensors: Sensors | None) -> dict[str, Any]:
    if sensors is None or sensors.positions.shape[1] != 2 or len(sensors) < 2:
        raise InvalidParameter(
            "the template floor needs `sensors`, a table with x and y of two or more; nothing was built"
        )
    low, high = sensors.positions.min(axis=0), sensors.positions.max(axis=0)
    area = max(float((high - low).prod()), float((high - low).max()) ** 2 / 16)
    apart = math.sqrt(area / len(sensors))
    west, south = (low - apart / 2).tolist()
    east, north = (high + apart / 2).tolist()
    return {
        "grid": 5,
        "bounds": (west, south, east, north),
        "diffusion_time": apart**2 / 4,
        "radius": str(apart / 2),
        "ambient": "20C",
    }


def _array(height: float) -> dict[str, Any]:
    """A Grid-EYE on a ceiling: 64 pixels in rows, as its registers have them."""
    require(0.2 <= height <= 20, "the `height` above heads lies in 0.2..20 metres", height)
    side = 2 * height * math.tan(math.radians(VIEW / 2))
    pixel = side / PIXELS
    places = [
        ((column + 0.5) * pixel, (row + 0.5) * pixel)
        for row in range(PIXELS)
        for column in range(PIXELS)
    ]
    names = [f"r{row}c{column}" for row in range(PIXELS) for column in range(PIXELS)]
    return {
        "grid": 4,
        "bounds": (0.0, 0.0, side, side),
        "sensors": Sensors(places, names),
        # A pixel sees about its own square: a deviation of half a pixel, sqrt(2 T).
        "diffusion_time": pixel**2 / 8,
        "radius": "0.5",
        "step": "0.25",  # what its registers hold
        "ambient": "20C",
    }
