"""Follow the perturbed leader on a Euclidean ball with Gaussian noise: Theorem 12.4 of the thesis.

A play is a point of the ball, a loss a vector, and what is lost their inner product. Losses are
never negative if every loss vector makes an angle with the centre that is small enough: <centre,
loss> >= radius
|loss|. A ball about 0 never has that. Proofs: docs/proofs/online.md
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from sfumato._types import FloatArray
from sfumato._validate import require
from sfumato.errors import InvalidInput
from sfumato.online import regret_bound, totals_before
from sfumato.privacy import gaussian_sigma
from sfumato.privacy.accounting import gaussian_delta


def expected_direction(losses: npt.ArrayLike, sigma: float) -> FloatArray:
    """Where a shifted Gaussian points on average, E (L - Z) / |L - Z|, for every row L.

    L / |L| times sqrt(2 / pi) r times the integral of exp(-(r sin t)**2 / 2) cos(t)**n over t from
    0 to pi / 2, r = |L| / sigma, n the dimension: a confluent hypergeometric function without its
    cancellation.

    >>> expected_direction([[3.0]], 2.0).round(6) == np.round(special.erf(1.5 / math.sqrt(2)), 6)
    array([[ True]])
    """
    require(math.isfinite(sigma) and sigma > 0, "sigma must be above 0 and finite", sigma)
    rows = np.asarray(losses, dtype=np.float64)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InvalidInput(f"losses must be a table of finite numbers, got shape {rows.shape}")
    ratio = np.linalg.norm(rows, axis=1, keepdims=True) / sigma
    dimension = rows.shape[1]
    # Where sin(t)**2 (r**2 + n) is above 80 the integrand is below exp(-40).
    end = np.arcsin(np.minimum(1.0, np.sqrt(80 / (ratio**2 + dimension))))
    nodes, weights = np.polynomial.legendre.leggauss(64)
    t = end / 2 * (1 + nodes)
    inside = np.exp(-0.5 * (ratio * np.sin(t)) ** 2) * np.cos(t) ** dimension
    length = math.sqrt(2 / math.pi) * (end / 2 * weights * inside).sum(axis=1, keepdims=True)
    pointing: FloatArray = rows / sigma * length
    return pointing


def ball_play(
    losses: npt.ArrayLike, sigma: float, *, center: npt.ArrayLike, radius: float
) -> FloatArray:
    """The expected play of each round, knowing the loss vectors of the rounds before (one row each).

    argmin <x, L - Z> over the ball is its centre minus the radius times the direction of L - Z.
    """
    rows = np.asarray(losses, dtype=np.float64)
    return _points(totals_before(rows), sigma, center=center, radius=radius)


def ball_lookahead_play(
    losses: npt.ArrayLike, sigma: float, *, center: npt.ArrayLike, radius: float
) -> FloatArray:
    """What would be played if the loss vector of the round were known as well."""
    return _points(np.cumsum(np.asarray(losses), axis=0), sigma, center=center, radius=radius)


def ball_best_loss(losses: npt.ArrayLike, *, center: npt.ArrayLike, radius: float) -> float:
    """The total loss of the best point of the ball, L*: <centre, L> - radius |L|.

    Raises where some round could have a negative loss: the bounds are about losses alone.
    """
    rows, middle = np.asarray(losses, dtype=np.float64), np.asarray(center, dtype=np.float64)
    least = rows @ middle - radius * np.linalg.norm(rows, axis=1)
    slack = 1e-12 * float(np.linalg.norm(middle) + radius)
    if np.any(least < -slack * np.linalg.norm(rows, axis=1)):
        raise InvalidInput(
            f"losses must be at least 0 on all of the ball, got one of {least.min():g}; no bound was given"
        )
    total = rows.sum(axis=0)
    return max(0.0, float(total @ middle - radius * np.linalg.norm(total)))


def ball_excess(sigma: float, *, dimension: int, radius: float) -> float:
    """The most regret of playing a round ahead: radius E |Z| = radius sigma sqrt(2) G((n + 1)/2) / G(n/2).

    At most radius sigma sqrt(n); the proof of [mcmillan18, thm. 12.4] has sqrt(2 n).
    """
    return radius * sigma * math.sqrt(2) * float(special.poch(dimension / 2, 0.5))


def leader_bound(losses: npt.ArrayLike, *, center: npt.ArrayLike, radius: float) -> float:
    """The most regret of the leader itself, without noise: 2 radius times the sum of |loss|**2 / |L|.

    L is the sum of losses up to and with each round. All losses are of one side, so that |L| grows
    and two leaders in a row are close: of order ln T, less than any noise achieves. The first round
    counts in full.
    """
    ball_best_loss(losses, center=center, radius=radius)
    rows = np.asarray(losses, dtype=np.float64)
    rows = rows[np.any(rows != 0, axis=1)]
    sizes, sums = np.linalg.norm(rows, axis=1), np.linalg.norm(np.cumsum(rows, axis=0), axis=1)
    return float(2 * radius * np.sum(sizes * np.minimum(1.0, sizes / sums)))


def gaussian_regret_bound(
    sigma: float, *, best_loss: float, ahead: float, longest: float, max_total: float
) -> float:
    """The most regret of a perturbed leader with Gaussian noise, on any set of plays.

    The least over epsilon of `regret_bound` with the exact delta of the noise [balle18, thm. 8]. No
    loss is longer than `longest` in l2; `max_total` is the sum over all rounds of the largest loss a
    play can have.
    """

    def at(epsilon: float) -> float:
        delta = gaussian_delta(epsilon, sigma=sigma, sensitivity=longest)
        return regret_bound(epsilon, best_loss=best_loss, ahead=ahead, forgiven=delta * max_total)

    # Every epsilon gives a bound; the search need not be exact.
    found = optimize.minimize_scalar(
        lambda log: at(math.exp(log)), bounds=(-12.0, 3.0), method="bounded"
    )
    return float(found.fun)


def tuned_sigma(best_loss: float, *, unit_ahead: float, longest: float, rounds: int) -> float:
    """The noise of Theorem 12.4, in the form that holds: exact for delta = 1 / rounds and its epsilon.

    epsilon = min(1, sqrt(K / L*)), K = `unit_ahead` `longest` sqrt(2 ln(1.25 rounds)), `unit_ahead`
    the regret ahead at sigma 1. The printed delta, 1 / (2 T R), has a unit, and is above 1 for
    small R.
    """
    unit = _unit(unit_ahead, longest=longest, rounds=rounds)
    epsilon = min(1.0, math.sqrt(unit / best_loss)) if best_loss > 0 else 1.0
    return gaussian_sigma(epsilon, 1 / rounds, sensitivity=longest)


def gaussian_first_order_bound(
    best_loss: float, *, unit_ahead: float, longest: float, rounds: int, largest: float
) -> float:
    """The most regret with `tuned_sigma`: 5 sqrt(K L*) + 5 K + `largest`, the largest loss of one play.

    On a ball K is at most R sqrt(2 n ln(1.25 T)): of order n**(1/4) sqrt(R L*) ln(T)**(1/4) + R
    sqrt(n ln T), with roots of the logarithms of [mcmillan18, thm. 12.4].
    """
    unit = _unit(unit_ahead, longest=longest, rounds=rounds)
    return 5 * math.sqrt(unit * best_loss) + 5 * unit + largest


def _unit(unit_ahead: float, *, longest: float, rounds: int) -> float:
    require(rounds >= 2, "there must be at least 2 rounds", rounds)
    return unit_ahead * longest * math.sqrt(2 * math.log(1.25 * rounds))


def _points(rows: FloatArray, sigma: float, *, center: npt.ArrayLike, radius: float) -> FloatArray:
    require(radius > 0, "the radius must be above 0", radius)
    return np.asarray(center, dtype=np.float64) - radius * expected_direction(rows, sigma)
