"""Every kind of graph becomes the same network, and what is none is refused with its reason."""

from __future__ import annotations

import pickle
from typing import Any

import networkx
import numpy as np
import pytest
from scipy import sparse

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.graphon.network import Network, as_network
from sfumato.spaces import Graph

pytestmark = pytest.mark.unit

EDGES = [(0, 1), (1, 2), (0, 3)]
DENSE = np.array(
    [[0, 1, 0, 1, 0], [1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
)


def named() -> networkx.Graph:
    graph = networkx.Graph()
    graph.add_nodes_from("abcde")
    graph.add_edges_from([("b", "a"), ("c", "b"), ("a", "d")])
    return graph


@pytest.mark.parametrize(
    "graph",
    [
        Network(5, EDGES),
        Graph(EDGES, [1.0, 2.0, 0.5], nodes=5),
        DENSE,
        sparse.csr_array(DENSE * 1.0),
        sparse.coo_matrix(DENSE),
        named(),
    ],
    ids=["network", "graph", "dense", "csr", "coo_matrix", "networkx"],
)
def test_all_doors_lead_to_one_network(graph: object) -> None:
    assert as_network(graph) == Network(5, EDGES)


def test_pairs_come_with_their_number_of_nodes() -> None:
    assert as_network([(1, 0), (2, 1), (3, 0)]).size == 4
    assert as_network(np.array(EDGES), nodes=5) == Network(5, EDGES)
    assert as_network(Network(4, EDGES), nodes=5) == Network(5, EDGES)
    assert as_network([], nodes=2).dyads == 1
    with pytest.raises(InvalidInput, match="has 5 nodes, and nodes says 4"):
        as_network(DENSE, nodes=4)


def test_with_nodes_a_networkx_graph_is_of_numbers() -> None:
    graph = networkx.Graph([(3, 0), (0, 1), (1, 2)])
    assert as_network(graph, nodes=5) == Network(5, EDGES)
    assert as_network(graph) != Network(4, EDGES)  # in its own order: 3, 0, 1, 2
    with pytest.raises(InvalidInput, match="must have nodes from 0 to 4, got 'a'"):
        as_network(named(), nodes=5)


def test_a_network_knows_its_numbers() -> None:
    network = Network(5, EDGES)
    assert network.degrees.tolist() == [2, 2, 1, 1, 0]
    assert network.density == pytest.approx(3 / 10, rel=1e-15)
    assert np.array_equal(network.adjacency.toarray(), DENSE)
    assert pickle.loads(pickle.dumps(network)) == network  # noqa: S301 - our own
    assert hash(network) == hash(Network(5, EDGES[::-1]))
    assert network != Network(6, EDGES)
    with pytest.raises(ValueError, match="read-only"):
        network.edges[0, 0] = 3


@pytest.mark.parametrize(
    ("graph", "rule"),
    [
        ([(0, 1), (2, 2)], r"two different nodes, got \(2, 2\) and 0 more"),
        ([(0, 1), (1, 2), (1, 0)], r"given once, got \(0, 1\) again"),
        ([(0, -1)], "nodes from 0"),
        ([(0, 1, 2)], "pairs of whole numbers"),
        ([(0, 1), (1,)], "uneven rows"),
        ([(0.5, 1.0)], "pairs of whole numbers"),
        ([], "at least one node"),
        (np.eye(3, dtype=int), "two different nodes"),
        (np.triu(np.ones((3, 3), dtype=int), 1), "must be symmetric"),
        (DENSE * 0.3, "0 and 1"),
        *(
            (sparse.csr_array(DENSE * entry), "entries 0 and 1, got others")
            for entry in (2.5, np.nan, -1)
        ),
        ({(0, 1)}, "got a set: make it a list"),
        ((pair for pair in EDGES), "got a generator: make it a list"),
        ("0 1", "got a text"),
        ([("a", "b"), ("b", "c")], "whole numbers from 0, got 'a': number them"),
        (sparse.csr_array(np.ones((2, 3))), "must be square"),
        (networkx.DiGraph([(0, 1)]), "undirected"),
        (networkx.MultiGraph([(0, 1)]), "parallel"),
    ],
)
def test_what_is_no_network_is_refused(graph: Any, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        as_network(graph)


def test_a_size_is_a_whole_number() -> None:
    with pytest.raises(InvalidParameter, match="size must be a whole number"):
        Network(0, [])
    with pytest.raises(InvalidInput, match=r"nodes from 0 to 1, got \(0, 2\)"):
        Network(2, [(0, 2)])
