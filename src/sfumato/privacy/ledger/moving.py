"""Close a ledger, or move it with what lies beside it, so that no copy spends by mistake."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import ExistsAlready, InvalidInput, InvalidParameter, LedgerBusy, LedgerError
from sfumato.files import sync_folder, write_file
from sfumato.privacy.ledger import terms
from sfumato.privacy.ledger.statement import Closed, timestamp
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.privacy.ledger.storage import store

if TYPE_CHECKING:
    from sfumato.privacy.ledger.ledger import Ledger


def close(ledger: Ledger, note: str) -> None:
    """End a ledger."""
    if not note.isprintable():
        raise InvalidParameter("a note must be printable on one line; nothing was closed")
    with ledger.locked() as (book, now):
        terms.check_open(now, ledger.path)
        ledger_file.append(book, Closed(timestamp(), note).to_json())


def move(ledger: Ledger, to: Path | None) -> Ledger:
    """The ledger at its new place."""
    if ledger.header.rehearsal:
        raise InvalidParameter("a rehearsal is no file; nothing was moved")
    if to is None:
        return _here(ledger)
    if not to.parent.is_dir():
        raise InvalidInput(f"there is no folder {to.parent}; nothing was moved")
    new = to.parent.resolve() / to.name
    real = ledger.path.resolve()
    with ledger.held() as (held, now):
        gone = now.closed
        if gone is not None and gone.successor == str(new) and (new.parent / gone.draft).exists():
            draft = new.parent / gone.draft  # a move that was interrupted
        else:
            terms.check_open(now, ledger.path)
            if new.exists() or new.is_symlink():
                raise ExistsAlready(f"{to} exists already and is kept; nothing was moved")
            if any(real.with_name(f"{real.name}.joint").glob("*/*.round")):
                raise LedgerBusy(
                    f"{ledger.path} has receipts of a joint session that is not over: go on with it, or "
                    "begin anew; nothing was moved"
                )
            _copy_store(real, new)
            row = {"kind": "moved", "time": timestamp(), "from": str(real), "to": str(new)}
            draft = ledger_file.moved_file(held, real, new, row)
            closed = Closed(timestamp(), "moved", str(new), draft.name)
            ledger_file.append(held.book, closed.to_json())
    try:
        ledger_file.name_moved(draft, new)
    except OSError as problem:
        raise LedgerError(
            f"{ledger.path} is closed and {to} not made yet ({problem.strerror}); say it again: "
            f"sfumato ledger move {ledger.path} {to}"
        ) from None
    for file in store.files(real):
        file.unlink(missing_ok=True)
    return type(ledger)(to)


def _here(ledger: Ledger) -> Ledger:
    """Say that the file at this place is the ledger now."""
    with ledger.held(anywhere=True) as (held, now):
        terms.check_open(now, ledger.path)
        was, here = held.slot.place, held.place
        if was != here:
            row = {"kind": "moved", "time": timestamp(), "from": was.name, "to": here.name}
            ledger_file.append(held.book, row)
    return ledger


def _copy_store(real: Path, new: Path) -> None:
    """What lies beside a ledger, beside its new place too; refused while somebody draws."""
    kept = [(file, store.kept(file)) for file in store.files(real)]
    for file, one in kept:
        if one is not None and one.alive:
            raise LedgerBusy(f"{file.name} is being drawn; nothing was moved, try later")
    target = store.folder_of(new)
    if kept and not target.is_dir():
        target.mkdir(mode=store.folder_of(real).stat().st_mode & 0o777)
        sync_folder(target.parent)
    for file, one in kept:
        if one is not None:
            write_file(target / file.name, file.read_bytes(), overwrite=True)
            os.chmod(target / file.name, file.stat().st_mode & 0o777)
