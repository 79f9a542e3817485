"""Learners of directions to throw away: their plays by hand, their bounds, and a corollary that fails."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from experiments.online.ensemble import gaussian_orthogonal, symmetric_laplace
from experiments.online.pca import (
    average,
    draw_projection,
    exponentiated_bound,
    exponentiated_gradient,
    gaussian_bound,
    laplace_gain,
    lookahead_play,
    pca_best_loss,
    pca_leader,
    pca_regret,
    perturbed_leader,
    perturbed_regrets,
    play,
    running_totals,
    tuned_rate,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from tests.chance import assert_share

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.online.regrets import regret_bound
from sfumato.privacy import gaussian_sigma

FloatArray = npt.NDArray[np.float64]

SURE = 1 - 1e-6


def cycle(size: int, cycles: int) -> FloatArray:
    """Every axis but the first in turn: the first loses nothing."""
    return np.eye(size)[1 + np.arange(cycles * (size - 1)) % (size - 1)]


def leader_killer(rounds: int, size: int = 2) -> FloatArray:
    """Half a loss on the first axis, then the second, the first, ...: always what the leader plays."""
    points = np.eye(size)[np.arange(rounds) % 2]
    points[0] *= math.sqrt(0.5)
    return points


def sphere(rounds: int, size: int, rng: np.random.Generator) -> FloatArray:
    points = rng.normal(size=(rounds, size)) * np.linspace(0.3, 1, size)
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


# --- plays ---


@pytest.mark.unit
def test_plays_by_hand() -> None:
    total = np.diag([3.0, 0.0, 1.0])
    assert pca_leader(total, 1) == pytest.approx(np.diag([0.0, 1, 0]))
    assert pca_leader(total, 2) == pytest.approx(np.diag([0.0, 1, 1]))
    assert pca_leader(0 * total, 2) == pytest.approx(np.eye(3) * 2 / 3)  # all are tied
    assert perturbed_leader(total, 1, noise=np.diag([4.0, 0, 0])) == pytest.approx(
        np.diag([1.0, 0, 0])
    )
    weights = np.exp([-3.0, 0, -1])
    assert exponentiated_gradient(total, 1, rate=1.0) == pytest.approx(
        np.diag(weights / weights.sum())
    )
    # For two the second axis would get 1.41: it is capped, and the others share the rest.
    rest = np.exp([-3.0, -np.inf, -1])
    two = exponentiated_gradient(total, 2, rate=1.0)
    assert two == pytest.approx(np.diag(rest / rest.sum()) + np.diag([0.0, 1, 0]))


@pytest.mark.reference
def test_the_capped_play_solves_its_problem(rng: np.random.Generator) -> None:
    """It minimises rate <X, total> + sum of x ln x over plays: eigenvalues against a general solver.

    Without the cap some eigenvalue exceeds 1, which is no play.
    """
    uncapped_fails = False
    for size, rank in ((4, 2), (6, 3), (6, 5)):
        total = running_totals(sphere(12, size, rng))[-1]
        x = np.linalg.eigvalsh(exponentiated_gradient(total, rank, rate=1.5))[::-1]
        values = 1.5 * np.linalg.eigvalsh(total)

        def objective(z: FloatArray, values: FloatArray = values) -> float:
            return float(values @ z + (z * np.log(np.maximum(z, 1e-300))).sum())

        found = optimize.minimize(
            objective,
            [rank / size] * size,
            bounds=[(1e-12, 1.0)] * size,
            constraints=optimize.LinearConstraint(np.ones((1, size)), rank, rank),
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert x.sum() == pytest.approx(rank)
        assert x.max() <= 1 + 1e-12
        # SLSQP ends within 1e-6 of the optimum; the objective is 1-strongly convex, so plays within
        # 2e-3.
        assert objective(np.asarray(x, np.float64)) <= found.fun + 1e-9
        assert x == pytest.approx(found.x, abs=2e-3)
        uncapped_fails |= bool((rank * np.exp(-values) / np.exp(-values).sum()).max() > 1)
    assert uncapped_fails


@pytest.mark.unit
def test_losses_of_a_million_do_no_harm() -> None:
    play = exponentiated_gradient(np.diag([1e6, 1e6 + 1, 3e6]), 1, rate=1.0)
    assert np.diag(play) == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e), 0])


@pytest.mark.statistical
def test_a_drawn_projection_has_the_play_as_its_mean(rng: np.random.Generator) -> None:
    play = np.diag([0.9, 0.6, 0.5, 0.0])
    drawn = np.array([np.diag(draw_projection(play, rng=rng)) for _ in range(4000)])
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert (drawn.sum(axis=1) == 2).all()
    assert not drawn[:, 3].any()
    for place, share in enumerate((0.9, 0.6, 0.5)):
        assert_share(int(drawn[:, place].sum()), 4000, share, rivals=[share - 0.09, 2 / 3 + 0.1])
    points = sphere(30, 5, rng)
    turned = exponentiated_gradient(points.T @ points, 2, rate=0.3)
    whole = draw_projection(turned, rng=rng)
    assert whole @ whole == pytest.approx(whole)
    assert np.trace(whole) == pytest.approx(2)


# --- regret ---


@pytest.mark.unit
def test_the_leader_is_led_astray() -> None:
    """It loses 1 in each of 199 rounds, after 1/4; the best fixed axis loses 99.5 (errata of sec. 12.1)."""
    points = leader_killer(200)
    lost = pca_regret(points, 1, plays=play(points, lambda total: pca_leader(total, 1)))
    assert lost == pytest.approx(199.25 - 99.5)
    # Lemma 12.1: to know one point ahead is to regret nothing.
    assert (
        pca_regret(points, 1, plays=lookahead_play(points, lambda total: pca_leader(total, 1)))
        <= 1e-9
    )
    rate = tuned_rate(99.5, size=2, rank=1)
    calm = pca_regret(
        points, 1, plays=play(points, lambda x: exponentiated_gradient(x, 1, rate=rate))
    )
    assert calm < 8


@pytest.mark.unit
def test_the_loss_is_the_compression_error(rng: np.random.Generator) -> None:
    """Of keeping the other directions. The thesis replaces |Xa - a|^2 by a'Xa for the X that is kept."""
    points = sphere(50, 4, rng)
    thrown = pca_leader(points.T @ points, 1)
    kept = np.eye(4) - thrown
    error = float(((points @ kept - points) ** 2).sum())
    assert error == pytest.approx(pca_best_loss(points, 1))
    assert error == pytest.approx(np.linalg.svd(points, compute_uv=False)[-1] ** 2)
    assert float(np.einsum("ti,ij,tj", points, kept, points)) > 5 * error


