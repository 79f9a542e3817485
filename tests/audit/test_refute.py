"""Claims that are false are refuted, with a witness; claims that are true are not, more often than agreed."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats
from tests.audit.simple_boxes import laplace, response
from tests.chance import LEVEL

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Box, FunctionBox, Pair, SampleBox
from sfumato.audit.boxes.pairs import Histograms, Numbers, Queries
from sfumato.audit.sequential.bet import Look
from sfumato.audit.sequential.budget import Budget
from sfumato.audit.sequential.refutation import refute
from sfumato.audit.verdict import Verdict
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import (
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    RandomPureDP,
    ReplaceUser,
)

# The module itself: the room's door hands out a function of the same name.
room: Any = import_module("sfumato.audit.sequential.refutation")

STEP = Pair(0, 1, "0 and 1")
SURE = 1 - 1e-6


def claim_of(epsilon: float, delta: float = 0.0) -> Claim:
    exact = Fraction(epsilon)
    return Claim(ApproxDP(exact, Fraction(delta)) if delta else PureDP(exact), AddRemoveUser())


def audited(box: Box, claim: Claim, runs: int = 20_000, **settings: Any) -> Verdict:
    return refute(
        box,
        claim,
        **{"pairs": [STEP], "confidence": SURE, "budget": Budget(runs, None), **settings},
    )


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", [response, laplace])
def test_what_breaks_its_claim_is_refuted_by_a_witness(
    mechanism: Callable[[float, Generator], Box], rng: Generator
) -> None:
    found = audited(mechanism(2.0, rng), claim_of(1.0))
    assert found.kind == "REFUTED"
    assert found.evidence is not None
    assert found.evidence[0] == "e-value"
    assert found.evidence[1] >= 1e6
    assert found.wealth is not None
    assert found.wealth[-1, 1] == pytest.approx(found.evidence[1])
    assert found.wealth[-1, 0] <= found.runs < 20_000
    witness = found.witness
    assert witness is not None
    assert witness.hits[0] > math.e * witness.hits[1]
    assert witness.event.words
    # Fresh runs are in the event about as often: of the input that reaches it more, at least twice
    # as often.
    box = mechanism(2.0, rng)
    hits = [
        int(witness.event.contains(witness.encoder(box.run(data, 10_000))).sum())
        for data in (witness.pair.first, witness.pair.second)
    ]
    assert hits[0] > 2 * hits[1]


@pytest.mark.statistical
def test_an_output_that_one_input_gives_once_in_a_hundred_runs_is_caught(rng: Generator) -> None:
    """In bits of noise that just keep the claim. At this confidence about 60 hits are needed."""

    def draw(data: int, runs: int) -> list[Any]:
        honest = list(response(1.0, rng).run(data, runs))
        return [
            math.nan if data and rare else one
            for one, rare in zip(honest, rng.random(runs) < 0.01, strict=True)
        ]

    found = audited(FunctionBox(draw, "sometimes nan"), claim_of(1.0), runs=40_000)
    assert found.kind == "REFUTED"
    assert found.witness is not None
    assert (found.witness.pair.first, found.witness.hits[1]) == (1, 0)


@pytest.mark.statistical
def test_low_bits_tell_and_a_grid_does_not(rng: Generator) -> None:
    def draw(data: float, runs: int) -> FloatArray:
        return np.asarray(data + rng.laplace(size=runs))

    found = audited(FunctionBox(draw, "numpy"), claim_of(1.0), runs=10_000)
    assert found.kind == "REFUTED"
    assert found.witness is not None
    assert "2**-" in found.witness.event.words
    assert audited(laplace(1.0, rng), claim_of(1.0), runs=10_000).kind == "NOT_REFUTED"


@pytest.mark.statistical
def test_the_pair_is_found(rng: Generator) -> None:
    """Only where all answers rise is there nothing to hide behind: the largest of five, half the noise."""

    def draw(data: FloatArray, runs: int) -> FloatArray:
        noisy = data + rng.laplace(0, 1.0, (runs, len(data)))
        return np.asarray(np.round(noisy.max(axis=1) * 1024) / 1024)

    found = audited(FunctionBox(draw, "max"), claim_of(1.0), runs=60_000, pairs=Queries(5))
    assert found.kind == "REFUTED"
    assert len(found.pairs) == 8
    assert found.witness is not None
    assert found.witness.pair.name.startswith("all")


@pytest.mark.statistical
def test_pairs_close_to_the_patterns_are_tried_where_these_show_nothing(rng: Generator) -> None:
    """Where no pattern is, between 1.5 and 9.5, this box gives the data away."""

    def draw(data: float, runs: int) -> FloatArray:
        scale = 0.2 if 1.5 < data < 9.5 else 1.0
        return np.asarray(np.round((data + rng.laplace(0, scale, runs)) * 1024) / 1024)

    box = FunctionBox(draw, "far out")
    found = audited(box, claim_of(1.0), runs=40_000, pairs=Numbers(), confidence=0.99)
    assert found.kind == "REFUTED"
    assert len(found.pairs) > 3


@pytest.mark.statistical
def test_claims_of_zcdp_and_gaussian_dp(rng: Generator) -> None:
    def draw(data: float, runs: int) -> FloatArray:
        return np.asarray(np.round((data + rng.normal(0, 0.4, runs)) * 1024) / 1024)

    box = FunctionBox(draw, "normal")
    # The truth is 1/2 and 1 of a standard deviation of 1; at 0.4 it is 3.125 and 2.5.
    for loss in (ZCDP("1/2"), GaussianDP(1)):
        assert audited(box, Claim(loss, AddRemoveUser())).kind == "REFUTED"
    for loss in (ZCDP("25/8"), GaussianDP("5/2")):
        assert audited(box, Claim(loss, AddRemoveUser()), runs=2_000).kind != "REFUTED"


@pytest.mark.statistical
def test_approximate_claims_allow_delta(rng: Generator) -> None:
    def draw(data: int, runs: int) -> FloatArray:
        return np.where(rng.random(runs) < 0.1, data + 5.0, response(0.5, rng).run(data, runs))

    box = FunctionBox(draw, "gives itself away")
    assert audited(box, claim_of(1.0, 0.1)).kind == "NOT_REFUTED"
    assert audited(box, claim_of(1.0, 0.05)).kind == "REFUTED"


@pytest.mark.statistical
def test_what_is_excluded_would_have_been_caught(rng: Generator) -> None:
    """With chance 90 %; and what the claim allows would not be."""
    runs, trials = 1_500, 10
    quiet = audited(response(0.1, rng), claim_of(1.0), runs=runs, confidence=0.99)
    assert quiet.kind == "NOT_REFUTED"
    assert quiet.excluded is not None
    assert 1 < quiet.excluded < 4
    assert any("0.5" in note for note in quiet.notes)

    def caught(epsilon: float) -> int:
        def draw(data: int, runs: int) -> FloatArray:
            return (rng.random(runs) < 0.1 * math.exp(-epsilon * (1 - data))).astype(float)

        box = FunctionBox(draw, "an event of mass 0.1")
        kinds = [
            audited(box, claim_of(1.0), runs=runs, confidence=0.99).kind for _ in range(trials)
        ]
        return kinds.count("REFUTED")

    assert float(stats.binom.cdf(caught(quiet.excluded), trials, 0.9)) >= LEVEL
    assert float(stats.binom.cdf(caught(1.0), trials, 0.9)) < LEVEL


@pytest.mark.unit
def test_too_few_runs_are_inconclusive_and_say_how_many_are_missing(rng: Generator) -> None:
    found = audited(response(1.0, rng), claim_of(1.0), runs=20)
    assert found.kind == "INCONCLUSIVE"
    assert found.required_runs is not None
    assert found.runs == 20
    enough = audited(response(1.0, rng), claim_of(1.0), runs=20 + found.required_runs)
    assert enough.kind == "NOT_REFUTED"
    nothing = audited(response(1.0, rng), claim_of(1.0), runs=0)
    assert (nothing.kind, nothing.runs) == ("INCONCLUSIVE", 0)


@pytest.mark.unit
def test_as_many_runs_as_were_missing_are_enough_for_several_pairs(rng: Generator) -> None:
    """Each of the eight patterns gets its least before better ones get more; two runs fewer are too few."""
    box = FunctionBox(lambda data, runs: np.rint(data.max() + rng.laplace(0, 1, runs)), "max")
    found = audited(box, claim_of(1.0), runs=100, pairs=Queries(5))
    assert (found.kind, found.runs) == ("INCONCLUSIVE", 100)
    assert found.required_runs is not None
    for runs in (100 + found.required_runs, 100 + 2 * found.required_runs):
        assert audited(box, claim_of(1.0), runs=runs, pairs=Queries(5)).kind == "NOT_REFUTED"
    short = audited(box, claim_of(1.0), runs=98 + found.required_runs, pairs=Queries(5))
    assert (short.kind, short.required_runs) == ("INCONCLUSIVE", 2)


@pytest.mark.unit
@pytest.mark.parametrize(
    "loss", [PureDP(700), PureDP(800), ApproxDP(700, "1/100"), GaussianDP(100), ZCDP(10_000)]
)
def test_of_a_claim_that_no_runs_can_refute_nothing_is_run(loss: Any) -> None:
    box = FunctionBox(lambda data: pytest.fail("it was run"), "untouched")
    found = audited(box, Claim(loss, AddRemoveUser()))
    assert (found.kind, found.runs, found.required_runs) == ("INCONCLUSIVE", 0, None)
    assert found.notes == ("no runs can refute an epsilon above 150: nothing was run",)


@pytest.mark.statistical
def test_the_smallest_and_the_largest_epsilon(rng: Generator) -> None:
    same = FunctionBox(lambda data, runs: rng.integers(0, 2, runs), "same")
    assert audited(same, claim_of(0.0), runs=1_000).kind == "NOT_REFUTED"
    assert audited(response(1.0, rng), claim_of(0.0), runs=4_000).kind == "REFUTED"
    assert audited(same, claim_of(150.0), runs=200).kind == "INCONCLUSIVE"


@pytest.mark.unit
def test_the_same_box_is_judged_the_same_and_swapping_the_pair_changes_nothing(
    rng: Generator,
) -> None:
    seed = int(rng.integers(2**32))
    found = [audited(laplace(2.0, np.random.default_rng(seed)), claim_of(1.0)) for _ in range(2)]
    assert found[0].runs == found[1].runs
    assert found[0].evidence == found[1].evidence
    assert found[0].wealth is not None
    assert found[1].wealth is not None
    assert found[0].wealth.tolist() == found[1].wealth.tolist()
    swapped = audited(laplace(2.0, rng), claim_of(1.0), pairs=[Pair(1, 0)])
    assert swapped.kind == "REFUTED"


@pytest.mark.unit
def test_a_seeded_box_is_refused() -> None:
    def draw(data: float, runs: int) -> FloatArray:
        return np.asarray(data + np.random.default_rng(7).laplace(size=runs))

    with pytest.raises(InvalidInput, match="seeded"):
        audited(FunctionBox(draw, "seeded"), claim_of(1.0))


@pytest.mark.unit
def test_a_box_without_randomness_is_refuted_or_says_nothing() -> None:
    itself = refute(lambda data: data, claim_of(1.0), pairs=[(0, 1)])
    assert itself.kind == "REFUTED"
    assert itself.notes == tuple(
        f"on input {side} of the pair 'pair 1' every run gave the same output: it is not random, or seeded"
        for side in (1, 2)
    )
    silent = audited(FunctionBox(lambda data: "x", "constant"), claim_of(1.0), runs=1000)
    assert silent.kind == "INCONCLUSIVE"


@pytest.mark.unit
def test_outputs_may_be_anything(rng: Generator) -> None:
    def draw(data: int) -> Any:
        return {"many": [data, {"deep": [int(rng.random() < 0.5)]}]} if rng.random() < 0.5 else None

    assert audited(FunctionBox(draw, "nested"), claim_of(1.0)).kind == "REFUTED"

    def shapes(data: int) -> Any:
        return [1.0, float(rng.random() < 0.5)][: 1 + data]

    assert audited(FunctionBox(shapes, "shapes"), claim_of(1.0)).kind == "REFUTED"


@pytest.mark.unit
def test_a_box_that_fails_is_named() -> None:
    def wrong(data: int) -> float:
        return 1 / data

    with pytest.raises(
        InvalidInput, match="divides raised ZeroDivisionError on input 1 of the pair '0 and 1'"
    ):
        audited(FunctionBox(wrong, "divides"), claim_of(1.0))

    class Few:
        name = "few"

        def run(self, data: Any, runs: int) -> list[int]:
            return [data] * (runs - 1)

    with pytest.raises(InvalidInput, match="few must give 2 outputs when asked for them, gave 1"):
        audited(Few(), claim_of(1.0))


@pytest.mark.unit
def test_samples_are_used_up_and_no_more(rng: Generator) -> None:
    first, second = (rng.integers(0, 2, size) for size in (1_201, 1_500))
    box = SampleBox(first, second, "files", [0, 0])
    found = audited(box, claim_of(1.0))
    assert (found.kind, found.runs, box.taken) == ("NOT_REFUTED", 2_402, [1_201, 1_201])


@pytest.mark.unit
def test_a_slow_box_is_shown_and_stopped_in_time(
    rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that only the box moves on: 20 ms a run, and 0.6 s for all."""
    looks: list[Look] = []
    clock = [0.0]
    for name in ("sequential.bet", "boxes.runs", "sequential.refutation"):
        module = import_module(f"sfumato.audit.{name}")
        monkeypatch.setattr(module, "time", mock.Mock(monotonic=lambda: clock[0]))

    def slow(data: int) -> float:
        clock[0] += 0.02
        return float(rng.normal())

    found = audited(
        FunctionBox(slow, "slow"), claim_of(1.0), budget=Budget(10_000, 0.6), watch=looks.append
    )
    # A part is at most four times the one before, so at most all of the budget again.
    assert clock[0] < 1.2
    assert found.seconds == clock[0]
    assert len(looks) >= 2
    assert looks[-1].runs == found.runs
    assert looks[-1].target == pytest.approx(1e6)


