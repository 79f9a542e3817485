"""Earth mover's distance between masses at points, all pairs of them: a solver of others, checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, MissingPackage, SolverFailed
from sfumato.spaces import Norm
from sfumato.transport.masses import checked, difference
from sfumato.transport.results import Plan, Transport

LARGEST = 25_000_000  # pairs of points with excess and want: 200 MB of distances
LARGEST_WITHOUT_POT = 40_000  # about a second of linear programming


def emd_euclidean(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    points: npt.ArrayLike,
    *,
    normalize: bool = False,
    flow: bool = False,
) -> Transport:
    """The distance between two masses on the same points, straight-line distance as the ground metric.

    Only points where p and q differ matter. POT solves it [flamary21], or without it scipy, if
    there are few; the plan and its potentials are checked here, and what they miss by is in the
    bounds.

    Args:
        p: Masses, one for each point; finite and not negative.
        q: Masses on the same points.
        points: Coordinates, [points, dimensions], or a list of numbers.
        normalize: Whether to scale both masses to 1.
        flow: Whether the result also says where mass moves.

    Returns:
        The distance between proven bounds.

    Raises:
        InvalidInput: The masses or points do not fit, or there are too many pairs.
        MissingPackage: There are many pairs, and POT is not installed.
        SolverFailed: The solution did not pass its check.

    """
    try:
        places = np.asarray(points, dtype=np.float64)
    except ValueError:
        raise InvalidInput("points must be rows of numbers, one for each mass") from None
    if places.ndim == 1:
        places = places[:, None]
    if places.ndim != 2 or not places.size or not np.isfinite(places).all():
        raise InvalidInput(f"points must be finite rows of coordinates, got shape {places.shape}")
    return emd_points(p, q, places, norm="euclidean", normalize=normalize, flow=flow)


def emd_points(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    places: FloatArray,
    *,
    norm: Norm,
    normalize: bool = False,
    flow: bool = False,
) -> Transport:
    """The distance between two masses on the same places, one in each row, in either norm."""
    shape = (len(places),)
    difference_ = difference(
        checked(p, shape, name="p"), checked(q, shape, name="q"), normalize=normalize
    )
    z, mass = difference_.excess, difference_.mass
    # Near 1, squares of coordinates neither overflow nor vanish; scaling by a power of two is
    # exact.
    exponent = math.frexp(float(np.ptp(places, axis=0).max()))[1]
    places = np.ldexp(places - places.min(axis=0), -exponent)
    dimensions = places.shape[1]
    diameter = math.sqrt(dimensions) if norm == "euclidean" else float(dimensions)
    have, want = np.flatnonzero(z > 0), np.flatnonzero(z < 0)
    if not have.size or not want.size:
        nothing = Plan(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0)) if flow else None
        slack = math.ldexp((float(np.abs(z).sum()) + difference_.slip) * diameter, exponent)
        return Transport(0.0, 0.0, slack, nothing)
    if have.size * want.size > LARGEST:
        raise InvalidInput(
            f"{have.size} x {want.size} pairs of points are more than {LARGEST}; use a grid and its l1 metric"
        )
    from scipy.spatial import distance

    a, b = z[have], -z[want]
    value, lower, upper, plan = _solved(
        a,
        b,
        distance.cdist(
            places[have], places[want], "euclidean" if norm == "euclidean" else "cityblock"
        ),
        diameter=diameter,
        mass=mass,
        slip=difference_.slip,
    )
    moved = None
    if flow:
        rows, columns = np.nonzero(plan)
        moved = Plan(have[rows], want[columns], plan[rows, columns])
    value, lower, upper = (math.ldexp(x, exponent) for x in (value, lower, upper))
    return Transport(value, lower, upper, moved)


def emd_apart(
    p: npt.ArrayLike, q: npt.ArrayLike, distances: npt.ArrayLike, *, normalize: bool = False
) -> Transport:
    """The distance between mass p on some places and mass q on others, given how far apart they are.

    `distances` has one row for each place of p and one column for each of q.

    Args:
        p: Masses, one for each row of `distances`.
        q: Masses, one for each column.
        distances: How far apart the places are, [places of p, places of q]; not negative.
        normalize: Whether to scale both masses to 1.

    Returns:
        The distance between proven bounds.

    Raises:
        InvalidInput: The masses or distances do not fit.
        SolverFailed: The solution did not pass its check.

    Example:
        >>> emd_apart([1, 1], [2], [[0], [3]]).value
        3.0

    """
    costs = np.asarray(distances, dtype=np.float64)
    if costs.ndim != 2 or 0 in costs.shape or not np.isfinite(costs).all() or (costs < 0).any():
        raise InvalidInput(
            f"distances must be a table of finite numbers, none below 0, got shape {costs.shape}; "
            "nothing was computed"
        )
    rows, columns = costs.shape
    # Side by side on rows + columns places: what p has no mass on and what q has none on.
    shape = (rows + columns,)
    have = checked(np.concatenate([_row(p, rows, "p"), np.zeros(columns)]), shape, name="p")
    want = checked(np.concatenate([np.zeros(rows), _row(q, columns, "q")]), shape, name="q")
    apart = difference(have, want, normalize=normalize)
    a, b = apart.excess[:rows], -apart.excess[rows:]
    if not a.any():
        return Transport(0.0, 0.0, apart.slip * float(costs.max()))
    value, lower, upper, _ = _solved(
        a, b, costs, diameter=float(costs.max()), mass=apart.mass, slip=apart.slip
    )
    return Transport(value, lower, upper)


def _row(masses: npt.ArrayLike, count: int, name: str) -> FloatArray:
    values = np.ravel(np.asarray(masses, dtype=np.float64))
    if values.size != count:
        raise InvalidInput(f"{name} must be one mass for each of {count} places, got {values.size}")
    return values


def _solved(
    a: FloatArray,
    b: FloatArray,
    distances: FloatArray,
    *,
    diameter: float,
    mass: float,
    slip: float,
) -> tuple[float, float, float, FloatArray]:
    """Value, bounds and plan between masses a and b, all positive or 0, of about the same total."""
    total = min(float(a.sum()), float(b.sum()))
    plan, u, v = cheapest_plan(a / a.sum(), b / b.sum(), distances)
    plan = plan * total
    value = float((plan * distances).sum())
    # A pair of potentials that promises more than its distance is lowered by as much as the worst
    # one does.
    u = u - max(0.0, float((u[:, None] + v[None, :] - distances).max()))
    proved = float(u @ a + v @ b)
    # Mass the plan puts elsewhere than it should, and rounding, travel at most the diameter.
    misplaced = float(np.abs(plan.sum(axis=1) - a).sum() + np.abs(plan.sum(axis=0) - b).sum())
    slack = (misplaced + slip + 2**-48 * total) * diameter
    lower, upper = max(0.0, min(value, proved) - slack), value + slack
    if not upper - lower <= 1e-9 * mass * diameter:
        raise SolverFailed(
            f"the plan costs {value:g}, its potentials prove {proved:g}; no distance was computed"
        )
    return value, lower, upper, plan


def cheapest_plan(
    a: FloatArray, b: FloatArray, costs: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A plan of least cost between two masses of total 1, and its potentials; nothing here is proved.

    POT's network simplex [flamary21]. Where POT is not installed, scipy's linear programming, which
    is slower and takes few pairs.

    Args:
        a: Masses, of total 1.
        b: Masses, of total 1.
        costs: What it costs to move 1 from each of a to each of b.

    Returns:
        How much moves from each of a to each of b, and the potentials of both.

    Raises:
        MissingPackage: There are more than 40,000 pairs, and POT is not installed.
        SolverFailed: The linear program has no solution.

    """
    try:
        import ot
    except ImportError:
        return _programmed(a, b, costs)
    plan, log = ot.emd(a, b, np.ascontiguousarray(costs), numItermax=10_000_000, log=True)
    return plan, log["u"], log["v"]


def _programmed(
    a: FloatArray, b: FloatArray, costs: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The plan as the linear program that it is, by the dual simplex of HiGHS."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    if costs.size > LARGEST_WITHOUT_POT:
        raise MissingPackage("pip install 'sfumato[emd]'")
    sent = kron(eye_array(a.size), np.ones((1, b.size)))
    taken = kron(np.ones((1, a.size)), eye_array(b.size))
    # Totals that differ in the last digit have no plan.
    met = np.concatenate([a, b * (a.sum() / b.sum())])
    rows: Any = vstack([sent, taken]).tocsr()  # taken sparse, whatever the stubs say
    found = linprog(
        costs.ravel(),
        A_eq=rows,
        b_eq=met,
        method="highs-ds",
        options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
    )
    if found.x is None:
        raise SolverFailed("the linear program of a plan has no solution; no distance was computed")
    prices = np.asarray(found.eqlin.marginals, dtype=np.float64)
    return np.reshape(found.x, costs.shape), prices[: a.size], prices[a.size :]
