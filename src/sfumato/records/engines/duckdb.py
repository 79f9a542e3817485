"""DuckDB, in this process: quiet and within bounds."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import ibis
import numpy as np
import pyarrow as pa

from sfumato.errors import InvalidInput
from sfumato.files import scratch_folder
from sfumato.records.engines.compilers import load_compilers_one_by_one
from sfumato.records.engines.protocol import Files
from sfumato.records.quiet import quietly

# DuckDB keeps its tables and hashes within this and spills the rest to disk; the process stays
# below 4 GB.
MEMORY = "2500MB"
# What rows are called there; every database of ours has one table.
ROWS = "rows"
# Connections that were made here.
_OURS: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def duckdb_engine(database: Path | None = None) -> Any:
    """A DuckDB of our own, in this process: bounded memory, files only read, no downloads.

    Args:
        database: A DuckDB file, opened to be read only; None means an empty database in memory.

    Returns:
        The Ibis connection. What it spills to disk goes with it.

    Raises:
        InvalidInput: DuckDB could not be started, or the file is no DuckDB database.
    """
    # What is spilled is private: a folder nobody else may enter, gone with the connection.
    spill, remove = scratch_folder()
    load_compilers_one_by_one()

    def connect() -> Any:
        connection = ibis.duckdb.connect(
            ":memory:" if database is None else str(database),
            read_only=database is not None,
            memory_limit=MEMORY,
            temp_directory=str(spill),
            # Sums do not depend on the order of rows, and keeping it costs memory.
            preserve_insertion_order=False,
            autoinstall_known_extensions=False,
        )
        # A bar that grows with the rows tells of them.
        connection.raw_sql("set enable_progress_bar = false")
        weakref.finalize(connection, remove)
        _OURS[id(connection)] = connection
        return connection

    what = (
        "DuckDB could not be started"
        if database is None
        else f"{database} could not be opened as a DuckDB database"
    )
    try:
        return quietly(connect, f"{what}; nothing was read")
    except InvalidInput:
        remove()
        raise


def arrow_table(rows: Any) -> pa.Table:
    """Rows of any engine as a table of Arrow; of a DuckDB of our own and of SQLite without pandas.

    Ibis loads it, half a second, for every table that these give back, and has no need of it. What
    else Ibis does before, for functions and tables of the caller's, a query of ours has no need of.

    Args:
        rows: A table of Ibis.

    Returns:
        All its rows.

    """
    engine: Any = rows.get_backend()
    if id(engine) in _OURS:
        return engine.con.sql(engine.compile(rows)).to_arrow_table()
    if engine.name == "sqlite":
        found = zip(*engine.con.execute(engine.compile(rows)), strict=True)
        schema = rows.schema().to_pyarrow()
        columns = list(found) or [()] * len(schema)
        return pa.table([_column(*one) for one in zip(columns, schema.types, strict=True)], schema)
    return rows.to_pyarrow()


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values as a column; integers without pandas, which Arrow loads to see whether a list is one of its."""
    if kind == pa.int64() and set(map(type, values)) == {int}:
        held = pa.py_buffer(np.array(values, dtype=np.int64))
        return pa.Array.from_buffers(kind, len(values), [None, held])
    return pa.array(values, kind)


class DuckDBEngine:
    """DuckDB, in this process."""

    name: ClassVar[str] = "duckdb"
    runs_elsewhere: ClassVar[bool] = False

    def read_files(self, files: Files, *, connection: str | None) -> Any:
        """Parquet as DuckDB reads it; text as it comes, batch by batch."""
        del connection  # it runs in this process
        database = duckdb_engine()
        if files.text is None:
            paths = [_plain(path) for path in files.paths]
            # The same columns on every engine: none from the names of folders.
            return quietly(
                lambda: database.read_parquet(paths, table_name=ROWS, hive_partitioning=False),
                files.unreadable,
            )

        def register() -> Any:
            database.con.register(ROWS, files.text)
            return database.table(ROWS)

        return quietly(register, files.unreadable)

    def hold_table(self, rows: pa.Table, *, connection: str | None) -> Any:
        """A view of the rows where they are."""
        del connection
        database = duckdb_engine()
        database.con.register(ROWS, rows)
        return database.table(ROWS)


def _plain(path: str) -> str:
    """A path in which DuckDB sees no pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)
