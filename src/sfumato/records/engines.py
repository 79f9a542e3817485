"""The engines that count: DuckDB and Spark as we start them, quiet and within bounds."""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ibis

from sfumato.errors import InvalidInput, MissingPackage
from sfumato.files import scratch_folder
from sfumato.records.quiet import quietly

# DuckDB keeps its tables and hashes within this and spills the rest to disk; the process stays
# below 4 GB.
MEMORY = "2500MB"


def duckdb_engine(database: Path | None = None) -> Any:
    """A DuckDB of our own, in this process: bounded memory, files opened to be read only, no downloads."""
    # What is spilled is private: a folder nobody else may enter, gone with the connection.
    spill, remove = scratch_folder()

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


def polars_engine() -> Any:
    """Polars, in this process."""
    try:
        import polars  # noqa: F401 - asked for before Ibis asks, to give our own answer
    except ImportError:
        raise MissingPackage("pip install 'sfumato[polars]'") from None
    return ibis.polars.connect()


def spark_engine(master: str | None) -> Any:
    """Spark: the session there is, or a new one at a master, by default two threads of this machine."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pyspark
            from pyspark.sql import SparkSession
    except ImportError:
        raise MissingPackage("pip install 'sfumato[spark]'") from None
    where = master or "local[2]"
    # Text files are read by Python in the executors: on this machine by this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if where.startswith("local-cluster"):
        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    builder = SparkSession.builder.appName("sfumato").master(where)
    for key, value in _SPARK.items():
        builder = builder.config(key, value)

    def start() -> Any:
        with _unheard():
            session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        return ibis.pyspark.connect(session)

    return quietly(
        start, f"Spark could not be started at {where}; it needs Java 17 or later; nothing was read"
    )


_SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}


@contextmanager
def _unheard() -> Iterator[None]:
    """Give a Java machine that is started now no standard error: what it logs may quote a row."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def connected(url: str) -> Any:
    """A connection to any engine Ibis knows, from its URL."""
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
