"""Where rows come from: files, tables in memory, databases, all as an Ibis table nothing has read yet."""

from __future__ import annotations

import difflib
import glob
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, assert_never, get_args

import ibis
import pyarrow as pa

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.records import text_files
from sfumato.records.columns import Columns
from sfumato.records.engines import connected, duckdb_engine, polars_engine, spark_engine
from sfumato.records.quiet import quietly

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
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Files:
    """Files of one format; of text files, the names of their columns."""

    source: str
    format: Format
    paths: tuple[Path, ...]
    names: tuple[str, ...] = ()
    delimiter: str = ","

    @property
    def listed(self) -> list[str]:
        """The paths as text."""
        return [str(path) for path in self.paths]


def open_table(
    source: Any,
    *,
    engine: Engine = "duckdb",
    connection: str | None = None,
    delimiter: str = ",",
    columns: Columns | None = None,
) -> Any:
    """A table of rows for `sum_cells`; its schema is known, its rows are not read.

    `source` is a path or pattern (CSV, TSV, JSON, Parquet, by suffix; .gz for text), `file.duckdb::table`, an
    Arrow, pandas or Polars table, or an Ibis table, which is taken as it is. `connection` is the URL of a
    database that holds a table named `source`, or the master of a Spark cluster. JSON has one object per line
    and no schema: the keys of its first object are public and stand for one.
    """
    if engine not in get_args(Engine):
        raise InvalidParameter(f"engine must be one of {get_args(Engine)}, got {engine!r}; nothing was read")
    if len(delimiter) != 1:
        raise InvalidParameter(f"a delimiter is one character, got {delimiter!r}; nothing was read")
    if isinstance(source, ibis.expr.types.Table):
        return source
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
    return _in_memory(source, engine, connection)


def _table_in(database: Any, name: Any, where: str) -> Any:
    """A table of a database, by its name or schema.name."""
    if not isinstance(name, str):
        raise InvalidParameter(f"in {where} a table has a name, got {type(name).__name__}; nothing was read")
    schema, _, table = name.rpartition(".")
    missing = f"there is no table {name!r} in {where}; nothing was read"
    if database.name == "sqlite":
        quietly(lambda: _check_declared(database, table, schema or "main"), missing)
    return quietly(lambda: database.table(table, database=schema or None), missing)


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
    match kind:
        case "Parquet":
            return Files(source, kind, paths)
        case "JSON":
            return Files(source, kind, paths, _json_names(paths, columns))
        case "CSV":
            mark = "\t" if delimiter == "," and suffixes[-1] == ".tsv" else delimiter
            names = text_files.header(paths[0], mark)
            for other in paths[1:]:
                if text_files.header(other, mark) != names:
                    raise InvalidInput(f"{other} must have the same header as {paths[0]}; nothing was read")
            _check_header(source, names, columns, otherwise="is it the delimiter?")
            return Files(source, kind, paths, names, mark)
        case _:
            assert_never(kind)


def _json_names(paths: tuple[Path, ...], columns: Columns | None) -> tuple[str, ...]:
    """The columns asked for, which the first object of every file must name; or else its keys."""
    found = [(path, names) for path in paths if (names := text_files.keys(path))]
    if columns is not None:
        for path, names in found:
            _check_header(str(path), names, columns, otherwise="the first object must have every key;")
        return tuple(dict.fromkeys(columns.names))
    if not found:
        raise InvalidInput(f"{paths[0]} must begin with an object that names its columns; nothing was read")
    return found[0][1]


def _check_header(source: str, names: tuple[str, ...], columns: Columns | None, *, otherwise: str) -> None:
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


def _unreadable(files: Files) -> str:
    return f"{files.source} could not be read as {files.format}; nothing was read"


