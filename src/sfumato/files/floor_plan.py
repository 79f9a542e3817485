"""A floor plan of a user's own, under pictures of sensors: an image, lines of a GeoJSON file, or both.

It is public, like the site: drawn and never counted, and named with its digest wherever it is drawn.
"""

from __future__ import annotations

import base64
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files.geojson import features_of, read_bytes
from sfumato.files.rasters import flat_raster

Bounds = tuple[float, float, float, float]
UNDONE = "nothing was drawn"
LARGEST, LARGEST_SENT = 4096, 1600  # pixels of the longer side: of a picture, and inside a page
QUALITY = 85  # of a JPEG inside a page


@dataclass(frozen=True, slots=True, eq=False)
class FloorPlan:
    """An image that fills its bounds, lines, and the files they are from.

    Attributes:
        pixels: RGB, row 0 on top; None without an image.
        bounds: Where the image lies: low x, low y, high x, high y, in the unit of the site; None without.
        lines: Rows of x and y, in the unit of the site.
        files: The name and the SHA-256 of each file.
    """

    pixels: npt.NDArray[np.uint8] | None = None
    bounds: Bounds | None = None
    lines: tuple[FloatArray, ...] = ()
    files: tuple[tuple[str, str], ...] = ()

    @property
    def sentence(self) -> str:
        """The files in words; "" where there is nothing."""
        told = ", ".join(f"{name} (sha256 {digest[:12]})" for name, digest in self.files)
        return f"Floor plan: {told}, public." if told else ""

    @property
    def extent(self) -> Bounds | None:
        """The box around the image and all lines; None where there is nothing."""
        corners = [np.reshape(self.bounds, (2, 2))] if self.bounds is not None else []
        held = [*corners, *self.lines]
        if not held:
            return None
        every = np.concatenate(held)
        (low_x, low_y), (high_x, high_y) = every.min(axis=0), every.max(axis=0)
        return float(low_x), float(low_y), float(high_x), float(high_y)

    def image_uri(self) -> str | None:
        """The image as the text of a data URI, no larger than a page can hold."""
        if self.pixels is None:
            return None
        from PIL import Image

        image = Image.fromarray(self.pixels)
        image.thumbnail((LARGEST_SENT, LARGEST_SENT))
        out = io.BytesIO()
        image.save(out, format="JPEG", quality=QUALITY)
        return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()


NO_PLAN = FloorPlan()


def read_floor_plan(
    over: str | Path | None = None,
    *,
    bounds: Bounds | None = None,
    outline: str | Path | None = None,
) -> FloorPlan:
    """Read a floor plan: an image and where it lies, a GeoJSON file of lines and areas, or both.

    Args:
        over: An image, PNG or JPEG. Its top is at the high y.
        bounds: Where it lies: low x, low y, high x, high y, in the unit of the site's places.
        outline: A GeoJSON file whose lines and areas are in the unit of the site's places.

    Returns:
        The plan; an empty one where nothing is given.

    Raises:
        InvalidInput: If a file cannot be read, or has neither lines nor areas.
        InvalidParameter: If one of `over` and its bounds is given without the other, or they are no box.
    """
    if (over is None) != (bounds is None):
        raise InvalidParameter(
            "an image under a picture goes with where it lies: give `over` together with "
            f"`over_bounds` x0,y0,x1,y1, in the unit of the site; {UNDONE}"
        )
    files: list[tuple[str, str]] = []
    pixels: npt.NDArray[np.uint8] | None = None
    lines: tuple[FloatArray, ...] = ()
    if over is not None and bounds is not None:
        low_x, low_y, high_x, high_y = map(float, bounds)
        bounds = low_x, low_y, high_x, high_y
        if not (np.isfinite(bounds).all() and low_x < high_x and low_y < high_y):
            raise InvalidParameter(
                f"`over_bounds` are x0,y0,x1,y1 with x0 below x1 and y0 below y1, got {bounds}; {UNDONE}"
            )
        data = read_bytes(over, undone=UNDONE)
        pixels = _pixels(data, over)
        files.append((Path(over).name, hashlib.sha256(data).hexdigest()))
    if outline is not None:
        data = read_bytes(outline, undone=UNDONE)
        lines = _lines(data, outline)
        files.append((Path(outline).name, hashlib.sha256(data).hexdigest()))
    return FloorPlan(pixels, bounds, lines, tuple(files))


def _lines(data: bytes, path: str | Path) -> tuple[FloatArray, ...]:
    found = features_of(data, str(path), undone=UNDONE)
    lines = tuple(
        line
        for one in found
        for line in (*one.lines, *(ring for polygon in one.polygons for ring in polygon))
        if len(line) > 1
    )
    if not lines:
        raise InvalidInput(f"an outline has lines or areas, {path} has none; {UNDONE}")
    return lines


def _pixels(data: bytes, path: str | Path) -> npt.NDArray[np.uint8]:
    """An image as RGB on white; a huge one is shrunk."""
    flat = flat_raster(io.BytesIO(data), longest=LARGEST, called=path, undone=UNDONE)
    return np.asarray(flat, dtype=np.uint8)
