"""A bound on how far a map is off that believes nothing of people: only the law of its noise.

Proof and pictures: docs/explain/how-far.md. In short, with p the map, s the true masses and t the
noisy counts of cells in a tree whose last cells tile the square:

1. Inside a last cell mass may lie anywhere: p moves there at most to the farthest corner.
2. Between last cells the norm is at most the sum of 2**-level |s - p| over the cells of the tree,
   those of the last cells twice [ghazi23, lem. 3.5], and normalising costs nothing [ghazi23, lem. 2.1
   at its true constant].
3. s = t - noise, and s is not negative: what the counts leave open is the noise's weighted sum,
   below its quantile Q with the stated confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._random import generator
from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.heatmap.inference.bounded import last_counted, window
from sfumato.heatmap.inference.count_noise import LAPLACE, CountNoise
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.surroundings import FINEST
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import UNITS
from sfumato.spaces import Area

CONFIDENCE = 0.95
# Of so many rates for Chernoff's bound the best is taken; each could fail, so they share the rest.
RATES = 14
# Sums of first counts are simulated, of at most so many cells; the same sums every time.
SIMULATED, MOST_SIMULATED = 8191, 256
# A bound is stated where it is below this part of what holds without any data.
WORTH_STATING = 0.5
# The map's mass may be scaled before it is compared: the bound is for shares.
SCALES = np.geomspace(0.5, 2.0, 13)


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """Masses of cells that are known up to noise: t = s + sum of m draws of noise of a scale.

    `value` and `noise` are the weights of |s - p| and of |t - s|, the first at most the second; a
    ceiling is known from above only.
    """

    levels: IntArray
    codes: IntArray
    counts: FloatArray
    ceiling: BoolArray
    value: FloatArray
    noise: FloatArray
    scales: FloatArray
    added: IntArray
    block: FloatArray  # the sum of the weights of terms that share draws
    first: BoolArray  # counts of the first level, and their sums
    law: CountNoise


def certified_emd(
    counts: NoisyCounts, tiles: Tiles, area: Area, *, confidence: float = CONFIDENCE
) -> float:
    """A bound on the earth mover's distance between shares of the map and of the truth, in sides, l1.

    It holds with probability `confidence` over the noise, whatever the truth is; never above what
    holds of every truth, the mean distance of the map's mass from the farthest corner of its area.
    The distance of the blurred maps is no larger.

    Args:
        counts: The noisy counts of the map, in users, in the order in which they were drawn.
        tiles: The map, in users.
        area: Its area.
        confidence: How often the bound holds at least, in (0, 1).

    Returns:
        The bound in sides of the grid, at most 2.

    """
    level = min(area.grid.levels, FINEST)
    shares = tiles.normalized().values(level)
    grid = area.grid.at_level(level)
    columns, rows = grid.decode(np.arange(shares.size))
    # Where a map is finer than this level, its mass may lie anywhere in a cell.
    blunt = 2.0**-level if np.any(tiles.levels > level) else 0.0
    x, y = (columns + 0.5) / grid.side, (rows + 0.5) / grid.side
    far = _farthest(shares, x, y, area, level) + blunt
    if not (tiles.total > 0 and _tile(counts)):
        return far
    leaves = last_counted(counts, level)
    here = window(area, level)[rows, columns].astype(np.float64)
    # Where fine counts are mostly noise, a coarser tree knows more: each may fail in its turn.
    cuts = range(int(counts.levels.min()), counts.finest + 1)
    best = far
    for cut in cuts:
        terms = _terms(counts, cut)
        open_noise = _noise_quantile(terms, (1 - confidence) / len(cuts))
        room = _room(shares, x, y, leaves, cut) + blunt
        mapped, within = _inside(terms, shares), _inside(terms, here) > 0
        for total in tiles.total * SCALES:
            best = min(best, room + _apart(terms, total * mapped, within, open_noise) / total)
    return float(best)


def known_of_nothing(area: Area) -> float:
    """What is certain of a map that knows nothing: of one point in the middle of the area, in sides, l1.

    Args:
        area: The area.

    Returns:
        Half its width and half its height.

    Example:
        >>> from sfumato.spaces.area import area_of_plane
        >>> known_of_nothing(area_of_plane((0, 0, 1, 1), 3))
        1.0

    """
    first_column, first_row, last_column, last_row = area.window(area.grid.levels)
    return (last_column - first_column + last_row - first_row) / 2 / area.grid.side


def _farthest(shares: FloatArray, x: FloatArray, y: FloatArray, area: Area, level: int) -> float:
    """The mean distance of the map's mass from the farthest corner of the cells that the bounds touch."""
    first_column, first_row, last_column, last_row = area.window(level)
    side = 1 << level
    across = max(shares @ (x - first_column / side), shares @ (last_column / side - x))
    up = max(shares @ (y - first_row / side), shares @ (last_row / side - y))
    return float(across + up)


