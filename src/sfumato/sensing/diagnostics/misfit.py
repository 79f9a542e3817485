"""Whether the stated physics explains the readings at all: a test on what no sources can explain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import chdtr, chdtrc

from sfumato._types import FloatArray
from sfumato._validate import real_array
from sfumato.errors import InvalidParameter
from sfumato.sensing.diagnostics.field_kernel import box_masses
from sfumato.sensing.diagnostics.laplace_tails import LaplaceSquares
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.solver.compress import Range, range_of
from sfumato.sensing.recovery.solver.operator_cache import afresh

DOUBTFUL = 1e-3
"""A p-value below which the physics is said not to fit."""
CLOSE = 1e-3
"""A best fit is looked for until it is within so many squares of sigma of a proven bound."""
TINY = 1e-300
"""P-values below this are not told apart."""
ROUNDS = 200
LARGE = 1 << 20
"""Sensors times cells beyond which a best fit is looked for only until it is clear whether to warn."""
FEW_ROUNDS = 8
"""Rounds for which it is looked for then: on a line of 1e5 cells and 500 sensors, one takes half a second."""
STRETCHES = 64
"""Stretches of cells, each of which may send one into a round then: the best of all would be neighbours."""
STEPS = 100
"""On a graph steps are cheap, and sources may be many."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """How surprising readings are if the operator, sigma and the largest mass are as stated.

    `outside` is the p-value of what was read in the `degrees` directions in which no source moves
    readings: pure noise, so it is exact, and low where there is too much or too little of it (1
    where there are no such directions). `inside` is that of the rest, after the best of all sources
    in the box: never too small, and mostly much too large, since sources bend to the noise as well.
    `square` is all that the best sources leave, outside and inside, in squares of sigma, or less
    where sensors times cells are more than 2**20: there the search ends as soon as it is clear
    whether to warn. `message` is a warning, or that it did not become clear, or nothing.
    """

    outside: float
    inside: float
    degrees: int
    square: float
    message: str

    @property
    def p_value(self) -> float:
        """Of both parts together: below a level at most so often, if all is as stated."""
        return min(1.0, 2 * min(self.outside, self.inside))


def misfit(
    operator: Operator,
    y: npt.ArrayLike,
    *,
    sigma: float,
    max_mass: float = 1.0,
    min_sigma: float | None = None,
    laplace: bool = False,
) -> Misfit:
    """A warning where no sources at all explain the readings: wrong physics, unit, noise, or bad sensors.

    Readings are y = M f + noise with 0 <= f <= max_mass. Outside the range of M they are noise, and
    |y_perp|**2 / sigma**2 has the chi-square law with m - rank degrees whatever f is; both its tails count,
    since too little noise breaks the promise of privacy. Within, the least
    |M f - y|**2 over the box is at most that of the true f, which has the chi-square law with rank degrees:
    its tail at the least square, or at a proven bound below it, is a p-value that is never too
    small. The two parts are independent; Bonferroni's factor 2 joins them. Where sensors differ in
    their noise, sigma is the largest and `min_sigma` the least: too much is judged by the first,
    too little by the second.

    Args:
        operator: The stated physics.
        y: One noisy reading for each sensor.
        sigma: The stated deviation of the noise; the largest where sensors differ.
        max_mass: The largest mass of one source.
        min_sigma: The smallest deviation, where sensors differ; None where they do not.
        laplace: Whether the noise is Laplace, whose squares have heavier tails: both p-values are then
            shares of made-up noise, or bounds where they are small. Of a mean of several readings they are
            too large.

    Returns:
        P-values, and a message where they are small.

    Raises:
        InvalidParameter: If a parameter is out of range or readings are not finite.

    What it cannot see: a true diffusion time above the stated one (more, and wider spread, sources
    look the same), a dead sensor where little was to be read, and anything that some sources in the
    box explain. On a graph read at every node there is no outside. Where sensors times cells are
    more than 2**20, many sources may be more than the 8 rounds of the search there (100 steps on a
    graph) find: then it says so.

    >>> from sfumato.sensing import heat_line
    >>> hall = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> misfit(hall, np.where(np.arange(50) == 7, 2.0, 0.1), sigma=0.1).message  # doctest: +ELLIPSIS
    'the readings do not fit the stated physics (p = 2...e-35): look at single sensors, ...'
    """
    readings, noise = checked_readings(operator, y, what="nothing was tested"), checked_sigma(sigma)
    if not 0 < max_mass < math.inf:
        raise InvalidParameter(
            f"`max_mass` must be positive and finite, got {max_mass}; nothing was tested"
        )
    afresh(operator)
    found = range_of(operator)
    degrees = len(readings) - found.rank if found.basis is not None else 0
    inner = found.into(readings[:, np.newaxis])[0]
    rest = 0.0 if found.basis is None else float(np.sum((readings - found.basis @ inner) ** 2))
    least = noise if min_sigma is None else checked_sigma(min_sigma)
    tails = LaplaceSquares(operator, found) if laplace else _ChiSquare(degrees, found.rank)
    loud = tails.above_outside(rest / noise**2) if degrees else 1.0
    quiet = tails.below_outside(rest / least**2) if degrees else 1.0
    outside = min(1.0, 2 * min(loud, quiet))

    def tail(square: float) -> float:
        return tails.above_inside(square / noise**2)

    def clear(least: float, square: float) -> bool:
        """The p-value lies between those of the two: both warn, or neither; or the outside warns anyway."""
        return 2 * tail(square) >= DOUBTFUL or 2 * min(tail(least), outside) < DOUBTFUL

    large = math.prod(operator.shape) > LARGE
    if large:
        least, square = (
            _descent(operator, found, inner, max_mass=max_mass, enough=clear)
            if operator.diffusion is not None
            else _search(operator, found, inner, max_mass=max_mass, enough=clear, large=True)
        )
    else:
        least = square = least_square(
            operator, found, inner, max_mass=max_mass, close=CLOSE * noise**2
        )
    inside = tail(least)
    message = _message(operator, outside, inside, quiet=quiet < loud)
    if not message and large and not clear(least, square):
        message = (
            f"whether sources explain the readings was not found out: {operator.shape[1]} cells and "
            f"{len(readings)} sensors are too many to search"
        )
    return Misfit(outside, inside, degrees, (rest + least) / noise**2, message)


@dataclass(frozen=True, slots=True)
class _ChiSquare:
    """How likely Gaussian noise of deviation 1 has a square beyond one, outside and inside of the range."""

    degrees: int
    rank: int

    def above_outside(self, square: float) -> float:
        return float(chdtrc(self.degrees, square))

    def below_outside(self, square: float) -> float:
        return float(chdtr(self.degrees, square))

    def above_inside(self, square: float) -> float:
        return float(chdtrc(self.rank, square))


def least_square(
    operator: Operator, found: Range, inner: FloatArray, *, max_mass: float, close: float
) -> float:
    """A proven lower bound, mostly within `close`, on |B'(M f) - b|**2 over 0 <= f <= max_mass."""

    def enough(least: float, square: float) -> bool:
        return square - least <= close

    return _search(operator, found, inner, max_mass=max_mass, enough=enough, large=False)[0]


