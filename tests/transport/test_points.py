"""Distances between masses at places given one by one, in both norms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.spaces import Grid, Norm, Points
from sfumato.transport import Plan, emd, emd_euclidean


def by_linear_program(p: list[int], q: list[int], distances: np.ndarray) -> float:
    """The least cost of a table of moves with these sums, by a solver of linear programs."""
    n = len(p)
    rows = np.kron(np.eye(n), np.ones(n))
    columns = np.kron(np.ones(n), np.eye(n))
    found = linprog(
        distances.ravel(), A_eq=np.vstack([rows, columns]), b_eq=[*p, *q], method="highs"
    )
    assert found.fun is not None
    return float(found.fun)


@pytest.mark.property
@given(st.integers(1, 3), st.sampled_from(["euclidean", "l1"]), st.data())
@settings(max_examples=60)
def test_masses_at_points_are_compared_in_their_norm(
    dimensions: int, norm: Norm, data: st.DataObject
) -> None:
    place = st.tuples(*[st.integers(-50, 50)] * dimensions)
    places = data.draw(st.lists(place, min_size=2, max_size=6, unique=True))
    p = data.draw(st.lists(st.integers(0, 9), min_size=len(places), max_size=len(places)))
    q = data.draw(st.permutations(p))
    space = Points(places, norm)
    found = emd(p, q, space, flow=True)
    wanted = by_linear_program(
        p, q, cdist(places, places, "euclidean" if norm == "euclidean" else "cityblock")
    )
    assert found.lower <= wanted * (1 + 1e-9) + 1e-9
    assert found.upper >= wanted * (1 - 1e-9) - 1e-9
    assert found.upper - found.lower <= 1e-6
    assert isinstance(found.flow, Plan)
    moved = sum(
        mass * space.distance(int(i), int(j))
        for i, j, mass in zip(found.flow.origin, found.flow.target, found.flow.mass, strict=True)
    )
    assert moved == pytest.approx(wanted, abs=1e-9)


@pytest.mark.unit
def test_by_hand_and_like_its_neighbors() -> None:
    corners = [(0, 0), (3, 0), (3, 4)]
    assert emd([1, 0, 0], [0, 0, 1], Points(corners)).value == pytest.approx(5)
    assert emd([1, 0, 0], [0, 0, 1], Points(corners, "l1")).value == pytest.approx(7)
    assert emd([2, 0, 0], [0, 0, 5], Points(corners), normalize=True).value == pytest.approx(5)
    p, q = [1, 2, 3], [3, 2, 1]
    assert emd(p, q, Points(corners)).value == emd_euclidean(p, q, corners).value
    with pytest.raises(InvalidInput, match="masses must be equal"):
        emd([1, 0, 0], [0, 0, 2], Points(corners))


@pytest.mark.reference
def test_cells_of_a_grid_as_points_are_as_far_apart(rng: np.random.Generator) -> None:
    grid = Grid(2, bounds=(0, 0, 4, 4))
    p, q = rng.multinomial(30, np.full(16, 1 / 16)), rng.multinomial(30, np.full(16, 1 / 16))
    cells = Points(grid.centers(np.arange(16)), "l1")
    assert emd(p, q, cells).value == pytest.approx(emd(p, q, grid).value, abs=1e-9)


@pytest.mark.unit
@pytest.mark.parametrize("space", [3, [0.0, 1.0], "line"])
def test_what_is_no_space_gets_one_sentence(space: object) -> None:
    with pytest.raises(
        InvalidParameter, match="a distance needs a Line, Grid, Graph or Points, got "
    ):
        emd([1, 0], [0, 1], space)  # type: ignore[arg-type]
