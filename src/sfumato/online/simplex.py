"""Choosing one of several candidates each round: the leader, the perturbed leader, and Hedge.

A play is a probability for every candidate. Those of the perturbed leader are integrals, computed
here to about twelve digits, so that a regret has no sampling error. docs/proofs/online.md says how.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter, SolverFailed
from sfumato.online.laws import Exponential, Gaussian, Gumbel, Laplace, Perturbation, Weibull

Rule = Callable[[FloatArray], FloatArray]

BLOCK = 400_000  # numbers held at once: few enough for a cache, many enough for numpy
MISSED = 1e-9  # probabilities that do not add up to 1 within this were not computed


def expected_play(losses: npt.ArrayLike, noise: Perturbation) -> FloatArray:
    """How likely each candidate is to lead when so much noise is taken off the losses, row by row.

    P(i = argmin_j(L_j - Z_j)), the Z independent: the integral of f(x + L_i) times the product of
    F(x + L_j) over the others. With Gumbel noise this is Hedge [mcmillan18, sec. 11.2].

    Args:
        losses: Total losses of the candidates: one row, or a table with a row for each play;
            finite.
        noise: The law of the noise that is taken off each loss.

    Returns:
        Probabilities of the same shape, each row adding up to 1.

    Raises:
        InvalidInput: Losses are not finite numbers.
        SolverFailed: Probabilities could not be computed to 1e-9.

    Example:
        >>> expected_play([3.0, 3.0, 3.0, 1e6], Laplace(5.0)).round(12)
        array([0.33333333, 0.33333333, 0.33333333, 0.        ])

    """
    rows = _rows(losses)
    gaps, back = np.unique(rows - rows.min(axis=1, keepdims=True), axis=0, return_inverse=True)
    match noise:
        case Gumbel(scale):
            found = hedge(gaps, 1 / scale)
        case Exponential(scale) | Weibull(1.0, scale):
            found = _right_half(gaps / scale, lead=1.0)
        case Laplace(scale):
            found = _two_sided(gaps / scale)
        case _:
            found = by_quadrature(gaps, noise)
    return _checked(found)[back.ravel()].reshape(np.shape(losses))


def hedge(losses: npt.ArrayLike, rate: float) -> FloatArray:
    """Exponential weights: each candidate in proportion to exp(-rate loss), row by row.

    Args:
        losses: Total losses of the candidates: one row, or a table with a row for each play;
            finite.
        rate: The learning rate, in one over the unit of losses; above 0 and finite.

    Returns:
        Probabilities of the same shape, each row adding up to 1.

    Raises:
        InvalidParameter: The rate is not above 0 and finite.
        InvalidInput: Losses are not finite numbers.

    Example:
        >>> hedge([0.0, 1e6], 1.0)
        array([1., 0.])

    """
    if not (math.isfinite(rate) and rate > 0):
        raise InvalidParameter(f"rate must be above 0 and finite, got {rate}; nothing was played")
    rows = _rows(losses)
    weights = np.exp(-rate * (rows - rows.min(axis=1, keepdims=True)))
    played: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return played.reshape(np.shape(losses))


def leader(losses: npt.ArrayLike) -> FloatArray:
    """The candidate with the least loss, or all of them alike where several have it, row by row.

    Args:
        losses: Total losses of the candidates: one row, or a table with a row for each play;
            finite.

    Returns:
        Probabilities of the same shape, each row adding up to 1.

    Raises:
        InvalidInput: Losses are not finite numbers.

    Example:
        >>> leader([[2.0, 1.0, 1.0]])
        array([[0. , 0.5, 0.5]])

    """
    rows = _rows(losses)
    least = rows == rows.min(axis=1, keepdims=True)
    played: FloatArray = least / least.sum(axis=1, keepdims=True)
    return played.reshape(np.shape(losses))


def perturbed_leader(noise: Perturbation) -> Rule:
    """The rule that plays the expected perturbed leader.

    Args:
        noise: The law of the noise.

    Returns:
        A rule for `play` and `lookahead_play`.

    """
    return lambda losses: expected_play(losses, noise)


def play(losses: npt.ArrayLike, rule: Rule) -> FloatArray:
    """What a rule plays in each round, knowing the losses of the rounds before (one row each).

    Args:
        losses: Losses, one row for each round and one column for each candidate; finite.
        rule: Takes total losses to probabilities, row by row: `leader`, or what `perturbed_leader`
            returns.

    Returns:
        The plays, of the same shape.

    Raises:
        InvalidInput: Losses are not finite numbers.

    Example:
        >>> play([[1.0, 0.0], [0.0, 0.0]], leader)
        array([[0.5, 0.5],
               [0. , 1. ]])

    """
    rows = _rows(losses)
    return rule(totals_before(rows))


def totals_before(rows: FloatArray) -> FloatArray:
    """The sum of all rows before each, from 0: sums less the row itself would lose what a large row hides.

    Args:
        rows: Losses, one row for each round.

    Returns:
        A table of the same shape, its first row 0.

    """
    return np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows[:-1], axis=0)])


def lookahead_play(losses: npt.ArrayLike, rule: Rule) -> FloatArray:
    """What a rule would play if it knew the losses of the round as well: "be the (perturbed) leader".

    Args:
        losses: Losses, one row for each round and one column for each candidate; finite.
        rule: Takes total losses to probabilities, row by row: `leader`, or what `perturbed_leader`
            returns.

    Returns:
        The plays, of the same shape.

    Raises:
        InvalidInput: Losses are not finite numbers.

    Example:
        >>> lookahead_play([[1.0, 0.0], [0.0, 0.0]], leader)
        array([[0., 1.],
               [0., 1.]])

    """
    return rule(np.cumsum(_rows(losses), axis=0))


def by_quadrature(losses: npt.ArrayLike, noise: Perturbation) -> FloatArray:
    """What `expected_play` computes, for any noise whose density is smooth inside its support.

    The trapezoidal rule in ln F / (1 - F), stretched at both ends; in x for Gaussian noise. Its
    error falls exponentially with the step [trefethen14, thm. 5.1].
    """
    rows = _rows(losses)
    gaps = rows - rows.min(axis=1, keepdims=True)
    x, weights = _nodes(noise, gaps)
    return _checked(
        np.concatenate([_sums(some, noise, x, weights) for some in _blocks(gaps, x.size)])
    )


def _sums(gaps: FloatArray, noise: Perturbation, x: FloatArray, weights: FloatArray) -> FloatArray:
    """Sums over nodes of f(x + d_i) times the product of F(x + d_j) over the others."""
    at = x[:, None, None] + gaps
    below = noise.cdf(at)
    # Where F is 0 nobody leads with so little noise, and nothing is added.
    ratio = np.divide(noise.pdf(at), below, out=np.zeros_like(below), where=below > 0)
    all_below = weights[:, None] * below.prod(axis=2)
    summed: FloatArray = np.einsum("kr,kri->ri", all_below, ratio)
    return summed


def _nodes(noise: Perturbation, gaps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where to evaluate the noise of the leader, and how much each place counts."""
    count, farthest = gaps.shape[1], float(gaps.max(initial=0.0))
    if isinstance(noise, Gaussian):
        # A candidate at d leads where its noise and the leader's are about d/2 and -d/2; beyond 56
        # deviations the chance of that is 0 in floating point.
        step = 0.1 * noise.sigma
        x = np.arange(
            -min(farthest / 2, 28 * noise.sigma) - 10 * noise.sigma, 10 * noise.sigma, step
        )
        return x, np.full(x.size, step)
    stretch, reach = 4.0, _tail(noise, farthest)
    shape = 1.0 if isinstance(noise, Laplace | Gumbel | Exponential) else noise.shape
    # How far off the line the integrand is analytic, in stretched units: exp(-count exp(-t)), the
    # law of the largest, bends at t = ln count; (x + d) ** shape bends where x is about d.
    width = min(
        min(1.0, shape) * math.pi / 2 / math.hypot(stretch, math.log(count)),
        shape * math.pi / math.hypot(stretch, reach),
    )
    step = 2 * math.pi * width / 40  # the error is about exp(-40) times a constant
    ends = np.arcsinh(np.array([45.0, 45.0 + reach]) / stretch)
    s = np.arange(-ends[0], ends[1], step)
    t = stretch * np.sinh(s)
    below, above = special.expit(t), special.expit(-t)
    x = np.where(t < 0, noise.ppf(below), noise.isf(above))
    return x, step * stretch * np.cosh(s) * below * above / noise.pdf(x)


