"""One process at a time carries out a request: a lock beside the ledger, held as long as it lives."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.errors import LedgerBusy
from sfumato.privacy.ledger.ledger import Ledger
from sfumato.privacy.ledger.storage import store
from sfumato.privacy.ledger.storage.disk import is_locked, reported, taken


@contextmanager
def alone(ledger: Ledger, run: str) -> Iterator[None]:
    """Hold the lock of a run; LedgerBusy where another process carries it out."""
    if ledger.header.rehearsal:
        yield
        return
    path = _file(ledger, run)
    with reported(ledger.path):
        found = path.parent.is_dir()
        handle = _held(ledger, path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
        if not found:
            # It goes only if nothing is kept in it, and nobody else is at work there.
            with suppress(OSError):
                path.parent.rmdir()


def is_taken(ledger: Ledger, run: str) -> bool:
    """Whether some process carries out a run just now."""
    try:
        return is_locked(_file(ledger, run))
    except FileNotFoundError:
        return False


def tidy(ledger: Ledger) -> None:
    """Remove locks that processes killed by force have left."""
    import fcntl

    if ledger.header.rehearsal:
        return
    for path in store.folder_of(ledger.path.resolve()).glob("run-*.lock"):
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                # Held while the file goes: whoever comes now finds that it locks nothing.
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(handle)


def _held(ledger: Ledger, path: Path) -> int:
    while True:
        handle = store.opened_in(ledger.path.resolve(), path, os.O_RDONLY)
        try:
            if not taken(handle):
                raise LedgerBusy(
                    f"another process is at the same request to {ledger.path}; nothing was charged or "
                    "released, try later"
                )
            # Whoever held it takes the file away at the end: then this one locks nothing.
            if os.fstat(handle).st_nlink:
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _file(ledger: Ledger, run: str) -> Path:
    name = hashlib.sha256(run.encode()).hexdigest()[:16]
    return store.folder_of(ledger.path.resolve()) / f"run-{name}.lock"
