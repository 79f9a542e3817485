"""How far apart two discrete distributions are: the divergences that define privacy, attained, not estimated.

A distribution lies on the last axis; leading axes broadcast, so a stack of pairs is one call. So do
delta and epsilon with the leading axes: a privacy curve is one call too.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter


def total_variation(p: ArrayLike, q: ArrayLike) -> FloatArray:
    """The most by which the chance of an event can differ: how well one sample tells p from q.

    sup_E |P(E) - Q(E)|, attained by {p > q} or by {p < q} [mcmillan18, def. 1.1].

    Args:
        p: Probabilities of outcomes in the last axis, [..., outcomes]; not negative, of sum 1.
        q: Probabilities of the same outcomes; leading axes broadcast.

    Returns:
        The distance in [0, 1], of the leading shape.

    Raises:
        InvalidParameter: p or q is no distribution, or their shapes do not fit.

    Example:
        >>> float(total_variation([0.5, 0.5], [0.25, 0.75]))
        0.25

    """
    first, second = _pair(p, q)
    excess = first - second
    # The two are equal for exact masses; of rounded ones the larger is the supremum.
    value: FloatArray = np.maximum(
        excess.clip(min=0).sum(axis=-1), (-excess).clip(min=0).sum(axis=-1)
    )
    return value


def max_divergence(p: ArrayLike, q: ArrayLike) -> FloatArray:
    """The least epsilon at which p and q, in this order, are epsilon-DP.

    sup_E ln P(E) / Q(E), attained by one outcome; inf when q misses an outcome of p [mcmillan18,
    def. 1.1].

    Args:
        p: Probabilities of outcomes in the last axis, [..., outcomes]; not negative, of sum 1.
        q: Probabilities of the same outcomes; leading axes broadcast.

    Returns:
        Epsilon, of the leading shape.

    Raises:
        InvalidParameter: p or q is no distribution, or their shapes do not fit.

    Example:
        >>> round(math.exp(max_divergence([0.75, 0.25], [0.25, 0.75])), 9)
        3.0

    """
    # The whole space has ratio 1, so rounded masses cannot take the supremum below 0.
    value: FloatArray = np.maximum(_log_ratio(*_pair(p, q)).max(axis=-1), 0)
    return value


def approximate_max_divergence(p: ArrayLike, q: ArrayLike, *, delta: ArrayLike) -> FloatArray:
    """The least epsilon at which p and q, in this order, are (epsilon, delta)-DP; delta may be an array.

    sup over P(E) >= delta of ln (P(E) - delta) / Q(E) [mcmillan18, def. 1.1]. An event of mass
    delta counts as -inf, even where Q(E) is 0: it bounds no epsilon. If e**v is the supremum, {p >
    e**v q} attains it, so only the sets of largest likelihood ratio need be tried. The value lies
    between ln(1 - delta), which is negative, and inf, which it takes when q misses more than delta
    of p: a jump, and floating-point sums decide it. `hockey_stick` does not jump.

    Args:
        p: Probabilities of outcomes in the last axis, [..., outcomes]; not negative, of sum 1.
        q: Probabilities of the same outcomes; leading axes broadcast.
        delta: Mass that events may lose, in [0, 1); a number or an array.

    Returns:
        Epsilon, of the broadcast shape; inf where none suffices.

    Raises:
        InvalidParameter: p or q is no distribution, or their shapes do not fit.

    Example:
        >>> round(math.exp(approximate_max_divergence([0.75, 0.25], [0.25, 0.75], delta=0.25)), 9)
        2.0

    """
    first, second = _pair(p, q)
    allowed = _numbers(delta, "delta must be between 0 and 1", low=0, high=1)
    order = np.argsort(-_log_ratio(first, second), axis=-1, kind="stable")
    mass = np.take_along_axis(first, order, axis=-1).cumsum(axis=-1).clip(max=1)
    rival = np.take_along_axis(second, order, axis=-1).cumsum(axis=-1)
    prefixes = _log_ratio(mass - allowed[..., None], rival)
    with np.errstate(divide="ignore"):
        value: FloatArray = np.maximum(prefixes.max(axis=-1), np.log1p(-allowed))
    return value


def hockey_stick(p: ArrayLike, q: ArrayLike, *, epsilon: ArrayLike) -> FloatArray:
    """The least delta at which p and q, in this order, are (epsilon, delta)-DP; epsilon may be an array.

    sup_E P(E) - e**epsilon Q(E), attained by {p > e**epsilon q} [balle18, thm. 5]. It is at most
    delta exactly when `approximate_max_divergence` at delta is at most epsilon. Epsilon may be
    negative, and inf.

    Args:
        p: Probabilities of outcomes in the last axis, [..., outcomes]; not negative, of sum 1.
        q: Probabilities of the same outcomes; leading axes broadcast.
        epsilon: A number or an array; may be negative or inf.

    Returns:
        Delta, of the broadcast shape.

    Raises:
        InvalidParameter: p or q is no distribution, or their shapes do not fit.

    Example:
        >>> float(hockey_stick([0.75, 0.25], [0.25, 0.75], epsilon=0))
        0.5

    """
    first, second = _pair(p, q)
    # The least positive double is e**-744.4: from epsilon 745 on only outcomes that q misses count,
    # so 1400 stands for every larger epsilon, and two factors of e**700 reach it without overflow.
    root = np.exp(_numbers(epsilon, "epsilon must be a number").clip(max=1400) / 2)[..., None]
    with np.errstate(over="ignore"):
        value: FloatArray = (first - second * root * root).clip(min=0).sum(axis=-1)
    return value


def kl_divergence(p: ArrayLike, q: ArrayLike) -> FloatArray:
    """The mean log-likelihood ratio of a sample from p, in nats; for r samples it is r times this.

    sum p ln(p / q), inf when q misses an outcome of p [mcmillan18, def. 1.1].

    Args:
        p: Probabilities of outcomes in the last axis, [..., outcomes]; not negative, of sum 1.
        q: Probabilities of the same outcomes; leading axes broadcast.

    Returns:
        The divergence in nats, of the leading shape.

    Raises:
        InvalidParameter: p or q is no distribution, or their shapes do not fit.

    Example:
        >>> round(math.exp(kl_divergence([1, 0], [0.5, 0.5])), 9)
        2.0

    """
    first, second = _pair(p, q)
    ratio = np.where(first > 0, _log_ratio(first, second), 0)
    # Never negative (Gibbs), but its rounded terms may sum to less than 0.
    value: FloatArray = np.maximum((first * ratio).sum(axis=-1), 0)
    return value


def renyi_divergence(p: ArrayLike, q: ArrayLike, *, order: float) -> FloatArray:
    """The divergence that concentrated DP bounds; it grows with its order, which may be 1 or inf.

    ln(sum p**order q**(1 - order)) / (order - 1) [mcmillan18, def. 1.1]; the limits are
    `kl_divergence` at 1 and `max_divergence` at inf [vanerven14, thm. 5 and 6]. At 1/2 it is -2 ln
    of the Hellinger affinity.

    Args:
        p: Probabilities of outcomes in the last axis, [..., outcomes]; not negative, of sum 1.
        q: Probabilities of the same outcomes; leading axes broadcast.
        order: The order, above 0; 1 and inf are the limits.

    Returns:
        The divergence in nats, of the leading shape.

    Raises:
        InvalidParameter: p or q is no distribution, or their shapes do not fit.

    Example:
        >>> round(math.exp(renyi_divergence([0.75, 0.25], [0.5, 0.5], order=2)), 9)
        1.25

    """
    if not order > 0:
        raise InvalidParameter(f"order must be above 0, got {order}")
    if order == 1:
        return kl_divergence(p, q)
    if order == math.inf:
        return max_divergence(p, q)
    first, second = _pair(p, q)
    ratio = _log_ratio(first, second)
    # With the extreme ratio taken out, every exponent is at most 0: nothing overflows at any order.
    extreme = ratio.max(axis=-1) if order > 1 else np.where(first > 0, ratio, np.inf).min(axis=-1)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        exponent = np.where(first > 0, (order - 1) * (ratio - extreme[..., None]), 0)
        shortfall = (first * np.expm1(exponent)).sum(axis=-1)
        total = (first * np.exp(exponent)).sum(axis=-1)
        # total is 1 + shortfall; near 1 its logarithm would keep a rounding error for order - 1 to
        # divide.
        log_total = np.where(shortfall > -0.5, np.log1p(shortfall), np.log(total))
        value = np.where(np.isinf(extreme), np.inf, extreme + log_total / (order - 1))
    return np.maximum(value, 0)


def _log_ratio(p: FloatArray, q: FloatArray) -> FloatArray:
    """ln(p / q), and -inf unless p is above 0, so that 0 / 0 never decides a supremum."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Within a factor 2 the difference p - q is exact (Sterbenz), and log1p keeps every digit of
        # it.
        near = (p <= 2 * q) & (q <= 2 * p)
        ratio = np.where(near, np.log1p((p - q) / q), np.log(p) - np.log(q))
    return np.where(p > 0, ratio, -np.inf)


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = _distribution(p, "p"), _distribution(q, "q")
    if first.shape[-1] != second.shape[-1]:
        raise InvalidParameter(
            f"p and q must have equally many outcomes, got {first.shape[-1]} and {second.shape[-1]}"
        )
    try:
        shape = np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise InvalidParameter(
            f"the leading axes of p and q must broadcast, got shapes {first.shape} and {second.shape}"
        ) from None
    return np.broadcast_to(first, shape), np.broadcast_to(second, shape)


def _distribution(masses: ArrayLike, name: str) -> FloatArray:
    # A mass a little above 1 may be rounding; the sum decides.
    values = _numbers(masses, f"{name} must have masses between 0 and 1", low=0, high=2)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise InvalidParameter(
            f"{name} must have an outcome on its last axis, got shape {values.shape}"
        )
    # n outcomes: n - 1 roundings in the caller's normalising sum, n - 1 in ours, up to 32 in each
    # mass, every one of at most 2**-53: together (n + 15) 2**-52.
    tolerance = (values.shape[-1] + 15) * 2.0**-52
    total = values.sum(axis=-1)
    off = np.abs(total - 1) > tolerance
    if off.any():
        raise InvalidParameter(
            f"{name} must sum to 1 within {tolerance:.2g}, got {float(total[off].flat[0])}"
        )
    return values


def _numbers(
    given: ArrayLike, rule: str, *, low: float = -np.inf, high: float = np.inf
) -> FloatArray:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{rule}, got {given!r}") from None
    if (bad := ~((values >= low) & (values <= high))).any():
        raise InvalidParameter(f"{rule}, got {float(values[bad].flat[0])}")
    return values
