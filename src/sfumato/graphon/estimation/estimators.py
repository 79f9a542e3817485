"""Blocks and their matrix from one network: by eigenvectors, by least squares, and without blocks by USVT.

All are deterministic: the same network gives the same answer. Starts of k-means are hashed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import eigh

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, whole
from sfumato.errors import InvalidParameter
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.network import Network
from sfumato.graphon.sample import checked_labels
from sfumato.spaces import (
    hashed,
    kmeans,
    leading_eigenvectors,
    numbered_by_first,
    regularised_laplacian,
)

Matrix = sparse.csr_array[np.float64] | FloatArray

ROUNDS = 40  # of reassignment; it settles in fewer, or goes round in circles
LARGE = 4000  # nodes, above which eigenvectors are computed more loosely
DENSE = 6000  # nodes, above which a matrix of all pairs is refused


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A block graphon fitted to a network, the block of each node, and the mean squared residual of a pair.

    Blocks that no node is in are left out, so there may be fewer than asked for.
    """

    graphon: BlockGraphon
    labels: IntArray
    loss: float


def spectral(network: Network, k: int) -> Estimate:
    """Blocks by the k leading eigenvectors of the regularised Laplacian, then block means.

    Entries A_ij / sqrt((d_i + tau) (d_j + tau)) with tau the mean degree [qin13, sec. 2],
    eigenvectors times
    |eigenvalue|, k-means on the rows.

    Args:
        network: The network.
        k: Blocks, from 1 to the number of nodes.

    Returns:
        The blocks, fewer than k where some stay empty.

    Raises:
        InvalidParameter: k is out of range.

    Example:
        >>> cliques = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)]
        >>> spectral(Network(6, cliques), 2).graphon.matrix.tolist()
        [[1.0, 0.0], [0.0, 1.0]]

    """
    return from_labels(network, spectral_labels(network, k))


def least_squares(network: Network, k: int, *, starts: int = 3) -> Estimate:
    """Blocks that leave the least squares of A - Q: the best of alternating steps from several starts.

    The least-squares estimator of [gao15, sec. 2] reaches the rate of thm. 4.4; finding it exactly
    is intractable, so this is a local optimum: given blocks, means are best; given means, each node
    goes where its own row fits best. The first start is spectral, the others hashed.

    Args:
        network: The network.
        k: Blocks, from 1 to the number of nodes.
        starts: How many starts, at least 1.

    Returns:
        The best blocks of all starts.

    Raises:
        InvalidParameter: k or starts is out of range.

    """
    k = _block_count(k, network.size)
    best: IntArray | None = None
    least = math.inf
    for start in range(starts):
        begin = (
            spectral_labels(network, k) if start == 0 else _hashed_labels(network.size, k, start)
        )
        labels, objective = refine(network.adjacency, begin, k)
        if best is None or objective < least:
            best, least = labels, objective
    if best is None:
        raise InvalidParameter(f"starts must be at least 1, got {starts}; nothing was fitted")
    return from_labels(network, best)


def constant(network: Network) -> Estimate:
    """One block: the estimate that knows only how many edges there are, which others must beat.

    Args:
        network: The network.

    Returns:
        One block with the network's density.

    """
    return from_labels(network, np.zeros(network.size, dtype=np.int64))


def usvt(network: Network, *, excess: float = 0.01) -> FloatArray:
    """The chance of an edge for each pair, without blocks: the eigenvalues of A that no noise explains.

    Those of at least (2 + excess) sqrt(n rho (1 - rho)) are kept and entries clipped to [0, 1]
    [chatterjee15, sec. 1]. A dense matrix: at most 6000 nodes.

    Args:
        network: The network; at most 6000 nodes.
        excess: How far above the noise eigenvalues must be to be kept, at least 0.

    Returns:
        The chances, n x n.

    Raises:
        InvalidParameter: There are more nodes.

    """
    n, density = network.size, network.density
    if n > DENSE:
        raise InvalidParameter(
            f"USVT makes all pairs of at most {DENSE} nodes, got {n}; nothing was fitted"
        )
    values, vectors = eigh(network.adjacency.toarray())
    kept = np.abs(values) >= (2 + excess) * math.sqrt(n * density * (1 - density))
    return np.clip((vectors[:, kept] * values[kept]) @ vectors[:, kept].T, 0, 1)


