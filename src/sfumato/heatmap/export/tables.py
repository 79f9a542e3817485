"""The map as tables: one row for each cell, or for each hexagon of H3."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter, MissingPackage
from sfumato.heatmap.analysis.cell_limits import finest_known, limits_of_cells, limits_of_sums
from sfumato.heatmap.export.geojson import DENSITY, GEO, densities, report
from sfumato.heatmap.export.shapes import RADIUS, Cells, cells_of
from sfumato.heatmap.reference_systems import ReferenceSystem
from sfumato.heatmap.tiles import Tiles
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.hotspot_results import HotspotsResult
    from sfumato.heatmap.results import HeatmapRelease


FINEST_H3 = 15
MOST_HEXAGONS = 100_000  # on the grid, when the resolution is ours to choose
MOST_POINTS = 4_000_000  # on the whole grid: a square one takes at most 36 for a hexagon
POINTS_A_SIDE = (
    3  # lattice points along the width of a hexagon, at least: a hexagon holds about nine
)


def cell_table(release: HeatmapRelease, level: int | None = None) -> bytes:
    """CSV, one row for each cell with mass: level, edges, share, users (or rows); on Earth also per km2.

    Longitudes go on past 180 across the antimeridian, so that west is always below east.
    """
    columns = _cell_columns(release, cells_of(release.tiles, level, scale=release.measure.scale))
    return _csv(list(columns), list(columns.values()))


def to_dataframe(release: HeatmapRelease, level: int | None = None) -> Any:
    """The cells as a pandas DataFrame: those of `.csv`, and `low` and `high` where they are known.

    Args:
        release: The map.
        level: The finest level of cells. If None, that of the map, or the finest whose cells have
            intervals (2**7 to a side).

    Returns:
        A DataFrame with a row for each cell with mass; intervals are 90 %, for each cell by itself.

    Raises:
        MissingPackage: pandas is not installed.

    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingPackage("pip install 'sfumato[pandas]'") from None
    known = finest_known(release)
    chosen = known if level is None else level
    cells = cells_of(release.tiles, chosen, scale=release.measure.scale)
    columns = _cell_columns(release, cells)
    if known is not None:
        ends = limits_of_cells(release, cells.levels, cells.codes, cells.amounts)
        columns["low"], columns["high"] = ends
    frame = pd.DataFrame(columns)
    frame.attrs["sfumato"] = release.statement
    return frame


def _cell_columns(release: HeatmapRelease, cells: Cells) -> dict[str, Any]:
    degrees = release.area.kind == "degrees"
    edges = (
        ("west", "south", "east", "north") if degrees else ("low_x", "low_y", "high_x", "high_y")
    )
    columns = {"level": cells.levels, **dict(zip(edges, cells.boxes.T, strict=True))}
    columns |= {"share": cells.shares, release.measure.column: cells.amounts}
    ground = degrees or release.area.crs
    return columns | ({DENSITY: densities(cells, release.area)} if ground else {})


def h3_csv(
    release: HeatmapRelease, level: int | None = None, *, resolution: int | None = None
) -> bytes:
    """CSV of hexagons: `h3` (its index as text), `share`, users (or rows), `low` and `high`."""
    columns = hexagon_columns(release, level, resolution=resolution)
    return _csv(list(columns), list(columns.values()))


