"""Spread each cell's mass over its surroundings: from shares of cells to a heatmap."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter


def smooth(image: FloatArray, sigma: float) -> FloatArray:
    """The heatmap of an image: a Gaussian around every cell, of deviation sigma in sides of the image.

    H(x, y) = sum over cells (x', y') of p(x', y') / Z(x', y') exp(-|(x, y) - (x', y')|^2 / (2
    sigma^2)), with Z(x', y') the sum of the Gaussian around that source over the whole image, so
    that no mass is lost at the edges [ghazi23, sec. 2.3]; the paper prints the Z of (x, y), with
    which the heatmap of a distribution is none. Sigma 0 leaves the image as it is.

    Args:
        image: Masses [row, column].
        sigma: Deviation of the Gaussian in sides of the image, at least 0.

    Returns:
        The heatmap, of the same shape and mass.

    Raises:
        InvalidParameter: Sigma is negative or not finite, or the image has not two dimensions.

    Example:
        >>> smooth(np.array([[1.0, 0.0], [0.0, 0.0]]), 0.5).round(3)
        array([[0.387, 0.235],
               [0.235, 0.143]])

    """
    if not (math.isfinite(sigma) and sigma >= 0):
        raise InvalidParameter(
            f"sigma must be finite and at least 0, got {sigma}; nothing was smoothed"
        )
    if image.ndim != 2:
        raise InvalidParameter(
            f"an image has rows and columns, got {image.ndim} dimensions; nothing was smoothed"
        )
    if sigma == 0 or image.size == 0:
        return image.astype(np.float64)
    rows, columns = image.shape
    spread: FloatArray = _spread(rows, sigma) @ image @ _spread(columns, sigma).T
    return spread


def smooth_part(image: FloatArray, sigma: float, *, side: int) -> FloatArray:
    """The heatmap of a part of a square image of `side` cells, of which nothing goes beyond its edges.

    >>> smooth_part(np.array([[1.0, 0.0]]), 0.5, side=2).round(3)
    array([[0.622, 0.378]])
    """
    rows, columns = image.shape
    down, across = (_spread(length, sigma * side / length) for length in (rows, columns))
    return np.asarray(down @ image @ across.T)


def smooth_each(images: npt.NDArray[np.float32], sigma: float) -> npt.NDArray[np.float32]:
    """The heatmaps of many images [image, row, column] of one size, in single precision: half the time.

    >>> smooth_each(np.array([[[1, 0], [0, 0]]], dtype=np.float32), 0.5).round(3)
    array([[[0.387, 0.235],
            [0.235, 0.143]]], dtype=float32)
    """
    _, rows, columns = images.shape
    down, across = (_spread(side, sigma).astype(np.float32) for side in (rows, columns))
    for kernel in (down, across):
        kernel[kernel < 1e-18] = 0  # numbers so small that processors slow down on them
    sideways = (images.reshape(-1, columns) @ across.T).reshape(images.shape)
    return np.asarray(np.matmul(down, sideways), dtype=np.float32)


@lru_cache(maxsize=16)
def _spread(side: int, sigma: float) -> FloatArray:
    """How each source (column) shares its mass among the cells of one axis; columns add up to 1."""
    steps = np.arange(side) / side
    # A deviation of 1e-12 sides is already the identity on any grid; its square must not vanish.
    gap = (steps[:, None] - steps[None, :]) / max(sigma, 1e-12)
    weights: FloatArray = np.exp(-(gap**2) / 2)
    weights /= weights.sum(axis=0)
    weights.setflags(write=False)
    return weights
