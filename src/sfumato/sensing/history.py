"""A history of changes as readings at public times: what a sensor said last holds until it says something else.

When a row is there tells that a reading changed then. So no time of the table becomes a time of a round, and
whether a sensor is in a round depends on no row after the first round: see `held_states`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.sensing.rounding import EPOCH, UNDONE, date_of

MOST_ROUNDS = 100_000
"""Rounds of one history: a year of every 5 minutes. More are a date that was mistyped."""


def public_rounds(since: str, until: str, step: timedelta) -> list[datetime]:
    """The rounds of a history: every multiple of a step from `since` on and before `until`.

    All three are public. The first and the last row of the table would tell when something changed.
    """
    ends = []
    for name, text in (("since", since), ("until", until)):
        moment = date_of(text)
        if moment is None:
            raise InvalidParameter(
                f"`{name}` is a date like 2026-11-16 or 2026-11-16T09:30Z, got {text!r}; {UNDONE}"
            )
        ends.append(moment)
    begin, end = ends
    if end > _now():
        raise InvalidParameter(f"`until` must not be a time to come; {UNDONE}")
    if begin >= end:
        raise InvalidParameter(f"`until` must be after `since`; {UNDONE}")
    first = EPOCH - (EPOCH - begin) // step * step
    count = max(0, -((first - end) // step))
    if not 0 < count <= MOST_ROUNDS:
        raise InvalidParameter(
            f"there must be 1 to {MOST_ROUNDS} rounds from `since` on and before `until`, there are {count}; "
            f"{UNDONE}"
        )
    return [first + number * step for number in range(count)]


def held_states(
    changes: Iterable[tuple[datetime, str, Any]], rounds: Sequence[datetime], *, since: datetime
) -> list[tuple[datetime, dict[str, Any]]]:
    """What each sensor said last before each round.

    A sensor is in every round, or in none: in all if it said a number at `since` or before, which the state
    that an export begins with does. A row after `since` changes numbers, and never who is there: where it
    has no number (unavailable, unknown) the last one holds. For sensors that speak when they change also
    fall silent, and come back, because of what they read, and a gap would tell when.
    """
    said: dict[str, list[tuple[datetime, Any]]] = {}
    for moment, name, value in sorted(changes, key=lambda one: one[0]):
        if value is not None:
            said.setdefault(name, []).append((moment, value))
    there = {name: rows for name, rows in said.items() if rows[0][0] <= since}
    if not there:
        raise InvalidInput(
            "no sensor has a state at `since` or before: an export begins with the states of its "
            f"beginning; {UNDONE}"
        )
    times = {name: [moment for moment, _ in rows] for name, rows in there.items()}
    return [
        (moment, {name: there[name][bisect_right(times[name], moment) - 1][1] for name in there})
        for moment in rounds
    ]


def _now() -> datetime:
    return datetime.now(UTC)
