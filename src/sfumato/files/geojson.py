"""GeoJSON as shapes: polygons, lines and points of a public file, checked before anything is made of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput

Polygon = tuple[FloatArray, ...]

# What a file may ask of us: its text is held in memory several times over while it is parsed.
MAX_BYTES = 2**27
MAX_POSITIONS = 2**21
MAX_DEPTH = 16  # collections inside collections
# Beyond any unit on Earth; squares of it are far from the end of the doubles.
FARTHEST = 1e12


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """The shapes of one feature, every position [n, 2] as x and y, and the feature's own properties.

    A polygon is its rings, each closed (the last position is the first): the outline, then its
    holes.
    """

    polygons: tuple[Polygon, ...]
    lines: tuple[FloatArray, ...]
    points: FloatArray
    properties: dict[str, Any]


def read_bytes(path: str | Path, *, undone: str, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a public file of a reasonable size; `undone` ends the sentence of a refusal.

    Args:
        path: The file; no pipe or device.
        undone: What was not done because of a refusal.
        max_bytes: The largest size, in bytes.

    Returns:
        What the file holds.

    Raises:
        InvalidInput: There is no such file, it is too large, or it cannot be read.

    """
    file = Path(path)
    try:
        if not file.is_file():  # a pipe or a device may never end
            raise InvalidInput(f"there is no file at {file}; {undone}")
        if file.stat().st_size > max_bytes:
            raise InvalidInput(f"{file} may have at most {max_bytes} bytes, it has more; {undone}")
        return file.read_bytes()
    except OSError as problem:
        raise InvalidInput(f"cannot read {file}: {problem.strerror}; {undone}") from None


def features_of(data: bytes, name: str, *, undone: str) -> tuple[Feature, ...]:
    """The features of a GeoJSON text (RFC 7946): a collection of them, one of them, or a bare geometry.

    Args:
        data: The text, UTF-8.
        name: The name of the file, for messages.
        undone: What was not done because of a refusal.

    Returns:
        The features; at least one has a position.

    Raises:
        InvalidInput: The text is no GeoJSON, has no shape, or too many positions.

    Example:
        >>> text = b'{"type": "LineString", "coordinates": [[0, 0], [3, 4]]}'
        >>> features_of(text, "road.geojson", undone="nothing was charged")[0].lines[0].tolist()
        [[0.0, 0.0], [3.0, 4.0]]

    """
    try:
        found = tuple(_features(json.loads(data.decode("utf-8-sig"))))
    except UnicodeDecodeError:
        raise InvalidInput(f"{name} is no GeoJSON: it is no text; {undone}") from None
    except json.JSONDecodeError:
        raise InvalidInput(f"{name} is no GeoJSON: it is no JSON; {undone}") from None
    except RecursionError:
        raise InvalidInput(f"{name} is no GeoJSON: it is too deep; {undone}") from None
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as problem:
        raise InvalidInput(f"{name} is no GeoJSON: {_why(problem)}; {undone}") from None
    if sum(_positions(one) for one in found) > MAX_POSITIONS:
        raise InvalidInput(
            f"{name} may have at most {MAX_POSITIONS} positions, it has more; {undone}"
        )
    if not any(_positions(one) for one in found):
        raise InvalidInput(f"{name} has no shape in it; {undone}")
    return found


def named_system(data: bytes) -> str | None:
    """The reference system that the member "crs" of a GeoJSON text names, as files before RFC 7946 did.

    Args:
        data: The text, one that `features_of` took.

    Returns:
        The name; None if there is none, or if it is that of longitudes and latitudes.

    Example:
        >>> named_system(b'{"crs": {"type": "name", "properties": {"name": "EPSG:32632"}}}')
        'EPSG:32632'

    """
    found = json.loads(data.decode("utf-8-sig")).get("crs")
    name = found.get("properties", {}).get("name") if isinstance(found, dict) else None
    return None if name is None or str(name).endswith("CRS84") else str(name)


