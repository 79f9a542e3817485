"""Limits of estimation: the curves, the packing by hand and by enumeration, and what was printed wrongly."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from experiments.graphon.contiguity import contiguity_floor
from scipy import stats
from scipy.optimize import linear_sum_assignment

from sfumato.errors import InvalidParameter
from sfumato.graphon.assignment import twice_permuted_distance
from sfumato.graphon.cut_distance import distance
from sfumato.graphon.limits.bounds import (
    attained_rate,
    divergence_bound,
    error_floor,
    estimation_rate,
    packing,
)
from sfumato.graphon.model import BlockGraphon


@pytest.mark.unit
def test_rates_by_hand() -> None:
    """For n = 10,000, k = 16, rho = 0.01: labels 0.002, blocks 0.00016, contiguity 0.001."""
    labels, blocks, contiguous = 0.01 * 0.2, 0.1 * 0.0016, 0.001
    assert estimation_rate(10_000, 16, 0.01) == pytest.approx(labels + blocks + contiguous)
    assert attained_rate(10_000, 16, 0.01) == pytest.approx(
        labels + blocks + contiguous * math.sqrt(math.log(16))
    )
    # Without an edge a node the third term is not proved.
    assert estimation_rate(10_000, 16, 5e-5) == pytest.approx(5e-5 * 0.2 + math.sqrt(5e-5) * 0.0016)
    for rate in (estimation_rate, attained_rate):
        assert rate(10_000, 1, 0.04) == pytest.approx(0.2e-4), "one block: only its chance"


@pytest.mark.unit
def test_below_k_squared_over_n_squared_nothing_beats_zero() -> None:
    for n, k in ((100, 5), (1000, 30), (10_000, 2)):
        edge = (k / n) ** 2
        assert estimation_rate(n, k, edge) == pytest.approx(edge, rel=1e-12)
        assert estimation_rate(n, k, 100 * edge) < 100 * edge


@pytest.mark.unit
def test_the_rates_differ_by_sqrt_log_k_at_most() -> None:
    for n, k, density in product((50, 600, 10**5), (2, 5, 40), (1e-4, 0.03, 1.0)):
        lower, upper = estimation_rate(n, k, density), attained_rate(n, k, density)
        if density * n >= 1:
            assert lower <= upper * (1 + 1e-12), "nothing is attained that nobody attains"
            assert upper <= lower * max(1.0, math.sqrt(math.log(k))) * (1 + 1e-12)


def printed_union_bound(k: int) -> float:
    """The logarithm of the right side of (5.7)."""
    pairs = math.comb(k, 2)
    return -2 * (k * k / 6 - pairs / 2) ** 2 / pairs + 2 * math.lgamma(k + 1)


@pytest.mark.unit
def test_lemma_5_3_as_printed_needs_357_blocks_and_ours_48() -> None:
    first = next(k for k in range(5, 1000) if printed_union_bound(k) < 0)
    assert first == 357
    assert [packing(k).log_count > 0 for k in (47, 48)] == [False, True]
    assert [packing(k, share=0.02).log_count > 0 for k in (9, 10)] == [False, True]
    # Of order k**2: (ln 2 - H(1/6)) / 4 of it, less k ln k.
    assert packing(2000).log_count / 2000**2 == pytest.approx(
        (math.log(2) - stats.entropy([1 / 6, 5 / 6])) / 4, rel=0.1
    )


@pytest.mark.reference
def test_the_chance_behind_the_packing_bounds_the_true_one() -> None:
    """All binary 3 x 3 matrices: for each pair of orders, how many are within so many entries of B."""
    k = 3
    places = [(i, j) for i in range(k) for j in range(i, k)]
    matrices = np.zeros((2 ** len(places), k, k), dtype=int)
    for number, bits in enumerate(product((0, 1), repeat=len(places))):
        for (i, j), bit in zip(places, bits, strict=True):
            matrices[number, i, j] = matrices[number, j, i] = bit
    for limit in (0, 1, 2, 3):
        share = max(limit, 1e-9) / k**2
        t = np.linspace(0.01, 8, 400)
        chernoff = np.exp(
            t * share * k * k
            + k * (k - 1) / 2 * np.log((1 + np.exp(-2 * t)) / 2)
            + k * np.log((1 + np.exp(-t)) / 2)
        ).min()
        for rows, columns in product(permutations(range(k)), repeat=2):
            moved = matrices[:, list(rows)][:, :, list(columns)]
            for one in moved[::7]:
                near = (np.abs(matrices - one).sum(axis=(1, 2)) <= limit).mean()
                assert near <= chernoff + 1e-12


@pytest.mark.unit
def test_a_packing_is_that_far_apart(rng: np.random.Generator) -> None:
    """Two matrices of the family (5.9) at k = 6: delta_2 is at least what their Hamming distance says.

    That is delta-double-hat, exactly; so a radius any larger would be wrong.
    """
    binary = [np.triu(bits) + np.triu(bits, 1).T for bits in rng.integers(0, 2, (2, 6, 6))]
    binary[0][0], binary[0][:, 0] = 1, 1  # a full row,
    np.fill_diagonal(binary[1], 0)  # and none that is: they are never the same
    density, contrast = 0.4, 0.25
    one, other = (BlockGraphon(density * (0.5 + contrast * (2 * b - 1))) for b in binary)
    orders = [np.array(order) for order in permutations(range(6))]
    # With the rows placed, a column of one and a column of the other differ in so many places.
    least = min(
        int(cost[linear_sum_assignment(cost)].sum())
        for order in orders
        for cost in [np.abs(binary[0][order].T[:, None, :] - binary[1].T[None, :, :]).sum(axis=2)]
    )
    assert least > 0
    far = packing(6, share=least / 36).radius(density, contrast)
    assert distance(one, other).lower >= far - 1e-9
    assert twice_permuted_distance(one, other).upper == pytest.approx(far, abs=1e-12)


@pytest.mark.unit
@pytest.mark.parametrize("density", [1.0, 0.1, 0.01, 1e-3])
def test_5_10_has_a_rho_too_many(density: float) -> None:
    n, k, c = 400, 8, 0.05
    contrast = c * min(1.0, k / (n * math.sqrt(density)))
    found = divergence_bound(n, density, contrast=contrast)
    assert found <= 32 * c**2 * k**2
    assert (found <= 32 * c**2 * k**2 * density) == (density >= 0.1), (
        "printed: false where it is sparse"
    )
    by_hand = stats.bernoulli.pmf([0, 1], density * (0.5 + contrast))
    other = stats.bernoulli.pmf([0, 1], density * (0.5 - contrast))
    worse = max(stats.entropy(by_hand, other), stats.entropy(other, by_hand))
    assert found == pytest.approx(n * (n - 1) / 2 * worse, rel=1e-6)


def law_of_three_nodes(graphon: BlockGraphon) -> list[float]:
    """The chance of each graph on three nodes, over all labels."""
    k, pairs = graphon.k, ((0, 1), (0, 2), (1, 2))
    chances = []
    for edges in product((0, 1), repeat=3):
        total = 0.0
        for labels in product(range(k), repeat=3):
            each = [graphon.matrix[labels[i], labels[j]] for i, j in pairs]
            told = math.prod(p if edge else 1 - p for p, edge in zip(each, edges, strict=True))
            total += told * math.prod(graphon.shares[label] for label in labels)
        chances.append(total)
    return chances


@pytest.mark.reference
def test_lemma_5_2_holds_between_a_quarter_and_three_quarters_only(
    rng: np.random.Generator,
) -> None:
    """KL <= 8 n**2 ||W - W'||**2, by all graphs on three nodes; sparse graphons break it."""

    def ratio(one: BlockGraphon, other: BlockGraphon) -> float:
        kl = float(stats.entropy(law_of_three_nodes(one), law_of_three_nodes(other)))
        return kl / (8 * 9 * float(np.square(one.matrix - other.matrix).mean()))

    for _ in range(10):
        entries = rng.uniform(0.25, 0.75, (2, 2, 2))
        one, other = (BlockGraphon((part + part.T) / 2) for part in entries)
        assert ratio(one, other) <= 1
    assert ratio(BlockGraphon([[0.002]]), BlockGraphon([[0.0002]])) > 10


