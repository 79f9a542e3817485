"""Many small maps on one sheet and one scale, as PNG."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.figures.heatmap import INK, palette, shades
from sfumato.figures.sheet import LEFT, RIGHT, png, sheet

WIDE, GAP, TITLE = 8.0, 0.14, 0.24  # inches
COLUMNS = 5
LONGEST = 24  # letters of a title


def draw_small_maps(
    panels: Sequence[tuple[str, npt.NDArray[np.float64]]], *, top: float, caption: str
) -> bytes:
    """One PNG of several maps (row 0 in the south), row by row, to be told apart at a glance.

    All share a color scale from 0 to `top`, by `shades`: its root shows small places beside large
    ones.
    """
    if not panels:
        raise InvalidParameter("a picture needs at least one map, got none; nothing was drawn")
    if not top > 0:
        raise InvalidParameter(
            f"the top of the color scale must be above 0, got {top}; nothing was drawn"
        )
    rows = -(-len(panels) // COLUMNS)
    side = (WIDE - LEFT - RIGHT - GAP * (COLUMNS - 1)) / COLUMNS
    figure, foot = sheet(WIDE, rows * (side + TITLE) + GAP, caption)
    height = figure.get_size_inches()[1]
    inks = palette()
    for number, (title, values) in enumerate(panels):
        row, column = divmod(number, COLUMNS)
        left, bottom = LEFT + column * (side + GAP), foot + (rows - 1 - row) * (side + TITLE)
        axis = figure.add_axes((left / WIDE, bottom / height, side / WIDE, side / height))
        ink = np.rint(shades(values, top=top) * (len(inks) - 1)).astype(np.int64)
        axis.imshow(inks[ink], origin="lower", interpolation="nearest")
        axis.set_xticks([])
        axis.set_yticks([])
        # The name of a researcher's function can be long; the tables have all of it.
        axis.set_title(
            title if len(title) <= LONGEST else title[: LONGEST - 1] + "…",
            fontsize=8,
            color=INK,
            pad=3,
            parse_math=False,
        )
    return png(figure)
