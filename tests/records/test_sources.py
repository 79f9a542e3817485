"""Tables from anywhere: robust against any row, one sentence for anything public, never a word of a row."""

from __future__ import annotations

import gzip
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.records.nasty import PLANE
from tests.records.plain import opened

from sfumato.errors import InvalidInput, InvalidParameter, MissingPackage, SfumatoError
from sfumato.privacy import UNITS
from sfumato.records import Columns, Engine, open_table, sum_cells
from sfumato.records.engines import connected, duckdb_engine

BASIC = Columns("user", "x", "y")
CANARY = "4711canary"
JSON_LINE = b'{"user": "a", "x": 0.5, "y": 1}\n'
GOOD = b"user,x,y\na,0.5,0.5\nb,0.5,0.5\n"


def total(source: Any, **options: Any) -> int:
    """How many users the sums hold."""
    table = open_table(source, **options)
    units = sum(opened(sum_cells(table, BASIC, PLANE, source="test")).values())
    assert units % UNITS == 0
    return units // UNITS


@pytest.mark.unit
@pytest.mark.parametrize(
    ("content", "users"),
    [
        (GOOD, 2),
        (GOOD.replace(b"\n", b"\r\n"), 2),
        (b"user,x,y\r\na,0.5,0.5\nb,0.5,0.5\r\n", 2),
        (b"\xef\xbb\xbf" + GOOD, 2),
        (GOOD + b"\xff\xfe,0.5,0.5\nc,0.5,0.5", 3),
        (GOOD + b"short,0.5\nc,0.5,0.5\n", 3),
        (GOOD + b"\n\nc,0.5,0.5\n", 3),
        (GOOD + b"x" * 5_000_000 + b",0.5,0.5\nc,0.5,0.5\n", 4),
        (GOOD + b'"a,b",0.5,0.5\n"c""d",0.5,0.5\n"e\nf","0.5",0.5\n', 5),
        (GOOD + b',0.5,0.5\n"",0.5,0.5\n', 2),
        (b"user,x,y\n", 0),
        (b"user,x,y", 0),
        (b"user,x,y\n" + bytes(range(256)) * 400, 0),
        (b"user,x,y\n" + b'"' + b"a,0.5,0.5\n" * 100, 0),
        (b',user,"x",y\n0,a,0.5,0.5\n1,b,0.5,0.5\n', 2),
        (b'\xef\xbb\xbf"us,er",user,x,y\n0,a,0.5,0.5\n1,b,0.5,0.5\n', 2),
        (GOOD.replace(b"\n", b"\r"), 2),
    ],
)
def test_no_line_of_a_csv_stops_the_reader(content: bytes, users: int, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(content)
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(content))
    assert total(tmp_path / "rows.csv") == users
    assert total(tmp_path / "rows.csv.gz") == users
    assert total(tmp_path / "rows.csv", engine="polars") == users


@pytest.mark.fault
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_parquet_files_have_the_same_types(engine: Engine, tmp_path: Path) -> None:
    """DuckDB would make 2 of a user 1.5 where the first file has whole numbers."""
    places = {"x": [0.5, 0.5], "y": [0.5, 0.5]}
    pq.write_table(pa.table({"user": [1, 2], **places}), tmp_path / "a.parquet")
    pq.write_table(pa.table({**places, "user": [3, 4]}), tmp_path / "b.parquet")
    assert total(tmp_path, engine=engine, columns=BASIC) == 4
    for other in ({"user": [1.5, 2.0], **places}, places):
        pq.write_table(pa.table(other), tmp_path / "c.parquet")
        with pytest.raises(
            InvalidInput, match=r"c\.parquet must have the same columns as .*nothing was read"
        ):
            open_table(tmp_path, engine=engine, columns=BASIC)


