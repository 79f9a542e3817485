"""Check a recovery without trusting whoever made it: from its operator, readings and dual vector alone.

It shares no code with the solver (`sensing.solver` is not imported, and a test holds that): what
the two have in common are the operator's columns, or a graph's Laplacian, which say what the
problem is. It is written to be read, not to be fast.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray, LongArray
from sfumato.sensing.model.operators.protocol import Diffusion, Operator
from sfumato.sensing.recovery.certificate import Recovery

LONG = np.longdouble
LONG_EPS = float(
    np.finfo(np.longdouble).eps
)  # 1e-19 on x86, that of a double where there is nothing longer
ENTRIES = 1 << 22  # of a matrix that are held at a time

SLACK = 1e-9
"""By what share of the radius a residual may exceed it."""

SWALLOWED = 1e-3
"""Totals below this share of what the whole readings take at best count as that: the rest is rounding."""

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Check:
    """What a recovery proves: it holds, or why not.

    `objective` is the total of the estimate and `residual` its distance to the readings. `bound` is
    the value of the dual vector less all its rounding errors, so that no feasible sources have a
    smaller total; `gap` is (objective - bound) / objective, but see `gap_unit`. Of an infeasible
    recovery `bound` is the value of the ray less its rounding errors: above 0 it is a proof.
    """

    objective: float
    residual: float
    bound: float
    gap: float
    holds: bool
    why: str


def tolerance(cells: int) -> float:
    """The relative gap that counts as optimal."""
    return 1e-9 if cells <= 100_000 else 1e-7


def gap_unit(operator: Operator, y: FloatArray, objective: float, bound: float) -> float:
    """What the gap between objective and bound is a share of: the objective.

    With the dual vector y / max M'y no total is below (1 - radius / |y|) |y|^2 / max M'y. Where the
    radius swallows all but a thousandth of the readings, their rounding is felt: then it is a share
    of a thousandth of |y|^2 / max M'y.
    """
    if objective > 0 and abs(objective - bound) <= tolerance(operator.space.size) * objective:
        return objective  # the rest need not be computed
    return max(objective, SWALLOWED * _whole_total(operator, y), 5e-324)


def _whole_total(operator: Operator, y: FloatArray) -> float:
    """|y|^2 / max M'y, 0 where no cell fits the readings."""
    size = float(_length(y))
    if size == 0:
        return 0.0
    top = float(operator.adjoint(y / size).max())
    return size / top if top > 0 else 0.0


def check(recovery: Recovery) -> Check:
    """Whether a recovery is what it says, computed anew from the columns of its operator.

    For every z, y'z - radius |z| - max_mass sum (M'z - 1)_+ is at most the total of every f with 0 <=
    f <= max_mass and |M f - y| <= radius; if the same without the 1 is above 0, there is no such f
    (weak duality). M is the matrix that `operator.columns` gives, as it is rounded there; of a
    diffusion on a graph it is exp(-rate L) itself. Sources of a larger total than the estimate's need no bound.
    For all others f'(M'z - 1)_+ is at most that total times the largest (M'z - 1)_+, which is taken
    where max_mass is so large that it is less.

    Args:
        recovery: The recovery with its certificate.

    Returns:
        What it proves, and why it holds or not.

    >>> from sfumato.sensing import linear
    >>> from sfumato.spaces import Line
    >>> one = linear([[1.0]], Line(1))
    >>> y, f, z = np.array([3.0]), np.array([2.0]), np.array([1.0])
    >>> check(Recovery(one, y, 1.0, 5.0, "optimal", f, 2.0, 0.0, z)).holds
    True
    """
    wrong = _malformed(recovery)
    if wrong:
        return Check(math.nan, math.nan, math.nan, math.nan, False, wrong)
    match recovery.status:
        case "optimal":
            return _optimal(recovery)
        case "zero":
            return _zero(recovery)
        case "infeasible":
            return _infeasible(recovery)


def _malformed(recovery: Recovery) -> str:
    m, n = recovery.operator.shape
    for name, values, size in (
        ("readings", recovery.readings, m),
        ("estimate", recovery.estimate, n),
        ("dual", recovery.dual, m),
    ):
        if np.shape(values) != (size,):
            return f"{name} must be {size} numbers, got shape {np.shape(values)}"
        if not np.isfinite(values).all():
            return f"{name} must be finite, got a number that is not"
    if not 0 <= recovery.radius < math.inf:
        return f"radius must be finite and not negative, got {recovery.radius}"
    if not 0 < recovery.max_mass < math.inf:
        return f"upper must be positive and finite, got {recovery.max_mass}"
    if recovery.status not in ("optimal", "zero", "infeasible"):
        return f"status must be optimal, zero or infeasible, got {recovery.status!r}"
    return ""


