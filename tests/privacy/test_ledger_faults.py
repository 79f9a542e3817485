"""Whatever happens to a process, a disk or a file: spent never falls, and nothing is released uncharged.

The processes that die or race live in `ledger_worker.py`; a saboteur strikes there too.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.format1_ledger import as_format1
from tests.privacy.ledger_worker import city, until_full

from sfumato.errors import LedgerBusy, LedgerDamaged, LedgerError, LedgerMismatch
from sfumato.privacy import DiscreteLaplace, Ledger, PureDP, Release
from sfumato.privacy.accounting import canonical
from sfumato.privacy.ledger import LedgerStatement
from sfumato.privacy.ledger import ledger as ledger_module
from sfumato.privacy.ledger.guarded import open_for_release
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.privacy.ledger.storage import disk
from sfumato.privacy.ledger.storage.rows import (
    FIRST,
    GENESIS,
    START,
    Slot,
    line,
    link,
    newest_slot,
)

pytestmark = pytest.mark.fault

ROOT = Path(__file__).parent.parent.parent
EIGHTH = DiscreteLaplace(8)
KILLED = 9


def worker(work: str, folder: Path, *how: str) -> list[dict[str, Any]]:
    run = subprocess.run(
        [sys.executable, "-m", "tests.privacy.ledger_worker", work, str(folder), *how],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "city.ledger"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger.create(path, PureDP(1), unit="user", source="city")


# killed


def assert_nothing_uncharged(deaths: list[dict[str, Any]]) -> None:
    """Before each death one entry was paid for; what the next process found, and how it went on."""
    *killed, last = deaths
    assert last["at"] > 30  # steps, of which those that leave the same are one death
    assert {death["status"] for death in killed} == {KILLED}
    assert (last["status"], last["value"], last["entries"]) == (0, True, 2)
    for death in deaths:
        assert death["entries"] in (1, 2), death
        assert Fraction(death["spent"]) == Fraction(death["entries"], 8), death
        assert not (death["value"] and death["entries"] == 1), f"a value without an entry: {death}"
        assert [name for name in death["left after retry"] if not name.endswith(".d")] == [
            "city.ledger"
        ], death
        assert death["waiting after"] == 0, death
        assert death["entries after retry"] == death["entries"] + 1, death
        assert Fraction(death["spent after retry"]) == Fraction(death["entries"] + 1, 8), death
    # Some died before the charge and some after it, and once charged it stays charged.
    entries = [death["entries"] for death in deaths]
    assert entries == sorted(entries)
    assert set(entries) == {1, 2}


def assert_kept(deaths: list[dict[str, Any]]) -> None:
    """What was charged waits to be delivered, with its values or without; and nothing else does."""
    for death in deaths:
        assert len(death["waiting"]) == death["entries"] - 1, death
        # Values that nobody wrote down were drawn again; those that were are the same.
        assert death["value"] or death["waiting"] in ([], [False]), death
    assert {tuple(death["waiting"]) for death in deaths} == {(), (False,), (True,)}


FORMATS = [(), ("format1",)]


@pytest.mark.parametrize("how", [*FORMATS, ("kept",)])
def test_kill_at_every_step(how: tuple[str, ...], tmp_path: Path) -> None:
    deaths = worker("deaths_by_line", tmp_path, *how)
    assert_nothing_uncharged(deaths)
    assert any(death["value"] for death in deaths[:-1]), "nobody died with a value in hand"
    if how == ("kept",):
        assert_kept(deaths)


@pytest.mark.skipif(
    sys.platform != "linux", reason="steps through system calls with Linux's ptrace"
)
@pytest.mark.parametrize("how", [*FORMATS, ("kept",), ("kept", "format1")])
def test_kill_at_every_system_call(how: tuple[str, ...], tmp_path: Path) -> None:
    deaths = worker("deaths_by_call", tmp_path, *how)
    if deaths == [{"refused": True}]:
        pytest.skip("this machine does not let a process trace its child")
    assert_nothing_uncharged(deaths)
    # Inside the commit: a row was there, and the ledger did not say yet that it is so long.
    assert any(death["beyond"] for death in deaths)
    if "format1" in how:  # and a draft of the converted file, which the next charge removed
        assert any(len(death["left"]) > 1 for death in deaths)
    if "kept" in how:
        assert_kept(deaths)


def test_a_ledger_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    *killed, last = worker("creations_by_line", tmp_path)
    assert last["at"] > 30
    assert {death["status"] for death in killed} == {KILLED}
    assert last["status"] == 0
    assert all(death["entries"] == 1 for death in [*killed, last])
    assert {death["made"] for death in killed} == {False, True}


# racing


def test_two_racing_processes_cannot_overspend(tmp_path: Path) -> None:
    rounds = worker("races", tmp_path)
    assert len(rounds) == 20
    for each in rounds:
        assert each["statuses"] == [0, 0]
        assert each["outcomes"] == ["BudgetExceeded", "released"], each
        assert each["entries"] == 1
        assert Fraction(each["spent"]) == 1 / Fraction(5 / 3)


def test_a_crowd_gets_exactly_what_there_is(tmp_path: Path) -> None:
    (found,) = worker("crowd", tmp_path)
    assert found["statuses"] == [0] * 8
    assert found["outcomes"] == ["BudgetExceeded"] * 8 + ["released"] * 16
    assert (found["entries"], found["spent"]) == (16, "1")


def test_a_held_ledger_is_busy_and_nothing_is_charged(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.release(EIGHTH, city())
    monkeypatch.setattr(disk, "BUSY_SECONDS", 0.05)
    with ledger_file.locked(path), pytest.raises(LedgerBusy) as busy:
        ledger.release(EIGHTH, city())
    assert str(busy.value) == (
        f"{path} was held by another process for 0.05 s; nothing was charged or released, try again"
    )
    assert ledger.statement().spent.epsilon == Fraction(1, 8)
    ledger.release(EIGHTH, city())
    assert ledger.statement().spent.epsilon == Fraction(1, 4)


def test_a_ledger_can_be_read_while_another_process_is_about_to_write(
    ledger: Ledger, path: Path
) -> None:
    with ledger_file.locked(path):
        assert Ledger(path).statement().entries == ()


def test_a_charge_waits_for_the_disk(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the row, then the slot that says how long the file is; and only then the data."""
    steps: list[str] = []
    fsync, pwrite = os.fsync, os.pwrite

    def named(handle: int) -> str:
        file = Path(os.readlink(f"/proc/self/fd/{handle}"))
        return "folder" if file.is_dir() else file.suffix

    def synced(handle: int) -> None:
        steps.append(f"wait for {named(handle)}")
        fsync(handle)

    def wrote(handle: int, data: Any, at: int) -> int:
        steps.append("slot" if at < START and named(handle) == ".ledger" else named(handle))
        return pwrite(handle, data, at)

    def opened(guarded: Any) -> Any:
        steps.append("open")
        return open_for_release(guarded)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "pwrite", wrote)
    monkeypatch.setattr(ledger_module, "open_for_release", opened)
    paid = [".ledger", "wait for .ledger", "slot", "wait for .ledger"]
    ledger.release(EIGHTH, city())
    assert steps == [*paid, "open"]
    steps.clear()
    ledger.release(EIGHTH, city(), request="a map")
    asked = ["wait for folder", ".jsonl", "wait for .jsonl", "wait for folder", "wait for folder"]
    drawn = [".jsonl", "wait for .jsonl"]
    assert steps == [*asked, *paid, "open", *drawn, *paid]


