"""Sums on the engines of this process equal the plain program, whatever the table, its order, its files."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records.nasty import CITY, NAMES, PLANE, Case, cases
from tests.records.plain import opened, plain_sums

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import UNITS
from sfumato.records import Columns, Engine, open_table, sum_cells
from sfumato.records.aggregate import _whole_numbers
from sfumato.records.engines import connected
from sfumato.records.text_rows import TextRows
from sfumato.spaces import Area, area_of_plane

LOCAL: tuple[Engine, ...] = ("duckdb", "polars")


def summed(case: Case, engine: Engine = "duckdb") -> dict[int, int]:
    table = open_table(case.table, engine=engine)
    return opened(sum_cells(table, case.columns, case.area, source="test", groups=case.groups))


@pytest.mark.engine
@pytest.mark.parametrize("engine", LOCAL)
@pytest.mark.parametrize("name", NAMES)
def test_sums_are_those_of_the_plain_program(
    name: str, engine: Engine, rng: np.random.Generator
) -> None:
    case = cases(rng)[name]
    expected = plain_sums(case.rows, case.columns, case.area, case.groups)
    assert summed(case, engine) == expected
    assert bool(expected) == (name not in ("nothing", "no rows"))


@pytest.mark.engine
@pytest.mark.parametrize("engine", LOCAL)
def test_order_files_and_threads_change_nothing(
    engine: Engine, rng: np.random.Generator, tmp_path: Path
) -> None:
    case = cases(rng)["points"]
    mixed = case.table.take(rng.permutation(case.table.num_rows))
    for part in range(5):
        pq.write_table(mixed.slice(60 * part, 60), tmp_path / f"{part}.parquet", row_group_size=7)
    table = open_table(str(tmp_path / "*.parquet"), engine=engine)
    assert opened(sum_cells(table, case.columns, case.area, source="test")) == summed(case)
    assert opened(
        sum_cells(open_table(tmp_path), case.columns, case.area, source="test")
    ) == summed(case)


@pytest.mark.engine
def test_threads_change_nothing(rng: np.random.Generator) -> None:
    n = 400_000
    rows = pa.table(
        {"user": rng.integers(0, 5000, n), "x": rng.uniform(-1, 3, n), "y": rng.uniform(-1, 2, n)}
    )
    found = []
    for threads in (1, 2, 4):
        table = open_table(rows)
        table.get_backend().raw_sql(f"set threads = {threads}")
        found.append(opened(sum_cells(table, Columns("user", "x", "y"), PLANE, source="t")))
    assert found[0] == found[1] == found[2]
    assert sum(found[0].values()) <= 5000 * UNITS


place = st.one_of(
    st.floats(-1.5, 3.5), st.sampled_from([None, float("nan"), float("inf"), -1.0, 3.0, 0.0, 1e300])
)
rows = st.lists(
    st.tuples(st.integers(0, 4), place, place, st.one_of(st.none(), st.integers(-2, 2**62))),
    max_size=30,
)


def _table(rows: list[tuple[int, float | None, float | None, int | None]]) -> pa.Table:
    kinds = {"user": pa.int64(), "x": pa.float64(), "y": pa.float64(), "w": pa.int64()}
    return pa.table(
        {
            name: pa.array([row[i] for row in rows], kind)
            for i, (name, kind) in enumerate(kinds.items())
        }
    )


@pytest.mark.fault
def test_rows_are_read_once_where_they_change_meanwhile(tmp_path: Path) -> None:
    """Visits of one reading over the totals of another would give a user more than mass 1."""
    with duckdb.connect(tmp_path / "city.duckdb") as database:
        database.execute(
            "create view visits as select 'u' as user, i % 3 + 0.5 as x, 0.5 as y from range(1000) "
            "as rows(i) where random() < 0.5"
        )
        counts = {
            count
            for _ in range(5)
            for count in database.sql("select count(*) from visits").fetchall()
        }
    assert len(counts) > 1  # every reading is another
    columns = Columns("user", "x", "y")
    table = open_table(f"{tmp_path / 'city.duckdb'}::visits")
    for _ in range(10):
        mass = sum(opened(sum_cells(table, columns, PLANE, source="test")).values())
        assert UNITS - 3 <= mass <= UNITS


@pytest.mark.engine
@pytest.mark.parametrize("engine", LOCAL)
def test_a_file_of_text_is_read_once(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may grow meanwhile."""
    read: list[TextRows] = []
    batches = TextRows.batches

    def noted(rows: TextRows) -> Iterator[pa.RecordBatch]:
        read.append(rows)
        return batches(rows)

    monkeypatch.setattr(TextRows, "batches", noted)
    (tmp_path / "visits.csv").write_text("user,x,y\na,0.5,0.5\na,1.5,0.5\nb,0.5,0.5\n")
    columns = Columns("user", "x", "y")
    table = open_table(tmp_path / "visits.csv", engine=engine, columns=columns)
    assert sum(opened(sum_cells(table, columns, PLANE, source="test")).values()) == 2 * UNITS
    assert len(read) == 1


