"""Sources recovered from noisy sensors on a line: what was found over what was read, as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.recovery.beliefs import (
    LEAST,
    Ball,
    spans,
    stems,
    thin_stems,
)
from sfumato.figures.sheet import (
    FAINT,
    LEFT,
    RIGHT,
    heading,
    key,
    panel,
    plain_numbers,
    png,
    remark_on,
    sheet,
    span,
    stamp,
    vector,
)
from sfumato.figures.style import FONT_LABEL, FOUND, FRAME, INK, READ, TRUE
from sfumato.spaces import Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = 8.0  # inches, as heatmaps are
STEMS = 160  # along a line: closer ones cannot be told apart
GAP = 3  # usual distances of sensors: no line is drawn across a wider one


def draw_line_recovery(
    line: Line,
    estimate: npt.ArrayLike,
    *,
    sensors: npt.ArrayLike,
    readings: npt.ArrayLike,
    sigma: float | FloatArray,
    fitted: npt.ArrayLike | None = None,
    sources: npt.ArrayLike | None = None,
    answer: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    bands: Sequence[Ball] = (),
    caption: str,
    rehearsal: bool = False,
    remark: str = "",
    unit: str = "",
) -> bytes:
    """One PNG of what a recovery on a line found, over the noisy readings it was found from.

    Pass released values, or simulated ones: the axes follow what is drawn.

    Args:
        line: The cells.
        estimate: A mass for each cell; cells closer than 1/160 of the line are one stem with their
            total.
        sensors: Where the sensors are, one position each.
        readings: The noisy reading of each sensor.
        sigma: The deviation of the noise of one reading, at least 0; one for each sensor where they differ.
        fitted: What the estimate would read without noise: around it lies the band of two sigma
            that holds about 95 % of readings, but across gaps of more than 3 usual distances of sensors.
            Without it, every reading has its own bar of that length.
        sources: True masses, one for each cell, known in simulations only.
        answer: What another estimator found, positions and masses: it has the filled stems, and the
            `estimate` thin ones.
        bands: Places, radii and probabilities: regions that hold a source each.
        caption: Words below the picture, wrapped.
        rehearsal: Whether REHEARSAL is written across the panels.
        remark: Why there are no sources, written over them.
        unit: Of the readings, written at their axis.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For arrays of another shape, numbers that are not finite, or nothing to
            draw.
    """
    found = vector("estimate", estimate, line.size, "cells")
    at = np.ravel(np.asarray(sensors, dtype=np.float64))
    if not at.size:
        raise InvalidParameter("a picture needs at least one sensor, got none; nothing was drawn")
    at = vector("sensors", at, at.size, "sensors")
    read = vector("readings", readings, at.size, "sensors")
    fit = None if fitted is None else vector("fitted", fitted, at.size, "sensors")
    true = None if sources is None else vector("sources", sources, line.size, "cells")
    wide_noise = np.broadcast_to(np.asarray(sigma, dtype=np.float64), at.shape)
    if not (np.isfinite(wide_noise) & (wide_noise >= 0)).all():
        raise InvalidParameter(
            f"sigma must be finite and at least 0, got {sigma}; nothing was drawn"
        )
    figure, foot = sheet(WIDE, 5.2, caption)
    wide = WIDE - LEFT - RIGHT
    lower = panel(figure, (LEFT, foot + 0.5, wide, 1.85))
    upper = panel(figure, (LEFT, foot + 2.95, wide, 1.85), share=lower)
    low, high = span(line.positions, at)
    margin = 0.02 * (high - low)
    lower.set_xlim(low - margin, high + margin)
    other = None if answer is None else _answer(*answer)
    _masses(upper, line, found, true, other)
    if bands:
        spans(upper, bands, least=(high - low) / 400)
    _readings(lower, at, read, fit, wide_noise)
    upper.tick_params(labelbottom=False)
    lower.set_xlabel("position", fontsize=FONT_LABEL, color=INK)
    for axis, of in ((upper, "mass"), (lower, f"reading, {unit}" if unit else "reading")):
        plain_numbers(axis)
        axis.set_ylabel(of, fontsize=FONT_LABEL, color=INK)
        axis.yaxis.set_label_coords(-0.6 / wide, 0.5)
        key(axis)
        if rehearsal:
            stamp(axis)
    if remark:
        remark_on(upper, remark)
    return png(figure)


def gather(
    positions: FloatArray, masses: FloatArray, width: float
) -> tuple[FloatArray, FloatArray]:
    """Places and masses of stems that can be told apart: cells within `width` become one, with their total.

    Positions must increase. Empty cells have no stem. From left to right, a stem takes all cells
    closer than `width` to its first; it stands at their center of mass.

    >>> gather(np.array([0.1, 0.2, 0.201, 0.9]), np.array([0.0, 1.0, 3.0, 2.0]), 0.01)
    (array([0.20075, 0.9    ]), array([4., 2.]))
    """
    kept = np.flatnonzero(masses)
    x, mass = positions[kept], masses[kept]
    first = []
    begin = 0
    while begin < x.size:
        first.append(begin)
        begin = int(np.searchsorted(x, x[begin] + width, side="left"))
        begin = max(begin, first[-1] + 1)
    if not first:
        return x, mass
    total = np.add.reduceat(mass, first)
    # By the size of masses, so that a mass and its opposite have a place too.
    weight = np.abs(mass)
    center = np.add.reduceat(weight * x, first) / np.add.reduceat(weight, first)
    return np.asarray(center), np.asarray(total)


def _answer(positions: npt.ArrayLike, masses: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Sources of an answer by increasing position."""
    x = np.ravel(np.asarray(positions, dtype=np.float64))
    x, mass = (
        vector("positions of the answer", x, x.size, "sources"),
        vector("answer", masses, x.size, "sources"),
    )
    order = np.argsort(x, kind="stable")
    return x[order], mass[order]


