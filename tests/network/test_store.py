"""Stores: the same packets and rounds from SQLite and from PostgreSQL, each once, of one site only."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.records.postgres import running_postgres

from sfumato.errors import InvalidInput, MissingPackage
from sfumato.network.collector import StoredPacket, StoredRound, open_store
from sfumato.network.collector.store import SqliteStore, StoreFailed

pytestmark = pytest.mark.unit

SITE = "ab" * 32


def packet(device: str, number: int, *, step: int = 1, late: bool = False) -> StoredPacket:
    return StoredPacket(device, step, 10 * number, number, late, bytes([number, 0, 255]))


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "rounds.sqlite")
    return str(request.getfixturevalue("postgres"))


def test_what_was_kept_is_there_after_a_restart(place: str) -> None:
    store = open_store(place, site=SITE)
    store.add_packets([packet("door", n) for n in range(1, 9)])
    store.add_packets([packet("desk", 3), packet("desk", 4, late=True), packet("door", 5)])
    store.add_packets([packet("door", 9, step=2)])
    store.add_rounds([StoredRound(3, "t3", "recovered", "door\tdesk", '{"a": 1}')])
    store.add_rounds([StoredRound(4, "t4", "skipped", "door", "")])
    store.add_rounds([StoredRound(4, "t4", "recovered", "door", "{}")])  # too late: it was skipped
    store.close()
    again = open_store(place, site=SITE)
    found = again.packets_since(7)
    assert [(p.device, p.round, p.step) for p in found] == [
        ("door", 7, 1),
        ("door", 8, 1),
        ("door", 9, 2),
    ]
    assert found[0].payload == bytes([7, 0, 255])
    assert len([p for p in again.packets_since(0) if p.device == "door"]) == 9
    assert [p.round for p in again.last_packets("door", 3)] == [9, 8, 7]
    assert [p.late for p in again.last_packets("desk", 9)] == [True, False]
    assert [(r.round, r.state, r.recovery) for r in again.rounds_since(0)] == [
        (3, "recovered", '{"a": 1}'),
        (4, "skipped", ""),
    ]
    with pytest.raises(InvalidInput, match="another site"):
        open_store(place, site="cd" * 32)
    again.close()


@pytest.mark.fault
def test_a_connection_that_broke_is_made_anew(postgres: str) -> None:
    store = open_store(postgres, site=SITE)
    before = store.count_rounds(0)
    store._base.disconnect()  # type: ignore[attr-defined]
    with pytest.raises(StoreFailed, match="could not be read"):
        store.count_rounds(0)
    assert store.count_rounds(0) == before
    store.close()


@pytest.mark.fault
def test_a_store_that_cannot_be_read_or_cleared_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.sqlite", site=SITE)
    store._file.execute("DROP TABLE rounds")
    with pytest.raises(StoreFailed, match="could not be read"):
        store.count_rounds(0)
    with pytest.raises(StoreFailed, match="could not be cleared"):
        store.forget_before(1)
    store.close()


def test_a_url_of_sqlite_is_a_file(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/a.sqlite", site=SITE).close()
    assert (tmp_path / "a.sqlite").exists()


def test_a_file_of_duckdb_is_refused_with_what_to_give() -> None:
    with pytest.raises(
        InvalidInput, match=r"a SQLite file, or postgres://...; nothing was collected"
    ):
        open_store("duckdb:///rounds.db", site=SITE)


def test_a_password_in_a_url_is_never_said() -> None:
    with pytest.raises(InvalidInput) as problem:
        open_store("postgres://ann:canary-9f3@/nowhere?host=/no/such/folder", site=SITE)
    assert "canary" not in str(problem.value)
    assert "canary" not in repr(problem.value.__context__ and problem.value)


@pytest.mark.parametrize(
    ("package", "url", "extra"),
    [
        ("psycopg", "postgres://ann@/nowhere?host=/no/such/folder", "sfumato[postgres]"),
        ("pandas", "postgresql://ann@/nowhere?host=/no/such/folder", "sfumato[postgres]"),
        ("MySQLdb", "mysql://ann@localhost/rounds", "ibis-framework[mysql]"),
    ],
)
def test_what_a_database_needs_is_named(
    package: str, url: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "ibis.backends.postgres", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=re.escape(f"pip install '{extra}'; nothing was")):
        open_store(url, site=SITE)


def test_what_is_no_store_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database\n" * 100)
    with pytest.raises(InvalidInput, match="cannot open the store"):
        open_store(file, site=SITE)
    assert file.read_text().startswith("not a database")
    with pytest.raises(InvalidInput, match="cannot open the store"):
        open_store(tmp_path / "no" / "such.sqlite", site=SITE)


@pytest.mark.fault
def test_a_full_disk_accepts_nothing_and_loses_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.sqlite", site=SITE)
    store.add_packets([packet("door", 1)])
    store._file.execute("PRAGMA max_page_count = 12")
    big = [StoredPacket("door", 2, n, n, False, bytes(2000)) for n in range(100)]
    with pytest.raises(StoreFailed, match="full"):
        store.add_packets(big)
    assert [p.round for p in store.packets_since(0)] == [1]
    store._file.execute("PRAGMA max_page_count = 100000")
    store.add_packets(big)
    assert len(store.packets_since(0)) == 101
    assert store.forget_before(50) == 51 - 1 + 1
    assert Path(store.path).exists()
