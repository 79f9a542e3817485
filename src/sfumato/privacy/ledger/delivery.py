"""What was paid for and is to be delivered: found, recovered, drawn again, and ticked off.

Proof that drawing again is one release: docs/proofs/ledger.md
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import (
    InvalidInput,
    InvalidParameter,
    LedgerClosed,
    LedgerDamaged,
    LedgerError,
    LedgerMismatch,
    ReleasedAlready,
)
from sfumato.privacy.accounting.codec import canonical
from sfumato.privacy.accounting.guarantee import Guarantee
from sfumato.privacy.ledger.release import Entry, Release
from sfumato.privacy.ledger.statement import LedgerStatement
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.privacy.ledger.storage import store
from sfumato.privacy.ledger.storage.store import Kept

if TYPE_CHECKING:
    from sfumato.privacy.ledger.ledger import Ledger

LONGEST_KEY = 200


def hash_of(request: Any) -> str:
    """The hash of a request, refused where JSON cannot hold it."""
    try:
        if json.loads(canonical(request)) != request:
            raise ValueError("it reads otherwise")
        return store.request_hash(request)
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidParameter(
            f"a request must read from JSON as it was written ({problem}); nothing was charged"
        ) from None


def check_once(ledger: Ledger, entry: Entry) -> None:
    """Refuse what was released once, or another request under its key; under the ledger's lock."""
    if not entry.once:
        return
    made = _once(ledger, entry.once, entry.request)
    if made is not None:
        raise ReleasedAlready(
            f"{entry.once!r} was released as entry {made.number} of {ledger.path}; nothing was charged "
            "again",
            made.number,
        )


def made_once(ledger: Ledger, key: str, request: Any) -> Entry | None:
    """The entry that was released under a key."""
    return _once(ledger, key, hash_of(request))


def _once(ledger: Ledger, key: str, request: str) -> Entry | None:
    if not (key and key.isprintable() and len(key) <= LONGEST_KEY):
        raise InvalidParameter(
            f"a key must be printable on one line, of 1 to {LONGEST_KEY} letters, got {key[:80]!r}; "
            "nothing was charged"
        )
    row = ledger.find_row(f'"once":{canonical(key)}', lambda row: row.body.get("once") == key)
    if row is None:
        return None
    made = Entry.from_json({**row.body, "hash": row.hash})
    if made.request != request:
        raise LedgerMismatch(
            f"{key!r} is the key of another request, entry {made.number} of {ledger.path}; use another key; "
            "nothing was charged"
        )
    return made


def keep(ledger: Ledger, handle: int, drawn: Release[Any], attached: Any) -> None:
    """Write values beside the ledger, and that they were drawn into it, before anybody sees them."""
    try:
        digest = store.keep(handle, drawn, attached)
    except OSError as problem:
        raise LedgerError(
            f"entry {drawn.entry.number} of {ledger.path} is charged; its values could not be kept "
            f"({problem.strerror}) and were dropped, nobody has seen them: they can be drawn again at no cost"
        ) from None
    except (TypeError, ValueError, RecursionError):
        # No file can hold them. Their caller gets them now; nobody may draw them again.
        store.file_of(ledger.path.resolve(), drawn.entry).unlink()
        digest = ""
    _note_drawn(ledger, drawn.entry.number, digest)


def undelivered(ledger: Ledger) -> tuple[Kept, ...]:
    """All that is kept beside a ledger and was paid for, but for what was delivered."""
    return tuple(one for one in all_kept(ledger) if not one.delivered)


def all_kept(ledger: Ledger) -> tuple[Kept, ...]:
    """All that is kept beside a ledger and was paid for; what never was is removed."""
    if ledger.header.rehearsal:
        return ()
    real = ledger.path.resolve()
    found, unpaid = [], []
    for file in store.files(real):
        one = store.kept(file)
        if one is not None and one.ledger != ledger.header.id:
            continue  # of a ledger that was here before this one, and may come back
        if one is not None and _paid_for(ledger, one.entry):
            found.append(one)
        elif (
            one is None or not one.drawn
        ):  # what was drawn was paid for: the ledger is an older one
            unpaid.append(file)
    if unpaid:
        with suppress(LedgerError), ledger.held(anywhere=True):
            for file in unpaid:
                forget_unpaid(ledger, file)  # which looks again: it may be paid for by now
    return tuple(found)


def standing(ledger: Ledger) -> tuple[Kept, ...]:
    """What was paid for and not delivered, without a look into all that was: fast, and nothing is removed."""
    if ledger.header.rehearsal:
        return ()
    left = [file for file in store.files(ledger.path.resolve()) if not store.is_delivered(file)]
    found = (one for one in map(store.kept, left) if one is not None)
    return tuple(
        one
        for one in found
        if one.ledger == ledger.header.id and not one.delivered and _paid_for(ledger, one.entry)
    )


def forget_unpaid(ledger: Ledger, file: Path) -> None:
    """Remove what was asked if the charge failed; it stays if that may stand."""
    one = store.kept(file)
    if one is None or not (one.drawn or _paid_for(ledger, one.entry)):
        store.forget(file)


