"""Choose the one event to test: scores from folds that did not fit them, smoothed along their order.

Nothing here can make a bound wrong, since other runs test what is chosen; it only decides how good
it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, stats

from sfumato._types import FloatArray
from sfumato.audit.fixed.events import Candidate
from sfumato.audit.fixed.fitting import fit_scorers
from sfumato.audit.fixed.scorers import Column, Scorer, Sign
from sfumato.errors import InvalidParameter

FOLDS = 3
SIGNS: tuple[Sign, Sign] = (1, -1)
TAIL = np.geomspace(1e-4, 0.5, 36)
"""Shares of both inputs together at which scores are cut, from either end."""
ROUGHNESS = np.geomspace(1e-3, 8.0, 14)
"""Standard deviations that the log-likelihood ratio may have from one bin to the next; one is estimated."""
CAUTION = 1.0
"""Standard deviations of what is known of an event's ratio that are taken off its promise.

Of 0, 1/2, 1 and 2 the best on mechanisms that are in no catalogue: normal, staircase and logistic
noise, randomised response, a second largest, counts over a threshold, a rare atom. """


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """How many runs of the first and of the second input have a score between neighboring cuts."""

    cuts: FloatArray
    first: FloatArray
    second: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """Shares of both inputs in each bin, and how uncertain the logarithms of their ratios are."""

    first: FloatArray
    second: FloatArray
    covariance: FloatArray


def choose_event(
    rows1: FloatArray, rows2: FloatArray, *, delta: float, runs: int, level: float
) -> Candidate:
    """The event that promises the largest bound from so many further runs of either input.

    Every scorer is fitted without one fold and cuts that fold at shares of it, for each fold in
    turn; the counts choose scorer, share and direction, and the scorer is fitted anew on all runs.
    """
    folds = [np.arange(len(rows1)) % FOLDS == fold for fold in range(FOLDS)]
    tallies: dict[tuple[str, int], list[Tally]] = {}
    for held in folds:
        for scorer in fit_scorers(rows1[~held], rows2[~held]):
            part = tally(scorer.score(rows1[held]), scorer.score(rows2[held]))
            tallies.setdefault(_name(scorer), []).append(part)
    critical = float(stats.norm.isf(level)) / math.sqrt(runs)
    best: Candidate | None = None
    for scorer in fit_scorers(rows1, rows2):
        parts = tallies.get(_name(scorer), [])
        # What not every fold could fit is too rare to have been seen again.
        for found in _of_scorer(scorer, parts, delta, critical) if len(parts) == FOLDS else ():
            if best is None or found.signal > best.signal:
                best = found
    if best is None:
        raise InvalidParameter(
            "all outputs of both inputs are the same one; there is no event to test"
        )
    return best


def _of_scorer(
    scorer: Scorer, parts: Sequence[Tally], delta: float, critical: float
) -> Iterator[Candidate]:
    """The best event of a scorer in either direction."""
    cuts = np.median([part.cuts for part in parts], axis=0)
    counts = [
        np.sum(side, axis=0)
        for side in zip(*((part.first, part.second) for part in parts), strict=True)
    ]
    level = smoothed(counts[0], counts[1])
    for sign in SIGNS:
        promised = promises(level, sign, delta=delta, critical=critical)
        # An infinite cut is no event, or everything; it is left over where all outputs are the same
        # one.
        promised[~np.isfinite(cuts)] = 0.0
        at = int(np.argmax(promised))
        more, less = _inside(counts[0] / counts[0].sum(), counts[1] / counts[1].sum(), sign)
        yield Candidate(
            scorer, float(cuts[at]), sign, float(more[at]), float(less[at]), float(promised[at])
        )


def tally(scores1: FloatArray, scores2: FloatArray) -> Tally:
    """The counts between cuts at the shares of `TAIL` from below and from above; equal scores stay together.

    >>> found = tally(np.array([0.0, 0, 1, 1]), np.array([0.0, 0, 0, 1]))
    >>> sorted({float(cut) for cut in found.cuts if abs(cut) < 9})
    [0.5]
    """
    pool = np.sort(np.concatenate([scores1, scores2]))
    ranks = (TAIL * pool.size).astype(np.int64)
    # From below all that is less than the score of this rank; from above all that is more.
    low = np.searchsorted(pool, pool[ranks], "left")
    high = np.searchsorted(pool, pool[pool.size - 1 - ranks], "right")[::-1]
    places = np.concatenate([low, high])
    padded = np.concatenate([[-math.inf], pool, [math.inf]])
    with np.errstate(invalid="ignore"):
        cuts = (padded[places] + padded[places + 1]) / 2
    cuts = np.maximum.accumulate(np.where(np.isnan(cuts), math.inf, cuts))
    first, second = (
        np.bincount(np.searchsorted(cuts, scores, "right"), minlength=cuts.size + 1).astype(
            np.float64
        )
        for scores in (scores1, scores2)
    )
    return Tally(cuts, first, second)


def smoothed(first: FloatArray, second: FloatArray) -> Smoothed:
    """Counts with their log-likelihood ratios smoothed along the score, as a random walk seen with noise.

    The walk's step is the one that makes the counts likeliest, so that where nothing differs, or
    too little is seen, the ratios are those of the neighbors: the best of many noisy ones has only
    been lucky.
    """
    seen = first + second
    kept = seen > 0
    one, other = first[kept] + 0.5, second[kept] + 0.5
    ratio = np.log(one / one.sum()) - np.log(other / other.sum())
    noise = 1 / one + 1 / other
    steps = np.arange(kept.sum())
    walk = np.minimum(steps[:, np.newaxis], steps)
    # The level of the walk is free: its prior is as wide as any ratio.
    best, chosen = -math.inf, np.zeros((ratio.size, ratio.size))
    for rough in ROUGHNESS:
        prior = rough**2 * walk + 100.0
        root = np.linalg.cholesky(prior + np.diag(noise))
        fit = linalg.solve_triangular(root, ratio, lower=True, check_finite=False)
        likelihood = -float(fit @ fit) / 2 - float(np.log(np.diag(root)).sum())
        if likelihood > best:
            best, chosen = likelihood, prior
    gain = np.linalg.solve(chosen + np.diag(noise), chosen).T
    level = gain @ ratio
    share = np.zeros(seen.size)
    share[kept] = 1 / (1 + np.exp(-level))
    covariance = np.zeros((seen.size, seen.size))
    covariance[np.ix_(kept, kept)] = chosen - gain @ chosen
    ones, others = seen * share, seen * (1 - share)
    return Smoothed(ones / ones.sum(), others / others.sum(), covariance)


def promises(found: Smoothed, sign: Sign, *, delta: float, critical: float) -> FloatArray:
    """For the event of every cut the e**epsilon that further runs would show, less what is uncertain."""
    more, less = _inside(found.first, found.second, sign)
    bins = found.first.size
    below = np.tri(bins - 1, bins, dtype=bool)
    inside = ~below if sign > 0 else below
    with np.errstate(divide="ignore", invalid="ignore"):
        both = found.first * found.second / (found.first + found.second)
        slope = np.where(inside & (both > 0), both, 0.0) * (1 / more + 1 / less)[:, np.newaxis]
    slope = np.nan_to_num(slope, posinf=0.0)
    spread = np.sqrt(np.maximum(0.0, (slope @ found.covariance * slope).sum(axis=1)))
    # As runs whose counts alone would leave as much uncertain: a score statistic bears counts of 0.
    with np.errstate(divide="ignore"):
        known = np.nan_to_num(spread / np.sqrt(1 / more + 1 / less))
    return promised_ratio(more, less, delta=delta, critical=critical + CAUTION * known)


def promised_ratio(
    more: FloatArray, less: FloatArray, *, delta: float, critical: FloatArray
) -> FloatArray:
    """The e**epsilon that counts of these shares would leave open, by the score statistic of `ratio`."""
    excess = more - delta
    square = critical**2
    rest = excess**2 - square * delta
    middle = 2 * excess * less + square * (excess + less)
    root = np.sqrt(np.maximum(0.0, middle**2 - 4 * less**2 * rest))
    holds = (excess > 0) & (rest > 0)
    return np.where(holds, 2 * rest / np.where(holds, middle + root, 1.0), 0.0)


def _inside(first: FloatArray, second: FloatArray, sign: Sign) -> tuple[FloatArray, FloatArray]:
    """What is in the event of each cut: of the input that should reach it too often, and of the other."""
    if sign > 0:
        return first[::-1].cumsum()[::-1][1:], second[::-1].cumsum()[::-1][1:]
    return second.cumsum()[:-1], first.cumsum()[:-1]


def _name(scorer: Scorer) -> tuple[str, int]:
    """Which scorers of two fits are the same one."""
    return scorer.name, scorer.column if isinstance(scorer, Column) else 0
