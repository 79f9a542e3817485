"""Places in a plane, or in any number of dimensions, with the distance of a straight line or of a walk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, real_array, whole
from sfumato.errors import InvalidParameter
from sfumato.spaces._apart import Norm, apart


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Points:
    """Places given one by one, as far apart as the norm says; every place is one step from every other.

    Neighbors are all pairs, because no smaller set of steps realises a straight line: on a square
    grid, steps to the next cell alone are up to sqrt(2) too long.

    >>> corners = Points([(0, 0), (3, 0), (3, 4)])
    >>> corners.distance(0, 2), corners.neighbors(0)
    (5.0, array([1, 2]))
    """

    positions: FloatArray
    norm: Norm
    kind: ClassVar[str] = "points"

    def __init__(self, positions: npt.ArrayLike, norm: Norm = "euclidean") -> None:
        array = real_array("positions", positions)
        if array.ndim != 2 or 0 in array.shape:
            raise InvalidParameter(
                "positions must be a list of at least one place, all with as many coordinates, got "
                f"shape {array.shape}; no places were built"
            )
        # Beyond this, squares leave the doubles and a distance would be inf.
        if not (np.abs(array) <= 1e150).all():
            raise InvalidParameter(
                "positions must be finite and within 1e150, got one that is not; no places were built"
            )
        if norm not in get_args(Norm):
            raise InvalidParameter(
                f"norm must be 'euclidean' or 'l1', got {norm!r}; no places were built"
            )
        if np.unique(array, axis=0).shape != array.shape:
            raise InvalidParameter(
                "each place must be given once, got one again; no places were built"
            )
        object.__setattr__(self, "positions", read_only(array + 0.0))
        object.__setattr__(self, "norm", norm)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Points):
            return NotImplemented
        return self.norm == other.norm and np.array_equal(self.positions, other.positions)

    def __hash__(self) -> int:
        return hash((self.norm, self.positions.tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        # Copies and unpickled places are born again, so that their array is read-only too.
        return Points, (self.positions, self.norm)

    @property
    def metric(self) -> str:
        """What a neighbor relation calls this distance."""
        return f"points-{self.norm}"

    @property
    def size(self) -> int:
        """How many places there are."""
        return len(self.positions)

    @property
    def diameter(self) -> float:
        """The largest distance between two places."""
        return max(float(self.distances_from(i).max()) for i in range(self.size))

    def distance(self, i: int, j: int) -> float:
        """How far place j is from place i."""
        i, j = (whole("place", place, low=0, high=self.size - 1) for place in (i, j))
        return float(self.distances_from(min(i, j))[max(i, j)])

    def distances_from(self, i: int) -> FloatArray:
        """How far every place is from place i."""
        i = whole("place", i, low=0, high=self.size - 1)
        return apart(self.positions[i : i + 1], self.positions, self.norm).reshape(-1)

    def neighbors(self, i: int) -> IntArray:
        """Every other place."""
        i = whole("place", i, low=0, high=self.size - 1)
        return np.delete(np.arange(self.size, dtype=np.int64), i)

    def places(self, cells: IntArray) -> FloatArray:
        """The positions of some places: [cells, coordinates]."""
        return np.asarray(self.positions[cells])

    def distances_between(self, places: FloatArray, others: FloatArray) -> FloatArray:
        """How far each of some places is from each of others, by the norm."""
        return apart(places, others, self.norm)

    def nearest_cells(self, places: FloatArray) -> IntArray:
        """The place of this space that each of some places is nearest to."""
        return np.asarray(apart(places, self.positions, self.norm).argmin(axis=1), dtype=np.int64)

    def describe(self) -> str:
        """The places in words."""
        return f"{self.size} points, {self.norm} distances"

    def to_json(self) -> dict[str, Any]:
        """All positions, and the norm."""
        return {"kind": self.kind, "positions": self.positions.tolist(), "norm": self.norm}

    @staticmethod
    def from_json(data: Any) -> Points:
        """The places a JSON object states."""
        return Points(data["positions"], data["norm"])
