"""`sfumato joint`: what it prints where, with which exit code, and what is charged when a party stops."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.heatmap.distributed.in_threads import (
    NAMES,
    Together,
    charged,
    count_one_at_a_time,
    plan_of,
    rows_of,
)
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.heatmap.distributed import joint_plan
from sfumato.privacy import Ledger, PureDP

pytestmark = pytest.mark.unit
AREA = ("--bounds", "0,0,1,1", "--plane", "--levels", "3")
COLUMNS = ("--user", "who", "--x", "x", "--y", "y")


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["joint", *words], env={"COLUMNS": "200"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with parties, certificates, ledgers and rows; commands run in it."""
    monkeypatch.chdir(tmp_path)
    count_one_at_a_time(monkeypatch)
    made = run("certificates", "certificates", "--names", ",".join(NAMES))
    assert made.exit_code == 0, made.output
    Path("parties.toml").write_text(
        "".join(f'[[party]]\nname = "{one}"\naddress = "{one}.example:7100"\n' for one in NAMES)
    )
    for number, name in enumerate(NAMES):
        pq.write_table(rows_of(number), f"{name}.parquet")
        plan_of(tmp_path, number)
    return tmp_path


def release(party: int, *words: str) -> list[str]:
    name = NAMES[party]
    return [
        *("release", f"{name}.parquet", *COLUMNS, *AREA, "--parties", "parties.toml"),
        *("--me", str(party + 1), "--ledger", f"{name}.ledger", "--epsilon", "1", *words),
    ]


def with_others(
    monkeypatch: pytest.MonkeyPatch, folder: Path, together: Together, *words: str
) -> Result:
    """Run the first party by its command, the others beside it."""
    monkeypatch.setattr(joint_plan, "SecureSums", lambda _, me, **__: together.end(me))

    def other(party: int) -> Any:
        try:
            return plan_of(folder, party, source=folder / f"{NAMES[party]}.parquet").run()
        except Exception as problem:
            return problem

    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(other, party) for party in (1, 2)]
        found = run(*release(0, *words))
        for one in waiting:
            one.result()
    return found


def test_certificates_are_for_their_owner_and_never_replaced(folder: Path) -> None:
    keys = sorted((folder / "certificates").glob("*.key"))
    assert [one.stem for one in keys] == sorted(NAMES)
    assert all(one.stat().st_mode & 0o077 == 0 for one in keys)
    again = run("certificates", "certificates", "--names", "uri")
    assert again.exit_code == 8
    assert "uri.key exists and is kept; nothing was made" in again.stderr
    assert run("certificates", "x", "--names", "Uri GmbH").exit_code == 2


def test_a_dry_run_says_the_digest_and_asks_nobody(folder: Path) -> None:
    said = [run(*release(party, "--out", "map.json", "--dry-run")) for party in range(3)]
    assert [one.exit_code for one in said] == [0, 0, 0], said[0].output
    digest = json.loads(run(*release(0, "--out", "m.json", "--dry-run", "--json")).stdout)["joint"][
        "digest"
    ]
    for one in said:
        assert "would cost epsilon 1" in one.stdout
        assert f"request {digest}: it must be the same at all parties" in one.stdout
    assert "any 1 of them may be curious" in said[0].stdout
    assert charged(folder) == [0, 0, 0]


def test_mistakes_are_told_together_and_charge_nothing(folder: Path) -> None:
    found = run("release", "ticino.parquet", "--parties", "parties.toml", "--epsilon", "x")
    assert found.exit_code == 2
    assert "--me" in found.stderr
    assert "--ledger" in found.stderr
    assert "epsilon" in found.stderr
    found = run(*release(0, "--out", "map.json", "--me", "lugano"))
    assert found.exit_code == 2
    assert "--me is the number of a party, 1 to 3, or one of ticino, uri, vaud" in found.stderr
    assert charged(folder) == [0, 0, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("party = 3", "states no parties"),
        ("[[party]]\nname='a'\naddress='a:1'\n" * 3, "two parties have the same name"),
        (
            "".join(f"[[party]]\nname='{one}'\naddress='a:1'\n" for one in "ab"),
            "between 3 parties at least, got 2: two take a helper without rows",
        ),
        (
            "curious=2\n" + "".join(f"[[party]]\nname='{one}'\naddress='a:1'\n" for one in "abc"),
            "curious must be at most 1 of 3, got 2",
        ),
        ("[[party]]\nname='a'\n", "'address' is missing"),
        ("[[party]]\nname='a'\naddress='a'\n", "an address is host:port, got 'a'"),
        (
            "[[party]]\nname='a'\naddress='a:1'\nrole='x'\n",
            "a party has address, helper, listen, name",
        ),
        ("[[", "cannot be read as parties"),
    ],
)
def test_files_of_parties_that_are_none(folder: Path, text: str, said: str) -> None:
    (folder / "parties.toml").write_text(text)
    found = run(*release(0, "--out", "map.json"))
    assert found.exit_code == 4
    assert said in found.stderr
    assert "nothing was charged" in found.stderr


def test_a_release_says_bytes_and_checks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = with_others(monkeypatch, folder, Together(), "--out", "map.json")
    assert found.exit_code == 0, found.output
    assert "joint model: 3 parties keep their own rows" in found.stdout
    assert "bytes sent and" in found.stdout
    for step in ("all parties ask for the same; session", "counting ticino.parquet", "round 1: "):
        assert step in found.stderr
    ledgers = [f"{name}.ledger" for name in NAMES]
    said = run("check", *ledgers, "map.json")
    assert said.exit_code == 0, said.output
    assert "3 of 3 parties' ledgers and 1 map tell the same story" in said.stdout
    Ledger.create("own.ledger", PureDP(1), unit="user", source="own")
    said = run("check", *ledgers[:2], "own.ledger", "--json")
    assert said.exit_code == 1
    assert json.loads(said.stdout)["sessions"][0]["problems"] == ["own.ledger does not tell of it"]


def test_a_party_that_stops_ends_the_command_with_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops = Together(lambda *at: at == (1, "sum", 2))
    found = with_others(monkeypatch, folder, stops, "--out", "map.json", "--quiet")
    assert found.exit_code == 10
    assert found.stderr.strip() == (
        "sfumato: uri stopped; entry 1 of ticino.ledger, epsilon 1, was charged and nothing was drawn yet: "
        "run the same command again at all parties, which costs nothing more"
    )
    assert not Path("map.json").exists()
    assert charged(folder) == [1, 1, 1]
    again = with_others(monkeypatch, folder, Together(), "--out", "map.json", "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["joint"]["resumed"] is True
    assert charged(folder) == [1, 1, 1]


def test_parties_that_disagree_end_with_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = with_others(
        monkeypatch, folder, Together(), "--out", "m.json", "--json", "--levels", "4"
    )
    assert found.exit_code == 10
    assert json.loads(found.stderr)["error"]["message"] == (
        "uri asks for another area than ticino: compare what --dry-run says; nothing was charged"
    )
    assert charged(folder) == [0, 0, 0]
