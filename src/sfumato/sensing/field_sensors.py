"""Sensors that do not tell what they should: an offset they all share, and single ones that are off."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr
from scipy.sparse.linalg import LinearOperator
from scipy.special import chdtrc, log_ndtr

from sfumato.errors import InvalidParameter
from sfumato.sensing.build import linear
from sfumato.sensing.misfit import checked_readings, checked_sigma
from sfumato.sensing.operators import HeatLine, HeatPlane, Matrix, Operator
from sfumato.sensing.sensors import Sensors
from sfumato.sensing.solver.compress import range_of
from sfumato.spaces.space import FloatArray, real_array

LARGE = 1 << 22
"""Entries above which a matrix is not formed."""
SAMPLE = 512
"""Cells that stand for all others where heat is smooth, to find the directions they move readings in."""
MOST_READINGS = 1500
"""Sensors up to which directions are looked for where every direction of readings is reached."""
FAINT = 0.05
"""Signal of one source, in sigma, that may stay outside the directions taken for signal."""
ALONE = 1e-3
"""The least share of its own reading in its residual with which a sensor can be judged by the others."""
MOST_SUSPECTS = 1 / 4
"""The share of all sensors at which no more are suspected: then it is the physics that does not fit."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A sensor that the others contradict: how many deviations it is off, and how likely noise alone does so.

    `z` is what it read less what the others say, in its deviations; with several rounds, of their mean.
    `p_value` is after Bonferroni: the chance that any of the sensors would be as far off by noise.
    """

    sensor: str
    z: float
    p_value: float


def check_reach(operator: Operator) -> None:
    """Refuse sensors of which none reads anything of any source."""
    m, n = operator.shape
    # One product mostly tells; entries of a matrix may cancel in it.
    if not operator.readings(np.ones(n)).any() and not any(operator.adjoint(row).any() for row in np.eye(m)):
        raise InvalidParameter(
            f"at least one sensor must be in reach of a source, got {m} that read 0 of all {n} cells; "
            "no field was fitted"
        )


def without_offset(operator: Operator, y: npt.ArrayLike) -> tuple[Matrix, FloatArray]:
    """The same sources and what differs between sensors: for an estimator that knows of no offset.

    An unknown constant added to all m readings moves them along one direction; what is left after a rotation
    takes it out are m - 1 readings, with white noise of the same sigma, of an operator rotated alike. Nothing
    else is lost: it is the exact answer to an offset of which nothing is known. The new sensors are
    contrasts, without a place. The rotation is Householder's: a reflection that maps the constant
    vector to the first axis [golub09, ch. 1].

    It costs what a wide scene and an offset have in common: sources everywhere look like an offset.

    >>> from sfumato.sensing.build import heat_line
    >>> hall = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> warm, cold = (without_offset(hall, hall.columns([30])[:, 0] + ambient)[1] for ambient in (20.0, 0.0))
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


def suspects(
    operator: Operator,
    y: npt.ArrayLike,
    *,
    sigma: float,
    upper: float = 1.0,
    offset: bool = False,
    level: float = 0.01,
) -> tuple[Suspect, ...]:
    """The sensors to go and look at: dead, stuck or drifting ones, found one after another.

    The few directions in which sources move readings are fitted freely; what a sensor reads beyond what the
    others then say, in its deviations, is standard normal if all sensors are well, whatever the sources are.
    The worst leaves if Bonferroni's p-value is below `level`, and all is fitted anew, until none is or a
    quarter of the sensors has left. So all sensors are well and one is suspected at most `level` of the time.
    With several rounds (rows of y), the mean over rounds shows drifts, and the sum of squares sensors that
    are dead while the scene changes; each has half of the level.

    Limits: signal of which one source of mass `upper` has less than 0.05 sigma counts as noise, so very many
    sources at the same place would raise the level. A sensor is only as testable as others read the
    same: a dead one where nothing was to be read looks well, and where every sensor is a direction of
    its own (a graph read at every node and a small rate) nothing is found. With `offset` all readings may
    share an unknown constant.

    >>> from sfumato.sensing.build import heat_line
    >>> hall = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> read = hall.columns([30])[:, 0]
    >>> read[14] = 0.0
    >>> [found.sensor for found in suspects(hall, read, sigma=0.1)]
    ['14']
    """
    rounds = np.atleast_2d(real_array("readings", y))
    if rounds.ndim != 2:
        raise InvalidParameter(f"readings must be a row, or rows, got shape {rounds.shape}; nothing was done")
    for row in rounds:
        checked_readings(operator, row, what="nobody was suspected")
    if not 0 < level < 1:
        raise InvalidParameter(f"level must be between 0 and 1, got {level}; nobody was suspected")
    noise = checked_sigma(sigma)
    signal = _signal(operator, noise / math.sqrt(len(rounds)), upper=upper, offset=offset)
    names, m = operator.sensors.names, rounds.shape[1]
    rows, found = np.arange(m), list[Suspect]()
    # Of two that differ and may share an offset, neither is known to be the bad one.
    while len(found) < MOST_SUSPECTS * m and signal.shape[1] < rows.size and rows.size > 1 + offset:
        z, chance = _judge(rounds[:, rows], _orthonormal(signal[rows]), noise)
        worst = int(np.argmin(chance))
        p_value = min(1.0, m * float(chance[worst]))
        if p_value >= level:
            break
        found.append(Suspect(names[rows[worst]], float(z[worst]), p_value))
        rows = np.delete(rows, worst)
    return tuple(found)


