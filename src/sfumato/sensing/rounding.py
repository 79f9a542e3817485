"""Rounds of readings: how far apart they are, and which one a moment belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sfumato.errors import InvalidInput, InvalidParameter

UNDONE = "nothing was charged"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Schedule:
    """What windows of time that pay say of rounds: how long they are, and when they begin and end.

    Without any, `window` is None; times that nobody said are "".
    """

    window: timedelta | None = None
    since: str = ""
    until: str = ""


def date_of(text: str) -> datetime | None:
    """A moment in UTC, which is also what a date without a zone means; None for a text that is no date."""
    try:
        found = datetime.fromisoformat(text)
        return (found.replace(tzinfo=UTC) if found.tzinfo is None else found).astimezone(UTC)
    except (ValueError, OverflowError, TypeError):
        return None


def written(moment: datetime) -> str:
    """A moment as releases have it: to the minute, or the second where it is none."""
    return f"{moment:%Y-%m-%dT%H:%M}{f':{moment:%S}' if moment.second else ''}Z"


def parse_round(text: str, window: timedelta | None = None) -> timedelta | None:
    """How far apart rounds are: seconds, minutes, hours or days; None for 0, where every time is a round.

    Where windows of time pay, a window is some whole rounds long.

    >>> parse_round("90s")
    datetime.timedelta(seconds=90)
    """
    if text.strip() in ("0", "0s", "0m"):
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text.strip())
    if found is None:
        raise InvalidParameter(
            f"`round_time` is a number of s, m, h or d, e.g. 30s, 1m, 1h, got {text!r}; {UNDONE}"
        )
    step = timedelta(seconds=int(found[1]) * _SPANS[found[2]])
    if window is not None and window % step:
        raise InvalidParameter(
            "a window must be some whole rounds long, or a round would lie in two: its "
            f"{window // timedelta(minutes=1)} minutes are no multiple of `round_time` {text.strip()}; {UNDONE}"
        )
    return step


def round_of(moment: datetime, step: timedelta, window: timedelta | None = None) -> datetime:
    """The round of a moment: the nearest of those in the window of time that the moment lies in.

    A round in another window would be paid for by that one's budget; and with rounds of other lengths, by
    those of many windows. A window is some whole rounds long, and both tile time from 1970 on, in UTC: so
    it begins with a round, and only the nearest one after its end is not in it.

    >>> late = datetime(2026, 11, 16, 23, 59, 57, tzinfo=UTC)
    >>> minute, day = timedelta(minutes=1), timedelta(days=1)
    >>> f"{round_of(late, minute):%d %H:%M}", f"{round_of(late, minute, day):%d %H:%M}"
    ('17 00:00', '16 23:59')
    """
    try:
        nearest = EPOCH + (moment - EPOCH + step / 2) // step * step
        if window is None or (nearest - EPOCH) // window == (moment - EPOCH) // window:
            return nearest
        return nearest - step
    except OverflowError:
        raise InvalidInput(f"a time must lie in years 1 to 9999; {UNDONE}") from None
