"""Verdicts and their evidence: events, witnesses, replays, bounds and bands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Pair
from sfumato.audit.boxes.samples import Encoder
from sfumato.audit.claims import Certified, EpsilonDelta
from sfumato.audit.fixed.ratio import NUISANCE
from sfumato.privacy import Claim

CONFIDENCE = 0.99
"""That of a verdict, if nothing else is asked for: one false claim of a hundred is certified, at most."""
Kind = Literal["REFUTED", "NOT_REFUTED", "CERTIFIED", "INCONCLUSIVE"]


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outputs: in words, and as a test of encoded rows.

    Attributes:
        words: What is in it.
        contains: Which encoded rows are in it.
    """

    words: str
    contains: Callable[[FloatArray], npt.NDArray[np.bool_]] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Witness:
    """Why a claim is refuted: an event that one input reaches too often, with the counts that show it.

    `pair.first` reaches it in `hits[0]` of `runs[0]` runs, `pair.second` in `hits[1]` of `runs[1]`;
    the claim allows P(first) <= e**epsilon P(second) + delta.

    Attributes:
        pair: Its first input reaches the event too often.
        event: The set of outputs.
        statement: What it breaks.
        hits: Runs of either input that reach the event.
        runs: Of either input.
        encoder: Turns outputs into rows.
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

    Attributes:
        statement: What is tested.
        hits: Runs of either input that reach the event.
        runs: Of each input.
        p_value: Of the exact test.
        level: To compare it with.
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
    def message(self) -> str:
        """The p-value in words; a twentieth of the level, spent on the unknown probability, is its least."""
        floor = self.p_value <= 1.001 * NUISANCE * self.level
        return f"p-value {'at most ' if floor else ''}{self.p_value:.2g}"

    def to_json(self) -> dict[str, Any]:
        """The test as JSON, with whether it refutes the statement."""
        return {
            "refuted": self.refuted,
            "p_value": self.p_value,
            "level": self.level,
            "hits": list(self.hits),
            "runs": self.runs,
            "epsilon": self.statement.epsilon,
            "delta": self.statement.delta,
        }

    @staticmethod
    def from_json(data: Any) -> Replay:
        """The test that a JSON object states; whether it refutes is computed from its numbers."""
        from sfumato.audit.codec import decode_replay

        return decode_replay(data)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an audit found, for good.

    Attributes:
        kind: REFUTED, NOT_REFUTED, CERTIFIED or INCONCLUSIVE.
        claim: What was audited.
        confidence: Over all pairs, both directions and all looks.
        runs: Before any that confirm it.
        seconds: Likewise.
        evidence: An e-value (sequential) or a p-value, named.
        witness: The event that breaks the claim.
        confirmed: What fresh runs of the witness showed.
        excluded: Of a claim that was not refuted, the smallest epsilon that would have been caught.
        required_runs: Still missing, when inconclusive.
        pairs: That were run.
        proximity: Of a certificate.
        gamma: The share of random data that may fail.
        certified: The loss that a certificate is really of: the claim's with the proximity in it.
        wealth: Rows of runs and wealth, at most 2,000.
        notes: What else is to be said.
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
    required_runs: int | None = None
    pairs: tuple[Pair, ...] = ()
    proximity: float | None = None
    gamma: float | None = None
    certified: Certified | None = None
    wealth: FloatArray | None = field(default=None, repr=False, compare=False)
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """A verdict is not a yes or no."""
        raise TypeError("a verdict is one of four words; compare its kind")


@dataclass(frozen=True, slots=True)
class LowerBound:
    """No epsilon below this one holds at delta for the pair, unless the one test of the witness erred.

    That happens with chance at most 1 - confidence, whichever event was chosen.

    Attributes:
        epsilon: The bound.
        delta: At which it holds.
        confidence: Of this bound by itself.
        witness: The event and the counts that show it.
        runs: Of both inputs together.
    """

    epsilon: float
    delta: float
    confidence: float
    witness: Witness
    runs: int


Curve = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class DeltaBand:
    """lower <= delta(epsilon) <= upper at all of the epsilons at once, with this confidence, for this pair.

    delta(epsilon) is the least delta for which the pair is (epsilon, delta)-private, in both
    orders. The upper end is valid whatever the outputs are, and below 1 only where few of them are
    distinct: from continuous outputs no sample says anything from above.

    Attributes:
        epsilons: In order.
        lower: The lower end at each epsilon.
        upper: The upper end at each epsilon.
        confidence: Of the whole band.
        runs: Of both inputs together.
        witnesses: One for each epsilon, which shows the lower end; none after reading a file.
    """

    epsilons: Curve
    lower: Curve
    upper: Curve
    confidence: float
    runs: int
    witnesses: tuple[Witness, ...]


def _allowed(statement: EpsilonDelta, hits: int, runs: int) -> float:
    grown = math.exp(min(statement.epsilon, 600.0))
    return min(float(runs), grown * hits + statement.delta * runs)


def _excess(statement: EpsilonDelta, hits: tuple[int, int], runs: int) -> float:
    grown = math.exp(min(statement.epsilon, 300.0))
    over = hits[0] - _allowed(statement, hits[1], runs)
    return over / math.sqrt(1 + hits[0] + grown**2 * hits[1])
