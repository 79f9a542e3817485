from __future__ import annotations

import copy
import dataclasses
import math
import pickle

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spaces.laws import assert_metric, assert_neighbors, shortest_walks

from sfumato.errors import InvalidParameter
from sfumato.spaces import Line, Norm, Points

# Integers below 2**40 add without rounding, so walking distances are tested with ==.
places = st.integers(1, 3).flatmap(
    lambda width: st.sets(
        st.tuples(*[st.integers(-(2**40), 2**40)] * width),
        min_size=1,
        max_size=8,
    ).map(sorted)
)


@pytest.mark.unit
def test_distance_neighbors_diameter_by_hand() -> None:
    for norm, far in (("euclidean", 5.0), ("l1", 7.0)):
        corners = Points([(0, 0), (3, 0), (3, 4)], norm)  # type: ignore[arg-type]
        assert corners.size == 3
        assert corners.distance(0, 2) == corners.distance(2, 0) == corners.diameter == far
        assert corners.distances_from(1).tolist() == [3.0, 0.0, 4.0]
        assert corners.neighbors(1).tolist() == [0, 2]
        assert corners.metric == f"points-{norm}"


@pytest.mark.unit
def test_one_place() -> None:
    alone = Points([(0.5, 0.25)])
    assert alone.diameter == alone.distance(0, 0) == 0.0
    assert alone.neighbors(0).tolist() == []


@pytest.mark.unit
def test_equal_places_in_the_same_order_are_equal() -> None:
    assert Points([(0, 1), (2, 3)]) == Points([(0.0, 1.0), (2.0, 3.0)])
    assert hash(Points([(-0.0, 1)])) == hash(Points([(0.0, 1)]))
    assert Points([(0, 1), (2, 3)]) != Points([(2, 3), (0, 1)])
    assert Points([(0, 1)]) != Points([(0, 1)], "l1")
    assert Points([[1.0]]) != Line(1)


@pytest.mark.unit
def test_places_do_not_change() -> None:
    mine = np.array([[1.0, 2.0], [3.0, 4.0]])
    points = Points(mine, "l1")
    mine[0] = 9.0
    assert points.positions.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(dataclasses.FrozenInstanceError):
        points.norm = "euclidean"  # type: ignore[misc]
    for same in (points, copy.deepcopy(points), pickle.loads(pickle.dumps(points))):  # noqa: S301
        assert same == points
        with pytest.raises(ValueError, match="read-only"):
            same.positions[0] = 0.0


@pytest.mark.unit
@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([], r"at least one place, all with as many coordinates, got shape \(0,\)"),
        ([1.0, 2.0], r"as many coordinates, got shape \(2,\)"),
        ([[], []], r"as many coordinates, got shape \(2, 0\)"),
        ([[1.0], [1.0, 2.0]], "uneven rows"),
        ([["a", "b"]], "must be real numbers"),
        ([[0.0, math.nan]], "must be finite"),
        ([[0.0, math.inf]], "must be finite"),
        ([[0.0, 1.0], [0.0, 1.0]], "each place must be given once"),
        ([[-0.0], [0.0]], "each place must be given once"),
    ],
)
def test_positions_are_checked(positions: npt.ArrayLike, message: str) -> None:
    with pytest.raises(InvalidParameter, match=rf"{message}.*(no places were|nothing was) built"):
        Points(positions)


@pytest.mark.unit
def test_the_norm_is_checked() -> None:
    with pytest.raises(
        InvalidParameter, match="'euclidean' or 'l1', got 'l2'; no places were built"
    ):
        Points([(0, 1)], "l2")  # type: ignore[arg-type]


@pytest.mark.unit
@pytest.mark.parametrize("place", [-1, 2, 1.5])
def test_a_place_is_checked(place: int) -> None:
    points = Points([(0, 1), (2, 3)])
    asks = (
        points.neighbors,
        points.distances_from,
        lambda i: points.distance(i, 0),
        lambda i: points.distance(0, i),
    )
    for ask in asks:
        with pytest.raises(
            InvalidParameter, match=f"place must be a whole number from 0 to 1, got {place}"
        ):
            ask(place)


@pytest.mark.property
@given(places)
def test_walking_distance_is_a_metric_with_neighbors(positions: list[tuple[int, ...]]) -> None:
    points = Points(positions, "l1")
    assert_metric(points, range(points.size))
    assert_neighbors(points)


@pytest.mark.property
@given(places, st.sampled_from(["euclidean", "l1"]))
def test_distances_are_those_of_the_norm(positions: list[tuple[int, ...]], norm: Norm) -> None:
    points = Points(positions, norm)
    for i, a in enumerate(positions):
        for j, b in enumerate(positions):
            apart = [abs(x - y) for x, y in zip(a, b, strict=True)]
            wanted = math.hypot(*apart) if norm == "euclidean" else float(sum(apart))
            # hypot rounds once; three squares, two sums and a root round at most six times.
            assert points.distance(i, j) == pytest.approx(wanted, rel=1e-15)
            assert points.distance(i, j) == points.distance(j, i)


@pytest.mark.property
@given(places)
def test_neighbor_steps_realise_the_metric(positions: list[tuple[int, ...]]) -> None:
    points = Points(positions, "l1")
    for start in range(points.size):
        walks = shortest_walks(points, start, step=points.distance)
        assert walks == points.distances_from(start).tolist()
