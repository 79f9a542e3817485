"""The sheet that pictures of sensors share: margins in inches, a caption below, a stamp across, PNG out."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.style import (
    ALARM,
    DPI,
    FONT_HEADING,
    FONT_KEY,
    FONT_PANEL,
    FONT_SMALL,
    FONT_TICK,
    FRAME,
    GREY,
    INK,
    LETTERS,
    LINE,
    LINES,
    PAPER,
    TRUE,
    load_without_help,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure


LEFT, RIGHT = 0.78, 0.3  # inches
BANNER = 0.42  # inches at the top of a sheet that has one
# Of the top of a scale: smaller masses are not drawn, solvers leave some that are rounding.
FAINT = 1 / 200


def sheet(width: float, height: float, caption: str) -> tuple[Figure, float]:
    """An empty figure for panels of this height in inches, its caption written; and how high that reaches."""
    load_without_help()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    letters = int(LETTERS * (width - LEFT - RIGHT))
    lines = [row for text in caption.split("\n") for row in textwrap.wrap(text, letters) or [""]]
    foot = 0.22 + LINE * len(lines)
    tall = foot + height
    # A hundredth of a pixel more: the canvas is cut down to whole pixels.
    figure = Figure(figsize=(width + 0.01 / DPI, tall + 0.01 / DPI), dpi=DPI, facecolor=PAPER)
    FigureCanvasAgg(figure)
    for number, line in enumerate(reversed(lines)):
        figure.text(
            LEFT / width, (0.16 + LINE * number) / tall, line, fontsize=FONT_SMALL, color=GREY, va="baseline",
            parse_math=False,
        )  # fmt: skip
    return figure, foot


def panel(
    figure: Figure, box: tuple[float, float, float, float], *, share: Axes | None = None
) -> Axes:
    """A panel at left, bottom, width, height in inches."""
    width, height = figure.get_size_inches()
    left, bottom, wide, high = box
    axis = figure.add_axes(
        (left / width, bottom / height, wide / width, high / height), sharex=share
    )
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axis.spines[side].set_linewidth(0.6)
        axis.spines[side].set_color(FRAME)
    axis.tick_params(labelsize=FONT_KEY, colors=INK, length=3, width=0.6)
    return axis


def inches(axis: Axes) -> tuple[float, float]:
    """Width and height of a panel."""
    wide, high = axis.get_position().size * cast("Figure", axis.figure).get_size_inches()
    return float(wide), float(high)


def heading(axis: Axes, title: str, *, lift: float = 0.06) -> None:
    """What a panel shows, at its top left; `lift` is inches above the panel."""
    height = inches(axis)[1]
    axis.text(
        0, 1 + lift / height, title, transform=axis.transAxes, fontsize=FONT_HEADING, fontweight="bold",
        color=INK, va="bottom", parse_math=False,
    )  # fmt: skip


def key(axis: Axes, *, columns: int = 4, order: Sequence[str] | None = None) -> None:
    """The legend of a panel, above its top right, where there is no data; labels as drawn or in an order."""
    handles, labels = axis.get_legend_handles_labels()
    if not handles:
        return
    if order is not None:
        handles, labels = [handles[labels.index(label)] for label in order], list(order)
    height = inches(axis)[1]
    drawn = axis.legend(
        handles, labels, loc="lower right", bbox_to_anchor=(1.01, 1 + 0.02 / height), ncols=columns,
        frameon=False, fontsize=FONT_KEY, handlelength=1.9, handletextpad=0.5, columnspacing=1.3,
        borderaxespad=0.1, labelcolor=INK,
    )  # fmt: skip
    for text in drawn.get_texts():
        text.set_parse_math(False)


def grid_lines(axis: Axes) -> None:
    """Faint lines at the numbers of a panel, behind what is drawn."""
    axis.grid(color=LINES, alpha=0.18, linewidth=0.5)
    axis.set_axisbelow(True)


def plain_numbers(axis: Axes, which: str = "both", *, most: int = 10) -> None:
    """Write the numbers at linear axes in full, so that no factor or offset has to be looked for."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for name, one in (("x", axis.xaxis), ("y", axis.yaxis)):
        if which in (name, "both"):
            one.set_major_locator(
                MaxNLocator(nbins=most if name == "x" else 6, steps=[1, 2, 2.5, 5, 10])
            )
            one.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def number(value: float) -> str:
    """A number at an axis: ten digits hide the rounding of a tick and show everything else.

    >>> number(0.30000000000000004), number(-20.0), number(0.0)
    ('0.3', '-20', '0')
    """
    return f"{value + 0.0:.10g}"


