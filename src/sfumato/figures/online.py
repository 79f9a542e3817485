"""Pictures of online learning: what was lost against the best fixed choice, and what was promised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.sheet import (
    LEFT,
    RIGHT,
    grid_lines,
    heading,
    key,
    panel,
    plain_numbers,
    png,
    sheet,
    stamp,
    vector,
)
from sfumato.figures.style import FONT_LABEL, GREY, INK, STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, HIGH, COLUMNS = 8.0, 3.0, 4
MAX_PATHS = len(STYLES)
TOO_LONG = 1e9  # numbers of more digits are written with a power of ten


def regret_picture(
    paths: Mapping[str, npt.ArrayLike],
    bounds: Mapping[str, npt.ArrayLike],
    *,
    caption: str,
    title: str = "",
    rounds: npt.ArrayLike | None = None,
    rehearsal: bool = False,
) -> bytes:
    """One PNG of regret against bound: a line for each learner, and its bound dashed in the same color.

    The picture is cut above the highest path where a bound is far away.

    Args:
        paths: Regret by name of the learner, one number for each round.
        bounds: Bounds on the regret of some of them, by the same names.
        caption: Words below the picture, wrapped.
        title: What the panel is called; a usual title if empty.
        rounds: The rounds, increasing; 1, 2, ... if left out.
        rehearsal: Whether REHEARSAL is written across the panel.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For too many paths, bounds of others, or rounds that do not rise.
    """
    if not 1 <= len(paths) <= MAX_PATHS or not bounds.keys() <= paths.keys():
        raise InvalidParameter(
            f"there must be 1 to {MAX_PATHS} paths, and each bound must be of one of them, got paths "
            f"{sorted(paths)} and bounds {sorted(bounds)}; nothing was drawn"
        )
    count = np.size(next(iter(paths.values())))
    x = vector("rounds", np.arange(1, count + 1) if rounds is None else rounds, count, "points")
    if count < 1 or (np.diff(x) <= 0).any():
        raise InvalidParameter("rounds must rise, and be at least one; nothing was drawn")
    lines = {
        name: vector(f"the path of {name}", path, count, "rounds") for name, path in paths.items()
    }
    limits = {
        name: vector(f"the bound of {name}", bound, count, "rounds")
        for name, bound in bounds.items()
    }
    rows = -(-(len(lines) + bool(limits)) // COLUMNS)  # of the legend, above the panel
    figure, foot = sheet(WIDE, HIGH + 1.1 + 0.17 * (rows - 1), caption)
    axis = panel(figure, (LEFT, foot + 0.55, WIDE - LEFT - RIGHT, HIGH))
    axis.axhline(0, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    mark = "o" if count == 1 else ""
    dashed = (0, (5, 2))
    for (name, path), (color, _) in zip(lines.items(), STYLES, strict=False):
        axis.plot(x, path, color=color, linewidth=1.6, marker=mark, label=name, zorder=3)
        if name in limits:
            axis.plot(
                x, limits[name], color=color, linewidth=1.2, linestyle=dashed, marker=mark, zorder=2
            )
    if limits:
        own = next(color for name, (color, _) in zip(lines, STYLES, strict=False) if name in limits)
        axis.plot(
            [],
            [],
            color=own if len(limits) == 1 else GREY,
            linewidth=1.2,
            linestyle=dashed,
            label="bound",
        )
    axis.set_xlim(float(x[0]) - (count == 1), float(x[-1]) + (count == 1))
    axis.set_ylim(*_window(lines, limits))
    plain_numbers(axis)
    _thousands(axis)
    grid_lines(axis)
    axis.set_xlabel("rounds", fontsize=FONT_LABEL, color=INK)
    _make_room(axis)
    axis.set_ylabel("regret", fontsize=FONT_LABEL, color=INK)
    key(axis, columns=COLUMNS)
    heading(axis, title or "regret against bound")
    if rehearsal:
        stamp(axis)
    return png(figure)


def _thousands(axis: Axes) -> None:
    """Write 15,000,000 for 15000000, and four digits and a power of ten where all of them are too many."""
    from matplotlib.ticker import FuncFormatter

    for one in (axis.xaxis, axis.yaxis):
        digits = ",.10g" if max(map(abs, one.get_view_interval())) < TOO_LONG else ".4g"
        one.set_major_formatter(
            FuncFormatter(lambda value, _, digits=digits: f"{value + 0.0:{digits}}")
        )


def _make_room(axis: Axes) -> None:
    """Set what the axis measures left of its numbers, and begin the panel further right if they are wide."""
    figure = cast("Figure", axis.figure)
    numbers = axis.yaxis.get_tightbbox(cast(Any, figure.canvas).get_renderer())
    wide = 0.0 if numbers is None else (axis.bbox.x0 - numbers.x0) / figure.dpi
    away = max(0.6, wide + 0.1)
    left = max(LEFT, away + 0.18)
    place = axis.get_position()
    axis.set_position((left / WIDE, place.y0, (WIDE - left - RIGHT) / WIDE, place.height))
    axis.yaxis.set_label_coords(-away / (WIDE - left - RIGHT), 0.5)


def _window(
    lines: Mapping[str, FloatArray], limits: Mapping[str, FloatArray]
) -> tuple[float, float]:
    """The ends of the axis: all paths, and bounds up to four times the highest of them."""
    low = min(0.0, *(float(path.min()) for path in lines.values()))
    top = max(float(path.max()) for path in lines.values())
    far = max([top, *(float(bound.max()) for bound in limits.values())])
    high = min(far, 4 * top) if top > 0 else far
    room = 0.06 * (high - low) or 1.0
    return low - room * (low < 0), high + room
