"""Whether what was read is more even than sources make it, so that a changed level may be all there is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.sensing.model.operators.protocol import Operator, column_chunks
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.model.reading_unit import AS_READ, ReadingUnit
from sfumato.sensing.recovery.solver.operator_cache import cached_by_key

MUCH = 1 / 2
"""The share of what was read from which on a level is in doubt. A third would doubt most answers of the
array in docs/how-to/building.md, which are right."""
SURE = 3.0
"""Standard errors above 0: an offset of less is noise."""
CLEARLY = 1.05
"""Times the share of any one source: a little noise makes its readings as much more even."""
FEWEST = 3
"""Sensors: two are as even as any two."""


@dataclass(frozen=True, slots=True)
class SharedLevel:
    """An offset that all readings share, and that no single source makes.

    Attributes:
        offset: By how much all sensors read above what the site says they read where nobody is.
        offset_error: Its standard error.
        share: The share of the sum of squares of the readings that it explains.
        single: The largest such share of the readings of any one source.
        unit: What the message tells it in.
    """

    offset: float
    offset_error: float
    share: float
    single: float
    unit: ReadingUnit = AS_READ

    @property
    def message(self) -> str:
        """What is in doubt, as a sentence."""
        return (
            f"all sensors read about {self.unit.text(self.offset)} above their level, and that is "
            f"{self.share:.0%} of what they read, more than any one source makes alike everywhere: if the "
            "level has changed there may be nothing else; a running baseline takes it off"
        )

    def to_json(self) -> dict[str, Any]:
        """As it is saved and printed."""
        return {
            "offset": self.offset,
            "offset_error": self.offset_error,
            "share": self.share,
            "single": self.single,
            "unit": {"name": self.unit.name, "size": self.unit.size},
            "said": self.message,
        }

    @staticmethod
    def from_json(data: Any) -> SharedLevel:
        """What a JSON object states."""
        return SharedLevel(
            float(data["offset"]),
            float(data["offset_error"]),
            float(data["share"]),
            float(data["single"]),
            ReadingUnit.from_json(data["unit"]),
        )


def shared_level(
    operator: Operator, readings: FloatArray, *, sigma: float, unit: ReadingUnit = AS_READ
) -> SharedLevel | None:
    """The offset of all readings, where it is much of them and no single source is so even; else None.

    The share of y that an offset explains is (sum y)**2 / (m (sum y**2 - m sigma**2)), 1 for readings that
    are all the same but for noise. Where each sensor has its own noise y are readings times gains g, sum y is
    g'y and m is g'g in it: each counts by 1 / sigma_k**2. Many sources all over the place are as even, too:
    nothing in one round tells these apart.

    Args:
        operator: From sources to these sensors.
        readings: Less the level of the site, as the operator has them.
        sigma: Standard deviation of their noise; the largest where sensors differ.
        unit: What the message tells the offset in.

    Returns:
        The offset, where it is above 0 for sure.
    """
    if readings.size < FEWEST or sigma <= 0:
        return None
    level = gains_of(operator)
    size = float(level @ level)
    offset, error = float(level @ readings) / size, sigma / math.sqrt(size)
    if offset <= SURE * error:
        return None
    noise = readings.size * sigma**2
    total = max(float((readings**2).sum()) - noise, size * offset**2)
    share = size * offset**2 / total
    if share < MUCH:
        return None
    single = cached_by_key(operator, "evenness", (), lambda: _single(operator), most=1)
    # Without taking noise off: else the readings of one source, where they are exact, were more even.
    if evenness(readings[:, np.newaxis], level)[0] <= CLEARLY * single:
        return None
    return SharedLevel(offset, error, share, single, unit)


def evenness(columns: FloatArray, level: FloatArray) -> FloatArray:
    """The share of the sum of squares of each column that an offset explains; 0 for one of zeros.

    `level` is what an offset of 1 adds to each reading.
    """
    squares = (columns**2).sum(axis=0) * float(level @ level)
    return np.asarray((level @ columns) ** 2 / np.where(squares > 0, squares, 1.0))


def _single(operator: Operator) -> float:
    cells = np.arange(operator.space.size)
    return max(
        float(evenness(operator.columns(some), gains_of(operator)).max())
        for some in column_chunks(operator, cells)
    )
