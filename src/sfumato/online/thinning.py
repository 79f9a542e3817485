"""Two nearly independent views of one Gaussian release: choose with one, score with the other.

A choice that is scored on the same noisy values it was made from looks better than it is. With y =
x + z and fresh noise w of the law of z, x + (z + w) and x + (z - w) have independent noise if it is
continuous Gaussian [garciarasines23]. On the integers exp(-(z**2 + w**2) / (2 sigma**2)) =
exp(-(a**2 + b**2) / (4 sigma**2)), a = z + w, b = z - w, still factors, but a and b are both even
or both odd: given that one shared bit they are independent. Dropping the lowest bit hides it, up to
what the slope of the law tells of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import GaussianLaw, Noise, Release, RoundedGaussianLaw, SystemNoise
from sfumato.privacy.accounting import exact
from sfumato.privacy.ledger import lattice

MAX_BITS = 20
EVEN = 8.0  # from this sigma on even and odd noise are equally likely, to e**(-64 pi**2)
REACH = 40.0  # sigmas beyond which a double holds nothing


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """Two noisy copies of one released vector, in its unit, and how far from independent they are.

    `sigma` is the standard deviation of the noise in each view. `dependence` is the total variation
    distance between the law of one entry's two views and that of two independent ones, at most: no
    test tells the two with an advantage above it. For a vector of n entries it is at most n times
    that. Views of a rehearsal are marked as it is: they protect nobody.
    """

    first: FloatArray
    second: FloatArray
    dependence: float
    sigma: float
    rehearsal: bool


def thin(release: Release[IntArray], *, bits: int = 1, noise: Noise | None = None) -> Views:
    """Make two views of a Gaussian release, so that what is chosen by one can be scored on the other.

    Views are y + w and y - w, w fresh noise of the release's sigma, each rounded to 2**bits lattice
    steps. Their noise has sqrt(2) times the release's sigma: each view is worth half of the
    release. The dependence left is 1 / (8 pi sigma**2), sigma in lattice steps; with bits = 0,
    where both are even or both odd, it is 1/2. More than one bit makes it no smaller at worst, but
    views smaller to keep.

    Privacy: what the release promised, at no further cost: views are a function of it and of fresh
    noise [mcmillan18, prop. 2.3]. They protect no more than it does: their mean is the release, up
    to rounding.

    Thin a release once and keep the views. Those of another call share the release's noise with
    them: the first of one call and the second of another have a correlation of 1/2, whatever
    `dependence` says of each pair. For the same reason whoever fits on the first view must not use
    the release itself.

    Only releases of Gaussian noise can be thinned so, and only as they came: noise that
    `Release.then` has changed is not of the law its entry names. `noise` is where w comes from, the
    operating system if not given: one stream, never restarted, and not that of the release from its
    beginning, or w would be z and the second view the exact values. So noise that is `known` is for
    rehearsals only.

    Args:
        release: A release of discrete or rounded Gaussian noise, as `Ledger.release` returned it.
        bits: How many of the lowest bits of both views are dropped, 0 to 20.
        noise: Where the fresh noise comes from; the operating system by default.

    Returns:
        Both views, in the release's unit, and how far from independent they are.

    Raises:
        InvalidParameter: The release is not Gaussian, was processed, or noise is known and it is no
            rehearsal.

    """
    if not isinstance(release, Release):
        raise InvalidParameter(
            f"only a release can be thinned, as `Ledger.release` returns it, got {type(release).__name__}; "
            "nothing was thinned"
        )
    if type(bits) is not int or not 0 <= bits <= MAX_BITS:
        raise InvalidParameter(f"bits must be 0 to {MAX_BITS}, got {bits}; nothing was thinned")
    if release.processed:
        raise InvalidParameter(
            "a release must be thinned as it came, this one was processed by `then`; nothing was thinned"
        )
    source = noise or SystemNoise()
    if source.known and not release.rehearsal:
        raise InvalidParameter(
            "known noise is for rehearsals, the release is a real one; nothing was thinned"
        )
    law = _law(release)
    values: Any = release.value  # a release read from a file may hold anything
    if not isinstance(values, np.ndarray) or values.dtype.kind != "i":
        raise InvalidParameter(
            f"only an array of integers can be thinned, the value is {type(values).__name__}; "
            "nothing was thinned"
        )
    fresh = _fresh(law)
    added = source.gaussian(fresh.sigma, values.size).reshape(values.shape)
    # The middle of 2**bits steps, so that rounding moves nothing on average.
    middle = math.ldexp((1 << bits) - 1, release.exponent - 1)
    both = (values + added, values - added)
    first, second = (lattice(y >> bits, release.exponent + bits) + middle for y in both)
    deviation = math.sqrt(law.deviation**2 + fresh.deviation**2 + (4**bits - 1) / 12)
    sigma = math.ldexp(deviation, release.exponent)
    return Views(first, second, dependence(law, bits=bits), sigma, release.rehearsal)


def dependence(law: GaussianLaw | RoundedGaussianLaw, *, bits: int = 1) -> float:
    """How far from independent two views of noise of this law are, at most, in total variation.

    With p0, p1 the chances that both are even or both odd, joint law minus product is p0 p1 (P0 -
    P1)(P0 - P1) for the laws P0, P1 of a rounded view given the shared bit, so the distance is 2 p0
    p1 d**2, d that of P0 and P1 for the worse place of x between the steps of two. Summed as it
    stands; from sigma 8 on it is d = 1 / (2 sqrt(pi) sigma), as the sum telescopes on both sides of
    0. More bits are a function of one.

    A rounded Gaussian is within t of the discrete one of its variance, and 3 t are added: one for
    the law of both views, two for those of each.

    >>> f"{dependence(GaussianLaw(10)):.6f} {1 / (800 * math.pi):.6f} {dependence(GaussianLaw(10), bits=0)}"
    '0.000398 0.000398 0.5'
    """
    sigma = float(_fresh(law).sigma)
    even = 1 / (8 * math.pi * sigma**2) if bits else 0.5
    left = even if sigma >= EVEN else _summed(sigma, bits)
    return min(1.0, left + 3 * _rounding(law)) if isinstance(law, RoundedGaussianLaw) else left


def _summed(sigma: float, bits: int) -> float:
    reach = 2 * math.ceil(REACH * sigma) + 2
    a = np.arange(-reach, reach)
    mass = np.exp(-((a / sigma) ** 2) / 4)
    odd = a % 2 == 1
    totals = float(mass[~odd].sum()), float(mass[odd].sum())
    # A pair is even by the product of two even weights: the shared bit leans as the squares of
    # both.
    lean = totals[1] / totals[0]
    spread = 2 * lean**2 / (1 + lean**2) ** 2
    if not bits or spread == 0:
        return spread
    apart = np.where(odd, -mass / totals[1], mass / totals[0])
    # Steps of two begin at even or at odd places, as x is.
    worst = max(
        float(np.abs(np.roll(apart, shift).reshape(-1, 2).sum(axis=1)).sum()) / 2
        for shift in (0, 1)
    )
    return spread * worst**2


def _fresh(law: GaussianLaw | RoundedGaussianLaw) -> GaussianLaw:
    """The law of w: that of the release, or the discrete Gaussian next to it, of variance sigma**2 + 1/12."""
    return (
        law
        if isinstance(law, GaussianLaw)
        else GaussianLaw(math.sqrt(float(law.sigma) ** 2 + 1 / 12))
    )


def _rounding(law: RoundedGaussianLaw) -> float:
    """Total variation between a rounded Gaussian and the discrete one next to it."""
    fresh = _fresh(law)
    reach = math.ceil(REACH * float(fresh.sigma))
    z = np.arange(-reach, reach + 1)
    return float(np.abs(law.pmf(z) - fresh.pmf(z)).sum()) / 2


def _law(release: Release[IntArray]) -> GaussianLaw | RoundedGaussianLaw:
    """The law of the noise on each entry, from the entry that paid for it."""
    mechanism = release.entry.mechanism
    if mechanism not in ("discrete-gaussian/1", "rounded-gaussian/1"):
        raise InvalidParameter(
            "only Gaussian noise splits into two independent parts: discrete-gaussian/1 or "
            f"rounded-gaussian/1, the release is of {mechanism}; nothing was thinned"
        )
    try:
        sigma = exact(release.entry.parameters["sigma"], name="sigma")
    except (KeyError, InvalidParameter):
        raise InvalidInput(
            "the entry of this release does not say how wide its noise is; nothing was thinned"
        ) from None
    return GaussianLaw(sigma) if mechanism == "discrete-gaussian/1" else RoundedGaussianLaw(sigma)
