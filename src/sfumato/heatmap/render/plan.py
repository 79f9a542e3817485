"""The words, tables and pictures of a plan."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

import numpy as np

from sfumato.figures import Highlight, Series, draw_forecast
from sfumato.heatmap.analysis.forecasts import Expected, Forecast, Requirement
from sfumato.heatmap.analysis.quality import GROWS, METRICS, Metric
from sfumato.heatmap.benchmark.tables import aligned
from sfumato.heatmap.measure import amount_of
from sfumato.heatmap.pipeline.plan import least_epsilon, least_users, plan_curves
from sfumato.heatmap.planning_results import HOLDS_FOR, HeatmapPlan, Target
from sfumato.heatmap.render.many_maps import (
    counted_maps,
    for_each,
    many_words,
    masses_words,
    pooled_words,
    rows_words,
)

FEW = 0.85  # of all places: when fewer lie in an interval, the words state it
NAMES: dict[Metric, str] = {
    "similarity": "Similarity",
    "pearson": "Pearson",
    "kl": "KL",
    "emd": "EMD, in sides of the map",
}


def plan_words(plan: HeatmapPlan) -> list[str]:
    """The plan as lines for a terminal, without what it holds for."""
    lines = _forecast_words(plan)
    if plan.counted is not None:
        lines += rows_words(plan.counted)
    if plan.many is not None:
        lines.append(many_words(plan.many))
    if plan.pooled:
        lines.append(pooled_words())
    if plan.shares.masses > 1:
        lines.append(masses_words(plan.shares, None if plan.many is None else plan.many.epsilon))
    return lines


def _forecast_words(plan: HeatmapPlan) -> list[str]:
    if plan.points:
        return aligned(point_table(plan)).splitlines()
    if plan.target is not None and plan.epsilon_by_users:
        heads = ["users", f"epsilon for {_aim(plan, plan.target)}", "to be safe"]
        rows = []
        for one in plan.epsilon_by_users:
            least = least_epsilon(plan, plan.target.metric, one.users)
            ways = one.epsilon.usual, one.epsilon.safe
            rows.append([f"{one.users:,}", *(_takes(way, least) for way in ways)])
        return aligned([heads, *rows]).splitlines()
    lines: list[str] = []
    if plan.forecast is not None:
        side = None if plan.side is None else (plan.side, plan.side_unit)
        lines += [*_metrics(plan.forecast), "", *forecast_words(plan.forecast, side)]
        if plan.target is not None:
            lines.append(_verdict(plan.forecast, plan.target, _aim(plan, plan.target)))
    if plan.target is not None and plan.epsilon_required is not None:
        given = (
            amount_of(f"{plan.users:,}", "users")
            if plan.users is not None and plan.counted is None
            else f"rows like those of {amount_of(f'{plan.users_a_map or 0:,.0f}', 'users')}"
        )
        among = "" if plan.shares.count == 1 else f" in {counted_maps(plan.shares)}"
        aim = f"{_aim(plan, plan.target)} with {given}{among}"
        users = (plan.users_a_map or 0) / plan.shares.of_a_user
        least = least_epsilon(plan, plan.target.metric, users)
        each = for_each(plan.shares)
        lines += _requirement(plan.epsilon_required, aim, least, "epsilon", each)
    if plan.target is not None and plan.users_required is not None:
        each = for_each(plan.shares)
        aim = f"{_aim(plan, plan.target)} with epsilon {plan.epsilon:g}{each}"
        least = least_users(plan, plan.target.metric, plan.epsilon or 0)
        lines += _requirement(plan.users_required, aim, least, "", " users")
    return lines


def point_table(plan: HeatmapPlan) -> list[list[str]]:
    """All metrics along what was not given; Similarity over both where neither was."""
    if plan.users_a_map is None and plan.epsilon is None:
        epsilons = list(dict.fromkeys(one.epsilon for one in plan.points))
        known = [one.forecast for one in plan.points]
        cells = ["-" if one is None else _interval(one.similarity) for one in known]
        rows = [
            [amount_of(f"{plan.points[at].users:,}", "users"), *cells[at : at + len(epsilons)]]
            for at in range(0, len(cells), len(epsilons))
        ]
        return [["Similarity", *(f"epsilon {one:g}" for one in epsilons)], *rows]
    by_epsilon = plan.users_a_map is not None
    return [
        ["epsilon" if by_epsilon else "users", *NAMES.values()],
        *(
            [
                f"{one.epsilon:g}" if by_epsilon else f"{one.users:,}",
                *(_interval(one.forecast.of(metric)) for metric in METRICS),
            ]
            for one in plan.points
            if one.forecast is not None
        ),
    ]


def forecast_words(expected: Forecast, side: tuple[float, str] | None = None) -> list[str]:
    """What the numbers mean to somebody who looks at the map; `side` is its length and unit."""
    right, off = expected.similarity, expected.emd
    per = [f"{100 * number:.0f}" for number in (right.middle, right.low, right.high)]
    ground = ""
    if side is not None:
        length, unit = side
        near, mean, far = (
            at_least(length * number, "", f" {unit}") for number in (off.low, off.middle, off.high)
        )
        ground = f", {mean} on this map ({near} to {far})"
    lines = [
        f"about {per[0]} % of the mass will be in the right place within the blur, {per[1]} to {per[2]} % by "
        "place",
        f"on average people appear {_short(off.middle)} of the map's side from where they are{ground}, "
        "east-west and north-south added",
    ]
    if right.holds < FEW:
        lines.append(
            f"places differ much here: to hold 9 of 10, Similarity would have to be given as "
            f"{_short(right.lowest)} to {_short(right.highest)}"
        )
    if expected.beyond:
        lines.append(
            "there are more users than were simulated: the map should be at least this good"
        )
    return lines


def at_least(number: float | None, before: str = "", after: str = "") -> str:
    """A required number in two digits, rounded up: what is stated is enough.

    >>> at_least(0.5612), at_least(1234.0, "", " users"), at_least(None)
    ('0.57', '1,300 users', 'not reached')
    """
    if number is None:
        return "not reached"
    # Thousands are whole numbers anyway.
    digits = 10 ** (math.floor(math.log10(number)) - 1)
    up = math.ceil(number / digits - 1e-9) * digits
    return f"{before} {up:,.10g}{after}".strip()


def plan_caption(plan: HeatmapPlan) -> str:
    """What the picture of a plan shows."""
    by_users = plan.users_a_map is None and plan.epsilon is not None
    fixed = plan_curves(plan).fixed
    given = f"at epsilon {fixed:g}" if by_users else f"of {amount_of(f'{fixed:,.0f}', 'users')}"
    return f"Maps {given}, {plan.kind}: a usual place, and the interval from place to place."


def plan_picture(plan: HeatmapPlan) -> bytes:
    """A PNG of all metrics against epsilon; against users where only epsilon is given."""
    curves = plan_curves(plan)

    def along(metric: Metric, end: Callable[[Expected], float]) -> np.ndarray:
        return np.array([end(one) for one in curves.expected[metric]])

    panels = [
        Series(
            NAMES[metric],
            curves.x,
            along(metric, lambda one: one.middle),
            along(metric, lambda one: one.low),
            along(metric, lambda one: one.high),
        )
        for metric in METRICS
    ]
    marked = Highlight(
        plan.epsilon if curves.x_name == "epsilon" else None,
        NAMES[plan.target.metric] if plan.target else "",
        plan.target.value if plan.target else None,
    )
    caption = f"{plan_caption(plan)} {HOLDS_FOR}"
    return draw_forecast(panels, x_label=curves.x_name, marked=marked, caption=caption)


def plan_html(plan: HeatmapPlan) -> str:
    """The plan in a notebook."""
    words = "\n".join([*plan_words(plan), HOLDS_FOR])
    return f"<pre>{escape(words)}</pre>"


def _aim(plan: HeatmapPlan, target: Target) -> str:
    if target.metric != "emd":
        return f"{target.metric} {target.value:g}"
    ground = "" if plan.side is None else f": {plan.side * target.value:.4g} {plan.side_unit}"
    return f"emd {target.value:.3g} (of the map's side{ground})"


def _takes(number: float | None, least: float | None, before: str = "", after: str = "") -> str:
    """What a target takes; at most that where nothing smaller was simulated."""
    # A step of the table is half a percent.
    end = None not in (number, least) and (number or 0) <= 1.001 * (least or 0)
    return f"{'at most ' if end else ''}{at_least(number, before, after)}"


def _requirement(
    required: Requirement, aim: str, least: float | None, before: str, after: str
) -> list[str]:
    """What a target takes, in a sentence or two; or that it cannot be reached."""
    if required.usual is None:
        if required.lucky is None:
            return [f"{aim} cannot be reached within what was simulated"]
        lucky = _takes(required.lucky, least, before, after)
        return [f"{aim} cannot be reached in a usual place; in the easiest ones it takes {lucky}"]
    lines = [f"{aim} takes {_takes(required.usual, least, before, after)} in a usual place"]
    if required.safe is None:
        return [*lines, "nothing that was simulated reaches it in nearly all places"]
    return [
        *lines,
        f"to have it in nearly all places: {_takes(required.safe, least, before, after)}",
    ]


def _verdict(expected: Forecast, target: Target, aim: str) -> str:
    ends = expected.of(target.metric)
    sign = GROWS[target.metric]
    worse, better = (ends.lowest, ends.highest) if sign > 0 else (ends.highest, ends.lowest)
    if sign * worse >= sign * target.value:
        return f"{aim} is to be expected in nearly all places"
    if sign * ends.middle >= sign * target.value:
        return f"{aim} is to be expected in a usual place, not in all"
    if sign * better >= sign * target.value:
        return f"{aim} is to be expected in few places only"
    return f"{aim} is not to be expected"


def _metrics(expected: Forecast) -> list[str]:
    """The four numbers with their intervals, and how many places of ten lie in each."""
    rows = [["", "forecast", "interval", "holds in"]]
    for metric in METRICS:
        one = expected.of(metric)
        interval = f"{_short(one.low)} to {_short(one.high)}"
        share = f"{round(10 * one.holds)} of 10 places"
        rows.append([NAMES[metric], _short(one.middle), interval, share])
    return aligned(rows).splitlines()


def _interval(one: Expected) -> str:
    return f"{_short(one.middle)} ({_short(one.low)}-{_short(one.high)})"


def _short(number: float) -> str:
    return f"{number:.2f}" if number >= 0.1 else f"{number:.2g}"
