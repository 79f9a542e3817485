"""Between what sums of a map's cells lie: by the law of the noise where it says so, else by drawn maps.

Cells are those below which nothing was counted. Where in them their mass is, nobody was told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.inference.bounded import last_counted, window
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.heatmap.inference.uncertainty import FINEST_DRAWS, maps_inside
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


def known_sums(posterior: MapPosterior, area: Area) -> KnownSums:
    """The law of the noise, where a posterior has counts that nobody chose by their noise; else its draws.

    Zoom closes a cell by counts bought after all that was decided about it, so the noise on its
    last counts is independent of which cells they are of. A pyramid keeps the largest counts, and
    keeps the others back: what it has is too high, and only a posterior knows by how much.
    """
    counted = None if posterior.counts is None else CountedSums.of(posterior.counts, area)
    return counted or DrawnSums.of(posterior, area)


@dataclass(frozen=True, slots=True, eq=False)
class CountedSums:
    """The last count of each cell and the scale of its Laplace noise, both in users."""

    level: int
    owner: IntArray
    values: FloatArray
    scales: FloatArray

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
        return cls(level, owner, values, scales)

    def limits(self, low: FloatArray, high: FloatArray, *, tail: float) -> tuple[float, float]:
        """Unbiased sums, and the deviations of their noise; no prior, nothing shrunk."""
        far = deviations(tail)
        ends = [
            float(weights @ self.values)
            + sign * far * math.sqrt(2 * float(weights**2 @ self.scales**2))
            for weights, sign in ((low, -1), (high, 1))
        ]
        return max(ends[0], 0.0), max(ends[1], 0.0)


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


def _owners(counts: NoisyCounts, level: int) -> tuple[IntArray, IntArray]:
    """The numbers of the last cells, as `last_counted` has them, and where each is [row, column]."""
    numbers, owner = np.unique(last_counted(counts, level), return_inverse=True)
    return numbers, np.asarray(owner.ravel()[Grid(level).codes_of_image()], dtype=np.int64)


def _levels(numbers: IntArray) -> IntArray:
    """A cell of level i has a number from 4**i to 2 * 4**i - 1."""
    return np.asarray(np.searchsorted(4 ** np.arange(31), numbers, side="right") - 1)


def deviations(tail: float) -> float:
    """How many deviations from 0 sums of independent Laplace noise are above with chance `tail` at most.

    Between those of a single one and of a normal one, which many add up to: the larger is taken.

    >>> round(deviations(0.05), 3), round(deviations(0.01), 3)
    (1.645, 2.766)
    """
    return max(math.log(1 / (2 * tail)) / math.sqrt(2), float(-ndtri(tail)))
