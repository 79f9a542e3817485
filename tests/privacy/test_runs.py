"""Runs: what was paid for is drawn once, charged once and delivered, whoever comes between."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any

import pytest
from tests.privacy.ledger_worker import city

from sfumato.errors import InvalidInput, LedgerBusy, LedgerError, LedgerMismatch
from sfumato.privacy import DiscreteLaplace, Ledger, PureDP, SystemNoise
from sfumato.privacy.ledger import delivery
from sfumato.privacy.ledger.storage import disk, store
from sfumato.privacy.runs import (
    KeptRun,
    Request,
    ResumeResult,
    Run,
    kept_runs,
    locks,
    resume,
    undelivered,
)
from sfumato.privacy.runs.resume import resume_runs

pytestmark = pytest.mark.fault

TENTH = DiscreteLaplace(10)
REQUEST = Request("map/1", "heatmap", {"map": "monday"}, {"outputs": []})
MONDAY = {"map": "monday"}


class Died(Exception):
    """What stops a process here."""


class Deadly(SystemNoise):
    """Noise that a process dies of."""

    def laplace(self, scale: Any, size: int) -> Any:
        raise Died((scale, size))


@dataclass(frozen=True)
class Values:
    """What a run gave."""

    values: tuple[tuple[int, ...], ...]

    def to_json(self) -> dict[str, Any]:
        return {"values": self.values}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "city.ledger", PureDP(1), unit="user", source="city")


def carried_out(
    run: Run, ledger: Ledger, parts: str, *, dies_at: str = "", data: Callable[[], Any] = city
) -> Values:
    """A run of one release for each letter; it dies before it says that all were delivered, or draws one."""
    found = []
    with run.on(ledger):
        for part in parts:
            dead = Deadly() if part == dies_at else None
            made, _ = run.release(ledger, TENTH, data, part=part, noise=dead)
            found.append(tuple(made.value.tolist()))
        if dies_at == "end":
            raise Died
        run.delivered()
    return Values(tuple(found))


def stopped(ledger: Ledger, parts: str, dies_at: str, once: str = "") -> None:
    with pytest.raises(Died):
        carried_out(Run(REQUEST, once=once, anew=True), ledger, parts, dies_at=dies_at)


def finished(ledger: Ledger, parts: str, data: Callable[[], Any] = city) -> ResumeResult[Values]:
    def finish(kept: KeptRun) -> Values:
        return carried_out(Run(REQUEST, kept=kept), ledger, parts, data=data)

    return resume_runs(ledger.path, lambda: [ledger], kinds=("map/1",), finish=finish)


def entries(ledger: Ledger) -> int:
    return ledger.statement().count


def draws(ledger: Ledger) -> int:
    """How often the ledger says that values were drawn."""
    return ledger.path.read_bytes().count(b'"kind":"drawn"')


def beside(ledger: Ledger) -> list[str]:
    folder = store.folder_of(ledger.path)
    return sorted(os.listdir(folder)) if folder.exists() else []


# another process comes between


def test_a_run_that_another_process_went_on_with_is_not_charged_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two list what is to be finished; the first pays for the second part, and cannot deliver."""
    stopped(ledger, "a", "end")
    listed = kept_runs([ledger])
    with pytest.raises(Died):
        carried_out(Run(REQUEST, kept=listed[0]), ledger, "ab", dies_at="end")
    monkeypatch.setattr(resume, "kept_runs", lambda _: listed)
    done = finished(ledger, "ab")
    assert (len(done.finished), entries(ledger), draws(ledger)) == (1, 2, 2)
    assert beside(ledger) == []


