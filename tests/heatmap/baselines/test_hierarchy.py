"""Least squares over a quadtree against numpy, projection against a solver, noise against its law."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chance import assert_law
from tests.heatmap.baselines.towns import EPSILON, town

from sfumato.errors import InvalidParameter
from sfumato.heatmap.methods.baselines import HierarchyLaplace, HierarchyMethod
from sfumato.heatmap.methods.baselines.hierarchy import consistent, non_negative, onto_simplex
from sfumato.privacy import UNITS, AddRemoveUser, Bound, KeyedNoise, LaplaceLaw, PureDP
from sfumato.spaces import Grid

FloatArray = npt.NDArray[np.float64]
BOUND = Bound(AddRemoveUser(), 4**8, l1=UNITS, linf=UNITS)


@pytest.mark.unit
def test_cost_by_hand() -> None:
    assert HierarchyLaplace(2, 8, scale=14 * UNITS).cost(BOUND) == PureDP("1/2")
    mechanism = HierarchyMethod().mechanism(EPSILON, BOUND, Grid(8))
    assert (mechanism.first, mechanism.last, int(mechanism.scale)) == (2, 8, 7 * UNITS)
    assert mechanism.draws(BOUND) >= sum(4**level for level in range(2, 9))
    with pytest.raises(InvalidParameter, match=r"first must lie in 0\.\.3 .*got 4"):
        HierarchyLaplace(4, 3, scale=1)


@pytest.mark.statistical
def test_every_level_has_the_law(key: bytes, rng: np.random.Generator) -> None:
    grid = Grid(8)
    sums = town(rng, grid, users=50)
    mechanism = HierarchyMethod().mechanism(EPSILON, BOUND, grid)
    tree = mechanism.sample(sums, KeyedNoise(key))
    assert [level.level for level in tree.levels] == list(range(2, 9))
    sample = np.concatenate([level.values - sums.of_level(level.level) for level in tree.levels])
    rivals = [LaplaceLaw(factor * 7 * UNITS).cdf for factor in (0.88, 1.12)]
    assert_law(sample, LaplaceLaw(7 * UNITS).cdf, rivals=rivals)


def noisy_levels(rng: np.random.Generator, first: int, last: int, groups: int) -> list[FloatArray]:
    return [rng.laplace(2, 3, groups * 4**level) for level in range(first, last + 1)]


@pytest.mark.reference
@pytest.mark.parametrize(("first", "last", "groups"), [(0, 2, 1), (1, 3, 1), (2, 4, 2), (3, 3, 1)])
def test_consistency_is_least_squares(
    first: int, last: int, groups: int, rng: np.random.Generator
) -> None:
    levels = noisy_levels(rng, first, last, groups)
    leaves = groups * 4**last
    rows = [
        np.kron(np.eye(groups * 4**i), np.ones(4 ** (last - i))) for i in range(first, last + 1)
    ]
    best = np.linalg.lstsq(np.vstack(rows), np.concatenate(levels), rcond=None)[0]
    assert best.shape == (leaves,)
    for ours, design in zip(consistent(levels), rows, strict=True):
        np.testing.assert_allclose(ours, design @ best, rtol=0, atol=1e-10)


@pytest.mark.property
@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6),
    st.one_of(st.just(0.0), st.floats(1e-3, 1e3)),
)
def test_projection_meets_its_optimality_conditions(row: list[float], total: float) -> None:
    v = np.array([row])
    x = onto_simplex(v, np.array([total]))[0]
    assert np.all(x >= 0)
    assert x.sum() == pytest.approx(total, abs=1e-9)
    # KKT: v - x is one number on the support, and at most that number off it.
    gap = v[0] - x
    support = x > 1e-9
    if support.any():
        cut = gap[support].max()
        assert gap[support].min() == pytest.approx(cut, abs=1e-9)
        assert np.all(gap[~support] <= cut + 1e-8)


def nearest_by_supports(v: FloatArray, total: float) -> FloatArray:
    """The projection by trying every support: on one, all entries fall by the same number."""
    found = []
    for size in range(1, v.size + 1):
        for support in map(list, itertools.combinations(range(v.size), size)):
            x = np.zeros(v.size)
            x[support] = v[support] - (v[support].sum() - total) / size
            if np.all(x >= -1e-12):
                found.append(x)
    return min(found, key=lambda x: float(np.sum((x - v) ** 2)))


@pytest.mark.reference
def test_projection_agrees_with_every_support_tried(rng: np.random.Generator) -> None:
    rows, totals = rng.normal(0, 2, (50, 5)), rng.uniform(0, 5, 50)
    for v, total, ours in zip(rows, totals, onto_simplex(rows, totals), strict=True):
        np.testing.assert_allclose(ours, nearest_by_supports(v, float(total)), atol=1e-10)


@pytest.mark.property
@settings(max_examples=30)
@given(st.integers(0, 2), st.integers(0, 2), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_the_division_keeps_every_total(first: int, below: int, groups: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = consistent(noisy_levels(rng, first, first + below, groups))
    masses = non_negative(levels, groups)
    assert np.all(masses >= 0)
    totals = np.maximum(levels[0].reshape(groups, -1).sum(axis=1), 0)
    np.testing.assert_allclose(masses.reshape(groups, -1).sum(axis=1), totals, atol=1e-9)


@pytest.mark.unit
def test_consistent_non_negative_counts_stay_as_they_are() -> None:
    leaves = np.arange(16.0)
    levels = [leaves.sum(keepdims=True), leaves.reshape(-1, 4).sum(axis=1), leaves]
    np.testing.assert_allclose(non_negative(levels, 1), leaves)
