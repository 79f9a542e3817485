"""Every file opens with somebody else's reader, says where things are, and looks the same for all data."""

from __future__ import annotations

import csv
import io
import json
import warnings
from pathlib import Path
from typing import Any

import geopandas
import h3
import numpy as np
import pyarrow.parquet as pq
import pytest
import rasterio
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry import Point, shape
from tests.heatmap.export.maps import CITY, HOSTILE, PACIFIC, SCENE, heatmap, tile_at, town

from sfumato.errors import InvalidParameter
from sfumato.heatmap.export import SUFFIXES, to_geodataframe, write
from sfumato.heatmap.export.shapes import cells_of
from sfumato.heatmap.export.tables import check_h3, h3_resolution, hexagon_area, hexagons
from sfumato.heatmap.results import HeatmapRelease
from sfumato.heatmap.tiles import Tiles
from sfumato.spaces import Area, Grid, area_in_degrees, area_of_plane

pytestmark = pytest.mark.unit

HERE = (-73.98, 40.75)
FAR = (179.99, -17.7)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def saved(release: HeatmapRelease, folder: Path, name: str, **wishes: Any) -> Path:
    write(release, folder / name, **wishes)
    return folder / name


# one place, in every format


@pytest.mark.reference
@pytest.mark.parametrize(
    ("area", "place"), [(CITY, HERE), (PACIFIC, FAR)], ids=["city", "antimeridian"]
)
def test_a_single_tile_is_where_it_should_be(
    area: Any, place: tuple[float, float], tmp_path: Path
) -> None:
    x, y = place
    level, code, _ = one = tile_at(area, x, y)
    box = area.grid.boxes(np.array([code]))[0]
    release = heatmap(area, [one])
    with rasterio.open(saved(release, tmp_path, "a.tif")) as file:
        shares = file.read(1)
        row, column = np.argwhere(shares > 0)[0]
        assert file.crs.to_epsg() == 4326
        assert file.index(x, y) == (row, column)
        assert shares.sum() == shares[row, column] == 1
        west, north = (
            file.transform.c + column * file.transform.a,
            file.transform.f + row * file.transform.e,
        )
        assert np.allclose([west, north + file.transform.e, west + file.transform.a, north], box)
        assert file.transform.e < 0  # north up
    found = json.loads(saved(release, tmp_path, "a.geojson", every_cell=True).read_bytes())
    assert len(found["features"]) == 1
    polygon = shape(found["features"][0]["geometry"])
    assert polygon.covers(Point(x, y))
    assert polygon.area == pytest.approx((box[2] - box[0]) * (box[3] - box[1]))
    (line,) = rows_of(saved(release, tmp_path, "a.csv"))
    assert [float(line[name]) for name in ("west", "south", "east", "north")] == box.tolist()
    assert (int(line["level"]), float(line["share"]), float(line["users"])) == (level, 1, 1000)
    hexagons = rows_of(saved(release, tmp_path, "a.h3.csv"))
    best = max(hexagons, key=lambda row: float(row["share"]))
    resolution = h3.get_resolution(best["h3"])
    assert h3.latlng_to_cell(y, x, resolution) in {row["h3"] for row in hexagons}
    with np.load(saved(release, tmp_path, "a.npz"), allow_pickle=False) as arrays:
        image, grid = arrays["image"], Grid(int(arrays["level"]), tuple(arrays["grid_bounds"]))
        assert grid.codes_of_image()[image > 0].tolist() == [code]


