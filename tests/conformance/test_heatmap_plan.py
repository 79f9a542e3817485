"""`sfumato heatmap plan --json`, `plan_heatmap` and a saved plan say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidParameter
from sfumato.heatmap import HeatmapPlan, plan_heatmap
from sfumato.report import write_plan
from sfumato.spaces import area_in_degrees

pytestmark = pytest.mark.unit

BOUNDS = (11.20, 43.74, 11.32, 43.81)
CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "nothing": ([], {}),
    "users": (["--users", "200"], {"users": 200}),
    "epsilon": (["--epsilon", "1/2"], {"epsilon": "1/2"}),
    "both": (["--epsilon", "0.4", "--users", "200"], {"epsilon": 0.4, "users": 200}),
    "gaze": (
        ["--epsilon", "1", "--users", "40", "--kind", "gaze"],
        {"epsilon": 1, "users": 40, "kind": "gaze"},
    ),
    "target": (["--want", "similarity=0.7"], {"target": "similarity=0.7"}),
    "target and users": (
        ["--want", "similarity=0.99", "--users", "20"],
        {"target": "similarity=0.99", "users": 20},
    ),
    "all": (
        ["--want", "kl=0.2", "--users", "200", "--epsilon", "1", "--bounds", "11.2,43.74,11.32,43.81"],
        {"target": "kl=0.2", "users": 200, "epsilon": 1, "area": area_in_degrees(BOUNDS, 8)},
    ),
    "frames": (
        ["--users", "537", "--epsilon", "1", "--frames", "24"],
        {"users": 537, "epsilon": 1, "frames": 24},
    ),
    "frames of several maps": (
        ["--users", "537", "--epsilon", "1", "--frames", "24", "--maps", "15"],
        {"users": 537, "epsilon": 1, "frames": 24, "maps": 15},
    ),
    "frames without users": (["--epsilon", "1", "--frames", "24"], {"epsilon": 1, "frames": 24}),
    "frames and a target": (
        ["--users", "1000", "--epsilon", "1", "--frames", "6", "--want", "similarity=0.6"],
        {"users": 1000, "epsilon": 1, "frames": 6, "target": "similarity=0.6"},
    ),
    "mass in each": (
        ["--users", "50", "--epsilon", "1", "--frames", "4", "--maps", "2", "--mass-per-period"],
        {"users": 50, "epsilon": 1, "frames": 4, "maps": 2, "mass_per_period": True},
    ),
    "mass in each image": (
        ["--users", "50", "--epsilon", "1", "--maps", "5", "--mass-per-value"],
        {"users": 50, "epsilon": 1, "maps": 5, "mass_per_value": True},
    ),
    "rows": (
        ["--users", "537", "--epsilon", "1", "--rows", "4833", "--rows-per-user", "40"],
        {"users": 537, "epsilon": 1, "rows": 4833, "rows_per_user": 40},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_command_call_and_file_agree(name: str, tmp_path: Path) -> None:
    words, given = CASES[name]
    done = CliRunner().invoke(app, ["heatmap", "plan", *words, "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    plan = plan_heatmap(**given)
    assert said == json.loads(json.dumps(plan.to_json()))
    assert HeatmapPlan.from_json(said) == plan
    file = tmp_path / "command.png"
    shown = CliRunner().invoke(app, ["heatmap", "plan", *words, "--out", str(file)])
    assert shown.exit_code == 0
    assert shown.stdout == f"{plan}\n{plan.holds_for}\n"
    assert file.read_bytes() == plan.picture()


def test_a_plan_is_written_as_it_is_drawn_and_said_without_a_file(tmp_path: Path) -> None:
    plan = plan_heatmap()
    write_plan(plan, tmp_path / "call.png")
    assert (tmp_path / "call.png").read_bytes() == plan.picture()
    shown = CliRunner().invoke(app, ["heatmap", "plan"])
    assert shown.stdout == f"{plan}\n{plan.holds_for}\n"


def test_an_area_may_be_its_bounds() -> None:
    plan = plan_heatmap(epsilon=1, users=200, area=area_in_degrees(BOUNDS, 8))
    assert plan.side is not None
    for bounds in (BOUNDS, list(BOUNDS), ",".join(map(str, BOUNDS))):
        assert plan_heatmap(epsilon=1, users=200, area=bounds) == plan


def test_a_notebook_shows_the_words() -> None:
    plan = plan_heatmap(epsilon=1, users=200)
    assert str(plan).splitlines()[-1] in plan._repr_html_()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "pyramid"}, "only maps by zoom"),
        ({"levels": 12}, "levels 6 to 10, got 12"),
        ({"blur": 0.1}, "a blur of 0.02 sides, got 0.1"),
        ({"kind": "sound"}, "kinds are places, gaze, got 'sound'"),
        ({"target": "beauty=1"}, "as in similarity=0.7"),
        ({"users": 1}, "users of 2 or more, got 1"),
        ({"frames": 0}, "frames must be a whole number, at least 1, got 0"),
        ({"rows": 5}, "`rows` .* and `rows_per_user`, got only one"),
        ({"users": "200"}, "users must be a number above 0, got '200'; nothing was forecast"),
        ({"users": "200", "epsilon": 1}, "users must be a number above 0, got '200'"),
        ({"users": "200", "target": "kl=0.2"}, "users must be a number above 0, got '200'"),
        ({"area": (11.2, 43.74)}, r"four numbers west,south,east,north, got \(11\.2, 43\.74\)"),
    ],
)
def test_mistakes_name_parameters(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        plan_heatmap(**given)
