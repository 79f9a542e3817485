"""Where a ledger is: copies do not pay, renames do, and what was moved or closed says so."""

from __future__ import annotations

import os
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.privacy.ledger_worker import city

from sfumato.errors import InvalidInput, LedgerClosed, LedgerError, LedgerMismatch
from sfumato.privacy import DiscreteLaplace, Ledger, PureDP
from sfumato.privacy.ledger.storage import book as ledger_file

pytestmark = pytest.mark.unit

TENTH = DiscreteLaplace(10)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "city.ledger", PureDP(1), unit="user", source="city")
    made.release(TENTH, city())
    return made


def spent(ledger: Ledger) -> Fraction:
    return Ledger(ledger.path).statement().spent.epsilon


def test_a_copy_is_refused_and_says_the_way_out(ledger: Ledger, tmp_path: Path) -> None:
    copy = Path(shutil.copy(ledger.path, tmp_path / "copy.ledger"))
    before = copy.read_bytes()
    copied = Ledger(copy)
    assert copied.statement() == ledger.statement()  # anybody may read it
    with pytest.raises(LedgerMismatch) as refusal:
        copied.release(TENTH, city())
    assert str(refusal.value) == (
        f"{copy} is a copy: the ledger was last charged as {ledger.path}, another file; charge that one, or "
        f"say that this is the ledger now: sfumato ledger move {copy}; nothing was charged"
    )
    assert copy.read_bytes() == before
    ledger.release(TENTH, city())
    assert spent(ledger) == Fraction(1, 5)
    copied.move()
    copied.release(TENTH, city())
    ledger.release(TENTH, city())  # not covered: whoever says it of two copies has two


def test_renames_restores_and_links_pay(ledger: Ledger, tmp_path: Path) -> None:
    path = ledger.path
    renamed = path.rename(tmp_path / "town.ledger")
    Ledger(renamed).release(TENTH, city())
    other = tmp_path / "other"
    other.mkdir()
    renamed = renamed.rename(other / "town.ledger")
    Ledger(renamed).release(TENTH, city())
    content = renamed.read_bytes()
    renamed.unlink()
    renamed.write_bytes(content)  # as an editor, rsync or a restore puts it
    Ledger(renamed).release(TENTH, city())
    link = tmp_path / "link.ledger"
    link.symlink_to(renamed)
    Ledger(link).release(TENTH, city())
    assert spent(Ledger(link)) == Fraction(1, 2)


def test_a_moved_ledger_goes_on_and_the_old_one_is_closed(ledger: Ledger, tmp_path: Path) -> None:
    ledger.release(TENTH, city(), request={"map": 1}, once="monday")
    ledger.release(TENTH, city(), request={"map": 2})
    (tmp_path / "vault").mkdir()
    new = ledger.move(tmp_path / "vault" / "city.ledger")
    assert [one.entry.number for one in new.undelivered()] == [2, 3]
    assert new.recover(3).entry.number == 3
    new.release(TENTH, city())
    assert spent(new) == Fraction(2, 5)
    for attempt in (
        lambda: ledger.release(TENTH, city()),
        lambda: ledger.afford(PureDP("1/10")),
        lambda: ledger.close(),
        lambda: ledger.move(tmp_path / "again.ledger"),
        lambda: ledger.move(new.path),
    ):
        with pytest.raises((LedgerClosed, InvalidInput), match=r"closed at .*it is .*vault|exists"):
            attempt()
    found = Ledger(ledger.path).statement()
    assert found.closed is not None
    assert found.closed.successor == str(new.path.resolve())
    assert found.spent.epsilon == Fraction(3, 10)
    # A copy of what was closed cannot be declared the ledger either.
    copy = Path(shutil.copy(ledger.path, tmp_path / "copy.ledger"))
    with pytest.raises(LedgerClosed):
        Ledger(copy).move()


@pytest.mark.fault
def test_a_move_that_was_interrupted_is_finished_by_the_same_words(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new.ledger"

    def broken(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(ledger_file, "name_moved", broken)
    with pytest.raises(
        LedgerError, match=r"is closed and .* not made yet .*; say it again: sfumato"
    ):
        ledger.move(new)
    monkeypatch.undo()
    assert not new.exists()
    with pytest.raises(LedgerClosed):
        ledger.release(TENTH, city())
    with pytest.raises(LedgerClosed):
        ledger.move(tmp_path / "elsewhere.ledger")
    moved = ledger.move(new)
    moved.release(TENTH, city())
    assert spent(moved) == Fraction(1, 5)
    new.unlink()
    with pytest.raises(
        LedgerClosed
    ):  # it was moved once: what went on from there is not known here
        ledger.move(new)


@pytest.mark.fault
def test_a_move_that_fails_before_it_closes_leaves_the_ledger_open(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger_file, "write_new", full)
    with pytest.raises(LedgerError, match="no room to write"):
        ledger.move(tmp_path / "new.ledger")
    monkeypatch.undo()
    ledger.release(TENTH, city())
    assert sorted(os.listdir(tmp_path)) == ["city.ledger"]


def test_a_closed_ledger_is_read_and_pays_for_nothing(ledger: Ledger) -> None:
    published = ledger.release(TENTH, city())
    ledger.close("the study is over")
    with pytest.raises(
        LedgerClosed, match=r"was closed at .* \(the study is over\); nothing was c"
    ):
        ledger.release(TENTH, city())
    with pytest.raises(LedgerClosed):
        ledger.close()
    Ledger(ledger.path).check(published)
    assert Ledger(ledger.path).statement().left == PureDP("4/5")


def test_a_move_that_died_when_it_had_its_name_is_a_ledger(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the new name and the end of the draft: the draft is no second name."""
    new = tmp_path / "new.ledger"

    def killed(draft: Path, name: Path) -> None:
        os.link(draft, name)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger_file, "name_moved", killed)
        with pytest.raises(KeyboardInterrupt):
            ledger.move(new)
    before = spent(Ledger(new))
    Ledger(new).release(TENTH, city())
    assert spent(Ledger(new)) == before + Fraction(1, 10)
    assert not list(tmp_path.glob(".*.move"))
