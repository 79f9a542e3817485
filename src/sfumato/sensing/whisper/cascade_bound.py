"""How far apart all answers tell two starts of a cascade at most: three bounds, the least counts.

Proof: docs/proofs/whisper-starts.md
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.whisper.cascades import (
    Cascade,
    IndependentCascade,
    LinearThreshold,
    SusceptibleInfected,
)
from sfumato.spaces import Graph

if TYPE_CHECKING:
    from scipy import sparse

STEPS = 1000  # of a whisper in rounds, beyond which sizes are not bounded
ITERATIONS = 300
MARGIN = 1e-3  # by which epsilon is raised to bound sizes from above
ROUNDING = 1e-11  # far more than that of any sum here


class CascadeBound:
    """The least of what is proved for cascades: by nodes that differ, by sizes, and along paths."""

    exact = False
    reason = (
        "the least of three proved bounds: epsilon for every node whose answer may differ; how far a "
        "cascade goes, bounded by branching; and what each edge of a path between both costs"
    )

    def __init__(self, graph: Graph, spread: Cascade) -> None:
        from scipy.sparse import csgraph

        self._links, self._spread, self._size = graph.adjacency(), spread, graph.size
        self._degrees: FloatArray = np.asarray(self._links.sum(axis=1))
        self._at = -1.0
        self._near = np.empty(0, dtype=np.float32)
        if isinstance(spread, SusceptibleInfected) and spread.steps < graph.size:
            far = csgraph.dijkstra(self._links, unweighted=True, limit=spread.steps)
            self._near = (far <= spread.steps).astype(np.float32)

    def between(self, epsilon: float, nodes: IntArray, others: IntArray) -> FloatArray:
        """The bounds of some nodes against others, a row for each of the first."""
        if epsilon != self._at:
            self._at = epsilon
            self._most, self._least = branching(self._links, self._spread, epsilon)
            if not np.isfinite(self._most).all():
                # Past the largest epsilon with a bound, ln E e**(epsilon c) grows by n at most.
                at, most = self._settled
                self._most = most + (epsilon - at) * self._size
            self._edges = self._priced(epsilon)
        by_size = np.maximum(
            self._most[nodes, np.newaxis] - self._least[others],
            self._most[others] - self._least[nodes, np.newaxis],
        )
        loss = np.minimum(by_size, epsilon * self._differ(nodes, others))
        edges = self._edges
        if edges is not None and edges.data.min() < loss.max():
            from scipy.sparse import csgraph

            paths = csgraph.dijkstra(edges, indices=nodes, limit=float(loss.max()))
            loss = np.minimum(loss, paths[:, others])
        return np.asarray(loss * (1 + ROUNDING))

    @cached_property
    def _settled(self) -> tuple[float, FloatArray]:
        """About the largest epsilon at which sizes are bounded from above, and the bounds."""
        at, most = 0.0, np.zeros(self._size)
        low, high = math.log(1e-6), math.log(30)
        for _ in range(20):
            middle = (low + high) / 2
            found = branching(self._links, self._spread, math.exp(middle))[0]
            if np.isfinite(found).all():
                low, at, most = middle, math.exp(middle), found
            else:
                high = middle
        return at, most

    def _differ(self, nodes: IntArray, others: IntArray) -> FloatArray:
        """How many answers may differ: those that either start can reach."""
        if not self._near.size:
            return np.full((nodes.size, others.size), float(self._size))
        one, other = self._near[nodes], self._near[others]
        either = one.sum(axis=1)[:, np.newaxis] + other.sum(axis=1) - one @ other.T
        return np.asarray(either, dtype=np.float64)

    def _priced(self, epsilon: float) -> sparse.csr_array[np.float64] | None:
        """For each edge, the dearer way: a bound on ln P(a | s) / P(a | t); None if none is known."""
        from scipy import sparse

        links = self._links.tocoo()
        s, t = links.row, links.col
        match self._spread:
            case SusceptibleInfected():
                return None
            case IndependentCascade(chance):
                # t hears it from s, and whoever else t tells costs epsilon each at most.
                tells = np.log1p(chance * np.expm1(self._least))
                others = (self._links @ tells)[t] - tells[s]
                costs = np.logaddexp(0.0, epsilon + math.log1p(-chance) - math.log(chance) - others)
            case LinearThreshold(weight):
                # s listens to t, and whoever else listens to t costs epsilon each at most.
                tells = np.log1p(listens(self._degrees, weight) * np.expm1(self._least))
                others = (self._links @ tells)[t] - tells[s]
                costs = epsilon - np.log(weight / self._degrees[s]) - others
        one = sparse.csr_array((costs, (s, t)), shape=links.shape)
        return one.maximum(one.T).tocsr()


def branching(
    links: sparse.csr_array[np.float64], spread: Cascade, epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """For each start a bound from above on ln E e**(epsilon c), and from below on ln E e**(-epsilon c).

    c is how many have heard. A branching process in which whoever hears it may be heard of again is
    larger. From above infinite where no bound was found. Proof: docs/proofs/whisper-starts.md
    """
    size = links.shape[0]
    if isinstance(spread, SusceptibleInfected):
        found = []
        for sign in (1, -1):
            value = np.full(size, sign * epsilon)
            for _ in range(min(spread.steps, STEPS)):
                with np.errstate(over="ignore", invalid="ignore"):
                    value = value + links @ np.log1p(spread.chance * np.expm1(value))
            # An overflow is no bound; and sums of more steps than that are not taken.
            bounded = np.isfinite(value) & (spread.steps <= STEPS)
            found.append(np.where(bounded, value, sign * math.inf))
        return found[0], np.maximum(found[1], -epsilon * size)
    if isinstance(spread, IndependentCascade):
        chances = np.full(size, spread.chance)
    else:
        chances = listens(np.asarray(links.sum(axis=1)), spread.weight)

    def step(value: FloatArray, cost: float) -> FloatArray:
        return np.asarray(cost + links @ np.log1p(chances * np.expm1(value)))

    # What no step lowers is below the truth, and what no step raises is above it, whether or not it
    # has settled: steps of a slightly larger epsilon find such, and that is checked.
    least = np.full(size, -math.inf)
    for _ in range(ITERATIONS):
        least = step(least, -epsilon * (1 + MARGIN))
    if not (step(least, -epsilon) >= least + ROUNDING).all():
        least = np.full(size, -math.inf)
    least = np.maximum(least, -epsilon * size)
    most = np.zeros(size)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(ITERATIONS):
            most = step(most, epsilon * (1 + MARGIN))
            if not (most < 50).all():
                break
        proved = bool((step(most, epsilon) <= most - ROUNDING).all())
    return (most if proved else np.full(size, math.inf)), least


def listens(degrees: FloatArray, weight: float) -> FloatArray:
    """The chance that a node listens to a neighbor, given that it listens to none of all others."""
    return np.asarray(weight / (degrees * (1 - weight) + weight))
