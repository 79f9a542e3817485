"""Randomised response: each category is told truly with exact odds below e**epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.losses import PureDP
from sfumato.privacy.accounting.neighbors import ReplaceUser
from sfumato.privacy.accounting.numbers import Number, exact, exp_below, plain
from sfumato.privacy.ledger.guarded import Bound
from sfumato.privacy.noise.protocol import Noise


@dataclass(frozen=True, slots=True, init=False)
class RandomisedResponse:
    """Each entry, a category 0..categories-1, is told truly or replaced by one of the others [warner65].

    The truth and each other category have integer weights whose ratio is e**epsilon rounded down to
    64 bits, so its logarithm is at most epsilon. Entries outside the categories become 0 first.

    Privacy: PureDP(entries * epsilon) for a replaced user.
    Proof: docs/proofs/randomised-response.md
    """

    epsilon: Fraction
    categories: int
    name: ClassVar[str] = "randomised-response/1"
    additive: ClassVar[bool] = False

    def __init__(self, epsilon: Number, categories: int = 2) -> None:
        value = exact(epsilon, name="epsilon")
        if not 0 < value <= 128:
            raise InvalidParameter(
                f"epsilon of randomised response must lie in (0, 128], got {epsilon}"
            )
        if not 2 <= categories <= 2**32:
            raise InvalidParameter(
                f"randomised response needs 2 to 2**32 categories, got {categories}"
            )
        object.__setattr__(self, "epsilon", value)
        object.__setattr__(self, "categories", categories)

    @property
    def weights(self) -> tuple[int, int]:
        """Integer weights of the truth and of each other category; ln(truth / other) <= epsilon."""
        ratio = max(Fraction(1), exp_below(self.epsilon))  # rounded down: less truth, more noise
        return ratio.numerator, ratio.denominator

    @property
    def law(self) -> tuple[Fraction, Fraction]:
        """Exact probabilities of telling the truth and of telling one particular other category."""
        truth, other = self.weights
        total = truth + (self.categories - 1) * other
        return Fraction(truth, total), Fraction(other, total)

    def cost(self, bound: Bound) -> PureDP:
        """Epsilon for each entry of a user; how many answers there are is public, so users are replaced."""
        if not isinstance(bound.neighbors, ReplaceUser):
            raise InvalidParameter(
                "randomised response shows how many answers there are, so its neighbors are ReplaceUser, "
                f"got: {bound.neighbors}; nothing was charged"
            )
        return PureDP(bound.entries * self.epsilon)

    def draws(self, bound: Bound) -> int:
        """One for each entry."""
        return bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """One answer for every entry."""
        truth, other = self.weights
        inside = np.where((values >= 0) & (values < self.categories), values, 0)
        picks = noise.uniform(truth + (self.categories - 1) * other, values.size)
        # Step 0 is the truth; steps 1..categories-1 walk round to the others.
        steps = np.array(
            [0 if u < truth else 1 + (u - truth) // other for u in picks], dtype=np.int64
        )
        return (inside + steps) % self.categories

    def proportions(self, answers: IntArray) -> tuple[FloatArray, FloatArray]:
        """Unbiased estimates of the true proportions and of the variance of each [kairouzdiscrete16].

        With f the share of an answer and p, q its true and false probabilities: (f - q) / (p - q),
        of variance f (1 - f) / ((n - 1) (p - q)**2), itself unbiased for people drawn at random
        from a population. Estimates may be negative; clipping them would bias them.
        """
        n = answers.size
        if n < 2:
            raise InvalidParameter(
                f"proportions and their variance need at least 2 answers, got {n}"
            )
        truth, other = self.law
        gap = float(truth - other)
        if gap == 0:
            raise InvalidParameter(
                f"answers at epsilon {plain(self.epsilon)} say nothing about proportions"
            )
        share = np.bincount(answers, minlength=self.categories) / n
        variance: FloatArray = share * (1 - share) / ((n - 1) * gap**2)
        return (share - float(other)) / gap, variance
