"""Several rounds of one scene: static sources averaged, moving ones followed, and what the rounds cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, whole
from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, ApproxDP
from sfumato.privacy.accounting import Number
from sfumato.sensing.diagnostics import mixing
from sfumato.sensing.model.operators.places import half_cells, noise_anywhere, off_center
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.release.rounds import RoundsCost, cost_after
from sfumato.sensing.tracking.average import checked_rounds
from sfumato.sensing.tracking.chain import (
    MORE_LEANS,
    Chain,
    Steps,
    Walks,
    name_alike,
    sampled,
    split_rhat,
    without_one,
)

MAX_CELLS = 2000
"""Cells up to which paths are followed: a step costs the square of them."""
HELD = 0.9
SPEEDS, FINE = 6, 26
"""Of one source, and of several: there a chain goes from one speed to the next by the steps of its paths,
which must be likely at both."""
MASSES = 24
REFINED = 20
"""Grids of masses at most, each at most 0.6 as wide as the one before."""
NEGLIGIBLE = 1e-6
CHAINS, AGAIN = 4, 2
"""Chains, and how many times as many draws each makes where the first ones do not agree."""


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """Where each source was in each round: rounds by sources.

    `chances` are its posterior over cells; `cells` the cells nearest to all of it on average, the
    Bayes rule for distance; `radii` how far around them 0.9 of it lies, with the cells that it lies in
    where sources are anywhere in them. `masses` and `speed` are
    posterior means. `rhat` compares the chains of a sampled track and is None where the answer is
    exact. `fewer` is how many times likelier the readings are with one source fewer than with
    these, for one source with none; it grows in proportion to `max_mass`, up to which any mass was
    as likely.
    """

    operator: Operator
    cells: IntArray
    chances: FloatArray
    radii: FloatArray
    masses: FloatArray
    speed: float
    rhat: float | None
    fewer: float | None = None

    @property
    def mixed(self) -> bool:
        """Whether the chains agree; where they do not, the track is one of several that fit."""
        return self.rhat is None or self.rhat <= mixing.RHAT

    def estimate(self, number: int) -> Estimate:
        """The sources of one round, counted from 0."""
        at = whole("round", number, low=0, high=len(self.cells) - 1)
        return Estimate(self.operator, self.operator.space.places(self.cells[at]), self.masses)

    def cost(self, loss: ZCDP | ApproxDP, *, delta: Number | None = None) -> RoundsCost:
        """What all rounds cost together if each costs this loss: `cost_after`."""
        return cost_after(loss, [len(self.cells)], delta=delta)[0]


def track(
    operator: Operator,
    rounds: npt.ArrayLike,
    *,
    sigma: float | npt.ArrayLike,
    speed: float | None = None,
    max_mass: float = 1.0,
    count: int = 1,
    rng: np.random.Generator | None = None,
    draws: int = 300,
    anywhere: bool = False,
) -> Track:
    """Follow sources of constant mass that move from cell to cell, one row of readings for each round.

    A hidden Markov model: a source begins anywhere, and goes from x to z in a round with a chance
    proportional to exp(-d(x, z)**2 / (2 speed**2)), d the metric of the space (and anywhere with
    1e-6). It has a mass uniform in (0, max_mass]. `speed` None is learned: six values from half the
    closest two cells to a quarter of the farthest, in equal ratios and as likely, 26 for several
    sources. `sigma` may be one for each round.

    One source: exact, by forward-backward sums [rabiner89, sec. III] over cells, masses and speeds;
    masses are on a grid that is refined where the evidence is. Several: Gibbs sampling [carter94],
    of a whole path given the others, of masses given the paths, of which of two sources was where in
    each round, and of what mass goes from one to another with both paths summed over cells near where they
    are [neal04]; 4 chains of `draws` kept sweeps after three quarters as many of burn-in, by
    randomness from `rng`, and afresh with twice as many where they do not agree. `rhat` says whether
    they do, `mixed` whether it is at most 1.1. One source fewer is the same model with a mass of 0,
    so the ratio of their evidences is the posterior density of a mass at 0 times `max_mass`
    [dickey71]: `fewer`, from the same draws; of one source it is exact. Above 1, a source is likely
    not there, if it may have any mass up to `max_mass`: with twice the `max_mass` it is about twice
    as much. Nothing where `mixed` is False.

    Limits: at most 2,000 cells (take a coarser space above), since time grows with their square.
    The radii are calibrated if sources move so; one that rests and then runs is lagged behind. How
    many sources there are is not learned (`fewer` tells of one too many, nothing of one too few),
    and two that meet may change names. Two near each other can trade mass for place
    at nearly the same fit, and where chains then still disagree `mixed` is False; more draws help.

    Args:
        operator: Maps masses of cells to readings of sensors. At most 2,000 cells.
        rounds: A row of noisy readings for each round; not a number where a sensor did not read.
        sigma: Standard deviation of the noise, one or one for each round.
        speed: How far a source goes in a round, as a deviation; None means learned.
        max_mass: The largest mass of one source.
        count: How many sources there are.
        rng: A NumPy generator, for several sources.
        draws: Kept sweeps of each chain, for several sources.
        anywhere: Whether sources go anywhere in their cells, and not through the middles: radii then hold
            whole cells, and what standing off the middle changes in the readings counts as noise, where
            that is more than half a sigma.

    Returns:
        Where each source was in each round, with 90 % radii.

    Raises:
        InvalidParameter: If a parameter is out of range, or `rng` is missing.

    >>> from sfumato.sensing import heat_line
    >>> line = heat_line(sources=10, sensors=10, diffusion_time=0.01)
    >>> moving = line.columns([2, 3, 4, 5]).T
    >>> track(line, moving, sigma=0.1).cells[:, 0]
    array([2, 3, 4, 5])
    """
    read, deviations = checked_rounds(rounds, sigma, gaps=True)
    if anywhere:
        deviations = noise_anywhere(deviations, max_mass * off_center(operator))
    # A reading that is not there says nothing: as one of 0 with infinite noise.
    missing = np.isnan(read)
    noise = np.where(missing, np.inf, deviations[:, np.newaxis])
    read = np.where(missing, 0.0, read)
    m, n = operator.shape
    if n > MAX_CELLS:
        raise InvalidParameter(
            f"a track takes at most {MAX_CELLS} cells, got {n}: give a coarser space; nothing was computed"
        )
    if read.shape[1] != m:
        raise InvalidParameter(
            f"each round must be a reading of each of {m} sensors, got {read.shape[1]}; nothing was computed"
        )
    if not 0 < max_mass < math.inf or (speed is not None and not 0 <= speed < math.inf):
        raise InvalidParameter(
            f"`max_mass` must be above 0 and speed at least 0, both finite, got {max_mass} and {speed}; "
            "nothing was computed"
        )
    count = whole("count", count, low=1)
    places = operator.space.places(np.arange(n))
    apart = operator.space.distances_between(places, places)
    many = SPEEDS if count == 1 else FINE
    speeds = _speeds(apart, many) if speed is None else np.array([float(speed)])
    scene = Walks(operator.columns(np.arange(n)), read, noise, apart, speeds, float(max_mass))
    beyond = half_cells(operator) if anywhere else 0.0
    if count == 1:
        return _one(operator, scene, beyond)
    if rng is None:
        raise InvalidParameter("several sources are sampled: give rng; nothing was computed")
    return _several(operator, scene, count, whole("draws", draws, low=4), rng, beyond)


def _speeds(apart: FloatArray, many: int) -> FloatArray:
    far = apart[np.isfinite(apart) & (apart > 0)]
    if not far.size:
        return np.zeros(1)
    return np.geomspace(far.min() / 2, max(far.max() / 4, far.min() / 2), many)


def _one(operator: Operator, scene: Walks, beyond: FloatArray | float) -> Track:
    steps = scene.steps()
    kept = np.arange(len(steps))
    grid = (np.arange(MASSES) + 0.5) * scene.max_mass / MASSES
    for _ in range(REFINED):
        filtered = [_forward(scene, steps[index], grid) for index in kept]
        evidence = np.array([found[1] for found in filtered])
        weights = np.exp(evidence - logsumexp(evidence))
        # Against a mass of 0, of which the logarithm is 0; over all speeds, and masses up to the largest.
        step = grid[1] - grid[0]
        against = float(logsumexp(evidence)) + math.log(step / (len(steps) * scene.max_mass))
        likely = weights.sum(axis=1) > NEGLIGIBLE
        kept, filtered = kept[likely], [f for f, keep in zip(filtered, likely, strict=True) if keep]
        weights = weights[likely] / weights[likely].sum()
        # Masses are finely enough resolved where many of them share the evidence.
        held = np.flatnonzero(weights.sum(axis=0) > NEGLIGIBLE * weights.sum(axis=0).max())
        low, high = max(grid[held[0]] - step, 0.0), min(grid[held[-1]] + step, scene.max_mass)
        if high - low > 0.6 * (grid[-1] - grid[0]):
            break
        grid = low + (np.arange(MASSES) + 0.5) * (high - low) / MASSES
    chances = sum(
        _smoothed(scene, steps[index], grid, found[0], weight)
        for index, found, weight in zip(kept, filtered, weights, strict=True)
    )
    cells, radii = _placed(np.asarray(chances), scene.apart, beyond)
    mass = float(weights.sum(axis=0) @ grid)
    speed = float(weights.sum(axis=1) @ scene.speeds[kept])
    return _track(
        operator, cells[:, np.newaxis], np.asarray(chances)[:, np.newaxis], radii[:, np.newaxis],
        np.array([mass]), speed, None, math.exp(min(-against, 700.0)),
    )  # fmt: skip


def _fit(scene: Walks, grid: FloatArray, at: int) -> FloatArray:
    """The logarithm of how likely one round is, up to a constant: masses by cells."""
    weights = scene.noise[at] ** -2.0
    seen = (weights * scene.read[at]) @ scene.columns
    size = weights @ scene.columns**2
    mass = grid[:, np.newaxis]
    return np.asarray(mass * seen - 0.5 * mass**2 * size)


def _forward(scene: Walks, step: FloatArray, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Filtered chances, rounds by masses by cells, and the logarithm of the evidence for each mass."""
    n = len(step)
    out = np.empty((len(scene.read), grid.size, n))
    evidence = np.zeros(grid.size)
    ahead = np.full((grid.size, n), 1 / n)
    for at in range(len(out)):
        fit = _fit(scene, grid, at)
        best = fit.max(axis=1, keepdims=True)
        joint = ahead * np.exp(fit - best)
        total = joint.sum(axis=1, keepdims=True)
        out[at] = joint / total
        evidence += (best + np.log(total))[:, 0]
        ahead = out[at] @ step
    return out, evidence


