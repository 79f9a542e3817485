"""How commands name a public area: four numbers, a GeoJSON file, or an image."""

from __future__ import annotations

import json as json_
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.errors import InvalidInput, InvalidParameter

if TYPE_CHECKING:
    from sfumato.spaces import Area

Four = tuple[float, float, float, float]


class Shape(StrEnum):
    """What cells look like: square on the ground, or as stretched as the bounds."""

    square = "square"
    stretched = "stretched"


Bounds = Annotated[
    str,
    typer.Option(
        help="Public area: west,south,east,north; west above east crosses the antimeridian. "
        "Or 'private', to find it inside --outer.",
        show_default=False,
        rich_help_panel="Area",
        show_envvar=False,
    ),
]
BoundsFile = Annotated[
    Path | None,
    typer.Option(
        help="Public area: the box around a GeoJSON file.",
        show_default=False,
        rich_help_panel="Area",
        show_envvar=False,
    ),
]
Image = Annotated[
    Path | None,
    typer.Option(
        help="Public area: the pixels of this image, for gaze.",
        show_default=False,
        rich_help_panel="Area",
        show_envvar=False,
    ),
]
Outer = Annotated[
    str,
    typer.Option(
        help="Public outer box of --bounds private.",
        show_default=False,
        rich_help_panel="Area",
        show_envvar=False,
    ),
]
Plane = Annotated[
    bool,
    typer.Option(
        "--plane",
        help="Coordinates are not degrees but any units.",
        rich_help_panel="Area",
        show_envvar=False,
    ),
]
Cells = Annotated[
    Shape,
    typer.Option(
        help="Square on the ground, or as stretched as the bounds.",
        rich_help_panel="Area",
        show_envvar=False,
    ),
]
Levels = Annotated[
    int,
    typer.Option(
        help="2**levels cells to a side.", min=0, max=16, rich_help_panel="Area", show_envvar=False
    ),
]


def named_area(
    bounds: str,
    bounds_file: Path | None,
    image: Path | None,
    *,
    plane: bool,
    cells: Shape,
    levels: int,
) -> Area:
    """The area of the options; exactly one of them must be given."""
    from sfumato.spaces import area_in_degrees, area_of_image, area_of_plane

    if sum((bool(bounds), bounds_file is not None, image is not None)) != 1:
        raise InvalidParameter(
            "the area is public and must be given, once: --bounds W,S,E,N, --bounds-file area.geojson or "
            "--image picture.png (with --bounds private: --outer W,S,E,N); nothing was read"
        )
    if image is not None:
        width, height = _pixels(image)
        return area_of_image(width, height, levels)
    box = four_numbers(bounds) if bounds else _box(bounds_file or Path())
    make = area_of_plane if plane else area_in_degrees
    return make(box, levels, square=cells is Shape.square)


def described(area: Area) -> str:
    """An area in words, so that a slip is seen before it is paid for."""
    low_x, low_y, high_x, high_y = area.bounds
    width, height = area.cell_size
    across, up = (high_x - low_x) / area.grid.cell_width, (high_y - low_y) / area.grid.cell_height
    if area.kind != "degrees":
        size = f"{high_x - low_x:g} x {high_y - low_y:g} {area.unit}".strip()
        return f"area of {size}, cells of {width:.3g} x {height:.3g}"
    x, y = (low_x + high_x) / 2, (low_y + high_y) / 2
    x -= 360 * (x > 180)
    place = f"{abs(y):.2f}{'N' if y >= 0 else 'S'} {abs(x):.2f}{'E' if x >= 0 else 'W'}"
    size = f"{across * width / 1000:,.3g} x {up * height / 1000:,.3g} km"
    return f"area of {size} around {place}, cells of {width:,.3g} x {height:,.3g} m"


def four_numbers(text: str) -> Four:
    """West, south, east, north as written with commas."""
    try:
        west, south, east, north = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidParameter(
            f"bounds are four numbers west,south,east,north, got {text!r}; nothing was read"
        ) from None
    return west, south, east, north


def _pixels(path: Path) -> tuple[int, int]:
    from sfumato.heatmap.export import image_size

    return image_size(path)


def _box(path: Path) -> Four:
    """The smallest box around all coordinates of a GeoJSON file."""
    try:
        found = list(_positions(json_.loads(path.read_text(encoding="utf-8"))))
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}; nothing was read") from None
    except (ValueError, TypeError, ArithmeticError, RecursionError):
        found = []
    if not found:
        raise InvalidInput(f"{path} is no GeoJSON with coordinates; nothing was read")
    xs, ys = zip(*found, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _positions(node: Any) -> Any:
    if isinstance(node, dict):
        for key in ("features", "geometries"):
            for child in node.get(key) or []:
                yield from _positions(child)
        yield from _positions(node.get("geometry"))
        yield from _pairs(node.get("coordinates"))


def _pairs(node: Any) -> Any:
    if isinstance(node, list):
        if len(node) >= 2 and all(isinstance(part, (int, float)) for part in node[:2]):
            yield float(node[0]), float(node[1])
        else:
            for child in node:
                yield from _pairs(child)
