"""Readings in words: in the unit that sensors read in, where the site says it, not in masses of sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SOURCES = "mass of sources"
"""The unit of a made-up site, of which nothing is said: readings are what the operator makes of masses."""


@dataclass(frozen=True, slots=True)
class ReadingUnit:
    """What sensors read in: its name, "" where nobody said, and how many of it the operator's 1 is.

    >>> ReadingUnit("C", 20.0).text(0.0415), ReadingUnit().text(0.0415, "+.2g")
    ('0.83 C', '+0.042')
    """

    name: str = ""
    size: float = 1.0

    def number(self, value: float, how: str = ".3g") -> str:
        """A reading of the operator, or a difference of readings, in the unit: its number alone."""
        return f"{value * self.size:{how}}"

    def text(self, value: float, how: str = ".3g") -> str:
        """The same with the name of the unit."""
        return f"{self.number(value, how)} {self.name}".rstrip()

    @staticmethod
    def from_json(data: Any) -> ReadingUnit:
        """The unit that a JSON object states."""
        return ReadingUnit(str(data["name"]), float(data["size"]))


AS_READ = ReadingUnit()
"""As the operator has them."""
