"""Random recovery problems, easy and nasty, each made from one seed and with what is known of its answer.

`python -m tests.sensing.problems 2000` recovers that many and prints how many hold by `check`.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse, stats
from scipy.sparse.linalg import aslinearoperator
from tests.sensing.referees import hull_distance

from sfumato._types import FloatArray
from sfumato.errors import SolverFailed
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.certificate import Recovery, Status
from sfumato.sensing.recovery.solver.norms import LONG, length
from sfumato.sensing.recovery.verify import Check, check
from sfumato.spaces import Graph, Grid, Line, Points

OPERATORS = {
    "line": 0.4,
    "line at any places": 0.1,
    "line of 3 sensors": 0.12,
    "long line": 0.02,
    "plane": 0.06,
    "points": 0.04,
    "graph": 0.06,
    "part of a graph": 0.05,
    "dense": 0.05,
    "sparse": 0.04,
    "twin columns": 0.03,
    "zero columns": 0.02,
    "map": 0.01,
}
WILD = {"far sensors": 0.05, "scaled columns": 0.02, "scaled rows": 0.02, "": 0.91}
SIZES = {"as it is": 0.8, "huge upper": 0.07, "tiny upper": 0.03, "other units": 0.1}
SOURCES = {"unit": 0.3, "random": 0.3, "at the box": 0.2, "saturated": 0.2}
RADII = {
    "chi": 0.25,
    "papers": 0.2,
    "tight": 0.1,
    "barely feasible": 0.17,
    "barely infeasible": 0.1,
    "tiny": 0.06,
    "above the readings": 0.06,
    "just below the readings": 0.06,
}


@dataclass(frozen=True, eq=False)
class Problem:
    """Readings to recover sources from; `status` is None where nobody knows it beforehand.

    Wild ones are of sizes at which other solvers err.
    """

    seed: int
    label: str
    operator: Operator
    y: FloatArray
    radius: float
    max_mass: float
    status: Status | None
    wild: bool

    @property
    def matrix(self) -> FloatArray:
        return self.operator.columns(np.arange(self.operator.shape[1]))


def problems(rng: np.random.Generator, count: int) -> Iterator[Problem]:
    """As many problems as asked for, in the shares above."""
    for seed in rng.integers(2**53, size=count).tolist():
        yield problem(seed)


def problem(seed: int, *, wild: bool = True) -> Problem:
    """The problem of one seed, always the same; without wild ones it is as it was before there were any."""
    rng, other = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    kind, sources, kind_of_radius = (_pick(rng, table) for table in (OPERATORS, SOURCES, RADII))
    odd, sizes = (_pick(other, WILD), _pick(other, SIZES)) if wild else ("", "as it is")
    kind = odd or kind
    operator = _operator(kind, other if odd else rng)
    m, n = operator.shape
    max_mass = float(rng.choice([1.0, 1.0, 1.0, 0.1, 0.5, 3.0]))
    unit = 1.0
    if sizes == "other units" and not odd:
        unit = _log_uniform(other, 1e-140, 1e140)
    max_mass *= unit
    masses = _sources(sources, n, max_mass, unit, rng)
    sigma = unit * _log_uniform(rng, 1e-3, 1.0)
    exact = operator.readings(masses)
    if odd and exact.any():
        sigma *= float(length(exact)) / math.sqrt(m)
    y = exact + sigma * rng.standard_normal(m)
    if sizes == "huge upper":
        max_mass *= _log_uniform(other, 10, 1e12)
    elif sizes == "tiny upper":
        max_mass /= _log_uniform(other, 10, 1e12)
    noise, size = _distance(operator, masses, y), float(length(y))
    made = Problem(seed, "", operator, y, math.inf, max_mass, None, False)
    radius, status = _radius(kind_of_radius, made, sigma, noise, rng)
    if radius > size * (1 + 1e-12):
        status = "zero"
    elif (
        status is None
        and masses.max() <= max_mass
        and noise * (1 + 1e-12) < radius < size * (1 - 1e-12)
    ):
        status = "optimal"  # the sources that made the readings are feasible
    width = f"sigma={sigma:.1e}, {kind_of_radius} radius"
    label = f"{kind}, m={m}, n={n}, {sources} <= {max_mass:g}, {sizes}, {width}"
    return Problem(
        seed, label, operator, y, radius, max_mass, status, sizes != "as it is" or bool(odd)
    )


def _distance(operator: Operator, masses: FloatArray, y: FloatArray) -> float:
    cells = np.flatnonzero(masses)
    return float(length(operator.columns(cells).astype(LONG) @ masses[cells].astype(LONG) - y))


def _operator(kind: str, rng: np.random.Generator) -> Operator:
    n, m = round(_log_uniform(rng, 5, 2000)), round(_log_uniform(rng, 3, 200))
    spread = _log_uniform(rng, 5e-4, 0.5)
    match kind:
        case "line":
            return heat_line(sources=n, sensors=m, diffusion_time=spread)
        case "line at any places":
            places = np.sort(rng.random(n))
            return heat_line(
                sources=np.unique(places), sensors=1.2 * rng.random(m) - 0.1, diffusion_time=spread
            )
        case "line of 3 sensors":
            return heat_line(sources=n, sensors=3, diffusion_time=spread)
        case "far sensors":
            width = math.sqrt(2 * _log_uniform(rng, 5e-4, 5e-3))
            out = width * rng.uniform(1, 20, size=max(1, m // 10))
            places = np.where(rng.random(out.size) < 0.5, -out, 1 + out)
            near = rng.random(int(rng.integers(3)))
            return heat_line(
                sources=n, sensors=np.concatenate([places, near]), diffusion_time=width * width / 2
            )
        case "long line":
            if rng.random() < 0.2:
                return heat_line(sources=100_000, sensors=min(m, 50), diffusion_time=spread)
            return heat_line(sources=10_000, sensors=m, diffusion_time=spread)
        case "plane":
            return heat_plane(
                sources=Grid(int(rng.integers(2, 6))),
                sensors=rng.random((m, 2)),
                diffusion_time=spread,
            )
        case "points":
            return heat_plane(
                sources=Points(rng.random((min(n, 500), 2))),
                sensors=rng.random((m, 2)),
                diffusion_time=spread,
            )
        case "graph" | "part of a graph":
            graph = _graph(max(4, min(n, 400)), rng)
            rate = _log_uniform(rng, 0.01, 3.0)
            part = rng.permutation(graph.size)[: min(m, graph.size)]
            return graph_diffusion(graph, rate, sensors=None if kind == "graph" else part)
        case _:
            return _matrix(kind, min(n, 500), min(m, 60), rng)


def _matrix(kind: str, n: int, m: int, rng: np.random.Generator) -> Operator:
    matrix = rng.standard_normal((m, n)) * _log_uniform(rng, 0.1, 10)
    match kind:
        case "scaled columns":
            matrix *= 10.0 ** rng.uniform(-8, 8, n)
        case "scaled rows":
            matrix = np.abs(matrix) * 10.0 ** rng.uniform(-8, 8, (m, 1))
        case "sparse":
            kept = rng.random((m, n)) < max(0.05, 3 / m)
            return linear(sparse.csr_array(matrix * kept), Line(n))
        case "twin columns":
            matrix = matrix[:, rng.integers(max(2, n // 3), size=n)]
        case "zero columns":
            matrix[:, rng.random(n) < 0.5] = 0.0
        case "map":
            return linear(aslinearoperator(matrix), Line(n))
        case _:
            pass
    return linear(matrix, Line(n))


def _graph(n: int, rng: np.random.Generator) -> Graph:
    """A random tree, so that it is connected, and about twice as many further edges."""
    tree = {(int(rng.integers(node)), node) for node in range(1, n)}
    more = {(min(a, b), max(a, b)) for a, b in rng.integers(n, size=(2 * n, 2)).tolist() if a != b}
    return Graph(sorted(tree | more), nodes=n)


def _sources(
    kind: str, n: int, max_mass: float, unit: float, rng: np.random.Generator
) -> FloatArray:
    masses = np.zeros(n)
    cells = rng.integers(n, size=int(rng.integers(1, 11)))
    match kind:
        case "unit":
            masses[cells] = min(unit, max_mass)
        case "random":
            masses[cells] = max_mass * rng.random(cells.size)
        case "at the box":
            masses[cells] = max_mass
        case _:
            full = rng.random(n) < rng.uniform(0.1, 0.9)
            start = int(rng.integers(n))
            full[start : start + int(rng.integers(1, n + 1))] = (
                True  # a run, and single cells around it
            )
            masses[full] = max_mass
    return masses


def _radius(
    kind: str, made: Problem, sigma: float, noise: float, rng: np.random.Generator
) -> tuple[float, Status | None]:
    m, size = made.y.size, float(length(made.y))
    if kind.startswith("barely"):
        matrix = made.matrix
        low, high = (
            hull_distance(matrix, made.y, made.max_mass) if matrix.size <= 100_000 else (0.0, 0.0)
        )
        by = _log_uniform(rng, 1e-6, 1e-2)
        # Where the box reaches the readings there is no such radius: the problem is then a tight
        # one.
        if kind == "barely feasible" and high > 1e-7 * size:
            return high * (1 + by), "optimal"
        if kind == "barely infeasible" and low > 1e-7 * size:
            return low * (1 - by), "infeasible"
        kind = "tight"
    match kind:
        case "chi":
            return _chi_radius(made.matrix, made.y, sigma), None
        case "papers":
            return sigma * math.sqrt(m), None
        case "tight":
            return noise * rng.uniform(0.3, 1.1), None
        case "tiny":
            return size * _log_uniform(rng, 1e-6, 1e-3), None
        case "above the readings":
            return size * (1 + _log_uniform(rng, 1e-9, 1.0)), "zero"
        case _:
            return size * (1 - _log_uniform(rng, 1e-9, 0.5)), None


def _chi_radius(matrix: FloatArray, y: FloatArray, sigma: float) -> float:
    basis, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
    basis = basis[:, sizes > 1e-12 * sizes.max()]
    left = y - basis @ (basis.T @ y)
    return math.hypot(
        sigma * math.sqrt(stats.chi2.ppf(0.9, max(1, basis.shape[1]))), float(length(left))
    )


def _pick(rng: np.random.Generator, table: dict[str, float]) -> str:
    shares = np.array(list(table.values()))
    return str(rng.choice(list(table), p=shares / shares.sum()))


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of one problem: `verdict` is right, raised or wrong."""

    problem: Problem
    verdict: str
    why: str
    recovery: Recovery | None
    checked: Check | None
    seconds: float


