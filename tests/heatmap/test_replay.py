"""Generated neighbors, as files and databases: no engine lets one user move the sums beyond the bound."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compiled_queries import always_anew
from tests.heatmap.replayed_tables import (
    AREA,
    EVERY_DAY,
    FLAT,
    IN_EVERY_IMAGE,
    SHAPES,
    Pair,
    budget,
    hold,
    image_neighbors,
    neighbors,
    rows_of,
    run,
    shapes,
)
from tests.records.plain import opened, plain_sums
from tests.records.postgres import running_postgres
from tests.records.storages import (
    GROUPS,
    NAMES,
    NOT_UTF_8,
    Row,
    as_objects,
    as_table,
    duckdb_collations,
    write_csv,
    write_duckdb,
    write_json,
    write_parquet,
    write_postgres,
    write_sqlite,
)
from tests.replay import Run, record, violations

from sfumato.heatmap import release_heatmap
from sfumato.privacy import UNITS
from sfumato.records import Columns, Engine, open_table, sum_cells
from sfumato.records.engines import connected
from sfumato.spaces import area_of_plane


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


LOCAL: tuple[Engine, ...] = ("duckdb", "polars")


@pytest.mark.property
@pytest.mark.parametrize("engine", LOCAL)
@settings(max_examples=15)
@given(
    pair=neighbors(),
    shape=shapes,
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    mark=st.sampled_from([",", ";", "\t", "|"]),
    bom=st.booleans(),
    pack=st.booleans(),
    raw=st.lists(st.sampled_from(NOT_UTF_8), max_size=3),
)
def test_neighbors_in_csv(
    pair: Pair, shape: str, quoting: int, end: str, mark: str, bom: bool, pack: bool, raw: list[bytes],
    engine: Engine, folder: Path,
) -> None:  # fmt: skip
    path = folder / f"rows.csv{'.gz' if pack else ''}"
    # Fields that are no UTF-8 are of nobody, and take nobody else with them.
    broken = b"".join(
        name + f"{mark}0.5{mark}0.5{mark}1{mark}a{mark}2026-03-29{mark}{end}".encode()
        for name in raw
    )

    def stored(rows: list[Row]) -> Path:
        return write_csv(
            path, rows, quoting=quoting, end=end, mark=mark, bom=bom, pack=pack, raw=broken
        )

    hold(pair, stored, shape, folder, engine=engine, delimiter=mark)


@pytest.mark.property
@pytest.mark.parametrize("engine", LOCAL)
@settings(max_examples=15)
@given(pair=neighbors(), shape=shapes)
def test_neighbors_in_json(pair: Pair, shape: str, engine: Engine, folder: Path) -> None:
    hold(pair, lambda rows: write_json(folder / "rows.ndjson", rows), shape, folder, engine=engine)


@pytest.mark.property
@pytest.mark.parametrize("engine", LOCAL)
@settings(max_examples=15)
@given(pair=neighbors(), shape=shapes, kind=st.sampled_from(["objects", "arrow", "parquet"]))
def test_neighbors_in_typed_tables(
    pair: Pair, shape: str, kind: str, engine: Engine, folder: Path
) -> None:
    def stored(rows: list[Row]) -> Any:
        if kind == "parquet":
            (folder / "parts").mkdir(exist_ok=True)
            return write_parquet(folder / "parts", rows, parts=3)
        return as_objects(rows) if kind == "objects" else as_table(rows)

    hold(pair, stored, shape, folder, engine=engine)


@pytest.mark.property
@pytest.mark.parametrize("engine", [*LOCAL, "sqlite", "collated", "postgres"])
@settings(max_examples=10)
@given(pair=image_neighbors(lambda row: "\x00" not in (row.who or "")), shape=IN_EVERY_IMAGE)
def test_one_user_in_one_image_moves_one_mass(
    pair: Pair, shape: str, engine: str, request: pytest.FixtureRequest, folder: Path
) -> None:
    """A ledger of user-images is charged epsilon once for all images, on every engine."""
    options: dict[str, Any] = {"unit": "user-image"}
    stored: dict[str, Callable[[list[Row]], Any]] = {
        "sqlite": lambda rows: write_sqlite(folder / "rows.db", rows, collation="nocase"),
        "collated": lambda rows: write_duckdb(folder / "r.duckdb", rows, collations=["nocase"]),
    }
    if engine == "postgres":
        options["connection"] = url = request.getfixturevalue("postgres")
        stored[engine] = lambda rows: write_postgres(url, "visits", rows, kind="citext")
    elif engine not in stored:
        options["engine"] = engine
        stored[engine] = as_objects
    hold(pair, stored[engine], shape, folder, **options)


@pytest.mark.engine
@pytest.mark.parametrize("engine", LOCAL)
@pytest.mark.parametrize("kind", ["json", "objects"])
def test_numbers_name_the_same_user_however_they_are_written(
    kind: str, engine: Engine, folder: Path
) -> None:
    rows = [Row("7", x=x, spelling=way) for way, x in enumerate(["0.5", "2.5", "-0.5", "0.5"])]
    stored = {"json": lambda some: write_json(folder / "rows.ndjson", some), "objects": as_objects}[
        kind
    ]
    one, other = (
        run(stored(some), "plain", budget(folder), engine=engine)
        for some in ([*rows, Row("8")], [Row("8")])
    )
    assert violations(one, other) == []


# Times in SQLite are refused.
untimed = st.sampled_from(sorted(shape for shape in SHAPES if "t" not in SHAPES[shape].grouped))


@pytest.mark.property
@pytest.mark.parametrize("collation", ["binary", "nocase", "rtrim"])
@settings(max_examples=10)
@given(pair=neighbors(), shape=untimed)
def test_neighbors_in_sqlite(pair: Pair, shape: str, collation: str, folder: Path) -> None:
    hold(
        pair,
        lambda rows: write_sqlite(folder / "rows.db", rows, collation=collation),
        shape,
        folder,
    )


COLLATIONS = duckdb_collations()


@pytest.mark.property
@settings(max_examples=15)
@given(
    pair=neighbors(),
    shape=shapes,
    collation=st.one_of(
        st.sampled_from(["nocase", "noaccent", "nfc", "nocase.noaccent", "nocase.noaccent.de"]),
        st.sampled_from(COLLATIONS),
    ),
)
def test_neighbors_in_duckdb(pair: Pair, shape: str, collation: str, folder: Path) -> None:
    hold(
        pair,
        lambda rows: write_duckdb(folder / "rows.duckdb", rows, collations=[collation]),
        shape,
        folder,
    )


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore:fetch_arrow_table")  # Ibis 12 with DuckDB 2
def test_every_collation_of_duckdb_tells_users_apart(folder: Path) -> None:
    rows = [Row(who, image=image) for who in ("A", "a", "á", "a ") for image in GROUPS]
    columns = SHAPES["groups"]
    plain = [dict(zip(NAMES, row.texts, strict=True)) for row in rows]
    write_duckdb(folder / "rows.duckdb", rows, collations=COLLATIONS)
    database = connected("duckdb://")
    database.raw_sql(f"attach '{folder / 'rows.duckdb'}' as stored (read_only)")
    expected = plain_sums(plain, columns, AREA, GROUPS)
    # Ibis knows of no collations: under one name it makes the same text for all, once.
    always_anew(False)
    for number, collation in enumerate(COLLATIONS):
        database.raw_sql(f"create or replace view visits as from stored.visits{number}")
        table = database.table("visits")
        found = opened(sum_cells(table, columns, AREA, source="t", groups=GROUPS))
        assert found == expected, collation


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.mark.property
@pytest.mark.parametrize(
    "kind", ["text", "text collate nocase", "varchar(99) collate shifted", "citext"]
)
@settings(max_examples=6)
@given(pair=neighbors(lambda row: "\x00" not in (row.who or "")), shape=shapes)
def test_neighbors_in_postgres(
    pair: Pair, shape: str, kind: str, postgres: str, folder: Path
) -> None:
    hold(
        pair,
        lambda rows: write_postgres(postgres, "visits", rows, kind=kind),
        shape,
        folder,
        connection=postgres,
    )


@pytest.mark.engine
def test_no_coordinate_stops_postgres(postgres: str) -> None:
    odd = ("5e-324", "-5e-324", "1e-320", "1e308", "-1e308", "nan", "inf")
    rows = [Row("a"), *(Row(x, x=x) for x in odd)]
    area = area_of_plane((0.0, 0.0, 1024.0, 1024.0), 2)
    with psycopg.connect(
        f"host={postgres.partition('host=')[2]} user=tests dbname=postgres"
    ) as database:
        database.execute("drop table if exists points")
        database.execute('create table points ("user" text, x float8, y float8)')
        with database.cursor() as cursor:
            cursor.executemany(
                "insert into points values (%s, %s, %s)", [row.texts[:3] for row in rows]
            )
        # As text, 1e400 is beyond what a double holds, and 1e-400 below.
        database.execute("drop table if exists words")
        database.execute('create table words ("user" text, x text, y text)')
        database.execute(
            "insert into words values ('a', '0.5', '1'), ('b', '1e400', '1'), ('c', '1e-400', '1')"
        )
    columns = SHAPES["plain"]
    words = open_table("words", connection=postgres)
    assert sum(opened(sum_cells(words, columns, area, source="t")).values()) == UNITS
    table = open_table("points", connection=postgres)
    found = opened(sum_cells(table, columns, area, source="t"))
    plain = [{"user": row.who, "x": float(row.x or 0), "y": 0.5} for row in rows]
    assert found == plain_sums(plain, columns, area)


@pytest.mark.property
@pytest.mark.parametrize("engine", LOCAL)
@pytest.mark.parametrize("size", [3_000, 70_000, 9_000_000, 20_000_000])
def test_text_with_line_breaks_is_one_field(size: int, engine: Engine, folder: Path) -> None:
    line = "z{:07d},0.5,0.5,1,a,2026-03-29,\n"
    comment = "".join(line.format(number) for number in range(size // len(line.format(0))))
    rows = [Row("A"), Row("B", x="2.5")]
    one, other = (
        run(write_csv(folder / "rows.csv", some), "plain", budget(folder), engine=engine)
        for some in ([*rows, Row("writer", comment=comment)], rows)
    )
    assert violations(one, other, removed=True) == []


@pytest.mark.property
@settings(max_examples=60)
@given(
    rows=st.lists(rows_of, max_size=20),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    block=st.integers(150, 600),
)
def test_rows_are_those_of_pythons_csv_wherever_blocks_end(
    rows: list[Row], quoting: int, end: str, block: int, folder: Path
) -> None:
    from sfumato.records import text_rows

    path = write_csv(folder / "rows.csv", rows, quoting=quoting, end=end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_rows, "BLOCKS", (block, 2**20))
        reader = text_rows.TextRows("CSV", (str(path),), NAMES, NAMES)
        found = [tuple(row.values()) for batch in reader.batches() for row in batch.to_pylist()]
    text = path.read_bytes().decode()
    assert found == [tuple(row) for row in csv.reader(io.StringIO(text, newline=""))][1:]
    assert found == [tuple(field or "" for field in row.texts) for row in rows]


@pytest.mark.reference
def test_rows_are_those_of_pythons_csv_whatever_their_bytes(
    rng: np.random.Generator, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many blocks, and bytes that Arrow stumbles over at their ends: character 0, CR LF, quotes."""
    from sfumato.records import text_rows

    names, path = ("user", "x", "y"), folder / "bytes.csv"
    alphabets = ['a"\r\n,\0', 'a"\n\0b,\x80\xff', "".join(map(chr, range(256))) + '""""\n\n\r\r,,']
    for turn in range(600):
        letters = list(alphabets[turn % 3])
        text = io.StringIO(newline="")
        end = ("\n", "\r\n", "\r")[int(rng.integers(3))]
        writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=end)
        writer.writerow(names)
        for _ in range(int(rng.integers(8))):
            writer.writerow(
                ["".join(rng.choice(letters, rng.choice([0, 1, 3, 9, 40]))) for _ in names]
            )
        path.write_bytes(text.getvalue().encode("latin-1"))
        monkeypatch.setattr(text_rows, "BLOCKS", (int(rng.integers(10, 300)), 2**20))
        reader = text_rows.TextRows("CSV", (str(path),), names, names)
        found = [tuple(row.values()) for batch in reader.batches() for row in batch.to_pylist()]
        rows = list(csv.reader(io.StringIO(text.getvalue(), newline="")))[1:]
        assert found == [tuple(text_rows._utf8(field) for field in row) for row in rows]


