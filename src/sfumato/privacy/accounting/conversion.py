"""What a loss of one kind means in the terms of another; every rounding is towards more loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, assert_never

from sfumato.errors import InvalidParameter, NotComparable
from sfumato.privacy.accounting.losses import ZCDP, ApproxDP, Loss, PureDP, nonnegative, probability
from sfumato.privacy.accounting.numbers import DIGITS, Number, above, below, plain


def as_zcdp(loss: Loss) -> ZCDP:
    """The zCDP loss that a loss implies: rho = min(epsilon**2 / 2, epsilon) for a pure one.

    The first is [bun16, prop. 1.4]; the second holds because every Renyi divergence of an
    epsilon-DP pair is at most epsilon, which is at most epsilon times the order.

    Args:
        loss: A pure or zCDP loss.

    Returns:
        A zCDP loss that it implies, exactly.

    Raises:
        NotComparable: The loss is approximate, with delta above 0.

    """
    match loss:
        case PureDP(epsilon):
            return ZCDP(min(epsilon**2 / 2, epsilon))
        case ZCDP():
            return loss
        case ApproxDP(epsilon, delta):
            if delta == 0:
                return as_zcdp(PureDP(epsilon))
            raise NotComparable(
                f"approximate DP with delta above 0 has no zCDP equivalent, got {loss}"
            )
        case _:
            assert_never(loss)


def as_approx(loss: Loss, delta: Number) -> ApproxDP:
    """The (epsilon, delta) loss that a loss implies at the delta asked for.

    Args:
        loss: The loss to convert.
        delta: The delta at which epsilon is wanted, in [0, 1); above 0 for a zCDP loss.

    Returns:
        An (epsilon, delta) loss that the loss implies; epsilon is rounded up.

    Raises:
        NotComparable: The loss has a larger delta already.
        InvalidParameter: A zCDP loss was asked for at delta 0.

    """
    target = probability(delta, "delta")
    match loss:
        case PureDP(epsilon):
            return ApproxDP(epsilon, target)
        case ApproxDP(epsilon, own):
            if own <= target:
                return ApproxDP(epsilon, target)
            raise NotComparable(
                f"delta {plain(target)} asked, the loss has delta {plain(own)} already"
            )
        case ZCDP(rho):
            return ApproxDP(_epsilon_of_rho(rho, target), target)
        case _:
            assert_never(loss)


def rho_within(epsilon: Number, delta: Number) -> Fraction:
    """The most rho whose zCDP guarantee implies (epsilon, delta), rounded down.

    For any order a > 1, rho <= (epsilon - c(a)) / a suffices, c(a) as in `_overhead`; the best
    order is searched for, and the one found is evaluated with directed rounding, so the search
    cannot break the bound.

    Args:
        epsilon: Target epsilon, at least 0.
        delta: Target delta, in [0, 1); at 0 the answer is 0.

    Returns:
        The rho, rounded down to 64 bits.

    Raises:
        InvalidParameter: epsilon is above 1e100, or delta below 1e-300.

    Example:
        >>> float(rho_within(1, "1e-6"))  # doctest: +ELLIPSIS
        0.0243...

    """
    wanted, target = nonnegative(epsilon, "epsilon"), probability(delta, "delta")
    if target == 0:
        return Fraction(0)
    _representable(wanted, target)
    order = _best(lambda a: -(float(wanted) - _overhead(a, float(target))) / a)
    with localcontext(Context(prec=DIGITS)):
        left = _decimal(wanted) - _overhead(Decimal(order), _decimal(target))
        return max(Fraction(0), below(Fraction(left / Decimal(order))))


def _epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    if rho == 0:
        return Fraction(0)
    if delta == 0:
        raise InvalidParameter(
            "a zCDP loss implies no finite epsilon at delta 0; give a delta above 0"
        )
    _representable(rho, delta)
    order = _best(lambda a: float(rho) * a + _overhead(a, float(delta)))
    with localcontext(Context(prec=DIGITS)):
        found = _decimal(rho) * Decimal(order) + _overhead(Decimal(order), _decimal(delta))
        return max(Fraction(0), above(Fraction(found)))


def _representable(loss: Fraction, delta: Fraction) -> None:
    if loss > 10**100 or delta < Fraction(1, 10**300):
        raise InvalidParameter(
            f"conversions reach to losses of 1e100 and deltas of 1e-300, got {plain(loss)}, {plain(delta)}"
        )


def _overhead(order: Any, delta: Any) -> Any:
    """What epsilon exceeds the Renyi bound of an order by: (ln(1/delta) - ln a) / (a - 1) + ln(1 - 1/a).

    In doubles, or in decimals [canonne20, prop. 12].
    """
    log: Callable[[Any], Any] = math.log if isinstance(order, float) else Decimal.ln
    return (-log(delta) - log(order)) / (order - 1) + log((order - 1) / order)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _best(objective: Any) -> float:
    """An order near the minimum of an objective; any order is valid, a poor one only costs tightness."""
    import numpy as np

    exponents = np.linspace(-12, 24, 145)
    start = int(np.argmin([objective(1 + 2.0**x) for x in exponents]))
    low, high = exponents[max(start - 1, 0)], exponents[min(start + 1, exponents.size - 1)]
    return float(1 + 2.0 ** minimum_between(lambda x: objective(1 + 2.0**x), low, high))


def minimum_between(objective: Callable[[float], float], low: float, high: float) -> float:
    """Where an objective is least between two places, to about 1e-5, by Brent's method.

    The same steps, hence the same double, as `scipy.optimize.minimize_scalar` with bounds: devices
    convert budgets too, and do not load SciPy.
    """
    shrink, root = 0.5 * (3.0 - math.sqrt(5.0)), math.sqrt(2.2e-16)
    best = second = third = low + shrink * (high - low)
    at_best = at_second = at_third = objective(best)
    step = before = 0.0
    for _ in range(499):
        middle, near = 0.5 * (low + high), root * abs(best) + 1e-5 / 3.0
        if abs(best - middle) <= 2.0 * near - 0.5 * (high - low):
            break
        parabolic = False
        if abs(before) > near:
            r = (best - second) * (at_best - at_third)
            q = (best - third) * (at_best - at_second)
            p = (best - third) * q - (best - second) * r
            q = 2.0 * (q - r)
            p, q = (-p if q > 0 else p), abs(q)
            r, before = before, step
            parabolic = abs(p) < abs(0.5 * q * r) and q * (low - best) < p < q * (high - best)
            if parabolic:
                step = p / q
                if best + step - low < 2.0 * near or high - (best + step) < 2.0 * near:
                    step = math.copysign(near, middle - best)
        if not parabolic:  # a step of the golden section
            before = (low if best >= middle else high) - best
            step = shrink * before
        place = best + math.copysign(max(abs(step), near), step)
        value = objective(place)
        if value <= at_best:
            low, high = (best, high) if place >= best else (low, best)
            third, at_third, second, at_second = second, at_second, best, at_best
            best, at_best = place, value
        else:
            low, high = (place, high) if place < best else (low, place)
            if value <= at_second or second == best:
                third, at_third, second, at_second = second, at_second, place, value
            elif value <= at_third or third in (best, second):
                third, at_third = place, value
    return best
