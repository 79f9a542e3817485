"""All that noisy readings tell: draws of how many sources there are, where, and how large."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, logsumexp

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, whole
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.sensing.diagnostics.field_offset import free_of
from sfumato.sensing.diagnostics.mixing import judge
from sfumato.sensing.model.operators.places import noise_anywhere, off_center
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.recovery.estimators.least_mass import positive, readings_of
from sfumato.sensing.recovery.estimators.posterior_cells import (
    BLUR,
    Runs,
    all_runs,
    beside,
    closer,
)
from sfumato.sensing.recovery.estimators.posterior_kernel import anneal
from sfumato.sensing.recovery.estimators.source_posterior import CROWDED, SourcePosterior
from sfumato.sensing.recovery.solver.operator_cache import afresh, cached

Masses = Literal["learned", "known", "free"]

HALVES = 2  # independent populations, to compare
MOVES, LAST = 6, 15  # of each particle, in a stage and in the last one
PARTICLES = (256, 640)  # and again with more where the first did not mix
MANY, PARTICLES_OF_MANY = 1000, (128, 240)  # cells: every move looks at all of them
NEAR = 8  # cells that a walk may step to
DEFAULT_SOURCES, LIMIT = 12, 64  # sources that are believed possible unless told, and at all
SEEN = 15.0  # deviations of noise that one source must be read with to be found by a first look
FAINT, AGAIN = (
    3.0,
    4,
)  # deviations of what is left, from which on a source is looked for there, so many times
TINY = 1e-300


def posterior(
    operator: Operator,
    y: npt.ArrayLike,
    *,
    sigma: float,
    rng: np.random.Generator,
    max_mass: float = 1.0,
    max_sources: int | None = None,
    masses: Masses = "learned",
    anywhere: bool = False,
    offset: bool = False,
) -> SourcePosterior:
    """Draws of the sources that could have led to readings, by what is believed of sources beforehand.

    Believed is: from 1 to `max_sources` sources, each number as likely (12; where the readings then ask
    for 12, 24 and so on up to 64); each source in any cell; and of their masses either (`known`)
    that all are `max_mass`, or (`free`) that they are uniform between an unknown floor and `max_mass`.
    `learned` gives both the same chance and lets the readings decide. Noise is Gaussian.

    Annealed particles [delmoral06]: two populations for each belief about masses, from the prior to
    the posterior. Two populations that disagree are run again with more particles; if they still
    do, `mixing.mixed` is False and its sentence says so.

    On a line of more than 256 cells and a grid of more than 1,024, some stand for their neighbors.
    Where that would blur readings by more than half a sigma, sigma is taken to be larger first, and
    cells are looked at closer, with less of it, around what is found so, and where what that leaves
    looks like a source of three deviations or more; if that is everywhere, the larger sigma stays.

    Args:
        operator: Maps masses of cells to readings.
        y: One noisy reading for each sensor.
        sigma: Standard deviation of the noise of one reading.
        rng: A NumPy generator for the draws.
        max_mass: The largest mass of one source.
        max_sources: The most sources to consider, 1 to 64; None lets the readings decide from 12 on.
        masses: What is believed of masses: "learned", "known" or "free".
        anywhere: Whether sources stand anywhere in their cells, and not in the middle of one: what
            that changes in the readings counts as noise, where it is more than half a sigma.
        offset: Whether all readings may share an offset of which nothing is known: then what they read
            along it counts for nothing, and `SourcePosterior.offset` says what it may be.

    Returns:
        Weighted draws, whether they mixed, and a message where beliefs are wrong.

    Raises:
        InvalidParameter: If a parameter is out of range, or there are too many cells.
        SolverFailed: If readings are too large for their noise to be drawn from.

    Limits. The error is that of the prior where it is wrong: more sources than `max_sources`, masses above
    `max_mass` or sources that are not points but spread out come out as the nearest set of points;
    `message` tells where no such set fits. One source above `max_mass` comes out as several beside each
    other, and is then missed by more than R misses it: rather take `max_mass` too large. Spaces of
    more than 4,096 cells of which none may stand for others are refused.
    """
    readings = readings_of(operator, y)
    level = gains_of(operator) if offset else None
    noise, top = positive("sigma", sigma), positive("`max_mass`", max_mass)
    believed = (
        DEFAULT_SOURCES
        if max_sources is None
        else whole("`max_sources`", max_sources, low=1, high=LIMIT)
    )
    if masses not in get_args(Masses):
        raise InvalidParameter(
            f"masses are 'learned', 'known' or 'free', got {masses!r}; nothing was recovered"
        )
    afresh(operator)
    beliefs = (False, True) if masses == "learned" else (masses == "free",)
    between = cached(operator, "between", lambda: off_center(operator)) * top if anywhere else 0.0
    wider = float(noise_anywhere(noise, between))
    while True:
        found = _closing_in(operator, readings, level, wider, top, believed, beliefs, rng)
        if wider > noise:
            found = replace(found, sigma=noise, off_center=wider / noise)
        crowded = found.counts.size > believed and found.counts[believed] > CROWDED
        if max_sources is not None or believed == LIMIT or not crowded:
            return found
        believed = min(2 * believed, LIMIT)


def _closing_in(
    operator: Operator,
    readings: FloatArray,
    level: FloatArray | None,
    noise: float,
    top: float,
    max_sources: int,
    beliefs: tuple[bool, ...],
    rng: np.random.Generator,
) -> SourcePosterior:
    """Draws in all cells, or in some that stand for others: fewer and fewer, where sources are."""
    first = runs = all_runs(operator)
    key = "gram" if level is None else "gram beside an offset"
    table = cached(operator, key, lambda: _gram(operator, runs.middles, level))
    norms = np.sqrt(np.diag(table[0]))
    blur = cached(operator, "change", lambda: first.change) * top / BLUR
    while blur > noise:
        # As much noise as what stands for others makes, but not so much that it hides where to look
        # closer.
        seen = top * math.sqrt(float(np.diag(table[0]).max())) / SEEN
        scene = Looked(
            operator, readings, level, noise, max(1.0, min(blur, seen) / noise), top, runs, table
        )
        nearer = closer(
            runs, _drawn(scene, max_sources, beliefs, rng, tries=1).shares[runs.middles]
        )
        if nearer is None:
            break
        runs, table = nearer, _gram(operator, nearer.middles, level)
        blur = runs.change * top / BLUR
    for _ in range(1 + AGAIN):
        scene = Looked(operator, readings, level, noise, max(1.0, blur / noise), top, runs, table)
        found = _drawn(scene, max_sources, beliefs, rng)
        added = _with_faint(found, level, runs, first, norms)
        if added is None:
            break
        runs, table = added, _gram(operator, added.middles, level)
        blur = runs.change * top / BLUR
    return found


def _with_faint(
    found: SourcePosterior, level: FloatArray | None, runs: Runs, first: Runs, norms: FloatArray
) -> Runs | None:
    """More runs, where what the expected sources leave looks like another one: too faint for a first look."""
    if runs.share == 1:
        return None
    operator = found.operator
    rest = _beside(found.readings - operator.readings(found.expected), level)
    left = operator.adjoint(rest)[first.middles]
    cells = np.append(0, np.cumsum(runs.lengths))
    begin, end = (
        cells[np.searchsorted(runs.starts, at)]
        for at in (first.starts, first.starts + first.lengths)
    )
    inside = end - begin == first.lengths
    deviations = left / (found.widened * found.sigma * np.maximum(norms, TINY))
    faint = np.flatnonzero((deviations > FAINT) & ~inside)
    return beside(runs, first, faint) if faint.size else None


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """Readings, their noise, by how much it is taken to be larger, and where their sources are looked for.

    `level` is what an offset of 1 adds to them, where they may share one; else None.
    """

    operator: Operator
    readings: FloatArray
    level: FloatArray | None
    sigma: float
    widened: float
    max_mass: float
    runs: Runs
    table: tuple[FloatArray, IntArray, IntArray]


def _drawn(
    scene: Looked,
    max_sources: int,
    beliefs: tuple[bool, ...],
    rng: np.random.Generator,
    *,
    tries: int | None = None,
) -> SourcePosterior:
    """Draws of all beliefs, again with more particles where they did not mix, at most so many times."""
    gram, first, to = scene.table
    variance = (scene.widened * scene.sigma) ** 2
    gram = gram / variance
    seen = _beside(scene.readings, scene.level)
    score = scene.operator.adjoint(seen)[scene.runs.middles] / variance
    # A source is in any cell: as likely in these runs as they are a share of the space.
    log_prior = np.arange(max_sources + 1, dtype=np.float64) * math.log(scene.runs.share)
    log_prior[0] = -math.inf
    log_prior -= float(logsumexp(log_prior))
    for particles in (PARTICLES_OF_MANY if len(gram) > MANY else PARTICLES)[:tries]:
        tasks = [(free, chance) for free in beliefs for chance in rng.spawn(HALVES)]
        run = partial(_population, gram, score, log_prior, scene.max_mass, particles, (first, to))
        with ThreadPoolExecutor(2) as pool:
            populations = list(pool.map(run, tasks))
        if any(math.isnan(one.evidence) for one in populations):
            raise SolverFailed(
                f"readings so many times larger than their noise, {scene.sigma:.3g}, are beyond what can be "
                "drawn from; no estimate was made"
            )
        found = _together(scene, populations, gram, score, max_sources, both=len(beliefs) > 1)
        if found.mixing.mixed:
            break
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Particles of one belief about masses."""

    cells: IntArray
    masses: FloatArray
    counts: IntArray
    evidence: float
    stages: int


