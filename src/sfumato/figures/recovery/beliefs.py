"""What one can be sure of, drawn into pictures of recoveries: spans, balls and halos that hold a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.figures.sheet import dots
from sfumato.figures.style import FONT_TINY, FOUND, INK, READ, SURE
from sfumato.spaces import Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

PALE = 0.2
EDGE = 0.9  # points: bands that overlap are told apart by it
BEHIND = 330.0  # square points: a halo that is seen around the largest mass, which nodes of a band often have
LEAST = "least mass (R)"  # what another estimator's answer is compared with
Norm = Literal["l1", "euclidean"]
Ball = tuple[Sequence[float] | FloatArray, float, float]
"""A place (on a graph: the number of a node), a radius, and the probability that a source is within it."""


def at_least(probability: float) -> str:
    """A probability for people, rounded down: what holds with it holds with at least that.

    Args:
        probability: From 0 to 1.

    Returns:
        A percentage in words.

    >>> at_least(0.917), at_least(0.9999), at_least(0.004)
    ('91 %', '>99 %', '<1 %')
    """
    if probability >= 0.995:
        return ">99 %"
    full = int(np.floor(100 * probability + 1e-9))
    return f"{full} %" if full else "<1 %"


def band_label(bands: Sequence[Ball]) -> str:
    """What a band holds, with the least probability of any.

    >>> band_label([((0.3,), 0.05, 0.93), ((0.7,), 0.1, 0.905)])
    'a source is in here, 90 %'
    """
    return f"a source is in here, {at_least(min(probability for _, _, probability in bands))}"


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
            raise InvalidParameter(
                f"a band needs a probability, got {probability}; nothing was drawn"
            )
        out.append((at, float(radius), float(probability)))
    return out


def spans(axis: Axes, bands: Sequence[Ball], *, least: float) -> None:
    """Translucent spans of a line, at least so wide to each side that they can be seen.

    Where they overlap it is no darker, since a place in two of them is no likelier: each has its
    own edge.
    """
    found = sorted(checked_bands(bands, 1), key=lambda band: float(band[0][0]))
    ends = [
        (float(at[0]) - max(radius, least), float(at[0]) + max(radius, least))
        for at, radius, _ in found
    ]
    said: str | None = band_label(bands)
    for low, high in joined(ends):
        axis.axvspan(low, high, facecolor=SURE, alpha=PALE, linewidth=0, zorder=0.5, label=said)
        said = None
    for low, high in ends:
        axis.axvspan(low, high, facecolor="none", edgecolor=SURE, linewidth=EDGE, zorder=0.6)
    if len(found) == 1:
        return
    within, apart = axis.get_xaxis_transform(), len(joined(ends)) == len(ends)
    for number, ((at, _, probability), (low, high)) in enumerate(zip(found, ends, strict=True)):
        # Overlapping ones in four rows, so that neither their words nor bars lie on each other.
        row = 0.94 if apart else 0.94 - 0.075 * (number % 4)
        if not apart:
            axis.plot(
                [low, high], [row, row], color=SURE, linewidth=EDGE, transform=within, zorder=0.6
            )
        _write(axis, (float(at[0]), row), at_least(probability), transform=within, va="center")


def joined(ends: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Intervals that do not overlap and hold the same places.

    >>> joined([(3, 4), (0, 1), (0.5, 2)])
    [(0, 2), (3, 4)]
    """
    out: list[tuple[float, float]] = []
    for low, high in sorted(ends):
        if out and low <= out[-1][1]:
            out[-1] = out[-1][0], max(out[-1][1], high)
        else:
            out.append((low, high))
    return out


