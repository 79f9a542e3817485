"""Where rows come from: files, tables in memory, databases, all as an Ibis table nothing has read yet."""

from __future__ import annotations

import difflib
import glob
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, assert_never, get_args

import ibis
import ibis.expr.operations as ops
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.records import text_files, text_rows
from sfumato.records.columns import Columns
from sfumato.records.engines import connected, duckdb_engine, polars_engine, spark_engine
from sfumato.records.in_memory import arrow_table
from sfumato.records.quiet import quietly
from sfumato.records.text_rows import TextRows

Engine = Literal["duckdb", "polars", "spark"]
Format = Literal["CSV", "JSON", "Parquet"]

SUFFIXES: dict[str, Format] = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".txt": "CSV",
    ".json": "JSON",
    ".ndjson": "JSON",
    ".jsonl": "JSON",
    ".parquet": "Parquet",
    ".pq": "Parquet",
}
MASTERS = ("local", "spark:", "yarn", "k8s:")
_serial = itertools.count()


@dataclass(frozen=True, slots=True)
class Files:
    """Files of one format; text files as one reader reads them for every engine."""

    source: str
    paths: tuple[str, ...]
    text: TextRows | None = None

    @property
    def unreadable(self) -> str:
        """What is said if an engine cannot open them."""
        kind = "Parquet" if self.text is None else self.text.format
        return f"{self.source} could not be read as {kind}; nothing was read"


def open_table(
    source: Any,
    *,
    engine: Engine = "duckdb",
    connection: str | None = None,
    delimiter: str = ",",
    columns: Columns | None = None,
) -> Any:
    """A table of rows for `sum_cells`; its schema is known, its rows are not read.

    `source` is a path or pattern (CSV, TSV, JSON, Parquet, by suffix; .gz for text),
    `file.duckdb::table`, an Arrow, pandas or Polars table, or an Ibis table, which is taken as it
    is. `connection` is the URL of a database that holds a table named `source`, or the master of a
    Spark cluster. JSON has one object per line and no schema: the keys of its first object are
    public and stand for one.
    """
    if engine not in get_args(Engine):
        raise InvalidParameter(
            f"engine must be one of {get_args(Engine)}, got {engine!r}; nothing was read"
        )
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise InvalidParameter(
            f"a delimiter is one ASCII character, no quote and no line end, got {delimiter!r}; "
            "nothing was read"
        )
    if isinstance(source, ibis.expr.types.Table):
        return _declared(source)
    if isinstance(source, Path):
        source = str(source)
    if connection is not None and engine != "spark" and not connection.startswith(MASTERS):
        return _table_in(connected(connection), source, connection.partition("://")[0])
    if isinstance(source, str) and "::" in source:
        return _table_of_file(source)
    if isinstance(source, str):
        files = _files(source, delimiter, columns)
        match engine:
            case "duckdb":
                return _duckdb_files(duckdb_engine(), files)
            case "polars":
                return _polars_files(polars_engine(), files)
            case "spark":
                return _spark_files(spark_engine(connection), files)
            case _:
                assert_never(engine)
    return _in_memory(source, engine, connection, columns)


def _table_in(database: Any, name: Any, where: str) -> Any:
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


def _declared(table: Any) -> Any:
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


def _table_of_file(source: str) -> Any:
    file, _, table = source.rpartition("::")
    path = Path(file)
    if not path.is_file():
        raise InvalidInput(f"there is no database {path}; nothing was read")
    with path.open("rb") as opened:
        sqlite = opened.read(16) == b"SQLite format 3\0"
    database = connected(f"sqlite://{path}") if sqlite else duckdb_engine(path)
    return _table_in(database, table, str(path))


def _files(source: str, delimiter: str, columns: Columns | None) -> Files:
    """The files a path or pattern names, and what is public of them."""
    path = Path(source)
    if path.is_dir():
        paths = tuple(sorted(path.rglob("*.parquet")))
        kind: Format | None = "Parquet"
    else:
        paths = (
            (path,)
            if path.is_file()
            else tuple(Path(one) for one in sorted(glob.glob(source, recursive=True)))
        )
        suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
        kind = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if kind is None:
        raise InvalidInput(
            f"a file must end in one of {', '.join(SUFFIXES)} (text also in .gz), got {source}; "
            "nothing was read"
        )
    if not paths:
        raise InvalidInput(f"there is no file {source}; nothing was read")
    names = tuple(str(path.absolute()) for path in paths)
    match kind:
        case "Parquet":
            _check_types(source, paths, columns)
            return Files(source, names)
        case "JSON":
            keys = _json_names(paths, columns)
            return Files(source, names, TextRows("JSON", names, keys, keys, _numbers_in(columns)))
        case "CSV":
            mark = "\t" if delimiter == "," and suffixes[-1] == ".tsv" else delimiter
            header = text_files.header(paths[0], mark)
            for other in paths[1:]:
                if text_files.header(other, mark) != header:
                    raise InvalidInput(
                        f"{other} must have the same header as {paths[0]}; nothing was read"
                    )
            _check_header(source, header, columns, otherwise="is it the delimiter?")
            wanted = header if columns is None else tuple(dict.fromkeys(columns.names))
            return Files(
                source, names, TextRows("CSV", names, header, wanted, _numbers_in(columns), mark)
            )
        case _:
            assert_never(kind)