def attempt(given: Problem) -> Outcome:
    """Recover and check; every answer that does not prove itself, or contradicts what is known, is wrong."""
    from sfumato.sensing.recovery.estimators.least_mass import recover

    start = time.process_time()
    try:
        recovery = recover(given.operator, given.y, radius=given.radius, max_mass=given.max_mass)
    except SolverFailed as failure:
        return Outcome(given, "raised", str(failure), None, None, time.process_time() - start)
    spent = time.process_time() - start
    checked = check(recovery)
    verdict, why = ("right", "") if checked.holds else ("wrong", checked.why)
    if given.status is not None and recovery.status != given.status:
        verdict, why = "wrong", f"said {recovery.status}, is {given.status}; {checked.why}"
    return Outcome(given, verdict, why, recovery, checked, spent)


def main(count: int, first: int) -> None:
    counts: Counter[str] = Counter()
    for given in problems(np.random.default_rng(first), count):
        found = attempt(given)
        status = found.recovery.status if found.recovery else ""
        counts[f"{found.verdict} {status}".strip()] += 1
        if found.verdict != "right":
            print(f"{found.verdict}: seed {given.seed}: {given.label}; {found.why}", flush=True)
        elif found.seconds > 2:
            print(f"slow: seed {given.seed}: {given.label}; {found.seconds:.1f} s", flush=True)
    print(
        f"{count} problems from {first}:",
        ", ".join(f"{n} {what}" for what, n in sorted(counts.items())),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
