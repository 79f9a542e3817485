"""Local maps of others, each our own code under the same guarantee: epsilon for each replaced user.

Reports are simulated by their law, for public people only. Frequencies come through unary encoding with
chances 1/2 and 1 / (E + 1), which has the variance of optimised local hashing and is drawn exactly in
one step. A rival with a size to choose is run in all of `sizes`, and expectation-maximisation is stopped
early and late; whoever judges takes the best in hindsight, which favors the rival. `decoded` is what our
prior makes of the same reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from experiments.heatmaps.protocol import generator

from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.inference import CountsPosterior, NoisyCounts
from sfumato.heatmap.local import (
    FINEST_CELL,
    GAUSSIAN,
    DiskChannel,
    Question,
    Report,
    decode,
    disk_area_channel,
    disk_rows,
    evidence_of,
    leaf_of_cells,
    odds_below,
    simulate_reports,
)
from sfumato.spaces import Grid

SHOWN = 6
"""Maps are judged on 64 x 64 cells; shares below are of those, in Z-order."""
UNIT = (0.0, 0.0, 1.0, 1.0)
EM_STEPS = (200, 1500)
# Planar Laplace reports lie on 32 x 32 cells of twice the side, the map on 16 x 16.
PLANAR, DISPLACEMENTS = 4, 40_000


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """What a rival makes of its reports, in one way or more, and what our decoder makes of them."""

    own: tuple[FloatArray, ...]
    decoded: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """People who answer: the code of each at level 8, their epsilon, and whether we decode too."""

    codes: IntArray
    epsilon: float
    decoding: bool = False

    @property
    def users(self) -> int:
        """How many."""
        return self.codes.size

    @property
    def odds(self) -> Fraction:
        """Of a report: e**epsilon, rounded down."""
        return odds_below(str(self.epsilon))

    def held(self, level: int) -> IntArray:
        """How many are in each cell of a level."""
        return np.bincount(self.codes >> 2 * (FINEST_CELL - level), minlength=4**level)

    def part(self, codes: IntArray) -> Crowd:
        """Some of them."""
        return Crowd(codes, self.epsilon)


@dataclass(frozen=True, slots=True)
class Rival:
    """A local map of others.

    Attributes:
        name: What tables call it.
        sizes: Levels of its finest cells.
        run: Makes a map of people.
    """

    name: str
    sizes: tuple[int, ...]
    run: Callable[[Crowd, int, np.random.Generator], Estimates]


def grid(crowd: Crowd, level: int, rng: np.random.Generator) -> Estimates:
    """An even grid by optimised local hashing, projected to shares (norm-sub)."""
    values, variances = frequencies(crowd.held(level), crowd, rng)
    every = [np.zeros(4**above) for above in range(level)] + [values]
    unknown = [np.full(4**above, np.inf) for above in range(level)] + [variances]
    return Estimates((_spread(projected(values), level),), under_prior(every, unknown, crowd))


def kary(crowd: Crowd, level: int, rng: np.random.Generator) -> Estimates:
    """K-ary response over an even grid, projected to shares."""
    cells, odds = 4**level, crowd.odds
    kept, even = float((odds - 1) / (odds + cells - 1)), 1 / cells
    told = rng.binomial(crowd.held(level), kept)
    told += rng.multinomial(crowd.users - int(told.sum()), np.full(cells, even))
    values = (told / crowd.users - (1 - kept) * even) / kept
    channel = DiskChannel(cells, tuple((cell,) for cell in range(cells)), odds)
    reports: dict[Report, int] = {(int(cell),): int(told[cell]) for cell in np.flatnonzero(told)}
    own = _spread(projected(values), level)
    return Estimates((own,), _decoded(crowd, level, channel, reports))


def hierarchy(crowd: Crowd, level: int, rng: np.random.Generator) -> Estimates:
    """Hierarchical intervals on both axes: users split over all levels of a quadtree, made consistent."""
    values, variances = [np.ones(1)], [np.zeros(1)]
    for number, codes in enumerate(np.array_split(rng.permutation(crowd.codes), level), start=1):
        group = crowd.part(codes)
        found = frequencies(group.held(number), group, rng, of=crowd.users)
        values.append(found[0])
        variances.append(found[1])
    return Estimates((consistent(values, variances),), under_prior(values, variances, crowd))


def ahead(crowd: Crowd, level: int, rng: np.random.Generator) -> Estimates:
    """AHEAD: a node is split only above a threshold, leaves are asked again, all made consistent."""
    values, variances = _grown(crowd, level, rng=rng, above=math.sqrt(5), pooled=True)
    return Estimates((consistent(values, variances),), under_prior(values, variances, crowd))


def quadtree(crowd: Crowd, level: int, rng: np.random.Generator) -> Estimates:
    """A local quadtree: split above 2 deviations; children share their parent's mass as estimated."""
    values, variances = _grown(crowd, level, rng=rng, above=2.0, pooled=False)
    mass = np.ones(1)
    for value, variance in zip(values[1:], variances[1:], strict=True):
        told = np.where(np.isfinite(variance), np.maximum(value, 0), 0).reshape(-1, 4)
        sums = told.sum(axis=1, keepdims=True)
        part = np.where(sums > 0, told / np.where(sums > 0, sums, 1), 0.25)
        mass = (mass[:, None] * part).ravel()
    return Estimates((_spread(mass, level),), under_prior(values, variances, crowd))


