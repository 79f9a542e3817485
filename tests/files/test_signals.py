"""Real processes, ended in the middle: no draft and no spilled row is left, and the old result is whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.privacy.format1_ledger import as_format1

from sfumato.files import leftovers, scratch_folder, write_file
from sfumato.privacy import Ledger, PureDP

pytestmark = pytest.mark.fault

ROOT = Path(__file__).parents[2]
HANGS = 600
"""Seconds after which a process will not end any more, however busy the machine is."""
ENDS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def ended(work: str, folder: Path, *signals: int, before: tuple[str, ...] = ()) -> int:
    """Start a worker, wait until it is in the middle, and give back how it ended."""
    (folder / "tmp").mkdir(exist_ok=True)
    words = [*before, sys.executable, "-m", "tests.files.write_worker", work, str(folder)]
    clean = {**os.environ, "TMPDIR": str(folder / "tmp")}
    with subprocess.Popen(
        words,
        cwd=ROOT,
        env=clean,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        for number in signals:
            process.send_signal(number)
        return process.wait(timeout=HANGS)


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("number", ENDS, ids=lambda one: one.name)
def test_a_write_that_is_ended_leaves_no_draft(tmp_path: Path, number: signal.Signals) -> None:
    assert ended("new", tmp_path, number) == -number
    assert left(tmp_path) == ["tmp"], "a draft is left"


@pytest.mark.parametrize("number", ENDS, ids=lambda one: one.name)
def test_a_write_that_is_ended_leaves_the_old_result(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "result.txt").write_text("old")
    assert ended("over", tmp_path, number) == -number
    assert left(tmp_path) == ["result.txt", "tmp"]
    assert (tmp_path / "result.txt").read_text() == "old"


@pytest.mark.parametrize("number", ENDS, ids=lambda one: one.name)
def test_spilled_rows_go_with_their_process(tmp_path: Path, number: signal.Signals) -> None:
    assert ended("scratch", tmp_path, number) == -number
    assert left(tmp_path) == ["tmp"], "rows are left"


@pytest.mark.parametrize("number", ENDS, ids=lambda one: one.name)
def test_a_charge_that_is_ended_leaves_no_draft(tmp_path: Path, number: signal.Signals) -> None:
    """Only a ledger of format 1 has one: its first charge converts it."""
    ledger = Ledger.create(tmp_path / "a.ledger", PureDP(1), unit="user", source="city")
    as_format1(ledger.path)
    assert ended("charge", tmp_path, number) == -number
    assert left(tmp_path) == ["a.ledger", "tmp"], "a draft of a ledger is left"
    assert Ledger(ledger.path).statement().entries == ()


def test_a_conversion_that_is_ended_when_it_is_made_stands(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", PureDP(1), unit="user", source="city")
    as_format1(ledger.path)
    assert ended("charged", tmp_path, signal.SIGTERM) == -signal.SIGTERM
    assert left(tmp_path) == ["a.ledger", "tmp"]
    assert Ledger(ledger.path).recent().format == 2


@pytest.mark.parametrize(("work", "made"), [("create", []), ("created", ["a.ledger"])])
def test_a_ledger_whose_making_is_ended_leaves_no_draft(
    tmp_path: Path, work: str, made: list[str]
) -> None:
    assert ended(work, tmp_path, signal.SIGTERM) == -signal.SIGTERM
    assert left(tmp_path) == [*made, "tmp"]


def test_a_query_that_is_ended_leaves_no_folder(tmp_path: Path) -> None:
    assert ended("query", tmp_path, signal.SIGTERM) == -signal.SIGTERM
    assert left(tmp_path) == ["tmp"]


def test_kill_by_force_leaves_a_draft_and_the_old_result(tmp_path: Path) -> None:
    """What nobody can catch, nobody can clean up: the threat model says so."""
    (tmp_path / "result.txt").write_text("old")
    assert ended("over", tmp_path, signal.SIGKILL) == -signal.SIGKILL
    assert (tmp_path / "result.txt").read_text() == "old"
    (draft,) = tmp_path.glob(".result.txt.*.part")
    assert draft.read_text() == "half"


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    assert (
        ended("new", tmp_path, signal.SIGHUP, signal.SIGTERM, before=("nohup",)) == -signal.SIGTERM
    )
    assert left(tmp_path) == ["tmp"]


def test_a_fork_removes_nothing_of_its_parent(tmp_path: Path) -> None:
    assert ended("fork", tmp_path) == 0
    assert left(tmp_path) == ["result.txt", "tmp"]
    assert (tmp_path / "result.txt").read_text() == "whole"


def test_signals_are_as_they_were_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What other tests still hold, a plan with its open rows, is not of this one.
    monkeypatch.setattr(leftovers, "_noted", {})

    def mine(*_: object) -> None:
        raise AssertionError

    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, mine)
        with leftovers.removed_after(tmp_path / "a"):
            assert signal.getsignal(signal.SIGTERM) is mine
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        folder, remove = scratch_folder()
        write_file(tmp_path / "b", "b")
        assert (
            signal.getsignal(signal.SIGTERM) is leftovers.end_by_signal
        )  # the folder is still there
        remove()
        assert not folder.exists()
        assert not leftovers._noted
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
