"""What a map counts: users, or rows of which each user has at most so many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Of the interval of a total: above it, hardly a draw would lie beyond an end.
HIGHEST_COVERAGE = 0.95


def amount_of(number: int | str, name: str) -> str:
    """A number, or as it is shown, and what it is of, whose name is in the plural.

    >>> amount_of(1, "users"), amount_of(2, "users"), amount_of("0.5", "rows"), amount_of(1000, "rows")
    ('1 user', '2 users', '0.5 rows', '1,000 rows')
    """
    shown = number if isinstance(number, str) else f"{number:,}"
    return f"{shown} {one_of(name) if shown == '1' else name}"


def one_of(name: str) -> str:
    """What one of several is called: the singular of "users", "rows" or a unit of privacy.

    >>> one_of("users"), one_of("buss")
    ('user', 'bus')
    """
    return name.removesuffix("s")


@dataclass(frozen=True, slots=True)
class Measure:
    """What is counted, and how much of it is a mass of 1, which is what one user can move a map by.

    Attributes:
        name: What is counted, in the plural: "users", "rows".
        scale: How many of them a mass of 1 is.

    """

    name: str = "users"
    scale: int = 1

    @property
    def column(self) -> str:
        """What tables call it, whatever the unit of privacy: "users" or "rows"."""
        return "rows" if self.name == "rows" else "users"

    @classmethod
    def of(cls, counted: Mapping[str, Any], unit: str) -> Measure:
        """That of a map whose columns and unit of privacy are known.

        >>> Measure.of({"rows_per_user": 40}, "user")
        Measure(name='rows', scale=40)
        """
        rows = counted.get("rows_per_user")
        return cls(f"{unit}s") if rows is None else cls("rows", int(rows))