@pytest.mark.reference
def test_geojson_at_the_antimeridian_is_cut_and_turns_left(tmp_path: Path) -> None:
    """RFC 7946: longitudes in -180..180, a polygon across the line in two, exterior rings turn left."""
    release = heatmap(PACIFIC, [(0, 0, 50.0), tile_at(PACIFIC, 185, -10, users=7)])
    found = json.loads(saved(release, tmp_path, "a.geojson").read_bytes())
    whole = [shape(one["geometry"]) for one in found["features"]]
    for one in whole:
        assert one.is_valid
        assert one.bounds[0] >= -180
        assert one.bounds[2] <= 180
        for part in getattr(one, "geoms", [one]):
            assert part.exterior.is_ccw
    west, south, east, north = PACIFIC.grid.bounds
    assert sum(one.area for one in whole) == pytest.approx((east - west) * (north - south))
    both = json.loads(saved(heatmap(PACIFIC, [(0, 0, 1.0)]), tmp_path, "b.geojson").read_bytes())[
        "features"
    ]
    assert [one["geometry"]["type"] for one in both] == ["MultiPolygon"]
    assert shape(both[0]["geometry"]).covers(Point(-175, -10))
    assert shape(both[0]["geometry"]).covers(Point(175, -10))


def test_a_grid_grown_west_of_180_wraps_too(tmp_path: Path) -> None:
    area = Area(Grid(4, (-191.0, -11.0, -169.0, 11.0)), (-180.0, -10.0, -178.0, 10.0), "degrees")
    release = heatmap(area, [tile_at(area, -180.5, 0.1)])
    data = saved(release, tmp_path, "a.geojson", every_cell=True).read_bytes()
    (feature,) = json.loads(data)["features"]
    assert shape(feature["geometry"]).covers(Point(179.5, 0.1))


# mass


def test_mass_adds_up_to_one_in_every_format(tmp_path: Path) -> None:
    release = town()
    found = json.loads(saved(release, tmp_path, "a.geojson").read_bytes())
    sums = {
        "geojson": sum(one["properties"]["share"] for one in found["features"]),
        "csv": sum(float(row["share"]) for row in rows_of(saved(release, tmp_path, "a.csv"))),
        "h3.csv": sum(float(row["share"]) for row in rows_of(saved(release, tmp_path, "a.h3.csv"))),
        "h3.parquet": sum(
            pq.read_table(saved(release, tmp_path, "a.h3.parquet"))["share"].to_pylist()
        ),
        "npz": np.load(saved(release, tmp_path, "a.npz"))["image"].sum(),
        "frame": to_geodataframe(release).share.sum(),
    }
    assert all(abs(total - 1) < 1e-9 for total in sums.values()), sums
    with rasterio.open(saved(release, tmp_path, "a.tif")) as file:
        first_column, first_row, last_column, last_row = CITY.window(8)
        inside = release.image(8)[first_row:last_row, first_column:last_column]
        assert file.shape == inside.shape
        assert np.array_equal(file.read(1), inside[::-1].astype(np.float32))
    users = sum(one["properties"]["users"] for one in found["features"])
    assert users == pytest.approx(1100)


@pytest.mark.property
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 255), st.integers(0, 9)),
        min_size=1,
        max_size=30,
    )
)
def test_cells_never_overlap_and_are_the_same_map(drawn: list[tuple[int, int, int]]) -> None:
    levels, codes, users = (np.array(column) for column in zip(*drawn, strict=True))
    tiles = Tiles(Grid(4), levels, codes % 4**levels, users.astype(float))
    cells = cells_of(tiles)
    again = Tiles(Grid(4), cells.levels, cells.codes, cells.shares)
    assert np.allclose(again.image(4), tiles.normalized().image(4), atol=1e-15)
    covered = Tiles(
        Grid(4), cells.levels, cells.codes, np.ldexp(1.0, 2 * (4 - cells.levels))
    ).image(4)
    assert set(np.unique(covered)) <= {0, 1}
    assert (cells.shares > 0).all()
    for level in range(4):
        coarse = cells_of(tiles, level)
        assert coarse.levels.max() <= level
        kept = Tiles(Grid(4), coarse.levels, coarse.codes, coarse.shares)
        assert np.allclose(kept.image(level), tiles.normalized().image(level), atol=1e-15)


