"""The part of a georeferenced image, such as a GeoTIFF, that lies on the bounds of a map."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput, InvalidParameter, MissingPackage
from sfumato.heatmap.reference_systems import DEGREES, INSTALL
from sfumato.spaces import Area

Pixels = npt.NDArray[np.uint8]

UNDONE = "nothing was written"
FINE, FINEST = 1400, 2048  # pixels along the longer side
STEPS = 16  # points along each edge of the bounds that an image must reach


def georeferenced(path: str | Path, area: Area) -> Pixels:
    """The part of a georeferenced image that lies on the bounds, in the proportions of the ground."""
    if area.kind != "degrees" and not area.crs:
        raise InvalidParameter(
            "an image goes under a map in pixels, or with a place on Earth: this one is in a plane "
            f"without a reference system (`crs`); {UNDONE}"
        )
    try:
        import rasterio
        from rasterio.errors import NotGeoreferencedWarning, RasterioError
        from rasterio.vrt import WarpedVRT
    except ImportError:
        raise MissingPackage(INSTALL) from None
    wanted = area.crs or DEGREES
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            with rasterio.open(path) as file:
                if file.crs is None:
                    raise InvalidParameter(
                        f"an image under a map in {area.crs or area.kind} says where it lies (a GeoTIFF with "
                        f"a reference system), {path} does not; {UNDONE}"
                    )
                wide, high = _size(*_reach(file, area, wanted), area)
                low_x, low_y, high_x, high_y = area.bounds
                place = rasterio.Affine(
                    (high_x - low_x) / wide, 0.0, low_x, 0.0, (low_y - high_y) / high, high_y
                )
                with WarpedVRT(
                    file,
                    crs=wanted,
                    transform=place,
                    width=wide,
                    height=high,
                    resampling=rasterio.enums.Resampling.bilinear,
                ) as warped:
                    return _rgb(file, warped.read(), warped.dataset_mask() > 0)
    except RasterioError as problem:
        raise InvalidInput(
            f"cannot read {path} as a georeferenced image ({problem}); {UNDONE}"
        ) from None


def image_box(path: str | Path) -> tuple[float, float, float, float]:
    """West, south, east and north of the widest box in degrees that an image covers."""
    try:
        import rasterio
        from rasterio.errors import NotGeoreferencedWarning, RasterioError
        from rasterio.warp import transform
    except ImportError:
        raise MissingPackage(INSTALL) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            with rasterio.open(path) as file:
                if file.crs is None:
                    raise InvalidParameter(
                        "an image to draw an area on says where it lies (a GeoTIFF with a reference "
                        f"system), {Path(path).name} does not; nothing was read"
                    )
                low_x, low_y, high_x, high_y = file.bounds
                x, y = (np.linspace(*ends, STEPS) for ends in ((low_x, high_x), (low_y, high_y)))
                edge = np.ones(STEPS)
                west = max(transform(file.crs, DEGREES, low_x * edge, y)[0])
                east = min(transform(file.crs, DEGREES, high_x * edge, y)[0])
                south = max(transform(file.crs, DEGREES, x, low_y * edge)[1])
                north = min(transform(file.crs, DEGREES, x, high_y * edge)[1])
                return west, south, east, north
    except RasterioError:
        raise InvalidInput(
            f"cannot read {Path(path).name} as a georeferenced image; nothing was read"
        ) from None


def _reach(file: Any, area: Area, wanted: str) -> tuple[float, float]:
    """How many pixels of an image lie along the bounds each way; refused where they do not cover them."""
    from rasterio.warp import transform

    low_x, low_y, high_x, high_y = area.bounds
    x, y = (np.linspace(*ends, STEPS) for ends in ((low_x, high_x), (low_y, high_y)))
    edge = np.ones(STEPS)
    x = np.concatenate([x, x, low_x * edge, high_x * edge])
    y = np.concatenate([low_y * edge, high_y * edge, y, y])
    found_x, found_y = (np.asarray(one) for one in transform(wanted, file.crs, x, y))
    to = ~file.transform
    columns = to.a * found_x + to.b * found_y + to.c
    rows = to.d * found_x + to.e * found_y + to.f
    off = max(
        float(np.max(-columns)), float(np.max(columns - file.width)),
        float(np.max(-rows)), float(np.max(rows - file.height)),
    )  # fmt: skip
    if not off <= 1:  # a pixel: bounds are often rounded
        west, south, east, north = file.bounds
        raise InvalidParameter(
            f"the image under a map covers its bounds, {', '.join(f'{one:g}' for one in area.bounds)} "
            f"({wanted}); {file.name} lies on {west:g}, {south:g}, {east:g}, {north:g} ({file.crs}); {UNDONE}"
        )
    return float(np.ptp(columns)), float(np.ptp(rows))


def _size(columns: float, rows: float, area: Area) -> tuple[int, int]:
    """Width and height in pixels: as fine as the image is, on the ground's proportions."""
    across, up = area.cell_size
    low_x, low_y, high_x, high_y = area.bounds
    ratio = (high_y - low_y) / area.grid.cell_height * up
    ratio /= (high_x - low_x) / area.grid.cell_width * across
    longest = min(max(columns, rows, FINE), FINEST)
    wide = longest / max(1.0, ratio)
    return max(1, round(wide)), max(1, round(wide * ratio))


def _rgb(file: Any, bands: npt.NDArray[Any], known: npt.NDArray[np.bool_]) -> Pixels:
    """Three bands of 0 to 255, last axis the color; paper where the image has nothing."""
    from rasterio.enums import ColorInterp

    if file.colorinterp[0] is ColorInterp.palette:
        colors = np.zeros((256, 3), dtype=np.uint8)
        for number, color in file.colormap(1).items():
            if number < 256:
                colors[number] = color[:3]
        chosen = np.moveaxis(colors[bands[0].astype(np.uint8)], -1, 0)
    else:
        chosen = bands[:3] if len(bands) >= 3 else np.repeat(bands[:1], 3, axis=0)
    if chosen.dtype != np.uint8:
        inside = chosen[:, known]
        low, high = (float(inside.min()), float(inside.max())) if inside.size else (0.0, 1.0)
        scaled = (chosen.astype(np.float64) - low) / (high - low if high > low else 1.0)
        chosen = np.round(255 * np.clip(scaled, 0, 1)).astype(np.uint8)
    shown = np.where(known, chosen, 255).astype(np.uint8)
    return np.ascontiguousarray(np.moveaxis(shown, 0, -1))
