"""The same rows as files and databases of every kind: quoting, line ends, encodings, collations, types."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

NAMES = ("user", "x", "y", "w", "image", "t", "comment")


@dataclass(frozen=True)
class Row:
    """One row; `who` is a person, `spelling` which of the ways to write whole numbers, if it is one."""

    who: str | None
    x: str | None = "0.5"
    y: str = "0.5"
    w: int = 1
    image: str = "a"
    t: str | None = "2026-03-28T10:00"
    comment: str = ""
    spelling: int = 0

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.who, self.x, self.y, str(self.w), self.image, self.t, self.comment)


Rows = Sequence[Row]
# Persons whom some engine, type or collation takes for each other, or for nobody.
PERSONS = (
    "A", "a", "á", "a ", "ß", "ss", "SS", "\u212b", "Å", "A\u030a", "ﬁ", "fi", "a\r\nb", "a\nb", 'q"q', "x,y",
    "'",     "1", "2", "-3", "\\x41", "!", "\u200b", "\x00", "a\x00b", "\ufffd", "NULL", "nan", " ", "İ", "i̇",
)  # fmt: skip
GROUPS = ("a", "A", "á", "b ", "b")
NOT_UTF_8 = (b"\xff", b"\xfe", b"\xc3", b"A\x80")


def write_csv(
    path: Path, rows: Rows, *, quoting: int = csv.QUOTE_MINIMAL, end: str = "\n", mark: str = ",",
    bom: bool = False, pack: bool = False, raw: bytes = b"",
) -> Path:  # fmt: skip
    """A CSV of any dialect; `raw` are bytes that follow."""
    text = io.StringIO(newline="")
    # Python's writer takes a line feed for the end of a line only if it ends lines with it.
    quoting = csv.QUOTE_ALL if end == "\r" else quoting
    writer = csv.writer(text, quoting=quoting, lineterminator=end, delimiter=mark)  # type: ignore[arg-type]
    writer.writerow(NAMES)
    writer.writerows(row.texts for row in rows)
    content = b"\xef\xbb\xbf" * bom + text.getvalue().encode() + raw
    path.write_bytes(gzip.compress(content) if pack else content)
    return path


def number(row: Row) -> Any:
    """The person as a number, spelled in one of four ways, or as text."""
    if row.who is None or not row.who.lstrip("-").isdecimal():
        return row.who
    value = int(row.who)
    return (value, float(value), Decimal(value).quantize(Decimal("1.00")), np.int32(value))[
        row.spelling % 4
    ]


def write_json(path: Path, rows: Rows) -> Path:
    """One object a line; whole numbers as 1, 1.0, 1.00 and 10e-1."""
    lines = []
    for row in rows:
        fields = dict(zip(NAMES, row.texts, strict=True))
        line = json.dumps(fields, ensure_ascii=row.spelling % 2 == 0)
        if row.who is not None and row.who.lstrip("-").isdecimal():
            way = ("{}", "{}.0", "{}.00", "{}0e-1")[row.spelling % 4].format(row.who)
            line = json.dumps(fields | {"user": None}).replace('"user": null', f'"user": {way}')
        lines.append(line + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def as_table(rows: Rows) -> pa.Table:
    """Text and numbers, as in a typed file."""
    return pa.table(
        {
            "user": pa.array([row.who for row in rows], pa.string()),
            "x": pa.array([None if row.x is None else float(row.x) for row in rows], pa.float64()),
            "y": pa.array([float(row.y) for row in rows], pa.float64()),
            "w": pa.array([row.w for row in rows], pa.int64()),
            "image": pa.array([row.image for row in rows], pa.string()),
            "t": pa.array([row.t for row in rows], pa.string()),
            "comment": pa.array([row.comment for row in rows], pa.string()),
        }
    )


def as_objects(rows: Rows) -> pd.DataFrame:
    """A pandas table whose users are Python objects of several types."""
    frame = as_table(rows).to_pandas()
    frame["user"] = pd.Series([number(row) for row in rows], dtype=object)
    return frame


def write_parquet(folder: Path, rows: Rows, *, parts: int) -> Path:
    """Several files."""
    table = as_table(rows)
    ends = [part * table.num_rows // parts for part in range(parts + 1)]
    for part, (start, end) in enumerate(pairwise(ends)):
        pq.write_table(table.slice(start, end - start), folder / f"{part}.parquet")
    return folder


def write_sqlite(path: Path, rows: Rows, *, collation: str) -> str:
    """A table whose text has a collation; users are what the column's type makes of them."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            f"create table visits (user blob collate {collation}, x real, y text, w integer, "
            f"image text collate {collation}, t text, comment text)"
        )
        values = [(_bindable(number(row)), *row.texts[1:]) for row in rows]
        connection.executemany("insert into visits values (?, ?, ?, ?, ?, ?, ?)", values)
    connection.close()
    return f"{path}::visits"


def _bindable(value: Any) -> Any:
    """SQLite takes no decimals."""
    return (
        float(value)
        if isinstance(value, Decimal)
        else int(value)
        if isinstance(value, np.int32)
        else value
    )


def write_duckdb(path: Path, rows: Rows, *, collations: Sequence[str]) -> str:
    """The same as a file of DuckDB, a table visits0, visits1, ... for each collation."""
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        for number, collation in enumerate(collations):
            text = "varchar" + f" collate {collation}" * bool(collation)
            connection.execute(
                f"create table visits{number} (user {text}, x double, y {text}, w integer, image {text}, "
                f"t {text}, comment text)"
            )
            if number:
                connection.execute(f"insert into visits{number} from visits0")
            elif rows:
                values = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(rows))
                fields = [field for row in rows for field in row.texts]
                connection.execute(f"insert into visits0 values {values}", fields)  # noqa: S608
    return f"{path}::visits0"


def write_postgres(url: str, name: str, rows: Rows, *, kind: str) -> str:
    """A table of PostgreSQL whose text is of a kind; it holds no character 0."""
    host = url.partition("host=")[2]
    with psycopg.connect(f"host={host} user=tests dbname=postgres") as connection:
        connection.execute("create extension if not exists citext")
        for collation, locale in (
            ("nocase", "und-u-ks-level2"),
            ("shifted", "und-u-ka-shifted-ks-level1"),
        ):
            connection.execute(
                f"create collation if not exists {collation} "
                f"(provider = icu, locale = '{locale}', deterministic = false)"
            )
        connection.execute(f"drop table if exists {name}")
        connection.execute(
            f'create table {name} ("user" {kind}, x {kind}, y float8, w integer, image {kind}, t {kind}, '
            "comment text)"
        )
        insert = f"insert into {name} values (%s, %s, %s, %s, %s, %s, %s)"  # noqa: S608
        with connection.cursor() as cursor:
            cursor.executemany(insert, [row.texts for row in rows])
    return name


def duckdb_collations() -> list[str]:
    """Every collation there is without a download, as it is written in SQL."""
    with duckdb.connect() as connection:
        found = connection.execute("select collname from pragma_collations()").fetchall()
    return ["", *(f'"{name}"' for (name,) in found)]
