from __future__ import annotations

import copy
import dataclasses
import pickle
import sys

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.spaces.laws import assert_metric, assert_neighbors, shortest_walks

from sfumato.errors import InvalidParameter, MissingPackage
from sfumato.spaces import Graph, Line


@st.composite
def graphs(draw: st.DrawFn, *, connected: bool = False) -> Graph:
    """Small graphs, connected or not; whole lengths, so that paths add without rounding."""
    size = draw(st.integers(1, 9))
    pairs = [(a, b) for b in range(size) for a in range(b)]
    chosen = draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    if connected:
        chosen |= {(draw(st.integers(0, b - 1)), b) for b in range(1, size)}
    lengths = draw(st.lists(st.integers(1, 50), min_size=len(chosen), max_size=len(chosen)))
    turned = [(b, a) if draw(st.booleans()) else (a, b) for a, b in chosen]
    return Graph(turned, lengths, nodes=size)


def as_networkx(graph: Graph) -> nx.Graph:
    peer = nx.empty_graph(graph.size)
    peer.add_weighted_edges_from(zip(*graph.edges.T.tolist(), graph.lengths.tolist(), strict=True))
    return peer


def all_pairs(graph: Graph) -> npt.NDArray[np.float64]:
    return np.array([graph.distances_from(i) for i in range(graph.size)])


@pytest.mark.unit
def test_distance_takes_the_way_around() -> None:
    graph = Graph([(0, 1), (2, 1), (2, 0)], [1, 1.5, 5])
    assert graph.size == 3
    assert graph.distance(0, 2) == graph.distance(2, 0) == graph.diameter == 2.5
    assert graph.distances_from(1).tolist() == [1.0, 0.0, 1.5]
    assert graph.neighbors(0).tolist() == [1, 2]


@pytest.mark.unit
def test_distance_is_symmetric_to_the_bit() -> None:
    graph = Graph([(0, 1), (1, 2), (2, 3)], [0.1, 0.2, 0.3])
    assert graph.distances_from(0)[3] != graph.distances_from(3)[0]
    assert graph.distance(0, 3) == graph.distance(3, 0)


@pytest.mark.unit
def test_lengths_are_one_unless_given() -> None:
    graph = Graph([(3, 0), (0, 1)])
    assert graph.size == 4
    assert graph.lengths.tolist() == [1.0, 1.0]
    assert graph.distance(1, 3) == 2.0
    assert graph.neighbors(2).tolist() == []


@pytest.mark.unit
def test_edges_are_sorted_with_their_lengths() -> None:
    graph = Graph([(2, 1), (3, 0), (0, 1)], [21, 30, 1])
    assert graph.edges.tolist() == [[0, 1], [0, 3], [1, 2]]
    assert graph.lengths.tolist() == [1.0, 30.0, 21.0]


@pytest.mark.unit
def test_without_a_path_the_distance_is_inf() -> None:
    graph = Graph([(0, 1), (2, 3)], nodes=5)
    assert graph.distance(0, 2) == graph.diameter == np.inf
    assert graph.distances_from(4).tolist() == [np.inf] * 4 + [0.0]
    labels = graph.components()
    assert labels[0] == labels[1] == 0
    assert labels[2] == labels[3]
    assert len(set(labels.tolist())) == 3


@pytest.mark.unit
@pytest.mark.parametrize("edges", [[], np.empty((0, 2), dtype=np.int64)])
def test_one_node(edges: npt.ArrayLike) -> None:
    graph = Graph(edges, nodes=1)
    assert (graph.size, graph.diameter, graph.distance(0, 0)) == (1, 0.0, 0.0)
    assert graph.neighbors(0).tolist() == []
    assert graph.edges.shape == (0, 2)
    assert graph.laplacian().toarray().tolist() == [[0.0]]


@pytest.mark.unit
def test_adjacency_and_laplacian_by_hand() -> None:
    graph = Graph([(0, 1), (1, 2)], [3, 7])
    assert sparse.issparse(graph.adjacency())
    assert sparse.issparse(graph.laplacian())
    assert graph.adjacency().toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graph.laplacian().toarray().tolist() == [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]


@pytest.mark.unit
def test_equal_graphs_are_equal_values() -> None:
    graph = Graph([(0, 1), (1, 2)], [3, 7])
    same = Graph([(2, 1), (1, 0)], [7, 3])
    assert graph == same
    assert hash(graph) == hash(same)
    assert graph != Graph([(0, 1), (1, 2)], [7, 3])
    assert graph != Graph([(0, 1), (0, 2)], [3, 7])
    assert graph != Graph([(0, 1), (1, 2)], [3, 7], nodes=4)
    assert Graph([(0, 1)]) != Line(2)


