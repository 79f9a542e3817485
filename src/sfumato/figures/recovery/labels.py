"""Names beside nodes of a graph, and of its communities above it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.figures.sheet import LEFT
from sfumato.figures.style import FONT_KEY, FONT_TICK, INK, RINGS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONGEST = 16  # letters of the name of a community
FEW = 30  # nodes that all get their names
NAMED = 8  # of more, those with the most mass
OWN = 4  # points around a named node, which no other name covers
# Points from a node to its name, and how the name is aligned: where it goes if it is free, in this
# order.
SIDES: tuple[tuple[float, float, Literal["left", "center", "right"]], ...] = (
    (6, 3, "left"), (6, -8, "left"), (-6, 3, "right"), (-6, -8, "right"), (0, 10, "center"),
    (0, -16, "center"), (14, 12, "left"), (14, -18, "left"), (-14, 12, "right"), (-14, -18, "right"),
)  # fmt: skip


def name_nodes(axis: Axes, at: FloatArray, found: FloatArray, names: Sequence[str]) -> None:
    """The names of the nodes with the most mass, or of all where there is room.

    Each is beside its node where it hides neither a name before it nor another node that has one,
    or else no name; without such a side it is left out, since two names over each other are none.
    """
    from matplotlib.patheffects import withStroke
    from matplotlib.transforms import Bbox

    figure = cast("Figure", axis.figure)
    axis.apply_aspect()  # names are measured where they will be
    few = len(at) <= FEW
    order = np.argsort(-found, kind="stable")[: len(at) if few else NAMED]
    order = order[(found[order] > 0) | few]
    near = OWN * figure.dpi / 72
    spots = [Bbox([spot - near, spot + near]) for spot in axis.transData.transform(at[order])]
    taken: list[Bbox] = []
    for number, node in enumerate(order.tolist()):
        both = [*taken, *spots[:number], *spots[number + 1 :]]
        text = axis.annotate(
            names[node], at[node], textcoords="offset points", xytext=SIDES[0][:2], fontsize=FONT_TICK,
            color=INK, zorder=22, parse_math=False, path_effects=[withStroke(linewidth=2, foreground="white")],
        )  # fmt: skip
        for hidden, (across, up, side) in product((both, taken), SIDES):
            text.set_position((across, up))
            text.set_horizontalalignment(side)
            box = text.get_window_extent()
            if not any(box.overlaps(other) for other in hidden):
                taken.append(box)
                break
        else:
            text.remove()


def name_communities(axis: Axes, names: npt.NDArray[Any], in_row: int) -> None:
    """Rows of names at the top of the figure, over whatever else is said there."""
    from matplotlib.lines import Line2D

    figure = cast("Figure", axis.figure)
    width, height = figure.get_size_inches()
    style: dict[str, Any] = {"marker": "o", "linestyle": "", "color": "white", "markersize": 7}
    rings = [
        Line2D([], [], markeredgecolor=ring, markeredgewidth=2, **style)
        for ring in RINGS[: names.size]
    ]
    drawn = figure.legend(
        rings, ["?"] * names.size, loc="upper left",
        bbox_to_anchor=((LEFT - 0.12) / width, 1 - 0.1 / height), ncols=in_row, frameon=False,
        fontsize=FONT_KEY, handletextpad=0.2, columnspacing=1.3, borderaxespad=0.1, labelcolor=INK,
    )  # fmt: skip
    # Afterwards, because matplotlib leaves out what begins with an underscore.
    for text, name in zip(drawn.get_texts(), names.tolist(), strict=True):
        text.set_parse_math(False)
        text.set_text(_short(name))


def _short(name: str | float) -> str:
    said = name if isinstance(name, str) else f"community {name:g}"
    return said if len(said) <= LONGEST else said[: LONGEST - 1] + "…"
