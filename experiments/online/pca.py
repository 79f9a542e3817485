"""Which directions of a stream of points to throw away: online principal components, one point at a time.

A play is a matrix X with 0 <= X <= I and trace k: a projection on k directions that are thrown
away, or a mix of such. A point a of length at most 1 then costs a' X a, the squared length that is
lost: its compression error. [mcmillan18, sec. 12.2.2] means this game, though it calls X the
projection that is kept. What is true of each learner, with proofs: docs/proofs/online-matrices.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from experiments.online.ensemble import laplace_eigenvalues
from scipy import special, stats

from sfumato._types import FloatArray
from sfumato._validate import require
from sfumato.errors import InvalidInput
from sfumato.online import regret_bound
from sfumato.privacy import gaussian_sigma

Learner = Callable[[FloatArray], FloatArray]

TIED = 1e-9


@dataclass(frozen=True, slots=True)
class Average:
    """A mean of so many independent draws; the true one lies in [low, high] with about this confidence."""

    mean: float
    low: float
    high: float
    draws: int
    confidence: float


def pca_leader(total: FloatArray, rank: int) -> FloatArray:
    """The directions that lost least so far; those that are tied share what is left of the rank.

    >>> pca_leader(np.diag([3.0, 1.0, 1.0]), 1).diagonal()
    array([0. , 0.5, 0.5])
    """
    values, vectors = _spectrum(total, rank)
    last = values[rank - 1]
    near = TIED * max(1.0, float(np.abs(values).max()))
    ahead, tied = values < last - near, np.abs(values - last) <= near
    return _matrix(vectors, ahead + tied * ((rank - ahead.sum()) / tied.sum()))


def perturbed_leader(total: FloatArray, rank: int, *, noise: FloatArray) -> FloatArray:
    """The leader after noise was taken from the losses: `symmetric_laplace` or `gaussian_orthogonal`.

    Privacy: one step. With symmetric Laplace noise, one more point changes the chance of every play
    by a factor e**epsilon at most [mcmillan18, lem. 12.5]. That makes a play stable; it does not
    make the points private.
    """
    return pca_leader(total - noise, rank)


def exponentiated_gradient(total: FloatArray, rank: int, *, rate: float) -> FloatArray:
    """The play we recommend: eigenvalues in proportion to exp(-rate * loss), none above 1.

    Matrix exponentiated gradient with capping [warmuth08], in its lazy form: a function of the
    losses so far, without noise. `tuned_rate` gives a rate, `exponentiated_bound` what it promises.

    >>> exponentiated_gradient(np.diag([0.0, 1.0, 1.0]), 2, rate=50.0).diagonal()
    array([1. , 0.5, 0.5])
    """
    require(0 < rate < math.inf, "rate must be positive and finite", rate)
    values, vectors = _spectrum(total, rank)
    return _matrix(vectors, _capped(-rate * values, rank))


def draw_projection(play: FloatArray, *, rng: np.random.Generator) -> FloatArray:
    """A projection whose mean is the play: what to throw away if it must be whole directions.

    Eigenvectors are taken where the running sum of the eigenvalues passes u, u + 1, ...: as many as
    the trace says, each with the chance of its eigenvalue. Its expected loss is that of the play.
    """
    values, vectors = _eigen(play)
    rank = round(float(values.sum()))
    if not (
        np.abs(values - 0.5).max() <= 0.5 + TIED
        and abs(float(values.sum()) - rank) <= TIED * values.size
    ):
        raise InvalidInput(
            "a play must have eigenvalues in [0, 1] that add up to an integer, got "
            f"{values.min():g} to {values.max():g} with sum {values.sum():g}; nothing was drawn"
        )
    ends = np.round(np.cumsum(np.clip(values, 0, 1)), 12)  # a sum that should be an integer is one
    passed = np.ceil(ends - rng.random())
    chosen = np.diff(passed, prepend=0.0) > 0
    return _matrix(vectors, chosen.astype(np.float64))


def play(points: FloatArray, learner: Learner) -> FloatArray:
    """The plays of a learner who sees every point after it has played, of shape (rounds, size, size).

    The learner is called anew each round: one that draws its noise when called has fresh noise,
    which it needs against whoever watches its plays.
    """
    return np.stack([learner(total) for total in running_totals(points)[:-1]])


def lookahead_play(points: FloatArray, learner: Learner) -> FloatArray:
    """The plays of the same learner one round early: it knows each point before it plays. Nobody can."""
    return np.stack([learner(total) for total in running_totals(points)[1:]])


def running_totals(points: FloatArray) -> FloatArray:
    """The sums of a a' over the first 0, 1, ... points, of shape (rounds + 1, size, size)."""
    _require_points(points)
    squares = points[:, :, None] * points[:, None, :]
    return np.concatenate([np.zeros((1, *squares.shape[1:])), np.cumsum(squares, axis=0)])


