"""Neighbors of a file: the same file without the rows of one user, who is told from others by Python alone.

The readers here are not those that count: who is one user to Python's csv, json and sqlite3
modules, or by its comparison of what a column holds, must be one user to the engine.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import sqlite3
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import InvalidInput
from sfumato.files import whole_file, write_file
from sfumato.records.quiet import quietly

Choice = Callable[[list[Hashable]], Sequence[Hashable]]
Rows = Iterator[tuple[Hashable, str]]

# A field of CSV may be as long as a row may.
LONGEST_FIELD = 2**27


def neighbor_files(
    source: str, user: str, folder: Path, *, choose: Choice, delimiter: str = ","
) -> Iterator[tuple[str, str]]:
    """Each chosen user of a file of public rows, and a copy of it that lacks their rows.

    Args:
        source: A CSV, NDJSON or Parquet file, or FILE::TABLE of SQLite or DuckDB.
        user: The column that says whose row it is.
        folder: Where copies are written; each gives way to the next.
        choose: Picks from all users there are.
        delimiter: Of a CSV.

    Yields:
        A user, and the copy without them, as `open_table` takes it.

    Raises:
        InvalidInput: The file is of another kind, or cannot be read.

    """
    path = Path(source.partition("::")[0])
    if not path.is_file():
        raise InvalidInput(
            f"neighbors are made of one file, and there is no file {path}; nothing was read"
        )
    packed = path.suffix.lower() == ".gz"
    ending = (path.with_suffix("") if packed else path).suffix.lower()
    target = folder / f"rows{ending}{'.gz' if packed else ''}"
    if "::" in source:
        table = source.partition("::")[2]
        with path.open("rb") as opened:
            sqlite = opened.read(16) == b"SQLite format 3\0"
        made = _sqlite_copies if sqlite else _duckdb_copies
        copies = made(path, table, user, folder / "rows.db", choose)
    elif ending in (".parquet", ".pq"):
        copies = _parquet_copies(path, user, target, choose)
    elif ending in (".csv", ".tsv", ".txt"):
        mark = "\t" if delimiter == "," and ending == ".tsv" else delimiter
        copies = _text_copies(path, target, lambda text: _csv_rows(text, user, mark), choose)
    elif ending in (".json", ".ndjson", ".jsonl"):
        copies = _text_copies(path, target, lambda text: _json_rows(text, user), choose)
    else:
        raise InvalidInput(
            f"neighbors are made of CSV, NDJSON, Parquet, SQLite and DuckDB files, got {source}; "
            "nothing was read"
        )
    unreadable = (
        f"{source} could not be read by Python alone, with a column {user!r}; nothing was counted"
    )
    while (found := quietly(lambda: next(copies, None), unreadable)) is not None:
        yield str(found[0]), found[1]


def _text_copies(
    path: Path, target: Path, rows_of: Callable[[str], Rows], choose: Choice
) -> Iterator[tuple[Hashable, str]]:
    packed = target.suffix == ".gz"
    content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    # Bytes that are no UTF-8 come back as they were.
    rows = list(rows_of(content.decode(errors="surrogateescape")))
    for one in choose(_users(who for who, _ in rows)):
        kept = "".join(raw for who, raw in rows if who != one).encode(errors="surrogateescape")
        write_file(target, gzip.compress(kept) if packed else kept, overwrite=True, private=True)
        yield one, str(target)


def _csv_rows(text: str, user: str, mark: str) -> Rows:
    """Whose each row is, and its lines as they stand; the header is nobody's."""
    lines: list[str] = []

    def taken() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            lines.append(line)
            yield line

    def row_as_it_stands() -> str:
        raw = "".join(lines)
        lines.clear()
        return raw

    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        reader = csv.reader(taken(), delimiter=mark)
        header = [name.removeprefix("\ufeff").strip() for name in next(reader)]
        place = header.index(user)
        yield None, row_as_it_stands()
        for row in reader:
            yield (row[place] if len(row) == len(header) else None), row_as_it_stands()
    finally:
        csv.field_size_limit(before)


def _json_rows(text: str, user: str) -> Rows:
    """Whose each line is: numbers by their value, a whole one as its digits."""
    for line in io.StringIO(text, newline="\n"):
        try:
            value = json.loads(line.removeprefix("\ufeff"), parse_float=Decimal).get(user)
        except (ValueError, AttributeError, RecursionError, ArithmeticError):
            value = None
        yield _who(value), line


def _parquet_copies(
    path: Path, user: str, target: Path, choose: Choice
) -> Iterator[tuple[Hashable, str]]:
    table = pq.read_table(path)
    users = table[user].to_pylist()
    for one in choose(_users(users)):
        with whole_file(target, overwrite=True, private=True) as file:
            pq.write_table(table.filter(pa.array([who != one for who in users])), file)
        yield one, str(target)


def _duckdb_copies(
    path: Path, table: str, user: str, target: Path, choose: Choice
) -> Iterator[tuple[Hashable, str]]:
    """Copies from which rows go by their number, so that no collation has a say."""
    quoted, column = _quoted(table), _quoted(user)
    with duckdb.connect(str(path), read_only=True) as file:
        # Names of a table and a column, quoted.
        people = dict(file.execute(f"select rowid, {column} from {quoted}").fetchall())  # noqa: S608
    whole = path.read_bytes()
    for one in choose(_users(people.values())):
        write_file(target, whole, overwrite=True, private=True)
        with duckdb.connect(str(target)) as copy:
            gone = [number for number, who in people.items() if who == one]
            copy.execute(f"delete from {quoted} where rowid in (select unnest(?))", [gone])  # noqa: S608
        yield one, f"{target}::{table}"


def _quoted(name: str) -> str:
    return f'"{name.replace(chr(34), chr(34) * 2)}"'


def _sqlite_copies(
    path: Path, table: str, user: str, target: Path, choose: Choice
) -> Iterator[tuple[Hashable, str]]:
    """Copies made in memory; rows go by their number, so that no collation has a say."""
    quoted, column = _quoted(table), _quoted(user)
    with closing(sqlite3.connect(f"file:{path.absolute()}?mode=ro", uri=True)) as file:
        # Text as its bytes, whatever they are; names of a table and a column, quoted.
        file.text_factory = lambda raw: raw.decode(errors="surrogateescape")
        rows = file.execute(f"select rowid, {column} from {quoted}").fetchall()  # noqa: S608
        people = {number: _who(value) for number, value in rows}
        for one in choose(_users(people.values())):
            with closing(sqlite3.connect(":memory:")) as copy:
                file.backup(copy)
                gone = [(number,) for number, who in people.items() if who == one]
                copy.executemany(f"delete from {quoted} where rowid = ?", gone)  # noqa: S608
                copy.commit()
                write_file(target, copy.serialize(), overwrite=True, private=True)
            yield one, f"{target}::{table}"


def _who(value: Any) -> Hashable:
    """Numbers by their value, whole ones as their digits in text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | Decimal) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return None if isinstance(value, list | dict) else value


def _users(found: Any) -> list[Hashable]:
    return sorted({who for who in found if who is not None and who != ""}, key=repr)
