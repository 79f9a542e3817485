"""The legend of a map: its colors by the same rule as the map's, and numbers as people say them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato._types import FloatArray
from sfumato.figures.style import (
    FONT_KEY,
    FONT_TICK,
    FRAME,
    GREY,
    INK,
    Pixels,
    glow,
    palette,
    shades,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_legend(
    figure: Figure,
    said: str,
    *,
    box: tuple[float, float, float, float],
    shade: tuple[float, float],
    amount: float | None,
    over: bool,
) -> None:
    """A strip of colors, made by the same `shades` as the map, its values spaced by their root."""
    width, height = figure.get_size_inches()
    left, bottom, wide, high = box
    axis = figure.add_axes((left / width, (bottom - high) / height, wide / width, high / height))
    top, floor = shade
    steps = np.linspace(0, 1, 512)
    strip = shades(top * steps**2, top=top, floor=floor)[None, :]
    colors = (
        lay_over(np.full((1, 512, 3), 200, dtype=np.uint8), strip)
        if over
        else palette()[np.round(255 * strip).astype(np.int64)]
    )
    axis.imshow(colors, extent=(0, 1, 0, 1), aspect="auto", interpolation="nearest")
    marks = [0, 0.05, 0.25, 0.5, 1]
    said_marks = [
        percent(mark * top) if amount is None else many(mark * top * amount) for mark in marks
    ]
    axis.set_xticks([math.sqrt(mark) for mark in marks], said_marks)
    axis.set_yticks([])
    axis.tick_params(labelsize=FONT_TICK, colors=INK, length=2, width=0.5, pad=2)
    for spine in axis.spines.values():
        spine.set_linewidth(0.5)
        spine.set_color(FRAME)
    axis.text(
        0,
        1.7,
        said,
        transform=axis.transAxes,
        fontsize=FONT_KEY,
        color=INK,
        va="bottom",
        parse_math=False,
    )
    if floor > 0:
        at = math.sqrt(min(floor / top, 1))
        axis.plot([at], [1.25], marker="v", markersize=3.5, color=INK, clip_on=False)
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1)
        axis.annotate(
            "below the mark: may be noise" if floor < top else "all of it may be noise", (at, 1),
            xytext=(1.06, 0.5), textcoords="axes fraction", fontsize=FONT_TICK, color=GREY, va="center",
        )  # fmt: skip


def lay_over(image: Pixels, shade: FloatArray) -> Pixels:
    """An image with heat on it: the stronger the shade, the less of the image shines through.

    Both are [row, column] of one shape, row 0 at the top; where the shade is 0 the image is left as
    it is.
    """
    return covered(image, glow()[np.round(255 * shade).astype(np.int64)], shade)


def covered(image: Pixels, colors: Pixels, strength: FloatArray) -> Pixels:
    """An image under colors: the stronger they are, from 0 to 1, the less of it shines through.

    All are [row, column]; of strength 0 the image is left as it is, and a fifth is seen at least.
    """
    cover = np.minimum(1.6 * strength, 0.8)[..., None]
    return np.asarray(np.round(image * (1 - cover) + colors * cover), dtype=np.uint8)


def percent(share: float) -> str:
    """A share as people read it.

    >>> percent(0.0125), percent(0), percent(2e-7)
    ('1.25%', '0', '0.00002%')
    """
    if share == 0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(100 * share)))
    text = f"{100 * share:.{digits + 1}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def many(value: float) -> str:
    """A number of people, or of them to a square kilometre: three digits, thousands apart.

    >>> many(0), many(0.05), many(12_345), many(999.7), many(2.5e9)
    ('0', '0.05', '12,300', '1,000', '2,500M')
    """
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 1e6:
        return f"{many(rounded / 1e6)}M"
    return f"{rounded:,.0f}" if abs(rounded) >= 1000 else f"{rounded:g}"
