"""Integer tables that turn 127 random bits into a draw, and how far each is from its ideal law.

Built from integers and mpmath's integer-based reals only, so every platform builds the same table.
The format is a contract with other devices: docs/reference/keyed-noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain, count, repeat
from typing import assert_never

import numpy as np

from sfumato._types import UIntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.numbers import SMALLEST, real, up
from sfumato.privacy.noise.laws import GaussianLaw, LaplaceLaw, Law, RoundedGaussianLaw

BITS = 127  # of the 128 bits of a block; the top one is the sign
FIXED = 384  # fixed-point bits of the weights
EXP_BITS = FIXED + 128  # and of an exponential on the way
TAIL = 160  # weights below 2**-TAIL are left out
DIGIT = 4096  # base in which wide geometric variables are written
# From this sigma on, thresholds of the rounded Gaussian are stepped to, not computed one by one.
STEPPED = 8
# Fixed-point bits of those steps: errors of 2**30 units are 2**-67 of a threshold.
STEP_BITS = BITS + 97
LONGEST_SPAN = 64
WIDEST = 2048  # largest sigma of a single Gaussian table; wider ones are sums of several
FAR = 145  # 4 exp(-2 pi**2 r) is below 2**-4096 from here on
MAX_DISTANCE = Fraction(1, 2**100)

# What weights lack, as a share of their total: at most 2**15 of them, each off by at most 2**30
# units of 2**-FIXED (two multiplications a step, each off by at most 2 units), and the tail cut
# below 2**-TAIL, which is at most the first weight left out times 2**12, the largest scale or sigma
# of one table. LACK is 2**20 times their sum.
LACK = Fraction(1, 2 ** (TAIL - 32))


@dataclass(frozen=True, eq=False)
class Table:
    """Thresholds t_0 <= t_1 <= ...: a uniform u in [0, 2**127) becomes the number of those at or below it."""

    thresholds: tuple[int, ...]
    distance: Fraction

    def arrays(self) -> tuple[UIntArray, UIntArray]:
        """High and low halves, padded to 2**depth - 1 with values no u reaches: a search of fixed depth."""
        size = 1 << len(self.thresholds).bit_length()
        low = (1 << 64) - 1
        halves = [
            # No list of them: it would be several times the array, on a device.
            np.fromiter(
                chain(map(half, self.thresholds), repeat(low, size - 1 - len(self.thresholds))),
                np.uint64,
                size - 1,
            )
            for half in (lambda t: t >> 64, lambda t: t & low)
        ]
        return halves[0], halves[1]


@dataclass(frozen=True, eq=False)
class Sampler:
    """How a draw is made of blocks: one table per block, and the weight of its value in the sum.

    `signed` blocks carry their sign in their top bit (Gaussian). Otherwise (Laplace) the first
    block decides zero or not and the sign, the others are the digits of the magnitude minus one.
    """

    tables: tuple[Table, ...]
    weights: tuple[int, ...]
    signed: bool
    distance: Fraction


def _table(weights: Sequence[int], *, missing: Fraction) -> Table:
    """Thresholds floor(2**127 * cumulative share), and their exact statistical distance.

    `missing` bounds what the weights themselves lack: their cut tail and fixed-point error, as a
    share.
    """
    total, running, thresholds = sum(weights), 0, list[int]()
    before = off = 0
    for weight in weights[:-1]:
        running += weight
        threshold = (running << BITS) // total
        # Added up as they come: a list of shares would be the most memory that a device ever holds.
        off += abs((threshold - before) * total - (weight << BITS))
        thresholds.append(threshold)
        before = threshold
    off += abs(((1 << BITS) - before) * total - (weights[-1] << BITS))
    return Table(tuple(thresholds), Fraction(off, 2 * total << BITS) + missing)


def _exp(power: Fraction) -> int:
    """floor(2**FIXED * e**power), for power <= 0; in integers, for a device that has nothing else.

    The Taylor series of e**(power / 2**halvings), squared as often. Of less than 64 terms each is off by one
    unit, and each squaring doubles what is off and adds one: together less than 2**25 units of 2**-EXP_BITS.
    """
    if power <= -512:
        return 0
    halvings = math.ceil(-power).bit_length() + 7
    x = math.floor(power * (1 << EXP_BITS)) >> halvings
    term = total = 1 << EXP_BITS
    for n in range(1, 64):
        term = ((term * x) >> EXP_BITS) // n
        total += term
    for _ in range(halvings):
        total = (total * total) >> EXP_BITS
    return total >> (EXP_BITS - FIXED)


def _geometric(scale: Fraction, length: int | None) -> Table:
    """The law proportional to exp(-k / scale) on 0..length-1, or on all k >= 0."""
    q = _exp(-1 / scale)
    weight, weights = 1 << FIXED, list[int]()
    while weight >= 1 << (FIXED - TAIL) and (length is None or len(weights) < length):
        weights.append(weight)
        weight = (weight * q) >> FIXED
    return _table(weights, missing=LACK)


def _laplace(law: LaplaceLaw) -> Sampler:
    """Zero or not with the sign; then the magnitude minus one, a geometric variable, digit by digit.

    q**(sum of d_j B**j) is a product over j, so the base-B digits of a geometric variable are
    independent.
    """
    q = _exp(-1 / law.scale)
    one = 1 << FIXED
    # P(0) = (1 - q) / (1 + q); the weights of "zero" and "not zero" are 1 - q and 2 q.
    tables, weights = [_table([one - q, 2 * q], missing=Fraction(1, 2**TAIL))], [1]
    scale, weight = law.scale, 1
    while scale > 64:
        tables.append(_geometric(scale, DIGIT))
        weights.append(weight)
        scale, weight = scale / DIGIT, weight * DIGIT
    tables.append(_geometric(scale, None))
    weights.append(weight)
    return Sampler(
        tuple(tables), tuple(weights), False, sum((t.distance for t in tables), Fraction(0))
    )


def _gaussian(law: GaussianLaw) -> Sampler:
    """One table, or x_0 + k_1 (x_1 + k_2 (x_2 + ...)) with all x from one table where sigma is wide.

    x + k y, with x and y discrete Gaussians of variances s and t, is one of variance s + k**2 t up
    to a factor 1 +- 4 exp(-2 pi**2 r), r = s t / (s + k**2 t), by Poisson summation
    (docs/proofs/keyed-noise.md).
    """
    factors = _factors(law.sigma**2 / WIDEST**2)
    spread = Fraction(1)
    for k in reversed(factors):
        spread = 1 + k * k * spread
    base = law.sigma**2 / spread

    step, ratio = _exp(-1 / base), _exp(-1 / (2 * base))
    weight, weights = 1 << FIXED, [1 << FIXED]
    while (weight := (weight * ratio) >> FIXED) >= 1 << (FIXED - TAIL):
        weights.append(2 * weight)
        ratio = (ratio * step) >> FIXED
    table = _table(weights, missing=LACK)

    multipliers, distance, inner = [1], table.distance, base
    for k in factors:
        multipliers.append(multipliers[-1] * k)
    for k in reversed(factors):
        distance += table.distance + _sum_distance(base * inner / (base + k * k * inner))
        inner = base + k * k * inner
    return Sampler((table,) * len(multipliers), tuple(multipliers), True, distance)


def _sum_distance(r: Fraction) -> Fraction:
    """4 exp(-2 pi**2 r), rounded up."""
    if r >= FAR:
        return Fraction(1, 2**SMALLEST)  # what `up` makes of all that is less
    import mpmath

    with mpmath.workprec(64):
        return up(4 * mpmath.exp(-2 * mpmath.pi**2 * real(r)))


def _factors(needed: Fraction) -> tuple[int, ...]:
    """Factors k_1, k_2, ... up to 256 with 1 + k_1**2 (1 + k_2**2 (...)) at least what is needed."""
    if needed <= 1:
        return ()
    k = min(256, math.isqrt(int(needed)) + 1)
    return (k, *_factors(needed / k**2))


def erf_at(k: int, sigma: Fraction, bits: int) -> int:
    """Where the magnitude of the rounded Gaussian passes k: floor(2**bits P(|N(0, sigma**2)| < k + 1/2))."""
    import mpmath

    with mpmath.workprec(bits + 64):
        x = (mpmath.mpf(k) + mpmath.mpf(0.5)) / (real(sigma) * mpmath.sqrt(2))
        # From the other end, which never rounds to nothing: the floor stays below 2**bits.
        return (1 << bits) - int(mpmath.ceil(mpmath.ldexp(mpmath.erfc(x), bits)))


def _rounded(law: RoundedGaussianLaw) -> Sampler:
    """The values of erf at k + 1/2 in units of sigma sqrt 2, up to the last that 127 bits tell from 1."""
    last = (1 << BITS) - 1
    thresholds = []
    for threshold in _erf_steps(law.sigma) if law.sigma >= STEPPED else _erf_values(law.sigma):
        thresholds.append(threshold)
        if threshold == last:
            break
    # Each share is off by less than 2**-127, and the tail beyond the last threshold is at most
    # 2**-127.
    table = Table(tuple(thresholds), Fraction(len(thresholds) + 1, 2 << BITS))
    return Sampler((table,), (1,), True, table.distance)


def _erf_values(sigma: Fraction) -> Iterator[int]:
    return (erf_at(k, sigma, BITS) for k in count())


def _erf_steps(sigma: Fraction) -> Iterator[int]:
    """The same from Taylor series, each good for up to LONGEST_SPAN thresholds: a tenth of the time.

    Over a span H, g(x + t H) = sum of b_n t**n for g, the derivative of erf; g' = -2 x g gives
    b_(n+1) = -2 (x H b_n + H**2 b_(n-1)) / (n + 1). Terms are at most e**(2 x H) <= e**3, for x < 10
    and H <= 1 / (8 sqrt 2), and fewer than 2**7. The map of g over a span is a contraction, so errors
    do not grow: each span adds less than 2**10 units of 2**-STEP_BITS to erf and to g, and there are
    fewer than 2**16. Where x stands is off by less than 2**17 units.
    """
    import mpmath

    shift = min(LONGEST_SPAN, int(sigma / STEPPED)).bit_length() - 1
    with mpmath.workprec(STEP_BITS + 64):
        h_ = 1 / (real(sigma) * mpmath.sqrt(2))
        h, x, erf, g = (
            int(mpmath.floor(mpmath.ldexp(v, STEP_BITS)))
            for v in (
                h_,
                h_ / 2,
                mpmath.erf(h_ / 2),
                2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(h_**2) / 4),
            )
        )
    span = h << shift
    square = (span * span) >> STEP_BITS
    while True:
        across = (x * span) >> STEP_BITS
        before, terms = 0, [g]
        while len(terms) < 8 or max(abs(before), abs(terms[-1])) > 1:
            term = (across * terms[-1] + square * before) >> STEP_BITS
            before = terms[-1]
            terms.append(-2 * term // len(terms))
        areas = [((term * span) >> STEP_BITS) // n for n, term in enumerate(terms, start=1)]
        for step in range(1 << shift):
            area = 0
            for one in reversed(areas):
                area = ((area + one) * step) >> shift
            yield min((erf + area) >> (STEP_BITS - BITS), (1 << BITS) - 1)
        x, erf, g = x + span, erf + sum(areas), sum(terms)


@lru_cache(maxsize=64)
def sampler(law: Law) -> Sampler:
    """The tables of a law, at most 2**-100 in statistical distance from it per draw."""
    match law:
        case LaplaceLaw():
            built = _laplace(law)
        case GaussianLaw():
            built = _gaussian(law)
        case RoundedGaussianLaw():
            built = _rounded(law)
        case _:
            assert_never(law)
    if built.distance > MAX_DISTANCE:
        raise InvalidParameter(
            f"the tables of {law} are {float(built.distance):.3g} off, more than 2**-100"
        )
    return built
