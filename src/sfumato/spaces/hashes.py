"""Numbers that look random and are always the same: one network has one answer, whoever asks and when.

Starts of k-means and splits of dyads need numbers that have nothing to do with the network, not
numbers that nobody can foresee. So they are a fixed function of a counter and a salt, public
arithmetic, and never noise of a release.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray

_GOLDEN, _FIRST, _SECOND = (
    np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def mixed(counters: IntArray, salt: int) -> npt.NDArray[np.uint64]:
    """The salt-th hash of each counter: SplitMix64, two rounds [steele14]."""
    start = _finish(np.array([salt], dtype=np.int64).view(np.uint64) * _GOLDEN + _GOLDEN)
    return _finish(np.asarray(counters, dtype=np.int64).view(np.uint64) * _GOLDEN + start)


def hashed(counters: IntArray, salt: int) -> FloatArray:
    """The same as numbers in [0, 1), multiples of 2**-53.

    Args:
        counters: Whole numbers.
        salt: Which hash.

    Returns:
        A number in [0, 1) for each.

    Example:
        >>> hashed(np.arange(3), 0).round(3).tolist() == hashed(np.arange(3), 0).round(3).tolist()
        True

    """
    return np.ldexp((mixed(counters, salt) >> np.uint64(11)).astype(np.float64), -53)


def _finish(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return np.asarray(z ^ (z >> np.uint64(31)))
