"""What changed between two maps as a finished sheet: more and less, a hatch where it may be noise, arrows."""

from __future__ import annotations

import io
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import BoolArray, FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.flows import SHORTEST, Arrows
from sfumato.figures.heatmap import (
    HEAD,
    LEFT,
    LEGEND,
    RIGHT,
    SHEET,
    TICKS,
    WORDS,
    Frame,
    Words,
    draw_foot,
    draw_head,
    draw_places,
    draw_scale_bar,
    sheet_size,
)
from sfumato.figures.overlay import ROW, Overlay, draw_overlay, explain
from sfumato.figures.style import (
    ALARM,
    ARROW,
    FONT_KEY,
    FONT_TICK,
    FRAME,
    INK,
    LETTERS,
    LINE,
    MOVES,
    PAPER,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceLayers:
    """What lies over a map of differences: a hatch with its words, and arrows with theirs.

    `hatched` is [row, column] of `extent` (low x, low y, high x, high y), row 0 at the lowest y.
    Arrows are in cells of a grid of `cells` a side over that extent; None for no arrows.
    """

    hatched: BoolArray
    extent: tuple[float, float, float, float]
    hatch_says: str
    arrows: Arrows | None
    cells: int
    arrows_say: str


def draw_difference(
    values: FloatArray, frame: Frame, *, words: Words, top: float, layers: DifferenceLayers
) -> bytes:
    """One PNG of what a map has more or less than another, with legend, scale bar and caption.

    Args:
        values: The difference, [row, column], row 0 at the lowest y.
        frame: Where it lies, and which part to show.
        words: Title, subtitle, legend, caption and stamp.
        top: The difference of the strongest colors, above 0; -top is as strong the other way.
        layers: The hatch and the arrows over it.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For a top that is not above 0, or values that are not finite.
    """
    if values.ndim != 2 or not np.isfinite(values).all():
        raise InvalidParameter(
            f"a difference is finite [row, column], got shape {values.shape}; none was drawn"
        )
    if not top > 0:
        raise InvalidParameter(
            f"the top of the color scale must be above 0, got {top}; nothing was drawn"
        )
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    wide, high, dpi = sheet_size(frame, None)
    sheet = max(round(SHEET * dpi), wide + round((LEFT + RIGHT) * dpi))
    left = round(LEFT * dpi) + (sheet - round((LEFT + RIGHT) * dpi) - wide) // 2
    edge = min(left / dpi, SHEET - RIGHT - WORDS)
    letters = int(LETTERS * (SHEET - RIGHT - edge))
    lines = [
        row for text in words.caption.split("\n") for row in textwrap.wrap(text, letters) or [""]
    ]
    below = (TICKS if frame.degrees else 0.1) + LEGEND
    foot = below + LINE * len(lines) + 0.12 + 2 * ROW + 0.1
    tall = high + round(HEAD * dpi) + round(foot * dpi)
    figure = Figure(figsize=((sheet + 0.01) / dpi, (tall + 0.01) / dpi), dpi=dpi, facecolor=PAPER)
    FigureCanvasAgg(figure)
    axis = figure.add_axes((left / sheet, round(foot * dpi) / tall, wide / sheet, high / tall))
    _map(axis, values, frame, top=top)
    draw_places(axis, frame)
    hatch = Overlay(
        layers.hatched, layers.extent, (), (1.0, 1.0), layers.hatch_says, layers.arrows_say
    )
    draw_overlay(axis, hatch, over=False)
    _arrows(axis, layers)
    explain(figure, hatch, left=edge, top=foot - below + 0.1, ring=False)
    if frame.meter is not None:
        draw_scale_bar(axis, frame, inches=wide / dpi)
    if words.stamp:
        axis.text(
            0.5, 0.5, words.stamp, transform=axis.transAxes, ha="center", va="center", rotation=28,
            fontsize=min(10 * wide, 20 * high) / dpi, fontweight="bold", color=ALARM, alpha=0.16,
            parse_math=False, clip_on=True,
        )  # fmt: skip
    draw_head(figure, words, x=edge / SHEET, letters=letters)
    said = textwrap.shorten(words.legend, letters, placeholder=" …")
    _legend(figure, said, box=(edge, foot - below + LEGEND - 0.2, 3.3, 0.13), top=top)
    draw_foot(figure, lines, x=edge / SHEET)
    out = io.BytesIO()
    # No date and no version in the file: the same values give the same bytes.
    figure.savefig(out, format="png", dpi=dpi, metadata={"Software": None})
    return out.getvalue()


def _map(axis: Axes, values: FloatArray, frame: Frame, *, top: float) -> None:
    low_x, low_y, high_x, high_y = frame.window
    west, south, east, north = frame.extent
    axis.imshow(
        values, extent=(west, east, south, north), origin="lower", aspect="auto",
        interpolation="bilinear", cmap=MOVES, vmin=-top, vmax=top,
    )  # fmt: skip
    axis.set_xlim(low_x, high_x)
    axis.set_ylim(*((high_y, low_y) if frame.downward else (low_y, high_y)))
    for spine in axis.spines.values():
        spine.set_linewidth(0.6)
        spine.set_color(FRAME)


def _arrows(axis: Axes, layers: DifferenceLayers) -> None:
    """Arrows whose length grows with the root of the mass that passes; none where hardly any does."""
    flow = layers.arrows
    if flow is None or not flow.mass.max() > 0:
        return
    west, south, east, north = layers.extent
    across, up = (east - west) / layers.cells, (north - south) / layers.cells
    share = np.sqrt(flow.mass / flow.mass.max())
    shown = share >= SHORTEST
    along = 1.3 * flow.block * share[shown] / np.hypot(flow.east, flow.north)[shown]
    style: dict[str, Any] = {
        "angles": "xy", "scale_units": "xy", "scale": 1, "pivot": "mid", "units": "xy", "minlength": 0,
        "width": 0.12 * flow.block * across, "headwidth": 3.6, "headlength": 3.6,
        "headaxislength": 3.2,
    }  # fmt: skip
    axis.quiver(
        west + (flow.x[shown] + 0.5) * across, south + (flow.y[shown] + 0.5) * up,
        flow.east[shown] * along * across, flow.north[shown] * along * up,
        color=ARROW, edgecolor="white", linewidth=0.4, zorder=4, **style,
    )  # fmt: skip


def _legend(
    figure: Figure, said: str, *, box: tuple[float, float, float, float], top: float
) -> None:
    width, height = figure.get_size_inches()
    left, bottom, wide, high = box
    axis = figure.add_axes((left / width, (bottom - high) / height, wide / width, high / height))
    axis.imshow(
        np.linspace(-top, top, 512)[None, :], extent=(-top, top, 0, 1), aspect="auto", cmap=MOVES
    )
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
