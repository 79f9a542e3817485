"""Means, paired differences and signs are what the textbook says, and a wrong interval is seen."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.chance import assert_share

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.benchmark import (
    Score,
    aligned,
    first_table,
    markdown,
    mean_table,
    paired_comparison,
    paired_comparisons,
    sign_table,
    tally,
    tally_table,
    times,
)
from sfumato.heatmap.benchmark.scoring import Average, average, best_means, mean_of

pytestmark = pytest.mark.unit


def score(
    method: str, value: float, sample: int = 0, epsilon: float = 1.0, seconds: float = 1.0
) -> Score:
    """Good in all four metrics where the value is large."""
    return Score(
        "here",
        "town",
        sample,
        200,
        256,
        epsilon,
        method,
        value,
        value,
        2 - value,
        2 - value,
        seconds,
    )


def pairs(rng: np.random.Generator, *, gain: float = 0.0, runs: int = 20) -> list[Score]:
    """Two methods on samples that differ far more from each other than the methods do."""
    level = rng.uniform(0.2, 0.8, runs)
    better = level + gain + rng.normal(scale=0.01, size=runs)
    return [
        one
        for sample in range(runs)
        for one in (
            score("a", float(better[sample]), sample),
            score("b", float(level[sample]), sample),
        )
    ]


@pytest.mark.reference
def test_an_average_is_scipys(rng: np.random.Generator) -> None:
    values = rng.normal(size=17)
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    found = average(values)
    assert found.mean - found.half == pytest.approx(low)
    assert found.mean + found.half == pytest.approx(high)
    with pytest.raises(InvalidParameter, match="at least 2 runs, got 1"):
        average([1.0])


@pytest.mark.statistical
def test_an_interval_holds_its_mean_as_often_as_it_says(rng: np.random.Generator) -> None:
    """Of 5 runs; 1.96 standard errors, the rival, would hold it in 88 % of cases."""
    trials = 4000
    found = [average(values) for values in rng.normal(size=(trials, 5))]
    hits = sum(abs(one.mean) <= one.half for one in found)
    assert_share(hits, trials, 0.95, rivals=[2 * stats.t.cdf(1.96, 4) - 1])


@pytest.mark.reference
def test_a_duel_is_the_paired_test(rng: np.random.Generator) -> None:
    """Unpaired, the difference drowns in that of the samples."""
    scores = pairs(rng, gain=0.02)
    a = np.array([s.similarity for s in scores if s.method == "a"])
    b = np.array([s.similarity for s in scores if s.method == "b"])
    low, high = stats.ttest_rel(a, b).confidence_interval(0.95)
    found = paired_comparison(scores, "a", "b", epsilon=1.0, metric="similarity")
    assert found.gain.mean - found.gain.half == pytest.approx(low)
    assert found.gain.mean + found.gain.half == pytest.approx(high)
    assert found.ratio == pytest.approx(a.mean() / b.mean())
    assert found.sign == "+"
    assert stats.ttest_ind(a, b).pvalue > 0.05


def test_signs_turn_with_the_metric_and_with_the_sides(rng: np.random.Generator) -> None:
    scores = pairs(rng, gain=0.02)
    assert [one.sign for one in paired_comparisons(scores, "a", "b")] == ["+"] * 4
    assert [one.sign for one in paired_comparisons(scores, "b", "a")] == ["-"] * 4
    assert tally(paired_comparisons(scores, "b", "a")).worse == 4
    level = [replace(one, method="c") for one in scores if one.method == "b"]
    assert [one.sign for one in paired_comparisons([*scores, *level], "c", "b")] == ["0"] * 4
    kl = paired_comparison(scores, "a", "b", epsilon=1.0, metric="kl")
    assert kl.gain.mean > 0
    assert kl.ratio < 1, "a smaller divergence is better"


def test_pairs_are_found_by_sample_not_by_order(rng: np.random.Generator) -> None:
    scores = pairs(rng, gain=0.02)
    shuffled = [scores[at] for at in rng.permutation(len(scores))]
    for one, other in zip(
        paired_comparisons(scores, "a", "b"), paired_comparisons(shuffled, "a", "b"), strict=True
    ):
        assert one.gain.mean == pytest.approx(other.gain.mean)
        assert one.gain.half == pytest.approx(other.gain.half)
    with pytest.raises(InvalidInput, match="a and b were not run on the same samples"):
        paired_comparisons(scores[1:], "a", "b")


def test_a_ratio_to_nothing_is_no_number() -> None:
    scores = [score("a", 0.5), score("a", 0.5, 1), score("b", 0.0), score("b", 0.0, 1)]
    assert math.isnan(paired_comparison(scores, "a", "b", epsilon=1.0, metric="pearson").ratio)


def test_times_are_the_medians_of_ratios_on_one_sample() -> None:
    """One slow start of the base, and one of the other, do not count."""
    base = [1.0, 2.0, 100.0, 3.0, 4.0]
    scores = [score("base", 0.5, k, seconds=s) for k, s in enumerate(base)]
    scores += [score("slow", 0.5, k, seconds=2 * s + 500 * (k == 3)) for k, s in enumerate(base)]
    assert times(scores, "base") == {"base": 1.0, "slow": 2.0}


def table_scores() -> list[Score]:
    """Method a is better than b at epsilon 1 and worse at 2, beyond doubt."""
    return [
        score(method, value + 0.01 * sample, sample, epsilon)
        for epsilon, values in ((1.0, (0.7, 0.5)), (2.0, (0.6, 0.8)))
        for method, value in zip("ab", values, strict=True)
        for sample in range(2)
    ]


def test_the_tables_say_what_was_found() -> None:
    scores = table_scores()
    half = stats.t.ppf(0.975, 1) * 0.005
    found = mean_of(scores, "a", epsilon=1.0, metric="similarity")
    assert (found.mean, found.half) == pytest.approx((0.705, half))
    assert str(Average(0.705, half)) == "0.705 ± 0.064"
    assert best_means(scores) == {"a": 4, "b": 4}
    assert first_table(scores, "b")[1:] == [["a", "4 of 8", "1.0"], ["b", "4 of 8", "1.0"]]
    assert first_table(scores, "none")[0] == ["method", "best mean"]
    assert mean_table(scores)[1] == ["1", "a", *["0.705 ± 0.064"] * 2, *["1.295 ± 0.064"] * 2]
    assert tally_table(scores, "a")[1] == ["b", "+-", "+-", "+-", "+-", "4", "0", "4"]
    signs = sign_table(paired_comparisons(scores, "a", "b"))
    assert signs[0] == ["metric", "epsilon 1", "epsilon 2"]
    assert signs[1] == ["Similarity ↑", "+ +0.2000 ± 0.0000, ×1.40", "- -0.2000 ± 0.0000, ×0.75"]
    assert str(tally(paired_comparisons(scores, "a", "b"))) == "better 4, open 0, worse 4 of 8"


def test_tables_are_written_for_pages_and_terminals() -> None:
    rows = [["method", "x"], ["a", "1"]]
    assert markdown(rows) == "| method | x |\n|---|---|\n| a | 1 |"
    assert aligned(rows) == "method  x\na       1"
