"""What can be verified, with how many runs, and what not; and the pairs of the thesis put to the test."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.audit.claims import Claimed, require_verifiable
from sfumato.audit.property_testing.limits import (
    boundary_pair,
    distinguishing_bound,
    least_to_distinguish,
    low_frequency_bound,
    queries_with_specification,
    queries_without_information,
    rare_output_bound,
    two_point_bound,
)
from sfumato.audit.property_testing.testers import (
    approx_samples,
    specified_approx_samples,
    specified_pure_samples,
)
from sfumato.errors import InvalidParameter, NotComparable, Unverifiable
from sfumato.privacy import ZCDP, ApproxDP, GaussianDP, PureDP, RandomApproxDP, RandomPureDP
from sfumato.privacy.accounting import (
    hockey_stick,
    max_divergence,
)

FloatArray = npt.NDArray[np.float64]


def delta_of(pair: tuple[FloatArray, FloatArray], epsilon: float) -> float:
    """The delta of a pair at epsilon, the worse of both orders."""
    return max(float(hockey_stick(*both, epsilon=epsilon)) for both in (pair, pair[::-1]))


def epsilon_of(pair: tuple[FloatArray, FloatArray]) -> float:
    return max(float(max_divergence(*both)) for both in (pair, pair[::-1]))


# --- the thesis' pairs


@pytest.mark.unit
def test_the_pair_of_theorem_10_7_is_not_private() -> None:
    """P0 even, P1 = (e**epsilon / 2 + delta, ...): in the other order delta is 0.227, not 0.01."""
    epsilon, delta = 0.5, 0.01
    up = math.exp(epsilon) / 2 + delta
    printed = np.array([0.5, 0.5]), np.array([up, 1 - up])
    by_hand = (1 - math.exp(epsilon)) ** 2 / 2 + math.exp(epsilon) * delta
    assert delta_of(printed, epsilon) == pytest.approx(by_hand)
    assert by_hand == pytest.approx(0.227, abs=5e-4)
    for e, d in itertools.product((0.1, 0.5, 1.0, 3.0), (0.0, 0.01, 0.3)):
        # masses of 2**-53 relatively, one of them times e**epsilon
        assert delta_of(boundary_pair(e, d), e) == pytest.approx(d, abs=1e-14)


@pytest.mark.unit
def test_the_low_frequency_pair_is_half_as_far_as_printed() -> None:
    """Mass a on the first third against mass a on the last: delta is a, said to be 2 a."""
    a, third = 0.1, 4
    first = np.repeat([a, 1 - a, 0], third) / third
    second = np.repeat([0, 1 - a, a], third) / third
    assert delta_of((first, second), 0.5) == pytest.approx(a)
    # The proof needs a mass b of delta + proximity + eta there, for some eta up to delta.
    assert low_frequency_bound(2**400, 0.5, 0.01, proximity=0.03) == pytest.approx(
        2**400 * 0.01 / (3 * 0.05 * (1 + math.exp(0.5)) * 1000 * 2**80)
    )


@pytest.mark.unit
def test_low_frequency_blindness_is_about_huge_ranges() -> None:
    assert low_frequency_bound(10**9, 0.1, 0.01, proximity=0.01) < 1
    ratio = low_frequency_bound(2**900, 0.1, 0.01, proximity=0.01) / low_frequency_bound(
        2**400, 0.1, 0.01, proximity=0.01
    )
    assert math.log2(ratio) == pytest.approx(500 - 4 * (30 - 20))
    assert low_frequency_bound(2**900, 0.1, 0.0, proximity=0.01) == 0


@pytest.mark.unit
def test_the_laws_of_theorem_10_12_are_not_private() -> None:
    """Q1 = (e**epsilon b, (2 - e**epsilon) b, ...) against (b, b, ...): epsilon 1.046, not 0.5."""
    epsilon, mass, proximity = 0.5, 0.1, 0.2
    grown = math.exp(epsilon)
    printed = (
        np.array([mass, mass, 1 - 2 * mass]),
        np.array([grown * mass, (2 - grown) * mass, 1 - 2 * mass]),
    )
    assert epsilon_of(printed) == pytest.approx(-math.log(2 - grown))
    assert epsilon_of(printed) == pytest.approx(1.046, abs=5e-4)
    ours = np.array([mass, 1 - mass]), np.array([grown * mass, 1 - grown * mass])
    true = math.exp(-proximity) * mass
    far = np.array([true, 1 - true]), ours[1]
    assert epsilon_of(ours) == pytest.approx(epsilon)
    assert epsilon_of(far) == pytest.approx(epsilon + proximity)
    # chi2 <= b a**2 / (1 - b), hence the order 1/(b a**2)
    assert ((far[0] - ours[0]) ** 2 / ours[0]).sum() <= mass * proximity**2 / (1 - mass)


@pytest.mark.unit
def test_lemma_10_6_is_not_always_tight() -> None:
    """From (1, 0), (0.4, 0.6) laws within a reach delta + a, though its condition holds; others the full."""
    epsilon, step = 0.5, 0.05
    grown = math.exp(epsilon)

    def reach(p: float, q: float) -> float:
        moves = itertools.product(np.linspace(-step, step, 41), repeat=2)
        pairs = (((p + u).clip(0, 1), (q + v).clip(0, 1)) for u, v in moves)
        return max(
            delta_of((np.array([x, 1 - x]), np.array([y, 1 - y])), epsilon) for x, y in pairs
        )

    assert step <= (1 - 0.6) / (1 + grown), "the condition of the lemma holds"
    assert reach(1.0, 0.4) == pytest.approx(0.6 + step)
    assert reach(0.9, 0.4) == pytest.approx(0.6 - grown * 0.1 + (1 + grown) * step)


# --- what cannot be verified


@pytest.mark.unit
def test_the_rare_output_of_theorem_10_5_must_be_rare() -> None:
    """With rarity below ln(1 + e**-epsilon) the algorithm said to be private is not, by its usual output."""

    def loss(epsilon: float, rarity: float) -> float:
        masses = math.exp(-rarity - epsilon), math.exp(-rarity)
        first, second = (np.array([m, 1 - m]) for m in masses)
        return epsilon_of((first, second))

    epsilon, proximity, rarity = 0.05, 0.05, 0.2
    assert rarity > 2 * epsilon + proximity, "the theorem's own condition"
    assert loss(epsilon, rarity) == pytest.approx(0.199, abs=5e-4)
    for epsilon in (0.05, 0.5, 3.0):
        threshold = math.log(1 + math.exp(-epsilon))
        assert loss(epsilon, threshold) == pytest.approx(epsilon, rel=1e-9)
        assert loss(epsilon, 0.99 * threshold) > epsilon * (1 + 1e-6)
        assert loss(epsilon, 1.01 * threshold) <= epsilon * (1 + 1e-9)
        assert threshold < math.log(2)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("loss", "theorem"),
    [
        (PureDP(1), "thm. 10.5"),
        (RandomPureDP(1, "0.1"), "thm. 10.5"),
        (ZCDP(1), "prop. 10.9"),
        (GaussianDP(1), "prop. 10.9"),
    ],
)
def test_what_cannot_be_verified_says_why(loss: Claimed, theorem: str) -> None:
    with pytest.raises(Unverifiable, match=rf"cannot be verified without information.*{theorem}"):
        queries_without_information(loss, outputs=4, proximity=0.1)


@pytest.mark.unit
def test_what_can_be_verified_is_not_refused() -> None:
    require_verifiable(ApproxDP(1, 0))
    require_verifiable(RandomApproxDP(1, 0, "0.1"))
    with pytest.raises(Unverifiable, match="every output has a stated mass above 0"):
        queries_with_specification(PureDP(1), outputs=4, proximity=0.1, min_mass=0.0)
    for loss in (ZCDP(1), GaussianDP(1)):
        with pytest.raises(NotComparable, match="certify what it implies"):
            queries_with_specification(loss, outputs=4, proximity=0.1)


# --- Table 9.1


@pytest.mark.unit
def test_table_9_1_by_hand() -> None:
    """A row for each cell: the tester's samples, and a lower bound below them."""
    approx, pure = ApproxDP(1, "0.01"), PureDP(1)
    without = queries_without_information(approx, outputs=64, proximity=0.02)
    assert without.enough_runs == approx_samples(64, 1.0, proximity=0.02)
    assert without.min_runs == two_point_bound(1.0, 0.01, proximity=0.02)
    stated = queries_with_specification(approx, outputs=64, proximity=0.02)
    assert stated.enough_runs <= specified_approx_samples(64, 1.0, proximity=0.02)
    exact = queries_with_specification(pure, outputs=64, proximity=0.2, min_mass=0.001)
    assert exact.enough_runs == specified_pure_samples(64, 0.001, proximity=0.2)
    assert exact.min_runs == rare_output_bound(64, 1.0, 0.001, proximity=0.2)
    for found in (without, stated, exact):
        assert 1 < found.min_runs < found.enough_runs
        assert found.total == 2 * found.enough_runs
        assert len(found.reasons) == 2


