"""A ledger of format 2 torn, cut or lied to anywhere: what was paid stands, what never happened is gone."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.privacy.ledger_worker import city
from tests.privacy.test_ledger_faults import written

from sfumato.errors import LedgerDamaged, LedgerError
from sfumato.privacy import DiscreteLaplace, Ledger, PureDP, read_release
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.privacy.ledger.storage.rows import BLOCK, START, newest_slot

pytestmark = pytest.mark.fault

TENTH = DiscreteLaplace(10)
DATA = Path(__file__).parent / "data"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "city.ledger"


@cache
def steps() -> tuple[bytes, bytes]:
    """A ledger of one entry, and the same after one more."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "l", PureDP(10), unit="user", source="city")
        ledger.release(TENTH, city())
        before = ledger.path.read_bytes()
        ledger.release(TENTH, city())
        return before, ledger.path.read_bytes()


def test_a_row_torn_at_any_byte_never_happened(path: Path) -> None:
    """Killed while it wrote the row: nothing was drawn, and the next charge goes on from before it."""
    before, after = steps()
    row = after[len(before) :]
    ledger = Ledger.create(path, PureDP(10), unit="user", source="city")
    place = path.read_bytes()[BLOCK:START]  # of this file
    assert len(row) > 200
    for cut in range(len(row) + 1):
        path.write_bytes(_at(before, place) + row[:cut])
        found = Ledger(path)
        entries = len(found.statement().entries)
        if cut == len(row):
            assert entries == 2, "a whole row was thrown away"
        else:
            assert entries == 1, cut
        if cut % 37 == 0 or cut >= len(row) - 1:
            found.release(TENTH, city())
            assert found.statement().spent.epsilon == Fraction(entries + 1, 10)
            assert path.read_bytes().count(b'"mechanism"') == entries + 1
    assert ledger.path == path


def test_a_slot_torn_at_any_byte_changes_nothing(path: Path) -> None:
    """Killed while it wrote how long the file is: the row was on the disk, so it stands."""
    before, after = steps()
    slot = newest_slot(after, "after")[0]
    old = before[slot.offset : slot.offset + BLOCK]
    new = after[slot.offset : slot.offset + BLOCK]
    assert old != new
    for cut in range(BLOCK + 1):
        torn = new[:cut] + old[cut:]
        path.write_bytes(after[: slot.offset] + torn + after[slot.offset + BLOCK :])
        assert len(Ledger(path).statement().entries) == 2, cut


def test_a_file_that_lost_its_last_rows_is_refused(path: Path) -> None:
    before, after = steps()
    path.write_bytes(after[: len(before)])
    with pytest.raises(LedgerDamaged, match=r"it was cut, \d+ of its \d+ bytes are missing"):
        Ledger(path)
    # Also if the slot that says so is lost with them.
    slot = newest_slot(after, "after")[0]
    path.write_bytes(after[: slot.offset] + bytes(BLOCK) + after[slot.offset + BLOCK : len(before)])
    with pytest.raises(LedgerDamaged, match="does not say any more how long it is"):
        Ledger(path)


def _at(content: bytes, slots: bytes) -> bytes:
    """A ledger as if it had always been at the place of these slots."""
    place = newest_slot(content[:BLOCK] + slots, "place")[0].place
    found = newest_slot(content, "content")[0]
    ledger_slots = [
        type(found)(number, found.length, found.head, found.checkpoint, place)
        for number in (found.sequence - 1, found.sequence)
    ]
    both = sorted(ledger_slots, key=lambda slot: slot.offset)
    return content[:BLOCK] + b"".join(slot.encode() for slot in both) + content[START:]


# checkpoints


