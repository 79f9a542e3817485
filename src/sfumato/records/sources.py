"""Where rows come from: files, tables in memory, databases, all as an Ibis table nothing has read yet."""

from __future__ import annotations

import difflib
import glob
from functools import partial
from pathlib import Path
from typing import Any, Literal, assert_never

import ibis
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.records import text_files
from sfumato.records.columns import Columns
from sfumato.records.engines.databases import connected, declared, table_in, table_of_file
from sfumato.records.engines.protocol import Files
from sfumato.records.engines.registry import engine_named
from sfumato.records.in_memory import arrow_table
from sfumato.records.quiet import quietly
from sfumato.records.text_rows import TextRows

Engine = str
"""The name of an engine: duckdb, polars, spark, or one that was registered."""
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


def open_table(
    source: Any,
    *,
    engine: Engine = "duckdb",
    connection: str | None = None,
    delimiter: str = ",",
    columns: Columns | None = None,
) -> Any:
    """A table of rows for `sum_cells`; its schema is known, its rows are not read.

    JSON has one object per line and no schema: the keys of its first object are public and stand
    for one.

    Args:
        source: A path or pattern (CSV, TSV, JSON, Parquet, by suffix; .gz for text), a folder of
            Parquet, `file.duckdb::table`, an Arrow, pandas or Polars table, or an Ibis table, which
            is taken as it is.
        engine: Who counts the rows: one of `engine_names()`.
        connection: The URL of a database that holds a table named `source`, or the master of a
            Spark cluster.
        delimiter: What separates the columns of CSV; tabs where the name ends in .tsv.
        columns: Which columns are meant; a header without them is refused.

    Returns:
        An Ibis table.

    Raises:
        InvalidInput: There is no such file, table or column, or the engine cannot open it.
        InvalidParameter: There is no such engine, or the delimiter is none.
        MissingPackage: The engine is not installed; the message is the install line.

    """
    counter = engine_named(engine)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise InvalidParameter(
            f"a delimiter is one ASCII character, no quote and no line end, got {delimiter!r}; "
            "nothing was read"
        )
    if isinstance(source, ibis.expr.types.Table):
        return declared(source)
    if isinstance(source, Path):
        source = str(source)
    in_database = not counter.runs_elsewhere and not (connection or "").startswith(MASTERS)
    if connection is not None and in_database:
        return table_in(connected(connection), source, connection.partition("://")[0])
    if isinstance(source, str) and "::" in source:
        return table_of_file(source)
    if isinstance(source, str):
        files = _files(source, delimiter, columns)
        return quietly(
            lambda: counter.read_files(files, connection=connection),
            f"{source} could not be opened by {engine}; nothing was read",
        )
    rows = arrow_table(source, columns)
    return quietly(
        lambda: counter.hold_table(rows, connection=connection),
        f"the table could not be handed to {engine}; nothing was read",
    )


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
