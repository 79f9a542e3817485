"""The privacy profile of a mechanism: its delta at every epsilon, not at one pair only."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, assert_never

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.calibration import CANCELLING, gaussian_delta
from sfumato.privacy.accounting.losses import nonnegative
from sfumato.privacy.accounting.numbers import Number, exact, real
from sfumato.privacy.mechanisms.discrete_gaussian import DiscreteGaussian
from sfumato.privacy.mechanisms.discrete_laplace import DiscreteLaplace
from sfumato.privacy.mechanisms.permute_and_flip import PermuteAndFlip
from sfumato.privacy.mechanisms.randomised_response import RandomisedResponse
from sfumato.privacy.mechanisms.rounded_gaussian import RoundedGaussian

LARGEST_SUMMED = 2**16

Profiled = (
    DiscreteLaplace | DiscreteGaussian | RoundedGaussian | RandomisedResponse | PermuteAndFlip
)


def privacy_profile(mechanism: Profiled, sensitivity: Number = 1) -> Callable[[Number], float]:
    """The function epsilon -> delta of a mechanism: the smallest delta it has proved at that epsilon.

    | mechanism | sensitivity is | the profile is |
    |---|---|---|
    | DiscreteLaplace, DiscreteGaussian | the shift of one number, an integer | exact |
    | RoundedGaussian | the l2 change of a vector | that of the continuous Gaussian, which bounds it |
    | RandomisedResponse | answers per user | exact for one; for k by group privacy of pure DP |
    | PermuteAndFlip | the linf change of the scores | that of its pure epsilon, which bounds it |

    Args:
        mechanism: One of the mechanisms of the table.
        sensitivity: How far neighbors are apart, as the table says.

    Returns:
        A function that takes epsilon, at least 0, and gives delta, rounded up.

    Raises:
        InvalidParameter: The sensitivity does not fit the mechanism.

    """
    moved = exact(sensitivity, name="sensitivity")
    if moved <= 0:
        raise InvalidParameter(f"sensitivity must be above 0, got {sensitivity}")
    match mechanism:
        case RoundedGaussian(sigma):
            return lambda epsilon: gaussian_delta(epsilon, sigma=float(sigma), sensitivity=moved)
        case DiscreteGaussian(sigma):
            shift = _whole(moved)
            return lambda epsilon: _discrete_gaussian(
                float(nonnegative(epsilon, "epsilon")), float(sigma), shift
            )
        case DiscreteLaplace(scale):
            shift = _whole(moved)
            return lambda epsilon: _discrete_laplace(nonnegative(epsilon, "epsilon"), scale, shift)
        case RandomisedResponse(epsilon=own):
            if moved == 1:
                return lambda epsilon: _response(nonnegative(epsilon, "epsilon"), mechanism)
            total = _whole(moved) * own
            return lambda epsilon: _pure(nonnegative(epsilon, "epsilon"), total)
        case PermuteAndFlip(scale):
            total = 2 * moved / scale
            return lambda epsilon: _pure(nonnegative(epsilon, "epsilon"), total)
        case _:
            assert_never(mechanism)


def _whole(shift: Fraction) -> int:
    if shift.denominator != 1:
        raise InvalidParameter(
            f"integers move by integers: the sensitivity must be whole, got {shift}"
        )
    return int(shift)


def _discrete_laplace(epsilon: Fraction, scale: Fraction, shift: int) -> float:
    """Sum of P - e**epsilon Q over y <= m, the last y with privacy loss (shift - 2 y) / scale above epsilon.

    With q = exp(-1/scale): (1 + q - q**(m+1) - e**epsilon q**(shift-m)) / (1 + q).
    """
    import mpmath

    if epsilon * scale >= shift:
        return 0.0
    m = math.ceil((shift - epsilon * scale) / 2) - 1
    with mpmath.workprec(CANCELLING):
        q = mpmath.exp(-1 / real(scale))
        return float(
            (1 + q - q ** (m + 1) - mpmath.exp(real(epsilon)) * q ** (shift - m)) / (1 + q)
        )


def _discrete_gaussian(epsilon: float, sigma: float, shift: int) -> float:
    """Sum of P(y) (1 - exp(epsilon - loss)) over y whose loss is above epsilon [canonne20, thm. 7].

    The loss at y is (2 y - shift) shift / (2 sigma**2) with P centred at shift, Q at 0, seen from
    P.
    """
    if sigma > LARGEST_SUMMED:
        raise InvalidParameter(
            f"profiles of discrete Gaussians are summed up to sigma {LARGEST_SUMMED}, got {sigma:g}"
        )
    law = DiscreteGaussian(sigma).law
    first = math.floor(epsilon * sigma**2 / shift - shift / 2) + 1  # distance of y from shift
    if first > 40 * sigma:
        return 0.0
    z = np.arange(max(first, -math.ceil(40 * sigma)), math.ceil(40 * sigma) + 1, dtype=np.float64)
    loss = (2 * z + shift) * shift / (2 * sigma**2)
    return float(np.sum(law.pmf(z) * -np.expm1(np.minimum(epsilon - loss, 0))))


def _response(epsilon: Fraction, mechanism: RandomisedResponse) -> float:
    import mpmath

    truth, other = mechanism.law
    with mpmath.workprec(CANCELLING):
        return float(max(mpmath.mpf(0), real(truth) - mpmath.exp(real(epsilon)) * real(other)))


def _pure(epsilon: Fraction, own: Fraction) -> float:
    """What pure DP alone says: that of binary randomised response [kairouz15, thm. 3.3]."""
    import mpmath

    with mpmath.workprec(CANCELLING):
        grown: Any = mpmath.exp(real(own))
        return float(max(mpmath.mpf(0), (grown - mpmath.exp(real(epsilon))) / (grown + 1)))