def pca_best_loss(points: FloatArray, rank: int) -> float:
    """What the best fixed play loses: the sum of the least eigenvalues of the total."""
    _require_points(points)
    return float(np.maximum(_spectrum(points.T @ points, rank)[0][:rank], 0.0).sum())


def pca_regret(points: FloatArray, rank: int, *, plays: FloatArray) -> float:
    """How much more these plays lose than the best fixed one.

    >>> points = np.eye(2)[[0, 1, 0, 1]]
    >>> plays = play(points, lambda total: exponentiated_gradient(total, 1, rate=1.0))
    >>> round(pca_regret(points, 1, plays=plays), 3)
    0.462
    """
    best = pca_best_loss(points, rank)
    if plays.shape != (*points.shape, points.shape[1]):
        raise InvalidInput(
            f"plays must be one square matrix for each of {len(points)} points, got shape {plays.shape}; "
            "no regret was computed"
        )
    return float(np.einsum("ti,tij,tj->", points, plays, points)) - best


def perturbed_regrets(
    points: FloatArray, rank: int, *, noises: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Regrets of following and of being the perturbed leader, of each noise kept for all rounds.

    Against points fixed in advance, the expected regret is the same as with fresh noise
    [mcmillan18, sec. 12.2], at one draw for all rounds; and regrets of different draws are
    independent.
    """
    totals, best = running_totals(points), pca_best_loss(points, rank)
    if noises.ndim != 3 or noises.shape[1:] != totals.shape[1:]:
        raise InvalidInput(
            f"noises must be matrices of shape {totals.shape[1:]}, got {noises.shape}; nothing was played"
        )
    followed, been = np.empty(len(noises)), np.empty(len(noises))
    for place, noise in enumerate(noises):
        # Noise leaves no ties: the eigenvectors of the least eigenvalues are the play.
        kept = np.linalg.eigh(totals - noise)[1][:, :, :rank]
        followed[place] = (np.einsum("ti,tij->tj", points, kept[:-1]) ** 2).sum() - best
        been[place] = (np.einsum("ti,tij->tj", points, kept[1:]) ** 2).sum() - best
    return followed, been


def average(values: FloatArray, *, confidence: float = 0.95) -> Average:
    """The mean of independent values with an interval by Student's t."""
    require(0 < confidence < 1, "confidence must be above 0 and below 1", confidence)
    if not (values.ndim == 1 and values.size >= 2 and np.isfinite(values).all()):
        raise InvalidInput(
            f"an average needs two finite values or more, got {values}; none was made"
        )
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    half = float(stats.t.isf((1 - confidence) / 2, values.size - 1)) * error
    return Average(mean, mean - half, mean + half, values.size, confidence)


def laplace_gain(
    size: int, rank: int, *, draws: int, rng: np.random.Generator, confidence: float = 0.95
) -> Average:
    """The expected sum of the `rank` largest eigenvalues of `symmetric_laplace` with epsilon 1.

    Their sum of sizes is Gamma(size (size + 1) / 2), independent of their proportions: only those
    are drawn.
    """
    _require_rank(size, rank)
    drawn = (laplace_eigenvalues(size, 1.0, rng=rng).eigenvalues for _ in range(draws))
    shares = np.array([values[-rank:].sum() / np.abs(values).sum() for values in drawn])
    return average(size * (size + 1) / 2 * shares, confidence=confidence)


def gaussian_bound(
    best: float, *, size: int, rank: int, rounds: int, epsilon: float, delta: float
) -> float:
    """What a leader perturbed by `gaussian_orthogonal` loses at most, on average, beyond the best.

    sigma is `gaussian_sigma(epsilon, delta, sensitivity=1)`. The largest eigenvalue is on average
    at most sigma sqrt(2 size), and every round adds delta [mcmillan18, thm. 12.3]. Of [mcmillan18,
    thm. 12.4], for this game. With `symmetric_laplace` it is `regret_bound` with `laplace_gain`
    over epsilon ahead.
    """
    _require_rank(size, rank)
    gain = rank * gaussian_sigma(epsilon, delta, sensitivity=1) * math.sqrt(2 * size)
    return regret_bound(epsilon, best_loss=best, ahead=gain, forgiven=delta * rounds)


def tuned_rate(best: float, *, size: int, rank: int) -> float:
    """The rate for `exponentiated_gradient` when the best play loses about this much.

    ln(1 + sqrt(2 k ln(size / k) / best)) [warmuth08]. If the best loses at most this much, the
    regret is at most sqrt(2 best k ln(size / k)) + k ln(size / k).
    """
    require(0 < best < math.inf, "best must be positive and finite", best)
    return math.log1p(math.sqrt(2 * _entropy(size, rank) / best))


def exponentiated_bound(best: float, *, size: int, rank: int, rate: float) -> float:
    """What `exponentiated_gradient` loses at most beyond a best play that loses `best`, whatever the points.

    (rate best + k ln(size / k)) / (1 - e**-rate) - best [warmuth08].

    >>> round(exponentiated_bound(0.0, size=16, rank=1, rate=1.0), 2)
    4.39
    """
    require(0 < rate < math.inf, "rate must be positive and finite", rate)
    return (rate * best + _entropy(size, rank)) / -math.expm1(-rate) - best


def _entropy(size: int, rank: int) -> float:
    _require_rank(size, rank)
    return rank * math.log(size / rank)


def _capped(logs: FloatArray, rank: int) -> FloatArray:
    """min(1, c exp(logs)) with the c that makes the sum `rank`; logs descend, so the first are capped."""
    for capped in range(rank):
        rest = logs[capped:]
        shares = (rank - capped) * np.exp(rest - special.logsumexp(rest))
        if shares[0] <= 1:
            break
    return np.concatenate([np.ones(capped), np.minimum(shares, 1.0)])


def _spectrum(total: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    values, vectors = _eigen(total)
    _require_rank(len(total), rank)
    return values, vectors


def _eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    square = (
        matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and bool(np.isfinite(matrix).all())
    )
    if not (
        square
        and np.allclose(matrix, matrix.T, rtol=0, atol=TIED * (1 + float(np.abs(matrix).max())))
    ):
        raise InvalidInput(
            f"a matrix must be square, finite and symmetric, got shape {matrix.shape}; nothing was played"
        )
    values, vectors = np.linalg.eigh(matrix)
    return values, vectors


def _matrix(vectors: FloatArray, values: FloatArray) -> FloatArray:
    return np.asarray((vectors * values) @ vectors.T)


def _require_points(points: FloatArray) -> None:
    if points.ndim != 2 or not np.isfinite(points).all():
        raise InvalidInput(
            f"points must be a finite array (rounds, size), got {points.shape}; nothing was played"
        )
    longest = float(np.linalg.norm(points, axis=1).max(initial=0.0))
    if longest > 1 + TIED:
        raise InvalidInput(
            f"points must have a length of at most 1, got {longest:g}; nothing was played"
        )


def _require_rank(size: int, rank: int) -> None:
    require(1 <= rank < size, f"rank must be at least 1 and below the size {size}", rank)
