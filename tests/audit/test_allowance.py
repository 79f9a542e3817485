"""What a claim allows is what the worst mechanism that keeps it has."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.audit.claims import allowed_deltas, implied
from sfumato.audit.property_testing.limits import boundary_pair
from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, AddRemoveUser, ApproxDP, Claim, GaussianDP, PureDP, RandomPureDP
from sfumato.privacy.accounting import gaussian_delta, hockey_stick

pytestmark = pytest.mark.unit

EPSILONS = [0.0, 0.3, 0.7, 1.0, 1.5, 3.0]


def claim(loss: object) -> Claim:
    return Claim(loss, AddRemoveUser())  # type: ignore[arg-type]


def test_a_pure_claim_allows_what_randomised_response_has() -> None:
    p, q = boundary_pair(1.0, 0.0)
    wanted = [float(hockey_stick(p, q, epsilon=x)) for x in EPSILONS]
    assert np.allclose(allowed_deltas(claim(PureDP(1)), EPSILONS), wanted, atol=1e-12)


def test_an_approximate_claim_also_allows_its_delta_everywhere() -> None:
    """Of randomised response that gives itself away with probability delta: masses on four outputs."""
    delta = 0.01
    p, q = boundary_pair(1.0, 0.0)
    first, second = np.append((1 - delta) * p, [delta, 0]), np.append((1 - delta) * q, [0, delta])
    wanted = [float(hockey_stick(first, second, epsilon=x)) for x in EPSILONS]
    found = allowed_deltas(claim(ApproxDP(1, "0.01")), EPSILONS)
    assert np.allclose(found, wanted, atol=1e-12)
    assert found[-1] == delta


def test_a_gaussian_claim_allows_its_own_curve() -> None:
    wanted = [gaussian_delta(x, sigma=1, sensitivity=2) for x in EPSILONS]
    assert allowed_deltas(claim(GaussianDP(2)), EPSILONS).tolist() == wanted
    assert allowed_deltas(claim(GaussianDP(0)), EPSILONS).tolist() == [0.0] * len(EPSILONS)


def test_a_concentrated_claim_allows_at_least_the_gaussian_and_what_it_implies() -> None:
    """Noise of sigma 1 at sensitivity 1 has rho 1/2, so its curve is one that the claim allows."""
    found = allowed_deltas(claim(ZCDP("1/2")), EPSILONS)
    assert (found >= [gaussian_delta(x, sigma=1) for x in EPSILONS]).all()
    assert (np.diff(found) <= 0).all()
    for statement in implied(claim(ZCDP("1/2"))):
        (at,) = allowed_deltas(claim(ZCDP("1/2")), [statement.epsilon])
        # the next point of the grid, a fifth of a decade away
        assert at <= statement.delta * 10**0.25


def test_large_epsilons_do_not_overflow() -> None:
    assert allowed_deltas(claim(PureDP(2000)), [0.0, 1999.0, 2000.0]).tolist() == pytest.approx(
        [1.0, 1 - math.exp(-1), 0.0]
    )


def test_random_data_have_no_curve() -> None:
    with pytest.raises(InvalidParameter, match="no curve of one pair"):
        allowed_deltas(claim(RandomPureDP(1, "0.1")), EPSILONS)
