"""Files that commands of sensors write: refused before anything is paid, and what is paid for is kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli.console import say
from sfumato.errors import InvalidInput, InvalidParameter

if TYPE_CHECKING:
    from sfumato.sensing import Readings


def check_outputs(
    paths: Sequence[Path],
    suffixes: Collection[str],
    *,
    reads: Sequence[Path | None] = (),
    overwrite: bool = False,
) -> None:
    """Refuse outputs that could not be written, or would replace what the command reads.

    That is an unknown suffix, a missing or locked folder, a file that exists already, the same file
    twice.
    """
    inputs = {path.resolve() for path in reads if path is not None}
    for path in paths:
        if path.suffix not in suffixes:
            wanted = " or ".join(sorted(suffixes))
            raise InvalidParameter(
                f"this is written as {wanted}, got {path}; nothing was charged or written"
            )
        if path.resolve() in inputs:
            raise InvalidInput(f"{path} is read by this command and is kept; choose another file")
        if path.is_dir() or (os.path.lexists(path) and not overwrite):
            raise InvalidInput(f"{path} exists already and is kept; nothing was charged or written")
        if not path.parent.is_dir():
            raise InvalidInput(f"the folder of {path} must exist; nothing was charged or written")
        if not os.access(path.parent, os.W_OK):
            raise InvalidInput(
                f"the folder of {path} cannot be written to; nothing was charged or written"
            )
    if len({path.resolve() for path in paths}) < len(paths):
        raise InvalidParameter(
            "every output needs its own file, got one twice; nothing was charged or written"
        )


def write_paid(readings: Readings, paths: Sequence[Path]) -> None:
    """Write readings that were paid for; whatever goes wrong, they are kept if any file can be."""
    keep_paid(
        readings.write, paths, receipt=readings.snapshots[0].release.entry.hash, what="readings"
    )


def keep_paid(
    write: Callable[[Path], None], paths: Sequence[Path], *, receipt: str, what: str
) -> None:
    """Write what was paid for into new files; whatever goes wrong, it is kept if any .json file can be."""
    for path in paths:
        try:
            write(path)
        except BaseException as problem:  # an interrupt too: what is paid for is not thrown away
            rescued = _rescued(write, path, problem, receipt=receipt, what=what)
            if isinstance(problem, Exception):
                raise rescued from problem
            say(str(rescued), quiet=False)
            raise


def _rescued(
    write: Callable[[Path], None], path: Path, problem: BaseException, *, receipt: str, what: str
) -> InvalidInput:
    kept = "and could not be kept anywhere"
    name = f"{path.name}.{receipt[:12]}.json"
    for folder in (path.parent, Path(tempfile.gettempdir())):
        try:
            write(folder / name)
        except BaseException:  # noqa: S112  # whoever interrupts twice is told what became of it
            continue
        kept = f"and kept in {folder / name}"
        break
    why = str(problem) or type(problem).__name__
    return InvalidInput(f"could not write {path} ({why}); the {what} are paid for, {kept}")
