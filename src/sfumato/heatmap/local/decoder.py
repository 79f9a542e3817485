"""What all reports together say of a map: their exact channel likelihood under zoom's prior.

A report multiplies the likelihood of a map by sum_c theta_c L(report | c), whatever channel it came
through. The logarithm of the product is expanded to second order at the mean map found so far
(its exact score and Fisher information), laid on the tree of cells as counts with Gaussian noise, and
handed to the posterior of `zoom`; then again at the new mean. Nothing is debiased and cut off at 0:
cells below 0 are what noise does, and the prior knows that masses are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.errors import InvalidInput
from sfumato.heatmap.inference import CountsPosterior, NoisyCounts
from sfumato.heatmap.inference.count_noise import FINENESS, POINTS
from sfumato.spaces import Area

Floats = npt.NDArray[np.floating[Any]]

# The expansion is made so many times, each at the mean that the one before found.
PASSES = 2
EM_STEPS = 8
# A count keeps at least this part of the variance of its expansion when what users vary by themselves
# is taken off.
LEAST_PART = 0.05
# No direction of the map has less information than this, a deviation of ten whole maps, nor less than
# what rounding could have made.
LEAST_INFORMATION, ROUNDING = 0.01, 1e-12
# The variances of shares whose sum is not known are found in so many steps.
SUM_STEPS = 20
# Reports of which the information is summed at once.
AT_ONCE = 2**14


@dataclass(frozen=True, slots=True)
class GaussianCountNoise:
    """Gaussian noise at deviation 1: that of a sum over many reports."""

    shape: ClassVar[Fraction] = Fraction(1024)
    variance: ClassVar[float] = 1.0

    @property
    def corrections(self) -> FloatArray:
        """What a Gaussian density and tail have beyond Laplace ones."""
        return _corrections()

    def quantile(self, tail: float) -> float:
        """By the inverse error function."""
        from scipy.special import ndtri

        return float(-ndtri(tail))

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Of NumPy."""
        return np.asarray(rng.standard_normal(size))

    def hidden_excess(self, k: FloatArray) -> FloatArray:
        """The most of (exp(k s) - 1) P(X > s), over points of s."""
        from scipy.special import ndtr

        s = np.linspace(0.0, 12.0, 4001)
        found = [float((np.expm1(one * s[1:]) * ndtr(-s[:-1])).max()) for one in np.ravel(k)]
        return np.array(found).reshape(np.shape(k))

    def kept_excess(self, k: FloatArray) -> FloatArray:
        """E exp(k max(X, 0)) - 1 = exp(k**2 / 2) P(X > -k) - 1/2."""
        from scipy.special import ndtr

        return np.asarray(np.exp(np.square(k) / 2) * ndtr(k) - 0.5)

    def log_moment(self, draws: int, argument: FloatArray) -> FloatArray:
        """Ln E exp(a |X|) of a Gaussian of variance `draws`: at most a**2 draws / 2 + ln 2."""
        from scipy.special import log_ndtr

        spread = argument * math.sqrt(draws)
        return np.asarray(spread**2 / 2 + math.log(2) + log_ndtr(spread))


GAUSSIAN = GaussianCountNoise()