@pytest.mark.unit
def test_random_claims_take_pairs() -> None:
    loss = RandomApproxDP(1, "0.01", "0.05")
    found = queries_without_information(loss, outputs=4, proximity=0.1, weight=2)
    finer = queries_without_information(loss, outputs=4, proximity=0.1, weight=4)
    assert found.pairs > 1
    assert finer.pairs > 2 * found.pairs, "a smaller share takes more pairs"
    assert found.enough_runs > approx_samples(4, 1.0, proximity=0.1), "and each test errs less"
    assert found.total == 2 * found.pairs * found.enough_runs
    assert (
        queries_with_specification(loss, outputs=4, proximity=0.1)
        .reasons[-1]
        .startswith("pairs: thm. 10.3")
    )


@pytest.mark.property
@settings(max_examples=60)
@given(
    st.floats(0, 3),
    st.floats(0, 0.5),
    st.floats(0.001, 0.3),
    st.integers(2, 1000),
    st.floats(0.01, 0.4),
)
def test_no_bound_asks_more_than_what_is_enough(
    epsilon: float, delta: float, proximity: float, outputs: int, error: float
) -> None:
    enough = approx_samples(outputs, epsilon, proximity=proximity, error=error)
    assert two_point_bound(epsilon, delta, proximity=proximity, error=error) <= enough
    assert distinguishing_bound(epsilon, delta, proximity=proximity, error=error) <= enough
    mass = 1 / (2 * outputs * math.exp(epsilon))
    needed = specified_pure_samples(outputs, mass, proximity=proximity, error=error)
    assert rare_output_bound(outputs, epsilon, mass, proximity=proximity, error=error) <= needed


