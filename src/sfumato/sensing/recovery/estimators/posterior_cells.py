"""The cells in which `posterior` looks for sources: all, or on fine spaces some that stand for others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.places import begin_of
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.spaces import Grid, Line

MAX_CELLS = 4096  # all pairs of them are kept: 128 MB
ENOUGH_CELLS, ENOUGH_CODES = (
    256,
    1024,
)  # of a line, of a plane: of more cells, some stand for their neighbors
BLUR = 0.5  # of sigma: by how much a cell and the one that stands for it may read differently
SAMPLE = 256  # cells that stand for all others, to see how readings change within one
HELD = 0.999  # of the expected mass: the cells around it are looked at closer


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs of cells, each looked at in its middle alone: on a grid blocks, which are runs in Z-order.

    `reach` is how far a cell of a run can be from its middle.
    """

    operator: Operator
    starts: IntArray
    lengths: IntArray

    @property
    def middles(self) -> IntArray:
        """The cells that are looked at."""
        if isinstance(self.operator.space, Grid):
            # A block's run passes its middle three quarters on.
            return np.asarray(self.starts + 3 * self.lengths // 4)
        return np.asarray(self.starts + self.lengths // 2)

    @property
    def share(self) -> float:
        """The share of all cells that the runs cover."""
        return float(self.lengths.sum() / self.operator.space.size)

    @property
    def reach(self) -> float:
        """How far a cell can be from the one that stands for it, at most."""
        return float(_away(self, self.starts, self.starts + self.lengths - 1).max(initial=0.0))

    @property
    def change(self) -> float:
        """By how much a unit source reads otherwise at the end of a run than in its middle, at most."""
        if int(self.lengths.max()) == 1:
            return 0.0
        middle = self.operator.columns(self.middles)
        ends = (self.starts, self.starts + self.lengths - 1)
        return max(
            float(np.linalg.norm(self.operator.columns(end) - middle, axis=0).max()) for end in ends
        )


def all_runs(operator: Operator) -> Runs:
    """The runs to begin with: every cell its own where that is not too many, none longer than heat is wide.

    Of other operators than heat on a line or in a plane nobody knows which cells read alike: there
    all cells are looked at, up to 4,096.
    """
    size = operator.space.size
    count = required_runs(operator)
    if count > MAX_CELLS:
        raise InvalidParameter(
            f"sources are looked for in at most {MAX_CELLS} cells, got {size}; take coarser cells, or "
            "the least mass (R), which has no such limit; nothing was recovered"
        )
    ends = np.append(
        np.arange(0, size, math.ceil(size / count)), size
    )  # of one length, so as likely each
    return Runs(operator, ends[:-1], np.diff(ends))


def required_runs(operator: Operator) -> int:
    """How many runs there must be to begin with.

    As many as cells where none may stand for others.
    """
    space, width = operator.space, operator.kernel_width
    if width is None:
        return space.size
    match space:
        case Line():
            wide = float(np.ptp(space.positions)) / width
            return min(space.size, max(ENOUGH_CELLS, math.ceil(wide)))
        case Grid():
            west, south, east, north = space.bounds
            side = max(east - west, north - south) / width
            level = math.ceil(math.log2(max(side, math.sqrt(ENOUGH_CODES))))
            return int(4 ** min(space.levels, level))
        case _:
            return space.size


def closer(runs: Runs, shares: FloatArray) -> Runs | None:
    """Shorter runs, there where the mass is expected (shares of each run's middle); None if there are none.

    Runs that hold all but a thousandth of it stay, with those up to two away; each is cut in two,
    on a grid in four, as often as leaves no more than are enough; once where that leaves no more
    than can be.
    """
    parts = 4 if isinstance(runs.operator.space, Grid) else 2
    enough = ENOUGH_CODES if parts == 4 else ENOUGH_CELLS
    order = np.argsort(-shares, kind="stable")
    below = np.cumsum(shares[order])
    heavy = order[: int(np.searchsorted(below, HELD * below[-1])) + 1]
    places = runs.operator.space.places(runs.middles)
    far = runs.operator.space.distances_between(places[heavy], places).min(axis=0)
    stay = far <= 5 * runs.reach  # two runs away, corners too
    starts, lengths = runs.starts[stay], runs.lengths[stay]
    if lengths.max() == 1 or starts.size * parts > MAX_CELLS:
        return None
    starts, lengths = _cut(starts, lengths, parts)
    while lengths.max() > 1 and starts.size * parts <= enough:
        starts, lengths = _cut(starts, lengths, parts)
    return Runs(runs.operator, starts, lengths)


def beside(runs: Runs, first: Runs, faint: IntArray) -> Runs | None:
    """The runs, and those `faint` ones of the first with their neighbors, cut as short; None if too many."""
    space = runs.operator.space
    places = space.places(first.middles)
    near = space.distances_between(places[faint], places).min(axis=0) <= 2.5 * first.reach
    starts, lengths = first.starts[near], first.lengths[near]
    parts = 4 if isinstance(space, Grid) else 2
    while lengths.max() > runs.lengths.max():
        starts, lengths = _cut(starts, lengths, parts)
    # What is there already is a part of them, and gives way.
    at = np.searchsorted(first.starts[near], runs.starts, side="right") - 1
    ends = np.append(first.starts[near] + first.lengths[near], 0)
    other = (at < 0) | (runs.starts >= ends[at])
    starts, lengths = np.append(runs.starts[other], starts), np.append(runs.lengths[other], lengths)
    if starts.size > MAX_CELLS:
        return None
    order = np.argsort(starts)
    return Runs(runs.operator, starts[order], lengths[order])


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


def _cut(starts: IntArray, lengths: IntArray, parts: int) -> tuple[IntArray, IntArray]:
    ends = (lengths[:, np.newaxis] * np.arange(parts + 1)) // parts
    cut, sizes = starts[:, np.newaxis] + ends[:, :-1], np.diff(ends, axis=1)
    some = sizes > 0
    return cut[some], sizes[some]


def _away(runs: Runs, *cells: IntArray) -> FloatArray:
    """How far cells of runs are from the middles of these: one row for each."""
    space = runs.operator.space
    middle = space.places(runs.middles)
    return np.array([np.abs(space.places(some) - middle).sum(axis=1) for some in cells])
