"""The map as a picture: smoothed, on the ground's proportions, its guarantee printed under it."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.figures import TOPS, Frame, Overlay, Words, draw_heatmap, palette, round_number, shades
from sfumato.heatmap.inference.noise_mark import PICTURE_SIGMA, seen
from sfumato.heatmap.inference.uncertainty import CONFIDENCE
from sfumato.heatmap.render.error import distance_text
from sfumato.heatmap.render.release import empty_text
from sfumato.spaces import DEGREE, Area

if TYPE_CHECKING:
    from sfumato.heatmap.inference.uncertainty import Uncertainty
    from sfumato.heatmap.results import HeatmapRelease


FINEST_PICTURE = 10
SMALLEST, LARGEST = 600, 4096  # pixels along the longer side of an image under the heat


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """What is drawn: smoothed shares cut to the window, their extent, and the ends of the color scale."""

    level: int
    shares: FloatArray
    extent: tuple[float, float, float, float]
    top: float
    floor: float


def drawn(release: HeatmapRelease, level: int | None = None) -> Drawn:
    """The heatmap of the window [ghazi23, sec. 2.3], with a color scale made of released numbers only.

    Its floor is the noise mark of the map: infinite where it cannot be told from one of nobody.
    """
    chosen = min(release.area.grid.levels, FINEST_PICTURE) if level is None else level
    shares = seen(release.shares, release.area, chosen) / 4.0**chosen
    top = round_number(max(float(shares.max()), 1e-12), TOPS)
    floor = release.noise.share(chosen, release.tiles.total)
    return Drawn(chosen, shares, extent_of(release.area, chosen), top, floor)


def extent_of(area: Area, level: int) -> tuple[float, float, float, float]:
    """Where the cells of a level that the bounds touch begin and end: low x, low y, high x, high y."""
    first_column, first_row, last_column, last_row = area.window(level)
    grid = area.grid.at_level(level)
    west, south = grid.bounds[0], grid.bounds[1]
    return (
        west + first_column * grid.cell_width,
        south + first_row * grid.cell_height,
        west + last_column * grid.cell_width,
        south + last_row * grid.cell_height,
    )


def png(
    release: HeatmapRelease, *, over: str | Path | None = None, level: int | None = None
) -> bytes:
    """The picture as PNG; with `over`, the heat lies on that image, pixel for pixel."""
    found = drawn(release, level)
    area = release.area
    middle = math.cos(math.radians((area.bounds[1] + area.bounds[3]) / 2))
    map_in_degrees = area.kind == "degrees"
    frame = Frame(
        extent=found.extent,
        window=area.bounds,
        stretch=1 / middle if map_in_degrees else 1.0,
        meter=DEGREE * middle if map_in_degrees else area.metre or None,
        degrees=map_in_degrees,
        downward=area.kind == "pixels",
    )
    under = None if over is None else stimulus(over, release)
    return draw_heatmap(
        found.shares,
        frame,
        words=_words(release, found),
        top=found.top,
        floor=found.floor,
        under=under,
        overlay=None if release.posterior is None else overlay(release, release.uncertainty()),
    )


def overlay(release: HeatmapRelease, found: Uncertainty) -> Overlay:
    """Hatch and rings of a map, and the sentences that say what they mean."""
    low_x, low_y, high_x, high_y = release.area.grid.bounds
    return Overlay(
        silent=found.silent,
        extent=release.area.grid.bounds,
        rings=tuple((mark.x, mark.y) for mark in found.marks),
        dashed=found.untested,
        reach=(found.reach * (high_x - low_x), found.reach * (high_y - low_y)),
        hatch_says=empty_text() if release.empty else hatch_text(),
        rings_say=rings_text(found),
    )


def hatch_text() -> str:
    """What the hatch means."""
    return "hatched: the map says nothing here, it cannot tell quiet from busy"


def rings_text(found: Uncertainty) -> str:
    """What the rings mean; where there are none, what that means."""
    chance = f"with a chance of about {100 * CONFIDENCE:g}%"
    beside = "; dashed: not tested, too near another" if found.untested else ""
    match len(found.marks):
        case 0:
            return f"no rings: nowhere is over twice the average {chance}{beside}"
        case 1:
            return f"ring: over twice the average inside it, {chance}{beside}"
        case _:
            every = "rings: over twice the average inside each, all at once"
            return f"{every} {chance}{beside}"


def cell_text(release: HeatmapRelease, level: int) -> str:
    """The size of a cell on the ground in words.

    At the middle latitude, for degrees.
    """
    unit = release.area.unit
    lengths = [
        length * 2 ** (release.area.grid.levels - level) for length in release.area.cell_size
    ]
    if unit == "m" and max(lengths) >= 10_000:
        unit, lengths = "km", [length / 1000 for length in lengths]
    across, up = (f"{float(f'{length:.3g}'):,g}" for length in lengths)
    return f"{across} × {up} {unit}".strip()


def _words(release: HeatmapRelease, found: Drawn) -> Words:
    promised = release.guarantee
    side = release.area.grid.side
    return Words(
        title=release.name,
        subtitle=f"method {release.method} · {promised.loss} · {side:,} × {side:,} cells of "
        f"{cell_text(release, release.area.grid.levels)}",
        legend=f"smoothed share of all {release.measure.name} in a cell of {cell_text(release, found.level)}",
        caption=f"{_nothing(release)}{'' if release.receipt.rehearsal else 'Guarantee: '}"
        f"{release.statement}.\n{_paid(release)}{_followed(release)}{_off(release)}"
        f"Smoothed by a Gaussian of {100 * PICTURE_SIGMA:g}% of the grid's side.",
        stamp="REHEARSAL" if release.receipt.rehearsal else "",
    )


def _nothing(release: HeatmapRelease) -> str:
    # Of a map with a posterior the hatch says so.
    if release.posterior is not None or not release.empty:
        return ""
    return f"{empty_text()[0].upper()}{empty_text()[1:]}.\n"


def _paid(release: HeatmapRelease) -> str:
    if release.receipt.rehearsal:
        return ""
    return f"Ledger {release.receipt.ledger}, entry {release.receipt.entry.number}. "


def _off(release: HeatmapRelease) -> str:
    """How far off the map is, as a sentence."""
    said = distance_text(release.error())
    return f"{said[0].upper()}{said[1:]}. "


def _followed(release: HeatmapRelease) -> str:
    return "" if release.prior is None else f"Sharpened by {release.prior}. "


def image_size(path: str | Path) -> tuple[int, int]:
    """Width and height of an image file; InvalidInput when it is none.

    Args:
        path: An image file.

    Returns:
        Width and height in pixels.

    Raises:
        InvalidInput: It is no image that can be read.

    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            return image.size
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError):
        raise InvalidInput(f"cannot read {path} as an image; nothing was written") from None


