"""Claims as statements: each claims no more than the claim, and a tight mechanism keeps every one of them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy.stats import norm

from sfumato.audit.claims import above, implied
from sfumato.errors import InvalidParameter
from sfumato.privacy import (
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    RandomApproxDP,
    RandomPureDP,
)

pytestmark = pytest.mark.unit
USER = AddRemoveUser()


def delta_of_gaussians(shift: float, epsilon: float) -> float:
    """The delta of N(0, 1) against N(shift, 1), by its definition."""
    return float(
        norm.sf(epsilon / shift - shift / 2)
        - math.exp(epsilon) * norm.sf(epsilon / shift + shift / 2)
    )


def test_pure_and_approximate_claims_imply_themselves() -> None:
    (pure,) = implied(Claim(PureDP("1/3"), USER))
    assert (Fraction(pure.epsilon) >= Fraction(1, 3), pure.delta) == (True, 0.0)
    (approximate,) = implied(Claim(ApproxDP("1/3", "1e-7"), USER))
    assert Fraction(approximate.delta) >= Fraction(1, 10**7)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_gaussian_claims_are_kept_by_their_gaussian_and_not_by_a_wider_one(mu: float) -> None:
    statements = implied(Claim(GaussianDP(mu), USER))
    assert len(statements) > 4
    for statement in statements:
        true = delta_of_gaussians(mu, statement.epsilon)
        assert true <= statement.delta * (1 + 1e-9) + 1e-15
        assert statement.delta <= true * (1 + 1e-6) + 1e-15
        assert delta_of_gaussians(1.1 * mu, statement.epsilon) > statement.delta
    assert implied(Claim(GaussianDP(0), USER))[0].delta == 0


@pytest.mark.parametrize("rho", [0.01, 0.5, 8.0])
def test_zcdp_claims_are_kept_by_the_gaussian_of_that_rho(rho: float) -> None:
    for statement in implied(Claim(ZCDP(rho), USER)):
        assert delta_of_gaussians(math.sqrt(2 * rho), statement.epsilon) <= statement.delta
    # And are not empty: three times the rho breaks at least one.
    shift = math.sqrt(6 * rho)
    assert any(
        delta_of_gaussians(shift, s.epsilon) > s.delta for s in implied(Claim(ZCDP(rho), USER))
    )


@pytest.mark.parametrize("loss", [RandomPureDP(1, "1/10"), RandomApproxDP(1, "1e-6", "1/10")])
def test_random_claims_are_not_refuted_by_a_pair(loss: RandomPureDP | RandomApproxDP) -> None:
    with pytest.raises(InvalidParameter, match="use certify"):
        implied(Claim(loss, USER))


def test_above_is_the_least_double_that_is_not_below() -> None:
    third = above(Fraction(1, 3))
    assert Fraction(third) >= Fraction(1, 3) > Fraction(math.nextafter(third, 0))
    assert above(Fraction(1, 2)) == 0.5
