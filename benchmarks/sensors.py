"""Recovery from private readings: CPU time beside Clarabel and cvxpy in one run, and what the checker says.

Prints Markdown; `make bench` keeps it in docs/reference/benchmarks.md. Compilation and imports are
not counted. "Warm" is a recovery from an operator that was recovered from before, as with all
readings of a site but the first: what depends on the operator alone is known. "Cold" is one from a
fresh operator. Clarabel keeps nothing between problems; its time starts with the problem assembled
as it wants it, cvxpy's with its expressions.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
import numpy.typing as npt

from sfumato.sensing import graph_diffusion, heat_line
from sfumato.sensing.model.operators import HeatLine
from sfumato.sensing.recovery import check, default_radius
from sfumato.sensing.recovery.estimators import recover
from sfumato.spaces import Graph

ROOT = Path(__file__).parent.parent
sys.path.insert(
    0, str(ROOT)
)  # tests are no package of ours, and this file may be run from anywhere
from tests.sensing.problems import attempt, problems  # noqa: E402
from tests.sensing.referees import clarabel_program, clarabel_setup  # noqa: E402

FloatArray = npt.NDArray[np.float64]

NAME = b"benchmarks/sensors.py"
SENSORS, TIME, SIGMA = 50, 0.05, 0.1
PROBLEMS = 2000
INSTANCES = {100: 8, 1000: 5, 10_000: 2, 100_000: 1}
ASKED = {100: 12, 1000: 30, 10_000: 300, 100_000: 2000}


def seconds(work: Callable[[], object], *, least: float = 0.1) -> float:
    """CPU time of one call, the median of several: a shared machine slows down some of them."""
    spent: list[float] = []
    while sum(spent) < least or len(spent) < 3:
        spent.append(once(work))
    return float(np.median(spent))


def once(work: Callable[[], object]) -> float:
    """CPU time of a single call: for peers that take long."""
    start = time.process_time()
    work()
    return time.process_time() - start


def readings(operator: HeatLine, rng: np.random.Generator) -> FloatArray:
    """Four unit sources anywhere, and noise."""
    sources = np.zeros(operator.shape[1])
    sources[rng.choice(sources.size, 4, replace=False)] = 1.0
    return np.asarray(operator.readings(sources) + SIGMA * rng.standard_normal(operator.shape[0]))


def by_clarabel(matrix: FloatArray, y: FloatArray, radius: float) -> Callable[[], float]:
    """The second-order cone program, assembled; the call sets up Clarabel and solves."""
    program = clarabel_program(matrix, y, radius=radius, max_mass=1.0)
    return lambda: float(clarabel_setup(program).solve().obj_val)


def by_cvxpy(matrix: FloatArray, y: FloatArray, radius: float) -> Callable[[], float]:
    """As a user of cvxpy writes it."""
    cp: Any = cvxpy  # its functions have types, its names have not

    def solve() -> float:
        f = cp.Variable(matrix.shape[1])
        within = [cp.norm(matrix @ f - y) <= radius, f >= 0, f <= 1]
        return float(cp.Problem(cp.Minimize(cp.sum(f)), within).solve(solver=cp.CLARABEL))

    return solve


def compressed(
    matrix: FloatArray, y: FloatArray, radius: float
) -> tuple[FloatArray, FloatArray, float]:
    """The same problem in the range of the matrix; what the readings have outside shortens the radius."""
    basis, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
    basis = basis[:, sizes > 1e-14 * sizes[0]]
    inside = basis.T @ y
    left = y - basis @ inside
    return basis.T @ matrix, inside, float(np.sqrt(radius**2 - left @ left))


def peers(rng: np.random.Generator) -> None:
    """Lines of several sizes: solved warm, cold, and end to end with operator and radius made anew."""
    print(
        "| cells | instances | warm ms | cold ms | end to end ms | Clarabel / warm | asked for | "
        "Clarabel / cold | the same asked for | Clarabel / us, end to end | Clarabel, compressed / warm | "
        "cvxpy+Clarabel / warm | objectives apart | gap by check |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for n, count in INSTANCES.items():
        rows = np.array([peer_row(n, rng) for _ in range(count)])
        ours, cold, fresh, direct, anew, small, modelled = np.exp(np.log(rows[:, :7]).mean(axis=0))
        apart, gap = rows[:, 7:].max(axis=0)
        asked, asked_cold = (
            f"{ASKED[n]}x: {verdict(direct / spent >= ASKED[n])}" for spent in (ours, cold)
        )
        anew_asked, cvxpy_asked = "", ""
        if n == 100:
            anew_asked = f" (5x: {verdict(anew / fresh >= 5)})"
            cvxpy_asked = f" (20x: {verdict(modelled / ours >= 20)})"
        print(
            f"| {n:,} | {count} | {1e3 * ours:.2f} | {1e3 * cold:.2f} | {1e3 * fresh:.2f} | "
            f"{direct / ours:.1f}x | {asked} | {direct / cold:.1f}x | {asked_cold} | "
            f"{anew / fresh:.1f}x{anew_asked} | {small / ours:.1f}x | {modelled / ours:.1f}x{cvxpy_asked} | "
            f"{apart:.0e} | {gap:.0e} |",
            flush=True,
        )


def peer_row(n: int, rng: np.random.Generator) -> list[float]:
    """Seconds of ours, warm, cold, end to end; of Clarabel, end to end, compressed; of cvxpy; apart, gap."""
    operator = heat_line(sources=n, sensors=SENSORS, diffusion_time=TIME)
    y = readings(operator, rng)
    radius = default_radius(operator, y, SIGMA)
    found = recover(operator, y, radius=radius)
    matrix = operator.columns(np.arange(n))

    def anew() -> object:
        built = heat_line(sources=n, sensors=SENSORS, diffusion_time=TIME)
        return recover(built, y, sigma=SIGMA)

    clock = seconds if n <= 1000 else once
    theirs = by_clarabel(matrix, y, radius)
    assembled = once(lambda: by_clarabel(operator.columns(np.arange(n)), y, radius))
    said: list[float] = []
    direct = clock(lambda: said.append(theirs()))
    return [
        seconds(lambda: recover(operator, y, radius=radius)),
        cold_seconds(n, y, radius),
        seconds(anew),
        direct,
        direct + assembled,
        clock(by_clarabel(*compressed(matrix, y, radius))),
        clock(by_cvxpy(matrix, y, radius)),
        abs(said[-1] - found.objective),
        check(found).gap,
    ]


def cold_seconds(n: int, y: FloatArray, radius: float, *, times: int = 15) -> float:
    """CPU time of a recovery from an operator nobody has recovered from, the median of several."""
    spent = []
    for _ in range(times):
        operator = heat_line(sources=n, sensors=SENSORS, diffusion_time=TIME)
        spent.append(once(lambda operator=operator: recover(operator, y, radius=radius)))  # type: ignore[misc]
    return float(np.median(spent))


def large(rng: np.random.Generator) -> None:
    """A million cells."""
    operator = heat_line(sources=1_000_000, sensors=SENSORS, diffusion_time=TIME)
    print(
        "| cells | warm ms, median of 5 | slowest | asked for | largest gap by check | asked for |"
    )
    print("|---|---|---|---|---|---|")
    spent, gaps = [], []
    for _ in range(5):
        y = readings(operator, rng)
        radius = default_radius(operator, y, SIGMA)
        found = check(recover(operator, y, radius=radius))
        if not found.holds:
            raise RuntimeError(found.why)
        gaps.append(found.gap)
        spent.append(seconds(lambda y=y, radius=radius: recover(operator, y, radius=radius)))  # type: ignore[misc]
    middle, gap = float(np.median(spent)), max(gaps)
    print(
        f"| 1e6 | {1e3 * middle:.1f} | {1e3 * max(spent):.1f} | 30 ms: {verdict(middle <= 0.03)} | "
        f"{gap:.0e} | 1e-7: {verdict(gap <= 1e-7)} |"
    )


def graphs(rng: np.random.Generator) -> None:
    """A random graph of 100,000 nodes, mean degree 6, every node sensed."""
    n = 100_000
    ring = {(i, i + 1) for i in range(n - 1)}
    chords = {
        (min(a, b), max(a, b)) for a, b in rng.integers(n, size=(2 * n, 2)).tolist() if a != b
    }
    graph = Graph(sorted(ring | chords), nodes=n)
    sources = np.zeros(n)
    sources[rng.choice(n, 5, replace=False)] = 1.0
    print(
        "| nodes | sigma | s, operator built anew | asked for | gap by check | asked for | sources found |"
    )
    print("|---|---|---|---|---|---|---|")
    for sigma in (0.001, 0.01):
        y = graph_diffusion(graph, 0.3).readings(sources) + sigma * rng.standard_normal(n)
        recover(graph_diffusion(graph, 0.3), y, sigma=sigma)
        start = time.process_time()
        recovery = recover(graph_diffusion(graph, 0.3), y, sigma=sigma)
        spent = time.process_time() - start
        found = check(recovery)
        if not found.holds:
            raise RuntimeError(found.why)
        hit = int(np.isin(np.flatnonzero(sources), recovery.support).sum())
        print(
            f"| 1e5 | {sigma:g} | {spent:.2f} | 3 s: {verdict(spent <= 3)} | {found.gap:.0e} | "
            f"1e-9: {verdict(found.gap <= 1e-9)} | {hit} of 5 |",
            flush=True,
        )


def random_problems(rng: np.random.Generator) -> None:
    """The generator of the tests: how many recoveries prove themselves to an independent checker."""
    counts: Counter[str] = Counter()
    worst, spent, slowest = 0.0, [0.0], ""
    for given in problems(rng, PROBLEMS):
        found = attempt(given)
        slowest = given.label if found.seconds > max(spent) else slowest
        spent.append(found.seconds)
        counts[found.verdict] += 1
        if found.verdict != "right":
            print(
                f"seed {given.seed}: {given.label}: {found.verdict}: {found.why}", file=sys.stderr
            )
        elif found.recovery and found.checked:
            counts[found.recovery.status] += 1
            worst = max(
                worst, abs(found.checked.gap) if found.recovery.status == "optimal" else 0.0
            )
    share = counts["right"] / PROBLEMS
    print(
        "| random problems | proved | asked for | raised | wrong | asked for | optimal, infeasible, zero | "
        "largest gap | median ms | slowest s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    print(
        f"| {PROBLEMS} | {100 * share:.2f} % | 99.5 %: {verdict(share >= 0.995)} | {counts['raised']} | "
        f"{counts['wrong']} | none: {verdict(not counts['wrong'])} | "
        f"{counts['optimal']}, {counts['infeasible']}, {counts['zero']} | {worst:.0e} | "
        f"{1e3 * float(np.median(spent)):.1f} | {max(spent):.1f} |"
    )
    print(f"\nThe slowest: {slowest}.")


def verdict(kept: bool) -> str:
    """Whether what was asked for is there."""
    return "met" if kept else "MISSED"


def main() -> None:
    """All tables; instances come from a seed nobody chose: the bytes of the name of this file."""
    rng = np.random.default_rng(list(NAME))
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("clarabel", "cvxpy", "scipy", "numba")
    )
    print("\n## Sensors\n")
    print(
        f"`benchmarks/sensors.py`, one run, one thread, CPU time; {packages}. Heat on a line, {SENSORS} "
        f"sensors, diffusion time {TIME}, four sources, sigma {SIGMA}; geometric means over the instances.\n"
    )
    for table in (peers, large, graphs, random_problems):
        table(rng)
        print()


if __name__ == "__main__":
    main()
