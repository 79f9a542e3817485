"""The words of heatmaps: every result as text and tables for people, made of its fields."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from html import escape
from typing import Any

from sfumato.heatmap.accuracy.nearby import Nearby
from sfumato.heatmap.benchmark.tables import aligned
from sfumato.heatmap.comparison.results import CompareResult
from sfumato.heatmap.hotspot_results import HotspotsResult
from sfumato.heatmap.measure import amount_of
from sfumato.heatmap.render.compare import comparison_text
from sfumato.heatmap.render.error import error_lines, errors_line
from sfumato.heatmap.render.many_maps import many_words, pooled_words
from sfumato.heatmap.replay_results import ReplayResult
from sfumato.heatmap.results import (
    DrawResult,
    PlannedRelease,
    PoolResult,
    RehearsalResult,
    ReleaseResult,
    TotalsResult,
)
from sfumato.privacy.ledger import at_most
from sfumato.spaces import Area

MISTAKES = (
    "are x and y exchanged, in other units than the bounds (`crs`), written with decimal commas, "
    "or elsewhere?"
)

TIMES = "or are times outside the periods, or written otherwise than in ISO 8601?"


def empty_text() -> str:
    """What is said of a map that shows nothing but noise."""
    return "indistinguishable from empty: 19 of 20 maps of nobody stay below the same mark"


@singledispatch
def as_text(result: Any) -> str:
    """A result of a heatmap verb as lines for people.

    Args:
        result: What a function of the pipeline returned.

    Returns:
        The lines, without a line end after the last.

    Raises:
        TypeError: It is no such result.

    """
    raise TypeError(f"no words for {type(result).__name__}")


@as_text.register
def _release(result: ReleaseResult) -> str:
    before = f" (entry {result.entry.number}, made before: nothing was charged)"
    lines = [
        f"{result.statement}{before if result.made_before else ''}",
        f"left {_left_of(result.periods)}in {result.ledger}: {at_most(result.left)}",
    ]
    errors = tuple(result.errors.values())
    if len(errors) == 1:
        lines += error_lines(errors[0])
    elif errors:
        lines.append(errors_line(errors, len(result.noise) or None))
    empty = [group for group, one in result.noise.items() if one.empty]
    if empty:
        hint = f"; {MISTAKES}" if len(empty) == len(result.noise) else ""
        if hint and _has_times(result):
            hint += f" {TIMES}"
        lines.append(f"{_empty_maps(empty, len(result.noise))}{hint}")
    return "\n".join(lines)


def _empty_maps(empty: list[str], maps: int) -> str:
    """That some of the maps cannot be told from empty ones, and which."""
    if maps == 1:
        return empty_text()
    named = f"{', '.join(empty[:5])}{', ...' if len(empty) > 5 else ''}"
    return f"{len(empty)} of {maps} maps {empty_text()} ({named})"


def _left_of(periods: Sequence[str]) -> str:
    """Whose budget is left, where each period has one: the least of several."""
    if len(periods) < 2:
        return f"for {periods[0]} " if periods else ""
    return f"for {periods[0]} to {periods[-1]} (the least of them) "


def _has_times(result: ReleaseResult) -> bool:
    """Whether rows were told apart by a column of times."""
    told = [one.counted for one in result.maps[:1]]
    return any(
        "period" in one or any("unit" in part for part in one.get("pair", ())) for one in told
    )


@as_text.register
def _planned(result: PlannedRelease) -> str:
    many = "" if result.frames is None else f" for {amount_of(result.frames, 'frames')}"
    many = many if result.maps is None else f" for {amount_of(result.maps, 'maps')}"
    return (
        f"would cost {result.cost}{many}; {at_most(result.left)} left "
        f"{_left_of(result.periods)}in {result.ledger}; "
        f"{described(result.area)}; nothing was read or charged"
        + (
            f"\neverybody has mass 1 in each map, which is paid for; a ledger whose unit is called after "
            f"the column, such as {result.pays_once}, protects less and pays once"
            if result.pays_once
            else ""
        )
        + ("" if result.many is None else f"\n{many_words(result.many, result.measure)}")
        + (f"\n{pooled_words()}" if result.pooled and result.many is not None else "")
        + "".join(f"\n{one}" for one in result.undelivered)
    )


@as_text.register
def _rehearsal(result: RehearsalResult) -> str:
    errors, sharp = result.errors, result.without_blur
    empty = result.noise is not None and result.noise.empty
    lines = [
        *([f"{empty_text()}; {MISTAKES}"] if empty else []),
        *_rehearsed_groups(result),
        f"seen through a blur of {100 * result.blur:g}% of the map's side, as plan forecasts it:",
        f"similarity {errors.similarity:.3f} and correlation {errors.pearson:.3f}: 1 is a perfect map",
        f"divergence (kl) {errors.kl:.3f}: 0 is a perfect map",
        f"earth mover's distance {errors.emd:.4f} of the map's side: 0 is a perfect map",
    ]
    if errors.emd_metres is not None:
        lines.append(f"on average, mass is {errors.emd_metres:,.0f} m off")
    lines.append(
        f"cell by cell, without a blur: similarity {sharp.similarity:.3f}, correlation "
        f"{sharp.pearson:.3f}, divergence {sharp.kl:.3f}"
    )
    if result.stated is not None:
        lines += ["what the map says of itself, which is all that a release can:"]
        lines += [f"  {line}" for line in error_lines(result.stated)]
    return "\n".join(lines)


def _rehearsed_groups(result: RehearsalResult) -> list[str]:
    """The errors of each map, and that what follows are their means."""
    if not result.by_group:
        return []
    rows = [["map", "similarity", "correlation", "off by"]]
    for group, one in result.by_group.items():
        if one is None:
            rows.append([group, "nobody", "", ""])
            continue
        far = f"{one.emd:.4f} sides" if one.emd_metres is None else f"{one.emd_metres:,.0f} m"
        rows.append([group, f"{one.similarity:.3f}", f"{one.pearson:.3f}", far])
    somebody = sum(one is not None for one in result.by_group.values())
    return [
        *aligned(rows).splitlines(),
        f"means over the {'map' if somebody == 1 else f'{somebody} maps'} that somebody is on:",
    ]


@as_text.register
def _draw(result: DrawResult) -> str:
    return "\n".join(result.written)


@as_text.register
def _hotspots(result: HotspotsResult) -> str:
    rows = [_heads(result), *_spots(result)]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(word.ljust(width) for word, width in zip(row, wide, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, *([empty_text()] if result.empty else [])])


def _real(sure: bool, tested: bool) -> str:
    return "real" if sure else "" if tested else "not tested: too near another"


def _tested(result: HotspotsResult) -> tuple[bool, ...]:
    return result.tested or (True,) * len(result.hotspots)


def hotspots_remark(result: HotspotsResult) -> str:
    """How near to the best choice of k places the hotspots are."""
    mean, lower = f"{result.distance:.3g} sides of the map", f"{result.lower:.3g}"
    if result.side is not None:
        length, unit = result.side
        mean = f"{_ground(result.distance * length, unit)} ({mean})"
        lower = _ground(result.lower * length, unit)
    return (
        f"mass is {mean} from the nearest place on average; no choice of {result.k} brings it below "
        f"{lower}, {result.gap:.1%} less"
    )


def _ground(length: float, unit: str) -> str:
    return f"{float(f'{length:.3g}'):,.10g} {unit}"


def _heads(result: HotspotsResult) -> list[str]:
    place = ["lon", "lat"] if result.degrees else ["x", "y"]
    if result.within is None:
        return [*place, "nearest to it", ""]
    length, unit = result.within
    if unit == "m" and length >= 1000:
        length, unit = length / 1000, "km"
    sure = " (90%)" if result.near and result.near[0].low is not None else ""
    return [*place, "nearest to it", f"within {f'{length:g} {unit}'.strip()}{sure}", ""]


def hotspots_html(result: HotspotsResult) -> str:
    """A table for notebooks."""
    return _table(_heads(result), _spots(result), result.statement)


def _spots(result: HotspotsResult) -> list[list[str]]:
    """A row for each place."""
    real = result.real or (False,) * len(result.hotspots)
    near = [[_near(one)] for one in result.near] or [[]] * len(result.hotspots)
    return [
        [f"{spot.x:.6g}", f"{spot.y:.6g}", f"{spot.share:.1%}", *around, _real(sure, known)]
        for spot, around, sure, known in zip(
            result.hotspots, near, real, _tested(result), strict=True
        )
    ]


def _near(one: Nearby) -> str:
    if one.low is None or one.high is None:
        return f"{one.share:.1%}"
    return f"{one.share:.1%} ({one.low:.1%} to {one.high:.1%})"


@as_text.register
def _totals(result: TotalsResult) -> str:
    """The totals in lines of even columns; without intervals, why there are none."""
    head, body = _totals_rows(result)
    rows = [head, *body]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    remarks = ["", *(one.remark for one in result.zones)]
    lines = [
        "  ".join(
            [
                row[0].ljust(wide[0]),
                *(word.rjust(width) for word, width in zip(row[1:], wide[1:], strict=True)),
            ]
        )
        + (f"  {remark}" if remark else "")
        for row, remark in zip(rows, remarks, strict=True)
    ]
    if not result.has_intervals:
        lines.append(
            f"no intervals: the file does not say how sure this map, by {result.method}, is"
        )
    return "\n".join(lines)


def totals_html(result: TotalsResult) -> str:
    """A table for notebooks."""
    head, rows = _totals_rows(result)
    if any(one.remark for one in result.zones):
        # Without it, a zone that the map knows nothing of would be one of nobody.
        head = [*head, ""]
        rows = [[*row, one.remark] for row, one in zip(rows, result.zones, strict=True)]
    return _table(head, rows, result.statement)


def _totals_rows(result: TotalsResult) -> tuple[list[str], list[list[str]]]:
    head = ["zone", f"{result.unit}s", "share"]
    if result.has_intervals:
        head += [f"{result.coverage:.0%} interval", "at the worst"]
    rows = []
    for one in result.zones:
        row = [one.name, f"{one.users:,.0f}", f"{one.share:.1%}"]
        if one.low is not None and one.high is not None:
            row.append(f"{one.low:,.0f} to {one.high:,.0f}")
        if one.least is not None and one.most is not None:
            row.append(f"{one.least:,.0f} to {one.most:,.0f}")
        rows.append(row)
    return head, rows


def _table(head: list[str], rows: list[list[str]], caption: str) -> str:
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{names}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


@as_text.register
def _pool(result: PoolResult) -> str:
    totals = [f"{result.unit}s", *(f"{one.users:,.0f}" for one in result.pooled)]
    groups = ["map", *(one.group for one in result.pooled)]
    shares = ["from the others (0 to 1)", *(f"{one.strength:.2f}" for one in result.pooled)]
    wide, high = max(map(len, groups)), max(map(len, totals))
    rows = zip(groups, totals, shares, strict=True)
    lines = [f"{group:<{wide}}  {total:>{high}}  {share}" for group, total, share in rows]
    empty = [one.group for one in result.pooled if one.empty]
    noise = [_empty_maps(empty, len(result.pooled))] if empty else []
    return "\n".join([result.statement, *lines, *noise])


@as_text.register
def _replay(result: ReplayResult) -> str:
    worst = result.worst
    if worst is None:
        return f"{result.source} has no users to take out; nothing was compared"
    users = amount_of(result.users, "users")
    tried = f"{len(result.neighbors)} of {users} taken out of {result.source}, one at a time"
    if not result.compared:
        return f"{tried}: none of them had been counted, so nothing was compared; is it the area?"
    moved = f"the sums moved by at most {worst.l1:.6g} of the {result.masses} that is paid for"
    if result.held:
        return f"HELD by {result.engine}: {tried}; {moved}\nthat nothing was found is no proof"
    others = f", and others' cells rose by {worst.raised:.6g}" if worst.raised else ""
    return f"BROKEN by {result.engine}: {tried}; {moved}{others}: without {worst.user!r}"


@as_text.register
def _compared(result: CompareResult) -> str:
    return comparison_text(result)


def described(area: Area) -> str:
    """An area in words, so that a slip is seen before it is paid for.

    Args:
        area: The area.

    Returns:
        Its size, its middle for degrees, and the size of its cells.

    """
    low_x, low_y, high_x, high_y = area.bounds
    width, height = area.cell_size
    across, up = (high_x - low_x) / area.grid.cell_width, (high_y - low_y) / area.grid.cell_height
    if area.crs:
        size = f"{across * width / 1000:,.3g} x {up * height / 1000:,.3g} km"
        return f"area of {size} in {area.crs}, cells of {width:,.3g} x {height:,.3g} m"
    if area.kind != "degrees":
        size = f"{high_x - low_x:g} x {high_y - low_y:g} {area.unit}".strip()
        return f"area of {size}, cells of {width:.3g} x {height:.3g} {area.unit}".strip()
    x, y = (low_x + high_x) / 2, (low_y + high_y) / 2
    x -= 360 * (x > 180)
    place = f"{abs(y):.2f}{'N' if y >= 0 else 'S'} {abs(x):.2f}{'E' if x >= 0 else 'W'}"
    size = f"{across * width / 1000:,.3g} x {up * height / 1000:,.3g} km"
    return f"area of {size} around {place}, cells of {width:,.3g} x {height:,.3g} m"
