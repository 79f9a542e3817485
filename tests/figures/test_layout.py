"""Layouts are the same each time, part all nodes, and bring together what hangs together."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.figures import graph_layout
from sfumato.figures.recovery.communities import community_outlines
from sfumato.spaces import Graph

pytestmark = pytest.mark.unit


def blocks(
    rng: np.random.Generator, sizes: list[int], within: float, across: float
) -> tuple[Graph, np.ndarray]:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    i, j = np.triu_indices(labels.size, 1)
    there = rng.random(i.size) < np.where(labels[i] == labels[j], within, across)
    return Graph(np.column_stack([i[there], j[there]]), nodes=labels.size), labels


def mesh(rows: int, columns: int) -> Graph:
    node = np.arange(rows * columns).reshape(rows, columns)
    east = np.column_stack([node[:, :-1].ravel(), node[:, 1:].ravel()])
    north = np.column_stack([node[:-1].ravel(), node[1:].ravel()])
    return Graph(np.concatenate([east, north]))


SHAPES = {
    "one node": Graph([], nodes=1),
    "one edge": Graph([(0, 1)]),
    "no edge": Graph([], nodes=5),
    "path": Graph([(i, i + 1) for i in range(30)]),
    "star": Graph([(0, i) for i in range(1, 40)]),
    "complete": Graph([(i, j) for i in range(12) for j in range(i)]),
    "in parts": Graph([(0, 1), (1, 2), (3, 4)], nodes=8),
    "mesh": mesh(12, 15),
    "large mesh": mesh(30, 40),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_layout_is_the_same_each_time_and_parts_all_nodes(name: str) -> None:
    graph = SHAPES[name]
    at = graph_layout(graph)
    assert np.array_equal(at, graph_layout(graph))
    assert at.shape == (graph.size, 2)
    assert ((at >= -1e-12) & (at <= 1 + 1e-12)).all()
    gaps = np.hypot(*(at[:, np.newaxis] - at).transpose(2, 0, 1)) + np.diag(
        np.full(graph.size, 9.0)
    )
    # The room of a node is 1 / sqrt(size) a side; a twentieth of it can still be told apart in
    # print.
    assert gaps.min() > 0.05 / np.sqrt(graph.size)


@pytest.mark.parametrize("name", ["path", "mesh", "large mesh"])
def test_edges_are_short(name: str) -> None:
    """Where a graph has a shape at all, a random layout would make edges as long as any pair: 0.52."""
    graph = SHAPES[name]
    at = graph_layout(graph)
    assert np.hypot(*(at[graph.edges[:, 0]] - at[graph.edges[:, 1]]).T).mean() < 0.13


@pytest.mark.parametrize("nodes", [60, 800], ids=["dense", "sparse"])
def test_communities_lie_apart_even_if_nobody_names_them(
    rng: np.random.Generator, nodes: int
) -> None:
    """Blocks of mean degree 12 within and 0.6 across: far beyond where a spectrum shows them."""
    half = nodes // 2
    graph, labels = blocks(rng, [half, half], 12 / half, 0.6 / half)
    at = graph_layout(graph)
    middles = np.array([np.median(at[labels == group], axis=0) for group in (0, 1)])
    nearer = np.argmin(np.hypot(*(at[:, np.newaxis] - middles).transpose(2, 0, 1)), axis=1)
    assert (nearer == labels).mean() > 0.9
    assert len(community_outlines(graph_layout(graph, labels), labels)) == 2


def test_mixed_communities_have_no_outlines(rng: np.random.Generator) -> None:
    at = rng.random((200, 2))
    assert community_outlines(at, np.arange(200) % 2) == []
    apart = at + 2.0 * (np.arange(200) % 2)[:, np.newaxis]
    outlines = community_outlines(apart, np.arange(200) % 2)
    assert [len(outline) > 3 for outline in outlines] == [True, True]


def test_few_nodes_or_a_row_of_them_have_an_empty_outline() -> None:
    row = np.column_stack([np.arange(6.0), np.arange(6.0)])
    assert [len(outline) for outline in community_outlines(row, np.array([0, 0, 0, 0, 1, 1]))] == [
        0,
        0,
    ]
