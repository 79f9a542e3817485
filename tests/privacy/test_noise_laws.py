"""Both sources of noise have the laws they say, and are large enough to exclude laws 10 % off."""

from __future__ import annotations

import numpy as np
import pytest
from tests.chance import assert_law

from sfumato.privacy import (
    UNITS,
    GaussianLaw,
    KeyedNoise,
    LaplaceLaw,
    Noise,
    RoundedGaussianLaw,
    SystemNoise,
)

pytestmark = [pytest.mark.statistical, pytest.mark.system]

SIZE = 30_000
"""Of a law 10 % off: `assert_law` needs 20,700 draws of Laplace noise for it, 11,300 of Gaussian."""
SCALES = [0.5, 3, 100, UNITS]
SIGMAS = [0.5, 3, 100, 2**16]


def has_laplace_law(noise: Noise, scale: float) -> None:
    sample = noise.laplace(scale, SIZE)
    assert_law(
        sample,
        LaplaceLaw(scale).cdf,
        rivals=[LaplaceLaw(0.9 * scale).cdf, LaplaceLaw(1.1 * scale).cdf],
    )


def has_gaussian_law(noise: Noise, sigma: float) -> None:
    sample = noise.gaussian(sigma, SIZE)
    assert_law(
        sample,
        GaussianLaw(sigma).cdf,
        rivals=[GaussianLaw(0.9 * sigma).cdf, GaussianLaw(1.1 * sigma).cdf],
    )


def has_rounded_law(noise: Noise, sigma: float) -> None:
    sample = noise.rounded_gaussian(sigma, SIZE)
    rivals = [RoundedGaussianLaw(0.9 * sigma).cdf, RoundedGaussianLaw(1.1 * sigma).cdf]
    assert_law(sample, RoundedGaussianLaw(sigma).cdf, rivals=rivals)


def test_system_laplace_has_its_law() -> None:
    for scale in SCALES:
        has_laplace_law(SystemNoise(), scale)


def test_keyed_laplace_has_its_law(key: bytes) -> None:
    for scale in [*SCALES, 2**30, 2**39]:
        has_laplace_law(KeyedNoise(key), scale)


def test_system_gaussian_has_its_law() -> None:
    for sigma in SIGMAS:
        has_gaussian_law(SystemNoise(), sigma)


def test_keyed_gaussian_has_its_law(key: bytes) -> None:
    for sigma in [*SIGMAS, 2**21, 2**29]:
        has_gaussian_law(KeyedNoise(key), sigma)


@pytest.mark.parametrize("source", ["system", "keyed"])
def test_rounded_gaussian_has_its_law(source: str, key: bytes) -> None:
    for sigma in [0.5, 3.0, 100.0, 1000.0]:
        has_rounded_law(SystemNoise() if source == "system" else KeyedNoise(key), sigma)


def test_at_a_small_deviation_the_two_gaussians_differ(key: bytes) -> None:
    sigma = 0.4
    sample = KeyedNoise(key).rounded_gaussian(sigma, SIZE)
    assert_law(sample, RoundedGaussianLaw(sigma).cdf, rivals=[GaussianLaw(sigma).cdf])


@pytest.mark.parametrize("source", ["system", "keyed"])
def test_integers_are_uniform(source: str, key: bytes) -> None:
    noise: Noise = SystemNoise() if source == "system" else KeyedNoise(key)
    sample = np.array(noise.uniform(7, 40_000))
    assert sample.min() == 0
    assert sample.max() == 6
    assert_law(
        sample,
        lambda z: np.clip((z + 1) / 7, 0, 1),
        rivals=[lambda z: np.clip((z + 1) / 7.3, 0, 1)],
    )


@pytest.mark.unit
@pytest.mark.parametrize(
    "law",
    [
        LaplaceLaw(0.5),
        LaplaceLaw(20),
        GaussianLaw(0.3),
        GaussianLaw(20),
        RoundedGaussianLaw(0.3),
        RoundedGaussianLaw(20),
    ],
)
def test_pmf_cdf_and_deviation_agree(law: LaplaceLaw | GaussianLaw | RoundedGaussianLaw) -> None:
    z = np.arange(-2000, 2001)
    pmf = law.pmf(z)
    # Sums of 4,001 doubles of size at most 1: rounding below 4001 * 2**-53.
    assert abs(pmf.sum() - 1) < 5e-13
    assert np.abs(np.cumsum(pmf) - law.cdf(z)).max() < 5e-13
    assert abs(np.sqrt((z**2 * pmf).sum()) / law.deviation - 1) < 1e-9


@pytest.mark.unit
def test_wide_gaussian_cdf_agrees_with_the_sum() -> None:
    # The first Euler-Maclaurin term left out is of order sigma**-4 = 2**-48.
    law, z = GaussianLaw(4097), np.arange(-60_000, 60_001)
    assert np.abs(np.cumsum(law.pmf(z)) - law.cdf(z)).max() < 1e-12
