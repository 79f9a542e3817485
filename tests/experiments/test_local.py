"""Local rivals make maps, the best size is taken for them, and signs go by Holm; the table of the plan."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from experiments.heatmaps import local, local_forecast, local_rivals
from experiments.heatmaps.local import Verdict, best, drawn, holm, paired
from experiments.heatmaps.local_rivals import RIVALS, WEAKER, Crowd, Rival, projected
from experiments.heatmaps.protocol import chance

from sfumato.heatmap.benchmark import Place, synthetic_places
from sfumato.heatmap.local.forecast import FORECAST_TABLE

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("rival", [*RIVALS, WEAKER], ids=lambda one: one.name)
def test_every_rival_finds_a_crowd_in_one_quarter(
    rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10,000 people at epsilon 5 in the last quarter; planar Laplace over the diagonal is far worse."""
    monkeypatch.setattr(local_rivals, "DISPLACEMENTS", 4_000)
    monkeypatch.setattr(local_rivals, "EM_STEPS", (20, 100))
    codes = np.random.default_rng(1).integers(3 * 4**7, 4**8, 10_000)
    made = rival.run(Crowd(codes, 5.0, decoding=True), rival.sizes[0], np.random.default_rng(2))
    assert (made.decoded is None) == rival.name.startswith("Laplace")
    for shares in (*made.own, *([] if made.decoded is None else [made.decoded])):
        assert shares.shape == (4096,)
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1)
        assert shares[3 * 1024 :].sum() > (0.7 if rival.name == "Laplace" else 0.9)


def test_shares_are_the_nearest_ones() -> None:
    assert projected(np.array([0.7, 0.5, -0.1])) == pytest.approx([0.6, 0.4, 0.0])


def test_people_report_one_of_their_places_and_the_truth_has_all() -> None:
    """One person in two corners, three times as often in the second; another in the first alone."""
    place = Place(
        "two", np.array([7, 7, 9]), np.array([0.1, 0.9, 0.1]), np.array([0.1, 0.9, 0.1]),
        np.array([1, 3, 5]),
    )  # fmt: skip
    codes, truth = drawn(place, 40_000, np.random.default_rng(3))
    assert truth.sum() == pytest.approx(1)
    high = truth[np.flatnonzero(truth)[-1]]
    assert high == pytest.approx(0.375, abs=0.02)
    assert (codes > 2**15).mean() == pytest.approx(high, abs=0.02)


def test_the_best_way_is_taken_for_each_metric() -> None:
    scores = {("grid", "2"): [(0.3, 0.5), (0.1, 0.5)], ("grid", "3"): [(0.3, 0.9), (0.3, 0.9)]}
    assert best(scores, "grid", "emd").tolist() == [0.3, 0.1]
    assert best(scores, "grid", "similarity").tolist() == [0.9, 0.9]


def test_signs_stop_at_the_first_that_does_not_hold() -> None:
    family = [
        Verdict((1000, 1.0), "grid", "emd", gain, chance)
        for gain, chance in ((1.0, 0.001), (-1.0, 0.02), (1.0, 0.03), (1.0, 0.9))
    ]
    assert [one.sign for one in holm(family, 0.05)] == ["+", "", "", ""]
    assert paired(np.array([1.0, 2.0, 3.0])) == pytest.approx(0.0742, abs=1e-4)
    assert paired(np.array([1.0])) == 1.0


def test_a_page_says_how_little_was_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [Rival(one.name, (2,), RIVALS[0].run) for one in (*RIVALS, WEAKER)]
    monkeypatch.setattr(local, "RIVALS", few[:-1])
    monkeypatch.setattr(local, "WEAKER", few[-1])
    places = synthetic_places(2, people=300, chance=chance)
    monkeypatch.setattr(local, "places", lambda *_: places)
    assert local.main(["--quick", "--out", str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert "1 of 24 cells of users and epsilon, in 2 places" in page
    assert "*not decided*" in page
    assert page == (tmp_path / "local.md").read_text("utf-8")


def test_the_plan_has_a_line_for_each_of_the_design(monkeypatch: pytest.MonkeyPatch) -> None:
    for (users, epsilon), line in zip(local_forecast.DESIGN, FORECAST_TABLE, strict=True):
        odds = math.exp(epsilon)
        assert line[0] == pytest.approx(users * (odds - 1) ** 2 / (4 * odds), abs=0.06)
    monkeypatch.setattr(local_forecast, "PEOPLE", 100)
    monkeypatch.setattr(local_forecast, "CITIES", 3)
    assert local_forecast.main(["--only", "40:1", "--check"]) == 1
    with pytest.raises(SystemExit, match="nothing was run"):
        local_forecast.main(["--only", "41:1"])
