"""Changes of readings when a unit moves from cell to cell, block by block, and the largest of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.spatial.distance import cdist

from sfumato.errors import InvalidParameter
from sfumato.sensing.operators import CHUNK, HeatLine, HeatPlane, Matrix
from sfumato.spaces import Graph, Grid, Line, Points
from sfumato.spaces.space import FloatArray, IntArray

UNIT = 2.0**-53
# What an entry of a heat kernel loses to rounding, of itself: d**2 / 4T takes four roundings and is below 746
# where exp is not 0, so that exp is off by 4 * 746 units; exp, expm1 and all other operations by under 100
# more. Together 3100 units < 2**-41. A kernel in the plane is a product of two of them.
LINE_ERROR = 2.0**-41
PLANE_ERROR = 2.0**-40
# What an entry that underflows loses is below 1e-300; times what it meets here it stays below this.
UNDERFLOW = 1e-280
BLOCK = CHUNK >> 4  # entries at a time: the processor's cache holds a few such blocks
CLOSEST = 1e-140  # squares of smaller distances leave the range of doubles


@dataclass(frozen=True, slots=True, eq=False)
class Largest:
    """The largest change in l2, the largest of each sensor, and the pair of cells of the first.

    True values are at most (1 + error) times max(computed, floor).
    """

    l2: float
    per_sensor: FloatArray
    worst: tuple[int, int]
    error: float
    floor: float = 0.0
    exact: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Changes of readings for some pairs of cells: sensors by pairs, and the cells."""

    sizes: FloatArray
    begin: IntArray
    end: IntArray


def line_changes(operator: HeatLine, *, over_distance: bool) -> Largest:
    """The largest change between consecutive cells of a line."""
    places, sensors = operator.space.positions, operator.sensors.positions[:, 0]

    def blocks() -> Iterator[Changes]:
        for part in parts(places.size - 1, sensors.size):
            chosen = places[part.start : part.stop + 1]
            distances = np.diff(chosen)
            rates = _steps(sensors, chosen, distances, operator.diffusion_time)
            begin = np.arange(part.start, part.stop)
            yield Changes(rates if over_distance else rates * distances, begin, begin + 1)

    return replace(largest(blocks(), sensors.size, error=LINE_ERROR), floor=UNDERFLOW)


def points_changes(operator: HeatPlane, space: Points, *, over_distance: bool) -> Largest:
    """The largest change between any two of the places where heat in a plane may start."""
    sensors, time = operator.sensors.positions, operator.diffusion_time
    columns = operator.columns(np.arange(space.size))
    loss = columns * (2 * PLANE_ERROR)

    def blocks() -> Iterator[Changes]:
        for begin, ends, distances in point_pairs(space, len(sensors)):
            # A difference of two entries is off by what both of them are, so that is added. Over so short a
            # distance that it would count, 1e-10 of a slope, the difference is computed without cancellation.
            far = distances > math.sqrt(time) / 128
            end, apart = ends[far], distances[far]
            sizes = np.abs(columns[:, begin] - columns[:, end]) + (loss[:, begin] + loss[:, end])
            yield Changes(sizes / apart if over_distance else sizes, np.broadcast_to(begin, end.shape), end)
            end, apart = ends[~far], distances[~far]
            peaks = np.maximum(columns[:, begin], columns[:, end])
            rates = _rates(peaks, _slopes(sensors, space.positions, begin, end, apart), apart, time)
            yield Changes(rates if over_distance else rates * apart, np.broadcast_to(begin, end.shape), end)

    return replace(largest(blocks(), len(sensors), error=PLANE_ERROR), floor=UNDERFLOW)


