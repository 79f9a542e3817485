"""Maps side by side on one scale, as PNG."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.figures.heatmap import palette


def draw_maps(
    panels: Sequence[tuple[str, npt.NDArray[np.float64]]],
    *,
    top: float,
    caption: str,
    unit: str,
    stamp: str = "",
) -> bytes:
    """One PNG of several maps (row 0 in the south) that share a color scale from 0 to `top`.

    `top` is given, never read off the data: a scale is a number that leaves too. `stamp` is written
    across each map.
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
        axis.set_title(title, fontsize=11)
        axis.set_xticks([])
        axis.set_yticks([])
        if stamp:
            axis.text(
                0.5, 0.5, stamp, transform=axis.transAxes, ha="center", va="center",
                rotation=30, fontsize=24, alpha=0.35,
            )  # fmt: skip
    figure.colorbar(drawn, ax=list(axes), shrink=0.75, label=unit)
    figure.supxlabel(caption, fontsize=9, wrap=True)
    out = io.BytesIO()
    # No date and no version in the file: the same values give the same bytes.
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()
