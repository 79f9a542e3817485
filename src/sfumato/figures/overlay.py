"""What is drawn over a map: a hatch where it says nothing, rings around places, and the words for both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._types import BoolArray, FloatArray
from sfumato.figures.style import FONT_SMALL, FRAME, INK, LINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Box = tuple[float, float, float, float]

# Inches: between lines of the hatch, of a line of words, and of the swatch before it.
GAP, ROW, SWATCH = 0.07, 0.19, 0.26
# Over an image, which people want to see where the map says nothing too.
WIDE_GAP = 2 * GAP
DASHES = (0, (2, 2.5))


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """A hatch over the cells `silent` [row, column] of an extent, row 0 at the lowest y, and rings.

    Rings are x and y of their middles, all with the half-axes `reach` in x and y; all in map units.
    The `extent` is low x, low y, high x, high y. Rings at `dashed` places are dashed, with words of
    their own. What has no words is not there.
    """

    silent: BoolArray
    extent: Box
    rings: tuple[tuple[float, float], ...]
    reach: tuple[float, float]
    hatch_says: str
    rings_say: str
    dashed: tuple[tuple[float, float], ...] = ()
    dashed_say: str = ""

    @property
    def lines(self) -> int:
        """How many lines of words it has."""
        return bool(self.hatch_says) + bool(self.rings_say) + bool(self.dashed_say)


def draw_overlay(axis: Axes, overlay: Overlay, *, over: bool) -> None:
    """Hatch and rings on a map; with a light edge where they lie `over` an image."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Ellipse
    from matplotlib.patheffects import Normal, withStroke

    box = axis.get_window_extent()
    dpi = axis.figure.dpi
    segments = hatch_lines(
        overlay,
        _limits(axis),
        size=(box.width / dpi, box.height / dpi),
        gap=WIDE_GAP if over else GAP,
    )
    # The halo as lines of their own: an effect would be drawn piece by piece.
    for color, thick, alpha in (
        (("white", 1.1, 0.55), (INK, 0.4, 0.9)) if over else ((LINES, 0.4, 0.55),)
    ):
        lines = LineCollection(
            list(segments), colors=color, linewidths=thick, alpha=alpha, zorder=3
        )
        axis.add_collection(lines, autolim=False)
    wide, high = overlay.reach
    for place, dashes in (
        *((place, "-") for place in overlay.rings),
        *((place, DASHES) for place in overlay.dashed),
    ):
        ring = Ellipse(
            place, 2 * wide, 2 * high, fill=False, edgecolor=INK, linewidth=1.0, zorder=4,
            linestyle=dashes,
        )  # fmt: skip
        ring.set_path_effects([withStroke(linewidth=2.6, foreground="white", alpha=0.85), Normal()])
        axis.add_patch(ring)


def draw_outline(axis: Axes, lines: Sequence[FloatArray]) -> None:
    """Lines [position, x and y] of a map's ground, with a light edge, so that they show on dark ground too."""
    from matplotlib.collections import LineCollection
    from matplotlib.patheffects import Normal, withStroke

    halo = [withStroke(linewidth=1.8, foreground="white", alpha=0.6), Normal()]
    drawn = LineCollection(
        list(lines), colors=INK, linewidths=0.6, alpha=0.7, zorder=2.5, path_effects=halo
    )
    axis.add_collection(drawn, autolim=False)