@pytest.mark.unit
def test_a_graph_does_not_change() -> None:
    edges, lengths = np.array([[0, 1], [1, 2]]), np.array([3.0, 7.0])
    graph = Graph(edges, lengths, nodes=4)
    edges[0] = 9
    lengths[0] = 9.0
    graph.adjacency().data[:] = 9.0
    graph.neighbors(1)[0] = 9
    assert graph == Graph([(0, 1), (1, 2)], [3, 7], nodes=4)
    assert graph.distance(0, 2) == 10.0
    assert graph.neighbors(1).tolist() == [0, 2]
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.size = 5  # type: ignore[misc]
    for same in (graph, copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):  # noqa: S301
        assert same == graph
        assert same.distance(0, 2) == 10.0
        with pytest.raises(ValueError, match="read-only"):
            same.edges[0, 0] = 0
        with pytest.raises(ValueError, match="read-only"):
            same.lengths[0] = 0.0


@pytest.mark.unit
@pytest.mark.parametrize(
    ("edges", "lengths", "nodes", "message"),
    [
        ([(0, 1), (1, 0)], None, None, r"given once, got \(0, 1\) again"),
        ([(0, 1), (2, 2)], None, None, r"two different nodes, got \(2, 2\)"),
        ([(0, 3)], None, 3, r"nodes from 0 to 2, got \(0, 3\)"),
        ([(-1, 1)], None, None, r"nodes from 0 to 1, got \(-1, 1\)"),
        ([(-2, -1)], None, None, r"nodes from 0 to 0, got \(-2, -1\)"),
        ([(0, 1)], [0.0], None, r"positive and finite, got 0\.0 at 0"),
        ([(0, 1), (1, 2)], [1, -2], None, r"positive and finite, got -2\.0 at 1"),
        ([(0, 1)], [float("nan")], None, "positive and finite, got nan at 0"),
        ([(0, 1)], [float("inf")], None, "positive and finite, got inf at 0"),
        ([(0, 1), (1, 2)], [1e308, 1e308], None, "finite sum"),
        ([(0, 1)], [1.0, 2.0], None, r"each of 1 edges, got shape \(2,\)"),
        ([(0, 1)], 1.0, None, r"each of 1 edges, got shape \(\)"),
        ([(0, 1)], ["far"], None, "lengths must be real numbers"),
        ([(0, 1, 2)], None, None, r"pairs of whole numbers, got shape \(1, 3\)"),
        ([(0.0, 1.0)], None, None, "pairs of whole numbers, got .* type float64"),
        ([(0, 1), (1,)], None, None, "uneven rows"),
        ([], None, None, "at least one node, got none"),
    ],
)
def test_edges_and_lengths_are_checked(
    edges: npt.ArrayLike, lengths: npt.ArrayLike | None, nodes: int | None, message: str
) -> None:
    with pytest.raises(InvalidParameter, match=f"{message}.*was built"):
        Graph(edges, lengths, nodes=nodes)


@pytest.mark.unit
def test_nodes_are_checked() -> None:
    with pytest.raises(InvalidParameter, match="nodes must be a whole number, at least 1, got 0"):
        Graph([], nodes=0)
    graph = Graph([(0, 1)])
    for ask in (graph.neighbors, graph.distances_from, lambda i: graph.distance(0, i)):
        for node in (-1, 2):
            with pytest.raises(
                InvalidParameter, match=f"node must be a whole number from 0 to 1, got {node}"
            ):
                ask(node)


@pytest.mark.unit
def test_from_sparse_reads_lengths() -> None:
    dense = np.array([[0, 2, 0, 0], [2, 0, 5, 0], [0, 5, 0, 0], [0, 0, 0, 0]])
    expected = Graph([(0, 1), (1, 2)], [2, 5], nodes=4)
    for matrix in (
        sparse.csr_array(dense),
        sparse.coo_matrix(dense),
        sparse.lil_array(dense.astype(float)),
    ):
        assert Graph.from_sparse(matrix) == expected
    assert Graph.from_sparse(sparse.csr_array(dense > 0)) == Graph([(0, 1), (1, 2)], nodes=4)


@pytest.mark.unit
def test_from_sparse_adds_up_entries_stored_twice() -> None:
    parts = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert Graph.from_sparse(parts) == Graph([(0, 1)], [3])
    assert parts.nnz == 3


@pytest.mark.unit
@pytest.mark.parametrize(
    ("dense", "message"),
    [
        ([[0, 1], [2, 0]], "must be symmetric"),
        ([[0, 1], [0, 0]], "must be symmetric"),
        ([[0, 1, 0], [1, 0, 0]], r"must be square, got shape \(2, 3\)"),
        ([[1, 1], [1, 0]], r"two different nodes, got \(0, 0\)"),
        ([[0, -1], [-1, 0]], r"positive and finite, got -1\.0"),
        ([[0, np.nan], [np.nan, 0]], "positive and finite, got nan"),
        ([[0, 1j], [1j, 0]], "must be real numbers"),
    ],
)
def test_from_sparse_is_checked(dense: list[list[complex]], message: str) -> None:
    with pytest.raises(InvalidParameter, match=f"{message}.*was built"):
        Graph.from_sparse(sparse.csr_array(np.array(dense)))


@pytest.mark.unit
def test_from_sparse_wants_a_sparse_matrix() -> None:
    with pytest.raises(
        InvalidParameter, match="scipy sparse matrix, got ndarray; no graph was built"
    ):
        Graph.from_sparse(np.eye(2))  # type: ignore[arg-type]