def _masses(
    axis: Axes,
    line: Line,
    found: FloatArray,
    true: FloatArray | None,
    answer: tuple[FloatArray, FloatArray] | None,
) -> None:
    low, high = axis.get_xlim()
    width = (high - low) / STEMS
    heading(axis, "recovered sources")
    x, mass = gather(line.positions, found, width)
    true_x, true_mass = gather(line.positions, np.zeros(line.size) if true is None else true, width)
    best_x, best = gather(*answer, width) if answer is not None else (x[:0], mass[:0])
    top = max(mass.max(initial=0), true_mass.max(initial=0), best.max(initial=0)) or 1.0
    shown = np.abs(mass) > FAINT * top
    x, mass = x[shown], mass[shown]
    axis.axhline(0, color=FRAME, linewidth=0.6, zorder=1)
    axis.set_ylim(1.12 * mass.min(initial=0), 1.12 * top)
    if true is not None:
        # Wide enough to be seen behind an answer that is right.
        wide, large = (2.4, 6) if answer is None else (5.0, 9)
        axis.vlines(true_x, 0, true_mass, colors=TRUE, linewidth=wide, zorder=2)
        axis.plot(true_x, true_mass, "o", color=TRUE, markersize=large, zorder=3)
        axis.plot([], [], "-o", color=TRUE, linewidth=2.4, markersize=6, label="simulated sources")
    if answer is not None:
        thin_stems(axis, x, mass, label=LEAST)
        stems(axis, best_x[best > FAINT * top], best[best > FAINT * top], label="answer")
        return
    said = (
        "estimate"
        if width < _least_step(line, found)
        else f"estimate, cells within {width:.1g} together"
    )
    # Many stems are a curve: their heads would hide each other.
    crowded = x.size > STEMS // 3
    dashes = (0.0, () if crowded else (3.0, 1.6))
    head = "" if crowded else "D"
    axis.vlines(x, 0, mass, colors=FOUND, linewidth=1.4, linestyles=dashes, zorder=4)
    axis.plot(
        x,
        mass,
        marker=head,
        color=FOUND,
        linestyle="",
        markersize=4.5,
        markerfacecolor="white",
        zorder=5,
    )
    axis.plot(
        [], [], color=FOUND, linewidth=1.4, linestyle=dashes, marker=head, markersize=4.5,
        markerfacecolor="white", label=said,
    )  # fmt: skip
    if not x.size:
        axis.text(
            0.5, 0.5, "no sources found", transform=axis.transAxes,
            ha="center", va="center", fontsize=FONT_LABEL, color=FOUND,
        )  # fmt: skip


