"""`sfumato ledger --json`, the Python calls and the saved file say the same of one ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidInput, LedgerDamaged, LedgerMismatch
from sfumato.privacy import (
    ApproxDP,
    DiscreteGaussian,
    DiscreteLaplace,
    KeyedNoise,
    Ledger,
    PureDP,
    histogram,
    read_release,
)
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
    assert said == {"ledger": "a.ledger", **statement.to_json()}
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
