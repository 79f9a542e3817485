"""Where two maps differ by more than their noise: squares of all sizes, tested all at once.

What is tested are sums of cells of which both maps know the noise. Zoom buys the last counts of its
cells after everything about them is decided, so that their noise has its own law and no prior of
what maps look like is needed. Of other maps with a posterior the draws are believed, with spare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from sfumato._random import generator, seed_of
from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.heatmap.inference.bounded import last_counted, window
from sfumato.heatmap.inference.known_sums import CountedSums
from sfumato.heatmap.inference.uncertainty import FINEST_DRAWS, maps_inside
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.inference.map_posterior import MapPosterior
    from sfumato.heatmap.results import HeatmapRelease

SmallFloats = npt.NDArray[np.float32]

CONFIDENCE = 0.95
# Of 999 differences of nothing but noise, 49 may show something; a fiftieth would be one too many.
DRAWS = 999
AT_ONCE = 37  # of them, so that numbers stay within a few megabytes
# Draws of a posterior know what noise does and guess what maps look like: they are taken so much
# wider, chosen on pairs of pyramids of one table (tests/heatmap/test_differences.py).
SPARE = 1.5
# A total must be so many deviations above 0 for shares of it to be known at all.
SOMEBODY = 3.0


@dataclass(frozen=True, slots=True)
class Change:
    """A square in which two maps differ: `change` is what `after` has more, from `low` to `high`.

    West, south, east and north are in the units of the map's bounds. All intervals of one map of
    differences hold at once, with CONFIDENCE.
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
class Counted:
    """What one map knows of its cells, in users.

    Attributes:
        values: Estimates [row, column], spread evenly over cells of which no part is known.
        depth: The level of the cell that each place lies in.
        draw: Noise of some draws [draw, row, column], by their numbers.

    """

    values: FloatArray
    depth: IntArray
    draw: Callable[[IntArray], SmallFloats]


def counted(release: HeatmapRelease, *, stream: int = 0) -> Counted | None:
    """What a map knows of its cells; None if it does not say how sure it is.

    Args:
        release: The map.
        stream: Another number gives independent noise of the same map.

    Returns:
        Estimates and noise of cells no finer than those of draws.

    """
    known, area = release.posterior, release.area
    if known is None:
        return None
    level = min(area.grid.levels, FINEST_DRAWS)
    sums = None if known.counts is None else CountedSums.of(known.counts, area)
    if sums is None:
        return _by_draws(known, area, level, stream)
    return _by_counts(sums, level, stream)


def _by_counts(sums: CountedSums, level: int, stream: int) -> Counted:
    """The last count of each cell with the law of its noise: Laplace, of a scale that is known."""
    fine = max(level, sums.level)
    owner = np.kron(sums.owner, np.ones((1 << fine - sums.level,) * 2, dtype=np.int64))
    side, part = 1 << level, 1 << fine - level
    places = np.kron(np.arange(side * side).reshape(side, side), np.ones((part, part), dtype=int))
    size = np.bincount(owner.ravel())
    shape = (sums.values.size, side * side)
    spread = csr_matrix((1 / size[owner.ravel()], (owner.ravel(), places.ravel())), shape)
    # A cell of level i has 4**(fine - i) of the finest places; outside the bounds is nobody.
    own = np.where(sums.scales > 0, fine - np.rint(np.log2(size) / 2), level).astype(np.int64)
    depth = np.minimum(own[owner], level).reshape(side, part, side, part).min(axis=(1, 3))
    scales = sums.scales.astype(np.float32)
    noise = generator(seed_of(np.append(sums.values, stream))).laplace(size=(DRAWS, scales.size))
    noise = noise.astype(np.float32) * scales
    sparse = spread.astype(np.float32)

    def draw(numbers: IntArray) -> SmallFloats:
        return np.asarray(noise[numbers] @ sparse, dtype=np.float32).reshape(-1, side, side)

    return Counted(np.asarray(sums.values @ spread).reshape(side, side), depth, draw)


def _by_draws(known: MapPosterior, area: Area, level: int, stream: int) -> Counted:
    """The middle of a posterior's draws, and how far each is from it."""
    maps = maps_inside(known, area, level)
    middle = maps.mean(axis=0)
    order = generator(seed_of(np.append(middle, stream))).integers(len(maps), size=DRAWS)
    depth = np.full(middle.shape, level)
    if known.counts is not None:
        numbers = last_counted(known.counts, level)[area.grid.at_level(level).codes_of_image()]
        depth = np.searchsorted(4 ** np.arange(level + 1), numbers, side="right") - 1

    def draw(numbers: IntArray) -> SmallFloats:
        return np.asarray(SPARE * (maps[order[numbers]] - middle), dtype=np.float32)

    return Counted(middle, depth, draw)


