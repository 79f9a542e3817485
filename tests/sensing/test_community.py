"""Communities of planted graphs are found, those of graphs without any are not, and sources are in them."""

from __future__ import annotations

import math

import networkx
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from tests.chance import assert_share

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.recovery.community import communities, community_of
from sfumato.spaces import Graph


def planted(
    rng: np.random.Generator, sizes: tuple[int, ...], *, within: float, between: float
) -> tuple[Graph, IntArray]:
    """A connected stochastic block model with its blocks; nodes are shuffled, so order tells nothing."""
    blocks = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    low, high = np.triu_indices(blocks.size, 1)
    while True:
        kept = rng.random(low.size) < np.where(blocks[low] == blocks[high], within, between)
        graph = Graph(np.column_stack([low[kept], high[kept]]), nodes=blocks.size)
        if not graph.components().any():
            return graph, blocks


def agreement(found: IntArray, blocks: IntArray) -> float:
    """The share of nodes with the right label, under the best naming of labels."""
    both = np.zeros((found.max() + 1, blocks.max() + 1))
    np.add.at(both, (found, blocks), 1)
    return float(both[linear_sum_assignment(-both)].sum() / blocks.size)


@pytest.mark.statistical
@pytest.mark.parametrize("sizes", [(100, 100), (60, 90, 150), (80, 80, 80, 80)])
def test_planted_communities_are_found(rng: np.random.Generator, sizes: tuple[int, ...]) -> None:
    """Far above the threshold of recovery, sqrt(within) - sqrt(between) > sqrt(k log(n) / n).

    With 0.3 and 0.02 the left side is 0.41, the right at most 0.27; so nearly every node is right.
    The other arm, one density everywhere, has labels independent of the blocks: hits near the share
    of the best naming.
    """
    for _ in range(3):
        graph, blocks = planted(rng, sizes, within=0.3, between=0.02)
        assert agreement(communities(graph, count=len(sizes)), blocks) >= 0.98
        assert communities(graph).max() + 1 == len(sizes)


@pytest.mark.statistical
def test_no_communities_are_found_where_there_are_none(rng: np.random.Generator) -> None:
    """Two halves at random agree on half of the nodes; the better naming of two adds a few deviations.

    300 nodes: deviation 0.029, so 0.65 is five of them, 6e-7 for both namings together.
    """
    graph, blocks = planted(rng, (150, 150), within=0.1, between=0.1)
    assert agreement(communities(graph, count=2), blocks) < 0.65
    graph, blocks = planted(rng, (150, 150), within=0.1, between=0.01)
    assert agreement(communities(graph, count=2), blocks) > 0.95


@pytest.mark.statistical
def test_the_community_of_a_source_survives_diffusion(rng: np.random.Generator) -> None:
    """Mass that diffuses for a short while stays in its community; after a long one it tells nothing.

    Long: shares are those of the blocks, so a fair coin between two of equal size, up to rounding
    of ties.
    """
    graph, _ = planted(rng, (60, 60), within=0.2, between=0.005)
    labels = communities(graph, count=2)
    near, far = graph_diffusion(graph, 0.2), graph_diffusion(graph, 40.0)
    units = np.eye(graph.size)
    found = [community_of(near.readings(unit), labels).label for unit in units]
    assert_share(int((np.array(found) == labels).sum()), 120, 1 - 1e-9, rivals=[0.5, 0.8])
    even = community_of(far.readings(units[0]), labels).shares
    assert even == pytest.approx(np.bincount(labels) / 120, abs=0.01)


@pytest.mark.reference
def test_the_karate_club_splits_as_it_did() -> None:
    """Zachary's club, 34 members: the two sides of the quarrel are right but for at most two members."""
    club = networkx.karate_club_graph()
    sides = np.array([club.nodes[node]["club"] == "Officer" for node in club]).astype(np.int64)
    graph = Graph(np.array(club.edges))
    assert agreement(communities(graph, count=2), sides) >= 32 / 34
    # The best modularity known of any split is 0.4198; a spectral one comes near.
    found = communities(graph)
    groups = [set(np.flatnonzero(found == label).tolist()) for label in range(found.max() + 1)]
    assert networkx.community.modularity(club, groups, weight=None) > 0.37


@pytest.mark.unit
def test_labels_are_the_same_every_time_and_in_order(rng: np.random.Generator) -> None:
    graph, _ = planted(rng, (250, 250), within=0.05, between=0.002)  # past DENSE: by eigsh
    labels = communities(graph, count=2)
    assert labels[0] == 0
    assert np.array_equal(labels, communities(Graph(graph.edges[::-1], nodes=500), count=2))
    chain = communities(Graph([(i, i + 1) for i in range(19)]), count=4)
    assert chain.tolist() == sorted(chain.tolist())
    assert chain.max() == 3


@pytest.mark.unit
def test_edges() -> None:
    pair, path = Graph([(0, 1)]), Graph([(0, 1), (1, 2)])
    assert communities(Graph([], nodes=1)).tolist() == [0]
    assert communities(pair).tolist() == [0, 0]
    assert communities(pair, count=2).tolist() == [0, 1]
    assert communities(path, count=1).tolist() == [0, 0, 0]
    assert communities(path, count=3).tolist() == [0, 1, 2]
    # Leaves of a star are alike: some clusters run empty, nothing fails.
    star = Graph([(0, i) for i in range(1, 600)])
    for count in (2, 5, None):
        labels = communities(star, count=count)
        assert labels.size == 600
        assert np.array_equal(np.unique(labels), np.arange(labels.max() + 1))


@pytest.mark.unit
def test_shares_by_hand() -> None:
    answer = community_of([0.1, 0, 0.5, 0.2], [0, 0, 1, 1])
    assert answer.label == 1
    assert answer.shares == pytest.approx([0.125, 0.875])
    assert community_of([1, 1], [1, 0]).label == 0
    assert community_of([0, 2, 0], [0, 2, 2]).shares == pytest.approx([0, 0, 1])


@pytest.mark.unit
@pytest.mark.parametrize(
    ("estimate", "labels", "message"),
    [
        ([1, 2], [0], "one number for each node"),
        ([0, 0], [0, 1], "some mass"),
        ([1, -1], [0, 1], "not negative"),
        ([1, math.nan], [0, 1], "finite"),
        ([1, 1], [0, -1], "from 0 on"),
        ([1, 1], [0.0, 1.0], "from 0 on"),
    ],
)
def test_a_bad_estimate_gets_one_sentence(
    estimate: list[float], labels: list[float], message: str
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        community_of(estimate, labels)


@pytest.mark.unit
def test_a_bad_graph_gets_one_sentence() -> None:
    with pytest.raises(InvalidParameter, match="must be connected"):
        communities(Graph([(0, 1)], nodes=3))
    for count in (0, 4):
        with pytest.raises(InvalidParameter, match="count must be"):
            communities(Graph([(0, 1), (1, 2)]), count=count)
