"""The choice of an event is not misled by luck, and nothing that was run for it is wasted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.random import Generator

from sfumato._types import FloatArray
from sfumato.audit.boxes.samples import encoder_of
from sfumato.audit.fixed.choice import (
    CAUTION,
    TAIL,
    choose_event,
    promised_ratio,
    promises,
    smoothed,
    tally,
)


def encoded(outputs: object) -> FloatArray:
    return encoder_of(outputs)(outputs)  # type: ignore[arg-type]


@pytest.mark.unit
def test_equal_scores_are_never_cut_apart_and_every_score_is_counted_once() -> None:
    scores1, scores2 = (
        np.repeat([0.0, 1.0, 5.0], [50, 49, 1]),
        np.repeat([0.0, 1.0, -3.0], [60, 30, 10]),
    )
    found = tally(scores1, scores2)
    assert sorted({float(cut) for cut in found.cuts if math.isfinite(cut)}) == [-1.5, 0.5, 3.0]
    assert (found.first.sum(), found.second.sum()) == (100, 100)
    assert found.first[found.first > 0].tolist() == [50, 49, 1]
    assert found.second[found.second > 0].tolist() == [10, 60, 30]


@pytest.mark.unit
def test_a_share_too_rare_for_any_quantile_is_an_event_of_its_own() -> None:
    """One run in 10,000 has a score above 0: fewer than the smallest share that is cut off."""
    scores = np.zeros(20_000)
    scores[:2] = 1.0
    assert TAIL[0] > 2 / 40_000
    found = tally(scores, np.zeros(20_000))
    assert 0.5 in found.cuts
    assert found.first[-1] + found.first[np.flatnonzero(found.cuts == 0.5)[-1] + 1] >= 2


@pytest.mark.statistical
def test_where_nothing_differs_no_event_promises_anything(rng: Generator) -> None:
    """The best of all raw counts promises something most of the time: it has been lucky."""
    raw = shrunk = 0
    trials, runs = 200, 3000
    for _ in range(trials):
        found = tally(rng.normal(size=runs), rng.normal(size=runs))
        level = smoothed(found.first, found.second)
        critical = 1.645 / math.sqrt(runs)
        shrunk += any(
            promises(level, sign, delta=0.0, critical=critical).max() > 1 for sign in (1, -1)
        )
        more, less = (part[::-1].cumsum()[::-1][1:] / runs for part in (found.first, found.second))
        raw += bool(
            promised_ratio(more, less + 0.5 / runs, delta=0.0, critical=np.array(critical)).max()
            > 1
        )
    # Of 1,000 such trials none shrunk to a promise, and 292 of the raw ones did. At rates of 0.03
    # and 0.27, more than 21 of 200, or no more than that, have chance 1e-6 each.
    assert shrunk <= 21 < raw


@pytest.mark.unit
def test_smoothing_keeps_shares_and_learns_how_rough_they_are() -> None:
    steps = np.repeat([2.0, 1.0], 8)
    found = smoothed(1000 * steps, 1000 * steps[::-1])
    assert found.first.sum() == pytest.approx(1)
    # 1,000 and 2,000 runs in a bin leave log 2 uncertain by sqrt(1 / 1000 + 1 / 2000) = 0.039, in
    # each bin.
    ratio = np.log(found.first / found.second)
    assert ratio[0] == pytest.approx(math.log(2), abs=0.1)
    assert ratio[-1] == pytest.approx(-math.log(2), abs=0.1)
    assert np.sqrt(np.diag(found.covariance)).max() <= 0.04
    # Bins that are hardly filled are those of their neighbors.
    thin = smoothed(np.array([1000.0, 1000, 2]), np.array([1000.0, 1000, 0]))
    assert thin.first[-1] / thin.second[-1] < 2


@pytest.mark.unit
def test_what_is_uncertain_is_taken_off_a_promise() -> None:
    counts = np.array([100.0, 50.0]), np.array([50.0, 100.0])
    level = smoothed(*counts)
    certain = promised_ratio(
        level.first[:1], level.second[:1], delta=0.0, critical=np.array([0.01])
    )
    cautious = promises(level, -1, delta=0.0, critical=0.01)
    assert CAUTION > 0
    # The direction is the other one: the second input is the likelier one above the cut.
    assert cautious[0] < 1 < certain[0]
    assert 1 < promises(smoothed(*counts[::-1]), -1, delta=0.0, critical=0.01)[0] < certain[0]


@pytest.mark.statistical
def test_the_event_is_close_to_the_best_one_of_a_known_law(rng: Generator) -> None:
    """Laplace noise of epsilon 1: {x < 0} has the ratio e and half of the mass; nothing is better."""
    rows = [encoded(np.round((shift + rng.laplace(size=20_000)) * 1024) / 1024) for shift in (0, 1)]
    found = choose_event(rows[0], rows[1], delta=0.0, runs=20_000, level=0.05)
    fresh = [
        encoded(np.round((shift + rng.laplace(size=200_000)) * 1024) / 1024) for shift in (0, 1)
    ]
    shares = [
        float(found.contains(one).mean()) for one in (fresh if found.sign > 0 else fresh[::-1])
    ]
    # The bound it leads one to expect, against that of {x < 0}; shares of 200,000 runs are known to
    # 0.0012, ratios to 0.01 at the share of a tenth, and a choice may cost that much again.
    critical = np.array(1.645 / math.sqrt(20_000))
    expected, best = (
        float(np.log(promised_ratio(np.array(p), np.array(q), delta=0.0, critical=critical)))
        for p, q in (shares, (0.5, 0.5 / math.e))
    )
    assert best - 0.06 <= expected <= best + 0.03


@pytest.mark.statistical
def test_columns_that_are_alike_are_learnt_from_together(rng: Generator) -> None:
    """Twenty columns, each moved by a tenth of its noise: little to see in one of them."""

    def draw(shift: float) -> FloatArray:
        return encoded(np.round(rng.laplace(shift, 1, (3000, 20)) * 1024) / 1024)

    found = choose_event(draw(0.0), draw(0.1), delta=0.0, runs=3000, level=0.05)
    fresh = draw(0.0), draw(0.1)
    more, less = (found.contains(one).mean() for one in (fresh if found.sign > 0 else fresh[::-1]))
    # The log-likelihood ratio, a sum of 20 terms up to 0.1, has deviation 0.43 about -+0.09: the
    # half above 0 has shares .58 and .42, ratio 1.38, and smaller events more. One column alone has
    # at most e**0.1.
    assert more / less > 1.2
