"""What a source adds, how far heat spreads, what sensors read where nobody is: fitted, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidInput
from sfumato.sensing.model.operators.heat import heat

HELD = 0.95
"""The probability with which intervals hold what they are about."""
TIMES = 80
LEAST_FREE = 5
"""Readings beyond the parameters: fewer say nothing of the noise."""
UNRESPONSIVE = 0.25
"""Of what the others' gain says: a sensor that goes along with a volunteer by less does not read it."""
UNLIKELY = 1e-3
"""The chance, over all sensors, below which that is not the noise."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A number, its standard error, and the interval that holds the truth with 95 %."""

    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationFit:
    """What was fitted: the gain and the time are None where nobody stood in the room.

    `beside` is what a source adds to a sensor where it stands: gain (4 pi T)**(-d / 2). `unresponsive` are
    sensors that do not go along with the volunteer though the others say how far they should;
    `stuck` are those that read one and the same number each time, where readings of others vary by
    more than their last digit.
    """

    gain: Fitted | None
    time: Fitted | None
    beside: Fitted | None
    ambient: Fitted
    levels: FloatArray
    level_errors: FloatArray
    deviation: float
    free: int
    unresponsive: tuple[int, ...] = ()
    stuck: tuple[int, ...] = ()


def fit_calibration(
    values: FloatArray,
    sensors: IntArray,
    places: FloatArray,
    masses: FloatArray,
    positions: FloatArray,
    *,
    raw: FloatArray | None = None,
) -> CalibrationFit:
    """Least squares for value = level of the sensor + gain * mass * heat(sensor - place; T) + noise.

    For a given T it is linear; T minimises what is left. Errors are those of the linearised model with
    independent noise of one deviation [seber03, sec. 2.1.2]; of T on its logarithm.

    Args:
        values: Readings.
        sensors: The number of the sensor of each.
        places: Where the volunteer stood, a row for each reading; not a number where nobody did.
        masses: The mass of the volunteer; 0 where nobody stood.
        positions: Where sensors are.
        raw: Readings before a running baseline was taken off them, which is how a stuck sensor shows; None
            where none was.

    Returns:
        The fit.
    """
    from scipy.optimize import minimize_scalar
    from scipy.stats import t as student

    count = len(positions)
    read = np.bincount(sensors, minlength=count)
    if not read.all():
        raise InvalidInput(
            f"every sensor must be read, number {int(np.argmin(read)) + 1} of {count} is not; nothing was "
            "fitted"
        )
    someone = masses > 0
    free = values.size - count - (2 if someone.any() else 0)
    if free < LEAST_FREE:
        raise InvalidInput(
            f"{values.size} readings are too few for {count} sensors: at least {count + 2 + LEAST_FREE} are "
            "needed; nothing was fitted"
        )

    def apart(numbers: FloatArray) -> FloatArray:
        """Less the mean of the sensor's readings."""
        means = np.bincount(sensors, numbers, count) / read
        return np.asarray(numbers - means[sensors])

    own = apart(values)
    read_as = values if raw is None else raw
    if not someone.any():
        sigma = math.sqrt(float(own @ own) / free)
        fit = _fit(values, sensors, read, sigma, free, student.ppf((1 + HELD) / 2, free))
        return replace(fit, stuck=_stuck(read_as, sensors, apart(read_as), read))
    ways = np.where(someone[:, np.newaxis], positions[sensors] - places, 0.0)

    def kernel(time: float) -> FloatArray:
        return np.asarray(masses * np.prod(heat(ways, time), axis=1))

    def left(log_time: float) -> float:
        seen = apart(kernel(math.exp(log_time)))
        size = float(seen @ seen)
        return float(own @ own) - (max(float(seen @ own), 0.0) ** 2 / size if size else 0.0)

    far = float(np.square(ways[someone]).sum(axis=1).max())
    if far == 0:
        raise InvalidInput("the volunteer stood at one sensor only; nothing was fitted")
    logs = np.linspace(math.log(far * 1e-5), math.log(far * 10), TIMES)
    tried = np.array([left(one) for one in logs])
    best = int(tried.argmin())
    if best in (0, TIMES - 1):
        raise InvalidInput(
            "no diffusion time fits: what the volunteer adds does not fall off with distance as heat does, "
            "or is too little to be seen; nothing was fitted"
        )
    found = minimize_scalar(
        left, bounds=(logs[best - 1], logs[best + 1]), method="bounded", options={"xatol": 1e-9}
    )
    time = math.exp(float(found.x))
    seen = kernel(time)
    gain = float(apart(seen) @ own) / float(apart(seen) @ apart(seen))
    sigma = math.sqrt(max(float(found.fun), 0.0) / free)
    axes = positions.shape[1]
    squares = np.square(ways).sum(axis=1)
    slope = gain * seen * (squares / (4 * time) - axes / 2)  # along the logarithm of T
    both = np.column_stack([seen, slope])
    inner = np.column_stack([apart(column) for column in both.T])
    spread = np.asarray(np.linalg.inv(inner.T @ inner) * sigma**2, dtype=np.float64)
    wide = float(student.ppf((1 + HELD) / 2, free))
    height = (4 * math.pi * time) ** (-axes / 2)
    # The logarithm of gain * height, whose error it is: that of gain less axes / 2 of that of T.
    along = np.array([1 / gain, -axes / 2])
    relative = math.sqrt(float(along @ spread @ along))
    fit = _fit(values, sensors, read, sigma, free, wide, both=both, spread=spread, gain=gain)
    return CalibrationFit(
        _around(gain, math.sqrt(float(spread[0, 0])), wide),
        _by_factor(time, math.sqrt(float(spread[1, 1])), wide),
        _by_factor(gain * height, relative, wide),
        fit.ambient,
        fit.levels,
        fit.level_errors,
        sigma,
        free,
        _unresponsive(own, apart(seen), sensors, read),
        _stuck(read_as, sensors, apart(read_as - gain * seen), read),
    )


