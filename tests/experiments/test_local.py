"""Local rivals make maps, the best size is taken for them, and signs go by Holm; liars and bands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiments.heatmaps import (
    local,
    local_bands,
    local_forecast,
    local_liars,
    local_rivals,
)
from experiments.heatmaps.local import drawn
from experiments.heatmaps.local_page import Cell, Scores, Verdict, best, holm, paired
from experiments.heatmaps.local_rivals import RIVALS, WEAKER, Crowd, Rival, projected
from experiments.heatmaps.protocol import chance

from sfumato.heatmap.benchmark import Place, synthetic_places

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
    monkeypatch.setattr(local_rivals, "RIVALS", few[:-1])
    monkeypatch.setattr(local_rivals, "WEAKER", few[-1])
    places = synthetic_places(2, people=300, chance=chance)
    monkeypatch.setattr(local, "places", lambda *_: places)
    assert local.main(["--quick", "--out", str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert "1 of 24 cells of users and epsilon, in\n2 places" in page
    assert "*not decided*" in page
    assert page == (tmp_path / "local.md").read_text("utf-8")


def test_cells_that_were_run_are_kept_after_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that breaks off in its second cell leaves the first, and another goes on from there."""
    place = Place("one", np.array([1]), np.array([0.5]), np.array([0.5]), np.array([1]))
    ran: list[Cell] = []

    def scores(cell: Cell, *_: object, **__: object) -> Scores:
        if len(ran) == 1 and not (tmp_path / "resumed").exists():
            raise KeyboardInterrupt
        ran.append(cell)
        names = ["local", "even map", "central", *(one.name for one in (*RIVALS, WEAKER))]
        ways = names + [f"{one.name}, decoded" for one in RIVALS if one.name != "Laplace"]
        return {(name, ""): [(0.5, 0.5)] for name in ways}

    monkeypatch.setattr(local, "cell_scores", scores)
    monkeypatch.setattr(local, "places", lambda *_: [place])
    with pytest.raises(KeyboardInterrupt):
        local.main(["--out", str(tmp_path)])
    (tmp_path / "resumed").touch()
    known = ["--known", str(tmp_path / "local.csv")]
    assert local.main(["--out", str(tmp_path), "--most-users", "1000", *known]) == 0
    assert ran == [(1000, 1.0), (1000, 3.0), (1000, 5.0), (1000, 0.5), (1000, 2.0), (1000, 4.0)]


@pytest.mark.parametrize("epsilon", ["1", "3"])
def test_liars_bend_a_map_through_the_decoder_and_fewer_bend_it_less(epsilon: str) -> None:
    few, many = (local_liars.row(2000, epsilon, part, 1) for part in (0.01, 0.1))
    without, little, much = (float(one.rstrip("%")) for one in (few[2], few[3], many[3]))
    assert without < little < much
    assert float(few[4]) < float(many[4])


def test_stated_errors_and_bands_are_held_against_the_truth() -> None:
    codes = local_forecast.clustered(9, 3000)
    told = local_bands.judged(codes, "3", np.random.default_rng(4))
    assert told[:2] == (1.0, 1.0)
    assert min(told[2:4]) > 0.75
    assert told[5] == 0
