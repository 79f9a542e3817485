"""What a source in each cell would be worth: prices M'z under a dual vector, over all cells.

On a line with many cells the prices are a smooth function, known to rounding from a Taylor series
on short pieces; bounds on its derivatives settle nearly all cells without looking at them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.model.operators.graph_diffusion import GraphDiffusion
from sfumato.sensing.model.operators.heat_line import HeatLine
from sfumato.sensing.model.operators.heat_plane import HeatPlane
from sfumato.sensing.model.operators.protocol import Operator, column_chunks
from sfumato.sensing.recovery.solver.line_price_kernel import (
    HALF,
    LEFT_OUT,
    peaks,
    series,
    unsettled,
)
from sfumato.sensing.recovery.solver.norms import length
from sfumato.spaces import Graph, Grid

SLACK = 1e-11
"""A cell this little above its level is not worth another round."""

MAX_LEFT_OUT = 1e-12
"""What sensors left out of a series may add to a price, at most."""

MAX_ERROR = 1e-6
"""Series that may be further off than this tell nothing of prices about 1."""

EPS = float(np.finfo(np.float64).eps)

MAX_UNSETTLED = 200_000
"""Cells whose prices are computed one by one on a line, before all of them are."""


@dataclass(frozen=True, slots=True)
class Prices:
    """The cells whose price may reach a level, and their prices; every other cell is below it for certain."""

    cells: IntArray
    values: FloatArray


def prices(operator: Operator, dual: FloatArray, level: float) -> Prices:
    """All prices that may reach a level, from the operator's own columns."""
    if isinstance(operator, HeatLine):
        found = _series(operator, dual)
        if found is not None:
            cells, all_of_them = unsettled(
                found.coefficients,
                found.errors,
                found.first,
                found.width,
                found.half,
                operator.space.positions,
                level,
                MAX_UNSETTLED,
            )
            if all_of_them:
                return Prices(cells, dual @ operator.columns(cells))
    if isinstance(operator, GraphDiffusion):
        values = operator.adjoint(dual)
        rounding: FloatArray | float = graph_rounding(operator, dual)
    elif isinstance(operator, HeatPlane) and isinstance(operator.space, Grid):
        # From factors at places rounded another way than in columns: by well below 1e-8 of the
        # sizes.
        values = operator.adjoint(dual)
        rounding = 1e-8 * (operator.adjoint(np.abs(dual)) + level)
    else:
        values, sizes = _priced_columns(operator, dual)
        # Off by (m + 2) units of all that was added up [higham02, sec. 3.1].
        rounding = 2 * (dual.size + 2) * EPS * (sizes + level)
    cells = np.flatnonzero(~(values + rounding < level))
    return Prices(cells, values[cells])


def graph_rounding(operator: GraphDiffusion, z: FloatArray) -> float:
    """A bound on the length of all rounding errors of the prices on a graph.

    A step of the recurrence on x, in a matrix S of norm 1, rounds by at most (entries of a row + 4)
    EPS |x|; the error of step j reaches step k multiplied by at most k - j + 1 (Chebyshev
    polynomials of the second kind), so by k**2 in all, and the coefficients are a law on k with
    mean square reach = rate half.
    """
    half, coefficients = operator._series
    reach = operator.rate * half
    row = int(np.diff(operator.laplacian.indptr).max())
    shared = math.sqrt(int(np.bincount(operator.nodes).max()))  # sensors on one node add up there
    steps = 2 * (row + 4) * (reach + math.sqrt(reach)) + coefficients.size + 64
    return steps * EPS * shared * float(length(z))