@pytest.mark.property
@settings(max_examples=20)
@given(rows=rows, user=st.integers(0, 4), weight=st.sampled_from([None, "w"]))
def test_one_user_moves_the_sums_by_at_most_units(
    rows: list[tuple[int, float | None, float | None, int | None]], user: int, weight: str | None
) -> None:
    columns = Columns("user", "x", "y", weight=weight)
    with_them, without = (
        summed(Case(_table(some), columns, SMALL))
        for some in (rows, [row for row in rows if row[0] != user])
    )
    cells = with_them.keys() | without.keys()
    assert sum(abs(with_them.get(cell, 0) - without.get(cell, 0)) for cell in cells) <= UNITS
    assert with_them == plain_sums(Case(_table(rows), columns, SMALL).rows, columns, SMALL)


SMALL = area_of_plane((-1.0, -1.0, 3.0, 2.0), 2)


@pytest.mark.property
@settings(max_examples=15)
@given(
    low=st.tuples(st.floats(-180, 100), st.floats(-90, 0)),
    size=st.tuples(st.floats(1e-3, 80), st.floats(1e-3, 90)),
    levels=st.integers(0, 16),
    where=st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(-2, 2)), min_size=20, max_size=100
    ),
)
def test_cells_are_those_of_the_grid(
    low: tuple[float, float],
    size: tuple[float, float],
    levels: int,
    where: list[tuple[float, float, int]],
) -> None:
    area = area_of_plane((*low, low[0] + size[0], low[1] + size[1]), levels, square=False)
    west, south, _, _ = area.bounds
    # Near the edges of cells, a few roundings to either side.
    x = [west + round(a * area.grid.side) * area.grid.cell_width for a, _, _ in where]
    y = [south + b * size[1] for _, b, _ in where]
    x = [v + k * float(np.spacing(v)) for v, (_, _, k) in zip(x, where, strict=True)]
    codes = area.grid.cells_of(x, y)
    expected: dict[int, int] = {}
    for code in codes[codes >= 0].tolist():
        expected[code] = expected.get(code, 0) + UNITS
    case = Case(pa.table({"x": x, "y": y}), Columns(None, "x", "y", one_row_one_user=True), area)
    assert summed(case) == dict(sorted(expected.items()))


@pytest.mark.unit
def test_the_guard_carries_the_bound() -> None:
    table = open_table(pa.table({"user": [1], "x": [0.0], "y": [0.0]}))
    guarded = sum_cells(table, Columns("user", "x", "y"), CITY, source="city", unit="household")
    assert guarded.bound.l1 == guarded.bound.linf == UNITS
    assert guarded.bound.size == 4**8
    assert (guarded.bound.unit, guarded.source, guarded.exponent) == ("household", "city", -20)