@pytest.mark.unit
def test_delimiters_and_patterns(tmp_path: Path) -> None:
    for name in ("a[1].tsv", "upper.TSV"):
        (tmp_path / name).write_bytes(GOOD.replace(b",", b"\t"))
        assert total(tmp_path / name) == 2
    (tmp_path / "packed.TSV.GZ").write_bytes(gzip.compress(GOOD.replace(b",", b"\t")))
    assert total(tmp_path / "packed.TSV.GZ") == 2
    (tmp_path / "b.csv").write_bytes(GOOD.replace(b",", b";"))
    (tmp_path / "c1.csv").write_bytes(GOOD)
    (tmp_path / "c2.csv").write_bytes(b"user,x,y\nc,0.5,0.5\na,0.5,0.5\n")
    assert total(tmp_path / "b.csv", delimiter=";") == 2
    assert total(tmp_path / "c*.csv") == 3
    with pytest.raises(InvalidInput, match="must have the same header as"):
        open_table(tmp_path / "*.csv")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("name", "content", "users"),
    [
        ("rows.json", b'{"user": "a", "x": 0.5, "y": 1}\n{"user": "b", "x": "0.5", "y": 1, "z": {}}', 2),
        ("rows.jsonl", b'{"user": 1, "x": 0.5, "y": 1}\n{"user": null}\n{"a\n{"user": 2, "x": []}\n', 1),
        ("rows.ndjson", JSON_LINE + b'5\n[]\n{"user": "\xff", "x": 0, "y": 0}\n\x00\n' + JSON_LINE, 1),
        ("rows.ndjson", JSON_LINE + b'{"user": "\\ud800", "x": 0, "y": 0}\n{"z": ' + b"[" * 9999, 1),
        ("rows.ndjson", b'{"user": "\xff", "x": ' + b"9" * 5000 + b', "y": 0}\n' + JSON_LINE, 1),
        ("rows.ndjson", b"\n \r\n" + JSON_LINE.replace(b"\n", b"\r\n"), 1),
        ("rows.ndjson", b"", 0),
        ("rows.json", b" \n", 0),
    ],
)  # fmt: skip
def test_json_has_the_columns_that_are_asked_for(
    name: str, content: bytes, users: int, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert total(tmp_path / name, columns=BASIC) == users
    if users:
        assert total(tmp_path / name) == users
    else:
        with pytest.raises(InvalidInput, match="must begin with an object that names its columns"):
            open_table(tmp_path / name)


@pytest.mark.fault
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("columns", [None, BASIC])
@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"[" + JSON_LINE + b"]",
        b'[\n{"user": "\\ud800", "x": 0, "y": 0}, 5]',
        b"\xef\xbb\xbf [{}]",
    ],
)
def test_a_json_list_is_refused_whatever_it_holds(
    content: bytes, columns: Columns | None, engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "rows.json").write_bytes(content)
    with pytest.raises(
        InvalidInput, match=r"must hold one object per line \(NDJSON\), not a list of them"
    ):
        open_table(tmp_path / "rows.json", engine=engine, columns=columns)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (JSON_LINE, "no column 'usr' among the 3 of the first line of .*; did you mean 'user'"),
        (b'{"x": 1, "y": 1}', "no column 'usr' .*; the first object must have every key"),
        (b'{"user": 1,\n"x": 1, "y": 1}', "the first line of .* must hold an object"),
        (
            b'{"user": ' + b"[" * 9999 + b"]" * 9999 + b"}",
            "the first line of .* must hold an object",
        ),
        (b"5", "the first line of .* must hold an object"),
    ],
)
def test_the_first_object_of_json_is_its_header(
    content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / "0.json").write_bytes(b"")
    (tmp_path / "1.json").write_bytes(content)
    for source in ("1.json", "*.json"):
        with pytest.raises(InvalidInput, match=message):
            open_table(tmp_path / source, columns=Columns("usr", "x", "y"))


