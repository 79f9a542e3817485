"""Verdicts: what an audit says, with what confidence, and what it would take to say more."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Pair
from sfumato.audit.boxes.samples import Encoder
from sfumato.audit.claims import EpsilonDelta
from sfumato.audit.fixed.ratio import NUISANCE
from sfumato.privacy import ApproxDP, Claim, PureDP, RandomApproxDP, RandomPureDP

Certified = PureDP | ApproxDP | RandomPureDP | RandomApproxDP
Kind = Literal["REFUTED", "NOT_REFUTED", "CERTIFIED", "INCONCLUSIVE"]


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outputs: in words, and as a test of encoded rows."""

    words: str
    contains: Callable[[FloatArray], npt.NDArray[np.bool_]] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Witness:
    """Why a claim is refuted: an event that one input reaches too often, with the counts that show it.

    `pair.first` reaches it in `hits[0]` of `runs[0]` runs, `pair.second` in `hits[1]` of `runs[1]`;
    the claim allows P(first) <= e**epsilon P(second) + delta.
    """

    pair: Pair
    event: Event
    statement: EpsilonDelta
    hits: tuple[int, int]
    runs: tuple[int, int]
    encoder: Encoder

    @property
    def excess(self) -> float:
        """By how many standard deviations, about, the event was reached too often."""
        return _excess(self.statement, self.hits, self.runs[0])


@dataclass(frozen=True, slots=True)
class Replay:
    """How often fresh runs of both inputs reached the event of a witness, and what that says.

    Were the statement true, a p-value at most p would come with chance at most p, for the level it
    was asked for: the event was fixed before these runs, so nothing is to be corrected for.
    """

    statement: EpsilonDelta
    hits: tuple[int, int]
    runs: int
    p_value: float
    level: float

    @property
    def refuted(self) -> bool:
        """Whether these runs alone refute the statement."""
        return self.p_value <= self.level

    @property
    def allowed(self) -> float:
        """How many hits of the first input the statement allows, given those of the second."""
        return _allowed(self.statement, self.hits[1], self.runs)

    @property
    def excess(self) -> float:
        """By how many standard deviations, about, the event was reached too often."""
        return _excess(self.statement, self.hits, self.runs)

    @property
    def said(self) -> str:
        """The p-value in words; a twentieth of the level, spent on the unknown probability, is its least."""
        least = self.p_value <= 1.001 * NUISANCE * self.level
        return f"p-value {'at most ' if least else ''}{self.p_value:.2g}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an audit found, for good. `confidence` covers all pairs, both directions and all looks.

    `evidence` is an e-value (sequential) or a p-value, named; `confirmed` what fresh runs of the
    witness showed; `runs` those before them; `excluded` is, of a claim that was not refuted, the
    smallest epsilon that would have been caught; `needed` the samples still missing when
    inconclusive; `certified` the loss that a certificate is really of, the claim's with the
    proximity in it.
    """

    kind: Kind
    claim: Claim
    confidence: float
    runs: int
    seconds: float
    evidence: tuple[str, float] | None = None
    witness: Witness | None = None
    confirmed: Replay | None = None
    excluded: float | None = None
    needed: int | None = None
    pairs: tuple[Pair, ...] = ()
    proximity: float | None = None
    gamma: float | None = None
    certified: Certified | None = None
    wealth: FloatArray | None = field(default=None, repr=False, compare=False)
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """A verdict is not a yes or no."""
        raise TypeError("a verdict is one of four words; compare its kind")


def _allowed(statement: EpsilonDelta, hits: int, runs: int) -> float:
    grown = math.exp(min(statement.epsilon, 600.0))
    return min(float(runs), grown * hits + statement.delta * runs)


def _excess(statement: EpsilonDelta, hits: tuple[int, int], runs: int) -> float:
    grown = math.exp(min(statement.epsilon, 300.0))
    over = hits[0] - _allowed(statement, hits[1], runs)
    return over / math.sqrt(1 + hits[0] + grown**2 * hits[1])