@pytest.mark.reference
def test_hexagons_hold_what_lies_in_them() -> None:
    """Against exact areas: no share is off by more than what its border's lattice squares hold."""
    release = heatmap(CITY, [tile_at(CITY, *HERE, level=3)])
    indices, shares = hexagons(release, resolution=7)
    tile = to_geodataframe(release).geometry.iloc[0]
    step = (hexagon_area(7) ** 0.5 / 3) / 111.195
    for index, share in zip(indices, shares, strict=True):
        outline = shape(
            {"type": "Polygon", "coordinates": [[(x, y) for y, x in h3.cell_to_boundary(index)]]}
        )
        exact = outline.intersection(tile).area / tile.area
        crossed = (
            outline.boundary.intersection(tile).buffer(step * 1.5).intersection(tile).area
            / tile.area
        )
        assert abs(share - exact) <= crossed
        assert abs(share - exact) < 0.25 * hexagon_area(7) / (tile.area * 111.195**2 * 0.7577)


def test_hexagons_are_about_as_large_as_cells(tmp_path: Path) -> None:
    found = []
    for levels in (3, 5, 16):
        release = heatmap(area_in_degrees(CITY.bounds, levels), [(0, 0, 1.0)])
        found.append(
            h3.get_resolution(rows_of(saved(release, tmp_path, f"{levels}.h3.csv"))[0]["h3"])
        )
    assert found == [6, 8, 10]  # the last is as fine as 100,000 hexagons allow
    with pytest.raises(InvalidParameter, match="from 0 to 15, got 16; nothing was written"):
        write(town(), tmp_path / "b.h3.csv", h3_resolution=16)
    with pytest.raises(InvalidParameter, match="resolution 15 are too fine for this map"):
        write(town(), tmp_path / "b.h3.csv", h3_resolution=15)
    assert not (tmp_path / "b.h3.csv").exists()


@pytest.mark.parametrize("turned", [False, True], ids=["wide", "tall"])
def test_stretched_cells_are_known_to_hexagons_in_both_directions(turned: bool) -> None:
    """240 km by 3 km: a column of cells is a thousand meters wide, a row thirteen, a hexagon 130."""
    bounds = (11.48, 42.0, 11.52, 44.0) if turned else (10, 43.74, 13, 43.77)
    area = area_in_degrees(bounds, 8, square=False)
    assert h3_resolution(area) == 10
    x, y = (11.5, 43.1) if turned else (11.3, 43.755)
    indices, shares = hexagons(heatmap(area, [tile_at(area, x, y)]))
    west, south, east, north = area.grid.boxes(area.grid.cells_of([x], [y]))[0]
    assert shares.sum() == pytest.approx(1)
    for latitude, longitude in map(h3.cell_to_latlng, indices):
        assert west - 0.002 < longitude < east + 0.002
        assert south - 0.002 < latitude < north + 0.002
    long_side = north - south if turned else (east - west) * np.cos(np.radians(y))
    assert len(indices) >= 0.7 * long_side * 111.195 / hexagon_area(10) ** 0.5


def test_a_full_stretched_map_has_hexagons_by_default(tmp_path: Path) -> None:
    area = area_in_degrees((10, 43.74, 13, 43.77), 8, square=False)
    rows = rows_of(saved(heatmap(area, []), tmp_path, "a.h3.csv"))
    expected = area.cell_size[0] * area.cell_size[1] * area.grid.size / 1e6 / hexagon_area(10)
    assert len(rows) == pytest.approx(expected, rel=0.3)
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1)


@pytest.mark.property
@given(
    st.tuples(st.floats(-180, 179), st.floats(-90, 89.9)),
    st.floats(-4, 2.5).map(lambda power: 10**power),
    st.floats(-4, 2.2).map(lambda power: 10**power),
    st.integers(0, 16),
)
def test_the_default_resolution_never_fails(
    corner: tuple[float, float], width: float, height: float, levels: int
) -> None:
    low_x, low_y = corner
    bounds = (low_x, low_y, min(180.0, low_x + width), min(90.0, low_y + height))
    area = area_in_degrees(bounds, levels, square=False)
    check_h3(area, levels)
    check_h3(area, levels, h3_resolution(area, levels))


