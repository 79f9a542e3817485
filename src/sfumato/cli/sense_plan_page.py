"""Curves of all that can be changed in a plan of sensors: in words, as JSON has them, and on a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli.sense_forecast import NAMES, axis_name, extent, interval, left_out, unit
from sfumato.cli.sense_words import aligned, listed, short
from sfumato.files import write_file

if TYPE_CHECKING:
    from sfumato.sensing.planning import Axis, Curve, Design, ErrorForecast, RecoveryForecast

TITLES = {
    "diffusion time": "When to read",
    "sensors": "How many sensors",
    "cost": "How much privacy",
    "sources": "How many sources",
}


def not_shown(design: Design, foreseen: RecoveryForecast, seconds: float) -> str:
    """What curves would show, and in about how long: by the seconds that a forecast took."""
    from sfumato.sensing.planning import AXES, CURVE_TRIALS, values_on

    points = {axis: len(values_on(design, axis)) for axis in AXES}
    changes = {axis: f"more {axis_name(design, axis)}" for axis in AXES if points[axis]}
    if "diffusion time" in changes:
        changes["diffusion time"] = f"another {_time(design)}"
    slow = foreseen.bayes or foreseen.least_mass
    trials = sum(points.values()) * min(CURVE_TRIALS[slow.estimator], slow.trials)
    minutes = math.ceil(seconds * trials / slow.trials / 60)
    return (
        f"--curves shows, and --out FILE draws, what {listed(list(changes.values()), 'or')} would change: in "
        f"about {'a minute' if minutes <= 1 else f'{minutes} minutes'}"
    )


def tables(design: Design, found: Sequence[Curve]) -> list[str]:
    """The curves as text: a small table for each, with what is planned marked."""
    lines = [
        f"one number changed at a time, the rest as planned; mean errors with 95 %, {_trials(found)}, on the "
        "same made-up sources and noise at each value",
        *_failed(found),
    ]
    for curve in found:
        rows = [[axis_name(design, curve.axis), *(NAMES[name] for name in curve.forecasts), ""]]
        for i, value in enumerate(curve.values):
            means = [_whiskers(forecasts[i]) for forecasts in curve.forecasts.values()]
            rows.append(
                [f"{value:.4g}", *means, "planned" if value == design.value(curve.axis) else ""]
            )
        lines += ["", *aligned(rows)]
    return [*lines, ""]


def curves(design: Design, found: Sequence[Curve]) -> dict[str, Any]:
    """All that the page draws, and the best time to read."""
    told: dict[str, Any] = {"curves": {}}
    for curve in found:
        told["curves"][axis_name(design, curve.axis)] = {
            "values": list(curve.values),
            "estimators": {
                name: [asdict(one) for one in forecasts]
                for name, forecasts in curve.forecasts.items()
            },
            "papers_upper_up_to_a_constant": list(curve.upper),
            "papers_lower": list(curve.lower),
        }
        if curve.axis == "diffusion time":
            told["best_time"] = {
                "estimator": curve.best_by,
                "time": curve.best,
                "low": curve.as_good[0],
                "high": curve.as_good[-1],
                "as_good": list(curve.as_good),
                "better_than_no_reading": curve.helps,
                "said": _when(design, curve),
            }
    return told


def _when(design: Design, curve: Curve) -> str:
    """The best time to read, by the better estimator, as far as chance lets anybody say it."""
    name, whose = _time(design), f"for the {NAMES[curve.best_by]}, "
    tried = f"{name} {curve.values[0]:.3g} to {curve.values[-1]:.3g}"
    if not curve.helps:
        return f"{whose}at none of the times tried, {tried}, is a reading better than none by more than chance"
    if len(curve.as_good) == len(curve.values):
        return f"{whose}no time of those tried, {tried}, is better to read at than another by more than chance"
    if len(curve.as_good) > 1:
        best = f"{name} {listed([f'{value:.3g}' for value in curve.as_good])} are equally good to read at"
        best += f", within chance, with the least mean error at {curve.best:.3g}"
    else:
        end = {curve.values[0]: ", the first,", curve.values[-1]: ", the last,"}.get(curve.best, "")
        best = f"{name} {curve.best:.3g}{end} is best to read at"
    return f"{whose}of the times tried, {best}; planned is {design.time:.3g}"


def _time(design: Design) -> str:
    return "rate" if axis_name(design, "diffusion time") == "rate" else "T"


def _trials(found: Sequence[Curve]) -> str:
    """How many trials every point of all curves is of."""
    each = [
        f"{forecasts[0].trials} trials of the {NAMES[name]}"
        for name, forecasts in found[0].forecasts.items()
    ]
    return " and ".join(each)


def _failed(found: Sequence[Curve]) -> list[str]:
    return left_out([one for curve in found for some in curve.forecasts.values() for one in some])


def write_page(
    out: Path,
    design: Design,
    lines: list[str],
    found: Sequence[Curve],
    result: dict[str, Any],
    foreseen: RecoveryForecast,
    told: dict[str, Any],
) -> None:
    """The curves as one picture, or on a page with the plan and the numbers."""
    from sfumato.figures import draw_recovery_forecast
    from sfumato.report import Section, write_report

    caption = (
        f"{lines[0]}. Mean error in earth mover's distance, in {unit(design)}{extent(design)}; whiskers "
        "95 %. Each point is of "
        f"{_trials(found)}, on the same made-up sources and noise along a curve: it says what changes; how "
        "large errors are, the forecast above says from more trials."
    )
    caption += "".join(f" {said}." for said in _failed(found))
    if _papers(found):
        caption += (
            " Papers' bounds: the upper one up to a constant that nobody has computed, the lower one as it "
            "is, for the worst sources."
        )
    if any(
        one.mean == 0
        for curve in found
        for forecasts in curve.forecasts.values()
        for one in forecasts
    ):
        caption += " Where no trial was wrong a point is at the bottom, without a whisker."
    picture = draw_recovery_forecast(_panels(design, found, result, foreseen.even), caption=caption)
    if out.suffix == ".png":
        write_file(out, picture)
        return
    best = [told["best_time"]["said"]] if "best_time" in told else []
    write_report(
        out,
        f"Plan: {design.site.name}",
        sections=[
            Section("Plan", "\n\n".join(_prose(lines)), _expected(foreseen)),
            Section(
                "What could be changed", "\n\n".join(best), picture=picture, description=caption
            ),
            *(
                Section(
                    TITLES[curve.axis],
                    f"Errors against {axis_name(design, curve.axis)}.",
                    _table(curve, axis_name(design, curve.axis)),
                )
                for curve in found
            ),
            Section(
                "What it holds for",
                "Sources in random cells, physics as the site says it, noise as planned. T is diffusivity "
                "times time: to change it is to read earlier or later. Other numbers of sensors stand "
                "evenly. Nothing was read or charged.",
            ),
        ],
        overwrite=False,
    )


def _prose(lines: list[str]) -> list[str]:
    """The lines of a plan but for its table, which a page shows as one, and hints to options."""
    heads = ("mean error  ", "no reading at all", "--", *NAMES.values())
    return [line for line in lines if not line.startswith(heads)]


def _expected(foreseen: RecoveryForecast) -> list[list[str]]:
    rows = [
        [NAMES[one.estimator], short(one.mean), interval(one), str(one.answers)]
        for one in (foreseen.least_mass, foreseen.bayes)
        if one is not None
    ]
    return [
        ["mean error", "", "95 % of later means", "trials"],
        *rows,
        ["no reading at all", short(foreseen.even), "", ""],
    ]


def _panels(
    design: Design, found: Sequence[Curve], result: dict[str, Any], even: float
) -> list[Any]:
    import numpy as np

    from sfumato.figures import Panel, Series

    panels = []
    for curve in found:
        x = np.array(curve.values)
        series = [
            Series(
                NAMES[name],
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
    rows = result["after_readings"]
    x, y = (np.array([float(row[name]) for row in rows]) for name in ("readings", "epsilon"))
    if len(rows) > 1:
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
    rows = [[name, *(NAMES[name] for name in curve.forecasts), *said]]
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
