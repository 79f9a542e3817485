"""Where the mass of a cell should lie by what is around it: the centers of the splits of a posterior."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.ndimage import gaussian_filter

from sfumato._types import FloatArray
from sfumato.heatmap.inference.bounded import bounded_center, parts_inside
from sfumato.spaces import Area, Grid

# A cell's mass is expected to lie as a blur of its surroundings says: a Gaussian of 0.6 cells.
SURROUNDINGS = 0.6
# No picture of a posterior is finer: below, mass is spread evenly.
FINEST = 8


def centers_of(masses: FloatArray, level: int, area: Area | None) -> FloatArray:
    """Where each cell's mass should lie by its surroundings [cell, 3]: first half, and first of each half.

    Of the surroundings, and of the cell itself, only what is inside the bounds counts.
    """
    grid = Grid(FINEST + 1)
    fine = np.kron(grid.at_level(level).image(masses), np.full((2, 2), 0.25))
    inside = parts_inside(area, level + 1)
    if inside is not None:
        of_cell = inside.reshape(1 << level, 2, 1 << level, 2).mean(axis=(1, 3))
        fine *= inside / np.maximum(np.kron(of_cell, np.ones((2, 2))), 1e-300)
    blurred = gaussian_filter(fine, 2 * SURROUNDINGS, mode="nearest")
    if inside is not None:
        blurred *= _around(area, level + 1)
    below = grid.at_level(level + 1)
    columns, rows = below.decode(np.arange(below.size))
    least = 1e-9 * max(float(masses.sum()), 1.0) / masses.size
    some = 1.0 if inside is None else inside[rows, columns].reshape(-1, 4)
    quarters = blurred[rows, columns].reshape(-1, 4) + least * some
    halves = quarters[:, ::2] + quarters[:, 1::2]
    return np.column_stack(
        [
            bounded_center(halves[:, 0], halves[:, 1]),
            bounded_center(quarters[:, 0], quarters[:, 1]),
            bounded_center(quarters[:, 2], quarters[:, 3]),
        ]
    )


@lru_cache(maxsize=32)
def _around(area: Area | None, level: int) -> FloatArray:
    """The part of each cell [row, column] inside the bounds, over that of its surroundings."""
    inside = parts_inside(area, level)
    if inside is None:
        return np.ones((1 << level, 1 << level))
    blurred = gaussian_filter(inside, 2 * SURROUNDINGS, mode="nearest")
    return np.asarray(inside / np.maximum(blurred, 1e-300))


def quarters_of(centers: FloatArray) -> FloatArray:
    """The shares of the four quarters of each cell, by its centers."""
    half, first, second = np.clip(centers, 0.0, 1.0).T
    return np.column_stack(
        [half * first, half * (1 - first), (1 - half) * second, (1 - half) * (1 - second)]
    )
