"""Noises that perturb a leader, with their tails and hazard rates in closed form.

The leader is argmin(L - Z): the hazard rate of Z, density over right tail, then bounds how much a
choice can move in one round [mcmillan18, cor. 13.6]. With argmin(L + Z), as printed there, it does
not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter

HUGE = 750.0  # exp(-HUGE) is 0 in floating point


@dataclass(frozen=True, slots=True)
class Laplace:
    """Two-sided exponential noise, density exp(-|x| / scale) / (2 scale)."""

    scale: float

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z <= x)."""
        return self.sf(-np.asarray(x, dtype=np.float64))

    def sf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z > x)."""
        z = _over(x, self.scale)
        half = 0.5 * np.exp(-np.abs(z))
        return np.where(z > 0, half, 1 - half)

    def pdf(self, x: npt.ArrayLike) -> FloatArray:
        """Density at x."""
        return np.exp(-np.abs(_over(x, self.scale))) / (2 * self.scale)

    def ppf(self, u: npt.ArrayLike) -> FloatArray:
        """The x with cdf(x) = u."""
        return -self.isf(u)

    def isf(self, q: npt.ArrayLike) -> FloatArray:
        """The x with sf(x) = q."""
        q = probabilities(q)
        with np.errstate(divide="ignore"):
            return self.scale * np.where(q < 0.5, -np.log(2 * q), np.log(2 * (1 - q)))

    @property
    def mean(self) -> float:
        """0, by symmetry."""
        return 0.0

    @property
    def hazard(self) -> float:
        """1 / scale, reached everywhere right of 0."""
        return 1 / self.scale


@dataclass(frozen=True, slots=True)
class Gumbel:
    """Noise of largest values, cdf exp(-exp(-x / scale)); its perturbed leader is Hedge at rate 1 / scale."""

    scale: float

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z <= x)."""
        return np.exp(-self._left(x))

    def sf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z > x)."""
        return -np.expm1(-self._left(x))

    def pdf(self, x: npt.ArrayLike) -> FloatArray:
        """Density at x."""
        y = self._left(x)
        return y * np.exp(-y) / self.scale

    def ppf(self, u: npt.ArrayLike) -> FloatArray:
        """The x with cdf(x) = u."""
        with np.errstate(divide="ignore"):
            return -self.scale * np.log(-np.log(probabilities(u)))

    def isf(self, q: npt.ArrayLike) -> FloatArray:
        """The x with sf(x) = q."""
        with np.errstate(divide="ignore"):
            return -self.scale * np.log(-np.log1p(-probabilities(q)))

    @property
    def mean(self) -> float:
        """Euler's constant times the scale."""
        return float(np.euler_gamma) * self.scale

    @property
    def hazard(self) -> float:
        """1 / scale, approached far to the right: with y = exp(-x / scale) it is y / (exp(y) - 1) / scale."""
        return 1 / self.scale

    def _left(self, x: npt.ArrayLike) -> FloatArray:
        return np.exp(np.minimum(-_over(x, self.scale), math.log(HUGE)))


