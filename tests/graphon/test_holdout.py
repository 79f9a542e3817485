"""The guard: chance passes seldom, structure passes, and no answer is worse than one number."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.chance import LEVEL, assert_share

from sfumato.errors import InvalidParameter
from sfumato.graphon.estimation.estimators import constant, estimation_error, least_squares
from sfumato.graphon.estimation.holdout import KEPT, candidates, choose, guarded_fit
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.network import Network
from sfumato.graphon.sample import sample_graph
from sfumato.spaces.hashes import hashed


def planted(k: int, inside: float, between: float) -> BlockGraphon:
    return BlockGraphon(np.full((k, k), between) + (inside - between) * np.eye(k))


@pytest.mark.statistical
def test_chance_is_believed_at_most_once_in_20(rng: np.random.Generator) -> None:
    """A share of 5 % or more is rejected; blocks that are there, in networks as small, are believed."""
    trials = 280  # with none in so many
    false = sum(
        guarded_fit(sample_graph(BlockGraphon([[0.15]]), 40, rng).network, 2)[1].detectable
        for _ in range(trials)
    )
    assert stats.binomtest(false, trials, 0.05, alternative="less").pvalue < LEVEL
    clear = planted(2, 0.5, 0.05)
    true = sum(
        guarded_fit(sample_graph(clear, 50, rng).network, 2)[1].detectable for _ in range(20)
    )
    assert stats.binomtest(true, 20, 0.3, alternative="greater").pvalue < LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize("degree", [1, 5, 100])
def test_choosing_among_many_numbers_of_blocks_raises_no_more_alarms(
    degree: int, rng: np.random.Generator
) -> None:
    # With a share of 5 % three or more of six would come once in 450 epochs; without the guard all
    # six do.
    networks = [sample_graph(BlockGraphon([[degree / 200]]), 200, rng).network for _ in range(6)]
    fits = [guarded_fit(network) for network in networks]
    assert sum(choice.detectable for _, choice in fits) <= 2
    assert all(fit.graphon.k == 1 for fit, choice in fits if not choice.detectable)
    assert all(least_squares(network, 4).graphon.k > 1 for network in networks)


@pytest.mark.statistical
def test_a_dyad_that_was_not_kept_is_an_edge_with_the_stated_chance(
    rng: np.random.Generator,
) -> None:
    """(1 - t) p / (1 - t p), and not (1 - t) p: the kept edges tell that others were not."""
    chance, n = 0.5, 700
    network = sample_graph(BlockGraphon([[chance]]), n, rng).network
    low, high = network.edges.T
    held = int(np.count_nonzero(hashed(low * n + high, 1000) >= KEPT))
    free = network.dyads - (len(network.edges) - held)
    naive = (1 - KEPT) * chance
    assert_share(held, free, naive / (1 - KEPT * chance), rivals=[naive])


@pytest.mark.statistical
@pytest.mark.parametrize(("k", "density"), [(4, 0.01), (4, 0.08), (8, 0.1)])
def test_no_answer_is_worse_than_one_number(
    k: int, density: float, rng: np.random.Generator
) -> None:
    """1.02 times the constant at most, where blocks without the guard are up to several times as bad."""
    ours, unguarded = [], []
    for _ in range(4):
        entries = rng.choice([0.2, 1.0], size=(k, k))
        entries[0, 0], entries[1, 1] = 0.2, 1.0  # never one number only
        truth = BlockGraphon(density * (np.triu(entries) + np.triu(entries, 1).T))
        drawn = sample_graph(truth, 400, rng)
        flat = estimation_error(constant(drawn.network), truth, drawn.labels)
        fitted, _ = guarded_fit(drawn.network, k)
        ours.append(estimation_error(fitted, truth, drawn.labels) / flat)
        free = least_squares(drawn.network, k)
        unguarded.append(estimation_error(free, truth, drawn.labels) / flat)
    assert max(ours) <= 1.02
    if density == 0.01:
        assert min(unguarded) > 1.5
    if (k, density) == (4, 0.08):
        assert min(ours) < 0.9, "the guard never lets anything pass here: the test says nothing"


@pytest.mark.statistical
@pytest.mark.parametrize("k", [2, 4, 6])
def test_the_number_of_blocks_is_found(k: int, rng: np.random.Generator) -> None:
    drawn = sample_graph(planted(k, 0.4, 0.05), 300, rng)
    fitted, choice = guarded_fit(drawn.network)
    assert fitted.graphon.k == choice.k == k
    gains = {gain.k: gain.gain for gain in choice.gains}
    assert gains[k] > gains[k + 1]
    assert max(gains) < 12, "it went on although nothing got better"


@pytest.mark.unit
def test_several_numbers_share_the_alarm(rng: np.random.Generator) -> None:
    network = sample_graph(planted(2, 0.5, 0.1), 80, rng).network
    one, many = choose(network, (2,)), choose(network, (2, 3, 4, 5))
    assert one.gains[0].gain == many.gains[0].gain  # the same folds
    assert one.gains[0].threshold == pytest.approx(stats.norm.isf(0.05), rel=1e-12)
    assert many.gains[0].threshold == pytest.approx(stats.norm.isf(0.05 / 4), rel=1e-12)
    assert choose(network, (2,), salt=1).gains[0].gain != one.gains[0].gain


@pytest.mark.unit
def test_networks_too_small_or_plain_have_one_block() -> None:
    for network in (Network(3, [(0, 1)]), Network(60, []), Network(1, [])):
        fitted, choice = guarded_fit(network)
        assert (fitted.graphon.k, choice.detectable) == (1, False)
    complete = Network(30, np.column_stack(np.triu_indices(30, 1)))
    assert guarded_fit(complete)[0].graphon.matrix.tolist() == [[1.0]]
    assert candidates(5) == (2,)
    assert candidates(10**6) == tuple(range(2, 13))


@pytest.mark.unit
def test_wrong_questions_are_refused() -> None:
    network = Network(10, [(0, 1)])
    with pytest.raises(InvalidParameter, match="at least one number"):
        choose(network, ())
    with pytest.raises(InvalidParameter, match="alarm must lie in"):
        choose(network, (2,), alarm=0)
    with pytest.raises(InvalidParameter, match="k must be a whole number from 2 to 10"):
        choose(network, (11,))