def check_image(path: str | Path, area: Area) -> None:
    """Refuse an image that cannot lie under a map of this area."""
    if area.kind != "pixels":
        raise InvalidParameter(
            f"an image goes under a map in pixels, this one is in {area.kind}; nothing was written"
        )
    size = image_size(path)
    asked = (area.bounds[2] - area.bounds[0], area.bounds[3] - area.bounds[1])
    if size != asked:
        raise InvalidParameter(
            f"the image under a map must have its size, {asked[0]:g} x {asked[1]:g}, {path} has "
            f"{size[0]} x {size[1]}; nothing was written"
        )


def stimulus(path: str | Path, release: HeatmapRelease) -> npt.NDArray[np.uint8]:
    """The image under a map in pixels, as RGB; tiny ones are blown up whole times, huge ones shrunk."""
    from PIL import Image

    check_image(path, release.area)
    size = image_size(path)
    try:
        with Image.open(path) as image:
            plain = image.convert("RGBA")
    except OSError:
        raise InvalidInput(f"cannot read {path} as an image; nothing was written") from None
    flat = Image.alpha_composite(Image.new("RGBA", plain.size, "white"), plain).convert("RGB")
    longest = max(size)
    if longest < SMALLEST:
        times = math.ceil(SMALLEST / longest)
        flat = flat.resize((size[0] * times, size[1] * times), Image.Resampling.NEAREST)
    elif longest > LARGEST:
        flat.thumbnail((LARGEST, LARGEST))
    return np.asarray(flat, dtype=np.uint8)


def plain_image(release: HeatmapRelease, found: Drawn) -> npt.NDArray[np.uint8]:
    """The shades of the picture, 0 to 255, row 0 at the top of the map, for pages to color."""
    shade = np.round(255 * shades(found.shares, top=found.top, floor=found.floor)).astype(np.uint8)
    return shade if release.area.kind == "pixels" else shade[::-1]


def encoded(pixels: npt.NDArray[np.uint8]) -> str:
    """An image [row, column] as the text of a data URI."""
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()


def html_repr(release: HeatmapRelease) -> str:
    """A small figure for notebooks: the map, and under it what was promised.

    Args:
        release: The map.

    Returns:
        HTML with the picture inside.

    """
    from PIL import Image

    found = drawn(release, min(release.area.grid.levels, 8))
    colors = Image.fromarray(palette()[plain_image(release, found)])
    low_x, low_y, high_x, high_y = release.area.bounds
    stretch = (
        1 / math.cos(math.radians((low_y + high_y) / 2)) if release.area.kind == "degrees" else 1.0
    )
    ratio = (high_y - low_y) * stretch / (high_x - low_x)
    wide = round(min(480, 480 / ratio))
    picture = encoded(
        np.asarray(colors.resize((wide, max(1, round(wide * ratio))), Image.Resampling.BILINEAR))
    )
    stamp = "REHEARSAL · " if release.receipt.rehearsal else ""
    said = f"{stamp}{release.name} · method {release.method}"
    return (
        '<figure style="display:inline-block;margin:0;max-width:480px;font:13px/1.4 system-ui,sans-serif">'
        f'<img alt="{escape(said)}" src="{picture}" style="max-width:100%;border:1px solid #ccc">'
        f"<figcaption><strong>{escape(said)}</strong><br>{escape(release.statement)}</figcaption></figure>"
    )
