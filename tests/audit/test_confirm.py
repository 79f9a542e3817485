"""A refutation is one for everybody: confirmed on fresh runs, at its level, and gone on with if it is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats
from tests.audit.drifting import drifting
from tests.audit.simple_boxes import laplace
from tests.chance import LEVEL

from sfumato._types import FloatArray
from sfumato.audit.assertion import assert_private
from sfumato.audit.boxes.box import Box, FunctionBox, Pair, SampleBox
from sfumato.audit.replay import enough_runs, replay
from sfumato.audit.sequential.budget import Budget
from sfumato.audit.sequential.confirm import ALIKE, Confirmation, in_blocks, in_order
from sfumato.audit.sequential.refutation import refute
from sfumato.audit.verdict import Verdict
from sfumato.errors import InvalidInput
from sfumato.privacy import AddRemoveUser, Claim, PureDP

# The module itself: the room's door hands out a function of the same name.
room: Any = import_module("sfumato.audit.sequential.refutation")

STEP = [Pair(0, 1, "0 and 1")]
ONE = Claim(PureDP(1), AddRemoveUser())


def audited(box: Box, runs: int = 20_000, *, confidence: float = 0.99) -> Verdict:
    return refute(box, ONE, pairs=STEP, confidence=confidence, budget=Budget(runs, None))


@pytest.mark.statistical
@pytest.mark.parametrize("length", [20, 200, 20_000])
def test_runs_that_depend_on_each_other_refute_nothing(length: float, rng: Generator) -> None:
    """The bet is won by them, and was the verdict; the other arm, independent runs, is refuted each time."""
    found = [audited(drifting(length, rng), 8_000) for _ in range(8)]
    assert [one.kind for one in found].count("REFUTED") == 0
    won = [one for one in found if one.evidence is not None and one.evidence[1] >= 100]
    assert len(won) >= 4, "there was something to confirm"
    assert all(one.kind == "INCONCLUSIVE" for one in won)
    assert all("depend on each other" in note for one in won for note in one.notes)
    assert [audited(laplace(2.0, rng)).kind for _ in range(8)] == ["REFUTED"] * 8


@pytest.mark.statistical
def test_whoever_asks_gets_the_same_answer(rng: Generator) -> None:
    """`assert_private` fails on both kinds of boxes, and says which it was."""
    with pytest.raises(
        AssertionError, match=r"was not tested: NOT CONFIRMED: .* depend on each other"
    ):
        assert_private(drifting(200, rng), epsilon=1, pairs=STEP)
    with pytest.raises(AssertionError, match="does not keep epsilon 1"):
        assert_private(laplace(2.0, rng), epsilon=1, pairs=STEP)


@pytest.mark.statistical
def test_a_bet_that_is_not_confirmed_goes_on(
    rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fresh runs fail twice, by force; the third event is tried after twice the runs, at an eighth."""
    true, asked = room.confirm, list[tuple[float, int]]()

    def unlucky(witness: Any, box: Any, *, runs: Any, level: float) -> Confirmation:
        found: Confirmation = true(witness, box, runs=runs, level=level)
        asked.append((level, found.replay.runs))
        return found if len(asked) == 3 else Confirmation(found.replay, dependent=True)

    monkeypatch.setattr(room, "confirm", unlucky)
    found = audited(laplace(2.0, rng), 40_000)
    assert found.kind == "REFUTED"
    assert [level for level, _ in asked] == pytest.approx([0.005, 0.0025, 0.00125])
    assert found.confirmed is not None
    assert found.confirmed.refuted
    assert found.evidence is not None
    assert found.evidence[1] >= 400, "doubled twice"
    assert sum(2 * runs for _, runs in asked) <= 40_000


@pytest.mark.statistical
def test_numpys_laplace_is_refuted_every_time(rng: Generator) -> None:
    """Its low bits tell; of 61 audits two ended with what fresh runs did not show."""
    box = FunctionBox(lambda data, runs: data + rng.laplace(size=runs), "numpy")
    assert [audited(box, 100_000).kind for _ in range(61)] == ["REFUTED"] * 61


