"""How a command ends: one exit code for each kind of end, and by the signal where one ended it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from sfumato.files import end_by_signal

(
    DONE,
    FAILED,
    USAGE,
    REFUSED,
    INVALID,
    INCONCLUSIVE,
    LOW,
    MADE_BEFORE,
    EXISTS,
    UNRELIABLE,
    STOPPED,
) = range(11)
READER_GONE = 128 + 13  # as for any tool that SIGPIPE ends

MEANINGS = {
    DONE: "done",
    FAILED: "claim refuted or check failed",
    USAGE: "usage",
    REFUSED: "budget refused",
    INVALID: "input invalid",
    INCONCLUSIVE: "inconclusive",
    LOW: "less is left than --fail-below",
    MADE_BEFORE: "made before under its --once key, nothing charged",
    EXISTS: "a file exists already and is kept",
    UNRELIABLE: "an answer that its readings contradict",
    STOPPED: "a party of a joint map, or the shuffler of a shuffled one, stopped or disagrees",
    129: "ended by SIGHUP",
    130: "by SIGINT (Ctrl-C)",
    READER_GONE: "nobody reads the output any more",
    143: "by SIGTERM",
}
"""What each exit code means, as a shell shows it: of `--help`, and of the page about the ledger."""

ENDS = ("SIGTERM", "SIGHUP")


class Interrupted(KeyboardInterrupt):
    """A signal that asks to end, as an exception, so that who was paid can say so first."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def code_of(end: KeyboardInterrupt) -> int:
    """The exit code of an interrupt: 128 and the number of its signal."""
    return 128 + (end.number if isinstance(end, Interrupted) else int(signal.SIGINT))


@contextmanager
def told_of_signals() -> Iterator[None]:
    """While a command pays: SIGTERM and SIGHUP come as `Interrupted`, once; the same again ends it at once.

    Elsewhere they end the process as they always do, also in the middle of a long computation. One
    that somebody ignores or handles stays theirs; what removes leftovers at an end is ours.
    """
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        known = [signal.Signals[one] for one in ENDS if one in signal.Signals.__members__]
        before = {one: signal.getsignal(one) for one in known}
    ours = {one: by for one, by in before.items() if by in (signal.SIG_DFL, end_by_signal)}

    def interrupt(number: int, _: FrameType | None) -> None:
        signal.signal(number, ours[signal.Signals(number)])
        raise Interrupted(number)

    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, by in ours.items():
            if signal.getsignal(number) is interrupt:
                signal.signal(number, by)


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP end what runs, in order: by what they call."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    before = {number: signal.signal(number, lambda *_: stop()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_to_end(command: Callable[[], object]) -> None:
    """Run the command line, and end as it ended."""
    code: object = DONE
    try:
        command()
    except SystemExit as end:
        gone = isinstance(end.__context__, BrokenPipeError)
        code = READER_GONE if gone else end.code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = READER_GONE
    if code == READER_GONE:
        # What is still to be written goes nowhere, so that nothing fails again at the end.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if code in (129, 130, 143):
        with suppress(OSError):
            sys.stderr.flush()
        # By the signal itself: a shell stops its loop for that, and not for the number.
        end_by_signal(int(str(code)) - 128)
    raise SystemExit(code)