@pytest.mark.property
@given(
    st.integers(2, 5).flatmap(lambda size: st.tuples(st.just(size), st.integers(1, size - 1))),
    st.floats(0.05, 5),
    st.lists(
        st.tuples(st.integers(0, 4), st.floats(0, 1), st.floats(-3, 3)), min_size=1, max_size=40
    ),
)
def test_exponentiated_gradient_keeps_its_bound(
    shape: tuple[int, int], rate: float, steps: list[tuple[int, float, float]]
) -> None:
    size, rank = shape
    points = np.zeros((len(steps), size))
    for row, (axis, length, angle) in zip(points, steps, strict=True):
        row[axis % size] = length * math.cos(angle)
        row[(axis + 1) % size] = length * math.sin(angle)
    plays = play(points, lambda total: exponentiated_gradient(total, rank, rate=rate))
    best = pca_best_loss(points, rank)
    bound = exponentiated_bound(best, size=size, rank=rank, rate=rate)
    assert pca_regret(points, rank, plays=plays) <= bound + 1e-9


@pytest.mark.unit
def test_the_bound_of_exponentiated_gradient_is_nearly_attained() -> None:
    """A bound smaller by 5 % would be false; and the tuned rate keeps its closed form."""
    points = cycle(16, 40)
    plays = play(points, lambda total: exponentiated_gradient(total, 1, rate=1.0))
    lost, bound = (
        pca_regret(points, 1, plays=plays),
        exponentiated_bound(0, size=16, rank=1, rate=1.0),
    )
    assert 0.95 * bound < lost < bound
    for best in (0.5, 20.0, 3000.0):
        entropy = 3 * math.log(8 / 3)
        rate = tuned_rate(best, size=8, rank=3)
        closed = math.sqrt(2 * best * entropy) + entropy
        assert exponentiated_bound(best, size=8, rank=3, rate=rate) <= closed * (1 + 1e-12)
        assert exponentiated_bound(best, size=8, rank=3, rate=rate) > 0.6 * closed


