"""Heat in a plane."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from sfumato import spaces
from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.heat import HeatOperator, heat
from sfumato.sensing.model.operators.places import even_places
from sfumato.sensing.model.operators.protocol import (
    duals_of,
    masses_of,
    time_within,
)
from sfumato.sensing.model.sensors import Sensors, check_dimensions
from sfumato.spaces import Grid

if TYPE_CHECKING:
    from sfumato.sensing.model.operators.protocol import SourceSpace
    from sfumato.spaces import Points


@dataclass(frozen=True)
class HeatPlane(HeatOperator):
    """Heat in a plane without borders: a unit at x reads exp(-|s - x|**2 / 4T) / (4 pi T) at s.

    Sources are the cells of a grid (distance l1) or any points. On a grid the kernel is a product
    of one factor for columns and one for rows, so a map is two matrix products.
    """

    space: Grid | Points

    def columns(self, cells: npt.ArrayLike) -> FloatArray:
        """What one unit in each of these cells reads: sensors by cells."""
        chosen = np.asarray(cells, dtype=np.int64)
        at = (
            self.space.centers(chosen)
            if isinstance(self.space, Grid)
            else self.space.positions[chosen]
        ).reshape(-1, 2)
        east, north = (
            heat(self.sensors.positions[:, [axis]] - at[:, axis], self.diffusion_time)
            for axis in (0, 1)
        )
        return east * north

    def readings(self, sources: npt.ArrayLike) -> FloatArray:
        """What the sensors read of these masses, without noise."""
        if not isinstance(self.space, Grid) or self.factors is None:
            return super().readings(sources)
        east, north = self.factors
        image = self.space.image(masses_of(sources, self.space.size))
        return np.asarray(np.einsum("mr,mr->m", north @ image, east))

    def adjoint(self, dual: npt.ArrayLike) -> FloatArray:
        """The transposed map: one number for each cell."""
        if not isinstance(self.space, Grid) or self.factors is None:
            return super().adjoint(dual)
        east, north = self.factors
        image = (north * duals_of(dual, len(self.sensors))[:, np.newaxis]).T @ east
        return np.asarray(self.space.values_of_image(image))

    @cached_property
    def factors(self) -> tuple[FloatArray, FloatArray] | None:
        """On a grid, what its columns and what its rows read."""
        if not isinstance(self.space, Grid):
            return None
        grid = self.space
        west, south, _, _ = grid.bounds
        middle = np.arange(grid.side) + 0.5
        places = self.sensors.positions
        return (
            heat(places[:, [0]] - (west + middle * grid.cell_width), self.diffusion_time),
            heat(places[:, [1]] - (south + middle * grid.cell_height), self.diffusion_time),
        )

    def adjoint_rounding(self, dual: FloatArray, level: float) -> FloatArray | None:
        """On a grid places are rounded another way than in columns: by well below 1e-8 of the sizes."""
        if self.factors is None:
            return None
        return np.asarray(1e-8 * (self.adjoint(np.abs(dual)) + level))

    def sensor_count(self, count: float) -> int:
        """Squares, but for the sensors that are there."""
        whole = max(2, round(count))
        return whole if whole == len(self.sensors) else max(2, round(math.sqrt(whole))) ** 2

    def with_sensors(self, count: int) -> HeatPlane:
        """So many sensors in even rows over the grid, or over the box that holds the points."""
        if isinstance(self.space, Grid):
            west, south, east, north = map(float, self.space.bounds)
            low, high = np.array([west, south]), np.array([east, north])
        else:
            low, high = self.space.positions.min(axis=0), self.space.positions.max(axis=0)
        places = even_places(count, low, high)
        return heat_plane(sources=self.space, sensors=places, diffusion_time=self.diffusion_time)

    @classmethod
    def from_json(cls, data: dict[str, Any], space: SourceSpace, sensors: Sensors) -> HeatPlane:
        """The operator that a site file describes."""
        plane = cast("Grid | Points", space)
        return heat_plane(sources=plane, sensors=sensors, diffusion_time=data["diffusion_time"])


def heat_plane(
    *,
    sources: Grid | Points | npt.ArrayLike,
    sensors: Sensors | npt.ArrayLike,
    diffusion_time: float,
) -> HeatPlane:
    """Heat from cells of a grid (or any points) in a plane, read by sensors at any places.

    Args:
        sources: A grid, points, or positions of points, each with two coordinates.
        sensors: Sensors, or their positions, each with two coordinates.
        diffusion_time: T = diffusivity times time, in squares of the unit of positions, from 1e-20 to 1e20.

    Returns:
        The operator.

    Raises:
        InvalidParameter: The time is out of its range, or places do not have two coordinates.

    >>> heat_plane(sources=Grid(3), sensors=[(0.2, 0.4), (0.7, 0.1)], diffusion_time=0.01).shape
    (2, 64)
    """
    space = sources if isinstance(sources, Grid) else _points(sources)
    if not isinstance(space, Grid) and space.positions.shape[1] != 2:
        raise InvalidParameter(
            f"sources in a plane have 2 coordinates, got {space.positions.shape[1]}; nothing was built"
        )
    placed = sensors if isinstance(sensors, Sensors) else Sensors(sensors)
    check_dimensions(placed, 2)
    return HeatPlane(space, placed, time_within(diffusion_time, "diffusion_time"))


def _points(sources: Points | npt.ArrayLike) -> Points:
    return sources if isinstance(sources, spaces.Points) else spaces.Points(sources)