@pytest.mark.unit
def test_no_floor_is_above_what_is_attained() -> None:
    """Answering rho / 2 errs by at most rho / 2; and one block's chance is known to sqrt(rho / pairs)."""
    for n, k, density in product((20, 300, 5000), (1, 10, 20), (1e-4, 0.02, 1.0)):
        floor = error_floor(n, k, density)
        assert 0 < floor.value <= density / 2
        if k == 1:
            assert floor.reason == "two points"
            assert floor.value <= math.sqrt(density / (n * (n - 1) / 2))


@pytest.mark.unit
def test_the_floor_has_the_order_of_theorem_5_4() -> None:
    """The constant of min(rho, sqrt(rho) k / n): 0.015 to 0.3 wherever a packing decides."""
    ratios = []
    for n, k, density in product((2000, 20_000), (60, 200, 1000), (1e-5, 1e-3, 0.1)):
        floor = error_floor(n, k, density)
        assert floor.reason == "packing"
        ratios.append(floor.value / min(density, math.sqrt(density) * k / n))
    assert 0.015 < min(ratios) <= max(ratios) < 0.3


@pytest.mark.statistical
def test_two_points_bound_the_best_guess_between_them(rng: np.random.Generator) -> None:
    """Whoever sees the edges of one of the two constants errs at least by the floor, in the mean.

    The likelier of the two is guessed; 3e-3 of a mean of 40,000 errors between 0 and the distance
    is more than five deviations. The rival, four times the floor, is above the error.
    """
    n, density = 30, 0.5
    floor = error_floor(n, 1, density)
    pairs = n * (n - 1) // 2
    low, high = (density * (0.5 + sign * floor.contrast) for sign in (-1, 1))
    cut = math.log((1 - low) / (1 - high)) / math.log(high * (1 - low) / (low * (1 - high)))
    wrong = [
        float(np.mean((rng.binomial(pairs, chance, 40_000) / pairs > cut) != (chance == high)))
        for chance in (low, high)
    ]
    error = max(wrong) * (high - low)
    assert floor.value <= error + 0.012 * (high - low)
    assert 4 * floor.value > error


