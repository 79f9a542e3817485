"""Local maps of made-up or public people, without the exact draws of devices: fast, and for plans only."""

from __future__ import annotations

import numpy as np

from sfumato._types import IntArray
from sfumato.heatmap.inference import CountsPosterior
from sfumato.heatmap.local.channels import Channel, DiskChannel, SubsetSelection
from sfumato.heatmap.local.decoder import Evidence, decode
from sfumato.heatmap.local.odds import Report
from sfumato.heatmap.local.question import FINEST_CELL, Question
from sfumato.heatmap.local.rounds import (
    design,
    disk_rows,
    evidence_of,
    first_question,
    leaf_of_cells,
    next_question,
)
from sfumato.privacy.accounting import Number

UNIT = (0.0, 0.0, 1.0, 1.0)


def simulate_reports(
    channel: Channel, cells: IntArray, *, rng: np.random.Generator
) -> dict[Report, int]:
    """Reports of public cells, by probabilities in doubles: for simulations, never for people.

    Args:
        channel: How each answers; subset selection and disk channels are fast.
        cells: The true cell of each.
        rng: Draws.

    Returns:
        How often each report came.

    """
    odds = float(channel.odds)
    found: dict[Report, int] = {}
    if isinstance(channel, DiskChannel):
        weights = 1 + (odds - 1) * disk_rows(channel)
        held = np.bincount(cells, minlength=channel.cells)
        counts = np.zeros(channel.outputs, dtype=np.int64)
        for cell in np.flatnonzero(held):
            chance = weights[:, cell] / weights[:, cell].sum()
            counts += rng.multinomial(held[cell], chance)
        return {(int(one),): int(counts[one]) for one in np.flatnonzero(counts)}
    if isinstance(channel, SubsetSelection):
        size, every = channel.size, channel.cells
        inside = size * odds / (size * odds + every - size)
        for begin in range(0, cells.size, 2**14):
            here = cells[begin : begin + 2**14]
            keys = rng.random((here.size, every))
            keys[np.arange(here.size), here] = np.where(rng.random(here.size) < inside, -1.0, 2.0)
            chosen = np.sort(np.argpartition(keys, size - 1, axis=1)[:, :size], axis=1)
            for report in map(tuple, chosen.tolist()):
                found[report] = found.get(report, 0) + 1
        return found
    source = _Generator(rng)
    for cell in cells.tolist():
        report = channel.sample(cell, source)
        found[report] = found.get(report, 0) + 1
    return found


class _Generator:
    """Integers of a generator with a seed."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def uniform(self, below: int, size: int) -> list[int]:
        """Integers from 0 to below - 1."""
        return [int(one) for one in self.rng.integers(0, below, size)]


def simulate_local_map(
    codes: IntArray, epsilon: Number, *, rng: np.random.Generator
) -> CountsPosterior:
    """The local map of public people: both rounds and the decoder, as devices would have it.

    Args:
        codes: Where each is: a Z-order code of level 8 of the unit square.
        epsilon: What an answer may tell.
        rng: Draws.

    Returns:
        The posterior of the map.

    """
    plan = design(codes.size, epsilon)
    shuffled = rng.permutation(codes)
    early = max(1, round(float(plan.first_part) * codes.size))
    first = first_question(plan, bounds=UNIT, campaign=f"simulation {rng.integers(2**32)}")
    evidence = [_asked(first, shuffled[:early], rng)]
    if not plan.cells or early == codes.size:
        return decode(evidence, codes.size)
    second = next_question(plan, first, decode(evidence, codes.size))
    return decode([*evidence, _asked(second, shuffled[early:], rng)], codes.size)


def _asked(question: Question, codes: IntArray, rng: np.random.Generator) -> Evidence:
    cells = leaf_of_cells(question.cells, FINEST_CELL)[codes]
    return evidence_of(question, simulate_reports(question.channel, cells, rng=rng))
