"""Randomised response on every pair of nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy import Bound, FlippedEdge, Noise, PureDP, RandomisedResponse

WORD, WORDS = (
    32,
    10,
)  # random bits of one dyad, and dyads of one draw: 320 bits, which all noise can give
MAX_EPSILON = 20  # beyond it a flip would be rarer than a word of bits can say


@dataclass(frozen=True, slots=True, init=False)
class FlippedDyads:
    """Each dyad of a network, 1 if joined and 0 if not, is reported truly or flipped [warner65].

    The chance of a flip is 1 / (1 + e**epsilon), rounded up to a multiple of 2**-32: towards more
    noise.

    Privacy: PureDP(epsilon) for a flipped edge. Proof: docs/proofs/graphon-release.md
    """

    epsilon: Fraction
    name: ClassVar[str] = "flipped-dyads/1"
    additive: ClassVar[bool] = False

    def __init__(self, epsilon: Fraction | int | str) -> None:
        value = RandomisedResponse(epsilon).epsilon
        if value > MAX_EPSILON:
            raise InvalidParameter(
                f"epsilon of flipped dyads must be at most {MAX_EPSILON}, got {epsilon}; nothing was charged"
            )
        object.__setattr__(self, "epsilon", value)

    @property
    def law(self) -> tuple[Fraction, Fraction]:
        """Exact chances that a dyad is reported truly and that it is flipped."""
        return 1 - self.flip, self.flip

    @property
    def flip(self) -> Fraction:
        """The chance of a flip, exactly; at least 1 / (1 + e**epsilon), at most a half."""
        return Fraction(self._threshold, 2**WORD)

    @property
    def _threshold(self) -> int:
        _, other = RandomisedResponse(self.epsilon).law
        threshold: int = math.ceil(other * 2**WORD)
        return threshold

    def cost(self, bound: Bound) -> PureDP:
        """Epsilon, since one step of the relation changes one dyad; any other relation is refused."""
        if not isinstance(bound.neighbors, FlippedEdge) or bound.entries != 1:
            raise InvalidParameter(
                "flipped dyads hide one edge, so their neighbors are FlippedEdge and one entry changes, got: "
                f"{bound.neighbors}, {bound.entries} entries; nothing was charged"
            )
        return PureDP(self.epsilon)

    def draws(self, bound: Bound) -> int:
        """One for ten dyads."""
        return -(-bound.size // WORDS)

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """One answer for every dyad; entries other than 0 and 1 become 0 first."""
        draws = noise.uniform(2 ** (WORD * WORDS), -(-values.size // WORDS))
        raw = b"".join(draw.to_bytes(WORD * WORDS // 8, "big") for draw in draws)
        words = np.frombuffer(raw, dtype=">u4")[: values.size].astype(np.int64)
        return (np.where(values == 1, 1, 0) ^ (words < self._threshold)).astype(np.int64)
