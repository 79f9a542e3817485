"""Flat noise has its law; top keeps the top; the Gaussian keeps its promise; the coarse level balances."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.chance import LEVEL, assert_law
from tests.heatmap.baselines.slopes import assert_slope
from tests.heatmap.baselines.towns import EPSILON, release, sums_of, town

from sfumato.errors import InvalidParameter
from sfumato.heatmap.methods.baselines import (
    CoarseMethod,
    FlatGaussian,
    FlatLaplace,
    FlatMethod,
    GaussianMethod,
    TopMethod,
)
from sfumato.heatmap.methods.baselines.coarse import coarse_level
from sfumato.heatmap.methods.protocol import NoisyLevel, NoisyTree
from sfumato.privacy import (
    UNITS,
    AddRemoveUser,
    ApproxDP,
    Bound,
    GaussianLaw,
    KeyedNoise,
    LaplaceLaw,
    Noise,
    PureDP,
    SystemNoise,
    gaussian_sigma,
)
from sfumato.privacy.accounting import rho_within
from sfumato.records import CellSums
from sfumato.spaces import Grid
from sfumato.transport import emd

BOUND = Bound(AddRemoveUser(), 2 * 4**8, l1=UNITS, linf=UNITS)


def noise_of(tree: NoisyTree, sums: CellSums) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    (level,) = tree.levels
    return np.asarray(level.values - sums.of_level(level.level))


@pytest.mark.unit
def test_costs_by_hand() -> None:
    assert FlatLaplace(8, 4 * UNITS).cost(BOUND) == PureDP("1/4")
    assert FlatLaplace(0, UNITS / 2).cost(BOUND) == PureDP(2)
    assert FlatLaplace(8, UNITS).draws(BOUND) == 2 * 4**8


@pytest.mark.statistical
def test_laplace_cells_have_their_law(key: bytes, rng: np.random.Generator) -> None:
    grid = Grid(8)
    sums = town(rng, grid, users=100, groups=2)
    tree = FlatMethod().mechanism(EPSILON, BOUND, grid).sample(sums, KeyedNoise(key))
    law = LaplaceLaw(UNITS)
    assert_law(
        noise_of(tree, sums),
        law.cdf,
        rivals=[LaplaceLaw(0.9 * UNITS).cdf, LaplaceLaw(1.1 * UNITS).cdf],
    )


@pytest.mark.statistical
def test_gaussian_cells_have_their_law(key: bytes, rng: np.random.Generator) -> None:
    grid = Grid(8)
    sums = town(rng, grid, users=100, groups=2)
    mechanism = GaussianMethod().mechanism(EPSILON, BOUND, grid)
    sigma = float(mechanism.sigma)
    sample = noise_of(mechanism.sample(sums, KeyedNoise(key)), sums)
    assert_law(
        sample,
        mechanism.law.cdf,
        rivals=[GaussianLaw(0.9 * sigma).cdf, GaussianLaw(1.1 * sigma).cdf],
    )


@pytest.mark.unit
def test_top_keeps_the_largest_cells_of_each_map() -> None:
    grid = Grid(2)
    values = np.array([*range(16), *range(16, 0, -1)], dtype=np.int64) * UNITS
    tree = NoisyTree(2, (NoisyLevel(2, np.arange(32), values),))
    rising, falling = TopMethod(Fraction(1, 8)).estimate(tree, grid)
    assert rising.codes.tolist() == [14, 15]
    assert rising.masses.tolist() == [14.0, 15.0]
    assert falling.codes.tolist() == [0, 1]
    one, other = TopMethod().estimate(tree, grid)
    assert (one.codes.tolist(), other.codes.tolist()) == ([15], [0])


@pytest.mark.unit
def test_top_keeps_the_lower_code_of_a_tie() -> None:
    tree = NoisyTree(1, (NoisyLevel(1, np.arange(4), np.full(4, UNITS)),))
    (kept,) = TopMethod().estimate(tree, Grid(1))
    assert kept.codes.tolist() == [0]


@pytest.mark.unit
def test_the_gaussian_promise_is_kept_or_refused() -> None:
    promise = ApproxDP(1, "1e-6")
    mechanism = FlatGaussian.within(promise, BOUND, level=8)
    assert mechanism.cost(BOUND) == promise
    assert Fraction(UNITS**2) / (2 * mechanism.sigma**2) <= rho_within(1, "1e-6")
    weaker = FlatGaussian(8, float(mechanism.sigma) * (1 - 1e-9), promise=promise)
    with pytest.raises(InvalidParameter, match=r"does not keep .* nothing was charged"):
        weaker.cost(BOUND)
    with pytest.raises(InvalidParameter, match="epsilon and delta above 0"):
        FlatGaussian.within(ApproxDP(1, 0), BOUND, level=8)


@pytest.mark.reference
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_way_through_rho_takes_little_more_noise_than_the_best(epsilon: float) -> None:
    # The exact profile of one continuous Gaussian is a lower bound on sigma; rho costs under 12 %
    # over it.
    ours = float(FlatGaussian.within(ApproxDP(epsilon, "1e-6"), BOUND, level=8).sigma)
    best = gaussian_sigma(epsilon, "1e-6", sensitivity=UNITS)
    assert best <= ours <= 1.12 * best


@pytest.mark.unit
def test_gaussian_noise_is_larger_than_laplace_noise() -> None:
    # Footnote 8 of the paper says so for delta = 1e-3 already.
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(5)):
        gaussian = GaussianMethod(Fraction(1, 1000)).mechanism(epsilon, BOUND, Grid(8))
        laplace = FlatMethod().mechanism(epsilon, BOUND, Grid(8))
        assert gaussian.law.deviation > laplace.law.deviation


@pytest.mark.unit
@pytest.mark.parametrize(
    ("epsilon", "users", "level"),
    [(1, 200, 4), (1, 1, 0), ("1/10", 10, 0), (4, 256, 5), (1, 10**9, 8)],
)
def test_the_coarse_level_by_hand(epsilon: int | str, users: int, level: int) -> None:
    assert coarse_level(Fraction(epsilon), users, levels=8) == level
    mechanism = CoarseMethod(users).mechanism(Fraction(epsilon), BOUND, Grid(8))
    assert mechanism.level == level


def coarse_errors(users: int, noise: Noise) -> tuple[float, float]:
    """EMD on the unit square of a coarse map of users spread over the west half: ours, and clipped to 0."""
    grid = Grid(6)
    column, _ = grid.decode(np.arange(grid.size))
    truth = np.where(column < grid.side // 2, 2 / grid.size, 0.0)
    sums = sums_of(np.floor(truth * users * UNITS).astype(np.int64), grid)
    receipt, (ours,) = release(CoarseMethod(users), sums, noise=noise)
    (clipped,) = FlatMethod().estimate(receipt.value, grid)
    first, second = (emd(one.normalized().values(6), truth, grid).value for one in (ours, clipped))
    return first, second


@pytest.mark.statistical
def test_the_coarse_error_falls_with_the_root_of_users(key: bytes) -> None:
    noise = KeyedNoise(key)
    # Errors lean to the right: Student's test of 32 of them misses three times in a million, of 64
    # never.
    users = np.repeat([16, 64, 256, 1024], [32, 32, 32, 64])
    errors = np.log([coarse_errors(int(n), noise) for n in users])
    # The bound is level / 2**level at level = log2(users) / 2: between levels 2 and 5 its slope
    # over ln users is ln(2.5 / 8) / ln 64 = -0.28, without the logarithm -1/2.
    assert_slope(np.log(users), errors[:, 0], (-0.5, -0.28), rivals=[0.0, -1.0])
    # Clipped, the n / 2 empty cells in the east keep noise of mean 1/2 each, those in the west, of
    # 2 users each, exp(-2) / 2 more than they had. The east then holds 0.25 / (1.25 + exp(-2) / 4)
    # of the mass, spread evenly, and it has to move by 1/4 on average at least, for every n.
    least = 0.25 / (1.25 + math.exp(-2) / 4) / 4
    ours, clipped = np.exp(errors[users == 1024]).T
    assert stats.ttest_1samp(clipped, least, alternative="less").pvalue >= LEVEL
    assert stats.ttest_1samp(ours, least, alternative="less").pvalue < LEVEL


@pytest.mark.unit
def test_system_noise_works_too() -> None:
    grid = Grid(3)
    sums = sums_of(np.full(64, 5 * UNITS), grid)
    _, (one,) = release(FlatMethod(), sums, noise=SystemNoise(), epsilon=Fraction(1000))
    assert one.total == pytest.approx(320, abs=1)
