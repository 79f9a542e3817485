from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from tests.spaces.laws import assert_metric, assert_neighbors, shortest_walks

from sfumato.spaces import Grid


@st.composite
def grids(draw: st.DrawFn, *, max_levels: int = 16) -> Grid:
    """Any area a map may have, down to cells hardly wider than the rounding of doubles.

    The generator gives numbers with all their bits in use; the short ones hypothesis prefers hide
    rounding.
    """
    levels = draw(st.integers(0, max_levels))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def span() -> tuple[float, float]:
        low = float(rng.uniform(-1, 1) * 10 ** rng.uniform(-3, 7))
        smallest = 17 * 2**levels * math.ulp(2 * max(abs(low), 1.0))
        return low, low + smallest * (1e7 / smallest) ** float(rng.uniform())

    (west, east), (south, north) = span(), span()
    return Grid(levels, (west, south, east, north))


@st.composite
def exact_grids(draw: st.DrawFn, *, max_levels: int) -> Grid:
    """Grids whose cell sides are whole numbers, so that distances add without rounding."""
    levels, width, height = draw(
        st.tuples(st.integers(0, max_levels), st.integers(1, 99), st.integers(1, 99))
    )
    return Grid(levels, (-5, 3, -5 + (width << levels), 3 + (height << levels)))


@st.composite
def points(draw: st.DrawFn, grid: Grid) -> tuple[float, float]:
    """A point of the area: anywhere, on an edge, or a hair beside one."""

    def coordinate(edges: npt.NDArray[np.float64]) -> float:
        low, high = float(edges[0]), float(edges[-1])
        edge = float(edges[draw(st.integers(0, edges.size - 1))])
        beside = draw(
            st.sampled_from([edge, np.nextafter(edge, -np.inf), np.nextafter(edge, np.inf)])
        )
        chosen = draw(st.one_of(st.floats(low, high), st.just(float(beside))))
        return min(max(chosen, low), high)

    x_edges, y_edges = grid.edges()
    return coordinate(x_edges), coordinate(y_edges)


def codes_of(grid: Grid) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, grid.size - 1), min_size=1, max_size=6)


def holds(grid: Grid, box: npt.NDArray[np.float64], x: float, y: float) -> bool:
    """The half-open rule, written out: far edges count only where the area ends."""
    west, south, east, north = box
    in_column = west <= x < east or x == east == grid.bounds[2]
    in_row = south <= y < north or y == north == grid.bounds[3]
    return bool(in_column and in_row)


@pytest.mark.property
@settings(deadline=None)
@given(st.data(), st.integers(0, 16))
def test_codes_interleave_bits(data: st.DataObject, levels: int) -> None:
    grid = Grid(levels)
    cells = data.draw(
        st.lists(st.tuples(*[st.integers(0, grid.side - 1)] * 2), min_size=1, max_size=20)
    )
    columns, rows = (list(part) for part in zip(*cells, strict=True))
    by_bits = [
        sum(((c >> k & 1) << 2 * k) + ((r >> k & 1) << 2 * k + 1) for k in range(levels))
        for c, r in cells
    ]
    codes = grid.encode(columns, rows)
    assert codes.tolist() == by_bits
    assert [part.tolist() for part in grid.decode(codes)] == [columns, rows]


@pytest.mark.property
@settings(deadline=None)
@given(st.data(), st.integers(0, 16))
def test_decode_then_encode_is_the_same_code(data: st.DataObject, levels: int) -> None:
    grid = Grid(levels)
    codes = data.draw(codes_of(grid))
    assert grid.encode(*grid.decode(codes)).tolist() == codes


@pytest.mark.property
@given(st.data(), st.integers(0, 16))
def test_family_is_consistent(data: st.DataObject, levels: int) -> None:
    codes = np.array(data.draw(codes_of(Grid(levels))))
    children = Grid.children(codes)
    assert children.shape == (codes.size, 4)
    assert (Grid.parent(children) == codes[:, None]).all()
    assert all(len(set(four)) == 4 for four in children.tolist())
    up = data.draw(st.integers(0, levels))
    by_steps = codes
    for _ in range(up):
        by_steps = Grid.parent(by_steps)
    assert (Grid.ancestor(codes, up) == by_steps).all()
    assert (Grid.ancestor(codes, levels) == 0).all()


@pytest.mark.property
@settings(deadline=None)
@given(st.data(), grids(max_levels=3))
def test_a_point_falls_in_the_one_box_that_holds_it(data: st.DataObject, grid: Grid) -> None:
    x, y = data.draw(points(grid))
    code = int(grid.cells_of(x, y))
    boxes = grid.boxes(np.arange(grid.size))
    assert [k for k in range(grid.size) if holds(grid, boxes[k], x, y)] == [code]


