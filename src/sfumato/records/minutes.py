"""When a row is, in whole minutes: one integer expression for every engine and every type of time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import ibis

from sfumato.errors import InvalidInput
from sfumato.records.fields import types_are_hints, without_collation

DAY = 24 * 60
# Days and times of ISO 8601 as every engine reads them; seconds do not matter to a period. Each row
# is read by itself: what others hold decides nothing of how it is read.
_DAY = "(0[1-9]|1[0-2]){0}(0[1-9]|[12][0-9]|3[01])"
_CLOCK = "([01][0-9]|2[0-3]){0}[0-5][0-9]({0}[0-5][0-9]([.][0-9]{{1,9}})?)?"
_ZONE = "( ?(Z|UTC|[+-](0[0-9]|1[0-4])(:?[0-5][0-9])?))?"
EXTENDED = f"[0-9]{{4}}-{_DAY.format('-')}([T ]{_CLOCK.format(':')}{_ZONE})?"
BASIC = f"[0-9]{{4}}{_DAY.format('')}T{_CLOCK.format('')}{_ZONE}"
OFFSET = "[+-][0-9]{2}(:?[0-9]{2})?"


def with_minutes(rows: Any, column: str, start: datetime, end: datetime) -> Any:
    """Rows with `minute`, since the day before 0001-01-01 as Python counts, and whether it is `readable`.

    Times are moved between public ends before anything is asked of them: no row can be out of an
    engine's range there. Seconds are not asked for: DuckDB rounds those of nanoseconds up.
    """
    kind, hints = rows.group.type(), types_are_hints(rows.group)
    if hints or not (kind.is_timestamp() or kind.is_date() or kind.is_string()):
        if hints:
            raise InvalidInput(
                f"times in SQLite have no type and are not read, in column {column!r}; export the "
                "table to Parquet; nothing was counted"
            )
        raise InvalidInput(
            f"column {column!r} must hold times, dates or text like 2026-01-31T07:15:00+02:00, its "
            f"type is {kind}; cast seconds since 1970 to times, nanoseconds in a zone to microseconds; "
            "nothing was counted"
        )
    rows = rows.mutate(day=0, month=0)
    if kind.is_string():
        return _with_minutes_of_text(rows)
    # A day to either side of UTC, where an offset can lead.
    low, high = start - timedelta(days=2), end + timedelta(days=2)
    if kind.is_date():
        first, last = (ibis.literal(moment.date(), "date") for moment in (low, high))
    else:
        if kind.timezone:
            _check_session(rows.group.get_backend())
        kind = kind.copy(timezone="UTC") if kind.timezone else kind
        rows = rows.mutate(group=rows.group.cast(kind)) if kind.timezone else rows
        # Engines would cast a column of seconds to the microseconds of the literal, and could
        # overflow.
        first, last = (
            ibis.literal(moment, kind.copy(scale=6)).cast(kind) for moment in (low, high)
        )
    near = rows.group.notnull() & (rows.group >= first) & (rows.group < last)
    rows = rows.mutate(readable=near, group=near.ifelse(rows.group, first))
    clock = (
        0
        if kind.is_date()
        else 60 * rows.group.hour().cast("int64") + rows.group.minute().cast("int64")
    )
    rows = rows.mutate(
        year=rows.group.year().cast("int64"),
        day=rows.group.day_of_year().cast("int64"),
        minute=clock,
    )
    return rows.mutate(minute=DAY * (_days_before(rows.year) + rows.day) + rows.minute).drop("year")


def _check_session(engine: Any) -> None:
    """Refuse a session of DuckDB whose clock is not UTC: it reads hours and days of times in zones by it."""
    if engine.name == "duckdb":
        ((zone,),) = engine.raw_sql("select current_setting('TimeZone')").fetchall()
        if zone not in ("UTC", "Etc/UTC"):
            raise InvalidInput(
                f"the session of DuckDB must be in UTC to read times with a zone, it is in {zone!r}; say "
                "set timezone = 'UTC'; nothing was counted"
            )


def _with_minutes_of_text(rows: Any) -> Any:
    rows = rows.mutate(group=without_collation(rows.group).strip())
    readable = rows.group.notnull() & rows.group.re_search(f"^({EXTENDED}|{BASIC})$")
    rows = rows.mutate(readable=readable)
    # Every text that is cast below is one that fits.
    rows = rows.mutate(group=rows.readable.ifelse(rows.group, ibis.literal("2000-01-01T00:00")))
    text = rows.group
    day = text.substr(0, 4) + "-" + text.substr(4, 2) + "-" + text.substr(6, 2)
    whole = day + "T" + text.substr(9, 2) + ":" + text.substr(11)
    rows = rows.mutate(group=(text.substr(4, 1) == "-").ifelse(text, whole))
    whole = (rows.group.length() == 10).ifelse(rows.group + ibis.literal("T00:00"), rows.group)
    rows = rows.mutate(group=whole)
    found = rows.group.re_extract(f"({OFFSET})$", 1)
    tail = rows.group.re_search(f"{OFFSET}$").ifelse(found, ibis.literal("+00"))
    places = {"year": (0, 4), "month": (5, 2), "day": (8, 2), "hour": (11, 2), "minute": (14, 2)}
    fields = {name: rows.group.substr(*place).cast("int64") for name, place in places.items()}
    rows = rows.mutate(**fields, tail=tail.replace(":", "") + ibis.literal("00"))
    offset = 60 * rows.tail.substr(1, 2).cast("int64") + rows.tail.substr(3, 2).cast("int64")
    signed = (rows.tail.substr(0, 1) == "-").ifelse(-offset, offset)
    leap = (rows.year % 4 == 0) & ((rows.year % 100 != 0) | (rows.year % 400 == 0))
    rows = rows.mutate(minute=60 * rows.hour + rows.minute - signed, short=leap.ifelse(1, 2))
    before = _days_before_month(rows.month, rows.short)
    rows = rows.mutate(before=before, after=_days_before_month(rows.month + 1, rows.short))
    days = _days_before(rows.year) + rows.before + rows.day
    rows = rows.mutate(
        readable=rows.readable & (rows.day <= rows.after - rows.before),
        minute=DAY * days + rows.minute,
    )
    return rows.drop("year", "hour", "tail", "short", "before", "after")


def _days_before(year: Any) -> Any:
    """Days from 0001-01-01 to the first of a year, a leap year every 4 but not every 100 but every 400."""
    past = year - 1
    return 365 * past + past // 4 - past // 100 + past // 400


def _days_before_month(month: Any, short: Any) -> Any:
    """Days from the first of a year to that of a month in 1..13: months have 30.6 days, about.

    `short` is what February lacks to 30 days.
    """
    return (367 * month - 362) // 12 - (month <= 2).ifelse(0, short)