def _judge(rounds: FloatArray, basis: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray]:
    """For each sensor the residual of the mean in its deviations, and a p-value."""
    own = 1 - np.sum(basis**2, axis=1)  # the residual of a reading has the variance sigma**2 times this
    able = own > ALONE
    each = (rounds - (rounds @ basis) @ basis.T) / (sigma * np.sqrt(np.where(able, own, 1.0)))
    z = math.sqrt(len(rounds)) * each.mean(axis=0)
    chance = 2 * np.exp(log_ndtr(-np.abs(z)))
    if len(rounds) > 1:
        chance = 2 * np.minimum(chance, chdtrc(len(rounds), np.sum(each**2, axis=0)))
    return np.where(able, z, 0.0), np.where(able, chance, 1.0)


def _signal(operator: Operator, sigma: float, *, upper: float, offset: bool) -> FloatArray:
    """Directions of readings with more than FAINT of a source, and the constant one if asked for."""
    m, n = operator.shape
    found = range_of(operator)
    if found.basis is None and m > MOST_READINGS:
        return np.eye(m)  # nobody looks for fewer, so nobody is suspected
    smooth = isinstance(operator, HeatLine | HeatPlane) and n > SAMPLE
    cells = np.linspace(0, n - 1, SAMPLE).astype(np.int64) if smooth else np.arange(n)
    columns = found.into(operator.columns(cells))
    _, _, directions = np.linalg.svd(columns, full_matrices=False)
    weights = columns @ directions.T
    beyond = np.sqrt(np.cumsum(weights[:, ::-1] ** 2, axis=1)[:, ::-1]).max(axis=0)
    kept = directions[upper * beyond > FAINT * sigma].T
    basis = kept if found.basis is None else found.basis @ kept
    return np.column_stack([basis, np.ones((m, 1))]) if offset else basis


def _orthonormal(directions: FloatArray) -> FloatArray:
    """A basis of the same directions: fewer where some coincide, as a constant and the signal may."""
    if not directions.size:
        return directions
    basis, triangle, _ = qr(directions, mode="economic", pivoting=True)
    sizes = np.abs(np.diagonal(triangle))
    return np.asarray(basis[:, sizes > 1e-9 * sizes[0]])


def contrasts_of(readings: FloatArray) -> FloatArray:
    """All but the first entry after the reflection that maps the constant vector to the first axis."""
    m = len(readings)
    shift = (readings[0] * math.sqrt(m) + readings.sum(axis=0)) / (m + math.sqrt(m))
    return np.asarray(readings[1:] - shift)


def whitened(readings: FloatArray, sigma: float, offset: float) -> FloatArray:
    """Readings whose shared offset, normal with this deviation, and noise are together white of sigma.

    Contrasts have no offset. The mean, times sqrt(m), has the variance sigma**2 + m offset**2, and is scaled
    down to sigma**2: to nothing where the deviation is infinite.
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
