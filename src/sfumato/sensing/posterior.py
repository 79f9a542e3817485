"""All that noisy readings tell: draws of how many sources there are, where, and how large."""

from __future__ import annotations

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.sensing.estimate import distances_between, places_of
from sfumato.sensing.mixing import Mixing, judge
from sfumato.sensing.operators import GraphDiffusion, Operator
from sfumato.sensing.posterior_kernel import anneal
from sfumato.sensing.recover import positive, readings_of
from sfumato.sensing.solver.kept import afresh, kept
from sfumato.spaces import Grid, Line
from sfumato.spaces.space import FloatArray, IntArray, read_only, whole

Masses = Literal["learned", "known", "free"]

MOST_CELLS = 4096  # all pairs of them are kept: 128 MB
ENOUGH_CELLS, ENOUGH_LEVELS = 256, 5  # of a line, a grid: of more cells, some stand for their neighbors
HALVES = 2  # independent populations, to compare
MOVES, LAST = 6, 15  # of each particle, in a stage and in the last one
PARTICLES = (256, 640)  # and again with more where the first did not mix
MANY, PARTICLES_OF_MANY = 1000, (128, 240)  # cells: every move looks at all of them
NEAR = 8  # cells that a walk may step to


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Sources that could have led to the readings: so many draws of them, each with its weight.

    `cells` and `masses` have one row for each draw; -1 and 0 fill the rows. `weights` total 1. `known` is the
    probability that every source has mass `upper`, if that was to be learned. `looked_at` are the cells where
    sources were looked for: all of them, or on fine lines and grids every so many-th. It was computed from
    released readings alone, so nothing in it costs privacy.
    """

    operator: Operator
    readings: FloatArray
    sigma: float
    upper: float
    cells: IntArray
    masses: FloatArray
    weights: FloatArray
    known: float
    mixing: Mixing
    looked_at: IntArray

    @property
    def counts(self) -> FloatArray:
        """How likely there are 0, 1, 2 ... sources."""
        return np.asarray(np.bincount((self.cells >= 0).sum(axis=1), weights=self.weights), dtype=np.float64)

    @property
    def shares(self) -> FloatArray:
        """The mass expected in each cell, as a share of all mass."""
        share = self.masses / self.masses.sum(axis=1, keepdims=True) * self.weights[:, np.newaxis]
        held = self.cells >= 0
        size = self.operator.space.size
        return np.asarray(
            np.bincount(self.cells[held], weights=share[held], minlength=size), dtype=np.float64
        )

    def total(self, level: float = 0.9) -> tuple[float, float]:
        """An interval that holds the total mass with this probability."""
        return _interval(self.masses.sum(axis=1), self.weights, level)

    def near(self, place: npt.ArrayLike, radius: float) -> float:
        """How likely there is a source within a distance of a place (on a graph: of a node)."""
        here = np.atleast_2d(np.asarray(place, dtype=np.float64))
        return float(self.weights @ (self.nearest(here)[:, 0] <= radius))

    def nearest(self, places: FloatArray) -> FloatArray:
        """How far the nearest source is from each place: draws by places."""
        space = self.operator.space
        cells = np.unique(self.cells[self.cells >= 0])
        apart = np.vstack(
            [distances_between(space, places, places_of(space, cells)).T, np.full(len(places), np.inf)]
        )
        at = np.where(self.cells >= 0, np.searchsorted(cells, self.cells), len(cells))
        return np.asarray(apart[at].min(axis=1))


def posterior(
    operator: Operator,
    y: npt.ArrayLike,
    *,
    sigma: float,
    rng: np.random.Generator,
    upper: float = 1.0,
    most: int = 12,
    masses: Masses = "learned",
) -> Posterior:
    """Draws of the sources that could have led to readings, by what is believed of sources beforehand.

    Believed is: from 1 to `most` sources, each number as likely; each source in any cell; and of their masses
    either (`known`) that all are `upper`, or (`free`) that they are uniform between an unknown floor and
    `upper`. `learned` gives both the same chance and lets the readings decide. Noise is Gaussian.

    Annealed particles [delmoral06]: two populations for each belief about masses, from the prior to the
    posterior. Two populations that disagree are run again with more particles; if they still do,
    `mixing.mixed` is False and its sentence says so.

    Limits. The error is that of the prior where it is wrong: more sources than `most`, masses above `upper`
    or sources that are not points but spread out come out as the nearest set of points. A line of more than
    256 cells and a grid of more than 1,024 are looked at in every so many-th; other spaces of more than 4,096
    cells are refused.
    """
    readings = readings_of(operator, y)
    noise, top = positive("sigma", sigma), positive("upper", upper)
    most = whole("most", most, low=1, high=64)
    if masses not in get_args(Masses):
        raise InvalidParameter(
            f"masses are 'learned', 'known' or 'free', got {masses!r}; nothing was recovered"
        )
    afresh(operator)
    looked_at = kept(operator, "looked at", lambda: _looked_at(operator))
    gram, first, to = kept(operator, "gram", lambda: _gram(operator, looked_at))
    score = operator.adjoint(readings)[looked_at] / noise**2
    log_prior = np.concatenate([[-np.inf], np.full(most, -math.log(most))])
    beliefs = (False, True) if masses == "learned" else (masses == "free",)
    for particles in PARTICLES_OF_MANY if looked_at.size > MANY else PARTICLES:
        tasks = [(free, chance) for free in beliefs for chance in rng.spawn(HALVES)]
        run = partial(_population, gram / noise**2, score, log_prior, top, particles, (first, to))
        with ThreadPoolExecutor(2) as pool:
            populations = list(pool.map(run, tasks))
        if any(math.isnan(one.evidence) for one in populations):
            raise SolverFailed(
                f"readings so many times larger than their noise, {noise:.3g}, are beyond what can be drawn "
                "from; no estimate was made"
            )
        found = _together(operator, readings, noise, top, populations, looked_at, both=len(beliefs) > 1)
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
    return Population(*anneal(gram, score, log_prior, free, top, particles, MOVES, LAST, *walks, chance))


def _together(
    operator: Operator,
    readings: FloatArray,
    sigma: float,
    upper: float,
    populations: list[Population],
    looked_at: IntArray,
    *,
    both: bool,
) -> Posterior:
    """All populations, each weighted by the evidence for its belief; halves of a belief count the same."""
    size = len(populations[0].counts)
    evidence = np.array([one.evidence for one in populations]).reshape(-1, HALVES)
    # Within a half, beliefs are weighted by that half's own evidence: the halves stay independent.
    share = np.exp(evidence - evidence.max(axis=0))
    share /= share.sum(axis=0)
    pooled = np.exp(evidence - evidence.max()).mean(axis=1)
    pooled /= pooled.sum()
    weights = np.repeat(pooled / HALVES, HALVES * size) / size
    most = populations[0].cells.shape[1]
    held = np.arange(most) < np.concatenate([one.counts for one in populations])[:, np.newaxis]
    cells = np.where(held, looked_at[np.concatenate([one.cells for one in populations])], -1)
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
    return Posterior(
        operator,
        readings,
        sigma,
        upper,
        read_only(cells[kept_weights]),
        read_only(masses[kept_weights]),
        read_only(weights[kept_weights] / weights.sum()),
        float(pooled[0]) if both else math.nan,
        mixing,
        looked_at,
    )


def _looked_at(operator: Operator) -> IntArray:
    """All cells, or on a fine line or grid every so many-th."""
    space = operator.space
    if isinstance(space, Line) and space.size > ENOUGH_CELLS and not isinstance(operator, GraphDiffusion):
        return np.unique(np.linspace(0, space.size - 1, ENOUGH_CELLS).round().astype(np.int64))
    if isinstance(space, Grid) and space.levels > ENOUGH_LEVELS:
        # In Z-order a block is a run of cells; the one past three quarters of it lies at its middle.
        run = 4 ** (space.levels - ENOUGH_LEVELS)
        return np.asarray(np.arange(0, space.size, run) + 3 * run // 4, dtype=np.int64)
    if space.size > MOST_CELLS:
        raise InvalidParameter(
            f"sources are looked for in at most {MOST_CELLS} cells, got {space.size}; take coarser cells, or "
            "the least mass (R), which has no such limit; nothing was recovered"
        )
    return np.arange(space.size)


def _gram(operator: Operator, cells: IntArray) -> tuple[FloatArray, IntArray, IntArray]:
    """M'M of these cells; and the cells to which a walk may step: those that read most alike, both ways."""
    match operator:
        case GraphDiffusion():
            spread = np.zeros((operator.space.size, cells.size))
            np.add.at(spread, operator.nodes, operator.columns(cells))
            gram = operator.diffuse(spread)[cells]
        case _:
            columns = operator.columns(cells)
            gram = columns.T @ columns
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


def _interval(values: FloatArray, weights: FloatArray, level: float) -> tuple[float, float]:
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    ends: Iterable[float] = ((1 - level) / 2, (1 + level) / 2)
    low, high = (values[order[min(int(np.searchsorted(below, end)), values.size - 1)]] for end in ends)
    return float(low), float(high)
