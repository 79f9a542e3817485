"""How many people a map has in each of several zones: districts, parks, areas of interest."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import MAX_POSITIONS, Polygon, features_of, polygons_of, read_bytes
from sfumato.heatmap.analysis.overlap import areas, moved, ring_edges, signed_area, turns
from sfumato.heatmap.inference.uncertainty import FINEST_DRAWS, maps_inside
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease


# Cells of a thousandth of the side: below them a map's mass is taken to be even.
FINEST_ZONES = 10
# A map that could have been has somebody everywhere, if only a millionth: less than this is nobody,
# in users.
NEXT_TO_NOBODY = 0.1
# Zones that have users at all are those a posterior is least sure of: its intervals at 90 % held
# 73-87 % of them on tuning data, and with tails of three tenths 88-96 %; the page on uncertainty
# has the check.
TAIL = 0.3
# Fewer than two of the draws would lie beyond each end.
HIGHEST_COVERAGE = 0.95
LONGEST_NAME = 200
UNDONE = "no total was made"


@dataclass(frozen=True, slots=True)
class ZoneTotal:
    """What a map says of one zone: estimated users, their share of the map, and between what they lie.

    Each user has mass 1, shared over the places they were at: `users` is the mass in the zone, so
    somebody who was there half of the time counts one half. `low` and `high` are None for a method
    that cannot say. `inside` is the part of the zone that lies inside the map's area: of the rest
    nothing is known.
    """

    name: str
    users: float
    share: float
    low: float | None
    high: float | None
    inside: float

    @property
    def remark(self) -> str:
        """What a reader has to know of where the zone lies, or nothing."""
        if self.inside <= 0:
            return "outside the area: nobody was counted there"
        return f"{self.inside:.0%} of it inside the area" if self.inside < 0.995 else ""


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """A named place: one or several polygons that do not overlap."""

    name: str
    polygons: tuple[Polygon, ...]

    @property
    def size(self) -> float:
        """Its area in the units of its positions."""
        return sum(
            abs(signed_area(polygon[0])) - sum(abs(signed_area(hole)) for hole in polygon[1:])
            for polygon in self.polygons
            if polygon
        )


def zone_totals(
    release: HeatmapRelease, zones: Sequence[Zone], *, coverage: float = 0.9
) -> tuple[ZoneTotal, ...]:
    """Users of a map in each zone, with intervals meant to hold in `coverage` of the zones that have users.

    Zones may overlap; each is counted by itself.

    A cell's mass is shared by the exact area of the zone in it, on cells of level FINEST_ZONES or
    the grid's; mass below that is taken to be even, so an estimate errs by at most the mass of the
    cells on the zone's border. Nobody was counted outside the bounds, so a cell across them has its
    mass inside. Intervals are quantiles over maps that could have led to what was released, for
    methods that can draw them; within a cell of level FINEST_DRAWS the zone's part is the estimated
    one. A low end of less than a tenth of a user is nobody. Where the map follows a prior, which
    those maps do not know, intervals are widened to hold the estimate.

    Privacy: post-processing of what was released; it costs nothing.

    Args:
        release: The map.
        zones: The zones; they may overlap.
        coverage: The part of zones with users whose interval should hold, at most 0.95.

    Returns:
        A total for each zone, in order; without an interval where the map has no posterior.

    Raises:
        InvalidParameter: The coverage is out of range.
        InvalidInput: The outlines of a zone cross or overlap.

    """
    if not 0 < coverage <= HIGHEST_COVERAGE:
        raise InvalidParameter(
            f"coverage must lie in (0, {HIGHEST_COVERAGE}], got {coverage}; {UNDONE}"
        )
    area, shares = release.area, release.shares
    level = min(area.grid.levels, FINEST_ZONES)
    image = shares.image(level)
    masks = [_Mask.of(zone, area, level) for zone in zones]
    parts = [mask.mass(image) for mask in masks]
    ends = _intervals(release, masks, image, coverage=coverage)
    total = release.tiles.total
    return tuple(
        ZoneTotal(
            zone.name,
            total * part,
            part,
            None if end is None else min(end[0], total * part),
            None if end is None else max(end[1], total * part),
            mask.inside,
        )
        for zone, mask, part, end in zip(zones, masks, parts, ends, strict=True)
    )


def read_zones(zones: str | Path | Mapping[str, Any], *, name: str = "name") -> tuple[Zone, ...]:
    """Zones of a GeoJSON file of polygons, or of a mapping from names to the coordinates of one.

    A file names each polygon by its property `name`; those of one name are one zone. They come in
    the order of the file.

    Args:
        zones: A GeoJSON file of polygons, or a mapping from names to coordinates.
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
    if isinstance(zones, Mapping):
        return _checked([(key, _coordinates(key, value)) for key, value in zones.items()])
    data = read_bytes(zones, undone=UNDONE)
    named: list[tuple[str, tuple[Polygon, ...]]] = []
    for one in features_of(data, str(zones), undone=UNDONE):
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
    return _checked(named)


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


