"""Pictures of an audit: wealth against a claim, the event that breaks it, and delta at every epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.intervals import log_marks
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
    vector,
)
from sfumato.figures.style import FONT_LABEL, FONT_NOTE, FOUND, GREY, INK, PAPER, READ, TRUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, HIGH = 8.0, 3.0
NOTHING = 0.9  # an upper end of delta from here on is as good as none
BAR = 0.56  # inches from one bar to the next
POINTS = 2000  # of a wealth process: more cannot be told apart
LOWEST, HIGHEST = 1e-9, 1e12  # wealth: what is beyond says no more than that it is


def draw_wealth(
    runs: npt.ArrayLike, wealth: npt.ArrayLike, *, required: float, caption: str, title: str = ""
) -> bytes:
    """One PNG of a bet against a claim: the wealth after so many runs, and the line at which it is refuted.

    Wealth begins at 1. If the claim is true, it ever reaches the line with chance at most 1 over
    it.

    Args:
        runs: How many runs of the mechanism there were at each look, both inputs together.
        wealth: The wealth at each look, at least 0; it begins at 1.
        required: The wealth, above 1, at which the claim is refuted.
        caption: Words below the picture, wrapped.
        title: What the panel is called; a usual title if empty.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For arrays of another shape, numbers that are not finite, or nothing to
            draw.
    """
    x = vector("runs", runs, np.size(runs), "looks")
    y = vector("wealth", wealth, x.size, "looks")
    if not x.size or not (y >= 0).all() or not 1 < required < np.inf:
        raise InvalidParameter(
            "wealth is at least 0, seen at least once, and what is needed is above 1 and finite; "
            "nothing was drawn"
        )
    shown = y.clip(LOWEST, HIGHEST)
    figure, foot = sheet(WIDE, HIGH + 1.1, caption)
    axis = panel(figure, (LEFT, foot + 0.55, WIDE - LEFT - RIGHT, HIGH))
    axis.set_yscale("log")
    axis.axhline(1, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    axis.axhline(
        required,
        color=TRUE,
        linewidth=1.4,
        linestyle=(0, (5, 2)),
        label=f"refuted at {required:g}",
        zorder=2,
    )
    kept = _kept(shown)
    axis.plot(x[kept], shown[kept], color=FOUND, linewidth=1.5, label="wealth", zorder=3)
    crossed = np.flatnonzero(y >= required)
    if crossed.size:
        first = int(crossed[0])
        axis.plot(x[first], shown[first], "o", color=TRUE, markersize=6, zorder=4)
    low, high = min(0.5, float(shown.min())), max(required, float(shown.max()))
    axis.set_ylim(low / 1.6, high * (high / low) ** 0.08)
    axis.set_xlim(0, max(float(x.max()) * 1.02, 1.0))
    marks = log_marks(*axis.get_ylim())
    axis.set_yticks(marks, [f"{mark:g}" for mark in marks])
    axis.set_yticks([], minor=True)
    _thousands(axis)
    _labels(axis, "runs of the mechanism, both inputs together", "wealth")
    key(axis, order=["wealth", f"refuted at {required:g}"])
    heading(axis, title or "the bet against the claim")
    return png(figure)


def draw_witness(
    names: Sequence[str],
    shares: npt.ArrayLike,
    *,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    allowed: tuple[float, float, float],
    allowance: str,
    caption: str,
    title: str = "",
) -> bytes:
    """One PNG of why a claim is refuted: how often two inputs reach an event, and how often the first may.

    Args:
        names: What the two inputs are called.
        shares: The share of runs of each that reach the event.
        low: Lower ends of their intervals.
        high: Upper ends of their intervals.
        allowed: The share that the claim leaves the first input, given the second, and the ends of
            its interval.
        allowance: How that share is computed, in words.
        caption: Words below the picture, wrapped.
        title: What the panel is called; a usual title if empty.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For shares outside of their intervals, or other than two inputs.
    """
    share = vector("shares", shares, 2, "inputs")
    ends = np.stack([vector("low", low, 2, "inputs"), vector("high", high, 2, "inputs")])
    limit = vector("allowed", allowed, 3, "numbers")
    if (
        len(names) != 2
        or not ((ends[0] <= share) & (share <= ends[1])).all()
        or not limit[1] <= limit[2]
    ):
        raise InvalidParameter(
            "two inputs with names, shares inside their intervals; nothing was drawn"
        )
    rows = ((names[0], share[0], ends[:, 0], FOUND), (allowance, limit[0], limit[1:], TRUE))
    bars = (*rows, (names[1], share[1], ends[:, 1], READ))
    height = BAR * len(bars) + 0.15
    figure, foot = sheet(WIDE, height + 1.15, caption)
    axis = panel(figure, (LEFT, foot + 0.6, WIDE - LEFT - RIGHT, height))
    top = min(max(1.0, limit[0]), max(ends.max(), min(limit[2], 1.5 * ends.max())))
    for place, (name, value, (begin, end), color) in enumerate(bars):
        at = len(bars) - 1 - place
        strong, ink = (0.25, TRUE) if color == TRUE else (0.85, INK)
        middle = min(value, top)
        axis.barh(at, middle, height=0.34, color=color, alpha=strong, linewidth=0, zorder=2)
        axis.errorbar(
            middle, at, xerr=[[middle - min(begin, top)], [min(end, top) - middle]],
            color=ink, elinewidth=1.4, capsize=4, capthick=1.4, marker="", zorder=4,
        )  # fmt: skip
        axis.text(
            0, at + 0.22, name, fontsize=FONT_NOTE, color=ink, va="bottom", ha="left", zorder=6,
            transform=axis.get_yaxis_transform(), parse_math=False,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    # More than the claim allows: from its line to the right nothing of the first input should be.
    if limit[0] < top:
        axis.axvline(limit[0], color=TRUE, linewidth=1.1, linestyle=(0, (5, 2)), zorder=3)
    axis.set_ylim(-0.4, len(bars) - 0.35)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.set_xlim(0, top * 1.04 or 1.0)
    plain_numbers(axis, "x")
    axis.set_xlabel("share of runs that reach the event", fontsize=FONT_LABEL, color=INK)
    heading(axis, title or "the event that breaks the claim")
    return png(figure)


def draw_band(
    epsilons: npt.ArrayLike,
    *,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    allowed: npt.ArrayLike,
    claim: tuple[float, float] | None = None,
    caption: str,
    title: str = "",
) -> bytes:
    """One PNG of delta at every epsilon: between which curves it lies, and what a claim allows.

    The claim is broken where its curve is below the band.

    Args:
        epsilons: At least two values, increasing.
        lower: What delta is at least, at each epsilon.
        upper: What delta is at most, at each epsilon.
        allowed: What the claim allows at each epsilon.
        claim: The claim's own epsilon and delta, marked, if it has them.
        caption: Words below the picture, wrapped.
        title: What the panel is called; a usual title if empty.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For arrays of another shape, numbers that are not finite, or nothing to
            draw.
    """
    x = vector("epsilons", epsilons, np.size(epsilons), "epsilons")
    ends = [
        vector(name, part, x.size, "epsilons")
        for name, part in (("lower", lower), ("upper", upper))
    ]
    limit = vector("allowed", allowed, x.size, "epsilons")
    if x.size < 2 or not (np.diff(x) > 0).all() or not (ends[0] <= ends[1]).all():
        raise InvalidParameter(
            "a band has at least two epsilons, increasing, and its lower end is not above its upper; "
            "nothing was drawn"
        )
    figure, foot = sheet(WIDE, HIGH + 1.1, caption)
    axis = panel(figure, (LEFT, foot + 0.55, WIDE - LEFT - RIGHT, HIGH))
    useful = bool((ends[1] < NOTHING).any())
    said = "where delta lies" if useful else "delta: nothing is known from above"
    axis.fill_between(x, ends[0], ends[1], color=FOUND, alpha=0.16, linewidth=0, label=said)
    axis.plot(x, ends[0], color=FOUND, linewidth=1.5, marker="o", markersize=3, zorder=3)
    axis.plot(x, ends[1], color=FOUND, linewidth=0.9, marker="o", markersize=2, zorder=3)
    axis.plot(
        x,
        limit,
        color=TRUE,
        linewidth=1.5,
        linestyle=(0, (5, 2)),
        label="allowed by the claim",
        zorder=4,
    )
    broken = ends[0] > limit
    if broken.any():
        axis.fill_between(
            x,
            limit,
            ends[0],
            where=broken.tolist(),
            color=TRUE,
            alpha=0.22,
            linewidth=0,
            label="too much",
            interpolate=True,
        )
    if claim is not None:
        axis.plot(*claim, "o", color=TRUE, markersize=5.5, zorder=5, clip_on=False)
    # An upper end near 1 says nothing and would flatten everything else.
    told = np.concatenate([ends[0], limit, ends[1][ends[1] < NOTHING]])
    axis.set_ylim(0, min(1.0, 1.15 * float(told.max()) or 1.0))
    axis.set_xlim(float(x[0]), float(x[-1]))
    plain_numbers(axis)
    _labels(axis, "epsilon", "delta")
    order = [said, "allowed by the claim", *(["too much"] if broken.any() else [])]
    key(axis, order=order)
    heading(axis, title or "delta at every epsilon")
    return png(figure)


def _kept(values: FloatArray) -> npt.NDArray[np.int64]:
    """Places to draw: all, or of every block its least and its largest, so that no peak is lost."""
    if values.size <= POINTS:
        return np.arange(values.size)
    blocks = np.array_split(np.arange(values.size), POINTS // 2)
    ends = [int(block[pick(values[block])]) for block in blocks for pick in (np.argmin, np.argmax)]
    return np.unique(np.array([0, *ends, values.size - 1]))


def _thousands(axis: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 2.5, 5, 10], integer=True))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{math.floor(value):,}"))


def _labels(axis: Axes, x: str, y: str) -> None:
    grid_lines(axis)
    axis.set_xlabel(x, fontsize=FONT_LABEL, color=INK, parse_math=False)
    axis.set_ylabel(y, fontsize=FONT_LABEL, color=INK, parse_math=False)
    axis.yaxis.set_label_coords(-0.6 / (WIDE - LEFT - RIGHT), 0.5)