def h3_parquet(
    release: HeatmapRelease, level: int | None = None, *, resolution: int | None = None
) -> bytes:
    """The same as Parquet; the statement is in its schema."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sfumato.heatmap.export.geotiff import tags

    columns = hexagon_columns(release, level, resolution=resolution)
    table = pa.table(
        {
            name: pa.array(values, pa.string() if name == "h3" else pa.float64())
            for name, values in columns.items()
        }
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


def hexagon_columns(
    release: HeatmapRelease, level: int | None = None, *, resolution: int | None = None
) -> dict[str, Any]:
    """Index, share, users (or rows) of hexagons with mass, and a 90 % interval for methods that can say so.

    An interval is that of one hexagon by itself, from maps that could have led to what was
    released; a cell of these maps that its border cuts may lie on either side.
    """
    names, parts, raster = _parts_of(release, level, resolution=resolution)
    measure, shares = release.measure, raster.ravel() @ parts
    amounts = measure.scale * release.tiles.total * shares
    found: dict[str, Any] = {"h3": names, "share": shares, measure.column: amounts}
    finest = finest_known(release)
    if finest is not None:
        from scipy import sparse  # loaded for H3 alone

        rows, columns = (_to_raster(side, 1 << finest) for side in raster.shape)
        weights = sparse.kron(rows, columns, format="csr") @ parts
        found["low"], found["high"] = limits_of_sums(release, weights, amounts)
    return found


def _to_raster(side: int, cells: int) -> Any:
    """The part [cell, strip] of each of some cells that is in each of `side` strips of the same length."""
    from scipy import sparse

    if side <= cells:
        at = np.arange(cells) * side // cells
        return sparse.csr_array((np.ones(cells), (np.arange(cells), at)), shape=(cells, side))
    at = np.arange(side) * cells // side
    share = np.full(side, cells / side)
    return sparse.csr_array((share, (at, np.arange(side))), shape=(cells, side))


def hexagons(
    release: HeatmapRelease, level: int | None = None, *, resolution: int | None = None
) -> tuple[list[str], FloatArray]:
    """Hexagons with mass, by index, and their shares, which add up to 1."""
    names, parts, raster = _parts_of(release, level, resolution=resolution)
    return names, raster.ravel() @ parts


def _parts_of(
    release: HeatmapRelease, level: int | None, *, resolution: int | None
) -> tuple[list[str], Any, FloatArray]:
    """Hexagons by index, the part [cell, hexagon] of each cell in each, and the shares of cells [row, column].

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
    from scipy import sparse

    lattice = _lattice(area, area.grid.levels if level is None else level, chosen)
    raster = _raster(release.tiles.normalized(), lattice)
    owners: list[IntArray] = []
    found: list[int] = []
    parts: list[FloatArray] = []
    for longitudes, latitude, cells, part in _points(raster, lattice):
        found += [int(h3.latlng_to_cell(latitude, longitude, chosen)) for longitude in longitudes]
        owners.append(cells)
        parts.append(np.full(cells.size, part))
    indices, at = np.unique(np.array(found, dtype=np.uint64), return_inverse=True)
    matrix = sparse.csr_array(
        (np.concatenate(parts), (np.concatenate(owners), at)), shape=(raster.size, indices.size)
    )
    return [f"{index:x}" for index in indices.tolist()], matrix, raster


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
) -> Iterator[tuple[list[float], float, IntArray, float]]:
    """Points of cells with mass, line by line: longitudes, their latitude, their cells, and a point's part."""
    width, height = lattice.x[1] - lattice.x[0], lattice.y[1] - lattice.y[0]
    for row in np.flatnonzero(raster.any(axis=1)).tolist():
        some, across = np.flatnonzero(raster[row]), int(lattice.across[row])
        parts = lattice.x[some][:, None] + width * (np.arange(across) + 0.5) / across
        longitudes = ((parts.ravel() + 180) % 360 - 180).tolist()
        cells = np.repeat(row * raster.shape[1] + some, across)
        for line in range(lattice.up):
            latitude = float(lattice.y[row] + height * (line + 0.5) / lattice.up)
            yield longitudes, latitude, cells, 1 / (across * lattice.up)


def _kilometers(area: Area) -> tuple[float, float]:
    """Width and height of the grid on the ground, at the middle latitude."""
    width, height = area.cell_size
    return width * area.grid.side / 1000, height * area.grid.side / 1000


def _texts(column: Any) -> list[Any]:
    """A column to write; numbers of which there are few different ones, such as edges, as text made once."""
    if isinstance(column, list) or column.dtype.kind != "f":
        return column if isinstance(column, list) else list(column.tolist())
    different, which = np.unique(column, return_inverse=True)
    if 4 * different.size > column.size:
        return list(column.tolist())
    return list(np.array([repr(one) for one in different.tolist()], dtype=object)[which])


def _csv(names: list[str], columns: list[Any]) -> bytes:
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(names)
    table.writerows(zip(*map(_texts, columns), strict=True))
    return out.getvalue().encode()


def hotspots_csv(result: HotspotsResult) -> bytes:
    """A row for each place: x, y, share, within and its interval, real, tested; empty where unknown."""
    out = io.StringIO()
    rows = result.rows()
    table = csv.DictWriter(out, list(rows[0]) if rows else ["x", "y", "share"], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return out.getvalue().encode()


def hotspots_geojson(release: HeatmapRelease, result: HotspotsResult) -> bytes:
    """Points with the properties of `hotspots_csv`; in degrees, where the map lies on the Earth."""
    system = ReferenceSystem.named(release.area.crs) if release.area.crs else None
    features = []
    for row in result.rows():
        x, y = row.pop("x"), row.pop("y")
        if system is not None:
            x, y = (float(one[0]) for one in system.to_degrees(np.array([x]), np.array([y])))
        point = {"type": "Point", "coordinates": [x, y]}
        features.append({"type": "Feature", "geometry": point, "properties": row})
    about = {**report(release), "within": result.to_json()["within"]}
    whole = {"type": "FeatureCollection", "sfumato": about, "features": features}
    return (json.dumps(whole, allow_nan=False) + "\n").encode()
