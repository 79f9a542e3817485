"""Where a collector keeps packets and rounds: SQLite, or any database that Ibis connects to by a URL.

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

from sfumato.errors import InvalidInput, MissingPackage, SfumatoError

FORMAT = "sfumato-network-store/1"
State = Literal["recovered", "failed", "skipped"]


class StoreFailed(SfumatoError):
    """The store could not be written: nothing of the batch is accepted."""


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
            _check_network(found, site, self.path)
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
        return [_packet(row) for row in self._file.execute(query, (number,))]

    def last_packets(self, device: str, count: int) -> list[StoredPacket]:
        """From the index by device."""
        query = (
            f"SELECT {_PACKET} FROM packets WHERE device = ? "  # noqa: S608
            "ORDER BY step DESC, first DESC LIMIT ?"
        )
        return [_packet(row) for row in self._file.execute(query, (device, count))]

    def rounds_since(self, number: int) -> list[StoredRound]:
        """From the table of rounds."""
        query = f"SELECT {_ROUND} FROM rounds WHERE round >= ? ORDER BY round"  # noqa: S608
        return [StoredRound(*row) for row in self._file.execute(query, (number,))]

    def count_rounds(self, number: int) -> int:
        """By the primary key."""
        query = "SELECT count(*) FROM rounds WHERE round >= ?"
        return int(self._file.execute(query, (number,)).fetchone()[0])

    def forget_before(self, number: int) -> int:
        """Delete packets and rounds before a round; how many packets those were."""
        with self._file:
            self._file.execute("BEGIN IMMEDIATE")
            gone = self._file.execute("DELETE FROM packets WHERE round < ?", (number,)).rowcount
            self._file.execute("DELETE FROM rounds WHERE round < ?", (number,))
        return int(gone)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        try:
            with self._file:
                self._file.execute("BEGIN IMMEDIATE")
                self._file.executemany(statement, rows)
        except sqlite3.Error as problem:
            raise StoreFailed(f"the store {self.path} could not be written: {problem}") from None


class IbisStore:
    """A database behind a URL: two tables that are only appended to, in a transaction for each batch."""

    def __init__(self, url: str, *, site: str) -> None:
        try:
            import ibis
        except ImportError:
            raise MissingPackage(
                "a store behind a URL needs ibis-framework; nothing was collected"
            ) from None
        self.name = url.partition("://")[0]  # no more of it is ever said: it may hold a password
        try:
            self._base = ibis.connect(url)
            there = set(self._base.list_tables())
            for name, columns in _COLUMNS.items():
                if _table(name) not in there:
                    self._base.create_table(_table(name), schema=ibis.schema(columns))
            if _table("network") not in there:
                self._append("network", [{"form": FORMAT, "site": site}])
            row = self._base.table(_table("network")).limit(1).to_pyarrow().to_pylist()[0]
        except StoreFailed as problem:
            raise InvalidInput(f"{problem}; nothing was collected") from None
        except ImportError:
            raise MissingPackage(
                f"no driver for a {self.name} database is installed; nothing was collected"
            ) from None
        except Exception as problem:  # drivers have errors of their own, and quote what they were given
            raise InvalidInput(
                f"cannot open the store behind the {self.name} URL ({type(problem).__name__}); nothing was "
                "collected"
            ) from None
        try:
            _check_network((row["form"], row["site"]), site, f"behind the {self.name} URL")
        except InvalidInput:
            self.close()
            raise

    def add_packets(self, packets: Sequence[StoredPacket]) -> None:
        """Append packets."""
        self._append(
            "packets",
            [
                {
                    "device": p.device,
                    "step": p.step,
                    "first": p.first,
                    "round": p.round,
                    "late": int(p.late),
                    "payload": p.payload.hex(),
                }
                for p in packets
            ],
        )

    def add_rounds(self, rounds: Sequence[StoredRound]) -> None:
        """Append rounds."""
        self._append(
            "rounds",
            [
                {
                    "round": r.round,
                    "time": r.time,
                    "state": r.state,
                    "sensors": r.sensors,
                    "recovery": r.recovery,
                }
                for r in rounds
            ],
        )

    def packets_since(self, number: int) -> list[StoredPacket]:
        """By a filter; what was appended twice counts once."""
        table = self._base.table(_table("packets"))
        rows = self._rows(table.filter(table["round"] >= number).order_by(["round", "device"]))
        return _once([_packet_of(row) for row in rows])

    def last_packets(self, device: str, count: int) -> list[StoredPacket]:
        """By a filter and a limit."""
        import ibis

        table = self._base.table(_table("packets"))
        ordered = table.filter(table["device"] == device).order_by(
            [ibis.desc("step"), ibis.desc("first")]
        )
        return _once([_packet_of(row) for row in self._rows(ordered.limit(count))])

    def rounds_since(self, number: int) -> list[StoredRound]:
        """By a filter; the first row of a round counts."""
        table = self._base.table(_table("rounds"))
        rows = self._rows(table.filter(table["round"] >= number).order_by("round"))
        found: dict[int, StoredRound] = {}
        for row in rows:
            found.setdefault(int(row["round"]), StoredRound(**row))
        return list(found.values())

    def count_rounds(self, number: int) -> int:
        """Different ones."""
        table = self._base.table(_table("rounds"))
        return int(table.filter(table["round"] >= number)["round"].nunique().execute())

    def close(self) -> None:
        """Disconnect."""
        self._base.disconnect()

    def _append(self, name: str, rows: list[dict[str, Any]]) -> None:
        import pyarrow

        if not rows:
            return
        try:
            self._base.insert(_table(name), pyarrow.Table.from_pylist(rows))
        except Exception as problem:
            raise StoreFailed(
                f"the store behind the {self.name} URL could not be written ({type(problem).__name__})"
            ) from None

    def _rows(self, query: Any) -> list[dict[str, Any]]:
        return list(query.to_pyarrow().to_pylist())


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
_COLUMNS = {
    "network": {"form": "string", "site": "string"},
    "packets": {
        "device": "string",
        "step": "int64",
        "first": "int64",
        "round": "int64",
        "late": "int64",
        "payload": "string",
    },
    "rounds": {
        "round": "int64",
        "time": "string",
        "state": "string",
        "sensors": "string",
        "recovery": "string",
    },
}


def _table(name: str) -> str:
    return f"sfumato_{name}"


def _check_network(found: tuple[str, str], site: str, where: str) -> None:
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


def _packet_of(row: dict[str, Any]) -> StoredPacket:
    return StoredPacket(
        row["device"],
        int(row["step"]),
        int(row["first"]),
        int(row["round"]),
        bool(row["late"]),
        bytes.fromhex(row["payload"]),
    )


def _once(packets: list[StoredPacket]) -> list[StoredPacket]:
    return list({(p.device, p.step, p.first): p for p in packets}.values())


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