@pytest.mark.property
@settings(deadline=None)
@given(st.data(), grids())
def test_box_and_ancestors_hold_the_point_at_every_level(data: st.DataObject, grid: Grid) -> None:
    x, y = data.draw(points(grid))
    code = int(grid.cells_of(x, y))
    assert holds(grid, grid.boxes(code), x, y)
    for up in range(grid.levels + 1):
        assert grid.at_level(grid.levels - up).cells_of(x, y) == Grid.ancestor(code, up)


@pytest.mark.property
@settings(deadline=None)
@given(grids())
def test_cells_begin_and_end_at_their_edges(grid: Grid) -> None:
    (x, y), each = grid.edges(), np.arange(grid.side)
    first = grid.cells_of(x[:-1], y[:-1])
    last = grid.cells_of(np.nextafter(x[1:], -np.inf), np.nextafter(y[1:], -np.inf))
    assert (first == grid.encode(each, each)).all()
    assert (last == grid.encode(each, each)).all()


@pytest.mark.property
@settings(deadline=None)
@given(grids())
def test_edges_are_where_they_should_be(grid: Grid) -> None:
    for edges, low, high in zip(grid.edges(), grid.bounds[:2], grid.bounds[2:], strict=True):
        assert edges.size == grid.side + 1
        assert (edges[0], edges[-1]) == (low, high)
        assert (np.diff(edges) > 0).all()
        k = grid.side // 3
        true_edge = Fraction(low) + (Fraction(high) - Fraction(low)) * k / grid.side
        assert abs(Fraction(float(edges[k])) - true_edge) <= 4 * Fraction(
            np.spacing(max(abs(low), abs(high)))
        )


@pytest.mark.property
@settings(deadline=None)
@given(st.data(), grids())
def test_centers_lie_in_their_cells(data: st.DataObject, grid: Grid) -> None:
    codes = data.draw(codes_of(grid))
    x, y = grid.centers(codes).T
    assert grid.cells_of(x, y).tolist() == codes


@pytest.mark.property
@settings(deadline=None)
@given(grids(), st.floats(), st.floats())
def test_points_outside_are_outside(grid: Grid, x: float, y: float) -> None:
    west, south, east, north = grid.bounds
    assume(not (west <= x <= east and south <= y <= north))
    assert grid.cells_of(x, y) == -1


@pytest.mark.property
@given(st.integers(0, 5), st.data())
def test_image_and_back(levels: int, data: st.DataObject) -> None:
    grid = Grid(levels)
    values = np.array(data.draw(st.permutations(range(grid.size))))
    image = grid.image(values)
    assert (grid.values_of_image(image) == values).all()
    columns, rows = grid.decode(np.arange(grid.size))
    assert (image[rows, columns] == values).all()


@pytest.mark.property
@settings(deadline=None)
@given(st.data(), exact_grids(max_levels=16))
def test_a_grid_is_a_metric(data: st.DataObject, grid: Grid) -> None:
    assert_metric(grid, data.draw(codes_of(grid)))


@pytest.mark.property
@settings(deadline=None, max_examples=30)
@given(st.data(), exact_grids(max_levels=3))
def test_neighbor_steps_realise_the_metric(data: st.DataObject, grid: Grid) -> None:
    assert_neighbors(grid)
    rows = grid.decode(np.arange(grid.size))[1]
    start = data.draw(st.integers(0, grid.size - 1))

    def step(i: int, j: int) -> float:
        return grid.cell_width if rows[i] == rows[j] else grid.cell_height

    assert shortest_walks(grid, start, step=step) == [
        grid.distance(start, j) for j in range(grid.size)
    ]


@pytest.mark.reference
@pytest.mark.parametrize("area", [(0, 0, 1, 1), (-74.3, 40.5, -73.7, 40.9)])
def test_distance_is_cityblock_between_centers(area: tuple[float, float, float, float]) -> None:
    grid = Grid(3, area)
    centers = grid.centers(np.arange(grid.size))
    ours = np.array([[grid.distance(i, j) for j in range(grid.size)] for i in range(grid.size)])
    # A center is rounded at the size of the bounds, a distance is not: allow for the roundings of a
    # pair.
    np.testing.assert_allclose(
        ours, cdist(centers, centers, "cityblock"), rtol=0, atol=4 * np.spacing(74.3)
    )
    np.testing.assert_allclose(grid.diameter, ours.max(), rtol=0, atol=0)