@pytest.mark.statistical
def test_what_fresh_runs_do_not_show_is_not_refuted_and_said(
    rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bet that anything wins, on runs with half the loss that is claimed: nothing is confirmed."""
    monkeypatch.setattr(room, "Bet", _Won)
    found = audited(laplace(0.5, rng), 4_000)
    assert found.kind == "INCONCLUSIVE"
    (note,) = found.notes
    assert note.startswith(
        "NOT CONFIRMED: the bet was won as if runs were independent, but fresh runs of the same event do not "
        "show it: it was luck, or runs depend on each other; tried "
    )


class _Won(room.Bet):  # type: ignore[misc]
    """A bet whose wealth is as large as is needed from the first events on."""

    def settle(self, trial: Any, bets: Any, rows: tuple[FloatArray, FloatArray]) -> None:
        super().settle(trial, bets, rows)
        if any(bet.plan.wager is not None for bet in bets):
            self.bankroll.best = max(self.bankroll.best, self.target)


@pytest.mark.statistical
def test_the_level_holds_of_bets_that_go_on(
    rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where every bet is won, trials alone keep the level: half, a quarter, ... of it.

    The arm that fails: trials that are passed whatever they show.
    """
    audits, rate = 30, 0.2
    monkeypatch.setattr(room, "Bet", _Won)
    box = laplace(1.0, rng)

    def alarms() -> int:
        return [audited(box, 600, confidence=1 - rate).kind for _ in range(audits)].count("REFUTED")

    assert stats.binom.sf(alarms() - 1, audits, rate) >= LEVEL
    monkeypatch.setattr(Confirmation, "holds", True)
    assert stats.binom.sf(alarms() - 1, audits, rate) < LEVEL


def kinds(rng: Generator) -> dict[str, Callable[[], FloatArray]]:
    """Independent scores of every kind."""
    return {
        "numbers": lambda: rng.laplace(size=480),
        "a grid": lambda: np.rint(rng.laplace(size=480)),
        "bits": lambda: (rng.random(480) < 0.5).astype(float),
        "rare bits": lambda: (rng.random(480) < 0.01).astype(float),
        "one in four": lambda: (rng.random(480) < 0.26).astype(float),
        "heavy tails": lambda: rng.standard_cauchy(480),
    }


@pytest.mark.statistical
def test_independent_runs_are_not_taken_for_dependent_ones(rng: Generator) -> None:
    trials = 400
    most = int(stats.binom.isf(LEVEL, trials, ALIKE))
    sizes = np.full(16, 30)
    for name, draw in kinds(rng).items():
        scores = [draw() for _ in range(trials)]
        blocks = (in_blocks((one.reshape(16, 30) > 0.5).sum(axis=1), sizes) for one in scores)
        assert sum(chance < ALIKE for chance in blocks) <= most, name
        assert sum(in_order(one) < ALIKE for one in scores) <= most, name
    # Every one of these is in an order, or in blocks.
    slow = [np.repeat(rng.normal(size=48), 10) for _ in range(20)]
    assert all(in_order(one) < ALIKE for one in slow)
    assert all(in_blocks((one.reshape(16, 30) > 2.5).sum(axis=1), sizes) <= 1 for one in slow)
    assert in_blocks(np.array([30, 0] * 8), sizes) < ALIKE


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [1.2, 1.5, 3.0])
def test_a_true_refutation_is_replayed_every_time(epsilon: float, rng: Generator) -> None:
    """As many runs as its own fresh runs ask for; a claim that is kept is not refuted by them."""
    box, private = laplace(epsilon, rng), laplace(1.0, rng)
    for _ in range(8):
        found = audited(box, 200_000)
        assert found.kind == "REFUTED"
        assert found.witness is not None
        runs = enough_runs(found.witness, found.confirmed)
        assert replay(found.witness, box, runs=runs).refuted
        assert not replay(found.witness, private, runs=runs, level=LEVEL).refuted


@pytest.mark.unit
@pytest.mark.parametrize(
    ("output", "words"),
    [(None, "None"), (math.nan, "nan"), (0.0, "0"), ("x", "'x'"), ([1, 2], "1, 2")],
)
def test_an_output_that_never_changes_is_inconclusive(output: Any, words: str) -> None:
    box = FunctionBox(lambda data: output, "constant")
    found = audited(box, 1000)
    assert found.kind == "INCONCLUSIVE"
    assert found.notes == (
        f"every run on every input gave the same output, {words}: nothing was tested. Does the mechanism "
        "return what it releases?",
    )
    with pytest.raises(
        AssertionError, match="was not tested: every run on every input gave the same output"
    ):
        assert_private(box, epsilon=1, pairs=STEP, runs=1000)


@pytest.mark.unit
def test_samples_are_not_confirmed_and_say_so(rng: Generator) -> None:
    found = audited(SampleBox(np.zeros(500), rng.integers(0, 2, 500), "files", [0, 0]))
    assert found.kind == "REFUTED"
    assert found.confirmed is None
    assert "outputs drawn beforehand cannot be run again: no fresh runs confirm this" in found.notes


@pytest.mark.unit
def test_too_few_runs_to_confirm_are_said_with_how_many_are_needed() -> None:
    """Each pair of runs multiplies wealth by at most 1.87; the exact test takes 69 of one side.

    Of 180 runs half of 90 of either input are for the first event: too few, whatever they show.
    """
    box = FunctionBox(lambda data: data, "tells")
    found = refute(box, ONE, pairs=STEP, confidence=1 - 1e-9, budget=Budget(180, None))
    assert found.evidence is not None
    assert found.evidence[1] >= 1e9
    assert found.kind == "INCONCLUSIVE"
    assert found.notes == ("the bet was won, but there are too few runs left to confirm it",)
    assert found.required_runs is not None
    enough = refute(
        box, ONE, pairs=STEP, confidence=1 - 1e-9, budget=Budget(180 + found.required_runs, None)
    )
    assert enough.kind == "REFUTED"


@pytest.mark.unit
def test_a_box_that_fails_on_fresh_runs_is_named() -> None:
    calls = [0]

    def tires(data: int, runs: int) -> list[int]:
        calls[0] += runs
        return [data] * (runs if calls[0] < 400 else runs - 1)

    class Tired:
        name = "tired"
        run = staticmethod(tires)

    with pytest.raises(InvalidInput, match="tired must give"):
        audited(Tired())
