"""K-means and eigenvectors against scipy and numpy; and what they do where there is nothing to group."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.vq import kmeans2

from sfumato._types import FloatArray, IntArray
from sfumato.spaces import clusters
from sfumato.spaces.clusters import kmeans, leading_eigenvectors, numbered_by_first


@pytest.mark.unit
def test_points_that_are_all_alike_are_one_group() -> None:
    assert kmeans(np.zeros((5, 2)), 3).tolist() == [0] * 5


@pytest.mark.reference
def test_eigenvalues_may_be_ordered_by_value(rng: np.random.Generator) -> None:
    matrix = rng.standard_normal((150, 150))
    matrix = matrix + matrix.T - 30 * np.outer(matrix[0], matrix[0]) / 150
    values, vectors = leading_eigenvectors(matrix, 4, order="value", tolerance=1e-10)
    assert values == pytest.approx(np.linalg.eigvalsh(matrix)[::-1][:4], rel=1e-8)
    assert np.allclose(matrix @ vectors, vectors * values, atol=1e-6 * abs(values[0]))


@pytest.mark.reference
def test_eigenvectors_are_those_of_the_whole_matrix(rng: np.random.Generator) -> None:
    matrix = rng.standard_normal((150, 150))
    matrix = matrix + matrix.T + 30 * np.outer(matrix[0], matrix[0]) / 150
    values, vectors = leading_eigenvectors(matrix, 4, tolerance=1e-10)
    wanted = np.linalg.eigvalsh(matrix)
    assert np.abs(values) == pytest.approx(np.sort(np.abs(wanted))[::-1][:4], rel=1e-8)
    assert np.allclose(matrix @ vectors, vectors * values, atol=1e-6 * abs(values[0]))


def spread(points: FloatArray, labels: IntArray) -> float:
    return sum(
        float(((points[labels == one] - points[labels == one].mean(axis=0)) ** 2).sum())
        for one in np.unique(labels)
    )


@pytest.mark.reference
def test_kmeans_is_as_good_as_the_best_of_scipys(rng: np.random.Generator) -> None:
    points = (
        rng.standard_normal((300, 3)) + 4 * rng.standard_normal((6, 3))[rng.integers(6, size=300)]
    )
    theirs = min(
        spread(points, np.asarray(kmeans2(points, 6, minit="++", rng=rng, missing="raise")[1]))
        for _ in range(10)
    )
    assert spread(points, kmeans(points, 6)) <= 1.02 * theirs
    assert spread(points, rng.integers(6, size=300)) > 2 * theirs


@pytest.mark.unit
def test_starts_of_many_points_are_compared_on_some(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Three clouds of 3000 points, 17 deviations apart: the blocks as drawn, all points in one run."""
    truth = np.repeat([0, 1, 2], 3000)
    points = 12.0 * np.eye(3)[truth] + rng.normal(size=(9000, 3))
    runs: list[int] = []
    lloyd = clusters._lloyd

    def counted(points: FloatArray, means: FloatArray) -> clusters._Clusters:
        runs.append(len(points))
        return lloyd(points, means)

    monkeypatch.setattr(clusters, "_lloyd", counted)
    assert np.array_equal(numbered_by_first(kmeans(points, 3)), truth)
    assert runs == [clusters.TRIED] * clusters.RESTARTS + [9000]
