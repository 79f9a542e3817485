"""What operators share: the heat kernel, and checks of times and of coordinates."""

from __future__ import annotations

import math

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.sensors import Sensors


def heat(distance: FloatArray, time: float) -> FloatArray:
    """The heat kernel on a line."""
    return np.asarray(np.exp(-(distance**2) / (4 * time)) / math.sqrt(4 * math.pi * time))


def check_dimensions(sensors: Sensors, expected: int) -> None:
    """Refuse sensors with another number of coordinates."""
    count = sensors.positions.shape[1]
    if count != expected:
        raise InvalidParameter(
            f"sensors here have {expected} coordinate{'s' * (expected > 1)}, got {count}; "
            "nothing was built"
        )


def time_within(value: float, name: str) -> float:
    """A diffusion time or rate in the range for which bounds on rounding are proved."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    # Beyond these, squares and heights leave the doubles, and bounds on their rounding would not
    # hold.
    if not 1e-20 <= number <= 1e20:
        raise InvalidParameter(
            f"{name} must lie between 1e-20 and 1e20, got {value}; nothing was built"
        )
    return number
