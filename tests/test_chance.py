"""The statistical arms themselves: right laws pass, wrong ones fail, small samples are refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.chance import LEVEL, assert_law, assert_share, miss_chance, miss_chance_of_share, p_value

from sfumato.privacy import GaussianLaw, LaplaceLaw

pytestmark = pytest.mark.statistical


def draws(rng: np.random.Generator, sigma: float, size: int) -> np.ndarray:
    return np.rint(rng.normal(scale=sigma, size=size)).astype(np.int64)


def test_a_wrong_sample_fails_the_law_arm(rng: np.random.Generator) -> None:
    law = GaussianLaw(1000)
    with pytest.raises(AssertionError, match="does not follow"):
        assert_law(draws(rng, 900, 60_000), law.cdf, rivals=[GaussianLaw(500).cdf])
    with pytest.raises(AssertionError, match="does not follow"):
        assert_law(draws(rng, 1100, 60_000), law.cdf, rivals=[GaussianLaw(500).cdf])


def test_a_sample_too_small_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(AssertionError, match="lets rival 0 pass"):
        assert_law(draws(rng, 1000, 300), GaussianLaw(1000).cdf, rivals=[GaussianLaw(900).cdf])


def test_the_chance_of_missing_a_rival_is_what_it_says(rng: np.random.Generator) -> None:
    """At sizes where about half of all samples miss the rival, the share of those that do is as computed."""
    law, rival, size, runs = GaussianLaw(1000).cdf, GaussianLaw(950).cdf, 13_000, 400
    stated = miss_chance(law, rival, size)
    assert 0.2 < stated < 0.8
    misses = sum(p_value(draws(rng, 1000, size), rival) >= LEVEL for _ in range(runs))
    # 400 coins stay within five deviations of 0.025 but for a chance of 1e-6; 0.03 is the
    # approximation's.
    assert abs(misses / runs - stated) < 5 * 0.025 + 0.03
    assert miss_chance(law, rival, 4 * size) < LEVEL
    stated = miss_chance_of_share(0.3, 0.35, 2500)
    assert 0.2 < stated < 0.8
    misses = sum(
        binomtest(int(hits), 2500, 0.35).pvalue >= LEVEL for hits in rng.binomial(2500, 0.3, runs)
    )
    assert misses / runs - stated < 5 * 0.025


def test_both_arms_reject_ten_percent_either_way(rng: np.random.Generator) -> None:
    rivals = [GaussianLaw(900).cdf, GaussianLaw(1100).cdf]
    assert_law(draws(rng, 1000, 60_000), GaussianLaw(1000).cdf, rivals=rivals)


def test_an_assertion_without_a_rival_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(AssertionError, match="without a rival"):
        assert_law(draws(rng, 1000, 1000), GaussianLaw(1000).cdf, rivals=[])
    with pytest.raises(AssertionError, match="without a rival"):
        assert_share(500, 1000, 0.5, rivals=[])


def test_p_values_of_a_right_law_are_uniform(rng: np.random.Generator) -> None:
    law = LaplaceLaw(3)

    def laplace(size: int) -> np.ndarray:
        # Difference of two geometrics with success 1 - q: the textbook route, foreign to the
        # package.
        success = 1 - np.exp(-1 / 3)
        return rng.geometric(success, size) - rng.geometric(success, size)

    values = [p_value(laplace(2000), law.cdf) for _ in range(400)]
    # 400 uniform values lie below 0.1 between 14 and 76 times but for a chance of 1e-6 (binomial).
    assert 14 <= sum(value < 0.1 for value in values) <= 76
    assert 14 <= sum(value > 0.9 for value in values) <= 76


def test_the_last_bin_is_joined_and_every_count_is_used(rng: np.random.Generator) -> None:
    """Moving mass between any two values must be seen, whichever bin it is in."""

    def cdf(z: np.ndarray) -> np.ndarray:
        sums: np.ndarray = np.array([0.0, 0.1, 0.899, 1.0])[np.clip(np.asarray(z) + 1, 0, 3)]
        return sums

    right = rng.choice(3, size=2500, p=[0.1, 0.799, 0.101])
    assert p_value(right, cdf) >= 1e-6
    for wrong in ([0.2, 0.699, 0.101], [0.1, 0.7, 0.2], [0.0, 0.899, 0.101]):
        assert p_value(rng.choice(3, size=2500, p=wrong), cdf) < 1e-6
