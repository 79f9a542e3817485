"""How far two block graphons are apart after the best relabelling of their nodes: delta_2, as an interval.

delta_2(W, V) is the least L2 distance of W(f(x), f(y)) and V(x, y) over measure-preserving f
[mcmillan18, (4.1)]. For blocks that is a coupling of their shares, and delta_2 the
Gromov-Wasserstein distance [memoli11]: every coupling proves an upper bound. Lower bounds and when
they meet it: docs/proofs/graphon.md
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import linear_sum_assignment

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only
from sfumato.graphon.assignment import ROUNDING, Permuted, improve, permuted, twice_permuted
from sfumato.graphon.model import BlockGraphon, norm
from sfumato.transport import cheapest_plan

CLOSED = 1e-9  # of the norms: an interval as narrow as this is a number
STARTS = 8  # scattered ones, beside those that are computed from the graphons
FIRST_STEPS, STEPS = 25, 200  # from every start, and from the best that are reached so
CONVEX_STEPS = 2_000  # where they lead to the least cost there is, one over their number away
POLISHED = 3  # couplings that are followed to the end, permutations that exchanges are tried on
SEARCHED = (
    8  # blocks up to which rows and columns are searched apart, and into which uneven ones are cut
)
SEARCHED_DEFINITE = 12
SEARCH_NODES = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """Why delta_2 is at least `value`: two lists of numbers whose distance it is, or two permutations.

    "spectrum": eigenvalues; "degrees": mean chances of the blocks; "rows": the coupling of blocks
    that is cheapest by sorted rows, and those costs; "permutations": rows and columns of the
    nearest permuted matrix; "definite": the same with one permutation, which is enough there;
    "convex": a coupling near the minimum and its slopes.
    """

    name: str
    value: float
    first: FloatArray | IntArray
    second: FloatArray | IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """delta_2 lies in [lower, upper]. `coupling` attains the upper end; `witnesses` prove the lower.

    coupling[i, j] is the share of nodes in block i of the first and block j of the second graphon.
    `together` is delta-hat, blocks permuted whole, with the permutation that attains it, and
    `apart` delta-double-hat, rows and columns permuted apart: apart <= delta_2 <= together
    [mcmillan18, (4.12)]. Both are searched for few blocks with even shares, or that can be cut into
    such; otherwise they are None.
    """

    lower: float
    upper: float
    coupling: FloatArray
    witnesses: tuple[Witness, ...]
    exact: bool
    apart: Permuted | None = None
    together: Permuted | None = None

    @property
    def witness(self) -> Witness:
        """The best of the lower bounds."""
        return max(self.witnesses, key=lambda one: one.value)


def distance(a: BlockGraphon, b: BlockGraphon) -> Distance:
    """How far two models of networks are apart, whatever their nodes and blocks are called.

    Models as they are given: if they were estimated, the error of that is not in the interval.

    Frank and Wolfe's method with exact line search, from many starts; no randomness. The interval
    closes for small k if the centered matrices are both positive or both negative semidefinite,
    nearly so for any k if one is positive and the other negative, and wherever a lower bound
    happens to be met.

    Args:
        a: A block graphon.
        b: Another; the numbers of blocks may differ.

    Returns:
        The interval that delta_2 lies in, a coupling that attains its upper end, and what proves
        the lower.

    Example:
        >>> a, b = BlockGraphon([[0, 1, 1], [1, 0, 1], [1, 1, 0]]), BlockGraphon(np.eye(3))
        >>> found = distance(a, b)
        >>> round(found.upper, 9) == round(5**0.5 / 3, 9), found.exact
        (True, True)
        >>> halves = BlockGraphon([[0.5, 0.1], [0.1, 0.5]])
        >>> thirds = BlockGraphon([[0.5, 0.5, 0.1], [0.5, 0.5, 0.1], [0.1, 0.1, 0.5]], [0.25, 0.25, 0.5])
        >>> distance(halves, thirds).upper
        0.0

    """
    scale = norm(a) + norm(b)
    (degrees, by_degrees), (rows, by_rows) = _degrees(a, b), _rows(a, b)
    witnesses = [_spectrum(a, b), degrees, rows]
    starts = [_product(a, b), by_degrees, by_rows]
    sign_a, sign_b = definiteness(a), definiteness(b)
    even = _evenly(a, b, max_parts=SEARCHED_DEFINITE if sign_a * sign_b > 0 else SEARCHED)
    apart, together = None, None
    if even is not None:
        apart, together = _searched(a, b, even, definite=sign_a * sign_b > 0)
        name = "definite" if apart is together else "permutations"
        witnesses.append(Witness(name, apart.lower, apart.rows, apart.columns))
        starts += [
            _placed(a, b, even, order) for order in (together.rows, apart.rows, apart.columns)
        ]
    best, cost = starts[0], product_cost(a, b)
    for coupling in _descended(a, b, starts):
        if (value := coupling_cost(a, b, coupling)) < cost:
            best, cost = coupling, value
    if sign_a * sign_b < 0 or 0 in (sign_a, sign_b):
        best = _descend(a, b, best, steps=CONVEX_STEPS)
        cost = coupling_cost(a, b, best)
        witnesses.append(_convex(a, b, best, cost))
    upper = math.sqrt(cost)
    # Rounding of the bounds counts against them.
    lower = min(upper, max(0.0, max(one.value for one in witnesses) - ROUNDING * scale))
    exact = upper - lower <= CLOSED * scale
    return Distance(lower, upper, read_only(best), tuple(witnesses), exact, apart, together)


def coupling_cost(a: BlockGraphon, b: BlockGraphon, coupling: FloatArray) -> float:
    """The squared L2 distance of two graphons whose nodes are matched by a coupling of their blocks.

    A sum of squares over the pairs of matched blocks: 0 comes out as 0, which differences of norms
    miss.
    """
    rows, columns = np.nonzero(coupling)
    weight = coupling[rows, columns]
    total = 0.0
    for row, column, share in zip(rows, columns, weight, strict=True):
        total += share * float(weight @ np.square(a.matrix[row, rows] - b.matrix[column, columns]))
    return total


def product_cost(a: BlockGraphon, b: BlockGraphon) -> float:
    """`coupling_cost` of nodes matched independently: what both vary about their means, and between these.

    >>> halves = BlockGraphon([[0.5, 0.1], [0.1, 0.5]])
    >>> round(product_cost(halves, halves), 9)
    0.08
    """
    means = [float(one.shares @ one.matrix @ one.shares) for one in (a, b)]
    varied = [
        float(one.shares @ np.square(one.matrix - mean) @ one.shares)
        for one, mean in zip((a, b), means, strict=True)
    ]
    return sum(varied) + (means[0] - means[1]) ** 2


def definiteness(graphon: BlockGraphon) -> float:
    """1 if the centered matrix is positive semidefinite, -1 if negative, 0 if it is 0, NaN if neither.

    Centered: with means of rows and columns taken off, every block counted once whatever its share.
    It is 1 where nodes meet their like most (assortative), -1 where they do least.

    >>> definiteness(BlockGraphon([[0.5, 0.1], [0.1, 0.3]]))
    1.0
    """
    matrix = graphon.matrix
    centered = matrix - matrix.mean(axis=0) - matrix.mean(axis=1)[:, None] + matrix.mean()
    values = np.linalg.eigvalsh(centered)
    slack = ROUNDING * max(1e-300, float(np.abs(matrix).max()))
    low, high = float(values[0]), float(values[-1])
    if low >= -slack:
        return 0.0 if high <= slack else 1.0
    return -1.0 if high <= slack else math.nan


def _spectrum(a: BlockGraphon, b: BlockGraphon) -> Witness:
    """Relabelling keeps the spectrum; operators are at least as far apart as their spectra [hoffman53]."""
    first, second = (
        np.asarray(
            np.linalg.eigvalsh(one.matrix * np.sqrt(np.outer(one.shares, one.shares))), np.float64
        )
        for one in (a, b)
    )
    total = 0.0
    for sign in (1, -1):
        # Both are followed by zeros without end, which the surplus of either sign is matched with.
        one, other = (np.sort(np.maximum(sign * values, 0))[::-1] for values in (first, second))
        size = max(one.size, other.size)
        total += float(
            np.square(
                np.pad(one, (0, size - one.size)) - np.pad(other, (0, size - other.size))
            ).sum()
        )
    return Witness("spectrum", math.sqrt(total), first, second)


def _degrees(a: BlockGraphon, b: BlockGraphon) -> tuple[Witness, FloatArray]:
    """Averaging over the other node shrinks distances: what is left is Wasserstein's on degrees."""
    one, other = a.matrix @ a.shares, b.matrix @ b.shares
    cost = np.square(one[:, None] - other[None, :])
    plan = _cheapest(cost, a, b)
    return Witness("degrees", math.sqrt(max(0.0, float((plan * cost).sum()))), one, other), plan


