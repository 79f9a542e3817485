"""Where sensors could be and should be, as PNG."""

from __future__ import annotations

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.sheet import LEFT, RIGHT, heading, key, panel, png, sheet
from sfumato.figures.style import FONT_KEY, FONT_TICK, FRAME, INK, STYLES

WIDE = 8.0  # inches
ABOVE, BELOW, KEY = 0.36, 0.5, 0.45


def draw_placement(
    candidates: FloatArray, *, chosen: FloatArray, uniform: FloatArray, caption: str
) -> bytes:
    """One PNG of where sensors could be, where they should be, and where they would be if spread evenly.

    On a line, each set has a row of its own.

    Args:
        candidates: Where sensors could be, [place, 1 or 2 coordinates].
        chosen: Where they should be.
        uniform: Where they would be if spread evenly.
        caption: Words below the picture, wrapped.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For places with other than one or two coordinates.
    """
    if candidates.ndim != 2 or candidates.shape[1] not in (1, 2):
        raise InvalidParameter(
            f"places have one coordinate or two, got shape {candidates.shape}; nothing was drawn"
        )
    flat = candidates.shape[1] == 1
    high = 1.3 if flat else 4.6
    figure, foot = sheet(WIDE, high + ABOVE + BELOW + KEY, caption)
    wide = WIDE - LEFT - RIGHT if flat else high
    axis = panel(figure, (LEFT, foot + BELOW, wide, high))
    sets = (
        ("candidates", candidates, ".", FRAME, 5),
        ("chosen", chosen, "o", STYLES[0][0], 7),
        ("spread evenly", uniform, "x", STYLES[1][0], 6),
    )
    for row, (name, places, marker, color, size) in enumerate(sets):
        y = np.full(len(places), -float(row)) if flat else places[:, 1]
        axis.plot(
            places[:, 0], y, marker, color=color, markersize=size, label=name, markerfacecolor="none",
            markeredgewidth=1.3,
        )  # fmt: skip
    axis.set_xlabel("x", fontsize=FONT_KEY, color=INK)
    if flat:
        axis.set_yticks([0, -1, -2], [name for name, *_ in sets], fontsize=FONT_TICK)
        axis.set_ylim(-2.6, 0.6)
    else:
        axis.set_aspect("equal", adjustable="datalim")
        axis.set_ylabel("y", fontsize=FONT_KEY, color=INK)
        key(axis, columns=3)
    heading(axis, "Where to put sensors", lift=0.3)
    return png(figure)
