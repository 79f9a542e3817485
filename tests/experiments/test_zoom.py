"""The table zoom is judged on: it runs, its requirements decide, and a surprise fails the run."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from experiments.heatmaps import zoom
from experiments.heatmaps.zoom import (
    METHODS,
    Requirement,
    losses,
    requirements,
    section,
    settings,
    sources,
)

from sfumato.heatmap.analysis import METRICS
from sfumato.heatmap.benchmark import Score, paired_comparisons, standard_methods

pytestmark = pytest.mark.unit

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
REAL = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no real data in {DATA}; made-up cities were run"
)


def score(method: str, value: float, sample: int, epsilon: float, seconds: float = 1.0) -> Score:
    return Score(
        "cells",
        "here",
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


def scores(mine: float = 0.8, theirs: float = 0.5, seconds: float = 1.0) -> list[Score]:
    """Two samples at six values of epsilon: 24 cells, each beyond doubt."""
    return [
        score(method, value + 0.01 * sample, sample, float(epsilon), taken)
        for epsilon in settings()["epsilons"]
        for sample in range(2)
        for method, value, taken in (
            ("zoom", mine, seconds),
            ("privtree", theirs, 1.0),
            ("pyramid", theirs, 1.0),
        )
    ]


def required(kind: str, **limits: float) -> Requirement:
    return Requirement("r", "text", kind, "privtree", {"cells": True}, **limits)  # type: ignore[arg-type]


def test_a_quick_run_writes_the_table(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    words = [
        "--quick",
        "--data",
        "none",
        "--methods",
        "privtree,pyramid,coarse",
        "--page",
        str(page),
    ]
    zoom.main([*words, "--out", str(tmp_path)])
    text = page.read_text(encoding="utf-8")
    assert text == (tmp_path / "zoom.md").read_text(encoding="utf-8")
    assert (
        "## Made-up cities, those of `sfumato leaderboard`\n\n4 runs of 200 people at each epsilon."
        in text
    )
    assert "### privtree against coarse: better " in text
    assert "What was asked for" not in text, "a quick run decides nothing"
    rows = list(csv.DictReader((tmp_path / "zoom.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 4 * 2 * 3


@REAL
@pytest.mark.parametrize("name", ["cells", "gaze", "new_york"])
def test_the_places_are_those_that_were_fixed(name: str) -> None:
    """The thirty cells, the even pictures, New York: with as many people as are sampled."""
    (source,) = sources(DATA, quick=False, only=[name])
    assert len(source.places) * source.samples == {"cells": 60, "gaze": 56, "new_york": 60}[name]
    for place in source.places:
        assert place.users >= source.users
        assert 0 <= min(place.x.min(), place.y.min()) <= max(place.x.max(), place.y.max()) <= 1


@pytest.mark.parametrize(
    ("one", "measured", "met"),
    [
        (required("better", least=20), 24, True),
        (required("worse", most=0), 0, True),
        (required("ratio", most=0.75, metric="kl"), 1.195 / 1.495, False),  # type: ignore[arg-type]
        (required("gain", least=0.02), 0.3, True),
        (required("gain", least=0.31), 0.3, False),
        (required("time", most=3), 4.0, False),
    ],
)
def test_a_requirement_is_decided_by_its_number(
    one: Requirement, measured: float, met: bool
) -> None:
    number = one.measure(scores(seconds=4.0), "zoom")
    assert number == pytest.approx(measured)
    assert one.met(number) is met


def test_losses_are_shown_and_are_a_surprise() -> None:
    asked = [required("worse", most=0), required("better", least=16)]
    good, bad = section(scores(), "zoom", asked), section(scores(mine=0.3), "zoom", asked)
    assert "- to `privtree`: significantly better nowhere" in good[0]
    assert "| text | 24 | met |" in good[0]
    assert not good[1]
    assert (
        "- to `privtree`: significantly better in Similarity at epsilon 0.1 (-0.2000 ± 0.0000)"
        in bad[0]
    )
    assert "| text | 24 | **not met** |" in bad[0]
    assert bad[1] == ["cells: r was not met: 24", "cells: r was not met: 0"]
    assert (
        losses(paired_comparisons(scores(mine=0.3), "zoom", "privtree")).count(" at epsilon ") == 24
    )


def test_a_surprise_fails_a_full_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores stand in for the run itself; nothing else does."""
    monkeypatch.setattr(zoom, "all_scores", lambda *_, **__: scores(mine=0.3))
    monkeypatch.setattr(zoom, "sources", lambda *_, **__: [zoom.Source("cells", (), 200, 2)])
    monkeypatch.setattr(zoom, "standard_methods", lambda _: dict.fromkeys(METHODS))
    with pytest.raises(SystemExit) as ended:
        zoom.main(["--out", str(tmp_path), "--methods", "zoom,privtree,pyramid"])
    assert ended.value.code == 1
    assert "**not met**" in (tmp_path / "zoom.md").read_text(encoding="utf-8")


def test_every_number_of_the_issue_is_asked_for() -> None:
    asked = requirements()
    assert len({one.name for one in asked}) == len(asked)
    assert {one.rival for one in asked} <= set(METHODS)
    assert all(one.holds.keys() == {"cells", "gaze", "new_york"} for one in asked)
    assert all(one.note.get(name) for one in asked for name, held in one.holds.items() if not held)
    assert {one.metric for one in asked} <= set(METRICS)
    counted = {
        (one.kind, one.rival): (one.least, one.most)
        for one in asked
        if one.kind in ("better", "worse")
    }
    assert counted["better", "pyramid"][0] == 20
    assert [counted["better", name][0] for name in ("privtree", "adaptive", "hierarchy")] == [
        16
    ] * 3
    assert [
        counted["worse", name][1] for name in ("pyramid", "privtree", "adaptive", "hierarchy")
    ] == [0] * 4


def test_mistakes_end_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="there is no method cubist"):
        zoom.main(["--methods", "cubist", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="sources are cells, gaze, new_york and city, got 'mars'"):
        sources(tmp_path, quick=True, only=["mars"])
    assert set(METHODS[1:]) <= standard_methods(200).keys()
