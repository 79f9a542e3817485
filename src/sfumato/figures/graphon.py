"""Pictures of a network's blocks: how often each two are joined, and what a network of that size can tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.sheet import (
    LEFT,
    RIGHT,
    color_bar,
    heading,
    number,
    panel,
    png,
    sheet,
    stamp,
    vector,
)
from sfumato.figures.style import (
    FONT_KEY,
    FONT_LABEL,
    FONT_NOTE,
    GREY,
    INK,
    PAPER,
    REGIMES,
    TRUE,
    blues,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, HIGH = 8.0, 3.9
SIDE = 4.6  # inches of the square of blocks
LEAST = 0.03  # of the side: a name takes as much; those of narrower blocks are moved apart while there is room
LETTER = 0.016  # of the side: the width of a letter of a name
NUMBER = 0.075  # of the side: narrower cells have no room for a number


def blocks_picture(
    matrix: npt.ArrayLike,
    shares: npt.ArrayLike,
    *,
    caption: str,
    names: Sequence[str] | None = None,
    title: str = "",
    rehearsal: bool = False,
) -> bytes:
    """One PNG of a block matrix: a square for each two blocks, as wide as they are large, dark if joined.

    Numbers are written where there is room. Pass released values: the colors end at the largest of
    them.

    Args:
        matrix: The chance of an edge between each two blocks, [block, block].
        shares: The share of nodes in each block, adding up to 1.
        caption: Words below the picture, wrapped.
        names: What the blocks are called; numbers if left out.
        title: What the panel is called; a usual title if empty.
        rehearsal: Whether REHEARSAL is written across the panel.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For arrays of another shape, numbers that are not finite, or nothing to
            draw.
    """
    from matplotlib.colors import Normalize

    sizes = vector("shares", shares, np.size(shares), "blocks")
    chances = np.asarray(matrix, dtype=np.float64)
    if (
        chances.shape != (sizes.size, sizes.size)
        or not sizes.size
        or not np.isfinite(chances).all()
    ):
        raise InvalidParameter(
            f"a block matrix has a finite number for each two of {sizes.size} blocks, got shape "
            f"{chances.shape}; nothing was drawn"
        )
    if not (sizes > 0).all() or abs(sizes.sum() - 1) > 1e-6 or chances.min() < 0:
        raise InvalidParameter(
            "shares are above 0 and sum to 1, chances are at least 0; one is not; nothing was drawn"
        )
    labels = [str(block + 1) for block in range(sizes.size)] if names is None else list(names)
    if len(labels) != sizes.size:
        raise InvalidParameter(
            f"{sizes.size} blocks need as many names, got {len(labels)}; nothing was drawn"
        )
    ends = np.concatenate([[0.0], np.cumsum(sizes)])
    colors, scale = blues(), Normalize(0, float(chances.max()) or 1.0)
    left = 1.6
    figure, foot = sheet(left + SIDE + 0.5, SIDE + 1.6, caption)
    axis = panel(figure, (left, foot + 0.75, SIDE, SIDE))
    axis.pcolormesh(ends, ends, chances, cmap=colors, norm=scale, edgecolors=PAPER, linewidth=0.8)
    axis.set_xlim(0, 1)
    axis.set_ylim(1, 0)  # as a matrix is read: the first block is at the top
    middles = (ends[1:] + ends[:-1]) / 2
    axis.set_xticks([])
    axis.set_yticks([])
    for block, at in _places(sizes, LEAST).items():
        axis.plot([-0.022, 0], [at, middles[block]], color=GREY, linewidth=0.5, clip_on=False)
        axis.text(
            -0.028, at, f"{labels[block]}  ({sizes[block]:.0%})", ha="right", va="center", fontsize=FONT_NOTE,
            color=INK, parse_math=False,
        )  # fmt: skip
    for block, at in _places(sizes, LETTER * (1 + max(map(len, labels)))).items():
        axis.plot([at, middles[block]], [-0.022, 0], color=GREY, linewidth=0.5, clip_on=False)
        axis.text(
            at,
            -0.028,
            labels[block],
            ha="center",
            va="bottom",
            fontsize=FONT_NOTE,
            color=INK,
            parse_math=False,
        )
    for side in ("bottom", "left"):
        axis.spines[side].set_visible(False)
    for row in range(sizes.size):
        for column in range(sizes.size):
            if min(sizes[row], sizes[column]) >= NUMBER:
                value = float(chances[row, column])
                axis.text(
                    middles[column], middles[row], _short(value), ha="center", va="center",
                    fontsize=min(9.0, 75 * float(sizes[column])),
                    color=_ink(colors(float(scale(value)))),
                )  # fmt: skip
    color_bar(axis, colors, scale, label="chance that two nodes are joined", drop=0.16)
    heading(axis, title or "blocks, and how often they are joined", lift=0.34)
    if rehearsal:
        stamp(axis)
    return png(figure)


def phase_picture(
    densities: npt.ArrayLike,
    blocks: npt.ArrayLike,
    regimes: npt.ArrayLike,
    *,
    names: Sequence[str],
    caption: str,
    trivial: npt.ArrayLike | None = None,
    point: tuple[float, float] | None = None,
    title: str = "",
) -> bytes:
    """One PNG of what a network can tell, at every density and number of blocks, and where yours is.

    Args:
        densities: At least two largest chances of an edge, above 0.
        blocks: At least two numbers of blocks.
        regimes: For each [block, density] a place in `names`.
        names: What a network can tell, from the least to the most; at most 4.
        caption: Words below the picture, wrapped.
        trivial: For each number of blocks, the density up to which nothing beats the empty answer.
        point: The density and the number of blocks of one's own network.
        title: What the panel is called; a usual title if empty.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For arrays of another shape, numbers that are not finite, or nothing to
            draw.
    """
    from matplotlib.colors import ListedColormap

    x = vector("densities", densities, np.size(densities), "densities")
    y = vector("blocks", blocks, np.size(blocks), "numbers of blocks")
    found = np.asarray(regimes)
    if min(x.size, y.size) < 2 or min(x.min(), y.min()) <= 0 or found.shape != (y.size, x.size):
        raise InvalidParameter(
            "a diagram has at least two densities and two numbers of blocks, above 0, and a regime for each "
            f"two of them, got {x.size}, {y.size} and shape {found.shape}; nothing was drawn"
        )
    if not 1 <= len(names) <= len(REGIMES) or found.min() < 0 or found.max() >= len(names):
        raise InvalidParameter(
            f"regimes are places in 1 to {len(REGIMES)} names, got {len(names)} names; nothing was drawn"
        )
    figure, foot = sheet(WIDE, HIGH + 1.5, caption)
    axis = panel(figure, (LEFT, foot + 0.55, WIDE - LEFT - RIGHT, HIGH))
    shades = ListedColormap(REGIMES[: len(names)])
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.pcolormesh(
        _edges(x), _edges(y), found, cmap=shades, vmin=-0.5, vmax=len(names) - 0.5, rasterized=True
    )
    axis.set_xlim(x.min(), x.max())
    axis.set_ylim(y.min(), y.max())
    if trivial is not None:
        line = vector("trivial", trivial, y.size, "numbers of blocks")
        axis.plot(
            line, y, color=INK, linewidth=1.3, linestyle=(0, (5, 2)),
            label="left of it nothing beats the empty answer",
        )  # fmt: skip
    if point is not None:
        axis.plot(
            *point, "o", color=TRUE, markersize=8, markeredgecolor=PAPER, markeredgewidth=1.4, zorder=5,
            clip_on=False, linestyle="none", label="your network",
        )  # fmt: skip
    _marks(axis, y)
    axis.set_xlabel("largest chance of an edge", fontsize=FONT_LABEL, color=INK)
    axis.set_ylabel("blocks", fontsize=FONT_LABEL, color=INK)
    _shades_key(axis, names)
    heading(axis, title or "can a large network like this tell you anything?", lift=0.52)
    return png(figure)


def _places(sizes: FloatArray, gap: float) -> dict[int, float]:
    """Where the names of blocks are written beside them, at least `gap` apart: of all, or of the wide ones.

    >>> {block: round(at, 3) for block, at in _places(np.array([0.9, 0.05, 0.05]), 0.1).items()}
    {0: 0.45, 1: 0.887, 2: 0.987}
    """
    ends = np.cumsum(sizes)
    middles = ends - sizes / 2
    if (sizes.size - 1) * gap > 1:
        return {int(block): float(middles[block]) for block in np.flatnonzero(sizes >= gap)}
    # Pushed down from the first, and up from the last: both keep the gap, and so does their mean.
    steps = gap * np.arange(sizes.size)
    down = np.minimum(np.maximum.accumulate(middles - steps) + steps, 1 - steps[::-1])
    up = np.maximum(np.minimum.accumulate((middles - steps)[::-1])[::-1] + steps, steps)
    return dict(enumerate(((down + up) / 2).tolist()))


def _ink(fill: tuple[float, ...]) -> str:
    """The color of a number on this fill: dark or light, whichever stands out more (WCAG)."""
    from matplotlib.colors import to_rgb

    def light(color: Sequence[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
        return 0.05 + 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    below = light(fill)
    return PAPER if light(to_rgb(PAPER)) / below > below / light(to_rgb(INK)) else INK


def _edges(middles: FloatArray) -> FloatArray:
    """Borders half way between values, on a log axis; the outer ones at the values themselves."""
    logs = np.log(middles)
    return np.asarray(np.exp(np.concatenate([logs[:1], (logs[1:] + logs[:-1]) / 2, logs[-1:]])))


def _marks(axis: Axes, blocks: FloatArray) -> None:
    """Write numbers of blocks in full, and densities as powers of ten."""
    wanted = [
        mark
        for mark in (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
        if blocks.min() <= mark <= blocks.max()
    ]
    axis.set_yticks(wanted, [number(mark) for mark in wanted])
    axis.set_yticks([], minor=True)
    axis.xaxis.set_major_formatter(lambda value, _: number(value))


def _shades_key(axis: Axes, names: Sequence[str]) -> None:
    """The shades from least to most above the panel, then the line and the point."""
    from matplotlib.patches import Patch

    handles, labels = axis.get_legend_handles_labels()
    patches = [
        Patch(facecolor=REGIMES[at], edgecolor=GREY, linewidth=0.5) for at in range(len(names))
    ]
    for some, words, lift in ((patches, list(names), 0.24), (handles, labels, 0.02)):
        if not some:
            continue
        drawn = axis.legend(
            some, words, loc="lower left", bbox_to_anchor=(-0.01, 1 + lift / HIGH), ncols=4, frameon=False,
            fontsize=FONT_KEY, handlelength=1.6, handletextpad=0.5, columnspacing=1.3, borderaxespad=0.1,
            labelcolor=INK,
        )  # fmt: skip
        for text in drawn.get_texts():
            text.set_parse_math(False)
        if some is patches and handles:
            axis.add_artist(drawn)  # or the second legend would replace it


def _short(value: float) -> str:
    """A chance in few letters.

    >>> _short(0.25), _short(0.0123), _short(0.00004), _short(0.0)
    ('0.25', '0.012', '4e-05', '0')
    """
    return f"{value:.2g}"
