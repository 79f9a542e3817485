"""Spark: on a cluster, or two threads of this machine."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import ibis
import pyarrow as pa

from sfumato.errors import MissingPackage
from sfumato.records import text_rows
from sfumato.records.engines.protocol import Files, table_name
from sfumato.records.quiet import quietly
from sfumato.records.text_rows import TextRows


def spark_engine(master: str | None) -> Any:
    """Spark: the session there is, or a new one, by default on two threads of this machine.

    Args:
        master: Where Spark runs, as Spark writes it: spark://host:7077, local[8]; None or "" means
            local[2].

    Returns:
        The Ibis connection to the session.

    Raises:
        InvalidInput: Spark could not be started there; it needs Java 17 or later.
        MissingPackage: PySpark is not installed, or pandas, which Ibis needs for it.
    """
    _check_installed()
    import pyspark
    from pyspark.sql import SparkSession

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


def _check_installed() -> None:
    """Refuse to go on without PySpark and pandas, which Ibis imports for it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pandas  # noqa: F401
            import pyspark.sql  # noqa: F401
    except ImportError:
        raise MissingPackage("pip install 'sfumato[spark]'") from None


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


class SparkEngine:
    """Spark, where its master is."""

    name: ClassVar[str] = "spark"
    runs_elsewhere: ClassVar[bool] = True

    def read_files(self, files: Files, *, connection: str | None) -> Any:
        """Files as Spark reads them; its executors must be able to open the paths, text also with Python.

        Spark does not look whether text in Parquet is UTF-8, which the other engines refuse.
        """
        database = spark_engine(connection)
        session, rows = database._session, files.text

        def read() -> Any:
            from pyspark.sql import functions

            if rows is not None:
                return _view(database, _text(session, rows))
            frame = session.read.parquet(*files.paths)
            checked = {
                name: functions.validate_utf8(name)
                for name, kind in frame.dtypes
                if kind == "string"
            }
            return _view(database, frame.withColumns(checked) if checked else frame)

        return quietly(read, files.unreadable)

    def hold_table(self, rows: pa.Table, *, connection: str | None) -> Any:
        """The rows as a data frame of Spark."""
        database = spark_engine(connection)
        return _view(database, database._session.createDataFrame(rows))


def spark_table(frame: Any) -> Any:
    """A DataFrame of Spark, counted by the session it belongs to."""
    _check_installed()

    def take() -> Any:
        return _view(ibis.pyspark.connect(frame.sparkSession), frame)

    return quietly(
        take, "the DataFrame of Spark could not be used by its session; nothing was read"
    )


def _text(session: Any, rows: TextRows) -> Any:
    """Each file is read by one task: where a row begins is known from the beginning of its file only."""
    from pyspark import cloudpickle
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from rows.batches_of(rows.paths[number])

    # Executors have Arrow, not sfumato.
    cloudpickle.register_pickle_by_value(text_rows)  # type: ignore[no-untyped-call]
    kinds = {name: DoubleType() if name in rows.numbers else StringType() for name in rows.wanted}
    schema = StructType([StructField(name, kind) for name, kind in kinds.items()])
    count = len(rows.paths)
    return session.range(0, count, 1, count).mapInArrow(read, schema)


def _view(database: Any, frame: Any) -> Any:
    name = table_name()
    frame.createOrReplaceTempView(name)
    return database.table(name)
