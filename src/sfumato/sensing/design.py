"""What more sensors, more epsilon or another time would buy: one design changed in one number at a time."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Literal, assert_never

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, ApproxDP
from sfumato.sensing.build import graph_diffusion, heat_line, heat_plane
from sfumato.sensing.forecast import (
    ESTIMATORS,
    ErrorForecast,
    Estimator,
    Lot,
    MadeUpMasses,
    Scene,
    draw_lots,
    error_of,
    mean_error,
)
from sfumato.sensing.operators import GraphDiffusion, HeatLine, HeatPlane, Matrix
from sfumato.sensing.papers_bounds import papers_bounds
from sfumato.sensing.plan import Calibration, NoisePlan
from sfumato.sensing.readings import plan
from sfumato.sensing.sensors import Sensors
from sfumato.sensing.site import Site
from sfumato.spaces import Grid
from sfumato.spaces.space import FloatArray, whole

Axis = Literal["diffusion time", "sensors", "cost", "sources"]

CURVE_TRIALS = {"least mass": 60, "bayes median": 24}
WANTED_TRIALS = 40
ENOUGH = 1.1  # of the least mean error: what is within it is about as good
DOUBLINGS = 4  # of what is planned, up and down, where something wanted is looked for
TIMES, SOME, COSTS = (-4, -3, -2, -1, 0, 1, 2), (-4, -3, -2, -1, 0, 1), (-3, -2, -1, 0, 1, 2)
COUNTS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Design:
    """A site, what one reading of it may cost, and the sources to expect on it."""

    site: Site
    loss: ZCDP | ApproxDP
    sources: int = 1
    masses: MadeUpMasses = "known"
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
        return float(self.loss.epsilon if isinstance(self.loss, ApproxDP) else self.loss.rho)

    @property
    def time(self) -> float | None:
        """The diffusion time, the rate on a graph, None for a matrix."""
        match self.site.operator:
            case HeatLine() | HeatPlane() as heat:
                return heat.diffusion_time
            case GraphDiffusion() as graph:
                return graph.rate
            case Matrix():
                return None

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

    Other numbers of sensors stand evenly: on a line at L/m, 2L/m, ..., L, in a plane in the middle of m
    equal boxes (m rounded to a square), on a graph at nodes evenly spaced by number. A matrix is of its own
    sensors and its own time.
    """
    match axis:
        case "cost":
            return replace(design, loss=_loss(design.loss, value))
        case "sources":
            return replace(design, sources=int(value))
        case "sensors" if value == len(design.site.sensors):
            return design
        case "sensors":
            return replace(design, site=_with_sensors(design.site, int(value)))
        case "diffusion time":
            return replace(design, site=_with_time(design.site, value))
        case _:
            assert_never(axis)


def values_on(design: Design, axis: Axis) -> tuple[float, ...]:
    """The values of a curve: doublings of what is planned; empty where the site fixes it."""
    now = design.value(axis)
    match axis:
        case "diffusion time":
            return () if design.time is None else tuple(now * 2.0**i for i in TIMES)
        case "sensors":
            return _counts(design, [now * 2.0**i for i in SOME])
        case "cost":
            return tuple(now * 2.0**i for i in COSTS)
        case "sources":
            most = design.site.operator.space.size
            return tuple(float(k) for k in sorted({*COUNTS, design.sources}) if k <= most)


