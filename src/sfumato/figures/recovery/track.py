"""Sources followed through rounds of readings: places over time with what holds them, as PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.recovery.beliefs import balls
from sfumato.figures.sheet import (
    LEFT,
    RIGHT,
    dots,
    heading,
    key,
    panel,
    places,
    plain_numbers,
    png,
    sheet,
    span,
    stamp,
)
from sfumato.figures.style import FONT_LABEL, INK, PATHS, READ

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, HIGH = 8.0, 3.4
TICKS, LONGEST, FEWER = (
    9,
    10,
    5,
)  # labels of times; of times with more letters there is room for fewer


def draw_line_track(
    path: npt.ArrayLike,
    radii: npt.ArrayLike,
    *,
    times: Sequence[str] = (),
    limits: tuple[float, float],
    caption: str,
    rehearsal: bool = False,
) -> bytes:
    """One PNG of where sources on a line were, round after round, each in the band that holds it with 90 %.

    Pass what was computed from released values.

    Args:
        path: Positions, [round, source].
        radii: Of the bands that hold each with 90 %, [round, source].
        times: Written below rounds, which are evenly spaced; rounds have numbers without them.
        limits: The ends of the line.
        caption: Words below the picture, wrapped.
        rehearsal: Whether REHEARSAL is written across the panels.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For arrays of another shape, numbers that are not finite, or nothing to
            draw.
    """
    at, wide = _path(path, 2), _path(radii, 2)
    if at.shape != wide.shape or (wide < 0).any():
        raise InvalidParameter(
            "a track has a radius of at least 0 for each place; nothing was drawn"
        )
    figure, foot = sheet(WIDE, HIGH + 1.1, caption)
    axis = panel(figure, (LEFT, foot + 0.55, WIDE - LEFT - RIGHT, HIGH))
    rounds = np.arange(1, len(at) + 1)
    heading(axis, "where sources were")
    for source, (middle, radius) in enumerate(zip(at.T, wide.T, strict=True)):
        color = PATHS[source % len(PATHS)]
        name = f"source {source + 1}" if at.shape[1] > 1 else "source"
        axis.fill_between(
            rounds, middle - radius, middle + radius, color=color, alpha=0.18, linewidth=0,
            label="within, 90 % in each round" if source == 0 else None,
        )  # fmt: skip
        axis.plot(rounds, middle, "-o", color=color, linewidth=1.5, markersize=3.5, label=name)
    low, high = limits
    axis.set_ylim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    plain_numbers(axis, "y")
    axis.set_ylabel("position", fontsize=FONT_LABEL, color=INK)
    _rounds(axis, times, len(at))
    key(axis)
    if rehearsal:
        stamp(axis)
    return png(figure)


def draw_plane_track(
    path: npt.ArrayLike,
    radii: npt.ArrayLike,
    *,
    sensors: npt.ArrayLike,
    norm: Literal["l1", "euclidean"] = "euclidean",
    caption: str,
    rehearsal: bool = False,
) -> bytes:
    """One PNG of the paths of sources in a plane, each place in the ball that holds it with 90 %.

    Pass what was computed from released values.

    Args:
        path: Places, [round, source, x and y]; the first has a ring, the last is filled.
        radii: Of the balls that hold each with 90 %, [round, source].
        sensors: Where the sensors are, [sensor, x and y].
        norm: "euclidean", or "l1" where ways go along the axes and balls are diamonds.
        caption: Words below the picture, wrapped.
        rehearsal: Whether REHEARSAL is written across the panels.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For arrays of another shape, numbers that are not finite, or nothing to
            draw.
    """
    at, wide = _path(path, 3), _path(radii, 2)
    if at.shape != (*wide.shape, 2) or (wide < 0).any():
        raise InvalidParameter(
            "a track has a radius of at least 0 for each place; nothing was drawn"
        )
    spots = places("sensors", sensors)
    (low_x, high_x), (low_y, high_y) = (span(at[:, :, k].ravel(), spots[:, k]) for k in (0, 1))
    ratio = float(np.clip((high_y - low_y) / (high_x - low_x), 0.4, 1.1))
    across = (WIDE - 2 * LEFT) / max(1.0, ratio)
    figure, foot = sheet(WIDE, across * ratio + 1.2, caption)
    axis = panel(figure, ((WIDE - across) / 2, foot + 0.55, across, across * ratio))
    heading(axis, "where sources were")
    dots(axis, spots, size=14, fill="none", edge=READ, width=0.6, order=1)
    axis.plot([], [], "o", color=READ, markerfacecolor="none", markersize=4, label="sensor")
    flat = [
        (place, float(radius), 0.9)
        for place, radius in zip(at.reshape(-1, 2), wide.ravel(), strict=True)
    ]
    balls(
        axis,
        flat,
        norm=norm,
        least=0.0,
        alpha=max(0.08, min(0.3, 2 / len(at))),
        label="within, 90 % in each round",
    )
    for source in range(at.shape[1]):
        color = PATHS[source % len(PATHS)]
        x, y = at[:, source].T
        name = f"source {source + 1}" if at.shape[1] > 1 else "source, its last place filled"
        axis.plot(x, y, "-", color=color, linewidth=1.5, zorder=5)
        axis.plot(x[:-1], y[:-1], "o", color=color, markersize=4, markerfacecolor="white", zorder=6)
        axis.plot(x[-1:], y[-1:], "o", color=color, markersize=7, zorder=6, label=name)
    axis.set_xlim(low_x - 0.03 * (high_x - low_x), high_x + 0.03 * (high_x - low_x))
    axis.set_ylim(low_y - 0.03 * (high_y - low_y), high_y + 0.03 * (high_y - low_y))
    axis.set_aspect("equal", adjustable="datalim")
    plain_numbers(axis)
    axis.set_xlabel("position east", fontsize=FONT_LABEL, color=INK)
    axis.set_ylabel("position north", fontsize=FONT_LABEL, color=INK)
    key(axis, columns=3)
    if rehearsal:
        stamp(axis)
    return png(figure)


def _rounds(axis: Axes, times: Sequence[str], count: int) -> None:
    """Rounds below the axis, by their times if they have any; of many, some."""
    named = len(times) == count and any(times)
    # Of times of one day, the hours.
    days = {time.partition("T")[0] for time in times}
    short = [time.partition("T")[2] or time if len(days) == 1 else time for time in times]
    room = TICKS if max(map(len, short), default=0) <= LONGEST else FEWER
    shown = np.arange(1, count + 1, math.ceil(count / room))
    axis.set_xticks(shown)
    labels = [short[number - 1] if named else str(number) for number in shown.tolist()]
    axis.set_xticklabels(labels, parse_math=False)
    axis.set_xlabel("round, by its time" if named else "round", fontsize=FONT_LABEL, color=INK)
    axis.set_xlim(0.7, count + 0.3)


def _path(values: npt.ArrayLike, axes: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != axes or not array.size or not np.isfinite(array).all():
        raise InvalidParameter(
            f"a track is finite numbers in {axes} directions, got shape {array.shape}; nothing was drawn"
        )
    return array