def _smoothed(
    scene: Walks, step: FloatArray, grid: FloatArray, filtered: FloatArray, weight: FloatArray
) -> FloatArray:
    """Chances given all rounds, rounds by cells, summed over masses with their weights."""
    out = np.empty((len(filtered), len(step)))
    behind = np.ones(filtered.shape[1:])
    for at in range(len(out) - 1, -1, -1):
        both = filtered[at] * behind
        out[at] = (weight / both.sum(axis=1)) @ both
        fit = _fit(scene, grid, at)
        behind = (behind * np.exp(fit - fit.max(axis=1, keepdims=True))) @ step.T
        behind /= behind.max(axis=1, keepdims=True)
    return out


def _several(
    operator: Operator,
    scene: Walks,
    count: int,
    draws: int,
    rng: np.random.Generator,
    beyond: FloatArray | float = 0.0,
) -> Track:
    steps = Steps.of(scene)
    chains = [sampled(scene, steps, count, draws, rng) for _ in range(CHAINS)]
    if (rhat := _disagreement(chains, scene)) > mixing.RHAT:
        # Afresh: a chain may be where all fits far worse, and stay.
        more = partial(sampled, scene, steps, count, AGAIN * draws, rng, leans=MORE_LEANS)
        chains = [more() for _ in range(CHAINS)]
        rhat = _disagreement(chains, scene)
    fits, moves, paths, masses, speeds = (np.array(part) for part in zip(*chains, strict=True))
    paths, masses = paths.reshape(-1, *paths.shape[2:]), masses.reshape(-1, count)
    fewer = without_one(scene, paths, masses)
    name_alike(paths, masses, scene.apart, reference=int(np.argmax(fits + moves)))
    t, n = paths.shape[1], len(scene.apart)
    chances = np.zeros((t, count, n))
    for path in paths:
        chances[np.arange(t)[:, np.newaxis], np.arange(count), path] += 1 / len(paths)
    cells, radii = _placed(chances.reshape(-1, n), scene.apart, beyond)
    return _track(
        operator, cells.reshape(t, count), chances, radii.reshape(t, count),
        masses.mean(axis=0), float(speeds.mean()), rhat, fewer,
    )  # fmt: skip


