"""Which community a source is in: communities of a graph, and the mass that a recovery finds in each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.cluster.vq import vq
from scipy.sparse.linalg import eigsh

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, real_array, whole
from sfumato.errors import InvalidParameter
from sfumato.spaces import Graph

MOST = 10
"""Communities looked for when nobody says how many there are."""
ROUNDS = 100
"""Rounds of k-means after which clusters are taken as they are."""
DENSE = 400
"""Nodes up to which all eigenvectors are computed, which is then faster than some."""


@dataclass(frozen=True, slots=True, eq=False)
class CommunityAnswer:
    """The community with the most of the recovered mass, and the share of each; ties go to the lower label.

    Computed from a released vector alone: it costs no privacy.
    """

    label: int
    shares: FloatArray


def communities(graph: Graph, *, count: int | None = None) -> IntArray:
    """A label for each node of a connected graph, such that most edges join nodes of one label.

    Spectral clustering: the leading eigenvectors of D_t^-1/2 A D_t^-1/2 with D_t = degrees + mean
    degree, rows scaled to length 1, then k-means [ng02] [qin13]. It begins from rows that are far
    from each other, so the same graph always gets the same labels. Label 0 is node 0's, label 1
    that of the first node that is not in 0, and so on; there are fewer than `count` where symmetry
    leaves no more to tell apart. Without a count it is the one from 2 to 10 with the largest
    modularity [newman06]. Lengths of edges play no part. Every graph gets an answer, one without
    communities too.

    >>> two_triangles = Graph([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)])
    >>> communities(two_triangles)
    array([0, 0, 0, 1, 1, 1])
    """
    if graph.components().any():
        raise InvalidParameter(
            "a graph with communities must be connected, got one in several parts; nothing was computed"
        )
    if count is not None:
        count = whole("count", count, low=1, high=graph.size)
    if count == 1 or graph.size < 3:
        return (
            np.arange(graph.size) if count == graph.size else np.zeros(graph.size, dtype=np.int64)
        )
    if count is not None:
        return _clusters(_leading(graph, count))
    vectors = _leading(graph, min(MOST, graph.size - 1))
    tried = [_clusters(vectors[:, :k]) for k in range(2, vectors.shape[1] + 1)]
    return max(tried, key=lambda labels: _modularity(graph, labels))


def community_of(estimate: npt.ArrayLike, labels: npt.ArrayLike) -> CommunityAnswer:
    """The community that holds most of a recovered source vector.

    >>> community_of([0.1, 0, 0.5, 0.2], [0, 0, 1, 1])
    CommunityAnswer(label=1, shares=array([0.125, 0.875]))
    """
    masses = real_array("estimate", estimate)
    groups = np.asarray(labels)
    if masses.ndim != 1 or groups.shape != masses.shape:
        raise InvalidParameter(
            f"estimate and labels must be one number for each node, got shapes {masses.shape} and "
            f"{groups.shape}; nothing was computed"
        )
    if groups.dtype.kind not in "iu" or (groups < 0).any():
        raise InvalidParameter(
            "labels must be whole numbers from 0 on, got others; nothing was computed"
        )
    if not np.isfinite(masses).all() or (masses < 0).any():
        raise InvalidParameter("an estimate must be finite and not negative; nothing was computed")
    total = float(masses.sum())
    if total == 0:
        raise InvalidParameter(
            "an estimate must have some mass to be in a community, got none; nothing was computed"
        )
    shares = np.bincount(groups, weights=masses) / total
    return CommunityAnswer(int(np.argmax(shares)), read_only(shares))


def _leading(graph: Graph, count: int) -> FloatArray:
    """The eigenvectors of the largest eigenvalues, in falling order."""
    adjacency = graph.adjacency()
    degrees = np.asarray(adjacency.sum(axis=1), dtype=np.float64)
    # Without the mean degree, a few nodes at the end of a chain can pass for a community of their
    # own.
    scale = sparse.diags_array(1 / np.sqrt(degrees + degrees.mean()))
    scaled = sparse.csr_array(scale @ adjacency @ scale)
    if graph.size <= DENSE or count >= graph.size - 1:
        values, vectors = np.linalg.eigh(scaled.toarray())
    else:
        # A start that is not random, and not orthogonal to anything by symmetry. Clusters need few
        # digits.
        start = 1 + np.cos(np.arange(graph.size, dtype=np.float64)) / 2
        values, vectors = eigsh(scaled, k=count, which="LA", v0=start, tol=1e-3)
    return np.asarray(vectors[:, np.argsort(values)[::-1][:count]])


def _clusters(vectors: FloatArray) -> IntArray:
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centers = _far_apart(rows, rows.shape[1])
    labels, _ = vq(rows, centers)
    for _ in range(ROUNDS):
        # scipy's kmeans2 warns or raises when a cluster runs empty, as symmetric graphs make it;
        # here it is left where it was.
        held = np.bincount(labels, minlength=len(centers))[:, np.newaxis]
        sums = np.array(
            [np.bincount(labels, weights=column, minlength=len(centers)) for column in rows.T]
        ).T
        centers = np.where(held > 0, sums / np.maximum(held, 1), centers)
        before, (labels, _) = labels, vq(rows, centers)
        if np.array_equal(before, labels):
            break
    return _in_order(np.asarray(labels, dtype=np.int64))


def _modularity(graph: Graph, labels: IntArray) -> float:
    """The share of edges within communities, minus what it would be if edges kept to degrees alone."""
    ends = labels[graph.edges]
    within = float((ends[:, 0] == ends[:, 1]).mean())
    shares = np.bincount(ends.ravel()) / ends.size
    return within - float(shares @ shares)


def _far_apart(rows: FloatArray, count: int) -> FloatArray:
    """As many rows as asked for, each the farthest from all before it; the first is nearest the mean."""
    chosen = [int(np.argmin(((rows - rows.mean(axis=0)) ** 2).sum(axis=1)))]
    nearest = np.full(len(rows), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(np.argmax(nearest)))
    return rows[chosen]


def _in_order(labels: IntArray) -> IntArray:
    """The same groups, numbered in the order in which they first appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse]
