"""The map as a picture: smoothed, on the ground's proportions, its guarantee printed under it."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import SfumatoError
from sfumato.figures import (
    TOPS,
    Frame,
    Overlay,
    Words,
    heatmap_figure,
    png_of,
    round_number,
    shades,
)
from sfumato.heatmap.accuracy.noise_mark import PICTURE_SIGMA, seen
from sfumato.heatmap.accuracy.uncertainty import CONFIDENCE
from sfumato.heatmap.analysis.map_total import map_total
from sfumato.heatmap.export.ground import Ground
from sfumato.heatmap.export.legend import Legend, LegendKind, cell_text, legend_of
from sfumato.heatmap.render.error import distance_text
from sfumato.heatmap.render.release import empty_text
from sfumato.spaces import DEGREE, Area

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.heatmap.accuracy.uncertainty import ShownUncertainty
    from sfumato.heatmap.export.formats import WriteOptions
    from sfumato.heatmap.results import HeatmapRelease


FINEST_PICTURE = 10
NOTHING_UNDER: Ground = Ground()
SMALL_DPI = 110  # of pictures in notebooks
DASHED = "dashed: a place that was not tested, too near one with a ring"
MOST_SHOWN = 12  # maps in a cell of a notebook


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """What is drawn: smoothed shares cut to the window, their extent, and the ends of the color scale.

    The scale ends at a round number of its legend.
    """

    level: int
    shares: FloatArray
    extent: tuple[float, float, float, float]
    top: float
    floor: float
    legend: Legend


def drawn(
    release: HeatmapRelease, level: int | None = None, *, legend: LegendKind = "density"
) -> Drawn:
    """The heatmap of the window [ghazi23, sec. 2.3], with a color scale made of released numbers only.

    Its floor is the noise mark of the map: infinite where it cannot be told from one of nobody.
    """
    chosen = min(release.area.grid.levels, FINEST_PICTURE) if level is None else level
    total = release.tiles.total
    # Of a map that has mass the noise mark asks for the same picture.
    shares = (
        seen(release.tiles, release.area, chosen) / (total * 4.0**chosen)
        if total > 0
        else seen(release.shares, release.area, chosen) / 4.0**chosen
    )
    said = legend_of(release, chosen, legend)
    amount = said.amount or 1.0
    top = round_number(max(float(shares.max()), 1e-12) * amount, TOPS) / amount
    floor = release.noise.share(chosen, total)
    return Drawn(chosen, shares, extent_of(release.area, chosen), top, floor, said)


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
    release: HeatmapRelease,
    *,
    ground: Ground = NOTHING_UNDER,
    level: int | None = None,
    legend: LegendKind = "density",
) -> bytes:
    """The picture as PNG; with an image under it, the heat lies on that, pixel for pixel."""
    return png_of(figure(release, ground=ground, level=level, legend=legend))


def figure(
    release: HeatmapRelease,
    *,
    ground: Ground = NOTHING_UNDER,
    level: int | None = None,
    legend: LegendKind = "density",
) -> Figure:
    """The picture as a figure of matplotlib."""
    found = drawn(release, level, legend=legend)
    return heatmap_figure(
        found.shares,
        frame_of(release.area, found.extent),
        words=_words(release, found, ground),
        top=found.top,
        floor=found.floor,
        amount=found.legend.amount,
        under=ground.pixels,
        outline=ground.lines,
        overlay=None
        if release.posterior is None
        else overlay(release, release.shown_uncertainty()),
    )


def frame_of(area: Area, extent: tuple[float, float, float, float]) -> Frame:
    """The frame of pictures of an area, whose values reach so far."""
    middle = math.cos(math.radians((area.bounds[1] + area.bounds[3]) / 2))
    in_degrees = area.kind == "degrees"
    return Frame(
        extent=extent,
        window=area.bounds,
        stretch=1 / middle if in_degrees else 1.0,
        meter=DEGREE * middle if in_degrees else area.metre or None,
        degrees=in_degrees,
        downward=area.kind == "pixels",
    )


def overlay(release: HeatmapRelease, found: ShownUncertainty) -> Overlay:
    """Hatch and rings of a map, and the sentences that say what they mean, if they are there."""
    first_column, first_row, last_column, last_row = release.area.window(found.level)
    hatched = found.silent[first_row:last_row, first_column:last_column].any()
    low_x, low_y, high_x, high_y = release.area.grid.bounds
    reach = found.reach * (high_x - low_x), found.reach * (high_y - low_y)
    beside = _beside(found, reach)
    return Overlay(
        silent=found.silent,
        extent=release.area.grid.bounds,
        rings=tuple((mark.x, mark.y) for mark in found.marks),
        dashed=beside,
        reach=reach,
        hatch_says=empty_text() if release.empty else hatch_text() if hatched else "",
        rings_say=rings_text(found),
        dashed_say=DASHED if beside else "",
    )


def _beside(found: ShownUncertainty, reach: tuple[float, float]) -> tuple[tuple[float, float], ...]:
    """The places that were not tested since a ring was in the way; beside no ring they say nothing."""
    return tuple(
        (x, y)
        for x, y in found.untested
        if any(math.hypot((x - m.x) / reach[0], (y - m.y) / reach[1]) <= 2.01 for m in found.marks)
    )


def hatch_text() -> str:
    """What the hatch means."""
    return "hatched: the map says nothing here, it cannot tell quiet from busy"


def rings_text(found: ShownUncertainty) -> str:
    """What the rings mean; nothing where there are none."""
    chance = f"with a chance of about {100 * CONFIDENCE:g}%"
    match len(found.marks):
        case 0:
            return ""
        case 1:
            return f"ring: over twice the average inside it, {chance}"
        case _:
            return f"rings: over twice the average inside each, all at once {chance}"


def _words(release: HeatmapRelease, found: Drawn, ground: Ground) -> Words:
    promised = release.guarantee
    return Words(
        title=release.name,
        subtitle=f"{map_total(release)} · {promised.loss} · method {release.method} · cells of "
        f"{cell_text(release.area, release.area.grid.levels)}",
        legend=f"smoothed {found.legend.words}",
        caption=f"{_nothing(release)}{'' if release.receipt.rehearsal else 'Guarantee: '}"
        f"{release.statement}.\n{_paid(release)}{_followed(release)}{_off(release)}"
        f"{ground.sentence}Smoothed by a Gaussian of {100 * PICTURE_SIGMA:g}% of the grid's side.",
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


def plain_image(release: HeatmapRelease, found: Drawn) -> npt.NDArray[np.uint8]:
    """The shades of the picture, 0 to 255, row 0 at the top of the map, for pages to color."""
    shade = np.round(255 * shades(found.shares, top=found.top, floor=found.floor)).astype(np.uint8)
    return shade if release.area.kind == "pixels" else shade[::-1]


def encoded(pixels: npt.NDArray[np.uint8]) -> str:
    """An image [row, column] as the text of a data URI."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format="PNG")
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()


