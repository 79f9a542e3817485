"""Composition, conversion, groups and consequences, against foreign accountants and against brute force."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, NotComparable
from sfumato.privacy import (
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    FlippedEdge,
    Mechanism,
    PureDP,
    ReplaceUser,
    RoundedGaussian,
    as_approx,
    compose,
    gaussian_sigma,
)
from sfumato.privacy.accounting import (
    advanced,
    as_zcdp,
    consequence,
    conversion,
    gaussian_delta,
    group,
    parallel,
    pld,
    replaced,
    rho_within,
)
from sfumato.privacy.accounting.divergences import hockey_stick, renyi_divergence

ONE = Bound(AddRemoveUser(), 1, l1=1)


@pytest.mark.unit
def test_basic_composition_is_an_exact_sum() -> None:
    assert compose([PureDP("1/10")] * 10) == PureDP(1)
    assert compose([PureDP(1), ApproxDP(1, "1e-6")]) == ApproxDP(2, "1e-6")
    assert compose([ZCDP("1/2"), PureDP(1)]) == ZCDP(1)
    assert compose([]) == PureDP(0)
    with pytest.raises(NotComparable, match="no zCDP equivalent"):
        compose([ZCDP(1), ApproxDP(1, "1e-6")])
    with pytest.raises(InvalidParameter, match="delta must be below 1"):
        compose([ApproxDP(1, "1/2")] * 2)


@pytest.mark.unit
def test_advanced_composition_is_theorem_2_6() -> None:
    found = advanced(ApproxDP("1/10", "1e-8"), 100, slack="1e-6")
    assert float(found.epsilon) == pytest.approx(
        sqrt(200 * log(1e6)) * 0.1 + 100 * 0.1 * (exp(0.1) - 1), rel=1e-12
    )
    assert found.delta == Fraction(1, 10**6) + 100 * Fraction(1, 10**8)
    # Few releases of a large loss: the plain sum is smaller, and is what is returned.
    assert advanced(PureDP(2), 3, slack="1e-6").epsilon == 6
    with pytest.raises(InvalidParameter, match="slack must be above 0"):
        advanced(PureDP(1), 2, slack=0)
    with pytest.raises(InvalidParameter, match="times must be at least 1"):
        advanced(PureDP(1), 0, slack="1e-6")


@pytest.mark.property
@given(st.floats(0.001, 20), st.floats(1e-12, 0.3))
@settings(max_examples=60)
def test_zcdp_converts_soundly_and_tightly(rho: float, delta: float) -> None:
    """Sound: Gaussian noise of this rho has at most this delta there. Tight: [bun16] is never smaller."""
    epsilon = as_approx(ZCDP(rho), delta).epsilon
    if epsilon > 0:
        assert gaussian_delta(epsilon, sigma=1 / sqrt(2 * rho)) <= delta
    assert float(epsilon) <= rho + 2 * sqrt(rho * log(1 / delta)) + 1e-12


@pytest.mark.reference
@pytest.mark.parametrize("rho", [0.001, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-2])
def test_zcdp_conversion_is_not_above_dp_accounting(rho: float, delta: float) -> None:
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    orders = [1 + 2.0**x for x in np.linspace(-6, 10, 400)]
    accountant = RdpAccountant(orders)
    accountant.compose(dp_event.ZCDpEvent(rho))
    theirs = accountant.get_epsilon(delta)
    ours = float(as_approx(ZCDP(rho), delta).epsilon)
    # They search a grid of orders, we the continuum: never above, and within the resolution of
    # their grid.
    assert ours <= theirs * (1 + 1e-9)
    assert ours >= theirs * (1 - 1e-2) - 1e-4


@pytest.mark.property
@given(st.floats(0.01, 30), st.floats(1e-12, 0.3))
@settings(max_examples=60)
def test_rho_within_is_the_inverse(epsilon: float, delta: float) -> None:
    rho = rho_within(epsilon, delta)
    back = as_approx(ZCDP(rho), delta).epsilon
    # Two independent searches for the best order: each sound, together within 1e-6.
    assert back <= Fraction(epsilon) * (1 + Fraction(1, 10**6))
    assert back >= Fraction(epsilon) * (1 - Fraction(1, 10**6))


@pytest.mark.unit
def test_conversions_between_kinds() -> None:
    assert as_zcdp(PureDP(1)) == ZCDP("1/2")
    assert as_zcdp(PureDP(10)) == ZCDP(10)  # epsilon**2 / 2 would be 50
    assert as_zcdp(ApproxDP(1, 0)) == ZCDP("1/2")
    assert as_approx(PureDP(1), "1e-6") == ApproxDP(1, "1e-6")
    assert as_approx(ApproxDP(1, "1e-9"), "1e-6") == ApproxDP(1, "1e-6")
    assert as_approx(ZCDP(0), 0) == ApproxDP(0, 0)
    assert rho_within(1, 0) == 0
    with pytest.raises(NotComparable, match=r"has delta 0\.001 already"):
        as_approx(ApproxDP(1, "1e-3"), "1e-6")
    with pytest.raises(InvalidParameter, match="no finite epsilon at delta 0"):
        as_approx(ZCDP(1), 0)


@pytest.mark.property
@given(st.integers(1, 5), st.floats(0.1, 6))
def test_pure_dp_implies_the_zcdp_we_say(scale: int, order: float) -> None:
    z = np.arange(-400, 401)
    p, q = DiscreteLaplace(scale).law.pmf(z), DiscreteLaplace(scale).law.pmf(z - 1)
    divergence = float(renyi_divergence(p / p.sum(), q / q.sum(), order=1 + order))
    assert divergence <= float(as_zcdp(PureDP(Fraction(1, scale))).rho) * (1 + order) + 1e-12


@pytest.mark.reference
def test_pld_of_one_gaussian_is_the_analytic_one() -> None:
    sigma = gaussian_sigma(1, 1e-6)
    found = pld([(RoundedGaussian(sigma), ONE)], delta=1e-6)
    # Pessimistic, and within the discretisation interval 1e-4 of dp-accounting.
    assert 1 <= found.epsilon <= 1 + Fraction(2, 10**4)


@pytest.mark.reference
def test_pld_of_repeated_readings() -> None:
    """A sensor calibrated to (1, 1e-6) a reading, after 10, 24 and 100 of them."""
    step = (RoundedGaussian(gaussian_sigma(1, 1e-6)), ONE)
    found = [float(pld([step] * times, delta=1e-6).epsilon) for times in (10, 24, 100)]
    assert found == pytest.approx([3.5, 5.8, 13.5], abs=0.05)
    by_rho = as_approx(compose([step[0].cost(ONE)] * 100), 1e-6)
    assert found[2] <= float(by_rho.epsilon)


@pytest.mark.reference
def test_pld_mixes_mechanisms_and_beats_the_sum() -> None:
    both = Bound(AddRemoveUser(), 8, l1=1, l2_squared=1)
    schedule: list[tuple[Mechanism[Any, Any], Bound]] = [
        *[(DiscreteLaplace(10), ONE)] * 20,
        (DiscreteGaussian(20), ONE),
        (RoundedGaussian(20), both),
        (DiscreteLaplace(10), Bound(AddRemoveUser(), 8, l1=2)),
    ]
    found = pld(schedule, delta=1e-5)
    assert 0.5 < float(found.epsilon) < 2.2


@pytest.mark.unit
def test_pld_refuses_what_it_cannot_do() -> None:
    with pytest.raises(InvalidParameter, match="at delta 0 pure losses add up"):
        pld([(DiscreteLaplace(1), ONE)], delta=0)
    with pytest.raises(InvalidParameter, match="at least one release"):
        pld([], delta=1e-6)
    with pytest.raises(NotComparable, match="no known privacy loss distribution"):
        pld([(DiscreteGaussian(10), Bound(AddRemoveUser(), 8, l1=4))], delta=1e-6)


@pytest.mark.reference
def test_the_trap_of_dp_accounting_is_still_there() -> None:
    """If this fails, dp-accounting has mended composed Laplace at delta 0, and `pld` may say so."""
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()
    accountant.compose(dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(1.0), 3))
    assert accountant.get_epsilon(0) == float("inf")


@pytest.mark.unit
def test_parallel_composition_takes_the_worst() -> None:
    losses = [PureDP(1), PureDP(3), PureDP(2)]
    assert parallel(losses, AddRemoveUser()) == PureDP(3)
    # Replacing within the worst part costs that part twice, moving between two parts one of each.
    assert replaced(parallel(losses, AddRemoveUser())) == PureDP(6)
    assert parallel([ZCDP(1), PureDP(1)], AddRemoveUser()) == ZCDP(1)
    assert parallel([ApproxDP(1, "1/8"), ApproxDP(2, "1/16")], AddRemoveUser()) == ApproxDP(
        2, "1/8"
    )
    for other in (FlippedEdge(), ReplaceUser()):
        with pytest.raises(NotComparable, match=r"replaced\(parallel"):
            parallel(losses, other)


@pytest.mark.unit
def test_groups_pay_more() -> None:
    assert group(PureDP(1), 3) == PureDP(3)
    assert group(ZCDP("1/2"), 3) == ZCDP("9/2")
    found = group(ApproxDP(1, "1e-6"), 3)
    assert isinstance(found, ApproxDP)
    assert found.epsilon == 3
    assert float(found.delta) == pytest.approx(1e-6 * (1 + exp(1) + exp(2)), rel=1e-12)
    assert replaced(PureDP(1)) == PureDP(2)
    with pytest.raises(InvalidParameter, match="size must be at least 1"):
        group(PureDP(1), 0)


@pytest.mark.property
@given(st.floats(0.2, 2), st.integers(2, 4), st.floats(0, 2))
def test_group_privacy_holds_for_gaussians(sigma_scale: float, k: int, epsilon: float) -> None:
    """From the exact delta for one step, the stated delta for k steps covers the true one."""
    sigma = 2 / sigma_scale
    one = gaussian_delta(epsilon, sigma=sigma)
    if one * sum(exp(i * epsilon) for i in range(k)) < 0.99:
        many = group(ApproxDP(epsilon, one), k)
        assert isinstance(many, ApproxDP)
        assert gaussian_delta(k * epsilon, sigma=sigma, sensitivity=k) <= float(many.delta) + 1e-15


@pytest.mark.property
@given(
    st.lists(st.integers(1, 50), min_size=2, max_size=6),
    st.lists(st.integers(1, 50), min_size=6, max_size=6),
    st.lists(st.floats(0, 1), min_size=6, max_size=6),
    st.floats(0, 2),
)
def test_consequences_stay_within_lemma_2_4(
    a: list[int], b: list[int], f: list[float], epsilon: float
) -> None:
    p, q = np.array(a) / sum(a), np.array(b[: len(a)]) / sum(b[: len(a)])
    delta = min(
        0.999,
        max(float(hockey_stick(p, q, epsilon=epsilon)), float(hockey_stick(q, p, epsilon=epsilon))),
    )
    values = np.array(f[: len(a)])
    low, high = consequence(ApproxDP(epsilon, delta), min(1.0, float(p @ values)))
    # Sums of at most 6 doubles of size at most 1.
    assert low - 1e-12 <= float(q @ values) <= high + 1e-12


@pytest.mark.unit
def test_a_consequence_in_numbers() -> None:
    low, high = consequence(PureDP(1), "1/100")
    assert (low, high) == pytest.approx((0.01 / exp(1), 0.01 * exp(1)))
    assert Fraction(low) * Fraction(exp(1)) <= Fraction(1, 100) * (1 + Fraction(1, 2**50))
    assert consequence(ApproxDP(0, "1/10"), "1/2") == pytest.approx((0.4, 0.6))
    assert consequence(PureDP(50), "1/2") == pytest.approx((0, 1), abs=1e-20)
    with pytest.raises(InvalidParameter, match="must lie in"):
        consequence(PureDP(1), 2)


@pytest.mark.reference
def test_the_search_for_an_order_is_that_of_scipy(rng: np.random.Generator) -> None:
    from scipy.optimize import minimize_scalar

    for _ in range(200):
        rho, delta = 10 ** rng.uniform(-8, 4), 10 ** rng.uniform(-30, -1)
        low = float(rng.uniform(-12, 20))

        def objective(x: float, rho: float = rho, delta: float = delta) -> float:
            return float(rho * (1 + 2.0**x) + conversion._overhead(1 + 2.0**x, delta))

        high = low + float(rng.choice([0.5, 4]))
        found = minimize_scalar(objective, bounds=(low, high), method="bounded")
        assert conversion.minimum_between(objective, low, high) == found.x