def _counts(design: Design, wanted: Sequence[float]) -> tuple[float, ...]:
    operator = design.site.operator
    if isinstance(operator, Matrix):
        return ()
    most = operator.space.size if isinstance(operator, GraphDiffusion) else math.inf
    counts = [min(max(2, round(one)), most) for one in wanted]
    if isinstance(operator, HeatPlane):  # squares, but for the sensors that are there
        here = len(design.site.sensors)
        counts = [one if one == here else max(2, round(math.sqrt(one))) ** 2 for one in counts]
    return tuple(float(one) for one in sorted(set(counts)))


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Errors along an axis, on the same made-up sources and noise at each value.

    `errors` are those of single trials, for each estimator a row for each value; the forecasts' intervals
    are of the mean itself.
    """

    axis: Axis
    values: tuple[float, ...]
    errors: dict[Estimator, FloatArray]
    forecasts: dict[Estimator, tuple[ErrorForecast, ...]]
    upper: tuple[float | None, ...]
    lower: tuple[float | None, ...]

    @property
    def best(self) -> tuple[float, float, float]:
        """Where the error of the last estimator is least, and the ends of what is as good within chance.

        As good is a value whose errors are, trial by trial, not larger by more than two standard errors.
        """
        errors = self.errors[list(self.errors)[-1]]
        least = int(np.nanmean(errors, axis=1).argmin())
        more = errors - errors[least]
        trials = np.isfinite(more).sum(axis=1)
        spread = np.nanstd(more, axis=1, ddof=1) / np.sqrt(trials)
        as_good = np.flatnonzero(np.nanmean(more, axis=1) <= 2 * spread)
        return self.values[least], self.values[as_good[0]], self.values[as_good[-1]]


def error_curve(
    design: Design,
    axis: Axis,
    *,
    rng: np.random.Generator,
    trials: int | None = None,
    estimators: Sequence[Estimator] = ESTIMATORS,
    progress: Callable[[str], None] | None = None,
) -> Curve:
    """How the error moves with one number of a design, for seeing what more of it would buy.

    At most `trials` of each estimator at each value, 60 of the least mass and 24 of the Bayes median unless
    given: fewer than for a forecast, and the same sources and noise at each value, so that a curve is
    smooth where its whiskers are wide. The generator is not moved on: all curves of a design that are made
    with it meet where the design stands.
    """
    values = values_on(design, axis)
    if not values:
        raise InvalidParameter(f"a site by a matrix has no other {axis}; no curve was drawn")
    designs = [at(design, axis, value) for value in values]
    if axis == "sources":  # they need no other noise
        scene = design.scene
        scenes = [replace(scene, sources=one.sources) for one in designs]
    else:
        scenes = [one.scene for one in designs]
    count = {name: min(trials or most, most) for name, most in CURVE_TRIALS.items()}
    many = max(values_on(design, "sensors"), default=0.0)
    lots = _shared_lots(design, many, max(count.values()), rng)
    errors: dict[Estimator, FloatArray] = {}
    for name in estimators:
        rows = []
        for value, scene in zip(values, scenes, strict=True):
            rows.append([error_of(scene, lot, name) for lot in lots[: count[name]]])
            if progress is not None:
                progress(f"{axis} {value:.3g}: {name}")
        errors[name] = np.array(rows)
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
    )


def _shared_lots(design: Design, most: float, count: int, rng: np.random.Generator) -> list[Lot]:
    """Chance for up to so many sensors and all counts of sources: the same for the same generator."""
    sensors = max(int(most), len(design.site.sensors))
    # A copy, so that all curves of a design are of the same sources and meet where it stands.
    any_noise = Scene(design.site.operator, 1.0, design.sources)  # lots are without it, and planning is slow
    return draw_lots(
        any_noise, count, rng=copy.deepcopy(rng), sources=max(*COUNTS, design.sources), sensors=sensors
    )


@dataclass(frozen=True, slots=True)
class Need:
    """What a wanted mean error takes on an axis; None where it is not reached within `tried`.

    `low` and `high` are the ends of a 95 % interval of `value`, from the chance of the trials alone, cut at
    what was tried. `best` is the value of the least mean error of those simulated, which is `least`; `enough`
    the smallest value whose mean is within a tenth of it: beyond, more buys little.
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
    are simulated, and `enough` says from where on. Errors fall with epsilon, so there the range is halved.
    """
    if not 0 < want < math.inf:
        raise InvalidParameter(f"a wanted error is positive and finite, got {want}; nothing was simulated")
    whole("trials", trials, low=2)
    now = design.value(axis)
    doubled = [now * 2.0**i for i in range(-DOUBLINGS, DOUBLINGS + 1)]
    grid = _counts(design, doubled) if axis == "sensors" else tuple(doubled)
    if not grid:
        raise InvalidParameter(f"a site by a matrix has no other {axis}; nothing was simulated")
    lots = _shared_lots(design, grid[-1] if axis == "sensors" else 0.0, trials, rng)
    found: dict[int, ErrorForecast] = {}

    def error(i: int) -> ErrorForecast:
        if i not in found:
            scene = at(design, axis, grid[i]).scene
            errors = [error_of(scene, lot, estimator) for lot in lots]
            found[i] = mean_error(estimator, errors, later=math.inf)
            if progress is not None:
                progress(f"{axis} {grid[i]:.3g}: mean error {found[i].mean:.3g}")
        return found[i]

    # More sensors may be worse than some, so all are tried; with epsilon errors fall, so the range is halved.
    if axis == "sensors":
        means = [error(i).mean for i in range(len(grid))]
        holds = next((i for i, mean in enumerate(means) if mean <= want), None)
        fails = None if holds is None else holds - 1
    else:
        fails, holds = _halved(lambda i: error(i).mean <= want, len(grid))
    least = min(found, key=lambda i: found[i].mean)
    enough = min(i for i in found if found[i].mean <= ENOUGH * found[least].mean)
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
    if holds is None or fails is None:
        return end(None, None, None)
    if fails < 0:
        return end(grid[0], grid[0], grid[0])
    before, after = found[fails], found[holds]
    # All answers exactly right: somewhere between, and nobody knows where.
    mean, stretch = (after.mean, after.high / after.mean) if after.mean > 0 else (want / 1e3, math.inf)
    value, off = crossing((grid[fails], grid[holds]), (before.mean, mean), want=want, stretch=stretch)
    return end(value, max(value / off, grid[0]), min(value * off, grid[-1]))


def _halved(reached: Callable[[int], bool], count: int) -> tuple[int | None, int | None]:
    """The last that does not reach it and the first that does; -1 for none, None if it is not reached."""
    if not reached(count - 1):
        return None, None
    if reached(0):
        return -1, 0
    fails, holds = 0, count - 1
    while holds - fails > 1:
        middle = (fails + holds) // 2
        fails, holds = (fails, middle) if reached(middle) else (middle, holds)
    return fails, holds


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


def _loss(loss: ZCDP | ApproxDP, value: float) -> ZCDP | ApproxDP:
    exact = Fraction(value)
    return ApproxDP(exact, loss.delta) if isinstance(loss, ApproxDP) else ZCDP(exact)


def _with_time(site: Site, time: float) -> Site:
    match site.operator:
        case HeatLine(space, sensors, _):
            return replace(site, operator=HeatLine(space, sensors, time))
        case HeatPlane(space, sensors, _):
            return replace(site, operator=HeatPlane(space, sensors, time))
        case GraphDiffusion(space, sensors, _, weights):
            return replace(site, operator=GraphDiffusion(space, sensors, time, weights))
        case Matrix():
            raise InvalidParameter("a site by a matrix has no diffusion time; nothing was simulated")


def _with_sensors(site: Site, count: int) -> Site:
    match site.operator:
        case HeatLine(space, _, time):
            length = float(space.positions[-1])
            return replace(
                site, operator=heat_line(sources=space, sensors=count, diffusion_time=time, length=length)
            )
        case HeatPlane(space, _, time):
            side = max(1, round(math.sqrt(count)))
            middle = (np.arange(side) + 0.5) / side
            shares = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
            low, high = _box(space)
            return replace(
                site,
                operator=heat_plane(sources=space, sensors=low + shares * (high - low), diffusion_time=time),
            )
        case GraphDiffusion(space, _, rate, weights):
            nodes = np.unique(np.linspace(0, space.size - 1, count).round().astype(np.int64))
            return replace(
                site, operator=graph_diffusion(space, rate, sensors=Sensors(nodes), weights=weights)
            )
        case Matrix():
            raise InvalidParameter("a site by a matrix has its own sensors; nothing was simulated")


def _box(space: Grid | object) -> tuple[FloatArray, FloatArray]:
    if isinstance(space, Grid):
        return np.array(space.bounds[:2], dtype=np.float64), np.array(space.bounds[2:], dtype=np.float64)
    positions: FloatArray = space.positions  # type: ignore[attr-defined]
    return positions.min(axis=0), positions.max(axis=0)