def _unresponsive(
    own: FloatArray, seen: FloatArray, sensors: IntArray, read: IntArray
) -> tuple[int, ...]:
    """Sensors whose own gain is far below that of all others together, by more than noise explains.

    Both are slopes through readings less their sensor's mean; the noise is that of the others.
    """
    from scipy.special import stdtr

    count = read.size
    with_it = np.bincount(sensors, seen * own, count)
    size, square = np.bincount(sensors, seen**2, count), np.bincount(sensors, own**2, count)
    found = []
    for one in np.flatnonzero(size > 0).tolist():
        rest = float(size.sum() - size[one])
        free = int(read.sum() - read[one]) - count
        if rest <= 0 or free < 1:
            continue
        gain = float(with_it.sum() - with_it[one]) / rest
        left = float(square.sum() - square[one]) - gain**2 * rest
        noise = math.sqrt(max(left, 0.0) / free * (1 / float(size[one]) + 1 / rest))
        less = gain - float(with_it[one]) / float(size[one])
        surely = noise == 0 or count * float(stdtr(free, -less / noise)) < UNLIKELY
        if gain > 0 and less > (1 - UNRESPONSIVE) * gain and surely:
            found.append(one)
    return tuple(found)


def _stuck(
    values: FloatArray, sensors: IntArray, own: FloatArray, read: IntArray
) -> tuple[int, ...]:
    """Sensors of which all readings are one number, where chance would not do that to any.

    `own` is what is left of them without their mean and the volunteer, whom a far sensor does not read.
    Noise of deviation s, rounded to steps of q, is at one step with a chance of at most
    q / (s sqrt(2 pi)): so often, but for the first, to the power of the readings.
    """
    count = read.size
    levels = np.unique(values)
    step = float(np.diff(levels).min(initial=math.inf))
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, sensors, values)
    np.maximum.at(high, sensors, values)
    still = low == high
    others = ~still[sensors]
    free = int(others.sum() - (~still).sum())
    if not still.any() or free < LEAST_FREE or not math.isfinite(step):
        return ()
    noise = math.sqrt(float(own[others] @ own[others]) / free)
    likely = min(1.0, step / (noise * math.sqrt(2 * math.pi))) if noise > 0 else 1.0
    return tuple(
        one
        for one in np.flatnonzero(still).tolist()
        if count * likely ** max(int(read[one]) - 1, 0) < UNLIKELY
    )


def _fit(
    values: FloatArray,
    sensors: IntArray,
    read: IntArray,
    sigma: float,
    free: int,
    wide: float,
    *,
    both: FloatArray | None = None,
    spread: FloatArray | None = None,
    gain: float = 0.0,
) -> CalibrationFit:
    """The levels of sensors, given what the source adds."""
    count = len(read)
    levels = np.bincount(sensors, values, count) / read
    shared = np.zeros((count, 2))
    if both is not None:
        shared = np.column_stack([np.bincount(sensors, column, count) / read for column in both.T])
        levels = levels - gain * shared[:, 0]
    held = np.zeros((2, 2)) if spread is None else spread
    variances = sigma**2 / read + np.einsum("si,ij,sj->s", shared, held, shared)
    mean = shared.mean(axis=0)
    variance = sigma**2 * float((1 / read).sum()) / count**2 + float(mean @ held @ mean)
    ambient = _around(float(levels.mean()), math.sqrt(variance), wide)
    return CalibrationFit(None, None, None, ambient, levels, np.sqrt(variances), sigma, free)


def _around(value: float, error: float, wide: float) -> Fitted:
    return Fitted(value, error, value - wide * error, value + wide * error)


def _by_factor(value: float, relative: float, wide: float) -> Fitted:
    """With an interval by factors, which stays above 0."""
    factor = math.exp(wide * relative)
    return Fitted(value, value * relative, value / factor, value * factor)
