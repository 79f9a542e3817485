"""The cells in which `posterior` looks for sources: all, or on fine spaces some that stand for others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.spaces import Grid, Line

MAX_CELLS = 4096  # all pairs of them are kept: 128 MB
ENOUGH_CELLS, ENOUGH_CODES = (
    256,
    1024,
)  # of a line, of a plane: of more cells, some stand for their neighbors
BLUR = 0.5  # of sigma: by how much a cell and the one that stands for it may read differently
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