def of_shares(one: Counted) -> Counted | None:
    """The same of shares of the whole; None where the whole may be nobody.

    A share is a ratio: to first order its noise is that of the cell less the share's part of the
    noise on the total.
    """
    total = float(one.values.sum())
    spread = float(one.draw(np.arange(DRAWS)[::9]).sum(axis=(1, 2), dtype=np.float64).std())
    if not total > SOMEBODY * spread:
        return None
    shares = one.values / total

    def draw(numbers: IntArray) -> SmallFloats:
        noise = one.draw(numbers)
        of_all = noise.sum(axis=(1, 2), keepdims=True)
        return np.asarray((noise - shares.astype(np.float32) * of_all) / total, dtype=np.float32)

    return Counted(shares, one.depth, draw)


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
    difference = after.values - before.values
    level = len(difference).bit_length() - 1
    depth, here = np.minimum(before.depth, after.depth), window(area, level)
    whole = [
        (_blocks(depth, at).min(axis=(1, 3)) >= at) & _blocks(here, at).any(axis=(1, 3))
        for at in range(level + 1)
    ]
    squares = [np.zeros_like(one, dtype=np.float64) for one in whole]
    for noise in _noise(before, after):
        for sums, of_level in zip(squares, _levels(noise), strict=True):
            sums += (of_level**2).sum(axis=0)
    spread = [np.sqrt(one / DRAWS) for one in squares]
    whole = [one & (wide > 0) for one, wide in zip(whole, spread, strict=True)]
    tops = np.concatenate(
        [
            np.stack(
                [
                    (np.abs(of_level[:, one]) / wide[one]).max(axis=1, initial=0.0)
                    for of_level, one, wide in zip(_levels(noise), whole, spread, strict=True)
                ],
                axis=1,
            )
            for noise in _noise(before, after)
        ]
    )
    limits = [far * wide for far, wide in zip(_limits(tops), spread, strict=True)]
    return _smallest(before, after, area, whole=whole, limits=limits)


def _limits(tops: FloatArray) -> FloatArray:
    """How many deviations squares of each size may be off: in all but a few draws none is further."""
    from_top = len(tops) - np.argsort(np.argsort(tops, axis=0, kind="stable"), axis=0)
    best = np.sort(from_top.min(axis=1))
    few = int((1 - CONFIDENCE) * (len(tops) + 1) + 1e-9)
    # The largest rank that fewer than `few` draws reach at any size.
    rank = max(1, int(best[few - 1]) - 1)
    return np.asarray(np.sort(tops, axis=0)[len(tops) - rank])


def _smallest(
    before: Counted,
    after: Counted,
    area: Area,
    *,
    whole: list[BoolArray],
    limits: list[FloatArray],
) -> Found:
    """Of the squares that differ those that hold no smaller one that differs the same way."""
    level = len(whole) - 1
    covered = {sign: np.zeros((1, 1 << level, 1 << level), dtype=np.bool_) for sign in (-1, 1)}
    where = np.zeros((1 << level, 1 << level), dtype=np.bool_)
    changes = []
    for at in range(level, -1, -1):
        then, now = (_pooled(one.values[None], at)[0] for one in (before, after))
        change, limit = now - then, limits[at]
        for sign, inside in covered.items():
            sure = whole[at] & (sign * change > limit)
            new = sure & ~_pooled(inside, at)[0].astype(np.bool_)
            block = 1 << level - at
            mask = np.kron(new, np.ones((block, block), dtype=np.bool_))
            inside[0] |= mask
            where |= mask
            changes += [
                Change(
                    *_corners(row, column, at, area),
                    float(then[row, column]),
                    float(now[row, column]),
                    float(change[row, column]),
                    float(change[row, column] - limit[row, column]),
                    float(change[row, column] + limit[row, column]),
                )
                for row, column in np.argwhere(new).tolist()
            ]
    changes.sort(key=lambda one: (-abs(one.change), one.west, one.south))
    return Found(tuple(changes), int(sum(one.sum() for one in whole)), where)


def total_change(before: Counted, after: Counted, *, coverage: float) -> tuple[float, float]:
    """Between what the change of the whole map lies, with chance `coverage`."""
    change = float(after.values.sum() - before.values.sum())
    sums = np.concatenate(
        [noise.sum(axis=(1, 2), dtype=np.float64) for noise in _noise(before, after)]
    )
    half = float(np.quantile(np.abs(sums), coverage))
    return change - half, change + half


def _noise(before: Counted, after: Counted) -> Iterator[SmallFloats]:
    """Differences of nothing but noise, some at a time: that of two releases is independent."""
    for first in range(0, DRAWS, AT_ONCE):
        numbers = np.arange(first, min(first + AT_ONCE, DRAWS))
        yield after.draw(numbers) - before.draw(numbers)


def _blocks(image: npt.NDArray[np.generic], level: int) -> npt.NDArray[np.generic]:
    side = 1 << level
    part = len(image) // side
    return image.reshape(side, part, side, part)


def _levels(images: SmallFloats) -> list[SmallFloats]:
    """Images [image, row, column] summed up to the cells of every level, the coarsest first."""
    found = [images]
    while found[-1].shape[1] > 1:
        count, side, _ = found[-1].shape
        rows = found[-1].reshape(count, side // 2, 2, side)
        columns = (rows[:, :, 0] + rows[:, :, 1]).reshape(count, side // 2, side // 2, 2)
        found.append(columns[..., 0] + columns[..., 1])
    return found[::-1]


def _pooled(images: npt.NDArray[np.generic], level: int) -> FloatArray:
    """Images [image, row, column] summed up to the cells of a level."""
    side, part = 1 << level, images.shape[1] >> level
    return np.asarray(images.reshape(-1, side, part, side, part).sum(axis=(2, 4)))


def _corners(row: int, column: int, level: int, area: Area) -> tuple[float, float, float, float]:
    grid = area.grid.at_level(level)
    west, south = grid.bounds[0], grid.bounds[1]
    return (
        west + column * grid.cell_width,
        south + row * grid.cell_height,
        west + (column + 1) * grid.cell_width,
        south + (row + 1) * grid.cell_height,
    )