def color_bar(
    axis: Axes,
    colors: Colormap,
    scale: Normalize,
    *,
    label: str,
    part: tuple[float, float] = (0.0, 1.0),
    drop: float = 0.13,
) -> None:
    """A strip of colors below a panel and what it measures, over a part of its width: begin and share."""
    from matplotlib.cm import ScalarMappable

    figure = cast("Figure", axis.figure)
    width, height = figure.get_size_inches()
    place = axis.get_position()
    strip = figure.add_axes(
        (
            place.x0 + part[0] * place.width,
            place.y0 - (drop + 0.11) / height,
            part[1] * place.width,
            0.11 / height,
        )
    )
    bar = figure.colorbar(ScalarMappable(scale, colors), cax=strip, orientation="horizontal")
    cast(Any, bar.outline).set_linewidth(0.5)
    bar.set_label(label, fontsize=FONT_KEY, color=INK, labelpad=2, parse_math=False)
    plain_numbers(strip, "x", most=max(2, int(1.6 * part[1] * place.width * width)))
    strip.tick_params(labelsize=FONT_TICK, colors=INK, length=2, width=0.5, pad=2)


def dots(
    axis: Axes,
    at: FloatArray,
    *,
    size: FloatArray | float,
    fill: Any,
    edge: Any,
    width: float,
    order: float,
    **rest: Any,
) -> None:
    """Dots [dot, x and y] of sizes in square points, filled by colors or by values of a color map."""
    axis.scatter(
        at[:, 0], at[:, 1], s=size, c=fill, edgecolors=edge, linewidths=width, zorder=order, **rest
    )


def crosses(axis: Axes, at: FloatArray, *, label: str = "simulated sources") -> None:
    """Mark where sources truly are, which is known in simulations only, and say so in the legend."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=3.6, foreground="white")]
    axis.plot(
        at[:, 0],
        at[:, 1],
        "x",
        color=TRUE,
        markersize=8,
        markeredgewidth=1.9,
        path_effects=halo,
        zorder=6,
    )
    axis.plot([], [], "x", color=TRUE, markersize=7, markeredgewidth=1.9, label=label)


def stamp(axis: Axes) -> None:
    """Write across a panel that nothing in it was released."""
    wide, high = inches(axis)
    axis.text(
        0.5, 0.5, "REHEARSAL", transform=axis.transAxes, ha="center", va="center",
        rotation=min(28.0, 28.0 * high / wide * 1.6), fontsize=min(9 * wide, 22 * high), fontweight="bold",
        color=ALARM, alpha=0.16, zorder=20,
    )  # fmt: skip


def remark_on(axis: Axes, words: str) -> None:
    """Write in the middle of a panel why it shows nothing, so that nobody takes it for an empty place."""
    axis.text(
        0.5, 0.55, words, transform=axis.transAxes, ha="center", va="center", fontsize=FONT_PANEL, color=ALARM,
        fontweight="bold", zorder=21, bbox={"facecolor": "white", "edgecolor": ALARM, "pad": 6},
    )  # fmt: skip


def banner(figure: Figure, words: str) -> None:
    """Write across the top of a sheet what must be known first, where it hides nothing: BANNER inches high."""
    height = figure.get_size_inches()[1]
    figure.text(
        0.5, 1 - 0.5 * BANNER / height, words, ha="center", va="center", fontsize=FONT_PANEL, color=ALARM,
        fontweight="bold", zorder=21, parse_math=False,
        bbox={"facecolor": "white", "edgecolor": ALARM, "pad": 5},
    )  # fmt: skip


def png(figure: Figure) -> bytes:
    """The finished picture."""
    out = io.BytesIO()
    # No date and no version in the file: the same values give the same bytes.
    figure.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    return out.getvalue()


def span(*values: FloatArray) -> tuple[float, float]:
    """The least interval that holds all these numbers; one of width 2 where they are all the same."""
    low = min(float(part.min()) for part in values)
    high = max(float(part.max()) for part in values)
    return (low, high) if low < high else (low - 1.0, high + 1.0)


def vector(name: str, values: npt.ArrayLike, size: int, each: str) -> FloatArray:
    """One finite number for each of so many things, or say which rule is broken."""
    array = _array(name, values)
    if array.shape != (size,):
        raise InvalidParameter(
            f"{name} must be one number for each of {size} {each}, got shape {array.shape}; nothing was drawn"
        )
    return array


def places(name: str, values: npt.ArrayLike, count: int | None = None) -> FloatArray:
    """Rows of two finite coordinates, or say which rule is broken."""
    array = _array(name, values)
    if (
        array.ndim != 2
        or array.shape[1] != 2
        or not len(array)
        or len(array) != (count or len(array))
    ):
        wanted = "at least one row" if count is None else f"{count} rows"
        raise InvalidParameter(
            f"{name} must be {wanted} of 2 coordinates, got shape {array.shape}; nothing was drawn"
        )
    return array


def _array(name: str, values: npt.ArrayLike) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"{name} must be real numbers, got something else; nothing was drawn"
        ) from None
    if not np.isfinite(array).all():
        raise InvalidParameter(f"{name} must be finite, got NaN or infinity; nothing was drawn")
    return array