# One person on three days by the clock of Rome, and at other hours by that of Lima.
BUSY = [
    Row("A", x=x, t=t)
    for x, t in (
        ("0.5", "2026-03-28T11:00Z"),
        ("2.5", "2026-03-29T02:00Z"),
        ("2.5", "2026-03-29T09:00Z"),
        ("2.5", "2026-03-29T10:00Z"),
        ("-0.5", "2026-03-30T01:00Z"),
    )
]


def in_rome(row: Row) -> int:
    return datetime.fromisoformat(str(row.t)).astimezone(ZoneInfo("Europe/Rome")).day


@pytest.mark.engine
@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("day", [28, 29, 30])
def test_a_user_day_moves_no_more_than_its_ledger_is_charged(
    shape: str, day: int, folder: Path
) -> None:
    rows = [*BUSY, Row("B", t="2026-03-29T09:00Z")]
    without = [row for row in rows if row.who != "A" or in_rome(row) != day]
    one, other = (
        run(as_table(some), shape, budget(folder, unit="user-day")) for some in (rows, without)
    )
    assert violations(one, other, removed=True) == []
    assert bool(one.opened) == (shape in ("mass in every day", "images of every day"))


@pytest.mark.engine
@pytest.mark.parametrize("day", [28, 29, 30])
def test_a_ledger_of_days_has_one_clock(day: int, folder: Path) -> None:
    def both(rows: list[Row]) -> Run:
        ledger, columns = budget(folder, unit="user-day"), Columns("user", "x", "y")

        def released() -> None:
            for zone in ("Europe/Rome", "America/Lima"):
                periods = replace(EVERY_DAY, time_zone=zone)
                release_heatmap(
                    as_table(rows),
                    columns,
                    AREA,
                    groups=periods,
                    ledger=ledger,
                    epsilon=1,
                    method=FLAT,
                )

        return record(released, ledger)

    one, other = both(BUSY), both([row for row in BUSY if in_rome(row) != day])
    assert violations(one, other) == []
    assert len(one.opened) == 1


@pytest.mark.engine
def test_sums_of_many_are_never_paid_for_by_a_local_ledger(folder: Path) -> None:
    one, other = (
        run(as_table(rows), "plain", budget(folder, model="local"))
        for rows in ([Row("A"), Row("B")], [Row("A")])
    )
    assert violations(one, other) == []
    assert not one.opened
