"""Totals per zone: exact areas, parts that add up, intervals from what was released."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import shapely
from tests.heatmap.export.maps import CITY, PACIFIC, SCENE, heatmap, tile_at, town
from tests.heatmap.test_overlap import star

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.accuracy.uncertainty import DRAWS
from sfumato.heatmap.analysis.zone_shapes import read_zones
from sfumato.heatmap.analysis.zones import ZoneTotal, totals_csv, totals_geojson, zone_totals
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.heatmap.results import HeatmapRelease
from sfumato.heatmap.tiles import inside
from sfumato.spaces import Area, area_in_degrees

FloatArray = npt.NDArray[np.float64]

LOW_X, LOW_Y, HIGH_X, HIGH_Y = CITY.bounds
# Bounds that no grid line follows, and cells finer than those that draws are made of.
ODD = area_in_degrees((11.2034, 43.7411, 11.3217, 43.8123), 9)
# Areas of about 1e-3 square degrees from coordinates near 1e2, whose products err by 1e-12 of each
# other.
ROUNDING = 1e-9


def box(low_x: float, low_y: float, high_x: float, high_y: float) -> list[list[float]]:
    return [[low_x, low_y], [high_x, low_y], [high_x, high_y], [low_x, high_y]]


def busy(area: Area, rng: np.random.Generator) -> HeatmapRelease:
    """A map of tiles of all levels, cut to its bounds as a release is."""
    levels = rng.integers(2, area.grid.levels + 1, 60)
    some = [(int(level), int(rng.integers(0, 4**level)), float(users)) for level, users in
            zip(levels, 50 * rng.random(60), strict=True)]  # fmt: skip
    made = heatmap(area, some)
    return replace(made, tiles=inside(made.tiles, area))


@dataclass(frozen=True, eq=False)
class Scaled(MapPosterior):
    """Draws of a map's own picture, each times a number."""

    release: HeatmapRelease
    times: FloatArray

    def maps(self, count: int, level: int) -> FloatArray:
        factors = np.resize(self.times, count)
        return np.asarray(factors[:, None, None] * self.release.tiles.image(level))


