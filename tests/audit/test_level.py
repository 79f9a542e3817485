"""True claims are refuted no more often than agreed, whatever the outputs are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats
from tests.chance import LEVEL

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Pair, SampleBox
from sfumato.audit.fixed.fitting import fit_scorers
from sfumato.audit.sequential.budget import Budget
from sfumato.audit.sequential.refutation import refute
from sfumato.audit.sequential.stakes import Fitted, plan_bold
from sfumato.privacy import AddRemoveUser, ApproxDP, Claim, PureDP

# The module itself: the room's door hands out a function of the same name.
room: Any = import_module("sfumato.audit.sequential.refutation")
bets: Any = import_module("sfumato.audit.sequential.bet")

AUDITS, RUNS = 50, 130
RATE, RIVAL = 0.1, 0.3

PURE = Claim(PureDP(1), AddRemoveUser())
LOOSE = Claim(ApproxDP(1, Fraction(1, 10)), AddRemoveUser())
STEP = [Pair(0, 1)]


def mechanisms(rng: Generator) -> dict[str, Callable[[], tuple[Any, Claim, list[Pair]]]]:
    """Boxes that use up their claim, by what they give."""

    def bits(data: int, runs: int) -> FloatArray:
        return np.where(rng.random(runs) < 1 / (1 + math.exp(-1)), data, 1 - data).astype(float)

    def floats(data: float, runs: int) -> FloatArray:
        return np.asarray(np.round((data + rng.laplace(size=runs)) * 1024) / 1024)

    def words(data: int, runs: int) -> list[str]:
        return ["yes" if bit else "no" for bit in bits(data, runs)]

    def holes(data: int, runs: int) -> FloatArray:
        return np.where(rng.random(runs) < 0.3, math.nan, bits(data, runs))

    def telling(data: int, runs: int) -> FloatArray:
        return np.where(rng.random(runs) < 0.1, data + 5.0, bits(data, runs))

    def samples() -> SampleBox:
        return SampleBox(bits(0, RUNS), bits(1, RUNS), "files", [0, 0])

    several = [Pair(0, 1, "up"), Pair(5, 4, "down")]
    return {
        "floats": lambda: (floats, PURE, STEP),
        "ints": lambda: (lambda data, runs: np.rint(floats(data, runs)).astype(int), PURE, STEP),
        "words": lambda: (words, PURE, STEP),
        "nan": lambda: (holes, PURE, STEP),
        "pairs": lambda: (floats, PURE, several),
        "samples": lambda: (samples(), PURE, STEP),
        "delta": lambda: (telling, LOOSE, STEP),
    }


@pytest.mark.statistical
def test_the_level_is_kept_of_outputs_of_every_kind(
    rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What would have been caught is not asked for here, and takes as long as the audit.
    monkeypatch.setattr(room, "excluded_epsilon", lambda *_: math.inf)
    alarms = dict.fromkeys(kinds := mechanisms(rng), 0)
    for name, make in kinds.items():
        for _ in range(AUDITS):
            box, claim, pairs = make()
            verdict = refute(
                box, claim, pairs=pairs, confidence=1 - RATE, budget=Budget(RUNS, None)
            )
            assert verdict.evidence is not None
            # Of the bet alone: to be confirmed besides can only make alarms rarer.
            alarms[name] += verdict.evidence[1] >= 1 / RATE
    # More alarms have chance 1e-6 at most, were the rate all of 0.1: of one kind, and of all
    # together.
    most, most_in_all = (
        int(stats.binom.isf(LEVEL, audits, RATE)) for audits in (AUDITS, AUDITS * len(kinds))
    )
    assert max(alarms.values()) <= most, alarms
    assert sum(alarms.values()) <= most_in_all, alarms
    # The other arm: a rate of 0.3 in all would pass once in a million, of 0.75 even of one kind
    # alone.
    assert stats.binom.cdf(most_in_all, AUDITS * len(kinds), RIVAL) <= LEVEL
    assert stats.binom.cdf(most, AUDITS, 0.75) <= LEVEL


@pytest.mark.statistical
def test_an_audit_that_bets_on_the_runs_that_chose_its_events_is_caught(
    rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arm that fails: at a rate of 1/4 an honest audit of floats passes, this one never does."""
    trials, rate = 16, 0.25
    monkeypatch.setattr(bets, "PARTS", 1)
    box, claim, pairs = mechanisms(rng)["floats"]()

    def chance() -> float:
        found = (
            refute(box, claim, pairs=pairs, confidence=1 - rate, budget=Budget(600, None)).evidence
            for _ in range(trials)
        )
        # Fresh runs would confirm none of these: what counts here is how often the bet is won.
        won = sum(evidence is not None and evidence[1] >= 1 / rate for evidence in found)
        return float(stats.binom.sf(won - 1, trials, rate))

    assert chance() >= LEVEL
    settle = bets.Bet.settle

    def cheat(self: Any, trial: Any, bets: Any, rows: tuple[FloatArray, FloatArray]) -> None:
        bets[0].plan = plan_bold(*rows, self.statements, Fitted(fit_scorers(*rows)))
        settle(self, trial, bets, rows)

    monkeypatch.setattr(bets.Bet, "settle", cheat)
    assert chance() < LEVEL
