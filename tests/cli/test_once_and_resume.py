"""`--once` and `resume` of every command that pays: the same again costs nothing, and no password is kept."""

from __future__ import annotations

import functools
import gc
import json
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest
from tests.cli.sense_runs import VALUES, alone, entries, hall, release, table
from typer.main import get_command
from typer.testing import CliRunner, Result

from sfumato.cli.endings import EXISTS, INVALID, MADE_BEFORE
from sfumato.cli.main import app
from sfumato.privacy import FlippedEdge, Ledger, PureDP
from sfumato.privacy.ledger import delivery
from sfumato.privacy.runs import kept_runs
from sfumato.records.engines import databases
from sfumato.records.engines.duckdb import duckdb_engine
from sfumato.sensing import read_readings

pytestmark = pytest.mark.fault

_command = functools.cache(get_command)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


def run(*words: str) -> Result:
    with mock.patch("typer.testing._get_command", _command):
        result = CliRunner().invoke(app, list(words))
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def ended(code: int, *words: str) -> Result:
    result = run(*words)
    assert result.exit_code == code, (result.stdout, result.stderr)
    return result


def dies_when_drawn(patch: pytest.MonkeyPatch, part: int) -> None:
    """Whoever draws the n-th release dies before anything of it is kept."""
    true, calls = delivery.keep, [0]

    def deadly(*given: Any) -> None:
        calls[0] += 1
        if calls[0] == part:
            raise KeyboardInterrupt
        true(*given)

    patch.setattr(delivery, "keep", deadly)


# sensors


def several(*times: str) -> None:
    rows = [(time, *pair) for time in times for pair in VALUES.items()]
    table("readings.csv", ["time", "sensor", "value"], rows)


def test_readings_under_a_key_are_released_once() -> None:
    hall()
    several("1", "2")
    words = ["sense", *release("--once", "monday")]
    ended(0, *words)
    first, paid = Path("r.json").read_bytes(), entries()
    again = ended(MADE_BEFORE, *words, "--json")
    assert json.loads(again.stdout)["made_before"] is True
    Path("r.json").unlink()
    ended(MADE_BEFORE, *words)
    assert Path("r.json").read_bytes() == first
    # The data may be gone, or be other data: what was released stays what it was.
    ended(MADE_BEFORE, *[{"r.json": "s.json"}.get(word, word) for word in words])
    assert Path("s.json").read_bytes() == first
    assert entries() == paid
    assert len(paid) == 2


@pytest.mark.parametrize("other", [["--rho", "2"], ["--note", "x"], ["--some"]])
def test_other_readings_under_the_key_are_refused(other: list[str]) -> None:
    hall()
    ended(0, "sense", *release("--once", "monday"))
    kept = Path("hall.ledger").read_bytes()
    words = release("--once", "monday", out=["s.json"], rho="" if "--rho" in other else "1")
    told = ended(INVALID, "sense", *words, *other).stderr
    assert "'monday / reading 1' is the key of another request, entry 1 of hall.ledger" in told
    assert told.endswith("nothing was charged\n")
    assert Path("hall.ledger").read_bytes() == kept
    assert not Path("s.json").exists()


def test_a_file_in_the_way_of_readings_under_a_key_is_kept() -> None:
    hall()
    Path("r.json").write_text("mine")
    ended(EXISTS, "sense", *release("--once", "monday"))
    assert (Path("r.json").read_text(), entries()) == ("mine", ())
    ended(0, "sense", *release("--once", "monday", out=["s.json"]))
    told = ended(EXISTS, "sense", *release("--once", "monday")).stderr
    assert "r.json exists already and is not what was released" in told
    assert (Path("r.json").read_text(), len(entries())) == ("mine", 1)