def test_hexagons_too_fine_are_refused_before_anything_is_known_of_the_map() -> None:
    check_h3(CITY, 8, 10)
    messages = set()
    for attempt in (
        lambda: check_h3(CITY, 8, 11),
        lambda: hexagons(heatmap(CITY, [tile_at(CITY, *HERE)]), resolution=11),
        lambda: hexagons(heatmap(CITY, []), resolution=11),
    ):
        with pytest.raises(
            InvalidParameter, match="resolution 11 are too fine for this map"
        ) as refusal:
            attempt()
        messages.add(str(refusal.value))
    assert len(messages) == 1
    for resolution in (-1, 16):
        with pytest.raises(
            InvalidParameter, match=f"from 0 to 15, got {resolution}; nothing was written"
        ):
            check_h3(CITY, 8, resolution)
    with pytest.raises(InvalidParameter, match="the map is in pixels"):
        check_h3(SCENE, 5, None)


def test_density_is_users_over_ground(tmp_path: Path) -> None:
    rows = rows_of(saved(town(), tmp_path, "a.csv"))
    width, height = (
        length * 2.0 ** (8 - int(rows[-1]["level"])) / 1000 for length in CITY.cell_size
    )
    expected = float(rows[-1]["users"]) / (width * height)
    assert float(rows[-1]["density_per_km2"]) == pytest.approx(expected, rel=0.01)


# what files say of themselves


def test_the_guarantee_is_in_every_file(tmp_path: Path) -> None:
    release = town()
    with rasterio.open(saved(release, tmp_path, "a.tif")) as file:
        tags = file.tags()
        assert file.profile["nodata"] == -1
        assert file.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
    assert tags["statement"] == release.statement
    assert tags["ledger"] == release.receipt.ledger
    assert (tags["method"], tags["entry"], tags["epsilon"]) == ("made-up", "1", "1")
    about = json.loads(saved(release, tmp_path, "a.geojson").read_bytes())["sfumato"]
    left_out = ("tiles", "counts")
    assert about.pop("features")["total"] == release.tiles.total
    assert about == {
        name: value for name, value in release.to_json().items() if name not in left_out
    }
    with np.load(saved(release, tmp_path, "a.npz"), allow_pickle=False) as arrays:
        assert json.loads(str(arrays["report"])) == about
        assert tuple(arrays["bounds"]) == CITY.bounds
    assert (
        pq.read_schema(saved(release, tmp_path, "a.h3.parquet")).metadata[b"statement"]
        == release.statement.encode()
    )
    assert to_geodataframe(release).attrs["sfumato"]["statement"] == release.statement


@pytest.mark.reference
def test_geopandas_reads_what_it_makes(tmp_path: Path) -> None:
    release = town()
    frame = to_geodataframe(release)
    assert frame.crs.to_epsg() == 4326
    read = geopandas.read_file(saved(release, tmp_path, "a.geojson", every_cell=True))
    assert np.allclose(read.total_bounds, frame.total_bounds)
    assert np.allclose(read.share, frame.share)
    assert frame.geometry.union_all().area == pytest.approx(
        sum(one.area for one in frame.geometry)
    )  # no overlap
    assert to_geodataframe(town(SCENE)).crs is None


def test_the_same_release_gives_the_same_bytes(tmp_path: Path) -> None:
    release = town()
    for suffix in SUFFIXES:
        first, second = (saved(release, tmp_path, f"{name}{suffix}").read_bytes() for name in "ab")
        assert first == second, suffix


