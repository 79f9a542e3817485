"""The plays of perturbed leaders: exact where there is a formula, and otherwise against other integrators."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from experiments.online.ball_leader import ball_play, expected_direction
from experiments.online.stability import printed_play
from hypothesis import given
from hypothesis import strategies as some
from scipy import special
from tests.chance import assert_share

from sfumato.errors import InvalidInput, InvalidParameter, SolverFailed
from sfumato.online import simplex
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
from sfumato.online.perturbations import draws
from sfumato.online.regrets import play_doubling
from sfumato.online.simplex import (
    by_quadrature,
    expected_play,
    hedge,
    leader,
    lookahead_play,
    perturbed_leader,
    play,
)

FloatArray = npt.NDArray[np.float64]
NOISES: list[Perturbation] = [
    Laplace(2.0),
    Gumbel(2.0),
    Frechet(2.5, 2.0),
    Weibull(1.0, 2.0),
    Weibull(0.6, 2.0),
    Pareto(2.5, 2.0),
    Exponential(2.0),
    Gaussian(2.0),
]


@pytest.mark.reference
@pytest.mark.parametrize("count", [2, 16, 1000])
def test_gumbel_noise_is_hedge(count: int, rng: np.random.Generator) -> None:
    losses = np.concatenate([np.zeros((1, count)), 1e6 + 40 * rng.random((4, count))])
    np.testing.assert_allclose(by_quadrature(losses, Gumbel(3.0)), hedge(losses, 1 / 3), rtol=1e-12)
    np.testing.assert_allclose(expected_play(losses, Gumbel(3.0)), hedge(losses, 1 / 3), rtol=1e-14)


@pytest.mark.reference
@pytest.mark.parametrize("count", [2, 16, 1000])
def test_the_polynomial_of_exponential_noise_is_the_integral(
    count: int, rng: np.random.Generator
) -> None:
    losses = np.concatenate([np.zeros((1, count)), 40 * rng.random((4, count))])
    found = expected_play(losses, Exponential(3.0))
    np.testing.assert_allclose(found, by_quadrature(losses, Exponential(3.0)), rtol=1e-12)
    np.testing.assert_allclose(found, expected_play(losses, Weibull(1.0, 3.0)), rtol=1e-15)


@pytest.mark.unit
def test_two_candidates_by_hand() -> None:
    apart = np.array([0.0, 0.1, 1.0, 7.0, 30.0, 200.0])
    losses = np.stack([np.zeros(apart.size), apart], axis=1)
    laws: dict[Perturbation, FloatArray] = {
        Laplace(1.0): np.exp(-apart) * (2 + apart) / 4,
        Exponential(1.0): np.exp(-apart) / 2,
        Gumbel(1.0): special.expit(-apart),
        Gaussian(5.0): special.ndtr(-apart / (5 * math.sqrt(2))),
    }
    for noise, right in laws.items():
        np.testing.assert_allclose(
            expected_play(losses, noise)[:, 1], right, rtol=1e-12, err_msg=str(noise)
        )


@pytest.mark.reference
@pytest.mark.parametrize(
    ("noise", "ends"),
    [
        (Laplace(1.0), [-200, -90, -80, -25, -18, -3, -0.7, 0, 4, 20, 120]),
        (Gaussian(2.0), [-60, -30, -20, -14, -8, -4, 0, 4, 8, 25]),
        (Pareto(2.5, 3.0), [3, *(3 + 10.0**k for k in range(-3, 12))]),
        (Frechet(2.5, 3.0), [0.4, 1, 2, 3, 5, *(10.0**k for k in range(1, 12))]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_least_likely_has_twelve_digits_too(noise: Perturbation, ends: list[float]) -> None:
    gaps = [0.0, 0.7, 3.0, 25.0, 90.0] if isinstance(noise, Laplace) else [0.0, 0.7, 3.0, 25.0]
    if isinstance(noise, Pareto | Frechet):
        gaps = [0.0, 70.0, 300.0, 2500.0]
    found = expected_play(gaps, noise)
    i = len(gaps) - 1

    def inside(x: mpmath.mpf) -> mpmath.mpf:
        below = [_cdf(noise, x + gap) for gap in gaps[:-1]]
        # Near 1, so that the tolerance of mpmath, which is absolute, is one of digits.
        return _pdf(noise, x + gaps[i]) * mpmath.fprod(below) / mpmath.mpf(float(found[i]))

    with mpmath.workdps(20):
        assert float(mpmath.quad(inside, ends)) == pytest.approx(1.0, abs=1e-11)


def _cdf(noise: Perturbation, x: mpmath.mpf) -> mpmath.mpf:
    match noise:
        case Laplace():
            return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2
        case Gaussian(sigma):
            return mpmath.ncdf(x, 0, sigma)
        case Pareto(shape, scale):
            return 1 - (x / scale) ** -shape
        case Frechet(shape, scale):
            return mpmath.exp(-((x / scale) ** -shape))
        case _:
            raise AssertionError(noise)


def _pdf(noise: Perturbation, x: mpmath.mpf) -> mpmath.mpf:
    match noise:
        case Laplace():
            return mpmath.exp(-abs(x)) / 2
        case Gaussian(sigma):
            return mpmath.npdf(x, 0, sigma)
        case Pareto(shape, scale):
            return shape / mpmath.mpf(scale) * (x / scale) ** (-shape - 1)
        case Frechet(shape, scale):
            return shape / mpmath.mpf(scale) * (x / scale) ** (-shape - 1) * _cdf(noise, x)
        case _:
            raise AssertionError(noise)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", [Gumbel(2.0), Exponential(2.0), Pareto(2.5, 2.0)], ids=str)
def test_the_leader_of_drawn_noise_is_that_of_losses_minus_noise(
    noise: Perturbation, rng: np.random.Generator
) -> None:
    losses = np.array([0.0, 1.0, 1.5, 3.0])
    chosen = np.argmin(losses - draws(noise, rng.random((200_000, 4))), axis=1)
    expected, printed = expected_play(losses, noise), printed_play(losses, noise)
    assert_share(
        int(np.sum(chosen == 0)), chosen.size, float(expected[0]), rivals=[float(printed[0])]
    )


@pytest.mark.statistical
def test_the_printed_sign_is_what_is_drawn_with_it(rng: np.random.Generator) -> None:
    losses, noise = np.array([0.0, 1.0, 1.5, 3.0]), Exponential(2.0)
    chosen = np.argmin(losses + draws(noise, rng.random((200_000, 4))), axis=1)
    expected, printed = expected_play(losses, noise), printed_play(losses, noise)
    assert_share(
        int(np.sum(chosen == 0)), chosen.size, float(printed[0]), rivals=[float(expected[0])]
    )


LOSSES = some.lists(some.floats(0, 50), min_size=2, max_size=6)


@pytest.mark.property
@given(some.sampled_from(NOISES), LOSSES, some.floats(-1e3, 1e3))
def test_only_differences_count_and_order_does_not(
    noise: Perturbation, losses: list[float], shift: float
) -> None:
    found = expected_play(losses, noise)
    assert found.sum() == pytest.approx(1.0, abs=1e-14)
    # A shift of 1000 rounds the differences by 1e-13, and a difference of that moves no play by
    # more.
    np.testing.assert_allclose(
        expected_play(np.add(losses, shift), noise), found, rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(
        expected_play(losses[::-1], noise)[::-1], found, rtol=1e-11, atol=1e-300
    )


@pytest.mark.property
@given(some.sampled_from(NOISES), LOSSES, some.floats(0.01, 10))
def test_a_loss_of_others_never_hurts(
    noise: Perturbation, losses: list[float], more: float
) -> None:
    before, after = (
        expected_play(losses, noise),
        expected_play([losses[0], *np.add(losses[1:], more)], noise),
    )
    assert after[0] >= before[0] * (1 - 1e-12)
    assert expected_play([losses[0] + more, *losses[1:]], noise)[0] <= before[0] * (1 + 1e-12)


@pytest.mark.unit
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_losses_of_a_million_do_no_harm(noise: Perturbation) -> None:
    losses = np.array([[1e6, 1e6 + 1, 2e6], [0.0, 1e6, 1e6], [1e6, 1e6, 1e6]])
    found = expected_play(losses, noise)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(found[2], 1 / 3, rtol=1e-12)
    assert found[1, 0] > 0.999
    # A third candidate a million behind takes part of at most its tail there, 1e-14 for the
    # heaviest.
    np.testing.assert_allclose(found[0, :2], expected_play([0.0, 1.0], noise), rtol=1e-12)


@pytest.mark.unit
def test_a_round_ahead_knows_its_own_losses() -> None:
    losses = np.array([[0.5, 0.0], [0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(play(losses, leader), [[0.5, 0.5], [0, 1], [1, 0]])
    np.testing.assert_array_equal(lookahead_play(losses, leader), [[0, 1], [1, 0], [0, 1]])
    rule = perturbed_leader(Gumbel(1.0))
    np.testing.assert_allclose(
        lookahead_play(losses, rule)[:-1], play(losses, rule)[1:], rtol=1e-15
    )


@pytest.mark.unit
def test_what_is_not_losses_is_refused() -> None:
    with pytest.raises(InvalidInput, match="finite"):
        expected_play([0.0, math.inf], Gumbel(1.0))
    with pytest.raises(InvalidInput, match=r"shape \(0,\)"):
        leader([])
    with pytest.raises(InvalidParameter, match="rate"):
        hedge([0.0, 1.0], -1.0)


@pytest.mark.unit
def test_a_large_loss_does_not_hide_what_came_before() -> None:
    losses = np.array([[1.0, 0.0], [1e17, 0.0], [0.0, 0.0]])
    assert play(losses, leader).tolist() == [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]]
    # Rates and noises of about 1, as for losses in [0, 1]: a loss of 1 must count in the second
    # round.
    assert play_doubling(losses, "gumbel")[1, 0] < 0.4
    plays = ball_play(losses, 1.0, center=[0.0, 0.0], radius=1.0)
    assert plays[1].tolist() == (-expected_direction([[1.0, 0.0]], 1.0)[0]).tolist()


@pytest.mark.unit
def test_quadrature_that_misses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simplex, "_sums", lambda gaps, *_: np.full(gaps.shape, 0.4))
    with pytest.raises(SolverFailed, match=r"add up to 1, missed by 0\.2"):
        by_quadrature([[0.0, 1.0]], Pareto(2.0, 1.0))
