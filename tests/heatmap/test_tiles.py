"""Tiles: mass on cells of many levels is the same map at every resolution."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.heatmap.tiles import Tiles, dense_tiles, inside
from sfumato.spaces import Area, Grid


@pytest.fixture
def tiles(rng: np.random.Generator) -> Tiles:
    levels = rng.integers(0, 6, 40)
    codes = np.array([rng.integers(0, 4**level) for level in levels])
    return Tiles(Grid(6), levels, codes, rng.random(40))


@pytest.mark.property
def test_levels_agree(tiles: Tiles) -> None:
    fine = tiles.values(6)
    for level in range(6):
        assert np.allclose(tiles.values(level), fine.reshape(4**level, -1).sum(axis=1), rtol=1e-12)
    assert tiles.total == pytest.approx(fine.sum(), rel=1e-12)
    assert tiles.normalized().values(3).sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.unit
def test_a_picture_has_its_first_row_at_the_lowest_y() -> None:
    tiles = Tiles(Grid(1), np.array([1]), np.array([1]), np.array([2.0]))
    assert tiles.image().tolist() == [[0, 2], [0, 0]]


@pytest.mark.unit
def test_no_mass_at_all_is_an_even_map() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert (
        Tiles(Grid(16), nothing, nothing, np.zeros(0)).normalized().values(1).tolist() == [0.25] * 4
    )


@pytest.mark.unit
def test_dense_tiles_leave_empty_cells_out() -> None:
    tiles = dense_tiles(Grid(3), 1, np.array([0.0, 1.0, 0.0, 3.0]))
    assert (tiles.codes.tolist(), tiles.masses.tolist(), tiles.levels.tolist()) == (
        [1, 3],
        [1, 3],
        [1, 1],
    )


@pytest.mark.unit
@pytest.mark.parametrize("mass", [-1.0, np.nan, np.inf])
def test_masses_are_finite_and_not_negative(mass: float) -> None:
    with pytest.raises(InvalidParameter, match="no map was made"):
        Tiles(Grid(1), np.array([0]), np.array([0]), np.array([mass]))


@pytest.mark.unit
def test_a_level_too_fine_for_memory_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="at most 12"):
        Tiles(Grid(16), np.array([0]), np.array([0]), np.array([1.0])).values(13)


@pytest.mark.property
def test_a_map_cut_to_its_bounds_keeps_what_touches_them(
    tiles: Tiles, rng: np.random.Generator
) -> None:
    low = rng.uniform(0, 0.5, 2)
    high = low + rng.uniform(0.1, 0.5, 2)
    area = Area(Grid(6), (*low, *high), "plane")
    cut = inside(tiles, area)
    column, row, column_end, row_end = area.window(6)
    before, after = tiles.image(6), cut.image(6)
    window = np.zeros_like(before, dtype=bool)
    window[row:row_end, column:column_end] = True
    assert np.all(after[~window] == 0)
    # Every tile that touches the bounds keeps its mass, every other is dropped.
    touching = 0.0
    for level, code, mass in zip(tiles.levels, tiles.codes, tiles.masses, strict=True):
        one = Tiles(Grid(6), np.array([level]), np.array([code]), np.array([mass]))
        touching += mass * bool(one.image(6)[window].any())
    assert cut.total == pytest.approx(touching, rel=1e-12)


@pytest.mark.unit
def test_an_area_that_is_its_grid_cuts_nothing(tiles: Tiles) -> None:
    same = inside(tiles, Area(Grid(6), (0, 0, 1, 1), "plane"))
    assert np.allclose(same.image(6), tiles.image(6), rtol=1e-15)
