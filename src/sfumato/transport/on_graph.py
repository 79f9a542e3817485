"""Earth mover's distance on a graph with its shortest-path metric: flow on the graph itself."""

from __future__ import annotations

import math

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.spaces import Graph
from sfumato.transport.masses import FloatArray, IntArray, dot, to_units, weight
from sfumato.transport.result import SolverFailed, Transport


def emd_graph(z: FloatArray, graph: Graph, *, flow: bool, diameter: float | None = None) -> Transport:
    """Integer flow for integer lengths; lengths that are no integers are rounded to a lattice of their own.

    With every length within a share s of the one used, the cost of the flow is within s of its value, and so
    is what the potentials prove.
    """
    _check_components(z, graph)
    excess = to_units(z, balanced=True)
    _balance_components(excess.units, graph)
    lengths, exponent, share = _whole_lengths(graph)
    steps, moved = _solved(excess.units, graph, lengths)
    value = math.ldexp(excess.mass(steps), -exponent)
    # Misplaced mass travels at most twice as far as the farthest node of its part is from one node of it.
    longest = 2 * _farthest(graph) if diameter is None else diameter
    slack = excess.misplaced * longest + share * value
    scaled = np.ldexp(moved.astype(np.float64), -excess.exponent) if flow else None
    return Transport(value, max(0.0, value - slack), value + slack, scaled)


def _farthest(graph: Graph) -> float:
    """The distance of the farthest node from the first of its part, the largest over all parts."""
    _, firsts = np.unique(graph.components(), return_index=True)
    return float(graph.distances_from_any(firsts).max())


def _check_components(z: FloatArray, graph: Graph) -> None:
    labels = graph.components()
    masses = np.bincount(labels, weights=z)
    allowed = (z.size + 15) * 2**-52 * np.bincount(labels, weights=np.abs(z))
    wrong = np.flatnonzero(np.abs(masses) > allowed)
    if wrong.size:
        raise InvalidInput(
            f"no path joins the {labels.max() + 1} parts of the graph, so each must hold equal masses; part "
            f"{wrong[0]} has {masses[wrong[0]]:+g} more on one side; no distance was computed"
        )


def _balance_components(units: IntArray, graph: Graph) -> None:
    """Rounding may leave a unit or a few in a part; they go to its largest entry."""
    labels = graph.components()
    if not labels.any():
        return
    for label in range(int(labels.max()) + 1):
        inside = np.flatnonzero(labels == label)
        rest = int(units[inside].sum())
        if rest:
            units[inside[np.argmax(np.abs(units[inside]))]] -= rest


def _whole_lengths(graph: Graph) -> tuple[IntArray, int, float]:
    """Lengths as integers times 2**-exponent, and the largest relative error: 0 for integers."""
    total = float(graph.lengths.sum())
    if total < 2**50 and np.array_equal(graph.lengths, np.rint(graph.lengths)):
        return graph.lengths.astype(np.int64), 0, 0.0
    exponent = 60 - math.frexp(total)[1]  # a path is at most the sum of all lengths: below 2**60
    whole = np.maximum(1, np.rint(np.ldexp(graph.lengths, exponent))).astype(np.int64)
    error = np.abs(whole / np.ldexp(graph.lengths, exponent) - 1)
    return whole, exponent, float(error.max()) * (1 + 2**-40) + 2**-52


def _solved(units: IntArray, graph: Graph, lengths: IntArray) -> tuple[int, IntArray]:
    from sfumato.transport.graph_kernel import solve

    low, high = graph.edges.T
    tails, heads = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.argsort(tails, kind="stable")
    edge = np.concatenate([np.arange(len(low))] * 2)[order]
    sign = np.repeat(np.array([1, -1]), len(low))[order]
    first = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=graph.size))])
    potential, moved = solve(first, heads[order], edge, sign, lengths, units)
    steps, gain = weight(moved, lengths), dot(potential, units)
    rest = units.copy()
    np.subtract.at(rest, low, moved)
    np.add.at(rest, high, moved)
    lipschitz = bool((np.abs(potential[low] - potential[high]) <= lengths).all())
    if rest.any() or not lipschitz or steps != gain:
        raise SolverFailed(f"flow costs {steps}, potentials prove {gain}; no distance was computed")
    return steps, moved