def _priced_columns(operator: Operator, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The prices of all cells, and the sums of the sizes of their terms."""
    n = operator.shape[1]
    values, sizes, absolute = np.empty(n), np.empty(n), np.abs(dual)
    for part in column_chunks(operator, np.arange(n)):
        columns = operator.columns(part)
        values[part] = dual @ columns
        sizes[part] = absolute @ (columns if operator.nonnegative else np.abs(columns))
    return values, sizes


def worth_adding(operator: Operator, dual: FloatArray, level: float, known: IntArray) -> IntArray:
    """Cells above a level and not known yet, a few dozen of the best; none only where there are none."""
    if isinstance(operator, HeatLine):
        found = _series(operator, dual)
        if found is not None:
            tips: IntArray = peaks(
                found.coefficients,
                found.first,
                found.width,
                found.half,
                operator.space.positions,
                level,
                SLACK,
            )
            tips = tips[~np.isin(tips, known)]
            if tips.size:
                return np.unique(tips)
            priced = prices(operator, dual, level)
            new = (priced.values > level + SLACK) & ~np.isin(priced.cells, known)
            return _best(priced.values[new], priced.cells[new], 48)
    values = operator.adjoint(dual)
    return most_promising(operator, values, level + SLACK, known)


def most_promising(
    operator: Operator, values: FloatArray, level: float, known: IntArray
) -> IntArray:
    """Peaks of values above a level first, then the highest; fewer on a graph, whose columns are dear."""
    most = 16 if operator.costly_columns else 48
    over = values > level
    over[known] = False
    cells = np.flatnonzero(over)
    if cells.size <= most:
        return cells
    top = _best(values[cells], cells, most)
    cells = cells[_peaks(operator, values)[cells]]
    tips = _best(values[cells], cells, most // 2)
    rest = top[~np.isin(top, tips)]
    return np.concatenate([tips, _best(values[rest], rest, most - tips.size)])


def _best(values: FloatArray, cells: IntArray, most: int) -> IntArray:
    return cells[np.argpartition(-values, most)[:most]] if cells.size > most else cells


def _peaks(operator: Operator, values: FloatArray) -> npt.NDArray[np.bool_]:
    """Which cells are not below any neighbor."""
    space = operator.space
    if isinstance(space, Graph):
        # The Laplacian is at hand on a diffusion; that a node is its own neighbor there changes
        # nothing.
        around = operator.laplacian if isinstance(operator, GraphDiffusion) else space.adjacency()
        highest = np.full(space.size, -np.inf)
        linked = np.flatnonzero(np.diff(around.indptr))  # a lone node has no neighbor
        highest[linked] = np.maximum.reduceat(values[around.indices], around.indptr[linked])
        return values >= highest
    if isinstance(space, Grid):
        image = np.pad(space.image(values), 1, constant_values=-np.inf)
        rows = np.maximum(np.maximum(image[:-2], image[2:]), image[1:-1])
        highest_around = np.maximum(np.maximum(rows[:, :-2], rows[:, 2:]), rows[:, 1:-1])
        return values >= space.values_of_image(highest_around)
    return np.ones(values.size, dtype=bool)


def _pieces(operator: HeatLine) -> tuple[float, float, int, float] | None:
    """First place, width w, number of pieces and half of one in units of w; None where that is more work."""
    places = operator.space.positions
    width = math.sqrt(2 * operator.diffusion_time)
    length = float(places[-1] - places[0]) / width
    count = max(1, math.ceil(length / (2 * HALF)))
    return (
        (float(places[0]), width, count, length / (2 * count)) if 16 * count < places.size else None
    )


@dataclass(frozen=True, slots=True)
class _Series:
    """Prices on a line as series on pieces, from the first place on, 2 half widths each."""

    coefficients: FloatArray
    errors: FloatArray
    first: float
    width: float
    half: float


def _series(operator: HeatLine, dual: FloatArray) -> _Series | None:
    """None where looking at every cell is less work, or sensors far away weigh too much to be left out."""
    pieces = _pieces(operator)
    if pieces is None:
        return None
    first, width, _, half = pieces
    if np.abs(dual).sum() * operator.kernel(np.zeros(1))[0] * LEFT_OUT > MAX_LEFT_OUT:
        return None
    places = operator.sensors.positions[:, 0]
    order = np.argsort(places)
    coefficients, errors = series(places[order], dual[order], *pieces)
    return _Series(coefficients, errors, first, width, half) if errors.max() <= MAX_ERROR else None
