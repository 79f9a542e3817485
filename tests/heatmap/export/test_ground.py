"""Lines and images of the user's own lie under a map where they belong, and are named by their digest."""

from __future__ import annotations

import hashlib
import io
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from PIL import Image
from tests.heatmap.export.maps import CITY, PACIFIC, SCENE, heatmap, tile_at, town
from tests.heatmap.export.test_page import browse, embedded, read

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap import draw_map, release_heatmap
from sfumato.heatmap.areas import public_area
from sfumato.heatmap.export import write
from sfumato.heatmap.export.ground import ground_of, inside_bounds
from sfumato.heatmap.export.output_names import of_group
from sfumato.heatmap.export.page import html
from sfumato.heatmap.export.picture import png
from sfumato.heatmap.export.timelapse import timelapse_html
from sfumato.heatmap.reference_systems import ReferenceSystem
from sfumato.privacy import Ledger, PureDP
from sfumato.records import Periods
from sfumato.spaces import Area
from sfumato.spaces.area import area_of_plane

pytestmark = pytest.mark.unit

MERCATOR = public_area("-8242000,4938000,-8210000,4990000", crs="EPSG:3857", levels=6)


def lines(folder: Path, *places: tuple[float, float], name: str = "roads.geojson") -> Path:
    """A file of one line."""
    (folder / name).write_text(json.dumps({"type": "LineString", "coordinates": places}))
    return folder / name


def raster(
    folder: Path,
    bounds: tuple[float, float, float, float],
    *,
    crs: str | None = "EPSG:4326",
    bands: np.ndarray | None = None,
) -> Path:
    """A GeoTIFF: red in the north-west, green in the north-east, blue in the south-west, white elsewhere."""
    if bands is None:
        bands = np.full((3, 40, 40), 255, dtype=np.uint8)
        for color, (row, column) in enumerate(((0, 0), (0, 20), (20, 0))):
            bands[:, row : row + 20, column : column + 20] = 0
            bands[color, row : row + 20, column : column + 20] = 255
    (count, high, wide), (west, south, east, north) = bands.shape, bounds
    path = folder / "ground.tif"
    with rasterio.open(
        path, "w", driver="GTiff", width=wide, height=high, count=count, dtype=bands.dtype, crs=crs,
        transform=rasterio.Affine((east - west) / wide, 0, west, 0, (south - north) / high, north),
    ) as file:  # fmt: skip
        file.write(bands)
    return path


def around(area: Area, share: float = 0.0) -> tuple[float, float, float, float]:
    low_x, low_y, high_x, high_y = area.bounds
    wide, high = share * (high_x - low_x), share * (high_y - low_y)
    return low_x - wide, low_y - high, high_x + wide, high_y + high


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


# -- lines


def test_lines_are_cut_to_the_bounds() -> None:
    line = np.array([[-1.0, 0.5], [0.5, 0.5], [0.5, 3.0], [0.7, 3.0], [0.7, -1.0]])
    found = [piece.tolist() for piece in inside_bounds(line, (0, 0, 1, 1))]
    assert found == [[[0, 0.5], [0.5, 0.5], [0.5, 1.0]], [[0.7, 1.0], [0.7, 0.0]]]
    assert not list(inside_bounds(np.array([[2.0, 0], [2, 1]]), (0, 0, 1, 1)))


@pytest.mark.parametrize(
    ("area", "line", "wanted"),
    [
        (CITY, ((-74.0, 40.6), (-73.8, 40.9)), ((-74.0, 40.6), (-73.8, 40.9))),
        (PACIFIC, ((-175, -10), (-172, -5)), ((185, -10), (188, -5))),
        (SCENE, ((10, 10), (70, 50)), ((10, 10), (70, 50))),
        (MERCATOR, ((-74.0, 40.6), (-73.9, 40.7)), None),
    ],
    ids=["degrees", "antimeridian", "pixels", "crs"],
)
def test_lines_are_where_the_map_is(area: Area, line: Any, wanted: Any, tmp_path: Path) -> None:
    (found,) = ground_of(area, over=None, outline=lines(tmp_path, *line)).lines
    if wanted is None:  # the sphere of Web Mercator, by hand
        wanted = [
            (6378137 * np.radians(x), 6378137 * np.log(np.tan(np.pi / 4 + np.radians(y) / 2)))
            for x, y in line
        ]
    np.testing.assert_allclose(found, wanted, rtol=1e-7)


