"""What is around cells: to the last digit as scipy has it, which is not loaded for it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage
from scipy.interpolate import PchipInterpolator

from sfumato.heatmap.analysis.forecasts import forecast_table
from sfumato.heatmap.analysis.quality import METRICS
from sfumato.heatmap.inference.filters import any_around, blur_each, highest_around, mostly_around

pytestmark = pytest.mark.reference


@pytest.mark.parametrize("side", [2, 8, 32])
def test_blurs_and_windows_are_those_of_scipy(side: int, rng: np.random.Generator) -> None:
    pictures = rng.random((3, side, side)) ** 8
    for sigma in (0.6, 1.2):
        meant = [ndimage.gaussian_filter(one, sigma, mode="nearest") for one in pictures]
        assert np.array_equal(blur_each(pictures, sigma), meant)
    mask = pictures[0] > 0.01
    assert np.array_equal(
        any_around(mask), ndimage.binary_dilation(mask, np.ones((3, 3), dtype=bool))
    )
    for width in (1, 3, 7):
        assert np.array_equal(
            highest_around(pictures[0], width), ndimage.maximum_filter(pictures[0], width)
        )
        share = ndimage.uniform_filter(mask.astype(float), width, mode="nearest")
        assert np.array_equal(mostly_around(mask, width), share > 0.5)


def test_lines_of_forecasts_are_those_of_scipy() -> None:
    table = forecast_table("places")
    where = np.linspace(table.knots[0], table.knots[-1], 101)
    for metric in METRICS:
        for line, values in table.lines[metric].items():
            meant = PchipInterpolator(table.knots, values)(where)
            assert np.allclose(table.line(metric, line, where), meant, rtol=1e-12, atol=1e-14)
