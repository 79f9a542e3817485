"""Paths of several sources that walk: one chain of draws, and how chains are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.tracking.kernel import draw_path, draw_swaps, lean

JUMP = 1e-6
"""The chance that a source goes anywhere at all in a round, so that a strange one does not end a track."""
HOT = 8.0
"""By how much noise is taken to be larger at first, so that paths can still pass each other."""
LEAST = 1e-9
"""The least mass of a source, as a share of the largest."""
NEAR = 9
"""Cells near where a source is, to which it may go in a draw of two sources and their masses at once."""
LEANS, MORE_LEANS = 2, 5
"""So many of these in a sweep, and where chains did not agree."""
SLICE, RECENT = 10.0, 30
"""A slice is so many times as wide as the mass that went, over so many draws."""
BURN = 0.75
"""Draws that are made first and not kept, of one that is kept."""
KEPT = 1 << 28
"""Bytes of chances of steps that are kept, for the next sweep with the same speed."""
FAR = 1e6
"""Deviations from the mean beyond which a cut Gaussian is its nearest end."""


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """What both ways of following share: columns of the operator, readings, noise, distances, speeds.

    The noise is that of each reading: rounds by sensors, infinite where there is none.
    """

    columns: FloatArray
    read: FloatArray
    noise: FloatArray
    apart: FloatArray
    speeds: FloatArray
    max_mass: float

    def steps(self) -> list[FloatArray]:
        """The chances of every step, a matrix for each speed, rows summing to 1."""
        return [steps_of(self.apart, speed) for speed in self.speeds.tolist()]


def steps_of(apart: FloatArray, speed: float) -> FloatArray:
    """The chance of each step from cell to cell at a speed: rows total 1."""
    n = len(apart)
    law = np.exp(-0.5 * (apart / speed) ** 2) if speed > 0 else np.eye(n)
    law /= law.sum(axis=1, keepdims=True)
    return np.asarray((1 - JUMP) * law + JUMP / n)


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """How likely steps are at each speed: matrices, made when they are needed; and which cells are near.

    Cell c is near to the cells back[first[c]:first[c + 1]], and near[c] are those near to it.
    """

    apart: FloatArray
    speeds: FloatArray
    totals: FloatArray
    near: IntArray
    first: IntArray
    back: IntArray
    made: dict[int, FloatArray]

    @classmethod
    def of(cls, scene: Walks) -> Steps:
        """What all chains share."""
        apart, n = scene.apart, len(scene.apart)
        totals = np.array(
            [np.exp(-0.5 * (apart / speed) ** 2).sum(axis=1) for speed in scene.speeds if speed > 0]
        )
        near = np.argsort(apart, axis=1, kind="stable")[:, :NEAR]
        order = np.argsort(near.ravel(), kind="stable")
        first = np.searchsorted(near.ravel()[order], np.arange(n + 1))
        return cls(apart, scene.speeds, totals, near, first, order // near.shape[1], {})

    def at(self, speed: int) -> FloatArray:
        """The chance of each step at one of the speeds."""
        if speed not in self.made:
            if self.made and (1 + len(self.made)) * self.apart.nbytes > KEPT:
                self.made.clear()
            self.made[speed] = steps_of(self.apart, float(self.speeds[speed]))
        return self.made[speed]

    def draw_speed(self, path: IntArray, now: int, rng: np.random.Generator) -> int:
        """One of the speeds, given all steps."""
        if self.speeds.size == 1:
            return now
        here, there = path[:-1].ravel(), path[1:].ravel()
        gone = self.apart[here, there]
        law = np.exp(-0.5 * (gone / self.speeds[:, np.newaxis]) ** 2) / self.totals[:, here]
        likely = np.log((1 - JUMP) * law + JUMP / len(self.apart)).sum(axis=1)
        return int(np.argmax(likely + rng.gumbel(size=likely.size)))


Chain: TypeAlias = tuple[FloatArray, FloatArray, IntArray, FloatArray, FloatArray]
"""Draws of a chain: logarithms of fits and steps, paths, masses and speeds."""


def sampled(
    scene: Walks,
    steps: Steps,
    count: int,
    draws: int,
    rng: np.random.Generator,
    *,
    leans: int = LEANS,
) -> Chain:
    """One chain from a random start, with so many draws of mass that goes between two in a sweep."""
    t, n = len(scene.read), len(scene.apart)
    rows, squares = np.ascontiguousarray(scene.columns.T), scene.columns**2
    path = rng.integers(n, size=(t, count))
    mass = scene.max_mass * rng.random(count)
    chosen = int(rng.integers(scene.speeds.size))
    fits, went, speeds = np.empty(draws), np.empty(draws), np.empty(draws)
    paths, masses = np.empty((draws, t, count), dtype=np.int64), np.empty((draws, count))
    off = scene.read - sum(mass[source] * rows[path[:, source]] for source in range(count))
    widths = dict.fromkeys(combinations(range(count), 2), scene.max_mass)
    noise, burn = np.zeros(0), math.ceil(draws * BURN)
    for sweep in range(-burn, draws):
        if sweep <= -(burn // 2) or not noise.size:
            # Burn-in cools the noise to what it is over its first half.
            noise = scene.noise * max(1.0, HOT ** (-1 - 2 * sweep / burn))
            weights = noise**-2.0
            size = weights @ squares
        step = steps.at(chosen)
        for source in range(count):
            left = off + mass[source] * rows[path[:, source]]
            seen = (weights * left) @ scene.columns
            fit = mass[source] * seen - 0.5 * mass[source] ** 2 * size
            path[:, source] = draw_path(fit, step, rng.random(t))
            own = rows[path[:, source]]
            mass[source] = _cut(
                own / noise, left / noise, LEAST * scene.max_mass, scene.max_mass, rng
            )
            off = left - mass[source] * own
        for pair in combinations(range(count), 2):
            off = _trade(path, mass, pair, off, rows, step, noise, scene.max_mass, rng)
            for _ in range(leans if sweep >= 0 else 1):
                given = lean(
                    path, mass, off, *pair, rows, weights, steps.near, steps.first, steps.back, step,
                    LEAST * scene.max_mass, scene.max_mass, widths[pair], rng,
                )  # fmt: skip
                if sweep < 0:  # at rest while draws are kept
                    widths[pair] += (min(SLICE * given, scene.max_mass) - widths[pair]) / RECENT
        if sweep % 2:
            chosen = steps.draw_speed(path, chosen, rng)
        if sweep >= 0:
            fits[sweep] = -0.5 * float(((off / noise) ** 2).sum())
            went[sweep] = np.log(steps.at(chosen)[path[:-1], path[1:]]).sum()
            paths[sweep], masses[sweep], speeds[sweep] = path, mass, scene.speeds[chosen]
    return fits, went, paths, masses, speeds


def _trade(
    path: IntArray,
    mass: FloatArray,
    pair: tuple[int, int],
    off: FloatArray,
    rows: FloatArray,
    step: FloatArray,
    noise: FloatArray,
    max_mass: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw which of two sources was where in each round, then what mass goes from one to the other.

    Both in place, from their exact conditionals; returns what is left of the readings. One path
    alone cannot leave a state in which two have changed places from a round on, since the other one
    holds its own.
    """
    one, other = pair
    first, second = path[:, one].copy(), path[:, other].copy()
    between = rows[first] - rows[second]
    crossed = off + (mass[one] - mass[other]) * between
    gain = 0.5 * ((off / noise) ** 2 - (crossed / noise) ** 2).sum(axis=1)
    keep = np.log(step[first[:-1], first[1:]] * step[second[:-1], second[1:]])
    swap = np.log(step[first[:-1], second[1:]] * step[second[:-1], first[1:]])
    swapped = draw_swaps(gain, keep, swap, rng.random(len(path)))
    path[:, one], path[:, other] = (
        np.where(swapped, second, first),
        np.where(swapped, first, second),
    )
    off = np.where(swapped[:, np.newaxis], crossed, off)
    between = np.where(swapped[:, np.newaxis], -between, between)
    least = LEAST * max_mass
    low, high = (
        max(least - mass[one], mass[other] - max_mass),
        min(max_mass - mass[one], mass[other] - least),
    )
    given = _cut(between / noise, off / noise, low, high, rng)
    mass[one], mass[other] = mass[one] + given, mass[other] - given
    return np.asarray(off - given * between)


