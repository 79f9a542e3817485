"""Epsilon is at least so much: a lower confidence bound from a fixed number of runs, with its witness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Box, Pair
from sfumato.audit.boxes.runs import Fresh, as_box, as_pair, run_side
from sfumato.audit.boxes.samples import Encoder, encoder_of
from sfumato.audit.claims import EpsilonDelta
from sfumato.audit.confidence import check_confidence
from sfumato.audit.fixed.choice import choose_event
from sfumato.audit.fixed.events import Candidate
from sfumato.audit.fixed.ratio import epsilon_lower
from sfumato.audit.verdict import LowerBound, Witness
from sfumato.errors import InvalidParameter

LEARN = 0.45
"""The share of the runs that chooses the event; the rest tests it."""
MIN_RUNS = 100
BATCH = 100_000


def lower_bound(
    box: Box | Callable[..., Any],
    pair: Pair | tuple[Any, Any],
    *,
    delta: float = 0.0,
    runs: int = 400_000,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> LowerBound:
    """A lower confidence bound of the epsilon of a box at delta, on one pair of inputs, in either direction.

    Almost half of the runs choose an event and a direction (`choice`), and the others, which the
    choice has not seen, test that one event exactly (`ratio`). The generator shuffles the order in
    which the two inputs are run, so that what drifts with time is not taken for a leak; nothing
    rests on it.

    Args:
        box: A box, or a function of the data: one output, or so many with a parameter `runs`.
        pair: Two neighbors.
        delta: From 0 to below 1.
        runs: Of both inputs together, at least 100.
        confidence: Between 0 and 1.
        rng: Shuffles the order of the inputs; None for first, second.

    Returns:
        The bound with its witness.

    Raises:
        InvalidParameter: If a parameter is out of range; nothing was run.
    """
    require_runs(runs, confidence)
    if not 0 <= delta < 1:
        raise InvalidParameter(
            f"delta must be at least 0 and below 1, got {delta}; nothing was run"
        )
    box, pair = as_box(box), as_pair(pair)
    each = runs // 2
    learn = int(LEARN * each)
    held_out = each - learn
    draw = Draw.first(box, pair, learn, rng)
    level = 1 - confidence
    found = choose_event(*draw.rows, delta=delta, runs=held_out, level=level)
    hits = draw.count(found, held_out, rng)
    epsilon = epsilon_lower(hits[0], held_out, hits[1], held_out, delta=delta, level=level)
    toward = pair if found.sign > 0 else Pair(pair.second, pair.first, pair.name)
    witness = Witness(
        toward, found.event, EpsilonDelta(epsilon, delta), hits, (held_out, held_out), draw.encoder
    )
    return LowerBound(epsilon, delta, confidence, witness, 2 * each)


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Runs of a box on both inputs of a pair, encoded alike."""

    box: Box
    pair: Pair
    encoder: Encoder
    rows: tuple[FloatArray, FloatArray]
    fresh: Fresh

    @classmethod
    def first(cls, box: Box, pair: Pair, runs: int, rng: np.random.Generator | None = None) -> Draw:
        """The first runs, which also decide how outputs are encoded."""
        parts = _outputs(box, pair, runs, rng)
        encoders = [encoder_of(part) for part in parts]
        encoder = encoders[0] if encoders[0] == encoders[1] else Encoder(1, words=True)
        rows, fresh = (encoder(parts[0]), encoder(parts[1])), Fresh(box, pair)
        fresh.require(rows)
        return cls(box, pair, encoder, rows, fresh)

    def more(
        self, runs: int, rng: np.random.Generator | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """So many further runs of either input; a box that is seeded is refused."""
        first, second = _outputs(self.box, self.pair, runs, rng)
        rows = self.encoder(first), self.encoder(second)
        self.fresh.require(rows)
        return rows

    def count(
        self, found: Candidate, runs: int, rng: np.random.Generator | None = None
    ) -> tuple[int, int]:
        """How many further runs reach an event: of the input that should do so too often, of the other."""
        hits = [0, 0]
        for begin in range(0, runs, BATCH):
            for side, rows in enumerate(self.more(min(BATCH, runs - begin), rng)):
                hits[side] += int(found.contains(rows).sum())
        return (hits[0], hits[1]) if found.sign > 0 else (hits[1], hits[0])


def require_runs(runs: int, confidence: float) -> None:
    """Refuse what no audit can be made of, before anything is run."""
    if runs < MIN_RUNS:
        raise InvalidParameter(f"runs must be at least {MIN_RUNS}, got {runs}; nothing was run")
    check_confidence(confidence)


def _outputs(box: Box, pair: Pair, runs: int, rng: np.random.Generator | None) -> tuple[Any, Any]:
    order = range(2) if rng is None else rng.permutation(2)
    found = {int(side): run_side(box, pair, int(side), runs) for side in order}
    return found[0], found[1]
