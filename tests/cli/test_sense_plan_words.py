"""A plan in words: what is better, when to read, what the papers say, and how far it is."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from sfumato.cli.console import watching
from sfumato.privacy import ZCDP, ApproxDP, MovedMass
from sfumato.sensing import Site, heat_line
from sfumato.sensing.planning.design import Curve, Design
from sfumato.sensing.planning.forecast import ErrorForecast, RecoveryForecast
from sfumato.sensing.planning.papers_bounds import papers_bounds
from sfumato.sensing.planning.ratio import ErrorRatio
from sfumato.sensing.planning.requirement import Requirement
from sfumato.sensing.release.rounds import cost_after
from sfumato.sensing.render.plan import extent, forecast_lines, paper_lines
from sfumato.sensing.render.plan_curves import curve_tables
from sfumato.sensing.render.plan_required import required_lines
from sfumato.sensing.render.words import aligned, listed, up
from sfumato.sensing.results.plan import curves_json, forecast_json, required_json
from sfumato.spaces import Line

pytestmark = pytest.mark.unit

LINE = heat_line(sources=100, sensors=50, diffusion_time=0.05)
DESIGN = Design(Site("line", LINE, MovedMass("1/100", "line")), ZCDP(8))


@pytest.mark.parametrize(
    ("ratio", "sentence"),
    [
        (
            ErrorRatio("bayes median", 0.49, 0.42, 0.57, 150),
            "the Bayes median is better here: 49% of the other's error (42% to 57%)",
        ),
        (
            ErrorRatio("least mass", 0.9, 0.004, 0.99, 150),
            "the least mass is better here: 90% of the other's error (under 1% to 99%)",
        ),
        (
            ErrorRatio("bayes median", 0.97, 0.88, 1.06, 150),
            "neither is better here by more than chance: the Bayes median has 97% of the other's error "
            "(88% to 106%)",
        ),
        (
            ErrorRatio("bayes median", 0.9, 0.0, np.inf, 150),
            "neither is better here by more than chance: too few trials were wrong to compare them",
        ),
        (None, "neither is better here: no trial was wrong"),
    ],
)
def test_which_is_better_is_said_with_its_doubt(ratio: ErrorRatio | None, sentence: str) -> None:
    one = ErrorForecast("least mass", 1.0, 0.5, 2.0, 1.0, 400)
    other = ErrorForecast("bayes median", 1.0, 0.5, 2.0, 1.0, 150)  # the intervals overlap
    foreseen = RecoveryForecast(one, other, 9.0, ratio=ratio)
    told, lines = forecast_json(DESIGN, foreseen), forecast_lines(DESIGN, foreseen)
    assert lines[-1] == sentence
    if ratio is None:
        assert told["forecast"]["ratio"] is None
    else:
        assert told["forecast"]["ratio"]["better"] == ratio.better
        assert told["forecast"]["ratio"]["high"] == ratio.high
        assert told["forecast"]["ratio"]["sure"] is (ratio.high < 1)


@pytest.mark.parametrize(
    ("errors", "nothing", "sentence"),
    [
        (
            [[1, 2, 3], [2, 3, 4], [3, 4, 5]],
            9,
            "of the times tried, T 1, the first, is best to read at; planned is 0.05",
        ),
        (
            [[3, 4, 5], [1, 2, 3], [3, 4, 5]],
            9,
            "of the times tried, T 2 is best to read at; planned is 0.05",
        ),
        (
            [[1, 2, 3], [1, 3, 2], [3, 4, 5]],
            9,
            "of the times tried, T 1 and 2 are equally good to read at, within chance, with the least mean "
            "error at 1; planned is 0.05",
        ),
        (
            [[1, 2, 3], [1, 3, 2], [3, 1, 2]],
            9,
            "no time of those tried, T 1 to 3, is better to read at than another by more than chance",
        ),
        (
            [[1, 2, 3], [2, 3, 4], [3, 4, 5]],
            2,
            "at none of the times tried, T 1 to 3, is a reading better than none by more than chance",
        ),
    ],
)
def test_the_best_time_is_named_only_if_chance_lets_it(
    errors: list[list[float]], nothing: float, sentence: str
) -> None:
    row, nobody = np.array(errors, dtype=np.float64), (None, None, None)
    curve = Curve(
        "diffusion time",
        (1.0, 2.0, 3.0),
        {"bayes median": row},
        {},
        nobody,
        nobody,
        np.full(3, nothing),
    )
    told = curves_json(DESIGN, [curve])["best_time"]
    assert told["said"] == f"for the Bayes median, {sentence}"
    assert told["estimator"] == "bayes median"
    assert told["better_than_no_reading"] is (nothing > 2)


def test_a_bound_of_no_number_is_not_printed() -> None:
    """At epsilon 0.4 the papers' own noise is too much for their bound, the noise that is planned is not."""
    design = Design(Site("line", LINE, MovedMass("1/100", "line")), ApproxDP("0.4", "1/10"))
    found = papers_bounds(design.scene, design.loss)
    assert found.noisy is not None
    assert found.private is not None
    for own in (replace(found.private, bracket=float("inf")), found.private):
        line, *_ = paper_lines(replace(found, private=own))
        assert "no number" not in line
        assert ("at their own noise" in line) is (own.bracket < float("inf"))


