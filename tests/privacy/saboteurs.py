"""Broken ledgers, one way each; `tests/saboteurs.py` lists them with the test that must catch them."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any


def privacy(name: str) -> Any:
    """The module itself: the room's door hands out what is in it."""
    return import_module(f"sfumato.privacy.{name}")


def any_map_for_a_user_day() -> None:
    from sfumato.privacy.accounting import Clock
    from sfumato.privacy.accounting.units import period_of

    def any_mass(unit: str, _: Any) -> Any:
        return 1, None if period_of(unit) is None else Clock("t")

    import_module("sfumato.records.aggregate").bounded_for = any_mass  # type: ignore[attr-defined]


def any_clock_for_a_user_day() -> None:
    privacy("ledger.ledger").Ledger._keeps_to = lambda self, now, clock: None


def anybody_s_data_in_a_local_ledger() -> None:
    ledger = privacy("ledger.ledger").Ledger
    true = ledger._accounts_for

    def trusting(self: Any, bound: Any) -> None:
        held = object.__new__(type(bound))
        for name in type(bound).__dataclass_fields__:
            object.__setattr__(held, name, "local" if name == "model" else getattr(bound, name))
        true(self, held)

    ledger._accounts_for = trusting


def rehearsal_by_name() -> None:
    mark = privacy("ledger.guarded").Rehearsal
    mark.__eq__ = lambda self, other: str(self) == str(other)


def links_not_counted() -> None:
    import os

    privacy("ledger.file")._handle = lambda real, mode, path: os.open(real, mode)


def journal_beside_one_name() -> None:
    import sqlite3
    from collections.abc import Iterator
    from contextlib import closing, contextmanager
    from pathlib import Path

    file = privacy("ledger.file")

    @contextmanager
    def opened(path: Path) -> Iterator[Any]:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            yield connection

    @contextmanager
    def in_place(path: Path) -> Iterator[Any]:
        with opened(path) as connection, file.unlocked(connection):
            connection.execute("PRAGMA synchronous")
            yield connection

    file.opened, file.locked = opened, in_place


def entry_not_read_back() -> None:
    ledger, file = privacy("ledger.ledger"), privacy("ledger.file")

    def hoped(connection: Any, now: Any, entry: Any) -> Any:
        body = entry.to_json()
        del body["hash"]
        return replace(entry, hash=file.append(connection, entry.number, body, now.head))

    ledger._appended = hoped


def drafts_nobody_noted() -> None:
    from collections.abc import Iterator
    from contextlib import contextmanager
    from pathlib import Path
    from secrets import token_hex

    @contextmanager
    def by_the_way(path: Path, kind: str) -> Iterator[Path]:
        draft = path.with_name(f".{path.name}.{token_hex(6)}{kind}")
        try:
            yield draft
        finally:
            draft.unlink(missing_ok=True)

    privacy("ledger.file").draft_beside = by_the_way