def _slopes(
    sensors: FloatArray, places: FloatArray, begin: IntArray, end: IntArray, distances: FloatArray
) -> FloatArray:
    """|(a + b) . (a - b)| / d for the ways a, b from one place and from others to the sensors, rounded up."""
    slopes, sizes = np.zeros((len(sensors), end.size)), np.zeros((len(sensors), end.size))
    for axis in range(places.shape[1]):
        ahead = sensors[:, [axis]] - places[begin, axis], sensors[:, [axis]] - places[end, axis]
        product = (ahead[0] + ahead[1]) * ((places[begin, axis] - places[end, axis]) / distances)
        slopes += product
        sizes += np.abs(product)
    # The sum may cancel, so what it loses is added: an axis is off by 8 units of itself and of d, for
    # |a| + |b| <= |a + b| + |a - b|.
    return np.asarray(np.abs(slopes) + 16 * UNIT * (sizes + distances))


def grid_changes(operator: HeatPlane, grid: Grid, *, over_distance: bool) -> Largest:
    """The largest change between cells of a grid that share a side, from the two factors of the kernel.

    A step east leaves the factor of the row as it is, so the squares of all steps east are one product of two
    matrices; they have no signs, so nothing cancels.
    """
    sensors, time = operator.sensors.positions, operator.diffusion_time
    west, south, _, _ = grid.bounds
    middle = np.arange(grid.side) + 0.5
    centers = np.stack([west + middle * grid.cell_width, south + middle * grid.cell_height]).astype(
        np.float64
    )
    # A center is rounded: off by at most this.
    off = 8 * UNIT * max(map(abs, grid.bounds))
    found = []
    for axis, width in enumerate((grid.cell_width, grid.cell_height)):
        distances = np.full(grid.side - 1, width)
        rates = _steps(sensors[:, axis], centers[axis], distances, time, off=off)
        sizes = rates if over_distance else rates * width
        beside = _peaks(np.abs(sensors[:, [1 - axis]] - centers[1 - axis]), time, off=off)
        if not sizes.any() or not beside.any():
            continue
        top, side = float(sizes.max()), float(beside.max())
        squares = (np.square(beside / side).T) @ np.square(sizes / top)
        row, column = np.unravel_index(int(squares.argmax()), squares.shape)
        one, other = (int(column), int(row)) if axis == 0 else (int(row), int(column))
        step = (1, 0) if axis == 0 else (0, 1)
        pair = grid.encode([one, one + step[0]], [other, other + step[1]])
        found.append(
            Largest(
                math.sqrt(float(squares.max())) * top * side,
                sizes.max(axis=1) * beside.max(axis=1),
                (int(pair[0]), int(pair[1])),
                PLANE_ERROR + _sum_error(len(sensors)),
            )
        )
    if not found:
        return Largest(0.0, np.zeros(len(sensors)), (0, 0), PLANE_ERROR, UNDERFLOW)
    best = max(found, key=lambda one: one.l2)
    alone = np.max([one.per_sensor for one in found], axis=0)
    return replace(best, per_sensor=alone, floor=UNDERFLOW)


def matrix_changes(operator: Matrix, *, over_distance: bool) -> Largest:
    """The largest change between neighboring cells of any space; the entries are exact by definition."""
    matrix = dense(operator)
    sensors = len(matrix)

    def blocks() -> Iterator[Changes]:
        for begin, end, distances in pairs(operator.space, sensors):
            with np.errstate(over="ignore"):
                sizes = np.abs(matrix[:, begin] - matrix[:, end])
                begin = np.broadcast_to(begin, end.shape)
                yield Changes(sizes / distances if over_distance else sizes, begin, end)

    return largest(blocks(), sensors, error=4 * UNIT)


def dense(operator: Matrix) -> FloatArray:
    """The whole matrix of an operator that holds any map, by its forward map: its adjoint is not trusted."""
    if isinstance(operator.map, np.ndarray):
        return np.asarray(operator.map, dtype=np.float64)
    n = operator.shape[1]
    blocks = [operator.columns(np.arange(part.start, part.stop)) for part in parts(n, n)]
    return np.concatenate(blocks, axis=1)


