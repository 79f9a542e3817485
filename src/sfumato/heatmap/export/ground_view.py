"""A public file as something to draw an area on: the lines of an outline, the picture of an image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.heatmap.areas import public_area
from sfumato.heatmap.export.georeferenced import image_box
from sfumato.heatmap.export.ground import ground_of

OUTLINES = (".geojson", ".json")
LEVELS = 8
DIGITS = 5  # of degrees: a metre
VIEW = "sfumato-ground/1"


def ground_view(path: str | Path, *, pixels: bool = False) -> dict[str, Any]:
    """What a page shows of a public file while somebody draws the area of a map: it reads no rows.

    Args:
        path: A GeoJSON file of lines and areas, a georeferenced image, or the stimulus of maps in pixels.
        pixels: Whether an image is a stimulus, whose own pixels are the area.

    Returns:
        A JSON object with `bounds` (west, south, east, north in degrees, or a stimulus' pixels), the
        `lines` of an outline, the `picture` of an image as a data URI, and the `file` and its `sha256`.

    Raises:
        InvalidInput: The file could not be read.
        InvalidParameter: The image does not say where it lies.

    """
    if Path(path).suffix.lower() in OUTLINES:
        area = public_area(bounds_file=path, levels=LEVELS)
        found = ground_of(area, over=None, outline=path)
        named = found.outline
    else:
        where = {"image": path} if pixels else {"bounds": image_box(path)}
        area = public_area(**where, levels=LEVELS)
        found = ground_of(area, over=path, outline=None)
        named = None
    under = found.under
    public = under or named
    return {
        "format": VIEW,
        "file": "" if public is None else public.file,
        "sha256": "" if public is None else public.sha256,
        "kind": area.kind,
        "bounds": list(area.bounds),
        "lines": [line.round(DIGITS).tolist() for line in found.lines],
        "picture": "" if under is None else under.uri(),
    }
