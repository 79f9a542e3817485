"""Public priors move mass within tiles only, cost nothing, and are told of wherever the map goes."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from tests.heatmap.baselines.towns import town as people
from tests.heatmap.export.maps import CITY, PACIFIC, SCENE, heatmap, town

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.figures import Words
from sfumato.heatmap.analysis.metrics import kl
from sfumato.heatmap.export import read_heatmap
from sfumato.heatmap.export.geotiff import geotiff, tags
from sfumato.heatmap.export.page import html
from sfumato.heatmap.export.picture import drawn, png
from sfumato.heatmap.inference import prior as priors
from sfumato.heatmap.inference.prior import EVEN, Declared, Prior, Raster, read_prior, sharpened
from sfumato.heatmap.pipeline.charging import release_sums
from sfumato.heatmap.tiles import Tiles, dense_tiles
from sfumato.privacy import REHEARSAL, KeyedNoise, Ledger, PureDP
from sfumato.records import guard_sums
from sfumato.spaces import Area, Grid, area_of_plane

FloatArray = npt.NDArray[np.float64]

PLANE = area_of_plane((0, 0, 8, 8), 3)
# Sums of at most 4**6 masses, each rounded once.
ROUNDING = 1e-11


def saved(folder: Path, name: str, content: Any) -> Path:
    """A prior in a file, by its suffix."""
    path = folder / name
    if path.suffix == ".npy":
        np.save(path, content)
    elif path.suffix == ".png":
        Image.fromarray(content).save(path)
    else:
        path.write_text(json.dumps(content))
    return path


def shape(kind: str, coordinates: Any, **properties: Any) -> dict[str, Any]:
    geometry = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def weights_of(
    folder: Path, *shapes: dict[str, Any], area: Area = PLANE, level: int = 3
) -> FloatArray:
    path = saved(folder, "a.geojson", {"type": "FeatureCollection", "features": list(shapes)})
    return read_prior(path).weights(area, level)


@pytest.fixture
def tiles(rng: np.random.Generator) -> Tiles:
    """Tiles of levels 0 to 6, many inside one another, some twice."""
    levels = rng.integers(0, 7, 60)
    codes = np.array([rng.integers(0, 4**level) for level in levels])
    return Tiles(Grid(6), levels, codes, rng.random(60))


# sharpening


@pytest.mark.property
def test_every_tile_keeps_its_mass_and_no_place_vanishes(
    tiles: Tiles, rng: np.random.Generator
) -> None:
    weights = rng.random((32, 32)) * (rng.random((32, 32)) < 0.3)
    together = np.zeros(4**6)
    for at in range(tiles.codes.size):
        one = Tiles(
            tiles.grid,
            tiles.levels[at : at + 1],
            tiles.codes[at : at + 1],
            tiles.masses[at : at + 1],
        )
        level, alone = int(one.levels[0]), sharpened(one, weights)
        assert np.allclose(alone.values(level), one.values(level), rtol=ROUNDING, atol=0)
        assert np.all(alone.values(6) >= EVEN * one.values(6) * (1 - ROUNDING))
        together += alone.values(6)
    assert np.allclose(sharpened(tiles, weights).values(6), together, rtol=ROUNDING, atol=0)


@pytest.mark.property
def test_within_a_tile_mass_follows_the_weights(rng: np.random.Generator) -> None:
    tiles = dense_tiles(Grid(5), 2, rng.random(16) + 0.1)
    weights = rng.random((32, 32))
    found, even = sharpened(tiles, weights).image(), tiles.image()
    blocks = weights.reshape(4, 8, 4, 8).mean(axis=(1, 3))
    followed = even * weights / np.kron(blocks, np.ones((8, 8)))
    assert np.allclose(found, EVEN * even + (1 - EVEN) * followed, rtol=ROUNDING)
    assert not np.allclose(found, even * weights * 16 / weights.sum(), rtol=0.1), (
        "across tiles would do as well"
    )


@pytest.mark.unit
def test_tiles_without_weight_or_as_fine_as_the_weights_stay() -> None:
    tiles = Tiles(Grid(4), np.array([1, 2, 3]), np.array([0, 15, 63]), np.array([8.0, 4.0, 2.0]))
    weights = np.zeros((4, 4))
    weights[3, 3] = 5  # the north-east, where the tiles of level 2 and 3 are
    found = sharpened(tiles, weights)
    assert np.array_equal(found.values(4), tiles.values(4))
    assert np.array_equal(sharpened(tiles, np.zeros((4, 4))).values(4), tiles.values(4))
    assert sharpened(tiles, np.full((4, 4), 1e308)).total == pytest.approx(
        14
    )  # sums of weights stay finite
    nothing = Tiles(Grid(4), *(np.zeros(0, dtype=np.int64),) * 2, np.zeros(0))
    assert sharpened(nothing, weights).codes.size == 0


@pytest.mark.property
def test_a_wrong_prior_costs_little_and_a_right_one_pays(rng: np.random.Generator) -> None:
    """What EVEN promises: at most ln 10 lost in KL, all but -ln 0.9 of the most there is gained."""
    tiles = dense_tiles(Grid(5), 2, np.full(16, 1 / 16))
    truth = rng.random((32, 32)) ** 8
    truth /= np.kron(truth.reshape(4, 8, 4, 8).sum(axis=(1, 3)), np.ones((8, 8))) * 16
    right, wrong = (
        sharpened(tiles, truth).image(),
        sharpened(tiles, (1e-3 / (1e-3 + truth)) ** 4).image(),
    )
    before = kl(truth, tiles.image())
    assert kl(truth, right) <= -math.log(1 - EVEN) + 1e-9 < before
    assert before < kl(truth, wrong) <= before - math.log(EVEN) + 1e-9


@pytest.mark.unit
@pytest.mark.parametrize(
    ("weights", "even"),
    [
        (np.ones((3, 3)), 0.1),
        (np.ones((4, 2)), 0.1),
        (np.ones(4), 0.1),
        (np.ones((0, 0)), 0.1),
        (np.ones((32, 32)), 0.1),
        (np.full((2, 2), -1.0), 0.1),
        (np.full((2, 2), np.nan), 0.1),
        (np.ones((2, 2)), 0.0),
        (np.ones((2, 2)), 1.5),
    ],
)
def test_weights_that_are_none_are_refused(weights: FloatArray, even: float) -> None:
    with pytest.raises(InvalidParameter, match="nothing was sharpened"):
        sharpened(Tiles(Grid(4), np.array([0]), np.array([0]), np.array([1.0])), weights, even=even)


# weights of files


@pytest.mark.unit
def test_lines_weigh_their_length_polygons_their_area_points_one(tmp_path: Path) -> None:
    road = weights_of(tmp_path, shape("LineString", [[0.5, 2.5], [2, 2.5], [2, 0]]))
    assert road[2].tolist() == [0.5, 1, 0.5, 0, 0, 0, 0, 0]  # a cell holds its western edge
    assert road[:, 2].tolist() == [1, 1, 0.5, 0, 0, 0, 0, 0]
    park = weights_of(
        tmp_path, shape("Polygon", [[[0, 0], [0, 2], [1.5, 2], [1.5, 0]]], weight=4, name="x")
    )
    assert park[:2, :2].tolist() == [[4, 2], [4, 2]]
    assert park.sum() == 12
    stops = weights_of(
        tmp_path, shape("MultiPoint", [[7.5, 0.5], [7.5, 0.5], [99, 0]], weight="many")
    )
    assert (stops[0, 7], stops.sum()) == (2, 2)


@pytest.mark.unit
def test_arrays_lie_over_the_grid_with_the_first_row_at_the_lowest_y(tmp_path: Path) -> None:
    values = np.arange(16).reshape(4, 4)
    prior = read_prior(saved(tmp_path, "a.npy", values))
    assert (15 * prior.weights(PLANE, 2)).round(9).tolist() == values.tolist()
    halves = values.reshape(2, 2, 2, 2).sum(axis=(1, 3))
    assert (15 * prior.weights(PLANE, 1)).round(9).tolist() == halves.tolist()
    assert (15 * prior.weights(PLANE, 3)).round(9).tolist() == np.kron(
        values / 4, np.ones((2, 2))
    ).tolist()


@pytest.mark.property
def test_any_shape_is_resampled_by_area(tmp_path: Path, rng: np.random.Generator) -> None:
    values = rng.random((7, 5))
    prior = read_prior(saved(tmp_path, "a.npy", values))
    fine = np.kron(values, np.ones((8, 8))) / 64  # 56 x 40: cells of level 3 are whole blocks of it
    wanted = fine.reshape(8, 7, 8, 5).sum(axis=(1, 3)) / values.max()
    assert np.allclose(prior.weights(PLANE, 3), wanted, rtol=ROUNDING)


@pytest.mark.unit
def test_pictures_lie_over_the_bounds_with_the_first_row_on_top(tmp_path: Path) -> None:
    pixels = np.zeros((60, 80), dtype=np.uint8)
    pixels[:10, :10] = 200  # top left
    prior = read_prior(saved(tmp_path, "a.png", pixels))
    for area, low in ((SCENE, True), (CITY, False)):
        first_column, first_row, _, last_row = area.window(5)
        heavy = np.argwhere(prior.weights(area, 5) > 0)
        assert heavy[:, 1].min() == first_column
        assert (heavy[:, 0].min() == first_row) == low
        assert (heavy[:, 0].max() == last_row - 1) != low


@pytest.mark.unit
def test_colors_weigh_their_luminance_and_what_is_transparent_nothing(tmp_path: Path) -> None:
    colors = np.zeros((1, 4, 4), dtype=np.uint8)
    colors[0] = [[255, 255, 255, 255], [0, 255, 0, 255], [0, 0, 255, 255], [255, 255, 255, 0]]
    white, green, blue, clear = (
        read_prior(saved(tmp_path, "a.png", colors)).weights(PLANE, 2)[0] * 4
    )
    assert white == pytest.approx(1)
    assert green > 4 * blue > 0  # the eye's weights: 0.587 and 0.114
    assert clear == 0
    deep = np.array([[1000, 65535]], dtype=np.uint16)
    dark, bright = read_prior(saved(tmp_path, "b.png", deep)).weights(PLANE, 1)[0]
    assert dark / bright == pytest.approx(1000 / 65535)


@pytest.mark.unit
def test_longitudes_come_again_across_the_antimeridian(tmp_path: Path) -> None:
    road = [[175, -10.1], [180, -10.1]], [[-180, -10.1], [-175, -10.1]]
    found = weights_of(tmp_path, shape("MultiLineString", road), area=PACIFIC, level=4)
    through = weights_of(
        tmp_path, shape("LineString", [[175, -10.1], [185, -10.1]]), area=PACIFIC, level=4
    )
    assert np.allclose(found, through, atol=ROUNDING)
    assert found.sum() == pytest.approx(10 / (PACIFIC.grid.bounds[2] - PACIFIC.grid.bounds[0]) * 16)


# refusals


@pytest.mark.unit
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", np.array([[1.0, np.nan]]), "finite and at least 0"),
        ("a.npy", np.array([[1.0, -1.0]]), "finite and at least 0"),
        ("a.npy", np.array([[1.0, np.inf]]), "finite and at least 0"),
        ("a.npy", np.zeros((2, 2)), "some weight"),
        ("a.npy", np.ones(4), "rows and columns of real numbers"),
        ("a.npy", np.ones((2, 2), dtype=complex), "rows and columns of real numbers"),
        ("a.npy", np.array([[{}]], dtype=object), "rows and columns of real numbers"),
        ("a.npy", np.ones((1, 20_000)), "16384 a side"),
        ("a.png", np.zeros((2, 2), dtype=np.uint8), "some weight"),
        ("a.geojson", shape("Point", [1, 1], weight=-1), "finite and at least 0"),
        ("a.geojson", shape("Point", [1, 1], weight=float("nan")), "finite and at least 0"),
        ("a.json", {"format": "sfumato-heatmap/1"}, "no GeoJSON"),
    ],
)
def test_what_is_no_prior_is_refused(name: str, content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        read_prior(saved(tmp_path, name, content))
    assert str(refused.value).endswith("; nothing was charged")


@pytest.mark.fault
def test_damaged_files_are_refused(tmp_path: Path) -> None:
    whole = {
        "a.npy": saved(tmp_path, "a.npy", np.ones((4, 4))).read_bytes(),
        "a.png": saved(
            tmp_path, "a.png", np.arange(255, dtype=np.uint8).reshape(15, 17)
        ).read_bytes(),
        "a.geojson": saved(tmp_path, "a.geojson", shape("Point", [1, 1])).read_bytes(),
    }
    for name, data in whole.items():
        read_prior(tmp_path / name)
        for broken in (b"", data[:9], data[: len(data) // 2], data[len(data) // 2 :]):
            (tmp_path / name).write_bytes(broken)
            with pytest.raises(InvalidInput, match="nothing was charged"):
                read_prior(tmp_path / name)


@pytest.mark.unit
def test_names_and_places_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, message in [("a.csv", r"one of \.geojson"), ("a\n.npy", "printable")]:
        with pytest.raises(InvalidParameter, match=message):
            read_prior(tmp_path / name)
    with pytest.raises(InvalidInput, match="there is no file"):
        read_prior(tmp_path / "none.npy")
    away = read_prior(saved(tmp_path, "a.geojson", shape("Point", [2.35, 48.86])))
    with pytest.raises(
        InvalidParameter, match=r"inside the area, a\.geojson has none; nothing was charged"
    ):
        away.check(CITY)
    read_prior(saved(tmp_path, "b.geojson", shape("Point", [-73.9, 40.7]))).check(CITY)
    monkeypatch.setattr(priors, "MOST_NUMBERS", 8)
    for name, content in [("a.npy", np.ones((3, 3))), ("a.png", np.ones((3, 3), dtype=np.uint8))]:
        with pytest.raises(InvalidInput, match="at most 8 numbers"):
            read_prior(saved(tmp_path, name, content))


# what a map says of it


def half() -> Prior:
    """More and more to the east, over the whole grid."""
    return Prior(
        "roads & <b>.npy",
        hashlib.sha256(b"roads").hexdigest(),
        Raster(np.array([[0.0, 1.0, 2.0, 3.0]])),
    )


@pytest.mark.unit
def test_a_sharpened_map_says_so_and_promises_what_it_did(tmp_path: Path) -> None:
    plain = town()
    found = plain.sharpened(half())
    said = "prior roads & <b>.npy (sha256 " + half().sha256[:12] + "), declared public by the user"
    assert str(found.prior) == said
    assert (found.guarantee, found.statement, found.receipt) == (
        plain.guarantee,
        plain.statement,
        plain.receipt,
    )
    assert found.tiles.total == pytest.approx(plain.tiles.total, rel=ROUNDING)
    before, after = plain.to_json(), found.to_json()
    assert {name for name in before if before[name] != after[name]} == {"tiles", "prior", "noise"}
    assert after["prior"]["statement"] == said
    assert tags(found)["prior"] == said
    assert (
        said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") in html(found).decode()
    )
    found.write(tmp_path / "map.json")
    assert read_heatmap(tmp_path / "map.json").to_json() == after
    with pytest.raises(InvalidParameter, match="a map follows one prior"):
        found.sharpened(half())


@pytest.mark.unit
def test_the_picture_says_so_and_its_mark_rises_as_its_prior_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = town(group="")
    found = plain.sharpened(half())
    assert found.tiles.codes.size > 20 * plain.tiles.codes.size
    # The mark rises with what the prior makes of an even map: at its highest, 4 times of 2.5.
    assert drawn(plain).floor < drawn(found).floor < 3 * drawn(plain).floor
    told: list[str] = []

    def listen(*_: Any, words: Words, **__: Any) -> Any:
        told.append(words.caption)

    monkeypatch.setattr("sfumato.heatmap.export.picture.heatmap_figure", listen)
    monkeypatch.setattr("sfumato.heatmap.export.picture.png_of", lambda drawn, **_: b"")
    png(found)
    png(plain)
    assert f"Sharpened by {found.prior}. " in told[0]
    assert "prior" not in told[1]


@pytest.mark.unit
def test_the_geotiff_says_so() -> None:
    from rasterio.io import MemoryFile

    found = town().sharpened(half())
    with MemoryFile(geotiff(found, 5)) as memory, memory.open() as file:
        assert file.tags()["prior"] == str(found.prior)


@pytest.mark.unit
@pytest.mark.parametrize(
    "change",
    [
        {"tiles": "3"},
        {"file": "a\nb"},
        {"sha256": 5},
        {"statement": "made by angels"},
        {"tiles": True},
    ],
)
def test_a_broken_record_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    data = town().sharpened(half()).to_json()
    (tmp_path / "map.json").write_text(json.dumps({**data, "prior": {**data["prior"], **change}}))
    with pytest.raises(InvalidInput, match="of its prior is not"):
        read_heatmap(tmp_path / "map.json")


@pytest.mark.unit
def test_a_map_from_before_priors_has_none(tmp_path: Path) -> None:
    data = town().to_json()
    del data["prior"]
    (tmp_path / "map.json").write_text(json.dumps(data))
    assert read_heatmap(tmp_path / "map.json").prior is None
    assert Declared.from_json(None) is None


@pytest.mark.unit
def test_a_map_of_nobody_can_follow_a_prior() -> None:
    found = heatmap(CITY, []).sharpened(half())
    assert found.tiles.total == 0
    assert found.prior == Declared(half().file, half().sha256, 0)


@pytest.mark.unit
def test_a_prior_moves_mass_within_the_cells_that_zoom_counted(
    tmp_path: Path, rng: np.random.Generator, key: bytes
) -> None:
    """Its tiles are as fine as a picture, its counts are not: a prior that does nothing would be a lie."""
    area = area_of_plane((0, 0, 1, 1), levels=8)
    sums = people(rng, area.grid, users=80)
    (map_,) = release_sums(
        guard_sums(sums, source=REHEARSAL),
        area,
        ledger=Ledger.rehearsal(PureDP(1)),
        epsilon=1,
        noise=KeyedNoise(key),
    )
    west = np.zeros((256, 256))
    west[:, ::2] = 1
    path = tmp_path / "west.npy"
    np.save(path, west)
    sharp = map_.sharpened(read_prior(path))
    assert sharp.tiles.total == pytest.approx(map_.tiles.total)
    halves = sharp.image(8).reshape(256, 128, 2).sum(axis=(0, 1))
    assert halves[0] > 0.85
    assert map_.posterior is not None
    counted = map_.posterior.counts
    assert counted is not None
    coarse = int(counted.levels.min())
    assert sharp.image(coarse) == pytest.approx(map_.image(coarse), abs=1e-9)
