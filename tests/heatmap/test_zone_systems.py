"""Zones in degrees on a map in metres: transformed with their edges, or refused in a clear sentence."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from tests.heatmap.export.maps import CITY, heatmap, tile_at, town

from sfumato.errors import InvalidInput
from sfumato.heatmap import map_totals, public_area, read_zones
from sfumato.heatmap.analysis.zone_shapes import EDGE, ZoneMask, placed
from sfumato.heatmap.results import HeatmapRelease
from sfumato.spaces import Area

pyproj = pytest.importorskip("pyproj")

# A country: edges of some degrees are bent by many cells in its plane.
COUNTRY = public_area(
    (4_000_000.0, 2_700_000.0, 4_700_000.0, 3_500_000.0), crs="EPSG:3035", levels=8
)
CITY_UTM = public_area((676_000.0, 4_845_000.0, 686_000.0, 4_853_000.0), crs="EPSG:32632", levels=8)
WIDE = [[6.0, 48.0], [14.0, 48.0], [14.0, 54.0], [6.0, 54.0]]


def file_of(folder: Path, ring: Any, *, crs: str = "") -> Path:
    path = folder / "zones.geojson"
    said = {"crs": {"type": "name", "properties": {"name": crs}}} if crs else {}
    shape = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    feature = {"type": "Feature", "geometry": shape, "properties": {"name": "a"}}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature], **said}))
    return path


def busy(area: Area, rng: np.random.Generator) -> HeatmapRelease:
    return heatmap(area, [(8, code, float(users)) for code, users in enumerate(rng.random(4**8))])


def in_plane(ring: Any, area: Area, *, steps: int) -> Any:
    """By pyproj, position by position, so many to an edge."""
    corners = np.array([*ring, ring[0]])
    times = np.arange(steps)[:, None] / steps
    dense = np.concatenate([a * (1 - times) + b * times for a, b in pairwise(corners)])
    there = pyproj.Transformer.from_crs("EPSG:4326", area.crs, always_xy=True)
    return shapely.Polygon(np.stack(there.transform(*dense.T), axis=1))


@pytest.mark.reference
def test_bent_edges_are_followed_to_a_hundredth_of_a_cell(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    """Corners alone would be off by cells: the parallel of 54 degrees is no straight line in this plane."""
    (zone,) = read_zones(file_of(tmp_path, WIDE))
    on_map = placed(zone, COUNTRY, 8)
    exact = in_plane(WIDE, COUNTRY, steps=5000)
    found = shapely.Polygon(on_map.polygons[0][0])
    cell = min(COUNTRY.grid.cell_width, COUNTRY.grid.cell_height)
    assert shapely.hausdorff_distance(found, exact, densify=0.01) < 1.1 * EDGE * cell
    corners = in_plane(WIDE, COUNTRY, steps=1)
    assert shapely.hausdorff_distance(corners, exact, densify=0.1) > 2 * cell
    assert len(on_map.polygons[0][0]) < 500
    release = busy(COUNTRY, rng)
    (one,) = release.totals(tmp_path / "zones.geojson")
    (same,) = release.totals({"a": np.asarray(exact.exterior.coords).tolist()})
    (wrong,) = release.totals({"a": np.asarray(corners.exterior.coords).tolist()})
    assert one.users == pytest.approx(same.users, rel=1e-4)
    assert abs(wrong.users - same.users) > 20 * abs(one.users - same.users)


@pytest.mark.unit
def test_a_district_in_degrees_is_found_on_a_map_in_metres(tmp_path: Path) -> None:
    """Before, its positions were taken for metres near the equator, and it lay outside the area."""
    back = pyproj.Transformer.from_crs("EPSG:32632", "EPSG:4326", always_xy=True)
    low, high = (680_000.0, 4_848_000.0), (682_000.0, 4_850_000.0)
    corners = [low, (high[0], low[1]), high, (low[0], high[1])]
    ring = [list(back.transform(*one)) for one in corners]
    release = heatmap(
        CITY_UTM, [tile_at(CITY_UTM, 681_000, 4_849_000), tile_at(CITY_UTM, 677_000, 4_846_000)]
    )
    path = file_of(tmp_path, ring)
    (one,) = release.totals(path)
    assert (one.users, one.inside) == pytest.approx((1000, 1), rel=1e-6)
    (metres,) = release.totals({"a": corners})
    assert one.users == pytest.approx(metres.users)
    (named,) = release.totals(file_of(tmp_path, corners, crs="urn:ogc:def:crs:EPSG::32632"))
    assert named.users == pytest.approx(metres.users)
    map_totals(release, {"a": corners}, output=tmp_path / "out.geojson")
    written = json.loads((tmp_path / "out.geojson").read_text())["features"][0]["geometry"]
    assert np.array(written["coordinates"][0][0][:4]) == pytest.approx(np.array(ring), abs=1e-9)
    (again,) = release.totals(tmp_path / "out.geojson")
    assert again.users == pytest.approx(metres.users)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("area", "ring", "crs", "words"),
    [
        (CITY_UTM, [[6.8e5, 4.848e6], [6.82e5, 4.848e6], [6.82e5, 4.85e6]], "", "longitudes and latitudes"),
        (CITY, [[6.8e5, 4.848e6], [6.82e5, 4.848e6], [6.82e5, 4.85e6]], "", "longitudes and latitudes"),
        (CITY_UTM, WIDE, "EPSG:25832", "is in EPSG:25832, the map in EPSG:32632"),
        (CITY, WIDE, "EPSG:32632", "is in EPSG:32632, the map in EPSG:4326"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(
    area: Area, ring: Any, crs: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        town(area).totals(file_of(tmp_path, ring, crs=crs))
    assert str(refusal.value).endswith("no total was made")


@pytest.mark.unit
def test_a_mapping_of_degrees_is_refused_and_a_file_for_a_plane_is_not(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"in the units of the map, EPSG:32632; .* looks like degrees"
    ):
        town(CITY_UTM).totals({"a": [[11.2, 43.7], [11.3, 43.7], [11.3, 43.8]]})
    plane = public_area((0, 0, 5000, 5000), plane=True, levels=6)
    square = [[0, 0], [5000, 0], [5000, 5000], [0, 5000]]
    (one,) = town(plane).totals(file_of(tmp_path, square))
    assert one.share == pytest.approx(1)
    (turned,) = town(CITY).totals(file_of(tmp_path, [[285, 40], [287, 40], [287, 41], [285, 41]]))
    assert turned.share == pytest.approx(1)


@pytest.mark.unit
def test_masks_of_degrees_need_no_pyproj(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyproj", None)
    (zone,) = read_zones(file_of(tmp_path, [[-74, 40.6], [-73.9, 40.6], [-73.9, 40.7]]))
    assert ZoneMask.of(placed(zone, CITY, 8), CITY, 8).inside == 1