def _population(
    gram: FloatArray,
    score: FloatArray,
    log_prior: FloatArray,
    top: float,
    particles: int,
    walks: tuple[IntArray, IntArray],
    task: tuple[bool, np.random.Generator],
) -> Population:
    free, chance = task
    return Population(
        *anneal(gram, score, log_prior, free, top, particles, MOVES, LAST, *walks, chance)
    )


def _together(
    scene: Looked,
    populations: list[Population],
    gram: FloatArray,
    score: FloatArray,
    max_sources: int,
    *,
    both: bool,
) -> SourcePosterior:
    """All populations, each weighted by the evidence for its belief; halves of a belief count the same."""
    operator, looked_at = scene.operator, scene.runs.middles
    size = len(populations[0].counts)
    evidence = np.array([one.evidence for one in populations]).reshape(-1, HALVES)
    # Within a half, beliefs are weighted by that half's own evidence: the halves stay independent.
    share = np.exp(evidence - evidence.max(axis=0))
    share /= share.sum(axis=0)
    pooled = np.exp(evidence - evidence.max()).mean(axis=1)
    pooled /= pooled.sum()
    weights = np.repeat(pooled / HALVES, HALVES * size) / size
    counts = np.concatenate([one.counts for one in populations])
    held = np.arange(max_sources) < counts[:, np.newaxis]
    at = np.where(held, np.concatenate([one.cells for one in populations]), 0)
    cells = np.where(held, looked_at[at], -1)
    masses = np.where(held, np.concatenate([one.masses for one in populations]), 0.0)
    kept_weights = weights > 0
    mixing = judge(
        operator,
        cells,
        masses,
        halves=np.repeat(share.ravel(), size) / size,
        half=np.tile(np.repeat(np.arange(HALVES), size), len(share)),
        law_gap=float(abs(share[0, 0] - share[0, 1])) if both else 0.0,
        particles=size,
        stages=max(one.stages for one in populations),
    )
    # The log likelihood is c'f - f'Hf / 2, up to that of no sources.
    likely = np.sum(masses * score[at], axis=1)
    likely -= 0.5 * np.einsum(
        "di,dij,dj->d", masses, gram[at[:, :, np.newaxis], at[:, np.newaxis]], masses
    )
    seen = _beside(scene.readings, scene.level)
    none = float(seen @ seen) / (scene.widened * scene.sigma) ** 2
    square = max(0.0, none - 2 * float(likely[kept_weights].max()))
    return SourcePosterior(
        operator,
        scene.readings,
        scene.sigma,
        scene.max_mass,
        read_only(cells[kept_weights]),
        read_only(masses[kept_weights]),
        read_only(weights[kept_weights] / weights.sum()),
        float(pooled[0]) if both else math.nan,
        mixing,
        looked_at,
        scene.runs.reach,
        scene.widened,
        float(chdtrc(seen.size - (scene.level is not None), square)),
        max_sources,
    )


