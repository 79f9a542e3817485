"""The map as a Cloud Optimized GeoTIFF, its guarantee in the tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato.errors import MissingPackage
from sfumato.heatmap.accuracy.uncertainty import FINEST_DRAWS
from sfumato.heatmap.export.geojson import GEO
from sfumato.heatmap.render.error import error_lines
from sfumato.heatmap.tiles import FINEST_IMAGE
from sfumato.privacy import ZCDP

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease

# Every cell has a share, so no pixel holds this; readers want to be told one all the same.
NODATA = -1.0
# After the shares, of the blurred map: the width of its band, and the ends.
BANDS = ("width of the band: high - low", "low end of the band", "high end of the band")


def geotiff(release: HeatmapRelease, level: int | None = None) -> bytes:
    """Shares as float32, first row in the north, cropped to the cells the bounds touch.

    EPSG:4326 for a map in degrees, where longitudes go on past 180 across the antimeridian. Pixels
    and planes have no reference system, unless they were given one; the first row of pixels is the
    top of the image. Where the method knows how sure its map is, three more rasters hold the band
    of the blurred map.
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
    whole = np.stack([release.image(chosen), *_band(release, chosen)]).astype(np.float32)
    shares = whole[:, first_row:last_row, first_column:last_column]
    grid = area.grid.at_level(chosen)
    west = grid.bounds[0] + first_column * grid.cell_width
    south = grid.bounds[1] + first_row * grid.cell_height
    if area.kind == "pixels":  # y grows downward: row 0 is the top already
        place = Affine(grid.cell_width, 0, west, 0, grid.cell_height, south)
    else:
        shares = shares[:, ::-1]
        north = grid.bounds[1] + last_row * grid.cell_height
        place = Affine(grid.cell_width, 0, west, 0, -grid.cell_height, north)
    with warnings.catch_warnings(), MemoryFile() as memory:
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with memory.open(
            driver="COG",
            width=shares.shape[2],
            height=shares.shape[1],
            count=len(shares),
            dtype="float32",
            crs="EPSG:4326" if area.kind == "degrees" else area.crs or None,
            transform=place,
            nodata=NODATA,
            compress="DEFLATE",
            predictor="YES",
            overview_resampling="AVERAGE",
        ) as file:
            file.write(shares)
            file.update_tags(**tags(release))
            for number, said in enumerate(("share", *BANDS)[: len(shares)], start=1):
                file.set_band_description(number, said)
        return bytes(memory.read())


def _band(release: HeatmapRelease, level: int) -> list[npt.NDArray[np.float64]]:
    """Width, low and high of the blurred map's band at a level, or nothing for a method that has none.

    Where the level is finer than a band is worked out for, a cell has an even part of the one
    around it.
    """
    if release.posterior is None:
        return []
    band = release.band(min(level, FINEST_DRAWS))
    times = 1 << (level - band.level)
    ends = (band.high - band.low, band.low, band.high)
    return [np.repeat(np.repeat(end, times, axis=0), times, axis=1) / times**2 for end in ends]


def tags(release: HeatmapRelease) -> dict[str, str]:
    """What a file should say of itself in a few plain words."""
    loss, measure = release.guarantee.loss, release.measure
    known: dict[str, str] = {}
    if release.posterior is not None:
        band = release.band()
        known = {
            "band_coverage": f"{band.coverage:g}, cell by cell, for the map blurred by a Gaussian",
            "band_sigma": f"{band.sigma:g} of the grid's side",
        }
    error = release.error()
    if error.emd is not None:
        known["emd"] = f"{error.emd.value:.6g} {error.unit}"
        known["emd_90"] = f"{error.emd.low:.6g} to {error.emd.high:.6g} {error.unit}"
    for name in ("similarity", "pearson"):
        if (one := getattr(error, name)) is not None:
            known[name] = f"{one.value:.4f}"
            known[f"{name}_90"] = f"{one.low:.4f} to {one.high:.4f}"
    if error.certified is not None:
        known["emd_certified"] = (
            f"at most {error.certified:.6g} {error.unit}, confidence {error.confidence:g}"
        )
    return {
        **known,
        "how_far_off": "; ".join(error_lines(error)),
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
        "empty": "indistinguishable from empty" if release.empty else "",
        "noise_mark": f"{release.noise.density * measure.scale:.12g} {measure.name} on the whole grid, "
        "of the smoothed map",
        "prior": "" if release.prior is None else str(release.prior),
    }