def test_a_retry_under_a_key_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    hall()
    several("1", "2", "3")
    words = ["sense", *release("--once", "monday")]
    with monkeypatch.context() as patch:
        dies_when_drawn(patch, 2)
        assert "sfumato sense resume hall.ledger" in ended(130, *words).stderr
    assert len(entries()) == 2
    drawn = Ledger("hall.ledger").recover(1).value.tolist()
    ended(0, *words)  # it has paid for the third
    ended(MADE_BEFORE, *words)
    found = [one.release for one in read_readings("r.json").snapshots]
    assert [one.entry.number for one in found] == [1, 2, 3]
    assert found[0].value.tolist() == drawn
    assert len(entries()) == 3


DAYS = ("2020-11-15T23:00Z", "2020-11-16T01:00Z", "2020-11-17T01:00Z")


@pytest.mark.parametrize(
    "called", ["w", "w/20201115T0000Z-1d.ledger", "w/20201116T0000Z-1d.ledger"]
)
@pytest.mark.parametrize("part", [2, 3])
def test_readings_of_several_windows_are_finished(
    called: str, part: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Paid by two or three ledgers, of which any names the run."""
    hall()
    several(*DAYS)
    words = ["sense", "release", "readings.csv", "--site", "site.json", "--windows", "w",
             "--since", "2020-11-15", "--budget-epsilon", "2", "--share", "2", "--out", "r.json"]  # fmt: skip
    with monkeypatch.context() as patch:
        dies_when_drawn(patch, part)
        assert "interrupted; entry 1 of w/20201115T0000Z-1d.ledger" in ended(130, *words).stderr
    first = Ledger("w/20201115T0000Z-1d.ledger")
    drawn = first.recover(1).value.tolist()
    (listed,) = json.loads(ended(0, "sense", "resume", called, "--list", "--json").stdout)[
        "waiting"
    ]
    assert (listed["state"], len(listed["entries"])) == ("charged", part)
    (tmp_path / "elsewhere").mkdir()
    whole = str(Path(called).absolute())
    monkeypatch.chdir(tmp_path / "elsewhere")
    told = json.loads(ended(0, "sense", "resume", whole, "--json").stdout)
    assert (len(told["finished"]), told["waiting"]) == (1, [])
    monkeypatch.chdir(tmp_path)
    found = read_readings("r.json").snapshots
    assert [one.time for one in found] == list(DAYS)
    assert found[0].release.value.tolist() == drawn
    books = sorted(Path("w").glob("*.ledger"))
    assert [len(entries(str(book))) for book in books] == [1, 1, 1]
    assert kept_runs(books) == ()
    assert "nothing to finish" in ended(0, "sense", "resume", called).stdout


# networks


def club() -> list[str]:
    edges = [(i, j) for j in range(16) for i in range(j) if i // 8 == j // 8]
    table("edges.csv", ["u", "v"], edges)
    Path("nodes.txt").write_text("\n".join(map(str, range(16))) + "\n")
    Ledger.create("e.ledger", PureDP(9), unit="edge", source="club", neighbors=FlippedEdge())
    return ["graph", "blocks", "edges.csv", "--nodes", "nodes.txt", "--k", "2", "--ledger", "e.ledger",
            "--once", "monday"]  # fmt: skip


def test_blocks_under_a_key_are_released_once() -> None:
    words = [*club(), "--epsilon", "3"]
    ended(0, *words, "--out", "b.json")
    first = json.loads(Path("b.json").read_text())
    again = ended(MADE_BEFORE, *words, "--out", "b.json", "--json")
    assert json.loads(again.stdout)["made_before"] is True
    ended(MADE_BEFORE, *words, "--out", "c.json", "--labels", "l.csv")
    assert json.loads(Path("c.json").read_text()) == first
    assert len(entries("e.ledger")) == 2
    Path("c.json").write_text("mine")
    assert "c.json" in ended(EXISTS, *words, "--out", "c.json").stderr
    assert Path("c.json").read_text() == "mine"


@pytest.mark.parametrize("other", [["--epsilon", "4"], ["--epsilon", "3", "--k", "3"]])
def test_other_blocks_under_the_key_are_refused(other: list[str]) -> None:
    words = club()
    ended(0, *words, "--epsilon", "3", "--out", "b.json")
    kept = Path("e.ledger").read_bytes()
    told = ended(INVALID, *words, *other, "--out", "c.json").stderr
    assert "'monday' is the key of another request, entry 2 of e.ledger" in told
    assert (Path("e.ledger").read_bytes(), Path("c.json").exists()) == (kept, False)


def test_blocks_that_died_between_their_parts_are_finished_under_their_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = [*club(), "--epsilon", "3", "--out", "b.json"]
    with monkeypatch.context() as patch:
        dies_when_drawn(patch, 2)
        ended(130, *words)
    ended(MADE_BEFORE, *words)
    assert (len(entries("e.ledger")), kept_runs(["e.ledger"])) == (2, ())


# passwords

SECRET = "postgresql://me:s3cret@h/db?sslpassword=s3cret2"  # noqa: S105


def test_a_password_is_kept_nowhere_and_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def connected(url: str) -> Any:
        assert url == SECRET
        return duckdb_engine(Path("rows.duckdb"))

    with duckdb.connect("rows.duckdb") as made:
        made.execute(
            "create table trips as select i as cab, 0.5 as lon, 0.5 as lat from range(9) t(i)"
        )
    monkeypatch.setattr(databases, "connected", connected)
    Ledger.create("a.ledger", PureDP(2), unit="user", source="city")
    words = ["heatmap", "release", "trips", "--connection", SECRET, "--user", "cab", "--plane",
             "--bounds", "0,0,1,1", "--levels", "3", "--epsilon", "1", "--method", "laplace",
             "--ledger", "a.ledger", "--out", "m.json"]  # fmt: skip
    with monkeypatch.context() as patch:
        dies_when_drawn(patch, 1)
        said = [ended(130, *words).output]
    gc.collect()  # a DuckDB file is closed with its connection; a process that died has closed it
    said += [ended(0, "heatmap", "resume", "a.ledger", "--list", "--json").output]
    said += [ended(INVALID, "heatmap", "resume", "a.ledger").output]
    assert "had a password, which is not kept: give it as --connection" in said[-1]
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".duckdb"]
    assert any(path.suffix == ".jsonl" for path in kept)
    said += [ended(0, "heatmap", "resume", "a.ledger", "--connection", SECRET).output]
    for path in {*kept, *tmp_path.rglob("*")}:
        if path.is_file() and path.suffix != ".duckdb":
            assert b"s3cret" not in path.read_bytes(), path
    assert "s3cret" not in "".join(said)
    assert (len(entries("a.ledger")), kept_runs(["a.ledger"])) == (1, ())
    assert Path("m.json").exists()


@pytest.mark.parametrize("once", [False, True])
def test_what_is_given_up_is_not_said_to_be_delivered(
    once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second was charged and never drawn: given up for good, or until its key is said again."""
    hall()
    several("1", "2")
    words = ["sense", *release(*(["--once", "monday"] if once else []))]
    with monkeypatch.context() as patch:
        dies_when_drawn(patch, 2)
        ended(130, *words)
    ended(0, "sense", "resume", "hall.ledger", "--paid-only", "--out", "one.json")
    assert [one.time for one in read_readings("one.json").snapshots] == ["1"]
    listed = json.loads(ended(0, "sense", "resume", "hall.ledger", "--list", "--json").stdout)
    assert [one["state"] for one in listed["waiting"]] == (["charged"] if once else [])
    if once:
        ended(MADE_BEFORE, *words)
        assert [one.time for one in read_readings("r.json").snapshots] == ["1", "2"]
    assert "nothing to finish" in ended(0, "sense", "resume", "hall.ledger").stdout
    assert len(entries()) == 2
