"""Discrete Laplace noise on every entry: pure epsilon for a bounded l1 change."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato._types import IntArray
from sfumato.privacy.accounting.calibration import laplace_scale
from sfumato.privacy.accounting.losses import PureDP
from sfumato.privacy.accounting.numbers import Number
from sfumato.privacy.ledger.guarded import Bound
from sfumato.privacy.mechanisms._additive import pure_epsilon, saturated
from sfumato.privacy.noise.laws import LaplaceLaw
from sfumato.privacy.noise.protocol import Noise


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace:
    """Add integer noise z with P(z) proportional to exp(-|z| / scale) to every entry.

    Privacy: PureDP(l1 / scale). Proof: docs/proofs/discrete-laplace.md
    """

    scale: Fraction
    name: ClassVar[str] = "discrete-laplace/1"
    additive: ClassVar[bool] = True

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", LaplaceLaw(scale).scale)

    @classmethod
    def within(cls, loss: PureDP, bound: Bound) -> DiscreteLaplace:
        """The least noise that costs at most this loss on data with this bound.

        >>> from sfumato.privacy import ReplaceUser
        >>> DiscreteLaplace.within(PureDP("1/2"), Bound(ReplaceUser(), 4, l1=2)).scale
        Fraction(4, 1)
        """
        return cls(
            laplace_scale(
                pure_epsilon(loss), sensitivity=bound.required("l1", by="discrete Laplace noise")
            )
        )

    @property
    def law(self) -> LaplaceLaw:
        """The law of the noise on each entry."""
        return LaplaceLaw(self.scale)

    def cost(self, bound: Bound) -> PureDP:
        """l1 / scale, exactly."""
        return PureDP(bound.required("l1", by="discrete Laplace noise") / self.scale)

    def draws(self, bound: Bound) -> int:
        """One for each entry."""
        return bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """The values with fresh noise on each."""
        return saturated(values, noise.laplace(self.scale, values.size))
