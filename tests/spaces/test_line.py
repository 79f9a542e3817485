from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spaces.laws import assert_metric, assert_neighbors, shortest_walks

from sfumato.errors import InvalidParameter
from sfumato.spaces import Grid, Line

# Integers below 2**40 add and subtract in doubles without rounding, so these laws are tested with
# ==.
increasing = st.sets(st.integers(-(2**40), 2**40), min_size=1, max_size=12).map(sorted)


@pytest.mark.unit
def test_positions_are_those_of_the_papers() -> None:
    assert Line(4).positions.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert Line(4, 2.0).positions.tolist() == [0.5, 1.0, 1.5, 2.0]


@pytest.mark.unit
def test_distance_neighbors_diameter_by_hand() -> None:
    line = Line.at([-1, 0, 4])
    assert line.size == 3
    assert line.distance(0, 2) == line.distance(2, 0) == line.diameter == 5.0
    assert line.distance(1, 2) == 4.0
    assert [line.neighbors(i).tolist() for i in range(3)] == [[1], [0, 2], [1]]


@pytest.mark.unit
def test_one_cell() -> None:
    line = Line(1)
    assert line.positions.tolist() == [1.0]
    assert line.diameter == line.distance(0, 0) == 0.0
    assert line.neighbors(0).tolist() == []


@pytest.mark.unit
def test_equal_positions_make_equal_lines() -> None:
    assert Line(4) == Line.at([0.25, 0.5, 0.75, 1])
    assert hash(Line(4)) == hash(Line.at([0.25, 0.5, 0.75, 1]))
    assert Line.at([-0.0, 1]) == Line.at([0.0, 1])
    assert hash(Line.at([-0.0, 1])) == hash(Line.at([0.0, 1]))
    assert Line(4) != Line(5)
    assert Line(4) != Line(4, 2.0)
    assert Line(1) != Grid(0)


@pytest.mark.unit
def test_a_line_does_not_change() -> None:
    given_positions = np.array([1.0, 2.0])
    line = Line.at(given_positions)
    given_positions[0] = 9.0
    assert line.positions.tolist() == [1.0, 2.0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        line.positions = given_positions  # type: ignore[misc]
    for same in (line, copy.deepcopy(line), pickle.loads(pickle.dumps(line))):  # noqa: S301
        assert same == line
        with pytest.raises(ValueError, match="read-only"):
            same.positions[0] = 0.0


@pytest.mark.unit
@pytest.mark.parametrize("n", [0, -3, 2.5, "4"])
def test_number_of_cells_is_checked(n: int) -> None:
    with pytest.raises(
        InvalidParameter, match=r"n must be a whole number, at least 1, got .*nothing"
    ):
        Line(n)


@pytest.mark.unit
@pytest.mark.parametrize("length", [0.0, -1.0, float("nan"), float("inf")])
def test_length_is_checked(length: float) -> None:
    with pytest.raises(InvalidParameter, match=f"positive and finite, got {length}; no line"):
        Line(4, length)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([], r"at least one number, got shape \(0,\)"),
        ([[1.0, 2.0]], r"at least one number, got shape \(1, 2\)"),
        (3.0, r"at least one number, got shape \(\)"),
        ([0.0, 2.0, 1.0], r"must increase, got 2\.0 before 1\.0 at 1"),
        ([0.0, 0.0], r"must increase, got 0\.0 before 0\.0 at 0"),
        ([0.0, float("nan")], "must be finite, got nan at 1"),
        ([float("-inf"), 0.0], "must be finite, got -inf at 0"),
        ([-1e308, 1e308], r"finite length, got -1e\+308 to 1e\+308"),
        (["a", "b"], "must be real numbers"),
        ([1j, 2j], "must be real numbers"),
        ([[1.0], [1.0, 2.0]], "uneven rows"),
    ],
)
def test_positions_are_checked(positions: npt.ArrayLike, message: str) -> None:
    with pytest.raises(InvalidParameter, match=f"{message}.*was built"):
        Line.at(positions)


@pytest.mark.unit
@pytest.mark.parametrize("cell", [-1, 4, 1.5])
def test_cells_are_checked(cell: int) -> None:
    line = Line(4)
    for ask in (line.neighbors, lambda i: line.distance(i, 0), lambda i: line.distance(0, i)):
        with pytest.raises(
            InvalidParameter, match=f"cell must be a whole number from 0 to 3, got {cell}"
        ):
            ask(cell)


@pytest.mark.property
@settings(deadline=None)
@given(increasing)
def test_a_line_is_a_metric_with_neighbors(positions: list[int]) -> None:
    line = Line.at(positions)
    assert_metric(line, range(line.size))
    assert_neighbors(line)
    assert line.diameter == max(
        line.distance(i, j) for i in range(line.size) for j in range(line.size)
    )


@pytest.mark.property
@settings(deadline=None)
@given(increasing)
def test_neighbor_steps_realise_the_metric(positions: list[int]) -> None:
    line = Line.at(positions)
    for start in range(line.size):
        walks = shortest_walks(
            line, start, step=lambda i, j: float(abs(positions[i] - positions[j]))
        )
        assert walks == [line.distance(start, j) for j in range(line.size)]


@pytest.mark.property
@given(st.integers(1, 500), st.floats(1e-6, 1e6))
def test_even_cells_end_at_the_length(n: int, length: float) -> None:
    line = Line(n, length)
    assert line.size == n
    assert line.positions[-1] == length
    assert line.positions.tolist() == [(i + 1) / n * length for i in range(n)]
