"""Earth mover's distance on a graph with its shortest-path metric: flow on the graph itself."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfumato._types import IntArray
from sfumato.errors import InvalidInput, SolverFailed
from sfumato.spaces import Graph
from sfumato.transport.masses import LARGEST, SMALLEST, Difference, dot, to_units, weight
from sfumato.transport.results import Transport

Start = Callable[[IntArray, IntArray], IntArray]


def emd_graph(
    z: Difference,
    graph: Graph,
    *,
    flow: bool,
    diameter: float | None = None,
    start: Start | None = None,
) -> Transport:
    """Integer flow for integer lengths; lengths that are no integers are rounded to a lattice of their own.

    The flow is a flow whatever the lengths, so its cost at the true lengths bounds from above.
    Potentials that are Lipschitz for lengths at most a share s too long prove 1 / (1 + s) of what
    they would. `start` makes potentials to start from of integer masses and lengths; a `diameter` is
    that of a graph of one part.
    """
    one_part = diameter is not None
    labels = np.zeros(graph.size, np.int64) if one_part else graph.components()
    _check_components(z, labels)
    excess = to_units(z.excess, z.slip, parts=_parts(labels))
    lengths, exponent, share = _whole_lengths(graph)
    first = None if start is None else start(excess.units, lengths)
    steps, moved = _solved(excess.units, graph, lengths, first)
    proved = math.ldexp(excess.mass(steps), -exponent) / (1 + share)
    masses = np.ldexp(np.abs(moved).astype(np.float64), -excess.exponent)
    value = math.fsum((masses * graph.lengths).tolist())
    # Misplaced mass travels at most twice as far as the farthest node of its part is from one node
    # of it.
    longest = 2 * _farthest(graph) if diameter is None else diameter
    slack = excess.misplaced * longest + 2**-50 * value
    scaled = np.ldexp(moved.astype(np.float64), -excess.exponent) if flow else None
    return Transport(value, max(0.0, min(value, proved) - slack), value + slack, scaled)


def _farthest(graph: Graph) -> float:
    """The distance of the farthest node from the first of its part, the largest over all parts."""
    _, firsts = np.unique(graph.components(), return_index=True)
    return float(graph.distances_from_any(firsts).max())


def _parts(labels: IntArray) -> list[npt.NDArray[np.intp]]:
    """The nodes of each part: one sort, however many parts there are."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def _check_components(z: Difference, labels: IntArray) -> None:
    parts = int(labels.max()) + 1
    if parts == 1:
        return  # equal masses were checked already
    rest = np.bincount(labels, weights=z.excess)
    allowed = (labels.size + 15) * 2**-52 * np.bincount(labels, weights=z.whole) + z.slip
    wrong = np.flatnonzero(np.abs(rest) > allowed)
    if wrong.size:
        raise InvalidInput(
            f"no path joins the {parts} parts of the graph, so each must hold equal masses; part "
            f"{wrong[0]} has {rest[wrong[0]]:+g} more on one side; no distance was computed"
        )


def _whole_lengths(graph: Graph) -> tuple[IntArray, int, float]:
    """Lengths as integers times 2**-exponent, and by which share one is too long at most: 0 for integers."""
    if not graph.lengths.size:
        return np.zeros(0, np.int64), 0, 0.0
    total, least = float(graph.lengths.sum()), float(graph.lengths.min())
    if not SMALLEST < least <= total < LARGEST:
        raise InvalidInput(
            f"lengths must lie between 2**-300 and 2**300, got {least:g} and up to {total:g}"
        )
    if total < 2**50 and np.array_equal(graph.lengths, np.rint(graph.lengths)):
        return graph.lengths.astype(np.int64), 0, 0.0
    exponent = 60 - math.frexp(total)[1]  # a path is at most the sum of all lengths: below 2**60
    scaled = np.ldexp(graph.lengths, exponent)
    whole = np.maximum(1, np.rint(scaled)).astype(np.int64)
    return whole, exponent, max(0.0, float((whole / scaled).max()) * (1 + 2**-50) - 1)


def arcs_of(edges: IntArray, size: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """A graph in rows, as `graph_kernel.solve` wants it: where rows begin, heads, edges and signs."""
    low, high = edges.T
    tails, heads = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.argsort(tails, kind="stable")
    edge = np.concatenate([np.arange(len(low))] * 2)[order]
    sign = np.repeat(np.array([1, -1]), len(low))[order]
    first = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=size))])
    return first, heads[order], edge, sign


def _solved(
    units: IntArray, graph: Graph, lengths: IntArray, start: IntArray | None
) -> tuple[int, IntArray]:
    from sfumato.transport.graph_kernel import solve

    low, high = graph.edges.T
    potential, moved = solve(*arcs_of(graph.edges, graph.size), lengths, units, start)
    steps, gain = weight(moved, lengths), dot(potential, units)
    rest = units.copy()
    np.subtract.at(rest, low, moved)
    np.add.at(rest, high, moved)
    lipschitz = bool((np.abs(potential[low] - potential[high]) <= lengths).all())
    if rest.any() or not lipschitz or steps != gain:
        raise SolverFailed(f"flow costs {steps}, potentials prove {gain}; no distance was computed")
    return steps, moved