@lru_cache(maxsize=1)
def _corrections() -> npt.NDArray[np.float64]:
    from scipy.special import log_ndtr

    x = np.expm1(np.arange(POINTS) / FINENESS)
    found = np.stack([x - x**2 / 2, log_ndtr(-x) + x + math.log(2)])
    found.setflags(write=False)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Reports over cells of a quadtree: which cells each made likelier, and how often it came.

    Attributes:
        levels: The level of each cell; cells cover the map once.
        codes: Its Z-order code at that level.
        likely: Which cells each distinct report makes likelier [report, cell].
        counts: How often each came.
        odds: How much likelier: L(report | c) is `odds` times as large in those cells.
        family: All possible reports of the channel, or a fair sample of them [report, cell], each as
            likely as the next from a cell that it has: from it comes the expected information.
        whole_family: Whether these are all.
        sizes: Where they are not, how many cells a possible report has, least and most; any number if
            nothing is said. How far liars get is worked out for all sets of these sizes.
    """

    levels: IntArray
    codes: IntArray
    likely: BoolArray
    counts: FloatArray
    odds: float
    family: BoolArray
    whole_family: bool = False
    sizes: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        cells = self.levels.size
        if (
            self.codes.shape != (cells,)
            or self.likely.shape != (self.counts.size, cells)
            or self.family.shape[1:] != (cells,)
        ):
            raise InvalidInput(
                "evidence needs a level and a code for each cell, and for each report its cells and "
                f"its count, got {cells} cells and {self.likely.shape}; nothing was decoded"
            )
        if not math.isclose(float((0.25**self.levels).sum()), 1.0, rel_tol=1e-9):
            raise InvalidInput("the cells of a question cover the map once; nothing was decoded")

    @property
    def users(self) -> float:
        """How many reports there are."""
        return float(self.counts.sum())

    def rough_shares(self) -> FloatArray:
        """Shares near the most likely ones: a few steps of expectation and maximisation from an even map.

        Where odds are high a few steps are enough, and the expansion needs them; where they are low
        the likelihood is nearly a parabola, and may be expanded anywhere.
        """
        even = 0.25**self.levels
        shares, more = even, np.float32(self.odds - 1)
        for _ in range(EM_STEPS):
            score = np.zeros(shares.size)
            for begin in range(0, self.counts.size, AT_ONCE):
                likely = self.likely[begin : begin + AT_ONCE].astype(np.float32)
                chance = 1 + more * (likely @ shares.astype(np.float32))
                weight = (self.counts[begin : begin + AT_ONCE] / chance).astype(np.float32)
                score += weight.sum() + more * (weight @ likely)
            shares = shares * score / self.users
            shares /= shares.sum()
        return _softened(shares, even)

    def expanded(self, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The shares of the cells that the likelihood alone would have, and their covariance.

        By one Newton step from `masses`: score u = sum of L / P over reports, information H = sum of
        L L' / P**2 as it is expected, shares H^-1 u up to the constraint that they add up to 1.
        """
        # Only what leaves the sum at 1 is a direction. Constants vanish there, so L = 1 + more [c in S]
        # is worked with without its 1: at odds near 1 nothing else would be left of it in doubles.
        inwards = _directions(masses.size)
        more = self.odds - 1
        score = np.zeros(masses.size)
        for begin in range(0, self.counts.size, AT_ONCE):
            likely = self.likely[begin : begin + AT_ONCE].astype(np.float32)
            chance = 1 + more * (likely @ masses.astype(np.float32)).astype(np.float64)
            weight = self.counts[begin : begin + AT_ONCE] / chance
            score += more * (weight.astype(np.float32) @ likely)
        total, information = 0.0, np.zeros((masses.size - 1, masses.size - 1))
        for begin in range(0, len(self.family), AT_ONCE):
            likely = self.family[begin : begin + AT_ONCE].astype(np.float64)
            chance = 1 + more * (likely @ masses)
            total += float(chance.sum())
            each = more * (likely @ inwards) / np.sqrt(chance)[:, None]
            information += each.T @ each
        values, vectors = np.linalg.eigh(information * (self.users / total))
        # A direction that no report tells of is left to the prior.
        least = max(LEAST_INFORMATION, ROUNDING * float(values[-1]))
        across = inwards @ vectors
        covariance = (across / np.maximum(values, least)) @ across.T
        shares = masses + covariance @ score
        return shares, covariance


@lru_cache(maxsize=4)
def _directions(cells: int) -> FloatArray:
    """An orthonormal basis of all changes that add up to 0 [cell, direction]: Helmert's."""
    from scipy.linalg import helmert

    found = np.asarray(helmert(cells).T)
    found.setflags(write=False)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    levels: IntArray
    codes: IntArray
    values: FloatArray
    scales: FloatArray