def _room(shares: FloatArray, x: FloatArray, y: FloatArray, leaves: IntArray, cut: int) -> float:
    """The most that mass can be off inside the last cells down to a level: to the farthest corner of each."""
    # A cell of level i has a number from 4**i to 2 * 4**i - 1.
    deep = np.searchsorted(4 ** np.arange(FINEST + 1), leaves, side="right") - 1
    _, first, owner = np.unique(
        leaves >> 2 * np.maximum(deep - cut, 0), return_index=True, return_inverse=True
    )
    size = 2.0 ** -np.minimum(deep, cut)[first].astype(np.float64)
    found = 0.0
    for place in (x, y):
        offset = place - np.floor(place / size[owner]) * size[owner]
        inward = np.bincount(owner, shares * offset)
        whole = np.bincount(owner, shares) * size
        found += float(np.maximum(inward, whole - inward).sum())
    return found


def _apart(terms: _Terms, mapped: FloatArray, within: BoolArray, open_noise: float) -> float:
    """The most that the weighted sum of |s - p| can be, given the quantile of that of |t - s|.

    From the s nearest to the counts on, each unit of noise that is left moves it by one at most.
    """
    least = np.where(within, np.maximum(terms.counts, 0.0), 0.0)
    used = np.where(terms.ceiling, np.maximum(-terms.counts, 0.0), np.abs(terms.counts - least))
    off = np.where(
        terms.ceiling & within, np.maximum(mapped, least - mapped), np.abs(least - mapped)
    )
    left = max(0.0, open_noise - float(terms.noise @ used))
    return float(terms.value @ off) + left


def _inside(terms: _Terms, values: FloatArray) -> FloatArray:
    """The sum of a level's values inside the cell of each term."""
    found = np.zeros(terms.levels.size)
    for at in np.unique(terms.levels).tolist():
        here = terms.levels == at
        sums = values.reshape(1 << 2 * at, -1).sum(axis=1)
        found[here] = sums[terms.codes[here]]
    return found


def _tile(counts: NoisyCounts) -> bool:
    """Whether the last cells tile the square, and none was counted more than twice."""
    number = counts.codes + 4**counts.levels
    _, first, times = np.unique(number, return_index=True, return_counts=True)
    last = counts.last[first]
    area = (0.25 ** counts.levels[first][last].astype(np.float64)).sum()
    return times.max(initial=0) <= 2 and math.isclose(float(area), 1.0)


def _terms(counts: NoisyCounts, cut: int) -> _Terms:
    """Counts of cells down to a level, and sums of counts where levels were passed over.

    What a count will weigh is known before it is drawn: a cell that is counted twice shares its
    weight, but at the last level the first count has it all; and where cells were kept for their
    counts (ceilings), every one weighs the most.
    """
    levels, codes = counts.levels, counts.codes
    number = codes + 4**levels
    _, first, turn = np.unique(number, return_index=True, return_inverse=True)
    first_time = np.zeros(number.size, dtype=np.bool_)
    first_time[first] = True
    once = np.bincount(turn.ravel())[turn.ravel()] == 1
    unit = 2.0 ** -levels.astype(np.float64)
    value = np.where((counts.last & once) | (levels == cut), 2 * unit, unit)
    value[(levels > cut) | ((levels == cut) & ~first_time)] = 0
    noise = np.where(value > 0, 2 * unit, 0) if counts.ceiling.any() else value
    above = _nearest_above(number, levels)
    own = (levels, codes, counts.values, counts.ceiling, value, noise, counts.scales)
    parts: list[tuple[npt.NDArray[Any], ...]] = [own]
    added, passed = [np.ones(levels.size, dtype=np.int64)], np.zeros(levels.size)
    owners = []
    for at in range(min(counts.finest, cut + 1)):
        here = np.flatnonzero(first_time & (above < at) & (levels > at))
        over, owner = np.unique(codes[here] >> 2 * (levels[here] - at), return_inverse=True)
        weight = np.full(over.size, 2.0**-at * (2 if at == cut else 1))
        passed[here] += weight[0] if over.size else 0
        owners.append((here, owner))
        scale = np.zeros(over.size)
        np.maximum.at(scale, owner, counts.scales[here])
        sums = np.bincount(owner, counts.values[here], minlength=over.size)
        none = np.zeros(over.size, dtype=np.bool_)
        parts.append((np.full(over.size, at), over, sums, none, weight, weight, scale))
        added.append(np.bincount(owner, minlength=over.size))
    # Terms of one block share draws: own counts of the cells, and the sums above them.
    blocks = [noise + passed]
    for here, owner in owners:
        whole = np.zeros(owner.max(initial=-1) + 1)
        np.maximum.at(whole, owner, blocks[0][here])
        blocks.append(whole)
    opening = [first_time & (above < 0), *(one[0] < levels.min() for one in parts[1:])]
    every: list[npt.NDArray[Any]] = [
        np.concatenate(column) for column in (*zip(*parts, strict=True), added, blocks, opening)
    ]
    weights = every[5]
    chosen: list[Any] = [column[weights > 0] for column in every]
    return _Terms(*chosen, *[counts.law])