def _disagreement(chains: Sequence[Chain], scene: Walks) -> float:
    """The largest R-hat of numbers that do not change with the names of sources.

    Fit, total mass, how far all are from one cell. None of them knows who went where: how likely the
    steps are does.
    """
    fits, moves, paths, masses, _ = (np.array(part) for part in zip(*chains, strict=True))
    spread = scene.apart[0][paths].mean(axis=3)
    watched = [fits, moves, masses.sum(axis=2), *np.moveaxis(spread, 2, 0)]
    return max(split_rhat(one) for one in watched)


def _placed(
    chances: FloatArray, apart: FloatArray, beyond: FloatArray | float
) -> tuple[IntArray, FloatArray]:
    """The cell of least expected distance in each row, and the radius that holds 0.9 around it.

    A cell is held where what is `beyond` its middle is.
    """
    near = np.where(np.isfinite(apart), apart, 1e150)
    cells = np.argmin(chances @ near, axis=1)
    radii = np.empty(cells.size)
    for row, cell in enumerate(cells.tolist()):
        ends = apart[cell] + beyond
        order = np.argsort(ends, kind="stable")
        reached = np.cumsum(chances[row, order])
        radii[row] = ends[order[int(np.searchsorted(reached, HELD * reached[-1]))]]
    return np.asarray(cells, dtype=np.int64), radii


def _track(
    operator: Operator,
    cells: IntArray,
    chances: FloatArray,
    radii: FloatArray,
    masses: FloatArray,
    speed: float,
    rhat: float | None,
    fewer: float | None = None,
) -> Track:
    held = (read_only(cells), read_only(chances), read_only(radii), read_only(masses))
    return Track(operator, *held, speed, rhat, fewer)
