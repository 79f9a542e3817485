"""Every bound on every sequence; what is printed and does not hold, and what breaks a bound."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from experiments.online.stability import path_privacy
from hypothesis import given
from hypothesis import strategies as some
from scipy import optimize

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.online.laws import Gumbel
from sfumato.online.perturbations import NAMES, excess, perturbation
from sfumato.online.regrets import (
    best_loss,
    doubling_bound,
    first_order_bound,
    play_doubling,
    regret,
    regret_bound,
    tuned_epsilon,
    unit_excess,
)
from sfumato.online.sequences import SEQUENCES, leader_killer
from sfumato.online.simplex import hedge, leader, lookahead_play, perturbed_leader, play

FloatArray = npt.NDArray[np.float64]
ROUNDS, COUNT = 250, 8


@pytest.fixture(params=SEQUENCES)
def losses(request: pytest.FixtureRequest, rng: np.random.Generator) -> FloatArray:
    return SEQUENCES[request.param](ROUNDS, COUNT, rng=rng)


@pytest.mark.unit
@pytest.mark.parametrize("name", NAMES)
def test_the_perturbed_leader_keeps_all_its_bounds(name: str, losses: FloatArray) -> None:
    best = best_loss(losses)
    epsilon = tuned_epsilon(name, best, count=COUNT)
    noise = perturbation(name, epsilon, count=COUNT)
    rule, ahead = perturbed_leader(noise), excess(noise, COUNT)
    plays = play(losses, rule)
    assert path_privacy(plays) <= epsilon * (1 + 1e-6)
    assert regret(losses, lookahead_play(losses, rule)) <= ahead
    bound = regret_bound(epsilon, best_loss=best, ahead=ahead)
    assert regret(losses, plays) <= bound
    # Theorem 12.3 and Theorem 13.1 with constants are both weaker.
    assert bound <= 2 * epsilon * best + 3 * ahead
    assert bound <= first_order_bound(name, best, count=COUNT)
    assert regret(losses, play_doubling(losses, name)) <= doubling_bound(name, best, count=COUNT)


@pytest.mark.unit
def test_the_leader_without_noise_breaks_every_bound(rng: np.random.Generator) -> None:
    losses = leader_killer(1000, COUNT, rng=rng)
    best = best_loss(losses)
    lost = regret(losses, play(losses, leader))
    assert lost == pytest.approx(500, abs=1)
    assert all(lost > first_order_bound(name, best, count=COUNT) for name in NAMES)
    assert regret(losses, lookahead_play(losses, leader)) <= 0


@pytest.mark.unit
def test_noise_too_small_for_its_epsilon_breaks_the_bound(rng: np.random.Generator) -> None:
    losses = leader_killer(1000, COUNT, rng=rng)
    best, epsilon = best_loss(losses), tuned_epsilon("gumbel", best_loss(losses), count=COUNT)
    bound = regret_bound(
        epsilon, best_loss=best, ahead=unit_excess("gumbel", count=COUNT) / epsilon
    )
    assert regret(losses, play(losses, perturbed_leader(Gumbel(1 / epsilon)))) <= bound
    assert regret(losses, play(losses, perturbed_leader(Gumbel(0.1 / epsilon)))) > bound


@pytest.mark.property
@given(some.lists(some.lists(some.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=12))
def test_stability_bounds_the_regret_of_the_leader(losses: list[list[float]]) -> None:
    # Lemma 12.1: the regret is at most what a round ahead would have saved.
    saved = np.sum((play(losses, leader) - lookahead_play(losses, leader)) * losses)
    assert regret(losses, play(losses, leader)) <= saved + 1e-12


@pytest.mark.unit
def test_the_leader_of_section_12_1_as_printed_wins() -> None:
    # X = [-1, 1], losses -0.5, 1, -1, 1, ...: the plays printed have the wrong sign, x = -sign(L)
    # is 1 first.
    losses = np.array([-0.5] + [(-1.0) ** t for t in range(999)])
    so_far = np.cumsum(losses) - losses
    best = -abs(losses.sum())
    assert np.sum(-np.sign(so_far) * losses) - best == losses.size - 0.5
    printed = np.array([0.0] + [-((-1.0) ** t) for t in range(999)])
    assert np.sum(printed * losses) - best < -900
    late = -np.sign(
        np.append(0.0, so_far[:-1])
    )  # arg min <x, L_t-1> for x_t+1 looks two rounds back
    assert np.sum(late * losses) - best < -900


@pytest.mark.reference
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("best", [0.0, 0.3, 50.0, 1e6])
def test_no_other_epsilon_has_a_smaller_bound(name: str, best: float) -> None:
    unit = unit_excess(name, count=16)

    def at(log: float) -> float:
        return regret_bound(math.exp(log), best_loss=best, ahead=unit / math.exp(log))

    found = optimize.minimize_scalar(
        at, bounds=(-12, 1), method="bounded", options={"xatol": 1e-10}
    )
    epsilon = tuned_epsilon(name, best, count=16)
    assert at(math.log(epsilon)) <= found.fun * (1 + 1e-9)
    # The minimum is flat: a relative error of the bound is half the square of one of epsilon.
    assert math.log(epsilon) == pytest.approx(found.x, abs=1e-5)
    assert epsilon <= 1


@pytest.mark.unit
@pytest.mark.parametrize("name", NAMES)
def test_the_expected_maximum_is_of_order_ln_count(name: str) -> None:
    ratios = [unit_excess(name, count=n) / math.log(n) for n in (2, 7, 16, 100, 1000, 100_000)]
    assert max(ratios) <= 2.9
    if name in {"gumbel", "exponential", "pareto"}:
        # (12.1) has E max Z, which is more by the mean.
        noise = perturbation(name, 1.0, count=16)
        assert noise.mean > 0.2 * excess(noise, 16)


@pytest.mark.unit
def test_losses_and_gains_have_no_such_bound() -> None:
    # Theorem 12.3 is about losses: with gains L* = -T/2, and the bound is below 0 while the regret
    # is not.
    losses = np.tile([[-1.0, 0.0], [0.0, -1.0]], (200, 1))
    plays = play(losses, lambda sums: hedge(sums, 0.5))
    said = math.expm1(0.5) * best_loss(losses) + math.exp(0.5) * math.log(2) / 0.5
    assert said < 0 < regret(losses, plays)
    with pytest.raises(InvalidParameter, match="at least 0"):
        regret_bound(0.5, best_loss=best_loss(losses), ahead=1.0)


@pytest.mark.unit
def test_a_better_guess_is_not_worse_by_more_than_a_factor() -> None:
    # Thm 13.1 without knowing L*: the root of L* with a larger constant, 4 + 2 e in the limit of
    # large L*.
    for best in (10.0, 1e3, 1e6, 1e9):
        known = first_order_bound("gumbel", best, count=16)
        assert doubling_bound("gumbel", best, count=16) <= 5 * known


@pytest.mark.unit
def test_tables_that_do_not_fit_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(InvalidInput, match="one shape"):
        regret([[1.0, 0.0]], [[1.0]])
    with pytest.raises(InvalidParameter, match="at least 2 candidates"):
        tuned_epsilon("gumbel", 1.0, count=1)
    with pytest.raises(InvalidParameter, match="at least 1 round"):
        SEQUENCES["perfect"](0, 4, rng=rng)


@pytest.mark.unit
def test_losses_above_one_are_refused_and_would_break_the_bounds(rng: np.random.Generator) -> None:
    """A hundred times the losses of the leader's killer pass the bound of their best loss."""
    losses = leader_killer(1000, COUNT, rng=rng)
    told = regret(
        losses,
        play(losses, perturbed_leader(Gumbel(1 / tuned_epsilon("gumbel", losses, count=COUNT)))),
    )
    assert told <= first_order_bound("gumbel", losses, count=COUNT)
    assert first_order_bound("gumbel", losses, count=COUNT) == first_order_bound(
        "gumbel", best_loss(losses), count=COUNT
    )
    large = 100 * losses
    epsilon = tuned_epsilon("gumbel", best_loss(large), count=COUNT)
    lost = regret(large, play(large, perturbed_leader(Gumbel(1 / epsilon))))
    assert lost > first_order_bound("gumbel", best_loss(large), count=COUNT)
    asked: list[Callable[[FloatArray], object]] = [
        lambda table: first_order_bound("gumbel", table, count=COUNT),
        lambda table: doubling_bound("gumbel", table, count=COUNT),
        lambda table: tuned_epsilon("gumbel", table, count=COUNT),
        lambda table: regret_bound(0.5, best_loss=table, ahead=1.0),
    ]
    for bound in asked:
        for wrong in (large, -losses, np.full_like(losses, np.nan)):
            with pytest.raises(
                InvalidParameter, match="losses must be between 0 and 1, got some from"
            ):
                bound(wrong)
