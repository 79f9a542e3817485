"""A plan of sensors on a page: curves of all that can be changed, and their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli.sense_forecast import NAMES, axis_name, short

if TYPE_CHECKING:
    from sfumato.sensing.design import Curve, Design
    from sfumato.sensing.forecast import ErrorForecast, RecoveryForecast

TITLES = {
    "diffusion time": "When to read",
    "sensors": "How many sensors",
    "cost": "How much privacy",
    "sources": "How many sources",
}


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
    from sfumato.figures.recovery_forecast import draw_recovery_forecast
    from sfumato.report import Section, write_report

    trials = " and ".join(
        f"{forecasts[0].trials} trials of the {NAMES[name]}" for name, forecasts in found[0].forecasts.items()
    )
    caption = (
        f"{lines[0]}. Mean error in earth mover's distance, whiskers 95 %. Each point is of "
        f"{trials}, on the same made-up sources and noise along a curve. Papers' bounds: the upper "
        "one up to a constant that nobody has computed, the lower one as it is, for the worst sources."
    )
    picture = draw_recovery_forecast(_panels(design, found, result, foreseen.even), caption=caption)
    if out.suffix == ".png":
        out.write_bytes(picture)
        return
    best = [told["best_time"]["said"]] if "best_time" in told else []
    write_report(
        out,
        f"Plan: {design.site.name}",
        sections=[
            Section("Plan", "\n\n".join(_prose(lines)), _expected(foreseen)),
            Section("What could be changed", "\n\n".join(best), picture=picture, description=caption),
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
    )


def _prose(lines: list[str]) -> list[str]:
    """The lines of a plan but for its table, which a page shows as one, and hints to options."""
    heads = ("mean error  ", "no reading at all", "--", *NAMES.values())
    return [line for line in lines if not line.startswith(heads)]


def _expected(foreseen: RecoveryForecast) -> list[list[str]]:
    rows = [["mean error", "", "95 % of later means", "trials"]]
    for one in (foreseen.least_mass, foreseen.bayes):
        if one is not None:
            ends = f"{short(one.low)} to {short(one.high)}"
            rows.append([NAMES[one.estimator], short(one.mean), ends, str(one.trials)])
    return [*rows, ["no reading at all", short(foreseen.even), "", ""]]


def _panels(design: Design, found: Sequence[Curve], result: dict[str, Any], even: float) -> list[Any]:
    import numpy as np

    from sfumato.figures.intervals import Series
    from sfumato.figures.recovery_forecast import Panel

    panels = []
    for curve in found:
        x = np.array(curve.values)
        series = [
            Series(
                NAMES[name],
                x,
                np.array([one.mean for one in forecasts]),
                np.array([one.low for one in forecasts]),
                np.array([one.high for one in forecasts]),
            )
            for name, forecasts in curve.forecasts.items()
        ]
        lines = {
            "papers' upper bound / K": np.array([math.nan if y is None else y for y in curve.upper]),
            "papers' lower bound": np.array([math.nan if y is None else y for y in curve.lower]),
        }
        shown = {name: y for name, y in lines.items() if np.isfinite(y).any()}
        panels.append(
            Panel(
                TITLES[curve.axis],
                axis_name(design, curve.axis),
                series,
                shown,
                mark=design.value(curve.axis),
                level=even,
            )
        )
    rows = result["after_readings"]
    x, y = (np.array([float(row[name]) for row in rows]) for name in ("readings", "epsilon"))
    if len(rows) > 1:
        panels.append(
            Panel(
                "Epsilon after readings", "readings", [Series("epsilon", x, y, y, y)], {}, y_label="epsilon"
            )
        )
    return panels


def _table(curve: Curve, name: str) -> list[list[str]]:
    heads = [name, *(NAMES[name] for name in curve.forecasts), "papers' upper bound / K", "lower bound"]
    rows = [heads]
    for i, value in enumerate(curve.values):
        means = [_whiskers(forecasts[i]) for forecasts in curve.forecasts.values()]
        ends = ["-" if end is None else short(end) for end in (curve.upper[i], curve.lower[i])]
        rows.append([f"{value:.4g}", *means, *ends])
    return rows


def _whiskers(one: ErrorForecast) -> str:
    return f"{short(one.mean)} ({short(one.low)} to {short(one.high)})"
