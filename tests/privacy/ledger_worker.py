"""Lives and deaths of processes that release: run as a script, it reports as JSON what each left behind.

A script of its own, because only a process without threads may fork safely, and one start serves
all forks.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any, NoReturn

import numpy as np
from tests.privacy.format1_ledger import append_in_place, as_format1, last_body

from sfumato.errors import LedgerError, LedgerMismatch, SfumatoError
from sfumato.files import atomic, leftovers
from sfumato.privacy import REHEARSAL, DiscreteLaplace, Guarded, Ledger, PureDP, histogram
from sfumato.privacy.ledger import charging, delivery
from sfumato.privacy.ledger import ledger as ledger_module
from sfumato.privacy.ledger.guarded import open_for_release
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.privacy.ledger.storage import disk, format1, rows, store
from sfumato.privacy.mechanisms import _additive, discrete_laplace

OURS = (ledger_module, charging, delivery, ledger_file, disk, format1, store)
TRACED = {module.__file__ for module in (*OURS, discrete_laplace, _additive, atomic, leftovers)}
# Rehearsed with and without what is kept beside a ledger, and on a file of either format.
KEPT = "kept" in sys.argv[3:]
REQUEST = {"map": 1} if KEPT else None
COST = DiscreteLaplace(8)
PTRACE_TRACEME, PTRACE_SYSCALL = 0, 24

Record = dict[str, Any]


def city() -> Any:
    return histogram(np.array([0, 1, 1]), 4, source="city")


def create(path: Path) -> Ledger:
    return Ledger.create(path, PureDP(1), unit="user", source="city")


def one_entry(path: Path, *, old: bool = "format1" in sys.argv[3:]) -> bytes:
    """The bytes of a ledger of one entry at this path."""
    create(path).release(COST, city())
    if old:
        as_format1(path)
    return path.read_bytes()


def restore(path: Path, content: bytes) -> None:
    """The ledger as it was, alone in its folder, and the same file: a new one would be a copy."""
    for file in set(path.parent.iterdir()) - {path}:
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    path.write_bytes(content)


def beyond(path: Path) -> int:
    """How many bytes lie behind those that a ledger says it has."""
    content = path.read_bytes()
    if content.startswith(format1.MAGIC):
        return 0
    return len(content) - rows.newest_slot(content, str(path))[0].length


def report_samples(pipe: int) -> None:
    """Tell through the pipe as soon as a value exists: from then on it may have been seen."""
    true = DiscreteLaplace.sample

    def telling(self: DiscreteLaplace, values: Any, noise: Any) -> Any:
        value = true(self, values, noise)
        os.write(pipe, b"value\n")
        return value

    DiscreteLaplace.sample = telling  # type: ignore[method-assign]


def in_child(work: Callable[[int], None]) -> tuple[int, int]:
    """Fork a child that does the work with the end of a pipe to write to; its pid and our end."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        return child, ours
    try:
        os.close(ours)
        work(theirs)
        os._exit(0)
    except BaseException as problem:
        os.write(2, f"{type(problem).__name__}: {problem}\n".encode())
        os._exit(1)


def told(pipe: int) -> str:
    with os.fdopen(pipe) as file:
        return file.read()


# deaths: what a process that is killed leaves is its files, and what it told


