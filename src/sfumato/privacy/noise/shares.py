"""Noise in shares: what one party adds, how sums of all parties are asked for, and sums in a field.

A party draws its shares with `draw_shares` and hands its own values with them to a secure sum; what
every party gets back is the sum of all values with noise of shape parties / (parties - curious).
Proof: docs/proofs/shared-noise.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NoReturn, Protocol

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.numbers import Number
from sfumato.privacy.accounting.trust import InShares, Shuffled
from sfumato.privacy.noise.polya_law import PolyaLaw
from sfumato.privacy.noise.protocol import Noise

# A sum of this many bits is an int64 with room for the sign.
MOST_BITS = 62


class SharedNoise(Noise, Protocol):
    """A source of noise in shares: a session of parties, or all of them simulated in one process.

    Every call of `noisy_sum` is one secure sum: each party adds shares that it draws afresh to its own
    values, and all parties get the same sum. A source that does so between real parties has
    `distance` None and `known` False.
    """

    @property
    def trust(self) -> InShares:
        """How many parties or devices there are, and how many of them may pool what they know."""

    def noisy_sum(
        self, values: IntArray, scales: Sequence[Fraction], which: IntArray, trust: InShares
    ) -> IntArray:
        """The values of all parties with the shares of all; entry i has noise of scale scales[which[i]]."""

    def laplace(self, scale: Number, size: int) -> NoReturn:
        """Refused: one hand would add all of it."""
        _refuse(scale, size)

    def gaussian(self, sigma: Number, size: int) -> NoReturn:
        """Refused: no shares of it are drawn here."""
        _refuse(sigma, size)

    def rounded_gaussian(self, sigma: Number, size: int) -> NoReturn:
        """Refused: no shares of it are drawn here."""
        _refuse(sigma, size)

    def uniform(self, below: int, size: int) -> NoReturn:
        """Refused: no shares of it are drawn here."""
        _refuse(below, size)


def _refuse(*_: object) -> NoReturn:
    raise InvalidParameter(
        "parties add noise in shares to sums of theirs, and draw no other noise together; nothing was drawn"
    )


class SimulatedShares(SharedNoise):
    """All parties in one process, for simulations: the values are those of all of them together.

    Its draws are exact and fresh, but one process knows all shares, so that no ledger but a
    rehearsal takes it.
    """

    distance: Fraction | None = None
    known = True

    def __init__(self, trust: InShares) -> None:
        self._trust = trust

    @property
    def trust(self) -> InShares:
        """As it was made."""
        return self._trust

    def noisy_sum(
        self, values: IntArray, scales: Sequence[Fraction], which: IntArray, trust: InShares
    ) -> IntArray:
        """The values with as many shares as there are parties, each drawn by itself."""
        del trust  # it was compared with that of the source by whoever asks
        found, own = values.copy(), self._trust
        for _ in range(own.devices if isinstance(own, Shuffled) else own.parties):
            found += draw_shares(own, scales, which)
        return found


def draw_shares(trust: InShares, scales: Sequence[Fraction], which: IntArray) -> IntArray:
    """One party's shares of the noise on sums, drawn afresh, exactly, from the system's randomness.

    The shares of parties - curious parties add up to discrete Laplace noise, exactly.

    Args:
        trust: How many parties there are, and how many of them may pool what they know.
        scales: The scales of that Laplace noise, as `DiscreteLaplace` has them.
        which: For each sum, which of the scales it has [sum].

    Returns:
        Integers to be added to the party's own values, each used once [sum].

    Raises:
        InvalidParameter: A scale is none that noise can have, or there is none for a sum.

    Example:
        >>> from sfumato.privacy import Joint
        >>> draw_shares(Joint(3), [Fraction(2**20)], np.zeros(4, dtype=np.int64)).shape
        (4,)

    """
    laws = [PolyaLaw(scale, trust.share_shape) for scale in scales]
    if which.size and not 0 <= int(which.min()) <= int(which.max()) < len(laws):
        raise InvalidParameter(
            f"which must name one of {len(laws)} scales for each sum, got {int(which.min())}.."
            f"{int(which.max())}; nothing was drawn"
        )
    from sfumato.privacy.noise.polya import share_draws  # and mpmath, for who draws

    found = np.zeros(which.size, dtype=np.int64)
    for at, law in enumerate(laws):
        here = np.flatnonzero(which == at)
        if here.size:
            found[here] = share_draws(trust.honest, law.scale, here.size)
    return found


def draw_polya(law: PolyaLaw, size: int) -> IntArray:
    """Exact draws of a law of noise in shares, from the system's randomness.

    Args:
        law: The law; of shape n / m, each draw is the sum of n draws of shape 1 / m.
        size: How many.

    Returns:
        The integers [size].

    """
    from sfumato.privacy.noise.polya import share_draws  # and mpmath, for who draws

    found = np.zeros(size, dtype=np.int64)
    for _ in range(law.shape.numerator):
        found += share_draws(law.shape.denominator, law.scale, size)
    return found


def wrap_chance(bits: int, *, largest: int, law: PolyaLaw, sums: int) -> float:
    """How likely any of some sums leaves a field of so many bits, at most.

    A sum that does is off by a multiple of the modulus: that costs accuracy, and no privacy, because
    what is opened is a function of the sum alone.

    Args:
        bits: The field has at least 2**bits elements, half of them for negative sums.
        largest: What the values of all parties add up to at most, in size.
        law: The law of the noise on a sum.
        sums: How many sums are opened.

    Returns:
        A probability, by Chernoff's bound; 1 where nothing is known.

    """
    room = 2 ** (bits - 1) - 1 - largest
    if room <= 0:
        return 1.0
    # E exp(a Z) is ((1 - q)**2 / ((1 - q e**a) (1 - q e**-a)))**shape for a < 1 / scale.
    scale = float(law.scale)
    part = np.concatenate([np.linspace(0.05, 0.95, 19), 1 - np.geomspace(0.04, 1e-9, 40)])
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        down = np.log(-np.expm1(-1 / scale)) - np.log(-np.expm1((part - 1) / scale))
        up = np.log(-np.expm1(-1 / scale)) - np.log(-np.expm1(-(part + 1) / scale))
    power = float(law.shape) * (down + up) - part / scale * room
    return min(1.0, 2 * sums * math.exp(min(0.0, float(power.min()))))


def field_bits(*, largest: int, law: PolyaLaw, sums: int, chance: float = 2.0**-40) -> int:
    """The fewest bits of a field in which no sum wraps, but with a chance.

    Args:
        largest: What the values of all parties add up to at most, in size.
        law: The law with the most noise among the sums.
        sums: How many sums are opened.
        chance: How likely a wrap may be.

    Returns:
        The number of bits.

    Raises:
        InvalidParameter: Sums of so many bits are no integers of 64.

    """
    for bits in range(2, MOST_BITS + 1):
        if wrap_chance(bits, largest=largest, law=law, sums=sums) <= chance:
            return bits
    raise InvalidParameter(
        f"sums up to {largest} with noise of scale {float(law.scale):.3g} need more than {MOST_BITS} bits; "
        "nothing was drawn"
    )


def from_field(elements: Sequence[int], modulus: int) -> IntArray:
    """Sums in a field as integers: elements from half the modulus on stand for negative ones.

    Args:
        elements: Elements 0 .. modulus - 1 as they were opened.
        modulus: How many elements the field has, odd and at most 2**63.

    Returns:
        The integers between -modulus / 2 and modulus / 2.

    Raises:
        InvalidParameter: An element is none of the field's, or integers of 64 bits do not hold them.

    """
    if not (modulus % 2 and 3 <= modulus <= 2**63):
        raise InvalidParameter(
            f"modulus must be odd and in 3..2**63, got {modulus}; nothing was read"
        )
    found = [int(element) for element in elements]
    if not all(0 <= element < modulus for element in found):
        raise InvalidParameter(f"elements must lie in 0..{modulus - 1}; nothing was read")
    return np.array(
        [one - modulus if one > modulus // 2 else one for one in found], dtype=np.int64
    ).reshape(-1)


def to_field(values: IntArray, modulus: int) -> list[int]:
    """Integers as elements of a field: each modulo its size, and none of them clipped.

    Args:
        values: A party's own values with its shares.
        modulus: How many elements the field has.

    Returns:
        Elements 0 .. modulus - 1.

    """
    return [value % modulus for value in values.tolist()]
