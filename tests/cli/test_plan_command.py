"""`sfumato heatmap plan`: a forecast, the way back, and its limits, all without data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.heatmap.analysis.forecasts import forecast
from sfumato.heatmap.analysis.quality import METRICS
from sfumato.heatmap.render.plan import at_least

pytestmark = pytest.mark.unit


def plan(*words: str) -> Result:
    return CliRunner().invoke(app, ["heatmap", "plan", *words])


def asked(*words: str) -> dict[str, Any]:
    done = plan(*words, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_point_is_told_in_numbers_and_in_words() -> None:
    done = plan("--epsilon", "1", "--users", "200")
    assert done.exit_code == 0
    known = forecast(200, 1)
    assert (
        f"about {100 * known.similarity.middle:.0f} % of the mass will be in the right place"
        in done.stdout
    )
    assert "of the map's side from where they are, east-west" in done.stdout
    assert "Nothing was read or charged" in done.stdout
    found = asked("--epsilon", "1", "--users", "200")["forecast"]
    for metric in METRICS:
        assert found[metric]["middle"] == known.of(metric).middle
    gaze = asked("--epsilon", "1", "--users", "40", "--kind", "gaze")["forecast"]
    assert gaze["similarity"]["middle"] == forecast(40, 1, kind="gaze").similarity.middle


def test_on_the_ground_distances_are_metres() -> None:
    """The box is 9.6 km wide; a metre too few or a factor of a thousand would be seen."""
    done = plan("--epsilon", "1", "--users", "200", "--bounds", "11.20,43.74,11.32,43.81")
    mean = forecast(200, 1).emd.middle * 9630
    assert f", {at_least(mean, '', ' m')} on this map (" in done.stdout
    plane = plan("--epsilon", "1", "--users", "200", "--bounds", "0,0,1000,1000", "--plane")
    assert " units on this map (" in plane.stdout


def test_the_way_back_is_the_way_there() -> None:
    need = asked("--want", "similarity=0.7", "--users", "200")["epsilon_needed"]
    assert need["lucky"] < need["usual"] < need["safe"]
    assert forecast(200, need["usual"]).similarity.middle == pytest.approx(0.7, abs=0.01)
    users = asked("--want", "emd=0.05", "--epsilon", "1")["users_needed"]
    assert forecast(users["usual"], 1).emd.middle == pytest.approx(0.05, rel=0.02)
    said = plan("--want", "similarity=0.7", "--users", "200").stdout
    assert (
        f"similarity 0.7 with 200 users takes epsilon {at_least(need['usual'])} in a usual place"
        in said
    )
    curve = asked("--want", "similarity=0.7")["epsilon_needed"]
    usual = [one["usual"] for one in curve.values() if one["usual"] is not None]
    assert usual == sorted(usual, reverse=True)
    assert curve["200"] == need


def test_a_wanted_distance_may_be_in_metres() -> None:
    """The box is 9.6 km wide: a side taken for a kilometre, or for a cell, would be seen."""
    box = ["--users", "2000", "--bounds", "11.20,43.74,11.32,43.81"]
    found = asked("--want", "emd=200m", *box)
    assert found["want"]["value"] * found["side"]["length"] == pytest.approx(200)
    assert found["want"]["value"] == pytest.approx(200 / 9630, rel=0.01)
    assert "emd 0.0208 (of the map's side: 200 m) with" in plan("--want", "emd=200m", *box).stdout
    assert "emd 0.05 (of the map's side) with" in plan("--want", "emd=0.05", *box[:2]).stdout


def test_the_end_of_the_table_is_an_upper_bound() -> None:
    """Less was not simulated, and may do."""
    easy = plan("--want", "emd=0.9", "--users", "2000").stdout
    assert "takes at most epsilon" in easy
    assert "takes at most" in plan("--want", "emd=0.9", "--epsilon", "1").stdout
    assert "at most" in plan("--want", "emd=0.9").stdout
    assert "at most" not in plan("--want", "similarity=0.7", "--users", "200").stdout
    assert "at most" not in plan("--want", "similarity=0.7", "--epsilon", "1").stdout


def test_both_and_a_wish_get_a_verdict() -> None:
    ways = {
        "0.3": "is to be expected in nearly all places",
        "0.75": "is to be expected in a usual place, not in all",
        "0.99": "is not to be expected",
    }
    for value, words in ways.items():
        done = plan("--want", f"similarity={value}", "--users", "200", "--epsilon", "1")
        assert f"similarity {value} {words}\n" in done.stdout
    found = asked("--want", "kl=0.2", "--users", "200", "--epsilon", "1")
    assert {"epsilon_needed", "users_needed", "forecast"} <= found.keys()


def test_what_cannot_be_reached_is_an_answer() -> None:
    done = plan("--want", "similarity=0.99", "--users", "20")
    assert done.exit_code == 0
    assert (
        "similarity 0.99 with 20 users cannot be reached within what was simulated" in done.stdout
    )
    assert "not reached" in plan("--want", "similarity=0.9").stdout


def test_wide_places_are_said() -> None:
    """Where low to high is kept to 0.2 it holds fewer places, and that is told."""
    assert "places differ much here" in plan("--epsilon", "0.4", "--users", "200").stdout
    assert "places differ much here" not in plan("--epsilon", "5", "--users", "200").stdout


def test_tables_when_nothing_is_asked_for() -> None:
    lines = plan().stdout.splitlines()
    assert lines[0].split()[:3] == ["Similarity", "epsilon", "0.1"]
    assert lines[1].startswith("20 users")
    assert " - " in lines[1], "too few to forecast"
    row = plan("--users", "200").stdout.splitlines()
    assert row[0].startswith("epsilon")
    column = plan("--epsilon", "1").stdout.splitlines()
    assert column[0].startswith("users")
    assert any(line.startswith("5,000") for line in column)


def test_numbers_are_rounded_towards_enough() -> None:
    assert at_least(0.5612) == "0.57"
    assert at_least(1234.0, "", " users") == "1,300 users"
    assert at_least(2.0, "epsilon") == "epsilon 2"
    assert at_least(None) == "not reached"


def test_pictures_and_pages(tmp_path: Path) -> None:
    picture, page = tmp_path / "plan.png", tmp_path / "plan.html"
    assert plan("--epsilon", "1", "--users", "200", "--out", str(picture)).exit_code == 0
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert plan("--users", "200", "--want", "similarity=0.7", "--out", str(page)).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "How good will the map be?" in text
    assert "data:image/png;base64," in text
    assert "Maps of 200 users, places" in text
    assert plan("--epsilon", "2", "--out", str(page), "--overwrite").exit_code == 0
    assert "Maps at epsilon 2, places" in page.read_text(encoding="utf-8")
    kept = plan("--users", "200", "--out", str(page))
    assert kept.exit_code == 8
    assert "exists already and is kept" in kept.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--want", "beauty=1"], "as in similarity=0.7, got 'beauty=1'; nothing was forecast"),
        (
            ["--want", "emd=200"],
            "emd lies between 0 and 1 (of the map's side), got 200; nothing was",
        ),
        (["--want", "emd=200", "--frames", "3"], "(of the map's side), got 200; nothing was"),
        (
            ["--want", "similarity=1"],
            "similarity lies between 0 and 1, got 1; nothing was forecast",
        ),
        (["--want", "emd=200m"], "in metres only where bounds say how long one is, got 'emd=200m'"),
        (["--want", "emd=200m", "--bounds", "0,0,9,9", "--plane"], "in metres only where"),
        (["--want", "similarity=x"], "got 'similarity=x'; nothing was forecast"),
        (["--method", "pyramid"], "only maps by zoom are forecast, got pyramid"),
        (["--blur", "0.1"], "a blur of 0.02 sides, got 0.1"),
        (["--levels", "12"], "levels 6 to 10, got 12"),
        (["--users", "1", "--epsilon", "1"], "users of 2 or more, got 1"),
        (["--users", "3", "--epsilon", "1"], "3 users at epsilon 1 are too few"),
        (["--users", "1"], "users of 2 or more, got 1"),
        (["--epsilon", "x"], "epsilon"),
        (["--out", "plan.pdf"], "plans end in one of .html, .png, got plan.pdf"),
    ],
)
def test_mistakes_end_in_a_sentence(words: list[str], said: str) -> None:
    done = plan(*words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_plan_of_maps_that_are_to_be_pooled_says_what_it_does_not_forecast() -> None:
    words = ["--epsilon", "1", "--users", "537", "--frames", "24"]
    alone, pooled = plan(*words).stdout, plan(*words, "--pooling", "partial").stdout
    told = [line for line in pooled.splitlines() if line not in alone.splitlines()]
    assert len(told) == 1
    assert told[0].startswith("forecasts are of each map by itself: pooled, maps that are alike")
    found = asked(*words, "--pooling", "partial")
    assert found.pop("pooled") is True
    assert found == asked(*words)
    one = plan(*words[:4], "--pooling", "partial")
    assert one.exit_code == 2
    assert "shares strength between several maps" in " ".join(one.stderr.split())