def polygons_of(coordinates: Any) -> tuple[Polygon, ...]:
    """The polygons of nested coordinates: one ring of positions, a polygon of rings, or several polygons.

    Args:
        coordinates: Nested lists or arrays of [x, y].

    Returns:
        The polygons, each a tuple of closed rings [n, 2].

    Raises:
        ValueError: The coordinates are nested otherwise, or a ring is too short.

    """
    depth, node = 0, coordinates
    while depth < 5 and isinstance(node, list | tuple | np.ndarray) and len(node):
        depth, node = depth + 1, node[0]
    match depth:
        case 2:
            return (_polygon([coordinates]),)
        case 3:
            return (_polygon(coordinates),)
        case 4:
            return tuple(_polygon(one) for one in coordinates)
        case _:
            raise ValueError("a polygon is a list of rings, a ring a list of positions [x, y]")


def _features(node: Any) -> Iterator[Feature]:
    match node["type"]:
        case "FeatureCollection":
            for one in node["features"]:
                yield from _features(one)
        case "Feature":
            yield _feature(node.get("geometry"), dict(node.get("properties") or {}))
        case _:
            yield _feature(node, {})


def _feature(geometry: Any, properties: dict[str, Any]) -> Feature:
    polygons: list[Polygon] = []
    lines: list[FloatArray] = []
    points: list[FloatArray] = [np.zeros((0, 2))]
    for one in _geometries(geometry, 0):
        kind, at = one["type"], one["coordinates"]
        match kind:
            case "Polygon":
                polygons += [_polygon(at)] if len(at) else []
            case "MultiPolygon":
                polygons += [_polygon(rings) for rings in at]
            case "LineString":
                lines.append(_line(at))
            case "MultiLineString":
                lines += [_line(line) for line in at]
            case "Point":
                points += [_places([at])] if len(at) else []
            case "MultiPoint":
                points.append(_places(at))
            case _:
                raise ValueError(f"there is no geometry {str(kind)[:40]!r}")
    return Feature(tuple(polygons), tuple(lines), np.concatenate(points), properties)


def _geometries(node: Any, depth: int) -> Iterator[Any]:
    if depth > MAX_DEPTH:
        raise RecursionError
    if node is None:  # a feature without a place is allowed (RFC 7946, 3.2)
        return
    if node["type"] == "GeometryCollection":
        for one in node["geometries"]:
            yield from _geometries(one, depth + 1)
    else:
        yield node


def _polygon(rings: Any) -> Polygon:
    return tuple(_ring(ring) for ring in rings)


def _ring(positions: Any) -> FloatArray:
    ring = _places(positions)
    if len(ring) and np.any(ring[0] != ring[-1]):
        ring = np.concatenate([ring, ring[:1]])
    if len(ring) < 4:
        raise ValueError("a ring needs at least three positions")
    return ring


def _line(positions: Any) -> FloatArray:
    line = _places(positions)
    if len(line) < 2:
        raise ValueError("a line needs at least two positions")
    return line


def _places(positions: Any) -> FloatArray:
    if any(isinstance(number, bool | str) for place in positions for number in place[:2]):
        raise ValueError("a position is two numbers")
    places = np.array([tuple(place[:2]) for place in positions], dtype=np.float64)
    if places.size == 0:
        return np.zeros((0, 2))
    if places.ndim != 2 or places.shape[1] != 2:
        raise ValueError("a position is two numbers")
    if not np.all(np.abs(places) <= FARTHEST):  # not a number is refused here too
        raise ValueError(f"positions must be finite and at most {FARTHEST:g}")
    return places


def _positions(feature: Feature) -> int:
    rings = sum(len(ring) for polygon in feature.polygons for ring in polygon)
    return rings + sum(map(len, feature.lines)) + len(feature.points)


def _why(problem: Exception) -> str:
    """Our own sentence, where the problem is one; Python's say nothing to the owner of a file."""
    said = str(problem)
    ours = type(problem) is ValueError and said.startswith(("a ", "there is", "positions"))
    return said if ours else "its members are not those of RFC 7946"


def number_of(value: Any) -> float | None:
    """A property as a number, if it is one and finite; truth values are none.

    Args:
        value: A property of a feature.

    Returns:
        The number, or None.

    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
