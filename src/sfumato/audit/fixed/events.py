"""Events to test: scorers with a threshold and a direction."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sfumato._types import FloatArray
from sfumato.audit.fixed.scorers import Mask, Scorer, Sign, passes
from sfumato.audit.verdict import Event

GRID = 200


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event and its direction: for sign 1 the first input reaches it too often, for -1 the second.

    `more` and `less` are the shares, in the runs that chose it, of the input that reaches it too
    often and of the other; `signal` is what it promises, in the measure of whoever chose it.
    """

    scorer: Scorer = field(compare=False)
    threshold: float
    sign: Sign
    more: float
    less: float
    signal: float

    def contains(self, rows: FloatArray) -> Mask:
        """Which encoded rows are in the event."""
        return passes(self.scorer.score(rows), self.threshold, self.sign)

    @property
    def event(self) -> Event:
        """The event alone, with its words."""
        return Event(self.scorer.words(self.threshold, self.sign), self.contains)


def thresholds(scores1: FloatArray, scores2: FloatArray) -> FloatArray:
    """Scores to cut at: all of them where they are few, else closer together towards both ends."""
    pool = np.unique(np.concatenate([scores1, scores2]))
    if pool.size <= GRID:
        return pool
    tail = np.unique(np.geomspace(1, pool.size / 2, GRID // 2).astype(np.int64))
    return np.asarray(pool[np.unique(np.concatenate([tail - 1, pool.size - tail]))])


def shares(scores: FloatArray, cuts: FloatArray, sign: Sign) -> FloatArray:
    """How much of a sample is in each event {score >= cut}, or {score <= cut} for sign -1."""
    ordered = np.sort(scores)
    if sign > 0:
        return np.asarray(1 - np.searchsorted(ordered, cuts, "left") / ordered.size)
    return np.asarray(np.searchsorted(ordered, cuts, "right") / ordered.size)
