"""Distances between block matrices over permutations of blocks: the two ends that enclose delta_2.

delta-double-hat permutes rows and columns apart, delta-hat together; both are L2 distances of k x k
matrices, normalised so that a matrix of ones has norm 1 [mcmillan18, (4.8), (4.10)]. Exact by
branch and bound, best bound first, so that a search cut short still proves the least bound it has
not looked behind.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidInput
from sfumato.graphon.model import BlockGraphon

NODES = 20_000  # that a search opens before it settles for an interval: a second or two
ROUNDING = 1e-12  # of the norms: what a distance may be off by, with room to spare
Bound = Callable[[tuple[int, ...]], float]


@dataclass(frozen=True, slots=True, eq=False)
class Permuted:
    """A distance over permutations: proved to lie in [lower, upper], attained at upper by the permutations.

    ||A[rows][:, columns] - B|| is `upper`, and the distance itself if `exact`.
    """

    lower: float
    upper: float
    rows: IntArray
    columns: IntArray
    nodes: int

    @property
    def exact(self) -> bool:
        """Whether the search was finished: the ends are then the same."""
        return self.lower == self.upper


def twice_permuted_distance(a: BlockGraphon, b: BlockGraphon, *, nodes: int = NODES) -> Permuted:
    """The L2 distance of two block matrices if rows and columns may be permuted apart: at most delta_2.

    delta-double-hat [mcmillan18, (4.10), lem. 4.4]. With the rows placed, the columns are a linear
    assignment; with some placed, so is a lower bound: each other row costs at least what sorting
    leaves.

    Args:
        a: A block graphon with even shares.
        b: Another with as many blocks.
        nodes: How many nodes the search opens before it settles for an interval.

    Returns:
        The interval of delta-double-hat, and the permutations that attain its upper end.

    Raises:
        InvalidInput: Shares are not even, or there are not as many blocks on both sides.

    Example:
        >>> a, b = BlockGraphon([[0, 1, 1], [1, 0, 1], [1, 1, 0]]), BlockGraphon(np.eye(3))
        >>> found = twice_permuted_distance(a, b)
        >>> round(found.upper * 3**0.5, 9), found.exact
        (1.0, True)

    """
    _even(a, b)
    return twice_permuted(a.matrix, b.matrix, nodes=nodes)


def permuted_distance(a: BlockGraphon, b: BlockGraphon, *, nodes: int = NODES) -> Permuted:
    """The L2 distance of two block matrices if blocks may be permuted: at least delta_2.

    delta-hat [mcmillan18, (4.8)], a quadratic assignment, by the bound of [gilmore62].

    Args:
        a: A block graphon with even shares.
        b: Another with as many blocks.
        nodes: How many nodes the search opens before it settles for an interval.

    Returns:
        The interval of delta-hat, and the permutation that attains its upper end.

    Raises:
        InvalidInput: Shares are not even, or there are not as many blocks on both sides.

    Example:
        >>> a, b = BlockGraphon([[0, 1, 1], [1, 0, 1], [1, 1, 0]]), BlockGraphon(np.eye(3))
        >>> permuted_distance(a, b).upper
        1.0

    """
    _even(a, b)
    return permuted(a.matrix, b.matrix, nodes=nodes)


def twice_permuted(a: FloatArray, b: FloatArray, *, nodes: int) -> Permuted:
    """`twice_permuted_distance` of matrices."""
    k = len(a)
    rest = _sorted_rows(a, b)

    def columns(rows: tuple[int, ...]) -> FloatArray:
        # [column of a, column of b]: what the rows placed so far cost
        placed = list(rows)
        one, other = a[placed], b[: len(placed)]
        return np.asarray(np.square(one[:, :, None] - other[:, None, :]).sum(axis=0))

    def bound(rows: tuple[int, ...]) -> float:
        free = [row for row in range(k) if row not in rows]
        return _assigned(columns(rows)) + _assigned(rest[np.ix_(free, range(len(rows), k))])

    def value(rows: IntArray) -> tuple[float, IntArray]:
        cost = columns(tuple(rows))
        order = np.argsort(linear_sum_assignment(cost)[1])
        return float(cost[order, np.arange(k)].sum()), order

    start = _alternate(a, b, _assignment(rest))
    return _search(a, b, bound, value, start=start, nodes=nodes)


def permuted(a: FloatArray, b: FloatArray, *, nodes: int) -> Permuted:
    """`permuted_distance` of matrices."""
    k = len(a)

    def bound(rows: tuple[int, ...]) -> float:
        done, placed = len(rows), list(rows)
        fixed = float(np.square(a[np.ix_(placed, placed)] - b[:done, :done]).sum())
        free = [row for row in range(k) if row not in rows]
        if not free:
            return fixed
        left = range(done, k)
        cost = np.square(np.diag(a)[free][:, None] - np.diag(b)[done:][None, :])
        # Rows still to be placed meet those that are twice, by symmetry, and each other at least as
        # sorted.
        cost += 2 * np.square(
            a[np.ix_(free, placed)][:, None, :] - b[done:, :done][None, :, :]
        ).sum(axis=2)
        cost += _sorted_rows(_others(a[np.ix_(free, free)]), _others(b[np.ix_(left, left)]))
        return fixed + _assigned(cost)

    def value(rows: IntArray) -> tuple[float, IntArray]:
        return float(np.square(a[np.ix_(rows, rows)] - b).sum()), rows

    start = improve(a, b, _assignment(_sorted_rows(a, b)))
    return _search(a, b, bound, value, start=start, nodes=nodes)


def improve(a: FloatArray, b: FloatArray, order: IntArray) -> IntArray:
    """A permutation that no exchange of two blocks makes better, from one that may not be such."""
    order = order.copy()
    for _ in range(10 * len(a)):
        gain = exchange_gains(a[np.ix_(order, order)], b)
        one, other = np.unravel_index(int(np.argmax(gain)), gain.shape)
        if gain[one, other] <= ROUNDING * len(a):
            break
        order[[one, other]] = order[[other, one]]
    return order


def exchange_gains(a: FloatArray, b: FloatArray) -> FloatArray:
    """How much sum(a * b) grows if two blocks of a are exchanged, for all pairs."""
    product = a @ b
    both = np.diag(product)
    da, db = np.diag(a), np.diag(b)
    gain = product + product.T - both[:, None] - both[None, :]
    # The two blocks' own entries are in the products as if they were others'.
    gain -= (a - da[:, None]) * (db[:, None] - b) + (da[None, :] - a) * (b - db[None, :])
    return np.asarray(2 * gain + (da[None, :] - da[:, None]) * (db[:, None] - db[None, :]))


def _search(
    a: FloatArray,
    b: FloatArray,
    bound: Bound,
    value: Callable[[IntArray], tuple[float, IntArray]],
    *,
    start: IntArray,
    nodes: int,
) -> Permuted:
    """Place rows one by one, always behind the least bound; what is not opened costs at least that."""
    k = len(a)
    best, columns = value(start)
    rows = start
    # Sums of squares are off by what their roots are: that much of a norm, not of its square.
    slip = ROUNDING / 10 * float(np.linalg.norm(a) + np.linalg.norm(b))
    margin = slip * (2 * math.sqrt(best) + slip)
    heap: list[tuple[float, int, tuple[int, ...]]] = [(bound(()), 0, ())]
    opened = 0
    proved = best
    while heap:
        least, depth, placed = heapq.heappop(heap)
        if least >= best - margin:
            break
        if opened >= nodes:
            proved = least
            break
        opened += 1
        for row in range(k):
            if row in placed:
                continue
            child = (*placed, row)
            if len(child) == k:
                found, order = value(np.array(child))
                if found < best:
                    best, rows, columns = found, np.array(child), order
            elif (cost := max(least, bound(child))) < best - margin:
                heapq.heappush(heap, (cost, depth - 1, child))
    upper = math.sqrt(best) / k
    lower = upper if proved >= best - margin else math.sqrt(max(0.0, proved)) / k
    return Permuted(lower, upper, rows, columns, opened)


def _alternate(a: FloatArray, b: FloatArray, rows: IntArray) -> IntArray:
    """Rows after placing columns and rows in turn, each best for the other, until nothing changes."""
    last = -math.inf
    while True:
        columns = _assignment(-(a[rows].T @ b))
        rows = _assignment(-(a[:, columns] @ b.T))
        now = float((a[np.ix_(rows, columns)] * b).sum())
        if now <= last + ROUNDING:
            return rows
        last = now


def _sorted_rows(a: FloatArray, b: FloatArray) -> FloatArray:
    """[row of a, row of b]: the least squared distance of two rows over all orders of their entries."""
    one, other = np.sort(a, axis=1), np.sort(b, axis=1)
    return np.asarray(np.square(one[:, None, :] - other[None, :, :]).sum(axis=2))


def _others(matrix: FloatArray) -> FloatArray:
    """Rows without their diagonal entry."""
    k = len(matrix)
    return matrix[~np.eye(k, dtype=bool)].reshape(k, k - 1)


def _assignment(cost: FloatArray) -> IntArray:
    """For every column the row that the cheapest assignment gives it."""
    return np.argsort(linear_sum_assignment(cost)[1]).astype(np.int64)


def _assigned(cost: FloatArray) -> float:
    return float(cost[linear_sum_assignment(cost)].sum()) if cost.size else 0.0


def _even(a: BlockGraphon, b: BlockGraphon) -> None:
    for one in (a, b):
        if one.k != a.k or np.ptp(one.shares) > ROUNDING:
            raise InvalidInput(
                f"only blocks of even shares, as many on both sides, can be permuted, got {a.k} and {b.k} "
                f"with shares {one.shares.tolist()}; nothing was computed: `distance` takes any"
            )
