"""Calibration and profiles, against dp-accounting on a grid and against the definition by brute force."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.privacy import (
    DiscreteGaussian,
    DiscreteLaplace,
    PermuteAndFlip,
    RandomisedResponse,
    RoundedGaussian,
    gaussian_sigma,
    laplace_scale,
)
from sfumato.privacy.accounting import calibration, gaussian_delta, privacy_profile
from sfumato.privacy.accounting.divergences import hockey_stick
from sfumato.privacy.accounting.numbers import real, up

EPSILONS = [0.01, 0.1, 0.5, 1, 3, 10, 40, 100, 1000]
DELTAS = [1e-12, 1e-9, 1e-6, 1e-3, 0.1]


@pytest.mark.reference
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gaussian_sigma_agrees_with_dp_accounting(epsilon: float) -> None:
    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    for delta in DELTAS:
        ours = gaussian_sigma(epsilon, delta)
        theirs = GaussianPrivacyLoss.from_privacy_guarantee(
            DifferentialPrivacyParameters(epsilon, delta), 1
        )
        # Their search stops at a tolerance of 1e-6 in sigma.
        assert ours == pytest.approx(theirs.standard_deviation, rel=2e-6, abs=2e-6)
        # Ours keeps its promise to the last bit, and the next double below would not.
        assert gaussian_delta(epsilon, sigma=ours) <= delta
        assert gaussian_delta(epsilon, sigma=ours * (1 - 1e-12)) > delta


@pytest.mark.reference
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gaussian_delta_agrees_with_dp_accounting(epsilon: float) -> None:
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    for sigma in [0.02, 0.1, 0.5, 1, 4, 50]:
        theirs = GaussianPrivacyLoss(sigma, sensitivity=1).get_delta_for_epsilon(epsilon)
        # They subtract two doubles of size at most 1.
        assert gaussian_delta(epsilon, sigma=sigma) == pytest.approx(theirs, rel=1e-6, abs=1e-13)


@pytest.mark.unit
def test_numbers_of_the_study() -> None:
    assert gaussian_sigma(1, 1e-5) == pytest.approx(3.7306, abs=1e-4)
    assert gaussian_sigma(4, 0.1) == pytest.approx(0.4855, abs=1e-4)
    assert gaussian_sigma("1/2", 1e-6) == pytest.approx(8.0576, abs=1e-4)
    assert gaussian_sigma(1, 1e-5, method="papers") == pytest.approx(23.472, abs=1e-3)
    assert gaussian_sigma(4, 0.1, method="papers") == pytest.approx(1.2629, abs=1e-4)
    assert gaussian_sigma(1, 1e-5, sensitivity=3) == pytest.approx(3 * 3.73063, abs=1e-3)


@pytest.mark.unit
def test_the_papers_formula_is_refused_where_it_fails() -> None:
    with pytest.raises(
        InvalidParameter, match=r"promises delta 0\.1 at epsilon 40, but has delta 0\.113277"
    ):
        gaussian_sigma(40, 0.1, method="papers")
    with pytest.raises(InvalidParameter, match="use method='analytic'"):
        gaussian_sigma(100, 0.1, method="papers", sensitivity=7)
    assert gaussian_sigma(30, 0.1, method="papers") > gaussian_sigma(30, 0.1)


@pytest.mark.property
@given(st.floats(0.01, 1000), st.floats(1e-12, 0.5))
@settings(max_examples=40)
def test_an_accepted_calibration_keeps_its_promise(epsilon: float, delta: float) -> None:
    for method in ("analytic", "papers"):
        try:
            sigma = gaussian_sigma(epsilon, delta, method=method)
        except InvalidParameter:
            assert method == "papers"
            continue
        assert gaussian_delta(epsilon, sigma=sigma) <= delta


@pytest.mark.unit
def test_bad_calibrations_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="needs delta above 0"):
        gaussian_sigma(1, 0)
    with pytest.raises(InvalidParameter, match="epsilon must be above 0, got 0"):
        gaussian_sigma(0, 1e-6)
    with pytest.raises(InvalidParameter, match="sensitivity must be above 0, got -1"):
        laplace_scale(1, sensitivity=-1)


@pytest.mark.property
@given(st.fractions(min_value=Fraction(1, 100), max_value=100), st.integers(1, 2**20))
def test_laplace_scale_costs_at_most_what_was_asked(epsilon: Fraction, sensitivity: int) -> None:
    scale = Fraction(laplace_scale(epsilon, sensitivity=sensitivity))
    assert sensitivity / scale <= epsilon
    assert sensitivity / scale >= epsilon * (1 - Fraction(1, 2**51))


def brute(
    mechanism: DiscreteLaplace | DiscreteGaussian | RoundedGaussian, shift: int, epsilon: float
) -> float:
    z = np.arange(-4000, 4001)
    p, q = mechanism.law.pmf(z), mechanism.law.pmf(z - shift)
    return float(hockey_stick(p / p.sum(), q / q.sum(), epsilon=epsilon))


@pytest.mark.reference
@pytest.mark.parametrize("shift", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.3, 1.0, 2.5])
def test_profiles_are_the_definition(shift: int, epsilon: float) -> None:
    # hockey_stick subtracts doubles: 8,001 terms, each off by at most 2**-53 of a probability.
    for mechanism in (
        DiscreteLaplace(3),
        DiscreteLaplace("1/2"),
        DiscreteGaussian(2),
        DiscreteGaussian(0.7),
    ):
        assert privacy_profile(mechanism, shift)(epsilon) == pytest.approx(
            brute(mechanism, shift, epsilon), abs=1e-13
        )
    for rounded in (RoundedGaussian(0.5), RoundedGaussian(2), RoundedGaussian(20)):
        assert brute(rounded, shift, epsilon) <= privacy_profile(rounded, shift)(epsilon) + 1e-13
    # At sigma 20 rounding hides almost nothing: the bound is nearly met.
    assert privacy_profile(RoundedGaussian(20), shift)(0) == pytest.approx(
        brute(RoundedGaussian(20), shift, 0), rel=1e-3
    )


@pytest.mark.reference
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_profiles_agree_with_dp_accounting(epsilon: float) -> None:
    from dp_accounting.pld import privacy_loss_mechanism as theirs

    for scale, shift in [(2, 1), (4, 4), (0.01, 3), (100, 7)]:
        ours = privacy_profile(DiscreteLaplace(scale), shift)(epsilon)
        want = theirs.DiscreteLaplacePrivacyLoss(1 / scale, shift).get_delta_for_epsilon(epsilon)
        assert ours == pytest.approx(want, rel=1e-9, abs=1e-13)
    for sigma, shift in [(1, 1), (4, 4), (0.3, 2), (50, 7)]:
        ours = privacy_profile(DiscreteGaussian(sigma), shift)(epsilon)
        want = theirs.DiscreteGaussianPrivacyLoss(sigma, shift).get_delta_for_epsilon(epsilon)
        # They cut the tails at a mass of 1e-12 or so.
        assert ours == pytest.approx(want, rel=1e-6, abs=1e-11)


@pytest.mark.reference
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_profile_of_a_response_agrees_with_dp_accounting(epsilon: float) -> None:
    from dp_accounting.pld.privacy_loss_distribution import from_randomized_response

    for own, categories in [(0.5, 2), (1, 5), (12, 100)]:
        mechanism = RandomisedResponse(own, categories)
        # Theirs answers uniformly at random with this probability, the truth included.
        anything = categories * float(mechanism.law[1])
        want = from_randomized_response(anything, categories).get_delta_for_epsilon(epsilon)
        ours = privacy_profile(mechanism)(epsilon)
        # Theirs rounds losses up to multiples of 1e-4: pessimistic, by at most that share of a
        # probability.
        assert ours - 1e-9 <= want <= ours + 2e-4


@pytest.mark.unit
def test_profiles_of_choices() -> None:
    response = RandomisedResponse(1, 5)
    truth, other = response.law
    assert privacy_profile(response)(0) == pytest.approx(float(truth - other))
    assert privacy_profile(response)(1) == pytest.approx(0, abs=1e-18)
    assert privacy_profile(response, 2)(1) > 0
    assert privacy_profile(PermuteAndFlip(2))(0) == pytest.approx(math.tanh(0.5))
    assert privacy_profile(PermuteAndFlip(2))(1) == 0
    with pytest.raises(InvalidParameter, match="must be whole"):
        privacy_profile(DiscreteLaplace(1), "1/2")
    with pytest.raises(InvalidParameter, match="above 0"):
        privacy_profile(DiscreteLaplace(1), 0)


@pytest.mark.reference
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [("1", "1e-5"), ("1e-9", "1e-7"), ("1000", "1e-5"), ("20", "1e-30"), ("1", "1e-299"), ("1", "0.999")],
)  # fmt: skip
def test_a_deviation_is_that_of_the_whole_search_to_the_bit(epsilon: str, delta: str) -> None:
    """Doubles say where to look, for 1000 they cannot; what holds there is worked out exactly."""
    e, d = Fraction(epsilon), Fraction(delta)
    with mpmath.workprec(calibration.CANCELLING):
        whole = up(
            calibration._root(
                lambda sigma: calibration._gaussian_delta(real(e), 1 / sigma) <= real(d)
            )
        )
    assert calibration._smallest_sigma(e, d) == whole
