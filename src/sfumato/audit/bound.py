"""Epsilon is at least so much: a lower confidence bound from a fixed number of runs, with its witness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from sfumato.audit.boxes import Box, Pair
from sfumato.audit.claims import Statement
from sfumato.audit.events import Candidate, shares, thresholds
from sfumato.audit.ratio import epsilon_lower
from sfumato.audit.samples import Encoder, FloatArray, encoder_of
from sfumato.audit.scorers import Scorer, Sign, fit_scorers
from sfumato.audit.verdict import Witness
from sfumato.errors import InvalidParameter

TRAIN, SELECT = 0.25, 0.2
"""Shares of the runs that fit the scorers and choose the event; the rest tests it."""
CAUTION = 3.0
"""Standard deviations taken off an event's promise, since the best of many has been lucky."""
LEAST_RUNS = 100
SIGNS: tuple[Sign, Sign] = (1, -1)
BATCH = 100_000


@dataclass(frozen=True, slots=True)
class LowerBound:
    """No epsilon below this one holds at delta for the pair, unless the one test of the witness erred.

    That happens with chance at most 1 - confidence, whichever event was chosen. `runs` counts both inputs.
    """

    epsilon: float
    delta: float
    confidence: float
    witness: Witness
    runs: int


def lower_bound(
    box: Box,
    pair: Pair,
    *,
    delta: float = 0.0,
    runs: int = 400_000,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> LowerBound:
    """A lower confidence bound of the epsilon of a box at delta, on one pair of inputs, in either direction.

    A quarter of the runs fits scorers, a fifth chooses an event and a direction, and the others, which
    neither has seen, test that one event exactly (`ratio`). The generator shuffles the order in which the two
    inputs are run, so that what drifts with time is not taken for a leak; nothing rests on it.
    """
    require_runs(runs, confidence)
    if not 0 <= delta < 1:
        raise InvalidParameter(f"delta must be at least 0 and below 1, got {delta}; nothing was run")
    each = runs // 2
    train, select = int(TRAIN * each), int(SELECT * each)
    held_out = each - train - select
    draw = Draw.first(box, pair, train, rng)
    scorers = fit_scorers(*draw.rows)
    level = 1 - confidence
    found = choose(scorers, *draw.more(select), delta=delta, runs=held_out, level=level)
    hits = draw.count(found, held_out)
    epsilon = epsilon_lower(hits[0], held_out, hits[1], held_out, delta=delta, level=level)
    toward = pair if found.sign > 0 else Pair(pair.second, pair.first, pair.name)
    witness = Witness(
        toward, found.event, Statement(epsilon, delta), hits, (held_out, held_out), draw.encoder
    )
    return LowerBound(epsilon, delta, confidence, witness, 2 * each)


def choose(
    scorers: tuple[Scorer, ...],
    rows1: FloatArray,
    rows2: FloatArray,
    *,
    delta: float,
    runs: int,
    level: float,
) -> Candidate:
    """The event that promises the largest bound from so many further runs of either input."""
    best, promise = None, -math.inf
    selected = min(len(rows1), len(rows2))
    critical = float(stats.norm.isf(level)) / math.sqrt(runs) + CAUTION / math.sqrt(selected)
    for scorer in scorers:
        scores = scorer.score(rows1), scorer.score(rows2)
        cuts = thresholds(*scores)
        for sign in SIGNS:
            more, less = (shares(one, cuts, sign) for one in (scores if sign > 0 else scores[::-1]))
            ratio = promised_ratio(more, less + 0.5 / selected, delta=delta, critical=critical)
            at = int(np.argmax(ratio))
            if ratio[at] > promise:
                promise = float(ratio[at])
                best = Candidate(scorer, float(cuts[at]), sign, float(more[at]), float(less[at]), promise)
    if best is None:
        raise InvalidParameter("all outputs of both inputs are the same one; there is no event to test")
    return best


def promised_ratio(more: FloatArray, less: FloatArray, *, delta: float, critical: float) -> FloatArray:
    """The e**epsilon that counts of these shares would leave open, by the score statistic of `ratio`."""
    excess = more - delta
    square = critical**2
    rest = excess**2 - square * delta
    middle = 2 * excess * less + square * (excess + less)
    root = np.sqrt(np.maximum(0.0, middle**2 - 4 * less**2 * rest))
    holds = (excess > 0) & (rest > 0)
    return np.where(holds, 2 * rest / np.where(holds, middle + root, 1.0), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Runs of a box on both inputs of a pair, encoded alike."""

    box: Box
    pair: Pair
    rng: np.random.Generator | None
    encoder: Encoder
    rows: tuple[FloatArray, FloatArray]

    @classmethod
    def first(cls, box: Box, pair: Pair, runs: int, rng: np.random.Generator | None) -> Draw:
        """The first runs, which also decide how outputs are encoded."""
        parts = _outputs(box, pair, runs, rng)
        encoders = [encoder_of(part) for part in parts]
        encoder = encoders[0] if encoders[0] == encoders[1] else Encoder(1, words=True)
        return cls(box, pair, rng, encoder, (encoder(parts[0]), encoder(parts[1])))

    def more(self, runs: int) -> tuple[FloatArray, FloatArray]:
        """So many further runs of either input."""
        first, second = _outputs(self.box, self.pair, runs, self.rng)
        return self.encoder(first), self.encoder(second)

    def count(self, found: Candidate, runs: int) -> tuple[int, int]:
        """How many further runs reach an event: of the input that should do so too often, of the other."""
        hits = [0, 0]
        for begin in range(0, runs, BATCH):
            for side, rows in enumerate(self.more(min(BATCH, runs - begin))):
                hits[side] += int(found.contains(rows).sum())
        return (hits[0], hits[1]) if found.sign > 0 else (hits[1], hits[0])


def require_runs(runs: int, confidence: float) -> None:
    """Refuse what no audit can be made of, before anything is run."""
    if runs < LEAST_RUNS:
        raise InvalidParameter(f"runs must be at least {LEAST_RUNS}, got {runs}; nothing was run")
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence must be between 0 and 1, got {confidence}; nothing was run")


def _outputs(box: Box, pair: Pair, runs: int, rng: np.random.Generator | None) -> tuple[Any, Any]:
    inputs = (pair.first, pair.second)
    order = range(2) if rng is None else rng.permutation(2)
    found = {int(side): box.run(inputs[side], runs) for side in order}
    return found[0], found[1]
