"""Estimators against enumeration and dense formulas; and where each of them fails."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter
from sfumato.graphon.estimation.estimators import (
    Estimate,
    block_counts,
    constant,
    embedding,
    estimation_error,
    from_labels,
    least_squares,
    refine,
    spectral,
    usvt,
)
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.network import Network
from sfumato.graphon.sample import Sampled, sample_graph

FOUR = BlockGraphon(np.full((4, 4), 0.02) + 0.18 * np.eye(4))


def contrast(k: int, density: float, rng: np.random.Generator) -> BlockGraphon:
    """Entries of density or a fifth of it, at random: the networks of study section 5."""
    entries = rng.choice([0.2, 1.0], size=(k, k))
    return BlockGraphon(density * (np.triu(entries) + np.triu(entries, 1).T))


def squares(network: Network, labels: IntArray) -> float:
    """What blocks leave over ordered pairs, by the whole matrix, less the squares of the matrix itself."""
    dense = network.adjacency.toarray()
    fitted = from_labels(network, labels)
    chances = fitted.graphon.matrix[np.ix_(fitted.labels, fitted.labels)].copy()
    np.fill_diagonal(chances, 0)
    return float(((dense - chances) ** 2).sum() - (dense**2).sum())


@pytest.mark.unit
def test_counts_are_those_of_the_whole_matrix(rng: np.random.Generator) -> None:
    drawn = sample_graph(FOUR, 60, rng)
    labels = rng.integers(3, size=60)
    edges, pairs = block_counts(drawn.network, labels, 3)
    member = np.eye(3)[labels]
    both = member.T @ drawn.network.adjacency.toarray() @ member
    all_pairs = member.T @ (1 - np.eye(60)) @ member
    halves = 1 - np.eye(3) / 2
    assert np.array_equal(edges, both * halves)
    assert np.array_equal(pairs, all_pairs * halves)


@pytest.mark.unit
def test_the_error_is_that_of_the_whole_matrix(rng: np.random.Generator) -> None:
    drawn = sample_graph(FOUR, 80, rng)
    fitted = from_labels(drawn.network, rng.integers(3, size=80))
    ours = fitted.graphon.matrix[np.ix_(fitted.labels, fitted.labels)]
    theirs = FOUR.matrix[np.ix_(drawn.labels, drawn.labels)]
    wanted = np.linalg.norm(ours - theirs) / 80
    assert estimation_error(fitted, FOUR, drawn.labels) == pytest.approx(wanted, rel=1e-12)
    # As printed, 1/n**2 with a norm that is not squared, errors of chances could not exceed 1/n.
    assert estimation_error(fitted, FOUR, drawn.labels) > 1 / 80
    assert wanted / 80 < 1 / 80


@pytest.mark.unit
def test_block_means_leave_the_least_squares(rng: np.random.Generator) -> None:
    drawn = sample_graph(FOUR, 50, rng)
    fitted = from_labels(drawn.network, drawn.labels)
    edges = drawn.network.edges
    chances = fitted.graphon.matrix[fitted.labels[:, None], fitted.labels[None, :]]
    residual = np.triu(drawn.network.adjacency.toarray() - chances, 1)
    assert fitted.loss == pytest.approx((residual**2).sum() / drawn.network.dyads, rel=1e-12)
    assert fitted.graphon.density == pytest.approx(2 * len(edges) / 50**2, rel=0.25)


@pytest.mark.reference
def test_least_squares_finds_the_best_of_all_partitions(rng: np.random.Generator) -> None:
    found, chance_alone = 0, 0
    for _ in range(10):
        graph = sample_graph(BlockGraphon([[0.9, 0.15], [0.15, 0.8]]), 9, rng).network
        best = min(
            squares(graph, np.array((0, *rest)))
            for rest in product((0, 1), repeat=8)
            if sum(rest)  # two blocks
        )
        ours = squares(graph, least_squares(graph, 2, starts=8).labels)
        assert ours >= best - 1e-9
        found += ours <= best + 1e-9
        chance_alone += squares(graph, rng.integers(2, size=9)) <= best + 1e-9
    assert found >= 7
    assert chance_alone <= 2


@pytest.mark.unit
def test_refining_never_gives_back_worse(rng: np.random.Generator) -> None:
    drawn = sample_graph(contrast(4, 0.2, rng), 120, rng)
    for _ in range(5):
        start = rng.integers(4, size=120)
        better, objective = refine(drawn.network.adjacency, start, 4)
        assert objective == pytest.approx(squares(drawn.network, better), rel=1e-9)
        assert objective < squares(drawn.network, start)
        dense, same = refine(drawn.network.adjacency.toarray(), start, 4)
        assert np.array_equal(dense, better)
        assert same == pytest.approx(objective, rel=1e-12)


def purity(fitted: Estimate, drawn: Sampled) -> float:
    """The share of nodes whose block is mostly of their kind."""
    table = np.zeros((fitted.graphon.k, int(drawn.labels.max()) + 1))
    np.add.at(table, (fitted.labels, drawn.labels), 1)
    return float(table.max(axis=1).sum() / drawn.labels.size)


@pytest.mark.statistical
def test_clear_blocks_are_found(rng: np.random.Generator) -> None:
    drawn = sample_graph(FOUR, 800, rng)
    fitted = least_squares(drawn.network, 4)
    assert fitted.graphon.k == 4
    assert purity(fitted, drawn) > 0.995
    # The oracle knows the blocks: its errors are those of means of 20,000 pairs.
    oracle = estimation_error(from_labels(drawn.network, drawn.labels), FOUR, drawn.labels)
    assert estimation_error(fitted, FOUR, drawn.labels) < oracle + 0.01
    assert estimation_error(constant(drawn.network), FOUR, drawn.labels) > 0.07


@pytest.mark.statistical
def test_chance_makes_every_estimator_worse_than_one_number(rng: np.random.Generator) -> None:
    """Study section 5: where few are joined, blocks and USVT fit noise, and a constant is best."""
    truth = contrast(8, 0.01, rng)
    drawn = sample_graph(truth, 400, rng)
    flat = estimation_error(constant(drawn.network), truth, drawn.labels)
    assert estimation_error(spectral(drawn.network, 8), truth, drawn.labels) > 1.5 * flat
    assert estimation_error(least_squares(drawn.network, 8), truth, drawn.labels) > 1.5 * flat
    chances = truth.matrix[np.ix_(drawn.labels, drawn.labels)]
    assert np.sqrt(np.mean((usvt(drawn.network) - chances) ** 2)) > 1.5 * flat


@pytest.mark.statistical
def test_usvt_is_good_where_many_are_joined(rng: np.random.Generator) -> None:
    truth = contrast(4, 1.0, rng)
    drawn = sample_graph(truth, 300, rng)
    chances = truth.matrix[np.ix_(drawn.labels, drawn.labels)]
    flat = estimation_error(constant(drawn.network), truth, drawn.labels)
    assert np.sqrt(np.mean((usvt(drawn.network) - chances) ** 2)) < 0.5 * flat
    with pytest.raises(InvalidParameter, match="at most 6000 nodes"):
        usvt(Network(6001, []))


@pytest.mark.unit
def test_the_same_network_gives_the_same_answer(rng: np.random.Generator) -> None:
    drawn = sample_graph(contrast(5, 0.3, rng), 200, rng)
    first, second = (least_squares(drawn.network, 5) for _ in range(2))
    assert np.array_equal(first.labels, second.labels)
    assert first.graphon == second.graphon


@pytest.mark.unit
def test_networks_without_structure_do_no_harm() -> None:
    empty = Network(40, [])
    assert least_squares(empty, 3).graphon.density == 0
    assert constant(Network(1, [])).graphon.matrix.tolist() == [[0.0]]
    assert spectral(Network(3, [(0, 1)]), 3).labels.size == 3
    complete = Network(20, np.column_stack(np.triu_indices(20, 1)))
    assert least_squares(complete, 2).graphon.matrix.max() == 1
    assert embedding(empty, 2).shape == (40, 2)
    with pytest.raises(InvalidParameter, match="k must be a whole number from 1 to 40"):
        least_squares(empty, 41)
    with pytest.raises(InvalidParameter, match="starts must be at least 1"):
        least_squares(empty, 2, starts=0)
