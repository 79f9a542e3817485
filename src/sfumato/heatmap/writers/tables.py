"""The map as tables: one row for each cell, or for each hexagon of H3."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, MissingPackage
from sfumato.heatmap.writers.geojson import GEO
from sfumato.heatmap.writers.shapes import RADIUS, Cells, cells_of

if TYPE_CHECKING:
    from sfumato.heatmap.result import HeatmapRelease

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

FINEST_H3 = 15
MOST_HEXAGONS = 100_000  # on the grid, when the resolution is ours to choose
MOST_POINTS = 4_000_000  # enough for that many hexagons, whatever the map
POINTS_A_SIDE = 3  # lattice points along the width of a hexagon, at least: a hexagon holds about nine


def cell_table(release: HeatmapRelease, level: int | None = None) -> bytes:
    """CSV, one row for each cell with mass: level, edges, share, users; in degrees also users per km2.

    Longitudes go on past 180 across the antimeridian, so that west is always below east.
    """
    cells = cells_of(release.tiles, level)
    degrees = release.area.kind == "degrees"
    edges = ("west", "south", "east", "north") if degrees else ("low_x", "low_y", "high_x", "high_y")
    columns = [cells.levels, *cells.boxes.T, cells.shares, cells.users]
    names = ["level", *edges, "share", "users"]
    if degrees:
        columns.append(cells.users / cells.square_kilometers)
        names.append("density_per_km2")
    return _csv(names, columns)


def h3_csv(release: HeatmapRelease, level: int | None = None, *, resolution: int | None = None) -> bytes:
    """CSV of hexagons: `h3` (its index as text) and `share`."""
    indices, shares = hexagons(release, level, resolution=resolution)
    return _csv(["h3", "share"], [indices, shares])


def h3_parquet(release: HeatmapRelease, level: int | None = None, *, resolution: int | None = None) -> bytes:
    """Parquet of hexagons: `h3` (its index as text) and `share`; the statement is in its schema."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sfumato.heatmap.writers.geotiff import tags

    indices, shares = hexagons(release, level, resolution=resolution)
    table = pa.table({"h3": pa.array(indices, pa.string()), "share": pa.array(shares, pa.float64())})
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(tags(release)), out)
    return out.getvalue()


def h3_resolution(release: HeatmapRelease, level: int | None = None) -> int:
    """The resolution whose hexagons are nearest in area to a cell, from public parameters alone.

    Coarser, if the grid would hold more than a hundred thousand of them.
    """
    grid = release.area.grid
    width, height = _kilometers(release)
    cell = width * height / 4 ** (grid.levels if level is None else level)
    allowed = [r for r in range(FINEST_H3 + 1) if width * height / hexagon_area(r) <= MOST_HEXAGONS]
    return min(allowed, key=lambda r: abs(math.log(hexagon_area(r) / cell)))


def hexagon_area(resolution: int) -> float:
    """The mean area of an H3 cell in km2: the sphere over the 2 + 120 * 7^r cells of resolution r."""
    return 4 * math.pi * RADIUS**2 / (2 + 120 * 7.0**resolution)


def hexagons(
    release: HeatmapRelease, level: int | None = None, *, resolution: int | None = None
) -> tuple[list[str], FloatArray]:
    """Hexagons with mass, by index, and their shares, which add up to 1.

    Every cell hands its share in equal parts to the points of a lattice on it, at least three to the width of
    a hexagon, and each point hands it to the hexagon around it. So the share of a hexagon is wrong by at most
    what lies on the lattice squares that its border crosses. Cells smaller than a lattice square are taken
    together first.
    """
    if release.area.kind != "degrees":
        raise InvalidParameter(
            f"H3 is in longitudes and latitudes, the map is in {release.area.kind}; write .csv instead; "
            "nothing was written"
        )
    chosen = h3_resolution(release, level) if resolution is None else resolution
    if not 0 <= chosen <= FINEST_H3:
        raise InvalidParameter(
            f"an H3 resolution is from 0 to {FINEST_H3}, got {chosen}; nothing was written"
        )
    try:
        import h3.api.numpy_int as h3
    except ImportError:
        raise MissingPackage(GEO) from None
    step = math.sqrt(hexagon_area(chosen)) / POINTS_A_SIDE
    coarsest = math.floor(math.log2(max(1.0, min(_kilometers(release)) / step)))
    cells = cells_of(release.tiles, min(release.area.grid.levels if level is None else level, coarsest))
    sides = _points_a_side(cells, step)
    if (sides**2).sum() > MOST_POINTS:
        raise InvalidParameter(
            f"hexagons of resolution {chosen} are too fine for this map: it would take more than "
            f"{MOST_POINTS} points; ask for a coarser resolution; nothing was written"
        )
    found: dict[int, float] = {}
    for x, y, share in _lattice(cells, sides):
        for longitude, latitude in zip(x.tolist(), y.tolist(), strict=True):
            index = int(h3.latlng_to_cell(latitude, longitude, chosen))
            found[index] = found.get(index, 0.0) + share
    order = sorted(found)
    return [f"{index:x}" for index in order], np.array([found[index] for index in order])


def _kilometers(release: HeatmapRelease) -> tuple[float, float]:
    """Width and height of the grid on the ground, at the middle latitude."""
    width, height = release.area.cell_size
    return width * release.area.grid.side / 1000, height * release.area.grid.side / 1000


def _points_a_side(cells: Cells, step: float) -> IntArray:
    """How many lattice points along the side of each cell, where it is longest, keep them a step apart."""
    west, south, east, north = cells.boxes.T
    nearest = np.where(south * north < 0, 0, np.minimum(abs(south), abs(north)))
    longest = np.maximum((east - west) * np.cos(np.radians(nearest)), north - south)
    return np.asarray(np.maximum(1, np.ceil(np.radians(longest) * RADIUS / step)), dtype=np.int64)


def _lattice(cells: Cells, sides: IntArray) -> Iterator[tuple[FloatArray, FloatArray, float]]:
    """For each cell the longitudes and latitudes of its points and the share that each of them carries."""
    for box, side, share in zip(cells.boxes.tolist(), sides.tolist(), cells.shares.tolist(), strict=True):
        middle = (np.arange(side) + 0.5) / side
        x = (box[0] + (box[2] - box[0]) * middle + 180) % 360 - 180
        across, up = np.meshgrid(x, box[1] + (box[3] - box[1]) * middle)
        yield across.ravel(), up.ravel(), share / side**2


def _csv(names: list[str], columns: list[Any]) -> bytes:
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(names)
    lists = [column if isinstance(column, list) else column.tolist() for column in columns]
    table.writerows(zip(*lists, strict=True))
    return out.getvalue().encode()
