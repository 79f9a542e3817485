"""The symmetric Laplace law against an oracle by rejection; what the thesis says of it, and what is so."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from experiments.online import ensemble
from experiments.online.ensemble import (
    gaussian_orthogonal,
    haar,
    laplace_eigenvalues,
    least_top,
    nuclear_norm,
    privacy_loss,
    symmetric_laplace,
)
from experiments.online.ensemble_kernel import run
from scipy import integrate, optimize, stats
from tests.chance import assert_law, assert_share

from sfumato.errors import InvalidInput, InvalidParameter, SolverFailed

FloatArray = npt.NDArray[np.float64]
Cdf = Callable[[npt.NDArray[np.int64]], FloatArray]

FINE = 10_000  # the laws of chance.py are of integers


# --- oracles and rivals ---


def proportions(
    size: int, rng: np.random.Generator, *, count: int
) -> tuple[FloatArray, FloatArray]:
    """Points x of the l1 sphere, evenly, ascending; and the product of |x_i - x_j| over a bound of it.

    By the inequality of means over pairs that is at most (2 / (size - 1))^(pairs / 2) on the
    sphere, where the sum of (x_i - x_j)^2 is at most size.
    """
    x = np.sort(
        rng.dirichlet(np.ones(size), count) * rng.choice([-1.0, 1.0], (count, size)), axis=1
    )
    product = np.ones(count)
    for i, j in itertools.combinations(range(size), 2):
        product *= (x[:, j] - x[:, i]) / math.sqrt(2 / (size - 1))
    return x, product


def two_by_rejection(rng: np.random.Generator, *, count: int) -> FloatArray:
    """Pairs of eigenvalues: proportions kept with the chance of their product, times a Gamma(3) size."""
    x, product = proportions(2, rng, count=4 * count)  # more than half are kept
    kept = x[rng.random(4 * count) < product][:count]
    assert len(kept) == count
    return np.asarray(kept * rng.gamma(3, size=(count, 1)))


def gamma(shape: float, scale: float = 1.0) -> Cdf:
    return lambda x: np.asarray(stats.gamma.cdf((x + 1) / FINE, shape, scale=scale))


def empirical(sample: FloatArray, weights: FloatArray) -> Cdf:
    order = np.argsort(sample)
    ordered, reached = fine(sample[order]), np.append(0.0, np.cumsum(weights[order]))
    return lambda x: reached[np.searchsorted(ordered, x, side="right")] / reached[-1]


def fine(sample: FloatArray) -> npt.NDArray[np.int64]:
    return np.floor(sample * FINE).astype(np.int64)


# --- the sampler ---


@pytest.mark.reference
def test_a_sweep_draws_what_quadrature_says(rng: np.random.Generator) -> None:
    """Each eigenvalue in turn becomes the u-quantile of its law given the others."""
    size = 4
    points, primitive = ensemble._panel(size + 18)
    state, uniforms = np.array([-6.0, -0.5, 1.0, 9.0]), rng.random((1, 2 * size))
    expected = state.copy()
    for i, u in zip([*range(size), *reversed(range(size))], uniforms[0], strict=True):
        others = np.delete(expected, i)
        low = -60.0 if i == 0 else expected[i - 1]
        high = 60.0 if i == size - 1 else expected[i + 1]

        def mass(begin: float, end: float, others: FloatArray = others) -> float:
            def density(x: float) -> float:
                return math.exp(-abs(x)) * float(np.abs(x - others).prod())

            edges = [begin, *(x for x in (-20.0, -6.0, 0.0, 6.0, 20.0) if begin < x < end), end]
            return sum(
                integrate.quad(density, *edge, epsabs=0, epsrel=1e-12)[0]
                for edge in itertools.pairwise(edges)
            )

        whole = mass(low, high)

        def excess(x: float, low: float = low, part: float = u * whole, mass: Any = mass) -> float:
            return float(mass(low, x)) - part

        expected[i] = optimize.brentq(excess, low, high, xtol=1e-12)
    run(state, uniforms, points, primitive)
    # Quantiles move by at most errors / density; the density at these is above 1e-3 of the whole.
    assert state == pytest.approx(expected, abs=1e-8)


@pytest.mark.property
def test_the_heat_bath_keeps_the_order_of_states(rng: np.random.Generator) -> None:
    """What coupling from the past stands on: below stays below, from anywhere, through the same uniforms."""
    for size in (2, 3, 7):
        points, primitive = ensemble._panel(size + 18)
        for _ in range(30):
            low = np.sort(rng.normal(scale=size, size=size))
            high = np.sort(low + rng.exponential(size=size) * (rng.random(size) < 0.5))
            uniforms = rng.random((2, 2 * size))
            run(low, uniforms, points, primitive)
            run(high, uniforms, points, primitive)
            assert (low <= high + 1e-10).all()
            assert (np.diff(low) >= 0).all()


@pytest.mark.unit
def test_a_longer_past_changes_nothing(rng: np.random.Generator) -> None:
    """Whatever state came before what was drawn, it ends within the gap of the draw.

    Draws that had to go back further show that new numbers are put before the old ones, not after.
    """
    blocks: list[FloatArray] = []

    class Recorded:
        def random(self, shape: tuple[int, ...]) -> FloatArray:
            blocks.insert(0, rng.random(shape))
            return blocks[0]

    points, primitive = ensemble._panel(2 + 18)
    lengths: set[int] = set()
    while len(lengths) < 2:
        blocks.clear()
        draw = laplace_eigenvalues(2, 1.0, rng=cast(np.random.Generator, Recorded()))
        lengths.add(draw.sweeps)
        state = np.sort(rng.normal(scale=10, size=2))
        run(state, np.concatenate(blocks), points, primitive)
        assert sum(map(len, blocks)) == draw.sweeps
        assert state == pytest.approx(draw.eigenvalues, abs=draw.gap + 1e-11)


@pytest.mark.unit
def test_one_eigenvalue_is_laplace_and_scales_with_epsilon() -> None:
    class Fixed:
        def random(self, shape: tuple[int, ...]) -> FloatArray:
            return np.full(shape, 0.9)

    draw = laplace_eigenvalues(1, 4.0, rng=cast(np.random.Generator, Fixed()))
    assert draw.eigenvalues == pytest.approx([-math.log(0.2) / 4])
    assert draw.gap == 0


@pytest.mark.statistical
def test_two_eigenvalues_have_the_law_one_gets_by_hand(rng: np.random.Generator) -> None:
    """The larger of two, by integrating |x - y| e^(-|x| - |y|) / 6 over x, y <= t."""
    drawn = np.array([laplace_eigenvalues(2, 1.0, rng=rng).eigenvalues for _ in range(1200)])

    def larger(x: npt.NDArray[np.int64]) -> FloatArray:
        t = (x + 1) / FINE
        up = np.maximum(t, 0)  # the density there is 2 e^-t (2 t + e^-t) / 6
        down, above = (
            np.exp(2 * np.minimum(t, 0)) / 6,
            (4 * (1 + up) * np.exp(-up) + np.exp(-2 * up)) / 6,
        )
        return np.asarray(np.where(t < 0, down, 1 - above))

    def independent(x: npt.NDArray[np.int64]) -> FloatArray:
        return np.asarray(stats.laplace.cdf((x + 1) / FINE)) ** 2

    assert_law(
        fine(drawn[:, 1]),
        larger,
        rivals=[independent, lambda x: larger(np.asarray(x * 0.65, np.int64))],
    )


@pytest.mark.statistical
def test_four_eigenvalues_have_the_law_of_rejection(rng: np.random.Generator) -> None:
    """Their sum of sizes is Gamma(10), independent of their proportions.

    Of those an oracle keeps even ones in proportion to the Vandermonde; here all are kept, with
    weights. Its own chance adds about 1,100 / 100,000 to each degree of freedom of chi-square:
    nothing.
    """
    drawn = np.array([laplace_eigenvalues(4, 1.0, rng=rng).eigenvalues for _ in range(1100)])
    sizes = np.abs(drawn).sum(axis=1)
    # 4 if they were independent, 16 for Hermitian matrices, 12 for a matrix with two more entries
    assert_law(
        fine(sizes), gamma(10), rivals=[gamma(4), gamma(16), gamma(12), gamma(10, scale=1.2)]
    )
    shares = drawn / sizes[:, None]
    even, product = proportions(4, rng, count=400_000)
    assert product.max() <= 1
    assert product.sum() ** 2 / (product**2).sum() > 100_000  # as many as so many of equal weight

    def check(statistic: Callable[[FloatArray], FloatArray], powers: tuple[int, ...]) -> None:
        law, *rivals = (empirical(statistic(even), product**power) for power in powers)
        assert_law(fine(statistic(shares)), law, rivals=rivals)

    # The first power is the law's; 0 is independence, 2 the repulsion in Hermitian matrices.
    check(lambda x: x[:, 3], (1, 0))
    check(lambda x: x[:, 2], (1, 0))
    check(lambda x: np.diff(x, axis=1).min(axis=1), (1, 0, 2))


@pytest.mark.statistical
def test_directions_are_even(rng: np.random.Generator) -> None:
    corners = np.array([haar(3, rng=rng)[0, 0] for _ in range(8000)])

    def squares(x: npt.NDArray[np.int64]) -> FloatArray:
        return np.asarray(stats.beta.cdf((x + 1) / FINE, 0.5, 1))

    def of_the_plane(x: npt.NDArray[np.int64]) -> FloatArray:
        return np.asarray(stats.beta.cdf((x + 1) / FINE, 0.5, 0.5))

    assert_law(fine(corners**2), squares, rivals=[of_the_plane])
    # As LAPACK leaves them, corners have the sign of its reflections.
    assert_share(int((corners > 0).sum()), corners.size, 0.5, rivals=[0.05, 0.95])


@pytest.mark.unit
def test_a_matrix_has_its_eigenvalues_and_repeats(rng: np.random.Generator) -> None:
    state = rng.bit_generator.state
    matrix = symmetric_laplace(5, 2.0, rng=rng)
    assert np.array_equal(matrix, matrix.T)
    rng.bit_generator.state = state
    assert np.linalg.eigvalsh(matrix) == pytest.approx(
        laplace_eigenvalues(5, 2.0, rng=rng).eigenvalues
    )
    rng.bit_generator.state = state
    assert np.array_equal(symmetric_laplace(5, 2.0, rng=rng), matrix)


@pytest.mark.statistical
def test_the_gaussian_ensemble_is_even_in_frobenius_norm(rng: np.random.Generator) -> None:
    drawn = np.array([gaussian_orthogonal(3, 2.0, rng=rng) for _ in range(6000)])
    assert np.array_equal(drawn, drawn.transpose(0, 2, 1))

    def chi2(scale: float) -> Cdf:
        return lambda x: np.asarray(stats.chi2.cdf((x + 1) / FINE / scale, 6))

    # Six free entries of variance 4; with off-diagonal variance 4 for 2 the norm is another.
    assert_law(fine((drawn**2).sum(axis=(1, 2))), chi2(4), rivals=[chi2(5), chi2(3.2)])

    def normal(sigma: float) -> Cdf:
        return lambda x: np.asarray(stats.norm.cdf((x + 1) / FINE / sigma))

    assert_law(fine(drawn[:, 0, 1]), normal(math.sqrt(2)), rivals=[normal(2.0), normal(1.0)])


# --- lemma 12.5: private ---


@pytest.mark.property
def test_the_privacy_loss_is_at_most_epsilon_times_the_nuclear_distance(
    rng: np.random.Generator,
) -> None:
    """[mcmillan18, lem. 12.5]; the Frobenius distance, which is smaller, would not do."""
    frobenius_fails = False
    for size in (2, 3, 6):
        for _ in range(200):
            first, change, noise = (gaussian_orthogonal(size, 1.0, rng=rng) for _ in range(3))
            noise *= rng.exponential() * 5
            loss = privacy_loss(first + noise, first, first + change, epsilon=0.3)
            assert abs(loss) <= 0.3 * nuclear_norm(change) * (1 + 1e-12)
            frobenius_fails |= abs(loss) > 0.3 * float(np.linalg.norm(change))
    assert frobenius_fails


@pytest.mark.unit
def test_the_privacy_loss_attains_its_bound() -> None:
    change = np.diag([1.0, -2.0, 0.0])
    for far, sign in ((3.0, 1), (-3.0, -1)):
        loss = privacy_loss(far * change, change * 0, change, epsilon=0.5)
        assert loss == pytest.approx(-sign * 0.5 * 3)


def log_ratio_if_independent(gap: float) -> float:
    """The same loss if eigenvalues were independent: the density is e^-|x|_1 over the Vandermonde.

    At an output with eigenvalues 1 and 1 + gap; the other input is one spike more, of nuclear norm
    1.
    """
    output, spike = np.diag([1.0, 1 + gap]), np.diag([1.0, 0.0])

    def log_density(matrix: FloatArray) -> float:
        x = np.linalg.eigvalsh(matrix)
        return -float(np.abs(x).sum()) - math.log(x[1] - x[0])

    return log_density(output) - log_density(output - spike)


@pytest.mark.unit
def test_independent_eigenvalues_are_not_private() -> None:
    """Two eigenvalues of a symmetric matrix are never near by chance; nearness tells which input it was."""
    losses = [log_ratio_if_independent(gap) for gap in (1e-1, 1e-3, 1e-6)]
    # log((1 + gap) / gap) - 1
    assert losses == pytest.approx([math.log1p(1 / gap) - 1 for gap in (1e-1, 1e-3, 1e-6)])
    assert losses[0] > 1
    assert losses[2] > 12


@pytest.mark.statistical
def test_an_event_refutes_independent_eigenvalues_and_not_the_ensemble(
    rng: np.random.Generator,
) -> None:
    """Outputs with two near eigenvalues, of inputs 0 and a spike of norm 1: Clopper and Pearson at 1e-6."""
    trials, near = 40_000, 0.03
    spike = np.diag([1.0, 0.0])

    def least_epsilon(noises: FloatArray) -> float:
        hits = [
            int((np.ptp(np.linalg.eigvalsh(noises + x), axis=1) < near).sum())
            for x in (0 * spike, spike)
        ]
        low = stats.beta.ppf(5e-7, hits[0], trials - hits[0] + 1)
        high = stats.beta.isf(5e-7, hits[1] + 1, trials - hits[1])
        return math.log(low / high)

    angles = rng.uniform(0, math.pi, trials)
    vectors = np.stack([np.cos(angles), np.sin(angles), -np.sin(angles), np.cos(angles)], axis=1)
    vectors = vectors.reshape(-1, 2, 2)

    def turned(values: FloatArray) -> FloatArray:
        return np.asarray((vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1))

    assert least_epsilon(turned(rng.laplace(size=(trials, 2)))) > 1
    true = two_by_rejection(rng, count=trials)
    assert least_epsilon(turned(true)) < 1


# --- lemma 12.6: the largest eigenvalue grows like the size, not its logarithm ---


@pytest.mark.unit
def test_equal_signs_are_the_least_likely_of_all() -> None:
    """So all eigenvalues are negative with chance at most 2^-size, on which `least_top` stands."""
    sizes = np.array([0.3, 1.0, 1.1, 2.5, 4.0])

    def vandermonde(signs: tuple[int, ...]) -> float:
        return float(math.prod(abs(x - y) for x, y in itertools.combinations(sizes * signs, 2)))

    weights = {signs: vandermonde(signs) for signs in itertools.product((-1, 1), repeat=5)}
    assert min(weights.values()) == pytest.approx(weights[(1,) * 5])
    assert weights[(1,) * 5] < 0.01 * max(weights.values())


@pytest.mark.unit
def test_the_lemma_of_the_logarithm_fails_by_arithmetic_from_size_14_on() -> None:
    """E |x|_1 = N(N + 1)/2 leaves E x_max >= (N + 1)/4 nearly; lemma 12.6 has 1 + ln N."""
    assert least_top(2, 1.0) == pytest.approx(3 / 8)  # the truth is 4/3
    assert all(least_top(size, 0.5) > 2 * (1 + math.log(size)) for size in range(14, 400))
    assert all(least_top(size, 0.5) < 2 * (1 + math.log(size)) for size in range(2, 14))
    assert least_top(1024, 1.0) > 30 * (1 + math.log(1024))


@pytest.mark.statistical
def test_the_largest_of_eight_is_more_than_the_lemma_leaves(rng: np.random.Generator) -> None:
    top = np.array([laplace_eigenvalues(8, 1.0, rng=rng).eigenvalues[-1] for _ in range(60)])
    low, high = (
        top.mean() + z * top.std(ddof=1) / math.sqrt(60) for z in (-6, 6)
    )  # six deviations: 1e-6 or less
    assert low > 1 + math.log(8)
    assert least_top(8, 1.0) < high
    assert low < math.pi / 2 * 8  # what it is about when the size is large
    two = two_by_rejection(rng, count=200_000)[:, 1]
    assert two.mean() == pytest.approx(4 / 3, abs=6 * two.std() / math.sqrt(200_000))


# --- errors ---


@pytest.mark.unit
def test_bad_input_gets_one_sentence(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for call, message in (
        (
            lambda: symmetric_laplace(0, 1.0, rng=rng),
            "size must be at least 1, got 0; nothing was computed",
        ),
        (lambda: laplace_eigenvalues(2, math.nan, rng=rng), "epsilon must be positive and finite"),
        (lambda: gaussian_orthogonal(2, -1.0, rng=rng), "sigma must be positive"),
        (lambda: least_top(2, math.inf), "epsilon must be"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            call()
    with pytest.raises(InvalidInput, match="must be symmetric"):
        nuclear_norm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    monkeypatch.setattr(ensemble, "DOUBLINGS", 1)
    monkeypatch.setattr(ensemble, "TOLERANCE", -1.0)
    with pytest.raises(SolverFailed, match="of 16 sweeps; nothing was drawn"):
        laplace_eigenvalues(2, 1.0, rng=rng)
