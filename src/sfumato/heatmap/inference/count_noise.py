"""The law of the noise on counts, at scale 1: all that inference asks of it.

Counts of one hand have Laplace noise; sums of several parties have noise in shares, which is a
variance-gamma law of a shape above 1 (docs/proofs/shared-noise.md). Whoever needs a density, a
quantile, a bound or draws asks the law; nobody asks which one it is.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.privacy.noise import VarianceGamma

# Corrections are tabled over ln(1 + x) in steps of 1 / FINENESS; beyond the last they go on straight,
# as powers of x do.
FINENESS, LAST = 64, 12
POINTS = LAST * FINENESS + 1
# Sums over the upper half run over so many points, up to so far: with exp(-0.02 s) little is beyond.
_STEPS, _FAR = 8001, 4000.0


class CountNoise(Hashable, Protocol):
    """A symmetric law at scale 1."""

    @property
    def shape(self) -> Fraction:
        """How many Laplace draws it is like: shapes of independent noise of one scale add up."""

    @property
    def variance(self) -> float:
        """Its variance: twice the shape."""

    @property
    def corrections(self) -> FloatArray:
        """What is added to -x [0] and to -x - ln 2 [1] to give the logarithms of density and upper tail.

        Rows over POINTS of ln(1 + x), the first up to a constant; of no points where nothing is added.
        """

    def quantile(self, tail: float) -> float:
        """What it is above with chance `tail`, below 1/2."""

    def hidden_excess(self, k: FloatArray) -> FloatArray:
        """The most of (exp(k s) - 1) P(X > s) over s >= 0, for 0 < k < 1."""

    def kept_excess(self, k: FloatArray) -> FloatArray:
        """E exp(k max(X, 0)) - 1, for 0 < k < 1."""

    def log_moment(self, draws: int, argument: FloatArray) -> FloatArray:
        """The logarithm of E exp(argument |sum of so many draws|), or a little more; arguments below 1."""

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draws for simulations."""


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """The density exp(-|x|) / 2."""

    shape: ClassVar[Fraction] = Fraction(1)
    variance: ClassVar[float] = 2.0

    @property
    def corrections(self) -> FloatArray:
        """None."""
        return np.empty((2, 0))

    def quantile(self, tail: float) -> float:
        """Ln(1 / (2 tail))."""
        return math.log(1 / (2 * tail))

    def hidden_excess(self, k: FloatArray) -> FloatArray:
        """Where exp(k s) is 1 / (1 - k)."""
        return np.asarray(k * (1 - k) ** (1 / k - 1) / 2)

    def kept_excess(self, k: FloatArray) -> FloatArray:
        """Half of 1 / (1 - k) - 1."""
        return np.asarray(k / (2 - 2 * k))

    def log_moment(self, draws: int, argument: FloatArray) -> FloatArray:
        """By the mixture that |sum| is: Gamma(k) with chance 2**(k + 1 - 2 m) C(2 m - k - 1, m - k).

        >>> LAPLACE.log_moment(1, np.array([0.5])).round(6)
        array([0.693147])
        >>> (LAPLACE.log_moment(4, np.array([1e-9])) * 1e9).round(4)
        array([2.1875])
        """
        single = -np.log1p(-argument)
        if draws == 1:
            return np.asarray(single)
        k = np.arange(1, draws + 1)[:, None]
        terms = _log_chances(draws)[:, None] + k * single
        return np.asarray(np.logaddexp.reduce(terms, axis=0))

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Of NumPy."""
        return np.asarray(rng.laplace(size=size))


@lru_cache(maxsize=64)
def _log_chances(draws: int) -> FloatArray:
    """The logarithm of the chance of each Gamma(k) in the sum of so many draws of Laplace noise."""
    k = np.arange(1, draws + 1)
    # Python's own: to load SciPy's takes longer than a map.
    log_gamma = np.array([math.inf, *map(math.lgamma, range(1, 2 * draws))])
    binomial = log_gamma[2 * draws - k] - log_gamma[draws - k + 1] - log_gamma[draws]
    return np.asarray((k + 1 - 2 * draws) * math.log(2) + binomial)


LAPLACE = LaplaceNoise()


@dataclass(frozen=True, slots=True)
class SharedCountNoise:
    """The sum of all parties' shares: the difference of two Gamma variables of a shape above 1."""

    shape: Fraction

    @property
    def variance(self) -> float:
        """Twice the shape."""
        return 2 * float(self.shape)

    @property
    def corrections(self) -> FloatArray:
        """From the density and the tail of the variance-gamma law."""
        return _corrections(self.shape)

    def quantile(self, tail: float) -> float:
        """Searched for."""
        return VarianceGamma(float(self.shape)).quantile(tail)

    def hidden_excess(self, k: FloatArray) -> FloatArray:
        """The largest over points of s; each stands for what lies up to the next."""
        s, log_upper = _upper_half(self.shape)
        several, which = np.unique(k, return_inverse=True)
        # Between points the first factor is below its value at the next, the second at the last.
        found = [
            float((np.exp(one * s[1:] + log_upper[:-1]) * -np.expm1(-one * s[1:])).max())
            for one in several
        ]
        return np.array(found)[which].reshape(np.shape(k))

    def kept_excess(self, k: FloatArray) -> FloatArray:
        """By parts: k times the integral of exp(k s) P(X > s)."""
        s, log_upper = _upper_half(self.shape)
        several, which = np.unique(k, return_inverse=True)
        steps = np.diff(s)
        found = [
            one * float(np.exp(one * s[1:] + log_upper[:-1]) @ steps)  # from above
            for one in several
        ]
        return np.array(found)[which].reshape(np.shape(k))

    def log_moment(self, draws: int, argument: FloatArray) -> FloatArray:
        """At most that of as many Laplace draws as the shapes add up to, rounded up.

        One more independent draw of mean 0 can only raise E exp(a |X|), by Jensen's inequality.
        """
        return LAPLACE.log_moment(math.ceil(draws * self.shape), argument)

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """The difference of two Gamma draws."""
        shape = float(self.shape)
        return np.asarray(rng.standard_gamma(shape, size) - rng.standard_gamma(shape, size))


def count_noise(shape: Fraction) -> CountNoise:
    """The law of noise of a shape: 1 for one hand's Laplace noise, more for noise in shares.

    Args:
        shape: That of the sum of all shares, from 1 on.

    Returns:
        The law at scale 1.

    """
    return LAPLACE if shape == 1 else SharedCountNoise(shape)


@lru_cache(maxsize=16)
def _corrections(shape: Fraction) -> npt.NDArray[np.float64]:
    law = VarianceGamma(float(shape))
    x = np.expm1(np.arange(POINTS) / FINENESS)
    # The density up to a constant: 0 where x is.
    density = law.log_density(x) + x
    found = np.stack([density - density[0], law.log_upper(x) + x + math.log(2)])
    found.setflags(write=False)
    return found


@lru_cache(maxsize=16)
def _upper_half(shape: Fraction) -> tuple[FloatArray, FloatArray]:
    s = np.expm1(np.linspace(0.0, math.log1p(_FAR), _STEPS))
    return s, VarianceGamma(float(shape)).log_upper(s)
