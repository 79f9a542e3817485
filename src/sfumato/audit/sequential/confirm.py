"""Whether what a bet was won on shows itself again, on fresh runs that are independent of each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import stats

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Box
from sfumato.audit.boxes.runs import run_side
from sfumato.audit.fixed.events import Candidate
from sfumato.audit.replay import judged
from sfumato.audit.verdict import Replay, Witness

BLOCKS = 16
"""Fresh runs are made in so many blocks of either input at each look, and which input goes first changes."""
ALIKE = 1e-4
"""How often independent runs are taken for dependent ones, at most about: then a bet only goes on."""
TIED = 0.75
"""Ranks tell of order where at most this share of the scores is one and the same."""
ORDERED = 64
"""And where there are at least so many of them."""
FUTILE = -1.0
"""Standard deviations below what is allowed at which nothing more is hoped of an event."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What fresh runs of a witness show, and whether they depend on each other."""

    replay: Replay
    dependent: bool

    @property
    def holds(self) -> bool:
        """Whether they refute the statement, as runs that seem to be independent."""
        return self.replay.refuted and not self.dependent


def confirm(witness: Witness, box: Box, *, runs: Sequence[int], level: float) -> Confirmation:
    """The witness on fresh runs of either input: an exact test after so many of them, and so many, at most.

    Each of these looks has its equal part of the level; the first that refutes the statement ends
    it, as does one without hope. Privacy claims are about one run; the test takes runs to be
    independent. Two things would give away that they are not, whatever the law of one run is:
    blocks of runs in which the event comes far more often than in others, and scores that resemble
    those of the run before.
    """
    sides = (_Side(witness, box, 0), _Side(witness, box, 1))
    for look in runs:
        more = look - sides[0].runs
        # Blocks of one size: what depends on how many runs are asked for at once is no order in
        # time.
        blocks = min(BLOCKS, more)
        for number in range(blocks):
            for side in sides if number % 2 == 0 else sides[::-1]:
                side.draw(more // blocks, first=number == 0)
        hits = sum(sides[0].hits), sum(sides[1].hits)
        found = judged(witness, hits, sides[0].runs, level / len(runs))
        if found.refuted or found.excess < FUTILE:
            break
    chances = [chance for side in sides for chance in side.chances()]
    return Confirmation(found, min(chances) * len(chances) < ALIKE)


@dataclass(slots=True, eq=False)
class _Side:
    """Fresh runs of one input, block by block: how many reach the event, and how they score."""

    witness: Witness
    box: Box
    side: int
    sizes: list[int] = field(default_factory=list)
    hits: list[int] = field(default_factory=list)
    scores: list[list[FloatArray]] = field(default_factory=list)

    @property
    def runs(self) -> int:
        return sum(self.sizes)

    def draw(self, size: int, *, first: bool) -> None:
        event = self.witness.event
        rows = self.witness.encoder(run_side(self.box, self.witness.pair, self.side, size))
        self.sizes.append(size)
        self.hits.append(int(event.contains(rows).sum()))
        if isinstance(test := getattr(event.contains, "__self__", None), Candidate):
            self.scores += [[]] if first else []
            self.scores[-1].append(test.scorer.score(rows))

    def chances(self) -> Iterator[float]:
        yield in_blocks(np.array(self.hits), np.array(self.sizes))
        for look in self.scores:
            yield in_order(np.concatenate(look))


def in_blocks(hits: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> float:
    """The chance, at most, that independent runs put so many or so few of their hits into one block.

    Given how many there are in all, those of a block are hypergeometric: exact, and a union over
    blocks.

    >>> in_blocks(np.array([50, 0, 50, 0]), np.array([50, 50, 50, 50])) < 1e-9
    True
    >>> in_blocks(np.array([12, 9, 11, 10]), np.array([50, 50, 50, 50])) > 0.5
    True
    """
    law = stats.hypergeom(int(sizes.sum()), int(hits.sum()), sizes)
    return min(1.0, 2 * hits.size * float(np.minimum(law.cdf(hits), law.sf(hits - 1)).min()))


def in_order(scores: FloatArray) -> float:
    """The chance, about, that ranks of independent scores resemble those before them so much, or so little.

    The correlation of neighboring ranks is normal of variance 1/n [bartels82]; 1 where most scores
    are tied or are no numbers, of which ranks say nothing.

    >>> in_order(np.cumsum(np.random.default_rng(1).normal(size=200))) < 1e-9
    True
    """
    if scores.size < ORDERED or not np.isfinite(scores).all():
        return 1.0
    _, counts = np.unique(scores, return_counts=True)
    if counts.max() > TIED * scores.size:
        return 1.0
    ranks = stats.rankdata(scores)
    ranks -= ranks.mean()
    resemblance = float(ranks[:-1] @ ranks[1:] / (ranks @ ranks))
    return float(2 * stats.norm.sf(abs(resemblance) * math.sqrt(scores.size)))