def pairs(space: Line | Grid | Graph | Points, each: int) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Pairs of neighboring cells with the lengths of the steps, a block of `each` numbers per pair at a time.

    An edge of a graph has its own length, even where the way around it is shorter: over its length a change
    is at most what it is over the distance, so it never counts too much; and along a shortest path the
    triangle inequality gives |M_i - M_j| <= (largest rate of an edge) distance(i, j), so the edges suffice.
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
            distances = np.concatenate([np.full(half, space.cell_width), np.full(half, space.cell_height)])
        case Graph():
            begin, end = space.edges.T
            distances = space.lengths
    for part in parts(begin.size, each):
        yield begin[part], end[part], distances[part]


def point_pairs(space: Points, each: int) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """All pairs of places with their distances, by blocks that begin at one place, given as an array of 1."""
    places = space.positions
    metric: Literal["euclidean", "cityblock"] = "euclidean" if space.norm == "euclidean" else "cityblock"
    for low in range(space.size - 1):
        for part in parts(space.size - 1 - low, each):
            end = np.arange(low + 1 + part.start, low + 1 + part.stop)
            distances = np.asarray(cdist(places[[low]], places[end], metric)[0], dtype=np.float64)
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
        # Squares of numbers far from 1 would leave the range of doubles; powers of two scale without error.
        power = 0 if 1e-100 < top < 1e100 else -math.frexp(top)[1]
        sizes = np.ldexp(block.sizes, power) if power else block.sizes
        squares = np.einsum("sp,sp->p", sizes, sizes)
        at = int(squares.argmax())
        found = math.ldexp(math.sqrt(float(squares[at])), -power)
        if found > best:
            best, worst = found, (int(block.begin[at]), int(block.end[at]))
    # The square of the top may round below it, and the norm is never below its largest entry.
    best = max(best, float(alone.max()))
    return Largest(best, alone, worst, error + _sum_error(sensors))


def _sum_error(sensors: int) -> float:
    """What a root of a sum of so many squares, in any order, loses of itself, with some to spare."""
    return (sensors + 16) * 2 * UNIT


def _peaks(distances: FloatArray, time: float, *, off: float = 0.0) -> FloatArray:
    """The heat kernel of a line at distances >= 0 that may be off by so much.

    Where exp is not 0 a distance is below sqrt(746 * 4T), so that being off costs a factor of at most
    exp(2 sqrt(746 * 4T) off / 4T) < exp(32 off / sqrt(T)).
    """
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        height = math.exp(min(700.0, 32 * off / math.sqrt(time))) / math.sqrt(4 * math.pi * time)
        return np.asarray(np.exp(-(distances**2) / (4 * time)) * height)


def _steps(
    sensors: FloatArray, places: FloatArray, distances: FloatArray, time: float, *, off: float = 0.0
) -> FloatArray:
    """Changes over distance of the kernel of a line between consecutive places: sensors by steps."""
    ahead = sensors[:, np.newaxis] - places
    before, after = ahead[:, :-1], ahead[:, 1:]
    nearest = np.minimum(np.abs(before), np.abs(after))
    # a and b are each off by a unit of themselves (and by `off`), and |a| + |b| <= |a + b| + d.
    slopes = np.abs(before + after) + (4 * UNIT * distances + 2 * off)
    return _rates(_peaks(nearest, time, off=off), slopes, distances, time)


def _rates(peaks: FloatArray, slopes: FloatArray, distances: FloatArray, time: float) -> FloatArray:
    """|g(a) - g(b)| / d without cancellation: slopes are |(a + b) . (a - b)| / d, peaks max(g(a), g(b)).

    With x = d slopes / 4T = ||a|**2 - |b|**2| / 4T this is peaks (1 - exp(-x)) / d = peaks slopes / 4T
    phi(x), phi(x) = (1 - exp(-x)) / x. It grows with slopes: rounded up there, it is rounded up.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        slopes = slopes / (4 * time)
        x = np.maximum(slopes * distances, 1e-290)
        falls = np.asarray(-np.expm1(-x))
        # Far apart, x may overflow where the change is one peak.
        return np.asarray(np.where(x < 1, peaks * slopes * (falls / x), peaks * falls / distances))
