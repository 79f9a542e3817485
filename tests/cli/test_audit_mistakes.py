"""`sfumato audit` with what it cannot do: one sentence, and nothing is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from tests.cli.audit_runs import PAIR, ended, mechanisms, run

import sfumato.audit as house
from sfumato.audit import pipeline
from sfumato.audit.verdict import Verdict
from sfumato.cli.console import no_verdict_by_accident
from sfumato.errors import SfumatoError

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    mechanisms(tmp_path, monkeypatch, rng)


# mistakes


GOOD = ("--claim", "epsilon=1", *PAIR)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("mech:slow", "--claim", "epsilon=1"), 2, "say on which neighbors to run it: --inputs numbers"),
        (("mech:slow", *GOOD, "--inputs", "numbers"), 2, "inputs that are no neighbors would refute a true"),
        (("mech:slow", "--claim", "epsilon=1", "--inputs", "tables"), 2, "inputs are one of numbers"),
        (("mech:slow", "--claim", "epsilon=1", "--pair", "0"), 2, "a pair is a JSON list of two inputs"),
        (("mech:slow", "--claim", "epsilon=1", "--pair", "[1,2,3]"), 2, "a pair is a JSON list of two"),
        (("mech:slow", "--claim", "epsilon=1", "--pairs", "none.json"), 4, "cannot read none.json"),
        (("mech:slow", "--claim", "epsilon=1", "--pairs", "bad.json"), 4, "bad.json must be a list of"),
        (("mech:slow", "--claim", "epsilon=1", "--pairs", "text.csv"), 4, "text.csv is no JSON"),
        (("mech:slow", "--claim", "sigma=1", *PAIR), 2, "a claim is epsilon="),
        (("mech:slow", *GOOD, "--budget", "soon"), 2, "a budget is a time such as 60s"),
        (("mech:slow", *GOOD, "--confidence", "1"), 2, "confidence must be between 0 and 1"),
        (GOOD, 2, "of a module:function, of a --command or of --samples"),
        (("mech:slow", *GOOD, "--command", "echo {data}"), 2, "and of one of them; nothing was run"),
        (("--command", "echo", *GOOD), 2, "a command says where {data} goes, got 'echo'"),
        (("mech", *GOOD), 2, "a target is module:function"),
        (("mech.py:slow", *GOOD), 2, "got 'mech.py:slow'; try mech:slow; nothing was run"),
        (("mech:slow", "--claim", "epsilon=1", "--inputs", "list-replace"), 2, "inputs must be neighbors in"),
        (("mech:slow", "--claim", "epsilon=1", "--relation", "replaced", "--inputs", "histogram"), 2,
         "in the sense of the claim, one user's data replaced, got Histograms"),
        (("no_such_module:f", *GOOD), 4, "cannot load no_such_module:f"),
        (("mech:none", *GOOD), 4, "cannot load mech:none"),
        (("mech:number", *GOOD), 4, "mech:number is not a function"),
        (("mech:broken", *GOOD), 4, "mech:broken failed on the input 0: ZeroDivisionError"),
        (("--command", "no-such-program {data}", *GOOD), 4, "failed with exit code 127 on the input 0"),
        (("--samples", "text.csv", "none.csv", "--claim", "epsilon=1"), 4, "cannot read none.csv"),
        (("--samples", "text.csv", "empty.csv", "--claim", "epsilon=1"), 4, "empty.csv holds no output"),
        (("--samples", "text.csv", "bad.json", *GOOD), 2, "--samples are of one pair already"),
        (("mech:slow", *GOOD, "--proximity", "0.1"), 2, "go with --certify"),
        (("mech:slow", *GOOD, "--certify"), 2, "--certify needs --proximity"),
        (("mech:slow", *GOOD, "--certify", "--proximity", "1", "--outputs", "two"), 2, "--outputs is a"),
        (("mech:slow", "--claim", "epsilon=1,gamma=0.1", *PAIR), 2, "give --certify and --data"),
        (("mech:slow", *GOOD, "--report", "r.pdf"), 2, "this is written as .html"),
        (("mech:slow", *GOOD, "--out", "text.csv"), 2, "this is written as .json"),
        (("mech:slow", *GOOD, "--out", "bad.json"), 8, "bad.json exists already and is kept"),
        (("mech:slow", *GOOD, "--report", "no/r.html"), 4, "the folder of no/r.html must exist"),
        (("syntax:f", *GOOD), 4, "cannot load syntax:f: SyntaxError"),
    ],
)  # fmt: skip
def test_a_mistake_ends_in_one_sentence(words: tuple[str, ...], code: int, sentence: str) -> None:
    Path("bad.json").write_text('{"first": 1}')
    Path("text.csv").write_text("some text\n")
    Path("empty.csv").write_text("")
    Path("syntax.py").write_text("def f(:\n")
    result = run("run", *words, "--quiet")
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("sfumato: ")
    assert sorted(path.name for path in Path().iterdir() if path.is_file()) == [
        "bad.json", "empty.csv", "syntax.py", "text.csv",
    ]  # fmt: skip


def test_a_mistake_as_json() -> None:
    result = run("run", "mech:slow", "--claim", "epsilon=1", "--json")
    assert json.loads(result.stderr)["error"]["exit"] == 2
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("none.json", "mech:slow"), "cannot read none.json"),
        (
            ("bad.json", "mech:slow"),
            "bad.json is not a whole verdict: its format is not sfumato-verdict/1",
        ),
    ],
)
def test_a_file_that_is_no_verdict_is_not_replayed(words: tuple[str, ...], sentence: str) -> None:
    Path("bad.json").write_text("{}")
    result = run("replay", *words)
    assert (result.exit_code, result.stdout) == (4, "")
    assert sentence in result.stderr


def test_the_help_says_that_nothing_is_private_here() -> None:
    with mock.patch.dict("os.environ", {"COLUMNS": "200"}):
        words = " ".join(ended(0, "--help").split())
    assert "no ledger is needed" in words
    assert all(name in words for name in ("run", "plan", "selftest", "replay", "5 inconclusive"))


def test_errors_are_the_houses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What refute raises on purpose keeps its code; the wrapper of the function does not swallow it."""

    def stub(*_: Any, **__: Any) -> Verdict:
        raise SfumatoError("no verdict today")

    monkeypatch.setattr(pipeline, "refute", stub)
    result = run("run", "mech:slow", *GOOD, "--quiet")
    assert (result.exit_code, result.stderr) == (4, "sfumato: no verdict today\n")


