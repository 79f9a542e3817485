"""Where two maps differ by more than their noise: squares of all sizes, tested all at once.

What is tested are cells of which both maps know the noise, and sums of them. Zoom decides whether to
count a cell, and at which price, before it does: so every count has noise of its own law, and no
prior of what maps look like is needed. Of other maps with a posterior the draws are believed, with
spare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from sfumato._random import generator, seed_of
from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.heatmap.inference.bounded import last_counted, window
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.known_sums import CountedSums
from sfumato.heatmap.inference.uncertainty import FINEST_DRAWS, maps_inside
from sfumato.spaces import Area, Grid

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


Draw = Callable[[IntArray], SmallFloats]


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Counts of some cells of one level, in users [row, column], and draws of their noise, by number."""

    level: int
    here: BoolArray
    values: FloatArray
    draw: Draw


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What one map knows of its cells, in users.

    Attributes:
        values: Estimates [row, column], spread evenly over cells of which no part is known.
        depth: The level of the cell that each place lies in.
        draw: Noise of some draws [draw, row, column], by their numbers.
        earlier: Counts of cells that were counted again, or split, by level: each was bought before
            anything was decided about it, so that its noise has its own law too.

    """

    values: FloatArray
    depth: IntArray
    draw: Draw
    earlier: tuple[Layer, ...] = ()


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
    if known.counts is not None:
        sums = CountedSums.of(known.counts, area)
        if sums is not None:
            return _by_counts(known.counts, sums, level, stream)
    return _by_draws(known, area, level, stream)


def _by_counts(counts: NoisyCounts, sums: CountedSums, level: int, stream: int) -> Counted:
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
    rng = generator(seed_of(np.append(sums.values, stream)))
    noise = _laplace(rng, sums.scales)
    sparse = spread.astype(np.float32)

    def draw(numbers: IntArray) -> SmallFloats:
        return np.asarray(noise[numbers] @ sparse, dtype=np.float32).reshape(-1, side, side)

    values = np.asarray(sums.values @ spread).reshape(side, side)
    return Counted(values, depth, draw, _earlier(counts, level, rng))


def _earlier(counts: NoisyCounts, finest: int, rng: np.random.Generator) -> tuple[Layer, ...]:
    """The counts that are not the last ones of their cell, level by level."""
    own = 4**counts.levels + counts.codes
    _, back = np.unique(own[::-1], return_index=True)
    newest = np.zeros(own.size, dtype=np.bool_)
    newest[own.size - 1 - back] = True
    before = ~(newest & counts.last)
    found = []
    for level in range(finest + 1):
        which = np.flatnonzero(before & (counts.levels == level))
        if which.size:
            columns, rows = Grid(level).decode(counts.codes[which])
            found.append(_layer(level, rows, columns, counts.only(_mask(which, own.size)), rng))
    return tuple(found)


def _layer(
    level: int, rows: IntArray, columns: IntArray, counts: NoisyCounts, rng: np.random.Generator
) -> Layer:
    side = 1 << level
    here, values = np.zeros((side, side), dtype=np.bool_), np.zeros((side, side))
    here[rows, columns], values[rows, columns] = True, counts.values
    noise = _laplace(rng, counts.scales)

    def draw(numbers: IntArray) -> SmallFloats:
        out = np.zeros((numbers.size, side, side), dtype=np.float32)
        out[:, rows, columns] = noise[numbers]
        return out

    return Layer(level, here, values, draw)


def _mask(which: IntArray, size: int) -> BoolArray:
    found = np.zeros(size, dtype=np.bool_)
    found[which] = True
    return found


def _laplace(rng: np.random.Generator, scales: FloatArray) -> SmallFloats:
    return np.asarray(rng.laplace(size=(DRAWS, scales.size)) * scales, dtype=np.float32)


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
    values, draw = _of_the_whole(one)
    total = float(values.sum())

    def of_all(numbers: IntArray) -> SmallFloats:
        return np.asarray(draw(numbers).sum(axis=(1, 2), keepdims=True), dtype=np.float32)

    spread = float(of_all(np.arange(DRAWS)[::9]).std())
    if not total > SOMEBODY * spread:
        return None

    def shared(values: FloatArray, draw: Draw) -> Draw:
        part = (values / total).astype(np.float32)
        return lambda numbers: (draw(numbers) - part * of_all(numbers)) / np.float32(total)

    return Counted(
        one.values / total,
        one.depth,
        shared(one.values, one.draw),
        tuple(
            Layer(at.level, at.here, at.values / total, shared(at.values, at.draw))
            for at in one.earlier
        ),
    )


def _of_the_whole(one: Counted) -> tuple[FloatArray, Draw]:
    """The fewest counts that make up the whole map: those that zoom began with, if it kept them."""
    for layer in one.earlier:
        if not _pooled(np.abs(one.values), layer.level)[~layer.here].any():
            return layer.values, layer.draw
    return one.values, one.draw


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
    return _smallest(squares, limits, area, finest=len(before.values).bit_length() - 1)


def _squares(before: Counted, after: Counted, area: Area) -> list[_Squares]:
    """What is tested: whole cells of both maps added up, and cells both counted before their last."""
    level = len(before.values).bit_length() - 1
    depth, here = np.minimum(before.depth, after.depth), window(area, level)
    found = []
    for at in range(level + 1):
        whole = (_blocks(depth, at).min(axis=(1, 3)) >= at) & _blocks(here, at).any(axis=(1, 3))
        then, now = (_pooled(one.values, at) for one in (before, after))
        found.append(_Squares(at, whole, then, now))
    return found + [
        _Squares(first.level, first.here & second.here, first.values, second.values)
        for first, second in _both(before, after)
    ]


def _both(before: Counted, after: Counted) -> list[tuple[Layer, Layer]]:
    """Levels of which both maps have earlier counts."""
    later = {one.level: one for one in after.earlier}
    return [(one, later[one.level]) for one in before.earlier if one.level in later]


def _noise(before: Counted, after: Counted) -> Iterator[list[SmallFloats]]:
    """Differences of nothing but noise of all squares, some draws at a time: that of two maps is independent."""
    for first in range(0, DRAWS, AT_ONCE):
        numbers = np.arange(first, min(first + AT_ONCE, DRAWS))
        yield [
            *_levels(after.draw(numbers) - before.draw(numbers)),
            *(two.draw(numbers) - one.draw(numbers) for one, two in _both(before, after)),
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
    for level in range(finest, -1, -1):
        # A square may be tested twice: by what was counted in it last, and by an earlier count.
        taken = {sign: _pooled(covered[sign], level) > 0 for sign in (-1, 1)}
        for one, limit in zip(squares, limits, strict=True):
            if one.level != level:
                continue
            change = one.after - one.before
            for sign in (-1, 1):
                new = one.tested & (sign * change > limit) & ~taken[sign]
                block = 1 << finest - level
                covered[sign] |= np.kron(new, np.ones((block, block), dtype=np.bool_))
                taken[sign] |= new
                changes += [
                    Change(
                        *_corners(*at, level, area),
                        float(one.before[at]),
                        float(one.after[at]),
                        float(change[at]),
                        float(change[at] - limit[at]),
                        float(change[at] + limit[at]),
                    )
                    for at in map(tuple, np.argwhere(new).tolist())
                ]
    changes.sort(key=lambda one: (-abs(one.change), one.west, one.south))
    tested = sum(int(one.tested.sum()) for one in squares)
    return Found(tuple(changes), tested, covered[-1] | covered[1])


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


def _pooled(image: npt.NDArray[np.generic], level: int) -> FloatArray:
    """An image summed up to the cells of a level."""
    return np.asarray(_blocks(image, level).sum(axis=(1, 3)))


def _corners(row: int, column: int, level: int, area: Area) -> tuple[float, float, float, float]:
    grid = area.grid.at_level(level)
    west, south = grid.bounds[0], grid.bounds[1]
    return (
        west + column * grid.cell_width,
        south + row * grid.cell_height,
        west + (column + 1) * grid.cell_width,
        south + (row + 1) * grid.cell_height,
    )