def _duckdb_files(database: Any, files: Files) -> Any:
    """Files as DuckDB reads them: fields of text files are text, lines that cannot be read are left out."""
    paths = [_plain(path) for path in files.listed]
    match files.format:
        case "Parquet":
            return quietly(lambda: database.read_parquet(paths), _unreadable(files))
        case "CSV":
            # By place, not by name: DuckDB takes names for the same that differ in case.
            places = {f"c{place}": "VARCHAR" for place in range(len(files.names))}
            read = _renamed(
                lambda: database.read_csv(
                    paths,
                    # Nothing is guessed from rows, and no row can stop the reader.
                    auto_detect=False,
                    header=True,
                    columns=places,
                    delim=files.delimiter,
                    quote='"',
                    escape='"',
                    ignore_errors=True,
                    strict_mode=False,
                ),
                files,
            )
            return quietly(read, _unreadable(files))
        case "JSON":
            return quietly(
                lambda: database.read_json(
                    paths,
                    auto_detect=False,
                    columns=dict.fromkeys(files.names, "VARCHAR"),
                    format="newline_delimited",
                    ignore_errors=True,
                ),
                _unreadable(files),
            )
        case _:
            assert_never(files.format)


def _renamed(read: Callable[[], Any], files: Files) -> Callable[[], Any]:
    names = {name: f"c{place}" for place, name in enumerate(files.names)}
    return lambda: read().rename(names)


def _polars_files(database: Any, files: Files) -> Any:
    """Parquet as Polars reads it, row group by row group; text as DuckDB reads it, in memory."""
    import polars

    name = _name()
    if files.format == "Parquet":

        def scan() -> Any:
            return database.create_table(name, polars.scan_parquet(files.listed, glob=False))

        return quietly(scan, _unreadable(files))
    rows = _duckdb_files(duckdb_engine(), files)

    def copy() -> Any:
        return database.create_table(name, polars.from_arrow(rows.to_pyarrow()).lazy())  # type: ignore[union-attr]

    return quietly(copy, _unreadable(files))


def _spark_files(database: Any, files: Files) -> Any:
    """Files as Spark reads them; its executors must be able to open the paths."""
    from pyspark.sql.types import StringType, StructField, StructType

    reader = database._session.read
    text = StructType([StructField(name, StringType()) for name in files.names])
    paths = [str(path.absolute()) for path in files.paths]

    def read() -> Any:
        match files.format:
            case "Parquet":
                frame = reader.parquet(*paths)
            case "CSV":
                frame = reader.schema(text).csv(
                    paths, header=True, enforceSchema=True, sep=files.delimiter, quote='"', escape='"',
                    multiLine=True, mode="DROPMALFORMED", maxCharsPerColumn=-1,
                )  # fmt: skip
            case "JSON":
                frame = reader.schema(text).json(paths, mode="DROPMALFORMED")
            case _:
                assert_never(files.format)
        return _spark_view(database, frame)

    return quietly(read, _unreadable(files))


def _spark_view(database: Any, frame: Any) -> Any:
    name = _name()
    frame.createOrReplaceTempView(name)
    return database.table(name)


def _in_memory(source: Any, engine: Engine, connection: str | None) -> Any:
    name, rows = _name(), _arrow(source)

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


def _arrow(source: Any) -> pa.Table:
    """A table in memory as Arrow; columns of Python objects become text, whatever they hold."""
    module = type(source).__module__.partition(".")[0]
    if module not in ("pyarrow", "pandas", "polars"):
        raise InvalidInput(
            "rows must come from a path, an Arrow, pandas, Polars or Ibis table, got "
            f"{type(source).__name__}; nothing was read"
        )

    def convert() -> pa.Table:
        if module == "polars":
            table = (source.collect() if hasattr(source, "collect") else source).to_arrow()
        elif module == "pandas":
            texts = {name: _as_text(source[name]) for name in source.columns if source[name].dtype == object}
            table = pa.Table.from_pandas(source.assign(**texts), preserve_index=False)
        else:
            table = source if isinstance(source, pa.Table) else pa.table(source)
        plain = [
            column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            for column in table.columns
        ]
        return pa.table(plain, names=table.column_names)

    return quietly(convert, f"the {module} table could not be read as Arrow; nothing was read")


def _as_text(column: Any) -> Any:
    """The rule depends on the type of the column, so that no row decides whether it can be read."""
    texts = [None if missing else str(value) for value, missing in zip(column, column.isna(), strict=True)]
    return pa.array(texts, pa.string()).to_pandas()


def _plain(path: str) -> str:
    """A path in which DuckDB sees no pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def _name() -> str:
    return f"sfumato_{next(_numbers)}"