def _least_step(line: Line, masses: FloatArray) -> float:
    return float(np.diff(line.positions[np.flatnonzero(masses)]).min(initial=np.inf))


def _readings(
    axis: Axes, at: FloatArray, read: FloatArray, fit: FloatArray | None, sigma: FloatArray
) -> None:
    heading(axis, "readings")
    order = np.argsort(at, kind="stable")
    x, y, sigma = at[order], read[order], sigma[order]
    small = 4.5 if x.size <= 200 else 2.5 if x.size <= 1000 else 1.2
    if fit is not None and np.unique(x).size > 1:
        _curve(axis, x, fit[order], sigma)
    else:
        # No curve to lay a band around: each reading carries its noise itself.
        middle = y if fit is None else fit[order]
        axis.vlines(
            x, middle - 2 * sigma, middle + 2 * sigma, colors=FOUND, alpha=0.35,
            linewidth=1.2, label="noise: two sigma, about 95 %",
        )  # fmt: skip
        if fit is not None:
            axis.plot(
                x, middle, "_", color=FOUND, markersize=12, label="what the estimate would read"
            )
    axis.plot(
        x, y, "o", color=READ, markersize=small, markeredgewidth=0, label="noisy reading", zorder=4
    )
    axis.margins(y=0.06)


def _curve(axis: Axes, x: FloatArray, curve: FloatArray, sigma: FloatArray) -> None:
    """What the estimate would read, with its noise: only dotted where no sensor is for long."""
    said: tuple[str | None, str | None] = (
        "noise: two sigma, about 95 %",
        "what the estimate would read",
    )
    ends = stretches(x)
    for begin, end in pairwise(ends):
        part, level, noise = x[begin:end], curve[begin:end], sigma[begin:end]
        if part[0] < part[-1]:
            axis.fill_between(
                part, level - 2 * noise, level + 2 * noise, color=FOUND, alpha=0.14, linewidth=0,
                label=said[0],
            )  # fmt: skip
            axis.plot(part, level, color=FOUND, linewidth=1.5, label=said[1], zorder=3)
            said = (None, None)
        else:  # a sensor far from all others
            axis.vlines(
                part,
                level - 2 * noise,
                level + 2 * noise,
                colors=FOUND,
                alpha=0.35,
                linewidth=1.2,
                zorder=2,
            )
            axis.plot(part, level, "_", color=FOUND, markersize=8, zorder=3)
    for at in ends[1:-1]:
        axis.plot(
            x[at - 1 : at + 1],
            curve[at - 1 : at + 1],
            ":",
            color=FOUND,
            linewidth=1,
            alpha=0.5,
            zorder=2,
        )


def stretches(x: FloatArray) -> list[int]:
    """Where sorted sensors begin anew after a gap of more than 3 usual ones; with 0 and their number.

    >>> stretches(np.array([0.0, 0.1, 0.2, 0.3, 0.9, 1.0]))
    [0, 4, 6]
    """
    steps = np.diff(x)
    usual = np.median(steps[steps > 0]) if (steps > 0).any() else np.inf
    return [0, *(np.flatnonzero(steps > GAP * usual) + 1).tolist(), x.size]
