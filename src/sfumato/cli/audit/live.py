"""What is shown while an audit runs: one live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING

from sfumato.cli.console import fail, say
from sfumato.cli.endings import code_of

if TYPE_CHECKING:
    from sfumato.audit import Look

EVERY = 5.0
"""Seconds from one line to the next where there is no terminal."""


@contextmanager
def watching(*, quiet: bool, json: bool = False) -> Iterator[Callable[[Look | str], None]]:
    """Somebody to watch an audit, who says where a bet stood if it is interrupted."""
    from sfumato.audit.render import look_line

    last: list[Look] = []
    with live("", quiet=quiet) as tell:

        def watch(step: Look | str) -> None:
            if isinstance(step, str):
                if tell is not None:
                    tell(step, now=True)
                return
            last[:] = [step]
            if tell is not None:
                tell(look_line(step))

        try:
            yield watch
        except KeyboardInterrupt as end:
            stood = "before anything was concluded"
            if last:
                stood = (
                    f"after {last[0].runs:,} runs: wealth {last[0].wealth:.3g} of {last[0].target:.4g}; "
                    "not refuted so far"
                )
            fail(f"interrupted {stood}", code=code_of(end), json=json)


class Line:
    """What is said while something runs; `now` says it at once even where lines are rare."""

    def __init__(self, show: Callable[[str], None], *, every: float) -> None:
        self._show, self._every, self._last = show, every, time.monotonic()

    def __call__(self, words: str, *, now: bool = False) -> None:
        """Say it, unless something was said a moment ago."""
        if now or time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            self._show(words)


@contextmanager
def live(message: str, *, quiet: bool) -> Iterator[Line | None]:
    """A line on a terminal that can be told something new; elsewhere a line each few seconds."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        if message:
            say(message, quiet=False)
        yield Line(lambda words: say(words, quiet=False), every=EVERY)
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(message, total=None)
        yield Line(lambda words: progress.update(task, description=words), every=0.0)


@contextmanager
def aside() -> Iterator[None]:
    """What a mechanism prints meanwhile goes to stderr, its children's too: stdout is for the result."""
    kept = None
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)
