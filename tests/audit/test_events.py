"""Scorers see what gives an input away, and say so in words; events come with a direction."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.random import Generator

from sfumato._types import FloatArray
from sfumato.audit.boxes.samples import WORD, code, encoder_of, keys_of
from sfumato.audit.fixed.events import Candidate, shares, thresholds
from sfumato.audit.fixed.features import leading_bins, lowest_bits
from sfumato.audit.fixed.fitting import fit_scorers
from sfumato.audit.fixed.scorers import Column, Logistic, Scorer, Sign


def encoded(outputs: object) -> FloatArray:
    return encoder_of(outputs)(outputs)  # type: ignore[arg-type]


def candidates(
    scorers: Sequence[Scorer], rows1: FloatArray, rows2: FloatArray, epsilon: float
) -> list[Candidate]:
    """All events that break epsilon by these rows, those with the most standard deviations first."""
    found = []
    signs: tuple[Sign, Sign] = (1, -1)
    for scorer in scorers:
        scores = scorer.score(rows1), scorer.score(rows2)
        for sign in signs:
            ones, others = scores[::sign]
            for cut in thresholds(*scores):
                more, less = (
                    float(shares(one, np.array([cut]), sign)[0]) for one in (ones, others)
                )
                excess = more - math.exp(epsilon) * (less + 0.5 / len(rows1))
                spread = math.sqrt(
                    more * (1 - more) + math.exp(2 * epsilon) * less + 0.25 / len(rows1)
                )
                found.append(Candidate(scorer, float(cut), sign, more, less, excess / spread))
    return sorted((one for one in found if one.signal > 0), key=lambda one: -one.signal)


def best(
    train: tuple[object, object], test: tuple[object, object], epsilon: float = 1.0
) -> Candidate:
    scorers = fit_scorers(encoded(train[0]), encoded(train[1]))
    return candidates(scorers, encoded(test[0]), encoded(test[1]), epsilon)[0]


def named(rows1: FloatArray, rows2: FloatArray, name: str) -> Scorer:
    return next(scorer for scorer in fit_scorers(rows1, rows2) if scorer.name == name)


@pytest.mark.unit
def test_a_threshold_is_told_as_one_with_its_direction(rng: Generator) -> None:
    def draw(shift: float) -> FloatArray:
        # On a grid, as low bits would tell the two apart before their sizes do.
        return np.round((rng.laplace(shift, 0.2, 2000)) * 1024) / 1024

    found = best((draw(0), draw(1)), (draw(0), draw(1)))
    above = np.array([[-0.5, 0.0], [1.5, 0.0]])
    assert found.event.contains(above).tolist() == [found.sign > 0, found.sign < 0]
    assert found.more > 0.8 > 0.1 > found.less
    column = named(encoded(draw(0)), encoded(draw(1)), "column")
    # The column is turned, for the first input has the smaller numbers.
    assert column.words(-0.25, 1) == "the output is at most 0.25"
    assert column.words(-0.75, -1) == "the output is at least 0.75"


@pytest.mark.unit
def test_categories_are_named(rng: Generator) -> None:
    first, second = np.repeat([0, 1, 2], [50, 30, 20]), np.repeat([0, 1, 2], [20, 30, 50])
    table = named(encoded(first), encoded(second), "count table")
    assert table.words(0.5, 1) == "the output is one of 0.0"
    assert table.words(-0.5, -1) == "the output is one of 2.0"
    assert table.words(-0.5, 1) == "the output is none of 2.0"
    assert table.score(encoded([0, 1, 2, 7])) == pytest.approx(
        [np.log(51 / 21), 0, np.log(21 / 51), 0]
    )


@pytest.mark.unit
def test_words_and_odd_outputs_are_outputs_too() -> None:
    rows1, rows2 = encoded(["yes"] * 30 + ["no"] * 10), encoded(["yes"] * 10 + ["no"] * 30)
    found = candidates(fit_scorers(rows1, rows2), rows1, rows2, 0.1)
    assert {one.sign for one in found} == {1, -1}
    encoder = encoder_of([1.0, 2.0])
    rows1, rows2 = encoder([1.0] * 39 + [np.nan]), encoder([1.0] * 40)
    assert named(rows1, rows2, "rare outputs").words(1, 1) == "the output is one of nan"


@pytest.mark.unit
def test_witnesses_of_words_show_the_word_and_no_threshold() -> None:
    rows1, rows2 = encoded(["red"] * 30 + ["blue"] * 10), encoded(["red"] * 10 + ["blue"] * 30)
    scorers = fit_scorers(rows1, rows2)
    assert not any(isinstance(one, Column) for one in scorers)
    said = [one.event.words for one in candidates(scorers, rows1, rows2, 0.1)]
    assert "the output is one of 'red'" in said
    assert not any(
        "at least 1." in words or "at most 1." in words or "e+" in words for words in said
    )
    pairs1, pairs2 = encoded([("red", 1)] * 30 + [("blue", 2)]), encoded([("red", 1)] * 31)
    assert named(pairs1, pairs2, "rare outputs").words(1, 1) == "the output is one of ('blue', 2)"
    assert "number 1 is exactly 'blue'" in named(pairs1, pairs2, "rare values").words(1, 1)
    assert named(pairs1, pairs2, "column").words(2.0, 1) == "number 2 of the output is at least 2"


@pytest.mark.unit
def test_words_among_numbers_are_above_them_and_said_to_be_none() -> None:
    encoder = encoder_of([0.5, 1.5])
    rows1 = encoder([0.5, 1.5, 2.5] * 9 + ["stopped", "broken", "late"])
    rows2 = encoder([-0.5, 0.5, 1.5] * 10)
    column = named(rows1, rows2, "column")
    assert column.score(rows1).tolist() == [0.5, 1.5, 2.5] * 9 + [WORD] * 3
    assert column.words(1.5, 1) == "the output is at least 1.5, or no number"
    assert column.words(1.5, -1) == "the output is at most 1.5"
    assert column.words(WORD, 1) == "the output is no number"
    assert "is no number" in named(rows1, rows2, "rare bins").words(1, 1)
    assert "is no number" in named(rows1, rows2, "lowest set bits").words(0.1, 1)


@pytest.mark.unit
def test_the_mark_of_odd_outputs_is_no_number_of_theirs() -> None:
    encoder = encoder_of([0.5, 1.5])
    rows1, rows2 = encoder([0.5] * 20 + [math.nan] * 9 + [None, (1, 2)]), encoder([0.5] * 31)
    marks = named(rows1, rows2, "odd outputs")
    assert [marks.words(1.0, 1), marks.words(2.0, 1)] == [
        "the output is odd",
        "the output is of unusual parts",
    ]
    assert [marks.words(0.0, -1), marks.words(1.0, -1)] == [
        "the output is usual",
        "the output is of the usual parts",
    ]


@pytest.mark.unit
def test_zero_and_minus_zero_are_two_outputs() -> None:
    rows1, rows2 = encoded([0.0] * 20 + [-0.0] * 20), encoded([0.0] * 40)
    table = named(rows1, rows2, "rare outputs")
    assert table.words(1, 1) == "the output is one of -0.0"
    assert table.score(encoded([0.0, -0.0])).tolist() == [0, 20]
    assert named(rows1, rows2, "rare bins").words(1, 1) == "the output is exactly -0.0"


@pytest.mark.unit
def test_low_bits_give_floating_point_away(rng: Generator) -> None:
    """Laplace noise added to 0 keeps bits that added to 1 are rounded off, whatever the scale."""
    draws = [(rng.laplace(0, 1, 700), 1 + rng.laplace(0, 1, 700)) for _ in range(2)]
    found = best(draws[0], draws[1])
    assert found.scorer.name == "lowest set bits"
    assert found.sign == 1
    assert found.less == 0
    assert found.more > 0.1
    assert "an odd multiple of 2**-5" in found.event.words
    grid = [tuple(np.round(one * 1024) / 1024 for one in pair) for pair in draws]
    scorers = fit_scorers(encoded(grid[0][0]), encoded(grid[0][1]))
    low = [one for one in scorers if one.name == "lowest set bits"]
    found_there = candidates(low, encoded(grid[1][0]), encoded(grid[1][1]), 1.0)
    assert all(one.signal < 0.2 for one in found_there)


@pytest.mark.unit
@pytest.mark.parametrize("wide", [False, True])
def test_an_output_that_one_input_alone_reaches_is_found_from_two_runs(
    rng: Generator, wide: bool
) -> None:
    def draw(rare: int) -> FloatArray:
        # A grid so fine that no other output comes twice.
        rows = np.round(rng.normal(size=(1000, 3 if wide else 1)) * 2**30) / 2**30
        rows[:rare, 0] = 77.0
        return rows

    train1, train2, test1, test2 = (encoded(draw(rare)) for rare in (2, 0, 3, 0))
    scorers = [one for one in fit_scorers(train1, train2) if one.name.startswith("rare")]
    found = candidates(scorers, test1, test2, 0.2)
    words = "number 1 is exactly 77.0" if wide else "the output is one of 77.0"
    one = next(one for one in found if words in one.event.words)
    assert one.sign == 1
    assert one.less == 0
    assert one.event.contains(test1)[:3].all()
    assert int(one.event.contains(test1).sum()) == 3
    bins = next(one for one in scorers if one.name == "rare bins")
    assert bins.score(np.where(test1[:1] == 77, 79.0, 0.0))[0] == 2


@pytest.mark.unit
def test_a_bin_is_told_by_its_ends() -> None:
    rows1, rows2 = encoded([1.0] * 20 + [77.0, -77.0]), encoded([1.0] * 22)
    words = named(rows1, rows2, "rare bins").words(1, 1)
    assert words == "the output is in [72, 80) or is in (-80, -72]"


@pytest.mark.unit
def test_sums_of_many_small_differences_are_seen_by_the_logistic_scorers(rng: Generator) -> None:
    def draw(shift: float) -> FloatArray:
        noise = np.cumsum(rng.laplace(shift, 1, (6000, 8)), axis=1)
        return encoded(np.round(noise * 1024) / 1024)

    scorers = fit_scorers(draw(0), draw(0.4))
    rows1, rows2 = draw(0), draw(0.4)
    # Eight differences of 0.4 among noise of scale 1: the best event has a log-likelihood ratio
    # above 0, and a total variation of about 0.36. No column alone has more than 0.33, the last
    # one.
    spread = {
        one.name: float((one.score(rows1) > 0).mean() - (one.score(rows2) > 0).mean())
        for one in scorers
    }
    assert spread["stepwise additive"] > spread["linear"] - 0.02 > 0.3


@pytest.mark.unit
def test_a_score_is_of_its_row_alone(rng: Generator) -> None:
    """Rows one by one have the scores, to the last bit, that they have all at once: thresholds are scores."""
    rows1, rows2 = (encoded(np.round(rng.normal(shift, 1, (300, 12)), 2)) for shift in (0.0, 0.3))
    fitted = [one for one in fit_scorers(rows1, rows2) if isinstance(one, Logistic)]
    assert len(fitted) == 3
    for scorer in fitted:
        together = scorer.score(rows1)
        assert (
            np.concatenate([scorer.score(row[np.newaxis]) for row in rows1]).tolist()
            == together.tolist()
        )
        whole = scorer.weights[0] + scorer.features(rows1) @ scorer.weights[1:]
        assert together == pytest.approx(whole, abs=1e-5)


@pytest.mark.unit
def test_nothing_is_made_of_equal_inputs(rng: Generator) -> None:
    rows = encoded(np.zeros(50))
    assert fit_scorers(rows[:0], rows) == ()
    for scorer in fit_scorers(rows, rows):
        assert candidates([scorer], rows, rows, 0.0) == []


@pytest.mark.unit
def test_thresholds_are_all_values_where_few_and_dense_at_the_ends_where_many(
    rng: Generator,
) -> None:
    assert thresholds(np.array([1.0, 2.0]), np.array([2.0, 5.0])).tolist() == [1.0, 2.0, 5.0]
    many = np.arange(100_000.0)
    cuts = thresholds(many[::2], many[1::2])
    assert {0.0, 1.0, 2.0, 99_997.0, 99_998.0, 99_999.0} <= set(cuts.tolist())
    assert cuts.size <= 200
    assert shares(many, np.array([0.0, 50_000.0]), 1).tolist() == [1.0, 0.5]
    assert shares(many, np.array([0.0, 49_999.0]), -1).tolist() == [1e-5, 0.5]


@pytest.mark.unit
def test_bits_bins_and_keys() -> None:
    assert lowest_bits(np.array([0.1, -3.0, 2.0**-1074, 2.0**999, code("a")])).tolist() == [
        -55,
        0,
        -1074,
        999,
        1000,
    ]
    values = np.array([0.1, -0.1, 1e300, -1e-310, 0.0])
    ends = leading_bins(values)
    assert np.all(np.sign(ends) == np.sign(values))
    assert np.all(np.abs(ends) <= np.abs(values))
    assert np.all(np.abs(values) < np.abs(ends) * 9 / 8 + (values == 0))
    assert keys_of(np.array([[0.0, 1.0]])) != keys_of(np.array([[-0.0, 1.0]]))
    rows = np.stack(np.meshgrid(np.arange(300.0), np.arange(300.0)), axis=-1).reshape(-1, 2)
    assert np.unique(keys_of(rows)).size == 90_000
    # What is before all rows is one more column.
    of_seven = rows[rows[:, 0] == 7.0]
    assert np.array_equal(keys_of(of_seven[:, 1:], before=7.0), keys_of(of_seven))
    assert keys_of(of_seven[:0, 1:], before=7.0).size == 0
