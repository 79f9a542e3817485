"""The public area of a map from what users have: four numbers, a GeoJSON file, or an image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import Feature, features_of, read_bytes
from sfumato.heatmap.reference_systems import ReferenceSystem
from sfumato.spaces import Area, Bounds, area_in_degrees, area_of_image, area_of_plane

Cells = Literal["square", "stretched"]
BoundsLike = str | Sequence[float]

UNDONE = "nothing was read"
MERCATOR = 20_048_967.0  # metres: no place of Web Mercator is farther from its origin


def public_area(
    bounds: BoundsLike | None = None,
    *,
    bounds_file: str | Path | None = None,
    image: str | Path | None = None,
    plane: bool = False,
    crs: str | None = None,
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
        crs: The coordinate reference system of the bounds and of the rows, e.g. EPSG:3857 or
            EPSG:32632; degrees (EPSG:4326), if None. The grid lies in its plane.
        cells: As square on the ground as whole cells on the bounds allow, or as stretched as these.
        levels: 2**levels cells to a side, 0 to 16.

    Returns:
        The area with its grid.

    Raises:
        InvalidParameter: None or several of them were given, the bounds are none, or there is no
            such reference system.
        InvalidInput: The file could not be read.
        MissingPackage: A reference system needs pyproj, which is not installed.

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
    square = cells == "square"
    if image is not None:
        from sfumato.heatmap.export.ground import image_size

        if crs:
            raise InvalidParameter(f"an image is in pixels, not in {crs}; {UNDONE}")
        width, height = image_size(image)
        return area_of_image(width, height, levels, square=square)
    if crs:
        system = ReferenceSystem.named(crs)
        if system is not None:
            box = (
                system.from_degrees(_box(bounds_file or ""))
                if bounds is None
                else four_numbers(bounds)
            )
            metre = system.metre(box)
            return area_of_plane(box, levels, square=square, crs=system.name, metre=metre)
    box = _box(bounds_file or "") if bounds is None else four_numbers(bounds)
    if plane:
        return area_of_plane(box, levels, square=square)
    _check_degrees(box)
    return area_in_degrees(box, levels, square=square)


def _check_degrees(box: Bounds) -> None:
    """Refuse bounds that are no degrees, with what they may be instead."""
    west, south, east, north = box
    if not all(map(math.isfinite, box)):
        return  # refused as such
    if max(abs(west), abs(east)) <= 180 and max(abs(south), abs(north)) <= 90:
        return
    asked = ",".join(f"{number:g}" for number in box)
    hint = "for other coordinates say `plane`, or `crs` with their reference system"
    if max(abs(west), abs(east)) <= 90 and max(abs(south), abs(north)) <= 180:
        hint = f"are longitude and latitude exchanged? in order they are {south:g},{west:g},{north:g},{east:g}"
    elif min(map(abs, box)) > 180 and max(map(abs, box)) < MERCATOR:
        hint = (
            "if they are metres of Web Mercator, say `crs` EPSG:3857; of another system, its `crs`"
        )
    raise InvalidParameter(
        "longitudes must lie in -180..180 and latitudes in -90..90, got bounds "
        f"{asked}: {hint}; {UNDONE}"
    )


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
