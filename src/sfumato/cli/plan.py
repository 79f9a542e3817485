"""`sfumato heatmap plan`: how good a map will be, or what a good one takes, before anything is read."""

from __future__ import annotations

import math
import os
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.heatmap_options import (
    Levels,
    MethodOption,
    Overwrite,
    Plane,
    Shape,
    named_area,
)
from sfumato.errors import InvalidParameter
from sfumato.files import write_file

if TYPE_CHECKING:
    from sfumato.heatmap.analysis import Expected, Forecast, Needed
    from sfumato.heatmap.benchmark import Metric

SUFFIXES = (".html", ".png")
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
USERS = (20, 50, 100, 200, 500, 1000, 2000, 5000, 20_000)
FEW = 0.85  # of all places: when fewer lie in an interval, it says so
NAMES = {
    "similarity": "Similarity",
    "pearson": "Pearson",
    "kl": "KL",
    "emd": "EMD, in sides of the map",
}
HOLDS_FOR = (
    "simulated with zoom on other places, real and made up: means over noise and users, of maps blurred by "
    "0.02 sides. Nothing was read or charged."
)


class Data(StrEnum):
    """What kind of data the map is of."""

    places = "places"
    gaze = "gaze"


Wanted = tuple["Metric", float]


@sentences
def plan(
    epsilon: Annotated[
        str,
        typer.Option(
            help="What the map may cost; left out, it is what is asked for.", show_default=False
        ),
    ] = "",
    users: Annotated[
        int | None,
        typer.Option(
            help="About how many users there are, a public guess; or left out.", show_default=False
        ),
    ] = None,
    want: Annotated[
        str,
        typer.Option(
            help="What the map should be like: similarity=0.7, pearson=0.9, kl=0.5 or emd=0.05.",
            show_default=False,
        ),
    ] = "",
    kind: Annotated[
        Data, typer.Option(help="People in places, or eyes on an image.")
    ] = Data.places,
    levels: Levels = 8,
    blur: Annotated[
        float, typer.Option(help="The filter the map is seen through, in sides of it.")
    ] = 0.02,
    method: MethodOption = "zoom",
    bounds: Annotated[
        str,
        typer.Option(
            help="Public area, west,south,east,north: distances are told in metres too.",
            show_default=False,
            rich_help_panel="Area",
            show_envvar=False,
        ),
    ] = "",
    plane: Plane = False,
    out: Annotated[
        Path | None, typer.Option(help="A file to write: .html or .png.", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Forecast how good a map will be, or the epsilon or users that a good one takes.

    It reads no data and spends nothing. Intervals are over places, from spiky to spread-out ones:
    nine of ten lie in them, or as many as it says.
    """
    _check(levels, blur, method)
    if out is not None:
        _check_out(out, overwrite=overwrite)
    cost = _number(epsilon) if epsilon else None
    wanted = _wanted(want) if want else None
    side = _side(bounds, plane=plane, levels=levels) if bounds else None
    result, lines = _answer(kind, users, cost, wanted, side)
    if out is not None:
        _write(out, kind, users, cost, wanted, lines, overwrite=overwrite)
        say(f"wrote {out}", quiet=quiet or json)
    show({**result, "holds_for": HOLDS_FOR}, "\n".join([*lines, HOLDS_FOR]), json=json)


def _check(levels: int, blur: float, method: str) -> None:
    from sfumato.heatmap.analysis import BLUR, LEVELS

    if method != "zoom":
        raise InvalidParameter(
            f"only maps by zoom are forecast, got {method}; nothing was forecast"
        )
    if blur != BLUR:
        raise InvalidParameter(
            f"maps are forecast as they are seen through a blur of {BLUR:g} sides, got {blur:g}; rehearse on "
            "public data for another; nothing was forecast"
        )
    if not LEVELS[0] <= levels <= LEVELS[1]:
        raise InvalidParameter(
            f"maps are forecast for levels {LEVELS[0]} to {LEVELS[1]}, got {levels}; nothing was forecast"
        )


def _check_out(out: Path, *, overwrite: bool) -> None:
    if out.suffix.lower() not in SUFFIXES:
        raise InvalidParameter(
            f"plans end in one of {', '.join(SUFFIXES)}, got {out}; nothing was written"
        )
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InvalidParameter(
            f"the folder of {out} must be there to write to; nothing was written"
        )
    if out.is_dir() or (os.path.lexists(out) and not overwrite):
        raise InvalidParameter(f"{out} exists already and is kept; nothing was written")


def _number(text: str) -> float:
    from sfumato.privacy.accounting import exact

    return float(exact(text, name="epsilon"))


def _wanted(text: str) -> Wanted:
    """A metric and the number it should reach."""
    from sfumato.heatmap.benchmark import METRICS

    name, _, number = text.partition("=")
    for metric in METRICS:
        if metric == name.strip().lower():
            try:
                return metric, float(number)
            except ValueError:
                break
    raise InvalidParameter(
        f"what is wanted is one of {', '.join(METRICS)} and a number, as in similarity=0.7, got {text!r}; "
        "nothing was forecast"
    )


def _side(bounds: str, *, plane: bool, levels: int) -> tuple[float, str]:
    """The side of the map on the ground, and its unit."""
    area = named_area(bounds, None, None, plane=plane, cells=Shape.square, levels=levels)
    return area.cell_size[0] * area.grid.side, "m" if area.kind == "degrees" else "units"


def _answer(
    kind: Data,
    users: int | None,
    epsilon: float | None,
    wanted: Wanted | None,
    side: tuple[float, str] | None,
) -> tuple[dict[str, Any], list[str]]:
    """The result as JSON has it, and as a terminal shows it."""
    result: dict[str, Any] = {"kind": kind.value, "users": users, "epsilon": epsilon}
    lines: list[str] = []
    if users is not None and epsilon is not None:
        from sfumato.heatmap.analysis import forecast

        found = forecast(users, epsilon, kind=kind.value)
        result["forecast"] = asdict(found)
        lines += [*_metrics(found), "", *plain_words(found, side)]
        if wanted:
            lines.append(_verdict(found, wanted))
    if wanted is None:
        if not lines:
            rows = _table(kind, users, epsilon)
            result["table"] = rows
            lines = _aligned(rows)
        return result, lines
    metric, value = wanted
    result["want"] = {"metric": metric, "value": value}
    if users is None and epsilon is None:
        needs = {number: _needed(kind, wanted, users=number) for number in USERS}
        result["epsilon_needed"] = {number: asdict(one) for number, one in needs.items()}
        heads = ["users", f"epsilon for {metric} {value:g}", "to be safe"]
        rows = [[f"{number:,}", _told(one.usual), _told(one.safe)] for number, one in needs.items()]
        return result, _aligned([heads, *rows])
    if users is not None:
        need = _needed(kind, wanted, users=users)
        result["epsilon_needed"] = asdict(need)
        lines += _need_lines(need, wanted, f"{users:,} users", "epsilon", "")
    if epsilon is not None:
        need = _needed(kind, wanted, epsilon=epsilon)
        result["users_needed"] = asdict(need)
        lines += _need_lines(need, wanted, f"epsilon {epsilon:g}", "", " users")
    return result, lines


def _needed(
    kind: Data, wanted: Wanted, *, users: float | None = None, epsilon: float | None = None
) -> Needed:
    from sfumato.heatmap.analysis import epsilon_needed, users_needed

    if users is not None:
        return epsilon_needed(*wanted, users=users, kind=kind.value)
    return users_needed(*wanted, epsilon=epsilon or 0.0, kind=kind.value)


def _need_lines(need: Needed, wanted: Wanted, given: str, before: str, after: str) -> list[str]:
    """What is needed, in a sentence or two; or that it cannot be had."""
    metric, value = wanted
    aim = f"{metric} {value:g} with {given}"
    if need.usual is None:
        if need.lucky is None:
            return [f"{aim} cannot be reached within what was simulated"]
        told = _told(need.lucky, before, after)
        return [f"{aim} cannot be reached in a usual place; in the easiest ones it takes {told}"]
    lines = [f"{aim} takes {_told(need.usual, before, after)} in a usual place"]
    if need.safe is None:
        return [*lines, "nothing that was simulated reaches it in nearly all places"]
    return [*lines, f"to have it in nearly all places: {_told(need.safe, before, after)}"]


def _told(number: float | None, before: str = "", after: str = "") -> str:
    if number is None:
        return "not reached"
    # Two digits, rounded up: what is told is enough. Thousands are whole numbers anyway.
    digits = 10 ** (math.floor(math.log10(number)) - 1)
    up = math.ceil(number / digits - 1e-9) * digits
    return f"{before} {up:,.10g}{after}".strip()


def _verdict(found: Forecast, wanted: Wanted) -> str:
    from sfumato.heatmap.benchmark import GROWS

    metric, value = wanted
    ends = found.of(metric)
    sign = GROWS[metric]
    worse, better = (ends.lowest, ends.highest) if sign > 0 else (ends.highest, ends.lowest)
    if sign * worse >= sign * value:
        return f"{metric} {value:g} is to be expected in nearly all places"
    if sign * ends.middle >= sign * value:
        return f"{metric} {value:g} is to be expected in a usual place, not in all"
    if sign * better >= sign * value:
        return f"{metric} {value:g} is to be expected in few places only"
    return f"{metric} {value:g} is not to be expected"


def _metrics(found: Forecast) -> list[str]:
    """The four numbers with their intervals."""
    from sfumato.heatmap.benchmark import METRICS

    rows = [["", "forecast", "interval", "holds in"]]
    for metric in METRICS:
        one = found.of(metric)
        rows.append(
            [
                NAMES[metric],
                _short(one.middle),
                f"{_short(one.low)} to {_short(one.high)}",
                _share(one),
            ]
        )
    return _aligned(rows)


def _short(number: float) -> str:
    return f"{number:.2f}" if number >= 0.1 else f"{number:.2g}"


def _share(one: Expected) -> str:
    """How many places of ten lie in the interval."""
    return f"{round(10 * one.holds)} of 10 places"


def plain_words(found: Forecast, side: tuple[float, str] | None) -> list[str]:
    """What the numbers mean to somebody who looks at the map."""
    right, off = found.similarity, found.emd
    per = [f"{100 * number:.0f}" for number in (right.middle, right.low, right.high)]
    ground = ""
    if side is not None:
        length, unit = side
        near, mean, far = (
            _told(length * number, "", f" {unit}") for number in (off.low, off.middle, off.high)
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
    if found.beyond:
        lines.append(
            "there are more users than were simulated: the map should be at least this good"
        )
    return lines


def _table(kind: Data, users: int | None, epsilon: float | None) -> list[list[str]]:
    """Without a point: all metrics along what was not given, or Similarity over both."""
    from sfumato.heatmap.analysis import forecast
    from sfumato.heatmap.benchmark import METRICS

    if users is None and epsilon is None:
        heads = ["Similarity", *(f"epsilon {one:g}" for one in EPSILONS)]
        return [
            heads,
            *([f"{n:,} users", *(_cell(kind, n, one) for one in EPSILONS)] for n in USERS),
        ]
    points = (
        [(users, one) for one in EPSILONS] if users is not None else [(n, epsilon) for n in USERS]
    )
    rows = [["epsilon" if users is not None else "users", *NAMES.values()]]
    for n, cost in points:
        try:
            found = forecast(n or 0, cost or 0, kind=kind.value)
        except InvalidParameter:
            if (n, cost) == points[-1]:  # not one of them can be forecast: say why
                raise
            continue
        shown = f"{cost:g}" if users is not None else f"{n:,}"
        rows.append([shown, *(_interval(found.of(metric)) for metric in METRICS)])
    return rows


def _cell(kind: Data, users: int, epsilon: float) -> str:
    from sfumato.heatmap.analysis import forecast

    try:
        return _interval(forecast(users, epsilon, kind=kind.value).similarity)
    except InvalidParameter:
        return "-"


def _interval(one: Expected) -> str:
    return f"{_short(one.middle)} ({_short(one.low)}-{_short(one.high)})"


def _aligned(rows: list[list[str]]) -> list[str]:
    from sfumato.heatmap.benchmark import aligned

    return aligned(rows).splitlines()


def _write(
    out: Path,
    kind: Data,
    users: int | None,
    epsilon: float | None,
    wanted: Wanted | None,
    lines: list[str],
    *,
    overwrite: bool,
) -> None:
    """The picture, or a page around it."""
    from sfumato.report import Section, write_report

    caption, picture = _picture(kind, users, epsilon, wanted)
    if out.suffix.lower() == ".png":
        write_file(out, picture, overwrite=overwrite)
        return
    write_report(
        out,
        "How good will the map be?",
        sections=[
            Section("Forecast", "\n\n".join(line for line in lines if line)),
            Section("What more would buy", caption, picture=picture, description=caption),
            Section("What it holds for", HOLDS_FOR[0].upper() + HOLDS_FOR[1:]),
        ],
        overwrite=overwrite,
    )


def _picture(
    kind: Data, users: int | None, epsilon: float | None, wanted: Wanted | None
) -> tuple[str, bytes]:
    """All metrics against epsilon; against users where only epsilon is given."""
    import numpy as np

    from sfumato.figures import Asked, Series, draw_forecast
    from sfumato.heatmap.analysis import USUAL_USERS, forecast_table
    from sfumato.heatmap.benchmark import METRICS

    table = forecast_table(kind.value)
    by_users = users is None and epsilon is not None
    fixed = float(epsilon) if by_users and epsilon is not None else float(users or USUAL_USERS)
    limits = table.users if by_users else table.epsilons
    # From where anything is forecast.
    least = min(max(limits[0], table.least / fixed), limits[1] / 2)
    along = np.geomspace(least, limits[1], 120)
    panels = []
    for metric in METRICS:
        points = [(float(one), fixed) if by_users else (fixed, float(one)) for one in along]
        found = [table.expected(metric, *point) for point in points]
        middle, low, high = (
            np.array([getattr(one, end) for one in found]) for end in ("middle", "low", "high")
        )
        panels.append(Series(NAMES[metric], along, middle, low, high))
    given = f"at epsilon {fixed:g}" if by_users else f"of {fixed:,.0f} users"
    caption = f"Maps {given}, {kind.value}: a usual place, and the interval from place to place."
    asked = Asked(
        None if by_users else epsilon,
        NAMES[wanted[0]] if wanted else "",
        wanted[1] if wanted else None,
    )
    label = "users" if by_users else "epsilon"
    return caption, draw_forecast(
        panels, x_label=label, asked=asked, caption=f"{caption} {HOLDS_FOR}"
    )