def areas(
    axis: Axes,
    bands: Sequence[Ball],
    *,
    norm: Norm,
    least: float,
    within: tuple[float, float, float, float],
) -> None:
    """Bands in a plane: balls with an edge each, and no darker where they overlap, `within` its bounds."""
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    found = checked_bands(bands, 2)
    patches = _balls(found, norm=norm, least=least)
    outlines = [patch.get_patch_transform().transform_path(patch.get_path()) for patch in patches]
    # All outlines turn the same way, so that one path of all is filled where any of them is.
    whole = Path.make_compound_path(*outlines)
    left, bottom, right, top = within
    frame = Rectangle((left, bottom), right - left, top - bottom, transform=axis.transData)
    filled = PathPatch(
        whole, facecolor=SURE, linewidth=0, alpha=0.3, zorder=3, label=band_label(bands)
    )
    axis.add_patch(filled)
    filled.set_clip_path(frame)
    taken: list[Bbox] = []
    for patch, (at, radius, probability) in zip(patches, found, strict=True):
        patch.set(facecolor="none", edgecolor=SURE, linewidth=EDGE, zorder=3)
        axis.add_patch(patch)
        patch.set_clip_path(frame)
        if len(found) > 1:
            x, y, far = float(at[0]), float(at[1]), max(radius, least)
            words = at_least(probability)
            ways: list[tuple[tuple[float, float], Any]] = [
                ((x, y + far), {"va": "bottom"}),
                ((x, y - far), {"va": "top"}),
                ((x + far, y), {"va": "center", "ha": "left"}),
                ((x - far, y), {"va": "center", "ha": "right"}),
            ]
            _write_where_free(axis, ways, words, taken)


def union(axis: Axes, bands: Sequence[Ball], *, norm: Norm, color: str, label: str) -> None:
    """The ground that any of many balls holds, in one shade however many hold it, and no edges in it."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    patches = _balls(checked_bands(bands, 2), norm=norm, least=0.0)
    outlines = [patch.get_patch_transform().transform_path(patch.get_path()) for patch in patches]
    # All outlines turn the same way, so that one path of all is filled where any of them is.
    whole = Path.make_compound_path(*outlines)
    axis.add_patch(
        PathPatch(whole, facecolor=color, linewidth=0, alpha=0.45, zorder=2, label=label)
    )


def _balls(
    found: Sequence[tuple[FloatArray, float, float]], *, norm: Norm, least: float
) -> list[Patch]:
    """Balls as the metric has them: circles, or diamonds where ways go along the axes."""
    from matplotlib.patches import Circle, Polygon

    corners = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    return [
        Polygon(at + max(radius, least) * corners)
        if norm == "l1"
        else Circle((float(at[0]), float(at[1])), max(radius, least))
        for at, radius, _ in found
    ]


def _write_where_free(
    axis: Axes, ways: list[tuple[tuple[float, float], Any]], words: str, taken: list[Bbox]
) -> None:
    """Words at the first place where they lie on no others and within the panel; nowhere if there is none.

    Two on each other are none, and the legend has the least probability of all.
    """
    frame = axis.get_window_extent()
    for at, how in ways:
        text = _write(axis, at, words, **how)
        box = text.get_window_extent()
        inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0
        if inside and box.y1 <= frame.y1 and not any(box.overlaps(other) for other in taken):
            taken.append(box)
            return
        text.remove()


def _write(axis: Axes, at: tuple[float, float], words: str, **where: Any) -> Text:
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2, foreground="white")]
    style: dict[str, Any] = {
        "ha": "center",
        "fontsize": FONT_TINY,
        "color": INK,
        "path_effects": halo,
        "zorder": 7,
    }
    return axis.text(*at, words, **style | where)


def halos(axis: Axes, graph: Graph, at: FloatArray, bands: Sequence[Ball], *, size: float) -> None:
    """Halos under the nodes within the radius of any band's node, drawn as large as nodes need them.

    A node of two bands has one halo: it is no likelier than others.
    """
    near = np.zeros(graph.size, dtype=bool)
    for node, radius, _ in checked_bands(bands, 1):
        near |= graph.distances_from(int(node[0])) <= radius
    halo(axis, at[near], size=size, label=band_label(bands), rim=BEHIND)


def halo(axis: Axes, at: FloatArray, *, size: float, label: str, rim: float = 90.0) -> None:
    """One halo under some nodes, and what it says."""
    dots(axis, at, size=4 * size + rim, fill=SURE, edge="none", width=0, order=1.5, alpha=2 * PALE)
    if label:
        axis.plot(
            [], [], "o", color=SURE, alpha=2 * PALE, markersize=10, markeredgewidth=0, label=label
        )


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
