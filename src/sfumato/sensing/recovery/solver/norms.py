"""Lengths of vectors whose squares would overflow or vanish."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

LONG = np.longdouble
LONG_EPS = float(
    np.finfo(np.longdouble).eps
)  # 1e-19 on x86, that of a double where there is nothing longer


def length(vector: npt.NDArray[Any]) -> np.longdouble:
    """|vector|_2 in long double, scaled so that squares neither overflow nor vanish."""
    long = vector.astype(LONG)
    largest = LONG(np.abs(long).max(initial=0))
    return LONG(largest * np.sqrt(((long / largest) ** 2).sum())) if largest > 0 else largest


def power_of_two(size: float) -> float:
    """The largest power of two that is at most a size: to divide by it rounds nothing."""
    return math.ldexp(1.0, math.frexp(size)[1] - 1)