def test_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "120")
    for screen, shown in ((Terminal(), True), (io.StringIO(), False)):
        with mock.patch.object(sys, "stderr", screen), watching(quiet=False) as tell:
            tell("sensors")
            tell("sensors: 4 of 9")
        assert ("sensors: 4 of 9" in screen.getvalue()) is shown
        assert "sensors" in screen.getvalue()


@pytest.mark.parametrize(
    ("few", "lots", "sentence"),
    [
        (
            6.0,
            48.0,
            "takes about 17 sensors: 6 sensors are too few and 48 sensors are enough, each with 95 %",
        ),
        (None, 48.0, "takes about 17 sensors: 48 sensors are enough, with 95 %"),
        (
            6.0,
            None,
            "is at the edge: nothing tried around it surely does; 6 sensors are ",
        ),
        (None, None, "is at the edge: nothing tried around it surely does (Bayes"),
    ],
)
def test_a_need_that_chance_decides_is_no_number_to_buy_by(
    few: float | None, lots: float | None, sentence: str
) -> None:
    error = ErrorForecast("bayes median", 1.0, 0.8, 1.2, 1.0, 100)
    sure = ErrorForecast("bayes median", 0.7, 0.6, 0.9, 1.0, 100)
    means = {12.0: error, 24.0: error, 48.0: sure}
    found = Requirement(
        "sensors", 1.0, "bayes median", 16.3, few, lots, (2.0, 96.0), 24.0, error, 12.0, means
    )
    told = required_json(DESIGN, [found])
    lines = required_lines(DESIGN, [found], even=9.0, total=DESIGN.loss, readings=None)
    assert sentence in lines[0]
    assert lines[1].endswith(
        "with 24 sensors; 12 sensors come within a tenth of it, up to chance: more buy little"
    )
    assert lines[2] == (
        "so buy 48 sensors, for a mean error of 0.7 (0.6 to 0.9), which is within 1"
        if lots
        else "so buy 12 sensors, for a mean error of 1 (0.8 to 1.2), which may be within 1"
    )
    assert lines[3].startswith(
        "tried, with mean errors: 12 sensors 1 (0.8 to 1.2, 100 trials); 24 sensors "
    )
    assert [one["value"] for one in told["needed"]["sensors"]["means"]] == [12.0, 24.0, 48.0]
    assert told["needed"]["sensors"]["within_a_tenth"] == 12.0
    lines = required_lines(DESIGN, [found], even=0.9, total=DESIGN.loss, readings=None)
    assert (
        lines[0]
        == "without any reading the mean error is 0.9: what is wanted takes no sensor at all"
    )
    assert not any(line.startswith("so buy") for line in lines)