def _search(
    operator: Operator,
    found: Range,
    inner: FloatArray,
    *,
    max_mass: float,
    enough: Callable[[float, float], bool],
    large: bool,
) -> tuple[float, float]:
    """The least square over the box lies between these two, once they are enough or rounds are over.

    Cells that would still improve the fit join a small problem, round by round. For every z the
    least square is at least 2 b'z - |z|**2 - 2 max_mass sum (A'z)_+; z = b - A f is best where f is.
    """
    cells, bound, best = np.empty(0, dtype=np.int64), 0.0, math.inf
    columns, masses = np.empty((0, inner.size)), np.empty(0)
    adjoint = _adjoint(operator, found)
    for _ in range(FEW_ROUNDS if large else ROUNDS):
        left = inner - masses @ columns
        pull = adjoint(left)
        square = float(left @ left)
        bound, best = max(bound, _below(inner, left, pull, max_mass)), min(best, square)
        if enough(bound, best):
            break
        pull[cells] = 0.0
        strongest = _apart(pull, STRETCHES) if large else _peaks(pull, 8)
        if not strongest.size:
            break
        cells = np.concatenate([cells, strongest])
        columns = np.concatenate([columns, found.into(operator.columns(strongest))])
        masses = box_fit(
            columns,
            inner,
            max_mass=max_mass,
            start=np.concatenate([masses, np.zeros(strongest.size)]),
        )
        used = masses > 0
        cells, columns, masses = cells[used], columns[used], masses[used]
    return bound, best


