"""Outputs of a box, counted."""

from __future__ import annotations

import numpy as np
import pytest
from tests.audit.simple_boxes import response

from sfumato.audit.boxes.box import FunctionBox, Pair
from sfumato.audit.boxes.tallies import Tallies
from sfumato.errors import InvalidInput

pytestmark = pytest.mark.unit

PAIR = Pair(0, 1, "bit")


def test_a_box_that_begins_anew_at_each_call_is_refused(rng: np.random.Generator) -> None:
    """A majority of tests that all see the same runs is one test."""
    kept = rng.integers(2, size=1000)
    seeded = Tallies(FunctionBox(lambda data, runs: kept[:runs], "seeded"), 2, stated=False)
    seeded.count(PAIR, 1000)
    with pytest.raises(InvalidInput, match="seeded gave the same outputs again and again"):
        seeded.count(PAIR, 1000)
    fresh = Tallies(response(1.0, rng), 2, stated=False)
    assert [fresh.count(PAIR, 1000).counts[0].sum() for _ in range(3)] == [1000] * 3


def test_numbers_and_words_are_counted_together() -> None:
    """One input gives numbers only, the other now and then a word: three outputs, whichever came first."""
    for pair in (Pair(0, 1), Pair(1, 0)):
        box = FunctionBox(
            lambda data, runs: [["no", 1.0][i % 2] if data else float(i % 2) for i in range(runs)],
            "box",
        )
        table = Tallies(box, 3, stated=False).count(pair, 100)
        assert sorted(zip(*(side.tolist() for side in table.counts), strict=True)) == sorted(
            [(50, 50), *([(50, 0), (0, 50)])]
        )
        assert not table.strange