# --- the perturbed leader ---


@pytest.mark.property
@pytest.mark.parametrize("rank", [1, 3])
def test_what_the_perturbed_leader_gains_lies_between_being_and_following(
    rank: int, rng: np.random.Generator
) -> None:
    """For each noise: being <= gain - residue <= following, as the least perturbed loss is concave.

    With expectations it says that no sequence that settles costs the follower less than the gain.
    """
    points = sphere(60, 5, rng)
    laplace = [symmetric_laplace(5, 1.0, rng=rng) for _ in range(15)]
    gaussian = [gaussian_orthogonal(5, 3.0, rng=rng) for _ in range(15)]
    noises = np.array(laplace + gaussian)
    followed, been = perturbed_regrets(points, rank, noises=noises)
    gain = np.linalg.eigvalsh(noises)[:, -rank:].sum(axis=1)
    perturbed_best = np.linalg.eigvalsh(points.T @ points - noises)[:, :rank].sum(axis=1)
    middle = gain - (pca_best_loss(points, rank) - perturbed_best)
    assert (been <= middle + 1e-9).all()
    assert (middle <= followed + 1e-9).all()
    assert (been < followed).all()


@pytest.mark.unit
def test_kept_noise_is_the_learner_with_that_noise(rng: np.random.Generator) -> None:
    points, noise = sphere(20, 4, rng), symmetric_laplace(4, 1.0, rng=rng)

    def learner(total: FloatArray) -> FloatArray:
        return perturbed_leader(total, 2, noise=noise)

    followed, been = perturbed_regrets(points, 2, noises=noise[None])
    assert followed == pytest.approx([pca_regret(points, 2, plays=play(points, learner))])
    assert been == pytest.approx([pca_regret(points, 2, plays=lookahead_play(points, learner))])


@pytest.mark.statistical
def test_fresh_noise_costs_the_same_on_average(rng: np.random.Generator) -> None:
    """Against points fixed in advance [mcmillan18, sec. 12.2]; noise of half the size is told apart."""
    points = leader_killer(30, size=3)

    def fresh(total: FloatArray) -> FloatArray:
        return perturbed_leader(total, 1, noise=gaussian_orthogonal(3, 2.0, rng=rng))

    new = average(
        np.array([pca_regret(points, 1, plays=play(points, fresh)) for _ in range(120)]),
        confidence=SURE,
    )

    def kept(sigma: float) -> FloatArray:
        noises = np.array([gaussian_orthogonal(3, sigma, rng=rng) for _ in range(1000)])
        return perturbed_regrets(points, 1, noises=noises)[0]

    same, less = average(kept(2.0), confidence=SURE), average(kept(0.5), confidence=SURE)
    assert new.low < same.high
    assert same.low < new.high
    assert not (new.low < less.high and less.low < new.high)


@pytest.mark.statistical
def test_theorem_12_3_holds_with_the_gain_there_is(rng: np.random.Generator) -> None:
    """Being costs at most the gain, following at most the bound, for both ensembles; surely, both."""
    size, rank, epsilon = 4, 2, 0.5
    gain = laplace_gain(size, rank, draws=150, rng=rng, confidence=SURE)
    laplace = np.array([symmetric_laplace(size, epsilon, rng=rng) for _ in range(150)])
    sigma = gaussian_sigma(epsilon, 1e-3, sensitivity=1)
    gaussian = np.array([gaussian_orthogonal(size, sigma, rng=rng) for _ in range(150)])
    for points in (leader_killer(60, size), cycle(size, 20), sphere(60, size, rng)):
        best = pca_best_loss(points, rank)
        followed, been = perturbed_regrets(points, rank, noises=laplace)
        assert average(been, confidence=SURE).low < gain.high / epsilon
        bound = regret_bound(epsilon, best_loss=best, ahead=gain.low / epsilon)
        assert average(followed, confidence=SURE).high < bound
        followed, _ = perturbed_regrets(points, rank, noises=gaussian)
        bound = gaussian_bound(
            best, size=size, rank=rank, rounds=len(points), epsilon=epsilon, delta=1e-3
        )
        assert average(followed, confidence=SURE).high < bound


