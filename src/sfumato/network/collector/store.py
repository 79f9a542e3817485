"""Where a collector keeps packets and rounds: SQLite, or PostgreSQL by a URL of Ibis.

A packet is accepted when it is in the store, and acknowledged after that; so a collector that is
killed at any moment has every accepted packet, and finishes its rounds when it starts again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from sfumato.errors import InvalidInput, SfumatoError

FORMAT = "sfumato-network-store/1"
State = Literal["recovered", "failed", "skipped"]


class StoreFailed(SfumatoError):
    """The store could not be read or written: nothing of the batch is accepted."""


@dataclass(frozen=True, slots=True)
class StoredPacket:
    """A packet as it came, with what orders it.

    Attributes:
        device: The name of the device.
        step: Which start of the device it is of.
        first: The number of its first draw.
        round: Its round.
        late: Whether it came after its round was closed.
        payload: The bytes.
    """

    device: str
    step: int
    first: int
    round: int
    late: bool
    payload: bytes


@dataclass(frozen=True, slots=True)
class StoredRound:
    """A closed round and what came of it.

    Attributes:
        round: Its number.
        time: When it was, in UTC.
        state: "recovered"; "failed" where no answer could be proved; "skipped" where there was no time.
        sensors: The sensors that were read, separated by a tab.
        recovery: The recovery as JSON, without the site; "" where there is none.
    """

    round: int
    time: str
    state: State
    sensors: str
    recovery: str


class Store(Protocol):
    """Packets and rounds of one network; each call is whole when it returns, or raises `StoreFailed`."""

    def add_packets(self, packets: Sequence[StoredPacket]) -> None:
        """Keep packets: they are accepted when this returns."""
        ...

    def add_rounds(self, rounds: Sequence[StoredRound]) -> None:
        """Keep what came of rounds; a round that is there already stays as it is."""
        ...

    def packets_since(self, number: int) -> list[StoredPacket]:
        """The packets of a round and all after it, each once."""
        ...

    def last_packets(self, device: str, count: int) -> list[StoredPacket]:
        """The last packets of a device, by step and first draw."""
        ...

    def rounds_since(self, number: int) -> list[StoredRound]:
        """A round and all after it, each once, in their order."""
        ...

    def count_rounds(self, number: int) -> int:
        """How many rounds there are from one on."""
        ...

    def last_round(self) -> int:
        """The last round that was closed; -1 if there is none."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...


def open_store(where: str | Path, *, site: str) -> Store:
    """The store at a place: a file of SQLite, or a URL as Ibis takes it.

    Args:
        where: A path, sqlite:///PATH, or a URL such as postgres://user@host/database.
        site: The digest of the site; a store of another site is refused.

    Returns:
        The store, made if there is none.

    Raises:
        InvalidInput: It cannot be opened, or is another network's; nothing was collected.
        MissingPackage: No driver for such a database is installed.
    """
    text = str(where)
    scheme, found, rest = text.partition("://")
    if not found:
        return SqliteStore(text, site=site)
    if scheme == "sqlite":
        # Three strokes before a path of this folder, four before one from the root.
        return SqliteStore(rest.removeprefix("/"), site=site)
    if scheme == "duckdb":
        raise InvalidInput(
            "a file of DuckDB holds no store: give the path of a SQLite file, or postgres://...; nothing was "
            "collected"
        )
    from sfumato.network.collector.ibis_store import IbisStore

    return IbisStore(text, site=site)


