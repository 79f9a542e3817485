"""Charge an entry: look, refuse or append, under the lock; what is asked is kept before it is paid."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato.errors import BudgetExceeded, LedgerError, NotComparable
from sfumato.privacy.ledger import delivery, entries, terms
from sfumato.privacy.ledger.release import Entry
from sfumato.privacy.ledger.statement import timestamp
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.privacy.ledger.storage import store
from sfumato.privacy.ledger.storage.rows import Row

if TYPE_CHECKING:
    from sfumato.privacy.ledger.ledger import Ledger


def charge_entry(
    ledger: Ledger, entry: Entry, *, request: Any = None, other_table: bool = False
) -> tuple[Entry, int]:
    """The entry as it was paid, and the handle of what is kept beside the ledger, -1 if nothing is."""
    handle, file, path = -1, None, ledger.path
    try:
        with ledger.locked() as (book, now):
            terms.check_open(now, path)
            terms.check_clock(now, entry.clock, path)
            terms.check_table(now, entry.table, path, other=other_table)
            delivery.check_once(ledger, entry)
            try:
                changes = now.accounts.after(
                    entry.cost, team=terms.payer(now, entry.team, path), periods=entry.periods
                )
            except (BudgetExceeded, NotComparable) as refusal:
                raise type(refusal)(f"{refusal} in {path}; nothing was released") from None
            opened = now.sizes_to_write(now.accounts.opened(changes))
            entry = replace(entry, number=now.entries + 1, time=timestamp(), **opened)
            kept = entries.appended(book, entry)
            now.take(Row(json.loads(book.pending[-1][0]), kept.hash, 0, ""))
            if any(now.accounts.of(*key) != spent for key, spent in changes.items()):
                raise entries.otherwise("its cost would be another")
            if book.checkpoint_due:
                ledger_file.append(book, now.checkpoint(kept.hash))
            if request is not None and not ledger.header.rehearsal:
                real = path.resolve()
                file = store.file_of(real, kept)
                handle = store.ask(real, ledger.header.id, kept, request)
    except BaseException:
        if file is not None:
            if handle >= 0:
                os.close(handle)
            with suppress(LedgerError, OSError):
                delivery.forget_unpaid(ledger, file)
        raise
    return kept, handle
