"""Whether all sensors read above their level by the same, so that no source is needed to explain them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import chdtrc

from sfumato._types import FloatArray
from sfumato.sensing.model.reading_unit import AS_READ, ReadingUnit

LIKELY = 1e-2
"""The p-value from which on one shared offset explains the readings."""
SURE = 3.0
"""Standard errors above 0: less is no offset that needs sources to explain it."""
FEWEST = 3
"""Sensors, of which one is needed for the offset."""


@dataclass(frozen=True, slots=True)
class SharedLevel:
    """An offset of all readings that explains them as well as sources do.

    Attributes:
        offset: By how much all sensors read above what the site says they read where nobody is.
        offset_error: Its standard error.
        p_value: The chance that readings which are so much above their level, and nothing else, are
            as uneven as these.
        unit: What the message tells it in.
    """

    offset: float
    offset_error: float
    p_value: float
    unit: ReadingUnit = AS_READ

    @property
    def message(self) -> str:
        """What is in doubt, as a sentence."""
        return (
            f"all sensors read about {self.unit.text(self.offset)} above their level, which explains the "
            f"readings as well (p = {self.p_value:.2g}): sources may be nothing but a level that has "
            "changed; `fit='offset'` finds both, and so does a running baseline"
        )

    def to_json(self) -> dict[str, Any]:
        """As it is saved and printed."""
        unit = {"name": self.unit.name, "size": self.unit.size}
        return {
            "offset": self.offset,
            "offset_error": self.offset_error,
            "p_value": self.p_value,
            "unit": unit,
            "said": self.message,
        }

    @staticmethod
    def from_json(data: Any) -> SharedLevel:
        """What a JSON object states."""
        numbers = (float(data[name]) for name in ("offset", "offset_error", "p_value"))
        return SharedLevel(*numbers, ReadingUnit.from_json(data["unit"]))


def shared_level(
    readings: FloatArray, sigma: float, *, unit: ReadingUnit = AS_READ
) -> SharedLevel | None:
    """The offset that all readings share, where it alone explains them; None where it does not.

    y_i = c + noise of deviation sigma: c is the mean, and sum (y_i - c)**2 / sigma**2 has m - 1 degrees
    of freedom. Sources that read as a constant does cannot be told from it, whatever the estimator.

    Args:
        readings: Less the level of the site, as the operator has them.
        sigma: Standard deviation of their noise; the largest where sensors differ.
        unit: What the message tells the offset in.

    Returns:
        The offset, its error and p-value, where it is above 0 for sure and explains the readings.
    """
    if readings.size < FEWEST or sigma <= 0:
        return None
    offset, error = float(readings.mean()), sigma / math.sqrt(readings.size)
    left = float((((readings - offset) / sigma) ** 2).sum())
    p_value = float(chdtrc(readings.size - 1, left))
    if offset <= SURE * error or p_value < LIKELY:
        return None
    return SharedLevel(offset, error, p_value, unit)
