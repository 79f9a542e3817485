"""What the rows of a ledger add up to, one after the other or from a checkpoint on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.errors import LedgerDamaged, LedgerError, LedgerMismatch, SfumatoError
from sfumato.privacy.accounting.units import Clock, ValueColumns, told_by
from sfumato.privacy.ledger.accounts import REST, WHOLE, Accounts, Key
from sfumato.privacy.ledger.guarded import Table
from sfumato.privacy.ledger.release import Entry
from sfumato.privacy.ledger.statement import Closed, Header, later
from sfumato.privacy.ledger.storage.rows import Row


@dataclass(slots=True)
class Tally:
    """A ledger at one moment, without its entries: what the next charge needs to know."""

    header: Header
    genesis: str
    accounts: Accounts
    entries: int = 0
    clock: Clock | ValueColumns | None = None
    tables: tuple[Table, ...] = ()
    closed: Closed | None = None
    head: str = ""

    def take(self, row: Row) -> Entry | None:
        """Add a row; the entry, if it is one."""
        self.head = row.hash
        match row.kind:
            case "entry":
                entry = Entry.from_json({**row.body, "hash": row.hash})
                if entry.number != self.entries + 1:
                    raise ValueError(f"entry {self.entries + 1} is missing")
                self._charge(entry)
                return entry
            case "checkpoint":
                if row.body != self.checkpoint(str(row.body["head"])):
                    raise ValueError(
                        f"the checkpoint after entry {self.entries} is not what the entries add up to"
                    )
            case "closed":
                self.closed = Closed.from_json(row.body)
            case "converted" | "moved" | "drawn":
                pass
            case other:
                raise LedgerError(later(other))
        return None

    def _charge(self, entry: Entry) -> None:
        changes = self.accounts.after(
            entry.cost,
            team=self.payer(entry.team),
            periods=entry.periods,
            sizes=entry.sizes(),  # what was written when they opened, not computed again
        )
        self.accounts.take(changes)
        self.entries = entry.number
        self.clock = entry.clock if entry.number == 1 else self.clock
        if entry.table is not None and entry.table not in self.tables:
            self.tables = (*self.tables, entry.table)

    def payer(self, team: str) -> str:
        """Whose sub-budget pays: that of the team, or what no team has, if there are teams."""
        if not self.header.teams:
            if team:
                raise LedgerMismatch(f"there are no teams, got {team!r}")
            return WHOLE
        if team and team not in self.header.teams:
            raise LedgerMismatch(f"its teams are {', '.join(self.header.teams)}, got {team!r}")
        return team or REST

    def sizes_to_write(self, opened: dict[Key, Fraction]) -> dict[str, Any]:
        """The fields of an entry that say which accounts it opens."""
        rest = dict(opened)
        return {
            "account": rest.pop((WHOLE, WHOLE), None),
            "accounts": tuple((team, period, size) for (team, period), size in rest.items()),
        }

    def checkpoint(self, head: str) -> dict[str, Any]:
        """The row that says all this, after a row of this hash."""
        return {
            "kind": "checkpoint",
            "head": head,
            "header": self.genesis,
            "entries": self.entries,
            "clock": None if self.clock is None else self.clock.to_json(),
            "tables": [table.to_json() for table in self.tables],
            "closed": None if self.closed is None else self.closed.to_json(),
            "spent": self.accounts.to_json(),
        }


def tally_of(first: Row, rows: Iterable[Row], name: str, *, in_memory: bool = False) -> Tally:
    """What a header and the rows from a checkpoint, or from the beginning, add up to; or LedgerDamaged."""
    return replayed(first, rows, name, in_memory=in_memory)[0]


def replayed(
    first: Row, rows: Iterable[Row], name: str, *, in_memory: bool = False
) -> tuple[Tally, tuple[Entry, ...]]:
    """The same with the entries; every checkpoint is compared with them, but for one that comes first."""
    with _reading(name):
        header = Header.from_json(first.body, in_memory=in_memory)
        found = Tally(header, first.hash, Accounts(header.budgets), head=first.hash)
        entries: list[Entry] = []
        for number, row in enumerate(rows):
            if number == 0 and row.kind == "checkpoint":
                found = _restored(found, row)
                continue
            entry = found.take(row)
            if entry is not None:
                entries.append(entry)
    return found, tuple(entries)


def _restored(empty: Tally, row: Row) -> Tally:
    body = row.body
    if body["header"] != empty.genesis:
        raise ValueError("a checkpoint is of another header")
    return Tally(
        empty.header,
        empty.genesis,
        Accounts.from_json(empty.header.budgets, body["spent"]),
        int(body["entries"]),
        None if body["clock"] is None else told_by(body["clock"]),
        tuple(map(Table.from_json, body["tables"])),
        None if body["closed"] is None else Closed.from_json(body["closed"]),
        row.hash,
    )


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """What cannot be read as a ledger is damaged, unless a later version wrote it."""
    try:
        yield
    except (SfumatoError, KeyError, TypeError, ValueError, AttributeError) as problem:
        if type(problem) is LedgerError:
            raise LedgerError(f"{name} {problem}") from None
        raise LedgerDamaged(f"{name} is damaged: {problem}") from problem