# a full disk


def assert_stopped_cleanly(found: dict[str, Any]) -> None:
    assert found["releases"] > 3
    assert found["opened"] == 0
    before, full, after = map(Fraction, found["spent"])
    assert before == full == Fraction(found["releases"], 8)
    assert after == before + Fraction(1, 8)
    assert found["heads"][0] == found["heads"][1]


def test_a_file_that_may_not_grow_stops_the_release(tmp_path: Path) -> None:
    (found,) = worker("small_files", tmp_path)
    assert_stopped_cleanly(found)
    assert found["problem"].startswith("LedgerError: no room to write ")
    assert found["problem"].endswith(": nothing was charged or released; free some space")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "sfumato-test", str(disk)]
    if (
        shutil.which("mount") is None
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_stops_the_release(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(16 * 1024))
    ledger = Ledger.create(small_disk / "city.ledger", PureDP(100), unit="user", source="city")
    found = until_full(ledger, ballast.unlink)
    assert_stopped_cleanly(found)
    assert found["problem"] == (
        f"LedgerError: no room to write {ledger.path}: nothing was charged or released; free some space"
    )


def test_a_full_disk_holds_no_half_ledger(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(64 * 1024))
    with pytest.raises(LedgerError, match=r"^(no room to write|cannot create|cannot write) "):
        Ledger.create(small_disk / "city.ledger", PureDP(1), unit="user", source="city")
    assert [file.name for file in small_disk.iterdir()] == ["ballast"]


# damaged files


@cache
def whole(entries: int, *, old: bool = False) -> tuple[bytes, LedgerStatement]:
    """A ledger file with some entries, and what it states."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "l", PureDP(10), unit="user", source="city")
        for number in range(entries):
            ledger.release(EIGHTH, city(), note=f"entry {number + 1}")
        if old:
            as_format1(ledger.path)
        return ledger.path.read_bytes(), Ledger(ledger.path).statement()


def stated(content: bytes) -> LedgerStatement | LedgerError:
    """What a file with this content states, or how it is refused; a release is refused likewise."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "city.ledger"
        path.write_bytes(content)
        try:
            ledger = Ledger(path)
            return ledger.statement()
        except LedgerError as damage:
            return damage


OLD = [False, True]


@pytest.mark.parametrize("old", OLD)
@pytest.mark.parametrize("entries", [3, 40])
def test_a_cut_file_is_refused(entries: int, old: bool) -> None:
    content, _ = whole(entries, old=old)
    lengths = {
        *range(120),
        *range(0, len(content), 97),
        *range(0, len(content), 512),
        *(at + 1 for at in range(len(content) - 1) if content[at] == 10 and not old),
        len(content) - 1,
    }
    for length in lengths:
        assert isinstance(stated(content[:length]), LedgerDamaged), length


def page_heads(content: bytes) -> list[int]:
    """Offsets of the file's head and of every page's: where one bit moves, hides or redirects whole rows."""
    size = int.from_bytes(content[16:18], "big")
    heads = [*range(108)]
    for page in range(0, len(content), size):
        start = page + (100 if page == 0 else 0)
        cells = int.from_bytes(content[start + 3 : start + 5], "big")
        heads += range(start, min(start + 12 + 2 * cells, page + size))
    return sorted(set(heads))


@pytest.mark.parametrize("entries", [3, 40])
def test_a_flipped_bit_in_a_page_head_never_makes_another_statement(entries: int) -> None:
    content, original = whole(entries, old=True)
    assert len(content) // 4096 > (4 if entries == 40 else 1)
    for offset in page_heads(content):
        for bit in range(8) if entries == 3 else (0, offset % 8):
            assert_same_or_refused(content, offset, 1 << bit, original)


@pytest.mark.parametrize("old", OLD)
@pytest.mark.parametrize("entries", [3, 40])
@given(data=st.data())
@settings(max_examples=300)
def test_a_damaged_byte_never_makes_another_statement(
    entries: int, old: bool, data: st.DataObject
) -> None:
    content, original = whole(entries, old=old)
    offset = data.draw(st.integers(0, len(content) - 1))
    assert_same_or_refused(content, offset, data.draw(st.integers(1, 255)), original)


def assert_same_or_refused(
    content: bytes, offset: int, mask: int, original: LedgerStatement
) -> None:
    damaged = bytearray(content)
    damaged[offset] ^= mask
    found = stated(bytes(damaged))
    if not isinstance(found, LedgerError):
        assert found == original, f"byte {offset} xor {mask} makes another statement"


def edit_old(path: Path, *statements: str) -> None:
    """Change a ledger of format 1 as somebody with a database tool would, the triggers out of the way."""
    connection = sqlite3.connect(path)
    connection.executescript(
        "DROP TRIGGER no_edit; DROP TRIGGER no_removal;" + ";".join(statements)
    )
    connection.commit()
    connection.close()


CHEAPER = """UPDATE chain SET body = replace(body, '"epsilon":"1/8"', '"epsilon":"1/9"')"""
OLD_EDITS = {
    "a cheaper cost": ([f"{CHEAPER} WHERE number = 2"], "entry 2 was edited, or one before it"),
    "cheaper from here on": (
        [f"{CHEAPER} WHERE number >= 3"],
        "entry 3 was edited, or one before it",
    ),
    "another note": (
        ["UPDATE chain SET body = replace(body, 'entry 1', 'entry I') WHERE number = 1"],
        "entry 1 was edited, or one before it",
    ),
    "another hash": (
        ["UPDATE chain SET hash = replace(hash, substr(hash, 1, 1), 'x') WHERE number = 4"],
        "entry 4 was edited, or one before it",
    ),
    "a middle entry removed": (["DELETE FROM chain WHERE number = 2"], "entry 2 is missing"),
    "a middle entry removed, the rest moved up": (
        [
            "DELETE FROM chain WHERE number = 2",
            "UPDATE chain SET number = 2 WHERE number = 3",
            "UPDATE chain SET number = 3 WHERE number = 4",
        ],
        "entry 2 was edited, or one before it",
    ),
    "two entries swapped": (
        [
            "UPDATE chain SET number = 9 WHERE number = 3",
            "UPDATE chain SET number = 3 WHERE number = 2",
            "UPDATE chain SET number = 2 WHERE number = 9",
        ],
        "entry 2 was edited, or one before it",
    ),
    "an entry repeated": (
        ["INSERT INTO chain SELECT 5, body, hash FROM chain WHERE number = 4"],
        "entry 5 was edited, or one before it",
    ),
    "a larger budget": (
        [
            """UPDATE chain SET body = replace(body, '"epsilon":"10"', '"epsilon":"99"') WHERE number = 0"""
        ],
        "the header was edited, or one before it",
    ),
    "no header": (["DELETE FROM chain WHERE number = 0"], "the header is missing"),
    "nothing": (["DELETE FROM chain"], "it has no header"),
    "no table": (["DROP TABLE chain"], "no such table"),
    "bytes for text": (
        # A STRICT table refuses the type; a table that is no longer strict does not.
        [
            "CREATE TABLE loose (number INTEGER PRIMARY KEY, body, hash)",
            "INSERT INTO loose SELECT number, CAST(body AS BLOB), hash FROM chain",
            "DROP TABLE chain",
            "ALTER TABLE loose RENAME TO chain",
        ],
        "the header was edited",
    ),
}


@pytest.mark.parametrize("name", OLD_EDITS)
def test_an_edited_entry_of_format_1_is_named(path: Path, name: str) -> None:
    path.write_bytes(whole(4, old=True)[0])
    ledger = Ledger(path)
    statements, words = OLD_EDITS[name]
    edit_old(path, *statements)
    edited = path.read_bytes()
    for attempt in (lambda: Ledger(path), ledger.statement, lambda: ledger.release(EIGHTH, city())):
        with pytest.raises(LedgerDamaged, match=f"{path} is damaged.*{words}"):
            attempt()
    assert path.read_bytes() == edited


Lines = list[bytes]


def _cheaper(row: bytes) -> bytes:
    return row.replace(b'"epsilon":"1/8"', b'"epsilon":"1/9"')


EDITS: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "a cheaper cost": (lambda r: [*r[:2], _cheaper(r[2]), *r[3:]], "entry 2 was edited"),
    "cheaper from here on": (lambda r: [*r[:3], *map(_cheaper, r[3:])], "entry 3 was edited"),
    "another note": (
        lambda r: [r[0], r[1].replace(b"entry 1", b"entry I"), *r[2:]],
        "entry 1 was edited",
    ),
    "another hash": (lambda r: [*r[:4], b"0" * 64 + r[4][64:], *r[5:]], "entry 4 was edited"),
    "a middle entry removed": (lambda r: [*r[:2], *r[3:]], "entry 2 was edited|it was cut"),
    "two entries swapped": (lambda r: [*r[:2], r[3], r[2], *r[4:]], "entry 2 was edited"),
    "an entry repeated": (lambda r: [*r[:3], r[2], *r[3:]], "entry 3 was edited"),
    "a larger budget": (
        lambda r: [r[0].replace(b'"epsilon":"10"', b'"epsilon":"99"'), *r[1:]],
        "the header was edited",
    ),
    "no header": (lambda r: r[1:], "the header was edited|it was cut"),
    "nothing": (lambda _: [], "it was cut"),
    "a line that is no text": (
        lambda r: [*r[:2], r[2].replace(b"entry", b"\xff\xfe\xff\xfe\xff"), *r[3:]],
        "entry 2 was edited",
    ),
}