def test_what_lies_nowhere_ends_a_line() -> None:
    line = np.array(
        [[0.1, 0.5], [0.3, 0.5], [np.inf, np.inf], [0.7, 0.5], [0.9, 0.5], [np.nan, 0.1]]
    )
    found = [piece.tolist() for piece in inside_bounds(line, (0, 0, 1, 1))]
    assert found == [[[0.1, 0.5], [0.3, 0.5]], [[0.7, 0.5], [0.9, 0.5]]]


def test_an_outline_is_bent_and_not_joined_across_what_a_projection_does_not_reach(
    tmp_path: Path,
) -> None:
    """A parallel is bent in a conic projection; Web Mercator has no poles."""
    europe = public_area((2_500_000, 1_400_000, 6_500_000, 5_400_000), crs="EPSG:3035", levels=4)
    (found,) = ground_of(europe, over=None, outline=lines(tmp_path, (-5, 50), (25, 50))).lines
    system = ReferenceSystem.named("EPSG:3035")
    assert system is not None
    ends = system.places_from_degrees(np.array([[-5.0, 50], [25, 50]]))
    chord = np.interp(found[:, 0], ends[:, 0], ends[:, 1])
    assert np.max(chord - found[:, 1]) > 100_000, "the parallel sags far below the straight line"
    _, latitudes = system.to_degrees(*found.T)
    np.testing.assert_allclose(latitudes, 50, atol=1e-6)
    middles = (found[1:] + found[:-1]) / 2
    assert np.abs(system.to_degrees(*middles.T)[1] - 50).max() * 111_000 < 400, (
        "a few parts of the map"
    )
    world = public_area((-2e7, -2e7, 2e7, 2e7), crs="EPSG:3857", levels=4)
    over = lines(tmp_path, (0, 60), (0, 90), (90, 90), (90, 60))
    first, second = ground_of(world, over=None, outline=over).lines
    assert np.ptp(first[:, 0]) == np.ptp(second[:, 0]) == 0, (
        "two meridians, and nothing between them"
    )


def test_an_outline_may_name_its_system_as_zones_do(tmp_path: Path) -> None:
    area = public_area((1_240_000, 5_420_000, 1_260_000, 5_440_000), crs="EPSG:3857", levels=4)
    found = {
        "type": "FeatureCollection",
        "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}},
        "features": [
            {"type": "Feature", "properties": {}, "geometry": {
                "type": "LineString", "coordinates": [[1_245_000, 5_425_000], [1_255_000, 5_435_000]]}}
        ],
    }  # fmt: skip
    path = tmp_path / "old.geojson"
    path.write_text(json.dumps(found))
    (line,) = ground_of(area, over=None, outline=path).lines
    assert line.tolist() == [[1_245_000, 5_425_000], [1_255_000, 5_435_000]]
    with pytest.raises(
        InvalidInput, match=r"is in EPSG:3857, the map in degrees.*nothing was written"
    ):
        ground_of(CITY, over=None, outline=path)


def test_areas_are_drawn_by_their_edges(tmp_path: Path) -> None:
    ring = [[-74.0, 40.6], [-73.8, 40.6], [-73.8, 40.8], [-74.0, 40.6]]
    (tmp_path / "a.geojson").write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    (found,) = ground_of(CITY, over=None, outline=tmp_path / "a.geojson").lines
    assert found.tolist() == ring


def test_an_outline_is_drawn_and_named(tmp_path: Path) -> None:
    path = lines(tmp_path, (-74.06, 40.75), (-73.75, 40.75))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    release = heatmap(CITY, [tile_at(CITY, -73.98, 40.85, users=1e6)])
    ground = ground_of(CITY, over=None, outline=path)
    plain, drawn = pixels(png(release)), pixels(png(release, ground=ground))
    high = round(0.75 * min(len(plain), len(drawn)))
    changed = np.argwhere(np.abs(plain[:high] - drawn[:high]).max(axis=2) > 60)
    assert np.ptp(changed[:, 1]) > 800, "from one side of the map to the other"
    assert np.ptp(changed[:, 0]) < 6, "and level"
    page = html(release, ground=ground)
    assert f"roads.geojson (sha256 {digest}), public" in "".join(read(page).inside[""])
    film = timelapse_html([release], ground=ground)
    assert f"roads.geojson (sha256 {digest}), public" in "".join(read(film).inside[""])
    assert embedded(page)["outline"] == embedded(film)["outline"] is not None


