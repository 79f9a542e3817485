"""What a map knows of its cells: estimates, and the noise on them as draws of its law.

Zoom decides whether to count a cell, and at which price, before it does: so every count has noise
of its own law, and no prior of what maps look like is needed. Of other maps with a posterior the
draws are believed, with spare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato._random import generator, seed_of
from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.heatmap.accuracy.uncertainty import FINEST_DRAWS, maps_inside
from sfumato.heatmap.inference.bounded import last_counted
from sfumato.heatmap.inference.count_noise import CountNoise
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.known_sums import CountedSums
from sfumato.spaces import Area, Grid

if TYPE_CHECKING:
    from sfumato.heatmap.inference.map_posterior import MapPosterior
    from sfumato.heatmap.results import HeatmapRelease

SmallFloats = npt.NDArray[np.float32]

DRAWS = 999
# Draws of a posterior know what noise does and guess what maps look like: they are taken so much
# wider. Of 30 pairs of pyramids of one table none showed anything then, and one did without.
# Nor did any of 21 fresh pairs (experiments/heatmaps/unchanged_pairs.py).
SPARE = 1.5
# A total must be so many deviations above 0 for shares of it to be known at all.
SOMEBODY = 3.0

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


def times(one: Counted, scale: float) -> Counted:
    """The same in another measure: rows, of which a mass of 1 is so many."""
    if scale == 1:
        return one

    def scaled(draw: Draw) -> Draw:
        return lambda numbers: np.asarray(draw(numbers) * scale, dtype=np.float32)

    return Counted(
        one.values * scale,
        one.depth,
        scaled(one.draw),
        tuple(Layer(at.level, at.here, at.values * scale, scaled(at.draw)) for at in one.earlier),
    )


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
    level, scale = min(area.grid.levels, FINEST_DRAWS), release.measure.scale
    if known.counts is not None:
        sums = CountedSums.of(known.counts, area)
        if sums is not None:
            return times(_by_counts(known.counts, sums, level, stream), scale)
    return times(_by_draws(known, area, level, stream), scale)


def _by_counts(counts: NoisyCounts, sums: CountedSums, level: int, stream: int) -> Counted:
    """The last count of each cell with the law of its noise, of a scale that is known."""
    fine = max(level, sums.level)
    owner = np.kron(sums.owner, np.ones((1 << fine - sums.level,) * 2, dtype=np.int64))
    side, part = 1 << level, 1 << fine - level
    places = np.kron(np.arange(side * side).reshape(side, side), np.ones((part, part), dtype=int))
    size = np.bincount(owner.ravel())
    shape = (sums.values.size, side * side)
    from scipy.sparse import csr_matrix

    spread = csr_matrix((1 / size[owner.ravel()], (owner.ravel(), places.ravel())), shape)
    # A cell of level i has 4**(fine - i) of the finest places; outside the bounds is nobody.
    own = np.where(sums.scales > 0, fine - np.rint(np.log2(size) / 2), level).astype(np.int64)
    depth = np.minimum(own[owner], level).reshape(side, part, side, part).min(axis=(1, 3))
    rng = generator(seed_of(np.append(sums.values, stream)))
    noise = _drawn(sums.law, rng, sums.scales)
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
    noise = _drawn(counts.law, rng, counts.scales)

    def draw(numbers: IntArray) -> SmallFloats:
        out = np.zeros((numbers.size, side, side), dtype=np.float32)
        out[:, rows, columns] = noise[numbers]
        return out

    return Layer(level, here, values, draw)


def _mask(which: IntArray, size: int) -> BoolArray:
    found = np.zeros(size, dtype=np.bool_)
    found[which] = True
    return found


def _drawn(law: CountNoise, rng: np.random.Generator, scales: FloatArray) -> SmallFloats:
    return np.asarray(law.draw(rng, (DRAWS, scales.size)) * scales, dtype=np.float32)


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

    Args:
        one: What a map knows of its cells, in users.

    Returns:
        The same in shares of 1, or None.

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
        return lambda numbers: np.asarray(
            (draw(numbers) - part * of_all(numbers)) / total, dtype=np.float32
        )

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
        if not pooled(np.abs(one.values), layer.level)[~layer.here].any():
            return layer.values, layer.draw
    return one.values, one.draw


def blocks_of(image: npt.NDArray[np.generic], level: int) -> npt.NDArray[np.generic]:
    """An image as blocks [row, row within, column, column within], one for each cell of a level."""
    side = 1 << level
    part = len(image) // side
    return image.reshape(side, part, side, part)


def pooled(image: npt.NDArray[np.generic], level: int) -> FloatArray:
    """An image summed up to the cells of a level."""
    return np.asarray(blocks_of(image, level).sum(axis=(1, 3)))
