"""What a user meets: fit, read, carry on."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import networkx
import numpy as np
import pytest
from scipy import sparse

from sfumato.errors import InvalidInput, InvalidParameter, LedgerMismatch
from sfumato.graphon.blocks import Blocks, _reason
from sfumato.graphon.estimation.holdout import Gain
from sfumato.graphon.limits.bounds import estimation_rate
from sfumato.graphon.limits.thresholds import even_like
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.network import Network, private_network
from sfumato.graphon.sample import sample_graph
from sfumato.privacy import FlippedEdge, Ledger, PureDP
from sfumato.sensing import graph_diffusion
from sfumato.spaces import Graph

THREE = BlockGraphon(np.full((3, 3), 0.05) + 0.4 * np.eye(3), [0.5, 0.3, 0.2])


@pytest.mark.statistical
def test_blocks_of_any_kind_of_graph(rng: np.random.Generator) -> None:
    drawn = sample_graph(THREE, 240, rng)
    matrix = drawn.network.adjacency
    first = Blocks().fit(drawn.network)
    for graph in (
        matrix,
        sparse.csr_matrix(matrix),
        matrix.toarray(),
        networkx.from_scipy_sparse_array(matrix),
    ):
        again = Blocks().fit(graph)
        assert np.array_equal(again.labels_, first.labels_)
        assert again.graphon_ == first.graphon_
    assert first.detectable_
    assert not first.hopeless_
    assert first.k_ == 3
    assert "3 blocks foretell held-out edges better than one" in first.reason_
    assert repr(first) == "Blocks(k='auto'): 3 blocks of 240 nodes"
    assert first.matrix_ is first.graphon_.matrix
    assert first.shares_.sum() == pytest.approx(1)
    assert first.rate_ == estimation_rate(
        240, 3, max(even_like(first.graphon_))
    )  # as `graph limits` has it
    assert first.density_ == drawn.network.density != first.graphon_.density
    order = np.argsort(-first.shares_)
    # Six deviations of a mean of about 1,100 pairs, and a few nodes in the wrong block.
    assert np.allclose(
        first.matrix_[np.ix_(order, order)], THREE.matrix, atol=6 * np.sqrt(0.25 / 1100)
    )
    assert np.allclose(
        first.shares_[order], np.sort(np.bincount(drawn.labels) / 240)[::-1], atol=0.02
    )


@pytest.mark.unit
def test_chance_has_one_block(rng: np.random.Generator) -> None:
    network = sample_graph(BlockGraphon([[0.05]]), 200, rng).network
    blocks = Blocks(k=4).fit(network)
    assert (blocks.k_, blocks.detectable_, blocks.labels_.max()) == (1, False, 0)
    assert blocks.matrix_[0, 0] == pytest.approx(network.density, rel=1e-12)
    assert blocks.rate_ == estimation_rate(200, 4, blocks.graphon_.density)  # of what was asked for
    assert "no better than one" in blocks.reason_
    assert repr(blocks).endswith("1 block of 200 nodes, nothing to be found")


@pytest.mark.unit
def test_another_generator_is_another_split(rng: np.random.Generator) -> None:
    network = sample_graph(THREE, 150, rng).network
    gains = [Blocks(k=3, rng=one).fit(network).gains_[0].gain for one in (None, None, rng)]
    assert gains[0] == gains[1] != gains[2]


@pytest.mark.unit
def test_empty_and_tiny_networks(rng: np.random.Generator) -> None:
    empty = Blocks().fit(Network(50, []))
    assert (empty.k_, empty.rate_, empty.detectable_) == (1, 0.0, False)
    assert "say nothing of blocks" in empty.reason_
    assert Blocks().fit(Network(200, [])).k_ == 1
    assert Blocks(k=3).fit(1 - np.eye(80)).matrix_.tolist() == [[1.0]]
    assert Blocks(k=1).fit([(0, 1)]).matrix_.tolist() == [[1.0]]
    assert repr(Blocks(k=1).fit([(0, 1)])) == "Blocks(k=1): 1 block of 2 nodes"


@pytest.mark.unit
def test_a_ledger_may_be_its_path(tmp_path: Path) -> None:
    paid, other = tmp_path / "edges.ledger", tmp_path / "users.ledger"
    Ledger.create(paid, PureDP(1), unit="edge", source="calls", neighbors=FlippedEdge())
    Ledger.create(other, PureDP(1), unit="user", source="calls")
    for path in (paid, str(paid)):
        asked = Blocks(k=1, epsilon="1/2", ledger=path)
        assert asked.ledger is not None
        assert asked.ledger.path == paid
        assert asked.fit([(0, 1), (1, 2)], nodes=12).releases_
    assert not Ledger(paid).statement().left.epsilon  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match=r"there is no ledger .* make one with: sfumato ledger"):
        Blocks(epsilon=1, ledger=tmp_path / "no.ledger")
    with pytest.raises(LedgerMismatch, match="edges need one made like"):
        Blocks(epsilon=1, ledger=other)
    with pytest.raises(InvalidParameter, match="a ledger is one, or its path, got 5"):
        Blocks(epsilon=1, ledger=5)  # type: ignore[arg-type]


@pytest.mark.unit
def test_wrong_calls_are_refused() -> None:
    ledger = Ledger.rehearsal(PureDP(1), unit="edge", neighbors=FlippedEdge())
    with pytest.raises(InvalidParameter, match="whole number or 'auto'"):
        Blocks(k="many")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="k must be a whole number, at least 1"):
        Blocks(k=0)
    with pytest.raises(InvalidParameter, match="got no ledger"):
        Blocks(k=2, epsilon=1)
    with pytest.raises(InvalidParameter, match="got no epsilon"):
        Blocks(k=2, ledger=ledger)
    with pytest.raises(InvalidParameter, match="from 1 to 3"):
        Blocks(k=4).fit([(0, 1), (1, 2)])
    with pytest.raises(InvalidInput, match="given once"):
        Blocks().fit([(0, 1), (1, 0)])
    with pytest.raises(InvalidParameter, match="must be fitted"):
        Blocks().weights()
    assert repr(Blocks(k=2, epsilon=0.1, ledger=ledger)) == "Blocks(k=2, epsilon=1/10)"


@pytest.mark.statistical
def test_private_blocks(rng: np.random.Generator) -> None:
    drawn = sample_graph(BlockGraphon(np.full((2, 2), 0.05) + 0.35 * np.eye(2)), 300, rng)
    ledger = Ledger.rehearsal(PureDP(3), unit="edge", neighbors=FlippedEdge())
    blocks = Blocks(k=2, epsilon=2.5, ledger=ledger).fit(drawn.network)
    assert (blocks.k_, blocks.detectable_, blocks.hopeless_) == (2, True, False)
    assert all(release.rehearsal for release in blocks.releases_)
    assert ledger.statement().left == PureDP(Fraction(1, 2))
    same = np.mean(blocks.labels_ == drawn.labels)
    assert max(same, 1 - same) > 0.98
    hidden = Blocks(epsilon="0.1", ledger=ledger).fit(drawn.network)
    assert (hidden.k_, hidden.detectable_, hidden.hopeless_) == (1, False, True)
    assert hidden.reason_.startswith("hopeless")
    assert "hopeless" not in blocks.reason_


@pytest.mark.unit
def test_private_pairs_must_say_how_many_nodes_there_are() -> None:
    """The number of the last node with an edge is not public: one edge would be seen by it."""
    pairs, ledger = (
        [(0, 1), (1, 2), (2, 4)],
        Ledger.rehearsal(PureDP(9), unit="edge", neighbors=FlippedEdge()),
    )
    blocks = Blocks(k=1, epsilon=1, ledger=ledger)
    for graph in (pairs, np.array(pairs), [], networkx.Graph(pairs)):
        with pytest.raises(InvalidParameter, match=r"must come with nodes, .*nothing was charged"):
            blocks.fit(graph)
    assert ledger.statement().left == PureDP(9)
    graph = networkx.Graph([(4, 2), (2, 1), (1, 0)])  # its own order is that of the edges
    for given in (pairs, graph, [], networkx.Graph()):
        assert blocks.fit(given, nodes=6).labels_.size == 6
    for given in (Network(6, pairs), Graph(pairs, nodes=6), Network(6, pairs).adjacency):
        assert blocks.fit(given).labels_.size == 6
    assert blocks.fit(Network(6, pairs).adjacency.toarray()).labels_.size == 6
    assert private_network(graph, nodes=6) == Network(6, pairs)
    assert ledger.statement().left == PureDP(1)
    assert Blocks(k=1).fit(pairs, nodes=7).labels_.size == 7


@pytest.mark.unit
@pytest.mark.parametrize(
    "graph",
    [
        [(3, 4), (4, 3)],
        [(3, 3), (0, 1)],
        [(3, 47), (0, 1)],
        [(3, 4), (1,)],
        [("a", "b"), ("b", "c")],
        networkx.Graph([(3, 47)]),
        networkx.Graph([("a", "b")]),
        networkx.DiGraph([(3, 4)]),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_private_network_is_not_said(graph: object) -> None:
    ledger = Ledger.rehearsal(PureDP(1), unit="edge", neighbors=FlippedEdge())
    with pytest.raises(InvalidInput, match="nothing was charged") as refused:
        Blocks(k=1, epsilon=1, ledger=ledger).fit(graph, nodes=6)
    assert set("123467").isdisjoint(str(refused.value)), (
        "nodes 0 to 5 are public, no other number is said"
    )
    assert refused.value.__cause__ is None
    assert ledger.statement().left == PureDP(1)


@pytest.mark.statistical
def test_weights_are_what_sensing_takes(rng: np.random.Generator) -> None:
    """The blocks of one network make heat flow as in another of the same model, on average."""
    drawn = sample_graph(BlockGraphon(np.full((2, 2), 0.002) + 0.5 * np.eye(2)), 60, rng)
    blocks = Blocks(k=2).fit(drawn.network)
    graph, weights = blocks.weights()
    assert len(graph.edges) == weights.size == 60 * 59 // 2
    assert weights.min() > 0
    flow = graph_diffusion(graph, 0.02, weights=weights)
    heat = flow.readings(np.eye(60)[0])
    near = blocks.labels_ == blocks.labels_[0]
    assert heat[near].sum() > 0.9
    assert heat.sum() == pytest.approx(1, abs=1e-9)
    some, fewer = blocks.weights([(0, 1), (5, 2)])
    assert some.edges.tolist() == [[0, 1], [2, 5]]
    assert fewer.tolist() == [
        weights[np.flatnonzero((graph.edges == pair).all(axis=1))[0]] for pair in ([0, 1], [2, 5])
    ]
    big = Blocks(k=1).fit(Network(4000, [(0, 1)]))
    with pytest.raises(InvalidParameter, match="say which edges"):
        big.weights()


@pytest.mark.unit
def test_labels_follow_the_nodes_that_are_named() -> None:
    """Cliques of 8, nodes in reverse order: labels follow list(graph), or numbers where nodes are counted."""
    cliques = [(i, j) for j in range(24) for i in range(j) if i // 8 == j // 8]
    graph = networkx.Graph()
    graph.add_nodes_from(reversed(range(24)))
    graph.add_edges_from(cliques)
    ledger = Ledger.rehearsal(PureDP(30), unit="edge", neighbors=FlippedEdge())
    own = Blocks(k=3).fit(graph)
    assert own.nodes_ == tuple(graph)
    counted = Blocks(k=3).fit(graph, nodes=24)
    private = Blocks(k=3, epsilon=15, ledger=ledger).fit(graph, nodes=24)
    for blocks in (counted, private):
        assert blocks.nodes_ == tuple(range(24))
        assert blocks.labels_.tolist() == [node // 8 for node in range(24)]
    for blocks in (own, counted, private):
        block = dict(zip(blocks.nodes_, blocks.labels_.tolist(), strict=True))
        assert all(block[a] == block[b] for a, b in cliques)
    assert counted.density_ == len(cliques) / (24 * 23 / 2)
    assert private.density_ == float(private.releases_[-1].value.sum()) / (24 * 23 / 2)


@pytest.mark.unit
def test_the_last_number_of_blocks_looked_at_may_be_too_few() -> None:
    gains = tuple(Gain(k, float(k), 0.1, 2.6) for k in (11, 12))
    assert _reason(gains, 12, chosen=True).endswith("more blocks than 12 were not tried: give k")
    assert "not tried" not in _reason(gains, 12, chosen=False) + _reason(
        gains[::-1], 12, chosen=True
    )


@pytest.mark.unit
def test_blocks_are_asked_as_estimators_are() -> None:
    cliques = [(i, j) for j in range(24) for i in range(j) if i // 8 == j // 8]
    blocks = Blocks(k=2)
    assert blocks.set_params(k=3) is blocks
    assert blocks.get_params() == {"k": 3, "epsilon": None, "ledger": None, "rng": None}
    with pytest.raises(InvalidParameter, match="parameters are k, epsilon, ledger, rng, got alpha"):
        blocks.set_params(alpha=1)
    with pytest.raises(InvalidParameter, match="k must be a whole number"):
        blocks.set_params(k=0)
    with pytest.raises(InvalidParameter, match=r"before they have a picture; nothing was drawn"):
        blocks.plot()
    assert blocks.fit_predict(cliques).tolist() == [node // 8 for node in range(24)]
    assert blocks.plot(caption="cliques").startswith(b"\x89PNG")
