"""The other way round: the sensors, or the epsilon, that a wanted error takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.sensing.planning.design import Axis, Design, at, counts_on, shared_trials
from sfumato.sensing.planning.forecast import (
    ErrorForecast,
    Estimator,
    Scene,
    Trial,
    error_of,
    mean_error,
)

TARGET_TRIALS = 36
FEW = 12  # of them say where the others are worth their time
ENOUGH = 1.1  # of the least mean error: what is within it is about as good
NEXT = 2  # values above and below what is wanted that are simulated in full to be sure
HOPELESS = (
    2.0  # times what is wanted: where the first trials leave more everywhere, it is a plain no
)
DOUBLINGS = 4  # of what is planned, up and down, where something wanted is looked for


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a wanted mean error takes on an axis: about `value`, None where it is not reached within `tried`.

    `too_little` is the largest value below it, and `surely` the smallest from it on, of which all
    trials say that with 95 %: the interval of the mean error lies above what is wanted, or not.
    Either is None where none of those simulated in full does. `tried` are the ends of what was
    simulated.

    `best` is the value of the least mean error of those simulated in full, which is `best_error`;
    `enough` the smallest value that, trial by trial, is not worse than it by more than a tenth and
    one standard error, the rule of [breiman84, sec. 3.4.3] for the simplest of what is about as
    good; with fewer than 12 trials it is `best`. `means` has the mean error at every value tried,
    of all trials or of the first few.
    """

    axis: Axis
    target: float
    estimator: Estimator
    value: float | None
    too_little: float | None
    surely: float | None
    tried: tuple[float, float]
    best: float
    best_error: ErrorForecast
    enough: float
    means: dict[float, ErrorForecast]


def required(
    design: Design,
    axis: Literal["sensors", "cost"],
    target: float,
    *,
    rng: np.random.Generator,
    estimator: Estimator = "bayes median",
    trials: int = TARGET_TRIALS,
    progress: Callable[[str], None] | None = None,
) -> Requirement:
    """How many sensors, or how much epsilon, a wanted mean error takes, the rest as designed.

    From 1/16 to 16 times what is planned, by doublings, on the same sources and noise; then a
    straight line between two of them on log scales. More sensors need more noise, and soon buy
    nothing: all their doublings are tried, and `enough` says from where on. Errors fall with
    epsilon, so there the range is halved.

    The first 12 of the trials say where to look. All of them are run beside what is wanted, at
    `best` and at `enough`, and again wherever that moves these: every number in the answer is of
    all trials, and only that other values lie elsewhere is judged by 12, times the ratio of all to
    12 where both are known. A value that no noise can be planned for is taken to fail. Where the
    first 12 say of all values that errors are twice what is wanted or more, with 95 %, that is the
    answer, and all trials are run at the best of them alone.

    Args:
        design: The site, what one reading of it may cost, and the sources to expect.
        axis: What may change: "sensors", their number, or "cost", the epsilon or rho of one
            reading.
        target: The mean error that is wanted, in the unit of the space; above 0.
        rng: Where sources and noise come from; it is copied.
        estimator: Whose errors count: "bayes median" unless given, or "least mass".
        trials: How many trials the numbers in the answer are of, at least 2; 36 unless given.
        progress: Is told what is being tried; None means nobody.

    Returns:
        What the target takes, between what surely does and what is too little; None for it where
        nothing that was tried reaches the target.

    Raises:
        InvalidParameter: `target` or `trials` is out of its range, the site fixes its sensors, or
            no noise can be planned for any value; nothing was simulated.
    """
    if not 0 < target < math.inf:
        raise InvalidParameter(
            f"a wanted error is positive and finite, got {target}; nothing was simulated"
        )
    whole("trials", trials, low=2)
    now = design.value(axis)
    doubled = [now * 2.0**i for i in range(-DOUBLINGS, DOUBLINGS + 1)]
    grid = counts_on(design, doubled) if axis == "sensors" else tuple(doubled)
    if not grid:
        raise InvalidParameter(f"a site by a matrix has no other {axis}; nothing was simulated")
    drawn = shared_trials(design, grid[-1] if axis == "sensors" else 0.0, trials, rng)
    tried = _Tried(design, axis, grid, drawn, estimator, progress or (lambda _: None))
    while True:
        # More sensors may be worse than some, so all are tried; with epsilon errors fall.
        if axis == "sensors":
            means = [tried.mean(i) for i in range(len(grid))]
            holds = next((i for i, mean in enumerate(means) if mean <= target), len(grid))
            least = int(np.argmin(means))
            matter = {least, tried.enough(least)}
        else:
            holds, matter = _halved(lambda i: tried.mean(i) <= target, len(grid)), set()
        below, above = range(holds - 1, holds - 1 - NEXT, -1), range(holds, holds + NEXT)
        matter |= _until(below, lambda i: tried.fails(i, target))
        matter |= _until(above, lambda i: tried.reaches(i, target))
        if holds == len(grid) and tried.hopeless(target):
            matter = {least} if axis == "sensors" else {len(grid) - 1}
        left = [i for i in sorted(matter) if 0 <= i < len(grid) and i not in tried.full]
        left = [i for i in left if tried.mean(i) < math.inf]
        if not left:
            break
        tried.finish(left[0])  # one at a time: what it says may make the next one needless
    if not tried.full:
        raise tried.refused[0]
    least = min(tried.full, key=lambda i: tried.full[i].mean)
    end = partial(
        Requirement,
        axis,
        target,
        estimator,
        too_little=max(
            (grid[i] for i in tried.full if i < holds and tried.fails(i, target)), default=None
        ),
        surely=min(
            (grid[i] for i in tried.full if i >= holds and tried.reaches(i, target)), default=None
        ),
        tried=(grid[min(tried.errors)], grid[max(tried.errors)]),
        best=grid[least],
        best_error=tried.full[least],
        enough=grid[tried.enough(least, among=tried.full)],
        means={grid[i]: tried.forecast(i) for i in sorted(tried.errors)},
    )
    if holds == len(grid):
        return end(None)
    if holds - 1 not in tried.full:  # the first, or the first that noise can be planned for
        return end(grid[holds])
    before, after = tried.full[holds - 1], tried.full[holds]
    # All answers exactly right: somewhere between, and nobody knows where.
    last = after.mean if after.mean > 0 else target / 1e3
    return end(crossing((grid[holds - 1], grid[holds]), (before.mean, last), target=target))


