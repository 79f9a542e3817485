"""Measured errors with their intervals against a parameter, several series in one picture, as PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.sheet import (
    LEFT,
    RIGHT,
    grid_lines,
    heading,
    key,
    number,
    panel,
    plain_numbers,
    png,
    sheet,
    vector,
)
from sfumato.figures.style import FONT_LABEL, GREY, INK, STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Scale = Literal["linear", "log"]

WIDE, HIGH = 8.0, 3.6
APART = 3.0  # points between series at one x, so that their intervals do not cover each other


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One line of a picture: at each x a middle value and the ends of its interval."""

    name: str
    x: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray

    def __post_init__(self) -> None:
        size = np.size(self.x)
        for field in ("x", "middle", "low", "high"):
            object.__setattr__(
                self, field, vector(f"{field} of {self.name}", getattr(self, field), size, "points")
            )
        # matplotlib leaves names with an underscore out of legends
        if not self.name or self.name.startswith("_"):
            raise InvalidParameter(
                f"a series needs a name that does not begin with _, got {self.name!r}; nothing was drawn"
            )
        if not size:
            raise InvalidParameter(
                f"a series needs a point, {self.name} has none; nothing was drawn"
            )
        if not ((self.low <= self.middle) & (self.middle <= self.high)).all():
            raise InvalidParameter(
                f"an interval holds its middle, one of {self.name} does not; nothing was drawn"
            )