def _descent(
    operator: Operator,
    found: Range,
    inner: FloatArray,
    *,
    max_mass: float,
    enough: Callable[[float, float], bool],
) -> tuple[float, float]:
    """As `_search`, but all cells move at once: projected gradients with momentum [beck09, sec. 4].

    Heat on a graph is no longer than what it came from, so steps of 1 are safe.
    """
    bound, best, pace = 0.0, math.inf, 1.0
    adjoint = _adjoint(operator, found)
    masses = ahead = np.zeros(operator.shape[1])
    for _ in range(STEPS):
        left = inner - found.into(operator.readings(ahead)[:, np.newaxis])[0]
        pull = adjoint(left)
        bound, best = max(bound, _below(inner, left, pull, max_mass)), min(best, float(left @ left))
        if enough(bound, best):
            break
        before, masses = masses, np.clip(ahead + pull, 0.0, max_mass)
        pace, past = (1 + math.sqrt(1 + 4 * pace**2)) / 2, pace
        # Back into the box: only there is what is left a square that sources leave.
        ahead = np.clip(masses + (past - 1) / pace * (masses - before), 0.0, max_mass)
    return bound, best


def _below(inner: FloatArray, left: FloatArray, pull: FloatArray, max_mass: float) -> float:
    """What the least square cannot be below, from z = left and A'z = pull: see `_search`."""
    return float(2 * (inner @ left) - left @ left - 2 * max_mass * np.maximum(pull, 0).sum())


def box_fit(
    columns: FloatArray, target: FloatArray, *, max_mass: float, start: FloatArray
) -> FloatArray:
    """The masses in a box whose sum of columns (a row for each) is nearest to what is wanted.

    Bounded least squares by an active set [lawson74, ch. 23], from masses to begin with.
    """
    return gram_fit(columns @ columns.T, columns @ target, max_mass=max_mass, start=start)


def gram_fit(
    gram: FloatArray, wanted: FloatArray, *, max_mass: float, start: FloatArray
) -> FloatArray:
    """`box_fit` by the products of columns with each other and with what is wanted."""
    masses = np.clip(start, 0.0, max_mass)
    box_masses(gram, wanted, float(max_mass), masses)
    return np.asarray(masses)


def checked_readings(operator: Operator, y: npt.ArrayLike, *, what: str) -> FloatArray:
    """One finite number for each sensor."""
    readings = real_array("readings", y)
    if readings.shape != (operator.shape[0],) or not np.isfinite(readings).all():
        raise InvalidParameter(
            f"readings must be one finite number for each of {operator.shape[0]} sensors, got shape "
            f"{readings.shape}{'' if np.isfinite(readings).all() else ' with others'}; {what}"
        )
    return readings


def checked_sigma(sigma: float) -> float:
    """A deviation that noise can have."""
    if not 0 < sigma < math.inf:
        raise InvalidParameter(
            f"sigma must be positive and finite, got {sigma}; nothing was computed"
        )
    return float(sigma)


def _adjoint(operator: Operator, found: Range) -> Callable[[FloatArray], FloatArray]:
    basis = found.basis
    return lambda inner: operator.adjoint(inner if basis is None else basis @ inner)


def _peaks(pull: FloatArray, count: int) -> npt.NDArray[np.int64]:
    """The cells that would improve a fit the most."""
    chosen = np.argpartition(-pull, min(count, pull.size - 1))[:count]
    return np.asarray(np.sort(chosen[pull[chosen] > 0]), dtype=np.int64)


def _apart(pull: FloatArray, count: int) -> npt.NDArray[np.int64]:
    """Of each of so many stretches of cells the one that would improve a fit the most, if any would."""
    ends = np.linspace(0, pull.size, min(count, pull.size) + 1).astype(np.int64).tolist()
    chosen = np.array([a + int(np.argmax(pull[a:b])) for a, b in pairwise(ends)], dtype=np.int64)
    return np.asarray(chosen[pull[chosen] > 0])


def p_value_text(chance: float) -> str:
    """A p-value for a person: no chance is 0, but doubles end."""
    return f"p = {chance:.1e}" if chance >= TINY else f"p below {TINY:.0e}"


def _message(operator: Operator, outside: float, inside: float, *, quiet: bool) -> str:
    chance = min(1.0, 2 * min(outside, inside))
    if chance >= DOUBTFUL:
        return ""
    time = operator.time_name
    if inside < outside:
        where = f"look at the {time}, the unit, the largest mass of a source, and single sensors"
    elif quiet:
        where = "they have less noise than stated, so look at sigma and the unit, and at the promise of privacy"
    else:
        where = f"look at single sensors, the {time}, the unit and sigma"
    return f"the readings do not fit the stated physics ({p_value_text(chance)}): {where}"
