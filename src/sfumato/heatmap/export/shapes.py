"""Tiles as shapes on the ground: cells that do not overlap, their boxes, their areas, their rings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.reference_systems import ReferenceSystem
from sfumato.heatmap.tiles import Tiles
from sfumato.spaces import Area

Ring = list[tuple[float, float]]

# Mean radius of the Earth in kilometers (IUGG), the one of `spaces.area`.
RADIUS = 6371.0088


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells that tile a part of the area without overlap, from coarse to fine and by code in a level.

    `boxes` are low x, low y, high x, high y; `shares` are of the whole map, `amounts` what is
    counted there, as estimated.
    """

    levels: IntArray
    codes: IntArray
    boxes: FloatArray
    shares: FloatArray
    amounts: FloatArray

    @property
    def square_kilometers(self) -> FloatArray:
        """The area of each cell on a sphere, for boxes in degrees: R^2 dlon (sin north - sin south)."""
        west, south, east, north = np.radians(self.boxes).T
        area: FloatArray = RADIUS**2 * (east - west) * (np.sin(north) - np.sin(south))
        return area


def cells_of(tiles: Tiles, level: int | None = None, *, scale: float = 1) -> Cells:
    """The map as cells with mass, none inside another; with a level, none finer than it.

    A mass of 1 is `scale` of what is counted.

    A tile that holds finer ones is cut into quarters until nothing overlaps: the same distribution,
    so that a density can be read off every cell.
    """
    levels, codes, shares = _disjoint(_at_most(tiles.normalized(), level))
    boxes = [tiles.grid.at_level(int(one)).boxes(codes[levels == one]) for one in np.unique(levels)]
    return Cells(levels, codes, np.concatenate(boxes), shares, shares * (scale * tiles.total))


def _at_most(tiles: Tiles, level: int | None) -> Tiles:
    if level is None:
        return tiles
    tiles.grid.at_level(level)  # refuses what is no level
    shift = np.maximum(tiles.levels - level, 0)
    return Tiles(tiles.grid, tiles.levels - shift, tiles.codes >> 2 * shift, tiles.masses)


def _disjoint(tiles: Tiles) -> tuple[IntArray, IntArray, FloatArray]:
    """Levels, codes and masses: from the top down, a cell with finer tiles in it hands on to its quarters."""
    some = tiles.masses > 0
    levels, codes, masses = tiles.levels[some], tiles.codes[some], tiles.masses[some]
    handed, handed_mass = np.zeros(0, dtype=np.int64), np.zeros(0)
    out: list[tuple[IntArray, IntArray, FloatArray]] = []
    for level in range(int(levels.max()) + 1):
        here, finer = levels == level, levels > level
        found, place = np.unique(np.concatenate([handed, codes[here]]), return_inverse=True)
        sums = np.bincount(
            place, np.concatenate([handed_mass, masses[here]]), minlength=found.size
        ).astype(np.float64)
        holds = np.isin(found, codes[finer] >> 2 * (levels[finer] - level))
        kept = found[~holds]
        out.append((np.full(kept.size, level, dtype=np.int64), kept, sums[~holds]))
        handed = tiles.grid.children(found[holds]).ravel()
        handed_mass = np.repeat(sums[holds] / 4, 4)
    first, second, third = zip(*out, strict=True)
    return np.concatenate(first), np.concatenate(second), np.concatenate(third)


def rings(box: tuple[float, float, float, float], area: Area) -> list[Ring]:
    """The outline of a box, counterclockwise and closed; in degrees cut where it crosses the antimeridian.

    That of a map in a reference system has its corners in degrees too.

    Longitudes come back to -180..180 and exterior rings turn left, as RFC 7946 asks (3.1.6 and
    3.1.9).
    """
    low_x, low_y, high_x, high_y = box
    if area.crs:
        return [_in_degrees(_ring(low_x, low_y, high_x, high_y), area.crs)]
    if area.kind != "degrees":
        return [_ring(low_x, low_y, high_x, high_y)]
    turns = int(np.floor((low_x + 180) / 360))
    west, east = low_x - 360 * turns, high_x - 360 * turns
    if east <= 180:
        return [_ring(west, low_y, east, high_y)]
    return [_ring(west, low_y, 180.0, high_y), _ring(-180.0, low_y, east - 360, high_y)]


def _in_degrees(ring: Ring, crs: str) -> Ring:
    system = _system(crs)
    if system is None:
        return ring
    x, y = zip(*ring, strict=True)
    longitudes, latitudes = system.to_degrees(x, y)
    return list(zip(longitudes.tolist(), latitudes.tolist(), strict=True))


@lru_cache(maxsize=4)
def _system(crs: str) -> ReferenceSystem | None:
    return ReferenceSystem.named(crs)


def _ring(west: float, south: float, east: float, north: float) -> Ring:
    return [(west, south), (east, south), (east, north), (west, north), (west, south)]
