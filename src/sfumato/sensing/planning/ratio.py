"""Which of two is better in the same trials: the ratio of their mean errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from sfumato._types import FloatArray

FEWEST_WRONG = (
    6  # trials in which either is off: fewer cannot be told from chance, 2**-5 for a sign test
)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two means from pairs, and the ends of its 95 % interval; 0 and inf where chance is all."""

    value: float
    low: float
    high: float
    trials: int


def ratio_of_means(ours: FloatArray, theirs: FloatArray) -> Ratio | None:
    """Mean error over that of a rival, from errors in the same trials; None where the rival has none.

    The trials are pairs, so what both find hard cancels: the ratio r of means of a and b moves as
    the mean of (a - r b) over the mean of b [cochran77, ch. 6]. Trials without an answer (nan) of
    either are left out.

    >>> found = ratio_of_means(np.array([0.5, 1.0, 1.6] * 20), np.array([1.0, 2.0, 3.0] * 20))
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.517, 0.512, 0.521)
    """
    both = np.isfinite(ours) & np.isfinite(theirs)
    a, b = ours[both], theirs[both]
    if a.size < 2 or not b.mean() > 0:
        return None
    value = float(a.mean() / b.mean())
    if ((a > 0) | (b > 0)).sum() < FEWEST_WRONG:
        return Ratio(value, 0.0, math.inf, int(a.size))
    # Answers that were all exact do not vary; how sure they are the better ones, the others' errors
    # say.
    vary = a - value * b if value > 0 else b
    spread = vary.std(ddof=1) / b.mean() / math.sqrt(a.size)
    far = float(stdtrit(a.size - 1, 0.975) * spread)
    return Ratio(value, max(0.0, value - far), value + far, int(a.size))


@dataclass(frozen=True, slots=True)
class ErrorRatio:
    """The mean error of the better estimator as a share of the other's, from `trials` of both.

    `low` and `high` are the ends of a 95 % interval of the share itself.
    """

    better: str
    value: float
    low: float
    high: float
    trials: int

    @property
    def sure(self) -> bool:
        """Whether it is better by more than chance."""
        return self.high < 1


def error_ratio(errors: Mapping[str, Sequence[float]]) -> ErrorRatio | None:
    """Which of two estimators is better, from errors in the same trials (see `ratio_of_means`).

    Trials that either did not run are left out; None where no ratio is left, because neither was
    wrong.

    >>> found = error_ratio({"bayes median": [0.5, 1.0, 1.6] * 20, "least mass": [1.0, 2.0, 3.0] * 20})
    >>> found.better, found.sure, round(found.low, 3), round(found.high, 3)
    ('bayes median', True, 0.512, 0.521)
    """
    size = min(len(some) for some in errors.values())
    pairs = np.array([some[:size] for some in errors.values()], dtype=np.float64)
    pairs = pairs[:, np.isfinite(pairs).all(axis=0)]
    if not pairs.size:
        return None
    less = int(pairs.mean(axis=1).argmin())
    found = ratio_of_means(pairs[less], pairs[1 - less])
    if found is None:
        return None
    return ErrorRatio(list(errors)[less], found.value, found.low, found.high, found.trials)
