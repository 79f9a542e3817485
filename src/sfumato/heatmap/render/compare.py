"""A comparison of two maps in words, for the terminal, pictures and pages."""

from __future__ import annotations

from collections.abc import Callable

from sfumato.heatmap.comparison.differences import Change
from sfumato.heatmap.comparison.results import CompareResult, Differences, ZoneChange
from sfumato.heatmap.comparison.shift import COVERAGE, Shift
from sfumato.heatmap.measure import amount_of

LISTED = 5  # squares that a terminal shows
FAR = 10_000  # metres, from which on distances are said in kilometres


def comparison_text(result: CompareResult) -> str:
    """A comparison as lines for people.

    Args:
        result: What `compare_maps` found.

    Returns:
        The lines, without a line end after the last.

    """
    lines = [*result.remarks, *sentences(result)]
    parts: list[tuple[Differences | None, Callable[..., str]]]
    parts = [(result.users, people), (result.shares, percent)]
    if _grew(result.total):  # then most squares of users say no more than that
        parts.reverse()
    for found, what in parts:
        if found is not None:
            name = f"{result.unit}s" if what is people else "shares"
            lines += [f"  {name}: {square_text(one, what)}" for one in found.changes[:LISTED]]
            if len(found.changes) > LISTED:
                more = len(found.changes) - LISTED
                lines.append(f"  {name}: and {more} more square{'' if more == 1 else 's'}")
    if result.zones:
        lines += ["", *_columns([zone_head(result), *map(zone_row, result.zones)])]
    return "\n".join(lines)


def sentences(result: CompareResult) -> tuple[str, ...]:
    """What changed, a sentence to a line: the total, the shift, and where it is sure.

    Args:
        result: What `compare_maps` found.

    Returns:
        The sentences, without a full stop.

    """
    total = result.total
    then, now, more = people(total.before), people(total.after), people(total.change, sign=True)
    said = f"{result.unit}s: {then} then, {now} now: {more}"
    if total.low is not None and total.high is not None:
        ends = f"{people(total.low, sign=True)} to {people(total.high, sign=True)}"
        said += f" ({result.coverage:.0%}: {ends})"
    return (
        f"from {result.names[0]} to {result.names[1]}",
        said,
        shift_text(result.shift),
        where_text(result.users, f"{result.unit}s", result),
        where_text(result.shares, f"shares of all {result.unit}s", result),
    )


def shift_text(shift: Shift) -> str:
    """How far mass moved beside what noise alone gives, in one sentence.

    >>> shift_text(Shift(322.1, "m", 304.0, 251.0, 363.0, False))
    'shifted 320 m; noise alone gives 300 m (90%: 250 to 360): no more than noise'
    >>> shift_text(Shift(410_000.0, "m", 230_000.0, 150_000.0, 410_000.0, True))
    'shifted 410 km; noise alone gives 230 km (90%: 150 to 410): more than noise'
    """
    unit, part = ("km", 0.001) if shift.unit == "m" and shift.value >= FAR else (shift.unit, 1.0)
    moved = f"shifted {_length(shift.value * part, unit)}"
    if shift.noise is None or shift.low is None or shift.high is None:
        return f"{moved}; what noise alone gives is not known: a map does not say how sure it is"
    ends = f"{_number(shift.low * part)} to {_number(shift.high * part)}"
    verdict = "more than noise" if shift.exceeds else "no more than noise"
    return (
        f"{moved}; noise alone gives {_length(shift.noise * part, unit)} ({COVERAGE:.0%}: {ends}): "
        f"{verdict}"
    )


def where_text(found: Differences | None, what: str, result: CompareResult) -> str:
    """In how many squares a difference is sure, or why that is not known."""
    if found is None:
        silent = result.users is None
        why = "a map does not say how sure it is" if silent else "a map may be of nobody"
        return f"where {what} differ is not known: {why}"
    sure = f"with {found.confidence:.0%}, all at once"
    if not found.changes:
        return f"{what} differ for sure in none of {amount_of(found.tested, 'squares')} of all sizes ({sure})"
    many = f"{len(found.changes):,} square{'' if len(found.changes) == 1 else 's'}"
    return f"{what} differ for sure in {many} of {found.tested:,} of all sizes ({sure})"


def square_text(one: Change, what: Callable[..., str]) -> str:
    """One square in words: where it is, then, now, and the change."""
    x, y = (one.west + one.east) / 2, (one.south + one.north) / 2
    return (
        f"{what(one.change, sign=True)} ({what(one.low, sign=True)} to {what(one.high, sign=True)}) "
        f"in x {one.west:.6g} to {one.east:.6g}, y {one.south:.6g} to {one.north:.6g}, around "
        f"{x:.6g},{y:.6g}"
    )


def _grew(total: ZoneChange) -> bool:
    """Whether the whole is surely more, or less."""
    return total.low is not None and total.high is not None and not total.low <= 0 <= total.high


def zone_head(result: CompareResult) -> list[str]:
    """The names of the columns of `zone_row`."""
    return ["zone", "then", "now", "change", f"{result.coverage:.0%} interval"]


def zone_row(one: ZoneChange) -> list[str]:
    """A zone as words of a table; of what lies outside the area nothing is known.

    >>> zone_row(ZoneChange("Boston", 0.0, 0.0, 0.0, 0.0, 0.0, inside=0.0))[-1]
    'outside the area'
    """
    ends = "not known"
    if one.low is not None and one.high is not None:
        ends = f"{people(one.low, sign=True)} to {people(one.high, sign=True)}"
    if one.inside <= 0:
        ends = "outside the area"
    elif one.inside < 0.995:
        ends += f", {one.inside:.0%} inside"
    return [one.name, people(one.before), people(one.after), people(one.change, sign=True), ends]


def people(number: float, *, sign: bool = False) -> str:
    """A number of users: whole ones, or tenths of a few.

    >>> people(1234.4), people(-0.04, sign=True), people(3.21, sign=True)
    ('1,234', '0', '+3.2')
    """
    said = f"{number:+,.0f}" if abs(number) >= 10 else f"{number:+,.1f}"
    if float(said.replace(",", "")) == 0:
        return "0"
    return said if sign or number < 0 else said[1:]


def percent(number: float, *, sign: bool = False) -> str:
    """A share in percent.

    >>> percent(0.0123, sign=True)
    '+1.23%'
    """
    return f"{100 * number:+.2f}%" if sign else f"{100 * number:.2f}%"


def _length(value: float, unit: str) -> str:
    return f"{_number(value)} {unit}".rstrip()


def _number(value: float) -> str:
    """Two digits that count, as people say distances."""
    return f"{float(f'{value:.2g}'):,g}"


def _columns(rows: list[list[str]]) -> list[str]:
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [
                row[0].ljust(wide[0]),
                *(word.rjust(width) for word, width in zip(row[1:], wide[1:], strict=True)),
            ]
        )
        for row in rows
    ]
