"""Which share of a map's mass lies within a distance of a place, and between what that lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato._types import FloatArray
from sfumato.figures import round_number
from sfumato.heatmap.accuracy.uncertainty import FINEST_DRAWS, maps_inside
from sfumato.heatmap.inference.known_sums import TAIL
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.private_map import HeatmapRelease

COVERAGE = 0.9
# The distance is a round number of at least this part of the side, and of one cell.
PART_OF_SIDE = 0.02


@dataclass(frozen=True, slots=True)
class Nearby:
    """The share of all mass within a distance of a place, from `low` to `high` with COVERAGE.

    Both are None for a map that does not say how sure it is.
    """

    share: float
    low: float | None = None
    high: float | None = None


def nearby_distance(area: Area) -> float:
    """A round distance on the ground, in the unit of the area, that is near on its map."""
    level = min(area.grid.levels, FINEST_DRAWS)
    cell = max(_cell(area, level))
    return round_number(max(cell, PART_OF_SIDE * min(area.cell_size) * area.grid.side))


def shares_nearby(
    release: HeatmapRelease, places: Sequence[tuple[float, float]], distance: float
) -> tuple[Nearby, ...]:
    """The share of the mass in cells whose middles are within a distance of each place.

    Privacy: post-processing of what was released; it costs nothing.

    Args:
        release: The map.
        places: x and y in the units of the map's bounds.
        distance: On the ground, in the unit of the area.

    Returns:
        A share for each place, with its interval by itself where the map has a posterior.

    """
    area = release.area
    level = min(area.grid.levels, FINEST_DRAWS)
    discs = np.array([_disc(area, level, place, distance).ravel() for place in places])
    discs = discs.reshape(len(places), 4**level).astype(np.float64)
    found = discs @ release.shares.image(level).ravel()
    if release.posterior is None:
        return tuple(Nearby(float(share)) for share in found)
    maps = maps_inside(release.posterior, area, level).reshape(-1, 4**level)
    totals = maps.sum(axis=1, keepdims=True)
    # A draw of nobody has no shares: it may have been any.
    drawn = np.where(totals > 0, maps @ discs.T / np.where(totals > 0, totals, 1.0), np.nan)
    tail = TAIL * (1 - COVERAGE) / 2
    low, high = (
        np.quantile(np.nan_to_num(drawn, nan=unknown), at, axis=0)
        for unknown, at in ((0.0, tail), (1.0, 1 - tail))
    )
    return tuple(
        Nearby(float(share), float(min(share, below)), float(max(share, above)))
        for share, below, above in zip(found, low, high, strict=True)
    )


def _cell(area: Area, level: int) -> tuple[float, float]:
    times = 2.0 ** (area.grid.levels - level)
    return area.cell_size[0] * times, area.cell_size[1] * times


def _disc(area: Area, level: int, place: tuple[float, float], distance: float) -> FloatArray:
    """Which cells [row, column] have their middle within a distance of a place."""
    grid = area.grid.at_level(level)
    wide, high = _cell(area, level)
    middles = np.arange(grid.side) + 0.5
    east = (middles - (place[0] - grid.bounds[0]) / grid.cell_width) * wide
    north = (middles - (place[1] - grid.bounds[1]) / grid.cell_height) * high
    return np.asarray(np.hypot(north[:, None], east[None, :]) <= distance)
