"""Maps of counts that know the bounds of their area: outside of them is nobody."""

from __future__ import annotations

import numpy as np

from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.tiles import Tiles
from sfumato.spaces import Area


def window(area: Area, level: int) -> BoolArray:
    """Which cells [row, column] of a level the bounds touch."""
    first_column, first_row, last_column, last_row = area.window(level)
    found = np.zeros((1 << level, 1 << level), dtype=np.bool_)
    found[first_row:last_row, first_column:last_column] = True
    return found


def inside_bounds(masses: FloatArray, counts: NoisyCounts, area: Area) -> FloatArray:
    """The mean map of such counts, masses by Z-order code, with nobody outside the bounds: as its draws."""
    level = (masses.size.bit_length() - 1) // 2
    columns, rows = area.grid.at_level(level).decode(np.arange(masses.size))
    within = window(area, level)[rows, columns]
    return hold_inside(masses[None], last_counted(counts, level), within).reshape(-1)


def last_counted(counts: NoisyCounts, level: int) -> IntArray:
    """For each cell of a level the finest counted one around it, as a number: alike for cells of one."""
    found = np.zeros(4**level, dtype=np.int64)
    for at in range(level + 1):
        here = counts.levels >= at
        codes = np.unique(counts.codes[here] >> 2 * (counts.levels[here] - at))
        below = 4 ** (level - at)
        found[(codes[:, None] * below + np.arange(below)).ravel()] = np.repeat(codes + 4**at, below)
    return found


def counted_tiles(tiles: Tiles, counts: NoisyCounts) -> Tiles:
    """The same masses on the finest cells that were counted: what is finer was spread, not counted."""
    level = int(tiles.levels.max(initial=0))
    numbers, owner = np.unique(last_counted(counts, level), return_inverse=True)
    masses = np.asarray(np.bincount(owner, tiles.values(level)), dtype=np.float64)
    # A cell of level i has a number from 4**i to 2 * 4**i - 1.
    levels = np.searchsorted(4 ** np.arange(level + 1, dtype=np.int64), numbers, side="right") - 1
    return Tiles(tiles.grid, levels.astype(np.int64), numbers - 4**levels, masses)


def hold_inside(maps: FloatArray, leaves: IntArray, within: BoolArray) -> FloatArray:
    """Maps [map, cell] without what lies outside the bounds, as `tiles.inside` does it for other methods.

    A counted cell outside had noise alone, and is dropped. One across the edge keeps its mass: what
    a map scattered outside goes to its part inside, in proportion.

    >>> hold_inside(np.array([[3.0, 1.0, 2.0, 5.0]]), np.array([1, 1, 1, 2]), np.arange(4) < 2)
    array([[4.5, 1.5, 0. , 0. ]])
    """
    held = np.where(within, maps, 0.0)
    across = np.isin(leaves, np.intersect1d(leaves[within], leaves[~within]))
    if across.any():
        _, owner = np.unique(leaves[across], return_inverse=True)
        for one, whole in zip(held, maps, strict=True):
            kept = np.bincount(owner, one[across])
            one[across] *= (np.bincount(owner, whole[across]) / np.where(kept > 0, kept, 1.0))[
                owner
            ]
    return held