def test_a_run_that_ends_between_two_looks_was_delivered(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same request comes under another key just then: nothing waits to be finished."""
    first = Run(REQUEST, once="first")
    working = first.on(ledger)
    working.__enter__()
    first.release(ledger, TENTH, city)

    def ends(where: Ledger, name: str) -> bool:
        if name == first.name and store.kept(store.files(ledger.path)[0]).drawn:  # type: ignore[union-attr]
            first.delivered()
            working.__exit__(None, None, None)
        return locks.is_taken(where, name)

    monkeypatch.setattr(undelivered, "is_taken", ends)
    carried_out(Run(REQUEST, once="second"), ledger, "a")
    assert (entries(ledger), draws(ledger), ledger.undelivered()) == (2, 2, ())


def test_a_run_that_another_process_has_finished_is_left(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(ledger, "ab", "b")
    listed = kept_runs([ledger])
    finished(ledger, "ab")
    monkeypatch.setattr(resume, "kept_runs", lambda _: listed)
    done = finished(ledger, "ab")
    assert (done.finished, done.waiting, entries(ledger), draws(ledger)) == ((), (), 2, 2)


def test_a_run_that_another_process_is_at_does_not_stop_the_others(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(ledger, "a", "end")
    stopped(ledger, "a", "a")
    listed = kept_runs([ledger])
    monkeypatch.setattr(resume, "kept_runs", lambda _: listed)
    with locks.alone(ledger, listed[0].run):
        done = finished(ledger, "a")
    assert [one.entries for one in done.finished] == [(2,)]
    assert [(one.entries, one.state) for one in done.waiting] == [((1,), "in progress")]
    assert [one.entries for one in finished(ledger, "a").finished] == [(1,)]


def test_two_processes_finish_one_run_with_one_charge_and_one_draw(tmp_path: Path) -> None:
    """With and without a key, twenty times each: one draws, and the other finds it or lets it be.

    Each waits a while for the other before it charges or draws: that makes a race certain where
    nothing keeps the two apart, and a lock lets it run out.
    """
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(2, _meet_at, (spawn.Barrier(2), spawn.Barrier(2))) as pool:
        for number in range(40):
            ledger = Ledger.create(
                tmp_path / f"{number}.ledger", PureDP(1), unit="user", source="city"
            )
            once = "monday" if number % 2 else ""
            if number % 4 < 2:  # the second part is to be charged yet
                stopped(ledger, "a", "end", once=once)
            else:
                stopped(ledger, "ab", "b", once=once)
            told = pool.map(_finish, [(str(ledger.path), once)] * 2, chunksize=1)
            assert (entries(ledger), draws(ledger)) == (2, 2)
            given = [one for one in told if isinstance(one, tuple)]
            assert given, told
            assert len(set(given)) == 1, told  # nobody saw other values
            assert {one for one in told if isinstance(one, str)} <= {"nothing", "busy"}
            assert once or len(given) == 1, told
            assert ledger.statement().spent.epsilon == Fraction(1, 5)
            assert kept_runs([ledger]) == ()


_start: Any = None
_inside: Any = None


def _meet_at(start: Any, inside: Any) -> None:
    global _start, _inside
    _start, _inside = start, inside
    if name := os.environ.get("SFUMATO_SABOTEUR"):
        from tests.saboteurs import SABOTEURS

        SABOTEURS[name].strike()


def _finish(asked: tuple[str, str]) -> Any:
    path, once = asked
    ledger = Ledger(path)

    def meeting() -> Any:
        with suppress(BrokenBarrierError):
            _inside.wait(0.05)
        return city()

    if _start.wait() == 0:
        _inside.reset()
    _start.wait()
    try:
        if once:
            return carried_out(Run(REQUEST, once=once), ledger, "ab", data=meeting).values
        (found,) = finished(ledger, "ab", meeting).results or (None,)
    except LedgerBusy:
        return "busy"
    return "nothing" if found is None else found.values


# the folder beside the ledger


def test_a_folder_that_others_make_and_take_away_is_made_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has made it when this one wants to, and taken it away when this one looks."""
    true, gone = os.mkdir, [3]

    def made_by_another(path: Any, *how: Any, **more: Any) -> None:
        if str(path).endswith(".ledger.d") and gone[0]:
            gone[0] -= 1
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        true(path, *how, **more)

    monkeypatch.setattr(os, "mkdir", made_by_another)
    carried_out(Run(REQUEST), ledger, "a")
    assert (gone, entries(ledger)) == ([0], 1)


def test_many_processes_make_and_take_away_the_folder(ledger: Ledger) -> None:
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(2) as pool:
        assert pool.map(_in_and_out, [(str(ledger.path), name) for name in "ab"]) == [200, 200]
    assert beside(ledger) == []


def _in_and_out(asked: tuple[str, str]) -> int:
    path, name = asked
    ledger = Ledger(path)
    for _ in range(200):
        with locks.alone(ledger, name):
            pass
    return 200


@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_place_of_the_folder_is_refused(
    ledger: Ledger, tmp_path: Path, there: bool
) -> None:
    if there:
        (tmp_path / "elsewhere").mkdir()
    store.folder_of(ledger.path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerError, match=r"is a link, .* nothing was charged or released"):
        ledger.release(TENTH, city(), request=MONDAY)
    with pytest.raises(LedgerError, match=r"is a link, .* nothing was charged or released"):
        carried_out(Run(REQUEST), ledger, "a")
    assert entries(ledger) == 0
    assert not there or os.listdir(tmp_path / "elsewhere") == []


def test_a_file_in_place_of_the_folder_is_refused_before_the_charge(ledger: Ledger) -> None:
    store.folder_of(ledger.path).write_text("mine")
    with pytest.raises(LedgerError, match=r"Not a directory\): nothing was charged or released"):
        carried_out(Run(REQUEST), ledger, "a")
    assert entries(ledger) == 0


@pytest.fixture
def usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_mask")
@pytest.mark.parametrize("mode", [0o600, 0o660])
def test_who_may_charge_a_ledger_may_use_what_lies_beside_it(ledger: Ledger, mode: int) -> None:
    """A ledger that a group shares is not spoilt by the mask of whoever comes first."""
    ledger.path.chmod(mode)
    seen = {}
    with locks.alone(ledger, "x"):
        ledger.release(TENTH, city(), request=MONDAY)
        folder = store.folder_of(ledger.path)
        for path in (folder, *folder.iterdir()):
            seen[path.suffix] = stat.S_IMODE(path.stat().st_mode)
    assert seen == {".d": mode | mode >> 2 & 0o111, ".jsonl": mode, ".lock": mode}


# what nobody may take away


def test_what_was_paid_for_since_somebody_looked_is_not_removed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen as asked and not paid, then charged, and let go, while the one who saw it waited for the lock."""
    with pytest.raises(Died):
        ledger.release(TENTH, city(), noise=Deadly(), request=MONDAY, once="monday")
    true, looks = delivery._paid_for, []

    def at_first_not(book: Ledger, entry: Any) -> bool:
        looks.append(entry)
        return len(looks) > 1 and true(book, entry)

    monkeypatch.setattr(delivery, "_paid_for", at_first_not)
    ledger.undelivered()
    assert len(looks) > 1
    ledger.redraw(1, TENTH, city())


def test_what_another_ledger_of_that_name_has_paid_for_is_left(ledger: Ledger) -> None:
    """A ledger is put aside without what lies beside it, and another is made in its place."""
    made = ledger.release(TENTH, city(), request=MONDAY)
    aside = ledger.path.with_name("old.ledger")
    ledger.path.rename(aside)
    other = Ledger.create(ledger.path, PureDP(1), unit="user", source="city")
    assert other.undelivered() == ()
    other.release(TENTH, city(), request=MONDAY)
    other.delivered(1)
    other.path.unlink()
    aside.rename(ledger.path)
    assert ledger.recover(1).value.tolist() == made.value.tolist()


def test_what_an_older_ledger_does_not_know_is_left(ledger: Ledger) -> None:
    """A backup of the ledger is put back: what it forgot was drawn, so it was paid for."""
    before = ledger.path.read_bytes()
    ledger.release(TENTH, city(), request=MONDAY)
    after = ledger.path.read_bytes()
    ledger.path.write_bytes(before)
    assert ledger.undelivered() == ()
    with pytest.raises(InvalidInput, match="nothing of entry 1 is kept"):
        ledger.recover(1)
    ledger.path.write_bytes(after)
    assert ledger.recover(1).entry == ledger.statement().entries[0]


def test_a_part_whose_forerunner_is_missing_is_neither_delivered_nor_removed(
    ledger: Ledger,
) -> None:
    """Its file was lost, or lies beside a ledger that was put elsewhere."""
    stopped(ledger, "ab", "end")
    first, second = store.files(ledger.path)
    kept = first.read_bytes()
    first.unlink()
    done = finished(ledger, "ab")
    assert [(one.entries, one.state) for one in done.waiting] == [((2,), "incomplete")]
    assert (done.finished, entries(ledger)) == ((), 2)
    assert store.files(ledger.path) == [second]
    first.write_bytes(kept)
    assert [one.entries for one in finished(ledger, "ab").finished] == [(1, 2)]
    assert entries(ledger) == 2


@pytest.mark.parametrize("once", ["", "monday"])
def test_a_death_at_any_step_of_ticking_off_is_ticked_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: str
) -> None:
    true, left = Ledger.delivered, [0]

    def deadly(self: Ledger, number: int, **how: Any) -> None:
        if not left[0]:
            raise Died
        left[0] -= 1
        true(self, number, **how)

    for steps in range(7):
        ledger = Ledger.create(tmp_path / f"{steps}.ledger", PureDP(1), unit="user", source="city")
        left[0] = steps
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "delivered", deadly)
            try:
                carried_out(Run(REQUEST, once=once), ledger, "abc")
                assert steps == 6
            except Died:
                assert steps < 6
        done = finished(ledger, "abc")
        # Before the first is said to be delivered, none was; from then on all are.
        assert [one is None for one in done.results] == (
            [False] if steps == 0 else [] if steps == 6 or (once and steps >= 3) else [True]
        )
        assert (entries(ledger), draws(ledger), done.waiting) == (3, 3, ())
        assert len(beside(ledger)) == (3 if once else 0)


# values that nobody may draw again


def test_a_line_that_was_torn_is_replaced(ledger: Ledger) -> None:
    """The disk was full, or the power went, while it was written that values were delivered."""
    made = ledger.release(TENTH, city(), request=MONDAY, once="monday")
    (file,) = store.files(ledger.path)
    drawn = file.read_bytes()
    ledger.delivered(1)
    whole = file.read_bytes()
    for cut in range(len(drawn), len(whole)):
        file.write_bytes(whole[:cut])
        ledger.delivered(1)
        assert file.read_bytes() == whole, cut
    assert ledger.recover(1).value.tolist() == made.value.tolist()


def test_values_that_no_disk_took_leave_no_part_of_themselves(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        true = disk.put

        def full(handle: int, data: bytes, at: int) -> None:
            if b'"kind":"drawn"' in data:
                true(handle, data[:-3], at)
                raise OSError(errno.ENOSPC, "No space left on device")
            true(handle, data, at)

        patch.setattr(store, "put", full)
        with pytest.raises(LedgerError, match="is charged; its values could not be kept"):
            ledger.release(TENTH, city(), request=MONDAY)
    (file,) = store.files(ledger.path)
    assert b"drawn" not in file.read_bytes()
    ledger.redraw(1, TENTH, city())
    assert (entries(ledger), draws(ledger)) == (1, 1)


def test_values_that_no_file_holds_are_not_drawn_again_from_a_file_put_back(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    true, seen = store.keep, []

    def copied(handle: int, release: Any, attached: Any = None) -> str:
        seen.append(store.files(ledger.path)[0].read_bytes())
        return true(handle, release, attached)

    with monkeypatch.context() as patch:
        patch.setattr(store, "keep", copied)
        patch.setattr(DiscreteLaplace, "sample", lambda *_: object())
        made = ledger.release(TENTH, city(), request=MONDAY)
    store.file_of(ledger.path, made.entry).write_bytes(seen[0])
    with pytest.raises(LedgerMismatch, match="were drawn, and may have been seen"):
        ledger.redraw(1, TENTH, city())


def test_a_file_that_was_taken_away_meanwhile_is_not_drawn_into(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever drew before handed the values out, and took the file away, after this one had opened it."""
    with pytest.raises(Died):
        ledger.release(TENTH, city(), noise=Deadly(), request=MONDAY)
    (file,) = store.files(ledger.path)
    true = disk.taken

    def just_then(handle: int) -> bool:
        file.unlink()
        return true(handle)

    monkeypatch.setattr(store, "taken", just_then)
    with pytest.raises(LedgerBusy, match="nothing was drawn again"):
        ledger.redraw(1, TENTH, city())


def test_values_that_were_recovered_are_noted_in_the_ledger(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever drew them was killed before; a file from before must not have them drawn again."""
    with pytest.raises(Died):
        ledger.release(TENTH, city(), noise=Deadly(), request=MONDAY)
    (file,) = store.files(ledger.path)
    asked = file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(delivery, "_note_drawn", lambda *_: None)
        drawn = ledger.redraw(1, TENTH, city())
    assert draws(ledger) == 0
    for _ in range(2):
        assert ledger.recover(1).value.tolist() == drawn.value.tolist()
    assert draws(ledger) == 1
    file.write_bytes(asked)
    with pytest.raises(LedgerMismatch, match="were drawn, and may have been seen"):
        ledger.redraw(1, TENTH, city())


def test_whoever_looks_sees_nobody_at_work_in_another_who_looks(ledger: Ledger) -> None:
    with pytest.raises(Died):
        ledger.release(TENTH, city(), noise=Deadly(), request=MONDAY)
    (file,) = store.files(ledger.path)
    import fcntl

    with file.open() as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        assert not disk.is_locked(file)
        assert not ledger.undelivered()[0].alive
    ledger.redraw(1, TENTH, city())


def test_what_is_delivered_while_somebody_lists_is_no_error(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.release(TENTH, city(), request=MONDAY)
    listed = store.files(ledger.path)
    ledger.delivered(1)
    monkeypatch.setattr(store, "files", lambda _: listed)
    assert ledger.undelivered() == ()
    with pytest.raises(InvalidInput, match="nothing of entry 1 is kept"):
        ledger.recover(1)


# the order of things


def test_what_was_drawn_is_delivered_as_it_was_drawn(ledger: Ledger) -> None:
    stopped(ledger, "ab", "end")
    drawn = tuple(tuple(ledger.recover(number).value.tolist()) for number in (1, 2))
    (found,) = finished(ledger, "ab").results
    assert found is not None
    assert found.values == drawn
    assert (entries(ledger), draws(ledger)) == (2, 2)


def test_values_are_on_the_disk_before_anybody_has_them(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked, waited for; charged, waited for; drawn; kept, waited for; and only then handed out."""
    steps: list[str] = []
    write, wait = os.pwrite, os.fsync

    def name(handle: int) -> str:
        return Path(os.readlink(f"/proc/self/fd/{handle}")).suffix

    def written(handle: int, data: Any, at: int) -> int:
        steps.append(f"write {name(handle)}")
        return write(handle, data, at)

    def waited(handle: int) -> None:
        steps.append(f"wait {name(handle)}")
        wait(handle)

    class Noted(SystemNoise):
        def laplace(self, scale: Any, size: int) -> Any:
            steps.append("draw")
            return super().laplace(scale, size)

    monkeypatch.setattr(os, "pwrite", written)
    monkeypatch.setattr(os, "fsync", waited)
    ledger.release(TENTH, city(), request=MONDAY, noise=Noted())
    steps.append("hand out")
    drawn = steps.index("draw")
    kept = [step for step in steps if not step.startswith("wait .d")]  # folders wait for themselves
    assert [
        step for step in kept[: kept.index("draw")] if ".jsonl" in step or ".ledger" in step
    ] == [
        "write .jsonl",
        "wait .jsonl",
        *["write .ledger", "wait .ledger"] * 2,
    ]
    assert steps[drawn + 1 : drawn + 3] == ["write .jsonl", "wait .jsonl"]
    assert steps[-1] == "hand out"


# killed between any two system calls


@pytest.mark.skipif(
    sys.platform != "linux", reason="steps through system calls with Linux's ptrace"
)
@pytest.mark.parametrize("work", ["runs", "resumes"])
def test_a_run_killed_at_any_system_call_is_finished_once(work: str, tmp_path: Path) -> None:
    """Whatever it had charged is delivered by the next, charged once, and never seen in two versions."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.privacy.run_worker", work, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    deaths = [json.loads(line) for line in done.stdout.splitlines()]
    if deaths == [{"refused": True}]:
        pytest.skip("this machine does not let a process trace its child")
    assert deaths[-1]["at"] > 300
    for death in deaths:
        assert death["entries"] == (2 if death["charged"] else 0), death
        assert death["there"] in (None, death["found"]), death
        assert (death["found"] is None) == (death["charged"] == 0), death
        assert death["draws"] <= death["entries"], death
        assert (death["again"], death["left"]) == (0, []), death
    states = {state for death in deaths for state in death["states"]}
    assert states == {"charged", "drawn", "delivered in part"}
    assert {death["charged"] for death in deaths} == {0, 1, 2}
    assert deaths[-1]["status"] == 0


# a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=96k", "sfumato-test", str(disk)]
    if (
        shutil.which("mount") is None
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_full_at_any_moment_loses_nothing(small_disk: Path) -> None:
    """With room for no page, one, two, ... more: what was charged is finished when there is room again."""
    told: set[tuple[int, bool]] = set()
    ballast = small_disk / "ballast"
    for pages in range(6):
        ledger = Ledger.create(
            small_disk / f"{pages}.ledger", PureDP(1), unit="user", source="city"
        )
        free = os.statvfs(small_disk).f_bavail
        ballast.write_bytes(bytes(4096 * (free - pages)))
        said = ""
        try:
            carried_out(Run(REQUEST, once="monday"), ledger, "ab")
        except LedgerError as problem:
            said = str(problem)
        charged = entries(ledger)
        if said:
            assert ("sfumato heatmap resume" in said) == (charged > 0), said
            assert charged or "nothing was charged" in said
        told.add((charged, bool(said)))
        ballast.unlink()
        values = carried_out(Run(REQUEST, once="monday"), ledger, "ab").values
        assert (entries(ledger), draws(ledger)) == (2, 2)
        assert values == carried_out(Run(REQUEST, once="monday"), ledger, "ab").values
        for path in (*store.folder_of(ledger.path).iterdir(), ledger.path):
            path.unlink()
        store.folder_of(ledger.path).rmdir()
    assert (0, True) in told
    assert (2, False) in told
