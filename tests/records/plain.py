"""The sums as a plain program: loops, dictionaries and fractions; what every engine must equal."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from sfumato.privacy import UNITS
from sfumato.privacy.ledger.guarded import Guarded, open_for_release
from sfumato.records import CellSums, Columns, Groups, Pairs, Periods, Values
from sfumato.spaces import Area

Row = dict[str, Any]
NUMBER = re.compile(r"[+-]?([0-9]{1,40}([.][0-9]{0,40})?|[.][0-9]{1,40})([eE][+-]?[0-9]{1,2})?")
ZONE = r"( ?(?P<%s>Z|UTC|[+-](0\d|1[0-4])(:?[0-5]\d)?))?"
ISO = re.compile(
    r"(\d{4}-\d\d-\d\d([T ]([01]\d|2[0-3]):\d\d(:\d\d([.]\d{1,9})?)?" + ZONE % "zone" + ")?"
    r"|\d{8}T([01]\d|2[0-3])\d\d(\d\d([.]\d{1,9})?)?" + ZONE % "basic" + ")",
    re.ASCII,
)


def number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, str):
        text = value.strip(" \t\n\r\v\f")
        return float(text) if NUMBER.fullmatch(text) else None
    return float(value)


def plain_sums(
    rows: Iterable[Row], columns: Columns, area: Area, groups: Groups = None
) -> dict[int, int]:
    """Units by code."""
    west, south, east, north = area.bounds
    parts: list[Any] = []
    if isinstance(groups, Pairs):
        parts = [groups.first, groups.second]
    elif isinstance(groups, Periods | Values):
        parts = [groups]
    elif groups is not None and isinstance(columns.by, str):
        parts = [Values(columns.by, tuple(map(str, groups)))]
    counts: defaultdict[Any, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for place, row in enumerate(rows):
        user = place if columns.user is None else row[columns.user]
        x, y = number(row[columns.x]), number(row[columns.y])
        if user is None or user == "" or user != user or x is None or y is None:
            continue
        if area.crosses_antimeridian and x < west:
            x += 360
        elif area.kind == "degrees" and abs(x) == 180 and not west <= x <= east:
            x = -x
        if not (west <= x <= east and south <= y <= north):
            continue
        steps = 1
        if columns.weight is not None:
            weight = number(row[columns.weight])
            if weight is None or not math.isfinite(weight) or weight < 0:
                continue
            step = float(columns.step or 1)
            steps = math.floor(min(weight, columns.cap * step) / step)
        # A point on the far edge of the bounds belongs to the last cell inside them.
        first_column, first_row, end_column, end_row = area.window(area.grid.levels)
        column, row_number = area.grid.decode(area.grid.cells_of([x], [y]))
        column = column.clip(first_column, end_column - 1)
        code = int(area.grid.encode(column, row_number.clip(first_row, end_row - 1))[0])
        group, own = 0, [user]
        for part in parts:
            found = plain_part(row[part.column], part)
            if found is None:
                break
            group = group * part.count + found
            if getattr(part, "mass_per_period", getattr(part, "mass_per_value", False)):
                own.append(found)
        else:
            counts[tuple(own)][code + area.grid.size * group] += steps
    out: defaultdict[int, int] = defaultdict(int)
    for cells in counts.values():
        clamped = {code: min(count, 2**30) for code, count in cells.items()}
        total = max(sum(clamped.values()), columns.rows_per_user or 1)
        for code, count in clamped.items():
            if count:
                out[code] += math.floor(Fraction(count * UNITS, total))
    return {code: units for code, units in sorted(out.items()) if units}


def plain_part(value: Any, part: Periods | Values) -> int | None:
    """Which of the names of a part a row has."""
    if isinstance(part, Periods):
        return plain_period(value, part)
    said = None if value is None else str(value)
    return part.names.index(said) if said in part.names else None


def plain_period(value: Any, periods: Periods) -> int | None:
    """The period of a time, by the calendar and the zones of Python."""
    if isinstance(value, str):
        text = value.strip(" \t\n\r\v\f")
        found = ISO.fullmatch(text)
        if found is not None and (zone := found["zone"] or found["basic"]):
            text = text.removesuffix(zone).rstrip() + zone.replace("UTC", "Z")
        try:
            value = None if found is None else datetime.fromisoformat(text)
        except ValueError:
            return None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value is None:
        return None
    if value.tzinfo is not None or periods.time_zone:
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        value = aware.astimezone(ZoneInfo(periods.time_zone or "UTC")).replace(tzinfo=None)
    if periods.unit == "whole":
        return 0 if periods.start <= value < periods.end else None
    if periods.unit in ("weekday", "weekend", "hour-of-day"):
        inside = periods.start <= value < periods.end
        days = value.weekday() if periods.unit == "weekday" else int(value.weekday() >= 5)
        return (value.hour if periods.unit == "hour-of-day" else days) if inside else None
    ends = (*periods.starts[1:], periods.end)
    return next((i for i, end in enumerate(ends) if periods.starts[i] <= value < end), None)


def opened(guarded: Guarded[CellSums]) -> dict[int, int]:
    """What is under guard, for tests."""
    sums = open_for_release(guarded)
    assert sums.codes.dtype == sums.units.dtype == "int64"
    return dict(zip(sums.codes.tolist(), sums.units.tolist(), strict=True))
