"""Files that a ledger and what lies beside it are: opened under their one name, locked, written, waited for."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path

from sfumato.errors import InvalidInput, LedgerBusy, LedgerDamaged, LedgerError
from sfumato.files import drafts_beside
from sfumato.privacy.ledger.storage.rows import Place, place_of

BUSY_SECONDS = 10.0
PAUSE = 0.005
LOOKS = 40  # how often a lock is tried that somebody may hold who only looks whether it is held


def real_path(path: Path) -> Path:
    """Where the file itself is, symbolic links followed: what is written beside it is found by all names."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder, not a ledger")
    if not path.is_file():
        near = _near(path)
        raise InvalidInput(
            f"there is no ledger at {path}; "
            + (f"did you mean {near}? else " if near is not None else "")
            + f"make one with `Ledger.create({str(path)!r}, 1, unit='user', source='NAME')`"
        )
    return path.resolve()


def _near(path: Path) -> Path | None:
    """A ledger beside a path that has nearly its name."""
    with suppress(OSError):
        beside = {one.stem: one for one in sorted(path.parent.glob("*.ledger")) if one.is_file()}
        for stem in get_close_matches(path.stem, beside, n=1, cutoff=0.75):
            return path.with_name(beside[stem].name)
    return None


def open_file(real: Path, mode: int, path: Path) -> int:
    """The open file that is at a path now, if it has that name only."""
    while True:
        handle = os.open(real, mode | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            names = os.fstat(handle).st_nlink
            if names > 1:
                for kind in (".new", ".move"):  # of whoever died after it had got its name
                    forget_drafts(real, kind, of=handle)
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


def held(real: Path, path: Path) -> int:
    """The file at a path, open and locked: nobody else charges it before it is let go."""
    import fcntl  # where there is none, everything but a charge works

    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        handle = open_file(real, os.O_RDWR, path)
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


def taken(handle: int) -> bool:
    """Lock an open file, unless somebody works at it; who only looks at the lock has it for a moment."""
    import fcntl

    for look in range(LOOKS):
        if look:
            time.sleep(PAUSE)
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


def is_locked(path: Path) -> bool:
    """Whether somebody works at a file just now; FileNotFoundError where it is gone."""
    import fcntl

    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        # Shared, so that two who look do not take each other for somebody at work.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def let_go(handle: int) -> None:
    """Give a lock back."""
    import fcntl

    fcntl.flock(
        handle, fcntl.LOCK_UN
    )  # said aloud: a child that was forked meanwhile has the file open too
    os.close(handle)


def read_from(handle: int, at: int) -> bytes:
    """All bytes of an open file from an offset on."""
    parts = []
    while part := os.pread(handle, 1 << 24, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def put(handle: int, data: bytes, at: int) -> None:
    """Write all of these bytes at an offset."""
    view = memoryview(data)
    while view:
        done = os.pwrite(handle, view, at)
        view, at = view[done:], at + done


def write_new(
    draft: Path, content: Callable[[Place], bytes], *, of: Path, like: Path | None = None
) -> None:
    """A new file for a place, on the disk; with the owner and the rights of another one if given."""
    handle = os.open(
        draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
    )
    with open(handle, "wb") as file:
        where = of.parent.resolve() / of.name
        file.write(content(place_of(where, os.fstat(handle))))
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


def forget_drafts(real: Path, kind: str, *, of: int | None = None) -> None:
    """Remove what processes that were killed left beside a ledger; all of it, or other names `of` a file."""
    with suppress(OSError):
        for draft in drafts_beside(real, kind):
            if of is None or os.path.samestat(os.stat(draft, follow_symlinks=False), os.fstat(of)):
                draft.unlink()


def _sqlite_error() -> type[Exception]:
    """What SQLite raises; it is read when something was raised, a device with files of today never does."""
    import sqlite3

    return sqlite3.Error


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Errors of SQLite and the system in our words: what happened, what was not done, what to do."""
    try:
        yield
    except (_sqlite_error(), UnicodeDecodeError) as problem:  # the second: a schema that is no text
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
