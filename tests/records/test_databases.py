"""The same conformance suite on a real PostgreSQL and on SQLite, whose tables we did not write."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from tests.records.nasty import NAMES, Case, cases
from tests.records.plain import opened, plain_sums
from tests.records.postgres import running_postgres

from sfumato.records import open_table, sum_cells

# Whole numbers of 64 bits without a sign are in neither; times in SQLite are refused.
IN_POSTGRES = [name for name in NAMES if name != "unsigned"]
TIMED = (
    "times in a zone", "fine times", "mass per period", "text times", "dates", "weekdays", "hours of the day",
    "images by weekday", "hours by weekday",
)  # fmt: skip
IN_SQLITE = [name for name in IN_POSTGRES if name not in TIMED]
POSTGRES_TYPES = {
    pa.int8(): "int2",
    pa.int64(): "int8",
    pa.float64(): "float8",
    pa.string(): "text",
    pa.timestamp("s"): "timestamp",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("ns"): "timestamp",
    pa.timestamp("us", tz="America/Lima"): "timestamptz",
    pa.date32(): "date",
}
SQLITE_TYPES = {
    pa.int8(): "integer",
    pa.int64(): "integer",
    pa.float64(): "real",
    pa.string(): "text",
}


def create(name: str, table: pa.Table, types: dict[pa.DataType, str]) -> str:
    fields = ", ".join(f'"{field.name}" {types[field.type]}' for field in table.schema)
    return f"create table {name} ({fields})"


def values(case: Case) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in case.rows]


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with running_postgres() as url:
        yield url


def in_postgres(url: str, case: Case) -> Any:
    with psycopg.connect(
        f"host={url.partition('host=')[2]} user=tests dbname=postgres"
    ) as database:
        database.execute("drop table if exists visits")
        database.execute(create("visits", case.table, POSTGRES_TYPES))
        marks = ", ".join(["%s"] * case.table.num_columns)
        with database.cursor() as cursor:
            cursor.executemany(f"insert into visits values ({marks})", values(case))  # noqa: S608
    return open_table("visits", connection=url)


def in_sqlite(path: Path, case: Case) -> Any:
    with sqlite3.connect(path) as database:
        database.execute(create("visits", case.table, SQLITE_TYPES))
        marks = ", ".join("?" * case.table.num_columns)
        database.executemany(f"insert into visits values ({marks})", values(case))  # noqa: S608
    return open_table(f"{path}::visits")


@pytest.mark.engine
@pytest.mark.parametrize("name", IN_POSTGRES)
def test_sums_in_postgres_are_those_of_the_plain_program(
    name: str, postgres: str, rng: np.random.Generator
) -> None:
    case = cases(rng)[name]
    table = in_postgres(postgres, case)
    found = opened(sum_cells(table, case.columns, case.area, source="test", groups=case.groups))
    assert found == plain_sums(case.rows, case.columns, case.area, case.groups)


@pytest.mark.engine
@pytest.mark.parametrize("name", IN_SQLITE)
def test_sums_in_sqlite_are_those_of_the_plain_program(
    name: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    case = cases(rng)[name]
    table = in_sqlite(tmp_path / "rows.db", case)
    found = opened(sum_cells(table, case.columns, case.area, source="test", groups=case.groups))
    assert found == plain_sums(case.rows, case.columns, case.area, case.groups)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("database", "name"),
    [("postgres", "points"), ("postgres", "mass per period"), ("sqlite", "points")],
)
def test_a_database_does_not_join_the_rows_with_themselves(
    database: str,
    name: str,
    postgres: str,
    tmp_path: Path,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PostgreSQL did so row by row where nobody had analyzed the table: 300,000 rows took minutes."""
    case = cases(rng)[name]
    table = (
        in_postgres(postgres, case)
        if database == "postgres"
        else in_sqlite(tmp_path / "rows.db", case)
    )
    asked: list[str] = []
    backend = type(table.get_backend())
    compiled = backend.compile

    def heard(self: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(str(compiled(self, *arguments, **options)))
        return compiled(self, *arguments, **options)

    monkeypatch.setattr(backend, "compile", heard)
    sum_cells(table, case.columns, case.area, source="test", groups=case.groups)
    (query,) = asked
    assert "OVER (PARTITION BY" in query
    assert "JOIN" not in query