def saved(folder: Path, *features: tuple[Any, dict[str, Any]], kind: str = "Polygon") -> Path:
    path = folder / "zones.geojson"
    shapes = [
        {"type": "Feature", "geometry": {"type": kind, "coordinates": at}, "properties": about}
        for at, about in features
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": shapes}))
    return path


# sums


@pytest.mark.property
@pytest.mark.parametrize(
    "area", [CITY, ODD, PACIFIC, SCENE], ids=["city", "odd", "pacific", "scene"]
)
def test_a_partition_adds_up_to_the_whole(area: Area, rng: np.random.Generator) -> None:
    release = busy(area, rng)
    low_x, low_y, high_x, high_y = area.bounds
    corners = np.array(box(*area.bounds))
    middle = np.array([low_x, low_y]) + rng.random(2) * [high_x - low_x, high_y - low_y]
    slices = {f"{k}": [corners[k - 1], corners[k], middle] for k in range(4)}
    parts = release.totals(slices)
    assert sum(one.users for one in parts) == pytest.approx(release.tiles.total, rel=ROUNDING)
    assert sum(one.share for one in parts) == pytest.approx(1, rel=ROUNDING)
    assert [one.inside for one in parts] == [1.0] * 4
    (whole,) = release.totals({"all": corners.tolist()})
    assert whole.users == pytest.approx(release.tiles.total, rel=ROUNDING)
    # What is outside the bounds adds nothing: nobody was counted there.
    (more,) = release.totals({"more": box(low_x - 1, low_y - 1, high_x + 1, high_y + 1)})
    assert more.users == pytest.approx(whole.users, rel=ROUNDING)


@pytest.mark.reference
def test_totals_are_those_of_shapely(rng: np.random.Generator) -> None:
    """Every tile cut by every zone, one by one; sampling the middles of cells would be seen."""
    release = busy(CITY, rng)
    sides = np.array([HIGH_X - LOW_X, HIGH_Y - LOW_Y])
    zones = {}
    for number, corners in enumerate((3, 5, 20)):
        center = np.array([LOW_X, LOW_Y]) + (0.45 + 0.1 * rng.random(2)) * sides
        outline = star(rng, corners, center=center, radius=0.25 * sides[0])  # far from the bounds
        zones[str(number)] = [outline.tolist(), (center + 0.3 * (outline - center)).tolist()]
    found = release.totals(zones)
    boxes = np.concatenate(
        [CITY.grid.at_level(int(level)).boxes([code]) for level, code in
         zip(release.tiles.levels, release.tiles.codes, strict=True)]
    )  # fmt: skip
    cells = shapely.box(*boxes.T)
    x, y = CITY.grid.centers(np.arange(CITY.grid.size)).T
    for one, (outline, hole) in zip(found, zones.values(), strict=True):
        zone = shapely.Polygon(outline, [hole])
        parts = shapely.area(shapely.intersection(cells, zone)) / shapely.area(cells)
        assert one.users == pytest.approx(float(release.tiles.masses @ parts), rel=ROUNDING)
        assert one.inside == 1
        sampled = float(release.tiles.values(8) @ shapely.contains_xy(zone, x, y))
        assert sampled != pytest.approx(one.users, rel=100 * ROUNDING)


@pytest.mark.unit
def test_a_tile_is_shared_by_area_and_zones_may_overlap() -> None:
    x, y = (LOW_X + HIGH_X) / 2, (LOW_Y + HIGH_Y) / 2
    level, code, _ = tile_at(CITY, x + 1e-4, y + 1e-4, level=4)
    release = heatmap(CITY, [(level, code, 100.0), (0, 0, 0.0)])
    west, south, east, north = CITY.grid.at_level(4).boxes([code])[0].tolist()
    third = west + (east - west) / 3
    found = release.totals(
        {
            "third": box(west, south, third, north),
            "rest": [box(third, south, east, north)],
            "most": [
                [box(west, south, east, (south + north) / 2)],
                [box(west, (south + north) / 2, third, north)],
            ],
        }
    )
    assert [one.users for one in found] == pytest.approx(
        [100 / 3, 200 / 3, 50 + 100 / 6], rel=ROUNDING
    )
    assert [one.name for one in found] == ["third", "rest", "most"]


@pytest.mark.unit
def test_what_lies_outside_is_nothing_and_says_so() -> None:
    middle = (LOW_X + HIGH_X) / 2
    away, across, beside = town().totals(
        {
            "away": box(2.2, 48.8, 2.4, 48.9),
            "across": box(middle, LOW_Y, 2 * HIGH_X - middle, HIGH_Y),
            "beside": box(HIGH_X, LOW_Y, HIGH_X + 1, HIGH_Y),
        }
    )
    for one in (away, beside):
        assert (one.users, one.share, one.inside) == (0, 0, 0)
        assert one.remark == "outside the area: nobody was counted there"
    assert across.inside == pytest.approx(0.5, abs=1e-9)
    assert across.remark == "50% of it inside the area"
    assert ZoneTotal("a", 1, 1, None, None, 1.0).remark == ""


@pytest.mark.unit
def test_a_zone_across_the_antimeridian_is_one() -> None:
    release = busy_pacific()
    east, west = box(175, -15, 180, -5), box(-180, -15, -175, -5)
    both, through, first, second = release.totals(
        {"both": [[east], [west]], "through": box(175, -15, 185, -5), "first": east, "second": west}
    )
    assert both.users == pytest.approx(through.users, rel=ROUNDING)
    assert both.users == pytest.approx(first.users + second.users, rel=ROUNDING)
    assert min(first.users, second.users) > 0
    assert both.inside == through.inside == 1


def busy_pacific() -> HeatmapRelease:
    return heatmap(
        PACIFIC, [tile_at(PACIFIC, 178, -10, level=4), tile_at(PACIFIC, 183, -8, level=3)]
    )


@pytest.mark.unit
def test_a_map_of_nobody_is_even_in_shares_and_empty_in_users() -> None:
    middle = (LOW_X + HIGH_X) / 2
    (half,) = heatmap(CITY, []).totals({"half": box(LOW_X, LOW_Y, middle, HIGH_Y)})
    assert half.users == 0
    # The cells at the edge of the bounds share alike, however much of them is inside: one in 172
    # here.
    assert half.share == pytest.approx(0.5, abs=1 / 172)


# intervals


@pytest.mark.property
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95])
def test_intervals_are_quantiles_of_what_could_have_been(
    coverage: float, rng: np.random.Generator
) -> None:
    release = busy(ODD, rng)  # of level 9, so draws are coarser than the map
    times = rng.gamma(4, 1 / 4, DRAWS)
    release = replace(release, posterior=Scaled(release, times))
    # Zones of whole cells that draws are made of, which no border cuts, and one that cuts them.
    x, y = ODD.grid.at_level(7).edges()
    inside = (x > ODD.bounds[0]) & (x < ODD.bounds[2]), (y > ODD.bounds[1]) & (y < ODD.bounds[3])
    x, y = x[inside[0]], y[inside[1]]
    whole, cut = release.totals(
        {
            "whole": box(x[3], y[2], x[-3], y[-3]),
            "cut": [[x[3], y[2]], [x[-3], y[2]], [x[-3], y[-3]]],
        },
        coverage=coverage,
    )
    tail = 0.3 * (1 - coverage) / 2
    ends = whole.users * np.quantile(times, [tail, 1 - tail])
    assert [whole.low, whole.high] == pytest.approx(ends.tolist(), rel=ROUNDING)
    assert [whole.least, whole.most] == [whole.low, whole.high]
    low, high = cut.users * np.quantile(times, [tail, 1 - tail])
    for one in (cut.low, cut.high, cut.least, cut.most):
        assert one is not None
    assert cut.least <= cut.low < low < high < cut.high <= cut.most  # type: ignore[operator]


