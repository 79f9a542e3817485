"""Changes of readings when a unit moves from cell to cell, block by block, and the largest of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.spatial import distance

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import CHUNK, Operator
from sfumato.spaces import Graph, Grid, Line, Points

UNIT = 2.0**-53
BLOCK = CHUNK >> 4  # entries at a time: the processor's cache holds a few such blocks
CLOSEST = 1e-140  # squares of smaller distances leave the range of doubles


@dataclass(frozen=True, slots=True, eq=False)
class Largest:
    """The largest change of readings when a unit moves one step: what `Operator.changes` returns.

    Attributes:
        l2: Of all readings together, in l2; never too small.
        per_sensor: Of each reading alone.
        worst: The cells between which it is that large, None where that is not known.
        error: True values are at most (1 + error) times those computed.
        exact: Whether l2 is attained, not a bound alone; no unless said.
        place: The place at which it is that large, where sources stand between cells.
    """

    l2: float
    per_sensor: FloatArray
    worst: tuple[int, int] | None
    error: float
    exact: bool = False
    place: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Changes of readings for some pairs of cells: sensors by pairs, and the cells."""

    sizes: FloatArray
    begin: IntArray
    end: IntArray


def no_change(operator: Operator) -> Largest:
    """What readings change by where sources have one cell only."""
    return Largest(0.0, np.zeros(len(operator.sensors)), None, 0.0, exact=True)


def column_changes(
    operator: Operator, *, over_distance: bool, gains: FloatArray | None = None
) -> Largest:
    """The largest change between neighboring cells of any space: exact where sources are at cells alone.

    With `gains` each reading counts so many times.
    """
    if operator.space.size == 1:
        return no_change(operator)
    matrix = operator.dense()
    sensors = len(matrix)

    def blocks() -> Iterator[Changes]:
        for begin, end, distances in pairs(operator.space, sensors):
            with np.errstate(over="ignore"):
                sizes = np.abs(matrix[:, begin] - matrix[:, end])
                if gains is not None:
                    sizes *= gains[:, np.newaxis]
                begin = np.broadcast_to(begin, end.shape)
                yield Changes(sizes / distances if over_distance else sizes, begin, end)

    return largest(blocks(), sensors, error=6 * UNIT)


def part_changes(operator: Operator, rows: IntArray, *, over_distance: bool) -> Largest:
    """The largest change of some sensors: no more than of all, nor than theirs alone taken together."""
    whole = operator.changes(over_distance=over_distance)
    alone = np.minimum(whole.per_sensor[rows], whole.l2)
    l2 = min(whole.l2, math.hypot(*alone.tolist()))
    return Largest(l2, alone, None, whole.error + _sum_error(len(rows)))


def dense(operator: Operator) -> FloatArray:
    """The whole matrix of an operator, by its columns: its adjoint is not trusted."""
    return operator.dense()


def pairs(
    space: Line | Grid | Graph | Points, each: int
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Pairs of neighboring cells with the lengths of the steps, a block of `each` numbers per pair at a time.

    An edge of a graph has its own length, even where the way around it is shorter: over its length
    a change is at most what it is over the distance, so it never counts too much; and along a
    shortest path the triangle inequality gives |M_i - M_j| <= (largest rate of an edge) distance(i,
    j), so the edges suffice.
    """
    match space:
        case Points():
            yield from point_pairs(space, each)
            return
        case Line():
            begin = np.arange(space.size - 1)
            end, distances = begin + 1, np.diff(space.positions)
        case Grid():
            codes = space.codes_of_image()
            begin = np.concatenate([codes[:, :-1].ravel(), codes[:-1].ravel()])
            end = np.concatenate([codes[:, 1:].ravel(), codes[1:].ravel()])
            half = begin.size // 2
            distances = np.concatenate(
                [np.full(half, space.cell_width), np.full(half, space.cell_height)]
            )
        case Graph():
            begin, end = space.edges.T
            distances = space.lengths
    for part in parts(begin.size, each):
        yield begin[part], end[part], distances[part]


def point_pairs(space: Points, each: int) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """All pairs of places with their distances, by blocks that begin at one place, given as an array of 1."""
    places = space.positions
    metric: Literal["euclidean", "cityblock"] = (
        "euclidean" if space.norm == "euclidean" else "cityblock"
    )
    for low in range(space.size - 1):
        for part in parts(space.size - 1 - low, each):
            end = np.arange(low + 1 + part.start, low + 1 + part.stop)
            distances = np.asarray(
                distance.cdist(places[[low]], places[end], metric)[0], dtype=np.float64
            )
            if distances.min() < CLOSEST:
                raise InvalidParameter(
                    f"places must be at least {CLOSEST:g} apart, got {distances.min():g}; "
                    "no sensitivity was computed"
                )
            yield np.array([low]), end, distances


def parts(count: int, each: int) -> Iterator[slice]:
    """Slices of range(count), of which a block of `each` numbers per item fits the cache."""
    step = max(1, BLOCK // each)
    return (slice(low, min(low + step, count)) for low in range(0, count, step))


def largest(blocks: Iterator[Changes], sensors: int, *, error: float) -> Largest:
    """The largest of changes each of which is off by at most `error` of itself."""
    best, alone, worst = 0.0, np.zeros(sensors), (0, 0)
    for block in blocks:
        if not block.sizes.size:
            continue
        tops = block.sizes.max(axis=1)
        alone = np.maximum(alone, tops)
        top = float(tops.max())
        if not 0 < top < math.inf:
            continue
        # Squares of numbers far from 1 would leave the range of doubles; powers of two scale
        # without error.
        power = 0 if 1e-100 < top < 1e100 else -math.frexp(top)[1]
        sizes = np.ldexp(block.sizes, power) if power else block.sizes
        squares = np.einsum("sp,sp->p", sizes, sizes)
        at = int(squares.argmax())
        found = math.ldexp(math.sqrt(float(squares[at])), -power)
        if found > best:
            best, worst = found, (int(block.begin[at]), int(block.end[at]))
    # The square of the top may round below it, and the norm is never below its largest entry.
    best = max(best, float(alone.max()))
    return Largest(best, alone, worst, error + _sum_error(sensors), exact=True)


def _sum_error(sensors: int) -> float:
    """What a root of a sum of so many squares, in any order, loses of itself, with some to spare."""
    return (sensors + 16) * 2 * UNIT