def left_now(path: Path, pipe: int) -> list[Any]:
    """All that outlives a process: the folder's files, and whether a value was told."""
    told = fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))
    found: list[Any] = [told]
    folders = [str(path.parent)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                file = entry.stat(follow_symlinks=False)
                found.append((entry.path, file.st_ino, file.st_mode, file.st_nlink))
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    handle = os.open(entry.path, os.O_RDONLY)
                    found.append(os.pread(handle, 1 << 24, 0))
                    os.close(handle)
    return found


class Changes:
    """Counts steps, and how often what is left changed between them.

    A death is the same at all steps between two changes: the next process finds the same files,
    and locks end with whoever held them. One of these steps stands for all, the first.
    """

    def __init__(self, path: Path, pipe: int) -> None:
        self.path, self.pipe = path, pipe
        self.steps = self.changes = 0
        self.left = left_now(path, pipe)

    def reach(self, change: int) -> bool:
        """One step more; whether this is the first after so many changes."""
        self.steps += 1
        if (left := left_now(self.path, self.pipe)) != self.left:
            self.left = left
            self.changes += 1
        return self.changes >= change


# deaths by line: the process kills itself at a line of our code


def with_lines(work: Callable[[], Any], path: Path, pipe: int, change: int) -> None:
    """Do the work, dying at the first line of the traced files after so many changes; or say how many lines."""
    seen = Changes(path, pipe)

    def tracer(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in TRACED:
            return None
        if event == "line" and seen.reach(change):
            os.write(pipe, f"{seen.steps}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        return tracer

    sys.settrace(tracer)
    try:
        work()
    finally:
        sys.settrace(None)
    os.write(pipe, f"{seen.steps}\n".encode())


def deaths_by_line(path: Path) -> Iterator[Record]:
    base = one_entry(path)
    for change in count():
        restore(path, base)
        ledger = Ledger(path)

        def life(pipe: int, ledger: Ledger = ledger, change: int = change) -> None:
            report_samples(pipe)
            with_lines(lambda: ledger.release(COST, city(), request=REQUEST), path, pipe, change)

        child, pipe = in_child(life)
        _, status = os.waitpid(child, 0)
        *value, at = told(pipe).split()
        yield {"at": int(at), "status": status, "value": value == ["value"], **aftermath(path)}
        if status != signal.SIGKILL:
            return


def aftermath(path: Path) -> Record:
    """What the next process finds, and how its own release fares."""
    left, torn = sorted(os.listdir(path.parent)), beyond(path)
    found = Ledger(path)
    before = found.statement()
    waiting = found.undelivered()
    for one in waiting:
        drawn = (
            found.recover(one.entry.number)
            if one.drawn
            else found.redraw(one.entry.number, COST, city())
        )
        found.check(drawn)
        found.delivered(one.entry.number)
    release = found.release(COST, city(), note="again")
    after = found.statement()
    found.check(release)
    return {
        "beyond": torn,
        "waiting": [one.drawn for one in waiting],
        "waiting after": len(found.undelivered()),
        "entries": len(before.entries),
        "spent": str(before.spent.epsilon),
        "left": left,
        "left after retry": sorted(os.listdir(path.parent)),
        "entries after retry": len(after.entries),
        "spent after retry": str(after.spent.epsilon),
    }


def creations_by_line(path: Path) -> Iterator[Record]:
    for change in count():

        def life(pipe: int, change: int = change) -> None:
            with_lines(lambda: create(path), path, pipe, change)

        child, pipe = in_child(life)
        _, status = os.waitpid(child, 0)
        at = int(told(pipe))
        made = path.exists()
        if not made:
            create(path)
        ledger = Ledger(path)
        ledger.release(COST, city())
        yield {"at": at, "status": status, "made": made, "entries": len(ledger.statement().entries)}
        for file in path.parent.iterdir():
            file.unlink()
        if status != signal.SIGKILL:
            return


# deaths by system call: the parent kills the child before a call, inside SQLite's commit too


def killed_at_calls(
    path: Path,
    work: Callable[[Path], Any],
    after: Callable[[Path], Record],
    *,
    old: bool = "format1" in sys.argv[3:],
) -> Iterator[Record]:
    """Do the work on a ledger of one entry, dying before each call that finds other files; what came after."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    base = one_entry(path, old=old)
    for change in count():
        restore(path, base)

        def life(pipe: int) -> None:
            report_samples(pipe)
            if libc.ptrace(PTRACE_TRACEME, 0, None, None) != 0:
                os._exit(77)
            os.kill(os.getpid(), signal.SIGSTOP)
            work(path)

        child, pipe = in_child(life)
        _, status = os.waitpid(child, 0)
        stops, seen = 0, Changes(path, pipe)
        while os.WIFSTOPPED(status):
            if stops % 2 and seen.reach(change):  # stops come in pairs, before and after a call
                os.kill(child, signal.SIGKILL)
            else:
                libc.ptrace(PTRACE_SYSCALL, child, None, None)
            _, status = os.waitpid(child, 0)
            stops += 1
        if status == 77 << 8:
            yield {"refused": True}
            return
        value = "value" in told(pipe)
        yield {"at": seen.steps, "status": status, "value": value, **after(path)}
        if status != signal.SIGKILL:
            return


def release_once(path: Path) -> None:
    Ledger(path).release(COST, city(), request=REQUEST)


def deaths_by_call(path: Path) -> Iterator[Record]:
    return killed_at_calls(path, release_once, aftermath)


# one file under several names


def deaths_and_other_names(path: Path) -> Iterator[Record]:
    return killed_at_calls(path, release_once, under_another_name)


def deaths_in_place_and_other_names(path: Path) -> Iterator[Record]:
    def in_place(file: Path) -> None:
        append_in_place(file, {**last_body(file), "note": "in place"})

    return killed_at_calls(path, in_place, under_another_name, old=True)


def under_another_name(path: Path) -> Record:
    """After a death a ledger is moved, without what lies beside it; charged there; and moved back."""
    left, torn = sorted(os.listdir(path.parent)), beyond(path)
    folder = path.parent / "other"
    folder.mkdir(exist_ok=True)
    other, paid = folder / "town.ledger", []
    path.rename(other)
    with suppress(
        LedgerError
    ):  # torn, and what would mend it is not there: then nothing is charged
        paid = [
            Ledger(other).release(COST, city(), note=f"under {name}")
            for name in ("another", "it again")
        ]
    seen = sorted(os.listdir(folder))
    other.rename(path)
    found = Ledger(path)
    before = found.statement()
    with suppress(LedgerMismatch):
        for one in paid:
            found.check(one)
        paid = [found.release(COST, city(), note="back"), *paid]
        found.check(paid[0])
    after = found.statement()
    return {
        "left": left,
        "beyond": torn,
        "under another name": seen,
        "paid": len(paid),
        "entries": len(before.entries),
        "entries after retry": len(after.entries),
        "spent after retry": str(after.spent.epsilon),
        "left after retry": sorted(os.listdir(path.parent)),
    }


# races


def outcome(work: Callable[[], Any]) -> str:
    try:
        work()
    except SfumatoError as problem:
        return type(problem).__name__
    return "released"


def races(path: Path, rounds: int = 20) -> Iterator[Record]:
    """Two processes ask 0.6 of 1 at once; between its check and its entry each waits for the other a while.

    The wait makes a race certain where nothing keeps the two apart; a lock lets it run out.
    """
    fork = multiprocessing.get_context("fork")
    asked, append = DiscreteLaplace(5 / 3), ledger_file.append
    for number in range(rounds):
        file = path.with_name(f"{number}.ledger")
        ledger = create(file)
        start, inside = fork.Barrier(2), fork.Barrier(2)

        def life(
            pipe: int, ledger: Ledger = ledger, start: Any = start, inside: Any = inside
        ) -> None:
            def meeting(*args: Any) -> str:
                with suppress(BrokenBarrierError):
                    inside.wait(0.02)
                return append(*args)

            ledger_file.append = meeting  # type: ignore[assignment]
            start.wait()
            os.write(pipe, outcome(lambda: ledger.release(asked, city())).encode())

        children = [in_child(life) for _ in range(2)]
        outcomes = sorted(told(pipe) for _, pipe in children)
        statuses = [os.waitpid(child, 0)[1] for child, _ in children]
        yield {"outcomes": outcomes, "statuses": statuses, **_sums(ledger)}


def _sums(ledger: Ledger) -> Record:
    """What was paid; nothing that can be read, where two wrote at once."""
    try:
        statement = ledger.statement()
    except LedgerError as damage:
        return {"entries": str(damage), "spent": "0"}
    return {"entries": len(statement.entries), "spent": str(statement.spent.epsilon)}


def crowd(path: Path, people: int = 8) -> Iterator[Record]:
    """Many processes take sixteenths until none is left."""
    ledger = create(path)
    start = multiprocessing.get_context("fork").Barrier(people)

    def life(pipe: int) -> None:
        start.wait()
        for _ in range(100):
            result = outcome(lambda: ledger.release(DiscreteLaplace(16), city()))
            os.write(pipe, f"{result}\n".encode())
            if result != "released":
                return

    children = [in_child(life) for _ in range(people)]
    outcomes = " ".join(told(pipe) for _, pipe in children).split()
    statuses = [os.waitpid(child, 0)[1] for child, _ in children]
    statement = ledger.statement()
    yield {
        "outcomes": sorted(outcomes),
        "statuses": statuses,
        "entries": len(statement.entries),
        "spent": str(statement.spent.epsilon),
    }


# a full disk


def small_files(path: Path) -> Iterator[Record]:
    """Release until no file may grow beyond 24 KiB; then let it grow again."""
    ledger = Ledger.create(path, PureDP(1000), unit="user", source="city")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (24 * 1024, hard))
    yield until_full(ledger, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)))


def until_full(ledger: Ledger, make_room: Callable[[], Any]) -> Record:
    """Release until the ledger says there is no room; then make room and release once more."""
    opened: list[int] = []

    def counted(guarded: Guarded[Any]) -> Any:
        opened.append(1)
        return open_for_release(guarded)

    setattr(ledger_module, "open_for_release", counted)  # noqa: B010
    before, problem = ledger.statement(), ""
    while not problem:
        before = ledger.statement()
        opened.clear()
        try:
            ledger.release(COST, city(), note="x" * 700)
        except LedgerError as error:
            problem = f"{type(error).__name__}: {error}"
    setattr(ledger_module, "open_for_release", open_for_release)  # noqa: B010
    full = ledger.statement()
    make_room()
    ledger.check(ledger.release(COST, city(), note="x" * 700))
    after = ledger.statement()
    return {
        "problem": problem,
        "opened": len(opened),
        "releases": len(before.entries),
        "spent": [str(s.spent.epsilon) for s in (before, full, after)],
        "heads": [s.head for s in (before, full)],
    }


WORKS: dict[str, Callable[[Path], Iterator[Record]]] = {
    work.__name__: work
    for work in (
        deaths_by_line,
        deaths_by_call,
        deaths_and_other_names,
        deaths_in_place_and_other_names,
        creations_by_line,
        races,
        crowd,
        small_files,
    )
}


def main() -> NoReturn:
    if name := os.environ.get("SFUMATO_SABOTEUR"):
        from tests.saboteurs import SABOTEURS  # half the package: only where one strikes

        SABOTEURS[name].strike()
    Ledger.rehearsal(PureDP(1)).release(
        COST, histogram([0], 1, source=REHEARSAL)
    )  # loads what is lazy
    for record in WORKS[sys.argv[1]](Path(sys.argv[2]) / "city.ledger"):
        print(json.dumps(record))
    sys.exit(0)


if __name__ == "__main__":
    main()
