"""A ledger on disk: a text file that is appended to, under a lock, and waits for the disk.

The bytes are those of `rows`. A charge reads the header, the last checkpoint and what follows; it
writes rows, waits for the disk, writes a slot that says how long the file is now, and waits again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.errors import ExistsAlready, InvalidInput, LedgerDamaged, LedgerError, LedgerMismatch
from sfumato.files import draft_beside, sync_folder
from sfumato.privacy.accounting.codec import canonical
from sfumato.privacy.ledger.storage import format1
from sfumato.privacy.ledger.storage.disk import (
    forget_drafts,
    held,
    let_go,
    open_file,
    put,
    read_from,
    real_path,
    reported,
    write_new,
)
from sfumato.privacy.ledger.storage.rows import (
    GENESIS,
    START,
    Place,
    Row,
    Slot,
    line,
    link,
    newest_slot,
    place_of,
    read_rows,
    whole_file,
)

SPACING = 16 * 1024  # bytes of rows between two checkpoints, at least
AHEAD = 8 * 1024  # a header fits, as a rule


@dataclass(slots=True)
class Book:
    """A ledger that is open: its header, its rows from the last checkpoint on, and rows to be written."""

    name: str
    first: Row
    rows: list[Row]
    head: str
    end: int = 0
    format: int = 2
    pending: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)

    @property
    def checkpoint_due(self) -> bool:
        """Whether the rows since the last checkpoint are longer than it, and long enough."""
        since = sum(len(text) for text, _, _ in self.pending)
        for row in reversed(self.rows):
            if row.kind == "checkpoint":
                return since >= max(SPACING, len(row.text))
            since += len(row.text)
        return since >= SPACING


@dataclass(frozen=True, slots=True)
class Held:
    """A book that this process alone writes to: its open file, how far that reached, and where it is."""

    book: Book
    handle: int
    slot: Slot
    place: Place


def new_book(header: dict[str, Any]) -> Book:
    """A new ledger that is no file: its rows are written to itself."""
    text = canonical(header)
    head = link(GENESIS[2], text)
    return Book("rehearsal", Row(header, head, 0, text), [], head)


def append(book: Book, body: dict[str, Any]) -> str:
    """Add a row, to be written when the lock is given back; returns its hash, the new head."""
    text = canonical(body)
    book.head = link(book.head, text)
    book.pending.append((text, body, book.head))
    return book.head


def create(path: Path, header: dict[str, Any]) -> None:
    """Make a new ledger file, whole or not at all; an existing file is never touched."""
    if not path.name:
        raise InvalidInput(f"{path} is a folder, not a name for a ledger; nothing was made")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}; nothing was made")
    first = new_book(header).first
    try:
        with draft_beside(path, ".new") as draft:
            write_new(draft, lambda place: whole_file([(first.hash, first.text)], place), of=path)
            # A hard link appears at once and refuses to replace: two creators cannot both succeed.
            os.link(draft, path)
            sync_folder(path.parent)
    except FileExistsError:
        raise ExistsAlready(
            f"{path} exists already and is kept as it is; open it, or choose another name"
        ) from None
    except OSError as problem:
        raise LedgerError(f"cannot create {path}: {problem.strerror}") from None


def opened(path: Path, *, whole: bool) -> Book:
    """A ledger as it is now, to read: all of it, or from the last checkpoint on."""
    with reported(path):
        real = real_path(path)
        handle = open_file(real, os.O_RDONLY, path)
        try:
            content = read_from(handle, 0) if whole else b""
            if _is_format1(handle):
                return _of_format1(real, content or read_from(handle, 0), path)
            return _read(handle, path, whole=whole)[0]
        finally:
            os.close(handle)


@contextmanager
def locked(path: Path, *, anywhere: bool = False) -> Iterator[Held]:
    """One writer at a time: what is appended to its book is on the disk when this ends.

    It waits up to BUSY_SECONDS for others. On any error, nothing was written. A file of format 1 is
    converted first. A copy is refused, unless it may be `anywhere`.
    """
    with reported(path):
        real = real_path(path)
        while True:
            handle = held(real, path)
            try:
                if _is_format1(handle):
                    _convert(real, handle, path)
                    continue  # it is another file now, which others may hold already
                book, slot = _read(handle, path, whole=False)
                found = Held(book, handle, slot, place_of(real, os.fstat(handle)))
                if not anywhere:
                    _check_place(found)
                yield found
                if book.pending:
                    _commit(found, path)
                return
            finally:
                let_go(handle)


@contextmanager
def unlocked(book: Book) -> Iterator[Book]:
    """The same for a ledger that is no file: on any error, nothing was written."""
    head = book.head
    try:
        yield book
    except BaseException:
        book.head = head
        book.pending.clear()
        raise
    book.rows += [Row(body, hash_, 0, text) for text, body, hash_ in book.pending]
    book.pending.clear()


def find_row(path: Path, wanted: bytes, fits: Callable[[Row], bool]) -> Row | None:
    """The last row with these bytes in it that fits, found without reading the others."""
    with reported(path):
        handle = open_file(real_path(path), os.O_RDONLY, path)
        try:
            content = read_from(handle, 0)
        finally:
            os.close(handle)
    at = content.rfind(wanted)
    while at >= START:
        begin, end = content.rfind(b"\n", 0, at) + 1, content.find(b"\n", at)
        before = content.rfind(b"\n", 0, begin - 1) + 1
        previous = content[before : before + 64].decode("ascii", "replace")
        if end > 0 and begin > START:
            found, _ = read_rows(
                content[begin : end + 1],
                base=begin,
                previous=previous,
                until=0,
                before=0,
                name=str(path),
            )
            if found and fits(found[0]):
                return found[0]
        at = content.rfind(wanted, 0, at)
    return None


def last_rows(path: Path, wanted: int) -> list[Row]:
    """The last rows of a file, so many at most, and each checked against the one before it."""
    with reported(path):
        handle = open_file(real_path(path), os.O_RDONLY, path)
        try:
            end = _read(handle, path, whole=False)[0].end
            size = 4 * SPACING
            while True:
                base = max(START, end - size)
                data = os.pread(handle, end - base, base)
                lines = data.count(b"\n")
                if base == START or lines > wanted + 1:
                    break
                size *= 4
        finally:
            os.close(handle)
    begin = 0 if base == START else data.find(b"\n") + 1
    previous = None
    if base != START:  # the first whole row says what the next one follows
        previous = data[begin : begin + 64].decode("ascii", "replace")
        begin = data.find(b"\n", begin) + 1
    found, _ = read_rows(
        data[begin:], base=base + begin, previous=previous, until=end, before=0, name=str(path)
    )
    return found[1:] if base == START else found


def moved_file(source: Held, path: Path, new: Path, row: dict[str, Any]) -> Path:
    """A whole copy of a held ledger with one more row, as a draft beside its new name."""
    content = read_from(source.handle, 0)[: source.book.end]
    text = canonical(row)
    head = link(source.book.head, text)
    draft = new.with_name(f".{new.name[:100]}.{head[:32]}.move")
    data = line(head, text)

    def file(place: Place) -> bytes:
        end, checkpoint = len(content) + len(data), source.slot.checkpoint
        slots = [Slot(number, end, head, checkpoint, place) for number in range(2)]
        return b"".join(
            [content[: START // 3], *(one.encode() for one in slots), content[START:], data]
        )

    with suppress(FileNotFoundError):
        draft.unlink()
    write_new(draft, file, of=new, like=path)
    sync_folder(new.parent)
    return draft


def name_moved(draft: Path, new: Path) -> None:
    """Give a moved ledger its name, once: a file of that name is kept, and a draft is used up."""
    os.link(draft, new)
    sync_folder(new.parent)
    draft.unlink(missing_ok=True)  # whoever opened it just now may have
    sync_folder(new.parent)


def _read(handle: int, path: Path, *, whole: bool) -> tuple[Book, Slot]:
    name = str(path)
    head = os.pread(handle, START + AHEAD, 0)
    slot, sound = newest_slot(head, name)
    base = START if whole or not slot.checkpoint else slot.checkpoint
    size = os.fstat(handle).st_size
    if size < slot.length:
        raise LedgerDamaged(
            f"{name} is damaged: it was cut, {slot.length - size} of its {slot.length} bytes are missing"
        )
    data = read_from(handle, base)
    rows, end = read_rows(data, base=base, previous=None, until=slot.length, before=0, name=name)
    # Whoever dies while a slot is written has its rows on the disk.
    if not sound and not (end > slot.length and end == base + len(data)):
        raise LedgerDamaged(f"{name} is damaged: it does not say any more how long it is")
    if base == START:
        first = rows.pop(0)
    else:
        while head.find(b"\n", START) < 0:
            head += os.pread(handle, len(head), len(head))
        stop = head.find(b"\n", START) + 1
        (first,), _ = read_rows(
            head[START:stop], base=START, previous=None, until=stop, before=0, name=name
        )
        if not rows or rows[0].kind != "checkpoint":
            raise LedgerDamaged(f"{name} is damaged: a checkpoint is missing")
    last = rows[-1].hash if rows else first.hash
    committed = next((row.hash for row in reversed(rows) if _ends(row) == slot.length), first.hash)
    if committed != slot.head:
        raise LedgerDamaged(f"{name} is damaged: it does not end with the row it should")
    return Book(name, first, rows, last, end), slot


def _ends(row: Row) -> int:
    return row.offset + len(row.hash) + len(row.text) + 2


def _of_format1(real: Path, content: bytes, path: Path) -> Book:
    if format1.is_hot(real) and not format1.is_whole(content, str(path)):
        handle = held(real, path)
        try:
            content = format1.settled(real, read_from(handle, 0), str(path))
        finally:
            let_go(handle)
    first, *rows = format1.rows(content, str(path))
    last = rows[-1].hash if rows else first.hash
    return Book(str(path), first, rows, last, format=1)


def _convert(real: Path, handle: int, path: Path) -> None:
    """Put a file of format 2 in the place of one of format 1, with the same rows."""
    content = format1.settled(real, read_from(handle, 0), str(path))
    found = format1.rows(content, str(path))
    row = canonical({"kind": "converted", "from": 1, "head": found[-1].hash})
    rows = [(one.hash, one.text) for one in found] + [(link(found[-1].hash, row), row)]
    forget_drafts(real, ".next")
    try:
        with draft_beside(real, ".next") as draft:
            write_new(draft, lambda place: whole_file(rows, place), of=real, like=real)
            os.replace(draft, real)
    except OSError as problem:
        if problem.errno in (errno.EBUSY, errno.EXDEV):
            raise LedgerError(
                f"{path} is a mount of a single file, which cannot be replaced by one of the new format; "
                "convert it under its own name (sfumato ledger convert), or mount its folder instead; nothing "
                "was charged or released"
            ) from None
        raise
    sync_folder(real.parent)


def _commit(found: Held, path: Path) -> None:
    """Rows, the disk, the slot, the disk: until the first is there, nothing has happened."""
    book, handle, slot = found.book, found.handle, found.slot
    rows = [line(hash_, text) for text, _, hash_ in book.pending]
    at, checkpoint = book.end, slot.checkpoint
    for row, (_, body, _) in zip(rows, book.pending, strict=True):
        checkpoint = at if body.get("kind") == "checkpoint" else checkpoint
        at += len(row)
    try:
        os.ftruncate(handle, book.end)  # what a process that died has left
        put(handle, b"".join(rows), book.end)
        os.fsync(handle)
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, book.end)
        raise
    try:
        after = Slot(slot.sequence + 1, at, book.head, checkpoint, found.place)
        put(handle, after.encode(), after.offset)
        os.fsync(handle)
    except OSError as problem:
        raise LedgerError(
            f"the disk failed while writing {path} ({problem.strerror}): nothing was released; see with "
            f"'sfumato ledger show {path}' whether the charge stands"
        ) from None


def _check_place(found: Held) -> None:
    was, name = found.slot.place, found.book.name
    if not was.same(found.place):
        raise LedgerMismatch(
            f"{name} is a copy: the ledger was last charged as {was.name}, another file; "
            f"charge that one, or say that this is the ledger now: sfumato ledger move {name}; nothing "
            "was charged"
        )


def _is_format1(handle: int) -> bool:
    return os.pread(handle, len(format1.MAGIC), 0) == format1.MAGIC