def test_an_outline_elsewhere_is_refused(tmp_path: Path) -> None:
    """Longitude and latitude exchanged is how it happens."""
    path = lines(tmp_path, (40.6, -74.0), (40.9, -73.8))
    with pytest.raises(
        InvalidParameter, match=r"roads\.geojson has none there.*nothing was written"
    ):
        write(town(), tmp_path / "a.png", outline=path)
    (tmp_path / "bad.geojson").write_text("{}")
    with pytest.raises(InvalidInput, match="is no GeoJSON"):
        write(town(), tmp_path / "a.png", outline=tmp_path / "bad.geojson")
    with pytest.raises(InvalidInput, match="there is no file at"):
        write(town(), tmp_path / "a.png", outline=tmp_path / "none.geojson")
    assert not (tmp_path / "a.png").exists()


# -- images


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:3857"])
@pytest.mark.parametrize("area", [CITY, MERCATOR], ids=["degrees", "crs"])
def test_a_geotiff_lies_where_it_says(area: Area, crs: str, tmp_path: Path) -> None:
    """Whichever of two systems it is in, its four colors are in the four corners of the picture."""
    from rasterio.warp import transform_bounds

    bounds = transform_bounds(area.crs or "EPSG:4326", crs, *area.bounds)
    path = raster(tmp_path, bounds, crs=crs)
    release = heatmap(
        area, [tile_at(area, *np.array(area.bounds[:2]) * 0.5 + np.array(area.bounds[2:]) * 0.5)]
    )
    image = pixels(png(release, ground=ground_of(area, over=path, outline=None)))
    pure = {
        name: np.argwhere((image == color).all(axis=2)).mean(axis=0)
        for name, color in (("nw", (255, 0, 0)), ("ne", (0, 255, 0)), ("sw", (0, 0, 255)))
    }
    assert pure["nw"][0] < pure["sw"][0] - 300
    assert pure["nw"][1] < pure["ne"][1] - 300
    assert abs(pure["nw"][0] - pure["ne"][0]) < 60
    assert abs(pure["nw"][1] - pure["sw"][1]) < 60


def test_a_geotiff_that_does_not_cover_is_refused(tmp_path: Path) -> None:
    west, south, east, north = CITY.bounds
    path = raster(tmp_path, (west, south, east - 0.05, north))
    with pytest.raises(
        InvalidParameter, match=r"covers its bounds, -74\.06, .*; nothing was written"
    ):
        write(town(), tmp_path / "a.png", over=path)
    with pytest.raises(InvalidParameter, match="says where it lies"):
        write(town(), tmp_path / "a.png", over=raster(tmp_path, CITY.bounds, crs=None))
    plane = area_of_plane((0, 0, 10, 10), 4)
    with pytest.raises(InvalidParameter, match="plane without a reference system"):
        write(town(plane), tmp_path / "a.png", over=path)
    (tmp_path / "text.tif").write_text("no image")
    with pytest.raises(InvalidInput, match="as a georeferenced image"):
        write(town(), tmp_path / "a.png", over=tmp_path / "text.tif")
    assert not (tmp_path / "a.png").exists()


def test_one_band_of_large_numbers_is_grey(tmp_path: Path) -> None:
    ramp = np.linspace(1000, 9000, 40).astype(np.uint16)
    path = raster(tmp_path, around(CITY, 0.5), bands=np.broadcast_to(ramp, (1, 40, 40)))
    shown = ground_of(CITY, over=path, outline=None).pixels
    assert shown is not None
    assert (shown == shown[..., :1]).all()
    assert shown.min() == 0
    assert shown.max() == 255
    assert (np.diff(shown[0, :, 0].astype(int)) >= 0).all()


def test_pages_hold_the_image(tmp_path: Path) -> None:
    """In the page of a gaze map and of a GeoTIFF, and in a film; colors are then those over an image."""
    Image.new("RGB", (80, 60), (10, 200, 30)).save(tmp_path / "s.png")
    for area, path in ((SCENE, tmp_path / "s.png"), (CITY, raster(tmp_path, CITY.bounds))):
        ground = ground_of(area, over=path, outline=None)
        release = town(area)
        for data in (html(release, ground=ground), timelapse_html([release], ground=ground)):
            held = embedded(data)
            assert held["under"].startswith("data:image/jpeg;base64,")
            assert held["palettes"]["light"] == held["palettes"]["dark"]
            assert path.name in "".join(read(data).inside[""])
        assert embedded(html(release))["under"] is None