def hatch_lines(
    overlay: Overlay, limits: Box, *, size: tuple[float, float], gap: float = GAP
) -> FloatArray:
    """The pieces [piece, end, x and y] of slanting lines that lie on silent cells.

    `limits` are what the axis shows: left, bottom, right, top (turned over where y grows downward);
    `size` is its width and height in inches, in which lines rise at 45 degrees and are `gap` apart.
    """
    if not overlay.silent.any():
        return np.zeros((0, 2, 2))
    left, bottom, right, top = limits
    wide, high = size
    low_x, low_y, high_x, high_y = overlay.extent
    rows, columns = overlay.silent.shape
    mask = overlay.silent.astype(np.float64)
    step, pieces = gap / 8, []
    for start in np.arange(-math.ceil(high / gap), math.ceil(wide / gap) + 1) * gap * math.sqrt(2):
        across = np.arange(max(0.0, start), min(wide, start + high), step)
        if not across.size:
            continue
        x = left + across / wide * (right - left)
        y = bottom + (across - start) / high * (top - bottom)
        # Between the middles of cells, so that the edge of the hatch is no staircase.
        at = [
            (y - low_y) / (high_y - low_y) * rows - 0.5,
            (x - low_x) / (high_x - low_x) * columns - 0.5,
        ]
        inside = np.concatenate([[False], _interpolated(mask, at) > 0.5, [False]])
        turns = np.flatnonzero(inside[1:] != inside[:-1])
        pieces += [
            [(x[a], y[a]), (x[b], y[b])]
            for a, b in zip(turns[::2], turns[1::2] - 1, strict=True)
            if b > a
        ]
    return np.array(pieces, dtype=np.float64).reshape(-1, 2, 2)


def _interpolated(values: FloatArray, at: list[FloatArray]) -> FloatArray:
    """Between the middles of cells, in rows and columns; beyond the edge as at it."""
    (row, column), ends = at, [side - 1 for side in values.shape]
    (top, down), (left, across) = (
        _stretch(np.clip(one, 0, end), end) for one, end in ((row, ends[0]), (column, ends[1]))
    )
    below, right = np.minimum(top + 1, ends[0]), np.minimum(left + 1, ends[1])
    upper = values[top, left] * (1 - across) + values[top, right] * across
    lower = values[below, left] * (1 - across) + values[below, right] * across
    return np.asarray(upper * (1 - down) + lower * down)


def _stretch(at: FloatArray, end: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """The cell before a place, which has one after it where there are two, and how far on the place is."""
    first = np.minimum(np.floor(at).astype(np.int64), max(end - 1, 0))
    return first, at - first


def explain(
    figure: Figure, overlay: Overlay, *, left: float, top: float, ring: bool = True
) -> None:
    """Lines that say what hatch and rings mean, if they are there, in inches from left and bottom.

    Before each stands its sign, dashed for dashed rings; without `ring` there is none for rings.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle, Rectangle
    from matplotlib.transforms import Affine2D

    width, height = figure.get_size_inches()
    inches = Affine2D().scale(1 / width, 1 / height) + figure.transFigure
    tall = 0.12
    entries: list[tuple[str, Any]] = [
        (overlay.hatch_says, None),
        (overlay.rings_say, "-"),
        (overlay.dashed_say, DASHES),
    ]
    for number, (said, stroke) in enumerate(one for one in entries if one[0]):
        y = top - ROW * (number + 0.5)
        figure.text(
            (left + SWATCH + 0.07) / width, y / height, said, fontsize=FONT_SMALL, color=INK,
            va="center_baseline", parse_math=False,
        )  # fmt: skip
        if stroke is not None:
            if ring:
                sign = Circle(
                    (left + SWATCH / 2, y), tall / 2, fill=False, edgecolor=INK, linewidth=1.0,
                    linestyle=stroke,
                )  # fmt: skip
                sign.set_transform(inches)
                figure.add_artist(sign)
            continue
        box = Rectangle(
            (left, y - tall / 2), SWATCH, tall, fill=False, edgecolor=FRAME, linewidth=0.5
        )
        box.set_transform(inches)
        figure.add_artist(box)
        for start in np.arange(-tall + GAP / 2, SWATCH, GAP):
            ends = (max(start, 0.0), min(start + tall, SWATCH))
            line = Line2D(
                [left + end for end in ends], [y - tall / 2 + end - start for end in ends],
                color=LINES, linewidth=0.45, alpha=0.8,
            )  # fmt: skip
            line.set_transform(inches)
            figure.add_artist(line)


def _limits(axis: Axes) -> Box:
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    return left, bottom, right, top
