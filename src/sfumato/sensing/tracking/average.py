"""Several rounds of one scene at rest as a single reading."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato._validate import real_array
from sfumato.errors import InvalidParameter


def combine(rounds: npt.ArrayLike, sigmas: float | npt.ArrayLike) -> tuple[FloatArray, float]:
    """The one reading that says all that rounds of a scene at rest say, and the sigma of its noise.

    The mean with weights 1 / sigma**2 is sufficient for Gaussian noise; its variance is 1 over
    their sum. Sources that move are blurred by it: `track` is for them.

    Args:
        rounds: A row of readings for each round.
        sigmas: Standard deviation of the noise, one or one for each round.

    Returns:
        One reading for each sensor, and the deviation of its noise.

    Raises:
        InvalidParameter: If rounds are not finite, or a deviation is not above 0.

    >>> combine([[1, 0], [2, 1], [3, 2], [2, 1]], 0.5)
    (array([2., 1.]), 0.25)
    """
    read, noise = checked_rounds(rounds, sigmas)
    if len(read) == 1:  # as it is, to the last bit
        return read[0], float(noise[0])
    weights = 1 / noise**2
    return np.asarray(weights @ read / weights.sum()), float(1 / math.sqrt(weights.sum()))


def checked_rounds(
    rounds: npt.ArrayLike, sigma: float | npt.ArrayLike, *, gaps: bool = False
) -> tuple[FloatArray, FloatArray]:
    """One row of finite numbers for each round, and the deviation of its noise.

    With `gaps` entries may be no numbers, where a sensor did not read; some sensor did in each round.
    """
    read = real_array("rounds", rounds)
    noise = real_array("sigma", sigma)
    missing = np.isnan(read) if gaps else np.zeros(read.shape, dtype=bool)
    whole = read.ndim == 2 and 0 not in read.shape and not missing.all(axis=1).any()
    if not whole or not np.isfinite(read[~missing]).all():
        raise InvalidParameter(
            f"rounds must be one or more rows of finite numbers, got shape {read.shape}; nothing was computed"
        )
    if (
        noise.ndim > 1
        or noise.size not in (1, len(read))
        or not ((noise > 0) & np.isfinite(noise)).all()
    ):
        raise InvalidParameter(
            f"sigma must be above 0, one for all or for each of {len(read)} rounds; nothing was computed"
        )
    return read, np.broadcast_to(noise, len(read)) if noise.size == 1 else noise
