"""Tests repeated for a smaller error, and tests of random pairs: how often, and how many samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import stats

from sfumato.audit.property_testing.testers import THIRD, require


@dataclass(frozen=True, slots=True)
class Repetition:
    """A test repeated for a majority: how often, and the error and samples (of each input) of one of them."""

    repeats: int
    error: float
    samples: int

    @property
    def total(self) -> int:
        """Samples of each input, all repetitions together."""
        return self.repeats * self.samples


def amplified(samples: Callable[[float], int], error: float) -> Repetition:
    """The cheapest way to a wanted error: one test of that error, or a majority of worse ones.

    `samples` tells the samples for an error of one test. Exact binomial tails; [mcmillan18, alg. 3]
    takes the logarithm of 1/error repetitions at 1/3, which is too few.
    """
    require(0 < error < 1 / 2, "error must be between 0 and 1/2", error)
    best = Repetition(1, error, samples(error))
    for repeats in range(3, 202, 2):
        single = _single_error(repeats, error)
        trial = Repetition(repeats, single, samples(single))
        if trial.total < best.total:
            best = trial
        if single > THIRD:
            break
    return best


@dataclass(frozen=True, slots=True)
class RandomPlan:
    """How to decide a claim about random data: tests of so many random pairs, of which some may reject.

    `inner` is the test of one pair; `chance` bounds that of more rejections than allowed if
    private.
    """

    pairs: int
    allowed: int
    inner: Repetition
    chance: float

    @property
    def total(self) -> int:
        """Samples of all pairs, both inputs."""
        return 2 * self.pairs * self.inner.total


def random_plan(
    samples: Callable[[float], int], *, gamma: float, slack: float, error: float = THIRD
) -> RandomPlan:
    """The cheapest plan that accepts a gamma share of bad pairs, and rejects a share of gamma + slack.

    Algorithm 3 [mcmillan18, thm. 10.3] with exact binomial tails: a test of error e rejects a
    random pair with at most gamma + (1 - gamma) e if private, and with at least (1 - e)(gamma +
    slack) if far.

    Args:
        samples: The samples for an error of one test.
        gamma: The share of pairs that may be bad; from 0 to below 1.
        slack: How much more is rejected; above 0.
        error: Between 0 and 1/2.

    Returns:
        The plan.

    Raises:
        InvalidParameter: If a number is out of range.
    """
    require(0 <= gamma < 1, "gamma must be at least 0 and below 1", gamma)
    require(0 < slack <= 1 - gamma, "slack must be above 0 and at most 1 - gamma", slack)
    require(0 < error < 1 / 2, "error must be between 0 and 1/2", error)
    plans = []
    for share in (0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.02, 0.01):
        wrong = min(share * slack, 0.4)
        low, high = gamma + (1 - gamma) * wrong, (1 - wrong) * (gamma + slack)
        if high > low:
            pairs, allowed = _binomial_test(low, high, error)
            chance = float(stats.binom.sf(allowed, pairs, low))
            plans.append(RandomPlan(pairs, allowed, amplified(samples, wrong), chance))
    return min(plans, key=lambda plan: plan.total)


@lru_cache(maxsize=256)
def _binomial_test(low: float, high: float, error: float) -> tuple[int, int]:
    """Trials and the most hits that speak for low: either error is at most that given."""

    def holds(trials: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        found = stats.binom.cdf(stats.binom.ppf(1 - error, trials, low), trials, high) <= error
        return np.asarray(found, dtype=np.bool_)

    begin = 1
    while True:
        # Not monotone, as trials are whole; each candidate is checked, so the first that holds is
        # valid.
        some = np.unique(np.linspace(begin, 4 * begin, min(4096, 3 * begin + 1)).astype(np.int64))
        if (found := holds(some)).any():
            trials = int(some[int(np.argmax(found))])
            return trials, int(stats.binom.ppf(1 - error, trials, low))
        begin *= 4


@lru_cache(maxsize=4096)
def _single_error(repeats: int, error: float) -> float:
    """The largest error of one test with which most of them err with at most error: Clopper and Pearson."""
    # P(Bin(k, e) > k/2) is the law of a beta variable at e; a hair less, so that rounding stays
    # below.
    middle = (repeats + 1) / 2
    return float(stats.beta.ppf(error, middle, middle)) * (1 - 1e-9)
