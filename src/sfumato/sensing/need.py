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

WANTED_TRIALS = 100
FEW = 16  # of them say where the others are worth their time
ENOUGH = 1.1  # of the least mean error: what is within it is about as good
NEXT = 2  # values above and below what is wanted that are simulated in full to be sure
DOUBLINGS = 4  # of what is planned, up and down, where something wanted is looked for


@dataclass(frozen=True, slots=True)
class Need:
    """What a wanted mean error takes on an axis: about `value`, None where it is not reached within `tried`.

    `too_little` is the largest value below it, and `surely` the smallest from it on, of which all trials say
    that with 95 %: the interval of the mean error lies above what is wanted, or not. Either is None where
    none of the two next to `value` does. `best` is the value of the least mean error of those simulated in
    full, which is `least`; `enough` the smallest value that, trial by trial, is not worse than it by more
    than a tenth and one standard error, the rule of [breiman84, sec. 3.4.3] for the simplest of what is about
    as good. `means` has the mean error at every value tried, of all trials or of the first few.
    """

    axis: Axis
    want: float
    estimator: Estimator
    value: float | None
    too_little: float | None
    surely: float | None
    tried: tuple[float, float]
    best: float
    least: ErrorForecast
    enough: float
    means: dict[float, ErrorForecast]


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

    The first 16 of the trials say where to look. All of them are run beside what is wanted, at `best` and at
    `enough`, and again wherever that moves these: every number in the answer is of all trials, and only that
    other values lie elsewhere is judged by 16, times the ratio of all to 16 where both are known. A value
    that no noise can be planned for is taken to fail.
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
    refused: list[InvalidParameter] = []

    def simulated(i: int, count: int) -> ErrorForecast | None:
        if i not in scenes:
            try:
                scenes[i], errors[i] = at(design, axis, grid[i]).scene, []
            except InvalidParameter as problem:  # more noise than can be drawn
                refused.append(problem)
                return None
        errors[i] += [error_of(scenes[i], lot, estimator) for lot in lots[len(errors[i]) : count]]
        return mean_error(estimator, errors[i], later=math.inf)

    def mean(i: int) -> float:
        if i in found:
            return found[i].mean
        if i not in few:
            tell(f"{len(few) + 1} of {len(grid)}" if axis == "sensors" else f"{len(few) + 1} tried")
            some = simulated(i, min(FEW, trials))
            few[i] = math.inf if some is None else some.mean
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
            matter = {least, next((i for i in means if i in errors and enough_at(i, least)), least)}
        else:
            holds, matter = _halved(lambda i: mean(i) <= want, len(grid)), set()
        below, above = range(holds - 1, holds - 1 - NEXT, -1), range(holds, holds + NEXT)
        matter |= _until(below, lambda i: i in found and found[i].low > want)
        matter |= _until(above, lambda i: i in found and found[i].high <= want)
        left = sorted(i for i in matter if 0 <= i < len(grid) and i not in found and mean(i) < math.inf)
        if not left:
            break
        # One at a time: what it says may make the next one needless.
        tell(f"all trials of {len(found) + 1}")
        full = simulated(left[0], trials)
        if full is not None:
            found[left[0]] = full
    if not found:
        raise refused[0]
    least = min(found, key=lambda i: found[i].mean)
    enough = next((i for i in sorted(found) if enough_at(i, least)), least)
    end = partial(
        Need,
        axis,
        want,
        estimator,
        too_little=next((grid[i] for i in below if i in found and found[i].low > want), None),
        surely=next((grid[i] for i in above if i in found and found[i].high <= want), None),
        tried=(grid[0], grid[-1]),
        best=grid[least],
        least=found[least],
        enough=grid[enough],
        means={grid[i]: mean_error(estimator, errors[i], later=math.inf) for i in sorted(errors)},
    )
    if holds == len(grid):
        return end(None)
    if holds - 1 not in found:  # the first, or the first that noise can be planned for
        return end(grid[holds])
    before, after = found[holds - 1], found[holds]
    # All answers exactly right: somewhere between, and nobody knows where.
    last = after.mean if after.mean > 0 else want / 1e3
    return end(crossing((grid[holds - 1], grid[holds]), (before.mean, last), want=want))


def _until(values: range, decided: Callable[[int], bool]) -> set[int]:
    """The values up to the first that is decided."""
    some: set[int] = set()
    for i in values:
        some.add(i)
        if decided(i):
            break
    return some


def _halved(reached: Callable[[int], bool], count: int) -> int:
    """The first of so many that reaches it, if all after it do; the count if none does."""
    fails, holds = -1, count
    while holds - fails > 1:
        middle = (fails + holds) // 2
        fails, holds = (fails, middle) if reached(middle) else (middle, holds)
    return holds


def crossing(x: tuple[float, float], y: tuple[float, float], *, want: float) -> float:
    """Where a line through two points on log scales falls to `want`.

    >>> round(crossing((1.0, 4.0), (8.0, 2.0), want=4.0), 6)
    2.0
    """
    steep = math.log(y[0] / y[1]) / math.log(x[1] / x[0])
    return float(x[0] * (y[0] / want) ** (1 / steep))
