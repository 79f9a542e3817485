"""What the mechanisms share: sums that cannot wrap, and parameters from a loss."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.losses import ZCDP, PureDP
from sfumato.privacy.accounting.numbers import sqrt_above
from sfumato.privacy.ledger.guarded import LARGEST, Bound


def saturated(values: IntArray, noise: IntArray) -> IntArray:
    """The sum x + z clipped to the range of guarded values: a function of the sum alone, so it costs nothing.

    z is clipped to twice that range first, so that nothing wraps; where that changes z, the sum is
    beyond the range on either way.
    """
    return np.clip(values + np.clip(noise, -2 * LARGEST, 2 * LARGEST), -LARGEST, LARGEST)


def pure_epsilon(loss: PureDP) -> Fraction:
    """The epsilon of a pure loss; any other loss is refused."""
    if not isinstance(loss, PureDP):
        raise InvalidParameter(f"this noise costs a pure epsilon, got {loss}")
    return loss.epsilon


def sigma_within(loss: ZCDP, bound: Bound, *, by: str) -> Fraction:
    """The least sigma, rounded up, that costs at most this rho on data with this bound."""
    if not isinstance(loss, ZCDP):
        raise InvalidParameter(f"{by} costs rho, got {loss}")
    if loss.rho == 0:
        raise InvalidParameter(f"{by} cannot cost nothing; give a rho above 0")
    return sqrt_above(bound.required("l2_squared", by=by) / (2 * loss.rho))