@dataclass(frozen=True, slots=True)
class Frechet:
    """Heavy-tailed noise of largest values, cdf exp(-(x / scale) ** -shape) for x > 0."""

    shape: float
    scale: float

    def __post_init__(self) -> None:
        require_positive("shape", self.shape)
        require_positive("scale", self.scale)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z <= x)."""
        return np.exp(-self._left(x))

    def sf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z > x)."""
        return -np.expm1(-self._left(x))

    def pdf(self, x: npt.ArrayLike) -> FloatArray:
        """Density at x."""
        y = self._left(x)
        return self.shape * y ** (1 + 1 / self.shape) * np.exp(-y) / self.scale

    def ppf(self, u: npt.ArrayLike) -> FloatArray:
        """The x with cdf(x) = u."""
        with np.errstate(divide="ignore", over="ignore"):
            return self.scale * (-np.log(probabilities(u))) ** (-1 / self.shape)

    def isf(self, q: npt.ArrayLike) -> FloatArray:
        """The x with sf(x) = q."""
        with np.errstate(divide="ignore", over="ignore"):
            return self.scale * (-np.log1p(-probabilities(q))) ** (-1 / self.shape)

    @property
    def mean(self) -> float:
        """Gamma(1 - 1 / shape) times the scale, infinite for shapes up to 1."""
        return self.scale * math.gamma(1 - 1 / self.shape) if self.shape > 1 else math.inf

    @property
    def hazard(self) -> float:
        """The peak of shape y**c / (exp(y) - 1) / scale, c = 1 + 1 / shape, y = (x / scale) ** -shape.

        It lies where y = c (1 - exp(-y)). For shapes from 1 it is below shape / scale; the bound 2
        shape / scale in use [abernethy15] is more than twice what is needed.
        """
        c = 1 + 1 / self.shape
        y = min(
            c, 4 / self.shape
        )  # right of the root of a convex function, so that Newton's steps only fall
        for _ in range(60):
            y -= (y + c * math.expm1(-y)) / (1 - c * math.exp(-y))
        return float(self.shape * y**c / math.expm1(y) / self.scale)

    def _left(self, x: npt.ArrayLike) -> FloatArray:
        # Beyond HUGE the cdf is 0 in floating point, and powers of the true value could be
        # infinite.
        z = np.maximum(_over(x, self.scale), HUGE ** (-1 / self.shape))
        return np.where(np.asarray(x) > 0, z**-self.shape, HUGE)


@dataclass(frozen=True, slots=True)
class Weibull:
    """Stretched exponential noise, tail exp(-(x / scale) ** shape) for x > 0."""

    shape: float
    scale: float

    def __post_init__(self) -> None:
        require_positive("shape", self.shape)
        require_positive("scale", self.scale)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z <= x)."""
        return -np.expm1(-(self._right(x) ** self.shape))

    def sf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z > x)."""
        return np.exp(-(self._right(x) ** self.shape))

    def pdf(self, x: npt.ArrayLike) -> FloatArray:
        """Density at x; for shapes below 1 it is infinite at 0."""
        z = self._right(x)
        with np.errstate(divide="ignore"):
            density = self.shape / self.scale * z ** (self.shape - 1) * np.exp(-(z**self.shape))
        return np.where(np.asarray(x) < 0, 0.0, density)

    def ppf(self, u: npt.ArrayLike) -> FloatArray:
        """The x with cdf(x) = u."""
        with np.errstate(divide="ignore"):
            return self.scale * (-np.log1p(-probabilities(u))) ** (1 / self.shape)

    def isf(self, q: npt.ArrayLike) -> FloatArray:
        """The x with sf(x) = q."""
        with np.errstate(divide="ignore"):
            return self.scale * np.abs(np.log(probabilities(q))) ** (1 / self.shape)

    @property
    def mean(self) -> float:
        """Gamma(1 + 1 / shape) times the scale."""
        return self.scale * math.gamma(1 + 1 / self.shape)

    @property
    def hazard(self) -> float:
        """1 / scale for shape 1; otherwise (shape / scale) (x / scale) ** (shape - 1) has no bound.

        For shapes below 1 it is infinite at 0, above 1 far to the right: [mcmillan18, thm. 13.1]
        names Weibull noise without this reservation.
        """
        return 1 / self.scale if self.shape == 1 else math.inf

    def _right(self, x: npt.ArrayLike) -> FloatArray:
        return np.clip(_over(x, self.scale), 0.0, HUGE ** (1 / self.shape))


