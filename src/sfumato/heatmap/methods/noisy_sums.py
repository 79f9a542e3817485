"""How counts get their noise: from one hand, or in shares from several parties; a round at a time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from sfumato._types import IntArray
from sfumato.privacy import DiscreteLaplace, Noise
from sfumato.privacy.accounting import InShares as InSharesModel
from sfumato.privacy.mechanisms import noisy_sum


class NoisySums(Protocol):
    """What makes exact counts of a round noisy; all randomness of zoom and pyramid passes here."""

    @property
    def shape(self) -> Fraction:
        """The shape of the noise: 1 for Laplace noise, more for noise in shares."""

    def noisy(self, counts: IntArray, scales: tuple[Fraction, ...], which: IntArray) -> IntArray:
        """The counts with fresh noise; count i has that of scales[which[i]], in units."""


@dataclass(frozen=True, slots=True, eq=False)
class CentralNoise:
    """Discrete Laplace noise of one source."""

    noise: Noise
    shape: ClassVar[Fraction] = Fraction(1)

    def noisy(self, counts: IntArray, scales: tuple[Fraction, ...], which: IntArray) -> IntArray:
        """Drawn scale by scale."""
        if len(scales) == 1:
            return DiscreteLaplace(scales[0]).sample(counts, self.noise)
        found = np.zeros(counts.size, dtype=np.int64)
        for at, scale in enumerate(scales):
            here = which == at
            found[here] = DiscreteLaplace(scale).sample(counts[here], self.noise)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class InShares:
    """The sum of counts of all parties, or devices, with a share of noise from each: one sum a round."""

    noise: Noise
    trust: InSharesModel

    @property
    def shape(self) -> Fraction:
        """That of all shares together."""
        return self.trust.sum_shape

    def noisy(self, counts: IntArray, scales: tuple[Fraction, ...], which: IntArray) -> IntArray:
        """What the session opens."""
        return noisy_sum(counts, scales, which, trust=self.trust, noise=self.noise)
