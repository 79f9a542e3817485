"""`sfumato ledger --json`, the Python calls and the saved file say the same of one ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.privacy.format1_ledger import as_format1
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidInput, LedgerDamaged, LedgerMismatch
from sfumato.privacy import (
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    KeyedNoise,
    Ledger,
    PureDP,
    guard,
    histogram,
    read_release,
)
from sfumato.privacy.accounting import Clock
from sfumato.privacy.ledger import LedgerCheck, LedgerStatement, render_check, verify_ledger

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(*words: str) -> Any:
    result = CliRunner().invoke(app, ["ledger", *words, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def ledger() -> Ledger:
    """A ledger with a charge of each kind, and the release of the second in two.json."""
    made = Ledger.create("a.ledger", ApproxDP(2, "1e-6"), unit="user", source="city")
    city = histogram(np.array([0, 1, 1]), 4, source="city")
    made.release(DiscreteLaplace(8), city, note="<b>one</b>").write("one.json")
    made.release(DiscreteGaussian(90), city, noise=KeyedNoise(bytes(32))).write("two.json")
    return made


def test_show_is_the_statement(ledger: Ledger) -> None:
    statement = ledger.statement()
    said = told("show", "a.ledger")
    assert said == {"ledger": "a.ledger", **statement.to_json(), "undelivered": []}
    again = LedgerStatement.from_json(said)
    assert again == statement
    assert again.to_json() == statement.to_json()
    html = statement._repr_html_()
    assert html.count("<tr>") == 3
    assert "&lt;b&gt;one&lt;/b&gt;" in html
    assert "left rho" in html


def test_create_is_the_statement() -> None:
    said = told("create", "b.ledger", "--unit", "user", "--source", "city", "--epsilon", "1/3")
    statement = Ledger("b.ledger").statement()
    assert said == {"ledger": "b.ledger", **statement.to_json()}
    assert statement.header.budget == PureDP("1/3")
    assert LedgerStatement.from_json(said) == statement


def test_verify_is_the_check(ledger: Ledger) -> None:
    files = ["one.json", "two.json"]
    found = verify_ledger(ledger.path, [(file, [read_release(file)]) for file in files])
    said = told("verify", "a.ledger", "--against", "one.json", "--against", "two.json")
    assert said == found.to_json()
    assert LedgerCheck.from_json(said) == found
    words = CliRunner().invoke(app, ["ledger", "verify", "a.ledger", "--against", *files])
    assert words.stdout == render_check(found) + "\n"
    assert verify_ledger("a.ledger").to_json() == told("verify", "a.ledger")


def test_a_release_of_another_ledger_is_no_release_of_this_one(ledger: Ledger) -> None:
    other = Ledger.create("b.ledger", PureDP(1), unit="user", source="city")
    with pytest.raises(LedgerMismatch, match=r"^one\.json: "):
        verify_ledger(other.path, [("one.json", [read_release("one.json")])])
    result = CliRunner().invoke(app, ["ledger", "verify", "b.ledger", "--against", "one.json"])
    assert result.exit_code == 1
    Path("b.ledger").write_bytes(b"nothing of the kind")
    with pytest.raises(LedgerDamaged):
        verify_ledger("b.ledger")


@pytest.mark.parametrize(
    "change", [{"left": {"kind": "PureDP", "epsilon": "9"}}, {"entries": 3}, {"head": ...}]
)
def test_what_is_no_statement_is_refused(ledger: Ledger, change: dict[str, Any]) -> None:
    data = {**ledger.statement().to_json(), **change}
    wrong = {name: value for name, value in data.items() if value is not ...}
    with pytest.raises(InvalidInput, match="not a whole statement of a ledger"):
        LedgerStatement.from_json(wrong)
    with pytest.raises(InvalidInput, match="not a whole check of a ledger"):
        LedgerCheck.from_json(wrong)


def test_days_teams_and_places_are_said_alike(ledger: Ledger) -> None:
    words = ("--unit", "user-day", "--source", "city", "--epsilon", "1", "--team", "red=1/4")
    said = told("create", "d.ledger", *words)
    days = Ledger("d.ledger")
    assert said == {"ledger": "d.ledger", **days.statement().to_json()}
    bound = Bound(
        AddRemoveUser(), 2, l1=1, unit="user-day", clock=Clock("t"), periods=["2026-01-05"]
    )
    days.release(DiscreteLaplace(8), guard([1, 2], bound, source="city"), team="red")
    statement = days.statement()
    said = told("show", "d.ledger")
    assert said == {"ledger": "d.ledger", **statement.to_json(), "undelivered": []}
    assert LedgerStatement.from_json(said) == statement
    assert said["periods"]["2026-01-05"]["floats"]["left"] == {"epsilon": 0.875}
    assert said["teams_spent"]["red"]["2026-01-05"]["left"]["epsilon"] == "1/8"
    assert told("show", "d.ledger", "--last", "1") == said
    assert told("show", "d.ledger", "--last", "0")["entries"] == []
    moved = told("move", "d.ledger", "e.ledger")
    assert moved == {"ledger": "e.ledger", **Ledger("e.ledger").recent().to_json()}
    assert told("show", "d.ledger")["closed"]["successor"] == str(Path("e.ledger").resolve())
    closed = told("close", "e.ledger", "--note", "over")
    assert closed == {"ledger": "e.ledger", **Ledger("e.ledger").recent().to_json()}
    assert LedgerStatement.from_json(closed) == Ledger("e.ledger").recent()
    as_format1(ledger.path)
    assert told("show", "a.ledger")["file_format"] == 1
    assert told("convert", "a.ledger")["file_format"] == 2
    assert told("verify", "a.ledger")["entries"] == 2


def test_low_budgets_have_an_exit_code_of_their_own(ledger: Ledger) -> None:
    def ended(*words: str) -> int:
        return CliRunner().invoke(app, ["ledger", "show", *words]).exit_code

    rest = ledger.statement().left
    assert isinstance(rest, ZCDP)
    assert ended("a.ledger", "--fail-below", str(rest.rho)) == 0
    assert ended("a.ledger", "--fail-below", str(rest.rho * 2), "--last", "1") == 6
    days = Ledger.create(
        "d.ledger", PureDP(1), unit="user-day", source="city", teams={"red": "1/4"}
    )
    assert ended("d.ledger", "--fail-below", "1") == 0
    assert ended("d.ledger", "--fail-below", "1", "--team", "red") == 6
    assert ended("d.ledger", "--fail-below", "1", "--team", "green") == 2
    assert not days.statement().is_below("1/4", "red", "2026-01-05")
    assert ended("a.ledger", "--fail-below", "1", "--period", "2026-01-05") == 2
    assert ended("a.ledger", "--fail-below", "few") == 2
