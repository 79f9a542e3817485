"""Wagers are fair to every law a claim allows, and grow as fast as any can against one that it does not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from scipy import optimize

from sfumato._types import FloatArray
from sfumato.audit.claims import EpsilonDelta
from sfumato.audit.sequential.betting import Bankroll, best_wager, fair, growth_rates, prices
from sfumato.audit.sequential.power import excluded_epsilon, required_pairs

chances = st.floats(1e-6, 1.0)
laws = st.tuples(chances, chances, chances).map(lambda one: np.array(one) / sum(one))
factors = st.tuples(*[st.floats(0.0, 50.0)] * 3).map(np.array)
statements = st.builds(EpsilonDelta, st.floats(0.0, 6.0), st.sampled_from([0.0, 1e-6, 0.01, 0.3]))


def kept(
    statement: EpsilonDelta, law1: FloatArray, law2: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The laws mixed with each other just so much that they keep a statement in both orders."""

    def broken(share: float) -> bool:
        p, q = law1 + share * (law2 - law1) / 2, law2 + share * (law1 - law2) / 2
        grown = math.exp(statement.epsilon)
        worst = max(np.maximum(p - grown * q, 0).sum(), np.maximum(q - grown * p, 0).sum())
        return bool(worst > statement.delta)

    low, high = 0.0, 1.0
    for _ in range(60 if broken(0.0) else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if broken(middle) else (low, middle)
    share = high if broken(0.0) else 0.0
    return law1 + share * (law2 - law1) / 2, law2 + share * (law1 - law2) / 2


@pytest.mark.property
@given(statements, factors, factors, laws, laws)
def test_a_wager_is_fair_whatever_its_factors(
    statement: EpsilonDelta,
    first: FloatArray,
    second: FloatArray,
    law1: FloatArray,
    law2: FloatArray,
) -> None:
    wager = fair(statement, first, second)
    p, q = kept(statement, law1, law2)
    assert p @ wager.first + q @ wager.second <= 2
    assert (p @ wager.first) * (q @ wager.second) <= 1


@pytest.mark.property
@given(statements, laws, laws)
def test_the_best_wager_is_fair_and_never_shrinks_against_its_laws(
    statement: EpsilonDelta, law1: FloatArray, law2: FloatArray
) -> None:
    wager = best_wager(statement, law1, law2)
    p, q = kept(statement, law1, law2)
    assert (p @ wager.first) * (q @ wager.second) <= 1
    # Of each wager 1e-9 is taken off, twice.
    assert wager.growth(law1, law2) >= -3e-9


@pytest.mark.unit
def test_a_wager_a_hundredth_larger_is_not_fair() -> None:
    """The arm that fails: what is taken off is no more than it must be."""
    statement = EpsilonDelta(1.0, 0.0)
    wager = best_wager(statement, np.array([0.5, 0.1, 0.4]), np.array([0.1, 0.5, 0.4]))
    p, q = np.array([0.5, 0.1, 0.4]) / wager.first, np.array([0.1, 0.5, 0.4]) / wager.second
    p, q = p / p.sum(), q / q.sum()
    assert p[0] <= math.e * q[0] * (1 + 1e-6)
    assert q[1] <= math.e * p[1] * (1 + 1e-6)
    assert (p @ wager.first) * (q @ wager.second) > 0.999
    assert (p @ wager.first) * (q @ wager.second) * 1.01**2 > 1


@pytest.mark.reference
@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_no_wager_grows_faster(rng: Generator, delta: float) -> None:
    """Against a general solver that looks for the nearest allowed laws of three cells."""
    for _ in range(12):
        # Cells as events are chosen: either law has more of its own event, and the rest is like the
        # rest.
        rest = float(rng.uniform(0.1, 0.9))
        shares = np.sort(rng.random(2))
        law1 = np.array([shares[1] * (1 - rest), (1 - shares[1]) * (1 - rest), rest])
        law2 = np.array([shares[0] * (1 - rest), (1 - shares[0]) * (1 - rest), rest])
        statement = EpsilonDelta(float(rng.uniform(0, 1)), delta)
        found = best_wager(statement, law1, law2).growth(law1, law2)
        assert found == pytest.approx(nearest(statement, law1, law2), abs=2e-4)


def nearest(statement: EpsilonDelta, law1: FloatArray, law2: FloatArray) -> float:
    """The least relative entropy, by a solver that knows nothing but the eight events of each order."""
    grown = math.exp(statement.epsilon)
    events = np.array(
        [[bit >> cell & 1 for cell in range(3)] for bit in range(1, 7)], dtype=np.float64
    )

    def entropy(both: FloatArray) -> float:
        p, q = np.maximum(both[:3], 1e-12), np.maximum(both[3:], 1e-12)
        return float(law1 @ np.log(law1 / p) + law2 @ np.log(law2 / q))

    def room(both: FloatArray) -> FloatArray:
        p, q = events @ both[:3], events @ both[3:]
        return np.concatenate([grown * q + statement.delta - p, grown * p + statement.delta - q])

    whole: Any = [
        {"type": "eq", "fun": lambda both: both[:3].sum() - 1},
        {"type": "eq", "fun": lambda both: both[3:].sum() - 1},
        {"type": "ineq", "fun": room},
    ]
    middle = (law1 + law2) / 2
    start = np.concatenate([middle, middle])
    done = optimize.minimize(
        entropy,
        start,
        bounds=[(1e-9, 1.0)] * 6,
        constraints=whole,
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return float(done.fun)


@pytest.mark.unit
def test_an_output_of_one_input_alone_multiplies_wealth_as_much_as_can_be() -> None:
    """By 1 + e**-epsilon: E = 1 + a p - b q is 1 where p = e**epsilon q for a = e**-epsilon b, and b <= 1."""
    rare = best_wager(
        EpsilonDelta(1.0, 0.0), np.array([1e-4, 1e-12, 1 - 1e-4]), np.array([1e-12, 1e-12, 1.0])
    )
    assert rare.first[0] == pytest.approx(1 + math.exp(-1), rel=1e-3)
    assert rare.first[2] * rare.second[2] == pytest.approx(1, abs=1e-7)


@pytest.mark.unit
def test_prices_by_hand() -> None:
    """Chances 1/2 and 0 at epsilon 0 meet where p = q = 1/4; what is allowed is its own price."""
    p, q = prices(EpsilonDelta(0.0, 0.0), np.array([0.5, 0.2]), np.array([0.0, 0.3]))
    assert p == pytest.approx([0.25, 0.2])
    assert q == pytest.approx([0.25, 0.3])
    rates = growth_rates(EpsilonDelta(0.0, 0.0), np.array([0.5, 0.2]), np.array([0.0, 0.3]))
    assert rates == pytest.approx([0.5 * math.log(2) + 0.5 * math.log(2 / 3) + math.log(4 / 3), 0])


@pytest.mark.property
@given(st.floats(0.0, 6.0), st.lists(st.tuples(chances, chances), min_size=1, max_size=8))
def test_prices_without_delta_are_those_of_a_delta_of_nearly_nothing(
    epsilon: float, pairs: list[tuple[float, float]]
) -> None:
    """A formula against the bisection that serves every other delta."""
    more, less = np.array(pairs).T
    none, nearly = (prices(EpsilonDelta(epsilon, delta), more, less) for delta in (0.0, 1e-15))
    for found, wanted in zip(none, nearly, strict=True):
        # Where an event is as likely as can be, its price is a minimum's end, and flat.
        assert found == pytest.approx(wanted, rel=1e-5, abs=1e-6)


@pytest.mark.unit
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_nothing_is_bet_where_no_runs_could_tell(delta: float) -> None:
    """Nor is a smaller epsilon tested in place of a large one; and up to the largest nothing overflows."""
    sure, never = np.array([0.98, 0.01, 0.01]), np.array([0.01, 0.98, 0.01])
    for epsilon in (151.0, 700.0, 800.0, 10_000.0):
        statement = EpsilonDelta(epsilon, delta)
        assert best_wager(statement, sure, never).growth(sure, never) <= 0
        assert fair(statement, sure * 50, never).growth(sure, never) <= 0
        assert required_pairs(statement, 1.0, 0.0, 1.0) == math.inf
    for epsilon in (0.0, 1.0, 30.0, 100.0, 150.0):
        wager = best_wager(EpsilonDelta(epsilon, delta), sure, never)
        assert np.isfinite(wager.growth(sure, never))
    assert best_wager(EpsilonDelta(0.0, delta), sure, never).growth(sure, never) > 1


@pytest.mark.unit
def test_a_bankroll_stops_where_it_has_enough() -> None:
    bankroll = Bankroll([0.5, 0.5])
    logs = np.array([[math.log(2)] * 4, [0.0] * 4])
    path = bankroll.settle(logs, math.log(2.5))
    assert np.exp(path) == pytest.approx([1.5, 2.5])
    assert math.exp(bankroll.now) == pytest.approx(2.5)
    bankroll.deal()
    assert math.exp(bankroll.now) == pytest.approx(2.5)


@pytest.mark.unit
def test_fewer_runs_exclude_less() -> None:
    statement = EpsilonDelta(1.0, 0.0)
    found = [
        excluded_epsilon(statement, pairs, math.log(100), 0.1) for pairs in (500, 5_000, 500_000)
    ]
    assert found == sorted(found, reverse=True)
    assert 1 < found[-1] < 1.1
    assert excluded_epsilon(statement, 10, math.log(100), 0.1) == math.inf
    assert excluded_epsilon(EpsilonDelta(1.0, 0.2), 10**9, math.log(100), 0.1) == math.inf
    # A total violation at epsilon 1 multiplies wealth by 1 / (1 - 1 / e) with each pair of runs.
    sure = required_pairs(statement, 1.0, 0.0, math.log(100))
    assert sure == pytest.approx(2 * math.log(100) / -math.log1p(-math.exp(-1)), rel=1e-3)
