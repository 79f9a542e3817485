"""A continuous Gaussian, rounded to the lattice: rho of zCDP, or a promised (epsilon, delta)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.calibration import gaussian_keeps, gaussian_sigma
from sfumato.privacy.accounting.losses import ZCDP, ApproxDP
from sfumato.privacy.accounting.numbers import Number, plain, sqrt_above
from sfumato.privacy.ledger.guarded import Bound
from sfumato.privacy.mechanisms._additive import saturated, sigma_within
from sfumato.privacy.noise.laws import RoundedGaussianLaw
from sfumato.privacy.noise.protocol import Noise


@dataclass(frozen=True, slots=True, init=False)
class RoundedGaussian:
    """Add a continuous Gaussian of deviation sigma to every entry and round to the lattice.

    Rounding is post-processing, so every analysis of the continuous mechanism holds as it stands:
    the exact (epsilon, delta) of `gaussian_sigma`, and zCDP for ledgers.

    A release costs rho, which adds up best over many. With a `promise` it costs that (epsilon,
    delta), the tightest statement for a single release; a promise the noise does not keep is
    refused.

    Privacy: ZCDP(l2**2 / (2 sigma**2)) or the promise. Proof: docs/proofs/rounded-gaussian.md
    """

    sigma: Fraction
    promise: ApproxDP | None
    name: ClassVar[str] = "rounded-gaussian/1"
    additive: ClassVar[bool] = True

    def __init__(self, sigma: Number, promise: ApproxDP | None = None) -> None:
        object.__setattr__(self, "sigma", RoundedGaussianLaw(sigma).sigma)
        object.__setattr__(self, "promise", promise)

    @classmethod
    def within(cls, loss: ZCDP | ApproxDP, bound: Bound) -> RoundedGaussian:
        """The least noise that costs at most this loss on data with this bound.

        >>> from sfumato.privacy import ReplaceUser
        >>> RoundedGaussian.within(ApproxDP(1, "1e-6"), Bound(ReplaceUser(), 4, l1=2, linf=1)).promise
        ApproxDP(epsilon=Fraction(1, 1), delta=Fraction(1, 1000000))
        """
        match loss:
            case ZCDP():
                return cls(sigma_within(loss, bound, by="rounded Gaussian noise"))
            case ApproxDP(epsilon, delta):
                return cls(gaussian_sigma(epsilon, delta, sensitivity=cls._moved(bound)), loss)
            case _:
                raise InvalidParameter(
                    f"Gaussian noise costs rho, or epsilon and delta, not {loss}"
                )

    @staticmethod
    def _moved(bound: Bound) -> Fraction:
        return sqrt_above(bound.required("l2_squared", by="rounded Gaussian noise"))

    @property
    def law(self) -> RoundedGaussianLaw:
        """The law of the noise on each entry."""
        return RoundedGaussianLaw(self.sigma)

    def cost(self, bound: Bound) -> ZCDP | ApproxDP:
        """l2**2 / (2 sigma**2), exactly [bun16, prop. 1.6]; or the promise, checked [balle18, thm. 8]."""
        square = bound.required("l2_squared", by="rounded Gaussian noise")
        if self.promise is None:
            return ZCDP(square / (2 * self.sigma**2))
        if not gaussian_keeps(
            self.promise, sigma=float(self.sigma), sensitivity=self._moved(bound)
        ):
            raise InvalidParameter(
                f"noise of sigma {plain(self.sigma)} does not keep {self.promise} for a change of "
                f"{plain(self._moved(bound))}; nothing was charged"
            )
        return self.promise

    def draws(self, bound: Bound) -> int:
        """One for each entry."""
        return bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """The values with fresh noise on each."""
        return saturated(values, noise.rounded_gaussian(self.sigma, values.size))
