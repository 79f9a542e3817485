"""What many readings cost, against the exact formula, an accountant of others, and our own ledger."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest

from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    Bound,
    RoundedGaussian,
    SwappedCells,
    as_approx,
    compose,
    gaussian_sigma,
)
from sfumato.privacy.accounting import pld
from sfumato.privacy.ledger import Spent
from sfumato.privacy.ledger.budget import charge
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.sensitivity import Sensitivity, sensitivity
from sfumato.sensing.release.noise_plan import NoisePlan, plan_noise
from sfumato.sensing.release.rounds import DAY, cost_after, share_of

LINE = heat_line(sources=100, sensors=50, diffusion_time=0.05)


def moved() -> Sensitivity:
    return sensitivity(LINE, SwappedCells(1))


def planned(loss: ZCDP | ApproxDP) -> NoisePlan:
    return plan_noise(LINE.sensors, moved(), loss)


def exact_delta(epsilon: float, shift: mpmath.mpf) -> mpmath.mpf:
    """The delta of one Gaussian of deviation 1 moved by so much [balle18, thm. 8], in 60 digits."""
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        near, far = mpmath.ncdf(shift / 2 - e / shift), mpmath.ncdf(-shift / 2 - e / shift)
        return near - mpmath.exp(e) * far


@pytest.mark.reference
@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), (4, "0.1"), ("0.01", "1e-9")])
def test_epsilon_is_the_smallest_by_the_exact_formula(epsilon: str, delta: str) -> None:
    noise = gaussian_sigma(epsilon, delta)
    for row in cost_after(ApproxDP(epsilon, delta), (*DAY, 10**6)):
        with mpmath.workdps(60):
            shift = mpmath.sqrt(row.readings) / mpmath.mpf(noise)
            assert exact_delta(row.epsilon, shift) <= mpmath.mpf(delta)
            assert exact_delta(row.epsilon * (1 - 2e-8), shift) > mpmath.mpf(delta)


@pytest.mark.reference
def test_an_accountant_of_others_says_the_same() -> None:
    sigma = gaussian_sigma(1, "1e-6")
    schedule = [(RoundedGaussian(sigma), Bound(SwappedCells(1), 1, l2_squared=1))] * 24
    theirs = float(pld(schedule, delta="1e-6").epsilon)
    (ours,) = cost_after(ApproxDP(1, "1e-6"), [24])
    # It rounds losses up to a grid of 1e-4, 24 times.
    assert ours.epsilon <= theirs <= ours.epsilon + 24e-4
    # Rivals: rho of the same noise says 10 % more, adding up four times as much.
    assert theirs < ours.by_rho * 0.95
    assert ours.charged == ApproxDP(24, Fraction(24, 10**6))


@pytest.mark.unit
def test_the_ways_to_count_are_in_order() -> None:
    for loss in (ApproxDP(1, "1e-6"), ApproxDP("0.1", "1e-5"), ApproxDP(4, "1e-4")):
        rows = cost_after(loss)
        assert [row.readings for row in rows] == [1, 24, 100, 1440]
        assert rows[0].epsilon == pytest.approx(float(loss.epsilon), rel=1e-8)
        assert all(row.epsilon <= row.by_rho for row in rows)
        assert all(
            row.charged == ApproxDP(row.readings * loss.epsilon, row.readings * loss.delta)
            for row in rows
        )
        assert all(row.epsilon < row.readings * loss.epsilon for row in rows[1:])
        assert all(one.epsilon < more.epsilon for one, more in pairwise(rows))


@pytest.mark.unit
def test_a_plan_counts_what_it_adds() -> None:
    plan = planned(ApproxDP(4, "0.1"))
    first, many = cost_after(plan, [1, 24])
    # The noise of a plan is rounded up, so it costs its promise or a hair less.
    assert 4 * (1 - 1e-4) < first.epsilon <= 4 * (1 + 1e-8)
    assert first.charged == ApproxDP(4, "0.1")
    assert many.charged is None  # delta 2.4 says nothing
    assert many.epsilon == pytest.approx(62.893, rel=1e-4)  # another run, by mpmath
    assert cost_after(plan, [1], delta="1e-6")[0].epsilon > first.epsilon


@pytest.mark.unit
def test_rho_adds_up_and_nothing_more_is_claimed() -> None:
    plan = planned(ZCDP("0.01"))
    for row in cost_after(plan, [1, 24], delta="1e-6"):
        total = compose([plan.cost] * row.readings)
        assert row.charged == total
        assert row.epsilon == row.by_rho
        assert Fraction(row.epsilon) >= as_approx(total, "1e-6").epsilon
    assert cost_after(ZCDP("0.01"), [7], delta="1e-6")[0].charged == ZCDP("0.07")


@pytest.mark.unit
def test_a_ledger_lets_so_many_through_and_not_one_more() -> None:
    budget, readings = ApproxDP(1, "1e-6"), 24
    each = share_of(budget, readings)
    spent = Spent()
    for _ in range(readings):
        spent = charge(budget, spent, each)
    with pytest.raises(BudgetExceeded):
        charge(budget, spent, each)


@pytest.mark.unit
def test_what_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="has no delta"):
        cost_after(ZCDP(1))
    with pytest.raises(InvalidParameter, match="delta above 0"):
        cost_after(ApproxDP(1, "1e-6"), delta=0)
    with pytest.raises(InvalidParameter, match="readings must be"):
        cost_after(ApproxDP(1, "1e-6"), [0])
    with pytest.raises(InvalidParameter, match="noise of sensors costs"):
        cost_after("1")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="readings must be"):
        share_of(ZCDP(1), 0)
