"""`sfumato leaderboard`: the same numbers each time, a researcher's own method, mistakes before work."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.heatmap import check_ins
from sfumato.heatmap.benchmark import standard_methods
from sfumato.heatmap.methods import registered_methods

pytestmark = pytest.mark.unit

SMALL = ("--methods", "pyramid,coarse", "--epsilon", "2,1", "--runs", "2", "--users", "20")
# What a researcher writes; `flat` is differentially private, `truth` is not, and nobody here can
# tell.
OWN = """
import numpy as np
print("on import")

def flat(counts, epsilon, rng):
    print("while running")
    return np.maximum(counts + rng.laplace(scale=1 / epsilon, size=counts.shape), 0)

def truth(counts, epsilon, rng):
    return counts

def broken(counts, epsilon, rng):
    return counts[0]

number = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)
    Path("mine.py").write_text(OWN)
    yield tmp_path
    sys.modules.pop("mine", None)


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, ["leaderboard", *words])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def found(*words: str) -> dict[str, Any]:
    """The JSON of a run that must succeed."""
    result = run(*words, "--json", "--overwrite")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def refused(code: int, *words: str) -> str:
    """The one sentence of a mistake, after which there is no page."""
    result = run(*words, "--quiet")
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert not Path("leaderboard.html").exists()
    sentence: str = result.stderr.replace("on import\n", "")
    assert sentence.startswith("sfumato: ")
    assert sentence.count("\n") == 1
    return sentence


def test_a_run_prints_its_tables_and_writes_a_page() -> None:
    result = run(*SMALL)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.splitlines() == [
        "made-up cities: epsilon 1, 2 runs of 2 methods",
        "made-up cities: epsilon 2, 2 runs of 2 methods",
        "drawing",
        "wrote leaderboard.html",
    ]
    lines = result.stdout.splitlines()
    assert lines[0] == "made-up cities: 2 runs of 20 people at each epsilon"
    assert lines[2].split() == [
        "epsilon",
        "method",
        "Similarity",
        "↑",
        "Pearson",
        "↑",
        "KL",
        "↓",
        "EMD",
        "↓",
    ]
    assert [line.split()[:2] for line in lines[3:7]] == [
        ["1", "pyramid"], ["1", "coarse"], ["2", "pyramid"], ["2", "coarse"],
    ]  # fmt: skip
    assert any(line.startswith("pyramid against") for line in lines)
    page = Path("leaderboard.html").read_text(encoding="utf-8")
    assert "default-src\n'none'" in page
    assert "http:" not in page
    assert "https:" not in page
    assert "<script" not in page
    assert page.count("data:image/png;base64,") == 1
    assert "<h2>pyramid against coarse</h2>" in page
    assert "no correction" in page


def test_numbers_come_again_and_match_each_other() -> None:
    first, again = found(*SMALL), found(*SMALL)
    for one, other in zip(first["scores"], again["scores"], strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    assert first["sources"] == again["sources"]
    part = first["sources"]["made-up cities"]
    values = [s["kl"] for s in first["scores"] if s["method"] == "coarse" and s["epsilon"] == 2]
    (mean,) = [
        m["mean"]
        for m in part["means"]
        if (m["method"], m["epsilon"], m["metric"]) == ("coarse", 2, "kl")
    ]
    assert mean == pytest.approx(np.mean(values))
    against = part["against"]["coarse"]
    assert against["better"] + against["worse"] + against["open"] == len(against["cells"]) == 8
    assert set(first["times"]) == {"pyramid", "coarse"}
    assert first["times"]["pyramid"] == 1.0


def test_a_researchers_method_joins_and_comes_first() -> None:
    """What it prints goes to stderr. One gives the truth away: the best, and nobody checked its privacy."""
    result = run(*SMALL, "--method", "mine:truth", "--method", "mine:flat", "--quiet")
    assert result.exit_code == 0, result.stderr
    assert "while running" not in result.stdout
    assert "on import" not in result.stdout
    assert "mine:truth against" in result.stdout
    assert "mine:flat: its privacy was not checked; see sfumato audit" in result.stdout
    page = Path("leaderboard.html").read_text(encoding="utf-8")
    assert "mine:truth: its privacy was not checked; see sfumato audit" in page
    part = found(*SMALL, "--method", "mine:truth")
    assert part["methods"] == ["mine:truth", "pyramid", "coarse"]
    assert part["sources"]["made-up cities"]["best_means"]["mine:truth"] == 8


def test_public_files_are_places_of_their_own(rng: np.random.Generator) -> None:
    bounds = (11.20, 43.74, 11.32, 43.81)
    pq.write_table(check_ins(40, bounds=bounds, rng=rng), "public.parquet")
    words = ("public.parquet", "--public", "--bounds", ",".join(map(str, bounds)), *SMALL)
    assert list(found(*words)["sources"]) == ["made-up cities", "public.parquet"]
    assert list(found(*words, "--no-cities")["sources"]) == ["public.parquet"]
    assert "fewer than --users 50" in run(*words, "--users", "50", "--overwrite").stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["rows.parquet"],
            2,
            "must be public or made up, said aloud by --public; nothing was read",
        ),
        (["rows.parquet", "--public"], 4, "rows.parquet"),
        (["--methods", "cubism"], 2, "methods are "),
        (["--methods", "pyramid"], 2, "two methods or more"),
        (["--methods", "pyramid,pyramid"], 2, "two methods or more that differ"),
        (
            ["--epsilon", "1,x"],
            2,
            "epsilon is numbers above 0, with commas, got '1,x'; nothing was run",
        ),
        (["--epsilon", "0"], 2, "epsilon is numbers above 0"),
        (["--epsilon", "inf"], 2, "epsilon is numbers above 0"),
        (["--no-cities"], 2, "there must be files"),
        (["--out", "page.pdf"], 2, "a page, .html, got page.pdf"),
        (["--out", "nowhere/page.html"], 4, "there is no folder nowhere"),
        (["--method", "mine"], 2, "module:function"),
        (["--method", "mine:nothing"], 4, "cannot load mine:nothing"),
        (["--method", "mine:number"], 4, "mine:number is not a function"),
        (["--method", "nobodys:function"], 4, "No module named 'nobodys'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(words: list[str], code: int, said: str) -> None:
    assert said in refused(code, *words)


def test_a_method_that_fails_is_named() -> None:
    sentence = run(*SMALL, "--method", "mine:broken", "--quiet").stderr.replace("on import\n", "")
    assert sentence == (
        "sfumato: mine:broken at epsilon 1 on town 0 must give back an array of shape (256, 256), got "
        "(256,); nothing was compared\n"
    )
    assert not Path("leaderboard.html").exists()


def test_a_page_that_exists_is_kept() -> None:
    Path("leaderboard.html").write_text("mine")
    result = run(*SMALL)
    assert result.exit_code == 8
    assert result.stderr == (
        "sfumato: leaderboard.html exists; say --overwrite to replace it; nothing was run\n"
    )
    assert Path("leaderboard.html").read_text() == "mine"


def test_every_way_of_the_command_line_is_compared() -> None:
    assert set(standard_methods(200)) == set(registered_methods())
