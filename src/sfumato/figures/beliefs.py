"""What one can be sure of, drawn into pictures of recoveries: spans, balls and halos that hold a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.figures.sheet import FOUND, READ, FloatArray, dots
from sfumato.spaces import Graph
from sfumato.spaces.space import IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SURE = "#f2b01e"  # no blue of masses, no red of true sources, no ring of a community
PALE = 0.2
BEHIND = 330.0  # square points: a halo that is seen around the largest mass, which nodes of a band often have
LEAST = "least mass (R)"  # what another estimator's answer is compared with
Ball = tuple[Sequence[float] | FloatArray, float, float]
"""A place (on a graph: the number of a node), a radius, and the probability that a source is within it."""


def band_label(bands: Sequence[Ball]) -> str:
    """What a band holds, with the least probability of any.

    >>> band_label([((0.3,), 0.05, 0.93), ((0.7,), 0.1, 0.905)])
    'a source is in here, 90 %'
    """
    least = min(probability for _, _, probability in bands)
    return f"a source is in here, {np.floor(100 * least + 1e-9):.0f} %"


def checked_bands(bands: Sequence[Ball], axes: int) -> list[tuple[FloatArray, float, float]]:
    """Bands with as many coordinates as the picture has, or say which rule is broken."""
    out = []
    for place, radius, probability in bands:
        at = np.asarray(place, dtype=np.float64)
        if at.shape != (axes,) or not np.isfinite(at).all() or not 0 <= radius < np.inf:
            raise InvalidParameter(
                f"a band is a place of {axes} coordinates and a radius of at least 0, got another; "
                "nothing was drawn"
            )
        if not 0 <= probability <= 1 + 1e-9:
            raise InvalidParameter(f"a band needs a probability, got {probability}; nothing was drawn")
        out.append((at, float(radius), float(probability)))
    return out


def spans(axis: Axes, bands: Sequence[Ball], *, least: float) -> None:
    """Translucent spans of a line, at least so wide to each side that they can be seen."""
    for number, (at, radius, _) in enumerate(checked_bands(bands, 1)):
        half = max(radius, least)
        axis.axvspan(
            float(at[0]) - half, float(at[0]) + half, facecolor=SURE, alpha=PALE, linewidth=0, zorder=0.5,
            label=band_label(bands) if number == 0 else None,
        )  # fmt: skip


def balls(
    axis: Axes,
    bands: Sequence[Ball],
    *,
    norm: Literal["l1", "euclidean"],
    least: float,
    alpha: float = 0.3,
    label: str = "",
) -> None:
    """Balls of a plane as its metric has them: circles, or diamonds where ways go along the axes."""
    from matplotlib.patches import Circle, Polygon

    for number, (at, radius, _) in enumerate(checked_bands(bands, 2)):
        reach = max(radius, least)
        said = (label or band_label(bands)) if number == 0 else None
        style: dict[str, Any] = {
            "facecolor": SURE,
            "edgecolor": SURE,
            "zorder": 3,
            "alpha": alpha,
            "label": said,
        }
        if norm == "l1":
            corners = at + reach * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
            axis.add_patch(Polygon(corners, **style))
        else:
            axis.add_patch(Circle((float(at[0]), float(at[1])), reach, **style))


def halos(axis: Axes, graph: Graph, at: FloatArray, bands: Sequence[Ball], *, size: float) -> None:
    """Halos under the nodes within the radius of a band's node, drawn as large as nodes need them."""
    for number, (node, radius, _) in enumerate(checked_bands(bands, 1)):
        near = np.flatnonzero(graph.distances_from(int(node[0])) <= radius)
        halo(axis, at[near], size=size, label=band_label(bands) if number == 0 else "", rim=BEHIND)


def halo(axis: Axes, at: FloatArray, *, size: float, label: str, rim: float = 90.0) -> None:
    """One halo under some nodes, and what it says."""
    dots(axis, at, size=4 * size + rim, fill=SURE, edge="none", width=0, order=1.5, alpha=2 * PALE)
    if label:
        axis.plot([], [], "o", color=SURE, alpha=2 * PALE, markersize=10, markeredgewidth=0, label=label)


def stems(axis: Axes, x: FloatArray, mass: FloatArray, *, label: str) -> None:
    """The answer on a line: filled stems. Many are a curve: their heads would hide each other."""
    head = "" if x.size > 50 else "o"
    axis.vlines(x, 0, mass, colors=FOUND, linewidth=2.0, zorder=5)
    axis.plot(x, mass, marker=head, color=FOUND, linestyle="", markersize=5, zorder=6)
    axis.plot([], [], color=FOUND, linewidth=2.0, marker=head, markersize=5, label=label)


def thin_stems(axis: Axes, x: FloatArray, mass: FloatArray, *, label: str) -> None:
    """R on a line, beside an answer: thin stems with small empty heads."""
    head = "" if x.size > 50 else "D"
    dashes = (0.0, (3.0, 1.6))
    axis.vlines(x, 0, mass, colors=READ, linewidth=0.8, linestyles=dashes, zorder=4)
    axis.plot(
        x, mass, marker=head, color=READ, linestyle="", markersize=3.5, markerfacecolor="white",
        markeredgewidth=0.8, zorder=4.5,
    )  # fmt: skip
    axis.plot(
        [], [], color=READ, linewidth=0.8, linestyle=dashes, marker=head, markersize=3.5,
        markerfacecolor="white", markeredgewidth=0.8, label=label,
    )  # fmt: skip


def diamonds(axis: Axes, at: FloatArray, cells: IntArray, *, label: str) -> None:
    """R in a plane or on a graph, beside an answer: small empty diamonds."""
    axis.plot(
        at[cells, 0], at[cells, 1], "D", color=READ, markerfacecolor="none", markersize=4.5,
        markeredgewidth=0.9, zorder=4.5, label=label,
    )  # fmt: skip
