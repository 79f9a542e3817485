"""The files that a source of rows names, told from its name alone."""

from __future__ import annotations

import glob
from pathlib import Path, PurePath
from typing import Any


def is_file_list(source: Any) -> bool:
    """Whether a source is a list of paths or patterns, rather than rows.

    Args:
        source: What `open_table` takes.

    Returns:
        True for a list or tuple of at least one path, and of nothing else.

    """
    return (
        isinstance(source, list | tuple)
        and bool(source)
        and all(isinstance(one, str | PurePath) for one in source)
    )


def named_files(source: Any) -> tuple[Path, ...]:
    """The files and folders that a source of rows names, whether they are there or not.

    Args:
        source: What `open_table` takes.

    Returns:
        The file of FILE::TABLE, the path or pattern itself and all files it matches, those of
        every path of a list; none for a table in memory.

    Example:
        >>> named_files("town.duckdb::trips")
        (PosixPath('town.duckdb'),)
        >>> named_files(["a.csv", "b.csv"])
        (PosixPath('a.csv'), PosixPath('b.csv'))

    """
    if is_file_list(source):
        return tuple(file for one in source for file in named_files(one))
    if not isinstance(source, str | PurePath):
        return ()
    text = str(source)
    matched = (Path(one) for one in glob.glob(text, recursive=True))
    return tuple(dict.fromkeys((Path(text.partition("::")[0]), *matched)))
