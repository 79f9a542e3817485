"""Ledgers of format 1, to read and to convert: a SQLite file of (number, body, hash).

Each charge replaced it whole. Row 0 is the header. The first versions wrote in place, so a journal
may lie beside one.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import LedgerDamaged
from sfumato.privacy.ledger.storage.rows import GENESIS, Row, link

if TYPE_CHECKING:
    import sqlite3

MAGIC = b"SQLite format 3\0"
APPLICATION = 0x53464D54  # "SFMT", so that `file` and we know the format
HOT = bytes.fromhex("d9d505f920a163d7")  # how a journal of SQLite begins that is to be rolled back


def rows(content: bytes, name: str) -> list[Row]:
    """All rows of a file, header first, or LedgerDamaged that names the first bad entry."""
    with closing(_loaded(content, name)) as connection:
        return _rows(connection, name)


def _rows(connection: sqlite3.Connection, name: str) -> list[Row]:
    found: list[Row] = []
    previous = GENESIS[1]
    for expected, (number, body, head) in enumerate(
        connection.execute("SELECT number, body, hash FROM chain ORDER BY number")
    ):
        what = "the header" if expected == 0 else f"entry {expected}"
        if number != expected:
            raise LedgerDamaged(f"{name} is damaged: {what} is missing")
        if link(previous, body) != head:
            raise LedgerDamaged(f"{name} is damaged: {what} was edited, or one before it")
        try:
            found.append(Row(dict(json.loads(body)), head, 0, body))
        except (ValueError, TypeError):
            raise LedgerDamaged(f"{name} is damaged: {what} cannot be read") from None
        previous = head
    if not found:
        raise LedgerDamaged(f"{name} is damaged: it has no header")
    # One flipped bit in a page's count of rows hides the last ones, and a chain cannot miss its own
    # tail.
    problem = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if problem != "ok":
        raise LedgerDamaged(f"{name} is damaged: {problem.splitlines()[-1]}")
    return found


def _loaded(content: bytes, name: str) -> sqlite3.Connection:
    import sqlite3

    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        if content:  # nothing at all would be a MemoryError
            connection.deserialize(content)
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise LedgerDamaged(f"{name} is not a sfumato ledger")
    except BaseException:
        connection.close()
        raise
    return connection


def is_hot(real: Path) -> bool:
    """Whether a journal lies there: earlier versions wrote in place, and a crash left one."""
    try:
        with Path(f"{real}-journal").open("rb") as file:
            return file.read(len(HOT)) == HOT
    except OSError:
        return False


def is_whole(content: bytes, name: str) -> bool:
    """Whether a file needs no journal to be read."""
    import sqlite3

    try:
        rows(content, name)
    except (LedgerDamaged, sqlite3.Error, UnicodeDecodeError):
        return False
    return True


def settled(real: Path, content: bytes, name: str) -> bytes:
    """What a file holds for good, if an earlier version was killed inside a commit; under its lock.

    A whole chain is kept with all its charges, whatever a journal says: it may be older than some
    of them, made under another name. Nobody charges a file that is torn, so nothing is lost when
    that is rolled back.
    """
    if not is_hot(real):
        return content
    import sqlite3

    if not is_whole(content, name):
        with closing(sqlite3.connect(f"{real.as_uri()}?mode=rw", uri=True)) as connection:
            connection.execute("PRAGMA schema_version").fetchone()
        return real.read_bytes()
    Path(f"{real}-journal").unlink()
    return content