def kept(ledger: Ledger, number: int) -> tuple[Kept, Path]:
    """What is kept of one entry, and where."""
    for file in store.files(ledger.path.resolve()):
        if int(file.name.split("-")[0]) == number:
            one = store.kept(file)
            if one is not None and _paid_for(ledger, one.entry):
                return one, file
    raise InvalidInput(
        f"nothing of entry {number} is kept beside {ledger.path}: it was delivered, or released without "
        "being kept"
    )


def recover(ledger: Ledger, number: int) -> Release[Any]:
    """The values that were drawn."""
    one, file = kept(ledger, number)
    if not one.drawn:
        raise InvalidInput(
            f"entry {number} of {ledger.path} was paid for and never drawn; draw it again from the data"
        )
    found, digest = store.values(file)
    if found.entry != one.entry or found.ledger != ledger.header.id:
        raise LedgerDamaged(f"{file} holds the values of another entry; nothing was recovered")
    if not _noted_drawn(ledger, number):  # whoever drew them died before, or found the ledger busy
        _note_drawn(ledger, number, digest)
    return found


def take_over(
    ledger: Ledger, number: int, asked: Entry, *, repeats: bool = False
) -> tuple[Entry, int]:
    """An entry whose values may be drawn again by what is asked, and the file that they go to, locked.

    `repeats` says that the noise sends again what it has sent to other parties, number for number.
    """
    one, file = kept(ledger, number)
    paid = one.entry
    if ledger.header.model not in ("central", "local") and not repeats:
        raise LedgerMismatch(
            f"entry {number} of {ledger.path} was to be drawn by several parties, and the others may have seen "
            "what was opened before this one stopped; release anew; nothing was drawn again"
        )
    for name in ("mechanism", "computational", "clock", "periods", "table", "bound"):
        if getattr(paid, name) != getattr(asked, name):
            raise another(ledger, paid, name)
    if canonical(paid.parameters) != canonical(asked.parameters):
        raise another(ledger, paid, "parameters")
    if paid.request != hash_of(one.request):
        raise another(ledger, paid, "request")
    # Under the ledger's lock, and where it was last charged: a copy draws nothing.
    with ledger.locked() as (_, now):
        if now.closed is not None and now.closed.successor:
            raise LedgerClosed(
                f"{ledger.path} is {now.closed.successor} now; nothing was drawn again"
            )
        if _noted_drawn(ledger, number):
            raise LedgerMismatch(
                f"the values of entry {number} of {ledger.path} were drawn, and may have been seen: "
                f"{file} is older; nothing was drawn again"
            )
        handle = store.take_over(file)
    return paid, handle


def another(ledger: Ledger, paid: Entry, what: str) -> LedgerMismatch:
    """The refusal to draw what an entry did not pay for."""
    return LedgerMismatch(
        f"entry {paid.number} of {ledger.path} paid for another {what}; nothing was drawn again"
    )


def delivered(ledger: Ledger, number: int, *, remove: bool = True) -> None:
    """Tick an entry off: what has a key stays, to be handed out again."""
    one, file = kept(ledger, number)
    if not one.drawn:
        raise InvalidInput(f"entry {number} of {ledger.path} was never drawn, so not delivered")
    store.deliver(file, remove=remove and not one.entry.once)


def give_up(ledger: Ledger, number: int) -> None:
    """Remove what was asked of an entry that was never drawn: it stays charged, and is not released."""
    one, file = kept(ledger, number)
    if one.drawn or one.alive:
        raise InvalidInput(f"entry {number} of {ledger.path} was drawn; nothing was given up")
    with ledger.locked():
        store.forget(file)


def check(now: LedgerStatement, release: Release[Any], path: Path) -> None:
    """Refuse a release that a ledger did not pay for as it says."""
    header, promised = now.header, release.guarantee
    if release.ledger != header.id:
        raise LedgerMismatch(f"the release is of ledger {release.ledger}, {path} is {header.id}")
    number = release.entry.number
    paid = now.entries[number - 1] if 0 < number <= len(now.entries) else None
    if paid is None:
        raise LedgerMismatch(f"entry {number} of the release is missing in {path}")
    if paid != release.entry:
        raise LedgerMismatch(f"entry {paid.number} in {path} differs from the one of the release")
    if promised != Guarantee(
        paid.cost, header.neighbors, header.unit, header.model, paid.computational
    ):
        raise LedgerMismatch(
            f"the release promises '{promised}', but entry {paid.number} paid for {paid.cost}"
        )
    if release.rehearsal != header.rehearsal:
        raise LedgerMismatch(f"the release hides that {path} is, or is not, a rehearsal")


def _note_drawn(ledger: Ledger, number: int, digest: str) -> None:
    """Say in the ledger that values were drawn, so that a file from before does not have them drawn again.

    They are kept, and handed out, also where a busy ledger does not take the row.
    """
    with suppress(LedgerError), ledger.locked() as (book, _):
        ledger_file.append(book, {"kind": "drawn", "number": number, "sha256": digest})


def _noted_drawn(ledger: Ledger, number: int) -> bool:
    row = f'"kind":"drawn","number":{number},'
    return ledger.find_row(row, lambda row: row.kind == "drawn") is not None


def _paid_for(ledger: Ledger, entry: Entry) -> bool:
    return ledger.find_row(entry.hash, lambda row: row.hash == entry.hash) is not None
