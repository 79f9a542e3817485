"""What is around each cell of a picture: blurs and windows by NumPy alone.

The same numbers as those of `scipy.ndimage`, whose import takes longer than all that is filtered here.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from sfumato._types import BoolArray, FloatArray

# A Gaussian is cut off beyond so many deviations.
TRUNCATED = 4.0


def blur_each(pictures: FloatArray, sigma: float) -> FloatArray:
    """Pictures [picture, row, column] blurred by a Gaussian of so many cells; edges go on beyond themselves.

    >>> blur_each(np.array([[[0.0, 1.0, 0.0]]]), 0.3).round(2)
    array([[[0.  , 0.99, 0.  ]]])
    """
    weights = _weights(sigma)
    return _along(_along(pictures, weights, axis=1), weights, axis=2)


def _along(pictures: FloatArray, weights: FloatArray, *, axis: int) -> FloatArray:
    """The farthest neighbors first, each with the one opposite: in the order in which scipy adds."""
    radius, length = weights.size - 1, pictures.shape[axis]
    wide = [(radius, radius) if at == axis else (0, 0) for at in range(3)]
    padded = np.pad(pictures, wide, mode="edge")

    def shifted(step: int) -> FloatArray:
        place = slice(radius + step, radius + step + length)
        return padded[:, place] if axis == 1 else padded[:, :, place]

    found: FloatArray = pictures * weights[0]
    both = np.empty_like(pictures)
    for step in range(radius, 0, -1):
        np.add(shifted(-step), shifted(step), out=both)
        both *= weights[step]
        found += both
    return found


@lru_cache(maxsize=8)
def _weights(sigma: float) -> FloatArray:
    """From the middle on; all of them, on both sides, add up to 1."""
    radius = math.floor(TRUNCATED * sigma + 0.5)
    steps = np.arange(-radius, radius + 1)
    found: FloatArray = np.exp(-0.5 / (sigma * sigma) * steps**2)
    return np.asarray((found / found.sum())[radius:])


def highest_around(picture: FloatArray, width: int) -> FloatArray:
    """The highest value in a square of an odd width around each cell.

    >>> highest_around(np.array([[1.0, 2.0, 0.0, 0.0]]), 3)
    array([[2., 2., 2., 0.]])
    """
    for axis in (0, 1):
        picture = _windows(picture, width, axis=axis).max(axis=-1)
    return picture


def mostly_around(mask: BoolArray, width: int) -> BoolArray:
    """Whether most cells in a square of an odd width around each are set; edges go on beyond themselves."""
    count = mask.astype(np.int64)
    for axis in (0, 1):
        padded = np.cumsum(_padded(count, width // 2 + 1, axis=axis), axis=axis)
        ends = (slice(width, None), slice(None, -width))
        late, early = (padded[one] if axis == 0 else padded[:, one] for one in ends)
        count = (late - early)[: mask.shape[0], : mask.shape[1]]
    return np.asarray(2 * count > width * width, dtype=np.bool_)


def any_around(mask: BoolArray) -> BoolArray:
    """Whether a cell or one of its eight neighbors is set.

    >>> any_around(np.array([[True, False, False]]))
    array([[ True,  True, False]])
    """
    found = mask
    for axis in (0, 1):
        found = np.asarray(_windows(found, 3, axis=axis).any(axis=-1), dtype=np.bool_)
    return found


def _windows(values: npt.NDArray[Any], width: int, *, axis: int) -> npt.NDArray[Any]:
    return sliding_window_view(_padded(values, width // 2, axis=axis), width, axis=axis)


def _padded(values: npt.NDArray[Any], by: int, *, axis: int) -> npt.NDArray[Any]:
    return np.pad(values, [(by, by) if at == axis else (0, 0) for at in range(2)], mode="edge")
