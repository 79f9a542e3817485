"""What a betting audit can catch: how many runs a violation takes, and which one given runs would show."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from sfumato._types import FloatArray
from sfumato.audit.claims import EpsilonDelta
from sfumato.audit.sequential.betting import MIN_FACTOR, best_wager

CAUGHT = 1.2815515655446004
"""Standard normal quantile of 90 %: the chance with which what is excluded would have been caught."""
LEARNT = 0.5
"""The share of a pair's runs that is bet once the event is known; the first half finds it."""
LARGEST = 50.0
"""Epsilons beyond it are not told apart from no privacy at all."""


@lru_cache(maxsize=1024)
def required_pairs(statement: EpsilonDelta, more: float, less: float, target: float) -> float:
    """Pairs of runs after which bets on an event with these chances have reached e**target, with chance 90 %.

    Each pair of runs adds growth g to the logarithm of wealth, with variance v, so n g - z sqrt(n
    v) = target with z the quantile of 90 %; twice that many are required, since half of them find the
    event.
    """
    law1, law2 = _law(more), _law(less)
    wager = best_wager(statement, law1, law2)
    growth = wager.growth(law1, law2)
    if growth <= 0:
        return math.inf
    variance = _variance(law1, np.log(wager.first)) + _variance(law2, np.log(wager.second))
    root = (
        CAUGHT * math.sqrt(variance) + math.sqrt(CAUGHT**2 * variance + 4 * growth * target)
    ) / (2 * growth)
    return root**2 / LEARNT


@lru_cache(maxsize=256)
def excluded_epsilon(statement: EpsilonDelta, pairs: int, target: float, mass: float) -> float:
    """The smallest epsilon at the statement's delta whose breach by an event of this mass would be caught.

    The input that reaches the event too often reaches it with chance `mass`, the other with
    e**-epsilon (mass - delta). Infinite where no breach would be.
    """
    if mass <= statement.delta:
        return math.inf

    def caught(epsilon: float) -> bool:
        less = (mass - statement.delta) * math.exp(-epsilon)
        return required_pairs(statement, mass, less, target) <= pairs

    low, high = statement.epsilon, statement.epsilon + LARGEST
    if not caught(high):
        return math.inf
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if caught(middle) else (middle, high)
    return high


def _law(chance: float) -> FloatArray:
    inside = min(max(chance, MIN_FACTOR), 1 - 2 * MIN_FACTOR)
    return np.array([inside, MIN_FACTOR, 1 - inside - MIN_FACTOR])


def _variance(law: FloatArray, values: FloatArray) -> float:
    return float(law @ values**2 - (law @ values) ** 2)
