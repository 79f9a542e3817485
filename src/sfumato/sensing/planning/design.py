"""What more sensors, more epsilon or another time would buy: one design changed in one number at a time."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, assert_never, get_args

import numpy as np
from scipy.special import stdtrit

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.site import Site
from sfumato.sensing.planning.forecast import (
    ESTIMATORS,
    ErrorForecast,
    Estimator,
    Scene,
    SyntheticMasses,
    Trial,
    draw_trials,
    error_of,
    mean_error,
    sources_of,
)
from sfumato.sensing.planning.papers_bounds import papers_bounds
from sfumato.sensing.recovery.distance import error_of_nothing
from sfumato.sensing.release.noise_plan import Calibration, NoisePlan, SensorLoss
from sfumato.sensing.release.readings import plan

Axis = Literal["diffusion time", "sensors", "cost", "sources"]

AXES: tuple[Axis, ...] = get_args(Axis)
CURVE_TRIALS = {"least mass": 60, "bayes median": 24}
TIMES, SOME, COSTS = (-4, -3, -2, -1, 0, 1, 2), (-4, -3, -2, -1, 0, 1, 2, 3), (-3, -2, -1, 0, 1, 2)
COUNTS = (1, 2, 4, 8)
QUICK = 400  # sensors: recoveries from more are slow, so a curve that meets them ends with twice as many


@dataclass(frozen=True, slots=True)
class Design:
    """A site, what one reading of it may cost, and the sources to expect on it."""

    site: Site
    loss: SensorLoss
    sources: int = 1
    masses: SyntheticMasses = "known"
    calibration: Calibration = "analytic"

    @property
    def noise(self) -> NoisePlan:
        """The noise that the loss takes."""
        return plan(self.site, self.loss, calibration=self.calibration)

    @property
    def scene(self) -> Scene:
        """What is simulated for this design."""
        return Scene(self.site.operator, self.noise.sigma, self.sources, self.masses)

    @property
    def cost(self) -> float:
        """The epsilon of one reading, or its rho."""
        return float(self.loss.rho if isinstance(self.loss, ZCDP) else self.loss.epsilon)

    @property
    def time(self) -> float | None:
        """The diffusion time, the rate on a graph, None for a matrix."""
        return self.site.operator.time

    def value(self, axis: Axis) -> float:
        """Where this design stands on an axis."""
        match axis:
            case "diffusion time":
                return self.time or math.nan
            case "sensors":
                return float(len(self.site.sensors))
            case "cost":
                return self.cost
            case "sources":
                return float(self.sources)


def at(design: Design, axis: Axis, value: float) -> Design:
    """The same design with one number changed.

    Other numbers of sensors stand evenly: on a line at L/m, 2L/m, ..., L from where it begins (see
    `begin_of`), in a plane in rows (see `even_places`), on a graph at nodes evenly spaced by
    number. A matrix is of its own sensors and its own time.
    """
    match axis:
        case "cost":
            return replace(design, loss=_loss(design.loss, value))
        case "sources":
            return replace(design, sources=int(value))
        case "sensors" if value == len(design.site.sensors):
            return design
        case "sensors":
            return _with_operator(design, design.site.operator.with_sensors(int(value)))
        case "diffusion time":
            return _with_operator(design, design.site.operator.with_time(value))
        case _:
            assert_never(axis)


def _with_operator(design: Design, operator: Operator) -> Design:
    return replace(design, site=replace(design.site, operator=operator))


def values_on(design: Design, axis: Axis) -> tuple[float, ...]:
    """The values of a curve: doublings of what is planned; empty where the site fixes it.

    Sensors up to 8 times what is planned, but beyond twice as many no more than 400, which are slow
    to try.

    From the smallest to the largest; of sources a few counts and that of the design, up to the number of
    cells. "cost" is epsilon or rho of one reading.
    """
    now = design.value(axis)
    match axis:
        case "diffusion time":
            return () if design.time is None else tuple(now * 2.0**i for i in TIMES)
        case "sensors":
            return counts_on(
                design, [now * 2.0**i for i in SOME if i <= 1 or now * 2.0**i <= QUICK]
            )
        case "cost":
            return tuple(now * 2.0**i for i in COSTS)
        case "sources":
            most = design.site.operator.space.size
            return tuple(float(k) for k in sorted({*COUNTS, design.sources}) if k <= most)


def counts_on(design: Design, wanted: Sequence[float]) -> tuple[float, ...]:
    """About so many sensors, as a site like this can have them; empty for a matrix."""
    counts = {design.site.operator.sensor_count(one) for one in wanted}
    return tuple(sorted(float(one) for one in counts if one is not None))


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Errors along an axis, on the same made-up sources and noise at each value.

    `errors` are those of single trials, for each estimator a row for each value; the forecasts'
    intervals are of the mean itself. `nothing` are the errors of no reading at all in the same
    trials, for as many sources as the design has. `best_by` is the estimator whose errors say which
    value is best.
    """

    axis: Axis
    values: tuple[float, ...]
    errors: dict[Estimator, FloatArray]
    forecasts: dict[Estimator, tuple[ErrorForecast, ...]]
    upper: tuple[float | None, ...]
    lower: tuple[float | None, ...]
    nothing: FloatArray
    best_by: Estimator = "bayes median"

    @property
    def best(self) -> float:
        """Where the mean error of the estimator that decides is least."""
        return self.values[int(np.nanmean(self._errors, axis=1).argmin())]

    @property
    def as_good(self) -> tuple[float, ...]:
        """The best, and all values that are as good within chance.

        As good is a value whose errors are, trial by trial, not larger by more than chance (95 %).
        """
        more, far = _apart(self._errors - self._errors[self.values.index(self.best)])
        return tuple(self.values[i] for i in np.flatnonzero(more <= far).tolist())

    @property
    def helps(self) -> bool:
        """Whether the best is better than no reading at all, trial by trial, by more than chance (95 %)."""
        here = self._errors[self.values.index(self.best)]
        more, far = _apart(here[np.newaxis] - self.nothing[: here.size])
        return bool(more[0] < -far[0])

    @property
    def _errors(self) -> FloatArray:
        return self.errors[self.best_by]