def draw_intervals(
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str = "error (earth mover's distance)",
    title: str = "",
    x_scale: Scale = "linear",
    y_scale: Scale = "linear",
    slopes: Sequence[float] = (),
    caption: str,
) -> bytes:
    """One PNG of measured values with 95 % intervals, for judging orderings and rates at a glance.

    Args:
        series: 1 to 8 of them, each with a name of its own.
        x_label: What the x axis measures.
        y_label: What the y axis measures.
        title: What the panel is called.
        x_scale: "linear" or "log".
        y_scale: "linear" or "log"; the lower end of an interval that is not above 0 is cut at a log
            axis.
        slopes: Rates to compare with on two log axes: dashed lines y = c x**slope through the
            middle of the first series.
        caption: Words below the picture, wrapped.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For too many series, names that repeat, or values that a log axis has not.
    """
    if not 0 < len(series) <= len(STYLES):
        raise InvalidParameter(
            f"a picture has 1 to {len(STYLES)} series, got {len(series)}; nothing was drawn"
        )
    names = [one.name for one in series]
    if len(set(names)) < len(names):
        raise InvalidParameter(
            f"every series needs a name of its own, got {names}; nothing was drawn"
        )
    if slopes and (x_scale, y_scale) != ("log", "log"):
        raise InvalidParameter(
            "a slope is a line only on two log axes, got others; nothing was drawn"
        )
    for one in series:
        for scale, values in ((x_scale, one.x), (y_scale, one.middle)):
            if scale == "log" and not (values > 0).all():
                raise InvalidParameter(
                    f"values on a log axis must be above 0, {one.name} has others; nothing was drawn"
                )
    columns = 3
    rows = -(-(len(series) + len(slopes)) // columns)
    figure, foot = sheet(WIDE, HIGH + 0.85 + 0.2 * rows + 0.25 * bool(title), caption)
    axis = panel(figure, (LEFT, foot + 0.55, WIDE - LEFT - RIGHT, HIGH))
    axis.set_xscale(x_scale)
    axis.set_yscale(y_scale)
    for k, one in enumerate(series):
        _line(axis, one, STYLES[k], shift=APART * (k - (len(series) - 1) / 2))
    _limits(axis, series, (x_scale, y_scale))
    for k, slope in enumerate(slopes):
        _slope(axis, series[0], slope, dashes=(6 - 2 * (k % 3), 2.5))
    for scale, name in ((x_scale, "x"), (y_scale, "y")):
        if scale == "linear":
            plain_numbers(axis, name)
        else:
            _log_numbers(axis, name)
    grid_lines(axis)
    axis.set_xlabel(x_label, fontsize=FONT_LABEL, color=INK, parse_math=False)
    axis.set_ylabel(y_label, fontsize=FONT_LABEL, color=INK, parse_math=False)
    axis.yaxis.set_label_coords(-0.6 / (WIDE - LEFT - RIGHT), 0.5)
    key(axis, columns=columns, order=names + [slope_name(slope) for slope in slopes])
    if title:
        heading(axis, title, lift=0.12 + 0.2 * rows)
    return png(figure)


def _line(axis: Axes, one: Series, style: tuple[str, str], *, shift: float) -> None:
    from matplotlib.transforms import ScaledTranslation

    color, marker = style
    order = np.argsort(one.x, kind="stable")
    x, middle = one.x[order], one.middle[order]
    ends = np.stack([middle - one.low[order], one.high[order] - middle])
    aside = axis.transData + ScaledTranslation(shift / 72, 0, axis.figure.dpi_scale_trans)
    axis.errorbar(
        x, middle, yerr=ends, color=color, marker=marker, markersize=4.5, linewidth=1.3, elinewidth=1,
        capsize=2.2, capthick=1, label=one.name, transform=aside,
    )  # fmt: skip


def _limits(axis: Axes, series: Sequence[Series], scales: tuple[Scale, Scale]) -> None:
    """Room for all intervals; those that reach below 0 take half a decade on a log axis."""
    x = np.concatenate([one.x for one in series])
    y = np.concatenate([part for one in series for part in (one.low, one.middle, one.high)])
    for scale, values, put in ((scales[0], x, axis.set_xlim), (scales[1], y, axis.set_ylim)):
        seen = values[values > 0] if scale == "log" else values
        low, high = float(seen.min()), float(seen.max())
        if scale == "log":
            margin = (high / low) ** 0.05 if high > low else 2.0
            put(low / margin, high * margin)
        else:
            margin = 0.05 * (high - low) if high > low else 1.0
            put(low - margin, high + margin)


def _log_numbers(axis: Axes, name: str) -> None:
    one, (low, high) = (
        (axis.xaxis, axis.get_xlim()) if name == "x" else (axis.yaxis, axis.get_ylim())
    )
    marks = log_marks(low, high)
    one.set_ticks(marks, [number(mark) for mark in marks])
    one.set_ticks([], minor=True)


def log_marks(low: float, high: float) -> list[float]:
    """Numbers to write at a log axis: 1, 2 and 5 times powers of ten, or fewer where there are many.

    >>> log_marks(0.15, 3), log_marks(1e-9, 1e3)
    ([0.2, 0.5, 1.0, 2.0], [1e-09, 1e-07, 1e-05, 0.001, 0.1, 10.0, 1000.0])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = math.log10(high / low)
    steps = "125" if decades < 3 else "1"
    if decades < 0.7:
        steps = "123456789" if decades > 0.1 else ""
    powers = range(first, last + 1, 1 if decades < 8 else math.ceil(decades / 6))
    marks = [float(f"{step}e{power}") for power in powers for step in steps]
    found = [mark for mark in marks if low * (1 - 1e-9) <= mark <= high * (1 + 1e-9)]
    # Within a tenth of a decade a log axis is nearly linear.
    return found or sorted({float(f"{mark:.3g}") for mark in (low, (low + high) / 2, high)})


def slope_name(slope: float) -> str:
    """What the legend calls a reference line."""
    return f"slope {slope:g}"


def _slope(axis: Axes, one: Series, slope: float, *, dashes: tuple[float, float]) -> None:
    center = np.exp(np.log(one.x).mean()), np.exp(np.log(one.middle).mean())
    ends = np.array(axis.get_xlim())
    axis.plot(
        ends, center[1] * (ends / center[0]) ** slope, color=GREY, linewidth=1, linestyle=(0, dashes),
        label=slope_name(slope), zorder=1, scalex=False, scaley=False,
    )  # fmt: skip
