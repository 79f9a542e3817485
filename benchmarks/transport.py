"""Earth mover's distance: CPU time beside POT, ortools, networkx and scipy in one run, one thread.

Prints Markdown; `make bench` keeps it in docs/reference/benchmarks.md. A peer that would need more
than LIMIT seconds (by its time at half the side, times 16) is not run, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np

from sfumato.spaces import Graph, Grid, Line
from sfumato.transport import emd, emd_norm

LIMIT = 30.0
SIDES = (32, 64, 128)


def seconds(work: Callable[..., object], *given: object, least: float = 0.2) -> float:
    """CPU time of one call, repeated until the clock can tell."""
    work(*given)
    spent, count = 0.0, 0
    while spent < least:
        start = time.process_time()
        work(*given)
        spent += time.process_time() - start
        count += 1
    return spent / count


def once(work: Callable[..., object], *given: object) -> float:
    """CPU time of a single call: for peers that take long."""
    start = time.process_time()
    work(*given)
    return time.process_time() - start


def smooth(side: int, rng: np.random.Generator) -> np.ndarray:
    """A mixture of Gaussians over a floor: every cell differs."""
    y, x = np.mgrid[0:side, 0:side] / side
    out = np.full((side, side), 0.05)
    for _ in range(6):
        cx, cy, width = rng.random(), rng.random(), 0.05 + 0.15 * rng.random()
        out += rng.random() * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * width**2))
    return np.asarray(out / out.sum())


def noise(side: int, rng: np.random.Generator) -> np.ndarray:
    """White noise."""
    out = rng.random((side, side))
    return np.asarray(out / out.sum())


def shapes(side: int, rng: np.random.Generator) -> np.ndarray:
    """Three discs on nothing."""
    y, x = np.mgrid[0:side, 0:side] / side
    out = np.zeros((side, side))
    for _ in range(3):
        out[(x - rng.random()) ** 2 + (y - rng.random()) ** 2 < (0.1 + 0.2 * rng.random()) ** 2] = 1
    return np.asarray(out / out.sum())


def visits(side: int, rng: np.random.Generator) -> np.ndarray:
    """4,000 made-up visits around eight places."""
    places = rng.random((8, 2))[rng.integers(8, size=4000)]
    at = np.clip(places + 0.04 * rng.standard_normal((4000, 2)), 0, 0.999)
    out = np.zeros((side, side))
    np.add.at(out, ((at[:, 1] * side).astype(int), (at[:, 0] * side).astype(int)), 1)
    return np.asarray(out / out.sum())


def edges(side: int) -> tuple[np.ndarray, np.ndarray]:
    """The 4-neighbor arcs of a grid, one way."""
    cells = np.arange(side * side, dtype=np.int32).reshape(side, side)
    a = np.concatenate([cells[:, :-1].ravel(), cells[:-1].ravel()])
    b = np.concatenate([cells[:, 1:].ravel(), cells[1:].ravel()])
    return a, b


def whole(z: np.ndarray) -> np.ndarray:
    """Excess as integers of 2**40 in all, as the integer peers need it."""
    units = np.rint(np.ldexp(z / z[z > 0].sum(), 40)).astype(np.int64).ravel()
    units[np.argmax(np.abs(units))] -= units.sum()
    return np.asarray(units)


def by_ortools(p: np.ndarray, q: np.ndarray) -> float:
    """Cost scaling on the same arcs."""
    from ortools.graph.python import min_cost_flow

    a, b = edges(p.shape[0])
    units = whole(p - q)
    solver = min_cost_flow.SimpleMinCostFlow()
    tails, heads = np.concatenate([a, b]), np.concatenate([b, a])
    room = np.full(tails.size, int(units[units > 0].sum()), dtype=np.int64)
    solver.add_arcs_with_capacity_and_unit_cost(
        tails, heads, room, np.ones(tails.size, dtype=np.int64)
    )
    solver.set_nodes_supplies(np.arange(units.size, dtype=np.int32), units)
    if solver.solve() != solver.OPTIMAL:
        raise RuntimeError("ortools did not solve it")
    return float(solver.optimal_cost())


def by_networkx(p: np.ndarray, q: np.ndarray) -> float:
    """Network simplex in Python on the same arcs."""
    import networkx as nx

    a, b = edges(p.shape[0])
    graph = nx.DiGraph()
    graph.add_nodes_from((i, {"demand": -int(x)}) for i, x in enumerate(whole(p - q)))
    graph.add_weighted_edges_from((int(i), int(j), 1) for i, j in zip(a, b, strict=True))
    graph.add_weighted_edges_from((int(j), int(i), 1) for i, j in zip(a, b, strict=True))
    return float(nx.network_simplex(graph)[0])


def by_pot(p: np.ndarray, q: np.ndarray) -> float:
    """C++ network simplex on all pairs of cells that differ."""
    import ot

    y, x = np.mgrid[0 : p.shape[0], 0 : p.shape[0]]
    places = np.column_stack([x.ravel(), y.ravel()]).astype(float)
    z = (p - q).ravel()
    have, want = z > 0, z < 0
    a, b = z[have] / z[have].sum(), -z[want] / -z[want].sum()
    return float(
        ot.emd2(
            a, b, ot.dist(places[have], places[want], metric="cityblock"), numItermax=10_000_000
        )
    )


def grids(rng: np.random.Generator) -> None:
    """Every class and size against every peer that finishes."""
    print(
        "| masses | side | sfumato ms | ortools / us | POT / us | networkx / us | gap / (mass x diameter) |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, make in (
        ("smooth", smooth),
        ("noise", noise),
        ("shapes", shapes),
        ("visits", visits),
    ):
        before: dict[str, float] = {}
        for side in SIDES:
            p, q, grid = make(side, rng), make(side, rng), Grid(side.bit_length() - 1)
            found = emd(p, q, grid)
            ours = seconds(emd, p, q, grid)
            shown = [name, str(side), f"{1e3 * ours:.2f}"]
            for peer, solve in (
                ("ortools", by_ortools),
                ("POT", by_pot),
                ("networkx", by_networkx),
            ):
                if 16 * before.get(peer, 0.0) > LIMIT:
                    shown.append(f"not run (> {LIMIT:g} s)")
                    before[peer] = LIMIT
                    continue
                before[peer] = once(solve, p, q)
                shown.append(
                    f"{before[peer] / ours:.0f}x"
                    if before[peer] / ours >= 10
                    else f"{before[peer] / ours:.1f}x"
                )
            shown.append(f"{(found.upper - found.lower) / grid.diameter:.1e}")
            print("|", " | ".join(shown), "|", flush=True)


def wanted(rng: np.random.Generator) -> None:
    """The instance class with a number asked for, several times: they differ."""
    ratios = []
    for _ in range(6):
        p, q, grid = smooth(128, rng), smooth(128, rng), Grid(7)
        ours = seconds(emd, p, q, grid)
        ratios.append(once(by_ortools, p, q) / ours)
    mean = float(np.exp(np.mean(np.log(ratios))))
    print("| smooth, side 128, six instances | ortools / us | asked for |")
    print("|---|---|---|")
    met = "met" if mean >= 200 else "MISSED"
    between = f"{min(ratios):.0f}x to {max(ratios):.0f}x"
    print(f"| geometric mean | {mean:.0f}x ({between}) | 200x: {met} |")


def large(rng: np.random.Generator) -> None:
    """Larger grids alone."""
    print("| smooth, side | s |")
    print("|---|---|")
    for side in (256, 512):
        p, q, grid = smooth(side, rng), smooth(side, rng), Grid(side.bit_length() - 1)
        spent = seconds(emd, p, q, grid)
        print(f"| {side} | {spent:.3f} |", flush=True)


def norms(rng: np.random.Generator) -> None:
    """The EMD norm of 1.2 p - q beside the distance of p and q: two instances of each class."""
    print("| side | EMD norm / distance, geometric mean | worst | asked for |")
    print("|---|---|---|---|")
    for side in (64, 128, 256):
        ratios, grid = [], Grid(side.bit_length() - 1)
        for make in 2 * (smooth, noise, shapes, visits):
            p, q = make(side, rng), make(side, rng)
            distance = seconds(emd, p, q, grid, least=0.1)
            norm = seconds(emd_norm, 1.2 * p - q, grid, least=0.1)
            ratios.append(norm / distance)
        mean = float(np.exp(np.mean(np.log(ratios))))
        print(f"| {side} | {mean:.2f} | {max(ratios):.2f} | at most 2 |", flush=True)


def lines(rng: np.random.Generator) -> None:
    """A million cells on a line."""
    import ot
    from scipy.stats import wasserstein_distance

    n = 1_000_000
    line = Line(n)
    p, q = rng.random((2, n))
    p, q = p / p.sum(), q / q.sum()
    x = line.positions
    ours = seconds(emd, p, q, line)
    print("| line, n = 1e6 | ms | times ours | asked for |")
    print("|---|---|---|---|")
    print(f"| sfumato | {1e3 * ours:.2f} | 1 | |")
    peers = (
        ("scipy wasserstein_distance", lambda: wasserstein_distance(x, x, p, q), 40),
        ("POT emd2_1d", lambda: ot.emd2_1d(x, x, p, q, metric="euclidean"), 15),
        ("POT wasserstein_1d", lambda: ot.wasserstein_1d(x, x, p, q), 15),
    )
    for name, work, wanted in peers:
        theirs = seconds(work)
        met = "met" if theirs >= wanted * ours else "MISSED"
        print(f"| {name} | {1e3 * theirs:.1f} | {theirs / ours:.0f} | {wanted}x: {met} |")


def graphs(rng: np.random.Generator) -> None:
    """A ring with chords, beside networkx."""
    import networkx as nx

    print("| graph nodes | sfumato ms | networkx / us |")
    print("|---|---|---|")
    for n in (1000, 10_000):
        chords = {
            (min(a, b), max(a, b)) for a, b in rng.integers(n, size=(n, 2)).tolist() if a != b
        }
        ends = sorted(chords | {(i, i + 1) for i in range(n - 1)} | {(0, n - 1)})
        lengths = rng.integers(1, 100, len(ends))
        graph = Graph(ends, lengths, nodes=n)
        p, q = rng.integers(0, 100, (2, n))
        q[0] += max(0, int(p.sum() - q.sum()))
        p[0] += max(0, int(q.sum() - p.sum()))
        ours = once(emd, p, q, graph)
        shown = "not run"
        if n <= 1000:
            both = nx.DiGraph()
            both.add_nodes_from(
                (i, {"demand": int(b - a)}) for i, (a, b) in enumerate(zip(p, q, strict=True))
            )
            for (a, b), length in zip(ends, lengths.tolist(), strict=True):
                both.add_edge(a, b, weight=length)
                both.add_edge(b, a, weight=length)
            shown = f"{once(nx.network_simplex, both) / ours:.0f}x"
        print(f"| {n} | {1e3 * ours:.0f} | {shown} |", flush=True)


def main() -> None:
    """All tables; instances come from a seed nobody chose: the bytes of the name of this file."""
    rng = np.random.default_rng(list(b"benchmarks/transport.py"))
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("POT", "ortools", "networkx", "scipy", "numba")
    )
    print("\n## Transport\n")
    print(f"`benchmarks/transport.py`, one run, one thread, CPU time; {packages}.\n")
    for table in (grids, wanted, large, norms, lines, graphs):
        table(rng)
        print()


if __name__ == "__main__":
    main()
