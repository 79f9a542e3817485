"""Distances over permutations are exact: they agree with enumeration, and their witnesses attain them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import linear_sum_assignment

from sfumato.errors import InvalidInput
from sfumato.graphon.assignment import (
    exchange_gains,
    improve,
    permuted_distance,
    twice_permuted_distance,
)
from sfumato.graphon.model import BlockGraphon

FloatArray = npt.NDArray[np.float64]
# Sums of at most 25 squares and a root, in double precision.
CLOSE = 1e-13


def symmetric(k: int, rng: np.random.Generator) -> FloatArray:
    chances = rng.random((k, k))
    return np.asarray(np.triu(chances) + np.triu(chances, 1).T)


def apart(a: FloatArray, b: FloatArray) -> float:
    return float(np.linalg.norm(a - b)) / len(a)


def every_permutation(a: FloatArray, b: FloatArray) -> float:
    return min(apart(a[np.ix_(s, s)], b) for s in permutations(range(len(a))))


def every_pair(a: FloatArray, b: FloatArray) -> float:
    """All k! assignments: every order of rows, with the best order of columns for each."""
    best = np.inf
    for rows in permutations(range(len(a))):
        cost = np.square(a[list(rows)].T[:, None, :] - b.T[None, :, :]).sum(axis=2)
        best = min(best, float(cost[linear_sum_assignment(cost)].sum()))
    return float(np.sqrt(best)) / len(a)


@pytest.mark.reference
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_both_agree_with_enumeration(k: int, rng: np.random.Generator) -> None:
    for _ in range(8):
        a, b = symmetric(k, rng), symmetric(k, rng)
        for found, least in (
            (permuted_distance(BlockGraphon(a), BlockGraphon(b)), every_permutation(a, b)),
            (twice_permuted_distance(BlockGraphon(a), BlockGraphon(b)), every_pair(a, b)),
        ):
            assert found.exact
            assert found.upper == pytest.approx(least, abs=CLOSE)
            assert apart(a[np.ix_(found.rows, found.columns)], b) == pytest.approx(
                found.upper, abs=CLOSE
            )


@pytest.mark.reference
def test_ties_do_not_mislead_it(rng: np.random.Generator) -> None:
    """Few values, so that many bounds are equal and many permutations best."""
    for _ in range(8):
        a, b = (np.round(symmetric(4, rng)) for _ in range(2))
        found = twice_permuted_distance(BlockGraphon(a), BlockGraphon(b))
        assert found.upper == pytest.approx(every_pair(a, b), abs=CLOSE)


@pytest.mark.unit
def test_placing_rows_and_columns_in_turn_is_not_enough(rng: np.random.Generator) -> None:
    """The rival stops where neither helps alone; in some of 40 pairs that is not the best."""
    worse = 0
    for _ in range(40):
        a, b = symmetric(5, rng), symmetric(5, rng)
        rows = columns = np.arange(5)
        for _ in range(50):
            columns = np.argsort(linear_sum_assignment(-(a[rows].T @ b))[1])
            rows = np.argsort(linear_sum_assignment(-(a[:, columns] @ b.T))[1])
        exact = twice_permuted_distance(BlockGraphon(a), BlockGraphon(b))
        assert exact.upper <= apart(a[np.ix_(rows, columns)], b) + CLOSE
        worse += exact.upper < apart(a[np.ix_(rows, columns)], b) - 1e-6
    assert worse > 0


@pytest.mark.unit
def test_a_search_cut_short_proves_less_and_nothing_false(rng: np.random.Generator) -> None:
    a, b = BlockGraphon(symmetric(7, rng)), BlockGraphon(symmetric(7, rng))
    whole = twice_permuted_distance(a, b)
    ends = [twice_permuted_distance(a, b, nodes=nodes) for nodes in (0, 5, 50)]
    assert whole.exact
    assert not ends[0].exact
    assert all(one.lower <= whole.lower <= whole.upper <= one.upper for one in ends)
    lows = [one.lower for one in ends]
    assert lows == sorted(lows)
    assert lows[0] > 0


@pytest.mark.unit
def test_gains_of_exchanges_are_what_exchanging_gains(rng: np.random.Generator) -> None:
    a, b = symmetric(5, rng), symmetric(5, rng)
    gains = exchange_gains(a, b)
    for one in range(5):
        for other in range(5):
            order = np.arange(5)
            order[[one, other]] = order[[other, one]]
            truth = float((a[np.ix_(order, order)] * b).sum() - (a * b).sum())
            assert gains[one, other] == pytest.approx(truth, abs=CLOSE)
    better = improve(a, b, np.arange(5))
    assert exchange_gains(a[np.ix_(better, better)], b).max() <= 1e-11


@pytest.mark.unit
def test_the_thesis_example_is_zero_apart() -> None:
    """The two matrices of section 4.3 are 2/3 apart as they stand and the same after relabelling."""
    a = BlockGraphon([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    b = BlockGraphon([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert apart(a.matrix, b.matrix) == pytest.approx(2 / 3)
    assert permuted_distance(a, b).upper == twice_permuted_distance(a, b).upper == 0


@pytest.mark.unit
def test_uneven_blocks_cannot_be_permuted() -> None:
    two, three = BlockGraphon(np.eye(2)), BlockGraphon(np.eye(3))
    with pytest.raises(InvalidInput, match="got 2 and 3"):
        permuted_distance(two, three)
    with pytest.raises(InvalidInput, match=r"nothing was computed: `distance` takes any"):
        twice_permuted_distance(two, BlockGraphon(np.eye(2), [0.3, 0.7]))
