"""The map as a Cloud Optimized GeoTIFF, its guarantee in the tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import MissingPackage
from sfumato.heatmap.tiles import FINEST_IMAGE
from sfumato.heatmap.writers.geojson import GEO
from sfumato.privacy import ZCDP

if TYPE_CHECKING:
    from sfumato.heatmap.result import HeatmapRelease

# Every cell has a share, so no pixel holds this; readers want to be told one all the same.
NODATA = -1.0


def geotiff(release: HeatmapRelease, level: int | None = None) -> bytes:
    """Shares as float32, first row in the north, cropped to the cells the bounds touch.

    EPSG:4326 for a map in degrees, where longitudes go on past 180 across the antimeridian. Pixels and planes
    have no reference system; the first row of pixels is the top of the image.
    """
    try:
        from rasterio.errors import NotGeoreferencedWarning
        from rasterio.io import MemoryFile
        from rasterio.transform import Affine
    except ImportError:
        raise MissingPackage(GEO) from None
    import warnings

    area = release.area
    chosen = min(area.grid.levels, FINEST_IMAGE) if level is None else level
    first_column, first_row, last_column, last_row = area.window(chosen)
    shares = release.image(chosen)[first_row:last_row, first_column:last_column].astype(np.float32)
    grid = area.grid.at_level(chosen)
    west = grid.bounds[0] + first_column * grid.cell_width
    south = grid.bounds[1] + first_row * grid.cell_height
    if area.kind == "pixels":  # y grows downward: row 0 is the top already
        place = Affine(grid.cell_width, 0, west, 0, grid.cell_height, south)
    else:
        shares = shares[::-1]
        north = grid.bounds[1] + last_row * grid.cell_height
        place = Affine(grid.cell_width, 0, west, 0, -grid.cell_height, north)
    with warnings.catch_warnings(), MemoryFile() as memory:
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with memory.open(
            driver="COG",
            width=shares.shape[1],
            height=shares.shape[0],
            count=1,
            dtype="float32",
            crs="EPSG:4326" if area.kind == "degrees" else None,
            transform=place,
            nodata=NODATA,
            compress="DEFLATE",
            predictor="YES",
            overview_resampling="AVERAGE",
        ) as file:
            file.write(shares, 1)
            file.update_tags(**tags(release))
            file.set_band_description(1, "share")
        return bytes(memory.read())


def tags(release: HeatmapRelease) -> dict[str, str]:
    """What a file should say of itself in a few plain words."""
    loss = release.guarantee.loss
    return {
        "statement": release.statement,
        "method": release.method,
        "loss": str(loss),
        "epsilon": "" if isinstance(loss, ZCDP) else f"{float(loss.epsilon):.12g}",
        "unit": f"share of all mass per cell; each {release.guarantee.unit} is protected",
        "ledger": release.receipt.ledger,
        "entry": str(release.receipt.entry.number),
        "entry_hash": release.receipt.entry.hash,
        "rehearsal": "yes" if release.receipt.rehearsal else "no",
        "group": release.group,
    }
