"""Exact draws of Polya variables, of which noise in shares is made: an envelope, and rejection.

Of 62 random bits a block of integers is chosen, of as many further bits as it needs an integer of
the block, and 53 bits u stand for the reals [u, u + 1) / 2**53 that a coin is thrown by. Doubles
with a proven error decide the coin; where they cannot, about once in 2**31 proposals, more bits are
drawn and narrower intervals computed until they do. No table over the support, no rounding in the
law: docs/proofs/shared-noise.md
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato._types import BoolArray, FloatArray, IntArray
from sfumato.privacy.noise.polya_weights import (
    ERROR,
    LN2,
    exponential,
    log_of,
    log_weights,
    weight_between,
)

CHOICE, COIN = 62, 53  # bits that choose a block, and that a coin is thrown by at first
LARGEST = 2**52  # doubles hold every integer up to here
MOST_AT_ONCE = 2**18
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Envelope:
    """Blocks of integers and a ceiling of the weights in each.

    Block 0 is {0}, block j = 1..width is [2**(j-1), 2**j), and block width + 1 is the tail from
    2**width on: stretches of 2**width integers, of which the next has half the ceiling of the one
    before. `thresholds` cut 62 bits into shares of the blocks that are exactly proportional to their
    size times their ceiling; the little that is left is rejected.
    """

    parts: int
    scale: Fraction
    width: int
    thresholds: Words
    ceilings: tuple[Fraction, ...]
    logarithms: FloatArray

    @property
    def accepted(self) -> float:
        """The share of proposals that are taken, about."""
        target = (-np.expm1(-1 / float(self.scale))) ** (-1 / self.parts)
        last = self.width + 1
        offered = sum(
            float(ceiling) * (1 if j == 0 else 2.0 ** (j - (j < last)))
            for j, ceiling in enumerate(self.ceilings)
        )
        return float(target / offered)


@lru_cache(maxsize=256)
def envelope(parts: int, scale: Fraction) -> Envelope:
    """The envelope of shape 1 / parts: ceilings are weights of the first integers of blocks, rounded up."""
    width = 0
    while (
        10 * 2**width < 7 * scale
    ):  # 0.7 > ln 2: over 2**width integers the weight more than halves
        width += 1
    first = [0, *(1 << j for j in range(width)), 1 << width]
    sizes = [1, *(1 << j for j in range(width)), 2 << width]
    # Upper ends, to 80 bits: some more, since fractions of hundreds of digits serve nobody.
    tops = [_above(weight_between(k, parts, scale, 96)[1]) for k in first]
    whole = sum(size * top for size, top in zip(sizes, tops, strict=True))
    unit = whole / (2**CHOICE - len(first))
    shares = [-int(-size * top // unit) for size, top in zip(sizes, tops, strict=True)]
    ceilings = tuple(share * unit / size for share, size in zip(shares, sizes, strict=True))
    return Envelope(
        parts,
        scale,
        width,
        np.cumsum(np.array(shares, dtype=np.uint64)),
        ceilings,
        np.array([log_of(ceiling) for ceiling in ceilings]),
    )


def _above(number: Fraction) -> Fraction:
    steps = 80 + number.denominator.bit_length() - number.numerator.bit_length()
    step = Fraction(1, 1 << steps) if steps >= 0 else Fraction(1 << -steps)
    return -int(-number // step) * step


def polya_draws(parts: int, scale: Fraction, size: int) -> IntArray:
    """Exact draws of shape 1 / parts and ratio exp(-1 / scale), from the system's randomness."""
    cover, found, left = envelope(parts, scale), [np.zeros(0, dtype=np.int64)], size
    while left > 0:
        asked = min(MOST_AT_ONCE, int(1.1 * left / cover.accepted) + 32)
        taken = _proposed(cover, asked)[:left]
        found.append(taken)
        left -= taken.size
    return np.concatenate(found)


def share_draws(parts: int, scale: Fraction, size: int) -> IntArray:
    """Exact draws of one share: the difference of two Polya variables of shape 1 / parts."""
    both = polya_draws(parts, scale, 2 * size)
    return both[:size] - both[size:]


def _proposed(cover: Envelope, count: int) -> IntArray:
    """What is accepted of so many proposals, in order."""
    words = np.frombuffer(os.urandom(32 * count), dtype=np.uint64).reshape(4, count)
    block = np.searchsorted(cover.thresholds, words[0] >> np.uint64(64 - CHOICE), side="right")
    words, block = words[:, block <= cover.width + 1], block[block <= cover.width + 1]
    stretch = np.where(block > cover.width, _zeros(words[2]), 0)
    bits = np.clip(block - 1, 0, cover.width).astype(np.uint64)
    within = (words[1] & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    k = np.where(block > 0, ((1 + stretch) << bits.astype(np.int64)) + within, 0)
    coins = (words[3] >> np.uint64(64 - COIN)).astype(np.int64)
    return k[accepts(cover, block, stretch, k, coins)]


def _zeros(words: Words) -> IntArray:
    """How many fair coins fail before the first succeeds: zeros below the lowest one of endless bits."""
    lowest = words & (~words + np.uint64(1))
    found = np.frexp(lowest.astype(np.float64))[1].astype(np.int64) - 1
    for i in np.flatnonzero(words == 0).tolist():
        found[i] = 64
        while not secrets.randbits(1):
            found[i] += 1
    return found


def accepts(
    cover: Envelope, block: IntArray, stretch: IntArray, k: IntArray, coins: IntArray
) -> BoolArray:
    """Which proposals k are taken: with chance w(k) / ceiling, exactly; coins have COIN bits so far."""
    scale = float(cover.scale)  # a double: nothing is rounded
    chance = exponential(
        log_weights(k, cover.parts, scale) - cover.logarithms[block] + stretch * LN2
    )
    low, high = coins * 2.0**-COIN, (coins + 1) * 2.0**-COIN
    taken = high <= chance * (1 - ERROR)
    open_ = ~taken & (low < chance * (1 + ERROR)) | (k >= LARGEST)
    for i in np.flatnonzero(open_).tolist():
        ceiling = cover.ceilings[int(block[i])] / (1 << int(stretch[i]))
        taken[i] = _refined(cover, int(k[i]), ceiling, int(coins[i]))
    return np.asarray(taken, dtype=np.bool_)


def _refined(cover: Envelope, k: int, ceiling: Fraction, coin: int) -> bool:
    """The same decision by intervals and further bits, as many as it takes."""
    bits = COIN
    while True:
        coin, bits = coin << 64 | secrets.randbits(64), bits + 64
        low, high = weight_between(k, cover.parts, cover.scale, bits + 32)
        if (coin + 1) * ceiling <= low * 2**bits:
            return True
        if coin * ceiling >= high * 2**bits:
            return False
