"""What no private map can beat: a lower bound by packing."""

from __future__ import annotations

import math

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter


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

    Args:
        k: Cells with mass, at least 1.
        epsilon: What a map costs, above 0.
        users: How many users there are, at least 1.
        failure: The chance, in (0, 1), with which a method may come nearer.

    Returns:
        An EMD in sides of the map; 0 where the packing has no two words.

    Raises:
        InvalidParameter: For a value out of its range.

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

    apart = np.arange(1, dominoes + 1)

    def errors(words: FloatArray) -> FloatArray:
        far = np.clip(np.floor((words + math.log(failure)) / epsilon), 0, users)
        return np.asarray(far / users * apart / (2 * dominoes * side))

    # In doubles first, with all their rounding; integers of so many digits only where that leaves a
    # doubt.
    lower, upper = _log_words(dominoes)
    best = float(errors(lower).max())
    doubted = np.flatnonzero(errors(upper) > best)
    if doubted.size:
        exact = np.full(dominoes, -math.inf)
        exact[doubted] = [math.log(_words(dominoes, h)) for h in apart[doubted].tolist()]
        best = max(best, float(errors(exact).max()))
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
    # Of SciPy they would take its loading, longer than all the rest; what is exact below is the same.
    factorials = np.array([math.lgamma(one) for one in range(1, length + 2)])
    binomials = factorials[length] - factorials[:length] - factorials[length:0:-1]
    words = length * math.log(2) - np.logaddexp.accumulate(binomials)
    # Each of so many sums and logarithms is off by a few units in the last place of numbers up to N
    # ln N.
    slack = 2.0**-50 * (length + 8) * (length + 8) * math.log(length + 2)
    # Rounding up to a whole word adds ln(1 + 1 / words) at most.
    return words - slack, np.logaddexp(words, 0.0) + slack
