"""The calibration counts what it says, and a posterior that is too sure does not get past it."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.heatmaps import calibration
from experiments.heatmaps.calibration import Checked, Row, check, half_width, missed, table
from tests.heatmap.posteriors import Given

from sfumato.heatmap.accuracy.uncertainty import DRAWS, Mark, ring, uncertainty
from sfumato.spaces.area import area_of_plane

AREA = area_of_plane((0, 0, 1, 1), 5)
RIGHT = Checked(0.9, 0.05, 0.05, 1.0, 3, 0, 0.2)


def rows(*checked: Checked, epsilon: float = 1.0) -> list[Row]:
    return [Row("city", f"town {n}", 0, epsilon, "zoom", one) for n, one in enumerate(checked)]


@pytest.mark.unit
def test_cells_and_marks_are_counted() -> None:
    """A sure map of two places; in truth one of them has moved."""
    image = np.zeros((32, 32))
    image[8, 8], image[24, 24] = 3, 1
    found = uncertainty(Given(np.repeat(image[None], DRAWS, axis=0)), AREA)
    assert len(found.marks) == 2
    same = check(found, image / 4, AREA.grid)
    assert (same.coverage, same.marks, same.false_marks) == (1, 2, 0)
    moved = np.zeros((32, 32))
    moved[8, 8], moved[24, 4] = 3, 1
    other = check(found, moved / 4, AREA.grid)
    assert (other.marks, other.false_marks) == (2, 1)
    assert other.below == 0
    assert other.above > 0
    assert math.isclose(other.coverage + other.above, 1)
    # Within a ring there is exactly twice the average: not more, so the mark is false.
    disc = ring(mark := Mark(0.5, 0.5, 0.1, 0.1, 0.1), AREA.grid, level=5)
    even = np.where(disc, 2 / 1024, (1 - 2 * disc.mean()) / (~disc).sum())
    assert check(replace(found, marks=(mark,)), even, AREA.grid).false_marks == 1
    assert (
        check(
            replace(found, marks=(mark,)), np.where(disc, 1.01, 0.99) * even, AREA.grid
        ).false_marks
        == 0
    )


@pytest.mark.statistical
def test_a_posterior_too_sure_is_found_out(rng: np.random.Generator) -> None:
    """Truths are draws of a law; its own draws cover enough of them, draws of a fifth of its spread far less.

    Of three times 60 maps the first covered 0.91, the second 0.28 of the cells, with a deviation of
    at most 0.02 from map to map: the mean of twenty is many deviations from either end of what is
    asked.
    """
    law = rng.gamma(0.5, size=(32, 32)) * 4 + 0.05
    found: dict[float, list[Checked]] = {1.0: [], 25.0: []}
    for _ in range(20):
        truth = rng.gamma(law)
        for sharper, checked in found.items():
            drawn = rng.gamma(np.broadcast_to(law * sharper, (DRAWS, 32, 32))) / sharper
            checked.append(check(uncertainty(Given(drawn), AREA), truth / truth.sum(), AREA.grid))
    assert not missed(rows(*found[1.0]))
    (said, *_) = missed(rows(*found[25.0]))
    assert said.endswith("% of cells in the band")


@pytest.mark.unit
def test_what_is_not_as_asked_is_said() -> None:
    assert missed(rows(RIGHT, RIGHT)) == []
    assert missed(rows(replace(RIGHT, coverage=0.7))) == [
        "zoom at epsilon 1: 70.0 % of cells in the band"
    ]
    assert missed(rows(replace(RIGHT, coverage=0.99)))
    wrong = rows(*[RIGHT] * 18, replace(RIGHT, false_marks=2), replace(RIGHT, false_marks=1))
    assert missed(wrong) == ["zoom at epsilon 1: 10.0 % of maps with a false mark"]
    assert missed(rows(*[RIGHT] * 19, replace(RIGHT, false_marks=5))) == []


@pytest.mark.unit
def test_the_table_is_read_by_people() -> None:
    some = rows(RIGHT, replace(RIGHT, coverage=0.8, false_marks=1)) + rows(RIGHT, epsilon=5.0)
    lines = table(some).splitlines()
    assert lines[2].startswith("| zoom | 1 | 2 | 85.0 ± ")
    assert lines[2].endswith("| 5.0 % | 5.0 % | 1.00 | 3.0 | 1 (50.0 %) | 20 % |")
    assert lines[3].startswith("| zoom | 5 | 1 | 90.0 ± nan % |")
    # t of 1 degree of freedom times 0.1 / 2, half the difference.
    assert half_width(some[:2]) == pytest.approx(12.7062 * 0.05, rel=1e-4)


@pytest.mark.unit
def test_the_quick_run_writes_its_table(tmp_path: Path) -> None:
    calibration.main(["--quick", "--out", str(tmp_path), "--data", "none"])
    assert "in the 90 % band" in (tmp_path / "calibration.md").read_text(encoding="utf-8")
    lines = list(
        csv.DictReader((tmp_path / "calibration.csv").read_text(encoding="utf-8").splitlines())
    )
    assert all(line["source"] == "city" and 0 <= float(line["coverage"]) <= 1 for line in lines)
