"""Sources between the cells: continuous places and masses by least squares, as many as pay for themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato._validate import read_only, whole
from sfumato.errors import SolverFailed
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.recovery.estimators.heat_scene import (
    TINY,
    Scene,
    SceneEstimator,
    scene_of,
)
from sfumato.sensing.recovery.estimators.least_mass import recover

ROUNDS = 80
"""Steps of least squares after which a fit is taken as it is."""
SMALL = 1e-2
"""A step that gains less than this in chi-square ends a fit: far below what a source costs, and further steps
would fit the noise along valleys that readings do not tell from each other."""
PATIENCE = 2
"""Counts in a row without a lower score after which no larger one is tried."""
LATTICE = {1: 256, 2: 48}
"""Most places along an axis at which a further source is looked for, by the number of axes."""
WIDE = 0.25
"""Of a line or of a side of a plane: a larger error of a place tells nothing."""
CLUSTERS = 64
"""Places R's answer is brought down to at once, before pairs of them are merged one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class OffGrid:
    """Sources at any places within the span of the space, and how sure each number is.

    `scores` has the score of every count that was tried, 0 among them; the least one is the
    answer's. With a count that was asked for it has that one only. `converged` says whether its
    least squares came to rest. `place_errors` and `mass_errors` are standard errors from the Fisher
    information of all places and masses at the answer, None where that is singular (two sources too
    close to tell apart, say) or there are no sources. They hold the count for known, and are too
    large where a bound holds a place or a mass.
    """

    estimate: Estimate
    scores: dict[int, float]
    converged: bool
    place_errors: FloatArray | None
    mass_errors: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """One configuration at rest, or not: places, masses in units of the noise, chi-square."""

    places: FloatArray
    masses: FloatArray
    chi_square: float
    converged: bool


def off_grid(
    operator: Operator,
    y: npt.ArrayLike,
    *,
    sigma: float,
    max_mass: float = 1.0,
    count: SupportsIndex | None = None,
    max_sources: SupportsIndex = 8,
) -> OffGrid:
    """Where sources are, not bound to cells, and how many: the likeliest places and masses.

    Least squares over places in the span of the space and masses in [0, max_mass]. The count is the
    one of least chi-square + log(m) (d + 1) count, m readings in d dimensions [schwarz78]: a
    further source must explain more than its coordinates and its mass would by chance. Each count
    starts from R's answer with near cells merged, and from the answer for one source fewer and the
    one more that explains most of what is left, slid to rest together [denoyelle19]. Counts are
    tried from 1 to `max_sources`, until two in a row score no better; with a `count`, up to it, and it is
    the answer's. Readings R explains by nothing have no sources unless there is a count; where R
    finds none in reach, or fails, the other start remains.

    Args:
        operator: Heat on a line or in a plane.
        y: One noisy reading for each sensor.
        sigma: Standard deviation of the noise of one reading.
        max_mass: The largest mass of one source.
        count: How many sources there are; None lets the score decide.
        max_sources: The most sources that are tried where `count` is None.

    Returns:
        Sources with standard errors, and the scores of all counts tried.

    Raises:
        InvalidParameter: If a parameter is out of range, or the operator is no heat between cells.

    Limits: the surface has many valleys, and what is found is the lowest of a few. Sources nearer
    than the noise lets tell apart come out as fewer, in their middle; so it pays where sources are
    few or `max_mass` is what they have, since that tells how many there must be. A scene with more
    than `max_sources` sources, or heavier ones than `max_mass`, is not explained: compare the score with m.

    >>> from sfumato.sensing import heat_line
    >>> line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> truth = np.zeros(100)
    >>> truth[[30, 80]] = 0.5, 1
    >>> found = off_grid(line, line.readings(truth), sigma=0.01)
    >>> found.estimate.places.round(3).tolist(), found.estimate.masses.round(3).tolist()
    ([[0.31], [0.81]], [0.5, 1.0])
    """
    scene = scene_of(operator, y, sigma=sigma, max_mass=max_mass)
    max_sources = (
        whole("`max_sources`", max_sources, low=1)
        if count is None
        else whole("count", count, low=1)
    )
    nothing = float(scene.readings @ scene.readings)
    try:
        found = recover(operator, y, sigma=sigma, max_mass=max_mass)
    except SolverFailed:
        merged: dict[int, tuple[FloatArray, FloatArray]] = {}
    else:
        if found.status == "zero" and count is None:
            empty = scene.estimate(np.empty((0, scene.axes)), np.empty(0))
            return OffGrid(empty, {0: nothing}, True, None, None)
        places, masses = operator.space.places(found.support), found.estimate[found.support]
        merged = dict(_merged(places, masses / scene.sigma, max_sources))
    if count is not None:
        *_, fit = _count_up(scene, merged, max_sources, patience=max_sources)
        return _with_errors(scene, fit, {max_sources: scene.score(fit.chi_square, max_sources)})
    return _answer(scene, _count_up(scene, merged, max_sources), nothing)