@pytest.mark.unit
def test_bounds_have_their_orders() -> None:
    """Thm. 10.7: 1/a**2, with 1 + e**(2 epsilon) that it does not have. Thm. 10.12: 1/(b a**2).

    ln(9/8) over twice the squared Hellinger distance a**2 / (8 s p (1 - p)), to the first order in
    a.
    """
    for epsilon, proximity in ((0.1, 0.002), (1.0, 0.001), (3.0, 0.001)):
        p = float(boundary_pair(epsilon, 0.01)[0][0])
        by_hand = 4 * math.log(9 / 8) * (1 + math.exp(2 * epsilon)) * p * (1 - p) / proximity**2
        assert two_point_bound(epsilon, 0.01, proximity=proximity) == pytest.approx(
            by_hand, rel=0.02
        )
    rare, rarer = (rare_output_bound(4, 0.5, mass, proximity=0.05) for mass in (0.01, 0.001))
    assert rarer / rare == pytest.approx(10, rel=0.02)
    near, nearer = (rare_output_bound(4, 0.5, 0.01, proximity=a) for a in (0.05, 0.025))
    assert nearer / near == pytest.approx(4, rel=0.04)
    assert rare_output_bound(4, 1.0, 0.25, proximity=0.1) == 1, (
        "even laws have epsilon 0: nothing to decide"
    )
    assert two_point_bound(1.0, 0.5, proximity=0.6) == 1, "nothing is that far"


@pytest.mark.unit
def test_verifying_is_as_hard_as_distinguishing() -> None:
    """[mcmillan18, thm. 10.2]: ln(3/2) / far by overlap, ln(9/8) / (far (1 - e**-epsilon)) by affinity.

    The second from H**2 = far (sqrt(1 + g t) - sqrt(t))**2 / 2, least at t = 1/(g**2 - g), g =
    e**epsilon.
    """
    for epsilon, far in ((0.1, 1e-3), (0.5, 1e-4), (2.0, 1e-5)):
        by_hand = max(math.log(1.5), math.log(9 / 8) / -math.expm1(-epsilon)) / far
        assert distinguishing_bound(epsilon, 0.0, proximity=far) == pytest.approx(by_hand, rel=0.02)
    strong, weak = (distinguishing_bound(e, 1e-6, proximity=1e-5) for e in (0.1, 1.0))
    assert strong > 2.5 * weak, "the better the privacy, the harder to verify"


@pytest.mark.unit
def test_samples_of_two_laws_count_together() -> None:
    p, q = np.array([0.5, 0.5]), np.array([0.6, 0.4])
    both, one = least_to_distinguish((p, p), (q, q)), least_to_distinguish((p,), (q,))
    assert one / 2 <= both <= one / 2 + 1
    assert least_to_distinguish((p, p), (q, p)) == one
    with pytest.raises(InvalidParameter, match="must differ by more than doubles can tell"):
        least_to_distinguish((p,), (p,))
    with pytest.raises(
        InvalidParameter, match=r"delta \+ proximity must be above 0 and below 1, got 1.5"
    ):
        distinguishing_bound(1.0, 0.5, proximity=1.0)
