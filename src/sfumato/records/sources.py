"""Where rows come from: files, tables in memory, databases, all as an Ibis table nothing has read yet."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Literal, assert_never

import pyarrow as pa

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.records import text_files
from sfumato.records.columns import Columns, check_columns
from sfumato.records.engines.protocol import Files
from sfumato.records.engines.registry import engine_named, engine_names
from sfumato.records.file_names import check_source, is_database, is_file_list
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
        source: A path or pattern (CSV, TSV, JSON, Parquet, by suffix; .gz for text) or a list of
            them, a folder of Parquet, `file.duckdb::table`, an Arrow, pandas or Polars table, an
            Arrow dataset, a relation of DuckDB, a GeoDataFrame, whose points are x and y; or a table
            of Ibis or a DataFrame of Spark, which are counted where they are. Nothing is fetched
            from a URL.
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
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise InvalidParameter(
            f"a delimiter is one ASCII character, no quote and no line end, got {delimiter!r}; "
            "nothing was read"
        )
    if isinstance(source, Path):
        source = str(source)
    named = is_file_list(source) or (isinstance(source, str) and "::" not in source)
    if engine not in engine_names():
        engine_named(engine)  # says which there are
    # A slip of the pen in their names is told before Ibis is loaded, half a second.
    files = _files(source, delimiter, columns) if named and connection is None else None

    import ibis

    from sfumato.records.engines.databases import connected, declared, table_in, table_of_file
    from sfumato.records.engines.spark import spark_table

    counter = engine_named(engine)
    if isinstance(source, ibis.expr.types.Table):
        return declared(source)
    if type(source).__module__.startswith("pyspark."):
        return spark_table(source)
    in_database = not counter.runs_elsewhere and not (connection or "").startswith(MASTERS)
    if connection is not None and in_database:
        return table_in(connected(connection), source, connection.partition("://")[0])
    if isinstance(source, str) and "::" in source:
        return table_of_file(source)
    if isinstance(source, str) or is_file_list(source):
        opened = files or _files(source, delimiter, columns)
        return quietly(
            lambda: counter.read_files(opened, connection=connection),
            f"{opened.source} could not be opened by {engine}; nothing was read",
        )
    rows = arrow_table(source, columns)
    return quietly(
        lambda: counter.hold_table(rows, connection=connection),
        f"the table could not be handed to {engine}; nothing was read",
    )


def _files(named: str | Sequence[str | PurePath], delimiter: str, columns: Columns | None) -> Files:
    """The files that paths and patterns name, and what is public of them."""
    sources = [named] if isinstance(named, str) else named
    found = [one for source in sources for one in _matching(str(source))]
    source = str(sources[0]) if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1} more"
    paths = tuple(path for path, _ in found)
    kind = found[0][1]
    for other, its in found:
        if its != kind:
            raise InvalidInput(
                f"files of one table are of one format, {paths[0]} is {kind} and {other} {its}; "
                "nothing was read"
            )
    names = tuple(str(path.absolute()) for path in paths)
    # By what they are: a link to a file is the file, and its rows would count twice.
    if len({(one.st_dev, one.st_ino) for one in map(os.stat, paths)}) < len(paths):
        raise InvalidInput(f"every file is named once, {source} name one twice; nothing was read")
    match kind:
        case "Parquet":
            _check_types(source, paths, columns)
            return Files(source, names)
        case "JSON":
            keys = _json_names(paths, columns)
            return Files(source, names, TextRows("JSON", names, keys, keys, _numbers_in(columns)))
        case "CSV":
            mark = "\t" if delimiter == "," and ".tsv" in _suffixes(paths[0]) else delimiter
            header = text_files.header(paths[0], mark)
            for other in paths[1:]:
                _check_same_header(other, text_files.header(other, mark), paths[0], header, columns)
            # Of a header of several fields the delimiter is right.
            alone = "is it the delimiter?" if len(header) == 1 else ""
            _check_header(source, header, columns, otherwise=alone)
            wanted = header if columns is None else tuple(dict.fromkeys(columns.names))
            return Files(
                source, names, TextRows("CSV", names, header, wanted, _numbers_in(columns), mark)
            )
        case _:
            assert_never(kind)


def _matching(source: str) -> list[tuple[Path, Format]]:
    """The files of one path, folder or pattern, and their format."""
    check_source(source)
    path = Path(source)
    if path.is_dir():
        inside = sorted(path.rglob("*.parquet"))
        if not inside:
            raise InvalidInput(
                f"a folder must hold files that end in .parquet, {source} holds none (name others by a "
                f"pattern, e.g. {path / '*.csv'}); nothing was read"
            )
        return [(one, "Parquet") for one in inside]
    if path.is_file():
        if is_database(path):
            from sfumato.records.engines.databases import refuse_database

            refuse_database(path)
        paths = [path]
    else:
        paths = [Path(one) for one in sorted(glob.glob(source, recursive=True))]
    suffixes = _suffixes(path)
    kind = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if kind is None:
        raise InvalidInput(
            f"a file must end in one of {', '.join(SUFFIXES)} (text also in .gz), got {source}; "
            "nothing was read"
        )
    return [(one, kind) for one in paths]


def _suffixes(path: Path) -> list[str]:
    return [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]


def _check_types(source: str, paths: tuple[Path, ...], columns: Columns | None) -> None:
    """Refuse files whose columns have other types than the first's, or other columns.

    Engines would cast: DuckDB makes 2 of a user 1.5 if the first file has whole numbers.
    """
    import pyarrow.parquet as pq  # loaded for Parquet alone

    wanted = None if columns is None else set(columns.names)

    def types(path: Path) -> dict[str, pa.DataType]:
        return asked(pq.read_schema(path))

    def asked(schema: pa.Schema) -> dict[str, pa.DataType]:
        return {one.name: one.type for one in schema if wanted is None or one.name in wanted}

    schema = quietly(
        lambda: pq.read_schema(paths[0]),
        f"{source} could not be read as Parquet; nothing was read",
    )
    first = asked(schema)
    for name in sorted((wanted or set()) - first.keys()):
        if any(part.startswith(f"{name}=") for part in paths[0].parts):
            raise InvalidInput(
                f"columns are those inside the files, {name!r} is in the names of their folders only: write "
                "it into the files, or give an Arrow dataset, which has it; nothing was read"
            )
    if columns is not None:
        check_columns(schema.names, columns)
    for other in paths[1:]:
        found = quietly(
            partial(types, other), f"{other} could not be read as Parquet; nothing was read"
        )
        if found != first:
            raise InvalidInput(
                f"{other} must have the same columns as {paths[0]}, of the same types: "
                f"{_difference(first, found)}; nothing was read"
            )


def _difference(first: dict[str, pa.DataType], other: dict[str, pa.DataType]) -> str:
    """The first column in which two schemas differ, in words."""
    name = next(
        one
        for one in (*first, *other)
        if one not in first or one not in other or first[one] != other[one]
    )
    if name not in other:
        return f"it has no {name!r}"
    if name not in first:
        return f"{name!r} is new in it"
    return f"{name!r} is {other[name]} in it and {first[name]} there"


def _check_same_header(
    other: Path,
    found: tuple[str, ...],
    first: Path,
    header: tuple[str, ...],
    columns: Columns | None,
) -> None:
    """Refuse a CSV with another header; both may be rows, so only names that were asked for are shown."""
    if found == header:
        return
    asked = () if columns is None else columns.names
    missing = next((name for name in header if name not in found and name in asked), None)
    what = (
        f"it has no {missing!r}"
        if missing is not None
        else "it has more columns"
        if len(found) > len(header)
        else "its columns are others, or in another order"
    )
    raise InvalidInput(f"{other} must have the same header as {first}: {what}; nothing was read")


def _numbers_in(columns: Columns | None) -> frozenset[str]:
    """The columns that are asked for as numbers and nothing else."""
    if columns is None:
        return frozenset()
    texts = {columns.user, *columns.grouped}
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
            usual = [f"`{of}` is {name!r} unless you name another;" for of in _usual(name, columns)]
            alike = alike if len(names) > 1 else []  # a single field is a whole line
            hint = [f"did you mean {alike[0]!r}?"] if alike else [otherwise] if otherwise else []
            missing = (
                f"there is no column {name!r} among the {len(names)} of the first line of {source};"
            )
            raise InvalidInput(" ".join([missing, *usual, *hint, "nothing was read"]))


def _usual(name: str, columns: Columns | None) -> list[str]:
    """Which coordinate has this name because maps give it that, or may have."""
    found = {} if columns is None else {"x": (columns.x, "lon"), "y": (columns.y, "lat")}
    return [of for of, pair in found.items() if pair == (name, name)]
