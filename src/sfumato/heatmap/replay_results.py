"""What a replay at the door found: neighbors of a table, and how far each moved the sums."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Neighbor:
    """How far the sums moved without one user, in masses: of all cells together, in l2, of one cell.

    `raised` is by how much cells rose: taking a user out can only lower them, unless the user was
    taken for another, whose mass then moves.
    """

    user: str
    l1: float
    l2: float
    linf: float
    raised: float


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What neighbors of a table did at the door; `masses` is how far one user may move the sums in l1."""

    source: str
    engine: str
    users: int
    masses: int
    neighbors: tuple[Neighbor, ...]

    @property
    def worst(self) -> Neighbor | None:
        """The neighbor that moved the sums furthest, or raised a cell."""
        return max(self.neighbors, key=lambda one: (one.raised > 0, one.l1), default=None)

    @property
    def held(self) -> bool:
        """Whether no neighbor moved the sums further than is paid for, or the mass of anybody else."""
        return all(
            one.l1 <= self.masses
            and one.linf <= 1
            and one.l2 <= math.sqrt(self.masses)
            and not one.raised
            for one in self.neighbors
        )

    @property
    def compared(self) -> bool:
        """Whether anybody who was taken out had been counted: else nothing is said of the table."""
        return any(one.l1 > 0 for one in self.neighbors)

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self) | {"held": self.held, "compared": self.compared}
