"""Files that a command will write: refused before anything is paid for, and not written twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from sfumato.errors import ExistsAlready, InvalidInput, InvalidParameter
from sfumato.files.leftovers import scratch_folder


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


def new_folder(folder: Path) -> None:
    """Make a folder for files that belong together, and those above it.

    Args:
        folder: One that is not there.

    Raises:
        ExistsAlready: It is there already, and is kept.
    """
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ExistsAlready(f"{folder} exists already and is kept; choose a new folder") from None


def write_outputs(
    write: Callable[[Path], None], paths: Sequence[Path], *, again: bool = False
) -> None:
    """Write a result into new files; those that hold it already are left, if they may.

    Args:
        write: Writes it to a new file; the suffix says how.
        paths: The files.
        again: Whether it may have been written before.

    Raises:
        ExistsAlready: A file is there, and is another, or must not be there; it is kept.
        InvalidInput: A file could not be written.
    """
    for path in paths:
        if not (again and os.path.lexists(path)):
            write(path)
        elif not holds(write, path):
            raise ExistsAlready(
                f"{path} exists already and is not what was released; it is kept: choose another file"
            )


def holds(write: Callable[[Path], None], path: Path) -> bool:
    """Whether a file holds what would be written to it.

    Args:
        write: Writes it to a new file; the suffix says how.
        path: The file.

    Returns:
        Whether every byte is the same.
    """
    folder, remove = scratch_folder()
    try:
        write(folder / path.name)
        return path.is_file() and path.read_bytes() == (folder / path.name).read_bytes()
    finally:
        remove()
