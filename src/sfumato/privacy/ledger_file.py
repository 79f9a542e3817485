"""A ledger on disk: one SQLite file, a header and hash-chained entries that are only ever appended.

A row is (number, body, hash): body is canonical JSON, hash = SHA-256(hash of the row before, newline, body).
Row 0 is the header. So any edited, removed or reordered row breaks the chain from there on. A copied,
tail-truncated or wholly rewritten file cannot be told from itself: docs/threat-model.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, LedgerBusy, LedgerDamaged, LedgerError
from sfumato.privacy.codec import canonical

BUSY_SECONDS = 10.0
APPLICATION = 0x53464D54  # "SFMT", so that `file` and we know the format
GENESIS = "sfumato-ledger/1"

SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
CREATE TABLE chain (number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE TRIGGER no_edit BEFORE UPDATE ON chain
    BEGIN SELECT RAISE(ABORT, 'a ledger is only appended to'); END;
CREATE TRIGGER no_removal BEFORE DELETE ON chain
    BEGIN SELECT RAISE(ABORT, 'a ledger is only appended to'); END;
"""


def link(previous: str, body: str) -> str:
    """The hash of a row, which covers every row before it."""
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def create(path: Path, header: dict[str, Any]) -> None:
    """Make a new ledger file, whole or not at all; an existing file is never touched."""
    if not path.name:
        raise InvalidInput(f"{path} is a folder, not a name for a ledger; nothing was made")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}; nothing was made")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        with _reported(path):
            connection = sqlite3.connect(draft, isolation_level=None)
            try:
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.executescript(SCHEMA)
                append(connection, 0, header, GENESIS)
            finally:
                connection.close()
        # A hard link appears at once and refuses to replace: two creators cannot both succeed.
        os.link(draft, path)
        sync_folder(path.parent)
    except FileExistsError:
        raise InvalidInput(
            f"{path} exists already and is kept as it is; open it, or choose another name"
        ) from None
    except OSError as problem:
        raise LedgerError(f"cannot create {path}: {problem.strerror}") from None
    finally:
        with suppress(OSError):
            draft.unlink()


@contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for one piece of work; waits up to BUSY_SECONDS for others, writes through to the disk."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder, not a ledger")
    if not path.is_file():
        raise InvalidInput(
            f"there is no ledger at {path}; make one with: "
            f"sfumato ledger create {path} --epsilon 1 --unit user --source NAME, "
            "for sensors with: sfumato sense ledger"
        )
    with _reported(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=BUSY_SECONDS
        )
        try:
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
                raise LedgerDamaged(f"{path} is not a sfumato ledger")
            # EXTRA: the commit returns when the entry, and the removal of its journal, are on the disk.
            connection.execute("PRAGMA synchronous = EXTRA")
            yield connection
        finally:
            connection.close()


@contextmanager
def locked(connection: sqlite3.Connection) -> Iterator[None]:
    """One writer at a time; on any error, nothing was written."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def append(connection: sqlite3.Connection, number: int, body: dict[str, Any], previous: str) -> str:
    """Write the next row; returns its hash, the new head."""
    text = canonical(body)
    head = link(previous, text)
    connection.execute("INSERT INTO chain VALUES (?, ?, ?)", (number, text, head))
    return head


def rows(connection: sqlite3.Connection, name: str) -> list[tuple[dict[str, Any], str]]:
    """All bodies with their hashes, header first, or LedgerDamaged that names the first bad entry."""
    found: list[tuple[dict[str, Any], str]] = []
    previous = GENESIS
    for expected, (number, body, head) in enumerate(
        connection.execute("SELECT number, body, hash FROM chain ORDER BY number")
    ):
        what = "the header" if expected == 0 else f"entry {expected}"
        if number != expected:
            raise LedgerDamaged(f"{name} is damaged: {what} is missing")
        if link(previous, body) != head:
            raise LedgerDamaged(f"{name} is damaged: {what} was edited, or one before it")
        try:
            found.append((json.loads(body), head))
        except ValueError:
            raise LedgerDamaged(f"{name} is damaged: {what} cannot be read") from None
        previous = head
    if not found:
        raise LedgerDamaged(f"{name} is damaged: it has no header")
    # One flipped bit in a page's count of rows hides the last ones, and a chain cannot miss its own tail.
    problem = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if problem != "ok":
        raise LedgerDamaged(f"{name} is damaged: {problem.splitlines()[-1]}")
    return found


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """SQLite's errors in our words: what happened, what was not done, what to do."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as problem:  # the second from a schema that is no text
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LedgerBusy(
                f"{path} was held by another process for {BUSY_SECONDS:g} s; "
                "nothing was charged or released, try again"
            ) from None
        if code == sqlite3.SQLITE_FULL:
            raise LedgerError(
                f"no room to write {path}: nothing was charged or released; free some space"
            ) from None
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            raise LedgerError(f"cannot write {path} or its folder: nothing was charged or released") from None
        if code == sqlite3.SQLITE_IOERR:
            raise LedgerError(
                f"the disk failed while writing {path} ({problem}): nothing was released; see with "
                f"'sfumato ledger show {path}' whether the charge stands"
            ) from None
        raise LedgerDamaged(
            f"{path} is damaged or not a ledger ({problem}): nothing was charged or released; "
            "restore a backup that 'sfumato ledger verify --against' accepts for every published release"
        ) from None


def sync_folder(folder: Path) -> None:
    """Wait until the disk holds the names in a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
