"""Theorem 3.1 in simulation, the best sparse map between bounds, and the pyramid beside the packing bound."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from experiments.heatmaps.theory import additive_term, best_k_sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog
from tests.chance import LEVEL
from tests.heatmap.baselines.slopes import assert_slope
from tests.heatmap.baselines.towns import sums_of
from tests.heatmap.test_packing import dominoes

from sfumato.errors import InvalidParameter
from sfumato.heatmap.analysis import packing_lower_bound
from sfumato.heatmap.methods.pyramid import PyramidMethod
from sfumato.privacy import REHEARSAL, UNITS, KeyedNoise, Noise
from sfumato.records import guard_sums
from sfumato.spaces import Grid
from sfumato.transport import emd

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def pyramid_error(units: IntArray, grid: Grid, *, width: int, noise: Noise) -> float:
    """EMD on the unit square between the pyramid's map at epsilon 1 and the truth."""
    sums, method = sums_of(units, grid), PyramidMethod(width)
    bound = guard_sums(sums, source=REHEARSAL).bound
    released = method.mechanism(Fraction(1), bound, grid).sample(sums, noise)
    (found,) = method.estimate(released, grid)
    return emd(found.normalized().values(grid.levels), units / units.sum(), grid).value


def city(rng: np.random.Generator, grid: Grid, users: int) -> IntArray:
    """Users who share their mass over one to five visits to six districts."""
    units = np.zeros(grid.size, dtype=np.int64)
    middle, share, width = (
        rng.uniform(0.1, 0.9, (6, 2)),
        rng.dirichlet(np.ones(6)),
        rng.uniform(0.01, 0.08, 6),
    )
    for visits in rng.integers(1, 6, users):
        at = rng.choice(6, visits, p=share)
        places = np.clip(middle[at] + rng.normal(size=(visits, 2)) * width[at, None], 0, 0.999)
        np.add.at(units, grid.cells_of(places[:, 0], places[:, 1]), UNITS // int(visits))
    return units


def distances(grid: Grid) -> FloatArray:
    """Between all cells, in sides of the map."""
    columns, rows = grid.decode(np.arange(grid.size))
    return np.asarray(
        (np.abs(columns[:, None] - columns) + np.abs(rows[:, None] - rows)) / grid.side
    )


def by_all_choices(values: FloatArray, grid: Grid, k: int) -> float:
    away, shares = distances(grid), values / values.sum()
    choices = itertools.combinations(range(grid.size), k)
    return min(float(shares @ away[:, list(chosen)].min(axis=1)) for chosen in choices)


def by_relaxation(values: FloatArray, grid: Grid, k: int) -> float:
    """The k-median problem with cells opened in part, by HiGHS: what the dual can reach at best."""
    n, shares = grid.size, values / values.sum()
    cost = np.concatenate([(shares[:, None] * distances(grid)).ravel(), np.zeros(n)])
    served = np.hstack([np.kron(np.eye(n), np.ones(n)), np.zeros((n, n))])
    only_open = np.hstack([np.eye(n * n), -np.tile(np.eye(n), (n, 1))])
    at_most_k = np.concatenate([np.zeros(n * n), np.ones(n)])[None]
    found = linprog(
        cost,
        A_ub=np.vstack([only_open, at_most_k]),
        b_ub=np.concatenate([np.zeros(n * n), [k]]),
        A_eq=served,
        b_eq=np.ones(n),
        method="highs",
    )
    assert found.fun is not None
    return float(found.fun)


@pytest.mark.reference
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_best_sparse_map_lies_between_its_bounds(k: int, rng: np.random.Generator) -> None:
    grid = Grid(2)
    for _ in range(10):
        values = rng.random(16) ** 3
        best, fit = by_all_choices(values, grid, k), best_k_sparse(values, grid, k)
        relaxed = by_relaxation(values, grid, k)
        # HiGHS is exact to 1e-6; the dual can reach the relaxed problem, which may lie below the
        # true one.
        assert fit.lower <= relaxed + 1e-6 <= best + 2e-6
        assert (
            best - 1e-12 <= fit.upper <= 5 * best
        )  # [arya04]: single swaps end within a factor of 5
        # How close the steps come is not proven; half is enough to see that they went anywhere at
        # all.
        assert fit.lower >= relaxed / 2


@pytest.mark.property
@settings(max_examples=25)
@given(st.lists(st.integers(0, 20), min_size=64, max_size=64).filter(any), st.integers(1, 6))
def test_bounds_of_the_best_sparse_map_hold_together(values: list[int], k: int) -> None:
    fit, more = (best_k_sparse(values, Grid(3), j) for j in (k, k + 1))
    assert 0 <= fit.lower <= fit.upper
    assert more.lower <= fit.upper + 1e-12
    if np.count_nonzero(values) <= k:
        assert fit.upper == 0


@pytest.mark.unit
def test_the_bounds_of_the_area_do_not_matter() -> None:
    values = np.arange(16.0)
    assert best_k_sparse(values, Grid(2), 2) == best_k_sparse(values, Grid(2, (10, 10, 90, 50)), 2)


@pytest.mark.statistical
def test_theorem_3_1_holds_in_simulation(key: bytes, rng: np.random.Generator) -> None:
    # EMD <= ratio * best k-sparse + C sqrt(k) / (ratio epsilon n) with probability 0.99, C = 8, for
    # the width k / ratio**2 = 20. The lower bound on the best sparse map stands in for it, so
    # nothing is given away.
    k, ratio, grid, noise = 5, 0.5, Grid(5), KeyedNoise(key)
    wanted = list[float]()
    for users in (100, 200, 400, 800):
        for _ in range(5):
            units = city(rng, grid, users)
            sparse = ratio * best_k_sparse(units, grid, k).lower
            term = additive_term(k, 1.0, users=users, ratio=ratio)
            wanted += [
                (pyramid_error(units, grid, width=20, noise=noise) - sparse) / term
                for _ in range(25)
            ]
    constants = np.array(wanted)
    # Of 4,000 such runs the largest constant was 5.8, with a tail that falls by e every 0.47:
    # beyond 8 lies one run in a million, surely not 1e-5. Four of 500 then have a chance below
    # 1e-9, and up to three leave the share above 0.95 at the suite's level; a constant of 1 is
    # refuted.
    missed = int(np.sum(constants > 8))
    assert missed <= 3
    assert stats.binomtest(3, constants.size, 0.05, alternative="less").pvalue < LEVEL
    held = int(np.sum(constants <= 1))
    assert stats.binomtest(held, constants.size, 0.99, alternative="less").pvalue < LEVEL


def spots(k: int, users: int, grid: Grid, rng: np.random.Generator) -> IntArray:
    """Exactly k cells with equal mass."""
    units = np.zeros(grid.size, dtype=np.int64)
    units[rng.choice(grid.size, k, replace=False)] = users * UNITS // k
    return units


@pytest.mark.statistical
def test_the_error_of_sparse_maps_falls_with_users(key: bytes, rng: np.random.Generator) -> None:
    # The best sparse map is the map itself: what is left is the additive term, proportional to 1 /
    # n.
    grid, noise = Grid(5), KeyedNoise(key)
    users = np.repeat([500, 2000, 8000, 32_000], 30)
    errors = [
        pyramid_error(spots(5, int(n), grid, rng), grid, width=20, noise=noise) for n in users
    ]
    assert_slope(np.log(users), np.log(errors), (-1.0, -1.0), rivals=[-0.75, -1.25])


@pytest.mark.statistical
def test_the_error_of_sparse_maps_grows_about_as_the_root_of_k(
    key: bytes, rng: np.random.Generator
) -> None:
    # Width 4 k = 4**q, and always two levels below q, so that budgets are the same for every k: on
    # a grid of fixed depth they are not, and the slope comes out near 0.42. The measured levels
    # then add noise in proportion to sqrt(k). The q levels above q are not measured; the sums of
    # noise in their cells add up to 2**q / epsilon_q each. So the slope lies between 1/2 and, were
    # the latter all, 1/2 + ln(5 / 2) / ln 64.
    noise, firsts = KeyedNoise(key), np.repeat([2, 3, 4, 5], 25)
    sizes = 4 ** (firsts - 1)
    errors = []
    for k, q in zip(sizes.tolist(), firsts.tolist(), strict=True):
        grid = Grid(q + 2)
        errors.append(pyramid_error(spots(k, 10**6, grid, rng), grid, width=4 * k, noise=noise))
    # Growth with k itself is what compressed sensing would pay [ghazi23, sec. 1.2].
    assert_slope(np.log(sizes), np.log(errors), (0.5, 0.72), rivals=[0.25, 1.0])


@pytest.mark.unit
def test_the_additive_term_by_hand() -> None:
    assert additive_term(9, 2.0, users=50, ratio=0.25, constant=4.0) == pytest.approx(
        4 * 3 / (0.25 * 2 * 50)
    )


@pytest.mark.statistical
def test_the_pyramid_stands_above_the_packing_bound(key: bytes, rng: np.random.Generator) -> None:
    users, grid, noise = 2000, Grid(2), KeyedNoise(key)
    least, errors = packing_lower_bound(9, 1.0, users=users), list[float]()
    for _ in range(200):
        word = tuple(int(letter) for letter in rng.integers(0, 2, 8))
        units = np.floor(4 * UNITS * dominoes(word)).astype(np.int64)
        units[0] += (users - 4) * UNITS
        errors.append(pyramid_error(units, grid, width=20, noise=noise))
    # The bound holds with probability 1/2 on some input; the pyramid is above it nearly always, and
    # within the theorem's term with the constant of the simulation above.
    above = int(np.sum(np.array(errors) >= least))
    assert stats.binomtest(above, 200, 0.5, alternative="less").pvalue >= LEVEL
    assert max(errors) <= additive_term(9, 1.0, users=users, constant=8.0)


@pytest.mark.unit
def test_parameters_are_checked() -> None:
    with pytest.raises(InvalidParameter, match="at most 6 levels and k of at least 1, got 7 and 2"):
        best_k_sparse(np.ones(4**7), Grid(7), 2)
    with pytest.raises(InvalidParameter, match="one mass of at least 0 for each of 16 cells"):
        best_k_sparse(np.zeros(16), Grid(2), 2)
    with pytest.raises(InvalidParameter, match=r"a ratio in \(0, 1\), got 2, 9, 1.0, 1.5"):
        additive_term(2, 1.0, users=9, ratio=1.5)