def _merged(
    places: FloatArray, masses: FloatArray, max_sources: int
) -> Iterator[tuple[int, tuple[FloatArray, FloatArray]]]:
    """R's cells merged into ever fewer clusters, where the mean square distance grows least."""
    if len(places) > CLUSTERS:
        parts = np.array_split(np.lexsort(places.T), CLUSTERS)
        places = np.array([masses[part] @ places[part] / masses[part].sum() for part in parts])
        masses = np.array([masses[part].sum() for part in parts])
    while len(places):
        if len(places) <= max_sources:
            yield len(places), (places, masses)
        if len(places) == 1:
            return
        apart = ((places[:, np.newaxis] - places) ** 2).sum(axis=-1)
        cost = apart * masses * masses[:, np.newaxis] / (masses + masses[:, np.newaxis])
        np.fill_diagonal(cost, np.inf)
        one, other = divmod(int(cost.argmin()), len(places))
        together = masses[one] + masses[other]
        places, masses = places.copy(), masses.copy()
        places[one] = (masses[one] * places[one] + masses[other] * places[other]) / together
        masses[one] = together
        places, masses = np.delete(places, other, axis=0), np.delete(masses, other)


def _count_up(
    scene: Scene,
    merged: dict[int, tuple[FloatArray, FloatArray]],
    max_sources: int,
    *,
    patience: int = PATIENCE,
) -> Iterator[Fit]:
    """The best fit of 1, 2, ... sources, until so many counts in a row score no better."""
    where = candidates(scene)
    units = scene.heat(where[np.newaxis])[1][0]
    best, places, masses = math.inf, np.empty((0, scene.axes)), np.empty(0)
    since = 0
    for count in range(1, max_sources + 1):
        rest = scene.readings - scene.heat(places[np.newaxis])[1][0] @ masses
        at, mass = one_more(scene, units, rest)
        starts = [(np.vstack([places, where[at]]), np.append(masses, mass))]
        if count in merged:
            starts.append(merged[count])
        fit = least_squares(
            scene, np.array([x for x, _ in starts]), np.array([w for _, w in starts])
        )
        yield fit
        places, masses = fit.places, fit.masses
        score = scene.score(fit.chi_square, count)
        since = 0 if score < best else since + 1
        best = min(best, score)
        if since == patience:
            return


def candidates(scene: Scene) -> FloatArray:
    """Places a quarter of the width apart, as far as they are not too many, and the sensors' own."""
    max_sources = LATTICE[scene.axes]
    steps = np.ceil((scene.high - scene.low) / (scene.width / 4)).clip(1, max_sources - 1)
    lines = [
        np.linspace(low, high, int(n) + 1)
        for low, high, n in zip(scene.low, scene.high, steps, strict=True)
    ]
    lattice = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, scene.axes)
    return np.concatenate([lattice, scene.operator.sensors.positions.clip(scene.low, scene.high)])


def one_more(scene: Scene, units: FloatArray, rest: FloatArray) -> tuple[int, float]:
    """Where one more source takes most of the rest away, and its mass."""
    slope, curve = rest @ units, np.maximum((units * units).sum(axis=0), TINY)
    mass = (slope / curve).clip(0, scene.max_mass)
    where = int(np.argmax(mass * slope - mass**2 * curve / 2))
    # Where nothing is left a little mass is begun with, else its place could not move.
    return where, max(float(mass[where]), 0.01 * scene.max_mass)


