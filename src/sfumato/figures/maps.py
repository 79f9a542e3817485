"""Several maps on one scale, side by side or many small ones on a sheet, as PNG."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.figures.sheet import LEFT, RIGHT, png, sheet
from sfumato.figures.style import FONT_KEY, FONT_LABEL, FONT_PANEL, INK, palette, shades

WIDE, GAP, TITLE = 8.0, 0.14, 0.24  # inches
COLUMNS = 5
LONGEST = 24  # letters of a title


def draw_maps(
    panels: Sequence[tuple[str, npt.NDArray[np.float64]]],
    *,
    top: float,
    caption: str,
    unit: str,
    stamp: str = "",
) -> bytes:
    """One PNG of several maps side by side that share a color scale.

    Args:
        panels: A title and a map [row, column] each, row 0 in the south.
        top: The top of the color scale, above 0: given, never read off the data, for it is a number
            that leaves too.
        caption: Words below the picture, wrapped.
        unit: What the color scale measures.
        stamp: Words across each map.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: Without a map, or with a top that is not above 0.
    """
    if not panels:
        raise InvalidParameter("a picture needs at least one map, got none")
    if not top > 0:
        raise InvalidParameter(f"the top of the color scale must be above 0, got {top}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(panels) + 1.2, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    inks = ListedColormap(palette() / 255)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, values) in zip(axes, panels, strict=True):
        drawn = axis.imshow(
            values, origin="lower", cmap=inks, vmin=0, vmax=top, interpolation="nearest"
        )
        axis.set_title(title, fontsize=FONT_PANEL)
        axis.set_xticks([])
        axis.set_yticks([])
        if stamp:
            axis.text(
                0.5, 0.5, stamp, transform=axis.transAxes, ha="center", va="center",
                rotation=30, fontsize=24, alpha=0.35,
            )  # fmt: skip
    figure.colorbar(drawn, ax=list(axes), shrink=0.75, label=unit)
    figure.supxlabel(caption, fontsize=FONT_LABEL, wrap=True)
    out = io.BytesIO()
    # No date and no version in the file: the same values give the same bytes.
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()


def draw_small_maps(
    panels: Sequence[tuple[str, npt.NDArray[np.float64]]], *, top: float, caption: str
) -> bytes:
    """One PNG of several maps, row by row, to be told apart at a glance.

    All share a color scale by `shades`: its root shows small places beside large ones.

    Args:
        panels: A title and a map [row, column] each, row 0 in the south.
        top: The top of the color scale, above 0.
        caption: Words below the picture, wrapped.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: Without a map, or with a top that is not above 0.
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
            fontsize=FONT_KEY,
            color=INK,
            pad=3,
            parse_math=False,
        )
    return png(figure)
