"""What only checks the thesis: pairs that no samples tell apart, distances of claims, majorities."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from experiments.audit.theorems import (
    blind_pair,
    majority_error,
    parameter_distance,
    unseen_pair,
)
from hypothesis import given
from hypothesis import strategies as st

from sfumato._types import FloatArray
from sfumato.audit.property_testing import boundary_pair
from sfumato.errors import InvalidParameter, NotComparable
from sfumato.privacy import ZCDP, ApproxDP, GaussianDP, PureDP, RandomApproxDP, RandomPureDP
from sfumato.privacy.accounting import (
    approximate_max_divergence,
    hockey_stick,
    max_divergence,
    renyi_divergence,
    total_variation,
)


def delta_of(pair: tuple[FloatArray, FloatArray], epsilon: float) -> float:
    """The delta of a pair at epsilon, the worse of both orders."""
    return max(float(hockey_stick(*both, epsilon=epsilon)) for both in (pair, pair[::-1]))


def epsilon_of(pair: tuple[FloatArray, FloatArray]) -> float:
    return max(float(max_divergence(*both)) for both in (pair, pair[::-1]))


@pytest.mark.unit
def test_the_smaller_distance_makes_nothing_far() -> None:
    """A claim that may fail on all data is at distance 0 from every claim by the printed minimum."""
    nothing = RandomPureDP(0, "0.999999")
    claim, worse = RandomPureDP(1, "0.01"), RandomPureDP(5, "0.01")
    assert min(abs(claim.epsilon - worse.epsilon), abs(claim.gamma - worse.gamma)) == 0
    assert parameter_distance(claim, worse) == 4
    assert parameter_distance(claim, nothing, weight=Fraction(100)) == 100 * Fraction("0.989999")
    assert parameter_distance(ApproxDP(1, "0.1"), ApproxDP(1, "0.3")) == Fraction(1, 5)
    assert parameter_distance(
        RandomApproxDP(1, "0.1", 0), RandomApproxDP(1, "0.3", "0.1")
    ) == Fraction(1, 5)
    assert parameter_distance(ZCDP(1), ZCDP("0.5")) == parameter_distance(
        GaussianDP(1), GaussianDP("0.5")
    )
    for other in (ApproxDP(2, "0.1"), PureDP(1)):
        with pytest.raises(NotComparable, match="compared with their like"):
            parameter_distance(ApproxDP(1, "0.1"), other)


@pytest.mark.property
@given(st.floats(0.01, 5), st.floats(0.01, 20), st.integers(1, 10**9))
def test_no_number_of_samples_verifies_pure_privacy(
    epsilon: float, proximity: float, samples: int
) -> None:
    """Of two algorithms that so many samples do not tell apart, one is epsilon-DP and one far from it."""
    private, far = blind_pair(epsilon, proximity=proximity, samples=samples)
    assert np.array_equal(private[0], far[0])
    assert samples * float(total_variation(private[1], far[1])) < 1 / 3
    # A ratio of masses near 1 is known to 2**-52 of 1.
    assert epsilon_of(private) <= epsilon + 1e-9
    assert epsilon_of(far) > epsilon + proximity


@pytest.mark.unit
@pytest.mark.parametrize("samples", [10, 10**6])
def test_an_unseen_output_breaks_every_claim_but_approximate_ones(samples: int) -> None:
    given = boundary_pair(0.1, 0.0)
    unseen = unseen_pair(given, samples=samples)
    padded = np.append(given[0], 0.0)
    assert samples * float(total_variation(unseen[0], padded)) < 1 / 3
    assert max_divergence(*unseen) == math.inf
    assert renyi_divergence(*unseen, order=1.001) == math.inf  # zCDP for no rho
    assert (
        approximate_max_divergence(*unseen, delta=1 / (5 * samples)) == math.inf
    )  # Gaussian DP for no mu
    assert delta_of(unseen, 0.1) <= 1 / (4 * samples) + 1e-15


@pytest.mark.unit
def test_a_majority_by_hand() -> None:
    """Of three, each wrong with 1/3: 3 (1/9)(2/3) + 1/27 = 7/27."""
    assert majority_error(3, 1 / 3) == pytest.approx(7 / 27)
    assert majority_error(1, 0.2) == pytest.approx(0.2)
    with pytest.raises(InvalidParameter, match="repeats must be odd, got 4; nothing was tested"):
        majority_error(4, 0.2)


@pytest.mark.unit
def test_a_blind_pair_is_of_an_epsilon_above_0() -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be above 0"):
        blind_pair(0.0, proximity=1, samples=1)