@pytest.mark.browser
def test_a_browser_shows_image_and_lines(tmp_path: Path) -> None:
    Image.new("RGB", (80, 60), (10, 200, 30)).save(tmp_path / "s.png")
    path = lines(tmp_path, (0, 30), (80, 30))
    release = heatmap(SCENE, [tile_at(SCENE, 20, 15, users=1e6)])
    ground = ground_of(SCENE, over=tmp_path / "s.png", outline=path)
    for page, fragment in (
        (html(release, ground=ground), ""),
        (timelapse_html([release], ground=ground), "#frame=0"),
    ):
        browse(tmp_path, page, f"--screenshot={tmp_path}/seen.png", fragment=fragment)
        image = pixels((tmp_path / "seen.png").read_bytes())
        green = np.abs(image - (10, 200, 30)).max(axis=2) < 12
        rows, columns = np.nonzero(green)
        assert green.sum() > 0.5 * np.ptp(rows) * np.ptp(columns)
        assert np.ptp(columns) / np.ptp(rows) == pytest.approx(4 / 3, rel=0.03)
        # The line is half way down, the heat a quarter.
        box = image[rows.min() : rows.max(), columns.min() : columns.max()]
        dark = np.flatnonzero((np.abs(box - (10, 200, 30)).max(axis=2) > 60).mean(axis=1) > 0.8)
        assert dark.size
        assert dark.mean() / len(box) == pytest.approx(0.5, abs=0.02)
        hot = np.argwhere((box[: len(box) // 3, :, 0] > 120) & (box[: len(box) // 3, :, 2] < 150))
        assert hot.mean(axis=0) / box.shape[:2] == pytest.approx([0.25, 0.25], abs=0.06)


# -- groups


def test_a_stimulus_for_each_group(tmp_path: Path) -> None:
    """{by} names the image of each map; all of them are looked for before anything is charged."""
    import pyarrow as pa

    ledger = Ledger.create(tmp_path / "a.ledger", PureDP(10), unit="user", source="lab")
    rows = pa.table(
        {"user": ["a", "b"], "x": [10.0, 60.0], "y": [10.0, 50.0], "scene": ["one", "two 2"]}
    )
    asked: dict[str, Any] = {
        "user": "user", "x": "x", "y": "y", "by": "scene", "groups": ("one", "two 2"), "epsilon": 1,
        "ledger": ledger, "over": tmp_path / "stim-{by}.png", "method": "laplace",
        "outputs": [tmp_path / "map-{by}.html", tmp_path / "map-{by}.json"],
    }  # fmt: skip
    Image.new("RGB", (80, 60)).save(tmp_path / "size.png")
    size: dict[str, Any] = {"image": tmp_path / "size.png", "levels": 4}
    for number, name in enumerate(("one", "two_2")):
        with pytest.raises(InvalidInput, match=rf"stim-{name}\.png"):
            release_heatmap(rows, **asked, **size)
        Image.new("RGB", (80, 60), (number, 100, 200)).save(tmp_path / f"stim-{name}.png")
    assert not ledger.statement().entries
    found = release_heatmap(rows, **asked, **size)
    assert len(found.written) == 4
    for name in ("one", "two_2"):
        assert f"stim-{name}.png (sha256" in (tmp_path / f"map-{name}.html").read_text()
    draw_map(tmp_path / "map-two_2.json", tmp_path / "again.html", over=tmp_path / "stim-{by}.png")
    assert "stim-two_2.png" in (tmp_path / "again.html").read_text()
    assert of_group("stim.png", "one").name == "stim.png"


def test_a_film_has_one_image_and_says_so_before_the_charge(tmp_path: Path) -> None:
    import pyarrow as pa

    ledger = Ledger.create(tmp_path / "a.ledger", PureDP(10), unit="user", source="lab")
    rows = pa.table({"user": ["a"], "x": [10.0], "y": [10.0], "t": ["2026-01-01T10:00"]})
    Image.new("RGB", (80, 60)).save(tmp_path / "2026-01-01.png")
    days = Periods("t", "day", datetime(2026, 1, 1), datetime(2026, 1, 2))
    asked: dict[str, Any] = {
        "user": "user", "x": "x", "y": "y", "groups": days, "epsilon": 1, "ledger": ledger, "levels": 3,
        "image": tmp_path / "2026-01-01.png", "method": "laplace", "outputs": tmp_path / "film.html",
    }  # fmt: skip
    with pytest.raises(InvalidInput, match=r"\{by\}\.png"):
        release_heatmap(rows, **asked, over=tmp_path / "{by}.png")
    assert not ledger.statement().entries
    release_heatmap(rows, **asked, over=tmp_path / "2026-01-01.png")
    assert "2026-01-01.png (sha256" in (tmp_path / "film.html").read_text()


def test_outputs_do_not_replace_the_ground(tmp_path: Path) -> None:
    path = lines(tmp_path, (-74.0, 40.6), (-73.8, 40.9))
    write(town(), tmp_path / "a.json")
    with pytest.raises(InvalidParameter, match="must not replace"):
        draw_map(tmp_path / "a.json", path, outline=path, overwrite=True)
