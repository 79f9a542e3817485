"""Discrete Gaussian noise on every entry: rho of zCDP for a bounded l2 change."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato._types import IntArray
from sfumato.privacy.accounting.losses import ZCDP
from sfumato.privacy.accounting.numbers import Number
from sfumato.privacy.ledger.guarded import Bound
from sfumato.privacy.mechanisms._additive import saturated, sigma_within
from sfumato.privacy.noise.laws import GaussianLaw
from sfumato.privacy.noise.protocol import Noise


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian:
    """Add integer noise z with P(z) proportional to exp(-z**2 / (2 sigma**2)) to every entry.

    Privacy: ZCDP(l2**2 / (2 sigma**2)). Proof: docs/proofs/discrete-gaussian.md
    """

    sigma: Fraction
    name: ClassVar[str] = "discrete-gaussian/1"
    additive: ClassVar[bool] = True

    def __init__(self, sigma: Number) -> None:
        object.__setattr__(self, "sigma", GaussianLaw(sigma).sigma)

    @classmethod
    def within(cls, loss: ZCDP, bound: Bound) -> DiscreteGaussian:
        """The least noise that costs at most this loss on data with this bound."""
        return cls(sigma_within(loss, bound, by="discrete Gaussian noise"))

    @property
    def law(self) -> GaussianLaw:
        """The law of the noise on each entry."""
        return GaussianLaw(self.sigma)

    def cost(self, bound: Bound) -> ZCDP:
        """l2**2 / (2 sigma**2), exactly [canonne20, thm. 14]."""
        return ZCDP(
            bound.required("l2_squared", by="discrete Gaussian noise") / (2 * self.sigma**2)
        )

    def draws(self, bound: Bound) -> int:
        """One for each entry."""
        return bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """The values with fresh noise on each."""
        return saturated(values, noise.gaussian(self.sigma, values.size))
