"""`sfumato local`: a plan that reads nothing, answers on the device, and a map of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.heatmap.local.question import lot

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["local", *words])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_a_plan_says_how_good_and_from_how_many_on() -> None:
    text = run("plan", "--users", "50000", "--epsilon", "2", "--want", "0.8").stdout
    assert "50,000 devices, epsilon 2 each" in text
    assert "hopeless below" in text
    assert "Similarity 0.8 takes about" in text
    few = json.loads(run("plan", "--users", "100", "--epsilon", "1", "--json").stdout)
    assert few["hopeless"]
    assert few["rounds"] == 1
    many = json.loads(run("plan", "--users", "100000", "--epsilon", "5", "--json").stdout)
    assert many["similarity"]["middle"] > 0.9 > few["similarity"]["middle"]
    assert many["emd"]["low"] <= many["emd"]["middle"] <= many["emd"]["high"]


def test_a_plan_needs_whole_numbers_and_a_name() -> None:
    assert (
        "`campaign`"
        not in run("plan", "--users", "9", "--epsilon", "1", "--out", "q", code=2).stderr
    )
    assert (
        "--campaign" in run("plan", "--users", "9", "--epsilon", "1", "--out", "q", code=2).stderr
    )
    run("plan", "--users", "9", "--epsilon", "99", code=2)
    run("plan", "--users", "9", "--epsilon", "1", "--want", "2", code=2)


def test_devices_answer_and_a_map_is_made() -> None:
    run("plan", "--users", "40", "--epsilon", "1", "--campaign", "c", "--out", "q.json")
    lines = []
    for number in range(40):
        words = ("--device", f"d{number}", "--place", "0.2,0.2", "--place", "0.3,0.2,3")
        book = ("--ledger", f"{number % 2}{number}.ledger", "--budget-epsilon", "1")
        if number < 3:  # the command for a few of them, its library for the rest
            first = run("answer", "q.json", *words, *book)
            again = run("answer", "q.json", *words, *book)
            assert again.stdout == first.stdout
            assert "answered before" in again.stderr
            lines.append(first.stdout)
    Path("a.jsonl").write_text("".join(lines) + "nonsense\n")
    told = run("collect", "q.json", "--answers", "a.jsonl", "--json").stdout
    assert json.loads(told)["answers"]["counted"] == [3]
    assert json.loads(told)["answers"]["malformed"] == 1
    text = run("collect", "q.json", "--answers", "a.jsonl", "--out", "map.npy").stdout
    assert "3 answers count" in text
    assert "not counted: 1 (no answer" in text
    assert "local model" in text
    assert "have one round" in run("collect", "q.json", "--ask", "q2.json", code=2).stderr


def test_who_is_not_asked_pays_nothing() -> None:
    run("plan", "--users", "5000", "--epsilon", "2", "--campaign", "c", "--out", "q.json")
    late = next(f"d{n}" for n in range(99) if lot("c", f"d{n}") > 0.5)
    words = ("--device", late, "--place", "0,0", "--ledger", "l", "--budget-epsilon", "2")
    assert "does not ask" in run("answer", "q.json", *words, code=4).stderr
    assert not Path("l").exists()
    wrong = run("answer", "q.json", "--device", "d", "--place", "here", "--ledger", "l", code=4)
    assert "a place is x,y" in wrong.stderr
