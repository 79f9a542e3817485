"""What can be recovered at best: the papers' bounds on the error in earth mover's distance, corrected.

Upper bounds hold up to a constant that nobody has computed; lower bounds hold as they are.

Long because every bound says what it needs, what the papers print, and where their proof fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy.special import chdtr, ndtr

from sfumato._types import FloatArray
from sfumato._validate import whole
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import MovedMass
from sfumato.privacy.accounting import fano_error
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.sensitivity import sensitivity
from sfumato.spaces import Line
from sfumato.transport import emd

HARDEST = 0.7517915
"""Where u Phi(-u) is largest; any u gives a valid bound, so its digits matter to nothing but the best one."""
SAME = 1e-9  # of the line: places nearer than this are the same


def papers_radius_coverage(sensors: int) -> float:
    """How often the papers' radius sigma sqrt(m) admits the true sources: P(|noise|_2 <= sigma sqrt(m)).

    The papers have "with high probability" [gilbert17, after lem. 7], but it falls to 1/2 as
    sensors are added: the square of |noise| / sigma is chi-square with mean m. The bound they cite,
    P(|noise|**2 > sigma**2 (m + 2 sqrt(m t) + 2 t)) <= exp(-t) [hsu12], is right; it says nothing
    at t = 0.

    Args:
        sensors: How many sensors, m, at least 1.

    Returns:
        The probability, above 1/2.

    Raises:
        InvalidParameter: There is no sensor.

    >>> [round(papers_radius_coverage(m), 3) for m in (10, 50, 1000)]
    [0.56, 0.527, 0.506]
    """
    m = whole("sensors", sensors, low=1)
    return float(chdtr(m, m))


@dataclass(frozen=True, slots=True)
class RecoveryBound:
    """An upper bound up to its constant: EMD <= min(1, K bracket) for some K that the proof does not give.

    `bracket` is what the proof gives when its steps are corrected, `printed` what the papers print.
    Each hypothesis comes with whether it is known to hold; where one does not, neither number says
    anything. Two of them the papers do not state: their proof needs sensors on both sides of every
    source, and that all sources stand alike between their sensors.
    """

    bracket: float
    printed: float
    hypotheses: tuple[tuple[str, bool], ...]

    @property
    def applies(self) -> bool:
        """Whether everything that the proof needs is known to hold."""
        return all(holds for _, holds in self.hypotheses)


def recovery_bound(
    *,
    sources: int,
    sensors: int | npt.ArrayLike,
    diffusion_time: float,
    sigma: float,
    separation: float | None = None,
    margin: float | None = None,
    places: npt.ArrayLike | None = None,
) -> RecoveryBound:
    """How the error of l1 recovery on [0, 1] grows, up to a constant, for k unit sources under noise.

    1/(1 - min{1,C}) [sqrt(T C / k) + k min{1,C} + C/k] with C = min{k, sigma + k exp(-A**2 / 4T)},
    for both vectors scaled to mass 1. Sources are at least `separation` apart, which must be given
    for more than one unless their `places` are; the margin A is what that leaves, (separation -
    sqrt(2T)) / 2, unless given. It needs noise within the radius: `papers_radius_coverage`. A
    number of sensors means 1/m, 2/m, ..., 1; their places may be given.

    Where the sources are decides whether the proof holds, so it `applies` only to `places` that are
    given. It pairs floor(m sqrt(T/2)) sensors on either side of a source, within sqrt(T/2) of it:
    near an end there are fewer, or none (C_4 = 0 at x = 0.01 with 50 sensors). And it takes what
    such pairs read of one source for what they read of another, "by the uniformity of the sensor
    locations": so for sources a whole number of sensors' steps apart, and no others.

    [gilbert17, thm. 9] [gilbert18, thm. 14] [mcmillan18, thm. 8.6] print sqrt(T^1.5 C / (sqrt(T) +
    1)) / k + k min{1,C} + T^2 C / ((T + 1) k) and a factor sqrt(T) in C. Their proof bounds -g' by
    a multiple of T^-1/2 where T^-1 is right (C_2), keeps a factor g' that cancels (C_3), puts m = 1
    in m / (m sqrt(T) + 1), and sums k square roots as if their masses summed to 1; docs/errata.md
    has them one by one.

    The proof is lossy, and so are powers of T that follow from it. For one source x away from the
    ends,
    |M(f - f0)| <= 2 sigma sqrt(m) tried on the column of x gives sum of f_j (1 - exp(-(x_j - x)**2 / 8T))
    <= 2 sigma (8 pi T)^(1/4) up to how well sensors sum the integral: a C that falls as T^(1/4).

    Args:
        sources: How many unit sources, k, at least 1.
        sensors: How many sensors there are, or their places on the line.
        diffusion_time: T = diffusivity times time, positive and finite.
        sigma: Standard deviation of the noise of a reading, positive and finite.
        separation: The least distance between two sources, above 0; None means that of `places`,
            and is refused for several sources without them.
        margin: The margin A, from 0; None means (separation - sqrt(2T)) / 2, and at least 0.
        places: Where the sources are, one number of [0, 1] for each; None leaves it open, and then
            the bound does not apply.

    Returns:
        The bracket, corrected and as printed, and which hypotheses of the proof hold.

    Raises:
        InvalidParameter: A number is out of its range, or `places` and `separation` disagree.

    >>> setting = dict(sources=1, sensors=50, diffusion_time=0.05, sigma=0.1)
    >>> bound = recovery_bound(**setting, places=[0.5])
    >>> round(bound.bracket, 4), round(bound.printed, 4), bound.applies
    (0.3008, 0.0375, True)
    >>> recovery_bound(**setting, places=[0.01]).applies, recovery_bound(**setting).applies
    (False, False)
    """
    _positive("diffusion_time", diffusion_time)
    _positive("sigma", sigma)
    k, cross, hypotheses = _setting(
        sources, _sensors(sensors), diffusion_time, separation, margin, places
    )
    root = math.sqrt(diffusion_time)
    return RecoveryBound(
        _corrected(k, diffusion_time, sigma + cross),
        _as_printed(k, diffusion_time, root * (sigma + cross)),
        hypotheses,
    )


def private_recovery_bound(
    *,
    sources: int,
    cells: int,
    sensors: int | npt.ArrayLike,
    diffusion_time: float,
    epsilon: float,
    delta: float,
    separation: float | None = None,
    margin: float | None = None,
    places: npt.ArrayLike | None = None,
) -> RecoveryBound:
    """The same when the noise is the papers' own, sigma = 2 ln(1.25/delta) Delta / epsilon.

    For noise of another calibration give its sigma to `recovery_bound`. Delta, for a unit that
    moves by one cell, is computed and not bounded; it grows as T^-3/4 when T is small. `printed`
    has the C of [gilbert17, cor. 10], min{k, sqrt(m) ln(1/delta) / (n T epsilon) + sqrt(T) k
    exp(-A**2 / 4T)}.

    Args:
        sources: How many unit sources, k, at least 1.
        cells: How many cells the line has, n, at least 2.
        sensors: How many sensors there are, or their places on the line.
        diffusion_time: T = diffusivity times time, positive and finite.
        epsilon: The epsilon of one reading of all sensors, positive and finite.
        delta: Its delta, above 0 and below 1.
        separation: The least distance between two sources, above 0; None means that of `places`,
            and is refused for several sources without them.
        margin: The margin A, from 0; None means (separation - sqrt(2T)) / 2, and at least 0.
        places: Where the sources are, one number of [0, 1] for each; None leaves it open, and then
            the bound does not apply.

    Returns:
        The bracket, corrected and as printed, and which hypotheses of the proof hold.

    Raises:
        InvalidParameter: A number is out of its range, or `places` and `separation` disagree.

    >>> shared = dict(sources=1, sensors=50, diffusion_time=0.05, epsilon=4, delta=0.1)
    >>> [round(private_recovery_bound(cells=n, **shared).bracket, 3) for n in (100, 1000)]
    [0.526, 0.065]
    """
    stand, n = _sensors(sensors), whole("cells", cells, low=2)
    m = stand.size
    _positive("diffusion_time", diffusion_time)
    _positive("epsilon", epsilon)
    if not 0 < delta < 1:
        raise InvalidParameter(
            f"delta must be above 0 and below 1, got {delta}; nothing was computed"
        )
    k, cross, hypotheses = _setting(sources, stand, diffusion_time, separation, margin, places)
    step = _slope(heat_line(sources=n, sensors=stand, diffusion_time=diffusion_time)) / n
    sigma = 2 * math.log(1.25 / delta) * step / epsilon
    noise = math.sqrt(m) * math.log(1 / delta) / (n * diffusion_time * epsilon)
    return RecoveryBound(
        _corrected(k, diffusion_time, sigma + cross),
        _as_printed(k, diffusion_time, noise + math.sqrt(diffusion_time) * cross),
        hypotheses,
    )


def _sensors(sensors: int | npt.ArrayLike) -> FloatArray:
    """Where the sensors are on [0, 1], from left to right."""
    places = np.asarray(sensors, dtype=np.float64)
    if places.ndim == 0:
        m = whole("sensors", cast(int, sensors), low=1)
        return np.arange(1, m + 1) / m
    if places.ndim != 1 or not places.size or not np.isfinite(places).all():
        raise InvalidParameter(
            f"sensors must be a number or finite places in one row, got shape {places.shape}; "
            "nothing was computed"
        )
    return np.sort(places)


def _setting(
    sources: int,
    sensors: FloatArray,
    time: float,
    separation: float | None,
    margin: float | None,
    places: npt.ArrayLike | None,
) -> tuple[int, float, tuple[tuple[str, bool], ...]]:
    """How many sources, what others add, k exp(-A**2 / 4T), and what the proof needs."""
    k, m = whole("sources", sources, low=1), sensors.size
    stand = None if places is None else np.sort(np.asarray(places, dtype=np.float64))
    if stand is not None:
        if stand.shape != (k,) or not ((stand >= 0) & (stand <= 1)).all():
            raise InvalidParameter(
                f"places must be {k} numbers of [0, 1], one for each source, got shape {stand.shape}; "
                "nothing was computed"
            )
        gap = float(np.diff(stand).min()) if k > 1 else None
        if gap is not None and gap < (separation or 0.0):
            raise InvalidParameter(
                f"separation is {separation}, but two of the places are {gap:g} apart; nothing was computed"
            )
        separation = gap if separation is None else separation
    if separation is not None:
        _positive("separation", separation)
    elif k > 1:
        raise InvalidParameter(f"separation must be given for {k} sources; nothing was computed")
    if margin is not None and not 0 <= margin < math.inf:
        raise InvalidParameter(
            f"margin must be finite and not negative, got {margin}; nothing was computed"
        )
    width, wide = math.sqrt(2 * time), separation or 0.0
    apart = k == 1 or wide > width + 2 * (margin or 0.0)
    hypotheses = (
        ("m sqrt(T/2) > 1: sensors near every source", m * math.sqrt(time / 2) > 1),
        ("sqrt(2T) < 1: read before the heat leaves the interval", width < 1),
        (
            "separation > sqrt(2T) + 2A, A > 0: sources far apart",
            apart and (margin is None or margin > 0),
        ),
        ("(k - 1) separation <= 1: such sources fit into [0, 1]", (k - 1) * wide <= 1),
        (
            "floor(m sqrt(T/2)) sensors within sqrt(T/2) on either side of every source: none near an end",
            stand is not None and _between(stand, sensors, math.sqrt(time / 2)),
        ),
        (
            "sensors at equal steps, sources whole steps apart: all stand alike between their sensors",
            _even_steps(sensors) and (k == 1 or (stand is not None and _alike(stand, m))),
        ),
    )
    if k == 1:
        return k, 0.0, hypotheses
    # The bracket is continuous in A, so the largest A that is not quite allowed may stand for those
    # that are.
    free = max(0.0, (wide - width) / 2) if margin is None else margin
    return k, k * math.exp(-(free**2) / (4 * time)), hypotheses


def _between(places: FloatArray, sensors: FloatArray, reach: float) -> bool:
    """Whether every source has as many sensors on either side within reach as the proof pairs up."""
    needed = math.floor(sensors.size * reach)
    away = sensors - places[:, None]
    # A sensor at the very place of a source is on neither side of it.
    left = ((away < -SAME) & (away > -reach - SAME)).sum(axis=1)
    right = ((away > SAME) & (away < reach + SAME)).sum(axis=1)
    return bool((left >= needed).all() and (right >= needed).all())


def _even_steps(sensors: FloatArray) -> bool:
    return sensors.size > 1 and bool(
        np.allclose(np.diff(sensors), 1 / sensors.size, rtol=0, atol=SAME)
    )


def _alike(places: FloatArray, sensors: int) -> bool:
    steps = np.diff(places) * sensors
    return bool(np.allclose(steps, np.rint(steps), rtol=0, atol=SAME * sensors))


def _corrected(k: int, time: float, strength: float) -> float:
    c = min(k, strength)
    return _over(math.sqrt(time * c / k) + k * min(1.0, c) + c / k, c)


def _as_printed(k: int, time: float, strength: float) -> float:
    c = min(k, strength)
    near = math.sqrt(time**1.5 * c / (math.sqrt(time) + 1)) / k
    return _over(near + k * min(1.0, c) + time**2 * c / ((time + 1) * k), c)


def _over(total: float, c: float) -> float:
    return total / (1 - c) if c < 1 else math.inf


@dataclass(frozen=True, slots=True)
class LowerBound:
    """No estimator has a worst expected error, in earth mover's distance, below `value`.

    It comes from four source vectors pairwise `distance` apart, of which every estimator misses
    one, by half of that, with a chance of at least `error`; `slope` is the largest change of
    readings (in l2) that a unit of mass causes by moving a unit of distance.
    """

    value: float
    distance: float
    error: float
    slope: float


def recovery_lower_bound(operator: Operator, sigma: float) -> LowerBound:
    """How well anybody can recover sources on a line from readings with noise N(0, sigma**2), at best.

    inf over estimators, sup over sources in [0,1]^n, of E EMD is at least a/12 with a = min{2 j h,
    sqrt(8 ln(2) / 3) sigma / L}: n evenly spaced cells of width h, j = floor((n - 1) / 4), L the
    slope. Proof: docs/proofs/recovery-lower-bound.md. This is [gilbert17, thm. 11] [gilbert18, thm.
    15] [mcmillan18, thm. 8.7] with a constant that is computed for its operator; they print 3a/4,
    from distances a where a/2 is right, of which an error counts half.

    Args:
        operator: How sources spread to sensors, on five or more evenly spaced cells of a line.
        sigma: Standard deviation of the noise of a reading, positive and finite.

    Returns:
        The bound, in mass times the unit of the line, and what it is made of.

    Raises:
        InvalidParameter: `sigma` is out of its range, or the space is another.

    >>> bound = recovery_lower_bound(heat_line(sources=100, sensors=50, diffusion_time=0.05), 0.1)
    >>> round(bound.value, 6), round(bound.error, 3)
    (0.000834, 0.333)
    """
    _positive("sigma", sigma)
    if not isinstance(operator.space, Line) or operator.space.size < 5 or not _even(operator.space):
        raise InvalidParameter(
            "this bound is for five or more evenly spaced cells on a line, got another space; "
            "nothing was computed"
        )
    cells = operator.space.positions
    reach = float(cells[2 * ((cells.size - 1) // 4)] - cells[0])
    slope = _slope(operator)
    wanted = math.sqrt(8 * math.log(2) / 3) * sigma
    a = min(reach, wanted / slope) if slope > 0 else reach
    error = fano_error(4, (slope * a / 2) ** 2 / (2 * sigma**2))
    return LowerBound(a / 4 * error, a / 2, error, slope)


def two_point_lower_bound(
    operator: Operator, first: npt.ArrayLike, second: npt.ArrayLike, *, sigma: float
) -> float:
    """A lower bound from any two source vectors of equal mass that are hard to tell apart, on any space.

    The largest t d Phi(-t D / 2 sigma) for t in [0, 1]: vectors that differ by the share t of first
    - second are t d apart, their readings t D, and no test errs with a smaller chance than Phi(-t D
    / 2 sigma) on both [yu97, lem. 1]. Two near peaks and one between them give far more than
    `recovery_lower_bound`. Of sources in [0, 1]^n, as there, so larger entries are refused.

    Args:
        operator: How sources spread to sensors.
        first: One mass for each cell, in [0, 1].
        second: The same of other sources, with the same mass in all.
        sigma: Standard deviation of the noise of a reading, positive and finite.

    Returns:
        The bound on the worst expected error, in mass times the unit of the space.

    Raises:
        InvalidInput: The masses do not fit the space, are not equal, or exceed 1 in a cell.
        InvalidParameter: `sigma` is out of its range.

    >>> line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> one, two = np.zeros(100), np.zeros(100)
    >>> one[49], two[[39, 59]] = 1, 0.5
    >>> round(two_point_lower_bound(line, one, two, sigma=0.1), 4)
    0.0136
    """
    _positive("sigma", sigma)
    apart = emd(first, second, operator.space).lower
    largest = float(max(np.max(first), np.max(second)))
    if largest > 1:
        raise InvalidInput(
            f"this bound is for sources of at most 1 in each cell, got {largest}; nothing was computed"
        )
    change = operator.readings(
        np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    )
    u = float(np.linalg.norm(change)) / (2 * sigma)
    t = min(1.0, HARDEST / u) if u > 0 else 1.0
    return t * apart * float(ndtr(-t * u))


def _slope(operator: Operator) -> float:
    """The largest l2 change of readings for each unit of distance, rounded up."""
    return sensitivity(operator, MovedMass(1, operator.space.metric)).l2


def _even(line: Line) -> bool:
    steps = np.diff(line.positions)
    return bool(np.allclose(steps, steps[0], rtol=1e-9, atol=0))


def _positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InvalidParameter(
            f"{name} must be positive and finite, got {value}; nothing was computed"
        )
