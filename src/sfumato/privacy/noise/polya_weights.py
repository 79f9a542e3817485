"""Weights of a Polya variable: as doubles with a proven error, and as intervals as narrow as asked.

A Polya (negative binomial) variable of shape r <= 1 and ratio q = exp(-1/scale) has

    P(k) = (1 - q)**r w(k),   w(k) = u_k q**k,   u_k = Gamma(k + r) / (Gamma(r) k!).

The doubles are made by additions, multiplications and divisions alone, which IEEE 754 rounds
correctly: no library's logarithm decides a draw. docs/proofs/shared-noise.md has their error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
from mpmath import iv
from mpmath.libmp import to_rational

from sfumato._types import FloatArray, IntArray

ERROR = 2.0**-32
"""Of a double made here, relative to the weight: proven to be 2**-39 at most."""
LN2 = 0.6931471805599453
# Below it logarithms of u_k are kept, from it on they are Stirling's, whose fourth term is below
# 2**-40 there.
KEPT = 64
# Powers of the series: the first that is left out is below 2**-56 of its sum.
_LOGARITHM = tuple(1 / (2 * i + 1) for i in range(12))
_NEAR_ONE = tuple(1 / i for i in range(1, 10))
_EXPONENTIAL = tuple(1 / math.factorial(i) for i in range(16))
_LOWEST = -600.0


def log_weights(k: IntArray, parts: int, scale: float) -> FloatArray:
    """The logarithm of w(k) of shape 1 / parts, for 0 <= k < 2**52, within 2**-40 or 2**-49 of k / scale."""
    x, kept = k.astype(np.float64), _kept_logarithms(parts)
    near = kept[np.minimum(k, KEPT - 1)]
    # lnG(z - d) - lnG(z) with z = k + 1 and d = 1 - r, by Stirling's series of both.
    d, z = 1 - 1 / parts, np.maximum(x, KEPT) + 1
    y = d / z
    bent = -y * _horner(y, _NEAR_ONE)
    less = z - d
    waves = (1 / less - 1 / z) / 12 - (1 / (less * less * less) - 1 / (z * z * z)) / 360
    far = (less - 0.5) * bent - d * logarithm(z) + d + waves - _log_gamma_of(parts)
    return np.where(k < KEPT, near, far) - x / scale


def logarithm(x: FloatArray) -> FloatArray:
    """The logarithm of doubles from 1 on: x = m 2**e m near 1, ln m = 2 artanh((m - 1) / (m + 1))."""
    m, e = np.frexp(x)
    small = m < 0.7071067811865476
    m, power = np.where(small, 2 * m, m), (e - small).astype(np.float64)
    t = (m - 1) / (m + 1)
    return np.asarray(power * LN2 + 2 * t * _horner(t * t, _LOGARITHM))


def exponential(x: FloatArray) -> FloatArray:
    """e**x of doubles up to 1; of those below -600 that of -600."""
    x = np.maximum(x, _LOWEST)
    n = np.rint(x / LN2)
    return np.asarray(np.ldexp(_horner(x - n * LN2, _EXPONENTIAL), n.astype(np.int64)))


def _horner(x: FloatArray, powers: tuple[float, ...]) -> FloatArray:
    found = np.full(x.shape, powers[-1])
    for factor in powers[-2::-1]:
        found = found * x + factor
    return found


@lru_cache(maxsize=64)
def _kept_logarithms(parts: int) -> FloatArray:
    with _interval(128):
        u, found = iv.mpf(1), []
        for k in range(KEPT):
            found.append(float(mpmath.mpf(iv.log(u).mid)))
            u = u * (k * parts + 1) / (parts * (k + 1))
    return np.array(found)


@lru_cache(maxsize=64)
def _log_gamma_of(parts: int) -> float:
    with _interval(128):
        return float(mpmath.mpf(_log_gamma(Fraction(1, parts)).mid))


def weight_between(k: int, parts: int, scale: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Two fractions with w(k) between them, apart by about 2**-bits of it or, for large k, somewhat more."""
    with _interval(bits + 16):
        power = _log_factor(k, parts, bits + 16) - _real(k / scale)
        low, high = iv.exp(power)._mpi_
    return Fraction(*map(int, to_rational(low))), Fraction(*map(int, to_rational(high)))


@lru_cache(maxsize=4096)
def _log_factor(k: int, parts: int, bits: int) -> Any:
    """An interval around ln u_k, which no scale changes: a zoom has noise of dozens of scales."""
    with _interval(bits):
        r = Fraction(1, parts)
        return _log_gamma(k + r) - _log_gamma(r) - _log_gamma(Fraction(k + 1))


def log_of(number: Fraction) -> float:
    """The double nearest to the logarithm of a fraction, or next to it."""
    with _interval(128):
        return float(mpmath.mpf(iv.log(_real(number)).mid))


def _log_gamma(x: Fraction) -> Any:
    """An interval around ln Gamma(x): Stirling's series at x + h, whose error the next term bounds."""
    bits = iv.prec
    shift = max(0, bits // 4 + 8 - int(x))
    product = iv.mpf(1)
    for step in range(shift):
        product *= _real(x + step)
    z = _real(x + shift)
    found = (z - 0.5) * iv.log(z) - z + iv.log(2 * iv.pi) / 2 - iv.log(product)
    square, power = z * z, z
    for i in range(1, bits):
        top, bottom = mpmath.bernfrac(2 * i)
        term = _real(Fraction(int(top), int(bottom) * 2 * i * (2 * i - 1))) / power
        if abs(term).b < mpmath.ldexp(1, -bits):
            break
        found += term
        power *= square
    return found + abs(term) * iv.mpf([-1, 1])


def _real(number: Fraction) -> Any:
    return iv.mpf(number.numerator) / number.denominator


@contextmanager
def _interval(bits: int) -> Iterator[None]:
    before, iv.prec = iv.prec, bits
    try:
        yield
    finally:
        iv.prec = before
