"""How far readings move when sources move: the number that noise is calibrated to, never too small.

A unit that moves from x to y changes the readings by M(x) - M(y), and moving masses is moving
units:
|M (f - f')|_2 <= EMD(f, f') max |M(x) - M(y)|_2 / distance(x, y). Heat on a line or a plane is bounded over
all places x and y where people may stand (`heat_changes.reach`), not over centers of cells; on a
graph the nodes are the places, and of a matrix its columns. There pairs one step apart suffice
where steps realise the metric; for `Points` these are all pairs. An operator from outside says
which of both it is: by `changes` of its own, or by `sources_at = "cells"`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato._types import FloatArray
from sfumato._validate import read_only
from sfumato.errors import InvalidParameter
from sfumato.privacy import MovedMass, SwappedCells
from sfumato.privacy.accounting import Number, double_above, gaussian_delta, positive, probability
from sfumato.sensing.model.operators.protocol import Operator


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """How far readings can move between neighbors: all of them together in l2, and each of them alone.

    `exact`: l2 is attained, up to rounding by the pair of cells `worst` of a graph or a matrix, to
    two millionths at `place` on a line or a plane; if not, l2 is a proven upper bound. `per_sensor`
    is the same for each reading alone, the papers' Problem 2 [gilbert17, sec. 2.3]; on graphs too
    large to look at every sensor it is l2 itself, which bounds it. `l1` is a proven bound on the sum of what
    single readings move, which Laplace noise needs; None where nobody asked. All numbers are rounded up.
    """

    l2: float
    per_sensor: FloatArray
    exact: bool
    worst: tuple[int, int] | None
    neighbors: MovedMass | SwappedCells
    place: tuple[float, ...] | None = None
    l1: float | None = None


def sensitivity(operator: Operator, neighbors: MovedMass | SwappedCells) -> Sensitivity:
    """The largest change of the readings between neighbors, in l2 and sensor by sensor, rounded up.

    `MovedMass`: radius times the largest change over distance, in the metric of the operator's
    space; the papers have it for cells, and steps of length 1 [gilbert18, prop. 5]. `SwappedCells`:
    upper times the largest change when the sources of two cells one step apart change places
    [gilbert17, prop. 4]; sources anywhere in the cells, each keeping its place in its cell.

    Args:
        operator: How sources spread to sensors.
        neighbors: Which sources nobody may tell apart.

    Returns:
        The sensitivity of all readings together and of each alone.

    Raises:
        InvalidParameter: The relation is of another metric, or a change is beyond any double.

    >>> from sfumato.sensing import heat_line
    >>> hall = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> found = sensitivity(hall, MovedMass(0.1, "line"))
    >>> round(found.l2, 4), found.exact
    (1.3592, True)
    """
    over_distance, factor = _scale(operator, neighbors)
    found = operator.changes(over_distance=over_distance)
    if not (math.isfinite(found.l2) and np.isfinite(found.per_sensor).all()):
        raise InvalidParameter(
            "readings must change by finite amounts, got one beyond any double; no sensitivity was computed"
        )
    factor *= 1 + Fraction(found.error)
    return Sensitivity(
        _up(found.l2, factor),
        read_only(np.array([_up(size, factor) for size in found.per_sensor.tolist()])),
        found.exact,
        found.worst,
        neighbors,
        found.place,
    )


def l1_sensitivity(operator: Operator, neighbors: MovedMass | SwappedCells) -> float:
    """A proven bound on what all readings together change between neighbors, in l1, rounded up.

    Moving masses is moving units, and the argument is that for l2: it holds in any norm.

    Args:
        operator: How sources spread to sensors.
        neighbors: Which sources nobody may tell apart.

    Returns:
        The bound, in the unit of the operator.

    Raises:
        InvalidParameter: The relation is of another metric, or a change is beyond any double.

    >>> from sfumato.sensing import heat_line
    >>> hall = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> moved = MovedMass(0.1, "line")
    >>> 1 < l1_sensitivity(hall, moved) / sensitivity(hall, moved).l2 <= math.sqrt(50)
    True
    """
    from sfumato.sensing.model.l1_changes import l1_changes

    over_distance, factor = _scale(operator, neighbors)
    found = l1_changes(operator, over_distance=over_distance)
    if not math.isfinite(found):
        raise InvalidParameter(
            "readings must change by finite amounts, got one beyond any double; no sensitivity was computed"
        )
    return _up(found, factor)


def per_sensor_loss(sensitivity: Sensitivity, sigma: Number, delta: Number) -> FloatArray:
    """The epsilon at which Gaussian noise hides each reading alone, rounded up; all of them lose more.

    The smallest epsilon with gaussian_delta(epsilon) <= delta [balle18, thm. 8], to 1e-8 of it; 0
    for a reading that never moves, or so little that delta alone covers it.

    Args:
        sensitivity: How far each reading moves between neighbors, in the unit of the operator.
        sigma: Standard deviation of the noise of each reading, in the same unit; above 0.
        delta: The delta at which epsilon is told, above 0 and below 1.

    Returns:
        One epsilon for each sensor, in their order.

    Raises:
        InvalidParameter: `sigma` or `delta` is out of its range; no loss was computed.
    """
    noise, target = double_above(sigma, name="sigma"), probability(delta, "delta")
    positive(noise, "sigma")
    if target == 0:
        raise InvalidParameter("Gaussian noise needs delta above 0, got 0; no loss was computed")
    moved, where = np.unique(sensitivity.per_sensor, return_inverse=True)
    return np.array([_loss(Fraction(size), noise, target) for size in moved.tolist()])[where]


def _scale(operator: Operator, neighbors: MovedMass | SwappedCells) -> tuple[bool, Fraction]:
    """Whether changes count over distance, and what they are multiplied by."""
    match neighbors:
        case MovedMass():
            if neighbors.metric != operator.space.metric:
                raise InvalidParameter(
                    f"neighbors must move mass in the metric of the sources, {operator.space.metric!r}, "
                    f"got {neighbors.metric!r}; no sensitivity was computed"
                )
            return True, neighbors.radius
        case SwappedCells():
            return False, neighbors.upper
        case _:
            raise InvalidParameter(
                f"neighbors of sources are MovedMass or SwappedCells, got {neighbors!r}; "
                "no sensitivity was computed"
            )


def _up(value: float, factor: Fraction) -> float:
    """A double above value times factor, by one step more than it need be.

    Rooms that take numbers exactly read the shortest decimal of a float, which may lie half a step
    below it.
    """
    return math.nextafter(float(double_above(Fraction(value) * factor)), math.inf) if value else 0.0


def _loss(moved: Fraction, sigma: Fraction, delta: Fraction) -> float:
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtri

    if moved == 0:
        return 0.0
    moved = max(moved, Fraction(1, 10**290))  # gaussian_delta takes none much smaller; more is safe
    if gaussian_delta(0, sigma=sigma, sensitivity=moved) <= delta:
        return 0.0
    shift, log_delta = float(moved / sigma), math.log(delta)

    def excess(epsilon: float) -> float:
        near, far = log_ndtr(shift / 2 - epsilon / shift), log_ndtr(-shift / 2 - epsilon / shift)
        return (
            float(near + np.log(-np.expm1(min(epsilon + float(far - near), -1e-300)))) - log_delta
        )

    # Where its first term alone is delta, the exact delta is less.
    end = shift * (shift / 2 - float(ndtri(float(delta))))
    found = float(brentq(excess, 0.0, end, rtol=1e-12)) if excess(0.0) > 0 > excess(end) else end
    # A root in doubles is a guess; what counts is the delta that `privacy` computes and rounds up.
    step = found * 1e-10
    while gaussian_delta(Fraction(found), sigma=sigma, sensitivity=moved) > delta:
        found, step = found + step, 2 * step
    return math.nextafter(found, math.inf)
