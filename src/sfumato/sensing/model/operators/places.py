"""Even places for sensors, and the ground around the places of cells: on a line, in a plane, on a graph."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.spaces import Grid, Line

SAMPLE = 256
"""Cells that stand for all others, to see how readings change within one."""
WIDE = 2.0
"""Times the noise: where standing off the middle of a cell makes as much of it, it is told."""
NOTICED = 0.5
"""Of sigma: where standing off the middle of a cell changes readings by more, it counts as noise."""


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


def half_cells(operator: Operator) -> FloatArray:
    """How far a source in each cell can be from the place that stands for it, in the space's own distance.

    The cells of a line end halfway to the next one, and its first where the line begins; those of a
    grid are boxes, whose corners are half a width and half a height away. Nodes, and points that
    somebody named, are places themselves.

    >>> from sfumato.sensing import heat_line
    >>> half_cells(heat_line(sources=[0.2, 0.4, 1.0], sensors=2, diffusion_time=0.1)).round(3)
    array([0.2, 0.3, 0.3])
    """
    space = operator.space
    match space:
        case Line():
            places = space.positions
            gaps = np.diff(places) / 2
            before = np.concatenate([[max(0.0, float(places[0]) - begin_of(space))], gaps])
            return np.asarray(np.maximum(before, np.append(gaps, 0.0)))
        case Grid():
            return np.full(space.size, (space.cell_width + space.cell_height) / 2)
        case _:
            return np.zeros(space.size)


def off_center(operator: Operator) -> float:
    """By how much a unit source reads otherwise than from the middle of its cell, at most of all cells.

    The root of the mean square over places in a cell: readings are nearly linear within one, so an
    even spread over it has 1 / sqrt(3) of what half a step to the next cell changes, each way.
    """
    space = operator.space
    match space:
        case Line() if space.size > 1:
            cells = np.unique(np.linspace(0, space.size - 2, SAMPLE).astype(np.int64))
            steps = [cells + 1]
        case Grid() if space.side > 1:
            some = np.unique(np.linspace(0, (space.side - 1) ** 2 - 1, SAMPLE).astype(np.int64))
            row, column = np.divmod(some, space.side - 1)
            cells = space.encode(column, row)
            steps = [space.encode(column + 1, row), space.encode(column, row + 1)]
        case _:
            return 0.0
    here = operator.columns(cells)
    squares = [np.sum((operator.columns(next_to) - here) ** 2, axis=0) for next_to in steps]
    return float(np.sqrt(np.sum(squares, axis=0).max() / 12))


def noise_anywhere(sigma: npt.ArrayLike, between: float) -> FloatArray:
    """Each sigma, with what a source off the middle of its cell changes, where that is much.

    >>> noise_anywhere([0.3, 1.0], 0.4).tolist()
    [0.5, 1.0]
    """
    noise = np.asarray(sigma, dtype=np.float64)
    return np.where(between > NOTICED * noise, np.hypot(noise, between), noise)


def wide_cells(operator: Operator, sigma: float, max_mass: float) -> str:
    """That cells are so wide that where a source stands in one matters far more than noise does; or ""."""
    if not sigma > 0:
        return ""
    times = float(noise_anywhere(sigma, max_mass * off_center(operator))) / sigma
    if times < WIDE:
        return ""
    return (
        "cells are wide for this noise: where in its cell a source stands counts as noise, which makes it "
        f"{times:.2g} times as large; finer cells tell more of the same readings"
    )
