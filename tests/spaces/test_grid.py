from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
import pytest

from sfumato.errors import InvalidParameter
from sfumato.spaces import Grid

Bounds = tuple[float, float, float, float]

LEVEL_2 = [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]


@pytest.mark.unit
def test_codes_run_along_the_z_order_curve() -> None:
    grid = Grid(2)
    assert (grid.side, grid.size) == (4, 16)
    assert grid.codes_of_image().tolist() == LEVEL_2
    assert grid.encode([3, 0], [1, 2]).tolist() == [7, 8]
    columns, rows = grid.decode([7, 8])
    assert (columns.tolist(), rows.tolist()) == ([3, 0], [1, 2])


@pytest.mark.unit
def test_the_finest_codes_are_exact() -> None:
    grid = Grid(16)
    codes = grid.encode([0, 65535, 0, 65535], [0, 0, 65535, 65535])
    assert codes.dtype == np.int64
    assert codes.tolist() == [0, 0x55555555, 0xAAAAAAAA, 2**32 - 1]
    assert [part.tolist() for part in grid.decode(codes)] == [
        [0, 65535, 0, 65535],
        [0, 0, 65535, 65535],
    ]


@pytest.mark.unit
def test_family_by_hand() -> None:
    assert Grid.parent([0, 3, 4, 27, -1]).tolist() == [0, 0, 1, 6, -1]
    assert Grid.ancestor([27, 63, -1], 2).tolist() == [1, 3, -1]
    assert Grid.ancestor(27, 0) == 27
    assert Grid.children([6, -1]).tolist() == [[24, 25, 26, 27], [-1, -1, -1, -1]]
    assert Grid.children(1).tolist() == [4, 5, 6, 7]
    with pytest.raises(
        InvalidParameter, match=r"levels_up must be a whole number from 0 to 16, got -1"
    ):
        Grid.ancestor([1], -1)


@pytest.mark.unit
def test_cells_hold_their_west_and_south_edges() -> None:
    grid = Grid(1, (0, 0, 8, 2))
    x = [0.0, 3.9, 4.0, 0.0, 8.0, 8.0, 4.0]
    y = [0.0, 0.9, 0.0, 1.0, 0.0, 2.0, 1.0]
    assert grid.cells_of(x, y).tolist() == [0, 0, 1, 2, 1, 3, 3]


@pytest.mark.unit
def test_the_last_edge_is_the_bound_itself() -> None:
    west, east = -1e7, 0.1
    assert west + (east - west) != east
    grid = Grid(1, (west, 0, east, 1))
    assert grid.edges()[0].tolist() == [west, west + (east - west) / 2, east]
    assert grid.boxes(1)[2] == east
    assert grid.cells_of([east, np.nextafter(east, 1)], [0.0, 0.0]).tolist() == [1, -1]


@pytest.mark.unit
def test_points_that_are_nowhere_are_outside_and_say_nothing() -> None:
    grid = Grid(3, (-1e308, 0, 0.5e308, 1))
    x = [np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 0, 0, 0, 0]
    y = [0.5, 0.5, 0.5, 0.5, 0.5, np.nan, np.inf, -0.001, 1.001]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grid.cells_of(x, y).tolist() == [-1] * 9
        assert grid.cells_of(np.array([np.longdouble("1e400")]), np.array([0.5])).tolist() == [-1]


@pytest.mark.unit
def test_masked_points_are_outside() -> None:
    x = np.ma.array([0.1, 0.1], mask=[False, True])
    assert Grid(1).cells_of(x, np.array([0.1, 0.1])).tolist() == [0, -1]
    whole = np.ma.array([0, 1], mask=[True, False])
    assert Grid(1).cells_of(whole, whole).tolist() == [-1, 3]


@pytest.mark.unit
def test_no_points_and_one_point() -> None:
    assert Grid(2).cells_of([], []).tolist() == []
    assert Grid(2).cells_of(0.99, 0.01) == 5


@pytest.mark.unit
@pytest.mark.parametrize(
    ("x", "y"),
    [(["12.345"], [0.5]), ([12.345, None], [0.5, 0.5]), ([12.345, 0.5], [12.345]), ([1j], [0.5])],
)
def test_errors_about_points_keep_the_points_to_themselves(
    x: npt.ArrayLike, y: npt.ArrayLike
) -> None:
    with pytest.raises(InvalidParameter, match="no cell was assigned") as caught:
        Grid(2).cells_of(x, y)
    assert not any(letter.isdigit() for letter in str(caught.value))
    assert caught.value.__cause__ is None


@pytest.mark.unit
@pytest.mark.parametrize("codes", [[-1], [16], [777]])
def test_codes_are_checked_without_being_quoted(codes: list[int]) -> None:
    for ask in (Grid(2).decode, Grid(2).centers, Grid(2).boxes):
        with pytest.raises(
            InvalidParameter, match=r"^codes must be from 0 to 15; nothing was computed$"
        ):
            ask(codes)