def _nearest_above(number: IntArray, levels: IntArray) -> IntArray:
    """The level of the nearest counted cell around each, -1 where there is none."""
    known = np.unique(number)
    found = np.full(number.size, -1, dtype=np.int64)
    for up in range(1, int(levels.max(initial=0)) + 1):
        # The number of the cell `up` levels above is that of the cell shifted.
        above = number >> 2 * up
        here = (found < 0) & (levels >= up) & np.isin(above, known)
        found[here] = levels[here] - up
    return found


def _noise_quantile(terms: _Terms, failure: float) -> float:
    """What the weighted sum of all |noise| exceeds with probability at most `failure`.

    Half of that is for the first counts, which are of the same cells whatever the data: their sum
    is simulated. Half is for the counts that follow.
    """
    first = terms.first
    own = first & (terms.added == 1)
    level = int(terms.levels[own].max())
    if 4**level <= MOST_SIMULATED:
        weight = float(terms.noise[own].max())
        scale = float(terms.scales[own].max())
        simulated = scale * _first_quantile(level, weight, failure / 2, terms.law)
    else:
        simulated = _later_quantile(terms, first, failure / 2)
    # Integers for reals: each draw is off by less than a unit.
    rounding = float(terms.noise @ terms.added) / UNITS
    return simulated + _later_quantile(terms, ~first, failure / 2) + rounding


@lru_cache(maxsize=8)
def _first_quantile(level: int, weight: float, failure: float, law: CountNoise = LAPLACE) -> float:
    """The quantile of the weighted noise of all cells of a level and of the sums above, of scale 1.

    The k-th largest of n simulated ones is exceeded by one more with probability k / (n + 1).
    """
    noise = law.draw(generator(b"certified"), (SIMULATED, 4**level))
    sums = weight * np.abs(noise).sum(axis=1)
    for at in range(level - 1, -1, -1):
        noise = noise.reshape(SIMULATED, 4**at, 4).sum(axis=2)
        sums += 2.0**-at * np.abs(noise).sum(axis=1)
    return float(np.sort(sums)[SIMULATED - math.floor(failure * (SIMULATED + 1))])


def _later_quantile(terms: _Terms, which: BoolArray, failure: float) -> float:
    """The same of counts that are chosen by those before: Chernoff's bound, draw after draw.

    So which cell is counted next, and with how much noise, may depend on what was drawn before. The
    terms of a block share draws: by Hölder's inequality each has the moments of its weight made up
    to that of the block.
    """
    if not which.any():
        return 0.0
    # The rates are fixed before anything is drawn: they follow from the scale of the first counts.
    rates = 32.0 / float(terms.scales[terms.first].max()) * 2.0 ** -np.arange(RATES)
    shape = np.column_stack([terms.added, terms.block * terms.scales])[which]
    kinds, owner = np.unique(shape, axis=0, return_inverse=True)
    weights = np.bincount(owner.ravel(), (terms.noise / terms.block)[which])
    several = np.flatnonzero(kinds[:, 0] > 1).tolist()
    best = math.inf
    for rate in rates:
        argument = rate * kinds[:, 1]
        if argument.max() >= 1:
            continue
        moments = terms.law.log_moment(1, argument)
        for kind in several:
            moments[kind] = terms.law.log_moment(int(kinds[kind, 0]), argument[[kind]])[0]
        best = min(best, (float(weights @ moments) + math.log(RATES / failure)) / rate)
    return best
