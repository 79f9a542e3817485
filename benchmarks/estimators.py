"""How long each estimator takes on the same readings: wall and CPU time in one run, beside R.

Prints Markdown; `make bench` keeps it in docs/reference/benchmarks.md. Compilation is not counted;
what depends on the operator alone is computed in the first call and kept, so that a first recovery
is told apart from the next. The posterior runs on two threads. Asked: 1 s on the line, 5 s on a
graph of 2,600 nodes, also for the start of a whisper on roads, 8 s for the misfit of the large
line, 2 s of the path.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfumato.sensing import (
    Operator,
    bayes_median,
    graph_diffusion,
    heat_line,
    heat_plane,
    misfit,
    mixture,
    off_grid,
    posterior,
    recover,
    resolution,
)
from sfumato.sensing.model.operators import HeatLine, HeatPlane, even_places
from sfumato.sensing.recovery.estimators import bands
from sfumato.sensing.whisper import Spread, whisper_posterior, whisper_spread
from sfumato.spaces import Graph, Grid

FloatArray = npt.NDArray[np.float64]

SEED = b"benchmarks/estimators.py"
DRAWS = 7


def road_like(side: int) -> Graph:
    """A lattice of side x side crossings with one street in five left out, as roads of a city."""
    rng = np.random.default_rng(list(SEED))
    number = np.arange(side * side).reshape(side, side)
    across = np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()])
    along = np.column_stack([number[:-1].ravel(), number[1:].ravel()])
    # All of the first column and all rows stay, so that it is connected.
    kept = along[(along[:, 0] % side == 0) | (rng.random(len(along)) < 0.6)]
    return Graph(np.concatenate([across, kept]))


def scenes() -> dict[str, tuple[Operator, float]]:
    """Operators, and the noise of one reading."""
    places = even_places(49, np.zeros(2), np.ones(2))
    return {
        "line, 100 cells, 50 sensors": (heat_line(sources=100, sensors=50, diffusion_time=0.05), 0.066),
        "line, 10,000 cells, 50 sensors": (heat_line(sources=10_000, sensors=50, diffusion_time=0.05), 0.066),
        "plane, 1,024 cells, 49 sensors": (
            heat_plane(sources=Grid(5), sensors=places, diffusion_time=0.01), 0.68
        ),
        "graph, 2,601 nodes, all read": (graph_diffusion(road_like(51), 1.0), 0.02),
    }  # fmt: skip


def readings(operator: Operator, sigma: float, trial: int) -> FloatArray:
    """Four unit sources anywhere, and noise."""
    rng = np.random.default_rng([*SEED, trial])
    truth = np.zeros(operator.space.size)
    truth[rng.choice(truth.size, 4, replace=False)] = 1.0
    return np.asarray(operator.readings(truth) + sigma * rng.standard_normal(operator.shape[0]))


def estimators(operator: Operator, sigma: float) -> dict[str, Callable[[FloatArray, int], object]]:
    """What is timed."""

    def bayes(y: FloatArray, trial: int) -> object:
        beliefs = posterior(operator, y, sigma=sigma, rng=np.random.default_rng([*SEED, trial]))
        return bayes_median(beliefs), bands(beliefs)

    found: dict[str, Callable[[FloatArray, int], object]] = {
        "R": lambda y, _: recover(operator, y, sigma=sigma),
        "bayes-median with bands": bayes,
        "resolution": lambda *_: resolution(operator, sigma=sigma),
    }
    if isinstance(operator, HeatLine | HeatPlane):
        heat = operator
        found["off-grid"] = lambda y, _: off_grid(heat, y, sigma=sigma)
        found["mixture"] = lambda y, _: mixture(heat, y, sigma=sigma)
    return found


def others() -> dict[str, Callable[[], object]]:
    """What has no R beside it: where a whisper began, and whether the physics of a large site fits."""
    rng = np.random.default_rng(list(SEED))
    roads = road_like(51)
    model = Spread(3.0, 600.0)
    heard = whisper_spread(roads, 1000, spread=model, rng=rng)
    said = np.where(rng.random(roads.size) < 1 / (1 + np.exp(3)), 1 - heard, heard)
    line = heat_line(sources=100_000, sensors=500, diffusion_time=0.05)
    path = graph_diffusion(Graph([(i, i + 1) for i in range(19_999)]), 0.5)
    read = [
        operator.readings(
            np.isin(np.arange(operator.shape[1]), rng.choice(operator.shape[1], count)) * 1.0
        )
        for operator, count in ((line, 200), (path, 4000))
    ]
    noisy = [y + 0.066 * rng.standard_normal(y.size) for y in read]
    return {
        "roads, 2,601 nodes, all asked | start of a whisper": lambda: whisper_posterior(
            roads, said, epsilon=3, spread=model
        ),
        "line, 100,000 cells, 500 sensors | misfit": lambda: misfit(line, noisy[0], sigma=0.066),
        "path, 20,000 nodes, all read | misfit": lambda: misfit(path, noisy[1], sigma=0.066),
    }


def main() -> None:
    """One table."""
    print("## Estimators: how long a recovery takes\n")
    print(__doc__.split("\n\n", 1)[1].strip().replace("\n", " "), "\n")
    print(
        "| scene | what | first, s | next, s (median) | slowest, s | CPU, s |\n|---|---|---|---|---|---|"
    )
    for name, (operator, sigma) in scenes().items():
        for what, work in estimators(operator, sigma).items():
            work(readings(operator, sigma, 0), 0)  # compiles
            fresh = copy.copy(operator)  # nothing that was computed for it is kept
            walls, cpu = [], []
            again = estimators(fresh, sigma)[what]
            for trial in range(1 if what == "resolution" else DRAWS):
                y = readings(fresh, sigma, trial)
                begin, used = time.perf_counter(), time.process_time()
                again(y, trial)
                walls.append(time.perf_counter() - begin)
                cpu.append(time.process_time() - used)
            rest = f"{np.median(walls[1:]):.3f}" if walls[1:] else "-"
            print(
                f"| {name} | {what} | {walls[0]:.3f} | {rest} | {max(walls):.3f} | {np.median(cpu):.3f} |",
                flush=True,
            )
    for name, ask in others().items():
        walls, cpu = [], []
        for _ in range(DRAWS):
            begin, used = time.perf_counter(), time.process_time()
            ask()
            walls.append(time.perf_counter() - begin)
            cpu.append(time.process_time() - used)
        rest = f"{np.median(walls[1:]):.3f} | {max(walls):.3f} | {np.median(cpu):.3f}"
        print(f"| {name} | {walls[0]:.3f} | {rest} |", flush=True)
    print()


if __name__ == "__main__":
    main()