def estimation_error(estimate: Estimate, truth: BlockGraphon, labels: npt.ArrayLike) -> float:
    """How far the fitted chances are from the true ones, in the mean square over all pairs of nodes.

    sqrt of the mean of (Q[z_i, z_j] - B[t_i, t_j])**2: the error of [mcmillan18, (4.13)], with the
    1/n that a norm takes (printed 1/n**2, which goes with its square). A pair of equal nodes counts
    too. By the table of nodes in both blocks, so n x n entries are never formed.

    Args:
        estimate: What was fitted.
        truth: The model that the network was drawn from.
        labels: The true block of each node.

    Returns:
        The root mean square error of chances, 0 to 1.

    Raises:
        InvalidParameter: labels are not a block of the truth for each node.

    """
    true = checked_labels(labels, estimate.labels.size, truth.k)
    fitted, k = estimate.graphon, estimate.graphon.k
    both = np.bincount(estimate.labels * truth.k + true, minlength=k * truth.k).reshape(k, truth.k)
    table = both / true.size
    ours, theirs = table.sum(axis=1), table.sum(axis=0)
    square = ours @ fitted.matrix**2 @ ours + theirs @ truth.matrix**2 @ theirs
    square -= 2 * float(np.sum((fitted.matrix @ table @ truth.matrix) * table))
    return math.sqrt(max(float(square), 0.0))


def from_labels(network: Network, labels: IntArray) -> Estimate:
    """Block means of given blocks, numbered in the order of their first node.

    Args:
        network: The network.
        labels: A number for the block of each node.

    Returns:
        The blocks with their means, and the mean squared residual.

    """
    tidy = numbered_by_first(labels)
    k = int(tidy.max()) + 1
    edges, pairs = block_counts(network, tidy, k)
    means = block_means(edges, pairs)
    # Residuals of a 0-1 pair with mean q: q (1 - q) on average over its block.
    once = np.triu(np.ones((k, k)))
    loss = float((once * pairs * means * (1 - means)).sum() / max(network.dyads, 1))
    shares = np.bincount(tidy, minlength=k) / network.size
    return Estimate(BlockGraphon(means, shares), read_only(tidy), loss)


def block_counts(network: Network, labels: IntArray, k: int) -> tuple[IntArray, IntArray]:
    """Edges and pairs of nodes between each two blocks, each pair of nodes once; k x k, symmetric."""
    low, high = labels[network.edges].T
    once = np.bincount(low * k + high, minlength=k * k).reshape(k, k).astype(np.int64)
    edges = once + once.T
    np.fill_diagonal(edges, np.diag(once))
    return edges, block_pairs(np.bincount(labels, minlength=k))


def block_pairs(sizes: IntArray) -> IntArray:
    """How many pairs of nodes there are between blocks of these sizes."""
    pairs = np.outer(sizes, sizes)
    np.fill_diagonal(pairs, sizes * (sizes - 1) // 2)
    return pairs.astype(np.int64)


def block_means(edges: npt.NDArray[Any], pairs: IntArray) -> FloatArray:
    """Edges over pairs, 0 where there is no pair."""
    means: FloatArray = np.divide(edges, pairs, out=np.zeros(pairs.shape), where=pairs > 0)
    return means


def spectral_labels(network: Network, k: int) -> IntArray:
    """The blocks of `spectral`, as k-means numbers them."""
    k = _block_count(k, network.size)
    if k == 1:
        return np.zeros(network.size, dtype=np.int64)
    return kmeans(embedding(network, k), k)


def embedding(network: Network, k: int) -> FloatArray:
    """A row of k numbers for each node: leading eigenvectors of the regularised Laplacian, weighted.

    Columns are in order of |eigenvalue|, so that the first j of them are the embedding for j
    blocks.
    """
    # Most of the work on a large network is telling apart eigenvectors that are noise alike.
    tolerance = 1e-4 if network.size <= LARGE else 3e-3
    values, vectors = leading_eigenvectors(
        regularised_laplacian(network.adjacency), k, tolerance=tolerance
    )
    return vectors * np.abs(values)


def refine(matrix: Matrix, labels: IntArray, k: int) -> tuple[IntArray, float]:
    """Blocks after alternating steps of least squares, the best ones seen, and their objective.

    Objective: sum over ordered pairs of (A - Q)**2 less that of A**2. All nodes move at once, so a
    step may go uphill; then the best ones seen are given back.
    """
    best, least, waited = labels, math.inf, 0
    for _ in range(ROUNDS):
        member = np.zeros((labels.size, k))
        member[np.arange(labels.size), labels] = 1
        sums: FloatArray = np.asarray(matrix @ member)
        sizes = member.sum(axis=0)
        pairs = np.outer(sizes, sizes) - np.diag(sizes)
        means = np.divide(member.T @ sums, pairs, out=np.zeros((k, k)), where=pairs > 0)
        objective = -float(np.sum(pairs * means**2))
        waited += 1
        if objective < least:
            best, least, waited = labels, objective, 0
        if waited > 4:
            break
        # [block, node], as in k-means: what each node would leave in each block, its own place not
        # counted
        squares = means**2
        cost = (sizes @ squares)[:, None] - squares[:, labels] - 2 * means @ sums.T
        moved = cost.argmin(axis=0)
        if np.array_equal(moved, labels):
            break
        labels = moved
    return best, least


def _block_count(k: int, n: int) -> int:
    return whole("k", k, low=1, high=n)


def _hashed_labels(n: int, k: int, salt: int) -> IntArray:
    return (hashed(np.arange(n), salt) * k).astype(np.int64)
