"""`sfumato ledger`: what it prints where, with which exit code, and that exact numbers stay exact."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

from sfumato.cli.console import exit_code, sentences
from sfumato.cli.main import app
from sfumato.errors import (
    BudgetExceeded,
    InvalidInput,
    InvalidParameter,
    LedgerBusy,
    LedgerDamaged,
    LedgerMismatch,
    MissingPackage,
    NotComparable,
    SfumatoError,
    Unguarded,
)
from sfumato.privacy import (
    AddRemoveUser,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    KeyedNoise,
    Ledger,
    PureDP,
    guard,
    histogram,
)

pytestmark = pytest.mark.unit

NAMES = ["--unit", "user", "--source", "city"]
EITHER = "give the budget as --epsilon (with --delta for Gaussian noise) or as --rho, not both"
CANARY = 987_654_321_987


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative names, no config file and no variables from outside."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, ["ledger", *words])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def create(file: str = "city.ledger", *words: str) -> Ledger:
    assert run("create", file, *(words or ("--epsilon", "1")), *NAMES).exit_code == 0
    return Ledger(file)


def city() -> Any:
    return histogram([0, 1, 1], 4, source="city")


def error(result: Result, code: int) -> str:
    """The one sentence of a mistake, on stderr alone."""
    assert result.exit_code == code, result.stderr
    assert result.stdout == ""
    sentence: str = result.stderr.removesuffix("\n")
    assert "\n" not in sentence
    assert sentence.startswith("sfumato: ")
    return sentence.removeprefix("sfumato: ")


# create


def test_create_makes_a_ledger_and_says_so_on_stderr() -> None:
    result = run("create", "city.ledger", "--epsilon", "1", "--delta", "1e-6", *NAMES)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == "made city.ledger with epsilon 1, delta 1e-06 for each user of city\n"
    assert Ledger("city.ledger").statement().entries == ()


def test_create_can_be_quiet() -> None:
    result = run("create", "city.ledger", "--epsilon", "1", "--quiet", *NAMES)
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.parametrize(
    ("words", "budget"),
    [
        (["--epsilon", "1"], {"kind": "PureDP", "epsilon": "1"}),
        (["--epsilon", "0.1"], {"kind": "PureDP", "epsilon": "1/10"}),
        (["--epsilon", "1/3"], {"kind": "PureDP", "epsilon": "1/3"}),
        (["--epsilon", "1", "--delta", "0"], {"kind": "PureDP", "epsilon": "1"}),
        (
            ["--epsilon", "1", "--delta", "1e-6"],
            {"kind": "ApproxDP", "epsilon": "1", "delta": "1/1000000"},
        ),
        (["--rho", "1/8"], {"kind": "ZCDP", "rho": "1/8"}),
    ],
)
def test_a_budget_is_taken_exactly(words: list[str], budget: dict[str, str]) -> None:
    result = run("create", "city.ledger", "--json", *words, *NAMES)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert json.loads(result.stdout)["budget"] == json.loads(result.stdout)["left"] == budget


@pytest.mark.parametrize(
    ("words", "model"),
    [
        (["--model", "joint", "--parties", "3"], {"kind": "joint", "parties": 3, "curious": 1}),
        (
            ["--model", "joint", "--parties", "5", "--curious", "0"],
            {"kind": "joint", "parties": 5, "curious": 0},
        ),
        ([], "central"),
    ],
)
def test_parties_have_ledgers(words: list[str], model: Any) -> None:
    result = run("create", "city.ledger", "--json", "--epsilon", "1", *words, *NAMES)
    assert json.loads(result.stdout)["model"] == model


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "joint"], "needs the number of --parties"),
        (["--parties", "3"], "--parties is of the joint model, the model is central"),
        (["--model", "joint", "--parties", "3", "--curious", "3"], "must lie in 0..2"),
    ],
)
def test_parties_that_say_nothing_are_refused(words: list[str], sentence: str) -> None:
    result = run("create", "city.ledger", "--epsilon", "1", *words, *NAMES)
    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())
    assert not Path("city.ledger").exists()


@pytest.mark.parametrize(
    ("words", "neighbors"),
    [
        ([], {"kind": "AddRemoveUser"}),
        (["--neighbors", "add-remove"], {"kind": "AddRemoveUser"}),
        (["--neighbors", "replace"], {"kind": "ReplaceUser"}),
        (["--neighbors", "flipped-edge"], {"kind": "FlippedEdge"}),
        (
            ["--neighbors", "swapped-cells", "--upper", "2.5"],
            {"kind": "SwappedCells", "upper": "5/2"},
        ),
        (
            ["--neighbors", "moved-mass", "--radius", "0.1", "--metric", "line"],
            {"kind": "MovedMass", "radius": "1/10", "metric": "line"},
        ),
    ],
)
def test_every_relation_can_be_asked_for(words: list[str], neighbors: dict[str, str]) -> None:
    result = run(
        "create", "city.ledger", "--json", "--epsilon", "1", "--model", "local", *words, *NAMES
    )
    assert json.loads(result.stdout)["neighbors"] == neighbors
    assert json.loads(result.stdout)["model"] == "local"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], EITHER),
        (["--epsilon", "1", "--rho", "1"], EITHER),
        (["--rho", "1", "--delta", "1e-6"], "--rho stands alone: zCDP implies a delta for every epsilon"),
        (["--epsilon", "-1"], "epsilon must be at least 0, got -1"),
        (["--epsilon", "one"], "epsilon must be a finite number, got 'one'"),
        (["--epsilon", "nan"], "epsilon must be a finite number, got 'nan'"),
        (["--epsilon", "1/0"], "epsilon must be a finite number, got '1/0'"),
        (["--epsilon", "1", "--delta", "1"], "delta must be below 1, got 1"),
        (["--epsilon", "1", "--radius", "1"], "--radius and --metric go with --neighbors moved-mass"),
        (["--epsilon", "1", "--upper", "1"], "--upper goes with --neighbors swapped-cells"),
        (["--epsilon", "1", "--neighbors", "swapped-cells"], "--neighbors swapped-cells needs --upper"),
        (
            ["--epsilon", "1", "--neighbors", "moved-mass", "--radius", "1"],
            "--neighbors moved-mass needs --radius and --metric",
        ),
        (["--rho", "1", "--unit", ""], "the unit of privacy must be named, e.g. 'user', got an empty name"),
    ],
)  # fmt: skip
def test_a_budget_that_makes_no_sense_is_a_usage_error(words: list[str], sentence: str) -> None:
    assert error(run("create", "city.ledger", *NAMES, *words), 2) == sentence
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ["create"],
        ["create", "f", "--epsilon", "1", "--unit", "user"],
        ["create", "f", "--epsilon", "1", "--neighbors", "nearby", *NAMES],
        ["create", "f", "--epsilom", "1", *NAMES],
        ["show"],
        ["spend", "f"],
    ],
)
def test_a_wrong_call_is_a_usage_error(words: list[str]) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr
    assert not list(Path().iterdir())


def test_an_existing_file_is_kept() -> None:
    Path("city.ledger").write_text("my thesis")
    sentence = error(run("create", "city.ledger", "--epsilon", "1", *NAMES), 8)
    assert (
        sentence
        == "city.ledger exists already and is kept as it is; open it, or choose another name"
    )
    assert Path("city.ledger").read_text() == "my thesis"


@pytest.mark.parametrize("file", ["/", ".", "no/such/folder/city.ledger"])
def test_a_ledger_needs_a_place_that_exists(file: str) -> None:
    error(run("create", file, "--epsilon", "1", *NAMES), 4)


# show


def test_show_gives_the_whole_statement_as_json() -> None:
    ledger = create("city.ledger", "--epsilon", "1/3", "--delta", "1e-6")
    ledger.release(DiscreteLaplace(7), city(), note="first")
    ledger.release(DiscreteGaussian(100), city(), noise=KeyedNoise(bytes(32)))
    result = run("show", "city.ledger", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert list(found) == [
        "ledger", "id", "created", "budget", "neighbors", "unit", "source", "model", "rehearsal", "format",
        "file_format", "clock", "tables", "closed", "spent", "left", "floats", "periods", "teams_spent",
        "head", "count", "entries", "undelivered",
    ]  # fmt: skip
    statement = ledger.statement()
    assert (found["id"], found["head"]) == (statement.header.id, statement.head)
    assert statement.spent.account is not None
    assert found["spent"] == {
        "epsilon": "1/7",
        "delta": "0",
        "rho": "1/20000",
        "account": str(statement.spent.account),
    }
    assert Fraction(found["left"]["rho"]) == statement.spent.account - Fraction(1, 20000)
    assert [list(entry) for entry in found["entries"]] == 2 * [
        [
            "number",
            "time",
            "mechanism",
            "parameters",
            "cost",
            "computational",
            "account",
            "note",
            "hash",
        ]
    ]
    first, second = found["entries"]
    assert (first["cost"], first["note"], first["computational"]) == (
        {"kind": "PureDP", "epsilon": "1/7"},
        "first",
        None,
    )
    assert second["parameters"] == {"sigma": "100"}
    assert Fraction(second["computational"]) > 0


def test_show_gives_the_same_to_people() -> None:
    ledger = create()
    assert run("show", "city.ledger").stdout == (
        "city.ledger  city, per user, one user added or removed, central model\n"
        "budget epsilon 1; spent epsilon 0; left epsilon 1\n"
        "no entries yet\n"
    )
    release = ledger.release(DiscreteLaplace(4), city(), note="people per cell")
    ledger.release(DiscreteLaplace(4), city(), noise=KeyedNoise(bytes(32)))
    result = run("show", "city.ledger")
    assert result.stderr == ""
    assert "budget epsilon 1; spent epsilon 0.5; left epsilon 0.5" in result.stdout
    for word in (
        "discrete-laplace/1",
        "epsilon 0.25 (keyed)",
        "people per cell",
        release.entry.hash[:12],
    ):
        assert word in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("name", ["[/bold]", "[red]x", ":cat:", "50% \\[x]"])
def test_names_are_shown_as_they_are(name: str) -> None:
    made = run(
        "create", "x.ledger", "--epsilon", "1", "--unit", name, "--source", name,
        "--neighbors", "moved-mass", "--radius", "1", "--metric", name,
    )  # fmt: skip
    assert name in made.stderr
    shown = run("show", "x.ledger")
    assert shown.exit_code == 0
    assert (
        f"{name}, per {name}, sources moved by an earth mover's distance of at most 1 ({name})"
        in shown.stdout
    )
    file = name.replace("/", "!")
    Path("x.ledger").rename(file)
    assert run("verify", file).stdout.startswith(f"{file}: chain of 0 entries is whole")


def test_a_missing_ledger_is_invalid_input() -> None:
    for command in ("show", "verify"):
        sentence = error(run(command, "no.ledger"), 4)
        assert sentence == (
            "there is no ledger at no.ledger; make one with: "
            "sfumato ledger create no.ledger --epsilon 1 --unit user --source NAME, "
            "for sensors with: sfumato sense ledger"
        )


def test_a_damaged_ledger_is_invalid_input_for_show() -> None:
    Path("city.ledger").write_bytes(b"\0" * 5000)
    assert "is damaged or not a ledger" in error(run("show", "city.ledger"), 4)


def test_errors_are_json_too_when_json_is_asked_for() -> None:
    result = run("show", "no.ledger", "--json")
    assert (result.exit_code, result.stdout) == (4, "")
    found = json.loads(result.stderr)
    assert list(found) == ["error"]
    assert found["error"]["exit"] == 4
    assert found["error"]["message"].startswith("there is no ledger at no.ledger")


# verify


def publish(ledger: Ledger, file: str) -> None:
    ledger.release(DiscreteLaplace(8), city()).write(file)


def test_verify_says_that_the_chain_is_whole() -> None:
    ledger = create()
    publish(ledger, "release.json")
    head = ledger.statement().head
    result = run("verify", "city.ledger")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"city.ledger: chain of 1 entries is whole, head {head[:16]}\n"
    assert run("verify", "city.ledger", "--quiet").output == ""
    found = json.loads(run("verify", "city.ledger", "--against", "release.json", "--json").stdout)
    assert found == {
        "ledger": "city.ledger",
        "entries": 1,
        "head": head,
        "whole": True,
        "releases": ["release.json"],
        "receipts": 1,
    }


def test_verify_takes_any_number_of_releases() -> None:
    ledger = create()
    for file in ("a.json", "b.json", "c.json"):
        publish(ledger, file)
    for words in (
        ["--against", "a.json", "--against", "b.json", "--against", "c.json"],
        ["--against", "a.json", "b.json", "c.json"],
    ):
        result = run("verify", "city.ledger", *words)
        assert result.exit_code == 0, result.stderr
        assert ", 3 release(s) paid for, head " in result.stdout


def test_verify_fails_on_a_broken_chain_and_names_the_entry() -> None:
    ledger = create()
    for file in ("a.json", "b.json", "c.json"):
        publish(ledger, file)
    content = Path("city.ledger").read_bytes()
    rows = content.splitlines(keepends=True)
    entry = next(row for row in rows if b'"number":2,' in row)
    Path("city.ledger").write_bytes(content.replace(entry, entry.replace(b'"1/8"', b'"1/9"')))
    for words in ([], ["--against", "a.json"]):
        sentence = error(run("verify", "city.ledger", *words), 1)
        assert sentence == "city.ledger is damaged: entry 2 was edited, or one before it"
    result = run("verify", "city.ledger", "--json")
    assert json.loads(result.stderr)["error"]["exit"] == result.exit_code == 1


def test_verify_fails_when_a_published_entry_is_missing_or_differs() -> None:
    ledger = create()
    publish(ledger, "a.json")
    backup = Path("city.ledger").read_bytes()
    publish(ledger, "b.json")
    Path("city.ledger").write_bytes(backup)
    assert run("verify", "city.ledger", "--against", "a.json").exit_code == 0
    sentence = error(run("verify", "city.ledger", "--against", "a.json", "b.json"), 1)
    assert sentence == "b.json: entry 2 of the release is missing in city.ledger"
    publish(Ledger("city.ledger"), "c.json")
    sentence = error(run("verify", "city.ledger", "--against", "b.json"), 1)
    assert sentence == "b.json: entry 2 in city.ledger differs from the one of the release"
    create("other.ledger")
    assert "a.json: the release is of ledger" in error(
        run("verify", "other.ledger", "--against", "a.json"), 1
    )


def test_verify_cannot_use_what_is_no_release() -> None:
    create()
    Path("x.json").write_text('{"format": "photo"}')
    sentence = error(run("verify", "city.ledger", "--against", "x.json"), 4)
    assert (
        sentence
        == "x.json is not a whole release: its format is not sfumato-release/1; nothing was checked"
    )
    sentence = error(run("verify", "city.ledger", "--against", "y.json"), 4)
    assert sentence == "cannot read y.json: No such file or directory; nothing was checked"


# exit codes


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (BudgetExceeded("x"), 3),
        (NotComparable("x"), 3),
        (InvalidParameter("x"), 2),
        (MissingPackage("x"), 2),
        (InvalidInput("x"), 4),
        (LedgerBusy("x"), 4),
        (LedgerDamaged("x"), 4),
        (LedgerMismatch("x"), 4),
        (Unguarded("x"), 4),
        (FileNotFoundError(2, "No such file or directory", "x"), 4),
    ],
)
def test_each_kind_of_end_has_its_exit_code(problem: Exception, code: int) -> None:
    small = typer.Typer()

    @small.command()
    @sentences
    def command(json: bool = False) -> None:
        raise problem

    result = CliRunner().invoke(small)
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr in ("sfumato: x\n", "sfumato: x: No such file or directory\n")
    if isinstance(problem, SfumatoError):
        assert exit_code(problem) == code


# nothing private


def test_no_private_value_is_shown_or_stored() -> None:
    """S16: a canary in the data appears in no output of a command, no error and no byte of the ledger."""
    ledger = create("city.ledger", "--epsilon", "10")
    data = guard(np.full(4, CANARY), Bound(AddRemoveUser(), 4, l1=1), source="city")
    # Noise far above the canary, so that no released number is it by chance.
    release = ledger.release(DiscreteLaplace(2**40), data, note="a note")
    release.write("release.json")
    shown = [run(*words).output for words in (
        ["show", "city.ledger"], ["show", "city.ledger", "--json"], ["verify", "city.ledger", "--json"],
        ["verify", "city.ledger", "--against", "release.json"],
    )]  # fmt: skip
    for mechanism in (DiscreteLaplace("1/100"), DiscreteGaussian(1)):
        with pytest.raises(SfumatoError) as refusal:
            ledger.release(mechanism, data)
        shown.append(str(refusal.value))
    stored = [file.read_bytes().decode("latin-1") for file in Path().iterdir()]
    for text in [*shown, *stored, repr(data), repr(release.entry)]:
        assert str(CANARY) not in text


def test_the_budget_can_be_spent_and_is_then_refused() -> None:
    ledger = create("city.ledger", "--epsilon", "1/8")
    publish(ledger, "a.json")
    with pytest.raises(
        BudgetExceeded,
        match=r"^asked epsilon 0\.125, 0 left in city\.ledger; nothing was released$",
    ):
        publish(ledger, "b.json")
    assert not Path("b.json").exists()
    assert Ledger("city.ledger").statement().left == PureDP(0)