def disk(crowd: Crowd, level: int, rng: np.random.Generator) -> Estimates:
    """The disk area mechanism, by expectation-maximisation; the disk is about 1 / (E + 1) of outputs."""
    odds, side = crowd.odds, 1 << level
    part = 1 / (float(odds) + 1)

    def miss(radius: int) -> float:
        return abs(math.pi * (radius + 0.5) ** 2 / (side + 2 * radius) ** 2 - part)

    channel = disk_area_channel(level, odds, radius=min(range(side), key=miss))
    reports = simulate_reports(channel, crowd.codes >> 2 * (FINEST_CELL - level), rng=rng)
    told = np.zeros(channel.outputs)
    for report, count in reports.items():
        told[report[0]] = count
    chances = 1 + (float(odds) - 1) * disk_rows(channel)
    own = most_likely(chances / chances.sum(axis=0), told)
    return Estimates(
        tuple(_spread(one, level) for one in own), _decoded(crowd, level, channel, reports)
    )


def planar_laplace(reach: float) -> Callable[[Crowd, int, np.random.Generator], Estimates]:
    """Planar Laplace noise, loss epsilon at a distance of `reach` sides, by expectation-maximisation.

    Where reach is the diagonal no two places of the square are told apart by more than epsilon: the
    guarantee of all others. With a shorter one far places are told apart by more.
    """

    def run(crowd: Crowd, level: int, rng: np.random.Generator) -> Estimates:
        chances = _planar_chances(crowd.epsilon / reach, level)
        held = crowd.held(level)
        told = np.zeros(len(chances))
        for cell in np.flatnonzero(held):
            told += rng.multinomial(held[cell], chances[:, cell])
        return Estimates(tuple(_spread(one, level) for one in most_likely(chances, told)))

    return run


