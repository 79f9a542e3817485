"""Files that a command will write: refused before anything is paid for, and kept once it is."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from sfumato.errors import ExistsAlready, InvalidInput, InvalidParameter


def check_outputs(
    paths: Sequence[Path],
    suffixes: Collection[str],
    *,
    reads: Sequence[Path | None] = (),
    overwrite: bool = False,
) -> None:
    """Refuse outputs that could not be written, or would replace what is read, before anything is charged.

    Args:
        paths: The files to be written.
        suffixes: The suffixes they may have, e.g. {".json", ".csv"}.
        reads: Files that are read, which no output may replace.
        overwrite: Whether files that exist give way.

    Raises:
        InvalidParameter: A suffix is another, or two outputs are one file.
        InvalidInput: A file exists or is read, or its folder is missing or cannot be written to.
    """
    inputs = {path.resolve() for path in reads if path is not None}
    for path in paths:
        if path.suffix not in suffixes:
            known = " or ".join(sorted(suffixes))
            raise InvalidParameter(
                f"this is written as {known}, got {path}; nothing was charged or written"
            )
        if path.resolve() in inputs:
            raise InvalidInput(f"{path} is read by this command and is kept; choose another file")
        if path.is_dir() or (os.path.lexists(path) and not overwrite):
            raise ExistsAlready(
                f"{path} exists already and is kept; nothing was charged or written"
            )
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


def keep_paid(
    write: Callable[[Path], None], paths: Sequence[Path], *, receipt: str, what: str
) -> None:
    """Write what was paid for into new files; whatever goes wrong, it is kept if any .json file can be.

    When an interrupt goes on, where it was kept is said on stderr: nobody else could say it.

    Args:
        write: Writes it to a file.
        paths: The files.
        receipt: The hash of the ledger's entry, for the name of a file of last resort.
        what: What it is, in the plural, for messages.

    Raises:
        InvalidInput: A file could not be written; the message says where the rest was kept.
    """
    for path in paths:
        try:
            write(path)
        except BaseException as problem:  # an interrupt too: what is paid for is not thrown away
            rescued = _rescued(write, path, problem, receipt=receipt, what=what)
            if isinstance(problem, Exception):
                raise rescued from problem
            print(rescued, file=sys.stderr)  # noqa: T201
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
