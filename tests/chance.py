"""Statistical assertions with two arms: the law must pass, rivals must fail, and both get a number.

The p-value threshold is 1e-6 on either side; a suite of fewer than 1,000 such assertions raises a
false alarm in at most one run of 1,000. A test whose sample would let a rival pass more often than
once in a million runs is refused whatever was drawn: noise comes from the operating system, so a
weak test would fail now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

LEVEL = 1e-6
BINS = 40
THIN = 200

Cdf = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]


def p_value(sample: npt.NDArray[np.int64], cdf: Cdf) -> float:
    """The p-value of chi-square over bins of about equal share.

    Edges come from the law under test, not from the sample, so the statistic has its textbook law.
    """
    edges = _bins(cdf, sample.size)
    if edges.size == 0:
        return 1.0  # nothing can be told: the arm of the rivals will say so
    wanted = sample.size * _shares(cdf, edges)
    observed = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=wanted.size)
    statistic = float(np.sum((observed - wanted) ** 2 / wanted))
    return float(stats.chi2.sf(statistic, wanted.size - 1))


def miss_chance(law: Cdf, rival: Cdf, size: int) -> float:
    """How often a sample of this size from the law would let the rival pass at LEVEL.

    Against the rival's shares q, counts with shares p have about the noncentral chi-square law with
    noncentrality size * sum (p - q)^2 / q.
    """
    edges = _bins(rival, size)
    if edges.size == 0:
        return 1.0
    p, q = _shares(law, edges), _shares(rival, edges)
    noncentrality = size * float(np.sum((p - q) ** 2 / q))
    threshold = float(stats.chi2.isf(LEVEL, edges.size))
    return float(stats.ncx2.cdf(threshold, edges.size, noncentrality))


def _shares(cdf: Cdf, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))


def _bins(cdf: Cdf, size: int) -> npt.NDArray[np.int64]:
    """Edges of bins that expect at least THIN counts each.

    That many keep the tail of chi-square at 1e-6 true to a factor of two.
    """
    kept: list[int] = []
    reached = 0.0
    for edge, share in zip(edges := _edges(cdf), cdf(edges), strict=True):
        if size * (share - reached) >= THIN and size * (1 - share) >= THIN:
            kept.append(int(edge))
            reached = float(share)
    return np.array(kept, dtype=np.int64)


def _edges(cdf: Cdf) -> npt.NDArray[np.int64]:
    """Integers that cut the law into about BINS equal shares."""
    shares = np.linspace(0, 1, BINS + 1)[1:-1]
    low, high = np.full(shares.size, -(2**61)), np.full(shares.size, 2**61)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        reached = cdf(middle) >= shares
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.unique(high)


def assert_law(sample: npt.NDArray[np.int64], law: Cdf, *, rivals: Sequence[Cdf]) -> None:
    """The sample follows the law, and it is large enough to reject every rival."""
    found = p_value(sample, law)
    assert found >= LEVEL, f"the sample does not follow its law: p = {found:.2e} < {LEVEL}"
    assert rivals, "a statistical assertion without a rival cannot fail"
    for number, rival in enumerate(rivals):
        missed = miss_chance(law, rival, sample.size)
        assert missed <= LEVEL, (
            f"a sample of {sample.size} lets rival {number} pass with chance {missed:.1e}"
        )
        found = p_value(sample, rival)
        assert found < LEVEL, (
            f"rival {number} is not rejected (p = {found:.2e}): the sample is too small to tell"
        )


def assert_share(hits: int, trials: int, share: float, *, rivals: Sequence[float]) -> None:
    """A share of trials, by the exact binomial test: the stated share passes, each rival is rejected."""
    found = float(stats.binomtest(hits, trials, share).pvalue)
    assert found >= LEVEL, f"{hits} of {trials} is not a share of {share}: p = {found:.2e}"
    assert rivals, "a statistical assertion without a rival cannot fail"
    for rival in rivals:
        missed = miss_chance_of_share(share, rival, trials)
        assert missed <= LEVEL, (
            f"{trials} trials let a share of {rival} pass with chance {missed:.1e}"
        )
        found = float(stats.binomtest(hits, trials, rival).pvalue)
        assert found < LEVEL, (
            f"a share of {rival} is not rejected (p = {found:.2e}): too few trials to tell"
        )


def miss_chance_of_share(share: float, rival: float, trials: int) -> float:
    """How often hits with this share would let the rival's share pass at LEVEL, at most.

    The exact test rejects at least where one tail of the rival is below half the level.
    """
    low, high = (
        stats.binom.ppf(LEVEL / 2, trials, rival) - 1,
        stats.binom.isf(LEVEL / 2, trials, rival) + 1,
    )
    return float(stats.binom.cdf(high, trials, share) - stats.binom.cdf(low, trials, share))
