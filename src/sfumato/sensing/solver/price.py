"""What a source in each cell would be worth: prices M'z under a dual vector, over all cells.

On a line with many cells the prices are a smooth function, known to rounding from a Taylor series on short
pieces; bounds on its derivatives settle nearly all cells without looking at them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.sensing.operators import GraphDiffusion, HeatLine, Operator
from sfumato.sensing.solver.line_price_kernel import HALF, peaks, series, unsettled
from sfumato.spaces import Graph, Grid
from sfumato.spaces.space import FloatArray, IntArray

SLACK = 1e-11
"""A cell this little above its level is not worth another round."""

MOST = 200_000
"""Cells whose prices are computed one by one on a line, before all of them are."""


@dataclass(frozen=True, slots=True)
class Prices:
    """The cells whose price may reach a level, and their prices; every other cell is below it for certain."""

    cells: IntArray
    values: FloatArray


def prices(operator: Operator, dual: FloatArray, level: float) -> Prices:
    """All prices that may reach a level, from the operator's own columns."""
    if isinstance(operator, HeatLine):
        pieces = _pieces(operator)
        if pieces is not None:
            first, width, _, half = pieces
            coefficients, sums = _series(operator, dual, pieces)
            cells, all_of_them = unsettled(
                coefficients, sums, first, width, half, operator.space.positions, level, MOST
            )
            if all_of_them:
                return Prices(cells, dual @ operator.columns(cells))
    values = operator.adjoint(dual)
    # No answer holds whose prices are rounded by as much as this.
    cells = np.flatnonzero(values >= level - 1e-8)
    return Prices(cells, values[cells])


def worth_adding(operator: Operator, dual: FloatArray, level: float, known: IntArray) -> IntArray:
    """Cells above a level and not known yet, a few dozen of the best; none only where there are none."""
    if isinstance(operator, HeatLine):
        pieces = _pieces(operator)
        if pieces is not None:
            first, width, _, half = pieces
            coefficients, _ = _series(operator, dual, pieces)
            found: IntArray = peaks(coefficients, first, width, half, operator.space.positions, level, SLACK)
            found = found[~np.isin(found, known)]
            if found.size:
                return np.unique(found)
            priced = prices(operator, dual, level)
            new = (priced.values > level + SLACK) & ~np.isin(priced.cells, known)
            return _best(priced.values[new], priced.cells[new], 48)
    values = operator.adjoint(dual)
    return most_promising(operator, values, level + SLACK, known)


def most_promising(operator: Operator, values: FloatArray, level: float, known: IntArray) -> IntArray:
    """Peaks of values above a level first, then the highest; fewer on a graph, whose columns are dear."""
    most = 16 if isinstance(operator, GraphDiffusion) else 48
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
        # The Laplacian is at hand on a diffusion; that a node is its own neighbor there changes nothing.
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
    """First place, width w, number of pieces and half of one in units of w.

    None where looking at every cell is less work.
    """
    places = operator.space.positions
    width = math.sqrt(2 * operator.diffusion_time)
    length = float(places[-1] - places[0]) / width
    count = max(1, math.ceil(length / (2 * HALF)))
    return (float(places[0]), width, count, length / (2 * count)) if 16 * count < places.size else None


def _series(
    operator: HeatLine, dual: FloatArray, pieces: tuple[float, float, int, float]
) -> tuple[FloatArray, FloatArray]:
    places = operator.sensors.positions[:, 0]
    order = np.argsort(places)
    coefficients, sums = series(places[order], dual[order], *pieces)
    return coefficients, sums
