"""Where two maps differ by more than their noise: squares of all sizes, tested all at once.

What is tested are cells of which both maps know the noise, and sums of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sfumato._types import BoolArray, FloatArray
from sfumato.heatmap.comparison.known_cells import (
    DRAWS,
    Counted,
    SmallFloats,
    blocks_of,
    pooled,
)
from sfumato.heatmap.inference.bounded import window
from sfumato.spaces import Area

# Of 999 differences of nothing but noise, fewer than 50 may show something.
CONFIDENCE = 0.95
AT_ONCE = 37  # of them, so that numbers stay within a few megabytes


@dataclass(frozen=True, slots=True)
class Change:
    """A square in which two maps differ: `change` is what `after` has more, from `low` to `high`.

    West, south, east and north are in the units of the map's bounds, and not beyond them. All
    intervals of one map of differences hold at once, with CONFIDENCE.
    """

    west: float
    south: float
    east: float
    north: float
    before: float
    after: float
    change: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The smallest squares that differ, how many were tested, and where they lie [row, column]."""

    changes: tuple[Change, ...]
    tested: int
    where: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class _Squares:
    """Squares of one level [row, column]: which are tested, and what both maps have in each."""

    level: int
    tested: BoolArray
    before: FloatArray
    after: FloatArray


def find_changes(before: Counted, after: Counted, area: Area) -> Found:
    """The smallest squares of any size in which `after` differs from `before`, all of them at once.

    A square is tested if it is made of whole cells of both maps. Its difference is measured in
    deviations of its noise; how far that goes when nothing changed is seen on draws of the noise
    alone, for each size of square by itself, since single counts have longer tails than sums of
    many. One size is as likely to give a false alarm as another, and all together in 1 - CONFIDENCE
    of comparisons.

    Args:
        before: What one map knows of its cells.
        after: What the other one knows, of the same area.
        area: Their area.

    Returns:
        The squares that differ, those of the largest change first.

    """
    squares = _squares(before, after, area)
    sums = [np.zeros(one.tested.shape) for one in squares]
    for noise in _noise(before, after):
        for held, some in zip(sums, noise, strict=True):
            held += (some.astype(np.float64) ** 2).sum(axis=0)
    spread = [np.sqrt(one / DRAWS) for one in sums]
    squares = [
        replace(one, tested=one.tested & (wide > 0))
        for one, wide in zip(squares, spread, strict=True)
    ]
    tops = np.concatenate(
        [
            np.stack(
                [
                    (np.abs(some[:, one.tested]) / wide[one.tested]).max(axis=1, initial=0.0)
                    for some, one, wide in zip(noise, squares, spread, strict=True)
                ],
                axis=1,
            )
            for noise in _noise(before, after)
        ]
    )
    limits = [far * wide for far, wide in zip(_limits(tops), spread, strict=True)]
    return _smallest(squares, limits, area, finest=len(squares) - 1)


def _squares(before: Counted, after: Counted, area: Area) -> list[_Squares]:
    """What is tested, by level: whole cells of both maps, alone or added up."""
    depth = np.minimum(before.depth, after.depth)
    here = window(area, len(before.estimates) - 1)
    found = []
    for at, (then, now) in enumerate(zip(before.estimates, after.estimates, strict=True)):
        whole = (blocks_of(depth, at).min(axis=(1, 3)) >= at) & blocks_of(here, at).any(axis=(1, 3))
        found.append(_Squares(at, whole, then, now))
    return found


def _noise(before: Counted, after: Counted) -> Iterator[list[SmallFloats]]:
    """Differences of nothing but noise of all squares, some draws at a time: the maps' is independent."""
    for first in range(0, DRAWS, AT_ONCE):
        numbers = np.arange(first, min(first + AT_ONCE, DRAWS))
        yield [
            now - then for then, now in zip(before.draw(numbers), after.draw(numbers), strict=True)
        ]


def _limits(tops: FloatArray) -> FloatArray:
    """How many deviations squares of each size may be off: in all but a few draws none is further."""
    from_top = len(tops) - np.argsort(np.argsort(tops, axis=0, kind="stable"), axis=0)
    best = np.sort(from_top.min(axis=1))
    few = int((1 - CONFIDENCE) * (len(tops) + 1) + 1e-9)
    # The largest rank that fewer than `few` draws reach at any size.
    rank = max(1, int(best[few - 1]) - 1)
    return np.asarray(np.sort(tops, axis=0)[len(tops) - rank])


def _smallest(
    squares: list[_Squares], limits: list[FloatArray], area: Area, *, finest: int
) -> Found:
    """Of the squares that differ those that hold no smaller one that differs the same way."""
    covered = {sign: np.zeros((1 << finest,) * 2, dtype=np.bool_) for sign in (-1, 1)}
    changes = []
    for one, limit in zip(reversed(squares), reversed(limits), strict=True):
        change = one.after - one.before
        for sign in (-1, 1):
            new = one.tested & (sign * change > limit) & ~(pooled(covered[sign], one.level) > 0)
            block = 1 << finest - one.level
            covered[sign] |= np.kron(new, np.ones((block, block), dtype=np.bool_))
            changes += [
                Change(
                    *_corners(at, one.level, area),
                    float(one.before[at]),
                    float(one.after[at]),
                    float(change[at]),
                    float(change[at] - limit[at]),
                    float(change[at] + limit[at]),
                )
                for at in zip(*np.nonzero(new), strict=True)
            ]
    changes.sort(key=lambda one: (-abs(one.change), one.west, one.south))
    tested = sum(int(one.tested.sum()) for one in squares)
    return Found(tuple(changes), tested, covered[-1] | covered[1])


def _corners(at: tuple[int, int], level: int, area: Area) -> tuple[float, float, float, float]:
    """What a square has inside the bounds: west, south, east and north."""
    row, column = map(int, at)
    grid = area.grid.at_level(level)
    west, south = grid.bounds[0], grid.bounds[1]
    return (
        max(west + column * grid.cell_width, area.bounds[0]),
        max(south + row * grid.cell_height, area.bounds[1]),
        min(west + (column + 1) * grid.cell_width, area.bounds[2]),
        min(south + (row + 1) * grid.cell_height, area.bounds[3]),
    )
