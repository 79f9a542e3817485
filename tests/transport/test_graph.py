"""Graph EMD: exact against networkx on integers, certified on any lengths."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.spaces import Graph, Grid, Line
from sfumato.transport import emd


def by_networkx(graph: Graph, z: np.ndarray) -> int:
    both = nx.DiGraph()
    both.add_nodes_from((i, {"demand": -int(x)}) for i, x in enumerate(z))
    for (a, b), length in zip(graph.edges.tolist(), graph.lengths.tolist(), strict=True):
        both.add_edge(a, b, weight=int(length))
        both.add_edge(b, a, weight=int(length))
    return int(nx.network_simplex(both)[0])


def random_graph(rng: np.random.Generator, *, whole: bool) -> Graph:
    n = int(rng.integers(2, 60))
    tree = [(int(rng.integers(i)), i) for i in range(1, n)]
    more = {
        tuple(sorted(rng.choice(n, 2, replace=False).tolist()))
        for _ in range(int(rng.integers(0, 2 * n)))
    }
    edges = sorted({*tree, *more})
    lengths = rng.integers(1, 50, len(edges)) if whole else rng.exponential(size=len(edges)) + 1e-3
    return Graph(edges, lengths, nodes=n)


def random_masses(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    p, q = rng.integers(0, 100, (2, n)) * (rng.random((2, n)) < 0.5)
    short = int(p.sum() - q.sum())
    (q if short > 0 else p)[rng.integers(n)] += abs(short)
    return p, q


@pytest.mark.reference
def test_graph_distances_are_those_of_networkx(rng: np.random.Generator) -> None:
    for _ in range(160):
        graph = random_graph(rng, whole=True)
        p, q = random_masses(rng, graph.size)
        found = emd(p, q, graph)
        assert found.value == by_networkx(graph, p - q)
        assert found.lower <= found.value <= found.upper


@pytest.mark.reference
def test_real_lengths_are_certified(rng: np.random.Generator) -> None:
    """Against the transport problem on all-pairs distances, solved by POT."""
    import ot

    for _ in range(40):
        graph = random_graph(rng, whole=False)
        p, q = random_masses(rng, graph.size)
        if not p.any():
            continue
        distances = np.stack([graph.distances_from(i) for i in range(graph.size)])
        mass = float(p.sum())
        theirs = mass * ot.emd2(p / mass, q / mass, distances)
        found = emd(p, q, graph, flow=True)
        assert found.value == pytest.approx(theirs, rel=1e-9, abs=1e-9)
        assert found.upper - found.lower <= 1e-12 * mass * graph.diameter
        assert isinstance(found.flow, np.ndarray)
        rest = (p - q).astype(np.float64)
        np.subtract.at(rest, graph.edges[:, 0], found.flow)
        np.add.at(rest, graph.edges[:, 1], found.flow)
        assert np.abs(rest).max() < 1e-9
        assert np.abs(found.flow) @ graph.lengths == pytest.approx(found.value, rel=1e-12)


@pytest.mark.property
def test_a_path_is_a_line_and_a_lattice_is_a_grid(rng: np.random.Generator) -> None:
    n = 50
    path = Graph([(i, i + 1) for i in range(n - 1)])
    p, q = random_masses(rng, n)
    assert emd(p, q, path).value == pytest.approx(emd(p, q, Line(n, length=n)).value, rel=1e-12)
    grid = Grid(3, bounds=(0, 0, 8, 8))
    edges = [(i, int(j)) for i in range(grid.size) for j in grid.neighbors(i) if i < j]
    p, q = random_masses(rng, grid.size)
    assert emd(p, q, Graph(edges)).value == emd(p, q, grid).value


@pytest.mark.unit
def test_parts_that_no_path_joins() -> None:
    graph = Graph([(0, 1), (2, 3)], [2, 5], nodes=5)
    assert emd([1, 0, 3, 0, 4], [0, 1, 0, 3, 4], graph).value == 17
    with pytest.raises(InvalidInput, match="no path joins the 3 parts"):
        emd([1, 0, 0, 0, 0], [0, 0, 1, 0, 0], graph)


@pytest.mark.unit
def test_a_busy_node_and_a_big_graph(rng: np.random.Generator) -> None:
    """A star, where local pushes are left out, and 20,000 nodes."""
    star = Graph([(0, i) for i in range(1, 500)])
    p, q = np.zeros(500), np.zeros(500)
    p[1:251], q[251:500] = 1, 1
    q[0] = 1
    assert emd(p, q, star).value == 250 + 249
    n = 20_000
    ring = Graph([(i, (i + 1) % n) for i in range(n)], nodes=n)
    p, q = rng.random((2, n))
    found = emd(p, q, ring, normalize=True)
    assert found.lower <= found.value <= found.upper
    assert found.upper - found.lower <= 1e-12 * n / 2
    wide = Graph([(0, i) for i in range(1, n)], np.full(n - 1, 1.1))
    found = emd(p, q, wide, normalize=True)
    assert found.upper - found.lower <= 1e-12 * 2.2
