"""Whether a network can tell anything: thresholds by hand, in order, and a graph on either side of one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from experiments.graphon.contiguity import contiguity_table

from sfumato.errors import InvalidParameter
from sfumato.graphon.limits.thresholds import (
    REGIMES,
    contiguity_threshold,
    detectability,
    even_like,
    phases,
    search_degree,
    signal,
    signals,
)
from sfumato.graphon.model import BlockGraphon


@pytest.mark.unit
def test_two_blocks_change_where_mossel_neeman_and_sly_say() -> None:
    """(a - b)**2 = 2 (a + b): a = 8, b = 2.343... by the root of b**2 - 18 b + 48."""
    b = 9 - math.sqrt(33)
    n = 10**6
    assert signal(n, 2, within=8 / n, between=b / n) == pytest.approx(1, rel=1e-9)
    assert detectability(n, 2, within=8 / n, between=(b + 0.01) / n).regime == "impossible"
    assert detectability(n, 2, within=8 / n, between=(b - 0.01) / n).regime == "detectable"
    assert contiguity_threshold(2) == 1


@pytest.mark.unit
def test_every_node_can_be_placed_from_k_log_n_on() -> None:
    """With no edges between blocks: as soon as n p > k log n, each block has no lonely node."""
    for k in (2, 5):
        edge = k * math.log(1000) / 1000
        assert detectability(1000, k, within=1.001 * edge).regime == "recoverable exactly"
        assert detectability(1000, k, within=0.999 * edge).regime == "detectable"
        assert detectability(1000, k, within=edge).separation == pytest.approx(1)


@pytest.mark.unit
def test_kesten_stigum_is_the_same_written_two_ways() -> None:
    for k, a, b in ((3, 9.0, 2.0), (5, 1.0, 7.0), (20, 30.0, 4.0)):
        found = signal(1000, k, within=a / 1000, between=b / 1000)
        assert (found > 1) == ((a - b) ** 2 > k * (a + (k - 1) * b))
        assert found == pytest.approx((a - b) ** 2 / (k * (a + (k - 1) * b)))


@pytest.mark.unit
def test_the_printed_condition_of_table_5_1_grows_with_n() -> None:
    """With a and b held, contiguity cannot depend on n; as printed it would fail for every large network."""
    k, a, b = 5, 3.0, 1.0
    printed, ours = [], []
    for n in (1e3, 1e5):
        p, q = a / n, b / n
        printed.append(n**2 * (p - q) ** 2 * (k - 1) / (p + (k + 1) * q))
        ours.append((k - 1) * signal(int(n), k, within=p, between=q))
    assert printed[1] == pytest.approx(100 * printed[0])
    assert ours[0] == pytest.approx(ours[1])
    row = contiguity_table()[2]
    values = {"n": 1000, "p": 0.003, "q": 0.001, "k": 5}
    left, right = row.follows.replace("^", "**").replace("log", "math.log").split(" < ")
    for words, number in ((left, ours[0]), (right, 4 * contiguity_threshold(5))):
        spelled = words.replace(") (", ") * (").replace("n (", "n * (").replace("2 (", "2 * (")
        spelled = (
            spelled.replace("k (", "k * (").replace(") q", ") * q").replace("2 math", "2 * math")
        )
        assert eval(spelled, {"math": math}, values) == pytest.approx(number)  # noqa: S307
    assert row.printed != row.follows


@pytest.mark.unit
def test_below_kesten_stigum_search_helps_from_5_and_from_11_blocks() -> None:
    """At d lambda**2 just below 1, disassortative from k = 5, assortative from k = 11 [banks16]."""

    def helps(k: int, contrasts: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
        return any(search_degree(k, float(c)) * c**2 < 1 for c in contrasts)

    for k in range(3, 14):
        down, up = -np.linspace(0.02, 1, 60) / (k - 1), np.geomspace(1e-3, 1, 60)
        assert helps(k, down) == (k >= 5), k
        assert helps(k, up) == (k >= 11), k


@pytest.mark.unit
def test_thresholds_are_in_order() -> None:
    """No signal is proved to be both lost and found."""
    for k in range(2, 200):
        assert contiguity_threshold(k) <= 1
        for contrast in (-0.9 / (k - 1), 0.05, 0.4, 1.0):
            assert contiguity_threshold(k) <= search_degree(k, contrast) * contrast**2 * (1 + 1e-12)
    assert search_degree(4, 0.0) == math.inf


@pytest.mark.unit
def test_regimes_follow_one_another_as_edges_come() -> None:
    for k in (2, 3, 10):
        seen = [
            detectability(2000, k, within=p, between=p / 5).regime
            for p in np.geomspace(1e-4, 1, 200)
        ]
        places = [REGIMES.index(one) for one in seen]
        assert places == sorted(places)
        assert set(seen) == (set(REGIMES) - {REGIMES[1]} if k == 2 else set(REGIMES))


@pytest.mark.unit
def test_the_answer_says_what_it_compared() -> None:
    found = detectability(1000, 12, within=0.1, between=0.001)
    assert found.degree == pytest.approx(1000 * (0.1 + 11 * 0.001) / 12)
    assert not found.trivial
    assert detectability(1000, 40, within=0.001).trivial
    for p, q, words in (
        (0.01, 0.006, "impossible: signal 0.1"),
        (0.2, 0.02, "recoverable exactly: separation"),
        (0.02, 0.001, "detectable: signal"),
    ):
        assert detectability(1000, 4, within=p, between=q).sentence.startswith(words)
    between = [
        one
        for p in np.linspace(0.05, 0.2, 400)
        if (one := detectability(10_000, 30, within=float(p), between=0.05)).regime == REGIMES[1]
    ]
    for one in between:
        sure = "is" if one.degree > one.search_degree else "is not known to be"
        assert f"exhaustive search {sure} enough" in one.sentence
    assert len({one.degree > one.search_degree for one in between}) == 2
    assert detectability(1000, 3, within=0.0, between=0.0).regime == "impossible"


@pytest.mark.statistical
def test_a_network_on_either_side_of_the_threshold(rng: np.random.Generator) -> None:
    """Two blocks, n = 1200: the second eigenvector of the centered matrix sees them at signal 9, not at 0.3.

    The overlap of signs with the truth is 0.5 +- 0.0144 if nothing is seen: six deviations are
    0.087. Dense enough (degree 100) for a plain spectral method.
    """
    n, degree = 1200, 100.0
    truth = np.repeat([1.0, -1.0], n // 2)
    overlap = []
    for strength in (9.0, 0.3):
        # signal = n (p - q)**2 / (2 (p + q)), with p + q = 2 degree / n
        apart = math.sqrt(strength * 2 * (2 * degree / n) / n)
        p, q = degree / n + apart / 2, degree / n - apart / 2
        assert signal(n, 2, within=p, between=q) == pytest.approx(strength)
        chances = np.where(np.outer(truth, truth) > 0, p, q)
        edges = np.triu(rng.random((n, n)) < chances, 1).astype(float)
        centered = edges + edges.T - degree / n
        vector = rng.normal(size=n)
        for _ in range(60):
            vector = centered @ vector
            vector /= np.linalg.norm(vector)
        share = float(np.mean(np.sign(vector) == truth))
        overlap.append(max(share, 1 - share))
    assert overlap[0] > 0.9
    assert overlap[1] < 0.587


@pytest.mark.unit
def test_phases_are_outlooks() -> None:
    densities, blocks = np.geomspace(1e-4, 1, 5), [2, 8]
    for contrast in (0.8, -0.8):
        found = phases(500, contrast=contrast, densities=densities, blocks=blocks)
        for row, k in enumerate(blocks):
            for column, rho in enumerate(densities):
                sides = (rho, 0.2 * rho) if contrast > 0 else (0.2 * rho, rho)
                one = detectability(500, k, within=float(sides[0]), between=float(sides[1]))
                assert REGIMES[found[row, column]] == one.regime


@pytest.mark.unit
def test_no_edges_inside_blocks_is_a_contrast_too() -> None:
    """-1/(k - 1), which rounding may miss for 4, 7 and 10 blocks, among others."""
    for k in range(2, 40):
        for chance in (0.01, 0.3, 1.0):
            found = detectability(1000, k, within=0.0, between=chance)
            inside = math.log(k / (k - 1))  # KL(0 || 1/k)
            assert found.search_degree == pytest.approx(2 * math.log(k) / inside)
    assert phases(1000, contrast=-1, densities=[0.01, 0.3], blocks=[4, 7, 10]).shape == (3, 2)


@pytest.mark.unit
@pytest.mark.parametrize("k", [2, 4, 7])
def test_even_blocks_keep_their_sign(k: int) -> None:
    for p, q in ((0.0, 0.3), (0.1, 0.3), (0.3, 0.1), (0.3, 0.0)):
        found = even_like(BlockGraphon(np.full((k, k), q) + (p - q) * np.eye(k)))
        assert found == pytest.approx((p, q), abs=1e-12)
        detectability(500, k, within=found[0], between=found[1])
    within, between = even_like(BlockGraphon([[0.0, 0.9, 0.9], [0.9, 0.0, 0.9], [0.9, 0.9, 0.1]]))
    assert 0 <= within < between <= 1


@pytest.mark.unit
def test_of_a_mean_chance_the_sharpest_blocks_have_k_times_it_inside() -> None:
    """`within` is the largest chance: taking the mean for it would call detectable blocks impossible."""
    n, k, mean = 1000, 4, 0.002
    assert detectability(n, k, within=mean).regime == "impossible"
    assert detectability(n, k, within=k * mean).regime == "detectable"
    best = signal(n, k, within=k * mean, between=0.0)
    for p in np.linspace(0, k * mean, 50):
        assert signal(n, k, within=float(p), between=float(k * mean - p) / (k - 1)) <= best * (
            1 + 1e-9
        )


@pytest.mark.unit
def test_nonsense_is_refused() -> None:
    for n, k in ((1, 1), (10, 11), (10, 0)):
        with pytest.raises(InvalidParameter, match="nothing was computed"):
            detectability(n, k, within=0.5)
    with pytest.raises(InvalidParameter, match="at least 2 blocks"):
        detectability(10, 1, within=0.5)
    with pytest.raises(InvalidParameter, match="at least 2 blocks"):
        contiguity_threshold(1)
    with pytest.raises(InvalidParameter, match=r"chance of an edge must lie in \[0, 1\], got 1.5"):
        signal(10, 2, within=1.5, between=0.1)
    with pytest.raises(InvalidParameter, match="contrast"):
        search_degree(3, -0.9)
    with pytest.raises(InvalidParameter, match="contrast"):
        phases(10, contrast=0.0, densities=[0.1], blocks=[2])


@pytest.mark.unit
def test_even_blocks_stand_for_themselves() -> None:
    """Rival: a matrix whose first row alone is denser stands out less than its densest entry says."""
    matrix = np.full((5, 5), 0.02) + 0.1 * np.eye(5)
    assert even_like(BlockGraphon(matrix)) == pytest.approx((0.12, 0.02))
    n, one = 1000, BlockGraphon([[0.12, 0.02, 0.02], [0.02, 0.02, 0.02], [0.02, 0.02, 0.02]])
    within, between = even_like(one)
    assert (
        signal(n, 3, within=within, between=between) < signal(n, 3, within=0.12, between=0.02) / 2
    )
    assert even_like(BlockGraphon([[0.3]])) == (0.3, 0.3)
    assert even_like(BlockGraphon([[0, 0.2], [0.2, 0]])) == pytest.approx((0, 0.2))
    assert all(math.isfinite(value) for value in even_like(BlockGraphon(np.zeros((2, 2)))))


@pytest.mark.unit
def test_each_direction_of_uneven_blocks_has_its_own_signal() -> None:
    """Even blocks: all are `signal`. Rival, the mean direction: it calls a hidden split recoverable."""
    even = BlockGraphon(np.full((4, 4), 0.02) + 0.1 * np.eye(4))
    assert signals(even, 500) == pytest.approx([signal(500, 4, within=0.12, between=0.02)] * 3)
    # Two clear blocks, and a third of 1 % that is almost like the second.
    uneven = BlockGraphon(
        [[0.3, 0.01, 0.01], [0.01, 0.3, 0.29], [0.01, 0.29, 0.3]], [0.5, 0.49, 0.01]
    )
    found = signals(uneven, 1000)
    assert found[0] > 50
    assert found[1] < 0.01
    within, between = even_like(uneven)
    assert signal(1000, 3, within=within, between=between) == pytest.approx(found[1])
    assert detectability(1000, 3, within=within, between=between).regime == "impossible"
    assert signals(BlockGraphon([[0.3]]), 10).size == 0
    assert signals(BlockGraphon(np.zeros((3, 3))), 10).tolist() == [0, 0]
