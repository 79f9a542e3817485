"""How much noise a wanted guarantee takes; every result is rounded up, towards more noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, assert_never

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.losses import ApproxDP, nonnegative, positive, probability
from sfumato.privacy.accounting.numbers import WORKING, Number, double_above, plain, real, up

# The difference of the two terms of a Gaussian delta cancels at most this many bits for epsilon,
# delta in range.
CANCELLING = 2 * WORKING


def laplace_scale(epsilon: Number, *, sensitivity: Number = 1) -> float:
    """The scale at which Laplace noise costs at most epsilon: sensitivity / epsilon, rounded up.

    Args:
        epsilon: Target epsilon, above 0.
        sensitivity: Largest l1 change between neighbors.

    Returns:
        The scale, in the unit of the sensitivity; a double, rounded up.

    Raises:
        InvalidParameter: epsilon or sensitivity is not above 0.

    Example:
        >>> laplace_scale(2)
        0.5

    """
    wanted, moved = _positive(epsilon, "epsilon"), _positive(sensitivity, "sensitivity")
    return float(double_above(moved / wanted, name="scale"))


def gaussian_sigma(
    epsilon: Number,
    delta: Number,
    *,
    sensitivity: Number = 1,
    method: Literal["analytic", "papers"] = "analytic",
) -> float:
    """The deviation at which continuous (or rounded) Gaussian noise is (epsilon, delta)-DP, rounded up.

    `analytic` is the smallest there is: the exact delta of [balle18, thm. 8] equals the target.
    `papers` is 2 ln(1.25 / delta) sensitivity / epsilon of [gilbert18, lem. 4], kept for
    reproduction; it claims too much for some (epsilon, delta), and is refused there.

    Args:
        epsilon: Target epsilon, above 0.
        delta: Target delta, in (0, 1).
        sensitivity: Largest l2 change between neighbors, in the unit of the noise.
        method: `analytic` for the smallest deviation, `papers` for the printed formula.

    Returns:
        The deviation, in the unit of the sensitivity.

    Raises:
        InvalidParameter: A parameter is out of range, or the printed formula does not keep its
            promise.

    Example:
        >>> round(gaussian_sigma(1, 1e-5), 3), round(gaussian_sigma(1, 1e-5, method="papers"), 3)
        (3.731, 23.472)

    """
    import mpmath

    wanted, moved = _positive(epsilon, "epsilon"), _positive(sensitivity, "sensitivity")
    target = probability(delta, "delta")
    if target == 0:
        raise InvalidParameter(
            "Gaussian noise needs delta above 0, got 0; Laplace noise has delta 0"
        )
    match method:
        case "analytic":
            sigma = _double_up(_smallest_sigma(wanted, target) * moved)
            # The search ends within 2**-70; should the promise fail by a hair, the next double
            # keeps it.
            while not gaussian_keeps(ApproxDP(wanted, target), sigma=sigma, sensitivity=moved):
                sigma = math.nextafter(sigma, math.inf)
            return sigma
        case "papers":
            with mpmath.workprec(WORKING):
                sigma = _double_up(
                    up(2 * mpmath.log(real(Fraction(5, 4) / target)) / real(wanted)) * moved
                )
            if not gaussian_keeps(ApproxDP(wanted, target), sigma=sigma, sensitivity=moved):
                reached = gaussian_delta(wanted, sigma=sigma, sensitivity=moved)
                raise InvalidParameter(
                    f"the papers' formula promises delta {plain(target)} at epsilon {plain(wanted)}, "
                    f"but has delta {reached:.6g}; use method='analytic'"
                )
            return sigma
        case _:
            assert_never(method)


def gaussian_keeps(promise: ApproxDP, *, sigma: Number, sensitivity: Number) -> bool:
    """Whether Gaussian noise keeps a promise, decided in fractions with its delta rounded up."""
    import mpmath

    shift = _positive(sensitivity, "sensitivity") / double_above(sigma, name="sigma")
    with mpmath.workprec(CANCELLING):
        return up(_gaussian_delta(real(promise.epsilon), real(shift))) <= promise.delta


def gaussian_delta(epsilon: Number, *, sigma: Number, sensitivity: Number = 1) -> float:
    """The exact delta of Gaussian noise at an epsilon.

    Phi(m/2 - e/m) - exp(e) Phi(-m/2 - e/m) with m = sensitivity / sigma [balle18, thm. 8]. Rounded
    up to a double; an epsilon of 1000 or a delta of 1e-300 keeps all its digits.

    Args:
        epsilon: The epsilon at which delta is wanted, at least 0.
        sigma: Deviation of the noise, above 0.
        sensitivity: Largest l2 change between neighbors, in the unit of sigma.

    Returns:
        The delta, rounded up.

    Raises:
        InvalidParameter: A parameter is out of range.

    """
    import mpmath

    shift = _positive(sensitivity, "sensitivity") / double_above(sigma, name="sigma")
    with mpmath.workprec(CANCELLING):
        return _double_up(up(_gaussian_delta(real(nonnegative(epsilon, "epsilon")), real(shift))))


def _gaussian_delta(epsilon: Any, shift: Any) -> Any:
    import mpmath

    near, far = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
    return mpmath.ncdf(near) - mpmath.exp(epsilon) * mpmath.ncdf(far)


@lru_cache(maxsize=256)
def _smallest_sigma(epsilon: Fraction, delta: Fraction) -> Fraction:
    import mpmath

    with mpmath.workprec(CANCELLING):
        e, d = real(epsilon), real(delta)

        def excess(sigma: Any) -> Any:
            return _gaussian_delta(e, 1 / sigma) - d

        too_small, enough = _ends_around_sigma(excess, epsilon, delta)
        # More noise always keeps what less noise keeps: outside these ends nothing need be worked out.
        return up(
            _root(lambda sigma: sigma >= enough or (sigma > too_small and excess(sigma) <= 0))
        )


def _ends_around_sigma(
    excess: Callable[[Any], Any], epsilon: Fraction, delta: Fraction
) -> tuple[Any, Any]:
    """A deviation that is too small and one that is enough, close together; 0 and infinity where unknown.

    A guess in doubles, and secants from there; what each end is said to be was worked out exactly.
    """
    import mpmath

    guess = _sigma_in_doubles(float(epsilon), float(delta))
    low, high = mpmath.mpf(0), mpmath.inf
    for bits in (28, 44, 76):
        if not guess:
            break
        for end in (guess - mpmath.ldexp(guess, -bits), guess + mpmath.ldexp(guess, -bits)):
            if not low < end < high:
                continue
            over = excess(end)
            if over > 0:
                low, above = end, over
            else:
                high, below = end, over
        if not (low > 0 and high < mpmath.inf):
            break
        guess = low + (high - low) * above / (above - below)
    return low, high


def _sigma_in_doubles(epsilon: float, delta: float) -> float:
    """About the smallest deviation; 0 where doubles cannot say."""

    def enough(sigma: float) -> bool:
        half, far = 0.5 / sigma, epsilon * sigma
        tails = [math.erfc((far + side) / math.sqrt(2)) / 2 for side in (-half, half)]
        return tails[0] - math.exp(epsilon) * tails[1] <= delta

    try:
        low = high = 1.0
        while not enough(high):
            high *= 2
        while enough(low):
            low /= 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
    except (OverflowError, ZeroDivisionError):
        return 0.0
    return high if math.isfinite(high) else 0.0


def _root(holds: Callable[[Any], bool]) -> Any:
    """Where a condition that holds for large numbers begins to hold, from above, to 2**-70 of it."""
    import mpmath

    low = high = mpmath.mpf(1)
    while not holds(high):
        high *= 2
    while holds(low):
        low /= 2
    while high - low > mpmath.ldexp(high, -70):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _double_up(number: Fraction) -> float:
    return float(double_above(number))


def _positive(number: Number, name: str) -> Fraction:
    value = positive(number, name)
    if not Fraction(1, 10**300) < value < 10**300:
        raise InvalidParameter(f"{name} must lie between 1e-300 and 1e300, got {number}")
    return value