def _checked(named: list[tuple[str, tuple[Polygon, ...]]]) -> tuple[Zone, ...]:
    joined: dict[str, tuple[Polygon, ...]] = {}
    for key, polygons in named:
        if not key.strip() or not key.isprintable() or len(key) > LONGEST_NAME:
            raise InvalidInput(
                f"the name of a zone is printable and has 1 to {LONGEST_NAME} letters, got {key[:60]!r}; "
                f"{UNDONE}"
            )
        joined[key] = (*joined.get(key, ()), *polygons)
    zones = tuple(Zone(key, polygons) for key, polygons in joined.items())
    for zone in zones:
        if not zone.size > 0:
            raise InvalidInput(f"a zone must have an area, {zone.name!r} has none; {UNDONE}")
    if not zones:
        raise InvalidInput(f"there must be at least one zone, got none; {UNDONE}")
    return zones


# -- zones on cells


@dataclass(frozen=True, slots=True, eq=False)
class _Mask:
    """The part of each cell's mass that is a zone's, in the rows and columns around it."""

    rows: slice
    columns: slice
    weights: FloatArray
    inside: float

    @classmethod
    def of(cls, zone: Zone, area: Area, level: int) -> _Mask:
        """The mask of a zone on the cells of a level, each cut to its part inside the bounds."""
        x, y, first_column, first_row = _lines(area, level)
        edges = np.concatenate([ring_edges(polygon) for polygon in zone.polygons])
        copies = [moved(edges, across) for across in turns(area)]
        near = [one for one in copies if _meets(one, x, y)]
        if not near:
            return cls(slice(0), slice(0), np.zeros((0, 0)), 0.0)
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

    def whole(self, side: int) -> FloatArray:
        """The weights on all cells of a level with so many to a side."""
        out = np.zeros((side, side))
        out[self.rows, self.columns] = self.weights
        return out


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


# -- intervals


def _intervals(
    release: HeatmapRelease, masks: list[_Mask], image: FloatArray, *, coverage: float
) -> list[tuple[float, float] | None]:
    """Between what the users of each zone lie, in maps that could have led to what was released."""
    if release.posterior is None:
        return [None] * len(masks)
    level = min(release.area.grid.levels, FINEST_DRAWS)
    maps = maps_inside(release.posterior, release.area, level)
    tail = TAIL * (1 - coverage) / 2
    ends = [tail, 1 - tail]
    out: list[tuple[float, float] | None] = []
    for mask in masks:
        weights = _coarse(mask.whole(len(image)), image, 1 << level)
        sums = np.tensordot(maps, weights, axes=2)
        low, high = np.quantile(sums, ends).tolist()
        out.append((low if low >= NEXT_TO_NOBODY else 0.0, high))
    return out


def _coarse(weights: FloatArray, image: FloatArray, side: int) -> FloatArray:
    """Weights of coarser cells: the part of each one's estimated mass, or of its area where there is none."""
    if len(weights) == side:
        return weights
    shape = (side, len(weights) // side, side, len(weights) // side)
    held, of_all = (
        (weights * image).reshape(shape).sum(axis=(1, 3)),
        image.reshape(shape).sum(axis=(1, 3)),
    )
    even = weights.reshape(shape).mean(axis=(1, 3))
    return np.asarray(np.where(of_all > 0, held / np.where(of_all > 0, of_all, 1), even))


# -- files


def totals_csv(totals: tuple[ZoneTotal, ...]) -> bytes:
    """A row for each zone: name, users, share, low, high, inside; low and high are empty where unknown.

    Args:
        totals: What `zone_totals` returned.

    Returns:
        The bytes of a CSV file with a header.

    """
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(ZoneTotal.__dataclass_fields__)
    table.writerows(asdict(one).values() for one in totals)
    return out.getvalue().encode()


def totals_geojson(
    release: HeatmapRelease, zones: Sequence[Zone], totals: tuple[ZoneTotal, ...]
) -> bytes:
    """The zones as a FeatureCollection (RFC 7946) with their totals; "sfumato" is the map's report.

    Args:
        release: The map.
        zones: The zones.
        totals: Their totals, in the same order.

    Returns:
        The bytes of a GeoJSON file.

    """
    from sfumato.heatmap.export.geojson import report

    lines = ",\n".join(
        json.dumps(
            {
                "type": "Feature",
                "geometry": {
                    "type": "MultiPolygon",
                    "coordinates": [_rings(polygon) for polygon in zone.polygons],
                },
                "properties": asdict(one),
            },
            allow_nan=False,
        )
        for zone, one in zip(zones, totals, strict=True)
    )
    about = json.dumps(report(release), allow_nan=False)
    return (
        f'{{"type":"FeatureCollection",\n"sfumato":{about},\n"features":[\n{lines}\n]}}\n'.encode()
    )


def _rings(polygon: Polygon) -> list[Any]:
    """Outlines turn left and holes right, as RFC 7946 asks (3.1.6)."""
    return [
        (ring if (signed_area(ring) >= 0) == (number == 0) else ring[::-1]).tolist()
        for number, ring in enumerate(polygon)
    ]
