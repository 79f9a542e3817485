"""What scores say: means with intervals, paired differences with their signs, and times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.analysis.quality import GROWS, METRICS, Metric
from sfumato.heatmap.benchmark.results import Score

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Average:
    """A mean, and half the width of its 95 % interval."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half:.3f}"


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """A method against a rival on the same samples, in one metric at one epsilon.

    `gain` is the mean difference, above 0 where the method is better; `ratio` that of the means.
    """

    method: str
    rival: str
    epsilon: float
    metric: Metric
    gain: Average
    ratio: float

    @property
    def sign(self) -> str:
        """+, - or 0: significantly better, worse, or open."""
        low, high = self.gain.mean - self.gain.half, self.gain.mean + self.gain.half
        return "+" if low > 0 else "-" if high < 0 else "0"

    def __str__(self) -> str:
        return f"{self.sign} {self.gain.mean:+.4f} ± {self.gain.half:.4f}, ×{self.ratio:.2f}"


@dataclass(frozen=True, slots=True)
class Tally:
    """In how many cells of epsilon and metric a method is better than a rival, worse, and neither."""

    better: int
    worse: int
    open: int

    def __str__(self) -> str:
        cells = self.better + self.worse + self.open
        return f"better {self.better}, open {self.open}, worse {self.worse} of {cells}"


def average(values: npt.ArrayLike) -> Average:
    """The mean of independent values with its t interval, mean ± t(0.975, n - 1) sd / sqrt(n).

    >>> print(average([1.0, 2.0, 3.0]))
    2.000 ± 2.484
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size < 2:
        raise InvalidParameter(
            f"an interval needs at least 2 runs, got {numbers.size}; nothing was averaged"
        )
    spread = float(stdtrit(numbers.size - 1, (1 + CONFIDENCE) / 2))
    return Average(
        float(numbers.mean()), spread * float(numbers.std(ddof=1)) / math.sqrt(numbers.size)
    )


def methods_of(scores: Iterable[Score]) -> list[str]:
    """The methods that were scored, in their order.

    Args:
        scores: What was measured, of one source.

    Returns:
        Their names.
    """
    return list(dict.fromkeys(score.method for score in scores))


def epsilons_of(scores: Iterable[Score]) -> list[float]:
    """The values of epsilon that were run, from small to large.

    Args:
        scores: What was measured, of one source.

    Returns:
        The values.
    """
    return sorted({score.epsilon for score in scores})


def mean_of(scores: Iterable[Score], method: str, *, epsilon: float, metric: Metric) -> Average:
    """How good a method is at one epsilon in one metric.

    With its 95 % interval, from two runs or more.
    """
    return average(
        [getattr(s, metric) for s in scores if s.method == method and s.epsilon == epsilon]
    )


def paired_comparison(
    scores: Sequence[Score], method: str, rival: str, *, epsilon: float, metric: Metric
) -> PairedComparison:
    """A method against a rival, paired by place and sample.

    Args:
        scores: What was measured, of one source.
        method: The name of one method.
        rival: The name of another.
        epsilon: One that was run.
        metric: One of the four.

    Returns:
        The mean difference with its interval, and the ratio of the means.

    Raises:
        InvalidInput: Where the two were not run on the same samples.
    """
    mine, theirs = (_by_sample(scores, name, epsilon, metric) for name in (method, rival))
    if mine.keys() != theirs.keys():
        raise InvalidInput(
            f"{method} and {rival} were not run on the same samples; nothing was paired"
        )
    a, b = np.array(list(mine.values())), np.array([theirs[key] for key in mine])
    ratio = float(a.mean() / b.mean()) if b.mean() else math.nan
    return PairedComparison(method, rival, epsilon, metric, average(GROWS[metric] * (a - b)), ratio)


def paired_comparisons(scores: Sequence[Score], method: str, rival: str) -> list[PairedComparison]:
    """A method against a rival in all cells of epsilon and metric.

    Args:
        scores: What was measured, of one source.
        method: The name of one method.
        rival: The name of another.

    Returns:
        A comparison for each metric and epsilon.

    Raises:
        InvalidInput: Where the two were not run on the same samples.
    """
    return [
        paired_comparison(scores, method, rival, epsilon=epsilon, metric=metric)
        for metric in METRICS
        for epsilon in epsilons_of(scores)
    ]


def tally(comparisons: Iterable[PairedComparison]) -> Tally:
    """The signs counted.

    Args:
        comparisons: With one rival.

    Returns:
        How many are better, worse and open.
    """
    signs = [one.sign for one in comparisons]
    return Tally(signs.count("+"), signs.count("-"), signs.count("0"))


def best_means(scores: Sequence[Score]) -> dict[str, int]:
    """In how many cells of epsilon and metric each method has the best mean."""
    methods = methods_of(scores)
    won = dict.fromkeys(methods, 0)
    for epsilon in epsilons_of(scores):
        for metric in METRICS:
            means = [mean_of(scores, name, epsilon=epsilon, metric=metric).mean for name in methods]
            won[methods[int(np.argmax(GROWS[metric] * np.array(means)))]] += 1
    return won


def scores_json(scores: Sequence[Score], first: str) -> dict[str, Any]:
    """Means, best means, and a method against every other, as JSON has them."""
    against = {
        rival: paired_comparisons(scores, first, rival)
        for rival in methods_of(scores)
        if rival != first
    }
    return {
        "means": [
            {"epsilon": epsilon, "method": name, "metric": metric}
            | asdict(mean_of(scores, name, epsilon=epsilon, metric=metric))
            for epsilon, name, metric in product(epsilons_of(scores), methods_of(scores), METRICS)
        ],
        "best_means": best_means(scores),
        "against": {
            rival: asdict(tally(pairs)) | {"cells": [_cell(one) for one in pairs]}
            for rival, pairs in against.items()
        },
    }


def _cell(one: PairedComparison) -> dict[str, Any]:
    """JSON has no word for a ratio to 0."""
    ratio = one.ratio if math.isfinite(one.ratio) else None
    return asdict(one) | {"ratio": ratio, "sign": one.sign}


def times(scores: Sequence[Score], base: str) -> dict[str, float]:
    """How long each method takes, as the median of its ratios to the base on the same samples.

    The median, because the first release at an epsilon also builds the tables of its noise.

    Args:
        scores: What was measured, of one source.
        base: The method whose time is 1.

    Returns:
        Ratios by method.
    """
    taken = {(s.source, s.place, s.sample, s.epsilon, s.method): s.seconds for s in scores}
    return {
        name: float(
            np.median(
                [
                    seconds / taken[*key[:-1], base]
                    for key, seconds in taken.items()
                    if key[-1] == name
                ]
            )
        )
        for name in methods_of(scores)
    }


def _by_sample(
    scores: Iterable[Score], method: str, epsilon: float, metric: Metric
) -> dict[tuple[str, str, int], float]:
    return {
        (score.source, score.place, score.sample): getattr(score, metric)
        for score in scores
        if score.method == method and score.epsilon == epsilon
    }
