"""The same conformance suite on a real Spark cluster: two workers, one core each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.heatmap.replayed_tables import Pair, hold, neighbors, shapes
from tests.heatmap.test_reference_systems import BOXES, cells_by_hand, crowd
from tests.records.nasty import NAMES, PLANE, cases
from tests.records.plain import opened, plain_sums
from tests.records.storages import Row, write_csv, write_json, write_parquet

from sfumato.errors import InvalidInput
from sfumato.heatmap import public_area
from sfumato.privacy import UNITS
from sfumato.records import Columns, Engine, open_table, sum_cells
from sfumato.records.engines import spark_engine

CLUSTER = "local-cluster[2,1,1024]"
# Each job takes a second or two; these hold nothing the others do not, but for engines in process.
# Spark has no unsigned numbers.
LEFT_OUT = ("points", "all cells", "numbered groups", "nothing", "pacific edges", "rows are users",
            "the world", "west of 180", "unsigned", "dates")  # fmt: skip


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The session is started once; `open_table` finds it."""
    engine: Any = spark_engine(CLUSTER)
    engine._session.conf.set("spark.sql.shuffle.partitions", 2)
    yield CLUSTER
    engine._session.stop()


@pytest.mark.engine
@pytest.mark.parametrize("name", [name for name in NAMES if name not in LEFT_OUT])
def test_sums_are_those_of_the_plain_program(
    name: str, cluster: str, rng: np.random.Generator
) -> None:
    case = cases(rng)[name]
    table = open_table(case.table, engine="spark", connection=cluster)
    found = opened(sum_cells(table, case.columns, case.area, source="test", groups=case.groups))
    assert found == plain_sums(case.rows, case.columns, case.area, case.groups)


@pytest.mark.engine
def test_a_dataframe_is_counted_by_its_session(cluster: str, rng: np.random.Generator) -> None:
    """Whatever engine is asked for: its rows are nowhere else."""
    case = cases(rng)["weights"]
    session: Any = spark_engine(cluster)._session
    table = open_table(session.createDataFrame(case.table), columns=case.columns)
    found = opened(sum_cells(table, case.columns, case.area, source="test"))
    assert found == plain_sums(case.rows, case.columns, case.area)


@pytest.mark.engine
def test_files_are_read_alike(cluster: str, rng: np.random.Generator, tmp_path: Path) -> None:
    case = cases(rng)["points"]
    pq.write_table(case.table.slice(0, 100), tmp_path / "a.parquet")
    pq.write_table(case.table.slice(100), tmp_path / "b.parquet")
    (tmp_path / "rows.csv").write_bytes(
        b'\xef\xbb\xbfuser,x,y\r\n"a,b",0.5,0.5\r\n"a\nb",1,1\r\n,1,1\r\nshort,1\r\n"",1,1\r\n'
        b" c ,x,1\r\nd,2,1\r\n"
    )
    (tmp_path / "rows.jsonl").write_text(
        '{"user": "a", "x": 0.5, "y": "1"}\n{"user": 7, "x": 2e0, "y": 1}\nnot json\n{"x": 1, "y": 1}\n'
    )
    # Two users that a reader who replaces what is no UTF-8 takes for one, in a file whose fields
    # have lines.
    (tmp_path / "bytes.csv").write_bytes(
        b'user,x,y\n\xff,0.5,0.5\n\xfe,2,1\n\xfe,2,1\n"a\r\nd,2,1\r\n",1,1\nd,2,1\n'
    )
    (tmp_path / "numbers.jsonl").write_bytes(
        b'{"user": 1, "x": 0.5, "y": 1}\n{"user": 1.0, "x": 2, "y": 1}\n{"user": "1", "x": 1, "y": 1}\n'
        b'{"user": "\\ud800", "x": 1, "y": 1}\n{"user": "\\ud801", "x": 2, "y": 1}\n'
        b'{"user": "\xff", "x": 1, "y": 1}\n'
        b'{"user": 12345678901234567890, "x": 2, "y": 1}\n{"user": 12345678901234567891, "x": 1, "y": 1}\n'
    )
    for source in ("*.parquet", "rows.csv", "rows.jsonl", "bytes.csv", "numbers.jsonl"):
        here, there = (
            opened(sum_cells(table, Columns("user", "x", "y"), PLANE, source="t"))
            for table in (
                open_table(str(tmp_path / source)),
                open_table(str(tmp_path / source), engine="spark", connection=cluster),
            )
        )
        assert here == there
        assert here


@pytest.mark.engine
@pytest.mark.parametrize("crs", BOXES)
def test_a_row_in_metres_counts_in_the_same_cell(
    crs: str, cluster: str, rng: np.random.Generator
) -> None:
    """People on the very edges of an area in EPSG:3857 or UTM, too."""
    area, rows = public_area(BOXES[crs], crs=crs, levels=7), crowd(BOXES[crs], rng)
    table = open_table(rows, engine="spark", connection=cluster)
    found = opened(sum_cells(table, Columns("user", "x", "y"), area, source="t"))
    assert found == cells_by_hand(rows, area)


