"""What records become: integer mass per cell, sparse and sorted, so that any coarser cell is two searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato._types import BoolArray, IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import UNITS, AddRemoveUser, Bound, Guarded
from sfumato.privacy.accounting import Clock, ValueColumns
from sfumato.privacy.ledger import Source, Table
from sfumato.records.groups import Groups, bounded_for, count_of, periods_of
from sfumato.spaces import Area, Grid

LARGEST_CODE = 2**32


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CellSums:
    """Units per cell, for one map or for several `groups` of them that share each user's mass.

    `codes` increase; a code is group * grid.size + the Z-order code of the cell. Cells of level i
    of all groups are then numbered group * 4**i + code, and the pyramid is implicit: the mass of
    any of them is a difference of two prefix sums. Outside the public bounds of `area` every sum is
    0 whatever the rows are; without one, any cell may hold mass.
    """

    grid: Grid
    codes: IntArray
    units: IntArray
    groups: int = 1
    area: Area | None = None
    prefix: IntArray = field(init=False)

    def __post_init__(self) -> None:
        if self.codes.shape != self.units.shape or np.any(np.diff(self.codes) <= 0):
            raise InvalidInput(
                "cell sums need increasing codes, one for each sum; nothing was charged"
            )
        object.__setattr__(
            self, "prefix", np.concatenate([[0], np.cumsum(self.units, dtype=np.int64)])
        )

    def of_cells(self, level: int, codes: IntArray) -> IntArray:
        """The units inside cells of a level, each in [group * 4**level, ...)."""
        shift = 2 * (self.grid.levels - whole("level", level, low=0, high=self.grid.levels))
        first, last = np.searchsorted(self.codes, [codes << shift, (codes + 1) << shift])
        return np.asarray(self.prefix[last] - self.prefix[first], dtype=np.int64)

    def can_hold(self, level: int, codes: IntArray) -> BoolArray:
        """Which cells of a level touch the public bounds: the others are 0 for all rows there could be."""
        every = (0, 0, 1 << level, 1 << level)
        if self.area is None or not codes.size or self.area.window(level) == every:
            return np.ones(codes.shape, dtype=np.bool_)
        return self.area.touches(level, codes & ((1 << 2 * level) - 1))

    def of_level(self, level: int) -> IntArray:
        """The units of every cell of a level, by code: groups * 4**level numbers."""
        return self.of_cells(level, np.arange(self.groups << 2 * level, dtype=np.int64))


def guard_sums(
    sums: CellSums,
    *,
    source: Source,
    unit: str = "user",
    clock: Clock | ValueColumns | None = None,
    periods: Sequence[str] | None = None,
    masses: int = 1,
    table: Table | None = None,
) -> Guarded[CellSums]:
    """Put cell sums under guard.

    The caller vouches that adding or removing one `unit` (of a period of `clock`, if it names one)
    changes them by at most masses * UNITS in l1.

    Args:
        sums: The sums.
        source: The name of the data source; or `REHEARSAL`.
        unit: The unit of privacy.
        clock: By which clock the unit is told, if it names a period; or columns of values.
        periods: The periods that the sums are of, if the unit names one; rows of any other must not
            have been counted.
        masses: In how many periods one unit can have mass 1.
        table: Which table was counted.

    Returns:
        The sums under guard.

    """
    bound = bound_of_sums(
        sums.grid, sums.groups, unit=unit, clock=clock, periods=periods, masses=masses
    )
    return Guarded(sums, bound, source=source, exponent=1 - UNITS.bit_length(), table=table)


def bound_of_sums(
    grid: Grid,
    groups: int = 1,
    *,
    unit: str = "user",
    clock: Clock | ValueColumns | None = None,
    periods: Sequence[str] | None = None,
    masses: int = 1,
) -> Bound:
    """How far adding or removing one `unit` can move cell sums: a public fact, known before any row is.

    A unit that has mass 1 in several groups moves all of them; a cell is of one group, so by UNITS
    at most.

    Args:
        grid: The grid of one group.
        groups: How many groups there are.
        unit: The unit of privacy.
        clock: By which clock the unit is told, if it names a period; or columns of values.
        periods: The periods that are counted, if the unit names one.
        masses: In how many periods one unit can have mass 1.

    Returns:
        The bound, in units.

    Raises:
        InvalidParameter: groups times cells is above 2**32.

    """
    if groups * grid.size > LARGEST_CODE:
        raise InvalidParameter(
            f"groups times cells must be at most 2**32, got {groups} times {grid.size}; nothing was counted"
        )
    return Bound(
        AddRemoveUser(),
        groups * grid.size,
        l1=masses * UNITS,
        linf=UNITS,
        unit=unit,
        clock=clock,
        periods=periods,
    )


def bound_of_groups(
    grid: Grid,
    groups: Groups,
    *,
    unit: str = "user",
    by: str | tuple[str, ...] | None = None,
) -> Bound:
    """How far one `unit` can move the sums of all groups, before any row is read, as `sum_cells` does.

    Args:
        grid: The grid of one group.
        groups: Public names of groups, values, periods or pairs; None for one group.
        unit: The unit of privacy.
        by: The columns of the groups, where these are names alone.

    Returns:
        The bound of the sums.

    Raises:
        InvalidParameter: The unit does not fit the groups.

    """
    masses, clock = bounded_for(unit, groups, by)
    of = periods_of(unit, groups)
    return bound_of_sums(grid, count_of(groups), unit=unit, clock=clock, periods=of, masses=masses)
