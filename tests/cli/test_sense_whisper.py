"""`sfumato sense whisper`: who heard is paid for and flipped, and where it began is found again."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.broken_disk import fill
from tests.cli.sense_runs import alone, answer, done, entries, refused, rows, table
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.figures import sheet
from sfumato.files import atomic
from sfumato.privacy import Ledger
from sfumato.sensing.pipeline import find_whisper, release_whisper
from sfumato.sensing.whisper import read_whisper

pytestmark = pytest.mark.unit

# Two cliques of four with a bridge.
NAMES = ["ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal"]
EDGES = [(a, b) for four in (NAMES[:4], NAMES[4:]) for i, a in enumerate(four) for b in four[:i]]
HEARD = {"ann": "yes", "bob": "Yes", "cid": "true", "dan": "1"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)
    monkeypatch.setattr(sheet, "DPI", 50)  # drawing is slow, and nothing here needs more pixels


def ledger(file: str = "club.ledger", unit: str = "node", epsilon: str = "120", *more: str) -> str:
    words = ["ledger", "create", file, "--unit", unit, "--source", "club", "--epsilon", epsilon]
    result = CliRunner().invoke(app, [*words, "--neighbors", "replace", *more])
    assert result.exit_code == 0, result.stderr
    return file


def club() -> None:
    table("edges.csv", ["u", "v"], [*EDGES, ("dan", "eve")])
    table("answers.csv", ["node", "heard"], [(name, HEARD.get(name, "no")) for name in NAMES])
    ledger()


def release(
    *more: str, epsilon: str = "60", answers: str = "answers.csv", out: str = "said.json"
) -> list[str]:
    return [
        "whisper", "release", answers, "--graph", "edges.csv", "--ledger", "club.ledger",
        "--epsilon", epsilon, "--out", out, *more,
    ]  # fmt: skip


def test_answers_are_paid_for_and_the_start_is_found() -> None:
    club()
    told = answer(*release())  # flipped with a chance of 1e-26
    assert told["statement"] == "epsilon 60 for each node (one user's data replaced), central model"
    assert (told["answers"], len(entries("club.ledger"))) == (8, 1)
    assert json.loads(Path("said.json").read_text())["value"] == [1] * 4 + [0] * 4
    verified = CliRunner().invoke(
        app, ["ledger", "verify", "club.ledger", "--against", "said.json"]
    )
    assert verified.exit_code == 0
    found = answer(
        "whisper", "locate", "said.json", "--out", "where.json", "--plot", "a.png", "--start", "ann"
    )
    first = found["communities"][0]  # label 0 is ann's
    assert (first["label"], first["nodes"]) == (0, 4)
    assert first["probability"] > 0.9
    # By symmetry the three without a bridge are as likely as each other.
    assert {one["node"] for one in found["smallest"]} >= {"ann", "bob", "cid"}
    assert (found["start"]["community"], found["start"]["in_smallest"]) == (0, True)
    whole = json.loads(Path("where.json").read_text())
    assert sum(whole["probabilities"].values()) == pytest.approx(1)
    held = sum(one["probability"] for one in found["smallest"])
    assert held >= 0.9 > held - found["smallest"][-1]["probability"]
    said = done("whisper", "locate", "said.json", "--start", "hal").stdout
    assert "it began in community 0 (4 nodes) with" in said
    assert "both the community and the set of nodes are less sure than said" in said
    assert "truly it began at hal of community 1: " in said
    assert "NOT in the set" in said


def test_a_rehearsed_cost_is_not_charged() -> None:
    club()
    before = entries("club.ledger")
    said = done(*release("--dry-run", epsilon="2", answers="none.csv")).stdout
    assert said == (
        "would cost epsilon 2 for each node, each answer flipped with 12 %; nothing was read or charged\n"
    )
    assert entries("club.ledger") == before
    assert not Path("said.json").exists()
    assert refused(3, *release("--dry-run", epsilon="121")).startswith(
        "asked epsilon 121, 120 left"
    )


def test_the_local_model_is_for_one_row() -> None:
    club()
    ledger("own.ledger", "node", "120", "--model", "local")
    words = release()
    words[words.index("club.ledger")] = "own.ledger"
    assert "own.ledger is of the local model" in refused(4, *words)
    table("answers.csv", ["node", "heard"], [("ann", "yes")])
    told = answer(*words)
    assert told["statement"] == "epsilon 60 for each node (one user's data replaced), local model"


def own(name: str, *, file: str = "", edges: str = "edges.csv", epsilon: str = "60") -> str:
    """The file of a node that trusts nobody: its own row, released from its own ledger."""
    file = file or name
    ledger(f"{file}.ledger", "node", "120", "--model", "local")
    table(f"{file}.csv", ["node", "heard"], [(name, HEARD.get(name, "no"))])
    done(
        "whisper", "release", f"{file}.csv", "--graph", edges, "--ledger", f"{file}.ledger",
        "--epsilon", epsilon, "--out", f"{file}.json",
    )  # fmt: skip
    return f"{file}.json"


def test_the_files_of_many_nodes_are_located_together() -> None:
    club()
    done(*release())
    central = answer("whisper", "locate", "said.json")
    # One has the same edges in another order: its nodes have other numbers.
    table("turned.csv", ["v", "u"], [("eve", "dan"), *reversed(EDGES)])
    said = [own(name, edges="turned.csv" if name == "bob" else "edges.csv") for name in NAMES]
    nodes = [
        json.loads(Path(file).read_text())["whisper"]["nodes"] for file in ("ann.json", "bob.json")
    ]
    assert nodes[0].index("bob") != nodes[1].index("bob")
    found = answer("whisper", "locate", *said, "--out", "where.json", "--plot", "a.png")
    assert (
        found.pop("statement") == "epsilon 60 for each node (one user's data replaced), local model"
    )
    assert "central model" in central.pop("statement")
    assert found == central
    assert answer("whisper", "locate", *said[4:], said[0])["answers"] == 5
    assert refused(4, "whisper", "locate", *said, "--out", "ann.json").startswith(
        "ann.json is read by"
    )


def test_promises_that_differ_are_each_stated() -> None:
    club()
    table("some.csv", ["node", "heard"], [("ann", "yes"), ("bob", "yes"), ("hal", "no")])
    done(*release(answers="some.csv"))
    found = answer("whisper", "locate", own("cid"), "said.json", own("dan"))
    promise = "epsilon 60 for each node (one user's data replaced)"
    assert found["statement"] == f"2 with {promise}, local model; 3 with {promise}, central model"
    assert found["answers"] == 5


def test_files_that_do_not_go_together_are_refused() -> None:
    club()
    ann, bob = own("ann"), own("bob")
    table("fewer.csv", ["u", "v"], [*EDGES[1:], ("dan", "eve")])
    assert refused(4, "whisper", "locate", ann, bob, own("cid", edges="fewer.csv")) == (
        "files must be of one graph, cid.json has another than ann.json; nothing was computed"
    )
    assert refused(4, "whisper", "locate", ann, own("dan", epsilon="1/3")) == (
        "files must be of one epsilon, ann.json has 60, dan.json 1/3; nothing was computed"
    )
    assert refused(4, "whisper", "locate", ann, bob, own("ann", file="again")) == (
        "a node answers once, 'ann' did in ann.json and in again.json; nothing was computed"
    )
    Path("copy.json").write_bytes(Path(bob).read_bytes())
    for copy in ("copy.json", bob):
        assert refused(4, "whisper", "locate", ann, bob, copy) == (
            f"a receipt counts once, {copy} has that of bob.json; nothing was computed"
        )
    # One answer that would stand for all, and two nodes of one name.
    for change in ({"answered": list(range(8))}, {"nodes": ["ann", *NAMES[:-1]]}):
        data = json.loads(Path(ann).read_text())
        data["whisper"] |= change
        Path("bad.json").write_text(json.dumps(data))
        assert "bad.json is not a file of `whisper release`" in refused(
            4, "whisper", "locate", "bad.json"
        )


def test_the_ledger_that_the_help_prescribes_pays() -> None:
    shown = " ".join(
        CliRunner().invoke(app, ["sense", "whisper", "release", "--help"]).stdout.split()
    )
    assert "central model" in shown
    club()  # made by those words, without --model
    assert Ledger("club.ledger").header.model == "central"
    assert "central model" in answer(*release())["statement"]


def test_some_may_keep_silent() -> None:
    club()
    table("some.csv", ["node", "heard"], [("ann", "yes"), ("hal", "no")])
    assert answer(*release(answers="some.csv"))["answers"] == 2
    found = answer("whisper", "locate", "said.json")
    assert (found["answers"], found["nodes"]) == (2, 8)
    assert found["communities"][0]["probability"] > 0.5


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([("ann", "perhaps")], "heard in row 1 of bad.csv is neither yes nor no"),
        ([("ann", "yes"), ("zoe", "yes")], "row 2 of bad.csv is of no node of the graph"),
        ([("ann", "yes"), ("ann", "no")], "row 2 of bad.csv is of a node that answered before"),
        ([("ann", "")], "bad.csv has no 'heard' in row 1"),
    ],
)  # fmt: skip
def test_answers_that_are_none_are_not_charged(lines: list[tuple[str, str]], why: str) -> None:
    club()
    table("bad.csv", ["node", "heard"], lines)
    assert refused(4, *release(answers="bad.csv")) == f"{why}; nothing was charged"


OUTPUTS = [
    (8, "there.json", "there.json exists already and is kept; nothing was charged or written"),
    (
        4,
        "none/said.json",
        "the folder of none/said.json must exist; nothing was charged or written",
    ),
    (8, "folder.json", "folder.json exists already and is kept; nothing was charged or written"),
    (2, "said.csv", "this is written as .json, got said.csv; nothing was charged or written"),
    (4, "answers.json", "answers.json is read by this command and is kept; choose another file"),
]


@pytest.mark.parametrize(("code", "out", "sentence"), OUTPUTS)
def test_an_output_is_refused_before_anything_is_paid(code: int, out: str, sentence: str) -> None:
    club()
    Path("there.json").write_text("kept")
    Path("folder.json").mkdir()
    Path("answers.json").write_text(json.dumps([{"node": "ann", "heard": "yes"}]))
    assert refused(code, *release(answers="answers.json", out=out)) == sentence
    before = entries("club.ledger")
    with pytest.raises((InvalidInput, InvalidParameter)) as problem:
        release_whisper("answers.json", "edges.csv", epsilon=60, ledger="club.ledger", out=out)
    assert str(problem.value) == sentence
    assert entries("club.ledger") == before


def test_a_locked_folder_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    club()
    # Tests may run as root, whom no mode of a folder stops.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert "cannot be written to; nothing was charged" in refused(4, *release(answers="none.csv"))
    with pytest.raises(InvalidInput, match="cannot be written to; nothing was charged"):
        release_whisper("none.csv", "none.csv", epsilon=60, ledger="club.ledger", out="said.json")


@pytest.mark.parametrize(
    "word", ["diagnosed", 0.9, 1.0, 0.2, 2, -1, None, float("nan"), np.float64(0.9), [1], 10**30]
)
def test_an_answer_that_is_none_is_not_quoted_in_python_either(word: Any) -> None:
    club()
    before = entries("club.ledger")
    with pytest.raises(InvalidInput) as problem:
        release_whisper(
            {"ann": True, "bob": word},
            "edges.csv",
            epsilon=60,
            ledger="club.ledger",
            out="said.json",
        )
    assert str(problem.value) == (
        "heard in row 2 of the answers is neither yes nor no; nothing was charged"
    )
    assert entries("club.ledger") == before
    assert not Path("said.json").exists()


def test_answers_in_python_are_words_bits_or_truths() -> None:
    club()
    given: dict[str, Any] = {
        "ann": "yes",
        "bob": True,
        "cid": 1,
        "dan": np.True_,
        "eve": "No",
        "fay": False,
        "gus": 0,
        "hal": np.int64(0),
    }
    told = release_whisper(given, "edges.csv", epsilon=60, ledger="club.ledger")
    assert dict(zip(told.names, told.answers.tolist(), strict=True)) == {
        name: int(name in HEARD) for name in NAMES
    }


def test_answers_in_hand_have_the_epsilon_of_their_file() -> None:
    club()
    given = {"ann": True, "hal": False}
    tenth: Any = 0.1  # a float is read as it prints
    told = release_whisper(given, "edges.csv", epsilon=tenth, ledger="club.ledger", out="said.json")
    assert told.epsilon == read_whisper("said.json").epsilon == Fraction(1, 10)
    more = release_whisper({"bob": True}, "edges.csv", epsilon="1/10", ledger="club.ledger")
    assert find_whisper([told, more]).answered == 3


def test_what_cannot_pay_or_be_located_is_refused() -> None:
    club()
    done(*release())
    assert refused(3, *release(epsilon="61", out="two.json")).startswith(
        "asked epsilon 61, 60 left"
    )
    assert refused(8, *release()).startswith("said.json exists already and is kept")
    words = release(out="two.json")
    words[words.index("club.ledger")] = ledger("user.ledger", unit="user")
    assert "answers need the unit 'node'" in refused(4, *words)
    words[words.index("user.ledger")] = "none.ledger"
    assert "there is no ledger at none.ledger" in refused(4, *words)
    table("edges.csv", ["u", "v"], EDGES)
    sentence = refused(4, *release(out="two.json"))
    assert "in several parts; --largest-part keeps one; nothing was charged" in sentence
    assert answer(*release("--largest-part", out="two.json"))["answers"] == 4
    locate = ["whisper", "locate", "said.json"]
    assert refused(2, *locate, "--start", "zoe") == "there is no node 'zoe'; nothing was computed"
    assert "--share must lie" in refused(2, *locate, "--share", "1")
    assert "go together" in refused(2, *locate, "--rate", "1")
    done(*locate, "--rate", "0.5", "--strength", "2")
    data = json.loads(Path("said.json").read_text())
    del data["whisper"]["answered"]
    Path("bad.json").write_text(json.dumps(data))
    assert "is not a file of `whisper release`" in refused(4, "whisper", "locate", "bad.json")


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_answers_that_cannot_be_written_are_kept_and_finished(
    problem: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    club()
    before = len(entries("club.ledger"))
    with monkeypatch.context() as disk:
        fill(disk, problem=problem)
        result = CliRunner().invoke(app, ["sense", *release()])
    assert result.exit_code == (4 if isinstance(problem, OSError) else 130)
    assert len(entries("club.ledger")) == before + 1
    assert not Path("said.json").exists()
    assert "was charged and its answers are kept: sfumato sense resume club.ledger" in result.stderr
    Path("answers.csv").unlink(missing_ok=True)  # what was drawn needs no data
    done("resume", "club.ledger")
    assert json.loads(Path("said.json").read_text())["value"] == [1] * 4 + [0] * 4
    assert len(entries("club.ledger")) == before + 1
    assert done("resume", "club.ledger").stdout == "club.ledger: nothing to finish\n"


def test_a_file_that_came_between_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    club()
    publish = atomic._publish

    def late(draft: Path, target: Path, *, overwrite: bool) -> None:
        if target.name == "said.json":
            target.write_text("mine")
        publish(draft, target, overwrite=overwrite)

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "_publish", late)
        result = CliRunner().invoke(app, ["sense", *release()])
    assert result.exit_code == 8
    assert "its answers are kept: sfumato sense resume club.ledger" in result.stderr
    assert Path("said.json").read_text() == "mine"
    assert "is not what was released" in refused(8, "resume", "club.ledger", "--quiet")
    done("resume", "club.ledger", "--out", "other.json")
    assert json.loads(Path("other.json").read_text())["value"] == [1] * 4 + [0] * 4


@pytest.mark.parametrize("how", [[], ["--mouth-to-mouth", "0.2"]])
def test_a_whisper_is_made_up_and_found(how: list[str]) -> None:
    files = answer("whisper", "simulate", "club", "--seed", "5", "--nodes", "60", *how)
    again = answer("whisper", "simulate", "again", "--seed", "5", "--nodes", "60", *how)
    for name, path in files.items():
        assert Path(path).read_bytes() == Path(again[name]).read_bytes()
    assert len(rows(files["answers"])) == 60
    start = rows(files["start"])[0]["node"]
    assert {row["node"]: row["heard"] for row in rows(files["answers"])}[start] == "yes"
    assert "exists already" in refused(8, "whisper", "simulate", "club")
    own = answer("whisper", "simulate", "own", "--graph", files["edges"], "--seed", "5", *how)
    mine, theirs = ({frozenset(row.values()) for row in rows(one["edges"])} for one in (own, files))
    assert mine == theirs