def _cut(
    own: FloatArray, left: FloatArray, low: float, high: float, rng: np.random.Generator
) -> float:
    """How much of `own` is in `left`, from its Gaussian conditional cut to [low, high]."""
    size = float((own**2).sum())
    if size == 0:
        return low + (high - low) * float(rng.random())
    mean, deviation = float((own * left).sum()) / size, 1 / math.sqrt(size)
    first, last = (low - mean) / deviation, (high - mean) / deviation
    # By the lower tail and its logarithm: next to 1 doubles are coarse, and 38 deviations out
    # chances are 0.
    sign = -1.0 if first > 0 else 1.0
    first, last = sorted((sign * first, sign * last))
    chance = 1 - rng.random()  # above 0, which has no logarithm
    if last < -FAR:
        return low if sign < 0 else high
    below, under = float(log_ndtr(first)), float(log_ndtr(last))
    drawn = float(ndtri_exp(under + math.log(chance + (1 - chance) * math.exp(below - under))))
    return min(max(mean + deviation * sign * drawn, low), high)


def without_one(scene: Walks, paths: IntArray, masses: FloatArray) -> float:
    """How many times likelier the readings are with one source fewer, from draws: paths and masses.

    The posterior density of a mass at 0 over its prior density [dickey71], from its exact
    conditionals in each draw: given all other masses, and given its sum with that of one other. The
    second one knows that of two sources at one place either may have all the mass.
    """
    rows = np.ascontiguousarray(scene.columns.T)
    noise, top = scene.noise, scene.max_mass
    found = []
    for path, mass in zip(paths, masses, strict=True):
        own = [rows[cells] / noise for cells in path.T]
        left = scene.read / noise - sum(w * unit for w, unit in zip(mass, own, strict=True))
        alone = [
            _log_density(unit, left + w * unit, 0.0, low=0.0, high=top, max_mass=top)
            for w, unit in zip(mass, own, strict=True)
        ]
        given = [
            _log_density(
                own[one] - own[other],
                left,
                mass[other],
                low=max(-mass[one], mass[other] - top),
                high=min(top - mass[one], mass[other]),
                max_mass=top,
            )
            for one, other in permutations(range(len(own)), 2)
        ]
        found.append(np.logaddexp(_log_mean(alone), _log_mean(given)) - math.log(2))
    return float(np.exp(min(_log_mean(found) + math.log(top), 700.0)))


