"""One ledger file under several names: what cannot be kept is refused, and spent never falls."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from tests.privacy.format1_ledger import as_format1
from tests.privacy.ledger_worker import city
from tests.privacy.test_ledger_faults import KILLED, worker

from sfumato.errors import LedgerError
from sfumato.privacy import DiscreteLaplace, Ledger, PureDP

pytestmark = pytest.mark.fault

EIGHTH = DiscreteLaplace(8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "city.ledger"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    made = Ledger.create(path, PureDP(1), unit="user", source="city")
    made.release(EIGHTH, city())
    return made


# killed under one name, charged under another


@pytest.mark.skipif(
    sys.platform != "linux", reason="steps through system calls with Linux's ptrace"
)
@pytest.mark.parametrize(
    ("work", "how"),
    [
        ("deaths_and_other_names", ()),
        ("deaths_and_other_names", ("format1",)),
        ("deaths_in_place_and_other_names", ()),
    ],
)
def test_a_charge_under_another_name_stands_after_any_death(
    work: str, how: tuple[str, ...], tmp_path: Path
) -> None:
    deaths = worker(work, tmp_path, *how)
    if deaths == [{"refused": True}]:
        pytest.skip("this machine does not let a process trace its child")
    *killed, last = deaths
    assert last["at"] > 30
    assert ({death["status"] for death in killed}, last["status"]) == ({KILLED}, 0)
    # Some died inside the commit, with something of theirs beside the file, or behind what counts.
    assert any(len(death["left"]) > len(last["left"]) or death["beyond"] for death in deaths)
    for death in deaths:
        # One charge before the death, perhaps the one of the dead, two under the other name, one
        # when back.
        assert (death["paid"], death["entries"]) in ((3, 3), (3, 4)), death
        assert death["under another name"] == ["town.ledger"], death
        assert death["entries after retry"] == death["entries"] + 1, death
        assert Fraction(death["spent after retry"]) == Fraction(death["entries"] + 1, 8), death
    assert {death["entries"] for death in deaths} == {3, 4}


# two names at once


def test_hard_links_are_refused_under_every_name(
    ledger: Ledger, path: Path, tmp_path: Path
) -> None:
    other, before = tmp_path / "town.ledger", path.read_bytes()
    os.link(path, other)
    for attempt in (
        lambda: Ledger(other),
        lambda: Ledger(path),
        lambda: ledger.afford(PureDP("1/8")),
        lambda: ledger.release(EIGHTH, city()),
    ):
        with pytest.raises(
            LedgerError,
            match=r"is one file under 2 names \(hard links\).*; nothing was charged or released$",
        ):
            attempt()
    assert path.read_bytes() == other.read_bytes() == before
    other.unlink()
    ledger.release(EIGHTH, city())
    assert Ledger(path).statement().spent.epsilon == Fraction(1, 4)


def test_a_draft_that_a_killed_creation_left_is_no_other_name(ledger: Ledger, path: Path) -> None:
    draft = path.with_name(f".{path.name}.0123456789abcdef.new")
    os.link(path, draft)
    Ledger(path).release(EIGHTH, city())
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_conversion_removes_its_own_drafts_only(ledger: Ledger, path: Path) -> None:
    as_format1(path)
    ledger = Ledger(path)
    kept = {path.name, f".{path.name}.town.0123456789ab.next", f".{path.name}.next", "a.next"}
    for name in [*kept - {path.name}, f".{path.name}.0123456789ab.next"]:
        (path.parent / name).touch()
    ledger.release(EIGHTH, city())
    assert {file.name for file in path.parent.iterdir()} == kept


def test_a_ledger_may_have_as_long_a_name_as_any_file(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / ("a" * 255), PureDP(1), unit="user", source="city")
    ledger.release(EIGHTH, city())
    assert ledger.statement().spent.epsilon == Fraction(1, 8)
    assert [file.name for file in tmp_path.iterdir()] == ["a" * 255]


def test_a_symbolic_link_is_the_same_ledger(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link = folder / "town.ledger"
    link.symlink_to(path)
    through = Ledger(link)
    through.release(EIGHTH, city())
    ledger.release(EIGHTH, city())
    assert through.statement() == ledger.statement()
    assert ledger.statement().spent.epsilon == Fraction(3, 8)
    assert link.is_symlink()
    assert [file.name for file in folder.iterdir()] == ["town.ledger"]


@pytest.fixture
def mounted(path: Path, tmp_path: Path) -> Iterator[Path]:
    """The ledger's file mounted under another name, as containers do it."""
    (tmp_path / "box").mkdir()
    other = tmp_path / "box" / "town.ledger"
    other.touch()
    command = ["mount", "--bind", str(path), str(other)]
    if (
        shutil.which("mount") is None
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting a file needs root")
    yield other
    subprocess.run(["umount", str(other)], check=True)


def test_a_mounted_file_is_the_same_ledger(ledger: Ledger, path: Path, mounted: Path) -> None:
    inside = Ledger(mounted)
    inside.release(EIGHTH, city())
    ledger.release(EIGHTH, city())
    assert inside.statement() == ledger.statement()
    assert ledger.statement().spent.epsilon == Fraction(3, 8)
    assert [file.name for file in mounted.parent.iterdir()] == ["town.ledger"]


def test_a_mounted_file_of_format_1_pays_under_its_own_name_only(
    ledger: Ledger, path: Path, mounted: Path
) -> None:
    as_format1(path)
    ledger = Ledger(path)
    inside, before = Ledger(mounted), path.read_bytes()
    assert inside.statement() == ledger.statement()
    with pytest.raises(
        LedgerError,
        match=r"is a mount of a single file.*mount its folder instead; nothing was charged",
    ):
        inside.release(EIGHTH, city())
    assert path.read_bytes() == before
    assert [file.name for file in mounted.parent.iterdir()] == ["town.ledger"]
    ledger.release(EIGHTH, city())
    # What is mounted is the file of before, and says so rather than state what was spent then.
    for attempt in (
        lambda: Ledger(mounted),
        inside.statement,
        lambda: inside.release(EIGHTH, city()),
    ):
        with pytest.raises(
            LedgerError, match=r"mounted from a file that was replaced since.*nothing was charged"
        ):
            attempt()
    assert ledger.statement().spent.epsilon == Fraction(1, 4)


def test_a_charge_keeps_who_may_read_and_write(ledger: Ledger, path: Path) -> None:
    path.chmod(0o640)
    owner = (1234, 4321) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(path, *owner)
    os.utime(path, (1, 1))
    ledger.release(EIGHTH, city())
    now = path.stat()
    assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (*owner, 0o640)
    assert now.st_mtime > 1  # backups look at it