@pytest.mark.unit
def test_from_networkx_numbers_nodes_in_their_order() -> None:
    peer = nx.Graph()
    peer.add_nodes_from(["hall", "attic", "yard"])
    peer.add_edge("attic", "hall", weight=4, meters=40)
    peer.add_edge("yard", "hall")
    assert Graph.from_networkx(peer) == Graph([(0, 1), (0, 2)], [4, 1])
    assert Graph.from_networkx(peer, length="meters") == Graph([(0, 1), (0, 2)], [40, 1])


@pytest.mark.unit
@pytest.mark.parametrize("peer", [nx.DiGraph([(0, 1)]), nx.MultiGraph([(0, 1)]), [(0, 1)]])
def test_from_networkx_is_checked(peer: nx.Graph) -> None:
    with pytest.raises(
        InvalidParameter, match=f"undirected .* got {type(peer).__name__}; no graph was built"
    ):
        Graph.from_networkx(peer)


@pytest.mark.unit
def test_missing_networkx_names_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = nx.path_graph(2)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingPackage, match=r'^pip install "networkx>=3\.4"$'):
        Graph.from_networkx(peer)


@pytest.mark.property
@settings(deadline=None)
@given(graphs())
def test_a_graph_is_a_metric_with_neighbors(graph: Graph) -> None:
    assert_metric(graph, range(graph.size))
    assert_neighbors(graph)
    assert graph.diameter == all_pairs(graph).max()


@pytest.mark.property
@settings(deadline=None)
@given(graphs(connected=True))
def test_diameter_is_the_largest_distance(graph: Graph) -> None:
    assert graph.diameter == all_pairs(graph).max() < np.inf


@pytest.mark.property
@settings(deadline=None)
@given(graphs())
def test_neighbor_steps_realise_the_metric(graph: Graph) -> None:
    length = dict(zip(map(tuple, graph.edges.tolist()), graph.lengths.tolist(), strict=True))
    for start in range(graph.size):
        walks = shortest_walks(graph, start, step=lambda i, j: length[min(i, j), max(i, j)])
        assert walks == [graph.distance(start, j) for j in range(graph.size)]


@pytest.mark.property
@settings(deadline=None)
@given(graphs())
def test_components_are_the_nodes_within_reach(graph: Graph) -> None:
    labels = graph.components()
    assert labels[0] == 0
    assert ((labels[:, None] == labels) == np.isfinite(all_pairs(graph))).all()


@pytest.mark.property
@settings(deadline=None)
@given(graphs(), st.data())
def test_laplacian_measures_change_along_edges(graph: Graph, data: st.DataObject) -> None:
    values = np.array(
        data.draw(st.lists(st.integers(-9, 9), min_size=graph.size, max_size=graph.size))
    )
    change = values[graph.edges[:, 0]] - values[graph.edges[:, 1]]
    assert values @ (graph.laplacian() @ values) == (change**2).sum()
    assert not graph.laplacian().sum(axis=1).any()


@pytest.mark.property
@settings(deadline=None)
@given(graphs())
def test_ways_in_agree(graph: Graph) -> None:
    a, b = graph.edges.T
    upper = sparse.coo_array((graph.lengths, (a, b)), shape=(graph.size, graph.size))
    assert Graph.from_sparse(sparse.csr_array(upper + upper.T)) == graph
    assert Graph.from_networkx(as_networkx(graph)) == graph


@pytest.mark.reference
@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_networkx_finds_the_same_paths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    peer = nx.gnp_random_graph(60, 0.06, seed=seed)
    for a, b in peer.edges:
        peer.edges[a, b]["weight"] = float(rng.uniform(0.1, 10))
    graph = Graph.from_networkx(peer)
    for node in range(0, graph.size, 7):
        theirs = np.full(graph.size, np.inf)
        for other, length in nx.single_source_dijkstra_path_length(peer, node).items():
            theirs[other] = length
        # Both add at most 59 lengths along a path, each sum off by half a rounding.
        np.testing.assert_allclose(
            graph.distances_from(node), theirs, rtol=60 * np.finfo(float).eps, atol=0
        )
    count = len(set(graph.components().tolist()))
    assert count == nx.number_connected_components(peer)
    assert abs(graph.laplacian() - nx.laplacian_matrix(peer, weight=None)).max() == 0
    main = peer.subgraph(max(nx.connected_components(peer), key=len))
    theirs_diameter = nx.diameter(main, weight="weight")
    ours = Graph.from_networkx(main).diameter
    assert ours == pytest.approx(theirs_diameter, rel=60 * np.finfo(float).eps, abs=0)


@pytest.mark.unit
def test_the_nearest_of_several() -> None:
    graph = Graph([(0, 1), (1, 2), (2, 3), (3, 4)], [1, 2, 3, 4])
    assert graph.distances_from_any([0, 4]).tolist() == [0, 1, 3, 4, 0]
    with pytest.raises(InvalidParameter):
        graph.distances_from_any([5])