def test_files_of_nobody_one_and_many_have_the_same_keys_and_shapes(tmp_path: Path) -> None:
    """Threat S15: nothing but released values tells the data apart."""
    maps = {
        "none": heatmap(CITY, []),
        "one": heatmap(CITY, [tile_at(CITY, *HERE, users=1)]),
        "many": town(),
    }
    seen = []
    for name, release in maps.items():
        with rasterio.open(saved(release, tmp_path, f"{name}.tif")) as file:
            tif = (file.shape, sorted(file.tags()), file.transform)
        with np.load(saved(release, tmp_path, f"{name}.npz")) as arrays:
            npz = [(key, arrays[key].shape) for key in arrays]
        found = json.loads(saved(release, tmp_path, f"{name}.geojson").read_bytes())
        keys = [sorted(found), sorted(found["sfumato"]), sorted(found["features"][0]["properties"])]
        table = list(rows_of(saved(release, tmp_path, f"{name}.csv"))[0])
        png = saved(release, tmp_path, f"{name}.png").read_bytes()[:24]
        report = sorted(json.loads(saved(release, tmp_path, f"{name}.json").read_bytes()))
        resolution = h3.get_resolution(rows_of(saved(release, tmp_path, f"{name}.h3.csv"))[0]["h3"])
        seen.append((tif, npz, keys, table, png, report, resolution))
    assert seen[0] == seen[1] == seen[2]
    (line,) = rows_of(tmp_path / "none.csv")  # nobody: evenly spread, and no users
    assert (line["level"], line["share"], line["users"]) == ("0", "1.0", "0.0")


def test_pixels_and_planes_have_no_reference_system(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(
            saved(heatmap(SCENE, [tile_at(SCENE, 10, 50)]), tmp_path, "a.tif")
        ) as file:
            assert file.crs is None
            assert file.index(10, 50) == tuple(np.argwhere(file.read(1) > 0)[0])
            assert np.argwhere(file.read(1) > 0)[0][0] > file.height / 2  # y grows downward
        plane = area_of_plane((0, 0, 10, 10), 4)
        with rasterio.open(
            saved(heatmap(plane, [tile_at(plane, 1, 9)]), tmp_path, "b.tif")
        ) as file:
            assert file.index(1, 9) == tuple(np.argwhere(file.read(1) > 0)[0]) == (1, 1)
    (line,) = rows_of(saved(heatmap(SCENE, [tile_at(SCENE, 10, 50)]), tmp_path, "a.csv"))
    assert list(line) == ["level", "low_x", "low_y", "high_x", "high_y", "share", "users"]
    for name in ("a.geojson", "a.h3.csv"):
        with pytest.raises(
            InvalidParameter, match="longitudes and latitudes, the map is in pixels"
        ):
            write(town(SCENE), tmp_path / name)


def test_a_level_is_as_fine_as_it_gets(tmp_path: Path) -> None:
    release = town()
    assert (
        max(int(row["level"]) for row in rows_of(saved(release, tmp_path, "a.csv", level=3))) == 3
    )
    assert np.load(saved(release, tmp_path, "a.npz", level=3))["image"].shape == (8, 8)
    with pytest.raises(InvalidParameter, match="level"):
        write(release, tmp_path / "b.csv", level=9)
    deep = area_in_degrees((-74.06, 40.57, -73.75, 40.92), 16)
    with rasterio.open(
        saved(heatmap(deep, [tile_at(deep, *HERE)]), tmp_path, "deep.tif", level=9)
    ) as file:
        assert max(file.shape) <= 512


def test_text_files_are_plain(tmp_path: Path) -> None:
    release = town(group=HOSTILE, unit='a, "b"')
    table = saved(release, tmp_path, "a.csv").read_text()
    assert (
        io.StringIO(table).readline() == "level,west,south,east,north,share,users,density_per_km2\n"
    )
    assert "script" not in table
    assert (
        json.loads(saved(release, tmp_path, "a.geojson").read_bytes())["sfumato"]["group"]
        == HOSTILE
    )
