"""Databases by their URL or file: any that Ibis knows, DuckDB and SQLite opened to be read only."""

from __future__ import annotations

import importlib
import importlib.metadata
import sqlite3
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import ibis
import ibis.expr.operations as ops

from sfumato.errors import InvalidInput, InvalidParameter, MissingPackage, SfumatoError
from sfumato.records.connections import public_connection
from sfumato.records.engines.compilers import load_compilers_one_by_one
from sfumato.records.engines.duckdb import duckdb_engine
from sfumato.records.file_names import SQLITE
from sfumato.records.quiet import quietly

BACKENDS = {"postgresql": "postgres", "spark": "pyspark"}
"""Schemes whose backend Ibis calls otherwise."""
EXTRAS = {"postgres": "postgres", "pyspark": "spark", "polars": "polars", "sqlite": "pandas"}
"""Extras with what backends of Ibis need; SQLite's is for an Ibis that `_without_pandas` does not fit."""
MOST_NAMED = 10
UNREAD = "nothing was read"


def connected(url: str) -> Any:
    """A connection to any engine Ibis knows, from its URL.

    Args:
        url: Where the data is, as Ibis writes it: duckdb://file, sqlite://file, postgres://...; the
            file of a duckdb or sqlite URL must exist.

    Returns:
        The Ibis connection. DuckDB files are opened as `duckdb_engine` does; others are closed when
        nothing refers to them any more.

    Raises:
        InvalidInput: There is no such file, or no connection could be made; the message names the
            host of a server, and nothing else of its URL, which may hold a password.
        MissingPackage: The driver of the database, or pandas where Ibis needs it, is not
            installed; the message is the install line.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise InvalidInput(
            "a connection is a URL, as postgres://user@host/database; nothing was read"
        )
    if scheme == "duckdb" and rest:
        path = Path(rest.partition("?")[0])
        if not path.is_file():
            raise InvalidInput(f"there is no database {path}; nothing was read")
        return duckdb_engine(path)
    if scheme == "sqlite" and not Path(rest).is_file():
        raise InvalidInput(f"there is no database {rest}; nothing was read")
    backend = BACKENDS.get(scheme, scheme)
    known = sorted(one.name for one in importlib.metadata.entry_points(group="ibis.backends"))
    if backend not in known:
        raise InvalidInput(
            f"could not connect to {scheme}://...: the databases Ibis knows are {', '.join(known)}; "
            "nothing was read"
        )
    refusal: SfumatoError
    try:
        return quietly(lambda: _connect(url), "")
    except ImportError:
        extra = EXTRAS.get(backend)
        refusal = MissingPackage(
            f"pip install 'sfumato[{extra}]'"
            if extra
            else f"pip install 'ibis-framework[{backend}]'"
        )
    except InvalidInput as problem:
        refusal = InvalidInput(
            f"could not connect to {backend} at {public_connection(url).host or 'its host'}{problem}; "
            "nothing was read"
        )
    raise refusal


def _connect(url: str) -> Any:
    """The connection; where there is none, why in words of ours: a driver's may hold a password."""
    try:
        scheme = url.partition("://")[0]
        if BACKENDS.get(scheme, scheme) == "postgres":
            import pandas  # noqa: F401 - Ibis does, but only when it has connected
        connection = _sqlite(url) or ibis.connect(url)
    except ImportError:
        found: SfumatoError = MissingPackage("")
    except Exception as problem:
        found = InvalidInput(_why(str(problem)))
    else:
        # Drivers warn of connections that nobody closed.
        if hasattr(connection, "con"):
            weakref.finalize(connection, connection.con.close)
        return connection
    raise found


def _sqlite(url: str) -> Any:
    """A file of SQLite without pandas, which Ibis loads to take its moments; None for another URL.

    What follows sqlite:// is the name of the file as it is: Ibis would take `a#b.db` for `a`.
    """
    scheme, _, path = url.partition("://")
    if scheme != "sqlite":
        return None
    file = Path(path).absolute().as_uri()
    load_compilers_one_by_one()
    _without_pandas()
    return ibis.sqlite.from_connection(sqlite3.connect(f"{file}?mode=ro", uri=True))


