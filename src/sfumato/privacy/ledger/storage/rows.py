"""The bytes of a ledger: a first block, two slots written in turn, and rows chained by their hashes.

docs/explain/ledger-format.md says why, and what each kind of damage means.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import LedgerDamaged
from sfumato.privacy.accounting.codec import canonical

BLOCK = 1024
START = 3 * BLOCK  # where rows begin
GENESIS = {1: "sfumato-ledger/1", 2: "sfumato-ledger/2"}  # what the hash of a header covers
HASH = 64
FIRST = (
    "sfumato-ledger/2\nA privacy budget and what was paid from it. Appended to by sfumato, not to be "
    "edited: see 'sfumato ledger show'.\n"
).ljust(BLOCK - 1).encode() + b"\n"
NAMED = 400  # bytes of a path that a slot tells; all of it counts


@dataclass(frozen=True, slots=True)
class Place:
    """Where a ledger file is: a path, as its hash and as words, and which file that is."""

    path: str
    device: int
    inode: int
    name: str

    def same(self, other: Place) -> bool:
        """Whether one ledger may be found at both: a file that was renamed, or one put back."""
        return self.path == other.path or (self.device, self.inode) == (other.device, other.inode)


def place_of(real: Path, found: os.stat_result) -> Place:
    """The place of a file, by its path without links."""
    name = str(real)
    while len(canonical(name)) > NAMED:
        name = name[1:]
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:32]
    return Place(digest, found.st_dev, found.st_ino, name)


@dataclass(frozen=True, slots=True)
class Slot:
    """How far a ledger reaches: its length, the hash of its last row, where its last checkpoint is."""

    sequence: int
    length: int
    head: str
    checkpoint: int
    place: Place

    @property
    def offset(self) -> int:
        """Where it is written: the other one stays as it is."""
        return BLOCK * (1 + self.sequence % 2)

    def encode(self) -> bytes:
        """One line of BLOCK bytes."""
        place = self.place
        body = canonical(
            {
                "sequence": self.sequence,
                "length": self.length,
                "head": self.head,
                "checkpoint": self.checkpoint,
                "place": [place.path, place.device, place.inode, place.name],
            }
        )
        digest = hashlib.sha256(body.encode()).hexdigest()
        return f"{digest} {body}".ljust(BLOCK - 1).encode() + b"\n"


def _slot(block: bytes) -> Slot | None:
    """The slot in a block, or None where it is damaged or half written."""
    try:
        digest, _, body = block.decode("ascii").removesuffix("\n").rstrip(" ").partition(" ")
        if hashlib.sha256(body.encode()).hexdigest() != digest:
            return None
        data = json.loads(body)
        found = Slot(
            data["sequence"],
            data["length"],
            data["head"],
            data["checkpoint"],
            Place(*data["place"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
    return found if found.encode() == block else None


def newest_slot(head: bytes, name: str) -> tuple[Slot, bool]:
    """The slot that counts, and whether the other one is sound: if not, it was being written, or is damaged."""
    if head[:BLOCK] != FIRST:
        raise LedgerDamaged(
            f"{name} is damaged or not a ledger (it does not begin like one): nothing was charged or "
            "released; restore a backup that 'sfumato ledger verify --against' accepts for every published "
            "release"
        )
    both = [_slot(head[BLOCK * at : BLOCK * (at + 1)]) for at in (1, 2)]
    sound = sorted((one for one in both if one is not None), key=lambda one: one.sequence)
    if not sound or any(one.offset != BLOCK * (1 + both.index(one)) for one in sound):
        raise LedgerDamaged(f"{name} is damaged: it does not say how long it is")
    if len(sound) == 2 and sound[0].sequence + 1 != sound[1].sequence:
        raise LedgerDamaged(f"{name} is damaged: it says twice how long it is, and not the same")
    return sound[-1], len(sound) == 2


def link(previous: str, body: str) -> str:
    """The hash of a row, which covers every row before it."""
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def line(head: str, body: str) -> bytes:
    """A row as it is written."""
    return f"{head} {body}\n".encode("ascii")


@dataclass(frozen=True, slots=True)
class Row:
    """A row that was read: what it says, its hash, and where it begins."""

    body: dict[str, Any]
    hash: str
    offset: int
    text: str

    @property
    def kind(self) -> str:
        """What it is: an entry, unless it says another kind."""
        return str(self.body.get("kind", "entry"))


def read_rows(
    data: bytes, *, base: int, previous: str | None, until: int, before: int, name: str
) -> tuple[list[Row], int]:
    """The rows in bytes from `base` on, each checked, and where what is whole ends.

    Rows up to `until` must be whole. Beyond it whole rows count, and what is no whole row is what a
    process that died has left. Without a `previous` hash the first row is a header or a checkpoint,
    which say what they follow. `before` entries came before: messages count on from there.
    """
    rows: list[Row] = []
    at, entries = 0, before
    while at < len(data):
        end = data.find(b"\n", at)
        row = None if end < 0 else _row(data[at:end], base + at, previous)
        if row is None:
            if base + at < until:
                what = "the header" if base + at == START else f"entry {entries + 1}"
                raise LedgerDamaged(f"{name} is damaged: {what} was edited, or one before it")
            break
        if base + at < until < base + end + 1:
            break
        rows.append(row)
        entries += row.kind == "entry" and base + at != START
        previous, at = row.hash, end + 1
    if base + at < until:
        raise LedgerDamaged(
            f"{name} is damaged: entry {entries + 1} was cut off, or does not end where it did"
        )
    return rows, base + at


def _row(text: bytes, offset: int, previous: str | None) -> Row | None:
    try:
        head, _, body = text.decode("ascii").partition(" ")
        data = json.loads(body)
        if previous is None:
            previous = (
                GENESIS.get(data.get("format", 1), GENESIS[2]) if offset == START else data["head"]
            )
        if not isinstance(data, dict) or link(previous, body) != head:
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Row(data, head, offset, body)


def whole_file(rows: Sequence[tuple[str, str]], place: Place) -> bytes:
    """A ledger file with these hashes and bodies, for a place."""
    content = b"".join(line(head, body) for head, body in rows)
    end, head = START + len(content), rows[-1][0]
    slots = [Slot(number, end, head, 0, place) for number in range(2)]
    return b"".join([FIRST, *(slot.encode() for slot in slots), content])