def _check_types(source: str, paths: tuple[Path, ...], columns: Columns | None) -> None:
    """Refuse files whose columns have other types than the first's, or other columns.

    Engines would cast: DuckDB makes 2 of a user 1.5 if the first file has whole numbers.
    """
    wanted = None if columns is None else set(columns.names)

    def types(path: Path) -> dict[str, pa.DataType]:
        schema = pq.read_schema(path)
        return {one.name: one.type for one in schema if wanted is None or one.name in wanted}

    first = quietly(
        lambda: types(paths[0]), f"{source} could not be read as Parquet; nothing was read"
    )
    for other in paths[1:]:
        if (
            quietly(
                partial(types, other), f"{other} could not be read as Parquet; nothing was read"
            )
            != first
        ):
            raise InvalidInput(
                f"{other} must have the same columns as {paths[0]}, of the same types; nothing was read"
            )


def _numbers_in(columns: Columns | None) -> frozenset[str]:
    """The columns that are asked for as numbers and nothing else."""
    if columns is None:
        return frozenset()
    texts = {columns.user, columns.by}
    return frozenset({columns.x, columns.y, columns.weight} - texts - {None})  # type: ignore[arg-type]


def _json_names(paths: tuple[Path, ...], columns: Columns | None) -> tuple[str, ...]:
    """The columns asked for, which the first object of every file must name; or else its keys."""
    found = [(path, names) for path in paths if (names := text_files.keys(path))]
    if columns is not None:
        for path, names in found:
            _check_header(
                str(path), names, columns, otherwise="the first object must have every key;"
            )
        return tuple(dict.fromkeys(columns.names))
    if not found:
        raise InvalidInput(
            f"{paths[0]} must begin with an object that names its columns; nothing was read"
        )
    return found[0][1]


def _check_header(
    source: str, names: tuple[str, ...], columns: Columns | None, *, otherwise: str
) -> None:
    """Refuse a header without the columns asked for; it may be a row, so only names alike are shown."""
    for name in () if columns is None else columns.names:
        if name not in names:
            alike = difflib.get_close_matches(name, names, n=1) or [
                one for one in names if one.lower() == name.lower()
            ]
            hint = f"did you mean {alike[0]!r}?" if alike else otherwise
            raise InvalidInput(
                f"there is no column {name!r} among the {len(names)} of the first line of {source}; {hint} "
                "nothing was read"
            )


def _duckdb_files(database: Any, files: Files) -> Any:
    """Parquet as DuckDB reads it; text as it comes, batch by batch."""
    if files.text is None:
        paths = [_plain(path) for path in files.paths]
        # The same columns on every engine: none from the names of folders.
        return quietly(
            lambda: database.read_parquet(paths, hive_partitioning=False), files.unreadable
        )
    name = _name()

    def register() -> Any:
        database.con.register(name, files.text)
        return database.table(name)

    return quietly(register, files.unreadable)


def _polars_files(database: Any, files: Files) -> Any:
    """Parquet as Polars reads it, row group by row group; text in memory."""
    import polars

    def scan() -> Any:
        rows = files.text
        frame = (
            polars.scan_parquet(list(files.paths), glob=False, hive_partitioning=False)
            if rows is None
            else polars.from_arrow(pa.Table.from_batches(rows.batches(), rows.schema)).lazy()  # type: ignore[union-attr]
        )
        return database.create_table(_name(), frame)

    return quietly(scan, files.unreadable)


def _spark_files(database: Any, files: Files) -> Any:
    """Files as Spark reads them; its executors must be able to open the paths, text also with Python.

    Spark does not look whether text in Parquet is UTF-8, which the other engines refuse.
    """
    session, rows = database._session, files.text

    def read() -> Any:
        from pyspark.sql import functions

        if rows is not None:
            return _spark_view(database, _spark_text(session, rows))
        frame = session.read.parquet(*files.paths)
        checked = {
            name: functions.validate_utf8(name) for name, kind in frame.dtypes if kind == "string"
        }
        return _spark_view(database, frame.withColumns(checked) if checked else frame)

    return quietly(read, files.unreadable)


def _spark_text(session: Any, rows: TextRows) -> Any:
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


def _spark_view(database: Any, frame: Any) -> Any:
    name = _name()
    frame.createOrReplaceTempView(name)
    return database.table(name)


def _in_memory(source: Any, engine: Engine, connection: str | None, columns: Columns | None) -> Any:
    name, rows = _name(), arrow_table(source, columns)

    def hold() -> Any:
        match engine:
            case "duckdb":
                database = duckdb_engine()
                database.con.register(name, rows)
                return database.table(name)
            case "polars":
                database = polars_engine()
                import polars

                return database.create_table(name, polars.from_arrow(rows).lazy())  # type: ignore[union-attr]
            case "spark":
                database = spark_engine(connection)
                return _spark_view(database, database._session.createDataFrame(rows))
            case _:
                assert_never(engine)

    return quietly(hold, f"the table could not be handed to {engine}; nothing was read")


def _plain(path: str) -> str:
    """A path in which DuckDB sees no pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def _name() -> str:
    return f"sfumato_{next(_serial)}"
