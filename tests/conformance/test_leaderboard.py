"""`sfumato leaderboard --json`, `run_leaderboard` and a saved result say the same; methods of others join."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidParameter
from sfumato.heatmap import PyramidMethod, Tiles, register_method
from sfumato.heatmap.benchmark import LeaderboardResult, UserMethod, run_leaderboard, sample_picture
from sfumato.heatmap.methods import unregister_method
from sfumato.privacy import Bound
from sfumato.report import write_leaderboard
from sfumato.spaces import Grid

pytestmark = pytest.mark.unit

WORDS = ("--methods", "pyramid,coarse", "--epsilon", "2,1", "--runs", "2", "--users", "20")
GIVEN: dict[str, Any] = {
    "methods": ["pyramid", "coarse"],
    "epsilons": [2, 1],
    "runs": 2,
    "users": 20,
}
OWN = """
import numpy as np

def flat(counts, epsilon, rng):
    return np.maximum(counts + rng.laplace(scale=1 / epsilon, size=counts.shape), 0)
"""


def flat(counts: Any, epsilon: float, rng: np.random.Generator) -> Any:
    return np.maximum(counts + rng.laplace(scale=1 / epsilon, size=counts.shape), 0)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("mine.py").write_text(OWN)
    yield
    sys.modules.pop("mine", None)


def told(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["leaderboard", *words, "--json", "--overwrite"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def timeless(result: LeaderboardResult) -> dict[str, Any]:
    """What does not depend on the clock."""
    scores = tuple(replace(score, seconds=1.0) for score in result.scores)
    return json.loads(json.dumps(replace(result, scores=scores).to_json()))  # type: ignore[no-any-return]


def test_command_call_and_file_agree() -> None:
    said = told(*WORDS, "--method", "mine:flat")
    steps: list[str] = []
    result = run_leaderboard(
        **GIVEN, user_methods=[UserMethod("mine:flat", flat)], watch=steps.append
    )
    assert said.pop("written") == "leaderboard.html"
    read = LeaderboardResult.from_json(said)
    assert read.to_json() == said
    assert timeless(read) == timeless(result)
    assert steps[0] == "made-up cities: epsilon 1, 2 runs of 3 methods"
    write_leaderboard(result, "again.html")
    pages = [Path(name).read_text("utf-8") for name in ("leaderboard.html", "again.html")]
    pictures = [page.split("base64,")[1].split('"')[0] for page in pages]
    assert pictures[0] == pictures[1]
    assert sample_picture(result.samples[0])[:8] == b"\x89PNG\r\n\x1a\n"
    assert str(result).splitlines()[0] == "made-up cities: 2 runs of 20 people at each epsilon"
    assert "mine:flat: its privacy was not checked" in result._repr_html_()


@dataclass(frozen=True, slots=True)
class Cubism:
    """A method from outside the package: the pyramid under another name."""

    name: ClassVar[str] = "cubism"

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> Any:
        return PyramidMethod().mechanism(epsilon, bound, grid)

    def estimate(self, released: Any, grid: Grid) -> tuple[Tiles, ...]:
        return PyramidMethod().estimate(released, grid)


def test_a_registered_method_joins_by_name_and_a_value_without_one() -> None:
    by_value = run_leaderboard(**GIVEN | {"methods": ["pyramid", Cubism()]})
    outside: Any = Cubism  # three names are enough, it inherits nothing
    register_method(outside)
    try:
        said = told("--methods", "pyramid,cubism", *WORDS[2:])
    finally:
        unregister_method("cubism")
    assert said["methods"] == ["pyramid", "cubism"]
    assert timeless(LeaderboardResult.from_json(said)) == timeless(by_value)


def test_mistakes_name_parameters_and_flags() -> None:
    with pytest.raises(InvalidParameter, match="said aloud by `public`"):
        run_leaderboard(["rows.csv"], **GIVEN)
    with pytest.raises(InvalidParameter, match="epsilons are numbers above 0"):
        run_leaderboard(**GIVEN | {"epsilons": [0]})
    with pytest.raises(InvalidParameter, match="without `cities` there must be files"):
        run_leaderboard(**GIVEN, cities=False)
    done = CliRunner().invoke(app, ["leaderboard", *WORDS, "--no-cities"])
    assert "without --cities there must be files" in done.stderr