@pytest.mark.unit
def test_looks_show_the_bet_and_budgets_are_kept(rng: Generator) -> None:
    looks: list[Look] = []
    found = audited(laplace(2.0, rng), claim_of(1.0), runs=2_000, watch=looks.append)
    assert found.runs <= 2_000
    assert [look.runs for look in looks] == sorted(look.runs for look in looks)
    assert all(0 <= look.wealth <= look.best for look in looks)
    assert looks[0].event == "none yet"
    assert "output" in looks[-1].event


@pytest.mark.unit
def test_long_paths_are_thinned(rng: Generator) -> None:
    path = np.column_stack([np.arange(10_000.0), rng.random(10_000)])
    thinned = room.thin(path)
    assert len(thinned) <= 2_000
    assert thinned[-1, 0] == 9_999
    assert thinned[:, 1].max() == path[:, 1].max()


@pytest.mark.unit
def test_what_cannot_be_audited_is_said_before_anything_is_run() -> None:
    box = FunctionBox(lambda data: pytest.fail("it was run"), "untouched")
    with pytest.raises(InvalidParameter, match="confidence must be between 0 and 1, got 1"):
        audited(box, claim_of(1.0), confidence=1.0)
    with pytest.raises(
        InvalidParameter, match=r"confidence must be between 0 and 1, got .*; nothing was run"
    ):
        audited(box, claim_of(1.0), confidence=1 - Fraction(1, 10**17))
    with pytest.raises(
        InvalidParameter, match=r"a claim is a loss with a relation, .* got PureDP\("
    ):
        audited(box, PureDP(1))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="neighbors in the sense of the claim"):
        audited(box, Claim(PureDP(1), ReplaceUser()), pairs=Histograms(3))
    with pytest.raises(InvalidParameter, match="at least one pair"):
        audited(box, claim_of(1.0), pairs=[])
    with pytest.raises(InvalidParameter, match="use certify"):
        audited(box, Claim(RandomPureDP(1, "1/10"), AddRemoveUser()))
    with pytest.raises(InvalidParameter, match="seconds must be above 0"):
        Budget(10, 0.0)
    with pytest.raises(InvalidParameter, match="runs must be at least 0, got -1"):
        Budget(-1)


@pytest.mark.unit
def test_fresh_runs_keep_to_the_time_too(rng: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """20 ms a run and 12 s: a leak is caught in a few runs, and confirmed in no more time again."""
    clock = [0.0]
    for name in ("sequential.bet", "boxes.runs", "sequential.refutation"):
        module = import_module(f"sfumato.audit.{name}")
        monkeypatch.setattr(module, "time", mock.Mock(monotonic=lambda: clock[0]))

    def slow(data: int) -> int:
        clock[0] += 0.02
        return data

    found = refute(slow, claim_of(1.0), pairs=[STEP], budget=Budget(10_000, 12.0))
    assert found.kind == "REFUTED"
    assert found.confirmed is not None
    assert 64 <= found.confirmed.runs <= 150
    assert clock[0] == pytest.approx(0.02 * (found.runs + 2 * found.confirmed.runs))
    assert found.seconds == pytest.approx(0.02 * found.runs), "the bet's own time"
