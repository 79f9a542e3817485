"""Events worth testing: thresholds of scorers, in both directions, the most promising first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.audit.claims import Statement
from sfumato.audit.samples import FloatArray
from sfumato.audit.scorers import Mask, Scorer, Sign, passes
from sfumato.audit.verdict import Event

GRID = 200


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event and its direction: for sign 1 the first input reaches it too often, for -1 the second.

    `more` and `less` are the shares, in the runs that chose it, of the input that reaches it too often and of
    the other; `signal` is the excess over the statement in standard deviations of one pair of runs, so that
    about `(z / signal)**2` pairs of runs show it at z standard deviations.
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


def candidate_events(
    scorers: Sequence[Scorer],
    rows1: FloatArray,
    rows2: FloatArray,
    statement: Statement,
    *,
    most: int = 64,
) -> list[Candidate]:
    """Events that seem to break a statement, the strongest signal first; none where nothing seems to.

    The rows should be other runs than those the scorers were fitted on, and whatever tests the events needs
    yet others.
    """
    found = [one for scorer in scorers for one in _of_scorer(scorer, rows1, rows2, statement)]
    return sorted(found, key=lambda one: -one.signal)[:most]


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


def signals(more: FloatArray, less: FloatArray, runs: int, statement: Statement) -> FloatArray:
    """The excess of more over e**epsilon less + delta, in standard deviations of one pair of runs.

    Half a run is added to what the other input was seen to reach, so that nothing seen is not taken for
    nothing there.
    """
    ratio = math.exp(min(statement.epsilon, 600.0))
    other = np.minimum(1.0, less + 0.5 / runs)
    variance = more * (1 - more) + ratio**2 * other * (1 - other) + 0.25 / runs
    return np.asarray((more - ratio * other - statement.delta) / np.sqrt(variance))


def _of_scorer(scorer: Scorer, rows1: FloatArray, rows2: FloatArray, statement: Statement) -> list[Candidate]:
    scores1, scores2 = scorer.score(rows1), scorer.score(rows2)
    cuts = thresholds(scores1, scores2)
    found: list[Candidate] = []
    signs: tuple[Sign, Sign] = (1, -1)
    for sign in signs:
        ones, others = (scores1, scores2) if sign > 0 else (scores2, scores1)
        more, less = shares(ones, cuts, sign), shares(others, cuts, sign)
        strength = signals(more, less, min(len(rows1), len(rows2)), statement)
        found += [
            Candidate(scorer, float(cuts[i]), sign, float(more[i]), float(less[i]), float(strength[i]))
            for i in np.flatnonzero(strength > 0)
        ]
    return found