@pytest.mark.property
@settings(max_examples=4)
@given(pair=neighbors(), shape=shapes, kind=st.sampled_from(["csv", "json", "parquet"]))
def test_neighbors_in_files(pair: Pair, shape: str, kind: str, cluster: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)

        def stored(rows: list[Row]) -> Path:
            if kind == "parquet":
                return write_parquet(folder, rows, parts=2)
            if kind == "json":
                return write_json(folder / "rows.ndjson", rows)
            return write_csv(folder / "rows.csv", rows, end="\r\n")

        hold(pair, stored, shape, folder, engine="spark", connection=cluster)


@pytest.mark.engine
def test_neighbors_whose_names_are_no_utf_8(cluster: str, tmp_path: Path) -> None:
    """Nobody else's mass moves with a user whose bytes cannot be read."""
    columns, path = Columns("user", "x", "y"), tmp_path / "rows.csv"

    def summed(rows: list[bytes]) -> dict[int, int]:
        path.write_bytes(b"user,x,y\n" + b"".join(rows))
        table = open_table(path, engine="spark", connection=cluster, columns=columns)
        return opened(sum_cells(table, columns, PLANE, source="t"))

    rows = [b"\xff,0.5,0.5\n", *[b"\xfe,2,1\n"] * 9, b"a,1,1\n"]
    one, other = summed(rows), summed([row for row in rows if not row.startswith(b"\xfe")])
    moved = sum(abs(one.get(code, 0) - other.get(code, 0)) for code in one.keys() | other.keys())
    assert moved <= UNITS
    assert one == other


@pytest.mark.fault
@pytest.mark.parametrize("engine", ["duckdb", "polars", "spark"])
def test_text_in_parquet_that_is_no_utf_8_is_refused(
    engine: Engine, cluster: str, tmp_path: Path
) -> None:
    text = pa.Array.from_buffers(
        pa.string(), 2, pa.array([b"\xff", b"\xfe"], pa.binary()).buffers()
    )
    pq.write_table(
        pa.table({"user": text, "x": [0.5] * 2, "y": [0.5] * 2}), tmp_path / "rows.parquet"
    )
    where = cluster if engine == "spark" else None
    table = open_table(tmp_path / "rows.parquet", engine=engine, connection=where)
    with pytest.raises(
        InvalidInput, match="could not read or count the rows of city; nothing was charged"
    ):
        sum_cells(table, Columns("user", "x", "y"), PLANE, source="city")
    broken = pa.table({"user": text, "x": [0.5] * 2, "y": [0.5] * 2})
    with pytest.raises(InvalidInput, match="could not be read as Arrow; nothing was read"):
        open_table(broken, engine=engine, connection=where)


@pytest.mark.unit
def test_executors_need_no_sfumato(tmp_path: Path) -> None:
    """What is sent to them holds the reader itself."""
    import subprocess
    import sys

    from pyspark import cloudpickle

    from sfumato.records import text_rows

    (tmp_path / "rows.csv").write_text('user,x,y\n"a\nb",0.5,1\n')
    names = ("user", "x", "y")
    rows = text_rows.TextRows(
        "CSV", (str(tmp_path / "rows.csv"),), names, names, frozenset({"x", "y"})
    )
    cloudpickle.register_pickle_by_value(text_rows)  # type: ignore[no-untyped-call]
    (tmp_path / "rows.pickle").write_bytes(cloudpickle.dumps(rows.batches))  # type: ignore[no-untyped-call]
    code = (
        "import sys, pickle; sys.modules['sfumato'] = None\n"
        "import pyspark.cloudpickle\n"
        "print([b.to_pylist() for b in pickle.load(open(sys.argv[1], 'rb'))()])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "rows.pickle"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[[{'user': 'a\\nb', 'x': 0.5, 'y': 1.0}]]"


@pytest.mark.fault
def test_a_failing_job_tells_nothing(
    cluster: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(
        pa.table({"user": ["canary"] * 5000, "x": [0.5] * 5000, "y": [0.5] * 5000}), path
    )
    whole = path.read_bytes()
    table = open_table(str(path), engine="spark", connection=cluster)
    path.write_bytes(whole[:200] + bytes(200) + whole[400:])
    with pytest.raises(InvalidInput) as caught:
        sum_cells(table, Columns("user", "x", "y"), PLANE, source="city")
    assert (
        str(caught.value) == "pyspark could not read or count the rows of city; nothing was charged"
    )
    assert caught.value.__context__ is None
    heard = capfd.readouterr()
    assert heard.out + heard.err == ""
