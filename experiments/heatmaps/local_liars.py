"""How far dishonest devices move a local map through the whole decoder, beside the bound to first order.

python -m experiments.heatmaps.local_liars [--users 10000] [--samples 4]

All honest people are around one place, 2 in 1,000 anywhere; liars of round 2 want mass in the far quarter of
the map. They send the one output that favors it most, or the forty best in turn, by first-order pull or by
the cells it names; the worst of these four attacks is told, means over samples. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from experiments.heatmaps.protocol import generator

from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.analysis import emd_share
from sfumato.heatmap.local import (
    FINEST_CELL,
    Evidence,
    Question,
    decode,
    design,
    evidence_of,
    first_question,
    leaf_of_cells,
    next_question,
    poisoning_bound,
    simulate_reports,
)
from sfumato.spaces import Grid

LEVEL, FAR = 6, 3
"""Maps are of 64 x 64 cells; the far quarter is that of high x and high y."""
MIDDLE, SPREAD, ANYWHERE = 0.25, 0.05, 0.002
BEST = 40


@dataclass(frozen=True, slots=True, eq=False)
class Campaign:
    """Two questions, and where those are who answer the second."""

    first: Evidence
    question: Question
    cells: IntArray
    users: int

    def shares(self, lies: Sequence[int], liars: int, rng: np.random.Generator) -> FloatArray:
        """The map, with so many of round 2 sending these outputs in turn."""
        reports = simulate_reports(self.question.channel, self.cells[liars:], rng=rng)
        for at in range(liars):
            lie = (lies[at % len(lies)],)
            reports[lie] = reports.get(lie, 0) + 1
        found = decode([self.first, self.evidence(reports)], self.users).means(LEVEL)
        return np.asarray(found / found.sum())

    def evidence(self, reports: dict[tuple[int, ...], int]) -> Evidence:
        """Reports of round 2."""
        return evidence_of(self.question, reports)

    @property
    def masses(self) -> FloatArray:
        """The true shares of the cells of round 2, with a little that is even."""
        counts = np.bincount(self.cells, minlength=len(self.question.cells))
        return np.asarray(0.97 * counts / counts.sum() + 0.03 / counts.size)

    @property
    def attacks(self) -> list[list[int]]:
        """Which outputs to send, by those who know the truth: the best one, the best forty."""
        answers = simulate_reports(
            self.question.channel, self.cells, rng=generator("liars", "look")
        )
        told, masses = self.evidence(answers), self.masses
        _, covariance = told.expanded(masses)
        far = np.array([code >> 2 * (level - 1) == FAR for level, code in self.question.cells])
        family, more = told.family.astype(np.float64), told.odds - 1
        pulls = more * (family @ covariance[:, far].sum(axis=1)) / (1 + more * (family @ masses))
        named = (family @ far) / np.maximum(family.sum(axis=1), 1)
        orders = [np.argsort(-one, kind="stable").tolist() for one in (pulls, named)]
        return [order[:turns] for order in orders for turns in (1, BEST)]


def campaign(users: int, epsilon: str, rng: np.random.Generator) -> Campaign:
    """Round 1, honest, and the question that it leads to."""
    at = MIDDLE + SPREAD * rng.standard_normal((users, 2))
    lost = rng.random(users) < ANYWHERE
    at[lost] = rng.random((int(lost.sum()), 2))
    codes = Grid(FINEST_CELL).cells_of(*np.clip(at, 0, 1 - 1e-9).T)
    plan = design(users, epsilon)
    first = first_question(plan, bounds=(0.0, 0.0, 1.0, 1.0), campaign="liars")
    early = round(float(plan.first_part) * users)
    held = leaf_of_cells(first.cells, FINEST_CELL)[codes]
    answers = simulate_reports(first.channel, held[:early], rng=rng)
    told = evidence_of(first, answers)
    second = next_question(plan, first, decode([told], users))
    return Campaign(told, second, leaf_of_cells(second.cells, FINEST_CELL)[codes[early:]], users)


def row(users: int, epsilon: str, part: float, samples: int) -> list[str]:
    """Means over samples of the worst attack."""
    quarter = slice(FAR * 4 ** (LEVEL - 1), (FAR + 1) * 4 ** (LEVEL - 1))
    grid, found = Grid(LEVEL), []
    for sample in range(samples):
        words = ("liars", users, epsilon, sample)
        made = campaign(users, epsilon, generator(*words))
        liars = round(part * made.cells.size)
        honest = made.shares([0], 0, generator(*words, "answers"))
        bent = max(
            (made.shares(one, liars, generator(*words, "answers")) for one in made.attacks),
            key=lambda one: float(one[quarter].sum()),
        )
        reports = simulate_reports(made.question.channel, made.cells, rng=generator(*words))
        bound = poisoning_bound(made.evidence(reports), liars, made.masses)
        found.append(
            (
                honest[quarter].sum(),
                bent[quarter].sum(),
                emd_share(grid.image(bent), grid.image(honest), grid),
                bound.largest_move,
            )
        )
    before, after, moved, most = np.mean(found, axis=0)
    return [
        epsilon,
        f"{part:.0%}",
        f"{before:.2%}",
        f"{after:.2%}",
        f"{moved:.3f}",
        f"{most:.0%}",
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Dishonest devices and the whole decoder")
    parser.add_argument("--users", type=int, default=10_000, help="how many devices there are")
    parser.add_argument("--samples", type=int, default=4, help="campaigns of each row")
    given = parser.parse_args(argv)
    head = [
        "epsilon",
        "liars in round 2",
        "far quarter without",
        "with",
        "the map moves",
        "most of a cell",
    ]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for epsilon in ("1", "3"):
        for part in (0.01, 0.05):
            print(f"| {' | '.join(row(given.users, epsilon, part, given.samples))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
