"""The noises against scipy, their hazards against a fine grid, and what the largest of many draws costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import integrate, stats
from tests.chance import assert_law

from sfumato.errors import InvalidParameter
from sfumato.online.laws import (
    Exponential,
    Frechet,
    Gaussian,
    Gumbel,
    Laplace,
    Pareto,
    Perturbation,
    Weibull,
)
from sfumato.online.perturbations import NAMES, draws, excess, perturbation

LAWS: list[tuple[Perturbation, object]] = [
    (Laplace(2.0), stats.laplace(scale=2)),
    (Gumbel(2.0), stats.gumbel_r(scale=2)),
    (Frechet(2.5, 2.0), stats.invweibull(2.5, scale=2)),
    (Weibull(0.7, 2.0), stats.weibull_min(0.7, scale=2)),
    (Weibull(3.0, 2.0), stats.weibull_min(3, scale=2)),
    (Pareto(2.5, 2.0), stats.pareto(2.5, scale=2)),
    (Exponential(2.0), stats.expon(scale=2)),
    (Gaussian(2.0), stats.norm(scale=2)),
]
NOISES = [noise for noise, _ in LAWS]
BOUNDED = [noise for noise in NOISES if math.isfinite(noise.hazard)]


@pytest.mark.reference
@pytest.mark.parametrize(("noise", "law"), LAWS, ids=[str(noise) for noise, _ in LAWS])
def test_a_noise_is_the_law_of_its_name(noise: Perturbation, law: stats.rv_continuous) -> None:
    x = np.array([-60.0, -3.0, -0.1, 0.01, 1.9, 2.1, 5.0, 40.0, 700.0])
    with np.errstate(all="ignore"):
        wanted = [law.cdf(x), law.sf(x), law.pdf(x)]
    for found, right in zip((noise.cdf(x), noise.sf(x), noise.pdf(x)), wanted, strict=True):
        # scipy's own rounding at the ends is the larger one
        np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-300)
    chances = np.array([1e-300, 1e-20, 0.1, 0.5, 0.9, 1 - 1e-12])
    np.testing.assert_allclose(noise.isf(chances), law.isf(chances), rtol=1e-10)
    np.testing.assert_allclose(noise.ppf(chances), law.ppf(chances), rtol=1e-10)
    assert noise.mean == pytest.approx(law.mean(), abs=1e-12)


@pytest.mark.property
@given(some.sampled_from(NOISES), some.floats(-690, -0.7))
def test_both_tails_are_inverted_without_loss(noise: Perturbation, log: float) -> None:
    # The inverse is rounded to 2**-53 of itself, which its slope in the logarithm turns into at
    # most 1e-12.
    q = math.exp(log)
    assert math.log(noise.sf(noise.isf(q))) == pytest.approx(log, abs=1e-12, rel=1e-12)
    assert noise.cdf(noise.ppf(q)) == pytest.approx(q, rel=1e-11)


@pytest.mark.unit
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_nothing_overflows_a_million_scales_away(noise: Perturbation) -> None:
    x = np.array([-2e6, -1.0, 0.0, 1e-300, 2e6])
    density = noise.pdf(x)
    assert not np.isnan(density).any()
    assert np.all(noise.cdf(x) + noise.sf(x) == pytest.approx(1.0, abs=1e-15))


@pytest.mark.reference
@pytest.mark.parametrize(
    "noise",
    [*BOUNDED, Frechet(0.6, 1.0), Frechet(9.0, 0.1), Frechet(1e8, 1.0), Pareto(0.5, 3.0)],
    ids=str,
)
def test_the_hazard_is_the_supremum(noise: Perturbation) -> None:
    x = np.concatenate(
        [noise.isf(np.geomspace(1e-100, 0.5, 40_000)), noise.ppf(np.geomspace(1e-9, 0.5, 40_000))]
    )
    largest = float((noise.pdf(x) / noise.sf(x)).max())
    assert largest <= noise.hazard * (1 + 1e-12)
    assert largest >= noise.hazard * (1 - 1e-6)


@pytest.mark.unit
def test_the_hazard_of_frechet_noise_is_less_than_half_of_the_literatures() -> None:
    assert all(Frechet(shape, 1.0).hazard < shape for shape in (1.0, 2.0, 7.0, 1e4))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("noise", "at"),
    [(Gaussian(1.0), 30.0), (Weibull(0.5, 1.0), 1e-9), (Weibull(2.0, 1.0), 25.0)],
    ids=str,
)
def test_some_hazards_have_no_bound(noise: Perturbation, at: float) -> None:
    assert noise.hazard == math.inf
    assert noise.pdf(at) / noise.sf(at) > 25


@pytest.mark.reference
@pytest.mark.parametrize("count", [2, 16, 1000])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_excess_is_the_integral(noise: Perturbation, count: int) -> None:
    def inside(t: float) -> float:
        below, above = 1 / (1 + math.exp(-t)), 1 / (1 + math.exp(t))
        x = noise.ppf(below) if t < 0 else noise.isf(above)
        gap = -below * math.expm1(-(count - 1) * math.log1p(math.exp(-t)))
        return float(gap * below * above / noise.pdf(x))

    right = sum(
        integrate.quad(inside, a, a + 10, epsabs=1e-13, epsrel=1e-13)[0]
        for a in range(-80, 120, 10)
    )
    assert excess(noise, count) == pytest.approx(right, rel=1e-10)


@pytest.mark.unit
def test_the_excess_by_hand() -> None:
    assert excess(Gaussian(3.0), 2) == pytest.approx(3 / math.sqrt(math.pi), rel=1e-13)
    assert excess(Exponential(1.0), 3) == pytest.approx(1 / 2 + 1 / 3)
    assert excess(Laplace(1.0), 2) == pytest.approx(3 / 4)
    assert excess(Pareto(1.0, 1.0), 5) == math.inf
    assert all(excess(noise, 1) == 0 for noise in NOISES)


@pytest.mark.unit
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [2, 16, 5000])
def test_a_noise_by_name_has_the_hazard_asked_for(name: str, count: int) -> None:
    assert perturbation(name, 0.3, count=count).hazard == pytest.approx(0.3, rel=1e-14)


@pytest.mark.unit
def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"no bound.*Theorem 12\.4"):
        perturbation("gaussian", 1.0, count=2)
    with pytest.raises(InvalidParameter, match="laplace, gumbel, frechet"):
        perturbation("cauchy", 1.0, count=2)
    with pytest.raises(InvalidParameter, match="epsilon must be above 0"):
        perturbation("gumbel", 0.0, count=2)
    with pytest.raises(InvalidParameter, match="scale must be above 0"):
        Pareto(2.0, math.nan)
    with pytest.raises(InvalidParameter, match="below 1"):
        draws(Laplace(1.0), [1.0])
    with pytest.raises(InvalidParameter, match=r"lie in \[0, 1\]"):
        Gumbel(1.0).isf(1.5)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "noise", [Laplace(1.0), Gumbel(1.0), Frechet(3.0, 1.0), Pareto(3.0, 1.0)], ids=str
)
def test_draws_have_their_law(noise: Perturbation, rng: np.random.Generator) -> None:
    sample = np.floor(100 * draws(noise, rng.random(100_000))).astype(np.int64)
    wider = type(noise)(
        **{**{f: getattr(noise, f) for f in noise.__dataclass_fields__}, "scale": 1.1}
    )
    assert_law(
        sample,
        lambda k: noise.cdf((k + 1) / 100),
        rivals=[lambda k: wider.cdf((k + 1) / 100), _left_of(noise)],
    )


def _left_of(noise: Perturbation):  # type: ignore[no-untyped-def]
    """The law of the noise with its sign turned, or for Laplace noise, which has none, moved a little."""
    if isinstance(noise, Laplace):
        return lambda k: noise.cdf((k + 1) / 100 - 0.05)
    return lambda k: noise.sf(-(k + 1) / 100)