def _log_mean(logs: list[float]) -> float:
    return float(logsumexp(logs)) - math.log(len(logs))


def _log_density(
    own: FloatArray, left: FloatArray, at: float, *, low: float, high: float, max_mass: float
) -> float:
    """The logarithm of the density that `_cut` draws from, at one of its values."""
    if not low <= at <= high:
        return -math.inf
    size = float((own**2).sum())
    if high <= low or size * (high - low) ** 2 < 1e-12:
        return -math.log(max(high - low, LEAST * max_mass))
    mean, root = float((own * left).sum()) / size, math.sqrt(size)
    first, last = (low - mean) * root, (high - mean) * root
    if first > 0:  # by the lower tail, as `_cut`
        first, last = -last, -first
    below, under = float(log_ndtr(first)), float(log_ndtr(last))
    inside = under + math.log(max(-math.expm1(below - under), 1e-300))
    return -0.5 * ((at - mean) * root) ** 2 + math.log(root / math.sqrt(2 * math.pi)) - inside


def split_rhat(chains: FloatArray) -> float:
    """How far apart halves of chains are, 1 if not at all: chains by draws [gelman13, sec. 11.4].

    >>> split_rhat(np.array([[0.0, 1, 0, 1], [5, 6, 5, 6]])) > 4
    True
    """
    half = chains.shape[1] // 2
    parts = np.concatenate([chains[:, :half], chains[:, half : 2 * half]])
    within, between = float(parts.var(axis=1, ddof=1).mean()), float(parts.mean(axis=1).var(ddof=1))
    if between <= 1e-20 * max(1.0, float((parts**2).max())):
        return 1.0
    if within == 0:
        return math.inf
    return math.sqrt((half - 1) / half + between / within)


def name_alike(paths: IntArray, masses: FloatArray, apart: FloatArray, *, reference: int) -> None:
    """Give sources of all draws the names of those they are nearest to in one draw, in place."""
    like = paths[reference].copy()
    for draw, path in enumerate(paths):
        far = apart[like[:, :, np.newaxis], path[:, np.newaxis]].sum(axis=0)
        _, names = linear_sum_assignment(np.minimum(far, 1e300))
        paths[draw], masses[draw] = path[:, names], masses[draw, names]