def least_squares(scene: Scene, places: FloatArray, masses: FloatArray) -> Fit:
    """The best of a batch of starts, each gone down to rest: projected Levenberg-Marquardt [kanzow04].

    Scipy's own takes one start at a time, and on a line six times as long.
    """
    batch, count, axes = places.shape
    low = np.concatenate([np.tile(scene.low, count), np.zeros(count)])
    high = np.concatenate([np.tile(scene.high, count), np.full(count, scene.max_mass)])
    at = np.concatenate([places.reshape(batch, -1), masses], axis=1).clip(low, high)
    diagonal = np.arange(low.size)
    damping, best, least, rested = np.full(batch, 1e-2), at[0], math.inf, False
    jacobian, residual = _linear(scene, at, count)
    cost = (residual**2).sum(axis=1)
    for left in range(ROUNDS, 0, -1):
        slope = (residual[:, np.newaxis, :] @ jacobian)[:, 0]
        free = ~(((at <= low) & (slope > 0)) | ((at >= high) & (slope < 0)))
        normal = jacobian.transpose(0, 2, 1) @ jacobian
        size = normal[:, diagonal, diagonal]
        floor = 1e-12 * size.max(axis=1, keepdims=True) + TINY
        normal *= free[:, :, np.newaxis] & free[:, np.newaxis, :]
        normal[:, diagonal, diagonal] += np.where(free, damping[:, np.newaxis] * size + floor, 1.0)
        step = np.linalg.solve(normal, -(slope * free)[..., np.newaxis])[..., 0]
        trial = (at + step).clip(low, high)
        trial_jacobian, trial_residual = _linear(scene, trial, count)
        trial_cost = (trial_residual**2).sum(axis=1)
        better = trial_cost < cost
        rest = np.where(better, (cost - trial_cost < SMALL) & (damping < 1), damping > 1e8)
        damping = np.where(better, damping / 6, damping * 5)
        at[better], residual[better] = trial[better], trial_residual[better]
        jacobian[better] = trial_jacobian[better]
        cost = np.where(better, trial_cost, cost)
        if rest.any() or left == 1:
            first = int(np.where(rest | (left == 1), cost, np.inf).argmin())
            if cost[first] < least:
                best, least, rested = at[first], float(cost[first]), bool(rest[first])
            going = ~rest
            if not going.any():
                break
            at, residual, jacobian = at[going], residual[going], jacobian[going]
            cost, damping = cost[going], damping[going]
    split = count * axes
    return Fit(best[:split].reshape(count, axes), best[split:], least, rested)


def _linear(scene: Scene, at: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """The Jacobian of what is read, by places and then masses, and the residual, of each of a batch."""
    split = count * scene.axes
    masses = at[:, split:]
    steps, heat = scene.heat(at[:, :split].reshape(len(at), count, scene.axes))
    residual = (heat @ masses[..., np.newaxis])[..., 0] - scene.readings
    pull = (heat * masses[:, np.newaxis, :])[..., np.newaxis] * steps / scene.width**2
    return np.concatenate([pull.reshape(len(at), heat.shape[1], split), heat], axis=2), residual


def _answer(scene: Scene, fits: Iterator[Fit], nothing: float) -> OffGrid:
    scores, best, least = (
        {0: nothing},
        Fit(np.empty((0, scene.axes)), np.empty(0), nothing, True),
        nothing,
    )
    for count, fit in enumerate(fits, start=1):
        scores[count] = scene.score(fit.chi_square, count)
        if scores[count] < least:
            least, best = scores[count], fit
    return _with_errors(scene, best, scores)


def _with_errors(scene: Scene, fit: Fit, scores: dict[int, float]) -> OffGrid:
    estimate = scene.estimate(fit.places, fit.masses)
    errors = _errors(scene, estimate)
    if errors is None:
        return OffGrid(estimate, scores, fit.converged, None, None)
    return OffGrid(estimate, scores, fit.converged, *map(read_only, errors))


def _errors(scene: Scene, estimate: Estimate) -> tuple[FloatArray, FloatArray] | None:
    """Standard errors from the inverse of the Fisher information, of columns scaled to length 1."""
    count = len(estimate.masses)
    if not count:
        return None
    at = np.concatenate([estimate.places.ravel(), estimate.masses / scene.sigma])
    jacobian = _linear(scene, at[np.newaxis], count)[0][0]
    size = np.sqrt((jacobian**2).sum(axis=0))
    if not size.all() or jacobian.shape[0] < at.size:
        return None
    _, strength, turn = np.linalg.svd(jacobian / size, full_matrices=False)
    if strength[-1] <= strength[0] * jacobian.shape[0] * np.finfo(float).eps:
        return None
    errors = np.sqrt(((turn / strength[:, np.newaxis]) ** 2).sum(axis=0)) / size
    split = count * scene.axes
    return errors[:split].reshape(count, scene.axes), errors[split:] * scene.sigma


def standard_errors(found: OffGrid, max_mass: float, extent: FloatArray) -> dict[str, Any]:
    """The errors of an answer as it is saved."""
    places, masses = found.place_errors, found.mass_errors
    return {
        "place_errors": None if places is None else tuple(map(tuple, places.tolist())),
        "mass_errors": None if masses is None else tuple(masses.tolist()),
        "distinguishes": distinguishes(found, max_mass, extent),
    }


def distinguishes(found: OffGrid, max_mass: float, extent: FloatArray) -> bool:
    """Whether errors are narrower than what masses and places can be; without errors they are not."""
    if found.place_errors is None or found.mass_errors is None:
        return not found.estimate.masses.size
    wide = (found.mass_errors > max_mass).any() or (found.place_errors > WIDE * extent).any()
    return not wide


ESTIMATOR = SceneEstimator("off-grid", off_grid, standard_errors)
