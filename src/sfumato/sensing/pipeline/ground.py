"""What a site is made of: the ground that sources are on, where sensors are, and what a source adds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting import Number, double_above
from sfumato.sensing.model.level import with_unit
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.model.site import Site
from sfumato.sensing.table_form import Columns
from sfumato.sensing.tables import (
    local_metres,
    placed_sensors,
    read_graph,
    read_nodes_with_sensors,
    read_places,
    read_sensors,
)
from sfumato.spaces import Grid, Line

if TYPE_CHECKING:
    from sfumato.sensing.model.operators.protocol import Operator, SourceSpace
    from sfumato.spaces import Points


def heat_from(ground: Line | Grid | Points, sensors: Sensors, time: float) -> Operator:
    """Heat on a line or in a plane."""
    if isinstance(ground, Line):
        return heat_line(sources=ground, sensors=sensors, diffusion_time=time)
    return heat_plane(sources=ground, sensors=sensors, diffusion_time=time)


def on_graph(
    path: str | Path,
    rate: float | None,
    sensors: Sensors | str | Path | None,
    *,
    largest_part: bool,
) -> tuple[Operator, tuple[str, ...]]:
    """Diffusion on a graph, read at every node unless sensors name some; and the names of nodes."""
    from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion

    space, names, weights = read_graph(path, largest_part=largest_part)
    speed = given_or_refused(rate, "rate")
    placed = _on_nodes(sensors, names)
    return graph_diffusion(space, speed, sensors=placed, weights=weights), names


def _on_nodes(sensors: Sensors | str | Path | None, names: tuple[str, ...]) -> Sensors:
    """Sensors on nodes: at every one of them unless some are named."""
    if sensors is None:
        return Sensors(list(range(len(names))), names)
    return sensors if isinstance(sensors, Sensors) else read_nodes_with_sensors(sensors, names)


def space_and_sensors(
    sensors: Sensors | str | Path | None,
    graph: str | Path | None,
    largest_part: bool,
    ground: Callable[[], Line | Grid | Points],
) -> tuple[SourceSpace, Sensors, tuple[str, ...] | None]:
    """Where sources and sensors of an operator given by its kind are, and the names of nodes."""
    if graph is not None:
        space, names, _ = read_graph(graph, largest_part=largest_part)
        return space, _on_nodes(sensors, names), names
    if sensors is None:
        raise InvalidParameter("say where sensors are: `sensors`; nothing was built")
    placed = sensors if isinstance(sensors, Sensors) else read_sensors(sensors)
    return ground(), placed, None


def placed(
    sensors: Sensors | str | Path | None,
    columns: Columns | None,
    origin: tuple[float, float] | None,
    *,
    graph: bool,
) -> tuple[Sensors | str | Path | None, tuple[float, float] | None]:
    """Sensors of a table, and where its latitudes and longitudes were laid from; of a graph, as they are."""
    if isinstance(sensors, str | Path) and not graph:
        return placed_sensors(sensors, columns=columns, origin=origin)
    if origin is not None:
        raise InvalidParameter(
            "`origin` is of a table of sensors with latitudes and longitudes; nothing was built"
        )
    return sensors, None


def bounds_in_metres(
    bounds: tuple[float, float, float, float], origin: tuple[float, float]
) -> tuple[float, float, float, float]:
    """Bounds in degrees as those of the plane that sensors were laid into."""
    west, south, east, north = bounds
    (low, high) = local_metres(np.array([south, north]), np.array([west, east]), origin)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def added(
    per_source: Number | None, beside: Number | None, unit: str, operator: Operator
) -> tuple[Fraction | None, str]:
    """What a source adds where the operator is 1; rounded up from what it adds beside itself."""
    if beside is None:
        return with_unit(per_source, "per_source", unit)
    if per_source is not None:
        raise InvalidParameter(
            "say what a source adds once: `per_source` or `beside`; nothing was built"
        )
    near, unit = with_unit(beside, "beside", unit)
    # A little less than was computed, whose last digits may be too high: what a source adds rounds up.
    top = Fraction(operator.largest_reading()) * (1 - Fraction(1, 2**48))
    if not top or near is None:
        raise InvalidParameter("no source is read by any sensor; nothing was built")
    return Fraction(float(double_above(near / top))), unit


def ground_of(
    line: int | Line | None,
    length: float | None,
    grid: int | Grid | None,
    bounds: tuple[float, float, float, float] | None,
    places: Points | str | Path | None,
    sensors: Sensors | str | Path | None,
) -> Line | Grid | Points:
    """Where sources may be: a line, a grid or places, as they were said."""
    if line is not None:
        if isinstance(line, Line):
            return line
        return Line(line, 1.0 if length is None else length)
    if grid is not None:
        if isinstance(grid, Grid):
            return grid
        if bounds is None:
            span = _span(sensors) if isinstance(sensors, Sensors) else ""
            raise InvalidParameter(
                f"a plane needs its `bounds`, four numbers west,south,east,north{span}; nothing was built"
            )
        return Grid(grid, bounds)
    if isinstance(places, str | Path):
        return read_places(places)
    if places is None:
        raise InvalidParameter("say where sources may be: one of `line`, `grid`, `places`, `graph`")
    return places


def _span(sensors: Sensors) -> str:
    low, high = sensors.positions.min(axis=0), sensors.positions.max(axis=0)
    words = " by ".join(f"{a:g} to {b:g}" for a, b in zip(low.tolist(), high.tolist(), strict=True))
    return f" (sensors are at {words})"


def given_or_refused(value: float | None, name: str) -> float:
    """A value that a site cannot do without."""
    if value is None:
        raise InvalidParameter(f"this site needs `{name}`; nothing was built")
    return value


def check_places(site: Site) -> None:
    """Sensors that mostly lie where no source may be are a mistake of units."""
    places = site.sensors.positions
    if site.box is None or places.shape[1] > 2 or places.shape[1] != len(site.box[0]):
        return
    low, high = site.box
    inside = int(((places >= low) & (places <= high)).all(axis=1).sum())
    if 2 * inside < len(places):
        words = " by ".join(f"{a:g} to {b:g}" for a, b in zip(low, high, strict=True))
        wrong, why = ("length", "missing") if len(low) == 1 else ("bounds", "in another unit")
        number = f"only {inside} of {len(places)} sensors lie" if inside else "no sensor lies"
        raise InvalidParameter(
            f"{number} where sources may be ({words}); is `{wrong}` {why}? nothing was built"
        )