RANDOM = (
    "--claim",
    "epsilon=1,delta=0.1,gamma=0.1",
    "--certify",
    "--outputs",
    "2",
    "--proximity",
    "0.4",
)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("mech:response", *RANDOM, "--data", "mech:drawn_by_nobody", "--budget", "100000"),
         "mech:drawn_by_nobody failed on a generator: TypeError: "),
        (("mech:ends", *GOOD), "SystemExit"),
        (("mech:slow", *GOOD, "--certify", "--outputs", "[0, 1]", "--proximity", "0.4", "--specification",
          "mech:broken", "--budget", "100000"),
         "mech:broken failed on the input 0: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_no_failure_is_taken_for_a_verdict(words: tuple[str, ...], sentence: str) -> None:
    """Exit 1 says "refuted": a traceback, or a mechanism that ends the program, must not."""
    result = run("run", *words, "--quiet")
    assert (result.exit_code, result.stdout) == (4, "")
    assert sentence in result.stderr
    assert "nothing was concluded" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["run", "plan", "replay", "selftest"])
def test_what_nobody_foresaw_ends_in_4(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stub(*_: Any, **__: Any) -> Verdict:
        raise RuntimeError("two lines\nof surprise")

    for name in ("refute", "read_verdict"):
        monkeypatch.setattr(pipeline, name, stub)
    monkeypatch.setattr("sfumato.audit.property_testing.limits.queries_without_information", stub)
    monkeypatch.setattr(house, "selftest", stub)
    given = {"run": ("mech:slow", *GOOD, "--quiet"), "plan": ("--claim", "epsilon=1,delta=0.1"),
             "replay": ("v.json", "mech:slow"), "selftest": ("--quiet",)}  # fmt: skip
    result = run(command, *given[command])
    assert (result.exit_code, result.stdout) == (4, "")
    assert "RuntimeError" in result.stderr
    assert "two lines of surprise; nothing was concluded" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_reader_who_has_gone_is_no_verdict() -> None:
    """Exit 1 would be click's own for a broken pipe; `run_to_end` has a code for it."""

    def gone(**_: Any) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        no_verdict_by_accident(gone)()
