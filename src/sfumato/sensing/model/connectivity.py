"""How fast a graph mixes, and how far no edge can move the readings because of it: Lemma 18 and a rival."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from sfumato._types import FloatArray
from sfumato.sensing.model.operators.protocol import CHUNK, Diffusion

SAME = (
    1e-9  # eigenvalues nearer than this, times the largest, have their eigenvectors taken together
)


@dataclass(frozen=True, slots=True)
class Connectivity:
    """The algebraic connectivity s_2 of a graph, and two bounds on what an edge does, beside the truth.

    `lemma` is the sum of [gilbert18, lem. 18] [mcmillan18, lem. 8.9], the largest over edges (i, j)
    of sum_k>=2 exp(-rate s_k) |U_ik - U_jk|, U the eigenvectors. Those of one eigenvalue are taken
    together,
    |P (e_i - e_j)|_2 for the projection P on them: the triangle inequality gives it as well, and it is at
    most the sum for any choice of them. None on a graph too large for all eigenvectors.
    `orthogonality` is sqrt(2) exp(-rate s_2), since e_i - e_j has norm sqrt(2) and is orthogonal to
    the one eigenvector that does not decay. Neither is always the smaller. `step` is what the worst
    edge does.
    """

    algebraic: float
    orthogonality: float
    lemma: float | None
    step: float

    @property
    def bound(self) -> float:
        """The smaller of the two: no edge moves the readings by more."""
        return self.orthogonality if self.lemma is None else min(self.lemma, self.orthogonality)

    @property
    def sentence(self) -> str:
        """What is known of edges, in plain words."""
        if self.lemma is None:
            how = "by orthogonality (the graph is too large for the sum of Lemma 18)"
        elif self.lemma < self.orthogonality:
            how = f"by Lemma 18 (orthogonality alone gives {self.orthogonality:.4g})"
        else:
            how = f"by orthogonality (Lemma 18 gives {self.lemma:.4g})"
        return (
            f"The graph's algebraic connectivity is {self.algebraic:.4g}; {how} no edge moves the readings "
            f"by more than {self.bound:.4g}; the worst moves them by {self.step:.4g}."
        )


def connectivity(
    diffusion: Diffusion, values: FloatArray, step: float, *, symmetric: bool, whole: bool
) -> Connectivity:
    """The least positive eigenvalue of the Laplacian: that of the slowest decay orthogonal to constants.

    `values` are the operator's singular values, which those of a `symmetric` one follow from, and `step`
    the largest change by an edge; all eigenvectors are computed if `whole`.
    """
    n, rate = diffusion.laplacian.shape[0], diffusion.rate
    if n == 1:
        return Connectivity(math.inf, 0.0, 0.0, step)
    lemma = None
    if whole:
        algebraic, lemma = _lemma_18(diffusion)
    elif symmetric:
        algebraic = -math.log(float(values[1])) / rate
    else:

        def decay(v: FloatArray) -> FloatArray:
            flat = v.ravel() - v.mean()
            out = diffusion.spread(flat)
            return np.asarray(out - out.mean())

        map_: Any = LinearOperator((n, n), matvec=decay, dtype=np.float64)
        slowest = float(
            eigsh(map_, k=1, which="LA", v0=start(n), tol=1e-6, return_eigenvectors=False)[0]
        )
        algebraic = -math.log(slowest) / rate
    return Connectivity(algebraic, math.sqrt(2) * math.exp(-rate * algebraic), lemma, step)


def laplacian_values(diffusion: Diffusion) -> FloatArray:
    """The eigenvalues of the Laplacian, from 0 on."""
    return np.asarray(np.maximum(np.linalg.eigvalsh(diffusion.laplacian.toarray()), 0.0))


def start(size: int) -> FloatArray:
    """A vector to start iterations from, orthogonal to no eigenvector we have met; no chance in it."""
    return np.asarray(1 + np.cos(np.arange(size) ** 2))


def _lemma_18(diffusion: Diffusion) -> tuple[float, float]:
    """The algebraic connectivity, and the lemma's sum for the edge where it is largest."""
    found, vectors = np.linalg.eigh(diffusion.laplacian.toarray())
    values = np.maximum(found, 0.0)
    begins = np.flatnonzero(np.diff(values[1:], prepend=-np.inf) > SAME * values[-1])
    with np.errstate(under="ignore"):
        decay = np.exp(-diffusion.rate * values[1:][begins])
    links = sparse.triu(diffusion.laplacian, 1).tocoo()
    largest, edges = 0.0, np.stack([links.row, links.col], axis=1)
    for part in np.array_split(edges, max(1, math.ceil(edges.size * values.size / CHUNK))):
        squares = np.square(vectors[part[:, 0], 1:] - vectors[part[:, 1], 1:])
        sums = np.sqrt(np.add.reduceat(squares, begins, axis=1)) @ decay
        largest = max(largest, float(sums.max(initial=0.0)))
    return float(values[1]), largest
