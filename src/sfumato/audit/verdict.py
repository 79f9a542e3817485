"""Verdicts: what an audit says, with what confidence, and what it would take to say more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from sfumato.audit.boxes import Pair
from sfumato.audit.claims import Statement
from sfumato.audit.samples import Encoder, FloatArray
from sfumato.privacy import Claim

Kind = Literal["REFUTED", "NOT_REFUTED", "CERTIFIED", "INCONCLUSIVE"]


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outputs: in words, and as a test of encoded rows."""

    words: str
    contains: Callable[[FloatArray], npt.NDArray[np.bool_]] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Witness:
    """Why a claim is refuted: an event that one input reaches too often, with the counts that show it.

    `pair.first` reaches it in `hits[0]` of `runs[0]` runs, `pair.second` in `hits[1]` of `runs[1]`; the claim
    allows P(first) <= e**epsilon P(second) + delta.
    """

    pair: Pair
    event: Event
    statement: Statement
    hits: tuple[int, int]
    runs: tuple[int, int]
    encoder: Encoder


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an audit found. `confidence` covers all pairs, both directions and all looks.

    `evidence` is an e-value (sequential) or a p-value, named; `excluded` is, of a claim that was not refuted,
    the smallest epsilon that would have been caught; `needed` the samples still missing when inconclusive.
    """

    kind: Kind
    claim: Claim
    confidence: float
    runs: int
    seconds: float
    evidence: tuple[str, float] | None = None
    witness: Witness | None = None
    excluded: float | None = None
    needed: int | None = None
    pairs: tuple[Pair, ...] = ()
    proximity: float | None = None
    gamma: float | None = None
    wealth: FloatArray | None = field(default=None, repr=False, compare=False)
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """A verdict is not a yes or no."""
        raise TypeError("a verdict is one of four words; compare its kind")