@pytest.mark.unit
def test_an_interval_holds_its_estimate_and_is_none_without_draws() -> None:
    release = town()
    zone = {"all": box(*CITY.bounds)}
    (unsure,) = release.totals(zone)
    assert (unsure.low, unsure.high) == (None, None)
    for times, low, high in [(0.5, 0.5, 1), (2.0, 1, 2)]:  # draws that are all below it, or above
        (one,) = replace(release, posterior=Scaled(release, np.array([times]))).totals(zone)
        assert (one.low, one.high) == pytest.approx((low * one.users, high * one.users))
    for coverage in (0.0, -1, 0.99, float("nan")):
        with pytest.raises(
            InvalidParameter, match=r"coverage must lie in \(0, 0.95\].*no total was made"
        ):
            release.totals(zone, coverage=coverage)


@pytest.mark.unit
def test_next_to_nobody_may_be_nobody() -> None:
    """Draws have a little everywhere, the truth has not: from 0.02 users on, nobody would be left out."""
    area = area_in_degrees(CITY.bounds, 4)
    tiles = [tile_at(area, -73.98, 40.75, users=100.0), tile_at(area, -73.8, 40.65, users=0.04)]
    release = heatmap(area, tiles)
    release = replace(release, posterior=Scaled(release, np.linspace(0.5, 1.5, DRAWS)))
    west, east = release.totals(
        {"west": box(LOW_X, LOW_Y, -73.9, HIGH_Y), "east": box(-73.83, LOW_Y, HIGH_X, HIGH_Y)}
    )
    assert west.low == pytest.approx(50 + 0.3 * 5, abs=0.5)
    assert east.low == 0
    assert east.high is not None
    assert east.high > 0.05


# files


@pytest.mark.unit
def test_zones_are_read_from_geojson_by_any_name(tmp_path: Path) -> None:
    middle = (LOW_X + HIGH_X) / 2
    left, right = box(LOW_X, LOW_Y, middle, HIGH_Y), box(middle, LOW_Y, HIGH_X, HIGH_Y)
    path = saved(
        tmp_path,
        ([left], {"district": 7}),
        ([right], {"district": "b"}),
        ([left], {"district": "b"}),
    )
    seventh, second = town().totals(path, name="district")
    assert (seventh.name, second.name) == ("7", "b")
    assert second.users == pytest.approx(town().tiles.total, rel=ROUNDING)
    (mapped,) = town().totals({"7": left})
    assert mapped == replace(seventh, name="7")


