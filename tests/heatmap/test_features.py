"""GeoJSON of any kind is read, and a hostile one ends in one sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import InvalidInput
from sfumato.files import geojson as features
from sfumato.files.geojson import Feature, features_of, number_of, polygons_of, read_bytes

pytestmark = pytest.mark.unit

SQUARE = [[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]


def read(node: Any) -> tuple[Feature, ...]:
    return features_of(json.dumps(node).encode(), "a.geojson", undone="nothing was charged")


def test_every_geometry_is_read() -> None:
    shapes = [
        {"type": "Polygon", "coordinates": [SQUARE]},
        {"type": "MultiPolygon", "coordinates": [[SQUARE], [SQUARE, SQUARE]]},
        {"type": "LineString", "coordinates": [[0, 0, 9], [1, 1, 9]]},
        {"type": "MultiLineString", "coordinates": [[[0, 0], [1, 1]], [[5, 5], [6, 6], [7, 7]]]},
        {"type": "Point", "coordinates": [1, 2]},
        {"type": "MultiPoint", "coordinates": [[1, 2], [3, 4]]},
    ]
    every = {
        "type": "GeometryCollection",
        "geometries": [{"type": "GeometryCollection", "geometries": shapes}],
    }
    (bare,) = read(every)
    one, none = read(
        {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "geometry": every, "properties": {"name": "a"}},
                {"type": "Feature", "geometry": None, "properties": None},
            ],
        }
    )
    for found in (bare, one):
        assert [len(polygon) for polygon in found.polygons] == [1, 1, 2]
        assert [len(line) for line in found.lines] == [2, 2, 3]
        assert found.points.tolist() == [[1, 2], [1, 2], [3, 4]]
    assert (bare.properties, one.properties, none.properties) == ({}, {"name": "a"}, {})
    assert (none.polygons, none.lines, none.points.size) == ((), (), 0)


def test_an_open_ring_is_closed() -> None:
    assert (
        read({"type": "Polygon", "coordinates": [SQUARE[:-1]]})[0].polygons[0][0].tolist() == SQUARE
    )
    for nested in (SQUARE, [SQUARE], [[SQUARE]]):
        assert polygons_of(nested)[0][0].tolist() == SQUARE
    with pytest.raises(ValueError, match="a list of rings"):
        polygons_of([1, 2])


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ([], "not those of RFC 7946"),
        ({"type": "Polygon"}, "not those of RFC 7946"),
        ({"type": "FeatureCollection", "features": 3}, "not those of RFC 7946"),
        ({"type": "Circle", "coordinates": [0, 0]}, "no geometry 'Circle'"),
        ({"type": "Polygon", "coordinates": [SQUARE[:2]]}, "at least three positions"),
        ({"type": "LineString", "coordinates": [[0, 0]]}, "at least two positions"),
        ({"type": "Point", "coordinates": [0, float("nan")]}, "finite"),
        ({"type": "Point", "coordinates": [0, 1e300]}, "finite"),
        ({"type": "Point", "coordinates": [0, 10**400]}, "not those of RFC 7946"),
        ({"type": "Point", "coordinates": ["0", "1"]}, "a position is two numbers"),
        ({"type": "Point", "coordinates": [0]}, "a position is two numbers"),
        ({"type": "MultiPoint", "coordinates": [[0, 1], [2]]}, "RFC 7946"),
        ({"type": "FeatureCollection", "features": []}, "has no shape in it"),
        ({"type": "MultiPolygon", "coordinates": []}, "has no shape in it"),
    ],
)
def test_what_is_no_geojson_is_refused(node: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        read(node)
    assert str(refused.value).endswith("; nothing was charged")


def test_hostile_texts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = {"type": "Point", "coordinates": [0, 0]}
    for _ in range(20):
        deep = {"type": "GeometryCollection", "geometries": [deep]}
    for data, message in [
        (b"\xff\xfe", "no text"),
        (b"{", "no JSON"),
        (b"[" * 200_000, "too deep"),
        (json.dumps(deep).encode(), "too deep"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            features_of(data, "a.geojson", undone="nothing was charged")
    monkeypatch.setattr(features, "MAX_POSITIONS", 4)
    with pytest.raises(InvalidInput, match="at most 4 positions"):
        read({"type": "Polygon", "coordinates": [SQUARE]})


def test_only_files_of_a_reasonable_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(bytes(9))
    for name, message in [
        ("none", "there is no file"),
        ("pipe", "there is no file"),
        ("large", "at most 8 bytes"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            read_bytes(tmp_path / name, undone="nothing was charged", max_bytes=8)
    assert read_bytes(tmp_path / "large", undone="nothing was charged") == bytes(9)


def test_numbers_are_numbers() -> None:
    found = [number_of(value) for value in (2, 0.5, True, "2", None, float("inf"), 10**400)]
    assert found == [2.0, 0.5, None, None, None, None, None]
