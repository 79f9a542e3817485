"""Sources of other kinds: taken and counted like any, or refused with what is public and the way to do it."""

from __future__ import annotations

import sqlite3
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import geopandas as gpd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from shapely.geometry import LineString, Point
from tests.records.nasty import PLANE
from tests.records.plain import opened
from tests.records.postgres import running_postgres

from sfumato.errors import InvalidInput, InvalidParameter, MissingPackage, SfumatoError
from sfumato.heatmap import release_heatmap
from sfumato.privacy import Ledger, PureDP
from sfumato.records import Columns, named_files, open_table, sum_cells, table_identity
from sfumato.records.engines import connected

BASIC = Columns("user", "x", "y")
ROWS = pa.table(
    {"user": ["a", "b", "b"], "x": [0.5, 2.5, 1.5], "y": [0.5, 1.5, 0.5], "z": [1, 2, 3]}
)
CANARY = "s3cr3t"


def summed(source: Any, **options: Any) -> dict[int, int]:
    table = open_table(source, columns=BASIC, **options)
    return opened(sum_cells(table, BASIC, PLANE, source="test"))


@pytest.fixture
def expected() -> dict[int, int]:
    return summed(ROWS)


def refused(source: Any, **options: Any) -> str:
    """What is said of a source, and that it is one sentence without a trace of what an engine said."""
    with pytest.raises(SfumatoError) as caught:
        open_table(source, columns=BASIC, **options)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


# -- taken


@pytest.mark.engine
def test_a_relation_of_duckdb_is_counted(expected: dict[int, int]) -> None:
    with duckdb.connect() as database:
        database.register("visits", ROWS)
        assert summed(database.sql("select * from visits")) == expected
        message = refused(database.sql('select "user" as who, x, y from visits'))
    assert message == "there is no column 'user', only 'who', 'x', 'y'; nothing was counted"


@pytest.mark.engine
def test_datasets_and_scanners_of_arrow_are_counted(
    expected: dict[int, int], tmp_path: Path
) -> None:
    pq.write_to_dataset(ROWS, tmp_path, partition_cols=["user"])
    assert summed(ds.dataset(tmp_path, partitioning="hive")) == expected
    assert summed(ds.dataset(ROWS).scanner()) == expected


@pytest.mark.engine
def test_a_reader_that_may_be_spent_is_refused_for_its_table(expected: dict[int, int]) -> None:
    """One that was read already would be a table of nobody, whose map is paid for."""
    reader = ROWS.to_reader()
    assert refused(reader) == (
        "a reader of batches gives its rows once, and nothing tells whether it has: give the table of its "
        "read_all(); nothing was read"
    )
    assert summed(reader.read_all()) == expected


@pytest.mark.engine
@pytest.mark.filterwarnings("error")
def test_a_lazy_frame_is_not_asked_for_what_polars_warns_of(expected: dict[int, int]) -> None:
    polars = pytest.importorskip("polars")
    assert summed(polars.from_arrow(ROWS).lazy()) == expected


@pytest.mark.engine
def test_points_of_a_geodataframe_are_x_and_y(expected: dict[int, int]) -> None:
    places = [Point(0.5, 0.5), Point(2.5, 1.5), Point(1.5, 0.5)]
    frame = gpd.GeoDataFrame({"user": ["a", "b", "b"]}, geometry=places)
    assert summed(frame) == expected
    # What is no point is nowhere, whoever it is of.
    odd = [LineString([(0, 0), (1, 1)]), None, Point()]
    more = gpd.GeoDataFrame({"user": ["a", "b", "b", *"abc"]}, geometry=[*places, *odd])
    assert summed(more) == expected
    # Columns of these names are what is meant, not the geometry.
    named = gpd.GeoDataFrame(ROWS.to_pandas(), geometry=[Point(9, 9)] * 3)
    assert summed(named) == expected
    assert "no active geometry" in refused(gpd.GeoDataFrame({"user": ["a"]}))


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_a_list_of_files_is_one_table(
    engine: str, expected: dict[int, int], tmp_path: Path
) -> None:
    parts = [tmp_path / f"{name}.parquet" for name in ("jan", "feb")]
    for part, start in zip(parts, (0, 1), strict=True):
        pq.write_table(ROWS.slice(start, 1 + start), part)
    assert summed(parts, engine=engine) == expected
    assert summed(tuple(map(str, parts)), engine=engine) == expected
    assert named_files(parts) == tuple(parts)
    identity = table_identity(parts, BASIC)
    assert identity is not None
    assert identity.name == "feb.parquet jan.parquet"
    (tmp_path / "mar.csv").write_text("user,x,y\n")
    assert "files of one table are of one format" in refused([parts[0], tmp_path / "mar.csv"])
    assert "name one twice" in refused([parts[0], parts[0]])


@pytest.mark.fault
def test_a_dataframe_of_spark_is_asked_for_its_session() -> None:
    """That one is counted is tested where Spark runs."""

    class Frame:
        asked: ClassVar[list[str]] = []

        @property
        def sparkSession(self) -> Any:  # noqa: N802 - Spark's name
            self.asked.append("session")
            raise RuntimeError(CANARY)

    Frame.__module__ = "pyspark.sql.dataframe"
    assert refused(Frame()).startswith("the DataFrame of Spark could not be used by its session")
    assert Frame.asked == ["session"]


# -- refused


@pytest.mark.fault
@pytest.mark.parametrize(
    "url", [f"s3://{CANARY}@bucket/a.parquet", f"https://host/a.csv?key={CANARY}"]
)
def test_nothing_is_fetched(url: str) -> None:
    for source in (url, [url, url]):
        message = refused(source)
        assert message.startswith(
            f"nothing is fetched, got a path at {url.partition(':')[0]}://..."
        )
        assert "copy the files to this machine" in message


