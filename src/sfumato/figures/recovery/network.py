"""Sources recovered from noisy sensors on a graph, with its communities, as PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.figures.recovery.beliefs import BEHIND, LEAST, Ball, diamonds, halo, halos
from sfumato.figures.recovery.communities import community_numbers, community_outlines
from sfumato.figures.recovery.labels import name_communities, name_nodes
from sfumato.figures.recovery.layout import graph_layout
from sfumato.figures.sheet import (
    FAINT,
    LEFT,
    RIGHT,
    color_bar,
    crosses,
    dots,
    heading,
    inches,
    key,
    panel,
    places,
    png,
    remark_on,
    sheet,
    span,
    stamp,
    vector,
)
from sfumato.figures.style import EDGES, FOUND, PLAIN, RINGS, TOPS, blues, round_number, warm
from sfumato.spaces import Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, GAP = 11.0, 0.5  # inches: two panels side by side and what is between them
FLATTEST, TALLEST = 0.5, 1.15  # panels: height over width
# How much larger than its node a mass is, and square points of the largest beyond.
LARGER, LARGEST = 1.3, 200
CROWD = 10_000  # nodes: rings of more would be all there is to see
NAMES = 3  # names of communities in a row over one panel
TOP = 23  # over names of nodes: a truth that a name hides is not seen


def draw_graph_recovery(
    graph: Graph,
    estimate: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    sources: npt.ArrayLike | None = None,
    readings: npt.ArrayLike | None = None,
    sensors: npt.ArrayLike | None = None,
    caption: str,
    rehearsal: bool = False,
    names: Sequence[str] | None = None,
    answer: npt.ArrayLike | None = None,
    bands: Sequence[Ball] = (),
    remark: str = "",
    titles: tuple[str, str] = ("noisy readings", "recovered sources"),
    units: tuple[str, str] = ("noisy reading", "mass"),
    held: tuple[npt.ArrayLike, str] | None = None,
    said: str = "estimate",
    truth: str = "simulated sources",
) -> bytes:
    """One PNG of a recovery on a graph: the noisy readings on its nodes, and beside them what was found.

    Pass released values, or simulated ones: the color scales follow what is drawn.

    Args:
        graph: The nodes and edges.
        estimate: A mass for each node.
        labels: Communities, shown by the color of nodes' rings and of the ground, where they lie
            apart.
        positions: Where to draw the nodes, [node, x and y], steps of x as long as of y (scale
            longitudes by the cosine of the latitude); `graph_layout` finds some if left out.
        sources: True masses, one for each node, known in simulations only.
        readings: One for each node, or for each of `sensors`.
        sensors: The nodes that have one; all if left out.
        caption: Words below the picture, wrapped.
        rehearsal: Whether REHEARSAL is written across the panels.
        names: Written beside the nodes with the most mass, or beside all where there are few.
        answer: What another estimator found, a mass for each node: it is in blue then, and the
            `estimate` has empty diamonds.
        bands: Nodes, radii and probabilities: halos that hold a source each.
        remark: Why there are no sources, written over them.
        titles: Of the panels of readings and of sources.
        units: Of both; a unit of readings that names all their values ("no: 0, yes: 1") has a color
            for each in the legend, and no scale.
        held: Nodes under one halo, and what it says.
        said: What the estimate is called.
        truth: What `sources` are called.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For arrays of another shape, numbers that are not finite, or nothing to
            draw.
    """
    found = vector("estimate", estimate, graph.size, "nodes")
    true = None if sources is None else vector("sources", sources, graph.size, "nodes")
    nodes = _nodes(sensors, graph.size)
    read = None if readings is None else vector("readings", readings, nodes.size, "sensors")
    groups = None if labels is None else community_numbers(labels, graph.size)
    at = (
        graph_layout(graph, groups)
        if positions is None
        else places("positions", positions, graph.size)
    )
    (low_x, high_x), (low_y, high_y) = span(at[:, 0]), span(at[:, 1])
    ratio = min(max((high_y - low_y) / (high_x - low_x), FLATTEST), TALLEST)
    wide = (WIDE - LEFT - RIGHT - GAP) / 2
    high = wide * ratio
    kinds = np.unique(np.asarray(labels)) if labels is not None else np.empty(0)
    in_row = NAMES if read is None else 2 * NAMES
    rows = math.ceil(kinds.size / in_row) if kinds.size <= len(RINGS) else 0
    two = answer is not None or held is not None  # rows of the legend
    lift = 0.2 if two else 0.0
    figure, foot = sheet(
        WIDE if read is not None else 2 * LEFT + wide, high + 1.1 + 0.2 * rows + lift, caption
    )
    boxes = [
        (LEFT + (wide + GAP) * k, foot + 0.62, wide, high) for k in range(1 if read is None else 2)
    ]
    axes = [panel(figure, box) for box in boxes]
    rings = np.full(graph.size, PLAIN) if groups is None else np.take(RINGS, groups % len(RINGS))
    for axis in axes:
        graph_ground(axis, graph, at, groups)
    if read is not None:
        _readings(axes[0], at, nodes, read, rings, title=titles[0], unit=units[0])
    said = said if answer is None else "answer"
    best = found if answer is None else vector("answer", answer, graph.size, "nodes")
    _masses(axes[-1], at, best, rings, title=titles[1], unit=units[1], said=said)
    if answer is not None:
        shown = np.flatnonzero(found > FAINT * (found.max(initial=0) or 1.0))
        diamonds(axes[-1], at, shown, label=LEAST)
    if bands:
        halos(axes[-1], graph, at, bands, size=_dot(graph.size)[0])
    if held is not None:
        halo(axes[-1], at[_nodes(held[0], graph.size)], size=_dot(graph.size)[0], label=held[1])
    if true is not None:
        before = len(axes[-1].lines)
        crosses(axes[-1], at[np.flatnonzero(true)], label=truth)
        for cross in axes[-1].lines[before:]:
            cross.set_zorder(TOP)
    if rows:
        name_communities(axes[0], kinds, in_row)
    for axis in axes:
        key(axis, columns=2 if two else 4)
        if rehearsal:
            stamp(axis)
    if names is not None:
        name_nodes(axes[-1], at, best, names)
    if remark:
        remark_on(axes[-1], remark)
    return png(figure)


def _nodes(sensors: npt.ArrayLike | None, size: int) -> IntArray:
    if sensors is None:
        return np.arange(size, dtype=np.int64)
    array = np.asarray(sensors)
    if array.ndim == 2 and array.shape[1] == 1:  # as `Sensors.positions` has them
        array = array[:, 0]
    numbers = array.astype(np.int64) if array.dtype.kind in "iuf" else np.empty(0, dtype=np.int64)
    if (
        array.ndim != 1
        or numbers.shape != array.shape
        or not array.size
        or (numbers != array).any()
    ):
        raise InvalidParameter(
            f"sensors must be numbers of nodes, got {sensors!r}; nothing was drawn"
        )
    if numbers.min() < 0 or numbers.max() >= size:
        raise InvalidParameter(
            f"sensors must be nodes from 0 to {size - 1}, got {numbers.min()} to {numbers.max()}; "
            "nothing was drawn"
        )
    return numbers


def graph_ground(axis: Axes, graph: Graph, at: FloatArray, groups: IntArray | None) -> None:
    """Edges, and under them the communities; no numbers, since places on a graph have no units."""
    from matplotlib.collections import LineCollection

    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set_visible(False)
    for number, outline in enumerate(community_outlines(at, groups) if groups is not None else []):
        axis.fill(
            *outline.T, facecolor=RINGS[number % len(RINGS)], alpha=0.13, edgecolor="none", zorder=0
        )
    lines = at[graph.edges]
    # The more ink, the paler: all edges together, laid end to end, over the size of the picture.
    ink = float(
        np.hypot(*(lines[:, 1] - lines[:, 0]).T).sum() / np.ptp(at, axis=0).max(initial=1e-300)
    )
    axis.add_collection(
        LineCollection(
            list(lines), colors=EDGES, linewidths=0.9 if len(lines) < 200 else 0.5,
            alpha=float(np.clip(60 / max(1.0, ink), 0.04, 0.6)), zorder=1,
        )
    )  # fmt: skip
    axis.set_aspect("equal", adjustable="datalim")
    axis.update_datalim(at)
    _fit(axis, graph.size)


def _fit(axis: Axes, count: int) -> None:
    """Limits that hold the largest mark of a node at the edge whole, a step of x as long as one of y."""
    size, _ = _dot(count)
    radius = (
        math.sqrt(max(LARGER * size + LARGEST, 4 * size + BEHIND)) / 2 + 1
    )  # a mass, or a halo; its rim
    sides = 72 * np.array(inches(axis))
    low, high = np.array(axis.dataLim.min), np.array(axis.dataLim.max)
    room = sides - 2 * np.maximum(radius, 0.03 * sides)
    unit = float(((high - low) / room).max()) or 1.0  # of data, to a point
    begin, end = (low + high - unit * sides) / 2, (low + high + unit * sides) / 2
    axis.set_xlim(begin[0], end[0])
    axis.set_ylim(begin[1], end[1])


def _readings(
    axis: Axes,
    at: FloatArray,
    nodes: IntArray,
    read: FloatArray,
    rings: npt.NDArray[np.str_],
    *,
    title: str,
    unit: str,
) -> None:
    from matplotlib.colors import Normalize

    heading(axis, title)
    size, width = _dot(len(at))
    without = np.setdiff1d(np.arange(len(at)), nodes)
    if without.size:
        dots(axis, at[without], size=size / 5, fill=rings[without], edge="none", width=0, order=2)
        axis.plot([], [], "o", color=PLAIN, markersize=3.5, markeredgewidth=0, label="no sensor")
    names = named_values(unit)
    if not np.isin(read, list(names)).all():
        names = {}
    scale = Normalize(*span(np.array(list(names)) if names else read))
    order = np.argsort(read, kind="stable")  # high readings are not hidden under low ones
    dots(
        axis, at[nodes[order]], size=size, fill=read[order], edge=rings[nodes[order]], width=width, order=2,
        cmap=warm(), norm=scale,
    )  # fmt: skip
    if not names:
        color_bar(axis, warm(), scale, label=unit, part=(0.2, 0.6), drop=0.06)
        return
    for value, name in names.items():
        color = warm()(scale(value))
        axis.plot(
            [],
            [],
            "o",
            color=color,
            markersize=6,
            markeredgecolor=PLAIN,
            markeredgewidth=0.7,
            label=name,
        )


def named_values(unit: str) -> dict[float, str]:
    """The names of values, if a unit is made of them.

    >>> named_values("no: 0, yes: 1"), named_values("noisy reading")
    ({0.0: 'no', 1.0: 'yes'}, {})
    """
    pairs = [part.rpartition(":") for part in unit.split(",")]
    try:
        return {float(value): name.strip() for name, _, value in pairs}
    except ValueError:
        return {}


def _masses(
    axis: Axes,
    at: FloatArray,
    found: FloatArray,
    rings: npt.NDArray[np.str_],
    *,
    title: str,
    unit: str,
    said: str,
) -> None:
    from matplotlib.colors import Normalize

    heading(axis, title)
    size, width = _dot(len(at))
    fill: Any = "white" if width else rings
    dots(
        axis,
        at,
        size=size,
        fill=fill,
        edge=rings,
        width=width,
        order=2,
        alpha=1.0 if width else 0.35,
    )
    top = round_number(float(found.max(initial=0)) or 1.0, TOPS)
    scale, share = Normalize(0, top), found / top
    order = np.argsort(-share, kind="stable")  # small ones lie on large ones
    shown = order[share[order] > FAINT]
    dots(
        axis, at[shown], size=LARGER * size + LARGEST * share[shown], fill=found[shown], edge="white",
        width=0.7, order=3, cmap=blues(), norm=scale,
    )  # fmt: skip
    axis.plot([], [], "o", color=FOUND, markersize=8, markeredgewidth=0, label=said)
    color_bar(axis, blues(), scale, label=unit, part=(0.2, 0.6), drop=0.06)


def _dot(count: int) -> tuple[float, float]:
    """The size in square points and the width of the ring of a node, one of so many; a crowd has no rings."""
    if count > CROWD:
        return float(np.clip(70_000 / count, 0.5, 7)), 0.0
    return float(np.clip(9000 / count, 7, 90)), float(np.clip(300 / count, 0.35, 1.6))