@pytest.mark.statistical
def test_corollary_12_7_fails_at_size_16(rng: np.random.Generator) -> None:
    """The best loses 0, so epsilon = 1, and lemma 12.6 with theorem 12.3 leaves 3 (1 + ln 16) = 11.3.

    Measured 21; to go on adds more, since no round loses less than the best. Being the leader loses
    more than the 3.8 of lemma 12.6 too. The learner we recommend loses 4.3.
    """
    noises = np.array([symmetric_laplace(16, 1.0, rng=rng) for _ in range(30)])
    points = cycle(16, 30)
    followed, been = perturbed_regrets(points, 1, noises=noises)
    printed = 1 + math.log(16)
    assert average(been, confidence=SURE).low > printed
    assert average(followed, confidence=SURE).low > 3 * printed
    plays = play(points, lambda total: exponentiated_gradient(total, 1, rate=1.0))
    assert pca_regret(points, 1, plays=plays) < 4.4


@pytest.mark.statistical
def test_the_gaussian_gain_is_below_its_bound(rng: np.random.Generator) -> None:
    """At most sigma sqrt(2 size), by Sudakov and Fernique; 0.8 of it would be too little at size 30."""
    drawn = np.array([gaussian_orthogonal(30, 1.0, rng=rng) for _ in range(60)])
    top = average(np.linalg.eigvalsh(drawn)[:, -1], confidence=SURE)
    assert 0.8 * math.sqrt(60) < top.low
    assert top.high < math.sqrt(60)


# --- estimates and errors ---


@pytest.mark.unit
def test_an_estimate_by_hand() -> None:
    found = average(np.array([1.0, 3.0]), confidence=0.5)
    # Student's t with one degree of freedom has its upper quartile at 1; the standard error is 1.
    assert (found.mean, found.low, found.high, found.draws) == pytest.approx((2, 1, 3, 2))


@pytest.mark.unit
def test_bad_input_gets_one_sentence(rng: np.random.Generator) -> None:
    square = np.eye(3)
    parameters: list[tuple[Callable[[], object], str]] = [
        (
            lambda: pca_leader(square, 3),
            "rank must be at least 1 and below the size 3, got 3; nothing was computed",
        ),
        (lambda: exponentiated_gradient(square, 0, rate=1.0), "rank must be"),
        (lambda: exponentiated_gradient(square, 1, rate=0.0), "rate must be positive"),
        (lambda: tuned_rate(0.0, size=3, rank=1), "best must be positive"),
        (lambda: exponentiated_bound(1.0, size=3, rank=1, rate=math.inf), "rate must be"),
        (lambda: regret_bound(-0.1, best_loss=1.0, ahead=1.0), "epsilon must be"),
        (lambda: laplace_gain(3, 3, draws=2, rng=rng), "rank must be"),
        (lambda: average(np.ones(3), confidence=1.0), "confidence must be"),
    ]
    for call, message in parameters:
        with pytest.raises(InvalidParameter, match=message):
            call()
    inputs: list[tuple[Callable[[], object], str]] = [
        (lambda: pca_leader(np.ones((2, 3)), 1), "square, finite and symmetric"),
        (lambda: pca_leader(np.triu(np.ones((3, 3))), 1), "square, finite and symmetric"),
        (lambda: pca_regret(square, 1, plays=square), "one square matrix for each of 3 points"),
        (lambda: perturbed_regrets(square, 1, noises=square), r"matrices of shape \(3, 3\)"),
        (
            lambda: play(np.full((1, 2), 1.0), lambda total: pca_leader(total, 1)),
            "length of at most 1, got 1.4",
        ),
        (lambda: pca_best_loss(np.array([[np.nan, 0]]), 1), "finite array"),
        (lambda: draw_projection(0.4 * square, rng=rng), "add up to an integer"),
        (lambda: draw_projection(np.diag([1.5, 0.5, 0]), rng=rng), r"eigenvalues in \[0, 1\]"),
        (lambda: average(np.ones(1)), "two finite values"),
    ]
    for call, message in inputs:
        with pytest.raises(InvalidInput, match=message):
            call()
