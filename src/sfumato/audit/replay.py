"""Run the witness of a verdict again: the same event and inputs, fresh runs, one exact test."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from sfumato.audit.boxes.box import Box
from sfumato.audit.boxes.runs import run_side
from sfumato.audit.fixed.ratio import p_value
from sfumato.audit.verdict import Replay, Witness
from sfumato.errors import InvalidParameter

BATCH = 100_000
MAX_RUNS = 10_000_000
"""Runs of either input, whatever a file says."""
MIN_RUNS = 1024
POWER = 0.999
CAUTION = 1.5
"""Standard deviations that are taken off what a witness shows: counts are chance too."""
HALVINGS = 3


def replay(witness: Witness, box: Box, *, runs: int, level: float = 0.01) -> Replay:
    """The witness again, on so many fresh runs of either input."""
    if not 1 <= runs <= MAX_RUNS:
        raise InvalidParameter(f"runs must be from 1 to {MAX_RUNS:,}, got {runs}; nothing was run")
    # An event that was saved in words only says so before anything is run.
    witness.event.contains(np.zeros((1, witness.encoder.width + 1)))
    hits = [0, 0]
    for begin in range(0, runs, BATCH):
        for side in (0, 1):
            rows = witness.encoder(run_side(box, witness.pair, side, min(BATCH, runs - begin)))
            hits[side] += int(witness.event.contains(rows).sum())
    return judged(witness, (hits[0], hits[1]), runs, level)


def judged(witness: Witness, hits: tuple[int, int], runs: int, level: float) -> Replay:
    """What so many hits of fresh runs say of the statement that a witness breaks."""
    stated = witness.statement
    found = p_value(
        hits[0], runs, hits[1], runs, epsilon=stated.epsilon, delta=stated.delta, level=level
    )
    return Replay(stated, hits, runs, found, level)


def enough_runs(witness: Witness, seen: Replay | None = None, *, level: float = 0.01) -> int:
    """Runs of either input that show a witness again at a level, all but once in a thousand times.

    n = (z_level + z_power)**2 v / d**2 with d = p1 - e**epsilon p2 - delta and v the variance of
    what one run of each adds to it: the normal approximation of the exact test, and half as many
    again for what it lacks. The shares are those of `seen`, fresh runs of the same event, where
    there are any: the witness's own are of a bet that stopped when it was won, and who stops then
    has been lucky. Either is taken to be worse than it looks by CAUTION standard deviations, or by
    as much less as leaves something to show.
    """
    hits, runs = (
        (witness.hits, witness.runs) if seen is None else (seen.hits, (seen.runs, seen.runs))
    )
    grown, delta = math.exp(min(witness.statement.epsilon, 300.0)), witness.statement.delta
    shares = [(k + 0.5) / (n + 1) for k, n in zip(hits, runs, strict=True)]
    spreads = [math.sqrt(p * (1 - p) / max(1, n)) for p, n in zip(shares, runs, strict=True)]
    z = float(stats.norm.isf(level) + stats.norm.isf(1 - POWER))
    for halved in range(HALVINGS):
        caution = CAUTION / 2**halved
        more, less = shares[0] - caution * spreads[0], min(1.0, shares[1] + caution * spreads[1])
        if (excess := more - grown * less - delta) > 0:
            variance = more * (1 - more) + grown**2 * less * (1 - less)
            return int(min(MAX_RUNS, max(MIN_RUNS, math.ceil(1.5 * variance * (z / excess) ** 2))))
    return min(MAX_RUNS, max(MIN_RUNS, 4 * max(runs)))
