"""How much shuffled messages tell beyond their sum: split-and-mix, by the theorem with its constant.

Every device splits its integer into additive messages modulo 2**bits, and a shuffler mixes those of
all. docs/proofs/shuffled-sums.md derives the bound.
"""

from __future__ import annotations

import math
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.numbers import WORKING, real, sqrt_above, up

MOST_MESSAGES = 256
_E = Fraction(2718281829, 10**9)  # above e


def mixing_distance(devices: int, messages: int, bits: int) -> Fraction:
    """How far the mixed messages of a sum are from a function of the sum alone, at most.

    Half the root of E[q**(C - 1)] - 1, where q = 2**bits and C is the number of components of a
    random graph of `devices` nodes, `messages` - 1 arrows out of each and as many into each.

    Args:
        devices: How many honest devices' messages are mixed, 2 or more; more of them only help.
        messages: Into how many messages a device splits its integer.
        bits: Sums are modulo 2**bits.

    Returns:
        A statistical distance, rounded up; 1 where nothing is known.

    Raises:
        InvalidParameter: A number is out of range.

    Example:
        >>> float(mixing_distance(1000, 13, 24)) < 2**-50
        True

    """
    for name, value, low in (("devices", devices, 2), ("messages", messages, 1), ("bits", bits, 1)):
        if type(value) is not int or value < low:
            raise InvalidParameter(
                f"{name} must be a whole number of at least {low}, got {value!r}"
            )
    n, d, q = devices, messages - 1, 2**bits
    if d < 2:
        return Fraction(1)
    rest = q * _E ** (d - 1) / Fraction(n) ** (d - 2)
    if rest > 1:
        return Fraction(1)
    alone = Fraction((q - 1) * n, math.comb(d * n, d))
    halves = Fraction((q - 1) * max(n - 3, 0), 2 * math.comb(n, 2) ** (d - 1))
    return min(Fraction(1), sqrt_above(alone + halves + rest**2 / 4) / 2)


def mixing_messages(devices: int, bits: int, *, distance: Fraction) -> int:
    """The fewest messages with which mixed sums are so close to a function of the sum alone.

    Args:
        devices: How many honest devices' messages are mixed.
        bits: Sums are modulo 2**bits.
        distance: The statistical distance that is allowed, above 0.

    Returns:
        The number of messages.

    Raises:
        InvalidParameter: So few devices are never so close.

    Example:
        >>> mixing_messages(1000, 24, distance=Fraction(1, 2**50))
        13

    """
    for messages in range(3, MOST_MESSAGES + 1):
        if mixing_distance(devices, messages, bits) <= distance:
            return messages
    raise InvalidParameter(
        f"{devices} honest devices are too few: not even {MOST_MESSAGES} messages a count are within "
        f"{float(distance):.3g} of their sum alone; nothing was charged"
    )


def mixed_delta(epsilon: Fraction, distance: Fraction, sums: int) -> Fraction:
    """The delta of sums whose messages were mixed: (1 + e**epsilon) times the distances of all of them.

    Args:
        epsilon: The loss of the noisy sums themselves.
        distance: How far the messages of one sum are from a function of it, at most.
        sums: How many sums there are, over all cells and rounds.

    Returns:
        The delta, rounded up; 1 or more where nothing is promised.

    Raises:
        InvalidParameter: A number is out of range.

    """
    import mpmath

    if type(sums) is not int or sums < 1 or distance < 0 or epsilon < 0:
        raise InvalidParameter(
            f"delta is of a loss and a distance of at least 0 and of 1 or more sums, got "
            f"{float(epsilon):g}, {float(distance):g} and {sums!r}"
        )
    with mpmath.workprec(WORKING):
        factor = 1 + up(mpmath.exp(real(epsilon)))
    return factor * distance * sums
