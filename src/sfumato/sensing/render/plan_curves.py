"""Curves of all that can be changed in a plan of sensors: in words, in tables, and on a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.sensing.render.plan import (
    axis_name,
    best_time,
    called,
    extent,
    interval,
    left_out,
    paper_lines,
    plan_lines,
    time_symbol,
    unit,
)
from sfumato.sensing.render.words import aligned, listed, short

if TYPE_CHECKING:
    from sfumato.figures import Panel
    from sfumato.sensing.planning.design import Axis, Curve, Design
    from sfumato.sensing.planning.forecast import ErrorForecast, RecoveryForecast
    from sfumato.sensing.results.plan import SensorPlan

    PageSection = tuple[str, str, list[list[str]], bytes | None, str]

TITLES = {
    "diffusion time": "When to read",
    "sensors": "How many sensors",
    "cost": "How much privacy",
    "sources": "How many sources",
}


def not_shown(design: Design, foreseen: RecoveryForecast, seconds: float) -> str:
    """What curves would show, and in about how long: by the seconds that a forecast took."""
    from sfumato.sensing.planning.design import AXES, CURVE_TRIALS, values_on

    points = {axis: len(values_on(design, axis)) for axis in AXES}
    changes = {axis: f"more {axis_name(design, axis)}" for axis in AXES if points[axis]}
    if "diffusion time" in changes:
        changes["diffusion time"] = f"another {time_symbol(design)}"
    slow = foreseen.bayes or foreseen.least_mass
    trials = sum(points.values()) * min(CURVE_TRIALS[slow.estimator], slow.trials)
    minutes = math.ceil(seconds * trials / slow.trials / 60)
    return (
        f"`curves` shows, and `out` draws, what {listed(list(changes.values()), 'or')} would change: in "
        f"about {'a minute' if minutes <= 1 else f'{minutes} minutes'}"
    )


def curve_tables(design: Design, found: Sequence[Curve]) -> list[str]:
    """The curves as text: a small table for each, with what is planned marked."""
    lines = [
        f"one number changed at a time, the rest as planned; mean errors with 95 %, {_trials(found)}, on the "
        "same made-up sources and noise at each value",
        *_failed(found),
    ]
    for curve in found:
        rows = [[axis_name(design, curve.axis), *(called(name) for name in curve.forecasts), ""]]
        for i, value in enumerate(curve.values):
            means = [_whiskers(forecasts[i]) for forecasts in curve.forecasts.values()]
            rows.append(
                [f"{value:.4g}", *means, "planned" if value == design.value(curve.axis) else ""]
            )
        lines += ["", *aligned(rows)]
    return [*lines, ""]


def _trials(found: Sequence[Curve]) -> str:
    """How many trials every point of all curves is of."""
    each = [
        f"{forecasts[0].trials} trials of the {called(name)}"
        for name, forecasts in found[0].forecasts.items()
    ]
    return " and ".join(each)


def _failed(found: Sequence[Curve]) -> list[str]:
    return left_out([one for curve in found for some in curve.forecasts.values() for one in some])


def picture(plan: SensorPlan) -> bytes:
    """The curves as one picture.

    Args:
        plan: What `plan_sensors` found, with curves.

    Returns:
        The bytes of a PNG file.
    """
    from sfumato.figures import draw_recovery_forecast

    even = plan.forecast.even if plan.forecast is not None else math.nan
    return draw_recovery_forecast(_panels(plan, even), caption=caption(plan))


def caption(plan: SensorPlan) -> str:
    """What the picture of curves shows."""
    design, found = plan.design, plan.curves
    told = (
        f"{plan_lines(plan)[0]}. Mean error in earth mover's distance, in {unit(design)}{extent(design)}; "
        f"whiskers 95 %. Each point is of {_trials(found)}, on the same made-up sources and noise along a "
        "curve: it says what changes; how large errors are, the forecast above says from more trials."
    )
    told += "".join(f" {said}." for said in _failed(found))
    if _papers(found):
        told += (
            " Papers' bounds: the upper one up to a constant that nobody has computed, the lower one as it "
            "is, for the worst sources."
        )
    means = [one.mean for curve in found for some in curve.forecasts.values() for one in some]
    if any(mean == 0 for mean in means):
        told += " Where no trial was wrong a point is at the bottom, without a whisker."
    return told


def page_sections(plan: SensorPlan, *, details: bool = False) -> list[PageSection]:
    """The plan and its curves as sections of a page: heading, text, table, picture, description.

    Args:
        plan: What `plan_sensors` found.
        details: Whether to say what physics hides; False unless given.

    Returns:
        The sections in their order: the plan, what could be changed, one for each curve, and
        limits. A table is rows of cells; a section without a picture has None.
    """
    design, drawn = plan.design, picture(plan)
    lines = [*plan_lines(plan, details=details), *paper_lines(plan.papers)]
    times = [curve for curve in plan.curves if curve.axis == "diffusion time"]
    best = [best_time(design, curve) for curve in times]
    expected = [] if plan.forecast is None else _expected(plan.forecast)
    names = (
        [] if plan.forecast is None else [called(o.estimator) + "  " for o in plan.forecast.every]
    )
    return [
        ("Plan", "\n\n".join(_prose(lines, names)), expected, None, ""),
        ("What could be changed", "\n\n".join(best), [], drawn, caption(plan)),
        *(
            (
                TITLES[curve.axis],
                f"Errors against {axis_name(design, curve.axis)}.",
                _table(curve, axis_name(design, curve.axis)),
                None,
                "",
            )
            for curve in plan.curves
        ),
        (
            "What it holds for",
            "Sources in random cells, physics as the site says it, noise as planned. T is diffusivity "
            "times time: to change it is to read earlier or later. Other numbers of sensors stand "
            "evenly. Nothing was read or charged.",
            [],
            None,
            "",
        ),
    ]


def spectrum(plan: SensorPlan) -> bytes:
    """Singular values of the operator beside the noise, as a picture.

    Args:
        plan: What `plan_sensors` found.

    Returns:
        The bytes of a PNG file.
    """
    from sfumato.figures import draw_conditioning

    site, physics = plan.design.site, plan.physics
    return draw_conditioning(
        physics.singular_values,
        caption=f"{site.name}: {len(site.sensors)} sensors, {site.operator.space.size} cells",
        noise=plan.noise.sigma,
        complete=physics.complete,
    )


def _prose(lines: list[str], names: Sequence[str]) -> list[str]:
    """The lines of a plan but for its table, which a page shows as one, and hints to options."""
    heads = ("mean error  ", "no reading at all", "`", *names)
    return [line for line in lines if not line.startswith(heads)]


def _expected(foreseen: RecoveryForecast) -> list[list[str]]:
    rows = [
        [called(one.estimator), short(one.mean), interval(one), str(one.answers)]
        for one in foreseen.every
    ]
    return [
        ["mean error", "", "95 % of later means", "trials"],
        *rows,
        ["no reading at all", short(foreseen.even), "", ""],
    ]


def _panels(plan: SensorPlan, even: float) -> list[Panel]:
    import numpy as np

    from sfumato.figures import Panel, Series

    design, found, panels = plan.design, plan.curves, []
    for curve in found:
        x = np.array(curve.values)
        series = [
            Series(
                called(name),
                x,
                np.array([one.mean for one in forecasts]),
                np.array([one.low for one in forecasts]),
                # Where no trial was wrong there is no interval, and no whisker to draw.
                np.array([one.high if math.isfinite(one.high) else 0.0 for one in forecasts]),
            )
            for name, forecasts in curve.forecasts.items()
        ]
        if not any((some.middle > 0).any() for some in series):
            continue  # no trial was wrong anywhere: the table says it, a log scale cannot
        # The same in all panels, so that all of them look as the key says.
        shown = {
            name: np.array([math.nan if y is None else y for y in values])
            for name, values in _bounds(curve).items()
            if name in _papers(found)
        }
        panels.append(
            Panel(
                TITLES[curve.axis],
                _label(design, curve.axis),
                series,
                shown,
                mark=design.value(curve.axis),
                level=None if curve.axis == "sources" else even,  # it is of as many as are planned
                y_label=f"mean error ({unit(design).removeprefix('the ')})",
            )
        )
    if len(plan.costs) > 1:
        x = np.array([float(row.readings) for row in plan.costs])
        y = np.array([row.epsilon for row in plan.costs])
        panels.append(
            Panel(
                "Epsilon after readings",
                "readings",
                [Series("epsilon", x, y, y, y)],
                {},
                y_label="epsilon",
            )
        )
    return panels


def _bounds(curve: Curve) -> dict[str, tuple[float | None, ...]]:
    return {"papers' upper bound / K": curve.upper, "papers' lower bound": curve.lower}


def _papers(found: Sequence[Curve]) -> set[str]:
    """The papers' bounds that have a value anywhere."""
    return {
        name
        for curve in found
        for name, values in _bounds(curve).items()
        if any(value is not None for value in values)
    }


def _label(design: Design, axis: Axis) -> str:
    """An axis with its unit: a time of diffusion is a length squared."""
    name = axis_name(design, axis)
    if name == "diffusion time":
        return f"diffusion time T ({unit(design).removeprefix('the ')}, squared)"
    return f"{name} of a reading" if axis == "cost" else name


def _table(curve: Curve, name: str) -> list[list[str]]:
    said = {head: values for head, values in _bounds(curve).items() if head in _papers([curve])}
    rows = [[name, *(called(name) for name in curve.forecasts), *said]]
    for i, value in enumerate(curve.values):
        means = [_whiskers(forecasts[i]) for forecasts in curve.forecasts.values()]
        ends = [
            "-" if end is None else short(end) for end in (values[i] for values in said.values())
        ]
        rows.append([f"{value:.4g}", *means, *ends])
    return rows


def _whiskers(one: ErrorForecast) -> str:
    of = f", {one.answers} trials" if one.failed else ""
    return f"{short(one.mean)} ({interval(one)}{of})"
