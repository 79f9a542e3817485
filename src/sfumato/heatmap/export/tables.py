"""The map as tables: one row for each cell, or for each hexagon of H3."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter, MissingPackage
from sfumato.heatmap.export.geojson import GEO
from sfumato.heatmap.export.shapes import RADIUS, cells_of
from sfumato.heatmap.tiles import Tiles
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease


FINEST_H3 = 15
MOST_HEXAGONS = 100_000  # on the grid, when the resolution is ours to choose
MOST_POINTS = 4_000_000  # on the whole grid: a square one takes at most 36 for a hexagon
POINTS_A_SIDE = (
    3  # lattice points along the width of a hexagon, at least: a hexagon holds about nine
)


def cell_table(release: HeatmapRelease, level: int | None = None) -> bytes:
    """CSV, one row for each cell with mass: level, edges, share, users (or rows); in degrees also per km2.

    Longitudes go on past 180 across the antimeridian, so that west is always below east.
    """
    measure = release.measure
    cells = cells_of(release.tiles, level, scale=measure.scale)
    degrees = release.area.kind == "degrees"
    edges = (
        ("west", "south", "east", "north") if degrees else ("low_x", "low_y", "high_x", "high_y")
    )
    columns = [cells.levels, *cells.boxes.T, cells.shares, cells.amounts]
    names = ["level", *edges, "share", measure.column]
    if degrees:
        columns.append(cells.amounts / cells.square_kilometers)
        names.append("density_per_km2")
    return _csv(names, columns)


def h3_csv(
    release: HeatmapRelease, level: int | None = None, *, resolution: int | None = None
) -> bytes:
    """CSV of hexagons: `h3` (its index as text) and `share`."""
    indices, shares = hexagons(release, level, resolution=resolution)
    return _csv(["h3", "share"], [indices, shares])


def h3_parquet(
    release: HeatmapRelease, level: int | None = None, *, resolution: int | None = None
) -> bytes:
    """Parquet of hexagons: `h3` (its index as text) and `share`; the statement is in its schema."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sfumato.heatmap.export.geotiff import tags

    indices, shares = hexagons(release, level, resolution=resolution)
    table = pa.table(
        {"h3": pa.array(indices, pa.string()), "share": pa.array(shares, pa.float64())}
    )
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(tags(release)), out)
    return out.getvalue()


def h3_resolution(area: Area, level: int | None = None) -> int:
    """The resolution whose hexagons are nearest in area to a cell, from public parameters alone.

    Coarser, if the grid would hold more than a hundred thousand of them or take too many points.
    """
    finest = area.grid.levels if level is None else level
    width, height = _kilometers(area)
    cell = width * height / 4**finest
    allowed = [
        one
        for one in range(FINEST_H3 + 1)
        if width * height / hexagon_area(one) <= MOST_HEXAGONS
        and _lattice(area, finest, one).size <= MOST_POINTS
    ]
    return min(allowed, key=lambda one: abs(math.log(hexagon_area(one) / cell)))


def check_h3(area: Area, levels: int | None = None, resolution: int | None = None) -> None:
    """Refuse hexagons that some map of an area could not be written as, before anything is read or charged.

    `levels` is the finest level written, that of the grid if none is given. Without a resolution we
    choose one that fits, so only an area that is not in degrees is refused.
    """
    if area.kind != "degrees":
        raise InvalidParameter(
            f"H3 is in longitudes and latitudes, the map is in {area.kind}; write .csv instead; "
            "nothing was written"
        )
    finest = area.grid.at_level(area.grid.levels if levels is None else levels).levels
    if resolution is None:
        return
    if not 0 <= resolution <= FINEST_H3:
        raise InvalidParameter(
            f"an H3 resolution is from 0 to {FINEST_H3}, got {resolution}; nothing was written"
        )
    if _lattice(area, finest, resolution).size > MOST_POINTS:
        raise InvalidParameter(
            f"hexagons of resolution {resolution} are too fine for this map: it could take more than "
            f"{MOST_POINTS} points; ask for a coarser resolution, ours would be "
            f"{h3_resolution(area, finest)}; nothing was written"
        )


def hexagon_area(resolution: int) -> float:
    """The mean area of an H3 cell in km2: the sphere over the 2 + 120 * 7^r cells of resolution r."""
    return 4 * math.pi * RADIUS**2 / (2 + 120 * 7.0**resolution)


