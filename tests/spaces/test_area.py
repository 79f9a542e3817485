"""Areas: cells square on the ground, windows that cover what was asked, clear refusals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.spaces import Area, Grid, area_in_degrees, area_of_image, area_of_plane
from sfumato.spaces.area import part_of

degrees = st.tuples(
    st.floats(-180, 170), st.floats(-70, 60), st.floats(0.01, 10), st.floats(0.01, 10)
).map(lambda t: (t[0], t[1], t[0] + t[2], t[1] + t[3]))


@pytest.mark.property
@given(degrees, st.integers(0, 10))
def test_cells_are_nearly_square_in_metres_and_cover_what_was_asked(
    bounds: tuple[float, ...], levels: int
) -> None:
    area = area_in_degrees(bounds, levels)  # type: ignore[arg-type]
    width, height = area.cell_size
    assert max(width, height) <= 1.4143 * min(width, height)
    west, south, east, north = area.grid.bounds
    assert west <= bounds[0] < bounds[2] <= east
    assert south <= bounds[1] < bounds[3] <= north


@pytest.mark.property
@given(degrees, st.integers(0, 10))
def test_the_window_holds_the_bounds_and_no_whole_cell_more(
    bounds: tuple[float, ...], level: int
) -> None:
    area = area_in_degrees(bounds, 10)  # type: ignore[arg-type]
    grid = area.grid.at_level(level)
    column, row, column_end, row_end = area.window(level)
    x, y = grid.edges()
    slack = 2e-6 * grid.cell_width, 2e-6 * grid.cell_height
    assert x[column] <= bounds[0] + slack[0]
    assert x[column_end] >= bounds[2] - slack[0]
    assert y[row] <= bounds[1] + slack[1]
    assert y[row_end] >= bounds[3] - slack[1]
    assert x[column + 1] > bounds[0]
    assert x[column_end - 1] < bounds[2]
    assert y[row + 1] > bounds[1]
    assert y[row_end - 1] < bounds[3]


@pytest.mark.property
@given(st.integers(1, 4000), st.integers(1, 4000), st.integers(2, 10))
def test_no_cell_that_is_counted_is_cut_by_the_bounds(width: int, height: int, level: int) -> None:
    """A cell of 480 px had 60 px inside an image of 1920 x 1080, and all of its noise there."""
    area = area_of_image(width, height, 10)
    grid = area.grid.at_level(level)
    first_column, first_row, end_column, end_row = area.window(level)
    across = (end_column - first_column) * grid.cell_width
    up = (end_row - first_row) * grid.cell_height
    if min(width, height) * 2**level * math.sqrt(2) >= max(width, height):
        assert (across, up) == pytest.approx((width, height))
    else:  # a strip thinner than a cell: one row of cells, all of them cut alike
        assert min(end_column - first_column, end_row - first_row) == 1


@pytest.mark.unit
def test_a_degree_is_111_km_at_the_equator_and_half_of_it_at_60_north() -> None:
    assert area_in_degrees((0, -0.5, 1, 0.5), 0).cell_size == pytest.approx(
        (111_195, 111_195), rel=1e-4
    )
    north = area_in_degrees((0, 59.5, 1, 60.5), 0, square=False)
    assert north.cell_size[0] / north.cell_size[1] == pytest.approx(0.5, rel=1e-9)


@pytest.mark.unit
def test_west_above_east_crosses_the_antimeridian() -> None:
    area = area_in_degrees((179, -1, -179, 1), 3)
    assert area.bounds == (179, -1, 181, 1)
    assert area.crosses_antimeridian
    assert not area_in_degrees((178, -1, 180, 1), 3).crosses_antimeridian
    assert area_in_degrees((90, -10, -90, 10), 3).bounds == (90, -10, 270, 10)


@pytest.mark.unit
def test_a_part_may_be_wider_than_what_is_asked_for_across_the_antimeridian() -> None:
    """Its bounds are told by the area, so that west and east are not exchanged."""
    area = area_in_degrees((0, -60, 170, 60), 4)
    assert part_of(area, (-10, -60, 182, 60), 4).bounds == (-10, -60, -178 + 360, 60)


@pytest.mark.unit
def test_pixels_and_planes_keep_their_units() -> None:
    assert area_of_image(800, 600, 0).cell_size == (800, 800)
    assert area_of_image(800, 600, 3).window(3) == (0, 0, 8, 6)
    assert area_of_image(800, 600, 3, square=False).cell_size == (100, 75)
    assert area_of_image(800, 600, 3).unit == "px"
    assert area_of_plane((0, 0, 4, 2), 0).grid.bounds == (0, 0, 4, 4)
    assert area_of_plane((0, 0, 4, 2), 0, square=False).cell_size == (4, 2)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((-190, 0, 10, 10), "longitudes must lie in -180..180, got -190 and 10"),
        ((0, 10, 10, 10), "latitudes must rise"),
        ((0, -91, 10, 10), "latitudes must rise"),
        ((5, 0, 5, 10), "west and east must differ"),
        ((180, 0, -180, 10), "west and east must differ, 180 and -180 are one meridian"),
        (
            (11.32, 43.74, 11.2, 43.81),
            r"west 11\.32 must be below east 11\.2: .* 359\.88 degrees wide, more than 180",
        ),
        ((90, 0, -89.5, 10), r"west 90 must be below east -89\.5: .* 180\.5 degrees wide"),
        ((-180, -90, 180, 90), r"no square on the Earth .* \(`square=False`\)"),
        ((0, 89.5, 1, 90), "no square on the Earth"),
        ((0, 0, math.nan, 1), "must be finite"),
        ((0, 0, 1), "must be four numbers"),
    ],
)
def test_impossible_areas_are_refused(bounds: tuple[float, ...], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words) as refusal:
        area_in_degrees(bounds, 4)  # type: ignore[arg-type]
    assert str(refusal.value).endswith("no area was made")


@pytest.mark.unit
def test_the_whole_earth_can_be_stretched() -> None:
    assert area_in_degrees((-180, -90, 180, 90), 4, square=False).window(4) == (0, 0, 16, 16)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("bounds", "grid"),
    [
        ((19, 41, -169, 82), (19, 0, 191, 82)),  # Russia: two of four rows, the others in the south
        ((-180, -90, 180, -60), (-180, -90, 180, 30)),  # Antarctica: one of four
        # Three of four rows would reach beyond a pole on either side: a square around them.
        ((0, -60, 170, 60), (0, -85, 170, 85)),
    ],
)
def test_a_square_beyond_a_pole_is_moved_back(
    bounds: tuple[float, float, float, float], grid: tuple[float, ...]
) -> None:
    area = area_in_degrees(bounds, 8)
    assert area.grid.bounds == pytest.approx(grid)
    assert max(area.cell_size) <= 1.4143 * min(area.cell_size)


@pytest.mark.property
@given(st.floats(-90, 89), st.floats(0.5, 180), st.floats(0.5, 360))
def test_a_square_is_refused_only_if_there_is_none(
    south: float, height: float, width: float
) -> None:
    north = min(90.0, south + height)
    bounds = (-180, south, -180 + width, north)
    shrink = math.cos(math.radians((south + north) / 2))
    side = max(north - south, width * shrink)  # in degrees of latitude
    try:
        grid = area_in_degrees(bounds, 4).grid.bounds
    except InvalidParameter:
        assert side > 180 - 1e-9 or side / shrink > 360 - 1e-9 or shrink < 0.01
    else:
        assert (grid[1] >= -90, grid[3] <= 90) == (True, True)
        assert side / 1.4143 <= grid[3] - grid[1] <= side * 1.4143


@pytest.mark.unit
def test_a_window_has_a_row_and_a_column_however_thin() -> None:
    for bounds in ((0, 0, 1e7, 0.001), (0, 0, 0.001, 1e7)):
        for level in range(9):
            column, row, column_end, row_end = area_of_plane(bounds, 8).window(level)
            assert max(column_end - column, row_end - row) == 2**level
            assert min(column_end - column, row_end - row) == 1
    # Nothing but the last millionth of a cell.
    assert Area(Grid(3), (1 - 1e-8, 0.5, 1, 0.5 + 1e-8), "plane").window(3) == (7, 4, 8, 5)


@pytest.mark.unit
def test_a_grid_that_does_not_cover_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="must cover"):
        Area(Grid(2, (0, 0, 1, 1)), (0, 0, 2, 1), "plane")
    with pytest.raises(InvalidParameter, match="kind"):
        Area(Grid(2), (0, 0, 1, 1), "miles")  # type: ignore[arg-type]
