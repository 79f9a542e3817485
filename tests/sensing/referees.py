"""Clarabel as a second opinion on recoveries, and how far readings are from all that a box can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import clarabel
import numpy as np
from scipy import sparse

from sfumato._types import FloatArray
from sfumato.sensing.recovery.solver.norms import LONG, length

Program = tuple[FloatArray, Any, FloatArray, list[Any]]


@dataclass(frozen=True, eq=False)
class Opinion:
    """What Clarabel says; its objective may be off by 1e-6 where the matrix is badly conditioned."""

    status: Literal["optimal", "infeasible", "unsure"]
    objective: float
    estimate: FloatArray
    dual: FloatArray


def clarabel_solution(
    matrix: FloatArray, y: FloatArray, *, radius: float, max_mass: float, accuracy: float = 1e-9
) -> Opinion:
    """The least 1'f with |M f - y| <= radius, 0 <= f <= upper, as a second-order cone program."""
    solution = clarabel_solver(
        matrix, y, radius=radius, max_mass=max_mass, accuracy=accuracy
    ).solve()
    status: Literal["optimal", "infeasible", "unsure"] = "unsure"
    if solution.status == clarabel.SolverStatus.Solved:
        status = "optimal"
    elif solution.status == clarabel.SolverStatus.PrimalInfeasible:
        status = "infeasible"
    # The last m multipliers are those of y - M f; the dual vector of a recovery has the other sign.
    return Opinion(status, solution.obj_val, np.array(solution.x), -np.array(solution.z)[-y.size :])


def clarabel_solver(
    matrix: FloatArray, y: FloatArray, *, radius: float, max_mass: float, accuracy: float = 1e-8
) -> Any:
    """Clarabel with the program, ready to solve."""
    return clarabel_setup(clarabel_program(matrix, y, radius=radius, max_mass=max_mass), accuracy)


def clarabel_program(
    matrix: FloatArray, y: FloatArray, *, radius: float, max_mass: float
) -> Program:
    """The program as Clarabel wants it: least cost'x with A x + s = b, s in cones."""
    m, n = matrix.shape
    a = sparse.vstack(
        [
            -sparse.eye_array(n),
            sparse.eye_array(n),
            sparse.csc_array((1, n)),
            sparse.csc_array(matrix),
        ],
        "csc",
    )
    b = np.concatenate([np.zeros(n), np.full(n, max_mass), [radius], y])
    return np.ones(n), a, b, [clarabel.NonnegativeConeT(2 * n), clarabel.SecondOrderConeT(m + 1)]


def hull_distance(matrix: FloatArray, y: FloatArray, max_mass: float) -> tuple[float, float]:
    """Between which two numbers the least |M f - y| over 0 <= f <= upper lies; proved on both sides.

    Above by an f in the box, below by r'(y - M f) <= |y - M f| for a unit vector r and every f in
    the box.
    """
    n, unit = matrix.shape[1], float(length(y))
    matrix, y, max_mass = (
        matrix * (max_mass / unit),
        y / unit,
        1.0,
    )  # of f / upper and y / |y|, so near 1
    basis, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
    basis = basis[:, sizes > 1e-13 * sizes[0]] if sizes[0] > 0 else basis[:, :0]
    small, b = basis.T @ matrix, basis.T @ y
    r = b.size
    a = sparse.block_array(
        [
            [sparse.eye_array(n) * -1, None],
            [sparse.eye_array(n), None],
            [sparse.csc_array((1, n)), sparse.csc_array([[-1.0]])],
            [sparse.csc_array(small), sparse.csc_array((r, 1))],
        ],
        format="csc",
    )
    b_all = np.concatenate([np.zeros(n), np.full(n, max_mass), [0.0], b])
    cones = [clarabel.NonnegativeConeT(2 * n), clarabel.SecondOrderConeT(r + 1)]
    solution = clarabel_setup((np.append(np.zeros(n), 1.0), a, b_all, cones), 1e-11).solve()
    f = np.nan_to_num(np.clip(np.array(solution.x)[:n], 0, max_mass))
    long = matrix.astype(LONG)
    left = np.asarray(y - long @ f, dtype=np.float64)
    high = float(length(left))
    if high <= 1e-9:
        return 0.0, unit * high
    low = 0.0
    inside = -np.array(solution.x)[n] * (basis @ np.array(solution.z)[-r:])
    for ray in (left, inside + (y - basis @ b)):
        along = ray / float(length(ray))
        low = max(low, float(y @ along - max_mass * np.maximum(along @ long, 0).sum()))
    return unit * low, unit * high


def clarabel_setup(program: Program, accuracy: float = 1e-8) -> Any:
    """Clarabel on one thread, and silent."""
    cost, a, b, cones = program
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
    return clarabel.DefaultSolver(sparse.csc_array((cost.size,) * 2), cost, a, b, cones, settings)
