"""The law of noise in shares: the difference of two Polya variables, as a value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.numbers import Number, exact
from sfumato.privacy.accounting.trust import MOST_DEVICES, MOST_NOISE
from sfumato.privacy.noise.laws import LaplaceLaw
from sfumato.privacy.noise.variance_gamma import VarianceGamma

# Up to this scale all probabilities are stepped through; above it those next to 0 alone, and the
# others are the variance-gamma law's with their first correction.
STEPPED = 1024
NEXT_TO_ZERO = 64
REACH = 60  # scales: beyond lies less than 1e-24


@dataclass(frozen=True, slots=True, init=False)
class PolyaLaw:
    """X - Y of two Polya variables of one shape, P(k) = C(k + r - 1, k) (1 - q)**r q**k, q = exp(-1/scale).

    Shape 1 is `LaplaceLaw(scale)`, and shapes add up: n draws of shape 1/m have together shape n/m.
    No table has this law, so no key draws it; `polya` does, exactly, from the system's randomness.
    """

    scale: Fraction
    shape: Fraction

    def __init__(self, scale: Number, shape: Number = 1) -> None:
        value = exact(shape, name="shape")
        if not (0 < value <= MOST_NOISE and value.denominator <= MOST_DEVICES):
            raise InvalidParameter(
                f"shape must be a fraction in (0, {MOST_NOISE}] of denominator at most "
                f"{MOST_DEVICES}, got {shape}; nothing was drawn"
            )
        object.__setattr__(self, "scale", LaplaceLaw(scale).scale)
        object.__setattr__(self, "shape", value)

    @property
    def deviation(self) -> float:
        """The standard deviation: sqrt(shape) times that of Laplace noise of the same scale."""
        return math.sqrt(self.shape) * LaplaceLaw(self.scale).deviation

    @property
    def limit(self) -> VarianceGamma:
        """What the noise divided by its scale is at large scales."""
        return VarianceGamma(float(self.shape))

    def log_pmf(self, z: npt.ArrayLike) -> FloatArray:
        """The logarithm of P(Z = z)."""
        away = np.abs(np.asarray(z, dtype=np.float64))
        steps = _steps(self)
        reach = steps.size - 1
        near = steps[np.minimum(away, reach).astype(np.int64)]
        if self.scale > STEPPED:
            return np.asarray(np.where(away <= reach, near, _far(self, np.maximum(away, reach))))
        # From far out on, a power of z beside the geometric decay.
        beyond = np.maximum(away, reach)
        more = (float(self.shape) - 1) * np.log(beyond / reach) - (beyond - reach) / float(
            self.scale
        )
        return near + more

    def pmf(self, z: npt.ArrayLike) -> FloatArray:
        """P(Z = z)."""
        return np.exp(self.log_pmf(z))

    def cdf(self, z: npt.ArrayLike) -> FloatArray:
        """P(Z <= z): summed near 0 and at small scales; else an integral, within 2 / scale**2."""
        k = np.floor(np.asarray(z, dtype=np.float64))
        # By symmetry P(Z > k) for k >= 0 is all that is needed.
        above = np.where(k >= 0, k, -k - 1)
        tails = _tails(self)
        reach = tails.size - 1
        tail = tails[np.minimum(above, reach).astype(np.int64)]
        if self.scale > STEPPED:
            far = self.limit.upper(2 * math.sinh(0.5 / float(self.scale)) * (above + 0.5))
            tail = np.where(above < reach, tail, far)
        else:
            tail = np.where(above < reach, tail, 0.0)
        return np.asarray(np.where(k >= 0, 1 - tail, tail))

    def quantile(self, share: npt.ArrayLike) -> IntArray:
        """The least z with P(Z <= z) at least each share, for shares in (0, 1)."""
        wanted = np.asarray(share, dtype=np.float64)
        if not np.all((wanted > 0) & (wanted < 1)):
            raise InvalidParameter(
                f"shares of a law lie in (0, 1), got {wanted}; nothing was computed"
            )
        low, high = np.full(wanted.shape, -(2**53)), np.full(wanted.shape, 2**53)
        while np.any(high - low > 1):
            middle = (low + high) // 2
            reached = self.cdf(middle) >= wanted
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.asarray(high, dtype=np.int64)


@lru_cache(maxsize=32)
def _steps(law: PolyaLaw) -> FloatArray:
    """The logarithms of P(0), P(1), ... by the recurrence that its generating function has.

    (1 + q**2) z a_z = q ((z - 1 + r) a_(z-1) + (z + 1 - r) a_(z+1)): from far out towards 0, which is
    how a solution that falls with z is stepped through, as ratios of neighbors.
    """
    scale, r = float(law.scale), float(law.shape)
    q, wide = math.exp(-1 / scale), law.scale > STEPPED
    last = NEXT_TO_ZERO if wide else int(REACH * scale) + NEXT_TO_ZERO
    ratio = q
    if wide:
        ends = _far(law, np.array([last, last + 1], dtype=np.float64))
        ratio = math.exp(ends[1] - ends[0])
    ratios = np.empty(last)
    for z in range(last, 0, -1):
        ratio = q * (z - 1 + r) / ((1 + q * q) * z - q * (z + 1 - r) * ratio)
        ratios[z - 1] = ratio
    with np.errstate(divide="ignore"):
        logs = np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    whole = ends[0] - logs[-1] if wide else -math.log(1 + 2 * float(np.exp(logs[1:]).sum()))
    return np.asarray(logs + whole)


@lru_cache(maxsize=32)
def _tails(law: PolyaLaw) -> FloatArray:
    """P(Z > k) for k = 0, 1, ...: half of what P(0) leaves, less what comes until there."""
    mass = np.exp(_steps(law))
    if law.scale > STEPPED:
        return np.asarray((1 - mass[0]) / 2 - np.concatenate([[0.0], np.cumsum(mass[1:])]))
    return np.asarray(np.append(np.cumsum(mass[:0:-1])[::-1], 0.0))


def _far(law: PolyaLaw, z: FloatArray) -> FloatArray:
    """The logarithm of P(z) away from 0 at large scales.

    With c = 2 sinh(1 / (2 scale)) the characteristic function is (1 + 4 sin(t/2)**2 / c**2)**-r; to the
    next order in t that is f_r + (r c**2 / 12) (f_(r-1) - 2 f_r + f_(r+1)), f_s the variance-gamma
    density of shape s.
    """
    from scipy.special import kve, rgamma

    c, r = 2 * math.sinh(0.5 / float(law.scale)), float(law.shape)
    x = c * z
    ratios = [
        kve(s - 0.5, x) / kve(r - 0.5, x) * (x / 2) ** (s - r) * rgamma(s) / rgamma(r)
        for s in (r - 1, r + 1)
    ]
    more = r * c * c / 12 * (ratios[0] - 2 + ratios[1])
    return np.asarray(math.log(c) + law.limit.log_density(x) + np.log1p(more))
