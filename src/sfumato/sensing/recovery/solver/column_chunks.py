"""Cells a few at a time, so that their columns fit in memory."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato._types import IntArray
from sfumato.sensing.model.operators.protocol import CHUNK, Operator


def parts(operator: Operator, cells: IntArray) -> Iterator[IntArray]:
    """The cells in turn, as many as have CHUNK entries; none of none."""
    step = max(1, CHUNK // operator.column_entries)
    for begin in range(0, cells.size, step):
        yield cells[begin : begin + step]
