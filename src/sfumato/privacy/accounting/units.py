"""Units of privacy that are a part of a user: in a period, such as a user-day, or a value, as user-image."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

PERIODS = ("minute", "hour", "day", "week", "month", "year")
# How maps name their periods, and one of each: ISO 8601, as in `records.Periods.names`.
NAMED = {
    "hour": ("%Y-%m-%dT%H", "2026-01-31T07"),
    "day": ("%Y-%m-%d", "2026-01-31"),
    "week": ("%G-W%V", "2026-W05"),
    "month": ("%Y-%m", "2026-01"),
}
# Of these no maps are made; a ledger that protects one pays for none.
OTHER_PERIODS = (
    "night",
    "weekend",
    "quarter",
    "season",
    "decade",
    "date",
    "shift",
    "daily",
    "hourly",
    "weekly",
    "monthly",
)


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock that tells the periods of a unit such as user-day: a column of times, read in a zone.

    The days of Rome are not those of UTC, nor are days of arrival those of departure: rows that lie
    in one day of one clock lie in several of another. So a ledger of user-days keeps to one clock.

    >>> print(Clock("arrival", "Europe/Rome"), "and", Clock("arrival"))
    'arrival' in Europe/Rome and 'arrival' as written
    """

    column: str
    zone: str = ""

    def __str__(self) -> str:
        return f"{self.column!r} {f'in {self.zone}' if self.zone else 'as written'}"

    def to_json(self) -> dict[str, Any]:
        """The clock as it is stored."""
        return {"column": self.column, "zone": self.zone}

    @staticmethod
    def from_json(data: Any) -> Clock:
        """The clock a JSON object states; a missing part is a KeyError that names it."""
        return Clock(str(data["column"]), str(data["zone"]))


@dataclass(frozen=True, slots=True)
class ValueColumns:
    """The columns whose values tell the parts of a unit such as user-image: one user in one image.

    A ledger of such a unit keeps to these columns, as one of user-days keeps to its clock.

    >>> ValueColumns(("image",)).named_by("user-image"), ValueColumns(("image",)).named_by("user")
    (True, False)
    >>> ValueColumns(("group",)).named_by("user-image-group")  # a smaller part of a user than that
    False
    """

    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"values of {' and '.join(map(repr, self.columns))}"

    def named_by(self, unit: str) -> bool:
        """Whether a unit is called after them: one word, and exactly their names, with hyphens between."""
        whole, _, rest = unit.partition("-")
        return bool(whole) and rest == "-".join(self.columns)

    def to_json(self) -> dict[str, Any]:
        """The columns as they are stored."""
        return {"columns": list(self.columns)}


def told_by(data: Any) -> Clock | ValueColumns:
    """What tells the parts of a unit, as a JSON object states it."""
    if "columns" in data:
        return ValueColumns(tuple(map(str, data["columns"])))
    return Clock.from_json(data)


def period_of(unit: str) -> str | None:
    """The period of time that a unit names, or None: the last of its words that ends in an English one.

    Rather one too many than too few: a unit that is taken for a period is refused where it is none.

    Args:
        unit: The unit of privacy, as a ledger names it.

    Returns:
        The period in the singular, or None.

    Example:
        >>> period_of("user-day"), period_of("Person Weeks"), period_of("day of a user"), period_of("household")
        ('day', 'week', 'day', None)

    """
    words = [word.lower().removesuffix("s") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", unit)]
    known = (*OTHER_PERIODS, *PERIODS)
    return next((one for word in reversed(words) for one in known if word.endswith(one)), None)


def is_named(name: str, period: str) -> bool:
    """Whether a period of this length can have this name; any does where maps name none.

    >>> is_named("2026-01-08", "day"), is_named("2026-01-8", "day"), is_named("2026-W02", "week")
    (True, False, True)
    """
    if period not in NAMED:
        return True
    form, _ = NAMED[period]
    # A week begins with a day of it; else the parser takes no notice of the week.
    day, of = ("-1", "-%u") if period == "week" else ("", "")
    try:
        return datetime.strptime(name + day, form + of).strftime(form) == name
    except ValueError:
        return False
