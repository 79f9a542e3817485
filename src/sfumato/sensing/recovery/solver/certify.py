"""From a vertex to an answer that proves itself: values and dual vector from the operator's own columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from sfumato._types import FloatArray, IntArray, LongArray
from sfumato.sensing.model.operators.protocol import Diffusion, Operator, column_chunks
from sfumato.sensing.recovery.solver.exchange import Problem, Vertex
from sfumato.sensing.recovery.solver.long_diffusion import diffuse_long
from sfumato.sensing.recovery.solver.norms import LONG, LONG_EPS, length, power_of_two
from sfumato.sensing.recovery.solver.price import prices

FEASIBLE = 1e-10
"""The share of the radius by which rounding may overstep it."""


@dataclass(frozen=True, slots=True)
class Certified:
    """Sources, a dual vector, and what the two prove.

    `miss` is the distance to the readings, `bound` what the dual vector says no total is below.
    """

    cells: IntArray
    values: FloatArray
    dual: FloatArray
    objective: float
    miss: float
    bound: float

    @property
    def gap(self) -> float:
        """How much smaller another total might be."""
        return max(self.objective - self.bound, 0.0)


def certify(problem: Problem, vertex: Vertex) -> Certified:
    """The answer at a vertex, without compression: one more solution of its equations, then the proof."""
    max_mass, radius = problem.max_mass, problem.radius
    full = np.full(vertex.full.size, max_mass)
    base = (problem.readings - _spread(problem.operator, vertex.full, full)).astype(np.float64)
    within = radius
    for _ in range(3):
        free, z = _polish(vertex, base, within, max_mass)
        inside = free > 0
        cells = np.concatenate([vertex.free[inside], vertex.full])
        values = np.concatenate([free[inside], full])
        miss = _distance(problem, cells, values)
        if miss <= radius * (1 + FEASIBLE / 2):
            break
        within -= 2 * (miss - radius)  # a tiny radius is overstepped by the rounding of the values
    objective = math.fsum(values.tolist())
    z, bound = _bound(problem, z, objective)
    return Certified(cells, values, z, objective, miss, bound)


def _polish(
    vertex: Vertex, base: FloatArray, radius: float, max_mass: float
) -> tuple[FloatArray, FloatArray]:
    """Values of the free cells and the dual vector (see `crossover_kernel` for the formulas)."""
    basis, triangle = vertex.basis, vertex.triangle
    if (
        vertex.free.size == 0
    ):  # every cell at an end of the box: the multiplier has a range of its own
        return np.zeros(0), vertex.dual
    unit = (
        power_of_two(radius) if radius > 0 else 1.0
    )  # squares of what is left must not overflow or vanish
    inside = basis.T @ base
    left = base - basis @ inside
    again = basis.T @ left
    left -= basis @ again
    w, _ = lapack.dtrtrs(triangle, np.ones(vertex.free.size), trans=1)
    scaled, within = left / unit, radius / unit
    size = math.sqrt(scaled @ scaled)
    steep = power_of_two(float(np.abs(w).max()))
    unit_w = w / steep
    mu = math.sqrt(max((within - size) * (within + size), 0.0) / (unit_w @ unit_w))
    values, _ = lapack.dtrtrs(triangle, inside + again - mu * unit * unit_w)
    return np.clip(values, 0.0, max_mass), scaled * (
        steep / mu
    ) + basis @ w if mu > 0 else vertex.dual


def _bound(problem: Problem, z: FloatArray, objective: float) -> tuple[FloatArray, float]:
    """The dual vector, perhaps a little shorter, and the lower bound on all totals that it proves.

    A cell at the level of 1 is above it by rounding half of the time. That costs max_mass for each
    such cell; shrinking z by as much costs no more than that share of the bound. What is shorter is
    rounded anew, so it is weighed anew.
    """
    best, bound, above = z, *_weigh(problem, z, objective)
    shrink = 0.0
    for _ in range(3):
        if bound >= objective * (1 - 1e-10) or above == 0:
            break
        shrink += above
        shorter = z / (1 + shrink)
        proved, above = _weigh(problem, shorter, objective)
        if proved > bound:
            best, bound = shorter, proved
    return best, bound


def _weigh(problem: Problem, z: FloatArray, objective: float) -> tuple[float, float]:
    """What z proves, and by how much it lifts cells above 1 that rounding may have lifted."""
    priced, error = _long_prices(problem.operator, z, 1.0)
    over = priced[priced > 1] - 1
    proved = _proved(problem, z, over, error, objective)
    diffusion = problem.operator.diffusion
    if diffusion is not None and proved < objective * (1 - 1e-10):
        priced, error = _longer_prices(diffusion, z, 1.0)
        over = priced[priced > 1] - 1
        proved = _proved(problem, z, over, error, objective)
    slight = over[over < 1e-7]
    return proved, float(slight.max()) if slight.size else 0.0


def ray_margin(problem: Problem, ray: FloatArray) -> float:
    """What a ray proves: above 0, no sources in the box come within the radius."""
    priced, error = _long_prices(problem.operator, ray, 0.0)
    proved = _proved(problem, ray, priced[priced > 0], error, math.inf)
    diffusion = problem.operator.diffusion
    if diffusion is not None and proved <= 0:
        priced, error = _longer_prices(diffusion, ray, 0.0)
        proved = _proved(problem, ray, priced[priced > 0], error, math.inf)
    return proved


def _proved(
    problem: Problem, z: FloatArray, over: LongArray, error: float, objective: float
) -> float:
    """The value y'z - radius |z| - max_mass sum over, less what rounding may have added to it.

    A sum of k products is off by at most k units of rounding of the sum of their sizes [higham02,
    sec. 3.1]. Sources of a total above the objective need no bound; others have f'over <= objective
    max over, which is less where max_mass is large.
    """
    y, long = problem.readings.astype(LONG), z.astype(LONG)
    size = problem.radius * length(z)
    paid = problem.max_mass * (over.sum() + error)
    if objective < math.inf:
        paid = min(paid, objective * (over.max(initial=0) + error))
    rounding = 4 * (z.size + 4) * LONG_EPS * (np.abs(y) @ np.abs(long) + size + paid)
    return float(y @ long - size - paid - rounding)


def _long_prices(operator: Operator, z: FloatArray, level: float) -> tuple[LongArray, float]:
    """The prices that may reach a level, and how far rounding may have moved their sum.

    Doubles tell which those are; long doubles, of few columns, how high.
    """
    priced = prices(operator, z, level)
    if priced.off is not None:
        return priced.values.astype(LONG), math.sqrt(priced.cells.size) * priced.off
    values, sizes = [np.zeros(0, dtype=LONG)], level * priced.cells.size
    for part in column_chunks(operator, priced.cells):
        columns = operator.columns(part)
        sizes += float((np.abs(z) @ np.abs(columns)).sum())
        values.append(z.astype(LONG) @ columns.astype(LONG))
    found = np.concatenate(values)
    over = float(np.maximum(found - level, 0).sum())
    return found, 2 * LONG_EPS * ((z.size + 2) * sizes + found.size * over)


def _longer_prices(diffusion: Diffusion, z: FloatArray, level: float) -> tuple[LongArray, float]:
    """The same on a graph where doubles are too coarse; it takes some ten times as long."""
    spread = np.zeros(diffusion.laplacian.shape[0], dtype=LONG)
    np.add.at(spread, diffusion.nodes, z.astype(LONG))
    values, error = diffuse_long(diffusion, spread)
    near = values[values + error > level]
    return near, math.sqrt(near.size) * error + 2 * near.size * LONG_EPS * float(np.abs(near).sum())


def _distance(problem: Problem, cells: IntArray, values: FloatArray) -> float:
    return float(length(_spread(problem.operator, cells, values) - problem.readings))


def _spread(operator: Operator, cells: IntArray, values: FloatArray) -> LongArray:
    """The readings of these cells.

    Summed in long double: many sources may cancel to a radius a million times smaller than their
    readings.
    """
    m, n = operator.shape
    if operator.diffusion is not None:
        f = np.zeros(n)
        f[cells] = values
        return operator.readings(f).astype(LONG)
    out, done = np.zeros(m, dtype=LONG), 0
    for part in column_chunks(operator, cells):
        out += operator.columns(part).astype(LONG) @ values[done : done + part.size].astype(LONG)
        done += part.size
    return out
