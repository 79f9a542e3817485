"""Groups of points and of nodes: k-means, and the eigenvectors that spectral clustering rests on.

All are deterministic: the same points give the same answer. Starts come from `hashes`.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from sfumato._types import FloatArray, IntArray
from sfumato.errors import SolverFailed
from sfumato.spaces.hashes import hashed

Matrix = sparse.csr_array[np.float64] | FloatArray

ROUNDS = 40  # of k-means; it settles in fewer, or goes round in circles
RESTARTS = 8
TRIED = 4000  # points that starts are compared on; means of so many lie where those of all do
SMALL = 64  # rows, below which all eigenvectors cost less than some


def kmeans(points: FloatArray, k: int) -> IntArray:
    """Which of k means each point is nearest to: the best of several starts [arthur07, sec. 2.2].

    Of more than 4000 points the starts are compared on a hashed part, and the best one goes on with
    all.

    Args:
        points: One row for each point; finite.
        k: How many means, at least 1; fewer are used where points coincide.

    Returns:
        The mean of each point, 0 to k - 1.

    Raises:
        SolverFailed: Points are not all finite.

    Example:
        >>> kmeans(np.array([[0.0], [0.1], [5.0], [5.1]]), 2).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
        True

    """
    some = points
    if len(points) > TRIED:
        some = points[np.argsort(hashed(np.arange(len(points)), 99), kind="stable")[:TRIED]]
    best, best_spread = _Clusters(np.zeros(len(some), dtype=np.int64), some[:1], math.inf), math.inf
    for start in range(RESTARTS):
        found = _lloyd(some, _spread_out(some, k, salt=100 + start))
        if found.spread < best_spread:
            best, best_spread = found, found.spread
    if some is not points and math.isfinite(best_spread):
        best = _lloyd(points, best.means)
    if not math.isfinite(best.spread):
        raise SolverFailed("k-means found no finite spread; the points are not all numbers")
    return best.labels


def regularised_laplacian(adjacency: sparse.csr_array[np.float64]) -> sparse.csr_array[np.float64]:
    """The matrix A_ij / sqrt((d_i + tau) (d_j + tau)), d the degrees and tau their mean [qin13, sec. 2].

    Without tau a few nodes at the end of a chain can pass for a group of their own.

    Args:
        adjacency: The symmetric matrix with 1 for each edge.

    Returns:
        The scaled matrix, of the same shape.

    """
    degrees = np.asarray(adjacency.sum(axis=1), dtype=np.float64)
    scale = sparse.diags_array(1 / np.sqrt(degrees + max(float(degrees.mean()), 1e-12)))
    return sparse.csr_array(scale @ adjacency @ scale)


def leading_eigenvectors(
    matrix: Matrix,
    count: int,
    *,
    order: Literal["magnitude", "value"] = "magnitude",
    tolerance: float = 1e-4,
) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues of a symmetric matrix by magnitude or by value, and their vectors as columns.

    Loose by choice: k-means moves no point for a part in 10,000. The start is hashed, so the same
    matrix always gives the same answer.

    Args:
        matrix: A symmetric matrix, dense or sparse.
        count: How many, from 1 to the number of rows.
        order: Which are the largest: by size without sign, or by value.
        tolerance: How accurate large matrices' eigenvalues are, relative.

    Returns:
        The eigenvalues, and as many columns of vectors, largest first.

    """
    n = int(matrix.shape[0])
    if n <= SMALL or count >= n - 1:
        full = matrix.toarray() if sparse.issparse(matrix) else matrix
        values, vectors = eigh(np.asarray(full))
    else:
        start = hashed(np.arange(n), 1) + 0.5
        if not np.any(np.asarray(matrix @ start)):
            return np.zeros(count), np.zeros((n, count))  # ARPACK refuses a matrix of zeros
        try:
            values, vectors = eigsh(
                cast(Any, matrix),
                k=count,
                which="LM" if order == "magnitude" else "LA",
                v0=start,
                tol=tolerance,
            )
        except ArpackNoConvergence as stopped:
            values, vectors = cast(Any, stopped.eigenvalues), cast(Any, stopped.eigenvectors)
            if values.size < count:
                # What has converged is a true eigenvector; columns of zeros say nothing of the
                # others.
                vectors = np.column_stack(
                    [vectors.reshape(n, -1), np.zeros((n, count - values.size))]
                )
                values = np.append(values, np.zeros(count - values.size))
    size = np.abs(values) if order == "magnitude" else values
    first = np.argsort(-size, kind="stable")[:count]
    return values[first], vectors[:, first]


def numbered_by_first(labels: IntArray) -> IntArray:
    """The same groups numbered in the order of their first member, so that equal partitions are equal arrays.

    Args:
        labels: A number for the group of each member.

    Returns:
        Numbers from 0 in the order of first members.

    Example:
        >>> numbered_by_first(np.array([7, 7, 2, 7, 5])).tolist()
        [0, 0, 1, 0, 2]

    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse]


def _spread_out(points: FloatArray, k: int, *, salt: int) -> FloatArray:
    """Starting means: each next one a point drawn in proportion to its squared distance from the others."""
    draws = hashed(np.arange(k), salt)
    chosen = [int(draws[0] * len(points))]
    gap = _squares(points - points[chosen[0]])
    for draw in draws[1:]:
        total = np.cumsum(gap)
        if total[-1] <= 0:
            break  # fewer different points than means
        at = min(int(np.searchsorted(total, draw * total[-1], side="right")), len(points) - 1)
        chosen.append(at)
        gap = np.minimum(gap, _squares(points - points[at]))
    return points[chosen]


class _Clusters(NamedTuple):
    """The mean each point is nearest to, the means, and the sum of squared distances from them."""

    labels: IntArray
    means: FloatArray
    spread: float


def _lloyd(points: FloatArray, means: FloatArray) -> _Clusters:
    labels = np.zeros(len(points), dtype=np.int64)
    own = _squares(points)
    for _ in range(ROUNDS):
        # [mean, point]: the least of a short column is found many at a time, that of a short row is
        # not
        distance = _squares(means)[:, None] - 2 * means @ points.T
        moved = distance.argmin(axis=0)
        settled = np.count_nonzero(moved != labels) <= 1e-4 * len(points)
        labels = moved
        sizes = np.bincount(labels, minlength=len(means))
        sums = np.stack(
            [np.bincount(labels, weights=one, minlength=len(means)) for one in points.T], axis=1
        )
        # A mean that lost all its points stays where it is.
        means = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], means)
        if settled:
            break
    spread = float((own + distance[labels, np.arange(labels.size)]).sum())
    return _Clusters(labels.astype(np.int64), means, spread)


def _squares(rows: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
