"""The public area of a map from what users have: four numbers, a GeoJSON file, or an image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import Feature, features_of, read_bytes
from sfumato.spaces import Area, Bounds, area_in_degrees, area_of_image, area_of_plane

Cells = Literal["square", "stretched"]
BoundsLike = str | Sequence[float]

UNDONE = "nothing was read"


def public_area(
    bounds: BoundsLike | None = None,
    *,
    bounds_file: str | Path | None = None,
    image: str | Path | None = None,
    plane: bool = False,
    cells: Cells = "square",
    levels: int = 8,
) -> Area:
    """The area that bounds, a file or an image name; exactly one of them must be given.

    Args:
        bounds: West, south, east, north, as numbers or as text with commas; west above east crosses
            the antimeridian.
        bounds_file: A GeoJSON file: the area is the smallest box around it.
        image: An image file: the area is its pixels.
        plane: Coordinates are not degrees but any units.
        cells: Square on the ground, or as stretched as the bounds.
        levels: 2**levels cells to a side, 0 to 16.

    Returns:
        The area with its grid.

    Raises:
        InvalidParameter: None or several of them were given, or the bounds are none.
        InvalidInput: The file could not be read.

    Example:
        >>> public_area("11.2,43.74,11.32,43.81", levels=4).grid.side
        16

    """
    if isinstance(bounds, str) and not bounds:
        bounds = None
    if sum(one is not None for one in (bounds, bounds_file, image)) != 1:
        raise InvalidParameter(
            "the area is public and must be given, once: `bounds` W,S,E,N, `bounds_file` area.geojson or "
            f"`image` picture.png (with `bounds='private'`: `outer` W,S,E,N); {UNDONE}"
        )
    if image is not None:
        from sfumato.heatmap.export.picture import image_size

        width, height = image_size(image)
        return area_of_image(width, height, levels)
    box = _box(bounds_file or "") if bounds is None else four_numbers(bounds)
    make = area_of_plane if plane else area_in_degrees
    return make(box, levels, square=cells == "square")


def four_numbers(bounds: BoundsLike) -> Bounds:
    """West, south, east, north, as numbers or as written with commas."""
    parts: Sequence[str | float] = bounds.split(",") if isinstance(bounds, str) else bounds
    try:
        west, south, east, north = (float(part) for part in parts)
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"bounds are four numbers west,south,east,north, got {bounds!r}; {UNDONE}"
        ) from None
    return west, south, east, north


def _box(path: str | Path) -> Bounds:
    """The smallest box around all positions of a GeoJSON file."""
    data = read_bytes(path, undone=UNDONE)
    try:
        found = features_of(data, str(path), undone=UNDONE)
    except InvalidInput:
        raise InvalidInput(f"{path} is no GeoJSON with coordinates; {UNDONE}") from None
    places = np.concatenate([part for one in found for part in _positions(one)])
    (west, south), (east, north) = places.min(axis=0).tolist(), places.max(axis=0).tolist()
    return west, south, east, north


def _positions(one: Feature) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    rings = [ring for polygon in one.polygons for ring in polygon]
    return [*rings, *one.lines, one.points]