@pytest.mark.unit
def test_other_engines_work_by_connection(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "rows.db") as file:
        file.execute("create table visits (user integer, x real, y text)")
        file.executemany(
            "insert into visits values (?, ?, ?)", [(1, 0.5, "0.5"), (1, 2.5, "x"), (2, 0.5, "0.9")]
        )
    for table in (
        open_table("visits", connection=f"sqlite://{tmp_path / 'rows.db'}"),
        open_table(f"{tmp_path / 'rows.db'}::visits"),
    ):
        found = opened(sum_cells(table, Columns("user", "x", "y"), SMALL, source="t"))
        assert list(found.values()) == [2 * UNITS]


ODD_IN_SQLITE = [
    "zz", "", None, b"\xff\x00", b"", b"1", "1", " 2\n", "٣", "1\x002", 1, 2.5, -3, float("inf"), 2**62,
    "1_000", "0x1",
]  # fmt: skip


@pytest.mark.engine
@pytest.mark.parametrize("kind", ["integer", "real", "text", "numeric"])
def test_sqlite_rows_may_hold_any_type(kind: str, tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "rows.db") as file:
        file.execute(f"create table visits (user {kind}, x {kind}, y {kind}, w {kind})")
        insert = "insert into visits values (?, ?, ?, ?)"
        for number, value in enumerate(ODD_IN_SQLITE):
            for place in range(4):
                row: list[Any] = [number, 0.5, 1, 1]
                row[place] = value
                file.execute(insert, row)
        rows = [dict(zip("uxyw", row, strict=True)) for row in file.execute("select * from visits")]
        # Text that is no UTF-8 is no number, and what it names is a user like any other.
        for place, name in enumerate(("user", "x", "y", "w")):
            for value in (b"1\xff", b"1\0\xff"):
                row = [77, 0.5, 1, 1]
                row[place] = value
                last = file.execute(insert, row).lastrowid
                as_text = f"update visits set {name} = cast({name} as text) where rowid = ?"  # noqa: S608
                file.execute(as_text, (last,))
        rows += [{"u": name, "x": 0.5, "y": 1, "w": 1} for name in ("broken", "broken too")]
    for one in rows:
        one |= {name: None for name in "xyw" if isinstance(one[name], bytes)}
        one["u"] = None if one["u"] in (b"", float("inf")) else one["u"]
    table = open_table(f"{tmp_path / 'rows.db'}::visits")
    found = opened(
        sum_cells(table, Columns("user", "x", "y", weight="w", step=1, cap=3), PLANE, source="t")
    )
    assert found == plain_sums(rows, Columns("u", "x", "y", weight="w", step=1, cap=3), PLANE)


@pytest.mark.engine
@pytest.mark.parametrize(("kind", "groups"), [("integer", ["1", "2"]), ("text", ["1", "zz"])])
def test_sqlite_groups_may_hold_any_type(kind: str, groups: list[str], tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "rows.db") as file:
        file.execute(f"create table visits (user blob, x real, y real, image {kind})")
        for value in (1, "zz", b"1", b"\xff", None, 2.5):
            file.execute(
                "insert into visits values (?, 0.5, 0.5, ?)", (repr(value).encode(), value)
            )
        file.execute("insert into visits values ('u', 0.5, 0.5, cast(x'31ff' as text))")
    table = open_table(f"{tmp_path / 'rows.db'}::visits")
    found = opened(
        sum_cells(table, Columns("user", "x", "y", by="image"), PLANE, source="t", groups=groups)
    )
    assert sum(found.values()) == (1 if kind == "integer" else 2) * UNITS