def _optimal(recovery: Recovery) -> Check:
    f = recovery.estimate
    objective = math.fsum(f)
    residual = _residual(recovery)
    value, rounding = _value(recovery, cost=1.0, most=objective)
    bound = min(value, objective)
    unit = gap_unit(recovery.operator, recovery.readings, objective, value)
    gap = (objective - value) / unit
    allowed = tolerance(f.size)
    why = ""
    if not ((f >= 0).all() and (f <= recovery.max_mass).all()):
        top = f"{f.max():g}, upper {recovery.max_mass:g}"
        why = f"the estimate leaves the box: it goes from {f.min():g} to {top}"
    elif not residual <= recovery.radius * (1 + SLACK):
        why = f"the estimate is {residual:.17g} from the readings, more than the radius {recovery.radius:.17g}"
    elif not abs(recovery.objective - objective) <= 1e-12 * objective:
        why = f"the objective is said to be {recovery.objective:.17g}, the estimate's total is {objective:.17g}"
    elif not gap <= allowed:
        why = f"the dual vector proves no total below {bound:.17g}, relative gap {gap:.1e} above {allowed:g}"
    elif not gap >= -allowed:
        # Only sources outside the radius undercut a bound; the slack of the radius does not excuse
        # that.
        why = f"the total {objective:.17g} is below the bound {value:.17g}: the estimate is not feasible enough"
    elif not (
        recovery.gap >= 0 and objective - value <= recovery.gap + rounding + 1e-3 * allowed * unit
    ):
        # What is taken off here for rounding the solver, which rounds otherwise, need not have
        # said.
        why = f"the gap is said to be {recovery.gap:.3g}, the dual vector proves {objective - bound:.3g}"
    if why:
        return Check(objective, residual, bound, gap, False, why)
    why = f"no feasible sources have a total below {bound:.12g}: relative gap {max(gap, 0.0):.1g}"
    return Check(objective, residual, bound, gap, True, why)


def _zero(recovery: Recovery) -> Check:
    size = float(_length(recovery.readings))
    holds = False
    if recovery.estimate.any():
        why = "the estimate is not zero everywhere"
    elif not size <= recovery.radius * (1 + recovery.readings.size * EPS):
        # The length as a double may be off by a unit in the last place for every reading.
        why = f"the readings are {size:.17g} from nothing, more than the radius {recovery.radius:.17g}"
    elif not recovery.objective == recovery.gap == 0:
        why = f"no sources have the total 0 and the gap 0, not {recovery.objective:g} and {recovery.gap:g}"
    else:
        holds = True
        why = f"the readings are {size:.6g} from nothing, within the radius {recovery.radius:.6g}"
    return Check(math.fsum(recovery.estimate), size, 0.0, 0.0, holds, why)


def _infeasible(recovery: Recovery) -> Check:
    value, _ = _value(recovery, cost=0.0, most=math.inf)
    holds = False
    if recovery.estimate.any():
        why = "an infeasible recovery has no sources, and this estimate is not zero everywhere"
    elif not value > 0:
        why = f"the ray proves nothing: its value less rounding errors is {value:.3g}, not above 0"
    elif not recovery.objective == recovery.gap == math.inf:
        why = f"without an answer total and gap are inf, not {recovery.objective:g} and {recovery.gap:g}"
    else:
        holds = True
        why = f"no sources in the box come within the radius: the ray's value is {value:.3g} > 0"
    return Check(math.inf, float(_length(recovery.readings)), value, math.inf, holds, why)


def _residual(recovery: Recovery) -> float:
    f, operator = recovery.estimate, recovery.operator
    if (diffusion := operator.diffusion) is not None:
        spread, _ = _diffused(diffusion, f.astype(LONG))
        return float(_length(spread[diffusion.nodes] - recovery.readings))
    left = -recovery.readings.astype(LONG)
    for cells in _some(operator, np.flatnonzero(f)):
        left += operator.columns(cells).astype(LONG) @ f[cells].astype(LONG)
    return float(_length(left))


def _value(recovery: Recovery, *, cost: float, most: float) -> tuple[float, float]:
    """The value y'z - radius |z| - max_mass sum (M'z - cost)_+, less a bound on all rounding; and that bound.

    It is one for sources of a total up to `most`: they gain at most that times the largest (M'z -
    cost)_+. A sum of k products in an arithmetic with unit eps is off by at most k eps sum
    |products|, to first order [higham02, sec. 3.1]; the factors 4 below pay for the higher orders
    and for adding the three terms.
    """
    z, y = recovery.dual.astype(LONG), recovery.readings.astype(LONG)
    held = recovery.radius * _length(recovery.dual)
    over, top, over_error = _excess(recovery.operator, recovery.dual, cost)
    paid = recovery.max_mass * (over + over_error)
    if most < math.inf:
        paid = min(paid, most * (top + over_error))
    error = 4 * (z.size + 4) * LONG_EPS * (np.abs(y) @ np.abs(z) + held + paid)
    rounding = error + min(recovery.max_mass, most) * over_error
    return math.nextafter(float(y @ z - held - paid - error), -math.inf), float(rounding)