@pytest.mark.fault
def test_a_database_without_a_table_lists_its_tables(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "wh.duckdb")) as file:
        file.sql("create table visits (user integer); create table trips (user integer)")
    with sqlite3.connect(tmp_path / "rows.db") as lite:
        lite.execute("create table visits (user integer)")
    assert f"{tmp_path}/wh.duckdb::TABLE; there is only 'trips', 'visits'; " in refused(
        tmp_path / "wh.duckdb"
    )
    assert "::TABLE; there is only 'visits'; nothing was read" in refused(tmp_path / "rows.db")
    assert "no table 'trip' in" in refused(f"{tmp_path}/wh.duckdb::trip")
    assert "only 'trips', 'visits'; nothing was read" in refused(f"{tmp_path}/wh.duckdb::trip")


@pytest.mark.fault
def test_a_missing_partition_is_named_without_those_there_are(tmp_path: Path) -> None:
    for month in (1, 3):
        folder = tmp_path / "trips" / f"month={month}"
        folder.mkdir(parents=True)
        pq.write_table(ROWS, folder / "0.parquet")
    for missing in ("month=2", "month=2/*.parquet", "month=2/0.parquet"):
        assert refused(tmp_path / "trips" / missing) == (
            f"there is no partition month=2 in {tmp_path}/trips, only others by month; "
            "nothing was read"
        )
    (tmp_path / "empty").mkdir()
    assert "must hold files that end in .parquet" in refused(tmp_path / "empty")
    with pytest.raises(
        InvalidInput, match=r"'month' is in the names of their folders only: .*dataset"
    ):
        open_table(tmp_path / "trips", columns=Columns("user", "x", "y", by="month"))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("other", "said"),
    [
        (ROWS.drop(["x"]), "it has no 'x'"),
        (ROWS.set_column(0, "user", pa.array([1, 2, 3])), "'user' is int64 in it and string there"),
    ],
)
def test_schema_drift_names_the_column(other: pa.Table, said: str, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    pq.write_table(other, tmp_path / "b.parquet")
    message = refused(tmp_path)
    assert "b.parquet must have the same columns as" in message
    assert message.endswith(f"{said}; nothing was read")


@pytest.mark.fault
@pytest.mark.parametrize(
    ("header", "said"),
    [
        (f"who,x,y,{CANARY}", "it has no 'user'"),
        (f"user,x,y,{CANARY}", "it has more columns"),
        ("user,y,x", "its columns are others, or in another order"),
    ],
)
def test_another_header_says_what_it_lacks_and_not_what_it_has(
    header: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("user,x,y\na,1,1\n")
    (tmp_path / "b.csv").write_text(f"{header}\na,1,1\n")
    assert refused(tmp_path / "*.csv").endswith(f"{said}; nothing was read")


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.mark.fault
@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            f"postgres://me:{CANARY}@127.0.0.1:1/db",
            "postgres at 127.0.0.1:1: nothing listens there",
        ),
        (
            f"postgresql://me:{CANARY}@no.such.host.invalid/db",
            "at no.such.host.invalid: no such host",
        ),
        (
            f"postgres://me:{CANARY}@/db?host=/nowhere",
            "postgres at /nowhere: nothing listens there",
        ),
    ],
)
def test_a_host_that_does_not_answer_is_named_without_the_password(url: str, said: str) -> None:
    message = refused("visits", connection=url)
    assert said in message
    assert message.endswith("; nothing was read")


@pytest.mark.fault
def test_a_database_that_there_is_not_is_told_from_a_host(postgres: str) -> None:
    message = refused("visits", connection=postgres.replace("/postgres?", "/none?"))
    assert "it has no such user or database; nothing was read" in message
    assert "there is no table 'visits' in postgres, " in refused("visits", connection=postgres)


@pytest.mark.fault
def test_a_missing_driver_is_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingPackage, match=r"^pip install 'sfumato\[postgres\]'$"):
        connected(f"postgres://me:{CANARY}@host/db")
    monkeypatch.setitem(sys.modules, "ibis.backends.mysql", None)
    with pytest.raises(MissingPackage, match=r"^pip install 'ibis-framework\[mysql\]'$"):
        connected(f"mysql://me:{CANARY}@host/db")


# -- through a release


@pytest.mark.unit
def test_a_refusal_charges_nothing_and_files_of_a_list_are_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("city.ledger", PureDP(1), unit="user", source="city")
    parts = ["a.parquet", "b.parquet"]
    for part in parts:
        pq.write_table(ROWS, part)
    asked: dict[str, Any] = {
        "ledger": ledger,
        "epsilon": 1,
        "bounds": (-1, -1, 3, 2),
        "x": "x",
        "y": "y",
    }
    asked |= {"user": "user", "levels": 2}
    points = gpd.GeoDataFrame({"user": ["a"]}, geometry=[Point(0, 0)], crs="EPSG:3857")
    for source, words in (
        ("s3://bucket/a.parquet", "nothing is fetched"),
        (["a.parquet", "none.parquet"], "there is no file none.parquet"),
        (points, "places of the table are in .*Mercator and the area is one of degrees: say `crs`"),
    ):
        with pytest.raises(InvalidInput, match=words):
            release_heatmap(source, **asked)
    with pytest.raises(InvalidParameter, match="is the private table itself"):
        release_heatmap(parts, prior="b.parquet", **asked)
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(InvalidParameter, match="must not replace the ledger, an image or rows"):
        release_heatmap(["a.json", "b.json"], outputs="b.json", overwrite=True, **asked)
    assert not ledger.statement().entries
    release_heatmap(parts, **asked)
    (entry,) = ledger.statement().entries
    assert entry is not None
