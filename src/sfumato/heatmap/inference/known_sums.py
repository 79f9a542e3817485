"""Between what sums of a map's cells lie: by the law of the noise where it says so, else by drawn maps.

Cells are those below which nothing was counted. Where in them their mass is, nobody was told.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np

from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.heatmap.accuracy.uncertainty import FINEST_DRAWS, maps_inside
from sfumato.heatmap.inference.bounded import last_counted, window
from sfumato.heatmap.inference.count_noise import LAPLACE, CountNoise
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.spaces import Area, Grid

# Maps drawn from a prior are too sure: sums that should have been in 90 % of intervals were in
# 73-87 %, and with tails of three tenths in 88-96 %, on tuning data.
TAIL = 0.3
# A map that could have been has somebody everywhere, if only a millionth: less than this is nobody,
# in users.
NEXT_TO_NOBODY = 0.1


class KnownSums(Protocol):
    """What is known of sums of cells; `owner` [row, column] of `level` numbers the cell of each place."""

    @property
    def level(self) -> int:
        """The level of `owner`."""

    @property
    def owner(self) -> IntArray:
        """Which cell each place of the level is in, from 0 on."""

    def limits(self, low: FloatArray, high: FloatArray, *, tail: float) -> tuple[float, float]:
        """What a sum of masses with weights `low` is below, and one with `high` above, with chance `tail`."""

    def bounds(self, low: FloatArray, high: FloatArray, *, tail: float) -> tuple[float, float]:
        """The same without a prior, where the method lets that be known."""


def known_sums(posterior: MapPosterior, area: Area) -> KnownSums:
    """The law of the noise, where a posterior has counts that nobody chose by their noise; else its draws.

    Zoom closes a cell by counts bought after all that was decided about it, so the noise on its
    last counts is independent of which cells they are of. A pyramid keeps the largest counts, and
    keeps the others back: what it has is too high, and only a posterior knows by how much.
    """
    counts = posterior.counts
    counted = None if counts is None else CountedSums.of(counts, area)
    if counted is not None:
        return counted
    drawn = DrawnSums.of(posterior, area)
    return drawn if counts is None else KeptSums(drawn, counts)


@dataclass(frozen=True, slots=True, eq=False)
class CountedSums:
    """The last count of each cell and the scale of its Laplace noise, both in users."""

    level: int
    owner: IntArray
    values: FloatArray
    scales: FloatArray
    law: CountNoise = LAPLACE

    @classmethod
    def of(cls, counts: NoisyCounts, area: Area) -> CountedSums | None:
        """None if a count was kept back, or some place inside the bounds is in no cell that is a leaf."""
        if counts.ceiling.any() or not counts.levels.size:
            return None
        level = counts.finest
        numbers, owner = _owners(counts, level)
        own = 4**counts.levels + counts.codes  # a number for each cell, as in `last_counted`
        at = np.minimum(np.searchsorted(numbers, own), numbers.size - 1)
        here = np.flatnonzero(numbers[at] == own)
        last = np.full(numbers.size, -1)
        last[at[here]] = (
            here  # of several counts of a cell the last one bought: it was not looked at
        )
        sizes = np.bincount(owner.ravel()) * 4 ** (_levels(numbers) - level).astype(float)
        known = (last >= 0) & (sizes == 1)
        if not known[owner[window(area, level)]].all():
            return None
        values, scales = (np.where(known, of[last], 0.0) for of in (counts.values, counts.scales))
        return cls(level, owner, values, scales, counts.law)

    def limits(self, low: FloatArray, high: FloatArray, *, tail: float) -> tuple[float, float]:
        """Unbiased sums, and the deviations of their noise; no prior, nothing shrunk."""
        far = deviations(tail, self.law)
        ends = [
            float(weights @ self.values)
            + sign * far * math.sqrt(self.law.variance * float(weights**2 @ self.scales**2))
            for weights, sign in ((low, -1), (high, 1))
        ]
        return max(ends[0], 0.0), max(ends[1], 0.0)

    bounds = limits


@dataclass(frozen=True, slots=True, eq=False)
class DrawnSums:
    """Masses [draw, cell] of maps that could have led to what was released."""

    level: int
    owner: IntArray
    masses: FloatArray

    @classmethod
    def of(cls, posterior: MapPosterior, area: Area) -> DrawnSums:
        """Cells no finer than those of draws; wider ones where nothing finer was counted."""
        level = min(area.grid.levels, FINEST_DRAWS)
        maps = maps_inside(posterior, area, level)
        maps = maps.reshape(len(maps), -1)
        if posterior.counts is None:
            return cls(level, np.arange(4**level).reshape(1 << level, -1), maps)
        numbers, owner = _owners(posterior.counts, level)
        order = np.argsort(owner, axis=None, kind="stable")
        first = np.searchsorted(owner.ravel()[order], np.arange(numbers.size))
        return cls(level, owner, np.add.reduceat(maps[:, order], first, axis=1))

    def limits(self, low: FloatArray, high: FloatArray, *, tail: float) -> tuple[float, float]:
        """Quantiles over the draws; a low end of less than a tenth of a user is nobody."""
        least = float(np.quantile(self.masses @ low, TAIL * tail))
        most = float(np.quantile(self.masses @ high, 1 - TAIL * tail))
        return least if least >= NEXT_TO_NOBODY else 0.0, most

    bounds = limits


@dataclass(frozen=True, slots=True, eq=False)
class KeptSums:
    """Counts of which only the largest of each level were kept; the others have a ceiling instead.

    Drawn maps believe a prior of what maps look like, by which next to nobody is below a ceiling. A
    crowd may stand there all the same: any one cell may have what its noise allows.
    """

    drawn: DrawnSums
    counts: NoisyCounts

    @property
    def level(self) -> int:
        """That of the draws."""
        return self.drawn.level

    @property
    def owner(self) -> IntArray:
        """The cells of the draws."""
        return self.drawn.owner

    def limits(self, low: FloatArray, high: FloatArray, *, tail: float) -> tuple[float, float]:
        """Those of the draws, or up to what one cell may have; on the level that allows it the least."""
        least, most = self.drawn.limits(low, high, tail=tail)
        far = self.counts.law.quantile(tail)
        single = [
            float((one.weights * (one.values + far * one.scales)).max(initial=0.0))
            for one in self._levels(high)
        ]
        return least, max(most, min(single, default=0.0))

    def bounds(self, low: FloatArray, high: FloatArray, *, tail: float) -> tuple[float, float]:
        """The same whatever the map is: by the law of the noise, with what keeping the largest does to it.

        Cells of a level that was counted, and those above it that were not looked into, hold all
        mass: each level bounds the sum, and the best one counts, at a tail shared by all levels.
        """
        above, below = self._levels(high), self._levels(low, least=True)
        shared = tail / max(1, len(above))
        most = min((one.ceiling(shared) for one in above), default=0.0)
        least = max((one.floor(shared) for one in below), default=0.0)
        inner = self.limits(low, high, tail=tail)
        return min(inner[0], max(least, 0.0)), max(inner[1], most)

    def _levels(self, weights: FloatArray, *, least: bool = False) -> list[_Level]:
        """A sum as one of the cells of each level, each with the largest or least weight of what is in it."""
        numbers = np.unique(last_counted(self.counts, self.level))
        own = _levels(numbers)
        index = 4**self.counts.levels + self.counts.codes
        order = np.argsort(index, kind="stable")
        found = []
        for level in np.unique(self.counts.levels[self.counts.levels <= self.level]).tolist():
            at = np.minimum(own, level)
            cells, of = np.unique(4**at + (numbers - 4**own >> 2 * (own - at)), return_inverse=True)
            joined = np.full(cells.size, 1.0 if least else 0.0)
            (np.minimum if least else np.maximum).at(joined, of.ravel(), weights)
            slot = np.minimum(np.searchsorted(index[order], cells), index.size - 1)
            # What was not looked at lies outside the bounds.
            here = (index[order][slot] == cells) & (joined > 0)
            which = order[slot[here]]
            hidden = self.counts.ceiling[which]
            values = self.counts.values[which]
            found.append(
                _Level(
                    joined[here],
                    np.where(hidden, np.maximum(values, 0.0), values),
                    self.counts.scales[which],
                    hidden,
                    self.counts.law,
                )
            )
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Cells of a sum: weights, counts or ceilings, scales of the noise, and which have a ceiling."""

    weights: FloatArray
    values: FloatArray
    scales: FloatArray
    hidden: BoolArray
    law: CountNoise = LAPLACE

    def ceiling(self, tail: float) -> float:
        """What the sum is above with chance `tail` at most.

        The noise of a count that was kept is, if anything, larger than other noise: it is not too
        low. A cell that has s scales more than its ceiling was not kept with the chance that noise is
        above s.
        """
        part = tail / 2 if self.hidden.any() and not self.hidden.all() else tail
        scales = self.weights * self.scales
        shown, hidden = scales[~self.hidden], scales[self.hidden]
        noise = deviations(part, self.law) * math.sqrt(self.law.variance * float(shown @ shown))
        return (
            float(self.weights @ self.values)
            + noise
            + _chernoff(hidden, part, self.law.hidden_excess)
        )

    def floor(self, tail: float) -> float:
        """What the sum is below with chance `tail` at most: of what was kept, noise may all be positive."""
        shown = float((self.weights * self.values)[~self.hidden].sum())
        return shown - _chernoff(self.weights * self.scales, tail, self.law.kept_excess)