def _rows(a: BlockGraphon, b: BlockGraphon) -> tuple[Witness, FloatArray]:
    """Any coupling of the other nodes costs at least what sorting does [memoli11, third lower bound]."""
    # Quantiles of a row are constant between the ends of all rows' steps.
    orders = [np.argsort(one.matrix, axis=1, kind="stable") for one in (a, b)]
    ends = [np.cumsum(one.shares[order], axis=1) for one, order in zip((a, b), orders, strict=True)]
    cuts = np.unique(np.concatenate([[0.0, 1.0], *(np.clip(part.ravel(), 0, 1) for part in ends)]))
    middles = (cuts[1:] + cuts[:-1]) / 2
    one, other = (
        np.stack([
            graphon.matrix[row, order[row][np.minimum(np.searchsorted(end[row], middles), graphon.k - 1)]]
            for row in range(graphon.k)
        ])
        for graphon, order, end in zip((a, b), orders, ends, strict=True)
    )  # fmt: skip
    width = np.diff(cuts)
    cost = np.stack([np.square(row - other) @ width for row in one])
    plan = _cheapest(cost, a, b)
    return Witness("rows", math.sqrt(max(0.0, float((plan * cost).sum()))), plan, cost), plan


Even = tuple[IntArray, IntArray]


def _evenly(a: BlockGraphon, b: BlockGraphon, *, max_parts: int) -> Even | None:
    """Blocks of both, each cut into as many as its share is of 1/N: the same graphons with N even blocks."""
    parts = [
        [Fraction(float(share)).limit_denominator(max_parts) for share in one.shares]
        for one in (a, b)
    ]
    pieces = math.lcm(*(part.denominator for both in parts for part in both))
    if pieces > max_parts or any(sum(both) != 1 for both in parts):
        return None
    for one, both in zip((a, b), parts, strict=True):
        if np.abs(one.shares - np.array([float(part) for part in both])).max() > 1e-15 * one.k:
            return None
    first, second = (
        np.repeat(np.arange(len(both)), [int(part * pieces) for part in both]) for both in parts
    )
    return first, second