class SqliteStore:
    """A file of SQLite, written through to the disk with every batch."""

    def __init__(self, path: str | Path, *, site: str) -> None:
        self.path = str(path)
        try:
            self._file = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
            self._file.execute("PRAGMA busy_timeout = 5000")
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = FULL")
            with self._file:
                self._file.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    self._file.execute(statement)
                self._file.execute("INSERT OR IGNORE INTO network VALUES (?, ?)", (FORMAT, site))
            (found,) = self._file.execute("SELECT form, site FROM network").fetchall()
        except (sqlite3.Error, ValueError) as problem:
            raise InvalidInput(
                f"cannot open the store {self.path}: {problem}; nothing was collected"
            ) from None
        try:
            check_network(found, site, self.path)
        except InvalidInput:
            self.close()
            raise

    def add_packets(self, packets: Sequence[StoredPacket]) -> None:
        """Keep packets, in one transaction."""
        rows = [(p.device, p.step, p.first, p.round, int(p.late), p.payload) for p in packets]
        self._write("INSERT OR IGNORE INTO packets VALUES (?, ?, ?, ?, ?, ?)", rows)

    def add_rounds(self, rounds: Sequence[StoredRound]) -> None:
        """Keep rounds, in one transaction."""
        rows = [(r.round, r.time, r.state, r.sensors, r.recovery) for r in rounds]
        self._write("INSERT OR IGNORE INTO rounds VALUES (?, ?, ?, ?, ?)", rows)

    def packets_since(self, number: int) -> list[StoredPacket]:
        """From the table of packets."""
        query = f"SELECT {_PACKET} FROM packets WHERE round >= ? ORDER BY round, device"  # noqa: S608
        return [_packet(row) for row in self._read(query, number)]

    def last_packets(self, device: str, count: int) -> list[StoredPacket]:
        """From the index by device."""
        query = (
            f"SELECT {_PACKET} FROM packets WHERE device = ? "  # noqa: S608
            "ORDER BY step DESC, first DESC LIMIT ?"
        )
        return [_packet(row) for row in self._read(query, device, count)]

    def rounds_since(self, number: int) -> list[StoredRound]:
        """From the table of rounds."""
        query = f"SELECT {_ROUND} FROM rounds WHERE round >= ? ORDER BY round"  # noqa: S608
        return [StoredRound(*row) for row in self._read(query, number)]

    def count_rounds(self, number: int) -> int:
        """By the primary key."""
        query = "SELECT count(*) FROM rounds WHERE round >= ?"
        return int(self._read(query, number)[0][0])

    def last_round(self) -> int:
        """By the primary key."""
        return int(self._read("SELECT coalesce(max(round), -1) FROM rounds")[0][0])

    def forget_before(self, number: int, *, rounds: int | None = None) -> int:
        """Delete packets before a round, and rounds before the same or another; how many packets those were."""
        try:
            with self._file:
                self._file.execute("BEGIN IMMEDIATE")
                gone = self._file.execute("DELETE FROM packets WHERE round < ?", (number,)).rowcount
                last = number if rounds is None else rounds
                self._file.execute("DELETE FROM rounds WHERE round < ?", (last,))
        except sqlite3.Error as problem:
            raise StoreFailed(f"the store {self.path} could not be cleared: {problem}") from None
        return int(gone)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, query: str, *values: object) -> list[Any]:
        try:
            return self._file.execute(query, values).fetchall()
        except sqlite3.Error as problem:
            raise StoreFailed(f"the store {self.path} could not be read: {problem}") from None

    def _write(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        try:
            with self._file:
                self._file.execute("BEGIN IMMEDIATE")
                self._file.executemany(statement, rows)
        except sqlite3.Error as problem:
            raise StoreFailed(f"the store {self.path} could not be written: {problem}") from None


_PACKET = "device, step, first, round, late, payload"
_ROUND = "round, time, state, sensors, recovery"
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS network (form TEXT PRIMARY KEY, site TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS packets (device TEXT NOT NULL, step INTEGER NOT NULL, first INTEGER NOT NULL, "
    "round INTEGER NOT NULL, late INTEGER NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (device, step, first)) "
    "WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS packets_by_round ON packets (round)",
    "CREATE TABLE IF NOT EXISTS rounds (round INTEGER PRIMARY KEY, time TEXT NOT NULL, state TEXT NOT NULL, "
    "sensors TEXT NOT NULL, recovery TEXT NOT NULL)",
)


def check_network(found: tuple[str, str], site: str, where: str) -> None:
    """Refuse a store of another form or of another site."""
    form, theirs = found
    if form != FORMAT:
        raise InvalidInput(f"the store {where} is not {FORMAT}; nothing was collected")
    if theirs != site:
        raise InvalidInput(
            f"the store {where} is of another site, or of this one before it was changed; give a new one; "
            "nothing was collected"
        )


def _packet(row: tuple[Any, ...]) -> StoredPacket:
    device, step, first, number, late, payload = row
    return StoredPacket(device, step, first, number, bool(late), bytes(payload))


def read_rounds(where: str | Path, *, site: str, since: int = 0) -> list[StoredRound]:
    """The rounds that a store has, in their order.

    Args:
        where: As for `open_store`.
        site: The digest of the site.
        since: The first round; all unless given.

    Returns:
        Rounds and what came of them.
    """
    with closing(open_store(where, site=site)) as store:
        return store.rounds_since(since)
