"""Slower and foreign solvers that referee ours, in exact integers."""

from __future__ import annotations

import numpy as np
from ortools.graph.python import min_cost_flow


def grid_edges(side: int) -> tuple[np.ndarray, np.ndarray]:
    cells = np.arange(side * side).reshape(side, side)
    a = np.concatenate([cells[:, :-1].ravel(), cells[:-1].ravel()])
    b = np.concatenate([cells[:, 1:].ravel(), cells[1:].ravel()])
    return a, b


def cheapest_flow(a: np.ndarray, b: np.ndarray, cost: np.ndarray, supply: np.ndarray) -> int:
    """The least cost of shipping supply over edges that go both ways, by ortools' cost scaling."""
    solver = min_cost_flow.SimpleMinCostFlow()
    tails, heads = np.concatenate([a, b]), np.concatenate([b, a])
    room = np.full(tails.size, int(supply[supply > 0].sum()), dtype=np.int64)
    solver.add_arcs_with_capacity_and_unit_cost(
        tails, heads, room, np.concatenate([cost, cost]).astype(np.int64)
    )
    solver.set_nodes_supplies(np.arange(supply.size), supply.astype(np.int64))
    assert solver.solve() == solver.OPTIMAL
    return int(solver.optimal_cost())


def grid_steps(z: np.ndarray) -> int:
    """Unit steps an integer excess on a grid must take at least."""
    if not z.any():
        return 0
    a, b = grid_edges(z.shape[0])
    return cheapest_flow(a, b, np.ones(a.size), z.ravel())


def norm_steps(w: np.ndarray, penalty: int) -> int:
    """The EMD norm by its definition, in steps: every cell may leave or take a unit for `penalty` steps."""
    side = w.shape[0]
    a, b = grid_edges(side)
    cells = np.arange(side * side)
    ends = np.concatenate([a, np.full(cells.size, side * side)]), np.concatenate([b, cells])
    cost = np.concatenate([np.ones(a.size), np.full(cells.size, penalty)])
    return cheapest_flow(*ends, cost, np.append(w.ravel(), -w.sum()))
