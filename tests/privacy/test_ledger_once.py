"""What was paid for is delivered once: keys, values beside the ledger, and drawing again what nobody saw."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.privacy.ledger_worker import city

from sfumato.errors import (
    InvalidInput,
    InvalidParameter,
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerMismatch,
    ReleasedAlready,
)
from sfumato.privacy import DiscreteLaplace, Ledger, PureDP, SystemNoise, histogram
from sfumato.privacy.ledger.storage import store

pytestmark = pytest.mark.fault

TENTH = DiscreteLaplace(10)
MONDAY = {"map": "monday", "levels": 8}


class Fault(SystemNoise):
    """Noise that a process dies of."""

    def laplace(self, scale: Any, size: int) -> Any:
        raise KeyboardInterrupt((scale, size))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "city.ledger", PureDP(1), unit="user", source="city")


def beside(ledger: Ledger) -> list[Path]:
    return store.files(ledger.path)


def interrupted(ledger: Ledger, request: Any = MONDAY, once: str = "") -> None:
    with pytest.raises(KeyboardInterrupt):
        ledger.release(TENTH, city(), noise=Fault(), request=request, once=once)


# keys


def test_a_request_under_a_key_is_released_once(ledger: Ledger) -> None:
    assert ledger.made_once("monday", MONDAY) is None
    first = ledger.release(TENTH, city(), request=MONDAY, once="monday")
    turned = dict(reversed(MONDAY.items()))  # the same request
    for _ in range(2):
        with pytest.raises(
            ReleasedAlready, match=r"'monday' was released as entry 1 of .*; nothing"
        ):
            ledger.release(TENTH, city(), request=turned, once="monday")
    assert ledger.made_once("monday", turned) == first.entry
    ledger.delivered(1)
    again = Ledger(ledger.path).recover(1)
    assert again.value.tolist() == first.value.tolist()
    assert (again.entry, again.guarantee) == (first.entry, first.guarantee)
    assert ledger.undelivered() == ()
    ledger.check(again)
    ledger.release(TENTH, city(), request=MONDAY, once="tuesday")
    assert ledger.statement().spent.epsilon == Fraction(1, 5)


def test_another_request_under_a_key_is_refused(ledger: Ledger) -> None:
    ledger.release(TENTH, city(), request=MONDAY, once="monday")
    with pytest.raises(LedgerMismatch, match=r"'monday' is the key of another request, entry 1 of"):
        ledger.release(TENTH, city(), request={**MONDAY, "levels": 9}, once="monday")
    with pytest.raises(LedgerMismatch, match="the key of another request"):
        ledger.made_once("monday", {})
    assert ledger.statement().count == 1


@pytest.mark.parametrize("key", ["a\nb", "x" * 201, "\x00"])
def test_a_key_is_short_and_printable(ledger: Ledger, key: str) -> None:
    with pytest.raises(InvalidParameter, match="a key must be printable"):
        ledger.release(TENTH, city(), request=MONDAY, once=key)
    with pytest.raises(InvalidParameter, match="a key is that of a request, got none"):
        ledger.release(TENTH, city(), once=key)
    with pytest.raises(InvalidParameter, match="must read from JSON as it was written"):
        ledger.release(TENTH, city(), request={1: 2}, once="a")
    assert ledger.statement().count == 0
    assert not beside(ledger)


def test_words_in_a_note_are_no_key(ledger: Ledger) -> None:
    ledger.release(TENTH, city(), note='"once":"monday"')
    ledger.release(TENTH, city(), request='"once":"monday"')
    assert ledger.made_once("monday", MONDAY) is None
    for key in ('a"b', "\\", "é☃", "'"):
        ledger.release(TENTH, city(), request=MONDAY, once=key)
        assert ledger.made_once(key, MONDAY) is not None


def test_two_processes_under_one_key_pay_once(ledger: Ledger) -> None:
    fork = multiprocessing.get_context("spawn")
    with fork.Pool(2) as pool:
        outcomes = pool.map(_under_a_key, [str(ledger.path)] * 8, chunksize=1)
    assert sorted(outcomes) == ["ReleasedAlready"] * 7 + ["released"]
    assert ledger.statement().count == 1
    assert len(beside(ledger)) == 1


def _under_a_key(path: str) -> str:
    try:
        Ledger(path).release(TENTH, city(), request=MONDAY, once="monday")
    except LedgerError as problem:
        return type(problem).__name__
    return "released"


# values beside the ledger


def test_values_are_kept_until_they_are_delivered(ledger: Ledger) -> None:
    made = ledger.release(TENTH, city(), request=MONDAY, note="m")
    (one,) = ledger.undelivered()
    assert (one.entry, one.request) == (made.entry, MONDAY)
    assert (one.drawn, one.delivered, one.alive) == (True, False, False)
    assert ledger.recover(1).value.tolist() == made.value.tolist()
    ledger.delivered(1)
    assert ledger.undelivered() == ()
    assert not beside(ledger)
    for attempt in (ledger.recover, ledger.kept, ledger.delivered):
        with pytest.raises(InvalidInput, match="nothing of entry 1 is kept beside"):
            attempt(1)
    ledger.release(TENTH, city())  # without a request nothing is kept
    assert not beside(ledger)


def test_what_lies_beside_a_ledger_has_its_rights(ledger: Ledger) -> None:
    ledger.path.chmod(0o640)
    ledger.release(TENTH, city(), request=MONDAY)
    (file,) = beside(ledger)
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.parent.stat().st_mode & 0o777 == 0o750
    assert file.parent.name == "city.ledger.d"


def test_a_refusal_leaves_nothing_beside_the_ledger(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="nothing was released"):
        ledger.release(DiscreteLaplace("1/9"), city(), request=MONDAY, once="monday")
    assert not beside(ledger)
    ledger.release(TENTH, city(), request=MONDAY, once="monday")


def test_a_value_that_no_file_holds_is_handed_out_and_never_drawn_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DiscreteLaplace, "sample", lambda *_: object())
    ledger.release(TENTH, city(), request=MONDAY)
    assert ledger.undelivered() == ()
    assert not beside(ledger)


# drawing again


def test_what_died_before_it_was_drawn_is_drawn_again_at_no_cost(ledger: Ledger) -> None:
    interrupted(ledger, once="monday")
    (one,) = ledger.undelivered()
    assert (one.drawn, one.alive) == (False, False)
    with pytest.raises(InvalidInput, match="was paid for and never drawn"):
        ledger.recover(1)
    with pytest.raises(InvalidInput, match="was never drawn, so not delivered"):
        ledger.delivered(1)
    drawn = ledger.redraw(1, TENTH, city())
    assert drawn.entry == one.entry
    ledger.check(drawn)
    assert ledger.recover(1).value.tolist() == drawn.value.tolist()
    assert ledger.statement().spent.epsilon == Fraction(1, 10)
    with pytest.raises(ReleasedAlready):
        ledger.release(TENTH, city(), request=MONDAY, once="monday")


def test_values_that_were_drawn_are_not_drawn_again(ledger: Ledger) -> None:
    ledger.release(TENTH, city(), request=MONDAY, once="monday")
    with pytest.raises((LedgerMismatch, LedgerBusy), match="nothing was drawn again"):
        ledger.redraw(1, TENTH, city())


def test_a_file_from_before_the_values_does_not_have_them_drawn_again(ledger: Ledger) -> None:
    """A backup of what lies beside the ledger is older than the ledger: it knows that values were drawn."""
    ledger.release(TENTH, city(), request=MONDAY)
    (file,) = beside(ledger)
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    assert not ledger.undelivered()[0].drawn
    with pytest.raises(LedgerMismatch, match=r"were drawn, and may have been seen: .* is older"):
        ledger.redraw(1, TENTH, city())


@pytest.mark.parametrize(
    ("mechanism", "data", "what"),
    [
        (DiscreteLaplace(11), city, "parameters"),
        (DiscreteLaplace(10), lambda: histogram([0, 1], 5, source="city"), "bound"),
        (DiscreteLaplace(10), lambda: histogram([0, 1], 4, source="town"), "source"),
    ],
)
def test_only_what_was_paid_for_is_drawn_again(
    ledger: Ledger, mechanism: Any, data: Callable[[], Any], what: str
) -> None:
    interrupted(ledger)
    with pytest.raises(LedgerMismatch, match=what):
        ledger.redraw(1, mechanism, data())
    ledger.redraw(1, TENTH, city())


def test_nothing_is_drawn_again_while_its_process_lives(ledger: Ledger) -> None:
    seen: list[str] = []

    class Slow(SystemNoise):
        def laplace(self, scale: Any, size: int) -> Any:
            (one,) = Ledger(ledger.path).undelivered()
            seen.append(f"alive {one.alive}")
            for attempt in (
                lambda: Ledger(ledger.path).redraw(1, TENTH, city()),
                lambda: Ledger(ledger.path).move(ledger.path.with_name("new.ledger")),
            ):
                with pytest.raises(LedgerBusy, match="is being drawn"):
                    attempt()
            return super().laplace(scale, size)

    ledger.release(TENTH, city(), request=MONDAY, noise=Slow())
    assert seen == ["alive True"]


def test_a_copy_draws_nothing_again(ledger: Ledger, tmp_path: Path) -> None:
    interrupted(ledger)
    (tmp_path / "b").mkdir()
    shutil.copy(ledger.path, tmp_path / "b")
    shutil.copytree(store.folder_of(ledger.path), tmp_path / "b" / "city.ledger.d")
    with pytest.raises(LedgerMismatch, match="is a copy"):
        Ledger(tmp_path / "b" / "city.ledger").redraw(1, TENTH, city())


def test_values_torn_at_any_byte_are_drawn_again_and_damaged_ones_never(ledger: Ledger) -> None:
    interrupted(ledger)
    (file,) = beside(ledger)
    asked = file.read_bytes()
    entry = ledger.undelivered()[0].entry
    handle = os.open(file, os.O_RDWR)
    guarantee = Ledger.rehearsal(PureDP(1)).release(TENTH, _public()).guarantee
    from sfumato.privacy import Release

    release = Release(np.arange(4), 0, guarantee, ledger.header.id, entry, rehearsal=False)
    store.keep(handle, release)
    os.close(handle)
    whole = file.read_bytes()
    for cut in range(len(asked), len(whole)):
        file.write_bytes(whole[:cut])
        assert not store.kept(file).drawn, cut  # type: ignore[union-attr]
    file.write_bytes(whole)
    assert store.kept(file).drawn  # type: ignore[union-attr]
    damaged = bytearray(whole)
    damaged[len(asked) + 90] ^= 1
    file.write_bytes(bytes(damaged))
    with pytest.raises(LedgerDamaged, match="is damaged; nothing was drawn"):
        ledger.redraw(1, TENTH, city())
    file.write_bytes(whole[:-1])
    drawn = ledger.redraw(1, TENTH, city())
    assert ledger.recover(1).value.tolist() == drawn.value.tolist()


def _public() -> Any:
    from sfumato.privacy import REHEARSAL

    return histogram([0, 1], 4, source=REHEARSAL)
