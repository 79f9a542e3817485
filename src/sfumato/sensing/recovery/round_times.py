"""Which rounds a text means: a time as it is written, a clock, a day, a number, or a range of these."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta

RANGE = ".."
CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_LENGTHS = (timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1))
_DAY = timedelta(days=1)


def matching_times(times: Iterable[str], asked: str) -> list[str]:
    """The times that a text names, in the order they come.

    A time as it is written names itself. Otherwise a clock (12:00) names that minute of every day,
    a date its whole day, a date with a clock that minute, and a number itself. A range "A..B" names
    all from A to the end of B; either may be left out, and clocks may go past midnight. Clocks and
    dates are as times are written, in their zone, unless a date names another.

    >>> day = [f"2026-03-01T{hour:02}:00" for hour in range(24)]
    >>> matching_times(day, "12:00")
    ['2026-03-01T12:00']
    >>> matching_times(day, "22:00..01:00")
    ['2026-03-01T00:00', '2026-03-01T01:00', '2026-03-01T22:00', '2026-03-01T23:00']
    >>> matching_times(["1", "2", "10"], "2..")
    ['2', '10']
    >>> len(matching_times(day, "2026-03-01")), matching_times(day, "noon")
    (24, [])
    """
    given = list(times)
    if asked in given:
        return [asked]
    begin, dots, end = asked.partition(RANGE)
    first, last = (begin.strip(), end.strip()) if dots else (asked.strip(), asked.strip())
    if not first and not last:
        return []
    for reading in (_by_clock, _by_date, _by_number):
        try:
            return reading(given, first, last)
        except ValueError:
            continue
    return []


def _by_clock(times: list[str], first: str, last: str) -> list[str]:
    begin = _clock_span(first)[0] if first else timedelta(0)
    end = _clock_span(last)[1] if last else _DAY
    at = {when: _clock_of(when) for when in times}
    if begin < end:
        return [when for when in times if begin <= at[when] < end]
    return [when for when in times if at[when] >= begin or at[when] < end]


def _by_date(times: list[str], first: str, last: str) -> list[str]:
    begin = _date_span(first)[0] if first else None
    end = _date_span(last)[1] if last else None
    # A date without a zone is of the clock that wrote the times, whatever its zone is.
    zoned = [one is not None and one.tzinfo is not None for one in (begin, end)]
    clocks = {when: datetime.fromisoformat(when) for when in times}

    def at(when: str, *, by_zone: bool) -> datetime:
        found = clocks[when]
        if not by_zone:
            return found.replace(tzinfo=None)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found

    return [
        when
        for when in times
        if (begin is None or at(when, by_zone=zoned[0]) >= begin)
        and (end is None or at(when, by_zone=zoned[1]) < end)
    ]


def _by_number(times: list[str], first: str, last: str) -> list[str]:
    begin = float(first) if first else float("-inf")
    end = float(last) if last else float("inf")
    return [when for when in times if begin <= float(when) <= end]


def _clock_span(text: str) -> tuple[timedelta, timedelta]:
    """From when to before when a clock is right: 12:00 for a minute, 12:00:05 for a second."""
    found = CLOCK.fullmatch(text)
    if found is None:
        raise ValueError(text)
    start = _since_midnight(time(int(found[1]), int(found[2]), int(found[3] or 0)))
    return start, start + (_LENGTHS[1] if found[3] is None else _LENGTHS[2])


def _clock_of(when: str) -> timedelta:
    """The time of the day of a round, as it is written; of a clock, its own."""
    found = CLOCK.fullmatch(when)
    return _clock_span(when)[0] if found else _since_midnight(datetime.fromisoformat(when).time())


def _since_midnight(clock: time) -> timedelta:
    return timedelta(
        hours=clock.hour,
        minutes=clock.minute,
        seconds=clock.second,
        microseconds=clock.microsecond,
    )


def _date_span(text: str) -> tuple[datetime, datetime]:
    """From when to before when a date is right: a day, an hour, a minute or a second."""
    start = datetime.fromisoformat(text)
    _, _, clock = text.replace(" ", "T").partition("T")
    if not clock:
        return start, start + _DAY
    written = re.split(r"[Z+-]", clock)[0]
    if "." in written or "," in written:
        return start, start + timedelta(microseconds=1)
    return start, start + _LENGTHS[min(2, written.count(":"))]