SQLITE_BACKEND = "ibis.backends.sqlite"
CONVERTER = f"{SQLITE_BACKEND}.converter"
_LOADING = threading.Lock()


class _Later:
    """What Ibis converts rows of SQLite with, loaded when it is first asked for anything."""

    def __getattr__(self, name: str) -> Any:
        found = importlib.import_module(CONVERTER).SQLitePandasData
        if found is self:
            raise ImportError(f"{CONVERTER} is asked for {name} before it may be loaded")
        return getattr(found, name)


def _without_pandas() -> None:
    """Load what Ibis has for SQLite without pandas: a tenth of a release, and `arrow_table` has no need of it.

    It is the one module of these that imports it; who lets Ibis convert rows has it then.
    """
    with _LOADING:
        if SQLITE_BACKEND in sys.modules or CONVERTER in sys.modules:
            return
        stand_in: Any = ModuleType(CONVERTER)
        stand_in.SQLitePandasData = _Later()
        sys.modules[CONVERTER] = stand_in
        try:
            with suppress(Exception):
                importlib.import_module(SQLITE_BACKEND)
        finally:
            sys.modules.pop(CONVERTER, None)
        # An Ibis that wants more of it, whatever it says then, is loaded as it is, with pandas: Python
        # forgets a module whose import failed. No other thread may bring the stand-in back meanwhile.
        importlib.import_module(SQLITE_BACKEND)


_REASONS = {
    "password": "the user or the password was refused",
    "authentication": "the user or the password was refused",
    "does not exist": "it has no such user or database",
    "could not translate host name": "no such host is known here",
    "failed to resolve host": "no such host is known here",
    "name or service not known": "no such host is known here",
    "refused": "nothing listens there",
    "no such file": "nothing listens there",
    "timeout": "it did not answer in time",
    "unreachable": "it cannot be reached from here",
}


def _why(said: str) -> str:
    """What a driver says of a connection, in words of ours; nothing if it is none of those known."""
    heard = said.lower()
    return next((f": {ours}" for words, ours in _REASONS.items() if words in heard), "")


def table_in(database: Any, name: Any, where: str) -> Any:
    """A table of a database, by its name or schema.name."""
    if not isinstance(name, str):
        raise InvalidParameter(
            f"in {where} a table has a name, got {type(name).__name__}; nothing was read"
        )
    schema, _, table = name.rpartition(".")
    missing = f"there is no table {name!r} in {where}"
    if database.name == "sqlite":
        quietly(lambda: _check_declared(database, table, schema or "main"), f"{missing}; {UNREAD}")
    with suppress(InvalidInput):
        return quietly(lambda: database.table(table, database=schema or None), missing)
    there = quietly(lambda: _tables(database, schema), f"{missing}; {UNREAD}")
    raise InvalidInput(f"{missing}, {_only(there)}; {UNREAD}")


def _tables(database: Any, schema: str = "") -> list[str]:
    """The tables of a database, which is closed: a file of DuckDB that is open is not opened again.

    Ibis 12 asks DuckDB 2 for its tables in a way that it has not.
    """
    try:
        if database.name == "duckdb":
            query = "select table_name from information_schema.tables where table_schema = ?"
            return [name for (name,) in database.con.execute(query, [schema or "main"]).fetchall()]
        return list(database.list_tables(database=schema or None))
    finally:
        database.disconnect()


def _only(names: list[str]) -> str:
    """The tables there are, whose names are public; of many the first."""
    if not names:
        return "which has none"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"only {', '.join(map(repr, sorted(names)[:MOST_NAMED]))}{more}"


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
    return table_in(_database(path), table, str(path))


def refuse_database(path: Path) -> NoReturn:
    """Refuse a file of DuckDB or SQLite that is given without the name of a table, and say its tables."""
    there = quietly(lambda: _tables(_database(path)), f"{path} could not be opened; {UNREAD}")
    raise InvalidInput(
        f"{path} is a database, of which a table is named: {path}::TABLE; there is {_only(there)}; "
        f"{UNREAD}"
    )


def _database(path: Path) -> Any:
    with path.open("rb") as opened:
        sqlite = opened.read(16) == SQLITE
    return connected(f"sqlite://{path}") if sqlite else duckdb_engine(path)
