"""The packing bound is that of its formula, and its packing is as large and as far apart as it says."""

from __future__ import annotations

import itertools
import math
from unittest import mock

import numpy as np
import pytest

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.analysis import theory
from sfumato.heatmap.analysis.theory import packing_lower_bound
from sfumato.spaces import Grid
from sfumato.transport import emd


@pytest.mark.unit
def test_the_packing_bound_by_hand() -> None:
    # k = 9: 4 x 4 cells, 8 dominoes. All 256 words at distance 1: r = floor(ln 128) = 4, 4 / (2 * 8
    # * 4) / n. At distance 2, 2**8 / 9 -> 29 words, r = floor(ln 14.5) = 2, twice as far: the same.
    assert packing_lower_bound(9, 1.0, users=1000) == pytest.approx(4 / 64 / 1000)
    assert packing_lower_bound(1, 1.0, users=1000) == 0
    # With little budget everybody may change: the bound stops at half the distance of two words.
    assert packing_lower_bound(9, 1e-3, users=10) <= 1 / 8


@pytest.mark.unit
def test_the_packing_bound_grows_as_the_root_of_k_over_n() -> None:
    values = [packing_lower_bound(k, 1.0, users=10**6) for k in (129, 513, 2049)]
    for few, many in itertools.pairwise(values):
        assert 1.8 < many / few < 2.2
    few, many = (packing_lower_bound(129, 1.0, users=n) for n in (10**4, 10**6))
    assert few == pytest.approx(100 * many)


def packing_by_integers(k: int, epsilon: float, *, users: int, failure: float = 0.5) -> float:
    """The packing bound by its formula: every distance, in integers."""
    side = math.isqrt(2 * (k - 1)) // 2 * 2
    count = side**2 // 2
    best, smaller, term = 0.0, 0, 1
    for apart in range(1, count + 1):
        smaller += term
        term = term * (count - apart + 1) // apart
        words = -(-(2**count) // smaller)
        far = min(users, math.floor((math.log(words) + math.log(failure)) / epsilon))
        best = max(best, far / users * apart / (2 * count * side))
    return best


@pytest.mark.reference
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 7.3, 400.0])
def test_the_packing_bound_is_that_of_its_formula(epsilon: float) -> None:
    for k in (1, 2, 3, 5, 9, 10, 33, 129, 400, 700):
        for users in (1, 30, 10**5):
            for failure in (0.01, 0.5, 0.99):
                found = packing_lower_bound(k, epsilon, users=users, failure=failure)
                assert found == packing_by_integers(k, epsilon, users=users, failure=failure)


@pytest.mark.reference
def test_the_packing_bound_of_many_cells_looks_at_few_large_integers() -> None:
    """19,602 dominoes, whose words have 5,900 digits: doubles leave a doubt about three of them at most."""
    k, users, count, side = 20_000, 10**5, 19_602, 198
    with mock.patch.object(theory, "_words", side_effect=theory._words) as asked:
        found = packing_lower_bound(k, 1.0, users=users)
    assert asked.call_count <= 3
    tried, (least, most) = [], theory._log_words(count)
    for apart in range(1, count + 1, 653):
        words = math.log(theory._words(count, apart))
        assert least[apart - 1] <= words <= most[apart - 1]
        tried.append(math.floor(words + math.log(0.5)) / users * apart / (2 * count * side))
    assert max(tried) <= found <= 1.01 * max(tried)
    assert most[0] - least[0] < 1e-4


def dominoes(word: tuple[int, ...]) -> FloatArray:
    """The distribution of a word of 8 letters on 4 x 4 cells: columns 2j and 2j + 1 of a row are a domino."""
    grid = Grid(2)
    masses = np.zeros(16)
    for place, letter in enumerate(word):
        masses[grid.encode(2 * (place % 2) + letter, place // 2)] += 1 / 8
    return masses


@pytest.mark.reference
def test_the_packing_is_as_large_and_as_far_apart_as_it_says() -> None:
    for apart in (1, 2, 3):
        words = list[tuple[int, ...]]()
        for word in itertools.product((0, 1), repeat=8):
            if all(sum(a != b for a, b in zip(word, one, strict=True)) >= apart for one in words):
                words.append(word)
        assert len(words) >= 2**8 / sum(math.comb(8, j) for j in range(apart))
        for one, other in itertools.islice(itertools.combinations(words, 2), 60):
            assert emd(dominoes(one), dominoes(other), Grid(2)).value >= apart / (8 * 4) - 1e-12


@pytest.mark.unit
def test_parameters_are_checked() -> None:
    with pytest.raises(InvalidParameter, match=r"failure in \(0, 1\), got 2, 9, 1.0, 0"):
        packing_lower_bound(2, 1.0, users=9, failure=0)
