"""Neighbor relations: between which two data sets a guarantee promises that nobody can tell.

Neighbors = AddRemoveUser | ReplaceUser | MovedMass | SwappedCells | FlippedEdge
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.losses import positive
from sfumato.privacy.accounting.numbers import Number, plain


@dataclass(frozen=True, slots=True)
class AddRemoveUser:
    """All rows of one user are added or removed; the number of users is itself private."""

    def __str__(self) -> str:
        return "one user added or removed"


@dataclass(frozen=True, slots=True)
class ReplaceUser:
    """All rows of one user are replaced by any others; the number of users is public."""

    def __str__(self) -> str:
        return "one user's data replaced"


@dataclass(frozen=True, slots=True, init=False)
class MovedMass:
    """Source vectors at earth mover's distance at most radius in the named metric [gilbert18, def. 3]."""

    radius: Fraction
    metric: str

    def __init__(self, radius: Number, metric: str) -> None:
        if not metric:
            raise InvalidParameter(
                "metric must be named, e.g. 'line' or 'grid-l1', got an empty name"
            )
        object.__setattr__(self, "radius", positive(radius, "radius"))
        object.__setattr__(self, "metric", metric)

    def __str__(self) -> str:
        return f"sources moved by an earth mover's distance of at most {plain(self.radius)} ({self.metric})"


@dataclass(frozen=True, slots=True, init=False)
class SwappedCells:
    """Two adjacent entries of a source vector in [0, upper] change places [gilbert17, def. 2]."""

    upper: Fraction

    def __init__(self, upper: Number) -> None:
        object.__setattr__(self, "upper", positive(upper, "upper"))

    def __str__(self) -> str:
        return f"two adjacent cells with values in [0, {plain(self.upper)}] swapped"


@dataclass(frozen=True, slots=True)
class FlippedEdge:
    """One edge of a network is added or removed; the nodes are public."""

    def __str__(self) -> str:
        return "one edge added or removed, the nodes public"


Neighbors = AddRemoveUser | ReplaceUser | MovedMass | SwappedCells | FlippedEdge
