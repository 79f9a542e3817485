"""Forecast metrics against epsilon, each with its band, and the point that was asked for, as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.figures.intervals import Series, log_marks
from sfumato.figures.sheet import (
    LEFT,
    RIGHT,
    grid_lines,
    heading,
    number,
    panel,
    plain_numbers,
    png,
    sheet,
)
from sfumato.figures.style import FONT_KEY, FOUND, GREY, INK, TRUE

WIDE, HIGH = 8.0, 2.0  # inches: of the sheet, and of a panel
BETWEEN, ABOVE, BELOW = 0.7, 0.36, 0.5
COLUMNS = 2


@dataclass(frozen=True, slots=True)
class Highlight:
    """What is marked in the panels: an x on all of them, and a y on the one of this name; either may lack."""

    x: float | None = None
    name: str = ""
    y: float | None = None


def draw_forecast(
    panels: Sequence[Series], *, x_label: str, marked: Highlight, caption: str
) -> bytes:
    """One PNG with a panel for each metric, to see at a glance what more of x would buy.

    Args:
        panels: One series for each metric; x above 0.
        x_label: What the x axis measures.
        marked: The point that was asked for.
        caption: Words below the picture, wrapped.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: Without a panel, or with an x that is not above 0.
    """
    if not panels:
        raise InvalidParameter("a picture needs at least one panel, got none; nothing was drawn")
    if any(not (one.x > 0).all() for one in panels):
        raise InvalidParameter(
            "values on a log axis must be above 0, got others; nothing was drawn"
        )
    rows = -(-len(panels) // COLUMNS)
    step = HIGH + ABOVE + BELOW
    wide = (WIDE - LEFT - RIGHT - BETWEEN * (COLUMNS - 1)) / COLUMNS
    figure, foot = sheet(WIDE, rows * step, caption)
    for at, one in enumerate(panels):
        row, column = divmod(at, COLUMNS)
        box = (LEFT + column * (wide + BETWEEN), foot + (rows - 1 - row) * step + BELOW, wide, HIGH)
        axis = panel(figure, box)
        axis.set_xscale("log")
        axis.fill_between(one.x, one.low, one.high, color=FOUND, alpha=0.18, linewidth=0)
        axis.plot(one.x, one.middle, color=FOUND, linewidth=1.5)
        if marked.x is not None:
            middle = float(np.interp(np.log(marked.x), np.log(one.x), one.middle))
            axis.axvline(marked.x, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
            axis.plot([marked.x], [middle], "o", color=FOUND, markersize=5)
        if marked.y is not None and marked.name == one.name:
            axis.axhline(marked.y, color=TRUE, linewidth=0.9, linestyle=(0, (4, 3)))
        axis.set_xlim(float(one.x.min()), float(one.x.max()))
        marks = log_marks(float(one.x.min()), float(one.x.max()))
        axis.set_xticks(marks, [number(mark) for mark in marks])
        axis.set_xticks([], minor=True)
        axis.set_ylim(bottom=0)
        plain_numbers(axis, "y")
        grid_lines(axis)
        axis.set_xlabel(x_label, fontsize=FONT_KEY, color=INK, parse_math=False)
        heading(axis, one.name)
    return png(figure)
