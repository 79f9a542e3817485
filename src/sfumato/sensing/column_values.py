"""Values of a column of a table: texts, and numbers that keep the type which they came with."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.sensing.rounding import UNDONE

GAPS = frozenset(("", "unavailable", "unknown", "none", "null", "n/a", "na"))
"""What tables write where a sensor did not read; "nan" is not among them: it is a number that went wrong."""


def states_of(column: Any, name: str, where: str) -> list[Any]:
    """Numbers among states: of texts, or of the type that an array has, so that short ones are seen."""
    if not isinstance(column, list) and np.asarray(column).dtype.kind not in "biuf":
        column = [None if _is_missing(value) else value for value in _listed(column)]
        if not all(value is None or isinstance(value, str) for value in column):
            raise InvalidInput(
                f"the states of {where} must be texts, or numbers of one type; {UNDONE}"
            )
    return numbers_in(column, name, where)


def _is_missing(value: Any) -> bool:
    # That of pandas is equal to nothing, nor different from it.
    return value is None or type(value).__name__ == "NAType" or value != value


def _listed(column: Any) -> list[Any]:
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)


def texts_of(column: Any, name: str, where: str, *, blank: bool = False) -> list[str]:
    """Texts of a column, without blanks around them; one that is missing is refused unless it may be."""
    found = []
    for row, value in enumerate(_listed(column), 1):
        empty = value is None or value != value or (isinstance(value, str) and not value.strip())
        if empty and not blank:
            raise InvalidInput(f"{where} has no {name!r} in row {row}; {UNDONE}")
        if empty:
            found.append("")
        else:
            text = value.isoformat() if isinstance(value, datetime) else str(value)
            found.append(text.strip())
    return found


def numbers_in(column: Any, name: str, where: str) -> list[Any]:
    """Numbers of a column, None in gaps: from text, or of the type that an array has."""
    if isinstance(column, list):
        return [number_of(value, row, name, where) for row, value in enumerate(column, 1)]
    values = np.asarray(column)
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise InvalidInput(f"the values of {where} must be numbers of one type; {UNDONE}")
    broken = np.flatnonzero(np.isinf(values))
    if broken.size:
        raise InvalidInput(
            f"the {name} in row {broken[0] + 1} of {where} is not a finite number; {UNDONE}"
        )
    missing = np.isnan(values).tolist()
    return [None if gone else value for gone, value in zip(missing, values, strict=True)]


def number_of(value: Any, row: int, name: str, where: str) -> float | None:
    """The number in a row, from text or a number; None in a gap."""
    if value is None or (isinstance(value, str) and value.strip().lower() in GAPS):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise InvalidInput(f"the {name} in row {row} of {where} is not a finite number; {UNDONE}")
    return found
