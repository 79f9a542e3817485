"""Sources followed through rounds of readings: places over time with what holds them, as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.recovery.beliefs import union
from sfumato.figures.recovery.floor import NO_FLOOR, Floor, draw_floor
from sfumato.figures.recovery.over_time import (
    name_sensors,
    round_colors,
    round_ticks,
    time_strip,
)
from sfumato.figures.recovery.plane import plane_window
from sfumato.figures.sheet import (
    BANNER,
    LEFT,
    RIGHT,
    banner,
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
from sfumato.figures.style import (
    FONT_LABEL,
    FONT_TINY,
    GREY,
    INK,
    LEVEL,
    PATHS,
    READ,
)
from sfumato.spaces import Grid, Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, HIGH = 8.0, 3.4
FLATTEST, TALLEST = 0.3, 1.3  # height over width
MARKED = 120  # rounds up to which each has a mark of its own
NAMED = 60  # letters high that a line has room for, about, at its right side
BAND = "within, 90 % in each round"


def draw_line_track(
    path: npt.ArrayLike,
    radii: npt.ArrayLike,
    *,
    times: Sequence[str] = (),
    limits: tuple[float, float],
    sensors: npt.ArrayLike | None = None,
    sensor_names: Sequence[str] = (),
    caption: str,
    remark: str = "",
    rehearsal: bool = False,
) -> bytes:
    """One PNG of where sources on a line were, round after round, each in the band that holds it with 90 %.

    The axis is the whole line. Pass what was computed from released values.

    Args:
        path: Positions, [round, source].
        radii: Of the bands that hold each with 90 %, [round, source].
        times: Written below rounds, which are evenly spaced; rounds have numbers without them.
        limits: The ends of the line.
        sensors: Positions of the sensors: a tick each, at the right.
        sensor_names: Their names, written there as far as there is room.
        caption: Words below the picture, wrapped.
        remark: What must be known first, written above the panels, where it hides nothing.
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
    figure, foot = sheet(WIDE, HIGH + 1.1 + (BANNER if remark else 0.0), caption)
    longest = max((len(name) for name in sensor_names), default=0)
    aside = min(1.4, 0.12 + 0.075 * longest) if sensors is not None else 0.0
    axis = panel(figure, (LEFT, foot + 0.55, WIDE - LEFT - RIGHT - aside, HIGH))
    rounds = np.arange(1, len(at) + 1)
    heading(axis, "where sources were")
    for source, (middle, radius) in enumerate(zip(at.T, wide.T, strict=True)):
        color = PATHS[source % len(PATHS)]
        name = f"source {source + 1}" if at.shape[1] > 1 else "source"
        axis.fill_between(
            rounds, middle - radius, middle + radius, color=color, alpha=0.18, linewidth=0,
            label=BAND if source == 0 else None,
        )  # fmt: skip
        mark = "-o" if len(at) <= MARKED else "-"
        axis.plot(rounds, middle, mark, color=color, linewidth=1.5, markersize=3.5, label=name)
    spots = np.zeros(0) if sensors is None else np.asarray(sensors, dtype=np.float64).ravel()
    low, high = span(np.append(np.array(limits, dtype=np.float64), spots))
    axis.set_ylim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    plain_numbers(axis, "y")
    axis.set_ylabel("position", fontsize=FONT_LABEL, color=INK)
    round_ticks(axis, times, len(at))
    if spots.size:
        _sensors_beside(axis, spots, sensor_names)
    key(axis)
    if rehearsal:
        stamp(axis)
    if remark:
        banner(figure, remark)
    return png(figure)


def _sensors_beside(axis: Axes, spots: FloatArray, names: Sequence[str]) -> None:
    """A tick for each sensor at the right side of a panel, and names as far as there is room."""
    axis.plot(
        np.ones(spots.size), spots, marker="_", linestyle="", color=READ, markersize=5,
        transform=axis.get_yaxis_transform(), clip_on=False, label="sensor",
    )  # fmt: skip
    if len(names) != spots.size:
        return
    low, high = axis.get_ylim()
    room, last = (high - low) / (NAMED / 2), -np.inf
    for number in np.argsort(spots, kind="stable").tolist():
        if spots[number] - last < room:
            continue
        last = spots[number]
        axis.annotate(
            names[number], (1, last), xycoords=axis.get_yaxis_transform(), textcoords="offset points",
            xytext=(6, 0), fontsize=FONT_TINY, color=GREY, va="center", parse_math=False,
        )  # fmt: skip


