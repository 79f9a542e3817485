"""Readings without an offset that all of them share: what differs between sensors."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.diagnostics.misfit import checked_readings
from sfumato.sensing.model.operators.matrix import Matrix, linear
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.model.sensors import Sensors

LARGE = 1 << 22
"""Entries above which a matrix is not formed."""


def remove_offset(operator: Operator, y: npt.ArrayLike) -> tuple[Matrix, FloatArray]:
    """The same sources and what differs between sensors: for an estimator that knows of no offset.

    An unknown constant added to all m readings moves them along one direction; what is left after a
    rotation takes it out are m - 1 readings, with white noise of the same sigma, of an operator
    rotated alike. Nothing else is lost: it is the exact answer to an offset of which nothing is
    known. The new sensors are contrasts, without a place. The rotation is Householder's: a
    reflection that maps the constant vector to the first axis [golub09, ch. 1]. Where each sensor has its
    own noise an offset adds its gain to each reading, and the gains are that vector.

    It costs what a wide scene and an offset have in common: sources everywhere look like an offset.

    >>> from sfumato.sensing import heat_line
    >>> hall = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> warm, cold = (remove_offset(hall, hall.columns([30])[:, 0] + ambient)[1] for ambient in (20.0, 0.0))
    >>> bool(abs(warm - cold).max() < 1e-12)
    True
    """
    readings = checked_readings(operator, y, what="nothing was computed")
    m, n = operator.shape
    if m < 2:
        raise InvalidParameter(
            "an offset needs 2 sensors or more to be told from, got 1; nothing was computed"
        )
    contrasts = Sensors(np.arange(1, m), [f"contrast {i}" for i in range(1, m)])
    level = gains_of(operator)
    rotated = (
        contrasts_of(operator.columns(np.arange(n)), level)
        if m * n <= LARGE
        else LinearOperator(  # rows of a reflection, so never formed
            (m - 1, n),
            matvec=lambda f: contrasts_of(operator.readings(np.ravel(f)), level),
            rmatvec=lambda z: operator.adjoint(_from_contrasts(np.ravel(z), level)),
            dtype=np.float64,
        )
    )
    return linear(rotated, operator.space, sensors=contrasts), contrasts_of(readings, level)


def free_of(values: FloatArray, level: FloatArray) -> FloatArray:
    """Readings less what an offset may have added to them; `level` is what an offset of 1 adds to each."""
    return np.asarray(values - np.multiply.outer(level, level @ values / (level @ level)))


def contrasts_of(readings: FloatArray, level: FloatArray) -> FloatArray:
    """All but the first entry after the reflection that maps what an offset adds to the first axis."""
    unit = level / np.linalg.norm(level)
    shift = (readings[0] + unit @ readings) / (1 + unit[0])  # gains are not negative
    return np.asarray(readings[1:] - np.multiply.outer(unit[1:], shift))


def whitened(readings: FloatArray, sigma: float, offset: float, level: FloatArray) -> FloatArray:
    """Readings whose shared offset, normal with this deviation, and noise are together white of sigma.

    Contrasts have no offset. What is read along `level`, which an offset of 1 adds, has the variance sigma**2 +
    |level|**2 offset**2, and is scaled down to sigma**2: to nothing where the deviation is infinite.
    """
    if offset == 0:
        return readings
    size = float(np.linalg.norm(level))
    share = sigma / math.hypot(sigma, size * offset) if math.isfinite(offset) else 0.0
    mean = share * (level @ readings)[np.newaxis] / size
    return np.concatenate([mean, contrasts_of(readings, level)])


def _from_contrasts(contrasts: FloatArray, level: FloatArray) -> FloatArray:
    """The transposed map: readings that have nothing along what an offset adds."""
    unit = level / np.linalg.norm(level)
    along = float(unit[1:] @ contrasts)
    return np.concatenate([[-along], contrasts - unit[1:] * along / (1 + unit[0])])
