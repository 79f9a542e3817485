"""Privacy losses: what a release costs, in exact fractions.

Loss = PureDP | ApproxDP | ZCDP
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.numbers import Number, exact, plain


def nonnegative(number: Number, name: str) -> Fraction:
    """The number as a fraction, when it is at least 0.

    Args:
        number: The number.
        name: What messages call it.

    Returns:
        The fraction.

    Raises:
        InvalidParameter: It is below 0.

    """
    value = exact(number, name=name)
    if value < 0:
        raise InvalidParameter(f"{name} must be at least 0, got {number}")
    return value


def positive(number: Number, name: str) -> Fraction:
    """The number as a fraction, when it is above 0.

    Args:
        number: The number.
        name: What messages call it.

    Returns:
        The fraction.

    Raises:
        InvalidParameter: It is not above 0.

    """
    value = exact(number, name=name)
    if value <= 0:
        raise InvalidParameter(f"{name} must be above 0, got {number}")
    return value


def probability(number: Number, name: str) -> Fraction:
    """The number as a fraction, when it lies in [0, 1).

    Args:
        number: The number.
        name: What messages call it.

    Returns:
        The fraction.

    Raises:
        InvalidParameter: It lies outside [0, 1).

    """
    value = nonnegative(number, name)
    if value >= 1:
        raise InvalidParameter(f"{name} must be below 1, got {number}")
    return value


@dataclass(frozen=True, slots=True, init=False)
class PureDP:
    """No event is more than e**epsilon times likelier on one of two neighbors [mcmillan18, def. 2.1].

    >>> PureDP(0.1).epsilon
    Fraction(1, 10)
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", nonnegative(epsilon, "epsilon"))

    def __str__(self) -> str:
        return f"epsilon {plain(self.epsilon)}"


@dataclass(frozen=True, slots=True, init=False)
class ApproxDP:
    """P(E) <= e**epsilon Q(E) + delta for every event E and all neighbors [mcmillan18, def. 2.1]."""

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", nonnegative(epsilon, "epsilon"))
        object.__setattr__(self, "delta", probability(delta, "delta"))

    def __str__(self) -> str:
        return f"epsilon {plain(self.epsilon)}, delta {plain(self.delta)}"


@dataclass(frozen=True, slots=True, init=False)
class ZCDP:
    """The Renyi divergence of every order a > 1 is at most rho * a [bun16, def. 1.1]."""

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", nonnegative(rho, "rho"))

    def __str__(self) -> str:
        return f"rho {plain(self.rho)}"


Loss = PureDP | ApproxDP | ZCDP