@dataclass(frozen=True, slots=True)
class NoisyTotal:
    """The sum of noisy counts that hold all mass, in users, with the deviation of their noise."""

    value: float
    deviation: float
    law: CountNoise = LAPLACE

    def minus(self, other: NoisyTotal) -> NoisyTotal:
        """The change from another total, whose noise is independent."""
        apart = math.hypot(self.deviation, other.deviation)
        return NoisyTotal(self.value - other.value, apart, self.law)


def noisy_total(posterior: MapPosterior, area: Area) -> NoisyTotal | None:
    """The sum of the first level that was counted, where other counts were kept back; else None.

    A pyramid keeps all counts of its first level, so that their noise is as it was drawn, and all mass
    inside the bounds is in them.
    """
    counts = posterior.counts
    if counts is None or not counts.ceiling.any():
        return None
    first = counts.only(counts.levels == counts.levels.min())
    sums = CountedSums.of(first, area)
    if sums is None:
        return None
    inside = np.unique(sums.owner[window(area, sums.level)])
    spread = float((sums.scales[inside] ** 2).sum())
    value = float(sums.values[inside].sum())
    return NoisyTotal(value, math.sqrt(sums.law.variance * spread), sums.law)


def _chernoff(scales: FloatArray, tail: float, excess: Callable[[FloatArray], FloatArray]) -> float:
    """What a sum is above with chance `tail` at most: E exp(k x) - 1 of each term, in its scale, is `excess`.

    >>> round(_chernoff(np.ones(1), 0.05, LAPLACE.hidden_excess), 2)
    3.44
    """
    scales = scales[scales > 0]
    if not scales.size:
        return 0.0
    steep = np.linspace(0.02, 0.98, 49)
    grown = np.log1p(excess(steep[:, None] * (scales / scales.max())[None, :])).sum(axis=1)
    return float(((grown - math.log(tail)) / steep).min() * scales.max())


def _owners(counts: NoisyCounts, level: int) -> tuple[IntArray, IntArray]:
    """The numbers of the last cells, as `last_counted` has them, and where each is [row, column]."""
    numbers, owner = np.unique(last_counted(counts, level), return_inverse=True)
    return numbers, np.asarray(owner.ravel()[Grid(level).codes_of_image()], dtype=np.int64)


def _levels(numbers: IntArray) -> IntArray:
    """A cell of level i has a number from 4**i to 2 * 4**i - 1."""
    return np.asarray(np.searchsorted(4 ** np.arange(31), numbers, side="right") - 1)


def deviations(tail: float, law: CountNoise = LAPLACE) -> float:
    """How many deviations from 0 sums of independent noise are above with chance `tail` at most.

    Between those of a single one and of a normal one, which many add up to: the larger is taken.

    >>> round(deviations(0.05), 3), round(deviations(0.01), 3)
    (1.645, 2.766)
    """
    return max(law.quantile(tail) / math.sqrt(law.variance), -NormalDist().inv_cdf(tail))
