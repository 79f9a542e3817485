"""How much noise hides who began: the largest epsilon at which no two starts are told apart by more.

A Pufferfish guarantee: it holds as far as the model of the spread does [kifer14, def. 3.4].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.graph_sensitivity import diffusion_error
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.whisper.cascade_bound import CascadeBound
from sfumato.sensing.whisper.cascades import BoolArray, Cascade
from sfumato.sensing.whisper.spread import Spread, unheard
from sfumato.spaces import Graph

MOST_NODES = 5000
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
    (Fraction(66, 125), True, 3)
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
            return _largest(CascadeBound(graph, spread), pairs, target)


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
        return [np.arange(at, min(at + WIDE, self.size)) for at in range(0, self.size, WIDE)]

    def rows(self, nodes: IntArray) -> BoolArray:
        """For some nodes, which later ones are protected from them."""
        from scipy.sparse import csgraph

        out = np.arange(self.size) > nodes[:, np.newaxis]
        if self.within is not None:
            far = csgraph.dijkstra(self._links, indices=nodes, unweighted=True, limit=self.within)
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
        diffusion = graph_diffusion(graph, spread.rate)
        heat = np.maximum(diffusion.columns(np.arange(graph.size)).T, 0)
        self._heard, self._not = -np.expm1(-spread.strength * heat), unheard(heat, spread.strength)
        np.fill_diagonal(self._heard, 1.0)
        np.fill_diagonal(self._not, 0.0)
        self._wrong = spread.strength * diffusion_error(diffusion)
        self._at, self._all = -1.0, np.empty(0)

    def between(self, epsilon: float, nodes: IntArray, others: IntArray) -> FloatArray:
        from scipy.spatial import distance

        odds, size = math.expm1(epsilon) * (1 + 4 * EPS), len(self._heard)
        if others.size < size / 4:
            one, other = (self._logs(odds, some) for some in (nodes, others))
        else:
            if epsilon != self._at:
                self._at, self._all = epsilon, self._logs(odds, np.arange(size))
            one, other = self._all[nodes], self._all[others]
        sums = one.sum(axis=1)[:, np.newaxis] - other.sum(axis=1)
        loss = (distance.cdist(one, other, "cityblock") + np.abs(sums)) / 2
        # What heat and rounding may hide, in each of 2 n logarithms, of two starts.
        hidden = min(odds * (self._wrong + 4 * EPS), epsilon) + 4 * size * EPS * epsilon
        return np.asarray(loss + 2 * size * hidden)

    def _logs(self, odds: float, nodes: IntArray) -> FloatArray:
        return np.log1p(odds * np.hstack([self._heard[nodes], self._not[nodes]]))


def _largest(bound: _Bound, pairs: _Pairs, target: float) -> StartsProtection:
    """Pairs that were once the worst decide epsilon; then all pairs are looked at, until none is worse."""
    known: list[tuple[int, int]] = [_worst(bound, pairs, float(_of(LAST)))[1]]

    def most(epsilon: Fraction) -> tuple[float, tuple[int, int]]:
        return max(
            (float(bound.between(float(epsilon), np.array([s]), np.array([t]))[0, 0]), (s, t))
            for s, t in known
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
            blocks = [
                (np.array([node]), t, np.ones((1, t.size), bool)) for node, t in some if t.size
            ]
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
