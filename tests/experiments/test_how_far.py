"""The experiment on stated errors counts what it says, fits what it is given, and runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.heatmaps import how_far
from experiments.heatmaps.how_far import (
    Row,
    cell_of,
    missed,
    quantiles,
    read_rows,
    stated,
    table,
    write_rows,
)

from sfumato.heatmap.accuracy import between

RIGHT = Row(
    "town", "town 0", 200, 1.0, 0, 198.0,
    0.04, 0.03, 0.036, 0.05, 0.7, 0.68, 0.75, 0.8, 0.9, 0.85, 0.92, 0.96, 0.05, 1.2,
)  # fmt: skip


@pytest.mark.unit
def test_what_held_is_counted() -> None:
    wrong = replace(RIGHT, emd=9.0, similarity=0.01, pearson=-0.9, plain=1.3)
    cell = cell_of([RIGHT, RIGHT, RIGHT, wrong])
    assert set(cell.held.values()) == {0.75}
    assert cell.certified_held == 0.75
    said = stated(RIGHT)["emd"]
    assert cell.width["emd"] == pytest.approx((said.high - said.low) / said.value)
    assert any(
        line.startswith("200 users at epsilon 1: emd held in 75 % of 4")
        for line in missed([RIGHT] * 3 + [wrong])
    )
    assert "| 200 | 1 | 4 | 0.0400 | 75 % |" in table([RIGHT, RIGHT, RIGHT, wrong])


@pytest.mark.unit
def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", [RIGHT, replace(RIGHT, sample=1)])
    assert read_rows(tmp_path / "rows.csv") == [RIGHT, replace(RIGHT, sample=1)]


@pytest.mark.unit
def test_quantiles_are_found_for_users_and_for_epsilon(rng: np.random.Generator) -> None:
    """Steps of a normal law that rise with users and fall with epsilon: the 0.9 quantile is 1.28 above."""
    rows = [
        (users, epsilon)
        for users in how_far.USERS
        for epsilon in how_far.EPSILONS
        for _ in range(400)
    ]
    middle = np.array([0.5 * np.log10(users) - np.log10(epsilon) for users, epsilon in rows])
    weights = np.array([between(*row) for row in rows])
    found = quantiles(weights, middle + rng.normal(size=middle.size), 0.9)
    assert found == pytest.approx(middle[::400] + 1.28, abs=0.35)


@pytest.mark.unit
def test_the_quick_run_writes_its_table(tmp_path: Path) -> None:
    how_far.main(["--quick", "--out", str(tmp_path), "--data", "none"])
    assert len(read_rows(tmp_path / "how_far.csv")) == 3
    assert "EMD held" in (tmp_path / "how_far.md").read_text(encoding="utf-8")
