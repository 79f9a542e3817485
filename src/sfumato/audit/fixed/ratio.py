"""Exact tests of P(E) <= e**epsilon Q(E) + delta from the counts of two samples; none is asymptotic.

Two ways. The box puts a Clopper-Pearson limit on each probability [clopper34]. The ratio test
orders all counts by one statistic and takes the supremum of its exact tail over the unknown Q(E)
[buehler57], inside a confidence interval for it [berger94]; it needs less than half of the runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter

NUISANCE = 1 / 20
"""The share of the level spent on the confidence interval of the unknown probability."""
BLOCKS = 192
"""Neighboring counts are taken together; each block counts as its most favorable one."""
CELLS, SPLIT, ROUNDS = 24, 4, 5
"""Into so many cells an interval is cut at first; one that leaves a doubt is split, so often."""
TOLERANCE = 1 / 64
"""Bounds are found to this share of what the counts leave uncertain."""


def lower_limit(hits: int, runs: int, *, level: float) -> float:
    """A probability that the true one is below with chance at most level [clopper34].

    Args:
        hits: From 0 to runs.
        runs: At least 1.
        level: Between 0 and 1.

    Returns:
        The limit, from 0 to 1.

    >>> round(lower_limit(10, 10, level=0.05) ** 10, 9)
    0.05
    """
    return float(stats.beta.ppf(level, hits, runs - hits + 1)) if hits > 0 else 0.0


def upper_limit(hits: int, runs: int, *, level: float) -> float:
    """A probability that the true one is above with chance at most level [clopper34].

    >>> round((1 - upper_limit(0, 10, level=0.05)) ** 10, 9)
    0.05
    """
    return float(stats.beta.isf(level, hits + 1, runs - hits)) if hits < runs else 1.0


def epsilon_lower_box(k1: int, n1: int, k2: int, n2: int, *, delta: float, level: float) -> float:
    """The least epsilon that a box around both probabilities leaves open; half of the level for each.

    Args:
        k1: Hits of the input that reaches the event too often.
        n1: Its runs.
        k2: Hits of the other input.
        n2: Its runs.
        delta: From 0 to below 1.
        level: Between 0 and 1.

    Returns:
        The bound, at least 0.

    Raises:
        InvalidParameter: If counts or rates are out of range.

    >>> round(math.exp(epsilon_lower_box(10, 10, 0, 10, delta=0, level=0.1)), 3)
    2.863
    """
    _check(k1, n1, k2, n2, delta, level)
    excess = lower_limit(k1, n1, level=level / 2) - delta
    if excess <= 0:
        return 0.0
    return max(0.0, math.log(excess / upper_limit(k2, n2, level=level / 2)))


def epsilon_lower(k1: int, n1: int, k2: int, n2: int, *, delta: float, level: float) -> float:
    """The least epsilon that the ratio test leaves open: every smaller one is rejected at this level.

    All pairs of counts are ordered by the epsilon that a score test would leave open; since the
    order is the same for every epsilon, so is the event, its chance grows with epsilon, and the
    bound is exact up to a rounding down [buehler57].

    >>> epsilon_lower(60, 100, 60, 100, delta=0, level=0.05)
    0.0
    >>> round(epsilon_lower(600, 1000, 200, 1000, delta=0, level=0.05), 2)
    0.98
    """
    _check(k1, n1, k2, n2, delta, level)
    critical = _critical(level)
    ratio = _score_ratio(k1, n1, k2, n2, delta, critical)
    if ratio <= 0:
        return 0.0
    test = _Test.of(k1, k2, _Order(ratio, delta, critical, n1, n2), level)
    start = math.log(ratio)
    gap = math.log((k1 / n1 - delta) * n2 / max(k2, 0.5)) - start
    return _largest(
        lambda epsilon: test.rejects(math.exp(epsilon), delta), max(0.0, start), max(gap, 1e-6) / 4
    )


def delta_lower(k1: int, n1: int, k2: int, n2: int, *, epsilon: float, level: float) -> float:
    """The least delta that the ratio test leaves open at epsilon: smaller ones are rejected at this level.

    As `epsilon_lower`, with all counts ordered by the delta that a score test would leave open.

    >>> round(delta_lower(600, 1000, 200, 1000, epsilon=0, level=0.05), 2)
    0.36
    """
    _check(k1, n1, k2, n2, 0.0, level)
    _check_epsilon(epsilon)
    critical, ratio = _critical(level), math.exp(min(epsilon, 700.0))
    start = _score_delta(k1, n1, k2, n2, ratio, critical)
    if start <= 0:
        return 0.0
    test = _Test.of(k1, k2, _Order(ratio, start, critical, n1, n2), level)
    gap = k1 / n1 - ratio * k2 / n2 - start
    return _largest(lambda delta: test.rejects(ratio, delta), start, max(gap, 1e-9) / 4)


def p_value(
    k1: int, n1: int, k2: int, n2: int, *, epsilon: float, delta: float, level: float = 0.05
) -> float:
    """The chance, at most, of counts that speak as loudly against P(E) <= e**epsilon Q(E) + delta.

    It is at most the level, with which it is to be compared, where `epsilon_lower` is at least
    epsilon: the order of the counts is the one that is best at this level, and a twentieth of the
    level is spent on the unknown Q(E), and added [berger94]. It grows with epsilon and delta.

    >>> p_value(60, 100, 60, 100, epsilon=0, delta=0) > 0.5
    True
    >>> p_value(600, 1000, 200, 1000, epsilon=0.9, delta=0) < 0.05
    True
    """
    _check(k1, n1, k2, n2, delta, level)
    _check_epsilon(epsilon)
    critical, ratio = _critical(level), math.exp(min(epsilon, 700.0))
    min_ratio = _score_ratio(k1, n1, k2, n2, delta, critical)
    if min_ratio <= 0 or ratio * k2 / n2 + delta >= k1 / n1:
        return 1.0
    test = _Test.of(k1, k2, _Order(min_ratio, delta, critical, n1, n2), level)
    return min(1.0, test.tail(ratio, delta) + level * NUISANCE)


@dataclass(frozen=True, slots=True)
class _Order:
    """Counts that speak at least so loudly: k1 >= least(k2), which grows with k2.

    With x = k1 / n1 - delta and y = k2 / n2, the score statistic (x - R y) / sqrt(V), where V = R
    (x / n2 + y / n1) + delta / n1 is the variance of rare events, is increasing in k1 and
    decreasing in k2, R and delta. Hence the sets {score >= critical} are nested as R or delta
    grows.
    """

    ratio: float
    delta: float
    critical: float
    n1: int
    n2: int

    def min_hits(self, k2: FloatArray) -> FloatArray:
        """The smallest k1 in the set for each k2; rounded down, which makes the set no smaller."""
        level, rate = self.ratio * k2 / self.n2, self.ratio / self.n2
        half = self.critical**2 * rate / 2
        spread = self.critical**2 * (level / self.n1 + self.delta / self.n1 + rate * level)
        need = self.n1 * (self.delta + level + half + np.sqrt(half**2 + spread))
        return np.asarray(np.ceil(need * (1 - 1e-12) - 1e-9))


@dataclass(frozen=True, slots=True)
class _Test:
    """The set of counts that speak as loudly as those seen, and intervals that hold both probabilities."""

    order: _Order
    level: float
    first: tuple[float, float]
    second: tuple[float, float]

    @classmethod
    def of(cls, k1: int, k2: int, order: _Order, level: float) -> _Test:
        """The test that these counts call for."""
        each = level * NUISANCE / 4
        first = lower_limit(k1, order.n1, level=each), upper_limit(k1, order.n1, level=each)
        second = lower_limit(k2, order.n2, level=each), upper_limit(k2, order.n2, level=each)
        return cls(order, level, first, second)

    def rejects(self, ratio: float, delta: float) -> bool:
        """Whether a violation of p1 <= ratio p2 + delta is shown."""
        target = self.level * (1 - NUISANCE)
        return self.tail(ratio, delta, target=target) <= target

    def tail(self, ratio: float, delta: float, *, target: float = 0.0) -> float:
        """An upper bound of the chance of the set, over all p1 <= ratio p2 + delta inside the intervals.

        The chance grows with p1 and falls with p2, so it is largest where p1 = ratio p2 + delta, or
        in a corner. The set of p1 and p2 grows with ratio and delta, and so does the supremum. The
        bound is no tighter than it takes to say on which side of the target, where there is one, it
        is.
        """
        low = max(self.second[0], (self.first[0] - delta) / ratio)
        high = min(self.second[1], (self.first[1] - delta) / ratio)
        if low > self.second[1]:
            return 0.0
        if high <= low:
            return float(self._chance(np.array([self.first[1]]), np.array([self.second[0]]))[0])
        edges = self._edges(low, high, ratio, delta)
        left, right = edges[:-1], edges[1:]
        peak = settled = 0.0
        for _ in range(ROUNDS):
            at, bound = self._cells(left, right, ratio, delta)
            peak = max(peak, float(at.max()))
            if 0 < target < peak:
                return peak
            loose = bound > max(target, 1.03 * peak)
            settled = max(settled, float(bound[~loose].max(initial=0.0)))
            if not loose.any():
                return settled
            parts = np.linspace(left[loose], right[loose], SPLIT + 1)
            left, right = parts[:-1].ravel(), parts[1:].ravel()
        return max(settled, float(bound.max()))

    def _cells(
        self, left: FloatArray, right: FloatArray, ratio: float, delta: float
    ) -> tuple[FloatArray, FloatArray]:
        """Upper bounds of the chance in each cell: at the ends of it, and anywhere."""
        edges, place = np.unique(np.concatenate([left, right]), return_inverse=True)
        p1 = np.minimum(1.0, ratio * edges + delta)
        begin, end = place[: left.size], place[left.size :]
        chance = self._chance(p1, edges)
        at = np.maximum(chance[begin], chance[end])
        # Between its ends the chance exceeds the larger of its values there by at most width**2 / 8
        # times its second derivative, and that is at most the Fisher information, as
        # log-likelihoods are concave.
        information = self._information(edges, ratio, delta)
        slack = (right - left) ** 2 / 8 * np.maximum(information[begin], information[end])
        # Where that is too much: the chance grows with p1 and falls with p2, so take one from
        # either end.
        wide = slack > 0.03 * self.level
        bound = at + slack
        if wide.any():
            both = self._chance(p1[end][wide], edges[begin][wide])
            bound[wide] = np.minimum(bound[wide], np.maximum(both, at[wide]))
        return at, bound

    def _chance(self, p1: FloatArray, p2: FloatArray) -> FloatArray:
        """An upper bound of the chance of the set for each pair of probabilities."""
        n1, n2 = self.order.n1, self.order.n2
        tiny = 1e-3 * self.level
        # Bernstein: outside of the window K2 falls with chance at most tiny on either side.
        reach = math.log(1 / tiny)
        width = np.sqrt(2 * n2 * p2 * (1 - p2) * reach) + 2 * reach / 3
        begin = np.floor(np.maximum(0, n2 * p2 - width))
        end = np.ceil(np.minimum(n2, n2 * p2 + width)) + 1
        blocks = int(min(BLOCKS, (end - begin).max()))
        cuts = np.floor(begin[:, None] + (end - begin)[:, None] * np.linspace(0, 1, blocks + 1))
        inside = np.diff(_at_least(cuts, n2, p2[:, None]), axis=1)
        need = self.order.min_hits(cuts[:, :-1])
        return np.asarray(
            (-inside * _at_least(need, n1, p1[:, None])).sum(axis=1) * (1 + 1e-9) + 2 * tiny
        )

    def _information(self, p2: FloatArray, ratio: float, delta: float) -> FloatArray:
        """The Fisher information about p2 in both counts."""
        p1 = ratio * p2 + delta
        with np.errstate(divide="ignore"):
            first = self.order.n1 * ratio**2 / (p1 * np.maximum(0.0, 1 - p1))
            return np.asarray(first + self.order.n2 / (p2 * (1 - p2)))

    def _edges(self, low: float, high: float, ratio: float, delta: float) -> FloatArray:
        """Cells of an interval that are about equally hard to tell apart."""
        fine = np.linspace(math.sqrt(low), math.sqrt(high), 257) ** 2
        middle = (fine[1:] + fine[:-1]) / 2
        weight = np.minimum(np.sqrt(self._information(middle, ratio, delta)) * np.diff(fine), 1.0)
        total = np.concatenate([[0.0], np.cumsum(weight)])
        edges = np.interp(np.linspace(0, total[-1], CELLS + 1), total, fine)
        edges[0], edges[-1] = low, high
        return np.asarray(edges)


def _score_ratio(k1: int, n1: int, k2: int, n2: int, delta: float, critical: float) -> float:
    """The ratio e**epsilon at which the score statistic of `_Order` is critical; 0 where there is none."""
    x, y = k1 / n1 - delta, k2 / n2
    square = critical**2
    rest = x**2 - square * delta / n1
    if x <= 0 or rest <= 0:
        return 0.0
    # y**2 R**2 - middle R + rest = 0, the smaller root, in the form that y = 0 does not hurt.
    middle = 2 * x * y + square * (x / n2 + y / n1)
    return 2 * rest / (middle + math.sqrt(max(0.0, middle**2 - 4 * y**2 * rest)))


def _score_delta(k1: int, n1: int, k2: int, n2: int, ratio: float, critical: float) -> float:
    """The delta at which the score statistic of `_Order` is critical; may be below 0."""
    level, share = ratio * k2 / n2, k1 / n1
    square = critical**2
    # (x - level)**2 = square V as an equation for x = share - delta; the larger root.
    half = level + square * (ratio / n2 - 1 / n1) / 2
    rest = level**2 - square * (level + share) / n1
    return share - half - math.sqrt(max(0.0, half**2 - rest))


def _critical(level: float) -> float:
    return float(stats.norm.isf(level * (1 - NUISANCE)))


def _largest(holds: Callable[[float], bool], start: float, step: float) -> float:
    """The largest number at which a falling property was seen to hold, within a share of step; at least 0."""
    low, high = start, start
    if holds(start):
        while holds(high := low + step):
            low, step = high, 2 * step
    else:
        while not holds(low := max(0.0, high - step)):
            if low == 0:
                return 0.0
            high, step = low, 2 * step
    finest = (high - low) * TOLERANCE
    while high - low > finest:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _at_least(k: FloatArray, n: int, p: FloatArray) -> FloatArray:
    """The chance of at least k successes in n tries."""
    inside = np.clip(k, 1, n)
    chance = special.betainc(inside, n - inside + 1, p)
    return np.where(k <= 0, 1.0, np.where(k > n, 0.0, chance))


def _check_epsilon(epsilon: float) -> None:
    if not epsilon >= 0:
        raise InvalidParameter(f"epsilon must be at least 0, got {epsilon}; nothing was tested")


def _check(k1: int, n1: int, k2: int, n2: int, delta: float, level: float) -> None:
    if not (0 <= k1 <= n1 and 0 <= k2 <= n2 and n1 > 0 and n2 > 0):
        raise InvalidParameter(
            f"hits must be between 0 and runs, got {k1} of {n1} and {k2} of {n2}; nothing was tested"
        )
    if not 0 <= delta <= 1:
        raise InvalidParameter(f"delta must be between 0 and 1, got {delta}; nothing was tested")
    if not 0 < level < 1:
        raise InvalidParameter(f"level must be between 0 and 1, got {level}; nothing was tested")
