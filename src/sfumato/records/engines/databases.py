"""Databases by their URL or file: any that Ibis knows, DuckDB and SQLite opened to be read only."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.operations as ops

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.records.engines.duckdb import duckdb_engine
from sfumato.records.quiet import quietly


def connected(url: str) -> Any:
    """A connection to any engine Ibis knows, from its URL.

    Args:
        url: Where the data is, as Ibis writes it: duckdb://file, sqlite://file, postgres://...; the
            file of a duckdb or sqlite URL must exist.

    Returns:
        The Ibis connection. DuckDB files are opened as `duckdb_engine` does; others are closed when
        nothing refers to them any more.

    Raises:
        InvalidInput: There is no such file, or no connection could be made; the message never
            quotes the rest of the URL of a server, which may hold a password.
    """
    scheme, _, rest = url.partition("://")
    if scheme == "duckdb" and rest:
        path = Path(rest.partition("?")[0])
        if not path.is_file():
            raise InvalidInput(f"there is no database {path}; nothing was read")
        return duckdb_engine(path)
    if scheme == "sqlite" and not Path(rest).is_file():
        raise InvalidInput(f"there is no database {rest}; nothing was read")

    def connect() -> Any:
        connection = ibis.connect(url)
        # Drivers warn of connections that nobody closed.
        weakref.finalize(connection, connection.con.close)
        return connection

    # The rest of a URL may hold a password.
    return quietly(
        connect,
        f"could not connect to {scheme}://...; is its Ibis backend installed? nothing was read",
    )


def table_in(database: Any, name: Any, where: str) -> Any:
    """A table of a database, by its name or schema.name."""
    if not isinstance(name, str):
        raise InvalidParameter(
            f"in {where} a table has a name, got {type(name).__name__}; nothing was read"
        )
    schema, _, table = name.rpartition(".")
    missing = f"there is no table {name!r} in {where}; nothing was read"
    if database.name == "sqlite":
        quietly(lambda: _check_declared(database, table, schema or "main"), missing)
    return quietly(lambda: database.table(table, database=schema or None), missing)


def declared(table: Any) -> Any:
    """A table of Ibis as it is, unless the first row of SQLite has said what it holds."""
    if table.get_backend().name == "sqlite":
        for one in table.op().find(ops.DatabaseTable):
            _check_declared(one.source, one.name, one.namespace.database or "main")
    return table


def _check_declared(database: Any, table: str, schema: str) -> None:
    """Refuse columns of SQLite without a type: Ibis would take that of the first row."""
    query = "select name from pragma_table_info(?, ?) where type = ''"
    for (name,) in database.con.execute(query, (table, schema)).fetchall():
        raise InvalidInput(
            f"every column of a SQLite table must have a declared type, {name!r} of {table!r} has none; "
            "nothing was read"
        )


def table_of_file(source: str) -> Any:
    """A table in a file of DuckDB or SQLite: file::table."""
    file, _, table = source.rpartition("::")
    path = Path(file)
    if not path.is_file():
        raise InvalidInput(f"there is no database {path}; nothing was read")
    with path.open("rb") as opened:
        sqlite = opened.read(16) == b"SQLite format 3\0"
    database = connected(f"sqlite://{path}") if sqlite else duckdb_engine(path)
    return table_in(database, table, str(path))
