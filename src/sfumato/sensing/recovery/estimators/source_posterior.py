"""What a posterior of sources is: weighted draws of how many there are, where, and how large."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.diagnostics.misfit import p_value_text
from sfumato.sensing.diagnostics.mixing import Mixing
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.recovery.answer import SharedOffset

CROWDED = 0.5  # probability of the most sources believed in, from which on more are
WIDE = 1.5  # times the noise: from there on it is told
UNEXPLAINED = 1e-3  # p-value below which no draw explains the readings
LIKELY = 0.01  # probability of a number of sources that is not ruled out
NODES = 64  # quantiles of a normal law that stand for it in an interval


@dataclass(frozen=True, slots=True, eq=False)
class SourcePosterior:
    """Sources that could have led to the readings: so many draws of them, each with its weight.

    `cells` and `masses` have one row for each draw; -1 and 0 fill the rows. `weights` total 1.
    `known` is the probability that every source has mass `max_mass`, if that was to be learned.
    `looked_at` are the cells where sources were looked for: all of them, or on fine lines and grids
    some that stand for others, none of them farther away than `reach`. `fits` is the p-value of the
    draw that fits best: where it is tiny nothing that is believed explains the readings, and `message`
    says so. `widened` is by how much noise was taken to be larger than `sigma` because cells stand
    for others, and `off_center` because sources stand anywhere in their cells. All of it was
    computed from released readings alone, so nothing in it costs privacy.
    """

    operator: Operator
    readings: FloatArray
    sigma: float
    max_mass: float
    cells: IntArray
    masses: FloatArray
    weights: FloatArray
    known: float
    mixing: Mixing
    looked_at: IntArray
    reach: float
    widened: float
    fits: float
    max_sources: int
    off_center: float = 1.0

    @property
    def counts(self) -> FloatArray:
        """How likely there are 0, 1, 2 ... sources."""
        return np.asarray(
            np.bincount((self.cells >= 0).sum(axis=1), weights=self.weights), dtype=np.float64
        )

    @property
    def shares(self) -> FloatArray:
        """The mass expected in each cell, as a share of all mass."""
        share = self.masses / self.masses.sum(axis=1, keepdims=True) * self.weights[:, np.newaxis]
        held = self.cells >= 0
        size = self.operator.space.size
        return np.asarray(
            np.bincount(self.cells[held], weights=share[held], minlength=size), dtype=np.float64
        )

    @property
    def expected(self) -> FloatArray:
        """The mass expected in each cell."""
        held = self.cells >= 0
        mass = (self.masses * self.weights[:, np.newaxis])[held]
        size = self.operator.space.size
        return np.asarray(
            np.bincount(self.cells[held], weights=mass, minlength=size), dtype=np.float64
        )

    @property
    def message(self) -> str:
        """A warning where beliefs are wrong as far as the readings can tell, or nothing."""
        if self.fits < UNEXPLAINED:
            return (
                f"no {self.max_sources} sources of mass {self.max_mass:g} or less explain the readings "
                f"({p_value_text(self.fits)}): do not rely on the answer; the least mass (R) asks for less"
            )
        if self.widened > WIDE:
            return (
                f"cells are so fine that noise was taken to be {self.widened:.2g} times larger: the answer "
                "says less than the readings do; take coarser cells, or the least mass (R)"
            )
        if self.counts.size > self.max_sources and self.counts[self.max_sources] > CROWDED:
            return (
                f"there may be more than {self.max_sources} sources, the most that are believed in"
            )
        return ""

    def total(self, level: float = 0.9) -> tuple[float, float]:
        """An interval that holds the total mass with this probability."""
        return _interval(self.masses.sum(axis=1), self.weights, level)

    def offset(self, level: float = 0.9) -> SharedOffset:
        """An offset that all readings share, where draws were made beside one of which nothing was known.

        Given sources f it is normal around what they leave along the gains g, g'(y - Mf) / g'g, with
        variance sigma**2 / g'g; f is as the draws are. The interval is as `total_beside_offset`.
        """
        gains = gains_of(self.operator)
        size = float(gains @ gains)
        each = self.operator.adjoint(gains)  # of one unit in each cell, all sensors together
        made = np.where(self.cells >= 0, self.masses * each[self.cells], 0.0).sum(axis=1)
        middle = (float(gains @ self.readings) - made) / size
        spread = self.sigma * self.widened * self.off_center / size**0.5
        mean = float(self.weights @ middle)
        error = float(self.weights @ (middle - mean) ** 2 + spread**2) ** 0.5
        nodes = spread * ndtri((np.arange(NODES) + 0.5) / NODES)
        return SharedOffset(mean, error, self._for_each_count(np.add.outer(middle, nodes), level))

    def total_beside_offset(self, level: float = 0.9) -> tuple[float, float]:
        """An interval that holds the total mass with this probability, however many sources there are.

        Beside an offset readings hardly tell how many there are, and then an interval over all of them would
        hold the total of the fewest as often as was believed beforehand. This one holds it for each number
        that is not ruled out.
        """
        return self._for_each_count(self.masses.sum(axis=1)[:, np.newaxis], level)

    def _for_each_count(self, values: FloatArray, level: float) -> tuple[float, float]:
        """From the least to the largest end of the intervals of each likely count; rows are of draws."""
        count = (self.cells >= 0).sum(axis=1)
        ends = []
        for likely in np.flatnonzero(self.counts >= LIKELY):
            some = count == likely
            weights = np.repeat(self.weights[some] / self.weights[some].sum(), values.shape[1])
            ends.append(_interval(values[some].ravel(), weights / values.shape[1], level))
        return min(low for low, _ in ends), max(high for _, high in ends)

    def near(self, place: npt.ArrayLike, radius: float) -> float:
        """How likely there is a source within a distance of a place (on a graph: of a node)."""
        here = np.atleast_2d(np.asarray(place, dtype=np.float64))
        return float(self.weights @ (self.nearest(here)[:, 0] <= radius))

    def nearest(self, places: FloatArray, *, beyond: FloatArray | None = None) -> FloatArray:
        """How far the nearest source is from each place: draws by places; and so much `beyond` its cell."""
        space = self.operator.space
        cells = np.unique(self.cells[self.cells >= 0])
        more = 0.0 if beyond is None else beyond[cells, np.newaxis]
        apart = np.vstack(
            [
                space.distances_between(places, space.places(cells)).T + more,
                np.full(len(places), np.inf),
            ]
        )
        at = np.where(self.cells >= 0, np.searchsorted(cells, self.cells), len(cells))
        return np.asarray(apart[at].min(axis=1))


def _interval(values: FloatArray, weights: FloatArray, level: float) -> tuple[float, float]:
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    ends: Iterable[float] = ((1 - level) / 2, (1 + level) / 2)
    low, high = (
        values[order[min(int(np.searchsorted(below, end)), values.size - 1)]] for end in ends
    )
    return float(low), float(high)
