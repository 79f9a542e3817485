"""One-step privacy measured against the hazard, Proposition 13.4, and the sign that breaks both."""

from __future__ import annotations

import math

import numpy as np
import pytest
from experiments.online.stability import (
    consistency,
    lipschitz_bound,
    log_ratios,
    one_step_privacy,
    path_privacy,
    printed_play,
)

from sfumato.errors import InvalidParameter
from sfumato.online.laws import Gaussian, Gumbel, Laplace, Weibull
from sfumato.online.perturbations import NAMES, perturbation
from sfumato.online.simplex import expected_play

EPSILON = 0.2


@pytest.mark.unit
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [2, 8, 20])
def test_one_step_privacy_is_the_hazard_at_most(name: str, count: int) -> None:
    found = one_step_privacy(perturbation(name, EPSILON, count=count), count)
    assert found.bound == pytest.approx(EPSILON, rel=1e-14)
    assert found.measured <= EPSILON * (1 + 1e-6)
    assert found.measured >= 0.75 * EPSILON  # the search finds most of what there is
    assert len(found.losses) == count


@pytest.mark.unit
@pytest.mark.parametrize("name", [name for name in NAMES if name != "laplace"])
def test_with_the_printed_sign_the_hazard_bounds_nothing(name: str) -> None:
    # argmin(L + Z): candidate 0 far behind, the others level; one more loss costs it far more than
    # epsilon.
    for count, (low, high) in {4: (0.505, 0.605), 8: (1.255, 1.405)}.items():
        noise = perturbation(name, EPSILON, count=count)
        gaps = np.concatenate([np.linspace(0, 12, 25), [40.0]])
        before = np.column_stack([gaps, np.zeros((gaps.size, count - 1))])
        after = before + np.eye(count)[0]
        printed = log_ratios(printed_play(before, noise), printed_play(after, noise)).max()
        right = log_ratios(expected_play(before, noise), expected_play(after, noise)).max()
        assert right <= EPSILON * (1 + 1e-6)
        assert low < printed < high
        if name == "exponential":
            assert printed == pytest.approx((count - 1) * EPSILON, rel=1e-3)


@pytest.mark.unit
def test_for_laplace_noise_both_signs_are_one() -> None:
    losses = np.array([[0.0, 1.0, 7.0, 30.0]])
    wanted = expected_play(losses, Laplace(5.0))
    np.testing.assert_allclose(printed_play(losses, Laplace(5.0)), wanted, atol=1e-4)


@pytest.mark.unit
@pytest.mark.parametrize("name", NAMES)
def test_logarithms_of_plays_are_lipschitz_in_the_oscillation(
    name: str, rng: np.random.Generator
) -> None:
    noise = perturbation(name, EPSILON, count=5)
    reached = []
    for spread in (1.0, 10.0, 40.0):
        losses, moved = spread * rng.random((40, 5)), rng.normal(0, 4, (40, 5))
        found = log_ratios(expected_play(losses, noise), expected_play(losses + moved, noise)).max(
            axis=1
        )
        for row, (at, move) in enumerate(zip(losses, moved, strict=True)):
            bound = lipschitz_bound(at, at + move, noise=noise)
            assert found[row] <= bound * (1 + 1e-9)
            assert bound <= EPSILON * np.abs(move).sum() * (1 + 1e-12)  # the norm of Prop. 13.4
            reached.append(found[row] / bound)
    assert max(reached) > 0.4  # so that half the bound would not do


@pytest.mark.unit
def test_losses_of_all_cost_nothing() -> None:
    # In l1, the norm printed, the bound would be 5 epsilon; as Theorem 13.1 needs it, it is epsilon
    # or less.
    noise, losses = Gumbel(5.0), np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert lipschitz_bound(losses, losses + 1, noise=noise) == 0
    np.testing.assert_allclose(
        expected_play(losses + 1, noise), expected_play(losses, noise), rtol=1e-14
    )


@pytest.mark.unit
@pytest.mark.parametrize("name", NAMES)
def test_bounded_hazards_are_differentially_consistent(name: str, rng: np.random.Generator) -> None:
    noise = perturbation(name, EPSILON, count=4)
    found = [consistency(30 * rng.random(4), noise).max() for _ in range(10)]
    assert max(found) <= EPSILON * (1 + 1e-9)
    assert max(found) > 0.5 * EPSILON


@pytest.mark.unit
def test_weibull_noise_of_theorem_13_1_need_not_be_consistent() -> None:
    # Its density is infinite at 0: level candidates tell one loss, the smaller the clearer.
    noise = Weibull(0.4, 5.0)
    speeds = [consistency([0.0, 0.0], noise, step=step).max() for step in (1e-2, 1e-4, 1e-6)]
    assert speeds[0] < 0.5 * speeds[1] < 0.25 * speeds[2]


@pytest.mark.unit
def test_gaussian_noise_has_no_one_step_privacy() -> None:
    noise = Gaussian(5.0)
    behind = np.array([[gap, 0.0] for gap in (10.0, 50.0, 150.0)])
    lost = log_ratios(
        expected_play(behind, noise), expected_play(behind + np.array([1.0, 0.0]), noise)
    ).max(axis=1)
    # ln of normal tails at g / (5 sqrt 2): about g / 50 for each unit of loss, without end.
    np.testing.assert_allclose(lost[1:], [50.5 / 50, 150.5 / 50], rtol=0.05)
    assert one_step_privacy(noise, 2).bound == math.inf


@pytest.mark.unit
def test_what_vanishes_is_seen() -> None:
    assert path_privacy([[0.5, 0.5], [1.0, 0.0]]) > 500
    assert path_privacy([[0.5, 0.5]]) == 0
    with pytest.raises(InvalidParameter, match="at least 2"):
        one_step_privacy(Gumbel(1.0), 1)
