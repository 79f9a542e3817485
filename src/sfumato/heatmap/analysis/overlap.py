"""How much of each cell a shape covers, exactly: areas of polygons and lengths of lines, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.spaces import Area

# Edges are cut at all grid lines they cross, so many pieces at a time.
MOST_PIECES = 2**20


def areas(
    edges: FloatArray, x: FloatArray, y: FloatArray, *, factors: FloatArray | None = None
) -> FloatArray:
    """The area that closed rings have in common with each cell [row, column] of the lines x and y.

    `edges` [n, 2, 2] lead from a start to an end, counterclockwise around what is inside and
    clockwise around a hole; what is wound around twice counts twice. By Green's theorem: an edge
    that rises by dy at x covers dy times what lies to its left in its row. Exact but for rounding.

    >>> triangle = ring_edges([np.array([[0.0, 0], [2, 0], [0, 2], [0, 0]])])
    >>> areas(triangle, np.array([0.0, 1, 2]), np.array([0.0, 1, 2]))
    array([[1. , 0.5],
           [0.5, 0. ]])
    """
    rows, columns = y.size - 1, x.size - 1
    here, risen = np.zeros(rows * columns), np.zeros(rows * columns)
    for start, end, owner in _pieces(edges, x, y):
        middle = (start + end) / 2
        within = (middle[:, 1] > y[0]) & (middle[:, 1] < y[-1])
        middle, rise = middle[within], (end[within, 1] - start[within, 1])
        if factors is not None:
            rise = rise * factors[owner[within]]
        row, column = _slot(y, middle[:, 1]), _slot(x, middle[:, 0])
        # Right of the last line an edge covers its whole row, left of the first one nothing.
        covered = rise * (np.clip(middle[:, 0], x[0], x[-1]) - x[column])
        here += np.bincount(row * columns + column, covered, minlength=here.size)
        risen += np.bincount(row * columns + column, rise, minlength=here.size)
    rises = risen.reshape(rows, columns)
    beyond = np.cumsum(rises[:, ::-1], axis=1)[:, ::-1] - rises
    return here.reshape(rows, columns) + beyond * np.diff(x)


def lengths(
    edges: FloatArray, x: FloatArray, y: FloatArray, *, factors: FloatArray | None = None
) -> FloatArray:
    """The length of lines in each cell [row, column], in sides of a mean cell of the lines x and y.

    >>> road = np.array([[[0.0, 0.5], [4.0, 0.5]]])
    >>> lengths(road, np.array([0.0, 1, 2]), np.array([0.0, 1, 2]))
    array([[1., 1.],
           [0., 0.]])
    """
    rows, columns = y.size - 1, x.size - 1
    sides = np.array([(x[-1] - x[0]) / columns, (y[-1] - y[0]) / rows])
    out = np.zeros(rows * columns)
    for start, end, owner in _pieces(edges, x, y):
        middle = (start + end) / 2
        within = (middle[:, 0] >= x[0]) & (middle[:, 0] <= x[-1])
        within &= (middle[:, 1] >= y[0]) & (middle[:, 1] <= y[-1])
        long = np.hypot(*((end - start)[within] / sides).T)
        if factors is not None:
            long = long * factors[owner[within]]
        place = _slot(y, middle[within, 1]) * columns + _slot(x, middle[within, 0])
        out += np.bincount(place, long, minlength=out.size)
    return out.reshape(rows, columns)


def ring_edges(polygon: Sequence[FloatArray]) -> FloatArray:
    """The edges of a polygon's rings, turned so that the outline counts and its holes do not."""
    turned = []
    for number, ring in enumerate(polygon):
        wanted = 1 if number == 0 else -1
        turned.append(line_edges([ring if wanted * signed_area(ring) >= 0 else ring[::-1]]))
    return np.concatenate([np.zeros((0, 2, 2)), *turned])


def line_edges(lines: Iterable[FloatArray]) -> FloatArray:
    """The edges of lines, from each position to the next."""
    parts = [np.stack([line[:-1], line[1:]], axis=1) for line in lines]
    return np.concatenate([np.zeros((0, 2, 2)), *parts])


def signed_area(ring: FloatArray) -> float:
    """The area of a closed ring, positive if it turns left: the shoelace formula from its first position."""
    x, y = (ring - ring[0]).T
    return float(x[:-1] @ y[1:] - x[1:] @ y[:-1]) / 2


def turns(area: Area) -> tuple[float, ...]:
    """What to add to x so that a shape meets the area: longitudes come again after a full turn."""
    return (-360.0, 0.0, 360.0) if area.kind == "degrees" else (0.0,)


def moved(edges: FloatArray, across: float) -> FloatArray:
    """Edges moved east."""
    return np.asarray(edges + np.array([across, 0.0]))


def _slot(lines: FloatArray, values: FloatArray) -> IntArray:
    found = np.searchsorted(lines, values, side="right") - 1
    return np.clip(found, 0, lines.size - 2).astype(np.int64)


def _pieces(
    edges: FloatArray, x: FloatArray, y: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray, IntArray]]:
    """Starts, ends and edges of pieces that cross no line, some at a time; edges that cannot matter are gone.

    Those lie wholly above, below or to the left.
    """
    low, high = edges.min(axis=1), edges.max(axis=1)
    near = np.flatnonzero((high[:, 1] >= y[0]) & (low[:, 1] <= y[-1]) & (high[:, 0] >= x[0]))
    crossed = [
        (
            np.searchsorted(lines, low[near, axis], "right"),
            np.searchsorted(lines, high[near, axis], "left"),
        )
        for axis, lines in enumerate((x, y))
    ]
    counts = [np.maximum(last - first, 0) for first, last in crossed]
    batch = np.cumsum(counts[0] + counts[1] + 2) // MOST_PIECES
    for number in np.unique(batch):
        some = batch == number
        start, end = edges[near[some], 0], edges[near[some], 1]
        owners = [np.arange(len(start)), np.arange(len(start))]
        times = [np.zeros(len(start)), np.ones(len(start))]
        on = [np.full((2 * len(start), 2), np.nan)]  # the line a place lies on, east and north
        for axis, lines in enumerate((x, y)):
            count = counts[axis][some]
            owner = np.repeat(np.arange(len(start)), count)
            nth = np.arange(owner.size) - np.repeat(np.cumsum(count) - count, count)
            line = lines[crossed[axis][0][some][owner] + nth]
            owners.append(owner)
            on.append(np.full((owner.size, 2), np.nan))
            on[-1][:, axis] = line
            times.append((line - start[owner, axis]) / (end[owner, axis] - start[owner, axis]))
        owner, time = np.concatenate(owners), np.clip(np.concatenate(times), 0, 1)
        order = np.lexsort((time, owner))
        owner, time = owner[order], time[order, None]
        places = start[owner] * (1 - time) + end[owner] * time
        # Exactly on its line: then what a row is risen by adds up to its height, without rounding.
        line_of = np.concatenate(on)[order]
        places = np.where(np.isnan(line_of), places, line_of)
        joined = owner[:-1] == owner[1:]
        yield places[:-1][joined], places[1:][joined], near[some][owner[:-1][joined]]
