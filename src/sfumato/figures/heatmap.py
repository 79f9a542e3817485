"""One heatmap as a finished sheet: the map, its legend and scale bar, and the words under it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato._types import FloatArray
from sfumato.figures.legend import draw_legend, lay_over
from sfumato.figures.map_sheet import Frame, Words, draw_places, new_sheet
from sfumato.figures.overlay import Overlay, draw_outline, draw_overlay, explain
from sfumato.figures.style import FRAME, Pixels, opaque, palette, shades

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def heatmap_figure(
    values: FloatArray,
    frame: Frame,
    *,
    words: Words,
    top: float,
    floor: float = 0.0,
    amount: float | None = None,
    under: Pixels | None = None,
    outline: Sequence[FloatArray] = (),
    overlay: Overlay | None = None,
) -> Figure:
    """A heatmap with legend, scale bar and caption: its first axes are the map, in map units.

    Args:
        values: The heatmap, [row, column], row 0 at the lowest y.
        frame: Where it lies, and which part to show.
        words: Title, subtitle, legend, caption and stamp.
        top: The value of the darkest color, above 0; values in between are drawn as `shades` says.
        floor: The value below which the map may be noise, marked at the legend; 0 for none.
        amount: What a value of 1 is in the numbers of the legend; values are shares, said in per
            cent, if None.
        under: An RGB image that fills the window: the heat lies over it, and every pixel of it is
            one of the picture.
        outline: Lines [position, x and y] in map units, over the heat.
        overlay: A hatch and rings over all of it, with their words under the legend.

    Returns:
        A figure of matplotlib, which a notebook shows.

    Raises:
        InvalidParameter: For a top that is not above 0.
    """
    sheet = new_sheet(
        values, frame, words, top=top, under=under, rows=0 if overlay is None else overlay.lines
    )
    axis, shade = sheet.axis, (top, floor)
    _map(axis, values, frame, shade=shade, under=under, size=(sheet.wide, sheet.high))
    draw_places(axis, frame)
    if outline:
        draw_outline(axis, outline)
    if overlay is not None:
        draw_overlay(axis, overlay, over=under is not None)
        explain(sheet.figure, overlay, left=sheet.edge, top=sheet.legend_bottom + 0.1)
    sheet.draw_words()
    draw_legend(
        sheet.figure,
        sheet.legend,
        box=sheet.legend_box,
        shade=shade,
        amount=amount,
        over=under is not None,
    )
    return sheet.figure


def _map(
    axis: Axes,
    values: FloatArray,
    frame: Frame,
    *,
    shade: tuple[float, float],
    under: Pixels | None,
    size: tuple[int, int],
) -> None:
    low_x, low_y, high_x, high_y = frame.window
    axis.set_xlim(low_x, high_x)
    axis.set_ylim(*((high_y, low_y) if frame.downward else (low_y, high_y)))
    for spine in axis.spines.values():
        spine.set_linewidth(0.6)
        spine.set_color(FRAME)
    if under is not None:
        heat = shades(resampled(values, frame, size), top=shade[0], floor=shade[1])
        axis.imshow(
            opaque(lay_over(under, heat)),
            extent=(low_x, high_x, *((high_y, low_y) if frame.downward else (low_y, high_y))),
            aspect="auto",
            interpolation="nearest",
        )
        for spine in axis.spines.values():
            spine.set_visible(False)
        return
    west, south, east, north = frame.extent
    colors = palette()[
        np.round(255 * shades(values, top=shade[0], floor=shade[1])).astype(np.int64)
    ]
    many = max(values.shape) > max(size)
    axis.imshow(
        opaque(colors), extent=(west, east, south, north), origin="lower", aspect="auto",
        interpolation="antialiased" if many else "bilinear",
    )  # fmt: skip


def resampled(values: FloatArray, frame: Frame, size: tuple[int, int]) -> FloatArray:
    """The values at the pixels of an image that fills the window, row 0 at the top of it."""
    from PIL import Image

    low_x, low_y, high_x, high_y = frame.window
    west, south, east, north = frame.extent
    rows, columns = values.shape
    box = (
        (low_x - west) / (east - west) * columns, (low_y - south) / (north - south) * rows,
        (high_x - west) / (east - west) * columns, (high_y - south) / (north - south) * rows,
    )  # fmt: skip
    found = Image.fromarray(values.astype(np.float32)).resize(
        size, Image.Resampling.BILINEAR, box=box
    )
    heat = np.asarray(found, dtype=np.float64)
    return heat if frame.downward else heat[::-1]
