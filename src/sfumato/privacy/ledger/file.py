"""A ledger on disk: one SQLite file, a header and hash-chained entries that are only ever appended.

A row is (number, body, hash): body is canonical JSON, hash = SHA-256(hash of the row before,
newline, body). Row 0 is the header. So any edited, removed or reordered row breaks the chain from
there on. A copied, tail-truncated or wholly rewritten file cannot be told from itself:
docs/threat-model.md.

SQLite reads and writes copies in memory only. A charge puts a whole new file in the place of the
old one, which is there or not. So there is no journal that lies under one name of a file and is
missed under another.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, LedgerBusy, LedgerDamaged, LedgerError
from sfumato.files import draft_beside, drafts_beside, sync_folder
from sfumato.privacy.accounting.codec import canonical

BUSY_SECONDS = 10.0
PAUSE = 0.005
APPLICATION = 0x53464D54  # "SFMT", so that `file` and we know the format
GENESIS = "sfumato-ledger/1"
HOT = bytes.fromhex("d9d505f920a163d7")  # how a journal of SQLite begins that is to be rolled back

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


def in_memory(header: dict[str, Any]) -> sqlite3.Connection:
    """A new ledger that is no file yet, or never will be."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.executescript(SCHEMA)
    append(connection, 0, header, GENESIS)
    return connection


def create(path: Path, header: dict[str, Any]) -> None:
    """Make a new ledger file, whole or not at all; an existing file is never touched."""
    if not path.name:
        raise InvalidInput(f"{path} is a folder, not a name for a ledger; nothing was made")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}; nothing was made")
    with closing(in_memory(header)) as connection:
        whole = connection.serialize()
    try:
        with draft_beside(path, ".new") as draft:
            _write(draft, whole)
            # A hard link appears at once and refuses to replace: two creators cannot both succeed.
            os.link(draft, path)
            sync_folder(path.parent)
    except FileExistsError:
        raise InvalidInput(
            f"{path} exists already and is kept as it is; open it, or choose another name"
        ) from None
    except OSError as problem:
        raise LedgerError(f"cannot create {path}: {problem.strerror}") from None


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy in memory of a ledger as it is now, to read."""
    with _reported(path):
        real = _real(path)
        handle = _handle(real, os.O_RDONLY, path)
        try:
            content = _content(handle)
        finally:
            os.close(handle)
        if _hot(real) and not _is_whole(content, path):
            with locked(path):  # which rolls it back
                content = real.read_bytes()
        with closing(_loaded(content, path)) as connection:
            yield connection


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """One writer at a time: a copy in memory to append to, which becomes the file when this ends.

    It waits up to BUSY_SECONDS for others, and until the disk has it. On any error, nothing was
    written.
    """
    with _reported(path):
        real = _real(path)
        handle = _held(real, path)
        try:
            content = _settled(real, _content(handle), path)
            with closing(_loaded(content, path)) as connection:
                yield connection
                whole = connection.serialize()
            if whole != content:
                _replace(real, whole, path)
        finally:
            _let_go(handle)


@contextmanager
def unlocked(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """The same for a ledger that is no file: on any error, nothing was written."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
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


def row(connection: sqlite3.Connection, number: int) -> tuple[str, str]:
    """The body and the hash of one row, as they are stored."""
    body, head = connection.execute(
        "SELECT body, hash FROM chain WHERE number = ?", (number,)
    ).fetchone()
    return str(body), str(head)


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
    # One flipped bit in a page's count of rows hides the last ones, and a chain cannot miss its own
    # tail.
    problem = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if problem != "ok":
        raise LedgerDamaged(f"{name} is damaged: {problem.splitlines()[-1]}")
    return found


