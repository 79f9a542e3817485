"""Lower bounds hold, are close to the truth, and come with a witness anyone can count again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats
from tests.audit.simple_boxes import laplace, response

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import Box, FunctionBox, Pair, SampleBox
from sfumato.audit.fixed.bound import lower_bound
from sfumato.audit.fixed.delta_profile import profile
from sfumato.audit.fixed.ratio import epsilon_lower
from sfumato.errors import InvalidInput, InvalidParameter


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", [response, laplace])
def test_a_bound_is_below_the_truth_and_not_far(
    mechanism: Callable[[float, Generator], Box], rng: Generator
) -> None:
    found = lower_bound(mechanism(1.0, rng), Pair(0, 1), runs=60_000, confidence=1 - 1e-6, rng=rng)
    # Above with chance 1e-6. Of {x = 0}, chances .73 and .27 (or of Laplace {x < 0}, .5 and .18),
    # 16,500 runs each leave a standard deviation of sqrt((1 / p - 1 + 1 / q - 1) / n), at most
    # 0.019; twice 4.75 of them, once for the bound and once for bad luck, are 0.18.
    assert 1 - 0.18 <= found.epsilon <= 1
    assert found.runs == 60_000


@pytest.mark.statistical
def test_both_directions_are_tried_and_swapping_the_pair_turns_the_witness(rng: Generator) -> None:
    def draw(data: int, runs: int) -> FloatArray:
        # Only input 1 reaches the output 1; in the other direction epsilon is ln(1 / 0.7).
        return (rng.random(runs) < 0.3 * data).astype(float)

    box = FunctionBox(draw, "one way")
    for pair in (Pair(0, 1, "up"), Pair(1, 0, "down")):
        found = lower_bound(box, pair, runs=4000, confidence=1 - 1e-6)
        assert (found.witness.pair.first, found.witness.pair.second) == (1, 0)
        assert found.witness.pair.name == pair.name
        assert found.witness.hits[1] == 0
        # 1,100 held-out runs: ln(330 / -ln 1e-6) is 3.2, and 330 hits are within 5 deviations of 15
        # of it.
        assert 2.9 < found.epsilon < 3.4


@pytest.mark.unit
def test_the_witness_can_be_counted_again(rng: Generator) -> None:
    box = response(1.0, rng)
    found = lower_bound(box, Pair(0, 1), delta=0.05, runs=8000, confidence=0.9, rng=rng)
    witness = found.witness
    k1, k2 = witness.hits
    n1, n2 = witness.runs
    assert epsilon_lower(k1, n1, k2, n2, delta=0.05, level=1 - 0.9) == found.epsilon
    assert (witness.statement.epsilon, witness.statement.delta) == (found.epsilon, 0.05)
    # The event is one output, and the input that makes it likelier is the first of the pair.
    rows = witness.encoder(np.array([0.0, 1.0]))
    assert witness.event.contains(rows).tolist() == [
        witness.pair.first == 0,
        witness.pair.first == 1,
    ]
    assert "the output is" in witness.event.words


@pytest.mark.unit
def test_the_same_runs_give_the_same_bound(rng: Generator) -> None:
    outputs = rng.integers(0, 4, 1000).astype(float), rng.integers(0, 3, 1000).astype(float)
    bounds = [
        lower_bound(SampleBox(*outputs, "files", [0, 0]), Pair(0, 1), runs=2000, rng=seed).epsilon
        for seed in (None, rng)
    ]
    assert bounds[0] == bounds[1] > 1


@pytest.mark.statistical
def test_the_level_is_kept_although_the_event_is_chosen(rng: Generator) -> None:
    """Equal inputs: every positive bound is an error."""
    box = laplace(1.0, rng)
    trials = 140
    errors = sum(
        lower_bound(box, Pair(0, 0), runs=400, confidence=0.7).epsilon > 0 for _ in range(trials)
    )
    # The level is 0.3: more than this many errors have chance 1e-6, unless the runs that test the
    # event are those that chose it: then 71 of 100 were errors, and this few have chance 6e-8.
    most = stats.binom.isf(1e-6, trials, 0.3)
    assert errors <= most < cheated(rng, trials)


def cheated(rng: Generator, trials: int) -> int:
    """How often the same audit errs when the runs that choose are among those that test."""
    errors = 0
    for _ in range(trials):
        outputs = rng.normal(size=(2, 110)).round(6)
        again = [np.concatenate([one[:90], one]) for one in outputs]
        box = SampleBox(again[0], again[1], "cheated", [0, 0])
        errors += lower_bound(box, Pair(0, 1), runs=400, confidence=0.7).epsilon > 0
    return errors


@pytest.mark.unit
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"runs": 99}, "runs must be at least 100, got 99; nothing was run"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1, got 1.0; nothing was run"),
        ({"delta": 1.0}, "delta must be at least 0 and below 1, got 1.0; nothing was run"),
    ],
)
def test_what_cannot_be_audited_is_refused_before_anything_runs(
    change: dict[str, float], rule: str
) -> None:
    def never(data: int, runs: int) -> FloatArray:
        raise AssertionError("it ran")

    with pytest.raises(InvalidParameter, match=rule):
        lower_bound(FunctionBox(never, "never"), Pair(0, 1), **change)  # type: ignore[arg-type]


@pytest.mark.unit
def test_seeded_boxes_are_refused() -> None:
    def draw(data: float, runs: int) -> FloatArray:
        return np.asarray(data + np.random.default_rng(7).laplace(size=runs))

    with pytest.raises(InvalidInput, match="its randomness is seeded"):
        lower_bound(draw, (0, 1), runs=400)
    with pytest.raises(InvalidInput, match="its randomness is seeded"):
        profile(draw, (0, 1), epsilons=[0.0, 1.0], runs=400)


@pytest.mark.unit
def test_a_plain_function_and_a_tuple_will_do(rng: Generator) -> None:
    def draw(data: int, runs: int) -> FloatArray:
        return (rng.random(runs) < 0.3 + 0.4 * data).astype(float)

    assert lower_bound(draw, (0, 1), runs=400).witness.pair.name == "pair 1"
    assert profile(draw, (0, 1), epsilons=[0.0], runs=400).runs == 400
    with pytest.raises(
        InvalidParameter, match="a box is a function of the data or has a method run, got 3"
    ):
        lower_bound(3, (0, 1))  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInput, match=r"draw raised TypeError on input 1 .*\(test_bound.py, line \d+\)"
    ):
        lower_bound(draw, (None, 1))


@pytest.mark.unit
def test_a_constant_box_has_the_bound_0() -> None:
    found = lower_bound(
        FunctionBox(lambda data, runs: np.zeros(runs), "constant"), Pair(0, 1), runs=200
    )
    assert found.epsilon == 0
