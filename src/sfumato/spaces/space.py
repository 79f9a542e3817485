"""What every space promises, and the checks the three of them share."""

from __future__ import annotations

import operator
from typing import Protocol, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Scalar = TypeVar("Scalar", bound=np.generic)


class Space(Protocol):
    """Where mass lives: cells 0..size-1, how far apart they are, and which ones touch.

    Steps between neighbors realise the metric: the shortest walk from i to j is `distance(i, j)` long.
    So flow along neighbor steps is enough to compute an earth mover's distance.
    """

    @property
    def metric(self) -> str:
        """What a neighbor relation calls this distance."""
        ...

    @property
    def size(self) -> int:
        """How many cells there are."""
        ...

    @property
    def diameter(self) -> float:
        """The largest distance between two cells."""
        ...

    def distance(self, i: int, j: int, /) -> float:
        """How far cell j is from cell i."""
        ...

    def neighbors(self, i: int, /) -> IntArray:
        """The cells one step away from cell i, in increasing order."""
        ...


def whole(name: str, value: SupportsIndex, *, low: int, high: int | None = None) -> int:
    """Give back value as an int from low to high, or say which rule it breaks."""
    rule = f"a whole number, at least {low}" if high is None else f"a whole number from {low} to {high}"
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidParameter(f"{name} must be {rule}, got {value!r}; nothing was computed") from None
    if number < low or (high is not None and number > high):
        raise InvalidParameter(f"{name} must be {rule}, got {number}; nothing was computed")
    return number


def real_array(name: str, values: npt.ArrayLike) -> FloatArray:
    """Give back a fresh array of doubles, or say that values are not real numbers."""
    try:
        array = np.array(values)
    except ValueError:
        raise InvalidParameter(f"{name} must be an array, got uneven rows; nothing was built") from None
    if array.dtype.kind not in "biuf":
        raise InvalidParameter(f"{name} must be real numbers, got type {array.dtype}; nothing was built")
    return array.astype(np.float64)


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Lock an array that a frozen value is about to hold."""
    array.setflags(write=False)
    return array
