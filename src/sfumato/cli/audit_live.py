"""An audit while it runs: a line that lives on a terminal, now and then one elsewhere, and a last one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sfumato.cli.audit_words import look_line
from sfumato.cli.console import fail, say

if TYPE_CHECKING:
    from sfumato.audit.boxes import Box
    from sfumato.audit.sequential import Look

EVERY = 5.0
"""Seconds from one line to the next where there is no terminal."""
INTERRUPTED = 130


@contextmanager
def betting(box: Box, *, hush: bool, json: bool = False) -> Iterator[Callable[[Look], None]]:
    """Somebody to watch the bet, who says where it stood if it is interrupted."""
    last: list[Look] = []
    with live(f"betting against the claim about {box.name}", hush=hush) as tell:

        def watch(look: Look) -> None:
            last[:] = [look]
            if tell is not None:
                tell(look_line(look))

        try:
            yield watch
        except KeyboardInterrupt:
            stood = "before the first bet"
            if last:
                stood = (
                    f"after {last[0].runs:,} runs: wealth {last[0].wealth:.3g} of {last[0].needed:.4g}; "
                    "not refuted so far"
                )
            fail(f"interrupted {stood}", code=INTERRUPTED, json=json)


@contextmanager
def live(message: str, *, hush: bool) -> Iterator[Callable[[str], None] | None]:
    """A line on a terminal that can be told something new; elsewhere a line each few seconds."""
    if hush:
        yield None
        return
    if not sys.stderr.isatty():
        say(message, quiet=False)
        said = [time.monotonic()]

        def tell(words: str) -> None:
            if time.monotonic() - said[0] >= EVERY:
                said[0] = time.monotonic()
                say(words, quiet=False)

        yield tell
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        line = progress.add_task(message, total=None)
        yield lambda words: progress.update(line, description=words)
