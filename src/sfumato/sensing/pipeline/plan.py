"""Plans: how much noise sensors will add, how good answers will be, and where sensors should stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Literal

import numpy as np

from sfumato._random import generator
from sfumato.errors import InvalidParameter
from sfumato.privacy import PureDP
from sfumato.privacy.accounting import Number
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.model.site import Site
from sfumato.sensing.pipeline.ground import heat_from
from sfumato.sensing.pipeline.release import Watch
from sfumato.sensing.pipeline.site import relation_of, site_of
from sfumato.sensing.planning import design as designs
from sfumato.sensing.planning import forecast as forecasts
from sfumato.sensing.planning.certificate_forecast import DRAWS, forecast_certificate
from sfumato.sensing.planning.computed import computed_numbers
from sfumato.sensing.planning.design import Axis, Curve, Design
from sfumato.sensing.planning.forecast import RecoveryForecast, SyntheticMasses
from sfumato.sensing.planning.noise_choice import Noise, check_keep, choose_noise
from sfumato.sensing.planning.placement import place_sensors, simulated_gain
from sfumato.sensing.planning.requirement import TARGET_TRIALS, Requirement, required
from sfumato.sensing.planning.synthetic import SyntheticOptions, synthetic_even_site
from sfumato.sensing.recovery.estimators.registry import added_estimators
from sfumato.sensing.release.noise_plan import Calibration, SensorLoss
from sfumato.sensing.release.rounds import (
    share_of,
)
from sfumato.sensing.render.plan import axis_name
from sfumato.sensing.render.words import many
from sfumato.sensing.results.plan import PlacementResult, SensorPlan
from sfumato.sensing.tables import read_sensors
from sfumato.spaces import Graph, Grid, Line


def plan_sensors(
    site: Site | str | Path | SyntheticOptions,
    loss: SensorLoss,
    *,
    readings: int | None = None,
    calibration: Calibration = "analytic",
    noise: Noise = "auto",
    keep: float | None = None,
    offset: bool = False,
    sources: int | None = None,
    masses: SyntheticMasses = "known",
    trials: int | None = None,
    target: float | None = None,
    curves: bool = False,
    rng: np.random.Generator | None = None,
    watch: Watch | None = None,
) -> SensorPlan:
    """Plan sensors: how much noise they would add, how good answers will be, and what would be better.

    Nothing is read or charged. Errors are earth mover's distances in the site's own unit, simulated on sources
    in random cells, with the papers' recovery (least mass) and with the Bayes median. On a site of one's own
    that takes `sources`, `target` or `curves`; on a made-up one it is always done.

    Args:
        site: A site, its file, or what a made-up one should look like.
        loss: What one reading of all sensors may cost; with `readings`, all of them together. Epsilon alone
            (`PureDP`) takes Laplace noise of one scale.
        readings: So many readings share the cost: plan for each of them.
        calibration: "analytic", the least noise, or "papers", the papers' formula.
        noise: "one" sigma for all sensors; "each" its own, where that tells more at the same cost; or "auto",
            which takes each where a public rule says that it is safe and worth it (`choose_noise`). With noise
            for each the design has a site with the gains, `design.site`, which is what to release with.
        keep: With "each": no sensor has less than this share of the weight that one sigma gives it; 0 lets
            sensors be switched off; None means 9/10.
        offset: Whether all readings will share an offset that nobody knows, which recovery fits: noise for
            each sensor then counts what is left. Errors are simulated without one.
        sources: How many sources to expect; 1 unless given.
        masses: Sources to expect are all of mass 1 ("known"), or anything from 0.3 to 1 ("free").
        trials: At most so many simulated recoveries, 800 unless given; 0 for none.
        target: A mean error to reach: what sensors, and what epsilon, does it take?
        curves: Whether to simulate how errors move with T, sensors, epsilon and sources; takes minutes.
        rng: Where simulated sources and noise come from; None means others each time.
        watch: Is told what is being done.

    Returns:
        The plan.

    Raises:
        InvalidParameter: A number is out of its range, or options contradict each other; nothing was planned.

    >>> from sfumato.privacy import ApproxDP
    >>> from sfumato.sensing import describe_site, heat_line
    >>> line = heat_line(sources=100, sensors=20, diffusion_time=0.05)
    >>> hall = describe_site("hall", operator=line, radius="1/100").site
    >>> plan = plan_sensors(hall, ApproxDP(2, "1e-6"))
    >>> round(plan.noise.sigma, 2), round(plan.guess, 2), plan.forecast
    (0.19, 0.59, None)
    """
    more = target is not None or curves
    _check(trials, target, more=more)
    check_keep(noise, keep)
    chance = rng or generator()
    options = site if isinstance(site, SyntheticOptions) else None
    found = (
        synthetic_even_site(options, kind="planned", rng=chance, undone="nothing was planned")
        if options is not None
        else site_of(_no_options(site))
    )
    tell = watch or (lambda _: None)
    tell(f"looking at {many(len(found.sensors), 'sensor')}")
    each = _each(loss, readings, calibration)
    if noise == "each" or (noise == "auto" and isinstance(found.operator.space, Graph)):
        tell("planning the noise of each sensor")
    choice = choose_noise(
        found, each, noise, keep=keep, offset=offset, calibration=calibration, compares=more
    )
    if choice.kind == "each" and choice.each is not None:
        found = choice.each.site
    design = Design(found, each, sources or 1, masses, calibration)
    parts = computed_numbers(design, loss, readings)
    if trials != 0 and (options is not None or sources is not None or more):
        begin = perf_counter()
        foreseen = _simulated(design, chance, trials, tell)
        parts |= {"forecast": foreseen, "seconds": perf_counter() - begin}
        if target is not None:
            parts["required"] = _required(design, target, foreseen, chance, trials, tell)
        if curves:
            parts["curves"] = _curves(design, foreseen, chance, trials, tell)
        tell("certifying a few simulated answers")
        parts["certificate"] = forecast_certificate(
            design.scene,
            rng=chance,
            max_draws=min(DRAWS, trials or DRAWS),
            laplace=parts["noise"].pure,
        )
    return SensorPlan(
        design,
        total=loss,
        readings=readings,
        options=options,
        simulates=trials != 0,
        choice=choice,
        **parts,
    )


def plan_placement(
    candidates: Site | Sensors | str | Path,
    count: int,
    loss: SensorLoss,
    *,
    line: int | None = None,
    length: float | None = None,
    grid: int | None = None,
    bounds: tuple[float, float, float, float] | None = None,
    diffusion_time: float | None = None,
    radius: Number | None = None,
    swapped: Number | None = None,
    mass: float = 1.0,
    trials: int | None = None,
    sources: int = 1,
    rng: np.random.Generator | None = None,
    watch: Watch | None = None,
) -> PlacementResult:
    """Choose which of many possible places should have a sensor; nothing is read or charged.

    Noise grows with how much all sensors tell together, so the best places are not simply the most, nor those
    spread out evenly, which are shown beside them.

    Args:
        candidates: A site with a sensor at every place that could have one; or these places as sensors or a
            table (sensor, x, perhaps y), and then where sources may be: `line` or `grid`.
        count: How many sensors there will be.
        loss: What one reading of them all may cost: rho, or epsilon and delta above 0.
        line: Sources on a line of so many cells.
        length: Length of the line (1).
        grid: Sources in a plane: 2**grid by 2**grid cells of `bounds`.
        bounds: The plane's west, south, east and north (0, 0, 1, 1).
        diffusion_time: T = diffusivity times time.
        radius: How far mass may move without anybody telling.
        swapped: Instead of `radius`: two adjacent cells, each up to this mass, may be swapped.
        mass: The mass of a source.
        trials: Simulate so many recoveries from both sets: what choosing gains.
        sources: How many sources to simulate.
        rng: Where simulated sources and noise come from; None means others each time.
        watch: Is told what is being done.

    Returns:
        The chosen places.

    Raises:
        InvalidParameter: Something is missing, or contradicts the site; nothing was placed.
    """
    tell = watch or (lambda _: None)
    if isinstance(loss, PureDP):
        raise InvalidParameter(
            "places are chosen for Gaussian noise, which needs a delta above 0 or rho, got epsilon alone; "
            "nothing was placed"
        )
    if isinstance(candidates, Site):
        ground = candidates
    else:
        ground = _candidates(
            candidates, line, length, grid, bounds, diffusion_time, radius, swapped
        )
    operator = ground.operator
    step = f"looking at {len(operator.sensors)} candidates"
    tell(step)
    found = place_sensors(
        operator,
        count,
        loss=loss,
        neighbors=ground.neighbors,
        mass=mass,
        progress=lambda told: tell(f"{step}: {told}"),
    )
    gain = None
    if trials is not None:
        tell(f"simulating {trials} recoveries from both")
        gain = simulated_gain(found, trials=trials, sources=sources, rng=rng or generator())
    return PlacementResult.of(found, ground, gain)


def _no_options(site: Site | str | Path | SyntheticOptions) -> Site | str | Path:
    if isinstance(site, SyntheticOptions):
        raise InvalidParameter("a site or what it looks like, not both; nothing was planned")
    return site


def _check(trials: int | None, target: float | None, *, more: bool) -> None:
    if trials == 1:
        raise InvalidParameter(
            "a mean with an interval needs two trials, got 1; nothing was planned"
        )
    if trials == 0 and more:
        raise InvalidParameter(
            "`target` and `curves` simulate, `trials=0` does not; nothing was planned"
        )
    if target is not None and not 0 < target < float("inf"):
        raise InvalidParameter(
            f"a wanted error is positive and finite, got {target}; nothing was planned"
        )


def _each(total: SensorLoss, readings: int | None, calibration: Calibration) -> SensorLoss:
    """What one reading may cost: all, or the share of it that a ledger lets so many readings have."""
    if readings is None:
        return total
    if calibration == "papers":
        raise InvalidParameter(
            "the papers' calibration is of a single reading, got `readings`; nothing was planned"
        )
    return share_of(total, readings)


def _simulated(
    design: Design, rng: np.random.Generator, trials: int | None, tell: Callable[[str], None]
) -> RecoveryForecast:
    max_trials = trials or forecasts.MAX_TRIALS
    step = f"simulating up to {max_trials} recoveries"
    tell(step)
    return forecasts.forecast_recovery(
        design.scene,
        rng=rng,
        max_trials=max_trials,
        estimators=(*forecasts.ESTIMATORS, *added_estimators()),
        progress=lambda told: tell(f"{step}: {told}"),
    )


def _required(
    design: Design,
    target: float,
    foreseen: RecoveryForecast,
    rng: np.random.Generator,
    trials: int | None,
    tell: Callable[[str], None],
) -> tuple[Requirement, ...]:
    """The sensors, where a site can have others, and the cost that a target error takes."""
    axes: list[Literal["sensors", "cost"]] = ["cost"]
    if design.site.operator.sensor_count(len(design.site.sensors)) is not None:
        axes.insert(0, "sensors")
    needs = []
    estimator = _quick_enough(design, foreseen.best.estimator)
    for axis in axes:
        step = f"simulating what a mean error of {target:g} takes: {axis_name(design, axis)}"
        tell(step)
        needs.append(
            required(
                design,
                axis,
                target,
                rng=rng,
                estimator=estimator,
                trials=min(trials or TARGET_TRIALS, TARGET_TRIALS),
                progress=lambda told, step=step: tell(f"{step}: {told}"),  # type: ignore[misc]
            )
        )
    return tuple(needs)


def _quick_enough(design: Design, best: str) -> str:
    """The better estimator, or the least mass where hundreds of trials of the better one take minutes.

    The least mass is then what a wanted error is asked of: who gets it so gets it from the better
    one, up to chance.
    """
    slow = design.site.operator.space.size >= forecasts.SLOW
    return forecasts.ESTIMATORS[0] if slow and best == forecasts.ESTIMATORS[1] else best


def _curves(
    design: Design,
    foreseen: RecoveryForecast,
    rng: np.random.Generator,
    trials: int | None,
    tell: Callable[[str], None],
) -> tuple[Curve, ...]:
    """How the error moves with all that can be changed."""
    usable = forecasts.ESTIMATORS if foreseen.bayes is not None else forecasts.ESTIMATORS[:1]

    def curve(number: int, axis: Axis) -> Curve:
        name = axis_name(design, axis)
        step = f"simulating errors against {name} ({number} of {len(designs.AXES)})"
        tell(step)
        return designs.error_curve(
            design,
            axis,
            rng=rng,
            trials=trials,
            estimators=usable,
            best_by=foreseen.best.estimator,
            progress=lambda told: tell(f"{step}: {told}"),
        )

    axes = enumerate(designs.AXES, 1)
    return tuple(curve(number, axis) for number, axis in axes if designs.values_on(design, axis))


def _candidates(
    candidates: Sensors | str | Path,
    line: int | None,
    length: float | None,
    grid: int | None,
    bounds: tuple[float, float, float, float] | None,
    diffusion_time: float | None,
    radius: Number | None,
    swapped: Number | None,
) -> Site:
    """A site with a sensor at every candidate."""
    if (radius is None) == (swapped is None):
        raise InvalidParameter(
            "say what is protected: `radius` (mass moved so far) or `swapped`, not both"
        )
    if (line is None) == (grid is None):
        raise InvalidParameter(
            "say where sources may be: either `line` or `grid`; nothing was placed"
        )
    if diffusion_time is None:
        raise InvalidParameter("say how far heat spreads: `diffusion_time`; nothing was placed")
    placed = candidates if isinstance(candidates, Sensors) else read_sensors(candidates)
    ground: Line | Grid
    if line is not None:
        end = 1.0 if length is None else length
        inside = int(((placed.positions >= 0) & (placed.positions <= end)).all(axis=1).sum())
        if 2 * inside < len(placed):
            raise InvalidParameter(
                f"only {inside} of {len(placed)} candidates lie where sources may be (0 to {end:g}); is "
                "`length` missing? nothing was placed"
            )
        ground = Line(line, end)
    else:
        ground = Grid(grid or 1, (0.0, 0.0, 1.0, 1.0) if bounds is None else bounds)
    operator = heat_from(ground, placed, diffusion_time)
    return Site("candidates", operator, relation_of(radius, swapped, operator))
