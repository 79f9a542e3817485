"""How good recoveries will be, before anything is deployed: simulated on made-up sources, with intervals."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import stdtrit

from sfumato._types import FloatArray, IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.planning.ratio import ErrorRatio, error_ratio
from sfumato.sensing.recovery.distance import emd_of, error_of_nothing
from sfumato.sensing.recovery.estimators.bayes_median import bayes_median
from sfumato.sensing.recovery.estimators.min_radius import recover_min_radius
from sfumato.sensing.recovery.estimators.posterior import posterior
from sfumato.sensing.recovery.estimators.registry import RecoveryProblem, estimator_named

SyntheticMasses = Literal["known", "free"]
Estimator = str
"""One of `ESTIMATORS`, or the name of an estimator that somebody registered."""

ESTIMATORS: tuple[Estimator, ...] = ("least mass", "bayes median")
FLOOR = 0.3  # free masses are uniform between it and 1
LATER = 400  # trials of the measurement that an interval is for
MAX_TRIALS = 800  # trials of a forecast: where errors vary much, half of them do not do
NARROW = 0.39  # of the mean: how wide an interval may be when trials end
# Of each estimator. Most scenes end with them, so that no interval is taken where trials happened
# to agree.
FEWEST = 400, 100
SLOW, FEWEST_SLOW = 1000, 20  # cells from which on a trial of the Bayes median takes a second
NARROW_SLOW = 0.6  # as `NARROW`, there: the interval says how much is left to chance
BATCH, BATCH_SLOW = 20, 10
MAX_EVEN = 60  # trials of what can be said without a reading: it differs little between them
GUESSING = 0.7  # of the error without any reading: from there on an answer is close to guessing


@dataclass(frozen=True, slots=True)
class Scene:
    """What is simulated: an operator, the noise of a reading, and how many sources of which masses.

    `known` masses are all 1, `free` ones uniform between 0.3 and 1.
    """

    operator: Operator
    sigma: float
    sources: int = 1
    masses: SyntheticMasses = "known"

    def __post_init__(self) -> None:
        if not 0 < self.sigma < math.inf:
            raise InvalidParameter(
                f"sigma must be positive and finite, got {self.sigma}; nothing was simulated"
            )
        if self.masses not in get_args(SyntheticMasses):
            raise InvalidParameter(
                f"made-up masses are 'known' or 'free', got {self.masses!r}; nothing was simulated"
            )
        whole("sources", self.sources, low=1, high=self.operator.space.size)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """All the chance of one trial, for any scene with as many cells and no more sources and sensors."""

    cells: IntArray
    masses: FloatArray
    noise: FloatArray
    rng: Any  # the generator of what else is drawn, by the posterior


@dataclass(frozen=True, slots=True)
class ErrorForecast:
    """The mean error to expect of an estimator, in earth mover's distance of the sources' space.

    A later mean of 400 trials lies between `low` and `high` with 95 %: the interval counts the
    chance of the trials simulated here and of those 400. `deviation` is that of a single error. Of
    all `trials` those that `failed` ended without a proven answer and are left out: the mean is of
    `answers`.
    """

    estimator: Estimator
    mean: float
    low: float
    high: float
    deviation: float
    trials: int
    failed: int = 0

    @property
    def answers(self) -> int:
        """The number of trials that the mean is of."""
        return self.trials - self.failed

    @property
    def width(self) -> float:
        """How wide the interval is, as a share of the mean."""
        return (self.high - self.low) / self.mean if self.mean > 0 else math.inf


@dataclass(frozen=True, slots=True)
class RecoveryForecast:
    """What to expect of the papers' least mass and of the Bayes median, and of saying nothing at all.

    `even` is the mean error of mass spread evenly over all cells. `bayes` is None where that
    estimator does not work (too many cells), and `why_not` then says why. `ratio` compares the two
    in the trials that both ran; it is None where there are none, or where neither was ever wrong.
    `others` are of estimators that somebody registered; `left_out` says why some are not there.
    """

    least_mass: ErrorForecast
    bayes: ErrorForecast | None
    even: float
    why_not: str = ""
    ratio: ErrorRatio | None = None
    others: tuple[ErrorForecast, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def every(self) -> tuple[ErrorForecast, ...]:
        """The forecasts of all estimators that were simulated."""
        own = (self.least_mass,) if self.bayes is None else (self.least_mass, self.bayes)
        return own + self.others

    @property
    def best(self) -> ErrorForecast:
        """The forecast of the estimator that is better here, in the trials that both ran."""
        if self.bayes is None or (self.ratio is not None and self.ratio.better == "least mass"):
            return self.least_mass
        return self.bayes

    @property
    def useless(self) -> bool:
        """Whether even the better answer is not much better than no reading at all, or worse."""
        return self.best.mean >= GUESSING * self.even


def forecast_recovery(
    scene: Scene,
    *,
    rng: np.random.Generator,
    max_trials: int = MAX_TRIALS,
    estimators: Sequence[Estimator] = ESTIMATORS,
    progress: Callable[[str], None] | None = None,
) -> RecoveryForecast:
    """What error to expect on a site before it is built: simulated until the answer is narrow enough.

    Sources are in random cells, noise is Gaussian. There are 400 trials of the least mass and 100
    of the Bayes median (20 from 1,000 cells on, where one takes a second), and more where the
    interval of the mean would be wider than 39 % of it (60 % there); at most `max_trials`. The least mass is
    quick, so it runs at least as often, on the same sources and noise, and its errors steady those
    of the other (by regression in double sampling [cochran77, ch. 12]). To leave the Bayes median
    out, name the least mass alone among `estimators`.

    Limits. It forecasts the mean over random places and over noise, for sources that are as the
    scene says and physics that is as the operator says. Single answers vary much more: by
    `deviation`. Where trials go on until the interval is narrow, it holds a little less often than
    95 %.

    Args:
        scene: What is simulated.
        rng: Where sources and noise come from.
        max_trials: At most so many trials of each estimator, from 2 to 100,000; 800 unless given.
        estimators: Which estimators to simulate: of `ESTIMATORS`, or names of registered ones. The least
            mass always is; both of `ESTIMATORS` unless given.
        progress: Is told after every batch of trials; None means nobody.

    Returns:
        The mean errors with their intervals, in the unit of the space, beside that of mass spread
        evenly; where there is none of the Bayes median, why not.

    Raises:
        InvalidParameter: `max_trials` is out of its range.

    >>> from sfumato.sensing.model.operators.heat_line import heat_line
    >>> line = heat_line(sources=20, sensors=8, diffusion_time=0.05)
    >>> found = forecast_recovery(Scene(line, 0.05), rng=np.random.default_rng(1), max_trials=4)
    >>> found.best.mean < found.even / 5, found.useless
    (True, False)
    """
    limit = whole("trials", max_trials, low=2, high=100_000)
    tell = progress or (lambda _: None)
    trials: list[Trial] = []
    errors: dict[Estimator, list[float]] = {name: [] for name in (*ESTIMATORS, *estimators)}

    quick, slow = ESTIMATORS
    large = scene.operator.space.size >= SLOW

    def more(name: Estimator) -> None:
        begin = len(errors[name])
        end = min(limit, begin + (BATCH_SLOW if large and name == slow else BATCH))
        if end > len(trials):
            trials.extend(draw_trials(scene, end - len(trials), rng=rng))
        errors[name] += [error_of(scene, trial, name) for trial in trials[begin:end]]
        tell(f"{name}: {end} trials")

    while True:
        more(quick)
        least_mass = mean_error(quick, errors[quick])
        if _enough(least_mass, limit, FEWEST[0]):
            break
    bayes, why_not = None, "" if slow in estimators else "it was not asked for"
    try:
        fewest, narrow = (FEWEST_SLOW, NARROW_SLOW) if large else (FEWEST[1], NARROW)
        while slow in estimators and (
            bayes is None or not _enough(bayes, limit, fewest, narrow=narrow)
        ):
            more(slow)
            if len(errors[quick]) < len(errors[slow]):
                more(quick)
            bayes = mean_error(slow, errors[slow], beside=errors[quick])
    except InvalidParameter as problem:  # too many cells: said by the posterior itself
        why_not = str(problem).partition(";")[0]
    others, left_out = list[ErrorForecast](), list[tuple[str, str]]()
    for name in (one for one in estimators if one not in ESTIMATORS):
        try:
            why, found = estimator_named(name).unsuitable(scene.operator, scene.sigma), None
            while not why and (found is None or not _enough(found, limit, FEWEST[1])):
                more(name)
                found = mean_error(name, errors[name])
        except Exception as problem:  # somebody else's code: theirs fails, not the plan
            why, found = str(problem) or type(problem).__name__, None
        others += [] if found is None else [found]
        left_out += [(name, why)] if why else []
    even = [
        error_of_nothing(scene.operator, sources_of(scene, trial)) for trial in trials[:MAX_EVEN]
    ]
    ratio = None if bayes is None else error_ratio({name: errors[name] for name in ESTIMATORS})
    return RecoveryForecast(
        least_mass, bayes, float(np.mean(even)), why_not, ratio, tuple(others), tuple(left_out)
    )


def _enough(found: ErrorForecast, limit: int, fewest: int, *, narrow: float = NARROW) -> bool:
    return found.trials >= limit or (found.trials >= fewest and found.width <= narrow)


def draw_trials(
    scene: Scene,
    count: int,
    *,
    rng: np.random.Generator,
    sources: int | None = None,
    sensors: int | None = None,
) -> list[Trial]:
    """The chance of so many trials, for as many sources and sensors: those of the scene unless given.

    The same trials in two scenes are common random numbers: what differs between them is not chance.

    Args:
        scene: What is simulated.
        count: How many trials.
        rng: Where chance comes from; each trial has a generator of its own, spawned from it.
        sources: Draw places and masses for so many sources; never fewer than the scene has, nor
            more than it has cells. None means as many as the scene has.
        sensors: Draw noise for so many sensors; never fewer than the scene has. None means as many.

    Returns:
        The chance of each trial, for `error_of`.
    """
    cells = scene.operator.space.size
    k = min(cells, max(sources or 0, scene.sources))
    m = max(sensors or 0, len(scene.operator.sensors))
    return [
        Trial(
            one.choice(cells, k, replace=False),
            FLOOR + (1 - FLOOR) * one.random(k),
            one.standard_normal(m),
            one,
        )
        for one in rng.spawn(count)
    ]


def error_of(scene: Scene, trial: Trial, estimator: Estimator | str) -> float:
    """How far one simulated answer is off: nan where the solver could not prove it.

    Least mass: infeasible draws are recovered at the smallest feasible radius, and an answer
    without mass counts as mass spread evenly. Other estimators are called by their registered name.

    Args:
        scene: What is simulated.
        trial: The chance of one trial, for as many cells and at least as many sources and sensors.
        estimator: "least mass", "bayes median", or the name of a registered estimator.

    Returns:
        The earth mover's distance from the true sources, in the unit of the space; nan where the
        solver could not prove its answer.
    """
    truth = sources_of(scene, trial)
    y = scene.operator.readings(truth) + scene.sigma * trial.noise[: len(scene.operator.sensors)]
    try:
        if estimator == "bayes median":
            # A copy, so that the same trial is the same chance again.
            beliefs = posterior(scene.operator, y, sigma=scene.sigma, rng=copy.deepcopy(trial.rng))
            return emd_of(bayes_median(beliefs), truth)
        found = recover_min_radius(scene.operator, y, sigma=scene.sigma)
        if estimator in ESTIMATORS:
            if found.status == "optimal":
                return emd_of(found, truth)
        else:
            chance = copy.deepcopy(trial.rng)
            problem = RecoveryProblem(scene.operator, y, scene.sigma, 1.0, found, chance)
            answer = estimator_named(estimator).estimate(problem).estimate
            if answer.masses.any():
                return emd_of(answer, truth)
        return error_of_nothing(scene.operator, truth)
    except SolverFailed:
        return math.nan


def sources_of(scene: Scene, trial: Trial) -> FloatArray:
    """The sources that a trial means in a scene."""
    truth = np.zeros(scene.operator.space.size)
    k = scene.sources
    truth[trial.cells[:k]] = trial.masses[:k] if scene.masses == "free" else 1.0
    return truth


def mean_error(
    estimator: Estimator,
    errors: Sequence[float],
    *,
    beside: Sequence[float] = (),
    later: float = LATER,
) -> ErrorForecast:
    """The mean of errors, with an interval that holds a later mean of so many trials with 95 %.

    `beside` are errors of a quicker estimator in the same trials, and perhaps in more: with n and N
    of them, slope b and correlation r, the mean moves by b (their mean of N - of n), and its
    variance is s**2 ((1 - r**2) / n + r**2 / N) [cochran77, ch. 12]. To it comes s**2 / later. The
    interval is even on a log scale: a few large errors make most of a mean, and when too few of
    them are drawn both mean and spread come out too small. `later` may be inf, for the mean itself.

    >>> found = mean_error("least mass", [1.0, 2.0, 3.0, 4.0] * 25)
    >>> round(found.mean, 2), round(found.low, 2), round(found.high, 2)
    (2.5, 2.26, 2.76)
    """
    values = np.asarray(errors, dtype=np.float64)
    proven = np.isfinite(values)
    failed = int(values.size - proven.sum())
    if proven.sum() < 2:
        raise SolverFailed(
            f"a mean needs two answers, {failed} of {values.size} trials had none; nothing was forecast"
        )
    size, mean = int(proven.sum()), float(values[proven].mean())
    deviation = float(values[proven].std(ddof=1))
    variance, freedom = deviation**2 / size, size - 1
    control = np.asarray(beside, dtype=np.float64)
    both = proven & np.isfinite(control[: values.size]) if control.size else np.zeros(0, dtype=bool)
    if both.sum() >= 2 * BATCH and control[: values.size][both].std() > 0 and deviation > 0:
        here, there = values[both], control[: values.size][both]
        all_of_it = control[np.isfinite(control)]
        r = float(np.corrcoef(here, there)[0, 1])
        moved = float(
            here.mean() + r * here.std() / there.std() * (all_of_it.mean() - there.mean())
        )
        less = deviation**2 * ((1 - r**2) / both.sum() + r**2 / all_of_it.size)
        if moved > 2 * math.sqrt(less):  # a line through few errors may go to 0, and below
            mean, variance, freedom = moved, less, int(both.sum()) - 2
    if mean <= 0:  # every answer was exact: how rare the others are cannot be told from these
        return ErrorForecast(estimator, 0.0, 0.0, math.inf, deviation, int(values.size), failed)
    far = float(stdtrit(freedom, 0.975)) * math.sqrt(variance + deviation**2 / later) / mean
    # exp(10) is no interval any more, and exp(1000) no number.
    stretch = math.exp(min(far, 10.0))
    return ErrorForecast(
        estimator, mean, mean / stretch, mean * stretch, deviation, int(values.size), failed
    )