@dataclass(slots=True)
class _Tried:
    """What has been simulated so far, so that nothing is simulated twice: errors by number of the grid.

    `few` are means of the first trials, inf where no noise can be planned; `full` forecasts of all
    of them.
    """

    design: Design
    axis: Axis
    grid: tuple[float, ...]
    drawn: list[Trial]
    estimator: Estimator
    tell: Callable[[str], None]
    scenes: dict[int, Scene] = field(default_factory=dict)
    errors: dict[int, list[float]] = field(default_factory=dict)
    few: dict[int, float] = field(default_factory=dict)
    full: dict[int, ErrorForecast] = field(default_factory=dict)
    refused: list[InvalidParameter] = field(default_factory=list)

    def mean(self, i: int) -> float:
        """The mean error of all trials, or as far as the first of them tell."""
        if i in self.full:
            return self.full[i].mean
        if i not in self.few:
            number = len(self.few) + 1
            self.tell(
                f"{number} of {len(self.grid)}" if self.axis == "sensors" else f"{number} tried"
            )
            self.few[i] = self._begin(i)
        known = sum(self.few[j] for j in self.full)
        return self.few[i] * (
            sum(one.mean for one in self.full.values()) / known if known > 0 else 1.0
        )

    def _begin(self, i: int) -> float:
        try:
            self.scenes[i] = at(self.design, self.axis, self.grid[i]).scene
        except InvalidParameter as problem:  # more noise than can be drawn
            self.refused.append(problem)
            return math.inf
        self.errors[i] = []
        self._simulate(i, FEW)
        return self.forecast(i).mean

    def _simulate(self, i: int, count: int) -> None:
        left = self.drawn[len(self.errors[i]) : count]
        self.errors[i] += [error_of(self.scenes[i], trial, self.estimator) for trial in left]

    def finish(self, i: int) -> None:
        """All trials at a value."""
        self.tell(f"all trials of {len(self.full) + 1}")
        self._simulate(i, len(self.drawn))
        self.full[i] = self.forecast(i)

    def forecast(self, i: int) -> ErrorForecast:
        """The mean error of the trials so far, with its interval."""
        return mean_error(self.estimator, self.errors[i], later=math.inf)

    def hopeless(self, target: float) -> bool:
        """Whether errors are far above what is wanted at every value that was looked at."""
        return all(self.forecast(i).low > HOPELESS * target for i in self.errors)

    def fails(self, i: int, target: float) -> bool:
        """Whether all trials say that a value is too little."""
        return i in self.full and self.full[i].low > target

    def reaches(self, i: int, target: float) -> bool:
        """Whether all trials say that a value is enough."""
        return i in self.full and self.full[i].high <= target

    def enough(self, least: int, *, among: Iterable[int] | None = None) -> int:
        """The first that is not worse than the best by more than a tenth and a standard error, in pairs."""
        for i in sorted(self.errors if among is None else among):
            some = min(len(self.errors[i]), len(self.errors[least]))
            more = np.array(self.errors[i][:some]) - ENOUGH * np.array(self.errors[least][:some])
            more = more[np.isfinite(more)]
            if more.size >= FEW and more.mean() <= more.std(ddof=1) / math.sqrt(more.size):
                return i
        return least


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


def crossing(x: tuple[float, float], y: tuple[float, float], *, target: float) -> float:
    """Where a line through two points on log scales falls to `target`.

    >>> round(crossing((1.0, 4.0), (8.0, 2.0), target=4.0), 6)
    2.0
    """
    steep = math.log(y[0] / y[1]) / math.log(x[1] / x[0])
    return float(x[0] * (y[0] / target) ** (1 / steep))
