"""What a claim allows: the largest delta at every epsilon, to compare a measured band with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

import numpy as np

from sfumato._types import FloatArray
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

POWERS = np.linspace(-12, -0.01, 60)
"""Deltas, as powers of ten, at which a zCDP claim is turned into epsilons."""


def allowed_deltas(claim: Claim, epsilons: Sequence[float]) -> FloatArray:
    """The largest delta(epsilon) that a claim allows, at each of these epsilons.

    (e, d)-DP allows d + (1 - d) (e^e - e^x) / (1 + e^e) at x below e, and d above [kairouz15, thm.
    3.3]; Gaussian DP has its curve [dong22, cor. 1]; of zCDP an upper bound is taken, between
    points of its own.

    >>> from sfumato.privacy import AddRemoveUser
    >>> allowed_deltas(Claim(PureDP(1), AddRemoveUser()), [0, 1]).round(4).tolist()
    [0.4621, 0.0]
    """
    match claim.loss:
        case PureDP(epsilon):
            return _mixture(float(epsilon), 0.0, epsilons)
        case ApproxDP(epsilon, delta):
            return _mixture(float(epsilon), float(delta), epsilons)
        case GaussianDP(mu):
            if mu == 0:
                return np.zeros(len(epsilons))
            return np.array([gaussian_delta(x, sigma=1, sensitivity=mu) for x in epsilons])
        case ZCDP():
            deltas = 10.0**POWERS
            known = np.array(
                [float(as_approx(claim.loss, float(delta)).epsilon) for delta in deltas]
            )
            # Delta falls as epsilon grows: what holds at the next smaller epsilon holds here.
            places = [np.flatnonzero(known <= x) for x in epsilons]
            return np.array([float(deltas[place].min(initial=1.0)) for place in places])
        case RandomPureDP() | RandomApproxDP():
            raise InvalidParameter(
                f"a claim about random data has no curve of one pair, got {claim}"
            )
        case _:
            assert_never(claim.loss)


def _mixture(epsilon: float, delta: float, epsilons: Sequence[float]) -> FloatArray:
    # (e^e - e^x) / (1 + e^e), in a form that no epsilon overflows
    parts = [max(0.0, -math.expm1(x - epsilon)) / (1 + math.exp(-epsilon)) for x in epsilons]
    return np.array([delta + (1 - delta) * part for part in parts])
