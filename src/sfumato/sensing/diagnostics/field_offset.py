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
from sfumato.sensing.model.sensors import Sensors

LARGE = 1 << 22
"""Entries above which a matrix is not formed."""


def remove_offset(operator: Operator, y: npt.ArrayLike) -> tuple[Matrix, FloatArray]:
    """The same sources and what differs between sensors: for an estimator that knows of no offset.

    An unknown constant added to all m readings moves them along one direction; what is left after a
    rotation takes it out are m - 1 readings, with white noise of the same sigma, of an operator
    rotated alike. Nothing else is lost: it is the exact answer to an offset of which nothing is
    known. The new sensors are contrasts, without a place. The rotation is Householder's: a
    reflection that maps the constant vector to the first axis [golub09, ch. 1].

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
    rotated = (
        contrasts_of(operator.columns(np.arange(n)))
        if m * n <= LARGE
        else LinearOperator(  # rows of a reflection, so never formed
            (m - 1, n),
            matvec=lambda f: contrasts_of(operator.readings(np.ravel(f))),
            rmatvec=lambda z: operator.adjoint(_from_contrasts(np.ravel(z))),
            dtype=np.float64,
        )
    )
    return linear(rotated, operator.space, sensors=contrasts), contrasts_of(readings)


def contrasts_of(readings: FloatArray) -> FloatArray:
    """All but the first entry after the reflection that maps the constant vector to the first axis."""
    m = len(readings)
    shift = (readings[0] * math.sqrt(m) + readings.sum(axis=0)) / (m + math.sqrt(m))
    return np.asarray(readings[1:] - shift)


def whitened(readings: FloatArray, sigma: float, offset: float) -> FloatArray:
    """Readings whose shared offset, normal with this deviation, and noise are together white of sigma.

    Contrasts have no offset. The mean, times sqrt(m), has the variance sigma**2 + m offset**2, and
    is scaled down to sigma**2: to nothing where the deviation is infinite.
    """
    if offset == 0:
        return readings
    m = len(readings)
    share = sigma / math.hypot(sigma, math.sqrt(m) * offset) if math.isfinite(offset) else 0.0
    mean = share * readings.sum(axis=0, keepdims=True) / math.sqrt(m)
    return np.concatenate([mean, contrasts_of(readings)])


def _from_contrasts(contrasts: FloatArray) -> FloatArray:
    """The transposed map: readings without a mean."""
    m = len(contrasts) + 1
    total = float(contrasts.sum())
    first = -total / math.sqrt(m)
    return np.concatenate([[first], contrasts - total / (m + math.sqrt(m))])
