"""The law of the noise on counts finds its moments as SciPy's functions do, without loading them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from sfumato.heatmap.inference.count_noise import LAPLACE, _log_gamma

pytestmark = pytest.mark.reference


def apart(found: float, expected: float) -> float:
    """How many units in the last place two numbers are apart."""
    return abs(found - expected) / math.ulp(max(abs(expected), 1.0))


def test_logarithms_of_factorials_are_those_of_scipy() -> None:
    """Here to the bit; where a compiler multiplies and adds at once, each of nine roundings may differ."""
    numbers = [*range(1, 3000), 10**5, 10**8, 10**8 + 1, 10**12]
    expected = gammaln(np.array(numbers, dtype=np.float64))
    assert max(map(apart, map(_log_gamma, numbers), expected.tolist())) <= 9
    assert [_log_gamma(n) for n in (1, 2, 3)] == [0.0, 0.0, math.log(2)]


@pytest.mark.parametrize("draws", [2, 3, 4, 7, 16, 64, 256, 1024])
def test_moments_of_sums_are_those_of_scipy(draws: int) -> None:
    argument = np.concatenate([[1e-12, 1e-6, 1e-3], np.linspace(0.01, 0.999, 60)])
    k = np.arange(1, draws + 1)[:, None]
    binomial = gammaln(2 * draws - k) - gammaln(draws - k + 1) - gammaln(draws)
    chance = (k + 1 - 2 * draws) * math.log(2) + binomial
    for given in (argument, argument[[7]]):
        expected = logsumexp(chance - k * np.log1p(-given), axis=0)
        # Terms are sums of three logarithms of factorials, the largest of which is that of 2 draws.
        slack = 16 * math.ulp(math.lgamma(2 * draws) + draws * 7)
        assert np.abs(LAPLACE.log_moment(draws, given) - expected).max() <= slack
