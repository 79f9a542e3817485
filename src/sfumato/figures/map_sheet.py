"""The sheet that maps are drawn on: where things lie on it, its places, scale bar and words."""

from __future__ import annotations

import io
import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.overlay import ROW
from sfumato.figures.style import (
    ALARM,
    DPI,
    FONT_NOTE,
    FONT_SMALL,
    FONT_TICK,
    FONT_TITLE,
    GREY,
    INK,
    LETTERS,
    LINE,
    LINES,
    PAPER,
    Pixels,
    load_without_help,
    round_number,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The sheet in inches: it is 8 wide, whatever is drawn, and letters keep their size on it.
SHEET, LEFT, RIGHT, HEAD, TICKS, LEGEND = 8.0, 0.62, 0.38, 0.86, 0.34, 0.74
TITLE_LINE = 0.32  # inches that a second line of the title takes
TALLEST = 8.0
WORDS = 5.2  # inches that words need at least
BAR = 0.16  # inches from the scale bar to the edges of the map
# How hard PNG is pressed: 6, as usual, takes twice the time for two percent.
COMPRESSED = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a map lies: `extent` is that of its values, `window` the part to show.

    Both are low x, low y, high x, high y. A step in y is `stretch` times as long as one in x; a
    step in x is `meter` meters, where there are meters; `degrees` draws longitudes and latitudes;
    `downward` puts the lowest y at the top, as images do.
    """

    extent: tuple[float, float, float, float]
    window: tuple[float, float, float, float]
    stretch: float = 1.0
    meter: float | None = None
    degrees: bool = False
    downward: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """What is written on the sheet: above the map, at the legend, below, and across."""

    title: str
    subtitle: str
    legend: str
    caption: str
    stamp: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A sheet with the axes of a map, on which nothing is drawn yet.

    `wide` and `high` are those of the map in pixels; `edge`, `foot` and `legend_bottom` in inches
    are where words begin, where the map does, and the legend. A line holds about `letters`.
    """

    figure: Figure
    axis: Axes
    frame: Frame
    words: Words
    wide: int
    high: int
    edge: float
    foot: float
    legend_bottom: float
    letters: int

    @property
    def legend(self) -> str:
        """The words of the legend, as long as there is room."""
        return textwrap.shorten(self.words.legend, self.letters, placeholder=" …")

    @property
    def legend_box(self) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of the bar of colors, in inches."""
        return self.edge, self.legend_bottom + LEGEND - 0.2, 3.3, 0.13

    def draw_words(self) -> None:
        """Scale bar, stamp, title and caption: over whatever was drawn."""
        dpi, at = self.figure.dpi, self.edge / SHEET
        if self.frame.meter is not None:
            draw_scale_bar(self.axis, self.frame, inches=self.wide / dpi)
        if self.words.stamp:
            self.axis.text(
                0.5, 0.5, self.words.stamp, transform=self.axis.transAxes, ha="center", va="center",
                rotation=28, fontsize=min(10 * self.wide, 20 * self.high) / dpi, fontweight="bold",
                color=ALARM, alpha=0.16, parse_math=False, clip_on=True,
            )  # fmt: skip
        draw_head(self.figure, self.words, x=at, letters=self.letters)
        draw_foot(self.figure, _wrapped(self.words.caption, self.letters), x=at)


def new_sheet(
    values: FloatArray,
    frame: Frame,
    words: Words,
    *,
    top: float,
    under: Pixels | None = None,
    rows: int = 0,
) -> Sheet:
    """A sheet for a map and its words, with so many rows of explanations under the legend.

    InvalidParameter for values that are not finite [row, column], and a top that is not above 0.
    """
    if values.ndim != 2 or not np.isfinite(values).all():
        raise InvalidParameter(
            f"a map is finite [row, column], got shape {values.shape}; none was drawn"
        )
    if not top > 0:
        raise InvalidParameter(
            f"the top of the color scale must be above 0, got {top}; nothing was drawn"
        )
    load_without_help()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    wide, high, dpi = _size(frame, under)
    sheet = max(round(SHEET * dpi), wide + round((LEFT + RIGHT) * dpi))
    left = round(LEFT * dpi) + (sheet - round((LEFT + RIGHT) * dpi) - wide) // 2
    # Words begin where the map does, unless it is so narrow that they would have no room.
    edge = min(left / dpi, SHEET - RIGHT - WORDS)
    letters = int(LETTERS * (SHEET - RIGHT - edge))
    below = (TICKS if frame.degrees else 0.1) + LEGEND
    said = LINE * len(_wrapped(words.caption, letters)) + 0.12
    foot = below + said + (ROW * rows + 0.1 if rows else 0.0)
    head = HEAD + TITLE_LINE * (len(_title(words, letters)) - 1)
    tall = high + round(head * dpi) + round(foot * dpi)
    # A hundredth of a pixel more: the canvas is cut down to whole pixels.
    figure = _shown(Figure)(
        figsize=((sheet + 0.01) / dpi, (tall + 0.01) / dpi), dpi=dpi, facecolor=PAPER
    )
    FigureCanvasAgg(figure)
    axis = figure.add_axes((left / sheet, round(foot * dpi) / tall, wide / sheet, high / tall))
    return Sheet(figure, axis, frame, words, wide, high, edge, foot, foot - below, letters)


def _title(words: Words, letters: int) -> list[str]:
    """The title in one line or two: a comparison names two maps, and neither may be missing."""
    rows = textwrap.wrap(
        words.title, letters // 2, max_lines=2, placeholder=" …", break_on_hyphens=False
    )
    return rows or [""]


def _wrapped(caption: str, letters: int) -> list[str]:
    return [row for text in caption.split("\n") for row in textwrap.wrap(text, letters) or [""]]


def _shown(kind: type[Figure]) -> type[Figure]:
    """A figure that a notebook shows as it is, also where pyplot was never imported."""
    return type("Figure", (kind,), {"_repr_png_": png_of})


def png_of(figure: Figure, *, dpi: float | None = None) -> bytes:
    """A figure as PNG.

    Args:
        figure: A figure of matplotlib.
        dpi: Pixels to the inch; as the figure was made, if None.

    Returns:
        The bytes: no date and no version in them, so that the same values give the same ones.
    """
    from PIL import Image

    dots = dpi or figure.dpi
    raw = io.BytesIO()
    out = io.BytesIO()
    figure.savefig(raw, format="rgba", dpi=dots)
    wide, high = (int(inches * dots) for inches in figure.get_size_inches())
    # Without alpha, as nothing shines through a sheet, these are as small as matplotlib's, in half the time.
    pixels = Image.frombuffer("RGBA", (wide, high), raw.getvalue(), "raw", "RGBA", 0, 1)
    pixels.convert("RGB").save(out, format="PNG", compress_level=COMPRESSED, dpi=(dots, dots))
    return out.getvalue()


def _size(frame: Frame, under: Pixels | None) -> tuple[int, int, float]:
    """Width and height of the map in pixels, and pixels to the inch."""
    low_x, low_y, high_x, high_y = frame.window
    ratio = (high_y - low_y) * frame.stretch / (high_x - low_x)
    inches = min(SHEET - LEFT - RIGHT, TALLEST / ratio)
    if under is None:
        return max(1, round(inches * DPI)), max(1, round(inches * ratio * DPI)), DPI
    high, wide = under.shape[:2]
    return wide, high, wide / inches


def draw_places(axis: Axes, frame: Frame) -> None:
    """Longitudes and latitudes along the edges of a map in degrees; nothing for others."""
    if not frame.degrees:
        axis.set_xticks([])
        axis.set_yticks([])
        return
    for marks, put in zip(place_marks(frame), (axis.set_xticks, axis.set_yticks), strict=True):
        put([at for at, _ in marks], [said for _, said in marks])
    axis.tick_params(labelsize=FONT_TICK, colors=GREY, length=2.5, width=0.5, pad=2.5)
    axis.grid(color=LINES, alpha=0.18, linewidth=0.5)


def place_marks(frame: Frame) -> tuple[list[tuple[float, str]], list[tuple[float, str]]]:
    """The longitudes and the latitudes that are marked on a map in degrees, and what they are called.

    Args:
        frame: Where the map lies.

    Returns:
        Positions and words along x, and along y; none on a map that is not in degrees.

    """
    if not frame.degrees:
        return [], []
    low_x, low_y, high_x, high_y = frame.window
    # As far apart on the ground one way as the other, about six along the longer side.
    step = round_number(max(high_x - low_x, high_y - low_y) / 6)
    if step > 10:
        step = next(one for one in (15, 20, 30, 45, 60) if 7 * one >= high_x - low_x or one == 60)

    def marks(low: float, high: float, letters: str) -> list[tuple[float, str]]:
        places = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
        return [(place, degrees(place, letters, step=step)) for place in places]

    return marks(low_x, high_x, "EW"), marks(low_y, high_y, "NS")


def degrees(value: float, letters: str, *, step: float) -> str:
    """A longitude or latitude as written on maps; 190 degrees east are 170 west.

    >>> degrees(190, "EW", step=5), degrees(-0.25, "NS", step=0.25)
    ('170°W', '0.25°S')
    """
    around = (value + 180) % 360 - 180 if letters == "EW" else value
    if abs(around) < step / 100:
        return "0°"
    digits = max(
        0, -math.floor(math.log10(step) + 1e-9), len(f"{step:.10f}".rstrip("0").partition(".")[2])
    )
    letter = "" if letters == "EW" and around == -180 else letters[0 if around > 0 else 1]
    return f"{abs(around):.{digits}f}°{letter}"


def scale_bar(frame: Frame) -> tuple[float, str]:
    """A bar of a round length on the ground: which part of the map's width it is, and what it says.

    Args:
        frame: Where the map lies; its steps are meters, or what `meter` says.

    Returns:
        The part, at most a third, and words such as "2 km".

    >>> scale_bar(Frame((0, 0, 9000, 9000), (0, 0, 9000, 9000), meter=1.0))
    (0.2222222222222222, '2 km')
    """
    meters = (frame.window[2] - frame.window[0]) * (frame.meter or 1)
    tried = (round_number(meters / part) for part in (4, 8, 20))
    length = next(one for one in tried if one <= meters / 3)
    said = f"{length / 1000:,g} km" if length >= 1000 else f"{length:g} m"
    return length / meters, said


def bar_corner(axis: Axes, frame: Frame) -> tuple[float, float]:
    """How far the scale bar and its words reach from the left and from below, in parts of the map."""
    box, dpi = axis.get_window_extent(), axis.figure.dpi
    return 1.5 * BAR * dpi / box.width + scale_bar(frame)[0], 0.4 * dpi / box.height


def draw_scale_bar(axis: Axes, frame: Frame, *, inches: float) -> None:
    """A bar of a round length on the ground, in the corner of a map so many inches wide."""
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    share, said = scale_bar(frame)
    high = axis.get_window_extent().height / axis.figure.dpi
    x, y, wide, thick = BAR / inches, BAR / high, share, 0.045 / high
    style: dict[str, Any] = {"transform": axis.transAxes, "zorder": 5}
    axis.add_patch(
        Rectangle((x, y), wide, thick, facecolor="white", edgecolor=INK, linewidth=0.7, **style)
    )
    axis.add_patch(
        Rectangle((x, y), wide / 2, thick, facecolor=INK, edgecolor=INK, linewidth=0.7, **style)
    )
    axis.text(
        x + wide, y + thick + 0.04 / high, said, ha="right", va="bottom", fontsize=FONT_SMALL, color=INK,
        path_effects=[withStroke(linewidth=2, foreground="white", alpha=0.85)], **style,
    )  # fmt: skip


def draw_head(figure: Figure, words: Words, *, x: float, letters: int) -> None:
    """Title and subtitle, cut to so many letters, from x on, in widths of the sheet."""
    height = figure.get_size_inches()[1]
    down = -TITLE_LINE
    for line in _title(words, letters):
        down += TITLE_LINE
        figure.text(
            x, 1 - (0.36 + down) / height, line, va="baseline",
            fontsize=FONT_TITLE, fontweight="bold", color=INK, parse_math=False,
        )  # fmt: skip
    figure.text(
        x, 1 - (0.61 + down) / height,
        textwrap.shorten(words.subtitle, letters * 7 // 8, placeholder=" …"), ha="left", va="baseline",
        fontsize=FONT_NOTE, color=GREY, parse_math=False,
    )  # fmt: skip


def draw_foot(figure: Figure, lines: list[str], *, x: float) -> None:
    """The lines of the caption, at the bottom of the sheet."""
    height = figure.get_size_inches()[1]
    for number, line in enumerate(reversed(lines)):
        figure.text(
            x, (0.16 + LINE * number) / height, line, fontsize=FONT_SMALL, color=GREY, va="baseline",
            parse_math=False,
        )  # fmt: skip
