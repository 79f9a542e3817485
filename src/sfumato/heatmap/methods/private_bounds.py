"""Find where the data is, privately, inside a public outer area: for `--bounds private`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._types import IntArray
from sfumato.privacy import UNITS, Bound, DiscreteLaplace, Guarded, Ledger, Noise, PureDP
from sfumato.privacy.accounting import Number, exact
from sfumato.privacy.runs import Run, Unkept
from sfumato.records import CellSums
from sfumato.spaces import Area, Bounds, Grid, part_of

LEVEL = 6
ROUNDS = 2
BOUNDS_PARTS = tuple(f"bounds {number + 1}" for number in range(ROUNDS))
# A strip without anybody passes for a full one with at most this probability, over all strips of a
# round.
FALSE_STRIP = 0.05


@dataclass(frozen=True, slots=True)
class PrivateBounds:
    """Noisy mass of every column and every row of a grid, columns first: two histograms of the same users.

    Privacy: PureDP(2 l1 / scale). Proof: docs/proofs/strips.md
    """

    scale: Fraction
    name: ClassVar[str] = "strips/1"
    additive: ClassVar[bool] = True

    @property
    def law(self) -> DiscreteLaplace:
        """Noise of every strip."""
        return DiscreteLaplace(self.scale)

    def cost(self, bound: Bound) -> PureDP:
        """A user's mass is counted once among the columns and once among the rows."""
        return PureDP(2 * self.law.cost(bound).epsilon)

    def draws(self, bound: Bound) -> int:
        """One for each strip."""
        return 2 * math.isqrt(bound.size)

    def sample(self, values: CellSums, noise: Noise) -> IntArray:
        """Columns from the lowest x, then rows from the lowest y."""
        grid = values.grid
        columns, rows = grid.decode(values.codes % grid.size)  # groups lie one after another
        exact_strips = np.zeros(2 * grid.side, dtype=np.int64)
        np.add.at(exact_strips, columns, values.units)
        np.add.at(exact_strips, grid.side + rows, values.units)
        return self.law.sample(exact_strips, noise)


def find_area(
    sums: Callable[[Area], Guarded[CellSums]],
    outer: Area,
    *,
    ledger: Ledger,
    epsilon: Number,
    team: str = "",
    other_table: bool = False,
    run: Run | None = None,
) -> Area:
    """The part of a public outer area where clearly more users are than noise; costs at most epsilon.

    Two rounds, each on half of epsilon: the noisy mass of 64 columns and 64 rows of the box so far;
    the new box reaches from the first strip above the noise to the last, and one strip more to each
    side. A strip counts as above when its noise alone would reach there with probability
    FALSE_STRIP over all strips of the round. Where no strip is, the box stays. `sums` reads the
    data on the grid of an area.

    Args:
        sums: Reads the guarded sums on the grid of an area.
        outer: The public outer area.
        ledger: The ledger that pays.
        epsilon: What both rounds cost together, above 0.
        team: Whose sub-budget pays, in a ledger with teams.
        other_table: Whether another table than before holds the same people.
        run: The request that it is a part of: rounds that were paid for are not paid again.

    Returns:
        A part of the outer area, with as many levels.

    Raises:
        BudgetExceeded: The ledger has not enough left.

    """
    box, paying = outer.bounds, Unkept() if run is None else run
    for number, share in enumerate(area_prices(epsilon)):
        area = Area(Grid(LEVEL, box), box, outer.kind)
        mechanism = PrivateBounds(DiscreteLaplace(2 * UNITS / share.epsilon).scale)
        note = f"bounds, round {number + 1} of {ROUNDS}"
        paid, _ = paying.release(
            ledger,
            mechanism,
            partial(sums, area),
            part=BOUNDS_PARTS[number],
            pay=share,
            note=note,
            team=team,
            other_table=other_table,
        )
        box = _above(paid.value, float(mechanism.scale), area.grid)
    return part_of(outer, box, outer.grid.levels)


def area_prices(epsilon: Number) -> list[PureDP]:
    """What `find_area` will be charged, round by round, known before any row is read.

    Args:
        epsilon: What both rounds cost together, above 0.

    Returns:
        The cost of each round.

    """
    return [PureDP(exact(epsilon, name="epsilon") / ROUNDS)] * ROUNDS


def _above(strips: IntArray, scale: float, grid: Grid) -> Bounds:
    # P(noise >= t) <= exp(-t / scale) / 2 for each of the strips.
    threshold = scale * math.log(strips.size / (2 * FALSE_STRIP))
    west, south, east, north = grid.bounds
    low_x, high_x = _reach(strips[: grid.side] > threshold, west, east)
    low_y, high_y = _reach(strips[grid.side :] > threshold, south, north)
    return low_x, low_y, high_x, high_y


def _reach(full: npt.NDArray[np.bool_], low: float, high: float) -> tuple[float, float]:
    where = np.flatnonzero(full)
    if where.size == 0:
        return low, high
    width = (high - low) / full.size
    first, last = max(0, int(where[0]) - 1), min(full.size, int(where[-1]) + 2)
    return low + first * width, high if last == full.size else low + last * width
