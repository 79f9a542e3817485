"""Errors against everything that can be changed, a panel for each, with whiskers and bounds, as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.intervals import Series, log_marks
from sfumato.figures.sheet import LEFT, RIGHT, grid_lines, heading, number, panel, png, sheet
from sfumato.figures.style import FONT_KEY, FONT_SMALL, GREY, INK, LEVEL, STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, HIGH = 8.0, 2.1  # inches: of the sheet, and of a panel
BETWEEN, ABOVE, BELOW, KEY = 0.75, 0.36, 0.5, 0.45
COLUMNS = 2
DASHES = {0: (1, 1.5), 1: (5, 2)}
LOWEST = 0.01  # of the least mean: bounds that are farther down are not looked for


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Series with whiskers over one axis; lines by name at the same places, nan where there are none.

    `mark` is the x that is planned, `level` a y to compare with; either may lack.
    """

    title: str
    x_label: str
    series: Sequence[Series]
    lines: Mapping[str, FloatArray] = field(default_factory=dict)
    mark: float | None = None
    level: float | None = None
    y_label: str = "mean error"


def draw_recovery_forecast(panels: Sequence[Panel], *, caption: str) -> bytes:
    """One PNG with a panel for each thing that can be changed, to see at a glance which of them helps.

    Both axes are logarithmic; a value of 0 is drawn at the bottom.

    Args:
        panels: One for each thing that can be changed, with at least one series; x above 0.
        caption: Words below the picture, wrapped.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: Without a panel or a series, or with an x that is not above 0.
    """
    if not panels or any(not one.series for one in panels):
        raise InvalidParameter(
            "a picture needs a panel, and every panel a series, got none; nothing was drawn"
        )
    for one in panels:
        x = np.concatenate([some.x for some in one.series])
        if not (x > 0).all() or not any((some.middle > 0).any() for some in one.series):
            raise InvalidParameter(
                f"values on a log axis must be above 0, {one.title!r} has others; nothing was drawn"
            )
    rows = -(-len(panels) // COLUMNS)
    step = HIGH + ABOVE + BELOW
    wide = (WIDE - LEFT - RIGHT - BETWEEN * (COLUMNS - 1)) / COLUMNS
    figure, foot = sheet(WIDE, rows * step + KEY, caption)
    named: dict[str, Any] = {}
    for at, one in enumerate(panels):
        row, column = divmod(at, COLUMNS)
        box = (LEFT + column * (wide + BETWEEN), foot + (rows - 1 - row) * step + BELOW, wide, HIGH)
        axis = panel(figure, box)
        _draw(axis, one)
        handles, labels = axis.get_legend_handles_labels()
        if one.y_label == panels[0].y_label:
            named |= dict(zip(labels, handles, strict=True))
    order = sorted(
        named, key=lambda name: not hasattr(named[name], "lines")
    )  # whiskers before lines
    drawn = figure.legend(
        [named[name] for name in order], order, loc="upper left", ncols=3, frameon=False, fontsize=FONT_SMALL,
        bbox_to_anchor=(LEFT / WIDE - 0.01, 1.0), labelcolor=INK, handlelength=1.9, columnspacing=1.2,
    )  # fmt: skip
    for text in drawn.get_texts():
        text.set_parse_math(False)
    return png(figure)


def _draw(axis: Axes, one: Panel) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    bottom = _bottom(one)
    for k, some in enumerate(one.series):
        color, marker = STYLES[k % len(STYLES)]
        low, middle, high = (
            np.maximum(part, bottom) for part in (some.low, some.middle, some.high)
        )
        axis.errorbar(
            some.x, middle, yerr=np.stack([middle - low, high - middle]), color=color, marker=marker,
            markersize=3.8, linewidth=1.3, elinewidth=0.9, capsize=2, label=some.name,
        )  # fmt: skip
    x = one.series[0].x
    for k, (name, y) in enumerate(one.lines.items()):
        axis.plot(x, y, color=GREY, linewidth=1.1, linestyle=(0, DASHES[k % 2]), label=name)
    if one.level is not None:
        axis.axhline(one.level, color=LEVEL, linewidth=1, label="no reading at all")
    if one.mark is not None:
        axis.axvline(one.mark, color=INK, linewidth=0.7, linestyle=(0, (4, 3)), label="planned")
    _numbers(axis, one)
    grid_lines(axis)
    axis.set_xlabel(one.x_label, fontsize=FONT_KEY, color=INK, parse_math=False)
    axis.set_ylabel(one.y_label, fontsize=FONT_KEY, color=INK, parse_math=False)
    heading(axis, one.title)


def _bottom(one: Panel) -> float:
    """Half of the least value above 0, of bounds too: what is drawn there is below all that is drawn."""
    y = np.concatenate([part for some in one.series for part in (some.low, some.middle)])
    least = float(y[y > 0].min()) / 2
    return float(np.min([least, *(_near(one, least) / 2)]))


def _near(one: Panel, bottom: float) -> FloatArray:
    """The bounds, and the level to compare with, that are not too far down to be looked for."""
    bounds = np.concatenate([*one.lines.values(), [one.level or np.nan]])
    return np.asarray(bounds[np.isfinite(bounds) & (bounds > LOWEST * bottom)])


def _numbers(axis: Axes, one: Panel) -> None:
    """Limits that show all series, and bounds that are not too far from them; numbers in full."""
    x = np.concatenate([some.x for some in one.series])
    bottom = _bottom(one)
    y = np.concatenate([part for some in one.series for part in (some.low, some.middle, some.high)])
    y = np.concatenate([np.maximum(y, bottom), _near(one, bottom)])
    for put, marks, (low, high) in (
        (axis.set_xlim, axis.set_xticks, (float(x.min()), float(x.max()))),
        (axis.set_ylim, axis.set_yticks, (float(y.min()), float(y.max()))),
    ):
        margin = (high / low) ** 0.06 if high > low else 2.0
        put(low / margin, high * margin)
        shown = log_marks(low / margin, high * margin)
        marks(shown, [number(mark) for mark in shown])
        marks([], minor=True)
