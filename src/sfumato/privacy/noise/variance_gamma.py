"""The variance-gamma law: the difference of two Gamma variables, what noise in shares is at large scales."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray

# The table of the upper tail runs over logarithms of x, from next to nothing to where doubles end.
_FIRST, _LAST, _POINTS = math.log(1e-14), math.log(690.0), 6001


@dataclass(frozen=True, slots=True)
class VarianceGamma:
    """X - Y of two Gamma variables of one shape and scale 1; shape 1 is the Laplace law.

    The density is |x|**(a - 1/2) K_(a - 1/2)(|x|) / (sqrt(pi) Gamma(a) 2**(a - 1/2)), K the modified
    Bessel function and a the shape; the characteristic function is (1 + t**2)**-a [madan98].
    """

    shape: float

    @property
    def deviation(self) -> float:
        """The standard deviation: sqrt(2 shape)."""
        return math.sqrt(2 * self.shape)

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """The logarithm of the density; infinite at 0 for shapes up to 1/2."""
        from scipy.special import gammaln, kve

        a = self.shape
        away = np.abs(np.asarray(x, dtype=np.float64))
        known = gammaln(a) + 0.5 * math.log(math.pi) + (a - 0.5) * math.log(2)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = (a - 0.5) * np.log(away) + np.log(kve(a - 0.5, away)) - away - known
        # K_v(x) is about Gamma(v) (2 / x)**v / 2 where x is next to nothing.
        least = (
            gammaln(a - 0.5) - gammaln(a) - 0.5 * math.log(math.pi) - math.log(2)
            if a > 0.5
            else math.inf
        )
        return np.asarray(np.where(away < 1e-100, least, found))

    def log_upper(self, x: npt.ArrayLike) -> FloatArray:
        """The logarithm of P(X > x), for x from 0 on."""
        away = np.asarray(x, dtype=np.float64)
        if self.shape == 1:
            return -away - math.log(2)
        return _tail_spline(self.shape)(np.log(np.maximum(away, 1e-300)))

    def upper(self, x: npt.ArrayLike) -> FloatArray:
        """P(X > x), accurate in the upper tail too."""
        x = np.asarray(x, dtype=np.float64)
        tail = np.exp(self.log_upper(np.abs(x)))
        return np.asarray(np.where(x >= 0, tail, 1 - tail))

    def quantile(self, tail: float) -> float:
        """What X is above with chance `tail`."""
        if tail >= 0.5:
            return -self.quantile(1 - tail) if tail > 0.5 else 0.0
        if self.shape == 1:
            return -math.log(2 * tail)
        low, high = 0.0, 1.0
        while float(self.upper(high)) > tail:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if float(self.upper(middle)) > tail else (low, middle)
        return (low + high) / 2


class _Tail:
    """The logarithm of P(X > x) between points of ln x: cubic there, beyond them as its ends go on."""

    def __init__(self, law: VarianceGamma) -> None:
        from scipy.interpolate import CubicSpline

        step = (_LAST - _FIRST) / (_POINTS - 1)
        self.first, self.shape = _FIRST, law.shape
        t = np.linspace(_FIRST, _LAST, _POINTS)
        # Three points of Gauss's rule in each step; what is beyond the last is about its density.
        nodes, weights = np.polynomial.legendre.leggauss(3)
        inner = t[:-1, None] + step * (nodes + 1) / 2
        parts = np.exp(law.log_density(np.exp(inner)) + inner) @ weights * step / 2
        last = math.exp(float(law.log_density(math.exp(_LAST))))
        sums = np.append(np.cumsum(parts[::-1])[::-1], 0.0) + last
        self.spline = CubicSpline(t, np.log(sums))
        self.ends = float(sums[0]), float(np.log(sums[-1]))

    def __call__(self, t: FloatArray) -> FloatArray:
        # Below the first point what is missing of 1/2 is as x**min(2 a, 1).
        short = (0.5 - self.ends[0]) * np.exp(min(2 * self.shape, 1.0) * (t - self.first))
        later = np.clip(t, _LAST, 700.0)
        beyond = self.ends[1] + (self.shape - 1) * (later - _LAST) - np.exp(later) + math.exp(_LAST)
        inside = self.spline(np.clip(t, _FIRST, _LAST))
        low = np.log(0.5 - np.maximum(np.minimum(short, 0.49), 0.0))
        return np.asarray(np.where(t < _FIRST, low, np.where(t > _LAST, beyond, inside)))


@lru_cache(maxsize=32)
def _tail_spline(shape: float) -> _Tail:
    return _Tail(VarianceGamma(shape))
