"""The low bits of a release say nothing; those of float noise say a lot [haney22]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.chance import LEVEL

from sfumato.privacy import (
    REHEARSAL,
    UNITS,
    ZCDP,
    AddRemoveUser,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    Ledger,
    Mechanism,
    PureDP,
    RoundedGaussian,
    guard,
)

SIZE = 20_000


def granularity(values: np.ndarray) -> np.ndarray:
    """The exponent of the last set bit: x is odd times 2**this."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    trailing = np.where(whole == 0, 0, np.log2(np.maximum(whole & -whole, 1)).astype(np.int64))
    return np.where(values == 0, 99, exponent - 53 + trailing)


def advantage(a: np.ndarray, b: np.ndarray) -> float:
    """p-value for telling two samples apart by granularity alone."""
    kinds = np.unique(np.concatenate([granularity(a), granularity(b)]))
    table = np.array([[np.sum(granularity(x) == kind) for kind in kinds] for x in (a, b)])
    busy = table.sum(axis=0) >= 40
    table = np.column_stack([table[:, busy], table[:, ~busy].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return float(stats.chi2_contingency(table).pvalue) if table.shape[1] > 1 else 1.0


def released(mechanism: Mechanism[Any, Any], value: int, exponent: int) -> np.ndarray:
    budget = PureDP(10**9) if isinstance(mechanism, DiscreteLaplace) else ZCDP(10**9)
    ledger = Ledger.rehearsal(budget)
    bound = Bound(AddRemoveUser(), SIZE, l1=UNITS)
    data = guard(np.full(SIZE, value), bound, source=REHEARSAL, exponent=exponent)
    # Not numbers(), which takes integers only: the test must see what float noise would give away.
    made: np.ndarray = np.ldexp(
        np.asarray(ledger.release(mechanism, data).value, dtype=np.float64), exponent
    )
    return made


@pytest.mark.statistical
def test_the_low_bits_of_a_release_say_nothing(rng: np.random.Generator) -> None:
    width = 2**12
    cases: list[tuple[Mechanism[Any, Any], int]] = [
        (DiscreteLaplace(UNITS), UNITS),
        (DiscreteGaussian(width), width),
        (RoundedGaussian(width), width),
    ]
    for mechanism, moved in cases:
        # Neighbors one noise width apart: around 0 float noise would keep all its bits, there it
        # would not.
        assert advantage(released(mechanism, 0, -20), released(mechanism, moved, -20)) >= LEVEL
    # The rival: the same experiment with numpy's Laplace on floats, where 1 + z has lost the bits
    # that z has.
    assert advantage(rng.laplace(size=SIZE), 1 + rng.laplace(size=SIZE)) < LEVEL


@pytest.mark.property
@given(st.integers(-(2**40), 2**40), st.integers(-40, 10))
def test_a_release_is_an_integer_times_a_power_of_two(value: int, exponent: int) -> None:
    ledger = Ledger.rehearsal(PureDP(10))
    data = guard(
        np.array([value]), Bound(AddRemoveUser(), 1, l1=1), source=REHEARSAL, exponent=exponent
    )
    release = ledger.release(DiscreteLaplace(4), data)
    assert release.value.dtype == np.int64
    scaled = np.ldexp(release.numbers(), -exponent)
    assert np.array_equal(scaled, np.rint(scaled))
    assert scaled.astype(np.int64).tolist() == release.value.tolist()
