"""Noise that several parties add in shares: pure epsilon for a bounded l1 change, whoever of them looks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy.accounting.calibration import laplace_scale
from sfumato.privacy.accounting.losses import PureDP
from sfumato.privacy.accounting.numbers import Number
from sfumato.privacy.accounting.trust import InShares, Joint, model_name
from sfumato.privacy.ledger.guarded import Bound
from sfumato.privacy.mechanisms._additive import pure_epsilon, saturated
from sfumato.privacy.noise.laws import LaplaceLaw
from sfumato.privacy.noise.polya_law import PolyaLaw
from sfumato.privacy.noise.protocol import Noise


@dataclass(frozen=True, slots=True, init=False)
class SharedLaplace:
    """Add to the sum of all parties' entries a share of noise from each party.

    The shares of any parties - curious of them are together discrete Laplace noise of this scale, so
    that the loss is that of the central mechanism for outsiders and for so many curious parties
    together. The sum of all shares has the law `PolyaLaw(scale, trust.sum_shape)`.

    Privacy: PureDP(l1 / scale). Proof: docs/proofs/shared-noise.md
    """

    scale: Fraction
    trust: Joint
    name: ClassVar[str] = "shared-laplace/1"
    additive: ClassVar[bool] = True

    def __init__(self, scale: Number, trust: Joint) -> None:
        object.__setattr__(self, "scale", LaplaceLaw(scale).scale)
        if not isinstance(trust, Joint):
            raise InvalidParameter(
                f"noise in shares of parties is of the joint model, got {trust!r}: mixed sums cost a delta; "
                "nothing was charged"
            )
        object.__setattr__(self, "trust", trust)

    @classmethod
    def within(cls, loss: PureDP, bound: Bound, trust: Joint) -> SharedLaplace:
        """The least noise that costs at most this loss on data with this bound.

        >>> from sfumato.privacy import AddRemoveUser
        >>> SharedLaplace.within(PureDP("1/2"), Bound(AddRemoveUser(), 4, l1=1), Joint(3)).scale
        Fraction(2, 1)
        """
        moved = bound.required("l1", by="noise in shares")
        return cls(laplace_scale(pure_epsilon(loss), sensitivity=moved), trust)

    @property
    def law(self) -> PolyaLaw:
        """The law of the noise on each entry of the sum."""
        return PolyaLaw(self.scale, self.trust.sum_shape)

    def cost(self, bound: Bound) -> PureDP:
        """l1 / scale, exactly: what the parties that are not curious add."""
        return PureDP(bound.required("l1", by="noise in shares") / self.scale)

    def draws(self, bound: Bound) -> int:
        """One for each entry."""
        return bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """The sum of all parties' values, with fresh shares of all on each entry."""
        none = np.zeros(values.size, dtype=np.int64)
        return noisy_sum(values, (self.scale,), none, trust=self.trust, noise=noise)


def noisy_sum(
    values: IntArray,
    scales: tuple[Fraction, ...],
    which: IntArray,
    *,
    trust: InShares,
    noise: Noise,
) -> IntArray:
    """What all parties' values add up to, with noise of scales[which[i]] on entry i.

    Args:
        values: This party's own sums [sum].
        scales: Scales of the noise, as `SharedLaplace` has them.
        which: Which scale each sum has [sum].
        trust: How many parties there are, and how many of them may pool what they know.
        noise: A source of noise in shares: the session.

    Returns:
        Noisy sums, clipped to the range of guarded values [sum].

    Raises:
        InvalidParameter: The source adds no noise in shares, or not one of these parties.

    """
    ask = getattr(noise, "noisy_sum", None)
    if ask is None:
        raise InvalidParameter(
            f"noise in shares is added by a session of parties, got {type(noise).__name__}; nothing was drawn"
        )
    own = getattr(noise, "trust", trust)
    if own != trust:
        raise InvalidParameter(
            f"shares are of the {model_name(own)}, not of the {model_name(trust)}; nothing was drawn"
        )
    found: IntArray = np.asarray(ask(values, scales, which, trust))
    if found.dtype != np.int64 or found.shape != values.shape:
        raise InvalidInput(
            f"a session opens {values.size} whole numbers, got {found.dtype} of shape {found.shape}; nothing "
            "was released, and what was charged stands"
        )
    return saturated(np.zeros(values.size, dtype=np.int64), found)
