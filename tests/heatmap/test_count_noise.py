"""The law of the noise on counts finds its moments as SciPy's functions do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from sfumato.heatmap.inference.count_noise import LAPLACE

pytestmark = pytest.mark.reference


@pytest.mark.parametrize("draws", [2, 3, 4, 7, 16, 64, 256, 1024])
def test_moments_of_sums_are_those_of_scipy(draws: int) -> None:
    argument = np.concatenate([[1e-12, 1e-6, 1e-3], np.linspace(0.01, 0.999, 60)])
    k = np.arange(1, draws + 1)[:, None]
    binomial = gammaln(2 * draws - k) - gammaln(draws - k + 1) - gammaln(draws)
    chance = (k + 1 - 2 * draws) * math.log(2) + binomial
    for given in (argument, argument[[7]]):
        expected = logsumexp(chance - k * np.log1p(-given), axis=0)
        # Terms are sums of three logarithms of factorials, the largest of which is that of 2 draws; each is
        # known to two units in its last place, and those of a sum add up.
        slack = 16 * math.ulp(math.lgamma(2 * draws) + draws * 7)
        assert np.abs(LAPLACE.log_moment(draws, given) - expected).max() <= slack
