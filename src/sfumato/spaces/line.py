"""Cells on a line, the space of the sensor papers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, real_array, whole
from sfumato.errors import InvalidParameter
from sfumato.spaces._apart import apart


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Line:
    """Places on a line for sources and sensors; the distance of two cells is that of their positions.

    `Line(n)` has the papers' cells 1/n, 2/n, ..., 1 (times length); `Line.at(positions)` has any
    others.

    >>> line = Line(4)
    >>> line.positions
    array([0.25, 0.5 , 0.75, 1.  ])
    >>> line.distance(0, 3), line.neighbors(0)
    (0.75, array([1]))
    """

    positions: FloatArray
    kind: ClassVar[str] = "line"

    def __init__(self, n: int, length: float = 1.0) -> None:
        n = whole("n", n, low=1)
        if not 0 < length < np.inf:
            raise InvalidParameter(
                f"length must be positive and finite, got {length}; no line was built"
            )
        self._hold(np.arange(1, n + 1) / n * length)

    @classmethod
    def at(cls, positions: npt.ArrayLike) -> Line:
        """A line with one cell at each position; they must increase, so that cell i stays the caller's i."""
        line = cls.__new__(cls)
        line._hold(real_array("positions", positions))
        return line

    def _hold(self, positions: FloatArray) -> None:
        if positions.ndim != 1 or positions.size == 0:
            raise InvalidParameter(
                f"positions must be a list of at least one number, got shape {positions.shape}; "
                "no line was built"
            )
        if not np.isfinite(positions).all():
            first = int(np.flatnonzero(~np.isfinite(positions))[0])
            raise InvalidParameter(
                f"positions must be finite, got {positions[first]} at {first}; no line was built"
            )
        late = np.flatnonzero(positions[1:] <= positions[:-1])
        if late.size:
            first = int(late[0])
            raise InvalidParameter(
                f"positions must increase, got {positions[first]} before {positions[first + 1]} at {first}; "
                "no line was built"
            )
        if not np.isfinite(float(positions[-1]) - float(positions[0])):
            raise InvalidParameter(
                f"positions must span a finite length, got {positions[0]} to {positions[-1]}; "
                "no line was built"
            )
        # -0.0 equals 0.0 but has other bytes; adding 0.0 makes equal lines hash alike.
        object.__setattr__(self, "positions", read_only(positions + 0.0))

    def __eq__(self, other: object) -> bool:
        return (
            np.array_equal(self.positions, other.positions)
            if isinstance(other, Line)
            else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(self.positions.tobytes())

    def __reduce__(self) -> tuple[object, ...]:
        # Copies and unpickled lines are born again, so that their array is read-only too.
        return Line.at, (self.positions,)

    @property
    def metric(self) -> str:
        """What a neighbor relation calls this distance."""
        return "line"

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.positions.size

    @property
    def diameter(self) -> float:
        """The distance from the first cell to the last."""
        return float(self.positions[-1] - self.positions[0])

    def distance(self, i: int, j: int) -> float:
        """How far cell j is from cell i."""
        i, j = (whole("cell", cell, low=0, high=self.size - 1) for cell in (i, j))
        return float(abs(self.positions[i] - self.positions[j]))

    def neighbors(self, i: int) -> IntArray:
        """The cells just before and just after cell i; an end of the line has one."""
        i = whole("cell", i, low=0, high=self.size - 1)
        return np.array([j for j in (i - 1, i + 1) if 0 <= j < self.size], dtype=np.int64)

    def distances_from(self, i: int) -> FloatArray:
        """How far every cell is from cell i."""
        i = whole("cell", i, low=0, high=self.size - 1)
        return np.asarray(np.abs(self.positions - self.positions[i]))

    def places(self, cells: IntArray) -> FloatArray:
        """The positions of some cells: [cells, 1]."""
        return self.positions[cells].reshape(-1, 1)

    def distances_between(self, places: FloatArray, others: FloatArray) -> FloatArray:
        """How far each of some places [n, 1] is from each of others [m, 1].

        >>> Line(10).distances_between(np.array([[0.25]]), np.array([[0.5], [1.0]]))
        array([[0.25, 0.75]])
        """
        return apart(places, others, "l1")

    def nearest_cells(self, places: FloatArray) -> IntArray:
        """The cell that each place [n, 1] is nearest to; of two as near, the right one."""
        if self.size == 1:
            return np.zeros(len(places), dtype=np.int64)
        right = np.searchsorted(self.positions, places[:, 0]).clip(1, self.size - 1)
        nearer = places[:, 0] - self.positions[right - 1] < self.positions[right] - places[:, 0]
        return np.asarray(right - nearer, dtype=np.int64)

    def describe(self) -> str:
        """The line in words."""
        even = self == Line(self.size)
        return f"a line of {self.size} cells" + (f", 1/{self.size} apart" if even else "")

    def to_json(self) -> dict[str, Any]:
        """Its cells and length, or all positions where they are not even."""
        last = float(self.positions[-1])
        if last > 0 and Line(self.size, last) == self:
            return {"kind": self.kind, "cells": self.size, "length": last}
        return {"kind": self.kind, "positions": self.positions.tolist()}

    @staticmethod
    def from_json(data: Any) -> Line:
        """The line a JSON object states."""
        if "positions" in data:
            return Line.at(data["positions"])
        return Line(data["cells"], data["length"])
