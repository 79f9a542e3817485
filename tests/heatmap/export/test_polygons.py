"""Polygons for GIS are few, hold all the mass, and have a style beside them; hexagons have intervals."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.heatmap.export.maps import CITY, SCENE, heatmap, tile_at, town
from tests.heatmap.export.test_doubts import NARROW, doubting
from tests.heatmap.posteriors import Given

from sfumato.errors import ExistsAlready, InvalidParameter
from sfumato.figures import palette
from sfumato.heatmap import draw_map
from sfumato.heatmap.accuracy.noise_mark import NoiseMark
from sfumato.heatmap.accuracy.uncertainty import DRAWS
from sfumato.heatmap.areas import public_area
from sfumato.heatmap.export import write
from sfumato.heatmap.export.geojson import geojson, merged_cells
from sfumato.heatmap.export.qgis import class_breaks, qgis_style
from sfumato.heatmap.export.tables import hexagon_columns, to_dataframe
from sfumato.spaces import Area

pytestmark = pytest.mark.unit

MERCATOR = public_area("-8242000,4938000,-8210000,4990000", crs="EPSG:3857", levels=6)


def spread(area: Area = CITY) -> Any:
    """People everywhere, each cell of level 6 with about as many, and two busy places."""
    rng = np.random.default_rng(0)
    level = min(6, area.grid.levels)
    codes = np.arange(4**level)[area.touches(level, np.arange(4**level))]
    low_x, low_y, high_x, high_y = area.bounds
    busy = [
        tile_at(area, low_x + part * (high_x - low_x), low_y + part * (high_y - low_y), users=2e4)
        for part in (0.3, 0.7)
    ]
    return heatmap(area, [(level, int(code), rng.uniform(1, 2)) for code in codes] + busy)


@pytest.mark.parametrize("area", [CITY, MERCATOR], ids=["degrees", "crs"])
def test_few_polygons_hold_all_mass_and_do_not_overlap(area: Area) -> None:
    release = spread(area)
    merged = merged_cells(release)
    cells = merged.cells
    image = np.zeros((1 << area.grid.levels,) * 2)
    for depth, code in zip(cells.levels, cells.codes, strict=True):
        column, row = area.grid.at_level(int(depth)).decode(np.array([code]))
        wide = 1 << (area.grid.levels - int(depth))
        image[row[0] * wide : (row[0] + 1) * wide, column[0] * wide : (column[0] + 1) * wide] += 1
    first_column, first_row, last_column, last_row = area.window(area.grid.levels)
    assert (image[first_row:last_row, first_column:last_column] == 1).all(), "each place once"
    assert image.sum() == (last_row - first_row) * (last_column - first_column)
    assert cells.shares.sum() == pytest.approx(1, abs=1e-6)
    assert cells.levels.size < image.sum() / 4


def test_where_the_map_is_steep_cells_are_fine() -> None:
    release = heatmap(CITY, [tile_at(CITY, -73.98, 40.75, users=1e6)])
    merged = merged_cells(release)
    busy = merged.cells.shares * 4.0**merged.cells.levels > 100
    assert merged.cells.levels[busy].min() >= 7
    assert merged.cells.levels[merged.noise].min() <= 4
    assert not merged.noise[busy].any()


def test_the_file_says_what_it_adds_up_to_and_every_cell_is_there_if_asked(tmp_path: Path) -> None:
    release = spread()
    few, every = (json.loads(geojson(release, every_cell=one)) for one in (False, True))
    for data in (few, every):
        said = data["sfumato"]["features"]
        users = sum(one["properties"]["users"] for one in data["features"])
        assert said["cells"] == len(data["features"])
        assert (
            said["users"]
            == pytest.approx(users, rel=1e-4)
            == pytest.approx(said["total"], rel=1e-4)
        )
    assert len(few["features"]) < len(every["features"]) / 2
    assert (few["sfumato"]["features"]["smoothed"], every["sfumato"]["features"]["smoothed"]) == (
        True,
        False,
    )
    one = few["features"][0]["properties"]
    assert one.keys() == {"share", "users", "density_per_km2", "level", "noise"}
    write(release, tmp_path / "a.geojson", every_cell=True)
    assert len(json.loads((tmp_path / "a.geojson").read_text())["features"]) == len(
        every["features"]
    )


@pytest.mark.parametrize("area", [CITY, MERCATOR], ids=["degrees", "crs"])
def test_a_density_is_users_over_the_ground(area: Area) -> None:
    """The middle cell, by the size of a cell on the ground that the area itself states."""
    release = spread(area)
    merged = merged_cells(release)
    across, up = (size * 2.0**area.grid.levels / 1000 for size in area.cell_size)
    for one, users in zip(
        json.loads(geojson(release))["features"], merged.cells.amounts.tolist(), strict=True
    ):
        size = across * up / 4 ** one["properties"]["level"]
        assert one["properties"]["density_per_km2"] == pytest.approx(users / size, rel=0.01)


def test_a_style_lies_beside_the_polygons(tmp_path: Path) -> None:
    release = spread()
    write(release, tmp_path / "a.json")
    found = draw_map(tmp_path / "a.json", tmp_path / "map.geojson")
    assert found.written == (str(tmp_path / "map.geojson"), str(tmp_path / "map.qml"))
    root = Xml.fromstring((tmp_path / "map.qml").read_bytes())  # noqa: S314 - our own file
    renderer = root.find("renderer-v2")
    assert renderer is not None
    assert (renderer.get("type"), renderer.get("attr")) == ("graduatedSymbol", "density_per_km2")
    ranges, symbols = renderer.findall("ranges/range"), renderer.findall("symbols/symbol")
    breaks = class_breaks(release)
    assert [float(one.get("lower", "")) for one in ranges] == breaks[:-1]
    assert [float(one.get("upper", "")) for one in ranges] == breaks[1:]
    assert [one.get("symbol") for one in ranges] == [one.get("name") for one in symbols]
    ours = {tuple(color) for color in palette().tolist()}
    for one in symbols:
        told = {
            item.get("name"): item.get("value") for item in one.iter("Option") if item.get("name")
        }
        assert tuple(map(int, (told["color"] or "").split(",")[:3])) in ours
        # Without an outline of their own color, cells have seams between them; they overlap, so that
        # the layer is what shows the ground through.
        assert told["outline_color"] == told["color"]
        assert (told["outline_style"], one.get("alpha")) == ("solid", "1")
    assert root.findtext("layerOpacity") == "0.8"
    assert all((one.get("label") or "").endswith(" users per km²") for one in ranges)
    features = json.loads((tmp_path / "map.geojson").read_text())["features"]
    values = [(f["properties"]["density_per_km2"], f["properties"]["noise"]) for f in features]
    assert max(value for value, _ in values) <= breaks[-1]
    shown = [value >= breaks[0] for value, _ in values]
    # The cells on the edge of the mark aside, as a density is rounded.
    assert np.mean([one != noise for one, (_, noise) in zip(shown, values, strict=True)]) > 0.99


def test_classes_reach_the_densest_cell() -> None:
    release = heatmap(CITY, [tile_at(CITY, -73.98, 40.75, users=1e6)])
    for every in (False, True):
        data = json.loads(geojson(release, every_cell=every))
        highest = max(one["properties"]["density_per_km2"] for one in data["features"])
        breaks = class_breaks(release, every_cell=every)
        assert highest <= breaks[-1] <= 2 * highest
        assert (np.diff(breaks) > 0).all()
    assert Xml.fromstring(qgis_style(heatmap(CITY, []))) is not None  # noqa: S314


def test_no_class_is_a_sliver_and_none_stands_for_what_is_not_there() -> None:
    """As in QGIS on real check-ins: a first class from 0.884 to 0.938, and a dark one for a blank map."""
    release = spread()
    (across, up), cells = release.area.cell_size, 4**release.area.grid.levels
    top = class_breaks(release)[-1]
    # Just below where the first shade would end, of 8 whose ends are squares.
    mark = NoiseMark(top / 64 / 1.06 * across * up / 1e6 * cells, empty=False)
    breaks = class_breaks(replace(release, known_noise=mark))
    assert breaks[:2] == pytest.approx([top / 64 / 1.06, top / 16])
    # As high as all that is there, though the scale ends above it, at a round number.
    blank = replace(release, known_noise=replace(mark, density=mark.density * 64))
    assert class_breaks(blank) == []
    root = Xml.fromstring(qgis_style(blank))  # noqa: S314 - our own file
    (only,) = root.findall("renderer-v2/ranges/range")
    assert only.get("label") == "all of it may be noise"
    styles = [one.get("value") for one in root.iter("Option") if one.get("name") == "style"]
    assert styles == ["no"]


def test_one_style_is_of_polygons_and_of_rasters() -> None:
    """QGIS looks for map.qml beside map.tif too: with a style of polygons alone it was drawn all black."""
    release = spread()
    root = Xml.fromstring(qgis_style(release))  # noqa: S314 - our own file
    raster = root.find("pipe/rasterrenderer")
    assert raster is not None
    assert (raster.get("type"), raster.get("band")) == ("singlebandpseudocolor", "1")
    items = raster.findall("rastershader/colorrampshader/item")
    ends = np.array([float(one.get("value", "")) for one in items])
    assert (np.diff(ends) > 0).all()
    shares = release.image()
    assert shares.max() <= ends[-1]
    assert [one.get("alpha") for one in items] == ["0", *["255"] * (len(items) - 1)]
    assert items[0].get("label") == "may be noise"
    # The mark is where that of the picture is, in shares of the cells of the file.
    assert ends[0] == pytest.approx(release.noise.share(8, release.tiles.total))
    # And classes are of densities: the last one ends at a round number of them.
    across, up = release.area.cell_size
    times = release.tiles.total / (across * up / 1e6)
    assert ends[-1] * times == pytest.approx(float(f"{ends[-1] * times:.1g}"))
    assert (items[-1].get("label") or "").endswith(" users per km²")
    blank = replace(release, known_noise=NoiseMark(float("inf"), empty=True))
    only = Xml.fromstring(qgis_style(blank)).findall(".//item")  # noqa: S314 - our own file
    assert [(one.get("value"), one.get("alpha")) for one in only] == [("inf", "0")]


def test_a_style_is_refused_where_polygons_are(tmp_path: Path) -> None:
    write(town(), tmp_path / "a.json")
    (tmp_path / "map.qml").write_text("mine")
    with pytest.raises(ExistsAlready, match=r"map\.qml exists already and is kept"):
        draw_map(tmp_path / "a.json", tmp_path / "map.geojson")
    assert not (tmp_path / "map.geojson").exists()
    with pytest.raises(InvalidParameter, match="longitudes and latitudes, the map is in pixels"):
        write(town(SCENE), tmp_path / "b.qml")


# -- hexagons


def test_hexagons_have_users_and_intervals(tmp_path: Path) -> None:
    release = doubting()
    columns = hexagon_columns(release, resolution=6)
    assert list(columns) == ["h3", "share", "users", "low", "high"]
    assert columns["users"].sum() == pytest.approx(1000)
    assert (columns["low"] <= columns["users"]).all()
    assert (columns["users"] <= columns["high"]).all()
    # The one place is there in every draw, the other in every second.
    sure = columns["users"] > 400
    assert columns["low"][sure] == pytest.approx(columns["users"][sure], rel=1e-6)
    assert columns["low"][~sure].max() == 0
    assert columns["high"][~sure].sum() == pytest.approx(100, rel=1e-6)
    # Where a border cuts the cell of the one place, all of it may lie on the other side.
    finer = hexagon_columns(release, resolution=7)
    assert finer["low"].max() == 0
    assert finer["high"].max() == pytest.approx(900)
    write(release, tmp_path / "a.h3.csv", h3_resolution=6)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.h3.csv").read_text())))
    assert [row["h3"] for row in rows] == columns["h3"]
    write(release, tmp_path / "a.h3.parquet", h3_resolution=6)
    assert pq.read_table(tmp_path / "a.h3.parquet").column_names == list(columns)
    assert list(hexagon_columns(town(), resolution=7)) == ["h3", "share", "users"]
    rows_map = town(counted={"rows_per_user": 40})
    assert hexagon_columns(rows_map, resolution=7)["rows"].sum() == pytest.approx(44_000)


@pytest.mark.parametrize("resolution", [5, 8], ids=["wider than cells", "finer"])
def test_the_mean_of_draws_is_the_map_in_hexagons_too(resolution: int) -> None:
    """Draws that are all the map itself: what is left is where mass lies in cells that a border cuts."""
    release = town(NARROW)
    release = replace(
        release, posterior=Given(np.repeat(release.tiles.image()[None], DRAWS, axis=0))
    )
    columns = hexagon_columns(release, resolution=resolution)
    assert (columns["low"] <= columns["users"] * (1 + 1e-6)).all()
    assert (columns["users"] <= columns["high"] * (1 + 1e-6)).all()
    if resolution == 5:
        some = columns["users"] > 0.2
        np.testing.assert_allclose(columns["low"][some], columns["users"][some], rtol=1e-6)
        np.testing.assert_allclose(columns["high"], columns["users"], rtol=1e-6)


# -- notebooks


def test_a_dataframe_has_the_cells_and_their_intervals() -> None:
    release = doubting()
    frame = release.to_dataframe()
    assert list(frame) == [
        "level", "west", "south", "east", "north", "share", "users", "density_per_km2", "low", "high",
    ]  # fmt: skip
    assert frame["share"].sum() == pytest.approx(1)
    sure = frame[frame["users"] == 900].iloc[0]
    assert (sure["low"], sure["high"]) == (900, 900)
    doubtful = frame[frame["users"] == 100].iloc[0]
    assert (doubtful["low"], doubtful["high"]) == (0, 100)
    coarse = release.to_dataframe(3)
    assert coarse["low"].max() == 900
    assert "low" not in to_dataframe(town())
    assert list(to_dataframe(town(SCENE)))[:5] == ["level", "low_x", "low_y", "high_x", "high_y"]
    assert frame.attrs["sfumato"] == release.statement


def test_a_cell_finer_than_draws_has_no_interval() -> None:
    area = public_area(CITY.bounds, levels=8)
    release = heatmap(area, [tile_at(area, -73.98, 40.75), tile_at(area, -73.8, 40.6, level=5)])
    draws = np.repeat(release.tiles.image(7)[None], DRAWS, axis=0)
    frame = replace(release, posterior=Given(draws)).to_dataframe(8)
    assert frame.loc[frame["level"] == 8, "low"].isna().all()
    assert frame.loc[frame["level"] <= 7, "low"].notna().all()


def test_a_plot_is_the_picture_and_shows_itself(tmp_path: Path) -> None:
    release = doubting()
    drawn = release.plot()
    assert drawn.axes[0].get_xlim() == (CITY.bounds[0], CITY.bounds[2])
    assert drawn._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    drawn.savefig(tmp_path / "a.pdf")
    shares = release.plot(legend="share")
    assert any("share of all" in text.get_text() for axis in shares.axes for text in axis.texts)
