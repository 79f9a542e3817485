"""Random symmetric matrices that perturb a leader: the symmetric Laplace law, drawn exactly, and a Gaussian.

The first is the "Laplace-on-diagonal" ensemble of [mcmillan18, sec. 12.2.2]. What is true of it,
and which of the thesis' sentences about it are not: docs/proofs/online-matrices.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from sfumato._types import FloatArray
from sfumato._validate import require
from sfumato.errors import InvalidInput, SolverFailed

TOLERANCE = 1e-9
DOUBLINGS = 16


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Eigenvalues in ascending order, and how surely: the exact draw lies within `gap` of each of them.

    `sweeps` is how far into the past it was necessary to go.
    """

    eigenvalues: FloatArray
    sweeps: int
    gap: float


def symmetric_laplace(size: int, epsilon: float, *, rng: np.random.Generator) -> FloatArray:
    """A symmetric matrix to hide another one: its density is proportional to exp(-epsilon * nuclear norm).

    Privacy: the sum with a symmetric matrix is PureDP(epsilon) for matrices at nuclear distance at
    most 1 [mcmillan18, lem. 12.5]. It is drawn with floats, for learning: no release. Proof:
    docs/proofs/online-matrices.md
    """
    eigenvalues = laplace_eigenvalues(size, epsilon, rng=rng).eigenvalues
    vectors = haar(size, rng=rng)
    return _symmetric((vectors * eigenvalues) @ vectors.T)


def laplace_eigenvalues(size: int, epsilon: float, *, rng: np.random.Generator) -> Draw:
    """The eigenvalues of `symmetric_laplace`, by coupling from the past [propp96].

    Their density is proportional to the product of |x_i - x_j| times exp(-epsilon * sum of |x_i|):
    they repel each other, and are not independent Laplace variables. The heat bath that draws one
    of them at a time from its law given the others keeps the order of two states, so that whatever
    begins between -infinity and +infinity ends between the two that begin there.

    >>> draw = laplace_eigenvalues(3, 1.0, rng=np.random.default_rng(7))
    >>> draw.gap < 1e-9, bool((np.diff(draw.eigenvalues) > 0).all())
    (True, True)
    """
    _require_size(size)
    require(0 < epsilon < math.inf, "epsilon must be positive and finite", epsilon)
    from experiments.online.ensemble_kernel import run

    points, primitive = _panel(size + 18)
    sweeps = 8 * max(2, size)  # half of all draws or more need no others, for every size tried
    uniforms = rng.random((sweeps, 2 * size))
    for _ in range(DOUBLINGS):
        high, low = np.full(size, np.inf), np.full(size, -np.inf)
        run(high, uniforms, points, primitive)
        run(low, uniforms, points, primitive)
        gap = float(np.abs(high - low).max())
        if gap <= TOLERANCE:
            return Draw((high + low) / (2 * epsilon), sweeps, gap / epsilon)
        # What was drawn stays what happens last; only the past grows.
        uniforms = np.concatenate([rng.random((sweeps, 2 * size)), uniforms])
        sweeps *= 2
    raise SolverFailed(
        f"both states must meet within {TOLERANCE:g}, got {gap:g} of {sweeps // 2} sweeps; nothing was drawn"
    )


def gaussian_orthogonal(size: int, sigma: float, *, rng: np.random.Generator) -> FloatArray:
    """A symmetric matrix with density proportional to exp(-Frobenius norm**2 / (2 sigma**2)).

    Its diagonal has variance sigma**2, the rest sigma**2 / 2. With `sfumato.privacy.gaussian_sigma`
    the sum with a symmetric matrix is ApproxDP for matrices at Frobenius distance at most 1: this
    is how [dworkgauss14] hides a covariance. Drawn with floats, for learning: no release.
    """
    _require_size(size)
    require(0 < sigma < math.inf, "sigma must be positive and finite", sigma)
    normal = sigma * rng.standard_normal((size, size))
    return _symmetric(normal)


def haar(size: int, *, rng: np.random.Generator) -> FloatArray:
    """An orthogonal matrix that favours no direction [mezzadri07, sec. 5]."""
    _require_size(size)
    q, r = np.linalg.qr(rng.standard_normal((size, size)))
    # A QR decomposition is unique once R has a positive diagonal; without that the law is not
    # Haar's.
    return np.asarray(q * np.where(np.diag(r) < 0, -1.0, 1.0))


def privacy_loss(
    output: FloatArray, first: FloatArray, second: FloatArray, *, epsilon: float
) -> float:
    """How much likelier the first matrix makes a perturbed output than the second, as a logarithm.

    epsilon (|output - second| - |output - first|) in nuclear norm, at most epsilon |first -
    second|: that is the proof of [mcmillan18, lem. 12.5].

    >>> spike = np.diag([1.0, 0.0])
    >>> round(privacy_loss(3 * spike, spike, 0 * spike, epsilon=0.5), 12)
    0.5
    """
    require(0 < epsilon < math.inf, "epsilon must be positive and finite", epsilon)
    return epsilon * (nuclear_norm(output - second) - nuclear_norm(output - first))


def nuclear_norm(matrix: FloatArray) -> float:
    """The sum of the sizes of the eigenvalues of a symmetric matrix; of a a', the squared length of a."""
    if not (matrix.ndim == 2 and np.array_equal(matrix, matrix.T) and np.isfinite(matrix).all()):
        raise InvalidInput(
            f"a matrix must be symmetric and finite, got shape {matrix.shape}; it was not measured"
        )
    return float(np.abs(np.linalg.eigvalsh(matrix)).sum())


def least_top(size: int, epsilon: float) -> float:
    """What the largest eigenvalue of `symmetric_laplace` is on average at least: it grows like the size.

    (size + 1) (1 - 2**(1 - size)) / (4 epsilon); in truth it is about pi size / (2 epsilon) when
    the size is large. [mcmillan18, lem. 12.6] has (1 + ln size) / epsilon, and is false from size
    14 on by this alone.

    >>> least_top(13, 1.0) > 1 + math.log(13), least_top(14, 1.0) > 1 + math.log(14)
    (False, True)
    """
    _require_size(size)
    require(0 < epsilon < math.inf, "epsilon must be positive and finite", epsilon)
    return (size + 1) * (1 - 2.0 ** (1 - size)) / (4 * epsilon)


@cache
def _panel(nodes: int) -> tuple[FloatArray, FloatArray]:
    """Chebyshev points, and for the value at each of them a row: the series of the integral from -1.

    After the series a row has the integral over all of [-1, 1]. On half a panel of length 2 the
    series of e**x falls as 1 / k!: 18 points more than the polynomial has leave 3e-16.
    """
    angles = math.pi * (np.arange(nodes) + 0.5) / nodes
    series = 2 / nodes * np.cos(np.outer(np.arange(nodes), angles))
    series[0] /= 2
    integral = np.polynomial.chebyshev.chebint(series, lbnd=-1)
    return np.cos(angles), np.ascontiguousarray(np.vstack([integral, integral.sum(axis=0)]).T)


def _symmetric(matrix: FloatArray) -> FloatArray:
    return np.asarray((matrix + matrix.T) / 2)


def _require_size(size: int) -> None:
    require(size >= 1, "size must be at least 1", size)
