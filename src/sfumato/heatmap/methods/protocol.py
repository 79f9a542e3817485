"""What a way of making a map is: a mechanism that pays for noisy counts, and an estimate made of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import Bound, Mechanism
from sfumato.records import CellSums
from sfumato.spaces import Grid

U = TypeVar("U")


class Method(Protocol[U]):
    """A frozen value with the public parameters of a method; `name` is its word on the command line."""

    name: ClassVar[str]

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> Mechanism[CellSums, U]:
        """The mechanism that costs at most epsilon on sums with this bound."""

    def estimate(self, released: U, grid: Grid) -> tuple[Tiles, ...]:
        """One map for each group, from what was released alone: post-processing costs nothing."""


def check_level(level: int, bound: Bound, *, by: str) -> None:
    """Refuse to count cells of a level finer than any the data can have; asked when the cost is."""
    if bound.size >> 2 * level == 0:
        raise InvalidParameter(
            f"{by} down to level {level} counts {4**level} cells, the data has {bound.size}; "
            "nothing was charged"
        )


@dataclass(frozen=True, slots=True, eq=False)
class NoisyLevel:
    """Released counts, in units, of some cells of one level (codes increase; group * 4**level + code)."""

    level: int
    codes: IntArray
    values: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTree:
    """Released counts level by level from the top; `groups` maps one after another."""

    groups: int
    levels: tuple[NoisyLevel, ...]

    def to_json(self) -> dict[str, Any]:
        """Integers only."""
        return {
            "groups": self.groups,
            "levels": [
                {"level": one.level, "codes": one.codes.tolist(), "values": one.values.tolist()}
                for one in self.levels
            ],
        }
