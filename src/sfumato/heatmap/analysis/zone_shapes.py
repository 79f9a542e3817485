"""Zones: named polygons, read and checked, and the part of each cell of a map that is theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import (
    MAX_POSITIONS,
    Polygon,
    features_of,
    named_system,
    polygons_of,
    read_bytes,
)
from sfumato.heatmap.analysis.overlap import areas, moved, ring_edges, signed_area, turns
from sfumato.heatmap.reference_systems import DEGREES, ReferenceSystem
from sfumato.spaces import Area

LONGEST_NAME = 200
UNDONE = "no total was made"
# How far an edge that is bent on the map may be off, in cells.
EDGE = 0.01
# Parts of cells are exact but for this.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """A named place: one or several polygons that do not overlap.

    `crs` is the reference system of its positions; those of None are in the units of the map.
    """

    name: str
    polygons: tuple[Polygon, ...]
    crs: str | None = None

    @property
    def size(self) -> float:
        """Its area in the units of its positions."""
        return sum(
            abs(signed_area(polygon[0])) - sum(abs(signed_area(hole)) for hole in polygon[1:])
            for polygon in self.polygons
            if polygon
        )


def read_zones(zones: str | Path | Mapping[str, Any], *, name: str = "name") -> tuple[Zone, ...]:
    """Zones of a GeoJSON file of polygons, or of a mapping from names to the coordinates of one.

    A file names each polygon by its property `name`; those of one name are one zone. They come in
    the order of the file. It is in longitudes and latitudes (RFC 7946), or in the system that its
    member "crs" names, as files of before that have it; a mapping is in the units of the map.

    Args:
        zones: A GeoJSON file of polygons, its content as a mapping, or a mapping from names to coordinates.
        name: The property of the file that names a zone.

    Returns:
        The zones in order; polygons of one name are one.

    Raises:
        InvalidInput: The file has no polygons, or one without a name.
        InvalidParameter: The coordinates of a mapping are no polygon.

    Example:
        >>> read_zones({"square": [[0, 0], [2, 0], [2, 2], [0, 2]]})[0].size
        4.0

    """
    if isinstance(zones, Mapping) and isinstance(zones.get("type"), str):
        data, zones = json.dumps(dict(zones)).encode(), "the GeoJSON"
    elif isinstance(zones, Mapping):
        return _checked([(key, _coordinates(key, value)) for key, value in zones.items()])
    else:
        data = read_bytes(zones, undone=UNDONE)
    features = features_of(data, str(zones), undone=UNDONE)
    named: list[tuple[str, tuple[Polygon, ...]]] = []
    for one in features:
        if one.lines or len(one.points):
            raise InvalidInput(f"zones are polygons, {zones} has lines or points; {UNDONE}")
        if one.polygons:
            said = one.properties.get(name)
            if said is None or isinstance(said, dict | list):
                others = ", ".join(sorted(map(str, one.properties))[:20])[:400] or "none at all"
                raise InvalidInput(
                    f"every zone needs a property {name!r} that names it, one in {zones} has {others}; "
                    f"choose with `name`; {UNDONE}"
                )
            named.append((str(said), one.polygons))
    return _checked(named, named_system(data) or DEGREES)


def _coordinates(key: str, value: Any) -> tuple[Polygon, ...]:
    try:
        found = polygons_of(value)
    except (ValueError, TypeError, KeyError, ArithmeticError) as problem:
        raise InvalidParameter(f"zone {key!r} is no polygon: {problem}; {UNDONE}") from None
    if sum(len(ring) for polygon in found for ring in polygon) > MAX_POSITIONS:
        raise InvalidParameter(
            f"a zone has at most {MAX_POSITIONS} positions, {key!r} has more; {UNDONE}"
        )
    return found


def _checked(
    named: list[tuple[str, tuple[Polygon, ...]]], crs: str | None = None
) -> tuple[Zone, ...]:
    joined: dict[str, tuple[Polygon, ...]] = {}
    for key, polygons in named:
        if not key.strip() or not key.isprintable() or len(key) > LONGEST_NAME:
            raise InvalidInput(
                f"the name of a zone is printable and has 1 to {LONGEST_NAME} letters, got {key[:60]!r}; "
                f"{UNDONE}"
            )
        joined[key] = (*joined.get(key, ()), *polygons)
    zones = tuple(Zone(key, polygons, crs) for key, polygons in joined.items())
    for zone in zones:
        if not zone.size > 0:
            raise InvalidInput(f"a zone must have an area, {zone.name!r} has none; {UNDONE}")
    if not zones:
        raise InvalidInput(f"there must be at least one zone, got none; {UNDONE}")
    return zones


# -- zones on maps


def placed(zone: Zone, area: Area, level: int) -> Zone:
    """The zone in the units of a map: longitudes and latitudes are transformed into the map's system.

    A bent edge is off by at most EDGE cells of the level.
    """
    system = None if zone.crs in (None, DEGREES) else _system(str(zone.crs))
    named = None if zone.crs is None else DEGREES if system is None else system.name
    its_own = DEGREES if area.kind == "degrees" else area.crs
    if named not in (None, DEGREES) and named != its_own:
        raise InvalidInput(
            f"zone {zone.name!r} is in {named}, the map in {its_own or area.kind}: zones are in longitudes "
            f"and latitudes, or in the system of the map; {UNDONE}"
        )
    if its_own and named in (None, DEGREES):
        _check_degrees(zone, area, given=named is not None)
    plane = _system(area.crs) if area.crs and named == DEGREES else None
    if plane is None:
        return zone
    cell = min(area.grid.at_level(level).cell_width, area.grid.at_level(level).cell_height)
    polygons = tuple(
        tuple(plane.ring_from_degrees(ring, EDGE * cell) for ring in polygon)
        for polygon in zone.polygons
    )
    if not all(np.isfinite(ring).all() for polygon in polygons for ring in polygon):
        raise InvalidInput(f"{area.crs} does not reach all of zone {zone.name!r}; {UNDONE}")
    return replace(zone, polygons=polygons, crs=area.crs)


def _check_degrees(zone: Zone, area: Area, *, given: bool) -> None:
    """Refuse positions that cannot be what they are said to be: degrees of a file, units of the map."""
    x, y = np.concatenate([ring for polygon in zone.polygons for ring in polygon]).T
    # Longitudes may come again after a turn.
    degrees = np.abs(x).max() <= 540 and np.abs(y).max() <= 90
    if given and not degrees:
        raise InvalidInput(
            f"a GeoJSON file is in longitudes and latitudes (RFC 7946), zone {zone.name!r} is not: it has "
            f"{x[np.abs(x).argmax()]:g},{y[np.abs(x).argmax()]:g}; {UNDONE}"
        )
    low_x, low_y, high_x, high_y = area.bounds
    apart = x.max() < low_x or x.min() > high_x or y.max() < low_y or y.min() > high_y
    if not given and area.crs and degrees and apart:
        raise InvalidInput(
            f"zones of a mapping are in the units of the map, {area.crs}; zone {zone.name!r} looks like "
            f"degrees; {UNDONE}"
        )


def in_degrees(zone: Zone, area: Area) -> Zone:
    """The zone as a GeoJSON file has it, where its map lies on the Earth: positions, not edges, transformed."""
    plane = _system(area.crs) if area.crs and zone.crs != DEGREES else None
    if plane is None:
        return zone
    polygons = tuple(
        tuple(np.stack(plane.to_degrees(*ring.T), axis=1) for ring in polygon)
        for polygon in zone.polygons
    )
    return replace(zone, polygons=polygons, crs=DEGREES)


@lru_cache(maxsize=4)
def _system(crs: str) -> ReferenceSystem | None:
    return ReferenceSystem.named(crs)


# -- zones on cells


@dataclass(frozen=True, slots=True, eq=False)
class ZoneMask:
    """The part of each cell's mass that is a zone's, in the rows and columns around it."""

    rows: slice
    columns: slice
    weights: FloatArray
    inside: float

    @classmethod
    def of(cls, zone: Zone, area: Area, level: int) -> ZoneMask:
        """The mask of a zone on the cells of a level, each cut to its part inside the bounds."""
        x, y, first_column, first_row = _lines(area, level)
        edges = np.concatenate([ring_edges(polygon) for polygon in zone.polygons])
        copies = [moved(edges, across) for across in turns(area)]
        near = [one for one in copies if _meets(one, x, y)]
        if not near:
            return cls(slice(0, 0), slice(0, 0), np.zeros((0, 0)), 0.0)
        low, high = (
            np.min([one.min(axis=(0, 1)) for one in near], axis=0),
            np.max([one.max(axis=(0, 1)) for one in near], axis=0),
        )
        columns, rows = _range(x, low[0], high[0]), _range(y, low[1], high[1])
        x, y = x[columns.start : columns.stop + 1], y[rows.start : rows.stop + 1]
        cells = np.diff(y)[:, None] * np.diff(x)[None, :]
        covered = sum((areas(one, x, y) for one in near), np.zeros(cells.shape)) / cells
        # Slips of a digitiser pass; an outline that crosses itself, or a hole outside of it, does
        # not.
        if np.any(covered < -0.01) or np.any(covered > 1.01):
            raise InvalidInput(
                f"the outlines of a zone must not cross or overlap, those of {zone.name!r} do; {UNDONE}"
            )
        weights = np.clip(covered, 0, 1)
        inside = min(1.0, float((weights * cells).sum()) / zone.size)
        return cls(
            slice(first_row + rows.start, first_row + rows.stop),
            slice(first_column + columns.start, first_column + columns.stop),
            weights,
            round(inside, 9),  # what touches the area at a corner is not in it
        )

    def mass(self, image: FloatArray) -> float:
        """The mass of an image in the zone."""
        return float((image[self.rows, self.columns] * self.weights).sum())

    def within(self, other: ZoneMask) -> bool:
        """Whether each cell has no more of this zone than of the other one."""
        ends = [
            (mine.start - its.start, mine.stop - its.start, its.stop - its.start)
            for mine, its in ((self.rows, other.rows), (self.columns, other.columns))
        ]
        if not self.weights.size or any(low < 0 or high > most for low, high, most in ends):
            return not self.weights.size
        (top, bottom, _), (left, right, _) = ends
        return bool(np.all(self.weights <= other.weights[top:bottom, left:right] + ROUNDING))


def _lines(area: Area, level: int) -> tuple[FloatArray, FloatArray, int, int]:
    """Where the columns and rows that the bounds touch begin and end, the outer ones at the bounds."""
    first_column, first_row, last_column, last_row = area.window(level)
    x, y = area.grid.at_level(level).edges()
    x, y = x[first_column : last_column + 1].copy(), y[first_row : last_row + 1].copy()
    x[0], y[0], x[-1], y[-1] = area.bounds
    return x, y, first_column, first_row


def _meets(edges: FloatArray, x: FloatArray, y: FloatArray) -> bool:
    low, high = edges.min(axis=(0, 1)), edges.max(axis=(0, 1))
    return bool(low[0] < x[-1] and high[0] > x[0] and low[1] < y[-1] and high[1] > y[0])


def _range(lines: FloatArray, low: float, high: float) -> slice:
    first = int(np.searchsorted(lines, low, "right")) - 1
    last = int(np.searchsorted(lines, high, "left"))
    return slice(max(first, 0), min(last, lines.size - 1))
