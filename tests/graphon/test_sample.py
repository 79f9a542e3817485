"""Drawn networks have the law of their model; large ones are exact to the last pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tests.chance import assert_law, assert_share

from sfumato.errors import InvalidParameter
from sfumato.graphon.estimation.estimators import block_counts
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.sample import bernoulli_cells, sample_graph, triangle_pairs

UNEVEN = BlockGraphon([[0.3, 0.02, 0.1], [0.02, 0.9, 0.0], [0.1, 0.0, 1.0]], [0.5, 0.3, 0.2])


@pytest.mark.unit
def test_pairs_are_numbered_without_gaps() -> None:
    i, j = triangle_pairs(np.arange(50 * 49 // 2))
    assert [(a, b) for b in range(50) for a in range(b)] == list(
        zip(i.tolist(), j.tolist(), strict=True)
    )


@pytest.mark.unit
def test_pairs_of_huge_networks_are_exact() -> None:
    """Around j (j - 1) / 2 the root of a double is off by one row; whole numbers are not."""
    rows = np.array([10**3, 10**6, 2**30 - 1, 2**30, 2**31 - 1])
    numbers = np.concatenate([rows * (rows - 1) // 2 + step for step in (-1, 0, 1)])
    i, j = triangle_pairs(numbers)
    for number, low, high in zip(numbers.tolist(), i.tolist(), j.tolist(), strict=True):
        wanted = (1 + math.isqrt(8 * number + 1)) // 2
        assert (high, low) == (wanted, number - wanted * (wanted - 1) // 2)
    by_root = np.floor((1 + np.sqrt(8.0 * numbers + 1)) / 2).astype(np.int64)
    assert (by_root != j).any(), "a double would have done: the test says nothing"


@pytest.mark.statistical
@pytest.mark.parametrize("chance", [0.03, 0.3, 0.6, 0.97])
def test_cells_come_up_by_themselves(chance: float, rng: np.random.Generator) -> None:
    """All eight outcomes of three cells have their chances: so cells are independent."""
    outcomes = np.array([(1 << bernoulli_cells(3, chance, rng)).sum() for _ in range(25_000)])

    def law(p: float) -> stats.rv_discrete:
        ones = np.array([outcome.bit_count() for outcome in range(8)])
        return stats.rv_discrete(values=(np.arange(8), p**ones * (1 - p) ** (3 - ones)))

    other = chance + 0.03 if chance < 0.9 else chance - 0.015
    assert_law(outcomes, law(chance).cdf, rivals=[law(other).cdf])


@pytest.mark.unit
def test_chances_of_nothing_and_everything(rng: np.random.Generator) -> None:
    assert bernoulli_cells(5, 0.0, rng).size == 0
    assert bernoulli_cells(0, 0.5, rng).size == 0
    assert bernoulli_cells(5, 1.0, rng).tolist() == [0, 1, 2, 3, 4]
    assert bernoulli_cells(2**57, 1e-300, rng).size == 0  # a gap no int64 holds


@pytest.mark.statistical
def test_each_pair_of_blocks_has_its_chance(rng: np.random.Generator) -> None:
    drawn = sample_graph(UNEVEN, 2000, rng)
    edges, pairs = block_counts(drawn.network, drawn.labels, 3)
    for a in range(3):
        for b in range(a, 3):
            chance = float(UNEVEN.matrix[a, b])
            if chance in (0, 1):
                assert edges[a, b] == chance * pairs[a, b]
            else:
                hits, trials = int(edges[a, b]), int(pairs[a, b])
                assert_share(hits, trials, chance, rivals=[0.9 * chance])


@pytest.mark.statistical
def test_blocks_have_their_shares(rng: np.random.Generator) -> None:
    labels = sample_graph(BlockGraphon(np.zeros((3, 3)), [0.5, 0.3, 0.2]), 20_000, rng).labels
    for block, share in enumerate((0.5, 0.3, 0.2)):
        hits = int(np.count_nonzero(labels == block))
        assert_share(hits, 20_000, share, rivals=[1 / 3 if share != 0.3 else 0.35])


@pytest.mark.unit
def test_given_labels_are_kept(rng: np.random.Generator) -> None:
    labels = [1, 0, 1, 1]
    drawn = sample_graph(BlockGraphon([[0.0, 0.0], [0.0, 1.0]]), 4, rng, labels=labels)
    assert drawn.labels.tolist() == labels
    assert drawn.network.edges.tolist() == [[0, 2], [0, 3], [2, 3]]
    for wrong in ([0, 1], [0, 1, 2, 0], [0.5] * 4, [-1, 0, 0, 0]):
        with pytest.raises(InvalidParameter, match="a block from 0 to 1 for each of 4 nodes"):
            sample_graph(BlockGraphon(np.eye(2)), 4, rng, labels=wrong)


@pytest.mark.unit
def test_one_node_and_empty_blocks(rng: np.random.Generator) -> None:
    assert len(sample_graph(UNEVEN, 1, rng).network.edges) == 0
    assert len(sample_graph(BlockGraphon(np.ones((3, 3))), 2, rng).network.edges) == 1


@pytest.mark.statistical
def test_a_large_sparse_network_costs_its_edges(rng: np.random.Generator) -> None:
    """2 10**10 pairs, more than 2**31: tossed one by one they would take minutes."""
    n = 200_000
    drawn = sample_graph(BlockGraphon([[10 / n]]), n, rng)
    assert_share(len(drawn.network.edges), n * (n - 1) // 2, 10 / n, rivals=[9.9 / n, 10.1 / n])
    # Ends are spread over all nodes, the last as often as the first.
    ends = drawn.network.edges[:, 1]
    assert_law(
        ends,
        lambda x: np.clip(x / (n - 1), 0, 1) ** 2,
        rivals=[lambda x: np.clip(x / n, 0, 1) ** 2.03],
    )
