"""What theory promises: the best sparse map, the pyramid's additive term, and what no method can beat."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.analysis.k_median import lower_bound, prices
from sfumato.heatmap.analysis.places import distance_to_hotspots, hotspots
from sfumato.heatmap.tiles import dense_tiles
from sfumato.spaces import Grid

# A matrix of distances between all cells of level 6 has 16 million entries.
FINEST_FIT = 6


@dataclass(frozen=True, slots=True)
class SparseFit:
    """How near, in EMD, the best map with mass on k cells comes to a map: between two proven bounds."""

    lower: float
    upper: float


def best_k_sparse(values: npt.ArrayLike, grid: Grid, k: int) -> SparseFit:
    """The least EMD between a map, normalized to mass 1, and any map on k cells [ghazi23, sec. 1.1].

    In sides of the map. Mass goes to the nearest of the k cells: the k-median problem. Above, the
    cost of the k places of `hotspots`; below, its Lagrangian dual for any prices v of the cells'
    masses m,

        sum_i v_i + sum of the k least over cells j of sum_i min(0, m_i d_ij - v_i),

    with prices found by subgradient steps from the cost above [fisher81].

    >>> fit = best_k_sparse([1, 0, 0, 1], Grid(1), 1)
    >>> fit.upper, round(fit.lower, 6)
    (0.5, 0.5)
    """
    if grid.levels > FINEST_FIT or k < 1:
        raise InvalidParameter(
            f"a sparse fit takes a grid of at most {FINEST_FIT} levels and k of at least 1, "
            f"got {grid.levels} and {k}; nothing was fitted"
        )
    masses = np.asarray(values, dtype=np.float64)
    if masses.shape != (grid.size,) or not (np.all(masses >= 0) and 0 < masses.sum() < math.inf):
        raise InvalidParameter(
            f"a sparse fit takes one mass of at least 0 for each of {grid.size} cells, some above 0; "
            "nothing was fitted"
        )
    shares = masses / masses.sum()
    if np.count_nonzero(shares) <= k:
        return SparseFit(0.0, 0.0)
    tiles = dense_tiles(grid, grid.levels, shares)
    upper = distance_to_hotspots(tiles, hotspots(tiles, k))
    return SparseFit(_dual(shares, grid, k, upper), upper)


def _dual(shares: FloatArray, grid: Grid, k: int, upper: float) -> float:
    """The best lower bound met by subgradient steps on the prices."""
    columns, rows = grid.decode(np.arange(grid.size))
    support = np.flatnonzero(shares)
    away = (
        np.abs(columns[support, None] - columns) + np.abs(rows[support, None] - rows)
    ) / grid.side
    masses = shares[support]
    return min(lower_bound(masses, away, prices(masses, away, k, upper=upper), k), upper)


def additive_term(
    k: int, epsilon: float, *, users: int, ratio: float = 0.5, constant: float = 1.0
) -> float:
    """The error of a private map beyond `ratio` times the best k-sparse one: constant sqrt(k) / (ratio e n).

    Theorem 3.1 of [ghazi23] has it for some constant with probability 0.99, in EMD on the unit
    square.

    >>> additive_term(4, 1.0, users=100)
    0.04
    """
    if not (k >= 1 and epsilon > 0 and users >= 1 and 0 < ratio < 1):
        raise InvalidParameter(
            f"the additive term needs k and users of at least 1, epsilon above 0 and a ratio in (0, 1), "
            f"got {k}, {users}, {epsilon}, {ratio}; nothing was computed"
        )
    return constant * math.sqrt(k) / (ratio * epsilon * users)


def packing_lower_bound(k: int, epsilon: float, *, users: int, failure: float = 0.5) -> float:
    """An EMD error that every epsilon-private map exceeds on some k-sparse input, not only by bad luck.

    For every method there is an average of `users` distributions, k-sparse itself, on which the
    method is off by at least this with probability 1 - failure [ghazi23, sec. 1.2]. By packing
    [hardt10]:

    1. Cut the unit square into m by m cells, m even, and these into N = m**2 / 2 dominoes, N + 1 <= k. A
       binary word of length N puts mass 1 / N on one half of each domino. Two words that differ in
       h places need mass h / N moved by at least 1 / m: their EMD is at least h / (N m).
    2. There are at least M = 2**N / sum_{j < h} C(N, j) words that differ pairwise in h places or more
       (Gilbert and Varshamov: take words greedily).
    3. Let all but r users stand in one corner, the r others each hold the word's distribution. The averages
       are (N + 1)-sparse, pairwise at least 2 t = (r / n) h / (N m) apart, and each input is r
       additions away from that of the n - r users. If the method came within t of each with
       probability above `failure`, these disjoint events had, on the n - r users, probability above
       M failure exp(-r epsilon); this is impossible when r epsilon <= ln(M failure).

    The best h is taken; r is at most `users`. The result grows as sqrt(k) / (epsilon n).

    >>> [round(packing_lower_bound(k, 1.0, users=10_000) * 10_000, 3) for k in (9, 129, 513)]
    [0.062, 0.177, 0.334]
    """
    if not (k >= 1 and epsilon > 0 and users >= 1 and 0 < failure < 1):
        raise InvalidParameter(
            f"the packing bound needs k and users of at least 1, epsilon above 0 and failure in (0, 1), "
            f"got {k}, {users}, {epsilon}, {failure}; nothing was computed"
        )
    side = math.isqrt(2 * (k - 1)) // 2 * 2
    dominoes = side**2 // 2
    if not dominoes:
        return 0.0

    def error(apart: int, far: int) -> float:
        return max(0, min(users, far)) / users * apart / (2 * dominoes * side)

    def movable(words: float) -> int:
        return math.floor((words + math.log(failure)) / epsilon)

    # In doubles first, with all their rounding; integers of so many digits only where that leaves a
    # doubt.
    least, most = _log_words(dominoes)
    below = [error(h, movable(low)) for h, low in enumerate(least.tolist(), 1)]
    above = [error(h, movable(high)) for h, high in enumerate(most.tolist(), 1)]
    best = max(below)
    for apart in [h for h, high in enumerate(above, 1) if high > best]:
        best = max(best, error(apart, movable(math.log(_words(dominoes, apart)))))
    return best


def _words(length: int, apart: int) -> int:
    """At least so many words of this length differ pairwise in so many places: 2**N / sum_{j < h} C(N, j)."""
    term, smaller = 1, 0
    for j in range(apart):
        smaller += term
        term = term * (length - j) // (j + 1)
    return -(-(1 << length) // smaller)


def _log_words(length: int) -> tuple[FloatArray, FloatArray]:
    """The logarithm of `_words` for 1, 2, ..., length places, from below and from above."""
    j = np.arange(length)
    binomials = (
        special.gammaln(length + 1) - special.gammaln(j + 1) - special.gammaln(length - j + 1)
    )
    words = length * math.log(2) - np.logaddexp.accumulate(binomials)
    # Each of so many sums and logarithms is off by a few units in the last place of numbers up to N
    # ln N.
    slack = 2.0**-50 * (length + 8) * (length + 8) * math.log(length + 2)
    # Rounding up to a whole word adds ln(1 + 1 / words) at most.
    return words - slack, np.logaddexp(words, 0.0) + slack
