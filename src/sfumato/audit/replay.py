"""Run the witness of a verdict again: the same event and inputs, fresh runs, one exact test."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.audit.boxes import Box
from sfumato.audit.claims import Statement
from sfumato.audit.ratio import NUISANCE, p_value
from sfumato.audit.verdict import Witness
from sfumato.errors import InvalidParameter

BATCH = 100_000
MOST = 10_000_000
"""Runs of either input, whatever a file says."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How often fresh runs of both inputs reached the event of a witness, and what that says.

    Were the statement true, a p-value at most p would come with chance at most p, for the level it was asked
    for: the event was fixed before these runs, so nothing is to be corrected for.
    """

    statement: Statement
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
        grown = math.exp(min(self.statement.epsilon, 600.0))
        return min(float(self.runs), grown * self.hits[1] + self.statement.delta * self.runs)

    @property
    def said(self) -> str:
        """The p-value in words; a twentieth of the level, spent on the unknown probability, is its least."""
        least = self.p_value <= 1.001 * NUISANCE * self.level
        return f"p-value {'at most ' if least else ''}{self.p_value:.2g}"


def replay(witness: Witness, box: Box, *, runs: int, level: float = 0.01) -> Replay:
    """The witness again, on so many fresh runs of either input."""
    if not 1 <= runs <= MOST:
        raise InvalidParameter(f"runs must be from 1 to {MOST:,}, got {runs}; nothing was run")
    # An event that was saved in words only says so before anything is run.
    witness.event.contains(np.zeros((1, witness.encoder.width + 1)))
    hits = [0, 0]
    for begin in range(0, runs, BATCH):
        for side, data in enumerate((witness.pair.first, witness.pair.second)):
            rows = witness.encoder(box.run(data, min(BATCH, runs - begin)))
            hits[side] += int(witness.event.contains(rows).sum())
    stated = witness.statement
    found = p_value(hits[0], runs, hits[1], runs, epsilon=stated.epsilon, delta=stated.delta, level=level)
    return Replay(stated, (hits[0], hits[1]), runs, found, level)


def enough_runs(witness: Witness) -> int:
    """Runs of either input that most likely show the witness again.

    Four times as many as showed it: who stops as soon as something is caught has been lucky, and half of
    those who only try as long again would not be.
    """
    return min(MOST, max(4000, 4 * max(witness.runs)))