@pytest.mark.unit
def test_lemma_5_5_is_the_distance_to_the_mean() -> None:
    for k in (2, 3, 5):
        matrix = 0.1 + 0.6 * np.eye(k)
        even = BlockGraphon([[float(matrix.mean())]])
        found = distance(BlockGraphon(matrix), even)
        assert found.exact
        assert found.upper == pytest.approx(contiguity_floor(0.7, 0.1, k), abs=1e-12)
        printed = 0.6 * math.sqrt((k - 1) ** 2 / k**3 + (k - 1) / k**3)
        assert printed == pytest.approx(found.upper, abs=1e-12), "the same, written longer"
    assert contiguity_floor(0.5, 0.2, 1) == 0


@pytest.mark.unit
def test_nonsense_is_refused() -> None:
    for n, k, density in (
        (10, 11, 0.5),
        (10, 0, 0.5),
        (10, 2, 0.0),
        (10, 2, 1.5),
        (10, 2, math.nan),
    ):
        for limit in (estimation_rate, attained_rate, error_floor):
            with pytest.raises(InvalidParameter, match="nothing was computed"):
                limit(n, k, density)
    with pytest.raises(InvalidParameter, match="share above 0"):
        packing(5, share=0.5)
    with pytest.raises(InvalidParameter, match="contrast"):
        divergence_bound(10, 0.5, contrast=0.6)
    with pytest.raises(InvalidParameter, match="chance of an edge"):
        contiguity_floor(1.2, 0.1, 2)
    with pytest.raises(InvalidParameter, match="k must be"):
        contiguity_floor(0.2, 0.1, 0)
