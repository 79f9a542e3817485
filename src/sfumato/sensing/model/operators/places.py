"""Even places for sensors: on a line, in a plane, on a graph."""

from __future__ import annotations

import math

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.spaces import Line


def even_places(count: int, low: FloatArray, high: FloatArray) -> FloatArray:
    """So many places for sensors, evenly over a rectangle: in rows that differ by one place at most.

    A square number of them is in the middle of equal boxes.

    Args:
        count: How many places, at least 1.
        low: The corner of the rectangle with the smallest x and y, of shape (2,).
        high: The corner with the largest, of shape (2,), in the same unit.

    Returns:
        Places as rows of x and y, of shape (count, 2): from the lowest row up, each from left to
        right.

    >>> even_places(4, np.zeros(2), np.ones(2)).tolist()
    [[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]]
    >>> even_places(3, np.zeros(2), np.ones(2)).tolist()
    [[0.5, 0.25], [0.25, 0.75], [0.75, 0.75]]
    """
    rows = max(1, round(math.sqrt(count)))
    in_row = np.diff(np.arange(rows + 1) * count // rows)
    x = np.concatenate([(np.arange(places) + 0.5) / places for places in in_row])
    y = np.repeat((np.arange(rows) + 0.5) / rows, in_row)
    return np.asarray(low + np.column_stack([x, y]) * (high - low))


def even_nodes(size: int, count: int) -> IntArray:
    """So many nodes of a graph of this size, evenly spaced by number, the first and the last among them.

    >>> even_nodes(12, 3).tolist()
    [0, 6, 11]
    """
    if count > size:
        raise InvalidParameter(
            f"a graph has at most one sensor at each of {size} nodes, got {count}; nothing was built"
        )
    return np.unique(np.linspace(0, size - 1, count).round().astype(np.int64))


def begin_of(line: Line) -> float:
    """Where a line begins: at 0 if its first cell is there or next to it, else at its first cell.

    The papers' cells of a line of length L are L/n, 2L/n, ..., L, and such a line begins at 0.

    >>> begin_of(Line(10, 40)), begin_of(Line.at([100, 150, 200]))
    (0.0, 100.0)
    """
    first = float(line.positions[0])
    apart = line.diameter / (line.size - 1) if line.size > 1 else math.inf
    return 0.0 if 0 <= first <= 1.5 * apart else first
