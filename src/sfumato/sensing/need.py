"""The other way round: the sensors, or the epsilon, that a wanted error takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.sensing.design import Axis, Design, at, counts_on, shared_lots
from sfumato.sensing.forecast import ErrorForecast, Estimator, Scene, error_of, mean_error
from sfumato.spaces.space import whole

WANTED_TRIALS = 40
FEW = 8  # of them say where the others are worth their time
ENOUGH = 1.1  # of the least mean error: what is within it is about as good
DOUBLINGS = 4  # of what is planned, up and down, where something wanted is looked for


@dataclass(frozen=True, slots=True)
class Need:
    """What a wanted mean error takes on an axis; None where it is not reached within `tried`.

    `low` and `high` are the ends of a 95 % interval of `value`, from the chance of the trials alone, cut at
    what was tried. `best` is the value of the least mean error of those simulated in full, which is `least`;
    `enough` the smallest value that, trial by trial, is not worse than it by more than a tenth and one
    standard error, the rule of [breiman84, sec. 3.4.3] for the simplest of what is about as good.
    """

    axis: Axis
    want: float
    estimator: Estimator
    value: float | None
    low: float | None
    high: float | None
    tried: tuple[float, float]
    best: float
    least: ErrorForecast
    enough: float


def needed(
    design: Design,
    axis: Literal["sensors", "cost"],
    want: float,
    *,
    rng: np.random.Generator,
    estimator: Estimator = "bayes median",
    trials: int = WANTED_TRIALS,
    progress: Callable[[str], None] | None = None,
) -> Need:
    """How many sensors, or how much epsilon, a wanted mean error takes, the rest as designed.

    From 1/16 to 16 times what is planned, by doublings, on the same sources and noise; then a straight line
    between two of them on log scales. More sensors need more noise, and soon buy nothing: all their doublings
    are tried, and `enough` says from where on. Errors fall with epsilon, so there the range is halved.

    The first 8 of the trials say where to look. All of them are run beside what is wanted, at `best` and at
    `enough`, and again wherever that moves these: every number in the answer is of all trials, and only that
    other values lie elsewhere is judged by 8, times the ratio of all to 8 where both are known.
    """
    if not 0 < want < math.inf:
        raise InvalidParameter(f"a wanted error is positive and finite, got {want}; nothing was simulated")
    whole("trials", trials, low=2)
    now = design.value(axis)
    doubled = [now * 2.0**i for i in range(-DOUBLINGS, DOUBLINGS + 1)]
    grid = counts_on(design, doubled) if axis == "sensors" else tuple(doubled)
    if not grid:
        raise InvalidParameter(f"a site by a matrix has no other {axis}; nothing was simulated")
    lots = shared_lots(design, grid[-1] if axis == "sensors" else 0.0, trials, rng)
    tell = progress or (lambda _: None)
    scenes: dict[int, Scene] = {}
    errors: dict[int, list[float]] = {}
    few: dict[int, float] = {}
    found: dict[int, ErrorForecast] = {}

    def simulated(i: int, count: int) -> ErrorForecast:
        if i not in scenes:
            scenes[i], errors[i] = at(design, axis, grid[i]).scene, []
        errors[i] += [error_of(scenes[i], lot, estimator) for lot in lots[len(errors[i]) : count]]
        return mean_error(estimator, errors[i], later=math.inf)

    def mean(i: int) -> float:
        if i in found:
            return found[i].mean
        if i not in few:
            tell(f"{len(few) + 1} of {len(grid)}" if axis == "sensors" else f"{len(few) + 1} tried")
            few[i] = simulated(i, min(FEW, trials)).mean
        known = sum(few[j] for j in found)
        return few[i] * (sum(one.mean for one in found.values()) / known if known > 0 else 1.0)

    def enough_at(i: int, least: int) -> bool:
        some = min(len(errors[i]), len(errors[least]))
        more = np.array(errors[i][:some]) - ENOUGH * np.array(errors[least][:some])
        more = more[np.isfinite(more)]
        return more.size > 1 and more.mean() <= more.std(ddof=1) / math.sqrt(more.size)

    while True:
        # More sensors may be worse than some, so all are tried; with epsilon errors fall.
        if axis == "sensors":
            means = {i: mean(i) for i in range(len(grid))}
            holds = next((i for i in means if means[i] <= want), len(grid))
            least = min(means, key=lambda i: means[i])
            matter = {least, next((i for i in means if enough_at(i, least)), least)}
        else:
            holds, matter = _halved(lambda i: mean(i) <= want, len(grid)), set()
        matter |= {i for i in (holds - 1, holds) if 0 <= i < len(grid)}
        left = sorted(matter - set(found))
        if not left:
            break
        for number, i in enumerate(left, 1):
            tell(f"all trials, {number} of {len(left)}")
            found[i] = simulated(i, trials)
    least = min(found, key=lambda i: found[i].mean)
    enough = next((i for i in sorted(found) if enough_at(i, least)), least)
    end = partial(
        Need,
        axis,
        want,
        estimator,
        tried=(grid[0], grid[-1]),
        best=grid[least],
        least=found[least],
        enough=grid[enough],
    )
    if holds == len(grid):
        return end(None, None, None)
    if holds == 0:
        return end(grid[0], grid[0], grid[0])
    before, after = found[holds - 1], found[holds]
    # All answers exactly right: somewhere between, and nobody knows where.
    y, stretch = (after.mean, after.high / after.mean) if after.mean > 0 else (want / 1e3, math.inf)
    value, off = crossing((grid[holds - 1], grid[holds]), (before.mean, y), want=want, stretch=stretch)
    return end(value, max(value / off, grid[0]), min(value * off, grid[-1]))


def _halved(reached: Callable[[int], bool], count: int) -> int:
    """The first of so many that reaches it, if all after it do; the count if none does."""
    fails, holds = -1, count
    while holds - fails > 1:
        middle = (fails + holds) // 2
        fails, holds = (fails, middle) if reached(middle) else (middle, holds)
    return holds


def crossing(
    x: tuple[float, float], y: tuple[float, float], *, want: float, stretch: float
) -> tuple[float, float]:
    """Where a line through two points on log scales falls to `want`, and by which factor it may be off.

    Where y may be off by a factor `stretch`, x may be by stretch ** (1 / steepness).

    >>> value, off = crossing((1.0, 4.0), (8.0, 2.0), want=4.0, stretch=1.5)
    >>> round(value, 6), round(off, 6)
    (2.0, 1.5)
    """
    steep = math.log(y[0] / y[1]) / math.log(x[1] / x[0])
    value = x[0] * (y[0] / want) ** (1 / steep)
    return value, math.exp(min(math.log(stretch) / steep, 50.0))