@pytest.mark.unit
def test_columns_and_rows_are_checked() -> None:
    with pytest.raises(InvalidParameter, match="columns must be from 0 to 3"):
        Grid(2).encode([4], [0])
    with pytest.raises(InvalidParameter, match="rows must be from 0 to 3"):
        Grid(2).encode([0], [-1])
    with pytest.raises(InvalidParameter, match="rows must be whole numbers, got type float64"):
        Grid(2).encode([0], [1.0])


@pytest.mark.unit
def test_distance_is_in_the_units_of_the_bounds() -> None:
    grid = Grid(2, (10, 0, 18, 40))
    assert (grid.cell_width, grid.cell_height) == (2.0, 10.0)
    assert grid.distance(0, 1) == 2.0
    assert grid.distance(0, 2) == 10.0
    assert grid.distance(5, 10) == 3 * 2.0 + 3 * 10.0
    assert grid.diameter == 36.0


@pytest.mark.unit
def test_neighbors_by_hand() -> None:
    grid = Grid(2)
    assert grid.neighbors(0).tolist() == [1, 2]
    assert grid.neighbors(3).tolist() == [1, 2, 6, 9]
    assert grid.neighbors(13).tolist() == [7, 12, 15]
    with pytest.raises(InvalidParameter, match="cell must be a whole number from 0 to 15, got 16"):
        grid.neighbors(16)
    with pytest.raises(InvalidParameter, match="cell must be a whole number from 0 to 15, got -1"):
        grid.distance(0, -1)


@pytest.mark.unit
def test_one_cell() -> None:
    grid = Grid(0)
    assert (grid.side, grid.size, grid.diameter) == (1, 1, 0.0)
    assert grid.neighbors(0).tolist() == []
    assert grid.cells_of([0.0, 1.0, 1.1], [1.0, 1.0, 0.0]).tolist() == [0, 0, -1]
    assert grid.image(np.array([7.0])).tolist() == [[7.0]]


@pytest.mark.unit
def test_boxes_and_centers_by_hand() -> None:
    grid = Grid(1, (10, 0, 14, 20))
    assert grid.boxes([0, 3]).tolist() == [[10, 0, 12, 10], [12, 10, 14, 20]]
    assert grid.centers([0, 1, 2]).tolist() == [[11, 5], [13, 5], [11, 15]]
    assert grid.centers(3).tolist() == [13, 15]


@pytest.mark.unit
def test_row_0_of_an_image_is_the_south() -> None:
    grid = Grid(2)
    values = np.zeros(16, dtype=np.int64)
    values[grid.cells_of([0.9], [0.1])] = 1
    image = grid.image(values)
    assert image.dtype == np.int64
    assert image.tolist() == [[0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert grid.values_of_image(np.array(LEVEL_2)).tolist() == list(range(16))


@pytest.mark.unit
def test_image_shapes_are_checked() -> None:
    with pytest.raises(InvalidParameter, match=r"each of 4 cells, got shape \(5,\); no image"):
        Grid(1).image(np.zeros(5))
    with pytest.raises(InvalidParameter, match=r"2 x 2, got shape \(4,\); no values"):
        Grid(1).values_of_image(np.zeros(4))


@pytest.mark.unit
@pytest.mark.parametrize("levels", [-1, 17, 1.5])
def test_levels_are_checked(levels: int) -> None:
    with pytest.raises(
        InvalidParameter, match=f"levels must be a whole number from 0 to 16, got {levels}"
    ):
        Grid(levels)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ((0, 0, 1), "four numbers west, south, east, north"),
        ("area", "four numbers"),
        (None, "four numbers"),
        ((0, 0, 0, 1), "west < east and south < north"),
        ((0, 2, 1, 1), "west < east and south < north"),
        ((0, 0, float("nan"), 1), "finite lengths"),
        ((0, 0, 1, float("inf")), "finite lengths"),
        ((-1e308, 0, 1e308, 1), "finite lengths"),
        ((1e16, 0, 1e16 + 4, 1), "wider than the rounding of a double"),
        ((0, 0, 1, 1e-310), "wider than the rounding of a double"),
    ],
)
def test_bounds_are_checked(wrong: Bounds, message: str) -> None:
    with pytest.raises(InvalidParameter, match=f"{message}.*no grid was built"):
        Grid(2, wrong)


@pytest.mark.unit
def test_equal_grids_are_equal_values() -> None:
    same = Grid(np.int64(2), [0, 0, 1, 1])  # type: ignore[arg-type]
    assert same == Grid(2)
    assert hash(same) == hash(Grid(2))
    assert same.bounds == (0.0, 0.0, 1.0, 1.0)
    assert len({Grid(2), Grid(3), Grid(2, (0, 0, 1, 2)), Grid(3).at_level(2)}) == 3
    with pytest.raises(InvalidParameter, match="level must be a whole number from 0 to 3, got 4"):
        Grid(3).at_level(4)
