"""Rows and bounds in metres: the same cell on every engine, files that carry the system, clear refusals."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.records.plain import opened
from tests.records.postgres import running_postgres

from sfumato.errors import InvalidInput, InvalidParameter, MissingPackage
from sfumato.heatmap import (
    draw_map,
    public_area,
    read_heatmap,
    rehearse_heatmap,
    release_heatmap,
)
from sfumato.heatmap.export import to_geodataframe
from sfumato.privacy import Ledger, PureDP
from sfumato.records import Columns, open_table, sum_cells
from sfumato.spaces import Area

pyproj = pytest.importorskip("pyproj")

BOXES: dict[str, tuple[float, float, float, float]] = {
    "EPSG:3857": (1_246_778.0, 5_424_428.0, 1_260_136.0, 5_435_211.0),
    "EPSG:32632": (676_000.0, 4_845_000.0, 686_000.0, 4_853_000.0),
}


def crowd(box: tuple[float, ...], rng: np.random.Generator, users: int = 200) -> pa.Table:
    """People around the middle, some on the very edges."""
    low_x, low_y, high_x, high_y = box
    x = rng.normal((low_x + high_x) / 2, 700, users).clip(low_x, high_x)
    y = rng.normal((low_y + high_y) / 2, 700, users).clip(low_y, high_y)
    x[:2], y[2:4] = (low_x, high_x), (low_y, high_y)
    return pa.table({"user": np.arange(users), "x": x, "y": y})


def cells_by_hand(rows: pa.Table, area: Area) -> dict[int, int]:
    """Units of the people in each cell, by numpy; those on the last edge are in the last cell."""
    level = area.grid.levels
    first_column, first_row, end_column, end_row = area.window(level)
    column, row = area.grid.decode(area.grid.cells_of(rows["x"].to_numpy(), rows["y"].to_numpy()))
    code = area.grid.encode(
        column.clip(first_column, end_column - 1), row.clip(first_row, end_row - 1)
    )
    found, counts = np.unique(code, return_counts=True)
    return {int(one): int(many) << 20 for one, many in zip(found, counts, strict=True)}


@pytest.mark.unit
@pytest.mark.parametrize("crs", BOXES)
def test_a_row_counts_in_one_cell_on_every_engine(
    crs: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    """And on PostgreSQL below, and on Spark in tests/records/test_spark.py."""
    area = public_area(BOXES[crs], crs=crs, levels=7)
    rows = crowd(BOXES[crs], rng)
    pq.write_table(rows, tmp_path / "rows.parquet")
    with sqlite3.connect(tmp_path / "rows.db") as file:
        file.execute("create table rows (user integer, x real, y real)")
        file.executemany(
            "insert into rows values (?, ?, ?)", zip(*rows.to_pydict().values(), strict=True)
        )
    for source, engine in (
        (tmp_path / "rows.parquet", "duckdb"),
        (tmp_path / "rows.parquet", "polars"),
        (f"{tmp_path / 'rows.db'}::rows", "duckdb"),
    ):
        table = open_table(source, engine=engine)
        found = opened(sum_cells(table, Columns("user", "x", "y"), area, source="t"))
        assert found == cells_by_hand(rows, area)


@pytest.mark.engine
def test_a_row_in_metres_counts_in_the_same_cell_of_postgres(rng: np.random.Generator) -> None:
    import psycopg

    with running_postgres() as url, psycopg.connect(url, autocommit=True) as database:
        for number, (crs, box) in enumerate(BOXES.items()):
            area, rows = public_area(box, crs=crs, levels=7), crowd(box, rng)
            # Letters of one case: PostgreSQL folds what is not quoted.
            made = f"rows_{number}"
            database.execute(f"create table {made} (who bigint, x float8, y float8)")
            with database.cursor() as cursor:
                cursor.executemany(
                    f"insert into {made} values (%s, %s, %s)",  # noqa: S608
                    list(zip(*rows.to_pydict().values(), strict=True)),
                )
            table = open_table(made, connection=url)
            found = opened(sum_cells(table, Columns("who", "x", "y"), area, source="t"))
            assert found == cells_by_hand(rows, area)


@pytest.mark.unit
@pytest.mark.parametrize("crs", BOXES)
def test_files_carry_the_system(crs: str, rng: np.random.Generator, tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio")
    names = [str(tmp_path / name) for name in ("a.json", "a.tif", "a.geojson", "a.png", "a.html")]
    box = BOXES[crs]
    found = rehearse_heatmap(
        crowd(box, rng), user="user", x="x", y="y", bounds=box, crs=crs, levels=6, public=True,
        epsilon=1, outputs=names,
    )  # fmt: skip
    assert found.errors.emd_metres is not None
    saved = read_heatmap(names[0])
    assert found.map is not None
    assert (saved.area, saved.area.crs) == (found.map.area, crs)
    with rasterio.open(names[1]) as file:
        assert file.crs.to_string() == crs
        assert file.bounds[0] == pytest.approx(box[0])
    back = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    cells = json.loads(Path(names[2]).read_text())["features"]
    corners = np.array([one["geometry"]["coordinates"][0] for one in cells]).reshape(-1, 2)
    x, y = back.transform(*corners.T)
    assert (x.min(), y.min(), x.max(), y.max()) == pytest.approx(box, abs=0.01)
    assert to_geodataframe(saved, 4).crs.to_epsg() == 4326
    assert f'"{crs}"' in Path(names[0]).read_text()
    drawn = draw_map(names[0], tmp_path / "b.geojson")
    assert drawn.written == tuple(str(tmp_path / name) for name in ("b.geojson", "b.qml"))


@pytest.mark.unit
def test_a_map_of_before_opens_without_a_system(rng: np.random.Generator, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    rehearse_heatmap(
        crowd((0, 0, 5000, 5000), rng), user="user", x="x", y="y", bounds=(0, 0, 5000, 5000),
        plane=True, levels=4, public=True, epsilon=1, outputs=file,
    )  # fmt: skip
    old = json.loads(file.read_text())
    del old["area"]["crs"], old["area"]["metre"], old["noise"]
    file.write_text(json.dumps(old))
    found = read_heatmap(file)
    assert (found.area.crs, found.noise.empty) == ("", None)


@pytest.mark.unit
def test_metres_are_those_of_the_ground() -> None:
    """A metre of Web Mercator is cos(latitude) metres: 0.722 in Florence; one of UTM is one."""
    for crs, metre in (("EPSG:3857", 0.7222), ("EPSG:32632", 1.0)):
        area = public_area(BOXES[crs], crs=crs)
        assert area.metre == pytest.approx(metre, rel=1e-3)
        assert area.cell_size[0] == pytest.approx(area.grid.cell_width * metre, rel=1e-3)
    assert public_area("11.2,43.7,11.3,43.8", crs="EPSG:4326").kind == "degrees"


@pytest.mark.unit
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"bounds": BOXES["EPSG:3857"]}, "metres of Web Mercator, say `crs` EPSG:3857"),
        ({"bounds": "43.7,110.2,43.9,130"}, "exchanged. in order they are 110.2,43.7,130,43.9"),
        ({"bounds": "0,0,500,10"}, "for other coordinates say `plane`, or `crs`"),
        ({"bounds": "11.2,43.7,11.3,43.8", "crs": "EPSG:3857"}, "in its units they are 1246778,"),
        ({"bounds": "0,0,500,500", "crs": "nonsense"}, "a name such as EPSG:3857 .* got .nonsense"),
        ({"bounds": "0,0,500,500", "crs": "EPSG:385"}, "^no reference system EPSG:385 is known"),
        ({"bounds": "0,0,500,500", "crs": "EPSG:4978"}, "a projected system, or EPSG:4326"),
        ({"bounds": "1e9,1e9,2e9,2e9", "crs": "EPSG:32632"}, "does not reach the middle of the bounds"),
        ({"image": "nowhere.png", "crs": "EPSG:3857"}, "an image is in pixels, not in EPSG:3857"),
    ],
)  # fmt: skip
def test_bounds_that_cannot_be_meant_are_refused(how: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words) as refusal:
        public_area(**how)
    assert str(refusal.value).endswith("nothing was read")


@pytest.mark.unit
def test_without_pyproj_the_install_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyproj", None)
    with pytest.raises(MissingPackage, match=r"sfumato\[geo\]"):
        public_area(BOXES["EPSG:3857"], crs="EPSG:3857")


@pytest.mark.unit
def test_a_column_of_text_is_refused_before_the_charge(tmp_path: Path) -> None:
    """By its type alone: no row is looked at, and a file of text has none."""
    ledger = Ledger.create(tmp_path / "a.ledger", PureDP(5), unit="user", source="a")
    how: dict[str, Any] = {
        "user": "user", "bounds": (0, 0, 90, 90), "plane": True, "levels": 3, "ledger": ledger,
        "epsilon": 1,
    }  # fmt: skip
    rows = pa.table({"user": ["ann"], "lon": [11.25], "lat": ["43,77"]})
    with pytest.raises(InvalidInput, match=r"column 'lat' is text.*`text_coordinates`.*charged"):
        release_heatmap(rows, **how)
    assert not ledger.statement().entries
    release_heatmap(rows, text_coordinates=True, **how)
    (tmp_path / "a.csv").write_text("user,lon,lat\nann,11.25,43.77\n")
    release_heatmap(tmp_path / "a.csv", **how)
    assert len(ledger.statement().entries) == 2
