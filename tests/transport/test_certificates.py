"""Bounds that hold for the numbers as given: against the same distance in fractions, where it is a plain sum.

On a path, and on a grid with one row filled, the distance is the sum of |excess to the left| times
length; in fractions that is exact, also after exact normalisation. Near-equal masses are where
rounding shows.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sfumato.errors import InvalidInput, InvalidParameter, SolverFailed
from sfumato.spaces import Graph, Grid, Line
from sfumato.transport import (
    Transport,
    emd,
    emd_euclidean,
    emd_norm,
    normalized_error,
    tree_bound,
)

Solve = Callable[[np.ndarray, np.ndarray], Transport]

NEARNESS = [0.0, 1e-15, 1e-12, 1e-8, 1e-3, 1.0]


def exactly(p: np.ndarray, q: np.ndarray, lengths: np.ndarray) -> Fraction:
    a, b = [Fraction(x) for x in p.tolist()], [Fraction(x) for x in q.tolist()]
    whole_a, whole_b = sum(a, Fraction(0)), sum(b, Fraction(0))
    excess, cost = Fraction(0), Fraction(0)
    for i, length in enumerate(lengths.tolist()):
        excess += a[i] / whole_a - b[i] / whole_b
        cost += abs(excess) * Fraction(length)
    return cost


def holds(solve: Solve, lengths: np.ndarray, rng: np.random.Generator, *, times: int) -> None:
    n = lengths.size + 1
    diameter = float(lengths.sum())
    for near in NEARNESS:
        for _ in range(times):
            p = rng.random(n) * (rng.random(n) < 0.8) + 1e-3
            q = rng.uniform(0.1, 10) * p * (1 + near * rng.standard_normal(n) / 3).clip(1e-3)
            found, true = solve(p, q), exactly(p, q, lengths)
            assert Fraction(found.lower) <= true <= Fraction(found.upper), (
                near,
                p.tolist(),
                q.tolist(),
            )
            assert found.lower <= found.value <= found.upper
            assert found.upper - found.lower <= 1e-12 * diameter


@pytest.mark.reference
def test_normalised_masses_on_a_line(rng: np.random.Generator) -> None:
    line = Line.at(np.cumsum(rng.uniform(0.1, 3, 70)))
    # Gaps in fractions, since the metric is that of the positions.
    gaps = np.array(
        [float(Fraction(b) - Fraction(a)) for a, b in pairwise(line.positions.tolist())]
    )
    for near in NEARNESS:
        for _ in range(30):
            p = rng.random(70)
            q = p * (1 + near * rng.standard_normal(70) / 3).clip(1e-3) * 1.7
            found = emd(p, q, line, normalize=True)
            true = exactly(p, q, gaps)
            assert Fraction(found.lower) <= true <= Fraction(found.upper)


@pytest.mark.reference
def test_normalised_masses_in_one_row_of_a_grid(rng: np.random.Generator) -> None:
    grid = Grid(3)

    def solve(p: np.ndarray, q: np.ndarray) -> Transport:
        a, b = np.zeros((8, 8)), np.zeros((8, 8))
        a[0], b[0] = p, q
        return emd(a, b, grid, normalize=True)

    holds(solve, np.full(7, 1 / 8), rng, times=60)


@pytest.mark.reference
def test_normalised_masses_in_one_row_of_an_oblong_grid(rng: np.random.Generator) -> None:
    grid = Grid(3, bounds=(0, 0, 8, 7.3))

    def solve(p: np.ndarray, q: np.ndarray) -> Transport:
        a, b = np.zeros((8, 8)), np.zeros((8, 8))
        a[0], b[0] = p, q
        return emd(a, b, grid, normalize=True)

    holds(solve, np.ones(7), rng, times=40)


@pytest.mark.reference
@pytest.mark.parametrize("kind", ["whole", "real"])
def test_normalised_masses_on_a_path(kind: str, rng: np.random.Generator) -> None:
    lengths = rng.integers(1, 9, 11).astype(float) if kind == "whole" else rng.uniform(0.3, 3, 11)
    path = Graph([(i, i + 1) for i in range(11)], lengths)
    holds(lambda p, q: emd(p, q, path, normalize=True), lengths, rng, times=60)


@pytest.mark.reference
def test_lengths_of_very_different_size_keep_their_bounds() -> None:
    """20,000 edges far below the lattice of lengths: the bounds are wide, and true."""
    tiny = 1.49 * 2.0**-60
    lengths = np.append(np.full(2000, tiny), 0.9)
    path = Graph([(i, i + 1) for i in range(2001)], lengths)
    p, q = np.zeros(2002), np.zeros(2002)
    p[0] = q[2000] = 1
    found = emd(p, q, path)
    assert Fraction(found.lower) <= 2000 * Fraction(tiny) <= Fraction(found.upper)


@pytest.mark.reference
def test_norms_of_nearly_balanced_mass(rng: np.random.Generator) -> None:
    """Two cells apart: w = (a, -b) costs penalty |a - b| + min(a, b) times their distance."""
    grid = Grid(1)
    for _ in range(500):
        a = float(rng.uniform(0.5, 2))
        b = a * (1 + float(rng.choice([1e-15, 1e-12, 1e-6, 0.3])) * float(rng.standard_normal()))
        penalty = float(rng.uniform(1, 3))
        found = emd_norm(np.array([[a, -b], [0, 0]]), grid, penalty=penalty)
        x, y = Fraction(a), Fraction(b)
        true = Fraction(penalty) * abs(x - y) + min(x, y) / 2
        assert Fraction(found.lower) <= true <= Fraction(found.upper)


@pytest.mark.reference
def test_near_equal_masses_at_points(rng: np.random.Generator) -> None:
    points = np.cumsum(rng.uniform(0.1, 2, 12))
    lengths = np.array([float(Fraction(b) - Fraction(a)) for a, b in pairwise(points.tolist())])
    for near in NEARNESS:
        for _ in range(20):
            p = rng.random(12)
            q = p * (1 + near * rng.standard_normal(12) / 3).clip(1e-3)
            found = emd_euclidean(p, q, points, normalize=True)
            assert Fraction(found.lower) <= exactly(p, q, lengths) <= Fraction(found.upper)


@pytest.mark.unit
def test_points_of_any_size() -> None:
    for size in (1e-200, 1.0, 1e200):
        found = emd_euclidean([1, 0], [0, 1], [0.0, size], flow=True)
        assert found.lower <= size <= found.upper
        assert found.value == pytest.approx(size)


@pytest.mark.unit
@pytest.mark.parametrize("mass", [1e308, 1e-310, 5e-324])
def test_masses_beyond_reach_are_refused(mass: float) -> None:
    spaces: list[Line | Grid | Graph] = [Line(4), Grid(1), Graph([(0, 1), (1, 2), (2, 3)])]
    for space in spaces:
        with pytest.raises(InvalidInput, match="a mass must lie between"):
            emd([mass, 0, 0, 0], [0, 0, 0, mass], space)
    with pytest.raises(InvalidInput, match="a mass must lie between"):
        emd_norm(np.array([[mass, 0], [0, 0]]), Grid(1))


@pytest.mark.unit
def test_odd_parameters_are_refused() -> None:
    with pytest.raises(InvalidInput, match="lengths must lie between"):
        emd([1, 0, 0], [0, 0, 1], Graph([(0, 1), (1, 2)], [1e-300, 1e200]))
    with pytest.raises(InvalidInput, match="must not be masked"):
        emd(np.ma.array([1, 0], mask=[False, True]), [0, 1], Line(2))
    with pytest.raises(InvalidInput, match="rows of one length"):
        emd([[1, 0], [1]], [[1, 0], [0, 1]], Grid(1))
    with pytest.raises(InvalidInput, match="finite rows of coordinates"):
        emd_euclidean([], [], np.zeros((0, 2)))
    with pytest.raises(InvalidInput, match="rows of numbers"):
        emd_euclidean([1, 0], [0, 1], ["a", "b"])
    for penalty in (np.inf, np.nan, 0.1):
        with pytest.raises(InvalidParameter, match="penalty must be finite"):
            emd_norm(np.zeros((2, 2)), Grid(1), penalty=penalty)
        with pytest.raises(InvalidParameter, match="penalty must be finite"):
            tree_bound(np.zeros((2, 2)), Grid(1), penalty=penalty)
    with pytest.raises(InvalidParameter, match="mass must be above 0"):
        normalized_error(0, 0)


@pytest.mark.unit
def test_a_wrong_graph_solution_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.transport import graph_kernel

    true = graph_kernel.solve
    path = Graph([(0, 1), (1, 2)])
    changes: list[Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = [
        lambda u, f: (2 * u, f),
        lambda u, f: (u, f + 1),
        lambda u, f: (-u, f),
        lambda u, f: (u, -f),
    ]
    for change in changes:
        monkeypatch.setattr(
            graph_kernel, "solve", lambda *given, change=change: change(*true(*given))
        )
        with pytest.raises(SolverFailed):
            emd([1, 0, 0], [0, 0, 1], path)


@pytest.mark.unit
def test_a_wrong_plan_or_potential_of_pot_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    import ot

    true = ot.emd
    changes: list[
        Callable[[np.ndarray, dict[str, np.ndarray]], tuple[np.ndarray, dict[str, np.ndarray]]]
    ] = [
        lambda plan, log: (plan, {"u": log["u"] / 2, "v": log["v"] / 2}),
        lambda plan, log: (plan[::-1], log),
        lambda plan, log: (0.9 * plan, log),
    ]
    for change in changes:
        monkeypatch.setattr(
            ot, "emd", lambda *given, change=change, **named: change(*true(*given, **named))
        )
        with pytest.raises(SolverFailed):
            emd_euclidean([1, 1, 0, 0], [0, 0, 1, 1], [0.0, 10.0, 5.0, 15.0])


@pytest.mark.unit
@pytest.mark.parametrize(("width", "height"), [(3.1, 1.0), (1.0, 2.7), (5, 4), (1e-9, 1e3)])
def test_oblong_cells_cost_what_their_sides_do_as_a_graph(
    width: float, height: float, rng: np.random.Generator
) -> None:
    # The grid starts from potentials of wider cells, the graph from none: both are best.
    side = 16
    p, q = (rng.gamma(0.2, 1.0, (side, side)) for _ in range(2))
    cells = np.arange(side * side).reshape(side, side)
    east = np.column_stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()])
    north = np.column_stack([cells[:-1].ravel(), cells[1:].ravel()])
    lengths = np.repeat([width, height], [len(east), len(north)])
    sides = Graph(np.concatenate([east, north]), lengths, nodes=side * side)
    grid = Grid(4, bounds=(0, 0, side * width, side * height))
    on_grid = emd(p, q, grid, normalize=True).value
    assert on_grid == pytest.approx(
        emd(p.ravel(), q.ravel(), sides, normalize=True).value, rel=1e-9
    )