@pytest.mark.unit
def test_sqlite_columns_have_types(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "rows.db") as file:
        file.execute("create table visits (user, x real, y real)")
    refusal = r"must have a declared type, 'user' of 'visits' has none"
    for rows in (0, 1):
        with sqlite3.connect(tmp_path / "rows.db") as file:
            file.executemany("insert into visits values (?, 0.5, 0.5)", [(1,)] * rows)
        with pytest.raises(InvalidInput, match=refusal):
            open_table(f"{tmp_path / 'rows.db'}::visits")
    # Ibis takes the type from a row that is there.
    own = connected(f"sqlite://{tmp_path / 'rows.db'}").table("visits").filter(ibis._.x > 0)
    with pytest.raises(InvalidInput, match=refusal):
        open_table(own)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("columns", "groups", "area", "message"),
    [
        (Columns("user", "x", "y", by="x"), None, PLANE, "go together"),
        (Columns("user", "x", "y"), ["a"], PLANE, "go together"),
        (Columns("user", "x", "y", by="user"), [], PLANE, "one or more different names"),
        (Columns("user", "x", "y", by="user"), ["a", "a"], PLANE, "one or more different names"),
        (
            Columns("user", "x", "y", by="user"),
            ["a", "b"],
            area_of_plane((0, 0, 1, 1), 16),
            r"at most 2\*\*32",
        ),
    ],
)
def test_public_mistakes_are_parameters(
    columns: Columns, groups: list[str] | None, area: Area, message: str
) -> None:
    table = open_table(pa.table({"user": ["1"], "x": [0.0], "y": [0.0]}))
    with pytest.raises(InvalidParameter, match=message):
        sum_cells(table, columns, area, source="t", groups=groups)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("column", "values", "columns"),
    [
        ("x", [True], Columns("user", "x", "y")),
        ("user", [[1, 2]], Columns("user", "x", "y")),
        ("user", pa.array([2**62], pa.timestamp("ms")), Columns("user", "x", "y")),
        ("by", [1.5], Columns("user", "x", "y", by="by")),
    ],
)
def test_types_that_cannot_be_counted_are_named(
    column: str, values: list[object] | pa.Array, columns: Columns
) -> None:
    rows = {"user": ["1"], "x": [0.0], "y": [0.0], "by": ["a"], column: values}
    with pytest.raises(InvalidInput, match=f"column '{column}' .*; nothing was counted"):
        sum_cells(
            open_table(pa.table(rows)),
            columns,
            PLANE,
            source="t",
            groups=["a"] if columns.by else None,
        )


@pytest.mark.unit
def test_a_missing_column_is_named_with_those_there_are() -> None:
    table = open_table(pa.table({"who": ["1"], "x": [0.0], "y": [0.0]}))
    with pytest.raises(
        InvalidInput,
        match=r"^there is no column 'user', only 'who', 'x', 'y'; nothing was counted$",
    ):
        sum_cells(table, Columns("user", "x", "y"), PLANE, source="t")


KINDS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()]


@pytest.mark.property
@given(st.data())
def test_whole_numbers_of_any_type_are_read_as_they_are(data: st.DataObject) -> None:
    """Also of a slice, whose memory begins before it, and of several chunks."""
    kind = data.draw(st.sampled_from([*KINDS, pa.decimal128(38, 0), pa.decimal128(38, 2)]))
    low, high = (-(2**63), 2**63 - 1)
    if kind.bit_width < 64 or kind == pa.uint64():
        low, high = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
        low = 0 if pa.types.is_unsigned_integer(kind) else low
    numbers = data.draw(st.lists(st.integers(low, high), min_size=1, max_size=9))
    first = data.draw(st.integers(0, len(numbers) - 1))
    column = pa.array(map(Decimal, numbers) if "decimal" in str(kind) else numbers, kind)
    assert _whole_numbers(column[first:]).tolist() == numbers[first:]
    assert _whole_numbers(pa.chunked_array([column, column])).tolist() == 2 * numbers


@pytest.mark.unit
@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**64 - 1], pa.uint64()),
        pa.array([Decimal(2**63)], pa.decimal128(38, 0)),
        pa.array([Decimal(-(2**63) - 1)], pa.decimal128(38, 0)),
        pa.array([Decimal("1.5")], pa.decimal128(38, 1)),
    ],
    ids=str,
)
def test_sums_that_are_no_number_of_64_bits_are_no_other_number(column: pa.Array) -> None:
    with pytest.raises(pa.ArrowInvalid):
        _whole_numbers(column)