def test_a_cost_of_shared_readings_is_told_in_the_terms_asked_for() -> None:
    error = ErrorForecast("bayes median", 1.0, 0.8, 1.2, 1.0, 100)
    found = Requirement(
        "cost", 1.0, "bayes median", 0.01, 0.005, 0.02, (0.001, 0.1), 0.1, error, 0.1, {0.1: error}
    )
    lines = required_lines(DESIGN, [found], even=9.0, total=ApproxDP(4, "1e-5"), readings=24)
    together = cost_after(ZCDP("0.01"), [24], delta="1e-5")[0].epsilon
    assert lines[1].startswith("that is of each reading; together, 24 readings cost epsilon ")
    assert float(lines[1].split()[-4]) == pytest.approx(together, rel=0.01)


def test_trials_without_an_answer_are_told_wherever_a_mean_is() -> None:
    one = ErrorForecast("least mass", 1.0, 0.5, 2.0, 1.0, 400, failed=3)
    other = ErrorForecast("bayes median", 1.0, 0.5, 2.0, 1.0, 150)
    ratio = ErrorRatio("least mass", 0.9, 0.8, 0.95, 147)
    lines = forecast_lines(DESIGN, RecoveryForecast(one, other, 9.0, ratio=ratio))
    table = {line.rpartition("  ")[0].strip(): line.split()[-1] for line in lines[1:5]}
    assert list(table.values()) == ["trials", "397", "150", "9"]  # those that the means are of
    said = "3 of 400 trials of the least mass (R) had no proven answer and are left out"
    assert lines[5] == said
    lines = forecast_lines(DESIGN, RecoveryForecast(replace(one, failed=0), other, 9.0))
    assert not any("left out" in line for line in lines)

    found = Requirement(
        "sensors", 1.0, "least mass", 16.3, None, None, (2.0, 96.0), 24.0, one, 24.0, {24.0: one}
    )
    lines = required_lines(DESIGN, [found], even=9.0, total=DESIGN.loss, readings=None)
    assert lines[-2:] == ["tried, with mean errors: 24 sensors 1 (0.5 to 2, 397 trials)", said]

    nobody = (None, None)
    errors = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, np.nan]])
    means = (
        ErrorForecast("least mass", 2.0, 1.0, 3.0, 1.0, 3),
        ErrorForecast("least mass", 1.5, 1, 2, 1, 3, 1),
    )
    curve = Curve(
        "sensors",
        (25.0, 50.0),
        {"least mass": errors},
        {"least mass": means},
        nobody,
        nobody,
        np.ones(3),
    )
    lines = curve_tables(DESIGN, [curve])
    assert lines[1:] == [
        "1 of 6 trials of the least mass (R) had no proven answer and is left out",
        "",
        "sensors  least mass (R)",
        "25       2 (1 to 3)",
        "50       1.5 (1 to 2, 2 trials)  planned",
        "",
    ]


def test_a_line_that_begins_elsewhere_is_said_to() -> None:
    far = heat_line(
        sources=Line.at(np.linspace(100, 200, 21)), sensors=[120.0, 180.0], diffusion_time=50
    )
    design = Design(Site("far", far, MovedMass(1, "line")), ZCDP(8))
    assert extent(design) == "; the line goes from 100 to 200"
    assert extent(DESIGN) == "; the line goes to 1"


def test_numbers_and_lists_as_people_read_them() -> None:
    assert [up(value) for value in (0.0, 82.236, 999.5, 3203.5, 123456.0, 2e6)] == [
        "0", "82.3", "1,000", "3,210", "124,000", "2e+06",
    ]  # fmt: skip
    assert (up(1440.0, 5), up(1440.2, 5)) == ("1,440", "1,440.2")
    assert (listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b"], "or")) == (
        "a",
        "a, b and c",
        "a or b",
    )
    assert aligned([["a", "bb", ""], ["ccc", "d", "e"]]) == ["a    bb", "ccc  d   e"]
