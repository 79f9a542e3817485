"""Sources recovered from noisy sensors in a plane: masses, and sensors colored by what they read, as PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.figures.recovery.beliefs import (
    LEAST,
    Ball,
    Norm,
    areas,
    diamonds,
)
from sfumato.figures.recovery.floor import NO_FLOOR, Floor, draw_floor
from sfumato.figures.sheet import (
    BANNER,
    FAINT,
    LEFT,
    banner,
    color_bar,
    crosses,
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
    vector,
)
from sfumato.figures.style import (
    ALARM,
    FONT_LABEL,
    FOUND,
    FRAME,
    INK,
    POSSIBLE,
    READ,
    TOPS,
    blues,
    round_number,
    warm,
)
from sfumato.spaces import Grid, Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

WIDE = 8.0  # inches, as heatmaps are
FINEST = 5  # level of a drawn grid: 32 x 32 squares are large enough to see one
FLATTEST, TALLEST = 0.3, 1.3  # height over width
KEYS_IN_ROW = 3  # of the legend, which stands between the heading and the panel
KEY_ROW = 0.2  # inches


def draw_plane_recovery(
    grid: Grid | Points,
    estimate: npt.ArrayLike,
    *,
    sensors: npt.ArrayLike,
    readings: npt.ArrayLike,
    sources: npt.ArrayLike | None = None,
    answer: npt.ArrayLike | None = None,
    bands: Sequence[Ball] = (),
    suspects: Sequence[int] = (),
    caption: str,
    rehearsal: bool = False,
    remark: str = "",
    unit: str = "",
    floor: Floor = NO_FLOOR,
) -> bytes:
    """One PNG of what a recovery in a plane found: masses in blue, sensors colored by their noisy readings.

    A step east is as long as a step north, unless the plane is a strip (height over width below 0.3 or
    above 1.3), which is stretched. Pass released values, or simulated ones: the color scales follow what
    is drawn.

    Args:
        grid: The cells; a grid finer than 32 x 32 is drawn in squares of that size, each with the
            total of its cells.
        estimate: A mass for each cell.
        sensors: Where the sensors are, [sensor, x and y].
        readings: The noisy reading of each sensor.
        sources: True masses, one for each cell, known in simulations only.
        answer: What another estimator found, a mass for each cell: it is in blue then, and the
            `estimate` has empty diamonds.
        bands: Places, radii and probabilities: regions that hold a source each.
        suspects: Numbers of sensors that the others contradict: each gets a ring.
        caption: Words below the picture, wrapped.
        rehearsal: Whether REHEARSAL is written across the panels.
        remark: What must be known first, written above the panel, where it hides no sensor.
        unit: Of the readings, written at their colors.
        floor: A floor plan that lies under it.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For arrays of another shape, numbers that are not finite, or nothing to
            draw.
    """
    if isinstance(grid, Points) and grid.positions.shape[1] != 2:
        raise InvalidParameter(
            f"a plane has 2 coordinates, got {grid.positions.shape[1]}; nothing was drawn"
        )
    found = vector("estimate", estimate, grid.size, "cells")
    spots = places("sensors", sensors)
    read = vector("readings", readings, len(spots), "sensors")
    true = None if sources is None else vector("sources", sources, grid.size, "cells")
    low_x, low_y, high_x, high_y = plane_window(grid, spots, floor)
    shape = (high_y - low_y) / (high_x - low_x)
    ratio = min(max(shape, FLATTEST), TALLEST)
    wide = (WIDE - 2 * LEFT) / max(1.0, ratio)
    rows = _key_rows(
        2
        + sum([isinstance(grid, Points), answer is not None, bool(bands)])
        + (true is not None)
        + bool(suspects)
    )
    above = 0.33 + KEY_ROW * rows + (BANNER if remark else 0.0)
    figure, foot = sheet(WIDE, wide * ratio + 1.02 + above, caption)
    axis = panel(figure, ((WIDE - wide) / 2, foot + 1.02, wide, wide * ratio))
    axis.set_xlim(low_x, high_x)
    axis.set_ylim(low_y, high_y)
    draw_floor(axis, floor)
    heading(axis, "recovered sources", lift=0.06 + KEY_ROW * rows)
    best = found if answer is None else vector("answer", answer, grid.size, "cells")
    _spread(axis, grid, best, said="estimate" if answer is None else "answer")
    if answer is not None:
        shown = np.flatnonzero(found > FAINT * (found.max(initial=0) or 1.0))
        centers = grid.centers(shown) if isinstance(grid, Grid) else grid.positions[shown]
        diamonds(axis, centers, np.arange(shown.size), label=LEAST)
    if bands:
        norm: Norm = grid.norm if isinstance(grid, Points) else "l1"
        within = grid.bounds if isinstance(grid, Grid) else (low_x, low_y, high_x, high_y)
        areas(axis, bands, norm=norm, least=(high_x - low_x) / 40, within=within)
    _sensors(axis, spots, read, unit)
    if suspects:
        _rings(axis, spots[list(suspects)])
    if true is not None:
        cells = np.flatnonzero(true)
        crosses(axis, grid.centers(cells) if isinstance(grid, Grid) else grid.positions[cells])
    if shape == ratio:
        axis.set_aspect("equal", adjustable="datalim")
    plain_numbers(axis)
    axis.set_ylabel("position north", fontsize=FONT_LABEL, color=INK)
    axis.text(
        1, -0.27 / (wide * ratio), "position east", transform=axis.transAxes, ha="right", va="top",
        fontsize=FONT_LABEL, color=INK,
    )  # fmt: skip
    key(axis, columns=KEYS_IN_ROW)
    if rehearsal:
        stamp(axis)
    if remark:
        banner(figure, remark)
    return png(figure)


def _key_rows(entries: int) -> int:
    """How many rows the legend has: estimate and sensor, and what else is there."""
    return math.ceil(entries / KEYS_IN_ROW)


def _rings(axis: Axes, at: FloatArray) -> None:
    """A ring around each sensor that the others contradict, and what it means."""
    style: dict[str, Any] = {
        "markerfacecolor": "none",
        "markeredgecolor": ALARM,
        "markeredgewidth": 1.8,
    }
    axis.plot(at[:, 0], at[:, 1], "o", markersize=13, zorder=7, **style)
    axis.plot([], [], "o", markersize=9, label="contradicted by the others", **style)


def plane_window(
    grid: Grid | Points, spots: FloatArray, floor: Floor = NO_FLOOR
) -> tuple[float, float, float, float]:
    """All places of sources and sensors and the floor plan, with a margin."""
    held = np.reshape(grid.bounds, (2, 2)) if isinstance(grid, Grid) else grid.positions
    held = np.concatenate([held, floor.places])
    (low_x, high_x), (low_y, high_y) = (span(held[:, axis], spots[:, axis]) for axis in (0, 1))
    aside, above = 0.02 * (high_x - low_x), 0.02 * (high_y - low_y)
    return low_x - aside, low_y - above, high_x + aside, high_y + above


def _spread(axis: Axes, grid: Grid | Points, found: FloatArray, *, said: str) -> None:
    from matplotlib.colors import Normalize

    mass, label, seen = found, "mass", grid
    if isinstance(grid, Grid):
        seen = grid.at_level(min(grid.levels, FINEST))
        # The last digits of a Z-order code are the way down from a coarser cell.
        mass = found.reshape(seen.size, -1).sum(axis=1)
        label = (
            "mass in a cell" if seen == grid else f"mass in a square of 1/{seen.side} of the side"
        )
    top = round_number(float(mass.max(initial=0)) or 1.0, TOPS)
    scale = Normalize(0, top)
    cells = np.flatnonzero(mass > FAINT * top)
    if isinstance(seen, Grid):
        _squares(axis, seen, cells, mass[cells], scale, said)
    else:
        x, y = seen.positions.T
        axis.plot(x, y, ".", color=POSSIBLE, markersize=3, zorder=1, label="possible place")
        dots(
            axis, seen.positions[cells], size=30 + 170 * mass[cells] / top, fill=mass[cells], edge=FOUND,
            width=0.4, order=2, cmap=blues(), norm=scale,
        )  # fmt: skip
        axis.plot([], [], "o", color=FOUND, markersize=7, label=said)
    color_bar(axis, blues(), scale, label=label, part=(0.0, 0.46), drop=0.5)


def _squares(
    axis: Axes, grid: Grid, cells: IntArray, mass: FloatArray, scale: Normalize, said: str
) -> None:
    from matplotlib.collections import PolyCollection

    west, south, east, north = grid.bounds
    axis.plot(
        [west, east, east, west, west],
        [south, south, north, north, south],
        color=FRAME,
        linewidth=0.6,
    )
    for spine in axis.spines.values():
        spine.set_visible(False)
    west, south, east, north = grid.boxes(cells).T
    corners = np.array([[west, south], [east, south], [east, north], [west, north]]).transpose(
        2, 0, 1
    )
    axis.add_collection(
        PolyCollection(
            list(corners), array=mass, cmap=blues(), norm=scale, linewidths=0.3, edgecolors=FOUND
        )
    )
    axis.plot([], [], "s", color=FOUND, markersize=6, label=said)


def _sensors(axis: Axes, spots: FloatArray, read: FloatArray, unit: str) -> None:
    from matplotlib.colors import Normalize

    scale = Normalize(*span(read))
    size = 34.0 if len(spots) <= 200 else 12.0
    dots(axis, spots, size=size, fill=read, edge=READ, width=0.7, order=4, cmap=warm(), norm=scale)
    axis.plot(
        [], [], "o", color=warm()(0.5), markersize=6, markeredgecolor=READ, markeredgewidth=0.7,
        label="sensor",
    )  # fmt: skip
    color_bar(
        axis,
        warm(),
        scale,
        label=f"noisy reading, {unit}" if unit else "noisy reading",
        part=(0.54, 0.46),
        drop=0.5,
    )