@cache
def long_ledger() -> bytes:
    """A ledger with checkpoints."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "l", PureDP(100), unit="user", source="city")
        for number in range(130):
            ledger.release(TENTH, city(), note=f"number {number + 1} {'.' * 200}")
        content = ledger.path.read_bytes()
        assert content.count(b'"kind":"checkpoint"') >= 2
        return content


def test_a_charge_reads_from_the_last_checkpoint_on(path: Path) -> None:
    path.write_bytes(long_ledger())
    recent = ledger_file.opened(path, whole=False)
    assert recent.rows[0].kind == "checkpoint"
    assert len(recent.rows) < 70
    assert Ledger(path).recent(7).entries == Ledger(path).statement().entries[-7:]
    assert Ledger(path).recent(500).entries == Ledger(path).statement().entries
    assert Ledger(path).recent(7).accounts == Ledger(path).statement().accounts


def test_an_edit_before_the_last_checkpoint_is_found_by_whoever_reads_all(path: Path) -> None:
    content = long_ledger()
    at = content.index(b'"note":"number 3 ')
    path.write_bytes(content[:at] + content[at:].replace(b"number 3 ", b"number E ", 1))
    ledger = Ledger(path)
    assert ledger.left() == PureDP(87)  # and nothing more is left by it
    with pytest.raises(LedgerDamaged, match="entry 3 was edited, or one before it"):
        ledger.statement()


@pytest.mark.parametrize("where", ["first", "last"])
def test_a_damaged_checkpoint_is_refused(where: str, path: Path) -> None:
    content = long_ledger()
    find = content.index if where == "first" else content.rindex
    at = find(b'"kind":"checkpoint"')
    for offset in range(at - 300, at + 300, 7):
        damaged = bytearray(content)
        damaged[offset] ^= 1
        path.write_bytes(bytes(damaged))
        with pytest.raises(LedgerDamaged):
            Ledger(path).statement()
        if where == "last" and offset > at:
            with pytest.raises(LedgerDamaged):
                Ledger(path)


def _cheaper(body: dict[str, Any]) -> None:
    body["spent"][""][""][0] = "1/10"


LIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "less was spent": _cheaper,
    "fewer entries": lambda body: body.update(entries=body["entries"] - 1),
    "another table": lambda body: body.update(tables=[{"name": "a", "user": "b"}]),
    "open again": lambda body: body.update(
        closed={"time": "", "note": "", "successor": "", "draft": ""}
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_checkpoint_that_lies_is_found(path: Path, name: str) -> None:
    """By whoever reads all, though every hash fits: the entries add up to something else."""
    content = long_ledger()
    rows = content[START:].splitlines(keepends=True)
    lied = []
    for row in rows:
        body = json.loads(row.split(b" ", 1)[1])
        if body.get("kind") == "checkpoint":
            LIES[name](body)
        lied.append(b"x " + json.dumps(body).encode() + b"\n")
    path.write_bytes(written(lied, content))
    with pytest.raises(LedgerDamaged, match=r"the checkpoint after entry|is missing"):
        Ledger(path).statement()


# versions


def test_what_a_later_version_wrote_is_refused_as_such(path: Path) -> None:
    header = Ledger.create(path, PureDP(1), unit="user", source="city").header.to_json()
    later: list[dict[str, Any]] = [
        {"model": {"kind": "shuffled", "parties": 3}},
        {"requires": ["several parties"]},
        {"format": 3},
    ]
    for number, change in enumerate(later):
        other = path.with_name(f"{number}.ledger")
        ledger_file.create(other, {**header, **change})
        with pytest.raises(LedgerError, match="later version of sfumato") as refusal:
            Ledger(other)
        assert type(refusal.value) is LedgerError
    with ledger_file.locked(path) as held:
        ledger_file.append(held.book, {"kind": "promise", "of": "more"})
    with pytest.raises(LedgerError, match="later version of sfumato, this one does not know") as no:
        Ledger(path)
    assert type(no.value) is LedgerError


def test_a_ledger_that_an_earlier_version_made_opens_pays_and_keeps_its_receipts(
    path: Path,
) -> None:
    path.write_bytes((DATA / "format1.ledger").read_bytes())
    old = Ledger(path)
    before = old.statement()
    assert (before.format, before.count) == (1, 2)
    receipt = read_release(DATA / "format1.json")
    old.check(receipt)
    assert path.read_bytes() == (DATA / "format1.ledger").read_bytes()  # reading converts nothing
    old.release(DiscreteLaplace(90), city())
    after = Ledger(path).statement()
    assert (after.format, after.count) == (2, 3)
    assert after.entries[:2] == before.entries
    assert after.header == before.header
    old.check(receipt)
    old.convert()  # which there is nothing to do for
    assert Ledger(path).statement() == after
