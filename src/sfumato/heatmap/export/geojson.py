"""Cells as GeoJSON and as a GeoDataFrame: one polygon for each, the guarantee beside them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter, MissingPackage
from sfumato.heatmap.accuracy.noise_floor import noise_share
from sfumato.heatmap.export.merged import MergedCells, merged_cells
from sfumato.heatmap.export.shapes import Cells, Ring, cells_of, rings
from sfumato.heatmap.reference_systems import ReferenceSystem
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease

GEO = "pip install 'sfumato[geo]'"
DENSITY = "density_per_km2"


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
