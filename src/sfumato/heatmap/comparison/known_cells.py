"""What a map knows of its cells: estimates, and the noise on them as draws of its law.

Zoom decides whether to count a cell, and at which price, before it does: so every count has noise
of its own law, and no prior of what maps look like is needed. Of other maps with a posterior the
draws are believed, with spare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._random import generator, seed_of
from sfumato._types import FloatArray, IntArray
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

Draw = Callable[[IntArray], list[SmallFloats]]


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What one map knows of its cells, in users, on every level from the whole map to the finest.

    Attributes:
        estimates: Estimates [row, column] by level, spread evenly over cells of which no part is
            known.
        depth: The level of the cell that each place lies in [row, column].
        draw: Noise of some draws [draw, row, column] by level, by their numbers.

    """

    estimates: tuple[FloatArray, ...]
    depth: IntArray
    draw: Draw


def times(one: Counted, scale: float) -> Counted:
    """The same in another measure: rows, of which a mass of 1 is so many."""
    if scale == 1:
        return one
    return Counted(
        tuple(level * scale for level in one.estimates),
        one.depth,
        lambda numbers: [np.asarray(level * scale, np.float32) for level in one.draw(numbers)],
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
    """All counts of each cell with the law of their noise, of a scale that is known."""
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
    values, variances = (
        np.asarray(of @ spread).reshape(side, side)
        for of in (sums.values, sums.law.variance * sums.scales**2)
    )
    earlier = _earlier(counts, variances, rng)

    def draw(numbers: IntArray) -> list[SmallFloats]:
        last = np.asarray(noise[numbers] @ sparse, dtype=np.float32).reshape(-1, side, side)
        return _joined(last, [(one, one.noise[numbers]) for one in earlier])

    found = _joined(values[None], [(one, one.values[None]) for one in earlier])
    return Counted(tuple(np.asarray(one[0], np.float64) for one in found), depth, draw)


@dataclass(frozen=True, slots=True, eq=False)
class _Earlier:
    """Counts of cells of one level that were counted again, or split, and how far each can pull.

    Each was bought before anything was decided about its cell, so that its noise has its own law.
    """

    level: int
    rows: IntArray
    columns: IntArray
    values: FloatArray
    noise: SmallFloats
    pull: FloatArray


def _joined(finest: FloatArray | SmallFloats, earlier: list[tuple[_Earlier, Any]]) -> list[Any]:
    """Images [image, row, column] of every level, the coarsest first, with what was counted earlier.

    What is known of a cell is the sum of what is known of its quarters, with deviation v, and an
    earlier count e of its own, of scale b. The likeliest between the two is that sum moved towards
    e, but by no more than v**2 / b: noise of Laplace's law is far off now and then, and a mean of
    the two would follow it there.
    """
    by_level = {one.level: (one, counts) for one, counts in earlier}
    found = summed_levels(finest)
    for level in range(len(found) - 1, -1, -1):
        if level < len(found) - 1:
            found[level] = quarters_added(found[level + 1])
        if level in by_level:
            one, counts = by_level[level]
            below = found[level][:, one.rows, one.columns]
            found[level][:, one.rows, one.columns] = below + np.clip(
                counts - below, -one.pull, one.pull
            )
    return found


def _earlier(
    counts: NoisyCounts, variances: FloatArray, rng: np.random.Generator
) -> list[_Earlier]:
    """The counts that are not the last ones of their cell, the finest first.

    `variances` are those of the finest cells, by their last counts.
    """
    own = 4**counts.levels + counts.codes
    _, back = np.unique(own[::-1], return_index=True)
    newest = np.zeros(own.size, dtype=np.bool_)
    newest[own.size - 1 - back] = True
    before = ~(newest & counts.last)
    found = []
    for level in range(len(variances).bit_length() - 1, -1, -1):
        if level < len(variances).bit_length() - 1:
            variances = quarters_added(variances[None])[0]
        which = np.flatnonzero(before & (counts.levels == level))
        if which.size:
            columns, rows = Grid(level).decode(counts.codes[which])
            scales = counts.scales[which]
            below, alone = variances[rows, columns], counts.law.variance * scales**2
            noise = _drawn(counts.law, rng, scales)
            pull = below / (counts.widening * scales)
            found.append(_Earlier(level, rows, columns, counts.values[which], noise, pull))
            variances[rows, columns] = below * alone / (below + alone)
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

    def draw(numbers: IntArray) -> list[SmallFloats]:
        return summed_levels(np.asarray(SPARE * (maps[order[numbers]] - middle), dtype=np.float32))

    return Counted(tuple(one[0] for one in summed_levels(middle[None])), depth, draw)


def of_shares(one: Counted) -> Counted | None:
    """The same of shares of the whole; None where the whole may be nobody.

    A share is a ratio: to first order its noise is that of the cell less the share's part of the
    noise on the total.

    Args:
        one: What a map knows of its cells, in users.

    Returns:
        The same in shares of 1, or None.

    """
    total = float(one.estimates[0].sum())
    if not total > SOMEBODY * float(one.draw(np.arange(DRAWS)[::9])[0].std()):
        return None
    parts = [(level / total).astype(np.float32) for level in one.estimates]

    def draw(numbers: IntArray) -> list[SmallFloats]:
        noise = one.draw(numbers)
        return [
            np.asarray((level - part * noise[0]) / total, dtype=np.float32)
            for level, part in zip(noise, parts, strict=True)
        ]

    return Counted(tuple(level / total for level in one.estimates), one.depth, draw)


def summed_levels(images: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Images [image, row, column] summed up to the cells of every level, the coarsest first."""
    found = [images]
    while found[-1].shape[1] > 1:
        found.append(quarters_added(found[-1]))
    return found[::-1]


def quarters_added(images: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Images [image, row, column] of half as many rows and columns."""
    count, side, _ = images.shape
    rows = images.reshape(count, side // 2, 2, side)
    columns = (rows[:, :, 0] + rows[:, :, 1]).reshape(count, side // 2, side // 2, 2)
    return np.asarray(columns[..., 0] + columns[..., 1])


def blocks_of(image: npt.NDArray[np.generic], level: int) -> npt.NDArray[np.generic]:
    """An image as blocks [row, row within, column, column within], one for each cell of a level."""
    side = 1 << level
    part = len(image) // side
    return image.reshape(side, part, side, part)


def pooled(image: npt.NDArray[np.generic], level: int) -> FloatArray:
    """An image summed up to the cells of a level."""
    return np.asarray(blocks_of(image, level).sum(axis=(1, 3)))
