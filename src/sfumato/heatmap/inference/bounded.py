"""Maps of counts that know the bounds of their area: outside of them is nobody."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.tiles import Tiles
from sfumato.spaces import Area, Grid


def window(area: Area, level: int) -> BoolArray:
    """Which cells [row, column] of a level the bounds touch."""
    first_column, first_row, last_column, last_row = area.window(level)
    found = np.zeros((1 << level, 1 << level), dtype=np.bool_)
    found[first_row:last_row, first_column:last_column] = True
    return found


@lru_cache(maxsize=64)
def parts_inside(area: Area | None, level: int) -> FloatArray | None:
    """Which part of each cell [row, column] of a level lies inside the bounds; None where all of all does."""
    if area is None:
        return None
    across, up = _overlaps(area, level)
    return None if across.min() == 1 and up.min() == 1 else up[:, None] * across[None, :]


def parts_of_nodes(area: Area | None, depth: IntArray, code: IntArray) -> FloatArray:
    """How much of the map each cell, or southern or northern half of one, has inside the bounds.

    A node of depth 2 l is a cell of level l, one of depth 2 l + 1 a half; codes of several maps may
    lie one after another.
    """
    found = 0.5 ** depth.astype(np.float64)
    if area is None:
        return found
    for at in np.unique(depth).tolist():
        here, level, half = depth == at, at // 2, at % 2
        cells = (code[here] & ((1 << at) - 1)) >> half
        columns, rows = Grid(level).decode(cells)
        across, up = _overlaps(area, level)[0], _overlaps(area, level + half)[1]
        found[here] *= across[columns] * up[2 * rows + (code[here] & 1) if half else rows]
    return found


@lru_cache(maxsize=64)
def _overlaps(area: Area, level: int) -> tuple[FloatArray, FloatArray]:
    """Which part of each column and of each row of a level the bounds hold."""
    # A posterior knows cells finer than those of the data.
    area = replace(area, grid=Grid(level, area.grid.bounds))
    grid, window = area.grid, area.window(level)
    low_x, low_y, high_x, high_y = area.bounds
    ends = (
        (low_x, high_x, grid.bounds[0], grid.cell_width, window[0], window[2]),
        (low_y, high_y, grid.bounds[1], grid.cell_height, window[1], window[3]),
    )
    found = []
    for low, high, start, size, first, end in ends:
        steps = np.arange(grid.side)
        part = np.clip((high - start) / size - steps, 0, 1) - np.clip(
            (low - start) / size - steps, 0, 1
        )
        part[np.abs(part - 1) < 1e-6] = 1.0
        touched = (steps >= first) & (steps < end)
        found.append(np.where(touched, np.maximum(part, 1e-12), 0.0))
    return found[0], found[1]


def bounded_center(first: FloatArray, second: FloatArray) -> FloatArray:
    """The share of the first of two parts; 2 where only the first is there at all, -1 where the second is.

    >>> bounded_center(np.array([1.0, 1.0, 0.0, 0.0]), np.array([3.0, 0.0, 2.0, 0.0]))
    array([ 0.25,  2.  , -1.  ,  0.5 ])
    """
    whole = first + second
    share = np.where(whole > 0, first / np.where(whole > 0, whole, 1.0), 0.5)
    share = np.where((second == 0) & (first > 0), 2.0, share)
    return np.asarray(np.where((first == 0) & (second > 0), -1.0, share))


def counts_inside(counts: NoisyCounts, area: Area) -> NoisyCounts:
    """The counts without those of cells outside the bounds: they were of nobody."""
    kept = np.ones(counts.levels.size, dtype=np.bool_)
    for level in np.unique(counts.levels).tolist():
        here = counts.levels == level
        kept[here] = area.touches(level, counts.codes[here] & ((1 << 2 * level) - 1))
    return counts if kept.all() else counts.only(kept)


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
    # Marks in place of sorting: leaves are numbers of cells.
    sides = np.zeros((2, int(leaves.max(initial=0)) + 1), dtype=np.bool_)
    sides[0, leaves[within]] = sides[1, leaves[~within]] = True
    across = (sides[0] & sides[1])[leaves]
    if across.any():
        _, owner = np.unique(leaves[across], return_inverse=True)
        for one, whole in zip(held, maps, strict=True):
            kept = np.bincount(owner, one[across])
            one[across] *= (np.bincount(owner, whole[across]) / np.where(kept > 0, kept, 1.0))[
                owner
            ]
    return held
