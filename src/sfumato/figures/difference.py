"""What changed between two maps as a finished sheet: more and less, a hatch where it may be noise, arrows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import BoolArray, FloatArray
from sfumato.figures.flows import SHORTEST, Arrows
from sfumato.figures.heatmap import resampled
from sfumato.figures.legend import covered
from sfumato.figures.map_sheet import Frame, Words, bar_corner, draw_places, new_sheet, png_of
from sfumato.figures.overlay import Overlay, draw_outline, draw_overlay, explain
from sfumato.figures.style import (
    ARROW,
    FONT_KEY,
    FONT_TICK,
    FRAME,
    INK,
    MOVES,
    Pixels,
    opaque,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceLayers:
    """What lies over a map of differences: a hatch with its words, and arrows with theirs.

    `hatched` is [row, column] of `extent` (low x, low y, high x, high y), row 0 at the lowest y.
    Arrows are in cells of a grid of `cells` a side over that extent, drawn where `moves`, which lies
    as `hatched` does, says that something moved; None for no arrows. `lines` [position, x and y]
    are borders in the units of the map.
    """

    hatched: BoolArray
    extent: tuple[float, float, float, float]
    hatch_says: str
    arrows: Arrows | None
    cells: int
    moves: BoolArray
    arrows_say: str
    lines: Sequence[FloatArray] = ()


def draw_difference(
    values: FloatArray,
    frame: Frame,
    *,
    words: Words,
    top: float,
    layers: DifferenceLayers,
    under: Pixels | None = None,
) -> bytes:
    """One PNG of what a map has more or less than another, with legend, scale bar and caption.

    Args:
        values: The difference, [row, column], row 0 at the lowest y.
        frame: Where it lies, and which part to show.
        words: Title, subtitle, legend, caption and stamp.
        top: The difference of the strongest colors, above 0; -top is as strong the other way.
        layers: The hatch, the borders and the arrows over it.
        under: An RGB image that fills the window: the colors lie over it, where nothing changed it is
            as it was.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For a top that is not above 0, or values that are not finite.
    """
    sheet = new_sheet(values, frame, words, top=top, under=under, rows=2)
    axis = sheet.axis
    if under is None:
        _map(axis, values, frame, top=top)
    else:
        size = sheet.wide, sheet.high
        _map_over(axis, under, resampled(values, frame, size), frame, top=top)
    _ends(axis, frame)
    draw_places(axis, frame)
    hatch = Overlay(
        layers.hatched, layers.extent, (), (1.0, 1.0), layers.hatch_says, layers.arrows_say
    )
    draw_overlay(axis, hatch, over=under is not None)
    if layers.lines:
        draw_outline(axis, layers.lines)
    _arrows(axis, layers, frame)
    explain(sheet.figure, hatch, left=sheet.edge, top=sheet.legend_bottom + 0.1, ring=False)
    sheet.draw_words()
    _legend(sheet.figure, sheet.legend, box=sheet.legend_box, top=top, over=under is not None)
    return png_of(sheet.figure)


def _map(axis: Axes, values: FloatArray, frame: Frame, *, top: float) -> None:
    west, south, east, north = frame.extent
    axis.imshow(
        values, extent=(west, east, south, north), origin="lower", aspect="auto",
        interpolation="bilinear", cmap=MOVES, vmin=-top, vmax=top,
    )  # fmt: skip


def _map_over(axis: Axes, under: Pixels, values: FloatArray, frame: Frame, *, top: float) -> None:
    """The colors over an image, pixel for pixel: both [row, column] of one shape, row 0 at the top."""
    low_x, low_y, high_x, high_y = frame.window
    axis.imshow(
        opaque(covered(under, _colors(values, top), _strength(values, top))),
        extent=(low_x, high_x, *((high_y, low_y) if frame.downward else (low_y, high_y))),
        aspect="auto", interpolation="nearest",
    )  # fmt: skip


def _colors(values: FloatArray, top: float) -> Pixels:
    """The color of each difference, as RGB."""
    from matplotlib import colormaps

    rgba = colormaps[MOVES](np.clip(values / top, -1.0, 1.0) / 2 + 0.5, bytes=True)
    return np.asarray(rgba[..., :3], dtype=np.uint8)


def _strength(values: FloatArray, top: float) -> FloatArray:
    """How much of an image a difference covers: by its root, a line would show where its sign changes."""
    return np.asarray(np.minimum(np.abs(values) / top, 1.0))


def _ends(axis: Axes, frame: Frame) -> None:
    low_x, low_y, high_x, high_y = frame.window
    axis.set_xlim(low_x, high_x)
    axis.set_ylim(*((high_y, low_y) if frame.downward else (low_y, high_y)))
    for spine in axis.spines.values():
        spine.set_linewidth(0.6)
        spine.set_color(FRAME)


def _arrows(axis: Axes, layers: DifferenceLayers, frame: Frame) -> None:
    """Arrows whose length grows with the root of the mass that passes.

    There is none where hardly any passes, none where nothing moved for sure, and none over the scale bar.
    """
    flow = layers.arrows
    if flow is None or not flow.mass.max() > 0:
        return
    west, south, east, north = layers.extent
    across, up = (east - west) / layers.cells, (north - south) / layers.cells
    share = np.sqrt(flow.mass / flow.mass.max())
    shown = (share >= SHORTEST) & _on_sure_ground(flow, layers)
    x, y = west + (flow.x + 0.5) * across, south + (flow.y + 0.5) * up
    if frame.meter is not None:
        right, over = bar_corner(axis, frame)
        low_x, low_y, high_x, high_y = frame.window
        part_x, part_y = (x - low_x) / (high_x - low_x), (y - low_y) / (high_y - low_y)
        reach_x, reach_y = (
            0.65 * flow.block * cell / whole
            for cell, whole in ((across, high_x - low_x), (up, high_y - low_y))
        )
        above = 1 - part_y if frame.downward else part_y
        shown &= (part_x - reach_x > right) | (above - reach_y > over)
    if not shown.any():
        return
    along = 1.3 * flow.block * share[shown] / np.hypot(flow.east, flow.north)[shown]
    style: dict[str, Any] = {
        "angles": "xy", "scale_units": "xy", "scale": 1, "pivot": "mid", "units": "xy", "minlength": 0,
        "width": 0.07 * flow.block * across, "headwidth": 3.6, "headlength": 3.6,
        "headaxislength": 3.2,
    }  # fmt: skip
    axis.quiver(
        x[shown], y[shown],
        flow.east[shown] * along * across, flow.north[shown] * along * up,
        color=ARROW, edgecolor="white", linewidth=0.4, alpha=0.75, zorder=4, **style,
    )  # fmt: skip


def _on_sure_ground(flow: Arrows, layers: DifferenceLayers) -> BoolArray:
    """Which blocks have a place from which or to which something moved for sure."""
    rows, columns = layers.moves.shape
    sure = np.zeros(flow.x.shape, dtype=np.bool_)
    for row, column in np.ndindex(*flow.x.shape):
        (x0, x1), (y0, y1) = (
            (
                math.floor((middle + 0.5 - flow.block / 2) / layers.cells * many),
                math.ceil((middle + 0.5 + flow.block / 2) / layers.cells * many),
            )
            for middle, many in ((flow.x[row, column], columns), (flow.y[row, column], rows))
        )
        sure[row, column] = layers.moves[max(y0, 0) : y1, max(x0, 0) : x1].any()
    return sure


def _legend(
    figure: Figure,
    said: str,
    *,
    box: tuple[float, float, float, float],
    top: float,
    over: bool = False,
) -> None:
    width, height = figure.get_size_inches()
    left, bottom, wide, high = box
    axis = figure.add_axes((left / width, (bottom - high) / height, wide / width, high / height))
    steps = np.linspace(-top, top, 512)[None, :]
    if over:
        grey = np.full((1, 512, 3), 200, dtype=np.uint8)
        strip = opaque(covered(grey, _colors(steps, top), _strength(steps, top)))
        axis.imshow(strip, extent=(-top, top, 0, 1), aspect="auto")
    else:
        axis.imshow(steps, extent=(-top, top, 0, 1), aspect="auto", cmap=MOVES)
    marks = [-top, -top / 2, 0.0, top / 2, top]
    axis.set_xticks(marks, [f"{mark:+,.6g}" if mark else "0" for mark in marks])
    axis.set_yticks([])
    axis.tick_params(labelsize=FONT_TICK, colors=INK, length=2, width=0.5, pad=2)
    for spine in axis.spines.values():
        spine.set_linewidth(0.5)
        spine.set_color(FRAME)
    axis.text(
        0, 1.7, said, transform=axis.transAxes, fontsize=FONT_KEY, color=INK, va="bottom",
        parse_math=False,
    )  # fmt: skip