def hexagons(
    release: HeatmapRelease, level: int | None = None, *, resolution: int | None = None
) -> tuple[list[str], FloatArray]:
    """Hexagons with mass, by index, and their shares, which add up to 1.

    Every cell hands its share in equal parts to the points of a lattice on it, at least three to
    the width of a hexagon, and each point hands it to the hexagon around it. So the share of a
    hexagon is wrong by at most what lies on the lattice squares that its border crosses. Columns
    and rows narrower than a lattice square are taken together first.
    """
    area = release.area
    check_h3(area, level, resolution)
    chosen = h3_resolution(area, level) if resolution is None else resolution
    try:
        import h3.api.numpy_int as h3
    except ImportError:
        raise MissingPackage(GEO) from None
    lattice = _lattice(area, area.grid.levels if level is None else level, chosen)
    found: dict[int, float] = {}
    for longitudes, latitude, shares in _points(
        _raster(release.tiles.normalized(), lattice), lattice
    ):
        for longitude, share in zip(longitudes, shares, strict=True):
            index = int(h3.latlng_to_cell(latitude, longitude, chosen))
            found[index] = found.get(index, 0.0) + share
    order = sorted(found)
    return [f"{index:x}" for index in order], np.array([found[index] for index in order])


@dataclass(frozen=True, slots=True, eq=False)
class _Lattice:
    """A grid cut into columns and rows, each as wide as a step or as the finest cell, and points in them.

    `across` and `up` are how many points lie along the width and the height of a cell, for each
    row.
    """

    x: FloatArray
    y: FloatArray
    across: IntArray
    up: int

    @property
    def size(self) -> int:
        """How many points there are, if every cell has mass."""
        return int(self.across.sum()) * (self.x.size - 1) * self.up


def _lattice(area: Area, finest: int, resolution: int) -> _Lattice:
    step = math.sqrt(hexagon_area(resolution)) / POINTS_A_SIDE
    columns, rows = (
        min(finest, math.floor(math.log2(max(1.0, side / step)))) for side in _kilometers(area)
    )
    x, y = area.grid.at_level(columns).edges()[0], area.grid.at_level(rows).edges()[1]
    south, north = y[:-1], y[1:]
    # A cell is widest where it is nearest to the equator.
    nearest = np.where(south * north < 0, 0, np.minimum(abs(south), abs(north)))
    width = np.radians(x[1] - x[0]) * np.cos(np.radians(nearest)) * RADIUS
    height = float(np.radians(y[1] - y[0]) * RADIUS)
    across = np.maximum(1, np.ceil(width / step)).astype(np.int64)
    return _Lattice(x, y, across, max(1, math.ceil(height / step)))


def _raster(tiles: Tiles, lattice: _Lattice) -> FloatArray:
    """Mass on the cells of a lattice [row, column]: finer tiles add up, coarser ones are cut."""
    sides = lattice.y.size - 1, lattice.x.size - 1
    out = np.zeros(sides)
    for level in np.unique(tiles.levels).tolist():
        here = tiles.levels == level
        column, row = tiles.grid.at_level(level).decode(tiles.codes[here])
        rows, columns = (min(side, 1 << level) for side in sides)
        places = (row * rows >> level) * columns + (column * columns >> level)
        sums = np.bincount(places, tiles.masses[here], minlength=rows * columns).reshape(
            rows, 1, columns, 1
        )
        parts = out.reshape(rows, sides[0] // rows, columns, sides[1] // columns)
        parts += sums / (parts.shape[1] * parts.shape[3])
    return out


def _points(
    raster: FloatArray, lattice: _Lattice
) -> Iterator[tuple[list[float], float, list[float]]]:
    """Points with mass, line by line: longitudes, their latitude and the share that each of them carries."""
    width, height = lattice.x[1] - lattice.x[0], lattice.y[1] - lattice.y[0]
    for row in np.flatnonzero(raster.any(axis=1)).tolist():
        some, across = np.flatnonzero(raster[row]), int(lattice.across[row])
        parts = lattice.x[some][:, None] + width * (np.arange(across) + 0.5) / across
        longitudes = ((parts.ravel() + 180) % 360 - 180).tolist()
        shares = np.repeat(raster[row, some] / (across * lattice.up), across).tolist()
        for line in range(lattice.up):
            yield longitudes, float(lattice.y[row] + height * (line + 0.5) / lattice.up), shares


def _kilometers(area: Area) -> tuple[float, float]:
    """Width and height of the grid on the ground, at the middle latitude."""
    width, height = area.cell_size
    return width * area.grid.side / 1000, height * area.grid.side / 1000


def _csv(names: list[str], columns: list[Any]) -> bytes:
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(names)
    lists = [column if isinstance(column, list) else column.tolist() for column in columns]
    table.writerows(zip(*lists, strict=True))
    return out.getvalue().encode()
