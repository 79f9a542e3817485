"""Where the mass of a cell should lie by what is around it: the centers of the splits of a posterior."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.inference.bounded import bounded_center, parts_inside
from sfumato.heatmap.inference.filters import blur_each
from sfumato.spaces import Area, Grid

# A cell's mass is expected to lie as a blur of its surroundings says: a Gaussian of 0.6 cells.
SURROUNDINGS = 0.6
# No picture of a posterior is finer: below, mass is spread evenly.
FINEST = 8


def centers_of(masses: FloatArray, level: int, area: Area | None) -> FloatArray:
    """Where each cell's mass should lie by its surroundings [cell, 3]: first half, and first of each half.

    Of the surroundings, and of the cell itself, only what is inside the bounds counts. Masses may be
    those of several maps, one after another.
    """
    each = masses.reshape(-1, 4**level)
    fine = _doubled(np.take(each, _codes(level), axis=1) * 0.25)
    inside = parts_inside(area, level + 1)
    if inside is not None:
        fine *= _of_cell(area, level + 1)
    blurred = blur_each(fine, 2 * SURROUNDINGS)
    if inside is not None:
        blurred *= _around(area, level + 1)
    places = _places(level + 1)
    least = 1e-9 * np.maximum(each.sum(axis=1), 1.0) / 4**level
    some = 1.0 if inside is None else inside.ravel()[places]
    seen = np.take(blurred.reshape(len(each), -1), places, axis=1)
    quarters = seen + least[:, None, None] * some
    quarters = quarters.reshape(-1, 4)
    halves = quarters[:, ::2] + quarters[:, 1::2]
    return np.column_stack(
        [
            bounded_center(halves[:, 0], halves[:, 1]),
            bounded_center(quarters[:, 0], quarters[:, 1]),
            bounded_center(quarters[:, 2], quarters[:, 3]),
        ]
    )


def _doubled(pictures: FloatArray) -> FloatArray:
    """The same pictures [..., row, column] with four cells for each of their own."""
    return np.repeat(np.repeat(pictures, 2, axis=-2), 2, axis=-1)


# Maps of nobody are made a hundred at a time: what depends on the level alone is made once.
@lru_cache(maxsize=FINEST + 2)
def _codes(level: int) -> IntArray:
    return Grid(level).codes_of_image()


@lru_cache(maxsize=FINEST + 2)
def _places(level: int) -> IntArray:
    """Where in a picture the four quarters of each cell of the level above are [cell, quarter]."""
    columns, rows = Grid(level).decode(np.arange(4**level))
    return (rows * (1 << level) + columns).reshape(-1, 4)


@lru_cache(maxsize=32)
def _of_cell(area: Area | None, level: int) -> FloatArray:
    """The part of each cell [row, column] inside the bounds, over that of the cell above it."""
    inside = parts_inside(area, level)
    if inside is None:
        return np.ones((1 << level, 1 << level))
    side = 1 << level - 1
    above = inside.reshape(side, 2, side, 2).mean(axis=(1, 3))
    return np.asarray(inside / np.maximum(_doubled(above), 1e-300))


@lru_cache(maxsize=32)
def _around(area: Area | None, level: int) -> FloatArray:
    """The part of each cell [row, column] inside the bounds, over that of its surroundings."""
    inside = parts_inside(area, level)
    if inside is None:
        return np.ones((1 << level, 1 << level))
    (blurred,) = blur_each(inside[None], 2 * SURROUNDINGS)
    return np.asarray(inside / np.maximum(blurred, 1e-300))


def quarters_of(centers: FloatArray) -> FloatArray:
    """The shares of the four quarters of each cell, by its centers."""
    half, first, second = np.clip(centers, 0.0, 1.0).T
    return np.column_stack(
        [half * first, half * (1 - first), (1 - half) * second, (1 - half) * (1 - second)]
    )