def _apart(differences: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means of rows of paired differences, and half of their 95 % intervals."""
    trials = np.isfinite(differences).sum(axis=1)
    spread = np.nanstd(differences, axis=1, ddof=1) / np.sqrt(trials)
    return np.nanmean(differences, axis=1), np.asarray(stdtrit(trials - 1, 0.975) * spread)


def error_curve(
    design: Design,
    axis: Axis,
    *,
    rng: np.random.Generator,
    trials: int | None = None,
    estimators: Sequence[Estimator] = ESTIMATORS,
    best_by: Estimator | None = None,
    progress: Callable[[str], None] | None = None,
) -> Curve:
    """How the error moves with one number of a design, for seeing what more of it would buy.

    At most `trials` of each estimator at each value, 60 of the least mass and 24 of the Bayes
    median unless given: fewer than for a forecast, and the same sources and noise at each value, so
    that a curve is smooth where its whiskers are wide. The generator is not moved on: all curves of
    a design that are made with it meet where the design stands. Values that no noise can be planned
    for are left out. The best value is that of the estimator `best_by`, the last of those simulated
    unless given: name the one whose answers will be used.

    The generator is copied. Errors are in the unit of the space, beside the papers' bounds.
    """
    wanted = values_on(design, axis)
    if not wanted:
        raise InvalidParameter(f"a site by a matrix has no other {axis}; no curve was drawn")
    decides = best_by or estimators[-1]
    if decides not in estimators:
        raise InvalidParameter(
            f"the best is told by an estimator that is simulated, got {decides!r}; no curve was drawn"
        )
    tell = progress or (lambda _: None)
    values, designs, scenes = _planned(design, axis, wanted)
    count = {name: min(trials or most, most) for name, most in CURVE_TRIALS.items()}
    many = max(values_on(design, "sensors"), default=0.0)
    drawn = shared_trials(design, many, max(count.values()), rng)
    errors: dict[Estimator, FloatArray] = {}
    for name in estimators:
        rows = []
        for number, scene in enumerate(scenes, 1):
            tell(f"{name}, {number} of {len(values)}")
            rows.append([error_of(scene, trial, name) for trial in drawn[: count[name]]])
        errors[name] = np.array(rows)
    here = Scene(design.site.operator, 1.0, design.sources, design.masses)
    nothing = [error_of_nothing(here.operator, sources_of(here, trial)) for trial in drawn]
    bounds = [papers_bounds(scene, one.loss) for scene, one in zip(scenes, designs, strict=True)]
    return Curve(
        axis,
        values,
        errors,
        {
            name: tuple(mean_error(name, row, later=math.inf) for row in rows.tolist())
            for name, rows in errors.items()
        },
        tuple(one.upper for one in bounds),
        tuple(one.lower for one in bounds),
        np.array(nothing),
        decides,
    )


def _planned(
    design: Design, axis: Axis, wanted: Sequence[float]
) -> tuple[tuple[float, ...], list[Design], list[Scene]]:
    """The values for which noise can be planned, the designs there, and what is simulated of each."""
    values, designs, scenes = [], [], []
    here = design.scene
    for value in wanted:
        other = at(design, axis, value)
        try:
            # Other sources need no other noise, and planning is slow.
            scene = replace(here, sources=other.sources) if axis == "sources" else other.scene
        except InvalidParameter:
            continue
        values.append(value)
        designs.append(other)
        scenes.append(scene)
    return tuple(values), designs, scenes


def shared_trials(design: Design, most: float, count: int, rng: np.random.Generator) -> list[Trial]:
    """Chance for up to so many sensors and all counts of sources: the same for the same generator."""
    sensors = max(int(most), len(design.site.sensors))
    # A copy, so that all curves of a design are of the same sources and meet where it stands.
    any_noise = Scene(
        design.site.operator, 1.0, design.sources
    )  # trials are without it, and planning is slow
    return draw_trials(
        any_noise,
        count,
        rng=copy.deepcopy(rng),
        sources=max(*COUNTS, design.sources),
        sensors=sensors,
    )


def _loss(loss: SensorLoss, value: float) -> SensorLoss:
    exact = Fraction(value)
    match loss:
        case ApproxDP(_, delta):
            return ApproxDP(exact, delta)
        case ZCDP():
            return ZCDP(exact)
        case PureDP():
            return PureDP(exact)
