"""The k-median problem: which k candidates are nearest to given masses, and what no k places can beat."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations, islice

import numpy as np

from sfumato._types import FloatArray

# Every choice of candidates is tried where there are no more of them than this, times the places.
EVERY_CHOICE = 4_000_000
# Pairs of centers are exchanged for pairs of candidates where that takes no more sums than this.
PAIR_SUMS = 50_000_000
# The search starts from up to so many first centers, fewer where each start takes long.
STARTS = 8
STARTED_SUMS = 4_000_000
# A swap must save this share of the cost, so that rounding cannot send the search in circles.
WORTH = 1e-12
# Steps of the dual search; any of them gives a valid bound, more of them a closer one.
STEPS = 300
# Up to so many distances steps are in double precision; of more single precision saves time.
DOUBLE_DISTANCES = 2**16
PATIENCE = 10


def best_centers(masses: FloatArray, away: FloatArray, k: int) -> list[int]:
    """Which k columns of distances [place, candidate] are nearest to the masses, as far as it can be found.

    The best of all choices where they are few. Else greedy, then single swaps until none helps,
    from several first centers, then swaps of two where that is not too many. Single swaps end at
    most 5 times above the best, swaps of two at most 4 times [arya04, sec. 3]; `lower_bound` says
    how much it is.
    """
    places, candidates = away.shape
    if math.comb(candidates, k) * places <= EVERY_CHOICE:
        return _tried(masses, away, combinations(range(candidates), k))
    found = [
        _swapped(masses, away, _greedy(masses, away, k, first)) for first in _firsts(masses, away)
    ]
    chosen = min(found, key=lambda one: _cost(masses, away, one))
    sums = math.comb(k, 2) * candidates**2 * places
    while sums <= PAIR_SUMS and _swap_two(masses, away, chosen):
        chosen = _swapped(masses, away, chosen)
    return chosen


def _cost(masses: FloatArray, away: FloatArray, chosen: list[int]) -> float:
    return float(masses @ away[:, chosen].min(axis=1))


def _tried(masses: FloatArray, away: FloatArray, choices: Iterable[tuple[int, ...]]) -> list[int]:
    """The best of some choices, many at a time."""
    best, least, rest = list[int](), math.inf, iter(choices)
    while some := list(islice(rest, 4096)):
        near = away[:, [choice[0] for choice in some]]
        for at in range(1, len(some[0])):
            near = np.minimum(near, away[:, [choice[at] for choice in some]])
        costs = masses @ near
        at = int(np.argmin(costs))
        if costs[at] < least * (1 - WORTH):
            best, least = list(some[at]), float(costs[at])
    return best


def _firsts(masses: FloatArray, away: FloatArray) -> list[int]:
    """First centers to start from: the best one alone, then always the one farthest from those before."""
    firsts = [int(np.argmin(masses @ away))]
    heaviest = int(np.argmax(masses))
    near = away[:, firsts[0]]
    while len(firsts) < min(STARTS, STARTED_SUMS // away.size):
        # The place that would have to travel most, and the candidate nearest to it.
        place = int(np.argmax(masses * near)) if near.any() else heaviest
        firsts.append(int(np.argmin(away[place])))
        near = np.minimum(near, away[:, firsts[-1]])
    return list(dict.fromkeys(firsts))


def _greedy(masses: FloatArray, away: FloatArray, k: int, first: int) -> list[int]:
    chosen, near = [first], away[:, first]
    for _ in range(k - 1):
        chosen.append(int(np.argmin(masses @ np.minimum(away, near[:, None]))))
        near = np.minimum(near, away[:, chosen[-1]])
    return list(dict.fromkeys(chosen))


def _swapped(masses: FloatArray, away: FloatArray, chosen: list[int]) -> list[int]:
    chosen = list(chosen)
    while len(chosen) > 1 and _swap(masses, away, chosen):
        pass
    return chosen


def _swap(masses: FloatArray, away: FloatArray, chosen: list[int]) -> bool:
    """Make the best exchange of one center for one candidate, if it is worth it."""
    mine = away[:, chosen]
    owner = np.argmin(mine, axis=1)
    first = mine[np.arange(len(mine)), owner]
    mine[np.arange(len(mine)), owner] = np.inf
    second = mine.min(axis=1)
    saved = masses[:, None] * np.minimum(away, first[:, None])
    lost = masses[:, None] * np.minimum(away, second[:, None]) - saved
    costs = saved.sum(axis=0) + np.stack(
        [lost[owner == at].sum(axis=0) for at in range(len(chosen))]
    )  # [center given up, candidate taken]
    out, into = np.unravel_index(int(np.argmin(costs)), costs.shape)
    if costs[out, into] >= float(masses @ first) * (1 - WORTH):
        return False
    chosen[int(out)] = int(into)
    return True


def _swap_two(masses: FloatArray, away: FloatArray, chosen: list[int]) -> bool:
    """Make the first exchange of two centers for two candidates that is worth it."""
    now = _cost(masses, away, chosen)
    for pair in combinations(range(len(chosen)), 2):
        kept = [center for at, center in enumerate(chosen) if at not in pair]
        near = away[:, kept].min(axis=1, initial=math.inf)
        for one in range(away.shape[1]):
            costs = masses @ np.minimum(away[:, one:], np.minimum(near, away[:, one])[:, None])
            other = int(np.argmin(costs))
            if costs[other] < now * (1 - WORTH):
                chosen[:] = [*kept, one, one + other]
                return True
    return False


def prices(masses: FloatArray, away: FloatArray, k: int, *, upper: float) -> FloatArray:
    """What each mass offers for being served, in the best dual solution met; any prices give a bound.

    By subgradient steps from the cost of a choice that is known [fisher81].
    """
    # Any prices give a bound, and `lower_bound` works it out in double precision.
    kind = np.float32 if away.size > DOUBLE_DISTANCES else np.float64
    costs = (masses[:, None] * away).astype(kind)
    # Every mass offers the mean cost: any prices give a bound, these are a fair start.
    offered = masses * upper
    best, best_offered, eagerness, idle = -math.inf, offered, 2.0, 0
    saved = np.empty_like(costs)  # the same room for all steps: fresh memory takes longer than sums
    for _ in range(STEPS):
        np.subtract(costs, offered.astype(kind)[:, None], out=saved)
        gains = np.minimum(kind(0), saved, out=saved).sum(axis=0, dtype=np.float64)
        opened = np.argpartition(gains, k - 1)[:k]
        bound = float(offered.sum() + gains[opened].sum())
        if bound > best:
            best, best_offered, idle = bound, offered, 0
        else:
            idle += 1
        # A mass served by no open candidate should offer more, one served by several less.
        slope = 1.0 - (saved[:, opened] < 0).sum(axis=1)
        steepness = float(slope @ slope)
        if steepness == 0 or upper - bound <= WORTH * upper:
            break
        if idle == PATIENCE:
            # Too long a step walks about the ridge: back to the best prices, with half of it.
            offered, eagerness, idle = best_offered, eagerness / 2, 0
            continue
        offered = np.maximum(offered + eagerness * (upper - bound) / steepness * slope, 0.0)
    return best_offered


def lower_bound(masses: FloatArray, away: FloatArray, offered: FloatArray, k: int) -> float:
    """What no k of the candidates can cost less than, for any prices v of the masses m.

    sum_i v_i + sum of the k least over candidates j of sum_i min(0, m_i d_ij - v_i): the Lagrangian
    dual, with the rule that every mass is served taken into the cost.
    """
    gains = np.minimum(0.0, masses[:, None] * away - offered[:, None]).sum(axis=0)
    return max(0.0, float(offered.sum() + np.partition(gains, k - 1)[:k].sum()))
