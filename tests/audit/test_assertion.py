"""An assertion fails at its flake rate at most, catches what is broken, and says what it saw."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats
from tests.chance import LEVEL

from sfumato._types import FloatArray
from sfumato.audit.assertion import assert_claim, assert_private
from sfumato.audit.boxes.box import FunctionBox, Pair, SampleBox
from sfumato.audit.boxes.pairs import Histograms, Numbers, Queries
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import ZCDP, AddRemoveUser, Claim, GaussianDP, PureDP, ReplaceUser

ANSWERS = [(0, 1)]


def response(epsilon: float, rng: Generator) -> Callable[..., FloatArray]:
    """Randomised response, which uses up its epsilon: the truth with chance e**epsilon / (1 + e**epsilon)."""

    def answer(data: int, runs: int) -> FloatArray:
        return np.where(rng.random(runs) < 1 / (1 + math.exp(-epsilon)), data, 1 - data).astype(
            float
        )

    return answer


def counting(scale: float, rng: Generator) -> Callable[[Any], Any]:
    """Laplace noise on every answer, whole in the end; one output a call."""
    return lambda data: np.rint(np.asarray(data) + rng.laplace(0, scale, np.shape(data)))


def laplace(epsilon: float, rng: Generator) -> Callable[..., FloatArray]:
    """Laplace noise in whole eighths, which no bits tell apart."""
    return lambda data, runs: np.rint(8 * (data + rng.laplace(0, 1 / epsilon, runs)))


@pytest.mark.statistical
def test_a_private_function_fails_at_the_flake_rate_at_most_and_a_broken_one_always(
    rng: Generator,
) -> None:
    flake, calls = 0.05, 60
    alarms = sum(fails(laplace(1, rng), flake) for _ in range(calls))
    # More alarms than this have chance 1e-6, were the rate all of 0.05.
    most = int(stats.binom.isf(LEVEL, calls, flake))
    assert alarms <= most
    # Epsilon 4 in place of 1: chances of .93 and .07 of the best event, after as many runs.
    assert all(fails(laplace(4, rng), flake) for _ in range(20))


def fails(function: Callable[..., Any], flake: float) -> bool:
    try:
        assert_private(function, epsilon=1, pairs=ANSWERS, flake=flake, runs=400)
    except AssertionError as refusal:
        # A bet that fresh runs do not confirm fails a test as well, so the rate covers it too.
        return "does not keep" in str(refusal) or "the bet was won" in str(refusal)
    return False


@pytest.mark.statistical
def test_a_failure_names_the_pair_the_event_the_counts_and_what_is_allowed(rng: Generator) -> None:
    with pytest.raises(AssertionError) as failure:
        assert_private(response(3, rng), epsilon=1, pairs=[Pair(0, 1, "no and yes")], runs=4000)
    said = str(failure.value)
    assert said.startswith(
        "response.<locals>.answer does not keep epsilon 1 (one user added or removed)."
    )
    found = re.search(
        r"On the pair 'no and yes', (\d) and (\d), the event \{(.+)\} came in (\d+) of (\d+) runs of the "
        r"first and in (\d+) of (\d+) of the second: (\S+) where e\*\*1 \* (\S+) = (\S+) is allowed\.",
        said,
    )
    assert found is not None
    first, second, words, *counts = found.groups()
    assert {first, second} == {"0", "1"}
    assert words
    hits1, runs1, hits2, runs2, share, other, allowed = map(float, counts)
    assert share == pytest.approx(hits1 / runs1, rel=1e-2)
    assert other == pytest.approx(hits2 / runs2, rel=1e-2, abs=1e-9)
    assert allowed == pytest.approx(min(1, math.e * other), rel=1e-2)
    assert share > allowed
    assert re.search(r"It took \d+ runs \(e-value \S+\); .* at a rate of at most 1e-06\.$", said)


@pytest.mark.statistical
def test_a_delta_is_in_the_sum_of_what_is_allowed(rng: Generator) -> None:
    def telling(data: int, runs: int) -> FloatArray:
        return (rng.random(runs) < 0.5 * data).astype(float)

    with pytest.raises(AssertionError, match=r" = \S+ is allowed") as failure:
        assert_private(telling, epsilon=1, delta="0.1", pairs=ANSWERS, runs=4000)
    assert "does not keep epsilon 1, delta 0.1 " in str(failure.value)
    assert " + 0.1 = " in str(failure.value)
    assert (
        assert_private(telling, epsilon=1, delta="0.5", pairs=ANSWERS, runs=4000).kind
        == "NOT_REFUTED"
    )


@pytest.mark.unit
@pytest.mark.parametrize("runs", [0, 1, 20, 40])
def test_a_test_that_can_show_nothing_fails(runs: int) -> None:
    def telling(data: int) -> int:
        return data

    # Not even what tells its input every time is caught by so few runs, so a private one must not
    # pass.
    def silent(data: int) -> int:
        return 0

    for function in (telling, silent):
        with pytest.raises(
            AssertionError,
            match=rf"^{runs // 2 * 2} runs of .* are too few: .*could have missed even .*more runs",
        ):
            assert_private(function, epsilon=1, pairs=ANSWERS, runs=runs)


@pytest.mark.unit
def test_as_many_runs_as_were_missing_are_enough(rng: Generator) -> None:
    def silent(data: int) -> int:
        return int(rng.random() < 0.5)

    with pytest.raises(AssertionError, match="at least") as failure:
        assert_private(silent, epsilon=1, pairs=ANSWERS, runs=20)
    missing = re.search(r"at least (\d+) more", str(failure.value))
    assert missing is not None
    verdict = assert_private(silent, epsilon=1, pairs=ANSWERS, runs=20 + int(missing[1]))
    assert verdict.kind == "NOT_REFUTED"
    with pytest.raises(AssertionError, match="are too few"):
        assert_private(silent, epsilon=1, pairs=ANSWERS, runs=10 + int(missing[1]))


@pytest.mark.statistical
def test_pairs_may_be_tuples_pairs_or_a_form(rng: Generator) -> None:
    three = counting(3, rng)  # three answers that one person changes by 1 each: epsilon 1
    up = [0, 0, 0], [1, 1, 1]
    for pairs, runs in (([up], 1500), ([Pair(*up, "all up")], 1500), (Queries(3), 10_000)):
        verdict = assert_private(three, epsilon=1, pairs=pairs, runs=runs)
        assert verdict.kind == "NOT_REFUTED"
    with pytest.raises(AssertionError, match="On the pair"):
        assert_private(counting(0.6, rng), epsilon=1, pairs=Queries(3), runs=20_000)
    assert (
        assert_private(counting(1, rng), epsilon=1, pairs=Numbers(), runs=2000).pairs[0].name
        == "0 and 1"
    )


@pytest.mark.statistical
def test_boxes_and_claims_of_other_kinds(rng: Generator) -> None:
    samples = SampleBox(rng.integers(0, 2, 800), rng.integers(0, 2, 800), "two files", [0, 0])
    assert assert_private(samples, epsilon="1/2", pairs=[(0, 1)], runs=1600).runs == 1600
    claim = Claim(ZCDP("1/8"), ReplaceUser())
    rounded = FunctionBox(
        lambda data, runs: np.rint(8 * (data + 2 * rng.normal(size=runs))), "normal"
    )
    assert assert_claim(rounded, claim, pairs=[Pair(0, 1)], runs=2000).claim is claim
    with pytest.raises(
        AssertionError, match=r"^normal does not keep rho 0\.005 \(one user's data replaced\)"
    ):
        assert_claim(rounded, Claim(ZCDP("0.005"), ReplaceUser()), pairs=[Pair(0, 1)], runs=20_000)
    replaced = assert_private(
        response(1, rng), epsilon=1, pairs=ANSWERS, runs=1000, neighbors=ReplaceUser(), seconds=1e6
    )
    assert replaced.claim == Claim(PureDP(1), ReplaceUser())
    assert (
        assert_private(response(1, rng), epsilon=1, pairs=ANSWERS, runs=1000).claim.neighbors
        == AddRemoveUser()
    )


@pytest.mark.statistical
def test_rho_and_mu_are_claims_too(rng: Generator) -> None:
    def rounded(data: float, runs: int) -> FloatArray:
        return np.rint(8 * (data + 2 * rng.normal(size=runs)))

    by_rho = assert_private(rounded, rho="1/8", pairs=ANSWERS, runs=2000)
    by_mu = assert_private(rounded, mu="1/2", pairs=ANSWERS, runs=2000)
    assert (by_rho.claim.loss, by_mu.claim.loss) == (ZCDP("1/8"), GaussianDP("1/2"))
    with pytest.raises(AssertionError, match=r"does not keep Gaussian DP with mu 0\.01"):
        assert_private(response(3, rng), mu="0.01", pairs=ANSWERS)
    with pytest.raises(
        AssertionError, match="was not tested: no runs can refute an epsilon above 150"
    ):
        assert_private(rounded, mu=100, pairs=ANSWERS)


@pytest.mark.statistical
def test_a_sparse_vector_is_tested_on_every_pattern_with_the_runs_that_are_usual(
    rng: Generator,
) -> None:
    """At epsilon 3 every pattern takes 580 pairs of runs; the best ones would have had nearly all of them."""

    def above(data: FloatArray, runs: int) -> FloatArray:
        threshold = 0.5 + rng.laplace(0, 2 / 3, (runs, 1))
        over = data + rng.laplace(0, 4 / 3, (runs, len(data))) >= threshold
        return np.where(over.any(axis=1), over.argmax(axis=1), -1).astype(float)

    assert assert_private(above, epsilon=3, pairs=Queries(10)).kind == "NOT_REFUTED"


@pytest.mark.unit
def test_what_the_function_raises_is_told_with_its_line_and_no_more() -> None:
    def broken(data: int) -> int:
        raise ZeroDivisionError("no noise left")

    with pytest.raises(InvalidInput) as failure:
        assert_private(broken, epsilon=1, pairs=ANSWERS)
    line = broken.__code__.co_firstlineno + 1
    where = f"on input 1 of the pair 'pair 1' (test_assertion.py, line {line}): no noise left;"
    assert f"raised ZeroDivisionError {where}" in str(failure.value)
    assert failure.value.__suppress_context__
    # This test, and the two assertions, which pytest does not show.
    assert len(failure.traceback) == 3


@pytest.mark.unit
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"flake": 0.0}, r"flake must be between 0 and 1, got 0\.0; nothing was run"),
        ({"flake": 1.0}, r"flake must be between 0 and 1, got 1\.0; nothing was run"),
        (
            {"flake": 1e-17},
            "flake must be at least 1.2e-16, as 1 - flake is 1, got 1e-17; nothing was run",
        ),
        (
            {"rho": 1},
            "exactly one of epsilon, rho and mu must be given, got epsilon and rho; nothing was run",
        ),
        (
            {"epsilon": None},
            "exactly one of epsilon, rho and mu must be given, got none; nothing was run",
        ),
        (
            {"epsilon": None, "mu": 1, "delta": "0.1"},
            "delta goes with epsilon only, got 0.1 with mu",
        ),
        ({"pairs": Histograms(3, replace=True)}, "neighbors in the sense of the claim"),
        ({"pairs": []}, "at least one pair of inputs, got none; nothing was run"),
        (
            {"pairs": [[0, 1]]},
            r"a list of pairs \(first, second\) .* got \[0, 1\] as number 1; nothing was run",
        ),
        ({"pairs": ([0, 0], [0, 1])}, r"got \[0, 0\] as number 1; nothing was run"),
        ({"pairs": [(0, 1), (0, 1, 2)]}, r"got \(0, 1, 2\) as number 2; nothing was run"),
        ({"epsilon": -1}, "epsilon must be at least 0, got -1"),
        ({"runs": -1}, "runs must be at least 0, got -1; nothing was run"),
    ],
)
def test_what_is_no_test_is_refused(change: dict[str, Any], rule: str) -> None:
    def never(data: Any) -> int:
        raise RuntimeError("it ran")

    with pytest.raises(InvalidParameter, match=rule):
        assert_private(never, **{"epsilon": 1, "pairs": ANSWERS, **change})