def _excess(
    operator: Operator, dual: FloatArray, cost: float
) -> tuple[np.longdouble, np.longdouble, float]:
    """The sum of (M'z - cost)_+ over all cells, the largest, and how far rounding may have moved either."""
    if (diffusion := operator.diffusion) is not None:
        return _excess_on_graph(diffusion, dual, cost)
    z = dual.astype(LONG)
    over, top, error = LONG(0), LONG(0), 0.0
    for cells in _some(operator, np.arange(operator.shape[1])):
        columns = operator.columns(cells)
        values, sizes = dual @ columns, np.abs(dual) @ np.abs(columns)
        # Doubles settle almost all cells: those whose value is below the cost beyond rounding add
        # nothing.
        near = np.flatnonzero(~(values + 2 * (z.size + 2) * EPS * (sizes + cost) < cost))
        exact = np.maximum(z @ columns[:, near].astype(LONG) - cost, 0)
        over += exact.sum()
        top = max(top, exact.max(initial=0))
        error += float(2 * (z.size + 2) * LONG_EPS * (sizes[near] + cost).sum())
        error += float(2 * near.size * LONG_EPS * exact.sum())
    return over, top, error


def _excess_on_graph(
    diffusion: Diffusion, dual: FloatArray, cost: float
) -> tuple[np.longdouble, np.longdouble, float]:
    """The same on a graph, whose matrix is too large to form."""
    spread = np.zeros(diffusion.laplacian.shape[0], dtype=LONG)
    np.add.at(spread, diffusion.nodes, dual.astype(LONG))
    values, error = _diffused(diffusion, spread)
    near = values + error - cost > 0
    exact = np.maximum(values[near] - cost, 0)
    over = exact.sum()
    # `error` bounds the length of the error vector, so its sum over k cells is at most sqrt(k)
    # times that.
    count = int(near.sum())
    rounding = math.sqrt(count) * error + 2 * count * LONG_EPS * (count * cost + float(over))
    return over, LONG(exact.max(initial=0)), rounding


def _length(vector: npt.NDArray[Any]) -> np.longdouble:
    """|vector|_2 in long double, by a power of two that keeps all squares in range and rounds nothing."""
    long = vector.astype(LONG)
    largest = float(np.abs(long).max(initial=0))
    if largest == 0:
        return LONG(0)
    power = LONG(2) ** math.frexp(largest)[1]
    near = long / power
    return LONG(np.sqrt((near * near).sum()) * power)


def _some(operator: Operator, cells: IntArray) -> Iterator[IntArray]:
    """The cells in turn, so many that their columns, made from units where need be, can be held."""
    step = max(1, ENTRIES // max(operator.shape))
    for begin in range(0, cells.size, step):
        yield cells[begin : begin + step]


def _diffused(diffusion: Diffusion, masses: LongArray) -> tuple[LongArray, float]:
    """exp(-rate L) times masses, and how far that may be from the truth in length.

    With the largest degree h, S = L / h - 1 and reach = rate h, exp(-rate L) is sum c_k T_k(S), a
    Chebyshev series whose c_k are (-1)**k (2 - [k = 0]) exp(-reach) I_k(reach) [abramowitz64,
    9.6.34]. These have the sizes of a Skellam law of variance reach, so that terms beyond 12
    deviations weigh nothing. A step S x is off by (entries of a row + 4) eps |x|, which reaches the
    k-th term at most k times over: in all by sum |c_k| k**2 <= reach; adding up the terms, by a few
    eps for each.
    """
    laplacian = diffusion.laplacian
    fastest = float(laplacian.diagonal().max())
    if fastest == 0:
        return masses, 0.0
    weights = _series(diffusion.rate, fastest)
    long = laplacian.astype(LONG)
    before, now = masses, np.asarray(long @ masses) / LONG(fastest) - masses
    out = weights[0] * before + weights[1] * now
    for weight in weights[2:]:
        before, now = now, 2 * (np.asarray(long @ now) / LONG(fastest) - now) - before
        out = out + weight * now
    row, reach = int(np.diff(laplacian.indptr).max()), diffusion.rate * fastest
    steps = 2 * (row + 6) * (reach + math.sqrt(reach) + 1)
    return out, (steps + 4 * weights.size + 4) * LONG_EPS * float(_length(masses))


@lru_cache(maxsize=64)
def _series(rate: float, fastest: float) -> LongArray:
    """The c_k by mpmath's Bessel functions in 40 digits, each rounded once."""
    with mpmath.workdps(40):
        reach = mpmath.mpf(rate) * mpmath.mpf(fastest)
        terms = 48 + math.ceil(12 * mpmath.sqrt(reach))
        ever = mpmath.exp(-reach)
        sizes = [mpmath.besseli(k, reach) * ever * (1 if k == 0 else 2) for k in range(terms)]
        return np.array([LONG(mpmath.nstr((-1) ** k * size, 30)) for k, size in enumerate(sizes)])
