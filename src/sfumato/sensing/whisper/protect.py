"""How much noise hides who began: the largest epsilon at which no two starts are told apart by more.

A Pufferfish guarantee: it holds as far as the model of the spread does [kifer14, def. 3.4].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.whisper.cascades import (
    BoolArray,
    Cascade,
    IndependentCascade,
    LinearThreshold,
    SusceptibleInfected,
)
from sfumato.sensing.whisper.posterior import HEAT
from sfumato.sensing.whisper.spread import Spread, unheard
from sfumato.spaces import Graph

if TYPE_CHECKING:
    from scipy import sparse

MOST_NODES = 5000
STEPS = 1000  # of a whisper in rounds, beyond which sizes are not bounded
ITERATIONS = 300
MARGIN = 1e-3  # by which epsilon is raised to bound sizes from above
ROUNDING = 1e-11  # far more than that of any sum here
LAST = 3700  # the place of epsilon 20 among numbers of three digits from 0.001 on
WIDE = 256  # starts that are looked at together
SPARSE = 0.1  # of pairs of a part are protected: fewer are looked at one start at a time
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class StartsProtection:
    """A per-node epsilon, and the proof that no two protected starts are told apart by more than `loss`.

    Attributes:
        epsilon: For each answer: the largest of three digits whose loss is at most the target.
        target: The loss that was asked for.
        loss: A bound, over all pairs and all answers, on the logarithm of how much the odds between
            two starts can change.
        pairs: How many pairs of starts it was computed for: all protected ones.
        worst: The pair with that bound.
        next_epsilon: The next larger epsilon of three digits; None at the largest that is looked at.
        next_loss: The bound there, of some pair: more than the target.
        exact: Whether some answers attain the bound, but for rounding; else the true loss may be less.
        reason: What the bound rests on.
    """

    epsilon: Fraction
    target: float
    loss: float
    pairs: int
    worst: tuple[int, int]
    next_epsilon: Fraction | None
    next_loss: float | None
    exact: bool
    reason: str


def protect_starts(
    graph: Graph,
    *,
    spread: Spread | Cascade,
    target: float,
    within: int | None = None,
    labels: npt.ArrayLike | None = None,
) -> StartsProtection:
    """The largest epsilon for each node's answer at which all answers together hide who began.

    Any two protected starts: for all answers a, P(a | one) <= e**target P(a | other), proved for
    every pair. For `Spread` nodes are independent given the start; the loss is a sum over nodes and
    is attained. For cascades it is the least of three bounds: epsilon for each node whose bit can
    differ; how far cascades from both go, where they stay small; and the sum of what each edge of a
    path between both costs, which does not grow with how far they go (not for
    `SusceptibleInfected`). Proofs: docs/proofs/whisper-starts.md.

    Args:
        graph: A connected graph of at most 5,000 nodes.
        spread: How a whisper spreads: the guarantee holds if this does.
        target: The loss allowed, more than 0.
        within: Two starts are protected from each other if at most so many hops apart; None for any.
        labels: The community of each node: two starts of one are protected from each other.

    Returns:
        The epsilon with its certificate.

    Raises:
        InvalidParameter: If a parameter is out of range, no two starts are protected, or no epsilon of
            at least 0.001 can be proved to do.

    Privacy: Pufferfish, loss `target` between protected starts. Proof: docs/proofs/whisper-starts.md

    >>> path = Graph([(0, 1), (1, 2), (2, 3)])
    >>> found = protect_starts(path, spread=Spread(0.5, 2), target=1, within=1)
    >>> found.epsilon, found.loss <= 1 < found.next_loss, found.pairs
    (Fraction(71, 100), True, 3)
    """
    if not 0 < target < math.inf:
        raise InvalidParameter(
            f"`target` must be a finite loss above 0, got {target}; nothing was computed"
        )
    if graph.size > MOST_NODES:
        raise InvalidParameter(
            f"all pairs are looked at on graphs of at most {MOST_NODES} nodes, got {graph.size}; "
            "nothing was computed"
        )
    if graph.components().any():
        raise InvalidParameter(
            "a whisper needs a connected graph, got one in several parts; nothing was computed"
        )
    pairs = _Pairs(graph, within, labels)
    if not pairs.count:
        raise InvalidParameter(
            "no two starts are protected from each other: a larger radius or community is needed; "
            "nothing was computed"
        )
    match spread:
        case Spread():
            return _largest(_Independent(graph, spread), pairs, target)
        case _:
            return _largest(_Cascade(graph, spread), pairs, target)


class _Pairs:
    """Which starts are protected from which: rows of a table, never held whole."""

    def __init__(self, graph: Graph, within: int | None, labels: npt.ArrayLike | None) -> None:
        self.size = graph.size
        self.within = None if within is None else whole("within", within, low=1)
        self.labels = None if labels is None else np.asarray(labels)
        if self.labels is not None and self.labels.shape != (graph.size,):
            raise InvalidParameter(
                f"labels must be one for each of {graph.size} nodes, got shape {self.labels.shape}; "
                "nothing was computed"
            )
        self._links = graph.adjacency()
        self.count = sum(int(self.rows(some).sum()) for some in self.parts())

    def parts(self) -> list[IntArray]:
        return [
            np.arange(at, min(at + WIDE, self.size)) for at in range(0, self.size, WIDE)
        ]

    def rows(self, nodes: IntArray) -> BoolArray:
        """For some nodes, which later ones are protected from them."""
        from scipy.sparse import csgraph

        out = np.arange(self.size) > nodes[:, np.newaxis]
        if self.within is not None:
            far = csgraph.dijkstra(
                self._links, indices=nodes, unweighted=True, limit=self.within
            )
            out &= far <= self.within
        if self.labels is not None:
            out &= self.labels[nodes, np.newaxis] == self.labels
        return np.asarray(out)


class _Bound(Protocol):
    """A proved bound on the loss between two starts, which grows with epsilon."""

    exact: bool
    reason: str

    def between(self, epsilon: float, nodes: IntArray, others: IntArray) -> FloatArray:
        """The bounds of some nodes against others, a row for each of the first."""


class _Independent:
    """Nodes independent given the start: a sum over nodes, which some answers attain.

    With A = ln(1 + (e**epsilon - 1) h), B the same of 1 - h, the answers that speak most for s against
    t add up to the positive parts of A_s - A_t and of B_s - B_t; a positive part is half of a number
    and its absolute value.
    """

    exact = True
    reason = "nodes are independent given the start: a sum over nodes, which some answers attain"

    def __init__(self, graph: Graph, spread: Spread) -> None:
        heat = np.maximum(graph_diffusion(graph, spread.rate).columns(np.arange(graph.size)).T, 0)
        self._heard, self._not = -np.expm1(-spread.strength * heat), unheard(heat, spread.strength)
        np.fill_diagonal(self._heard, 1.0)
        np.fill_diagonal(self._not, 0.0)
        self._wrong = spread.strength * HEAT
        self._at, self._all = -1.0, np.empty(0)

    def between(self, epsilon: float, nodes: IntArray, others: IntArray) -> FloatArray:
        from scipy.spatial.distance import cdist

        odds, size = math.expm1(epsilon) * (1 + 4 * EPS), len(self._heard)
        if others.size < size / 4:
            one, other = (self._logs(odds, some) for some in (nodes, others))
        else:
            if epsilon != self._at:
                self._at, self._all = epsilon, self._logs(odds, np.arange(size))
            one, other = self._all[nodes], self._all[others]
        sums = one.sum(axis=1)[:, np.newaxis] - other.sum(axis=1)
        loss = (cdist(one, other, "cityblock") + np.abs(sums)) / 2
        # What heat and rounding may hide, in each of 2 n logarithms, of two starts.
        hidden = min(odds * (self._wrong + 4 * EPS), epsilon) + 4 * size * EPS * epsilon
        return np.asarray(loss + 2 * size * hidden)

    def _logs(self, odds: float, nodes: IntArray) -> FloatArray:
        return np.log1p(odds * np.hstack([self._heard[nodes], self._not[nodes]]))


class _Cascade:
    """The least of what is proved for cascades: by nodes that differ, by sizes, and along paths."""

    exact = False
    reason = (
        "the least of three proved bounds: epsilon for every node whose answer may differ; how far a "
        "cascade goes, bounded by branching; and what each edge of a path between both costs"
    )

    def __init__(self, graph: Graph, spread: Cascade) -> None:
        from scipy.sparse import csgraph

        self._links, self._spread, self._size = graph.adjacency(), spread, graph.size
        self._degrees = np.asarray(self._links.sum(axis=1))
        self._at = -1.0
        self._near = np.empty(0, dtype=np.float32)
        if isinstance(spread, SusceptibleInfected) and spread.steps < graph.size:
            far = csgraph.dijkstra(self._links, unweighted=True, limit=spread.steps)
            self._near = (far <= spread.steps).astype(np.float32)

    def between(self, epsilon: float, nodes: IntArray, others: IntArray) -> FloatArray:
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
                tells = np.log1p(_listens(self._degrees, weight) * np.expm1(self._least))
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
        chances = _listens(np.asarray(links.sum(axis=1)), spread.weight)

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


def _listens(degrees: FloatArray, weight: float) -> FloatArray:
    """The chance that a node listens to a neighbor, given that it listens to none of all others."""
    return np.asarray(weight / (degrees * (1 - weight) + weight))


def _largest(bound: _Bound, pairs: _Pairs, target: float) -> StartsProtection:
    """Pairs that were once the worst decide epsilon; then all pairs are looked at, until none is worse."""
    known: list[tuple[int, int]] = [_worst(bound, pairs, float(_of(LAST)))[1]]

    def most(epsilon: Fraction) -> tuple[float, tuple[int, int]]:
        return max(
            (float(bound.between(float(epsilon), np.array([s]), np.array([t]))[0, 0]), (s, t)) for s, t in known
        )

    while True:
        fits, fails = -1, LAST + 1
        while fails - fits > 1:
            middle = (fits + fails) // 2
            fits, fails = (middle, fails) if most(_of(middle))[0] <= target else (fits, middle)
        if fits < 0:
            loss, _ = most(_of(0))
            raise InvalidParameter(
                f"`target` {target:g} cannot be proved at any epsilon from {float(_of(0)):g}: there two "
                f"protected starts may differ by {loss:.3g} ({bound.reason}); nothing was computed"
            )
        loss, worst = _worst(bound, pairs, float(_of(fits)))
        if loss <= target:
            break
        known.append(worst)
    beyond = None if fails > LAST else _of(fails)
    return StartsProtection(
        _of(fits),
        target,
        loss,
        pairs.count,
        worst,
        beyond,
        None if beyond is None else most(beyond)[0],
        bound.exact,
        bound.reason,
    )


def _worst(bound: _Bound, pairs: _Pairs, epsilon: float) -> tuple[float, tuple[int, int]]:
    """The largest bound over all protected pairs, and whose it is; of several, the first."""
    top, worst = -1.0, (0, 0)
    for nodes in pairs.parts():
        counted = pairs.rows(nodes)
        if counted.mean() > SPARSE:
            later = np.arange(nodes[0], pairs.size)
            blocks = [(nodes, later, counted[:, later])]
        else:  # few pairs: each start with its own
            some = ((node, np.flatnonzero(row)) for node, row in zip(nodes, counted, strict=True))
            blocks = [(np.array([node]), t, np.ones((1, t.size), bool)) for node, t in some if t.size]
        for starts, others, asked in blocks:
            found = np.where(asked, bound.between(epsilon, starts, others), -1.0)
            row, column = divmod(int(np.argmax(found)), others.size)
            if found[row, column] > top:
                top = float(found[row, column])
                worst = (int(starts[row]), int(others[column]))
    return top, worst


def _of(place: int) -> Fraction:
    """Numbers of three digits in rising order: 0.001, 0.00101, ..., 0.00999, 0.01, 0.0101, ..., 20."""
    tens, digits = divmod(place, 900)
    return Fraction(100 + digits) * Fraction(10) ** (tens - 5)
