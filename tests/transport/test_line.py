"""Line EMD: the area between two cumulative sums, to the last digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from sfumato.errors import InvalidInput
from sfumato.spaces import Line
from sfumato.transport import emd

values = st.lists(st.integers(0, 2**40), min_size=1, max_size=200)


def exactly(p: list[int], q: list[int], positions: list[float]) -> Fraction:
    """The same sum in fractions."""
    excess, cost = Fraction(0), Fraction(0)
    for i in range(len(p) - 1):
        excess += Fraction(p[i]) - Fraction(q[i])
        cost += abs(excess) * (Fraction(positions[i + 1]) - Fraction(positions[i]))
    return cost


@pytest.mark.reference
@given(values, st.data())
def test_the_true_value_is_between_the_bounds(p: list[int], data: st.DataObject) -> None:
    q = list(p)
    for _ in range(3):
        i, j = (data.draw(st.integers(0, len(p) - 1)) for _ in range(2))
        moved = data.draw(st.integers(0, q[i]))
        q[i] -= moved
        q[j] += moved
    steps = data.draw(st.lists(st.floats(1e-6, 1e3), min_size=len(p), max_size=len(p)))
    line = Line.at(np.cumsum(steps) - 500)
    found = emd(p, q, line)
    true = exactly(p, q, line.positions.tolist())
    assert Fraction(found.lower) <= true <= Fraction(found.upper)
    assert found.upper - found.lower <= 1e-12 * sum(p) * line.diameter


@pytest.mark.reference
def test_it_agrees_with_scipy(rng: np.random.Generator) -> None:
    for n in (2, 63, 64, 65, 128, 1000, 100_000):
        line = Line(n)
        p, q = rng.random((2, n))
        theirs = wasserstein_distance(line.positions, line.positions, p, q)
        assert emd(p, q, line, normalize=True).value == pytest.approx(theirs, rel=1e-9)


@pytest.mark.property
@given(st.lists(st.integers(0, 100), min_size=1, max_size=100), st.integers(0, 20))
def test_a_shift_costs_its_length(p: list[int], by: int) -> None:
    line = Line(len(p) + by, length=len(p) + by)
    here, there = np.append(p, np.zeros(by)), np.append(np.zeros(by), p)
    assert emd(here, there, line).value == pytest.approx(by * sum(p), rel=1e-12)


@pytest.mark.unit
def test_by_hand() -> None:
    line = Line.at([0.0, 1.0, 10.0])
    found = emd([2, 0, 0], [0, 1, 1], line, flow=True)
    assert found.value == 11
    assert isinstance(found.flow, np.ndarray)
    assert found.flow.tolist() == [2, 1]
    assert emd([5], [5], Line(1)).value == 0
    with pytest.raises(InvalidInput, match="masses must be equal, got 1 and 3"):
        emd([1, 0, 0], [1, 1, 1], line)
    with pytest.raises(InvalidInput, match="p must not be negative"):
        emd([-1, 1, 0], [0, 0, 0], line)
    with pytest.raises(InvalidInput, match="q must be finite"):
        emd([1, 0, 0], [np.inf, 0, 0], line)