@dataclass(frozen=True, slots=True)
class Pareto:
    """Heavy-tailed noise above `scale`, tail (x / scale) ** -shape."""

    shape: float
    scale: float

    def __post_init__(self) -> None:
        require_positive("shape", self.shape)
        require_positive("scale", self.scale)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z <= x)."""
        return -np.expm1(-self.shape * np.log(self._right(x)))

    def sf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z > x)."""
        return self._right(x) ** -self.shape

    def pdf(self, x: npt.ArrayLike) -> FloatArray:
        """Density at x."""
        density = self.shape / self.scale * self._right(x) ** (-self.shape - 1)
        return np.where(np.asarray(x) < self.scale, 0.0, density)

    def ppf(self, u: npt.ArrayLike) -> FloatArray:
        """The x with cdf(x) = u."""
        with np.errstate(divide="ignore", over="ignore"):
            return self.scale * np.exp(-np.log1p(-probabilities(u)) / self.shape)

    def isf(self, q: npt.ArrayLike) -> FloatArray:
        """The x with sf(x) = q."""
        with np.errstate(divide="ignore", over="ignore"):
            return self.scale * probabilities(q) ** (-1 / self.shape)

    @property
    def mean(self) -> float:
        """The scale times shape / (shape - 1), infinite for shapes up to 1."""
        return self.scale * self.shape / (self.shape - 1) if self.shape > 1 else math.inf

    @property
    def hazard(self) -> float:
        """As large as shape / scale, reached at the left end."""
        return self.shape / self.scale

    def _right(self, x: npt.ArrayLike) -> FloatArray:
        return np.maximum(_over(x, self.scale), 1.0)


@dataclass(frozen=True, slots=True)
class Exponential:
    """One-sided noise with tail exp(-x / scale): the leader of Kalai and Vempala."""

    scale: float

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z <= x)."""
        return -np.expm1(-np.maximum(_over(x, self.scale), 0.0))

    def sf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z > x)."""
        return np.exp(-np.maximum(_over(x, self.scale), 0.0))

    def pdf(self, x: npt.ArrayLike) -> FloatArray:
        """Density at x."""
        return np.where(np.asarray(x) < 0, 0.0, self.sf(x) / self.scale)

    def ppf(self, u: npt.ArrayLike) -> FloatArray:
        """The x with cdf(x) = u."""
        with np.errstate(divide="ignore"):
            return -self.scale * np.log1p(-probabilities(u))

    def isf(self, q: npt.ArrayLike) -> FloatArray:
        """The x with sf(x) = q."""
        with np.errstate(divide="ignore"):
            return -self.scale * np.log(probabilities(q))

    @property
    def mean(self) -> float:
        """The scale."""
        return self.scale

    @property
    def hazard(self) -> float:
        """1 / scale, everywhere."""
        return 1 / self.scale


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Normal noise of standard deviation sigma."""

    sigma: float

    def __post_init__(self) -> None:
        require_positive("sigma", self.sigma)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z <= x)."""
        return np.asarray(special.ndtr(_over(x, self.sigma)))

    def sf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z > x)."""
        return np.asarray(special.ndtr(-_over(x, self.sigma)))

    def pdf(self, x: npt.ArrayLike) -> FloatArray:
        """Density at x."""
        return np.exp(-0.5 * _over(x, self.sigma) ** 2) / (math.sqrt(2 * math.pi) * self.sigma)

    def ppf(self, u: npt.ArrayLike) -> FloatArray:
        """The x with cdf(x) = u."""
        return self.sigma * np.asarray(special.ndtri(probabilities(u)))

    def isf(self, q: npt.ArrayLike) -> FloatArray:
        """The x with sf(x) = q."""
        return -self.ppf(q)

    @property
    def mean(self) -> float:
        """0, by symmetry."""
        return 0.0

    @property
    def hazard(self) -> float:
        """Infinite: far to the right it grows like x / sigma**2."""
        return math.inf


Perturbation = Laplace | Gumbel | Frechet | Weibull | Pareto | Exponential | Gaussian


def _over(x: npt.ArrayLike, scale: float) -> FloatArray:
    return np.asarray(x, dtype=np.float64) / scale


def probabilities(u: npt.ArrayLike) -> FloatArray:
    """Numbers in [0, 1] as an array."""
    u = np.asarray(u, dtype=np.float64)
    if not np.all((u >= 0) & (u <= 1)):
        raise InvalidParameter("chances must lie in [0, 1], got others; nothing was computed")
    return u


def require_positive(name: str, value: float) -> None:
    """Refuse a parameter that is not above 0 and finite."""
    if not (math.isfinite(value) and value > 0):
        raise InvalidParameter(f"{name} must be above 0 and finite, got {value}; no noise was made")
