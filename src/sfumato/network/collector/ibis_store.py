"""A store in any database that Ibis connects to by a URL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sfumato.errors import InvalidInput, MissingPackage
from sfumato.network.collector.store import (
    FORMAT,
    StoredPacket,
    StoredRound,
    StoreFailed,
    check_network,
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


class IbisStore:
    """A database behind a URL: two tables that are only appended to, in a transaction for each batch.

    Where something fails, the connection is given up, and the next call makes a new one.
    """

    def __init__(self, url: str, *, site: str) -> None:
        try:
            import ibis
        except ImportError:
            raise MissingPackage(
                "a store behind a URL needs ibis-framework; nothing was collected"
            ) from None
        self.name = url.partition("://")[0]  # no more of it is ever said: it may hold a password
        self._connect: Callable[[], Any] = lambda: ibis.connect(url)
        self._base: Any = None
        postgres = self.name in ("postgres", "postgresql")
        try:
            if postgres:
                import pandas  # noqa: F401 - Ibis does, but only when it has connected
            self._base = self._connect()
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
            extra = "sfumato[postgres]" if postgres else f"ibis-framework[{self.name}]"
            raise MissingPackage(
                f"a store behind a {self.name} URL needs more: pip install '{extra}'; nothing was collected"
            ) from None
        except (
            Exception
        ) as problem:  # drivers have errors of their own, and quote what they were given
            raise InvalidInput(
                f"cannot open the store behind the {self.name} URL ({type(problem).__name__}); nothing was "
                "collected"
            ) from None
        try:
            check_network((row["form"], row["site"]), site, f"behind the {self.name} URL")
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
        rows = self._rows(
            "packets", lambda t: t.filter(t["round"] >= number).order_by(["round", "device"])
        )
        return _once([_packet_of(row) for row in rows])

    def last_packets(self, device: str, count: int) -> list[StoredPacket]:
        """By a filter and a limit."""
        import ibis

        order = [ibis.desc("step"), ibis.desc("first")]
        rows = self._rows(
            "packets", lambda t: t.filter(t["device"] == device).order_by(order).limit(count)
        )
        return _once([_packet_of(row) for row in rows])

    def rounds_since(self, number: int) -> list[StoredRound]:
        """By a filter; the first row of a round counts."""
        rows = self._rows("rounds", lambda t: t.filter(t["round"] >= number).order_by("round"))
        found: dict[int, StoredRound] = {}
        for row in rows:
            found.setdefault(int(row["round"]), StoredRound(**row))
        return list(found.values())

    def count_rounds(self, number: int) -> int:
        """Different ones."""
        rows = self._rows(
            "rounds", lambda t: t.filter(t["round"] >= number).aggregate(n=t["round"].nunique())
        )
        return int(rows[0]["n"])

    def last_round(self) -> int:
        """The largest."""
        found = self._rows("rounds", lambda t: t.aggregate(n=t["round"].max()))[0]["n"]
        return -1 if found is None else int(found)

    def close(self) -> None:
        """Disconnect."""
        if self._base is not None:
            self._base.disconnect()

    def _append(self, name: str, rows: list[dict[str, Any]]) -> None:
        import pyarrow

        if not rows:
            return
        table = pyarrow.Table.from_pylist(rows)
        self._work("written", lambda base: base.insert(_table(name), table))

    def _rows(self, name: str, query: Callable[[Any], Any]) -> list[dict[str, Any]]:
        found = self._work("read", lambda base: query(base.table(_table(name))).to_pyarrow())
        return list(found.to_pylist())

    def _work(self, done: str, work: Callable[[Any], Any]) -> Any:
        try:
            if self._base is None:
                self._base = self._connect()
            return work(self._base)
        except Exception as problem:  # drivers have errors of their own
            broken, self._base = self._base, None
            with suppress(Exception):
                broken.disconnect()
            raise StoreFailed(
                f"the store behind the {self.name} URL could not be {done} ({type(problem).__name__})"
            ) from None


def _table(name: str) -> str:
    return f"sfumato_{name}"


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
