"""Smoothing is the heatmap of section 2.3 with the normalization of each source, and keeps all mass."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfumato.errors import InvalidParameter
from sfumato.heatmap.analysis.blur import smooth

FloatArray = npt.NDArray[np.float64]

images = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    elements=st.floats(0, 1e6, allow_subnormal=False),
)
sigmas = st.floats(1e-3, 10.0)


def by_definition(image: FloatArray, sigma: float, *, as_printed: bool = False) -> FloatArray:
    """Four loops: the sum over sources, each divided by its own Z (or, as printed, by the target's)."""
    rows, columns = image.shape
    cells = [(i / rows, j / columns) for i in range(rows) for j in range(columns)]
    gauss = [
        [math.exp(-((a - c) ** 2 + (b - d) ** 2) / (2 * sigma**2)) for c, d in cells]
        for a, b in cells
    ]
    out = np.zeros(rows * columns)
    for target in range(out.size):
        for source in range(out.size):
            weight = gauss[target][source] / sum(gauss[target if as_printed else source])
            out[target] += weight * image.ravel()[source]
    return out.reshape(image.shape)


@pytest.mark.reference
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 5), (1, 6)])
@pytest.mark.parametrize("sigma", [0.02, 0.2, 3.0])
def test_smoothing_is_the_papers_sum(
    shape: tuple[int, int], sigma: float, rng: np.random.Generator
) -> None:
    image = rng.exponential(size=shape)
    np.testing.assert_allclose(smooth(image, sigma), by_definition(image, sigma), rtol=1e-12)


@pytest.mark.property
@given(images, sigmas)
def test_all_mass_is_kept(image: FloatArray, sigma: float) -> None:
    spread = smooth(image, sigma)
    assert spread.min() >= 0
    assert math.isclose(spread.sum(), image.sum(), rel_tol=1e-12)


@pytest.mark.property
@given(images, sigmas)
def test_a_turned_image_is_smoothed_alike(image: FloatArray, sigma: float) -> None:
    np.testing.assert_allclose(
        smooth(image.T, sigma), smooth(image, sigma).T, rtol=1e-9, atol=1e-300
    )
    np.testing.assert_allclose(
        smooth(image[::-1], sigma), smooth(image, sigma)[::-1], rtol=1e-9, atol=1e-300
    )


@pytest.mark.unit
def test_the_papers_normalization_as_printed_loses_mass() -> None:
    """Section 2.3 prints Z(x', y') with the distance to (x, y): then a corner cell gives too little."""
    corner = np.zeros((8, 8))
    corner[0, 0] = 1.0
    assert by_definition(corner, 0.2, as_printed=True).sum() < 0.9
    assert math.isclose(smooth(corner, 0.2).sum(), 1.0, rel_tol=1e-12)


@pytest.mark.unit
def test_sigma_nothing_changes_nothing() -> None:
    image = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(smooth(image, 0.0), image)
    assert np.array_equal(smooth(image, 1e-300), image)
    assert smooth(np.zeros((0, 3)), 0.1).shape == (0, 3)


@pytest.mark.unit
def test_a_wide_filter_makes_an_even_map() -> None:
    image = np.zeros((4, 8))
    image[1, 2] = 1.0
    np.testing.assert_allclose(smooth(image, 1e6), 1 / 32, rtol=1e-9)


@pytest.mark.unit
@pytest.mark.parametrize("sigma", [-0.1, math.nan, math.inf])
def test_sigma_is_checked(sigma: float) -> None:
    with pytest.raises(InvalidParameter, match="nothing was smoothed"):
        smooth(np.ones((2, 2)), sigma)


@pytest.mark.unit
def test_an_image_has_two_dimensions() -> None:
    with pytest.raises(InvalidParameter, match="got 1 dimensions"):
        smooth(np.ones(4), 0.1)