@cache
def _planar_chances(rate: float, level: int) -> FloatArray:
    """Chances of reports on a square of twice the side, others put on its edge [report, cell]."""
    rng = generator("planar laplace", rate)
    radius, angle = rng.gamma(2, 1 / rate, DISPLACEMENTS), rng.uniform(0, math.tau, DISPLACEMENTS)
    side = 1 << level
    wide = 2 * side
    columns, rows = Grid(level).decode(np.arange(side * side))
    found = np.empty((wide * wide, side * side))
    for cell in range(side * side):
        x, y = (
            np.clip((at + 0.5 + side * move).astype(np.int64) + side // 2, 0, wide - 1)
            for at, move in (
                (columns[cell], radius * np.cos(angle)),
                (rows[cell], radius * np.sin(angle)),
            )
        )
        found[:, cell] = np.bincount(y * wide + x, minlength=wide * wide) / DISPLACEMENTS
    return found


def frequencies(
    held: IntArray, crowd: Crowd, rng: np.random.Generator, *, of: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Estimated shares of cells and their variances, as shares of all `of` the users come from."""
    odds, users = float(crowd.odds), crowd.users
    p, q = 0.5, 1 / (odds + 1)
    told = rng.binomial(held, p) + rng.binomial(users - held, q)
    values = (told / users - q) / (p - q)
    share = np.clip(values, 0, 1)
    own = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (users * (p - q) ** 2)
    return values, own + share * (1 - share) * (1 / users - 1 / (of or users))


def projected(values: FloatArray) -> FloatArray:
    """The nearest shares: one number is taken off all, and what falls below 0 is 0 (norm-sub)."""
    rows = np.atleast_2d(values)
    return _projected_rows(rows, np.ones(len(rows))).reshape(values.shape)


def _projected_rows(rows: FloatArray, sums: FloatArray) -> FloatArray:
    """Each row to the nearest one with none below 0 that adds up to its sum."""
    falling = -np.sort(-rows, axis=1)
    counts = np.arange(1, rows.shape[1] + 1)
    taken = (np.cumsum(falling, axis=1) - sums[:, None]) / counts
    last = np.maximum((falling > taken).sum(axis=1) - 1, 0)
    return np.asarray(np.maximum(rows - taken[np.arange(len(rows)), last][:, None], 0))


def consistent(values: list[FloatArray], variances: list[FloatArray]) -> FloatArray:
    """Shares of 64 x 64 cells from estimates on a tree: averaged upwards, projected downwards.

    An infinite variance means that a node was not asked for.
    """
    best = [(values[-1], variances[-1])]
    for value, variance in zip(values[-2:0:-1], variances[-2:0:-1], strict=True):
        below, spread = (one.reshape(-1, 4).sum(axis=1) for one in best[0])
        own, theirs = 1 / variance, 1 / spread
        known = own + theirs
        mean = np.where(known > 0, own * value + theirs * below, 0) / np.where(known > 0, known, 1)
        best.insert(0, (mean, np.where(known > 0, 1 / np.where(known > 0, known, 1), np.inf)))
    mass = np.ones(1)
    for value, variance in best:
        children, spread = value.reshape(-1, 4), variance.reshape(-1, 4)
        asked = np.asarray(np.isfinite(spread).all(axis=1))
        weight = np.where(asked[:, None], spread, 1)
        missing = mass - children.sum(axis=1)
        moved = children + missing[:, None] * weight / weight.sum(axis=1, keepdims=True)
        moved = _projected_rows(moved, mass)
        mass = np.where(asked[:, None], moved, mass[:, None] / 4).ravel()
    return _spread(mass, len(best))


def under_prior(
    values: list[FloatArray], variances: list[FloatArray], crowd: Crowd
) -> FloatArray | None:
    """The mean map of zoom's prior, given such estimates on a tree with Gaussian noise."""
    if not crowd.decoding:
        return None
    nodes = [np.flatnonzero(np.isfinite(one)) for one in variances[1:]]
    levels = np.repeat(np.arange(1, len(nodes) + 1), [one.size for one in nodes])
    told = [value[at] for value, at in zip(values[1:], nodes, strict=True)]
    spread = [np.sqrt(one[at]) for one, at in zip(variances[1:], nodes, strict=True)]
    counts = NoisyCounts(
        np.concatenate([[0], levels]),
        np.concatenate([[0], *nodes]),
        np.concatenate([[1.0], *told]) * crowd.users,
        np.maximum(np.concatenate([[1e-4], *spread]) * crowd.users, 0.5),
        np.zeros(levels.size + 1, dtype=np.bool_),
        law=GAUSSIAN,
    )
    return _shares(CountsPosterior(counts, mean_is_map=True))


def most_likely(chances: FloatArray, told: FloatArray) -> list[FloatArray]:
    """Shares by expectation-maximisation from an even map, stopped early and late.

    Chances are those of reports [report, cell].
    """
    small, counts = chances.astype(np.float32), told.astype(np.float32)
    shares = np.full(chances.shape[1], 1 / chances.shape[1], dtype=np.float32)
    found = []
    for step in range(1, max(EM_STEPS) + 1):
        seen = small @ shares
        shares = shares * ((counts / np.maximum(seen, np.float32(1e-30))) @ small)
        shares /= shares.sum()
        if step in EM_STEPS:
            found.append(shares.astype(np.float64) / float(shares.sum(dtype=np.float64)))
    return found


def _grown(
    crowd: Crowd, depth: int, *, rng: np.random.Generator, above: float, pooled: bool
) -> tuple[list[FloatArray], list[FloatArray]]:
    """A tree grown level by level by groups of users: estimates and variances of the nodes asked for.

    A node is split where its estimate exceeds `above` deviations of noise. Where `pooled`, all answers
    of a leaf that was asked for several times count.
    """
    values = [np.zeros(4**level) for level in range(depth + 1)]
    precisions = [np.zeros(4**level) for level in range(depth + 1)]
    leaves = [(1, code) for code in range(4)]
    odds = float(crowd.odds)
    for level, codes in enumerate(np.array_split(rng.permutation(crowd.codes), depth), start=1):
        group = crowd.part(codes)
        held = np.bincount(leaf_of_cells(leaves, FINEST_CELL)[codes], minlength=len(leaves))
        found, variances = frequencies(held, group, rng, of=crowd.users)
        noise = math.sqrt(4 * odds / (group.users * (odds - 1) ** 2))
        heavy = projected(found) > above * noise
        grown = []
        for at, (own, code) in enumerate(leaves):
            if pooled or own == level:
                more = 1 / max(variances[at], 1e-18)
                total = precisions[own][code] + more
                values[own][code] += (found[at] - values[own][code]) * more / total
                precisions[own][code] = total
            if own == level < depth and heavy[at]:
                grown += [(level + 1, child) for child in range(4 * code, 4 * code + 4)]
            else:
                grown.append((own, code))
        leaves = sorted(grown, key=lambda one: one[1] << 2 * (FINEST_CELL - one[0]))
    with np.errstate(divide="ignore"):
        return values, [1 / one for one in precisions]


def _decoded(
    crowd: Crowd, level: int, channel: DiskChannel, reports: Mapping[Report, int]
) -> FloatArray | None:
    if not crowd.decoding:
        return None
    question = Question(
        campaign="rival",
        round=1,
        users=crowd.users,
        epsilon=Fraction(str(crowd.epsilon)),
        bounds=UNIT,
        cells=tuple((level, code) for code in range(4**level)),
        part=(Fraction(0), Fraction(1)),
        channel=channel,
    )
    return _shares(decode([evidence_of(question, reports)], crowd.users))


def _shares(found: CountsPosterior) -> FloatArray:
    means = found.means(SHOWN)
    return np.asarray(means / means.sum())


def _spread(shares: FloatArray, level: int) -> FloatArray:
    wide = 4 ** (SHOWN - level)
    return np.asarray(np.repeat(shares, wide) / wide)


RIVALS = (
    Rival("grid", (2, 3, 4, 5), grid),
    Rival("k-ary", (1, 2, 3, 4), kary),
    Rival("hierarchy", (3, 4, 5), hierarchy),
    Rival("AHEAD", (3, 4, 5), ahead),
    Rival("quadtree", (3, 4, 5), quadtree),
    Rival("disk", (3, 4), disk),
    Rival("Laplace", (PLANAR,), planar_laplace(math.sqrt(2))),
)
WEAKER = Rival("Laplace, weaker", (PLANAR,), planar_laplace(0.1))
"""Geo-indistinguishable: epsilon at a tenth of the side, 14 epsilon from corner to corner."""
