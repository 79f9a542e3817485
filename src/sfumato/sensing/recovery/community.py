"""Which community a source is in: communities of a graph, and the mass that a recovery finds in each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, real_array, whole
from sfumato.errors import InvalidParameter
from sfumato.spaces import (
    Graph,
    kmeans,
    leading_eigenvectors,
    numbered_by_first,
    regularised_laplacian,
)

MAX_VECTORS = 10
"""Communities looked for when nobody says how many there are."""


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
    degree, rows scaled to length 1, then k-means [ng02] [qin13]. Its starts are fixed, so the
    same graph always gets the same labels. Label 0 is node 0's, label 1
    that of the first node that is not in 0, and so on; there are fewer than `count` where symmetry
    leaves no more to tell apart. Without a count it is the one from 2 to 10 with the largest
    modularity [newman06]. Lengths of edges play no part. Every graph gets an answer, one without
    communities too.

    Args:
        graph: A connected graph.
        count: How many communities to look for; None chooses 2 to 10.

    Returns:
        The label of each node, from 0 on.

    Raises:
        InvalidParameter: If the graph is in several parts, or the count is out of range.

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
    vectors = _leading(graph, min(MAX_VECTORS, graph.size - 1))
    tried = [_clusters(vectors[:, :k]) for k in range(2, vectors.shape[1] + 1)]
    return max(tried, key=lambda labels: _modularity(graph, labels))


def community_of(estimate: npt.ArrayLike, labels: npt.ArrayLike) -> CommunityAnswer:
    """The community that holds most of a recovered source vector.

    Args:
        estimate: One mass for each node, not negative and not all 0.
        labels: The community of each node.

    Returns:
        The label with the most mass, and the share of each.

    Raises:
        InvalidParameter: If they are not one number for each node.

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
    """The eigenvectors of the largest eigenvalues, in falling order. Clusters need few digits."""
    scaled = regularised_laplacian(graph.adjacency())
    return leading_eigenvectors(scaled, count, order="value", tolerance=1e-3)[1]


def _clusters(vectors: FloatArray) -> IntArray:
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return numbered_by_first(kmeans(rows, rows.shape[1]))


def _modularity(graph: Graph, labels: IntArray) -> float:
    """The share of edges within communities, minus what it would be if edges kept to degrees alone."""
    ends = labels[graph.edges]
    within = float((ends[:, 0] == ends[:, 1]).mean())
    shares = np.bincount(ends.ravel()) / ends.size
    return within - float(shares @ shares)