def edit(path: Path, change: Callable[[Lines], Lines]) -> None:
    """Change the rows of a ledger as somebody with an editor would."""
    content = path.read_bytes()
    path.write_bytes(content[:START] + b"".join(change(content[START:].splitlines(keepends=True))))


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_entry_is_named(path: Path, name: str) -> None:
    path.write_bytes(whole(4)[0])
    ledger = Ledger(path)
    change, words = EDITS[name]
    edit(path, change)
    edited = path.read_bytes()
    for attempt in (lambda: Ledger(path), ledger.statement, lambda: ledger.release(EIGHTH, city())):
        with pytest.raises(LedgerDamaged, match=f"{path} is damaged.*({words})"):
            attempt()
    assert path.read_bytes() == edited


def written(rows: Lines, slots: bytes, place: Any = None) -> bytes:
    """A file with these rows and the place of another one, all hashes and slots computed anew."""
    del place
    content, head = b"", GENESIS[2]
    found = newest_slot(slots, "l")[0]
    offset, last = 0, START
    for row in rows:
        body = json.loads(row.split(b" ", 1)[1])
        if body.get("kind") == "checkpoint":
            body["head"], offset = head, last
            body["header"] = content[:64].decode()
        text = canonical(body)
        head = link(head, text)
        content += line(head, text)
        last = START + len(content)
    both = [Slot(n, last, head, offset, found.place).encode() for n in (0, 1)]
    return FIRST + b"".join(both) + content


