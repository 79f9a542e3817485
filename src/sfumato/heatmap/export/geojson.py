"""Cells as GeoJSON and as a GeoDataFrame: one polygon for each, the guarantee beside them.

Those of the smoothed map are few: whole quarters where it is flat or may be noise, fine ones where it
is not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import BoolArray, FloatArray
from sfumato.errors import InvalidParameter, MissingPackage
from sfumato.heatmap.accuracy.noise_floor import noise_share
from sfumato.heatmap.accuracy.noise_mark import FINEST_SEEN
from sfumato.heatmap.export.picture import drawn
from sfumato.heatmap.export.shapes import Cells, Ring, cells_of, rings
from sfumato.heatmap.reference_systems import ReferenceSystem
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease

GEO = "pip install 'sfumato[geo]'"
DENSITY = "density_per_km2"
# Of the color scale: cells whose shades differ by less are taken together.
STEP = 1 / 16
# A share that is nothing: what a blur leaves far from where anybody is.
NOBODY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class MergedCells:
    """Cells of the smoothed map inside the bounds, and which of them may be noise."""

    cells: Cells
    noise: BoolArray


def geojson(
    release: HeatmapRelease, level: int | None = None, *, every_cell: bool = False
) -> bytes:
    """The map as a FeatureCollection (RFC 7946): share, users (or rows), density and level of cells.

    Cells are those of the smoothed map, four of them one where it is flat, and `noise` says which
    may be; with `every_cell`, all cells with mass as they were released. The member "sfumato" is
    the report without its tiles and counts, and what the features add up to.
    """
    check_geojson(release.area)
    measure = release.measure
    found = polygons_of(release, level, every_cell=every_cell)
    cells = found.cells
    rows = zip(
        cells.levels.tolist(),
        cells.boxes.tolist(),
        cells.shares.tolist(),
        cells.amounts.tolist(),
        densities(cells, release.area).tolist(),
        found.noise.tolist(),
        strict=True,
    )
    features = [
        {
            "type": "Feature",
            "geometry": _geometry(rings(box, release.area)),
            "properties": {
                "share": float(f"{share:.10g}"),
                measure.column: float(f"{amount:.6g}"),
                DENSITY: float(f"{density:.6g}"),
                "level": depth,
                "noise": doubtful,
            },
        }
        for depth, box, share, amount, density, doubtful in rows
    ]
    shown = {
        "cells": len(features),
        "smoothed": not every_cell,
        "share": float(cells.shares.sum()),
        measure.column: float(cells.amounts.sum()),
        "total": release.measure.scale * release.tiles.total,
    }
    # One feature to a line: it can be read, and compared line by line.
    lines = ",\n".join(json.dumps(one, separators=(",", ":"), allow_nan=False) for one in features)
    about = json.dumps({**report(release), "features": shown}, allow_nan=False)
    return (
        f'{{"type":"FeatureCollection",\n"sfumato":{about},\n"features":[\n{lines}\n]}}\n'.encode()
    )


def polygons_of(release: HeatmapRelease, level: int | None, *, every_cell: bool) -> MergedCells:
    """The cells of a .geojson, and which of them may be noise."""
    if not every_cell:
        return merged_cells(release, level)
    cells = cells_of(release.tiles, level, scale=release.measure.scale)
    # What may be noise is said of the smoothed map; a cell that was counted has a noise of its own.
    return MergedCells(cells, cells.shares < noise_share(release))


def densities(cells: Cells, area: Area) -> FloatArray:
    """People to a square kilometre of each cell: on a sphere, or by the metres of a reference system."""
    if area.kind == "degrees":
        return cells.amounts / cells.square_kilometers
    west, south, east, north = cells.boxes.T
    return np.asarray(cells.amounts / ((east - west) * (north - south) * area.metre**2 / 1e6))


def check_geojson(area: Area) -> None:
    """Refuse an area that has no longitudes and latitudes."""
    if area.kind != "degrees" and not area.crs:
        raise InvalidParameter(
            f"GeoJSON is in longitudes and latitudes, the map is in {area.kind}; write .csv instead; "
            "nothing was written"
        )
    if area.crs:
        ReferenceSystem.named(area.crs)


def report(release: HeatmapRelease) -> dict[str, Any]:
    """The JSON report without its tiles and counts, for files that hold the map in their own way."""
    found = release.to_json()
    del found["tiles"], found["counts"]
    return found


def _geometry(parts: list[Ring]) -> dict[str, Any]:
    if len(parts) == 1:
        return {"type": "Polygon", "coordinates": parts}
    return {"type": "MultiPolygon", "coordinates": [[ring] for ring in parts]}


def to_geodataframe(release: HeatmapRelease, level: int | None = None) -> Any:
    """The cells as a GeoDataFrame: geometry, share, users (or rows), level; EPSG:4326 where there are degrees.

    Args:
        release: The map.
        level: The finest level of cells; that of the map if None.

    Returns:
        A GeoDataFrame with geometry, share, users and level.

    Raises:
        MissingPackage: geopandas or shapely is not installed.

    """
    try:
        import geopandas
        from shapely.geometry import MultiPolygon, Polygon
    except ImportError:
        raise MissingPackage(GEO) from None
    measure = release.measure
    cells = cells_of(release.tiles, level, scale=measure.scale)
    parts = [[Polygon(ring) for ring in rings(box, release.area)] for box in cells.boxes.tolist()]
    frame = geopandas.GeoDataFrame(
        {"share": cells.shares, measure.column: cells.amounts, "level": cells.levels},
        geometry=[one[0] if len(one) == 1 else MultiPolygon(one) for one in parts],
        crs="EPSG:4326" if release.area.kind == "degrees" or release.area.crs else None,
    )
    frame.attrs["sfumato"] = report(release)
    return frame


def merged_cells(release: HeatmapRelease, level: int | None = None) -> MergedCells:
    """Cells of at most a level (the picture's blur has no detail below 2**8 to a side) as few as do.

    Four cells become one if the shades of all that is in it lie in a sixteenth of the color scale,
    or all of it is below the noise mark; its mass is theirs. All mass inside the bounds is
    there; cells of nobody are not.
    """
    grid = release.area.grid
    finest = min(grid.levels, FINEST_SEEN if level is None else level)
    found = drawn(release, finest)
    first_column, first_row, last_column, last_row = release.area.window(finest)
    window = np.s_[first_row:last_row, first_column:last_column]
    masses, inside = np.zeros((1 << finest, 1 << finest)), np.zeros((1 << finest,) * 2, dtype=bool)
    masses[window], inside[window] = found.shares, True
    shade = np.sqrt(np.minimum(masses, found.top) / found.top)
    mark = np.sqrt(min(found.floor / found.top, 1.0)) if found.floor > 0 else 0.0
    low, high, whole = shade, shade, inside
    parts: list[tuple[int, BoolArray, FloatArray]] = []
    for depth in range(finest, 0, -1):
        least, most, sums = (
            pick(_quarters(one), axis=(1, 3))
            for pick, one in ((np.min, low), (np.max, high), (np.sum, masses))
        )
        flat = (most - least <= STEP) | (most < mark)
        joined = _quarters(whole).all(axis=(1, 3)) & flat
        parts.append((depth, whole & ~_spread(joined), masses))
        low, high, masses, whole = least, most, sums, joined
    parts.append((0, whole, masses))
    return _cells(release, parts, found.floor * 4.0**finest)


def _quarters(image: FloatArray | BoolArray) -> FloatArray | BoolArray:
    half = len(image) // 2
    return image.reshape(half, 2, half, 2)


def _spread(image: BoolArray) -> BoolArray:
    return np.repeat(np.repeat(image, 2, axis=0), 2, axis=1)


def _cells(
    release: HeatmapRelease, parts: list[tuple[int, BoolArray, FloatArray]], density: float
) -> MergedCells:
    levels, codes, shares, boxes = [], [], [], []
    for depth, chosen, masses in reversed(parts):
        grid = release.area.grid.at_level(depth)
        found = grid.codes_of_image()[chosen]
        order = np.argsort(found)
        levels.append(np.full(found.size, depth, dtype=np.int64))
        codes.append(found[order])
        shares.append(masses[chosen][order])
        boxes.append(grid.boxes(found[order]))
    depths, share = np.concatenate(levels), np.concatenate(shares)
    some = share > NOBODY
    amount = release.measure.scale * release.tiles.total
    places, sides = np.concatenate(codes)[some], np.concatenate(boxes)[some]
    depths, share = depths[some], share[some]
    return MergedCells(
        Cells(depths, places, sides, share, share * amount), share * 4.0**depths < density
    )
