"""Cell sums: any coarser cell is two searches; groups lie one after another."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import InvalidInput, Unguarded
from sfumato.privacy import UNITS, AddRemoveUser
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Grid


@pytest.mark.property
def test_every_level_is_the_sum_of_its_children(rng: np.random.Generator) -> None:
    grid, groups = Grid(5), 3
    codes = np.flatnonzero(rng.random(groups * grid.size) < 0.1)
    sums = CellSums(grid, codes, rng.integers(1, UNITS, codes.size), groups)
    for level in range(5):
        children = sums.of_level(level + 1).reshape(-1, 4).sum(axis=1)
        assert np.array_equal(sums.of_level(level), children)
    assert sums.of_level(0).sum() == sums.units.sum()
    some = rng.integers(0, groups * 4**3, 50)
    assert np.array_equal(sums.of_cells(3, some), sums.of_level(3)[some])


@pytest.mark.unit
def test_sums_of_nobody_are_zero() -> None:
    empty = np.zeros(0, dtype=np.int64)
    assert CellSums(Grid(16), empty, empty).of_level(2).tolist() == [0] * 16


@pytest.mark.unit
@pytest.mark.parametrize("codes", [[1, 1], [2, 1], [1, 2, 3]])
def test_codes_increase_one_for_each_sum(codes: list[int]) -> None:
    with pytest.raises(InvalidInput, match="nothing was charged"):
        CellSums(Grid(2), np.array(codes), np.array([5, 6]))


@pytest.mark.unit
def test_guarded_sums_carry_the_bound_of_one_user_and_show_nothing() -> None:
    sums = CellSums(Grid(2), np.array([3]), np.array([UNITS]))
    guarded = guard_sums(sums, source="city", unit="household")
    assert guarded.bound.l1 == guarded.bound.linf == UNITS
    assert guarded.bound.l2_squared == UNITS**2
    assert guarded.bound.neighbors == AddRemoveUser()
    assert guarded.bound.unit == "household"
    assert str(UNITS) not in repr(guarded) + repr(sums)
    with pytest.raises(Unguarded):
        guarded[0]
