"""Write a map to a file: the suffix says how, and what would go wrong is said before anything is paid."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidParameter, MissingPackage
from sfumato.files import write_file
from sfumato.heatmap.export import archive, geojson, geotiff, page, picture, tables
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease

# What each suffix is, and the optional packages it takes.
SUFFIXES: dict[str, tuple[str, tuple[str, ...]]] = {
    ".png": ("picture with legend and guarantee", ()),
    ".tif": ("Cloud Optimized GeoTIFF", ("rasterio",)),
    ".tiff": ("Cloud Optimized GeoTIFF", ("rasterio",)),
    ".geojson": ("polygons", ()),
    ".csv": ("table of cells", ()),
    ".h3.csv": ("table of H3 hexagons", ("h3",)),
    ".h3.parquet": ("table of H3 hexagons", ("h3",)),
    ".npz": ("NumPy arrays", ()),
    ".html": ("page to pan and zoom, offline", ()),
    ".json": ("report with all tiles", ()),
}
DEGREES_ONLY = {".geojson", ".h3.csv", ".h3.parquet"}


def write(
    release: HeatmapRelease,
    path: str | Path,
    *,
    over: str | Path | None = None,
    level: int | None = None,
    h3_resolution: int | None = None,
    overwrite: bool = False,
) -> None:
    """Save a map as what the suffix of the path says; the file is there whole, or not at all.

    `level` is the resolution of pictures and arrays and the finest cell of tables; `over` is the
    image under the heat of a map in pixels (.png); a .json is always whole.
    """
    target = Path(path)
    check_outputs(
        [target], release.area, over=over, h3_resolution=h3_resolution, overwrite=overwrite
    )
    if level is not None:
        release.area.grid.at_level(level)
    match suffix_of(target):
        case ".png":
            data = picture.png(release, over=over, level=level)
        case ".tif" | ".tiff":
            data = geotiff.geotiff(release, level)
        case ".geojson":
            data = geojson.geojson(release, level)
        case ".csv":
            data = tables.cell_table(release, level)
        case ".h3.csv":
            data = tables.h3_csv(release, level, resolution=h3_resolution)
        case ".h3.parquet":
            data = tables.h3_parquet(release, level, resolution=h3_resolution)
        case ".npz":
            data = archive.npz(release, level)
        case ".html":
            data = page.html(release, level)
        case _:
            data = archive.report_json(release)
    save(target, data, overwrite=overwrite)


def check_outputs(
    paths: Iterable[str | Path],
    area: Area,
    *,
    over: str | Path | None = None,
    h3_resolution: int | None = None,
    overwrite: bool = False,
) -> None:
    """Refuse outputs that could not be written, before anything is read or charged.

    That is an unknown suffix, one that does not go with the kind of area, a missing package or
    folder, a file that exists already, the same file twice, an image that is none or not of the
    area.
    """
    targets = [Path(path) for path in paths]
    for target in targets:
        suffix = suffix_of(target)
        if suffix in DEGREES_ONLY and area.kind != "degrees":
            raise InvalidParameter(
                f"{suffix} is for longitudes and latitudes, the map is in {area.kind}: {target}; "
                "write .csv instead; nothing was written"
            )
        if any(importlib.util.find_spec(package) is None for package in SUFFIXES[suffix][1]):
            raise MissingPackage(geojson.GEO)
        if suffix.startswith(".h3"):
            tables.check_h3(area, area.grid.levels, h3_resolution)
        if not target.parent.is_dir():
            raise InvalidParameter(
                f"the folder of {target} must exist, it does not; nothing was written"
            )
        if target.is_dir() or (os.path.lexists(target) and not overwrite):
            raise InvalidParameter(f"{target} exists already and is kept; nothing was written")
        if not os.access(target.parent, os.W_OK):
            raise InvalidParameter(
                f"the folder of {target} cannot be written to; nothing was written"
            )
    if len({target.resolve() for target in targets}) < len(targets):
        raise InvalidParameter(
            "every output needs its own file, got one twice; nothing was written"
        )
    if over is not None:
        picture.check_image(over, area)


def suffix_of(path: Path) -> str:
    """The known suffix a file name ends in, the longest there is."""
    fits = [suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)]
    if not fits:
        raise InvalidParameter(
            f"the name of an output must end in one of {', '.join(SUFFIXES)}, got {path}; nothing was written"
        )
    return max(fits, key=len)


def save(path: Path, data: bytes, *, overwrite: bool) -> None:
    """Write a map that is paid for; the file is there whole, or not at all."""
    lost = "the map was paid for, write it elsewhere"
    write_file(path, data, overwrite=overwrite, kept="write the map elsewhere", lost=lost)
