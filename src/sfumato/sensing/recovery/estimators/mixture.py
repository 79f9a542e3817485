"""Sources as the components of a mixture of known width, found by expectation and maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from sfumato._types import FloatArray
from sfumato._validate import whole
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.answer import Estimate
from sfumato.sensing.recovery.estimators.heat_scene import (
    TINY,
    Scene,
    SceneEstimator,
    equal_parts,
    scene_of,
)
from sfumato.sensing.recovery.estimators.off_grid import candidates, one_more

SHIFT = 10.0
"""What is added to every reading, in units of the noise: no reading is then below 0, but once in 1e23."""
ROUNDS = 400
"""Rounds after which an answer is taken as it is."""
GAIN = 1e-3
"""A round that gains less log likelihood than this is the last."""
SURPRISE = 1e-3
"""A misfit that noise would leave more seldom than this calls for another start."""
RESTARTS = 4
"""How often that is done at most."""
HALVINGS = 6
"""How often a move that lost likelihood is halved before places stay where they are for a round."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Sources as components of a mixture, and what speaks for their count.

    `scores` has the score of every count that was tried; the least one is the answer's.
    `likelihoods` are the logarithms of the answer's likelihood, from its start and after each
    round: they never fall. `converged` says whether the last round gained next to nothing.
    """

    estimate: Estimate
    scores: dict[int, float]
    likelihoods: tuple[float, ...]
    converged: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Peak:
    """Where one climb ended, with the likelihood on its way and the chi-square that is left."""

    places: FloatArray
    masses: FloatArray
    trace: list[float]
    converged: bool
    misfit: float


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """A batch of mixtures: places, masses (0 where there is no component), and what they read."""

    places: FloatArray
    masses: FloatArray
    steps: FloatArray
    heat: FloatArray
    expected: FloatArray
    likelihood: FloatArray

    def only(self, rows: npt.NDArray[np.bool_]) -> _State:
        return _State(
            self.places[rows],
            self.masses[rows],
            self.steps[rows],
            self.heat[rows],
            self.expected[rows],
            self.likelihood[rows],
        )


def mixture(
    operator: Operator,
    y: npt.ArrayLike,
    *,
    sigma: float,
    count: SupportsIndex | None = None,
    max_mass: float = 1.0,
    max_sources: SupportsIndex = 8,
) -> Mixture:
    """Where sources are, taking readings for a histogram of a mixture of bells as wide as heat spreads.

    A source at x with mass w is a component N(x, 2T), cut to the sensors; EM shares what each
    sensor reads among the components, then moves each to where its share is likeliest [dempster77]
    (future work in [gilbert17]). Readings with noise are not counts, and some are negative: y + b
    is taken for a Poisson count of (M f + b) in units of sigma**2 / b, with b = 10 sigma
    [snyder95]. A reading of nothing has then the variance sigma**2 it has, one of M f the variance
    sigma**2 (1 + M f / b): high readings count for less than they could. A larger b comes nearer to
    the law of the noise, and needs as many more rounds.

    Each component begins in the middle of one of `count` cells with equal parts of what is read,
    all with one mass. Where that ends with more left than noise leaves once in a thousand times,
    though not all masses are at `max_mass`, it begins again: from places that one after the other take
    most of the readings away, then with the lightest component where it takes most of the rest
    away, up to three times; the likeliest end counts. Without a count, it is the one from 0 to
    `max_sources` of least chi-square + log(m) (d + 1) count, m readings in d dimensions [schwarz78].

    Args:
        operator: Heat on a line or in a plane.
        y: One noisy reading for each sensor.
        sigma: Standard deviation of the noise of one reading.
        max_mass: The largest mass of one source.
        count: How many sources there are; None lets the score decide.
        max_sources: The most sources that are tried where `count` is None.

    Returns:
        Sources as components, and the scores of all counts tried.

    Raises:
        InvalidParameter: If a parameter is out of range, or the operator is no heat between cells.

    Limits: EM climbs to the nearest peak, and slowly: it stops where a round gains less than 0.001.
    So what readings do not tell stays as it began, masses and distances even; for many sources too
    near to tell apart that is closer to the truth than the likeliest answer, which heaps them up. A
    count that is too large spreads one source over its surroundings. In a plane, where the first
    start is poor, `off_grid` is better and faster, and with several sources too near to tell apart
    so is R.

    >>> from sfumato.sensing import heat_line
    >>> line = heat_line(sources=100, sensors=50, diffusion_time=0.01)
    >>> truth = np.zeros(100)
    >>> truth[[30, 80]] = 0.5, 1
    >>> found = mixture(line, line.readings(truth), sigma=0.01)
    >>> found.estimate.places.round(2).tolist(), found.estimate.masses.round(2).tolist()
    ([[0.31], [0.81]], [0.5, 1.0])
    """
    scene = scene_of(operator, y, sigma=sigma, max_mass=max_mass)
    if count is None:
        counts = list(range(1, whole("`max_sources`", max_sources, low=1) + 1))
        scores = {0: float(scene.readings @ scene.readings)}
    else:
        counts, scores = [whole("count", count, low=1)], {}
    peaks = dict(zip(counts, _climb(scene, *_even_starts(scene, counts)), strict=True))
    missed = counts
    for attempt in range(RESTARTS):
        missed = [k for k in missed if _went_astray(scene, peaks[k], k)]
        if not missed:
            break
        starts = _lightest_moved(scene, missed, peaks) if attempt else _greedy_starts(scene, missed)
        others = zip(missed, _climb(scene, *starts), strict=True)
        likelier = {k: other for k, other in others if other.trace[-1] > peaks[k].trace[-1]}
        peaks |= likelier
        missed = list(likelier) if attempt else missed
    scores |= {k: scene.score(peak.misfit, k) for k, peak in peaks.items()}
    best = min(scores, key=lambda k: scores[k])
    if best == 0:
        return Mixture(scene.estimate(np.empty((0, scene.axes)), np.empty(0)), scores, (), True)
    peak = peaks[best]
    estimate = scene.estimate(peak.places[:best], peak.masses[:best])
    return Mixture(estimate, scores, tuple(peak.trace), peak.converged)


def _went_astray(scene: Scene, peak: _Peak, count: int) -> bool:
    """Whether too much is left, and not for want of mass: then a component is where it should not be."""
    full = peak.masses[:count].min() >= scene.max_mass
    return not full and peak.misfit > float(chdtri(scene.readings.size, SURPRISE))


def _even_starts(scene: Scene, counts: list[int]) -> tuple[FloatArray, FloatArray]:
    """For each count, components in equal parts of what is read; those above the count have no mass."""
    places, masses = _no_components(scene, counts)
    read = np.maximum(scene.readings, 0)
    for row, count in enumerate(counts):
        parts = equal_parts(scene.operator.sensors.positions, read, count).clip(
            scene.low, scene.high
        )
        places[row, :count] = parts
        unit = max(float(scene.heat(parts[np.newaxis])[1].sum()), TINY)
        # Not 0, where all readings are negative: a component without mass never gets any.
        masses[row, :count] = min(scene.max_mass, max(float(scene.readings.sum()), 1.0) / unit)
    return places, masses


def _greedy_starts(scene: Scene, counts: list[int]) -> tuple[FloatArray, FloatArray]:
    """For each count, as many components as take most of the readings away, one after the other."""
    places, masses = _no_components(scene, counts)
    where = candidates(scene)
    units = scene.heat(where[np.newaxis])[1][0]
    rest = scene.readings
    for number in range(max(counts)):
        at, mass = one_more(scene, units, rest)
        rest = rest - mass * units[:, at]
        more = [row for row, count in enumerate(counts) if count > number]
        places[more, number], masses[more, number] = where[at], mass
    return places, masses


def _lightest_moved(
    scene: Scene, counts: list[int], peaks: dict[int, _Peak]
) -> tuple[FloatArray, FloatArray]:
    """For each count, its peak with the lightest component where it takes most of the rest away."""
    places, masses = _no_components(scene, counts)
    where = candidates(scene)
    units = scene.heat(where[np.newaxis])[1][0]
    for row, count in enumerate(counts):
        places[row, :count], masses[row, :count] = (
            peaks[count].places[:count],
            peaks[count].masses[:count],
        )
        lightest = int(masses[row, :count].argmin())
        masses[row, lightest] = 0
        rest = scene.readings - scene.heat(places[row : row + 1])[1][0] @ masses[row]
        at, masses[row, lightest] = one_more(scene, units, rest)
        places[row, lightest] = where[at]
    return places, masses


def _no_components(scene: Scene, counts: list[int]) -> tuple[FloatArray, FloatArray]:
    middle = (scene.low + scene.high) / 2
    return np.tile(middle, (len(counts), max(counts), 1)), np.zeros((len(counts), max(counts)))


def _climb(scene: Scene, places: FloatArray, masses: FloatArray) -> list[_Peak]:
    """EM on a batch, each until a round gains next to nothing."""
    places, masses = places.copy(), masses.copy()
    state = _state(scene, places, masses)
    traces = [[float(value)] for value in state.likelihood]
    converged, going = np.zeros(len(places), dtype=bool), np.arange(len(places))
    for left in range(ROUNDS, 0, -1):
        after = _round(scene, state)
        gain = after.likelihood - state.likelihood
        for row, value in zip(going, after.likelihood, strict=True):
            traces[row].append(float(value))
        ends, state = gain < GAIN, after
        if ends.any() or left == 1:
            places[going], masses[going], converged[going] = state.places, state.masses, ends
            going = going[~ends]
            if not going.size:
                break
            state = state.only(~ends)
    misfits = scene.chi_square(places, masses)
    return [
        _Peak(places[row], masses[row], trace, bool(converged[row]), float(misfits[row]))
        for row, trace in enumerate(traces)
    ]


def _state(scene: Scene, places: FloatArray, masses: FloatArray) -> _State:
    return _reading(scene, places, masses, *scene.heat(places))


def _reading(
    scene: Scene, places: FloatArray, masses: FloatArray, steps: FloatArray, heat: FloatArray
) -> _State:
    expected = (heat @ masses[..., np.newaxis])[..., 0] + SHIFT
    likelihood = SHIFT * (_counted(scene) * np.log(expected) - expected).sum(axis=1)
    return _State(places, masses, steps, heat, expected, likelihood)


def _counted(scene: Scene) -> FloatArray:
    """Readings as counts: with the shift, and cut at 0 where noise was yet lower."""
    return np.maximum(scene.readings + SHIFT, 0)


def _round(scene: Scene, state: _State) -> _State:
    """One round of EM: no mixture of the batch is less likely after it."""
    share = state.heat * (_counted(scene) / state.expected)[..., np.newaxis]  # of a unit of mass
    held = share.sum(axis=1) * state.masses
    move = _move(scene, state, share, held)
    pace = np.ones(len(move))
    for _ in range(HALVINGS):
        after = _moved(scene, state, held, move * pace[:, np.newaxis, np.newaxis])
        lost = after.likelihood < state.likelihood
        if not lost.any():
            return after
        pace[lost] /= 4
    pace[lost] = 0  # masses alone always gain
    return _no_less(_moved(scene, state, held, move * pace[:, np.newaxis, np.newaxis]), state)


def _move(scene: Scene, state: _State, share: FloatArray, held: FloatArray) -> FloatArray:
    """A Newton step of every component on what it holds, N log w - w Z(x) - N |x - mean|**2 / 4T.

    Z(x) is what a unit at x reads in all. With w = N / Z(x) it is concave in x: the likelihood of
    an exponential family, a bell cut to the sensors. Where w is held at max_mass it need not be. Axes
    move independently, and no further than half a width.
    """
    square = scene.width**2
    total = np.maximum(state.heat.sum(axis=1), TINY)[..., np.newaxis]
    pull = (share[..., np.newaxis] * state.steps).sum(axis=1) * state.masses[..., np.newaxis]
    weighed = state.heat[..., np.newaxis] * state.steps
    mean, second = weighed.sum(axis=1) / total, (weighed * state.steps).sum(axis=1) / total
    mass = np.minimum(held[..., np.newaxis] / total, scene.max_mass)
    full = mass >= scene.max_mass
    slope = (pull - mass * total * mean) / square
    own = held[..., np.newaxis]
    curve = np.where(
        full,
        own / square + mass * total * (second / square - 1) / square,
        own * (second - mean**2) / square**2,
    )
    step = slope / np.maximum(curve, 1e-3 * own / square + TINY)
    return np.asarray(step.clip(-scene.width / 2, scene.width / 2))


def _moved(scene: Scene, state: _State, held: FloatArray, move: FloatArray) -> _State:
    """Components at their new places, with the masses that what they hold gives them there."""
    places = (state.places + move).clip(scene.low, scene.high)
    steps, heat = scene.heat(places)
    masses = np.minimum(held / np.maximum(heat.sum(axis=1), TINY), scene.max_mass)
    return _reading(scene, places, masses, steps, heat)


def _no_less(after: _State, before: _State) -> _State:
    """What came of a round, but for mixtures that only rounding has changed."""
    keep = after.likelihood >= before.likelihood
    pick = [
        np.where(keep.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        for new, old in (
            (after.places, before.places),
            (after.masses, before.masses),
            (after.steps, before.steps),
            (after.heat, before.heat),
            (after.expected, before.expected),
            (after.likelihood, before.likelihood),
        )
    ]
    return _State(*pick)


ESTIMATOR = SceneEstimator("mixture", mixture)