def tail_cut(path: Path) -> Release[Any]:
    """Publish a second release, then write the file anew without its entry; the release."""
    ledger = Ledger.create(path, PureDP(1), unit="user", source="city")
    ledger.release(EIGHTH, city())
    published = ledger.release(EIGHTH, city())
    content = path.read_bytes()
    path.write_bytes(written(content[START:].splitlines(keepends=True)[:2], content))
    return published


def test_a_lost_tail_shows_only_against_what_was_published(path: Path) -> None:
    published = tail_cut(path)
    # From the file alone nobody can tell: that is what the ledger id and entry in each release are
    # for.
    ledger = Ledger(path)
    assert ledger.statement().spent.epsilon == Fraction(1, 8)
    with pytest.raises(LedgerMismatch, match=r"^entry 2 of the release is missing"):
        ledger.check(published)
    ledger.release(EIGHTH, city())
    with pytest.raises(LedgerMismatch, match=r"^entry 2 in .* differs"):
        ledger.check(published)


def test_a_ledger_written_anew_shows_only_against_what_was_published(path: Path) -> None:
    ledger = Ledger.create(path, PureDP(1), unit="user", source="city")
    published = ledger.release(EIGHTH, city())
    rich = replace(ledger.header, budget=PureDP(100))
    path.unlink()
    ledger_file.create(path, rich.to_json())
    forged = Ledger(path)
    assert (forged.header.id, forged.statement().left) == (published.ledger, PureDP(100))
    with pytest.raises(LedgerMismatch, match=r"^entry 1 of the release is missing"):
        forged.check(published)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chain SET body = 'x' WHERE number = 1",
        "UPDATE chain SET number = 9",
        "DELETE FROM chain WHERE number = 1",
        "DELETE FROM chain",
    ],
)
def test_plain_sql_cannot_edit_a_ledger(path: Path, statement: str) -> None:
    path.write_bytes(whole(3, old=True)[0])
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match=r"^a ledger is only appended to$"):
        connection.execute(statement)
    connection.close()
    assert Ledger(path).statement() == whole(3, old=True)[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="making a file immutable needs root")
def test_a_file_that_cannot_be_written_charges_nothing(ledger: Ledger, path: Path) -> None:
    if (
        shutil.which("chattr") is None
        or subprocess.run(["chattr", "+i", str(path)], check=False).returncode
    ):
        pytest.skip("this file system knows no immutable files")
    try:
        with pytest.raises(LedgerError, match="nothing was charged or released"):
            ledger.release(EIGHTH, city())
    finally:
        subprocess.run(["chattr", "-i", str(path)], check=True)
    assert ledger.statement().entries == ()