def draw_plane_track(
    path: npt.ArrayLike,
    radii: npt.ArrayLike,
    *,
    sensors: npt.ArrayLike,
    sensor_names: Sequence[str] = (),
    space: Grid | Points | None = None,
    times: Sequence[str] = (),
    norm: Literal["l1", "euclidean"] = "euclidean",
    floor: Floor = NO_FLOOR,
    caption: str,
    remark: str = "",
    rehearsal: bool = False,
) -> bytes:
    """One PNG of the paths of sources in a plane: time is color, and balls hold each place with 90 %.

    The ground that any ball holds is shaded once, so it is no darker where a source stayed. The axes
    are those of the whole site. Pass what was computed from released values.

    Args:
        path: Places, [round, source, x and y]; the first has a ring, the last is large.
        radii: Of the balls that hold each with 90 %, [round, source].
        sensors: Where the sensors are, [sensor, x and y].
        sensor_names: Their names, written beside them as far as there is room.
        space: Where sources may be, all of which is shown; only path and sensors are without it.
        times: Of the rounds, written at the strip of colors.
        norm: "euclidean", or "l1" where ways go along the axes and balls are diamonds.
        floor: A floor plan that lies under it.
        caption: Words below the picture, wrapped.
        remark: What must be known first, written above the panels, where it hides nothing.
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
    shown = Points(at.reshape(-1, 2)) if space is None else space
    low_x, low_y, high_x, high_y = plane_window(shown, spots, floor)
    shape = (high_y - low_y) / (high_x - low_x)
    ratio = min(max(shape, FLATTEST), TALLEST)
    across = (WIDE - 2 * LEFT) / max(1.0, ratio)
    above = 0.2 * at.shape[1] + (BANNER if remark else 0.0)
    figure, foot = sheet(WIDE, across * ratio + 1.45 + above, caption)
    axis = panel(figure, ((WIDE - across) / 2, foot + 1.0, across, across * ratio))
    axis.set_xlim(low_x, high_x)
    axis.set_ylim(low_y, high_y)
    if shape == ratio:
        axis.set_aspect("equal", adjustable="datalim")
    draw_floor(axis, floor)
    heading(axis, "where sources were")
    dots(axis, spots, size=14, fill="white", edge=READ, width=0.6, order=3.5)
    axis.plot([], [], "o", color=READ, markerfacecolor="white", markersize=4, label="sensor")
    flat = [
        (place, float(radius), 0.9)
        for place, radius in zip(at.reshape(-1, 2), wide.ravel(), strict=True)
        if radius > 0
    ]
    if flat:
        union(axis, flat, norm=norm, color=LEVEL, label=BAND)
    colors = round_colors(len(at))
    for source in range(at.shape[1]):
        _path_in_time(axis, at[:, source], colors, source if at.shape[1] > 1 else None)
    if len(sensor_names) == len(spots):
        name_sensors(axis, spots, sensor_names, keep_free=_along(at))
    plain_numbers(axis)
    axis.set_ylabel("position north", fontsize=FONT_LABEL, color=INK)
    axis.text(
        1, -0.27 / (across * ratio), "position east", transform=axis.transAxes, ha="right", va="top",
        fontsize=FONT_LABEL, color=INK,
    )  # fmt: skip
    time_strip(axis, times, len(at), drop=0.5)
    key(axis, columns=3 if at.shape[1] == 1 else 2)
    if rehearsal:
        stamp(axis)
    if remark:
        banner(figure, remark)
    return png(figure)


def _along(at: FloatArray) -> FloatArray:
    """Places on the ways from round to round, close enough that no name fits between them."""
    steps = np.linspace(0, 1, 12, endpoint=False)[:, np.newaxis, np.newaxis, np.newaxis]
    between = at[:-1] + steps * (at[1:] - at[:-1])
    return np.concatenate([between.reshape(-1, 2), at[-1]])


MARKERS = ("o", "s", "^", "D", "v", "P")


def _path_in_time(axis: Axes, at: FloatArray, colors: FloatArray, source: int | None) -> None:
    """A path whose color is time; one of several has marks of its own."""
    from matplotlib.collections import LineCollection
    from matplotlib.patheffects import Normal, withStroke

    marker = MARKERS[(source or 0) % len(MARKERS)]
    pieces = np.stack([at[:-1], at[1:]], axis=1)
    halo = [withStroke(linewidth=2.8, foreground="white", alpha=0.8), Normal()]
    axis.add_collection(
        LineCollection(
            list(pieces), colors=colors[1:], linewidths=1.7, zorder=5, path_effects=halo
        ),
        autolim=False,
    )
    size = 22.0 if len(at) <= MARKED else 5.0
    axis.scatter(
        at[:, 0], at[:, 1], s=size, c=colors, marker=marker, edgecolors="white",
        linewidths=0.5 if len(at) <= MARKED else 0.0, zorder=6,
    )  # fmt: skip
    axis.scatter(
        at[:1, 0], at[:1, 1], s=46, facecolors="none", edgecolors=[colors[0]], marker=marker,
        linewidths=1.4, zorder=6.5,
    )  # fmt: skip
    axis.scatter(
        at[-1:, 0], at[-1:, 1], s=80, c=[colors[-1]], marker=marker, edgecolors=INK, linewidths=0.8, zorder=7
    )  # fmt: skip
    name = "source" if source is None else f"source {source + 1}"
    axis.plot(
        [], [], marker=marker, color=colors[-1], markeredgecolor=INK, markeredgewidth=0.8, markersize=7,
        linewidth=1.7, label=f"{name}, its last place",
    )  # fmt: skip


def _path(values: npt.ArrayLike, axes: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != axes or not array.size or not np.isfinite(array).all():
        raise InvalidParameter(
            f"a track is finite numbers in {axes} directions, got shape {array.shape}; nothing was drawn"
        )
    return array
