"""One way to check a number or an array where a value is born, and one sentence for each rule."""

from __future__ import annotations

import operator
from typing import SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter

Scalar = TypeVar("Scalar", bound=np.generic)


def whole(name: str, value: SupportsIndex, *, low: int, high: int | None = None) -> int:
    """Give back value as an int from low to high, or say which rule it breaks."""
    rule = (
        f"a whole number, at least {low}"
        if high is None
        else f"a whole number from {low} to {high}"
    )
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidParameter(
            f"{name} must be {rule}, got {value!r}; nothing was computed"
        ) from None
    if number < low or (high is not None and number > high):
        raise InvalidParameter(f"{name} must be {rule}, got {number}; nothing was computed")
    return number


def real_array(name: str, values: npt.ArrayLike) -> FloatArray:
    """Give back a fresh array of doubles, or say that values are not real numbers."""
    try:
        array = np.array(values)
    except ValueError:
        raise InvalidParameter(
            f"{name} must be an array, got uneven rows; nothing was built"
        ) from None
    if array.dtype.kind not in "biuf":
        raise InvalidParameter(
            f"{name} must be real numbers, got type {array.dtype}; nothing was built"
        )
    return array.astype(np.float64)


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Lock an array that a frozen value is about to hold."""
    array.setflags(write=False)
    return array


def require(holds: bool, rule: str, value: object) -> None:
    """Refuse a parameter that breaks a rule, before anything is computed with it."""
    if not holds:
        raise InvalidParameter(f"{rule}, got {value}; nothing was computed")
