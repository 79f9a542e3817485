"""Permute-and-flip: choose a large entry privately, by exact coins."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.calibration import laplace_scale
from sfumato.privacy.accounting.losses import PureDP
from sfumato.privacy.accounting.numbers import Number
from sfumato.privacy.ledger.guarded import Bound
from sfumato.privacy.mechanisms._additive import pure_epsilon
from sfumato.privacy.noise.laws import LaplaceLaw
from sfumato.privacy.noise.protocol import Noise


@dataclass(frozen=True, slots=True, init=False)
class PermuteAndFlip:
    """Choose a large entry: visit all in random order, take one with probability exp(-gap / scale).

    `gap` is its distance to the largest entry. The exponential mechanism is the same walk with
    returns to where it has been; leaving those out is never worse and needs at most `size` coins
    [mckenna20, thm. 2].

    Privacy: PureDP(2 linf / scale). Proof: docs/proofs/permute-and-flip.md
    """

    scale: Fraction
    name: ClassVar[str] = "permute-and-flip/1"
    additive: ClassVar[bool] = False

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", LaplaceLaw(scale).scale)

    @classmethod
    def within(cls, loss: PureDP, bound: Bound) -> PermuteAndFlip:
        """The sharpest choice that costs at most this loss on data with this bound."""
        return cls(
            laplace_scale(
                pure_epsilon(loss), sensitivity=2 * bound.required("linf", by="permute-and-flip")
            )
        )

    def cost(self, bound: Bound) -> PureDP:
        """2 linf / scale, exactly."""
        return PureDP(2 * bound.required("linf", by="permute-and-flip") / self.scale)

    def draws(self, bound: Bound) -> int:
        """One for each entry; the coins are exact."""
        return bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """The index chosen, as an array of one."""
        largest, waiting = int(values.max()), list(range(values.size))
        while True:
            # A step of a Fisher-Yates shuffle, made only when it is needed.
            at = noise.uniform(len(waiting), 1)[0]
            waiting[at], waiting[-1] = waiting[-1], waiting[at]
            chosen = waiting.pop()
            if _accepts(Fraction(largest - int(values[chosen])) / self.scale, noise):
                return np.array([chosen], dtype=np.int64)

    def law(self, scores: npt.ArrayLike) -> FloatArray:
        """The probability of each index: p_i times the integral over [0, 1] of the product of 1 - p_j t.

        The time at which index i is visited is uniform in [0, 1]; before it, j was visited and left
        with probability p_j t. Exact by Gauss-Legendre quadrature: the integrand is a polynomial of
        degree size - 1.
        """
        values = np.asarray(scores, dtype=np.float64)
        take = np.exp(-(values.max() - values) / float(self.scale))
        nodes, weights = np.polynomial.legendre.leggauss(values.size // 2 + 1)
        left = 1 - np.outer((nodes + 1) / 2, take)
        others = np.stack(
            [np.delete(left, i, axis=1).prod(axis=1) for i in range(values.size)], axis=1
        )
        return np.asarray(take * (weights / 2 @ others))

    def shortfall(self, size: int, failure: float) -> float:
        """How far below the best the choice is, except with probability `failure`: scale ln(size / failure).

        This is Lemma 2.10 of [mcmillan18] for the exponential mechanism, in terms of scale = 2 linf
        / epsilon; the walk without returns is never worse.
        """
        if not 0 < failure <= 1:
            raise InvalidParameter(f"failure must lie in (0, 1], got {failure}")
        return float(self.scale) * float(np.log(size / failure))


def _accepts(power: Fraction, noise: Noise) -> bool:
    """True with probability exactly exp(-power), by coins of rational probability [canonne20, alg. 1]."""
    while power > 1:
        if not _accepts(Fraction(1), noise):
            return False
        power -= 1
    count = 1
    # The first count at which a coin of probability power / count fails is odd with probability
    # exp(-power).
    while noise.uniform(power.denominator * count, 1)[0] < power.numerator:
        count += 1
    return count % 2 == 1