def _beside(readings: FloatArray, level: FloatArray | None) -> FloatArray:
    """What readings say beside an offset, where they may share one."""
    return readings if level is None else free_of(readings, level)


def _gram(
    operator: Operator, cells: IntArray, level: FloatArray | None
) -> tuple[FloatArray, IntArray, IntArray]:
    """M'M of these cells; and the cells to which a walk may step: those that read most alike, both ways.

    Beside an offset M is without what lies along `level`: the posterior of sources and a flat offset, the
    offset integrated out.
    """
    gram = operator.gram(cells)
    if level is not None:
        along = operator.adjoint(level)[cells] / np.linalg.norm(level)
        gram = gram - np.outer(along, along)
        np.fill_diagonal(gram, np.maximum(np.diag(gram), 0.0))  # a rounding may leave less
    gram = np.ascontiguousarray((gram + gram.T) / 2)
    size = len(gram)
    if size == 1:
        return gram, np.array([0, 1]), np.array([0])
    own = np.diag(gram)
    apart = own[:, np.newaxis] + own - 2 * gram
    np.fill_diagonal(apart, np.inf)
    nearest = np.argpartition(apart, min(NEAR, size - 1) - 1, axis=1)[:, : min(NEAR, size - 1)]
    linked = np.zeros((size, size), dtype=bool)
    linked[np.arange(size)[:, np.newaxis], nearest] = True
    linked |= linked.T
    first = np.concatenate([[0], np.cumsum(linked.sum(axis=1))]).astype(np.int64)
    return gram, first, np.nonzero(linked)[1].astype(np.int64)
