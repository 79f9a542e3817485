"""Sources followed over a graph: nodes they were at, colored by time, and node by round, as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.figures.recovery.labels import name_nodes
from sfumato.figures.recovery.layout import graph_layout
from sfumato.figures.recovery.network import graph_ground
from sfumato.figures.recovery.over_time import round_colors, round_ticks, time_strip
from sfumato.figures.sheet import (
    BANNER,
    LEFT,
    RIGHT,
    banner,
    dots,
    heading,
    key,
    panel,
    places,
    png,
    sheet,
    span,
    stamp,
)
from sfumato.figures.style import FONT_LABEL, FONT_TICK, INK, LEVEL, PLAIN, READ
from sfumato.spaces import Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, GAP = 11.0, 0.95  # inches: two panels side by side and what is between them
FLATTEST, TALLEST = 0.5, 1.15  # panels: height over width
MAX_ROWS = 30  # nodes in the chart: those with the most probability
LEAST = 0.02  # probability in some round, from which on a node has a row
MARKERS = ("o", "s", "^", "D", "v", "P")


def draw_graph_track(
    graph: Graph,
    path: npt.ArrayLike,
    chances: npt.ArrayLike,
    *,
    positions: npt.ArrayLike | None = None,
    names: Sequence[str] | None = None,
    sensors: npt.ArrayLike | None = None,
    times: Sequence[str] = (),
    caption: str,
    remark: str = "",
    rehearsal: bool = False,
) -> bytes:
    """One PNG of sources that move over a graph: nodes in the color of their last visit, and a chart of rounds.

    Pass what was computed from released values.

    Args:
        graph: The nodes and edges.
        path: The node of each source in each round, [round, source].
        chances: How likely each source was at each node, [round, source, node].
        positions: Where to draw the nodes, [node, x and y]; `graph_layout` finds some if left out.
        names: Of the nodes; their numbers if left out.
        sensors: Nodes that have one, marked by a dark ring; all if left out, and none is marked.
        times: Of the rounds.
        caption: Words below the picture, wrapped.
        remark: What must be known first, written above the panels, where it hides nothing.
        rehearsal: Whether REHEARSAL is written across the panels.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For arrays of another shape.
    """
    nodes = np.asarray(path)
    likely = np.asarray(chances, dtype=np.float64)
    if nodes.ndim != 2 or not nodes.size or likely.shape != (*nodes.shape, graph.size):
        raise InvalidParameter(
            f"a track on a graph is a node for each round and source, got shape {nodes.shape}, with a "
            "probability for each node; nothing was drawn"
        )
    at = graph_layout(graph) if positions is None else places("positions", positions, graph.size)
    called = [str(node) for node in range(graph.size)] if names is None else list(names)
    (low_x, high_x), (low_y, high_y) = span(at[:, 0]), span(at[:, 1])
    ratio = min(max((high_y - low_y) / (high_x - low_x), FLATTEST), TALLEST)
    wide = (WIDE - LEFT - RIGHT - GAP) / 2
    high = wide * ratio
    figure, foot = sheet(WIDE, high + 1.15 + (BANNER if remark else 0.0), caption)
    bottom = foot + 0.68
    left = panel(figure, (LEFT, bottom, wide, high))
    graph_ground(left, graph, at, None)
    colors = round_colors(len(nodes))
    _visits(left, at, nodes, colors, None if sensors is None else np.asarray(sensors).ravel())
    heading(left, "where sources were")
    name_nodes(left, at, np.bincount(nodes.ravel(), minlength=graph.size).astype(float), called)
    time_strip(left, times, len(nodes), drop=0.12)
    right = panel(figure, (LEFT + wide + GAP, bottom, wide, high))
    heading(right, "node in each round")
    _chart(right, nodes, likely, called, colors)
    round_ticks(right, times, len(nodes), room=0.65)
    right.set_ylabel("node, by its first visit", fontsize=FONT_LABEL, color=INK)
    for axis in (left, right):
        key(axis, columns=2)
        if rehearsal:
            stamp(axis)
    if remark:
        banner(figure, remark)
    return png(figure)


def _visits(
    axis: Axes, at: FloatArray, nodes: IntArray, colors: FloatArray, sensors: IntArray | None
) -> None:
    """Small nodes, ways between visited ones, and these in the color of their last visit."""
    from matplotlib.collections import LineCollection

    dots(axis, at, size=12, fill="white", edge=PLAIN, width=0.6, order=2)
    if sensors is not None and len(set(sensors.tolist())) < len(at):
        dots(axis, at[sensors.astype(int)], size=26, fill="none", edge=READ, width=0.9, order=2.1)
        axis.plot([], [], "o", color=READ, markerfacecolor="none", markersize=5, label="sensor")
    for source in range(nodes.shape[1]):
        way = nodes[:, source]
        marker = MARKERS[source % len(MARKERS)]
        moved = np.flatnonzero(way[1:] != way[:-1])
        axis.add_collection(
            LineCollection(
                list(np.stack([at[way[moved]], at[way[moved + 1]]], axis=1)), colors=colors[moved + 1],
                linewidths=2.2, alpha=0.85, zorder=3,
            ),
            autolim=False,
        )  # fmt: skip
        last = {int(node): number for number, node in enumerate(way.tolist())}
        stays = np.bincount(way, minlength=len(at))
        held = np.array(list(last))
        axis.scatter(
            at[held, 0], at[held, 1], s=40 + 200 * stays[held] / max(1, len(way)),
            c=colors[[last[int(node)] for node in held]], marker=marker, edgecolors="white",
            linewidths=0.7, zorder=4,
        )  # fmt: skip
        name = "source" if nodes.shape[1] == 1 else f"source {source + 1}"
        axis.scatter(
            at[way[-1:], 0], at[way[-1:], 1], s=130, facecolors="none", edgecolors=INK, marker=marker,
            linewidths=1.3, zorder=5,
        )  # fmt: skip
        axis.plot(
            [], [], marker=marker, linestyle="", markerfacecolor=colors[-1], markeredgecolor=INK,
            markersize=8, label=f"{name}, its last node",
        )  # fmt: skip


def _chart(
    axis: Axes, nodes: IntArray, likely: FloatArray, names: Sequence[str], colors: FloatArray
) -> None:
    """Rows of nodes over rounds: grey by how likely a source is there, a mark where the track has it."""
    from matplotlib.colors import LinearSegmentedColormap

    anyone = 1 - np.prod(1 - np.clip(likely, 0, 1), axis=1)  # rounds by nodes
    first: dict[int, int] = {}
    for node in nodes.ravel().tolist():
        first.setdefault(node, len(first))
    others = [n for n in np.flatnonzero(anyone.max(axis=0) >= LEAST).tolist() if n not in first]
    others.sort(key=lambda n: -float(anyone[:, n].sum()))
    rows = [*first, *others][:MAX_ROWS]
    paper = LinearSegmentedColormap.from_list("chances", ["white", LEVEL])
    axis.imshow(
        anyone[:, rows].T, cmap=paper, vmin=0, vmax=1, aspect="auto", origin="lower", zorder=0.5,
        extent=(0.5, len(nodes) + 0.5, -0.5, len(rows) - 0.5), interpolation="nearest",
    )  # fmt: skip
    row_of = {node: row for row, node in enumerate(rows)}
    for source in range(nodes.shape[1]):
        there = [n for n, node in enumerate(nodes[:, source].tolist()) if node in row_of]
        axis.scatter(
            np.array(there) + 1, [row_of[int(nodes[n, source])] for n in there], s=20, c=colors[there],
            marker=MARKERS[source % len(MARKERS)], edgecolors="white", linewidths=0.4, zorder=3,
        )  # fmt: skip
    axis.set_ylim(-0.5, len(rows) - 0.5)
    axis.set_yticks(range(len(rows)))
    size = FONT_TICK if len(rows) <= 20 else FONT_TICK - 1
    axis.set_yticklabels([names[node] for node in rows], fontsize=size, parse_math=False)
    axis.plot([], [], "s", color=LEVEL, markersize=7, label="possible: the darker, the likelier")
    left_out = len(first) + len(others) - len(rows)
    if left_out > 0:
        axis.plot([], [], linestyle="", label=f"and {left_out} more nodes")
