"""The experiment on totals of frames counts what it says, and runs."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from experiments.heatmaps.frame_totals import HOURS, Row, day, main, table

from sfumato.privacy import UNITS

pytestmark = pytest.mark.unit


def test_everybody_has_mass_1_in_a_day(rng: np.random.Generator) -> None:
    units = day(50, rng)
    assert units.shape[0] == HOURS
    assert units.sum() == pytest.approx(50 * UNITS, abs=50 * 40)  # each ride is rounded once
    assert day(0, rng).sum() == 0


def test_the_table_says_what_share_holds() -> None:
    found = table([Row(3_000, "1", 144, 125.0, 136, 42.24)]).splitlines()
    assert found[2] == "| 3,000 | 1 | 144 | 125.0 | 94 % | 42.2 |"


def test_the_quick_run_writes_its_table(tmp_path: Path) -> None:
    main(["--quick", "--out", str(tmp_path)])
    assert "intervals that hold" in (tmp_path / "frame_totals.md").read_text(encoding="utf-8")
    with (tmp_path / "frame_totals.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["frames"]) for row in rows] == [HOURS, HOURS]
    assert all(0 <= int(row["held"]) <= HOURS and float(row["width"]) > 0 for row in rows)
