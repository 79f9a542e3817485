"""Laws of integer noise, as values: what is drawn, what is charged for and what tests compare with.

    Law = LaplaceLaw | GaussianLaw | RoundedGaussianLaw

Parameters are doubles held as fractions, so that every source of noise can be handed exactly the
same number; others are rounded up, towards more noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.numbers import Number, double_above, plain

LARGEST_SCALE = 2**40
LARGEST_ROUNDED = 2**12


def _parameter(number: Number, name: str, *, smallest: Fraction, largest: int) -> Fraction:
    value = double_above(number, name=name)
    if not smallest <= value <= largest:
        raise InvalidParameter(
            f"{name} must lie in [{plain(smallest)}, {largest}] lattice units, got {plain(value)}; "
            "choose a coarser or finer lattice"
        )
    return value


@dataclass(frozen=True, slots=True, init=False)
class LaplaceLaw:
    """P(z) = (1 - q) / (1 + q) q**|z| with q = exp(-1/scale): the two-sided geometric law [ghosh12]."""

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        value = _parameter(scale, "scale", smallest=Fraction(1, 1024), largest=LARGEST_SCALE)
        object.__setattr__(self, "scale", value)

    def pmf(self, z: npt.ArrayLike) -> FloatArray:
        """P(Z = z)."""
        rate = 1 / float(self.scale)
        return np.asarray(
            np.tanh(rate / 2) * np.exp(-rate * np.abs(np.asarray(z, dtype=np.float64)))
        )

    def cdf(self, z: npt.ArrayLike) -> FloatArray:
        """P(Z <= z)."""
        rate, k = 1 / float(self.scale), np.floor(np.asarray(z, dtype=np.float64))
        share = 1 / (1 + np.exp(-rate))
        tail = np.exp(-rate * np.abs(k))
        return np.asarray(np.where(k >= 0, 1 - (1 - share) * tail, share * tail))

    @property
    def deviation(self) -> float:
        """The standard deviation: sqrt(2 q) / (1 - q)."""
        q = np.exp(-1 / float(self.scale))
        return float(np.sqrt(2 * q) / -np.expm1(-1 / float(self.scale)))


@dataclass(frozen=True, slots=True, init=False)
class GaussianLaw:
    """P(z) proportional to exp(-z**2 / (2 sigma**2)) on the integers [canonne20, def. 1]."""

    sigma: Fraction

    def __init__(self, sigma: Number) -> None:
        value = _parameter(sigma, "sigma", smallest=Fraction(1, 64), largest=2**30)
        object.__setattr__(self, "sigma", value)

    def pmf(self, z: npt.ArrayLike) -> FloatArray:
        """P(Z = z)."""
        sigma = float(self.sigma)
        return np.asarray(
            np.exp(-((np.asarray(z, dtype=np.float64) / sigma) ** 2) / 2) / _theta(sigma)
        )

    def cdf(self, z: npt.ArrayLike) -> FloatArray:
        """P(Z <= z): summed up to sigma 2**12, above that the Gaussian integral with its first correction."""
        k, sigma = np.floor(np.asarray(z, dtype=np.float64)), float(self.sigma)
        if sigma > LARGEST_ROUNDED:
            # Euler-Maclaurin: the sum to k is the integral to k + 1/2 minus f'(k + 1/2) / 24, then
            # O(sigma**-4).
            x = (k + 0.5) / sigma
            density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
            return np.asarray(_phi(x) + x * density / (24 * sigma**2))
        sums = _sums(self)
        reach = sums.size // 2
        return np.asarray(sums[np.clip(k, -reach, reach).astype(np.int64) + reach])

    @property
    def deviation(self) -> float:
        """The standard deviation: sigma up to a relative 1e-16 from sigma 1 on, computed exactly below."""
        sigma = float(self.sigma)
        if sigma > 4:
            return sigma
        z = np.arange(-200, 201)
        return float(np.sqrt(np.sum(z**2 * self.pmf(z))))


@dataclass(frozen=True, slots=True, init=False)
class RoundedGaussianLaw:
    """P(z) = Phi((z + 1/2) / sigma) - Phi((z - 1/2) / sigma): a continuous Gaussian, rounded."""

    sigma: Fraction

    def __init__(self, sigma: Number) -> None:
        value = _parameter(sigma, "sigma", smallest=Fraction(1, 64), largest=LARGEST_ROUNDED)
        object.__setattr__(self, "sigma", value)

    def pmf(self, z: npt.ArrayLike) -> FloatArray:
        """P(Z = z)."""
        x, sigma = np.abs(np.asarray(z, dtype=np.float64)), float(self.sigma)
        # By symmetry taken in the lower tail, where the difference of two small numbers keeps its
        # digits.
        return np.asarray(_phi(-(x - 0.5) / sigma) - _phi(-(x + 0.5) / sigma))

    def cdf(self, z: npt.ArrayLike) -> FloatArray:
        """P(Z <= z)."""
        return np.asarray(
            _phi((np.floor(np.asarray(z, dtype=np.float64)) + 0.5) / float(self.sigma))
        )

    @property
    def deviation(self) -> float:
        """The standard deviation: sqrt(sigma**2 + 1/12) up to a relative 1e-16 from sigma 2 on."""
        sigma = float(self.sigma)
        if sigma > 4:
            return float(np.sqrt(sigma**2 + 1 / 12))
        z = np.arange(-200, 201)
        return float(np.sqrt(np.sum(z**2 * self.pmf(z))))


Law = LaplaceLaw | GaussianLaw | RoundedGaussianLaw


@lru_cache(maxsize=16)
def _sums(law: GaussianLaw) -> FloatArray:
    """P(Z <= z) for z from -reach to reach, beyond which a double holds nothing."""
    reach = int(np.ceil(40 * float(law.sigma))) + 1
    return np.clip(np.cumsum(law.pmf(np.arange(-reach, reach + 1))), 0, 1)


def _phi(x: FloatArray) -> FloatArray:
    """The standard normal distribution function; to draw noise nobody needs it, nor SciPy."""
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


@lru_cache(maxsize=256)
def _theta(sigma: float) -> float:
    """The sum of exp(-k**2 / (2 sigma**2)) over all integers: a Jacobi theta function."""
    import mpmath

    return (
        float(mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * mpmath.mpf(sigma) ** 2))))
        if sigma < 8
        # Poisson summation: sqrt(2 pi) sigma up to a factor 1 + 2 exp(-2 pi**2 sigma**2) < 1 +
        # 1e-548.
        else (float(np.sqrt(2 * np.pi) * sigma))
    )
