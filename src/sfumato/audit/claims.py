"""Claims as tests: every claim implies (epsilon, delta) statements, and refuting one of them refutes it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from sfumato.errors import InvalidParameter
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    RandomApproxDP,
    RandomPureDP,
    as_approx,
)
from sfumato.privacy.accounting import gaussian_delta

DELTAS = ("1e-1", "1e-2", "1e-3", "1e-4", "1e-6", "1e-8")
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)


@dataclass(frozen=True, slots=True)
class EpsilonDelta:
    """P(event) <= e**epsilon Q(event) + delta for every event, both orders; rounded to claim no more."""

    epsilon: float
    delta: float


def implied(claim: Claim) -> tuple[EpsilonDelta, ...]:
    """What a claim implies, as statements that samples can refute.

    Pure and approximate claims imply their own. zCDP implies one for every delta, Gaussian DP one
    for every epsilon; a few of them are used, of all sizes.

    >>> from sfumato.privacy import AddRemoveUser
    >>> implied(Claim(PureDP("1/2"), AddRemoveUser()))
    (EpsilonDelta(epsilon=0.5, delta=0.0),)
    """
    match claim.loss:
        case PureDP(epsilon):
            return (EpsilonDelta(above(epsilon), 0.0),)
        case ApproxDP(epsilon, delta):
            return (EpsilonDelta(above(epsilon), above(delta)),)
        case ZCDP():
            found = (as_approx(claim.loss, delta) for delta in DELTAS)
            return tuple(EpsilonDelta(above(loss.epsilon), above(loss.delta)) for loss in found)
        case GaussianDP(mu):
            if mu == 0:
                return (EpsilonDelta(0.0, 0.0),)
            sizes = (share * float(mu) * (1 + float(mu) / 2) for share in SHARES)
            return tuple(EpsilonDelta(e, gaussian_delta(e, sigma=1, sensitivity=mu)) for e in sizes)
        case RandomPureDP() | RandomApproxDP():
            raise InvalidParameter(
                f"a claim about random data is not refuted by one pair of inputs, got {claim}; use certify"
            )
        case _:
            assert_never(claim.loss)


def above(number: Fraction) -> float:
    """The least double that is not below a fraction."""
    value = float(number)
    return value if Fraction(value) >= number else math.nextafter(value, math.inf)