@pytest.mark.unit
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_tables_in_memory(engine: Engine) -> None:
    rows: dict[str, Any] = {"user": ["a", "b", None], "x": [0.5, 0.5, 0.5], "y": [0.5, np.nan, 0.5]}
    mixed = pd.DataFrame({**rows, "user": pd.Series(["a", 5, None], dtype=object), "y": 0.5})
    category = pd.DataFrame(rows).astype({"user": "category"})
    for source, users in (
        (pa.table(rows), 1),
        (pd.DataFrame(rows), 1),
        (category, 1),
        (mixed, 2),
        (pl.DataFrame(rows), 1),
        (pl.LazyFrame(rows), 1),
        (pa.table(rows).to_batches()[0], 1),
    ):
        assert total(source, engine=engine) == users
    table = open_table(pa.table(rows))
    assert open_table(table) is table


class Mute:
    """An object that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError(CANARY)


@pytest.mark.fault
@pytest.mark.parametrize(
    "odd", ["\ud800", 10**5000, Decimal("sNaN"), pd.NA, Mute()], ids=list("abcde")
)
@pytest.mark.parametrize("column", ["user", "x", "comment"])
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_no_object_of_pandas_stops_the_reader(odd: Any, column: str, engine: Engine) -> None:
    rows: dict[str, Any] = {
        "user": ["a", "b"],
        "x": ["0.5", "0.5"],
        "y": [0.5, 0.5],
        "comment": ["", ""],
    }
    rows[column] = [rows[column][0], odd]
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in rows.items()})
    users = 2 if column == "comment" or (column == "user" and isinstance(odd, int)) else 1
    assert total(frame, engine=engine, columns=BASIC) == users


@pytest.mark.unit
def test_categories_of_objects_are_text() -> None:
    users = pd.Series(pd.Categorical([1, "a", 1.0], categories=[1, "a"]))
    assert total(pd.DataFrame({"user": users, "x": [0.5, 0.5, 0.5], "y": [0.5, 0.5, 0.5]})) == 2


@pytest.mark.unit
def test_tables_of_databases(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "city.duckdb")) as file:
        file.sql("create table visits as select 1 as user, 0.5 as x, 0.5::decimal(9, 6) as y")
    assert total(f"{tmp_path}/city.duckdb::visits") == 1
    assert total("visits", connection=f"duckdb://{tmp_path}/city.duckdb") == 1
    assert total("main.visits", connection=f"duckdb://{tmp_path}/city.duckdb") == 1
    (tmp_path / "junk.duckdb").write_bytes(b"junk" * 999)
    for source, message in (
        ("city.duckdb::other", "there is no table 'other' in"),
        ("none.duckdb::visits", "there is no database"),
        ("junk.duckdb::visits", "could not be opened as a DuckDB database"),
    ):
        with pytest.raises(InvalidInput, match=message):
            open_table(f"{tmp_path}/{source}")
    with pytest.raises(
        InvalidInput,
        match=r"^could not connect to nonsense://\.\.\.: the databases Ibis knows are .*postgres",
    ):
        connected("nonsense://me:password@host/db")


def heard(source: Any, engine: Engine) -> str:
    """What a caller hears of a source that cannot be read, sooner or later; and that it hears no more."""
    with pytest.raises(SfumatoError) as caught:
        sum_cells(open_table(source, engine=engine), BASIC, PLANE, source="city")
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    return str(caught.value)


@pytest.mark.fault
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_damaged_files_are_one_sentence_without_a_row(
    engine: Engine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = pa.table({"user": [CANARY] * 9000, "x": [0.5] * 9000, "y": [0.5] * 9000})
    pq.write_table(rows, tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    # Readers of Parquet refuse text that is no UTF-8; replaced, it could make one user of two.
    text = pa.Array.from_buffers(
        pa.string(), 2, pa.array([b"\xff" + CANARY.encode(), b"0.5"], pa.binary()).buffers()
    )
    pq.write_table(
        pa.table({"user": text, "x": [0.5] * 2, "y": [0.5] * 2}), tmp_path / "user.parquet"
    )
    pq.write_table(pa.table({"user": [1, 2], "x": text, "y": [0.5] * 2}), tmp_path / "x.parquet")
    packed = gzip.compress(b"user,x,y\n" + f"{CANARY},0.5,0.5\n".encode() * 9000)
    files = {
        "cut.parquet": whole[:-40],
        "holed.parquet": whole[:60] + bytes(300) + whole[360:],
        "user.parquet": (tmp_path / "user.parquet").read_bytes(),
        "x.parquet": (tmp_path / "x.parquet").read_bytes(),
        "text.parquet": f"{CANARY},1,2\n".encode() * 99,
        "empty.parquet": b"",
        "cut.csv.gz": packed[: len(packed) // 2],
        "false.csv.gz": b"user,x,y\n",
        "headless.csv": f"{CANARY},0.5,0.5\n".encode() * 9,
        "junk.csv": bytes(range(256)) * 99,
        "empty.csv": b"",
        "false.json": f'"{CANARY}"'.encode(),
        "none.csv": None,
        "none*.parquet": None,
        "rows.xlsx": whole,
    }  # fmt: skip
    for name, content in files.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        message = heard(str(tmp_path / name), engine)
        assert CANARY not in message, name
        assert message.endswith(("nothing was read", "nothing was charged")), message
        assert "\n" not in message, message
    said = capfd.readouterr()
    assert said.out + said.err == ""


@pytest.mark.fault
def test_a_missing_column_of_a_csv_shows_its_header(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(f"who,x,y\n{CANARY},0.5,0.5\n")
    assert heard(tmp_path / "rows.csv", "duckdb") == (
        "there is no column 'user', only 'who', 'x', 'y'; nothing was counted"
    )


@pytest.mark.fault
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_missing_column_of_a_table_in_memory_shows_all_its_columns(kind: Any) -> None:
    """Also where the reader is told which columns are meant, and takes no others."""
    rows = kind({"rider": [CANARY], "x": [0.5], "y": [0.5], "seen": [1]})
    with pytest.raises(InvalidInput) as refusal:
        sum_cells(open_table(rows, columns=BASIC), BASIC, PLANE, source="city")
    assert str(refusal.value) == (
        "there is no column 'user', only 'rider', 'x', 'y', 'seen'; nothing was counted"
    )


@pytest.mark.fault
@pytest.mark.parametrize(("package", "engine"), [("polars", "polars"), ("pyspark", "spark")])
def test_a_missing_package_is_its_install_line(
    package: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=rf"^pip install 'sfumato\[{engine}\]'$"):
        open_table(pa.table({"user": [1], "x": [0.5], "y": [0.5]}), engine=engine)


@pytest.mark.unit
@pytest.mark.engine  # a DuckDB of its own
def test_spilled_rows_leave_with_the_connection() -> None:
    database = duckdb_engine()
    (spill,) = database.raw_sql("select current_setting('temp_directory')").fetchone()
    assert Path(spill).stat().st_mode & 0o777 == 0o700
    del database
    import gc

    gc.collect()
    assert not Path(spill).exists()


@pytest.mark.unit
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"user": None}, "say `one_row_one_user` if every row is another user"),
        ({"user": "u", "one_row_one_user": True}, "is for tables without a user column"),
        ({"user": ""}, "must be named"),
        ({"user": "u", "step": 0}, "step must lie between"),
        ({"user": "u", "step": Fraction(1, 10**200)}, "step must lie between"),
        ({"user": "u", "cap": 2**31}, r"cap must lie in 1\.\.2\*\*30"),
    ],
)
def test_columns_are_checked(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Columns(**{"x": "x", "y": "y", **given})


@pytest.mark.unit
@pytest.mark.parametrize("options", [{"engine": "oracle"}, {"delimiter": ",,"}])
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="nothing was read"):
        open_table("rows.csv", **options)
    with pytest.raises(InvalidInput, match="rows must come from a path"):
        open_table([1, 2, 3])