def _searched(
    a: BlockGraphon, b: BlockGraphon, even: Even, *, definite: bool
) -> tuple[Permuted, Permuted]:
    """delta-double-hat of even blocks, or where it is the same and found faster, delta-hat; and delta-hat."""
    one, other = a.matrix[np.ix_(even[0], even[0])], b.matrix[np.ix_(even[1], even[1])]
    together = permuted(one, other, nodes=SEARCH_NODES)
    return together if definite else twice_permuted(one, other, nodes=SEARCH_NODES), together


def _placed(a: BlockGraphon, b: BlockGraphon, even: Even, order: IntArray) -> FloatArray:
    """The coupling that a permutation of even pieces is."""
    coupling = np.zeros((a.k, b.k))
    np.add.at(coupling, (even[0][order], even[1]), 1 / len(order))
    return coupling


def _convex(a: BlockGraphon, b: BlockGraphon, coupling: FloatArray, cost: float) -> Witness:
    """Where the cost is convex in the coupling, no other is better by more than the steepest slope says."""
    product = a.matrix @ coupling @ b.matrix
    slope = 4 * float((product * (_cheapest(-product, a, b) - coupling)).sum())
    return Witness("convex", math.sqrt(max(0.0, cost - max(0.0, slope))), coupling, product)


def _descended(a: BlockGraphon, b: BlockGraphon, starts: list[FloatArray]) -> Iterator[FloatArray]:
    """Couplings that no step improves, from the starts and from scattered ones; and permutations nearby."""
    begun = [*starts, _aligned(a, b), *_scattered(a, b)]
    found = [_descend(a, b, start, steps=FIRST_STEPS) for start in begun]
    found.sort(key=lambda one: -float((one * (a.matrix @ one @ b.matrix)).sum()))
    yield from starts[1:]  # The first is the product, whose cost is known.
    yield from (_descend(a, b, one, steps=STEPS) for one in found[:POLISHED])
    if not _even_pair(a, b):
        return
    orders = {
        tuple(np.argsort(linear_sum_assignment(-one)[1]).tolist()) for one in (*found, *starts)
    }
    matrix_a, matrix_b = a.matrix, b.matrix
    ranked = sorted(
        orders, key=lambda order: -float((matrix_a[np.ix_(order, order)] * matrix_b).sum())
    )
    for order in ranked[:POLISHED]:
        better = np.zeros((a.k, b.k))
        better[improve(matrix_a, matrix_b, np.array(order)), np.arange(b.k)] = 1 / a.k
        yield better
        yield _descend(a, b, better, steps=STEPS)


