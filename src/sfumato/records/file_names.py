"""The files that a source of rows names, told from its name alone, and what a ledger keeps of that."""

from __future__ import annotations

import glob
import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NoReturn

from sfumato.errors import InvalidInput
from sfumato.records.columns import Columns
from sfumato.records.connections import public_connection

if TYPE_CHECKING:
    from sfumato.privacy.ledger import Table

SQLITE = b"SQLite format 3\0"
# At byte 8 of a file of DuckDB.
DUCKDB = b"DUCK"


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


def is_database(path: Path) -> bool:
    """Whether a file is one of DuckDB or SQLite, by how it begins.

    Args:
        path: A file that is there.

    Returns:
        Whether it is.

    """
    with path.open("rb") as opened:
        begin = opened.read(len(SQLITE))
    return begin == SQLITE or begin[8:12] == DUCKDB


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
        return tuple(Path(one) for one in _files_of_dataset(source))
    text = str(source)
    matched = (Path(one) for one in glob.glob(text, recursive=True))
    return tuple(dict.fromkeys((Path(text.rpartition("::")[0] or text), *matched)))


def _files_of_dataset(source: Any) -> tuple[str, ...]:
    """The files of an Arrow dataset; of any other table nothing is looked at."""
    if type(source).__module__ != "pyarrow._dataset":
        return ()
    return tuple(getattr(source, "files", ()))


def check_source(source: Any, *, connection: str | None = None) -> None:
    """Refuse a path, pattern or list of them that names no file here; anything else is left to `open_table`.

    Args:
        source: What `open_table` takes.
        connection: The URL of a database that holds a table of this name, if it is one.

    Raises:
        InvalidInput: It is a URL, from which nothing is fetched; or there is no such file.

    """
    for one in source if is_file_list(source) else [source]:
        if isinstance(one, str | PurePath) and not connection:
            _check_path(str(one))


def _check_path(source: str) -> None:
    scheme, separator, _ = source.partition("://")
    if separator:
        raise InvalidInput(
            f"nothing is fetched, got a path at {scheme}://...: copy the files to this machine and give "
            "their path, or read them by a table of Ibis of your own; nothing was read"
        )
    file, separator, _ = source.rpartition("::")
    if separator and not Path(file).is_file():
        raise InvalidInput(f"there is no database {file}; nothing was read")
    if not separator and not Path(source).exists() and not glob.glob(source, recursive=True):
        _refuse_missing(Path(source))


def _refuse_missing(path: Path) -> NoReturn:
    """Say that there is no such file, or partition; which there are is not said: they may be users."""
    for part in (path, *path.parents):
        key, equals, _ = part.name.partition("=")
        if equals and part.parent.is_dir() and not glob.glob(str(part)):
            others = any(part.parent.glob(f"{glob.escape(key)}=*"))
            raise InvalidInput(
                f"there is no partition {part.name} in {part.parent}, "
                f"{f'only others by {key}' if others else 'nor any other'}; nothing was read"
            )
    raise InvalidInput(f"there is no file {path}; nothing was read")


def table_identity(source: Any, columns: Columns, *, connection: str | None = None) -> Table | None:
    """The name of a file or of a table in a database, and the column of users; None for one in memory.

    Folders, hosts and passwords are not in it. Digits, and the signs of patterns, count as `#`: the
    days and parts of one table differ in them. A list of files has all their names.

    Args:
        source: What `open_table` takes.
        columns: Which columns hold users, places, weights and groups.
        connection: The URL of the database, if it is one.

    Returns:
        What a ledger keeps of the table.

    Example:
        >>> table_identity("trips/2026-01-05.parquet", Columns("cab", "lon", "lat"))
        Table(name='#.parquet', user='cab')
        >>> print(table_identity("town.duckdb::trips_2026", Columns("cab", "lon", "lat")))
        town.duckdb::trips_# by 'cab'

    """
    from sfumato.privacy.ledger import Table

    if is_file_list(source):
        told = (table_identity(one, columns, connection=connection) for one in source)
        names = sorted({one.name for one in told if one is not None})
        return Table(" ".join(names), columns.user or "")
    if not isinstance(source, str | PurePath):
        return None
    file, _, table = str(source).partition("::")
    if "://" in file:
        file = file.partition("?")[0]
    name = PurePath(file.rstrip("/")).name or file
    if connection is not None and "://" in connection:
        found = public_connection(connection)
        name = f"{found.scheme}:{found.database}::{name}"
    elif table:
        name = f"{name}::{table}"
    varying = re.sub(r"[0-9*?]+", "#", name)
    return Table(re.sub(r"#([-_.:T]?#)+", "#", varying), columns.user or "")