def _tail(noise: Perturbation, gap: float) -> float:
    """How much farther, in -ln(1 - F), noise must be followed for candidates that far behind."""
    match noise:
        case Gaussian() | Laplace() | Gumbel() | Exponential():
            more = 0.0
        case Weibull(shape, scale):
            more = (
                (45 * max(1.0, (gap / scale) ** (1 - shape) / shape)) ** shape if shape < 1 else 0.0
            )
        case _:
            more = noise.shape * math.log1p(gap / noise.scale)
    return min(more, 600.0)


def _two_sided(gaps: FloatArray) -> FloatArray:
    """`expected_play` for Laplace noise of scale 1, whose density has a kink: in pieces between kinks."""
    found = _right_half(gaps, lead=0.5)
    order = np.sort(gaps, axis=1)
    count = gaps.shape[1]
    # Left of all kinks the integrand is exp(count x) times a constant, the same for all candidates.
    with np.errstate(under="ignore"):
        found += (
            np.exp(np.sum(order - order[:, -1:], axis=1, keepdims=True) - count * math.log(2))
            / count
        )
    row, low, high = _pieces(order)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    for some in _slices(row.size, nodes.size * count):
        half = (high[some] - low[some])[:, None] / 2
        x = low[some][:, None] + half * (1 + nodes)
        at = x[:, :, None] + gaps[row[some]][:, None, :]
        tail = 0.5 * np.exp(-np.abs(at))
        below = np.where(at > 0, 1 - tail, tail)
        all_below = half * weights * below.prod(axis=2)
        ratio = np.where(at > 0, tail / (1 - tail), 1.0)
        np.add.at(found, row[some], np.einsum("pk,pki->pi", all_below, ratio))
    return found


