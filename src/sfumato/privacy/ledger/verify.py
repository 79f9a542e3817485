"""Check a ledger, and that published releases were paid for by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import LedgerMismatch
from sfumato.files import decoding
from sfumato.privacy.ledger.delivery import check
from sfumato.privacy.ledger.ledger import Ledger
from sfumato.privacy.ledger.release import Release


@dataclass(frozen=True, slots=True)
class LedgerCheck:
    """A ledger whose chain is whole, and which releases it paid for.

    Attributes:
        ledger: The file.
        entries: How many charges it has.
        head: The last hash of its chain.
        releases: The files that were checked against it.
        receipts: How many releases these files hold.
    """

    ledger: str
    entries: int
    head: str
    releases: tuple[str, ...] = ()
    receipts: int = 0

    def to_json(self) -> dict[str, Any]:
        """What `sfumato ledger verify --json` prints."""
        return {
            "ledger": self.ledger,
            "entries": self.entries,
            "head": self.head,
            "whole": True,
            "releases": list(self.releases),
            "receipts": self.receipts,
        }

    @staticmethod
    def from_json(data: Any) -> LedgerCheck:
        """The check a JSON object states.

        Raises:
            InvalidInput: The object is no whole check.

        """
        with decoding("a whole check of a ledger"):
            return LedgerCheck(
                str(data["ledger"]),
                int(data["entries"]),
                str(data["head"]),
                tuple(map(str, data["releases"])),
                int(data["receipts"]),
            )


def verify_ledger(
    path: str | Path, releases: Iterable[tuple[str | Path, Iterable[Release[Any]]]] = ()
) -> LedgerCheck:
    """Check the hash chain of a ledger, and that published releases were paid for.

    A copied, rolled back or wholly rewritten file cannot be detected from itself: keep published
    releases and check against them.

    Args:
        path: The ledger file.
        releases: Files of published releases, each with the receipts that it holds.

    Returns:
        The number of entries, the head of the chain, and what was checked.

    Raises:
        LedgerDamaged: The file is not a whole, unedited ledger.
        LedgerMismatch: A release is not in the ledger; the message names its file.

    """
    statement = Ledger(path).statement()
    files, receipts = [], 0
    for file, held in releases:
        files.append(str(file))
        for release in held:
            receipts += 1
            try:
                check(statement, release, Path(path))
            except LedgerMismatch as problem:
                raise LedgerMismatch(f"{file}: {problem}") from problem
    return LedgerCheck(str(path), len(statement.entries), statement.head, tuple(files), receipts)