def html_repr(release: HeatmapRelease, options: WriteOptions | None = None) -> str:
    """The picture for notebooks, with its legend, scale, rings and hatch, and what was promised.

    Args:
        release: The map.
        options: How its files were drawn: with the same ground under it, as long as that is there.

    Returns:
        HTML with the picture inside.

    """
    ground = NOTHING_UNDER
    legend: LegendKind = "density"
    if options is not None:
        legend = options.legend
        with suppress(SfumatoError):  # a file that was moved since
            ground = options.ground(release)
    shown = figure(release, ground=ground, level=_small(release), legend=legend)
    picture = base64.b64encode(png_of(shown, dpi=SMALL_DPI))
    stamp = "REHEARSAL · " if release.receipt.rehearsal else ""
    said = f"{stamp}{release.name}: {map_total(release)}; {release.statement}"
    return (
        '<figure style="display:inline-block;margin:0;max-width:640px">'
        f'<img alt="{escape(said)}" src="data:image/png;base64,{picture.decode()}" '
        'style="max-width:100%"></figure>'
    )


def html_of_maps(maps: Sequence[HeatmapRelease], options: WriteOptions | None = None) -> str:
    """Several maps for notebooks; of many, such as the hours of a week, the first ones."""
    more = len(maps) - MOST_SHOWN
    said = f"<p>and {more} more: `by_group` has them by name</p>" if more > 0 else ""
    return "".join(html_repr(one, options) for one in maps[:MOST_SHOWN]) + said


def _small(release: HeatmapRelease) -> int:
    return min(release.area.grid.levels, 8)
