"""The times of diffusion that a field is fitted at, and the interval of those that are nearly as likely."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator

LIKELY = 7.814727903251179
"""The 0.95 quantile of chi-square with three degrees of freedom: with one, they were too short."""


def tried_times(operator: Operator, times: Sequence[float]) -> list[float]:
    """The given times, checked, each once and in order."""
    tried = sorted({float(time) for time in times})
    if len(tried) < 2 or not all(1e-20 <= time <= 1e20 for time in tried):
        raise InvalidParameter(
            f"times must be 2 or more different numbers between 1e-20 and 1e20, got {list(times)}; "
            "no field was fitted"
        )
    operator.with_time(tried[0])  # refuses a matrix
    return tried


def around_best(known: list[float], scores: dict[float, float]) -> set[int]:
    """The gaps on both sides of the best time."""
    i = min(range(len(known)), key=lambda j: scores[known[j]])
    return {i, i + 1}


def crossing(known: list[float], scores: dict[float, float]) -> float:
    """Where the profile first comes within LIKELY of its least, between two times by a straight line."""
    limit = min(scores.values()) + LIKELY
    before = known[0]
    for time in known:
        if scores[time] <= limit:
            if time == known[0]:
                return time
            share = (scores[before] - limit) / (scores[before] - scores[time])
            return math.exp(math.log(before) + share * math.log(time / before))
        before = time
    return before
