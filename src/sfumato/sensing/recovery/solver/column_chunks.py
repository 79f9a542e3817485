"""Cells a few at a time, so that their columns fit in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato._types import IntArray
from sfumato.sensing.model.operators.kinds import CHUNK, Matrix, Operator


def parts(operator: Operator, cells: IntArray) -> Iterator[IntArray]:
    """The cells in turn, as many as have CHUNK entries; none of none."""
    m, n = operator.shape
    # A matrix that is only a map makes its columns from units of n numbers each.
    tall = (
        max(m, n)
        if isinstance(operator, Matrix) and not isinstance(operator.map, np.ndarray)
        else m
    )
    step = max(1, CHUNK // tall)
    for begin in range(0, cells.size, step):
        yield cells[begin : begin + step]
