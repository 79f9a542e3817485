"""The fit finds what was put in, keeps its promises on width, and the check counts what it says."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.heatmaps import forecast
from experiments.heatmaps.claims import write_rows
from experiments.heatmaps.forecast import Checked, check_table, checked, read_rows
from experiments.heatmaps.forecast_fit import WIDEST, fit, stretched, unstretched

from sfumato.heatmap.analysis import METRICS, Metric
from sfumato.heatmap.analysis.forecasts import forecast as told_of
from sfumato.heatmap.analysis.forecasts import table_from_json
from sfumato.heatmap.benchmark import Score

pytestmark = pytest.mark.unit


def rows(spread: float, noise: float, *, rng: np.random.Generator) -> list[Score]:
    """Forty places: a logistic curve in log10(users times epsilon), moved by the place and by chance."""
    found = []
    for number in range(40):
        moved = spread * rng.normal()
        for epsilon in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0):
            for sample in range(4):
                logit = 2 * math.log10(200 * epsilon) - 3 + moved + noise * rng.normal()
                value = 1 / (1 + math.exp(-logit))
                rest = (value, value, 1.01 - value, 1.01 - value)
                found.append(
                    Score("tuning", f"town {number}", sample, 200, 256, epsilon, "zoom", *rest)
                )
    return found


@pytest.mark.statistical
def test_the_fit_finds_the_curve_and_the_spread_of_places(rng: np.random.Generator) -> None:
    """Ends are 1.645 deviations of places apart from the middle, whatever the noise of single maps.

    Forty places put the deviation within 0.25 of itself at two in a thousand; the noise of single
    maps, taken for a difference of places, would add 0.8 of it.
    """
    table = fit(rows(0.2, 0.4, rng=rng), "places")
    at = int(np.argmin(np.abs(np.array(table["knots"]) - math.log10(100))))
    knot = table["knots"][at]
    line = {
        name: stretched("similarity", np.array(table["similarity"][name][at]))
        for name in ("low", "high")
    }
    middle = stretched("similarity", np.array(table["similarity"]["middle"][at]))
    assert float(middle) == pytest.approx(2 * knot - 3, abs=0.2)
    half = float(line["high"] - line["low"]) / 2
    assert half == pytest.approx(1.645 * 0.2, rel=0.5)
    assert 0.8 < table["similarity"]["holds"][at] <= 1


def test_an_interval_stays_as_narrow_as_asked_and_says_what_that_costs(
    rng: np.random.Generator,
) -> None:
    one = fit(rows(1.0, 0.1, rng=rng), "places")["similarity"]
    low, high, holds = (np.array(one[name]) for name in ("low", "high", "holds"))
    assert np.all(high - low <= WIDEST + 1e-3)
    assert holds.min() < 0.6
    assert np.max(np.array(one["highest"]) - np.array(one["lowest"])) > 2 * WIDEST


@pytest.mark.parametrize("metric", METRICS)
def test_the_scale_without_ends_is_left_again(metric: Metric) -> None:
    values = np.array([0.05, 0.5, 0.95])
    np.testing.assert_allclose(unstretched(metric, stretched(metric, values)), values)


def test_the_check_counts_places_inside(rng: np.random.Generator) -> None:
    told = told_of(200, 1.0)
    good = [
        Score(
            "cells", f"cell {n}", s, 200, 256, 1.0, "zoom", told.similarity.middle, told.pearson.middle,
            told.kl.middle, told.emd.middle,
        )
        for n in range(3)
        for s in range(2)
    ]  # fmt: skip
    bad = [
        replace(score, place="cell 9", similarity=told.similarity.low - 0.1) for score in good[:2]
    ]
    found = checked([*good, *bad])
    assert sum(one.inside for one in found if one.metric == "similarity") == 3
    assert len(found) == 4 * len(METRICS)
    lines = check_table(found).splitlines()
    assert "| cells | 1 | similarity | 3 of 4 |" in lines[2]
    assert lines[2].endswith(f"| {(told.similarity.middle - told.similarity.low + 0.1) / 4:+.3f} |")
    assert isinstance(found[0], Checked)


def test_quick_runs_write_their_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--quick", "--data", "none", "--out", str(tmp_path)]
    forecast.main([*words, "--table", str(tmp_path / "copy.json")])
    made = json.loads((tmp_path / "forecast.json").read_text(encoding="utf-8"))
    assert (tmp_path / "copy.json").read_text("utf-8") == (tmp_path / "forecast.json").read_text(
        "utf-8"
    )
    table = table_from_json(made, "places")
    assert (table.places, table.maps) == (2, 8)
    kept = read_rows(tmp_path / "forecast.csv")
    assert len(kept) == 12
    write_rows(tmp_path / "again.csv", kept)
    assert read_rows(tmp_path / "again.csv") == kept
    forecast.main([*words, "--check", "--rows", str(tmp_path / "forecast.csv")])
    assert "of 3 |" in capsys.readouterr().out
