"""How much more a learner lost than the best candidate in hindsight, and how much more it can lose.

The bounds hold for losses of at least 0 and at most 1 that were fixed beforehand; divide larger
ones by the largest first. A best loss may be given as a number, of which whoever computed it
vouches for that, or as the table of losses, which is checked. Proofs: docs/proofs/online.md
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato._validate import require
from sfumato.errors import InvalidInput
from sfumato.online.perturbations import excess, perturbation
from sfumato.online.simplex import expected_play, totals_before


def regret(losses: npt.ArrayLike, plays: npt.ArrayLike) -> float:
    """What was lost beyond the loss of the best single candidate, a row of losses and of plays each round.

    Args:
        losses: Losses, one row for each round and one column for each candidate; finite.
        plays: Probabilities that were played, of the same shape.

    Returns:
        The regret, in the unit of losses; it may be negative.

    Raises:
        InvalidInput: The two are not tables of one shape.

    Example:
        >>> regret([[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]])
        0.5

    """
    suffered, played = (np.asarray(table, dtype=np.float64) for table in (losses, plays))
    if suffered.ndim != 2 or suffered.shape != played.shape:
        raise InvalidInput(
            f"losses and plays must be tables of one shape, got {suffered.shape} and {played.shape}; "
            "nothing was compared"
        )
    return float(np.sum(suffered * played) - best_loss(suffered))


def best_loss(losses: npt.ArrayLike) -> float:
    """The total loss of the best single candidate: L* in every bound here.

    Args:
        losses: Losses, one row for each round and one column for each candidate; finite.

    Returns:
        The least column sum.

    """
    return float(np.sum(np.asarray(losses, dtype=np.float64), axis=0).min())


def regret_bound(
    epsilon: float, *, best_loss: npt.ArrayLike, ahead: float, forgiven: float = 0.0
) -> float:
    """The most regret of a learner whose plays change by at most a factor e**epsilon in one round.

    Plays of a perturbed leader do where no loss is above 1; with losses up to F its epsilon is F
    times that. (e**epsilon - 1) L* + e**epsilon R + forgiven, R = `ahead` the regret of the one
    that plays a round ahead (for a perturbed leader at most `excess`), forgiven the sum of delta
    sup <x, loss>. The last line but one of the proof of [mcmillan18, thm. 12.3]: less than the
    theorem, and without its epsilon <= 1.

    Args:
        epsilon: How far plays move in one round, at least 0.
        best_loss: The total loss of the best candidate, at least 0; or the table of losses, whose
            entries must lie in [0, 1].
        ahead: The regret of playing a round ahead, at least 0.
        forgiven: What delta allows in all rounds together.

    Returns:
        The most regret, in the unit of losses.

    Raises:
        InvalidParameter: A parameter is below 0, or losses are not in [0, 1].

    Example:
        >>> regret_bound(0.1, best_loss=100, ahead=30) < 2 * 0.1 * 100 + 3 * 30
        True

    """
    require(epsilon >= 0, "epsilon must be at least 0", epsilon)
    require(ahead >= 0, "the regret ahead must be at least 0", ahead)
    return math.expm1(epsilon) * _best(best_loss) + math.exp(epsilon) * ahead + forgiven


def tuned_epsilon(name: str, best_loss: npt.ArrayLike, *, count: int) -> float:
    """The epsilon whose noise has the least regret bound when the best loss will be so large.

    When no loss is above 1. The minimum of (e**e - 1) L* + e**e B / e is where L* e**2 = B (1 - e):
    at 2 / (1 + sqrt(1 + 4 L* / B)), B the `excess` of the noise at epsilon 1. It is never above 1.

    Args:
        name: The noise: "laplace", "gumbel", "frechet", "weibull", "pareto" or "exponential".
        best_loss: The total loss of the best candidate, at least 0; or the table of losses, whose
            entries must lie in [0, 1].
        count: How many candidates, at least 2.

    Returns:
        The epsilon, above 0 and at most 1.

    Raises:
        InvalidParameter: The name is unknown, or losses are not in [0, 1].

    Example:
        >>> tuned_epsilon("gumbel", 0.0, count=16)
        1.0

    """
    return 2 / (1 + math.sqrt(1 + 4 * _best(best_loss) / unit_excess(name, count=count)))


def unit_excess(name: str, *, count: int) -> float:
    """The `excess` of a noise at epsilon 1; at any other it is this over epsilon.

    For all noises here at most 2.9 ln(count) [mcmillan18, lem. 13.7].
    """
    require(count >= 2, "there must be at least 2 candidates", count)
    return excess(perturbation(name, 1.0, count=count), count)


def first_order_bound(name: str, best_loss: npt.ArrayLike, *, count: int) -> float:
    """The most regret of the perturbed leader with `tuned_epsilon`: of order sqrt(L* ln N) + ln N.

    When no loss is above 1. 2 sqrt(B L*) + 3 (e - 1) B: [mcmillan18, thm. 13.1] with its constants,
    for a best loss that is known.

    Args:
        name: The noise: "laplace", "gumbel", "frechet", "weibull", "pareto" or "exponential".
        best_loss: The total loss of the best candidate, at least 0; or the table of losses, whose
            entries must lie in [0, 1].
        count: How many candidates, at least 2.

    Returns:
        The most regret, in the unit of losses.

    Raises:
        InvalidParameter: The name is unknown, or losses are not in [0, 1].

    Example:
        >>> first_order_bound("gumbel", [[5.0, 0.0], [0.0, 5.0]], count=2)
        Traceback (most recent call last):
            ...
        sfumato.errors.InvalidParameter: losses must be between 0 and 1, got some from 0 to 5; ...

    """
    unit = unit_excess(name, count=count)
    return 2 * math.sqrt(unit * _best(best_loss)) + 3 * (math.e - 1) * unit


def hedge_rate(best_loss: npt.ArrayLike, *, count: int) -> float:
    """The rate of Hedge for losses in [0, 1] and a best loss that is known: a mark for untuned learners.

    sqrt(2 ln N / L*), and 1 for L* = 0. The formula of a bound, not the best rate in hindsight;
    without the ln(1 + ...) of [cesabianchi06, cor. 2.4], which loses more where L* is small.

    Args:
        best_loss: The total loss of the best candidate, at least 0; or the table of losses, whose
            entries must lie in [0, 1].
        count: How many candidates, at least 2.

    Returns:
        The rate, above 0.

    Raises:
        InvalidParameter: Losses are not in [0, 1].

    Example:
        >>> round(hedge_rate(100.0, count=16), 3)
        0.235

    """
    best = _best(best_loss)
    return math.sqrt(2 * math.log(count) / best) if best > 0 else 1.0


def play_doubling(losses: npt.ArrayLike, name: str) -> FloatArray:
    """Plays of a perturbed leader that is not told the best loss: it starts afresh when its guess is passed.

    Guesses are B, 4 B, 16 B, ...; each has its `tuned_epsilon` and counts losses from its own
    beginning. It plays on losses of any size; `doubling_bound` holds for those between 0 and 1.

    Args:
        losses: Losses, one row for each round and one column for each candidate; finite.
        name: The noise: "laplace", "gumbel", "frechet", "weibull", "pareto" or "exponential".

    Returns:
        The plays, of the same shape.

    Raises:
        InvalidParameter: The name is unknown.

    """
    table = np.asarray(losses, dtype=np.float64)
    count = table.shape[1]
    guess, start = unit_excess(name, count=count), 0
    plays = np.empty_like(table)
    while start < table.shape[0]:
        ends = np.cumsum(table[start:], axis=0)
        begun = totals_before(table[start:])
        passed = np.flatnonzero(ends.min(axis=1) > guess)
        length = int(passed[0]) + 1 if passed.size else ends.shape[0]
        noise = perturbation(name, tuned_epsilon(name, guess, count=count), count=count)
        plays[start : start + length] = expected_play(begun[:length], noise)
        guess, start = 4 * guess, start + length
    return plays


def doubling_bound(name: str, best_loss: npt.ArrayLike, *, count: int) -> float:
    """The most regret of `play_doubling` when no loss is above 1.

    The bounds of all guesses that can have been begun, each with a best loss of one more than the
    guess: of order sqrt(L* ln N) + ln N ln L*. The form of [mcmillan18, thm. 13.1] that needs not
    know L*.

    Args:
        name: The noise: "laplace", "gumbel", "frechet", "weibull", "pareto" or "exponential".
        best_loss: The total loss of the best candidate, at least 0; or the table of losses, whose
            entries must lie in [0, 1].
        count: How many candidates, at least 2.

    Returns:
        The most regret, in the unit of losses.

    Raises:
        InvalidParameter: The name is unknown, or losses are not in [0, 1].

    """
    best = _best(best_loss)
    unit = guess = unit_excess(name, count=count)
    total = used = 0.0
    while True:
        epsilon = tuned_epsilon(name, guess, count=count)
        least = min(best - used, guess + 1)
        total += regret_bound(epsilon, best_loss=max(least, 0.0), ahead=unit / epsilon)
        used += guess
        if best <= used:
            return total
        guess *= 4


def _best(given: npt.ArrayLike) -> float:
    """The best loss that a bound is about: a number as it is, of a table of losses that are in [0, 1] its."""
    found = np.asarray(given, dtype=np.float64)
    best = float(found) if found.ndim == 0 else best_loss(_unit_losses(found))
    require(best >= 0, "the best loss must be at least 0", best)
    return best


def _unit_losses(losses: npt.ArrayLike) -> FloatArray:
    """A table of losses, a row each round, all of them between 0 and 1."""
    table = np.asarray(losses, dtype=np.float64)
    require(table.ndim == 2, "losses must be a table, a row each round", table.shape)
    low, high = (float(table.min()), float(table.max())) if table.size else (0.0, 0.0)
    require(
        low >= 0 and high <= 1, "losses must be between 0 and 1", f"some from {low:g} to {high:g}"
    )
    return table
