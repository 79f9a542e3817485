"""Bounds and lemmas of seed 002, as they are and as they should be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.spaces import Grid
from sfumato.transport import Plan, emd, emd_euclidean, emd_norm, normalized_error, tree_bound


def pyramid(z: np.ndarray) -> float:
    """|P z|_1 as the paper prints it."""
    total, level = 0.0, z.astype(np.float64)
    for i in range(z.shape[0].bit_length() - 1, -1, -1):
        total += np.abs(level).sum() * 2.0**-i
        if i:
            level = level.reshape(level.shape[0] // 2, 2, level.shape[1] // 2, 2).sum(axis=(1, 3))
    return float(total)


@pytest.mark.property
@given(st.integers(0, 4), st.data())
@settings(max_examples=80)
def test_the_tree_bound_holds(levels: int, data: st.DataObject) -> None:
    side = 2**levels
    z = data.draw(hnp.arrays(np.int64, (side, side), elements=st.integers(-9, 9)))
    grid = Grid(levels)
    for penalty in (1.0, 2.0, 3.0):
        found = emd_norm(z, grid, penalty=penalty)
        assert found.lower <= tree_bound(z, grid, penalty=penalty) * (1 + 1e-12)
    if z.sum() == 0:
        assert tree_bound(z, grid) == pytest.approx(pyramid(z))


@pytest.mark.unit
@pytest.mark.parametrize("levels", [0, 1, 4])
def test_the_lemma_as_printed_fails_for_unbalanced_mass(levels: int) -> None:
    z = np.zeros((2**levels, 2**levels))
    z[0, 0] = 1
    assert emd_norm(z, Grid(levels)).value == 2
    assert pyramid(z) == 2 - 2.0**-levels < 2
    assert tree_bound(z, Grid(levels)) == 2


@pytest.mark.unit
def test_the_tree_bound_scales_with_the_area() -> None:
    z = np.array([[1, 0], [0, -1]])
    assert tree_bound(z, Grid(1, bounds=(0, 0, 8, 8)), penalty=8) == 8 * tree_bound(
        z, Grid(1), penalty=1
    )
    assert emd(np.maximum(z, 0), np.maximum(-z, 0), Grid(1)).value <= tree_bound(z, Grid(1))
    with pytest.raises(InvalidParameter, match="square cells"):
        tree_bound(z, Grid(1, bounds=(0, 0, 2, 1)))


@pytest.mark.property
@given(st.integers(0, 3), st.integers(0, 40), st.data())
@settings(max_examples=120)
def test_normalising_costs_no_more_than_the_error(
    levels: int, most: int, data: st.DataObject
) -> None:
    """Against exact distances, masses and errors of any size: lemma 2.1 with 1 for 4, and no condition."""
    side = 2**levels
    masses = hnp.arrays(np.int64, (side, side), elements=st.integers(0, 30))
    s = data.draw(masses)
    off = data.draw(hnp.arrays(np.int64, (side, side), elements=st.integers(-most, most)))
    near, grid = np.maximum(s + off, 0), Grid(levels)
    mass, other = float(s.sum()), float(near.sum())
    if min(mass, other) == 0:
        return
    error = emd_norm(s - near, grid)
    apart = emd(s / mass, near / other, grid)
    assert apart.lower <= normalized_error(error.upper, max(mass, other)) * (1 + 1e-12) + 1e-12
    assert apart.lower <= normalized_error(error.upper, mass) * (1 + 1e-12) + 1e-12


@pytest.mark.unit
def test_the_constant_of_lemma_2_1_is_1_and_no_less() -> None:
    """A unit of eight that moves from end to end: 2 (1 - 1/16) before and an eighth of it after."""
    grid, s = Grid(4), np.zeros((16, 16))
    s[0, 0] = 8
    near = s.copy()
    near[0, 0], near[15, 15] = 7, 1
    error = emd_norm(s - near, grid).value
    assert error == 2 * (1 - 1 / 16)
    assert emd(s / 8, near / 8, grid).value == pytest.approx(normalized_error(error, 8))
    # Beyond half the mass, which the lemma leaves out: all of it.
    far = np.zeros((16, 16))
    far[15, 15] = 8
    assert normalized_error(emd_norm(s - far, grid).value, 8) == 2 * (1 - 1 / 16)


@pytest.mark.unit
def test_the_lemma_needs_a_mass_and_an_error() -> None:
    assert normalized_error(1, 8) == 0.125
    assert normalized_error(5, 8) == 0.625
    assert (
        normalized_error(100, 8) == 2
    )  # nothing is farther apart, not even what is normalised from 0
    for error, mass in ((1, 0), (-1, 8), (float("inf"), 8), (float("nan"), 8)):
        with pytest.raises(InvalidParameter, match="mass must be above 0 and error finite"):
            normalized_error(error, mass)


@pytest.mark.reference
def test_euclidean_distances_are_those_of_the_assignment(rng: np.random.Generator) -> None:
    for n in (1, 2, 5, 40):
        points = rng.random((2 * n, 2))
        p, q = np.repeat([1.0, 0.0], n), np.repeat([0.0, 1.0], n)
        distances = cdist(points[:n], points[n:])
        true = float(distances[linear_sum_assignment(distances)].sum())
        found = emd_euclidean(p, q, points, flow=True)
        assert found.lower <= true * (1 + 1e-12)
        assert found.upper >= true * (1 - 1e-12)
        assert found.upper - found.lower <= 1e-9 * n
        assert isinstance(found.flow, Plan)
        assert found.flow.mass.sum() == pytest.approx(n)


@pytest.mark.unit
def test_euclidean_edges() -> None:
    assert emd_euclidean([1, 2], [1, 2], [[0, 0], [1, 1]]).value == 0
    assert emd_euclidean([1, 0], [0, 1], [0.0, 3.0]).value == pytest.approx(3)
    with pytest.raises(InvalidInput, match="masses must be equal"):
        emd_euclidean([1, 0], [0, 2], [0.0, 3.0])
    with pytest.raises(InvalidInput, match="finite rows of coordinates"):
        emd_euclidean([1, 0], [0, 1], [np.nan, 3.0])
    many = np.arange(12_000.0)
    with pytest.raises(InvalidInput, match="pairs of points are more than"):
        emd_euclidean(
            np.r_[np.ones(6000), np.zeros(6000)], np.r_[np.zeros(6000), np.ones(6000)], many
        )
