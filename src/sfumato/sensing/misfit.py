"""Whether the stated physics explains the readings at all: a test on what no sources can explain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import chdtr, chdtrc

from sfumato.errors import InvalidParameter
from sfumato.sensing.field_kernel import box_masses
from sfumato.sensing.operators import Operator
from sfumato.sensing.solver.compress import Range, range_of
from sfumato.sensing.solver.kept import afresh
from sfumato.spaces.space import FloatArray, real_array

DOUBTFUL = 1e-3
"""A p-value below which the physics is said not to fit."""
CLOSE = 1e-3
"""A best fit is looked for until it is within so many squares of sigma of a proven bound."""
ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Misfit:
    """How surprising readings are if the operator, sigma and the largest mass are as stated.

    `outside` is the p-value of what was read in the `degrees` directions in which no source moves readings:
    pure noise, so it is exact, and low where there is too much or too little of it (1 where there are no such
    directions). `inside` is that of the rest, after the best of all
    sources in the box: never too small, and mostly much too large, since sources bend to the noise as well.
    `square` is all that the best sources leave, outside and inside, in squares of sigma. `said` is a warning,
    or nothing.
    """

    outside: float
    inside: float
    degrees: int
    square: float
    said: str

    @property
    def p_value(self) -> float:
        """Of both parts together: below a level at most so often, if all is as stated."""
        return min(1.0, 2 * min(self.outside, self.inside))


def misfit(operator: Operator, y: npt.ArrayLike, *, sigma: float, upper: float = 1.0) -> Misfit:
    """A warning where no sources at all explain the readings: wrong physics, unit, noise, or bad sensors.

    Readings are y = M f + noise with 0 <= f <= upper. Outside the range of M they are noise, and
    |y_perp|**2 / sigma**2 has the chi-square law with m - rank degrees whatever f is; both its tails count,
    since too little noise breaks the promise of privacy. Within, the least
    |M f - y|**2 over the box is at most that of the true f, which has the chi-square law with rank degrees:
    its tail at the least square, or at a proven bound below it, is a p-value that is never too small. The two
    parts are independent; Bonferroni's factor 2 joins them.

    What it cannot see: a true diffusion time above the stated one (more, and wider spread, sources look the
    same), a dead sensor where little was to be read, and anything that some sources in the box explain. On a
    graph read at every node there is no outside.

    >>> from sfumato.sensing.build import heat_line
    >>> hall = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> misfit(hall, np.where(np.arange(50) == 7, 2.0, 0.1), sigma=0.1).said  # doctest: +ELLIPSIS
    'the readings do not fit the stated physics (p = 2.4e-35): look at single sensors, ...'
    """
    readings, noise = checked_readings(operator, y, what="nothing was tested"), checked_sigma(sigma)
    if not 0 < upper < math.inf:
        raise InvalidParameter(f"upper must be positive and finite, got {upper}; nothing was tested")
    afresh(operator)
    found = range_of(operator)
    degrees = len(readings) - found.rank if found.basis is not None else 0
    inner = found.into(readings[:, np.newaxis])[0]
    rest = 0.0 if found.basis is None else float(np.sum((readings - found.basis @ inner) ** 2))
    loud, quiet = (float(tail(degrees, rest / noise**2)) if degrees else 1.0 for tail in (chdtrc, chdtr))
    outside = min(1.0, 2 * min(loud, quiet))
    least = least_square(operator, found, inner, upper=upper, close=CLOSE * noise**2)
    inside = float(chdtrc(found.rank, least / noise**2))
    return Misfit(
        outside, inside, degrees, (rest + least) / noise**2, _said(outside, inside, quiet=quiet < loud)
    )


def least_square(operator: Operator, found: Range, inner: FloatArray, *, upper: float, close: float) -> float:
    """A proven lower bound, mostly within `close`, on |B'(M f) - b|**2 over 0 <= f <= upper.

    Cells that would still improve the fit join a small problem, round by round. For every z the least square
    is at least 2 b'z - |z|**2 - 2 upper sum (A'z)_+; z = b - A f is best where f is.
    """
    cells, bound = np.empty(0, dtype=np.int64), 0.0
    columns, masses = np.empty((0, inner.size)), np.empty(0)
    adjoint = _adjoint(operator, found)
    for _ in range(ROUNDS):
        left = inner - masses @ columns
        pull = adjoint(left)
        square = float(left @ left)
        lower = 2 * float(inner @ left) - square - 2 * upper * float(np.maximum(pull, 0).sum())
        bound = max(bound, lower)
        if square - bound <= close:
            break
        pull[cells] = 0.0
        strongest = _peaks(pull, 8)
        if not strongest.size:
            break
        cells = np.concatenate([cells, strongest])
        columns = np.concatenate([columns, found.into(operator.columns(strongest))])
        masses = box_fit(
            columns, inner, upper=upper, start=np.concatenate([masses, np.zeros(strongest.size)])
        )
        used = masses > 0
        cells, columns, masses = cells[used], columns[used], masses[used]
    return bound


def box_fit(columns: FloatArray, wanted: FloatArray, *, upper: float, start: FloatArray) -> FloatArray:
    """The masses in a box whose sum of columns (a row for each) is nearest to what is wanted.

    Bounded least squares by an active set [lawson74, ch. 23], from masses to begin with.
    """
    masses = np.clip(start, 0.0, upper)
    box_masses(columns @ columns.T, columns @ wanted, float(upper), masses)
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
        raise InvalidParameter(f"sigma must be positive and finite, got {sigma}; nothing was computed")
    return float(sigma)


def _adjoint(operator: Operator, found: Range) -> Callable[[FloatArray], FloatArray]:
    basis = found.basis
    return lambda inner: operator.adjoint(inner if basis is None else basis @ inner)


def _peaks(pull: FloatArray, count: int) -> npt.NDArray[np.int64]:
    """The cells that would improve a fit the most."""
    chosen = np.argpartition(-pull, min(count, pull.size - 1))[:count]
    return np.asarray(np.sort(chosen[pull[chosen] > 0]), dtype=np.int64)


def _said(outside: float, inside: float, *, quiet: bool) -> str:
    chance = min(1.0, 2 * min(outside, inside))
    if chance >= DOUBTFUL:
        return ""
    if inside < outside:
        where = "look at the diffusion time, the unit, and the largest mass of a source"
    elif quiet:
        where = (
            "they have less noise than stated, so look at sigma and the unit, and at the promise of privacy"
        )
    else:
        where = "look at single sensors, the diffusion time, the unit and sigma"
    return f"the readings do not fit the stated physics (p = {chance:.1e}): {where}"
