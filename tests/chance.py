"""Statistical assertions with two arms: the law must pass, rivals must fail, and both get a number.

The p-value threshold is 1e-6 on either side; a suite of fewer than 1,000 such assertions raises a false alarm
in at most one run of 1,000. A sample too small to reject a rival is refused, so a vacuous test cannot pass.
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
    edges = _edges(cdf)
    shares = np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=shares.size)
    expected = shares * sample.size
    # A bin that expects THIN counts leaves the tail of chi-square at 1e-6 true to a factor of two.
    joined_counts, joined_expected = [0.0], [0.0]
    for count, want in zip(counts, expected, strict=True):
        if joined_expected[-1] >= THIN:
            joined_counts.append(0.0)
            joined_expected.append(0.0)
        joined_counts[-1] += count
        joined_expected[-1] += want
    if len(joined_expected) > 1 and joined_expected[-1] < THIN:
        last_count, last_expected = joined_counts.pop(), joined_expected.pop()
        joined_counts[-1] += last_count
        joined_expected[-1] += last_expected
    observed, wanted = np.array(joined_counts), np.array(joined_expected)
    if wanted.size < 2:
        return 1.0  # nothing can be told: the arm of the rivals will say so
    statistic = float(np.sum((observed - wanted) ** 2 / wanted))
    return float(stats.chi2.sf(statistic, wanted.size - 1))


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
        found = float(stats.binomtest(hits, trials, rival).pvalue)
        assert found < LEVEL, f"a share of {rival} is not rejected (p = {found:.2e}): too few trials to tell"
