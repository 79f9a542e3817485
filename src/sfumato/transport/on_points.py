"""Earth mover's distance between masses at points, Euclidean metric: POT's network simplex, checked."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput, SolverFailed
from sfumato.transport.masses import checked, difference
from sfumato.transport.result import Plan, Transport

LARGEST = 25_000_000  # pairs of points with excess and want: 200 MB of distances


def emd_euclidean(
    p: npt.ArrayLike, q: npt.ArrayLike, points: npt.ArrayLike, *, normalize: bool = False, flow: bool = False
) -> Transport:
    """The distance between two masses on the same points, straight-line distance as the ground metric.

    Only points where p and q differ matter. POT solves it [flamary21]; its plan and its potentials are
    checked here, and what they miss by is in the bounds.
    """
    try:
        places = np.asarray(points, dtype=np.float64)
    except ValueError:
        raise InvalidInput("points must be rows of numbers, one for each mass") from None
    if places.ndim == 1:
        places = places[:, None]
    if places.ndim != 2 or not places.size or not np.isfinite(places).all():
        raise InvalidInput(f"points must be finite rows of coordinates, got shape {places.shape}")
    shape = (len(places),)
    difference_ = difference(checked(p, shape, name="p"), checked(q, shape, name="q"), normalize=normalize)
    z, mass = difference_.excess, difference_.mass
    # Near 1, squares of coordinates neither overflow nor vanish; scaling by a power of two is exact.
    exponent = math.frexp(float(np.ptp(places, axis=0).max()))[1]
    places = np.ldexp(places - places.min(axis=0), -exponent)
    diameter = math.sqrt(places.shape[1])
    have, want = np.flatnonzero(z > 0), np.flatnonzero(z < 0)
    if not have.size or not want.size:
        nothing = Plan(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0)) if flow else None
        slack = math.ldexp((float(np.abs(z).sum()) + difference_.slip) * diameter, exponent)
        return Transport(0.0, 0.0, slack, nothing)
    if have.size * want.size > LARGEST:
        raise InvalidInput(
            f"{have.size} x {want.size} pairs of points are more than {LARGEST}; use a grid and its l1 metric"
        )
    import ot
    from scipy.spatial.distance import cdist

    distances = cdist(places[have], places[want])
    a, b = z[have], -z[want]
    total = min(float(a.sum()), float(b.sum()))
    plan, log = ot.emd(a / a.sum(), b / b.sum(), distances, numItermax=10_000_000, log=True)
    plan = plan * total
    value = float((plan * distances).sum())
    u, v = log["u"], log["v"]
    # A pair of potentials that promises more than its distance is lowered by as much as the worst one does.
    u = u - max(0.0, float((u[:, None] + v[None, :] - distances).max()))
    proved = float(u @ a + v @ b)
    # Mass the plan puts elsewhere than it should, and rounding, travel at most the diameter.
    misplaced = float(np.abs(plan.sum(axis=1) - a).sum() + np.abs(plan.sum(axis=0) - b).sum())
    slack = (misplaced + difference_.slip + 2**-48 * total) * diameter
    lower, upper = max(0.0, min(value, proved) - slack), value + slack
    if not upper - lower <= 1e-9 * mass * diameter:
        raise SolverFailed(
            f"POT's plan costs {value:g}, its potentials prove {proved:g}; no distance was computed"
        )
    moved = None
    if flow:
        rows, columns = np.nonzero(plan)
        moved = Plan(have[rows], want[columns], plan[rows, columns])
    value, lower, upper = (math.ldexp(x, exponent) for x in (value, lower, upper))
    return Transport(value, lower, upper, moved)