def _descend(
    a: BlockGraphon, b: BlockGraphon, coupling: FloatArray, *, steps: int = STEPS
) -> FloatArray:
    """Go to the best vertex by the slope, as far as the cost falls; it is a parabola on the way."""
    product = a.matrix @ coupling @ b.matrix
    least = ROUNDING * max(1e-300, float((product * coupling).sum()))
    for _ in range(steps):
        vertex = _cheapest(-product, a, b)
        step = vertex - coupling
        slope = float((product * step).sum())
        if slope <= least:
            break
        change = a.matrix @ step @ b.matrix
        curve = float((change * step).sum())
        far = 1.0 if curve >= 0 else min(1.0, -slope / curve)
        # At the end of the way it is the vertex to the last digit, and its zeros are zeros.
        coupling = vertex if far == 1 else np.maximum(coupling + far * step, 0.0)
        product = a.matrix @ coupling @ b.matrix
    return coupling


def _cheapest(cost: FloatArray, a: BlockGraphon, b: BlockGraphon) -> FloatArray:
    """The coupling of least cost: an assignment if all shares are even, else a plan of transport."""
    if _even_pair(a, b):
        plan = np.zeros_like(cost)
        plan[linear_sum_assignment(cost)] = 1 / a.k
        return plan
    return np.asarray(cheapest_plan(a.shares, b.shares, cost)[0], dtype=np.float64)


def _even_pair(a: BlockGraphon, b: BlockGraphon) -> bool:
    return a.k == b.k and bool(np.ptp(a.shares) <= ROUNDING) and bool(np.ptp(b.shares) <= ROUNDING)


def _product(a: BlockGraphon, b: BlockGraphon) -> FloatArray:
    return np.outer(a.shares, b.shares)


def _aligned(a: BlockGraphon, b: BlockGraphon) -> FloatArray:
    """Blocks matched by the sizes of their entries in eigenvectors of the same rank, signs unknown."""
    first, second = (
        np.abs(np.linalg.eigh(one.matrix * np.sqrt(np.outer(one.shares, one.shares)))[1])
        for one in (a, b)
    )
    size = min(a.k, b.k)
    return _cheapest(-(first[:, -size:] @ second[:, -size:].T), a, b)


def _scattered(a: BlockGraphon, b: BlockGraphon) -> Iterator[FloatArray]:
    """Vertices far apart, and half way from them to the product: multiples of squares, modulo 1 (Weyl)."""
    numbers = np.arange(1, a.k * b.k + 1, dtype=np.float64) ** 2
    for start in range(1, STARTS + 1):
        cost = (numbers * math.sqrt(2 + start * math.pi)) % 1.0
        vertex = _cheapest(cost.reshape(a.k, b.k), a, b)
        yield vertex
        yield (_product(a, b) + vertex) / 2