@pytest.mark.unit
def test_totals_are_written_as_tables_and_as_shapes(tmp_path: Path) -> None:
    left = box(LOW_X, LOW_Y, (LOW_X + HIGH_X) / 2, HIGH_Y)
    zones = read_zones(
        {"a, b": [left, [[x, y] for x, y in np.array(left).mean(axis=0) + 1e-3 * np.eye(3)[:, :2]]]}
    )
    found = zone_totals(town(), zones)
    (row,) = csv.DictReader(totals_csv(found).decode().splitlines())
    assert row["name"] == "a, b"
    assert float(row["users"]) == found[0].users
    assert (row["low"], row["high"]) == ("", "")
    data = json.loads(totals_geojson(town(), zones, found))
    assert data["sfumato"]["statement"] == town().statement
    (feature,) = data["features"]
    assert feature["properties"]["users"] == found[0].users
    assert feature["properties"]["low"] is None
    assert feature["properties"]["most"] is None
    shape = shapely.geometry.shape(feature["geometry"])
    assert shape.area == pytest.approx(zones[0].size)
    assert [ring.is_ccw for one in shape.geoms for ring in (one.exterior, *one.interiors)] == [
        True,
        False,
    ]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("zones", "message"),
    [
        ({}, "at least one zone"),
        ({"a": [1, 2]}, "no polygon: a polygon is a list of rings"),
        ({"a": [[0, 0], [1, 1]]}, "at least three positions"),
        ({"a": [[0, 0], [1, 1], [2, 2]]}, "must have an area"),
        ({"": box(0, 0, 1, 1)}, "printable and has 1 to 200"),
        ({"a\nb": box(0, 0, 1, 1)}, "printable and has 1 to 200"),
        ({"a" * 201: box(0, 0, 1, 1)}, "printable and has 1 to 200"),
        ({"a": "nowhere"}, "no polygon"),
    ],
)
def test_what_is_no_zone_is_refused(zones: Any, message: str) -> None:
    with pytest.raises((InvalidInput, InvalidParameter), match=message) as refused:
        town().totals(zones)
    assert str(refused.value).endswith("; no total was made")


@pytest.mark.unit
def test_outlines_that_cross_or_overlap_are_refused() -> None:
    x, y = (LOW_X + HIGH_X) / 2, (LOW_Y + HIGH_Y) / 2
    bow = [[LOW_X, LOW_Y], [HIGH_X, y], [HIGH_X, LOW_Y], [LOW_X, HIGH_Y]]
    twice = [[box(LOW_X, LOW_Y, x, y)], [box(LOW_X, LOW_Y, x, HIGH_Y)]]
    hole_outside = [box(LOW_X, LOW_Y, x, HIGH_Y), box(x, LOW_Y, (x + HIGH_X) / 2, y)]
    for zone in (bow, twice, hole_outside):
        with pytest.raises(
            InvalidInput, match="must not cross or overlap, those of 'a' do; no total was made"
        ):
            town().totals({"a": zone})


@pytest.mark.unit
def test_a_file_without_names_or_polygons_is_refused(tmp_path: Path) -> None:
    square = [box(*CITY.bounds)]
    with pytest.raises(
        InvalidInput, match=r"property 'name' .* has district, kind; choose with `name`"
    ):
        town().totals(saved(tmp_path, (square, {"kind": 1, "district": "a"})))
    with pytest.raises(InvalidInput, match="has none at all"):
        town().totals(saved(tmp_path, (square, {})))
    with pytest.raises(InvalidInput, match="lines or points"):
        town().totals(saved(tmp_path, (square[0], {"name": "a"}), kind="LineString"))
    with pytest.raises(InvalidInput, match="there is no file"):
        town().totals(tmp_path / "none.geojson")


@pytest.mark.unit
def test_zones_are_read_from_geojson_in_memory(tmp_path: Path) -> None:
    square = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0], [0.0, 0.0]]
    one = {"type": "Feature", "properties": {"name": "park"},
           "geometry": {"type": "Polygon", "coordinates": [square]}}  # fmt: skip
    data = {"type": "FeatureCollection", "features": [one]}
    file = tmp_path / "z.geojson"
    file.write_text(json.dumps(data))
    for said in (data, one):
        (found,) = read_zones(said)
        assert (found.name, found.size, found.crs) == ("park", 4.0, read_zones(file)[0].crs)
    # A zone may be called so.
    assert read_zones({"type": square})[0].name == "type"
    with pytest.raises(InvalidInput, match="GeoJSON"):
        read_zones({"type": "Nothing"})
