"""95 % intervals of what claims are about: paired differences, slopes, floors.

Points of a panel share sources and noise wherever they can, so two of them are compared draw by
draw. That their own intervals overlap would say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from experiments.sensors.points import Metric, Point, mean
from experiments.sensors.protocol import Draw, FloatArray, generator
from scipy import stats

LEVEL = 0.95
RESAMPLED = 2000
Trials = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the ends of its interval."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.3g} [{self.low:.3g}, {self.high:.3g}]"


def trials_of(
    draws: Sequence[Draw], figure: str, series: str, metric: Metric
) -> dict[float, dict[int, float]]:
    """What each draw of a series measured, by place on the axis and trial; draws without an answer are out.

    Empty where there are no draws: points that were computed, or counted in another way.
    """
    out: dict[float, dict[int, float]] = {}
    for draw in draws:
        if (draw.figure, draw.series) != (figure, series):
            continue
        here = out.setdefault(draw.x, {})
        match metric:
            case "emd" | "l1" if draw.answered:
                here[draw.trial] = draw.emd if metric == "emd" else draw.l1
            case "filled":
                here[draw.trial] = draw.emd if draw.answered else draw.even
            case "answered":
                here[draw.trial] = float(draw.answered)
            case _:
                pass
    return out


def difference(
    one: Trials, other: Trials, *, share: float = 1.0, level: float = LEVEL
) -> tuple[Interval, int]:
    """The mean of one - share * other over the trials that have both, by Student's t, and their number."""
    both = sorted(one.keys() & other.keys())
    if len(both) < 2:
        return Interval(math.nan, -math.inf, math.inf), len(both)
    apart = np.array([one[trial] - share * other[trial] for trial in both])
    return Interval(*mean(apart, level)), len(both)


def unpaired(one: Point, other: Point) -> Interval:
    """The first less the second, for points without draws: from end to end, wider than need be."""
    return Interval(one.middle - other.middle, one.low - other.high, one.high - other.low)


def slope(values: Mapping[float, Trials], name: str) -> Interval:
    """The least-squares slope of log mean against log x; trials are drawn again, whole, 2,000 times."""
    x = np.log(sorted(values))
    trials = sorted({trial for here in values.values() for trial in here})
    table = np.array(
        [[values[at].get(trial, math.nan) for at in sorted(values)] for trial in trials]
    )
    found = np.isfinite(table)
    filled = np.where(found, table, 0.0)
    weights = generator("again", name).multinomial(
        len(trials), [1 / len(trials)] * len(trials), RESAMPLED
    )
    middle = float(fitted(x, filled.sum(axis=0) / found.sum(axis=0)))
    with np.errstate(
        invalid="ignore", divide="ignore"
    ):  # no answered trial of a point may be drawn
        again = fitted(x, (weights @ filled) / (weights @ found))
    low, high = np.quantile(again[np.isfinite(again)], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(middle, float(low), float(high))


def fitted(log_x: FloatArray, values: FloatArray) -> FloatArray:
    """The slope of log values, for each row of them."""
    away = log_x - log_x.mean()
    return np.asarray(np.log(values) @ away / (away @ away))


def floor(values: Mapping[float, Trials]) -> tuple[Interval, float]:
    """The a of a + b / sqrt(x), by least squares weighted with the variances of the means, and how it fits.

    The second number is the chance of points that lie as far from the curve or farther, by
    chi-square.
    """
    x = np.array(sorted(values))
    if x.size < 3:
        return Interval(math.nan, -math.inf, math.inf), 1.0
    samples = [np.array(list(values[at].values())) for at in x]
    middle = np.array([some.mean() for some in samples])
    deviation = np.array([some.std(ddof=1) / math.sqrt(some.size) for some in samples])
    design = np.stack([np.ones(x.size), x**-0.5], axis=1) / deviation[:, np.newaxis]
    inverse = np.linalg.inv(design.T @ design)
    found = inverse @ design.T @ (middle / deviation)
    left = float(np.sum((middle / deviation - design @ found) ** 2))
    a, half = (
        float(found[0]),
        float(stats.norm.ppf((1 + LEVEL) / 2)) * math.sqrt(float(inverse[0, 0])),
    )
    return Interval(a, a - half, a + half), float(stats.chi2.sf(left, x.size - 2))
