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
from sfumato.sensing.model.operators.heat import heat
from sfumato.sensing.model.operators.protocol import Operator, column_chunks
from sfumato.sensing.recovery.solver.line_price_kernel import (
    HALF,
    LEFT_OUT,
    peaks,
    series,
    unsettled,
)
from sfumato.spaces import Graph, Grid, Line

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
    """The cells whose price may reach a level, and their prices; every other cell is below it for certain.

    `off` bounds the length of all errors of the prices where they are those of a diffusion, whose
    columns are too dear to be priced again; None where columns are.
    """

    cells: IntArray
    values: FloatArray
    off: float | None = None


def prices(operator: Operator, dual: FloatArray, level: float) -> Prices:
    """All prices that may reach a level, from the operator's own columns."""
    line = heat_on_line(operator)
    if line is not None:
        found = _series(line, dual)
        if found is not None:
            cells, all_of_them = unsettled(
                found.coefficients,
                found.errors,
                found.first,
                found.width,
                found.half,
                line.places,
                level,
                MAX_UNSETTLED,
            )
            if all_of_them:
                return Prices(cells, dual @ operator.columns(cells))
    rounding = operator.adjoint_rounding(dual, level)
    if rounding is not None:
        values = operator.adjoint(dual)
    else:
        values, sizes = _priced_columns(operator, dual)
        # Off by (m + 2) units of all that was added up [higham02, sec. 3.1].
        rounding = 2 * (dual.size + 2) * EPS * (sizes + level)
    cells = np.flatnonzero(~(values + rounding < level))
    off = rounding if operator.diffusion is not None and isinstance(rounding, float) else None
    return Prices(cells, values[cells], off)


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
    line = heat_on_line(operator)
    if line is not None:
        found = _series(line, dual)
        if found is not None:
            tips: IntArray = peaks(
                found.coefficients,
                found.first,
                found.width,
                found.half,
                line.places,
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
        diffusion = operator.diffusion
        around = space.adjacency() if diffusion is None else diffusion.laplacian
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


@dataclass(frozen=True, slots=True)
class HeatOnLine:
    """Heat on a line: places of cells and of sensors, and the diffusion time."""

    places: FloatArray
    sensors: FloatArray
    time: float

    @property
    def width(self) -> float:
        """The deviation of the kernel."""
        return math.sqrt(2 * self.time)

    def columns_at(self, places: FloatArray) -> FloatArray:
        """What a unit at each of these places reads, at cells or between them."""
        return heat(self.sensors[:, np.newaxis] - places, self.time)


def heat_on_line(operator: Operator) -> HeatOnLine | None:
    """The operator as heat on a line, if it says that it is."""
    space, time = operator.space, operator.time
    if operator.kernel_width is None or time is None or not isinstance(space, Line):
        return None
    return HeatOnLine(space.positions, operator.sensors.positions[:, 0], time)


def _pieces(line: HeatOnLine) -> tuple[float, float, int, float] | None:
    """First place, width w, number of pieces and half of one in units of w; None where that is more work."""
    places, width = line.places, line.width
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


def _series(line: HeatOnLine, dual: FloatArray) -> _Series | None:
    """None where looking at every cell is less work, or sensors far away weigh too much to be left out."""
    pieces = _pieces(line)
    if pieces is None:
        return None
    first, width, _, half = pieces
    if np.abs(dual).sum() * heat(np.zeros(1), line.time)[0] * LEFT_OUT > MAX_LEFT_OUT:
        return None
    order = np.argsort(line.sensors)
    coefficients, errors = series(line.sensors[order], dual[order], *pieces)
    return _Series(coefficients, errors, first, width, half) if errors.max() <= MAX_ERROR else None
