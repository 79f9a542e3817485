"""How many people a map has in each of several zones: districts, parks, areas of interest."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidParameter
from sfumato.files import Polygon
from sfumato.heatmap.analysis.overlap import signed_area
from sfumato.heatmap.analysis.zone_intervals import FINEST_ZONES, zone_limits
from sfumato.heatmap.analysis.zone_shapes import UNDONE, Zone, ZoneMask, in_degrees, placed
from sfumato.heatmap.measure import HIGHEST_COVERAGE

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease


@dataclass(frozen=True, slots=True)
class ZoneTotal:
    """What a map says of one zone: estimated users, their share of the map, and between what they lie.

    Each user has mass 1, shared over the places they were at: `users` is the mass in the zone, so
    somebody who was there half of the time counts one half. From `low` to `high` it lies if mass
    stands in the cells that the border cuts as the page on uncertainty says, from `least` to `most`
    wherever it stands in them; all four are None for a method that cannot say. `inside` is the part
    of the zone that lies inside the map's area: of the rest nothing is known. Where the map counts
    rows, `counted` is "rows", and all of these are numbers of rows.
    """

    name: str
    users: float
    share: float
    low: float | None
    high: float | None
    inside: float
    least: float | None = None
    most: float | None = None
    counted: str = "users"

    def to_json(self) -> dict[str, Any]:
        """Every number by its name; that of users or rows is under what is counted."""
        found = asdict(self)
        return {
            found["counted"] if name == "users" else name: value
            for name, value in found.items()
            if name != "counted"
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ZoneTotal:
        """What `to_json` gave."""
        counted = "rows" if "rows" in data else "users"
        rest = {name: value for name, value in data.items() if name != counted}
        return cls(users=data[counted], counted=counted, **rest)

    @property
    def remark(self) -> str:
        """What a reader has to know of where the zone lies, or nothing."""
        if self.inside <= 0:
            return "outside the area: nobody was counted there"
        return f"{self.inside:.0%} of it inside the area" if self.inside < 0.995 else ""


def zone_totals(
    release: HeatmapRelease, zones: Sequence[Zone], *, coverage: float = 0.9
) -> tuple[ZoneTotal, ...]:
    """Users of a map in each zone, each with an interval that holds with chance `coverage` or more.

    The chance is over the noise, for every zone by itself: not for most of them. Zones may overlap.

    A cell's mass is shared by the exact area of the zone in it, on cells of level FINEST_ZONES or
    the grid's; mass below that is taken to be even. Nobody was counted outside the bounds, so a
    cell across them has its mass inside. `low` and `high` allow for the noise and, by a prior, for
    where the mass of cells that the border cuts may stand; `least` and `most` need no prior: all
    of it may be in the zone, or none. For zoom the noise has its own law and nothing is assumed of
    the map; other methods draw maps that could have led to what was released, if they can.

    Privacy: post-processing of what was released; it costs nothing.

    Args:
        release: The map.
        zones: The zones; they may overlap.
        coverage: The chance that the interval of a zone holds, at most 0.95.

    Returns:
        A total for each zone, in order; without intervals where the map has no posterior.

    Raises:
        InvalidParameter: The coverage is out of range.
        InvalidInput: The outlines of a zone cross or overlap, or it is in another reference system
            than the map and not in degrees.

    """
    if not 0 < coverage <= HIGHEST_COVERAGE:
        raise InvalidParameter(
            f"coverage must lie in (0, {HIGHEST_COVERAGE}], got {coverage}; {UNDONE}"
        )
    area, total = release.area, release.tiles.total
    level = min(area.grid.levels, FINEST_ZONES)
    image = release.shares.image(level)
    masks = [ZoneMask.of(placed(zone, area, level), area, level) for zone in zones]
    parts = [mask.mass(image) for mask in masks]
    limits = zone_limits(release, masks, [total * part for part in parts], coverage=coverage)
    scale, counted = release.measure.scale, release.measure.column
    return tuple(
        ZoneTotal(
            zone.name,
            scale * total * part,
            part,
            None if found is None else scale * found.low,
            None if found is None else scale * found.high,
            mask.inside,
            None if found is None else scale * found.least,
            None if found is None else scale * found.most,
            counted,
        )
        for zone, mask, part, found in zip(zones, masks, parts, limits, strict=True)
    )


# -- files


def totals_csv(totals: tuple[ZoneTotal, ...]) -> bytes:
    """A row for each zone: name, users (or rows), share, low, high, inside, least, most; empty where unknown.

    Args:
        totals: What `zone_totals` returned.

    Returns:
        The bytes of a CSV file with a header.

    """
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    empty = ZoneTotal("", 0, 0, None, None, 0)
    table.writerow((totals or (empty,))[0].to_json())
    table.writerows(one.to_json().values() for one in totals)
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
                "properties": one.to_json(),
            },
            allow_nan=False,
        )
        for zone, one in zip(
            (in_degrees(zone, release.area) for zone in zones), totals, strict=True
        )
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
