"""The table of trust: its quick form, and the page that was made of the whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiments.heatmaps import trust

pytestmark = pytest.mark.unit

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "trust.md"


def cells(line: str) -> list[str]:
    return [one.strip() for one in line.strip("|\n").split("|")]


def test_a_few_people_under_every_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert trust.main(["--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = [cells(line) for line in lines if line.startswith("| 200")]
    assert [row[1] for row in found] == [model.name for model in trust.MODELS]
    assert all(0 < float(row[3]) < 0.3 for row in found)


def test_the_page_has_every_model_and_the_bytes_of_the_plan() -> None:
    rows = [cells(line) for line in PAGE.read_text().splitlines() if line.startswith("| 1")]
    wanted = [(f"{many:,}", model.name) for many in trust.USERS for model in trust.MODELS]
    assert [(row[0], row[1]) for row in rows] == wanted
    for many in trust.USERS:
        for width in (20, 64):
            plan = trust.shuffled_plan(many, width)
            assert plan.cost[1] < 1e-10
            words = [f"{many:,}", "shuffled", f"pyramid, width {width}"]
            sent = next(row[5] for row in rows if row[:3] == words)
            assert sent == f"{plan.bytes_a_device:,}"


def test_one_model_alone_leaves_the_rows_of_the_others(tmp_path: Path) -> None:
    page = tmp_path / "trust.md"
    page.write_text("| 100 | central | zoom | kept |\n| 100 | local | two rounds | replaced |\n")
    assert trust.main(["--quick", "--only", "local", "--page", str(page)]) == 0
    rows = [
        cells(line) for line in page.read_text().splitlines() if line.startswith(("| 1", "| 2"))
    ]
    assert [row[:3] for row in rows] == [["100", "central", "zoom"], ["200", "local", "two rounds"]]