def decode(
    evidence: Sequence[Evidence], users: int, *, area: Area | None = None, passes: int = PASSES
) -> CountsPosterior:
    """The posterior of the map of all users, from all reports together.

    Args:
        evidence: Reports of each question that was asked.
        users: How many people the map is of: all who answered any question.
        area: Outside its bounds is nobody.
        passes: How often the likelihood is expanded at the mean found before.

    Returns:
        The posterior: means, maps that could have led to these reports, and all bands.

    Raises:
        InvalidInput: There are no reports.

    """
    if users < 1 or not evidence:
        raise InvalidInput(f"a map needs at least 1 report, got {users}; nothing was decoded")
    pilots = [one.rough_shares() for one in evidence]
    for turn in range(passes):
        counts = [_counts(one, pilot, users) for one, pilot in zip(evidence, pilots, strict=True)]
        posterior = CountsPosterior(_together(counts, users), mean_is_map=True, area=area)
        if turn + 1 < passes:
            pilots = [leaf_shares(posterior, one.levels, one.codes) for one in evidence]
    return posterior


def leaf_shares(posterior: CountsPosterior, levels: IntArray, codes: IntArray) -> FloatArray:
    """The expected share of each cell of a partition, with a little that is even so that none is 0."""
    found = np.empty(levels.size)
    for level in np.unique(levels).tolist():
        here = levels == level
        found[here] = posterior.means(level)[codes[here]]
    return _softened(found / found.sum(), 0.25**levels)


def _softened(shares: Floats, even: Floats) -> FloatArray:
    """Shares with a little that is even, so that none is 0."""
    return np.asarray(0.97 * shares + 0.03 * even)


def _counts(one: Evidence, masses: FloatArray, users: int) -> _Counts:
    """Counts with independent noise on nodes of the tree that say what shares and covariance say.

    Leaves have their own variance. Where errors of children cancel, so that a parent is known better
    than from its children, it has a count of its own with the precision that is missing.
    """
    shares, covariance = one.expanded(masses)
    covariance = _without_sum(covariance)
    levels, codes = one.levels, one.codes
    sums = np.eye(levels.size)
    found: list[tuple[int, int, float, float]] = []
    achieved: dict[tuple[int, int], float] = {}
    rows: dict[tuple[int, int], FloatArray] = {
        (int(level), int(code)): sums[i]
        for i, (level, code) in enumerate(zip(levels, codes, strict=True))
    }
    for level in range(int(levels.max()), 0, -1):
        for (at, code), row in [item for item in rows.items() if item[0][0] == level]:
            held = float(row @ masses)
            variance = float(row @ covariance @ row)
            # The map is of these very users: what they vary by as a sample is no error of it.
            own = held * (1 - held) / users
            variance = max(variance - own, LEAST_PART * variance)
            below = achieved.get((at, code), math.inf)
            missing = 1 / variance - 1 / below
            if missing > 1e-3 / variance:
                found.append((at, code, float(row @ shares) * users, users / math.sqrt(missing)))
                below = variance
            parent = (at - 1, code >> 2)
            achieved[parent] = achieved.get(parent, 0.0) + below
            rows[parent] = rows[parent] + row if parent in rows else row
    table = np.array(found).reshape(-1, 4)
    return _Counts(
        table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2], table[:, 3]
    )


def _without_sum(covariance: FloatArray) -> FloatArray:
    """A covariance of shares that add up to 1, as if that were not known: the root of the tree says it.

    Independent noise of variances D has the covariance D - D 1 1' D / (1' D 1) when its sum is known;
    that is undone with the D whose variances are then those of the covariance.
    """
    known = np.diag(covariance)
    free = known
    for _ in range(SUM_STEPS):
        free = np.minimum(known + free**2 / free.sum(), 2 * known)
    return np.asarray(covariance + np.outer(free, free) / free.sum())


def _together(counts: Sequence[_Counts], users: int) -> NoisyCounts:
    """All counts, and that all users are somewhere."""
    levels = np.concatenate([[0], *(one.levels for one in counts)]).astype(np.int64)
    codes = np.concatenate([[0], *(one.codes for one in counts)]).astype(np.int64)
    values = np.concatenate([[float(users)], *(one.values for one in counts)])
    scales = np.concatenate([[max(0.5, 1e-4 * users)], *(one.scales for one in counts)])
    return NoisyCounts(
        levels, codes, values, scales, np.zeros(levels.size, dtype=np.bool_), law=GAUSSIAN
    )
