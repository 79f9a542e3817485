"""The four metrics, by formula, against other solvers, and on the ground."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.analysis.metrics import (
    TINY,
    Comparison,
    compare,
    emd_ground,
    emd_share,
    kl,
    pearson,
    similarity,
)
from sfumato.spaces import Grid
from sfumato.spaces.area import area_in_degrees, area_of_image

FloatArray = npt.NDArray[np.float64]

maps = hnp.arrays(np.float64, (8, 8), elements=st.floats(0, 100, allow_subnormal=False)).filter(
    lambda image: image.sum() > 1e-3
)


def cell(side: int, row: int, column: int) -> FloatArray:
    image = np.zeros((side, side))
    image[row, column] = 1.0
    return image


@pytest.mark.unit
def test_the_metrics_are_their_formulas() -> None:
    """As in the saliency literature, written out once more."""
    h, g = np.array([[0.5, 0.25], [0.25, 0.0]]), np.array([[0.1, 0.2], [0.3, 0.4]])
    assert math.isclose(similarity(h, g), 0.1 + 0.2 + 0.25)
    assert math.isclose(pearson(h, g), np.corrcoef(h.ravel(), g.ravel())[0, 1])
    expected = sum(
        float(a) * math.log(TINY + float(a) / (float(b) + TINY))
        for a, b in zip(h.flat, g.flat, strict=True)
    )
    assert math.isclose(kl(h, g), expected)


@pytest.mark.unit
def test_equal_maps_are_perfect_in_every_metric() -> None:
    image = np.arange(1.0, 17.0).reshape(4, 4)
    found = compare(image, 3 * image, Grid(2))
    assert math.isclose(found.similarity, 1)
    assert math.isclose(found.pearson, 1)
    assert abs(found.kl) < 1e-13
    assert found.emd < 1e-13
    assert found.emd_metres is None


@pytest.mark.unit
def test_maps_that_share_nothing() -> None:
    found = compare(cell(4, 0, 0), cell(4, 3, 3), Grid(2))
    assert found.similarity == 0
    assert math.isclose(found.pearson, -1 / 15)
    assert math.isclose(found.kl, -math.log(TINY), rel_tol=1e-9)
    assert found.emd == 1.5


@pytest.mark.unit
def test_an_even_map_correlates_with_nothing(rng: np.random.Generator) -> None:
    assert pearson(np.full((256, 256), 1 / 3), rng.random((256, 256))) == 0.0
    assert pearson(cell(4, 1, 1), np.full((4, 4), 0.1)) == 0.0


@pytest.mark.unit
def test_distances_on_the_ground_are_in_metres() -> None:
    area = area_in_degrees((-74.3, 40.5, -73.7, 40.9), 6)
    west, east = cell(64, 20, 10), cell(64, 20, 20)
    width, _ = area.cell_size
    assert math.isclose(emd_ground(west, east, area), 10 * width, rel_tol=1e-9)
    assert math.isclose(emd_share(west, east, area), 10 / 64)
    assert compare(west, east, area).emd_metres == emd_ground(west, east, area)


@pytest.mark.unit
def test_stretched_cells_cost_what_they_measure() -> None:
    area = area_in_degrees((0, 0, 4, 1), 4, square=False)
    width, height = area.cell_size
    origin = cell(16, 3, 3)
    assert math.isclose(emd_ground(origin, cell(16, 3, 5), area), 2 * width, rel_tol=1e-9)
    assert math.isclose(emd_ground(origin, cell(16, 6, 3), area), 3 * height, rel_tol=1e-9)
    assert emd_share(origin, cell(16, 6, 3), area) == 3 / 16


@pytest.mark.unit
def test_pixels_have_no_metres() -> None:
    area = area_of_image(800, 600, 4)
    assert compare(cell(16, 2, 2), cell(16, 2, 4), area).emd_metres is None
    assert math.isclose(emd_ground(cell(16, 2, 2), cell(16, 2, 4), area), 100.0)


@pytest.mark.reference
def test_distance_is_that_of_ot(rng: np.random.Generator) -> None:
    """POT's network simplex on the full matrix of l1 distances."""
    import ot

    for _ in range(5):
        h, g = rng.exponential(size=(2, 8, 8)) ** 3
        places = np.stack(np.divmod(np.arange(64), 8), axis=-1) / 8
        costs = np.abs(places[:, None] - places[None]).sum(axis=-1)
        expected = ot.emd2((h / h.sum()).ravel(), (g / g.sum()).ravel(), costs)
        assert math.isclose(emd_share(h, g, Grid(3)), expected, rel_tol=1e-9)


@pytest.mark.property
@given(maps, maps)
def test_metrics_keep_their_ranges(h: FloatArray, g: FloatArray) -> None:
    found = compare(h, g, Grid(3))
    assert -1e-12 <= found.similarity <= 1 + 1e-12
    assert -1 <= found.pearson <= 1
    assert found.kl >= -1e-9
    assert 0 <= found.emd <= 2
    # Half the l1 difference is the mass that must move, each unit at most a diameter, at least a
    # cell.
    moved = 1 - found.similarity
    assert moved / 8 - 1e-9 <= found.emd <= moved * 14 / 8 + 1e-9


@pytest.mark.property
@given(maps, maps, st.integers(0, 3))
def test_pooling_errs_by_at_most_a_diameter(h: FloatArray, g: FloatArray, level: int) -> None:
    exact, pooled = emd_share(h, g, Grid(3)), emd_share(h, g, Grid(3), level=level)
    assert abs(exact - pooled) <= 2 * 2.0**-level + 1e-9


@pytest.mark.property
@given(maps, maps)
def test_two_metrics_have_no_direction(h: FloatArray, g: FloatArray) -> None:
    one, other = compare(h, g, Grid(3)), compare(g, h, Grid(3))
    assert math.isclose(one.similarity, other.similarity, abs_tol=1e-12)
    assert math.isclose(one.pearson, other.pearson, abs_tol=1e-9)
    assert math.isclose(one.emd, other.emd, abs_tol=1e-12)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("h", "g"),
    [
        (np.ones((2, 2)), np.ones((4, 4))),
        (np.zeros((2, 2)), np.ones((2, 2))),
        (np.array([[1.0, -1.0], [3.0, 1.0]]), np.ones((2, 2))),
        (np.array([[1.0, math.nan], [3.0, 1.0]]), np.ones((2, 2))),
    ],
)
def test_what_is_no_map_is_refused(h: FloatArray, g: FloatArray) -> None:
    for metric in (similarity, pearson, kl):
        with pytest.raises(InvalidInput, match="nothing was compared"):
            metric(h, g)
    with pytest.raises(InvalidInput, match="nothing was compared"):
        emd_share(h, g, Grid(1))


@pytest.mark.unit
def test_a_distance_needs_a_map_of_the_grid() -> None:
    for shape in ((3, 3), (2, 4), (8, 8)):
        with pytest.raises(InvalidInput, match="power of two"):
            emd_share(np.ones(shape), np.ones(shape), Grid(2))
    with pytest.raises(InvalidParameter, match="level must be at least 0"):
        emd_share(np.ones((4, 4)), np.ones((4, 4)), Grid(2), level=-1)


@pytest.mark.unit
def test_a_comparison_is_frozen() -> None:
    found = Comparison(1.0, 1.0, 0.0, 0.0, None)
    with pytest.raises(AttributeError):
        found.kl = 1.0  # type: ignore[misc]
