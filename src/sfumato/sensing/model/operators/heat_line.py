"""Heat on a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato._validate import real_array, whole
from sfumato.sensing.model.operators.heat import HeatOperator, heat
from sfumato.sensing.model.operators.places import begin_of
from sfumato.sensing.model.operators.protocol import time_within
from sfumato.sensing.model.sensors import Sensors, check_dimensions
from sfumato.spaces import Line

if TYPE_CHECKING:
    from sfumato.sensing.model.operators.protocol import SourceSpace


@dataclass(frozen=True)
class HeatLine(HeatOperator):
    """Heat on a line without ends: a unit at x reads g(s - x) at s [gilbert17, eq. 1].

    g(d) = exp(-d**2 / 4T) / sqrt(4 pi T); T is the diffusion time, the papers' mu t.
    """

    space: Line

    def kernel(self, distance: FloatArray) -> FloatArray:
        """What a unit reads at a distance."""
        return heat(distance, self.diffusion_time)

    def columns(self, cells: npt.ArrayLike) -> FloatArray:
        """What one unit in each of these cells reads: sensors by cells."""
        at = self.space.positions[np.asarray(cells, dtype=np.int64)]
        return self.kernel(self.sensors.positions - at)

    def sensor_count(self, count: float) -> int:
        """Any number from 2 on."""
        return max(2, round(count))

    def with_sensors(self, count: int) -> HeatLine:
        """So many sensors at L/m, 2L/m, ..., L from where the line begins."""
        begin = begin_of(self.space)
        places = begin + Line(count, float(self.space.positions[-1]) - begin).positions
        return heat_line(sources=self.space, sensors=places, diffusion_time=self.diffusion_time)

    @classmethod
    def from_json(cls, data: dict[str, Any], space: SourceSpace, sensors: Sensors) -> HeatLine:
        """The operator that a site file describes."""
        line = cast(Line, space)
        return heat_line(sources=line, sensors=sensors, diffusion_time=data["diffusion_time"])


def heat_line(
    *,
    sources: int | Line | npt.ArrayLike,
    sensors: int | Sensors | npt.ArrayLike,
    diffusion_time: float,
    length: float = 1.0,
) -> HeatLine:
    """Heat from cells on a line, read by sensors on it.

    Args:
        sources: A line, positions of cells, or a number n of cells at length/n, 2 length/n, ..., length.
        sensors: Sensors, their positions, or a number of sensors, placed as cells are.
        diffusion_time: T = diffusivity times time, in squares of the unit of positions, from 1e-20 to 1e20.
        length: Length of the line where a number of cells or sensors is given.

    Returns:
        The operator.

    Raises:
        InvalidParameter: A number is out of its range, or sensors do not have one coordinate.

    >>> heat_line(sources=100, sensors=50, diffusion_time=0.05).shape
    (50, 100)
    """
    space = sources if isinstance(sources, Line) else _line(sources, length)
    placed = sensors if isinstance(sensors, Sensors) else Sensors(_places(sensors, length))
    check_dimensions(placed, 1)
    return HeatLine(space, placed, time_within(diffusion_time, "diffusion_time"))


def _line(sources: int | npt.ArrayLike, length: float) -> Line:
    return Line(cast(int, sources), length) if np.ndim(sources) == 0 else Line.at(sources)


def _places(sensors: int | npt.ArrayLike, length: float) -> FloatArray:
    if np.ndim(sensors) == 0:
        return Line(whole("sensors", cast(int, sensors), low=1), length).positions
    return real_array("sensor positions", sensors)