def _real(path: Path) -> Path:
    """Where the file itself is, symbolic links followed: what is written beside it is found by all names."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder, not a ledger")
    if not path.is_file():
        raise InvalidInput(
            f"there is no ledger at {path}; make one with: "
            f"sfumato ledger create {path} --epsilon 1 --unit user --source NAME, "
            "for sensors with: sfumato sense ledger"
        )
    return path.resolve()


def _handle(real: Path, mode: int, path: Path) -> int:
    """The open file that is at a path now, if it has that name only."""
    while True:
        handle = os.open(real, mode | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            names = os.fstat(handle).st_nlink
            if names > 1:
                _forget_drafts(real, ".new", of=handle)
                names = os.fstat(handle).st_nlink
            if names == 1:
                return handle
            if names > 1:
                raise LedgerError(
                    f"{path} is one file under {names} names (hard links), and a charge under one of them "
                    "would be missing under the others; remove them; nothing was charged or released"
                )
            if os.path.samestat(os.stat(real, follow_symlinks=False), os.fstat(handle)):
                raise LedgerError(
                    f"{path} is mounted from a file that was replaced since, by a charge under its own name; "
                    "mount its folder instead; nothing was charged or released"
                )
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # replaced by a charge just now: the next try finds the new one


def _held(real: Path, path: Path) -> int:
    """The file at a path, open and locked: nobody else charges it before it is let go."""
    import fcntl  # where there is none, everything but a charge works

    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        handle = _handle(real, os.O_RDWR, path)
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise LedgerBusy(
                            f"{path} was held by another process for {BUSY_SECONDS:g} s; "
                            "nothing was charged or released, try again"
                        ) from None
                    time.sleep(PAUSE)
            # Whoever held it may have put another file in its place; this one stays open, so that
            # no other file can have its number. And it may have got another name meanwhile.
            found = os.fstat(handle)
            if found.st_nlink == 1 and os.path.samestat(
                os.stat(real, follow_symlinks=False), found
            ):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _let_go(handle: int) -> None:
    import fcntl

    fcntl.flock(
        handle, fcntl.LOCK_UN
    )  # said aloud: a child that was forked meanwhile has the file open too
    os.close(handle)


def _content(handle: int) -> bytes:
    with open(handle, "rb", closefd=False) as file:
        file.seek(0)
        return file.read()


def _loaded(content: bytes, path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        if content:  # nothing at all would be a MemoryError
            connection.deserialize(content)
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise LedgerDamaged(f"{path} is not a sfumato ledger")
    except BaseException:
        connection.close()
        raise
    return connection


def _replace(real: Path, content: bytes, path: Path) -> None:
    """Put a whole new file in the place of the old one; until it is there, nothing has happened."""
    _forget_drafts(real, ".next")
    try:
        with draft_beside(real, ".next") as draft:
            _write(draft, content, like=real)
            os.replace(draft, real)
    except OSError as problem:
        if problem.errno in (errno.EBUSY, errno.EXDEV):
            raise LedgerError(
                f"{path} is a mount of a single file, which cannot be replaced; mount its folder instead; "
                "nothing was charged or released"
            ) from None
        raise
    try:
        sync_folder(real.parent)
    except OSError as problem:
        raise LedgerError(
            f"the disk failed while writing {path} ({problem.strerror}): nothing was released; see with "
            f"'sfumato ledger show {path}' whether the charge stands"
        ) from None


def _write(draft: Path, content: bytes, *, like: Path | None = None) -> None:
    """A new file with this content, on the disk; with the owner and the rights of another one if given."""
    handle = os.open(
        draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
    )
    with open(handle, "wb") as file:
        file.write(content)
        file.flush()
        if like is not None:
            found = like.stat()
            for owner in (
                found.st_uid,
                -1,
            ):  # only root gives files away; the group stays where it can
                with suppress(PermissionError):
                    os.chown(draft, owner, found.st_gid)
                    break
            shutil.copystat(like, draft)
            os.utime(draft)  # backups look at the time, and the size is often the same
        os.fsync(handle)


def _forget_drafts(real: Path, kind: str, *, of: int | None = None) -> None:
    """Remove what processes that were killed left beside a ledger; all of it, or other names `of` a file."""
    with suppress(OSError):
        for draft in drafts_beside(real, kind):
            if of is None or os.path.samestat(os.stat(draft, follow_symlinks=False), os.fstat(of)):
                draft.unlink()


def _hot(real: Path) -> bool:
    """Whether a journal lies there: earlier versions wrote in place, and a crash left one."""
    try:
        with Path(f"{real}-journal").open("rb") as file:
            return file.read(len(HOT)) == HOT
    except OSError:
        return False


def _is_whole(content: bytes, path: Path) -> bool:
    try:
        with closing(_loaded(content, path)) as connection:
            rows(connection, str(path))
    except (LedgerDamaged, sqlite3.Error, UnicodeDecodeError):
        return False
    return True


def _settled(real: Path, content: bytes, path: Path) -> bytes:
    """What a file holds for good, if an earlier version was killed inside a commit.

    A whole chain is kept with all its charges, whatever a journal says: it may be older than some
    of them, made under another name. Nobody charges a file that is torn, so nothing is lost when
    that is rolled back.
    """
    if not _hot(real):
        return content
    if not _is_whole(content, path):
        with closing(sqlite3.connect(f"{real.as_uri()}?mode=rw", uri=True)) as connection:
            connection.execute("PRAGMA schema_version").fetchone()
        return real.read_bytes()
    Path(f"{real}-journal").unlink()
    return content


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Errors of SQLite and the system in our words: what happened, what was not done, what to do."""
    try:
        yield
    except (
        sqlite3.Error,
        UnicodeDecodeError,
    ) as problem:  # the second from a schema that is no text
        raise LedgerDamaged(
            f"{path} is damaged or not a ledger ({problem}): nothing was charged or released; "
            "restore a backup that 'sfumato ledger verify --against' accepts for every published release"
        ) from None
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise LedgerError(
                f"no room to write {path}: nothing was charged or released; free some space"
            ) from None
        if problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise LedgerError(
                f"cannot read or write {path} or its folder: nothing was charged or released"
            ) from None
        raise LedgerError(
            f"cannot read or write {path} ({problem.strerror}): nothing was charged or released"
        ) from None