def _pieces(order: FloatArray) -> tuple[npt.NDArray[np.intp], FloatArray, FloatArray]:
    """The lines between kinks, cut where the integrand bends: row, lower and upper end of each piece.

    With k candidates below, it rises like exp(k x) up to the upper kink; from the lower one on it
    bends on the scale 1. Beyond 42 of either nothing bends any more.
    """
    below = np.arange(1, order.shape[1])
    low, high = -order[:, 1:], -order[:, :-1]
    # Relative to exp(-d_i) / count, which is less than candidate i has right of 0, no line adds
    # more than count (high - low) exp(-faint); left out are those that add less than 1e-16
    # together.
    faint = below * math.log(2) - (below - 1) * high - np.cumsum(order[:, :-1], axis=1)
    kept = (high > low) & (faint < 40 + 2 * math.log(order.shape[1]) + np.log1p(high - low))
    row, line = np.nonzero(kept)
    low, high, rising = low[kept][:, None], high[kept][:, None], below[line][:, None]
    up = np.minimum(low + np.arange(0.0, 44.0, 4.0), high)
    down = np.maximum(high - np.array([0.0, 6.0, 18.0, 42.0]) / rising, low)
    edges = np.sort(np.concatenate([up, down], axis=1), axis=1)
    which, piece = np.nonzero(edges[:, 1:] > edges[:, :-1])
    return row[which], edges[which, piece], edges[which, piece + 1]


def _right_half(gaps: FloatArray, *, lead: float) -> FloatArray:
    """The integral over x > 0 where the tail of the noise is lead exp(-x): a polynomial in v = exp(-x).

    lead exp(-d_i) times the product of 1 - lead v exp(-d_j) over the others, for v in [0, 1]: exact
    by Gauss with half as many nodes as candidates. For many it is nearly exp(-c v), c at most their
    number N, whose coefficients by Chebyshev fall like exp(-k**2 / N): 4 sqrt(N) nodes leave less
    than exp(-60).
    """
    count = gaps.shape[1]
    nodes, weights = np.polynomial.legendre.leggauss(
        min(count // 2 + 1, math.ceil(4 * math.sqrt(count)))
    )
    found = np.empty_like(gaps)
    for some in _slices(gaps.shape[0], nodes.size * count):
        tails = lead * np.exp(-gaps[some])
        below = 1 - (1 + nodes)[:, None, None] / 2 * tails
        all_below = (weights / 2)[:, None] * below.prod(axis=2)
        found[some] = tails * np.einsum("kr,kri->ri", all_below, 1 / below)
    return found


def _blocks(gaps: FloatArray, nodes: int) -> list[FloatArray]:
    return [gaps[some] for some in _slices(gaps.shape[0], nodes * gaps.shape[1])]


def _slices(rows: int, width: int) -> list[slice]:
    step = max(1, BLOCK // width)
    return [slice(start, start + step) for start in range(0, rows, step)]


def _rows(losses: npt.ArrayLike) -> FloatArray:
    """Losses as a table of finite numbers, one row for each play."""
    table = np.asarray(losses, dtype=np.float64)
    if table.ndim not in {1, 2} or table.size == 0:
        raise InvalidInput(
            f"losses must be a row or a table with at least one candidate, got shape {table.shape}; "
            "nothing was played"
        )
    if not np.isfinite(table).all():
        raise InvalidInput("losses must be finite numbers, got others; nothing was played")
    return np.atleast_2d(table)


def _checked(found: FloatArray) -> FloatArray:
    total: FloatArray = found.sum(axis=1, keepdims=True)
    missed = float(np.abs(total - 1).max())
    if not missed <= MISSED:
        raise SolverFailed(
            f"probabilities must add up to 1, missed by {missed:g}; nothing was played"
        )
    return found / total
