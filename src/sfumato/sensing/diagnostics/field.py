"""The field as it is: an offset, a diffusion time and bad sensors, estimated together from the readings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, whole
from sfumato.errors import InvalidParameter
from sfumato.sensing.diagnostics.field_offset import free_of, remove_offset, whitened
from sfumato.sensing.diagnostics.field_sensors import (
    FaultySensor,
    check_reach,
    faulty_sensors,
    rounds_of,
    rows_without,
)
from sfumato.sensing.diagnostics.field_sparse import Fit, few_sources
from sfumato.sensing.diagnostics.field_times import LIKELY, around_best, crossing, tried_times
from sfumato.sensing.diagnostics.fitted_field import Field, messages_of
from sfumato.sensing.diagnostics.misfit import misfit
from sfumato.sensing.model.operators.protocol import Operator, part_of
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.model.reading_unit import AS_READ, ReadingUnit
from sfumato.sensing.tracking.average import combine

LARGE = 1 << 22
"""Entries of a matrix of candidate cells; beyond it, those with the largest adjoint of the readings."""
MAX_SOURCES = 8
"""Sources looked for when nobody says how many there are."""
ALIKE = 1e-12
"""The share of a constant's square that sources leave, below which they are taken to leave nothing."""
LEVEL = 0.01
"""Of the tests for bad sensors, all together; where the interval of the time is wrong it may be more."""
REFINED = 3
"""Rounds in which times between those given are tried, near the best and near the ends of the interval."""


@dataclass(frozen=True, slots=True, eq=False)
class _Scene:
    """Readings of the sensors that are left, and how they are to be explained: all rounds, and as one."""

    operator: Operator
    rounds: FloatArray
    noises: FloatArray
    readings: FloatArray
    sigma: float
    max_mass: float
    offset: float
    sources: int | None
    min_sigma: float | None = None
    laplace: bool = False

    @property
    def level(self) -> FloatArray:
        """What an offset of 1 adds to each reading."""
        return gains_of(self.operator)


def fit_field(
    operator: Operator,
    y: npt.ArrayLike,
    *,
    sigma: float | npt.ArrayLike,
    max_mass: float = 1.0,
    offset: float = 0.0,
    times: Sequence[float] | None = None,
    sources: int | None = None,
    min_sigma: float | None = None,
    laplace: bool = False,
    unit: ReadingUnit | None = None,
) -> Field:
    """Readings y = M_T f + offset + noise made ready for a recovery: T, the offset and bad sensors found.

    Rows of y are rounds of a scene at rest, evenly spaced, with one sigma or one for each: then
    sensors that drift or do not go along are found too (`faulty_sensors`), and all else is fitted to what
    `combine` makes of the rounds. `times` are diffusion times (rates on a graph) to try, from the
    least to the largest possible; without them the operator's own stands. First suspected sensors
    go, judged in the directions of the least time. Then, for each time, the least square of few
    sources and an offset is found, at cells; the time is that of the least penalised square, |y -
    M_T f - b|**2 / sigma**2 + 2 k log(m) with k sources (the count by BIC [schwarz78], two numbers
    each), or of the least square with at most `sources` where that is given. The interval is where
    it is within 7.8 of the least. A likelihood ratio of one degree [wilks38] would be 3.8, which is
    about right for one or two sources and too short for more: masses lie at the side of the box,
    and cells are searched, not all tried.

    What tells T: only that sources are few. Spread sources at a small T look like few at a large
    one, so readings alone bound T from above (`time_is_below`, if all suspects were bad), never from
    below. On a line at epsilon 4, with an offset and a dead sensor, the interval held T in all of
    40 draws with one or two sources and in 88 to 100 % with four (docs/reference/scenes.md), where
    sources blend and T comes out too small; do not trust it with more. `offset` is the deviation of
    an ambient offset around 0, inf if nothing is known of it: it is told from sources by its width
    alone, so a guess helps. `min_sigma` is for `misfit`, where sensors differ in their noise.

    Args:
        operator: The stated physics.
        y: One noisy reading for each sensor, or a row of them for each round.
        sigma: Standard deviation of the noise, one or one for each round.
        max_mass: The largest mass of one source.
        offset: Deviation of an offset of all readings; 0 for none, inf if nothing is known of it.
        times: Diffusion times (rates on a graph) to try, at least two; None keeps the stated one.
        sources: How many sources there are; None lets the score decide.
        min_sigma: The smallest noise, where sensors differ.
        laplace: Whether the noise is Laplace; tests allow for its tails.
        unit: What sentences tell readings in; None means as the operator has them.

    Returns:
        What to recover from, and what was found on the way.

    Raises:
        InvalidParameter: If a parameter is out of range, or no sensor is in reach of a source.

    Privacy: all of it is post-processing. But sigma was calibrated for the operator's own T; if the
    true one is smaller, sources move readings by more than was thought, and the promise was weaker
    than stated: `messages` say so when the whole interval lies below it.
    """
    rounds, noises = rounds_of(operator, y, sigma)
    tried = None if times is None else tried_times(operator, times)
    count = None if sources is None else whole("sources", sources, low=1)
    if not offset >= 0:
        raise InvalidParameter(
            f"offset must be 0 or a deviation, got {offset}; no field was fitted"
        )
    if not 0 < max_mass < math.inf:
        raise InvalidParameter(
            f"`max_mass` must be positive and finite, got {max_mass}; no field was fitted"
        )
    check_reach(
        operator if tried is None else operator.with_time(tried[-1])
    )  # a longer time reaches further
    if offset and rounds.shape[1] < 2:
        raise InvalidParameter(
            "an offset needs 2 sensors or more to be told from, got 1; no field was fitted"
        )
    mean, noise = combine(rounds, noises)
    scene = _Scene(
        operator, rounds, noises, mean, noise, max_mass, offset, count, min_sigma, laplace
    )
    bad = _faulty_sensors(
        scene, operator if tried is None else operator.with_time(tried[0]), once=tried is None
    )
    scene = _without(scene, bad)
    profile = _profile(scene, tried)
    if tried is not None:
        # Directions of a time that is still likely are fewer, so more can be said of each sensor.
        more = _faulty_sensors(scene, scene.operator.with_time(profile.interval[0]), once=False)
        if more and len(bad) + len(more) <= rounds.shape[1] / 4:
            bad, scene = bad + more, _without(scene, more)
            profile = _profile(scene, tried)
    told = unit or AS_READ
    bad = tuple(replace(one, unit=told) for one in bad)
    return _field(operator, scene, profile, bad, tried, told)


def _faulty_sensors(scene: _Scene, operator: Operator, *, once: bool) -> tuple[FaultySensor, ...]:
    """Bad sensors, at half of the level where they are looked for twice."""
    return faulty_sensors(
        operator,
        scene.rounds,
        sigma=scene.noises,
        max_mass=scene.max_mass,
        offset=scene.offset > 0,
        level=LEVEL if once else LEVEL / 2,
        laplace=scene.laplace,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Profile:
    """The best fit, its time, and the times that are nearly as likely."""

    fit: Fit
    time: float
    interval: tuple[float, float]


def _profile(scene: _Scene, times: list[float] | None) -> _Profile:
    if times is None:
        fit = _fits(scene, scene.operator, ())
        chosen = min(fit, key=lambda one: _score(scene, one))
        return _Profile(chosen, math.nan, (math.nan, math.nan))
    best: dict[float, list[Fit]] = {}
    for time in [*times, *reversed(times)]:  # back again from what was found on the way
        _try(scene, best, time)
    for _ in range(REFINED):
        scores = _scores(scene, best)
        known = sorted(scores)
        likely = [t for t in known if scores[t] <= min(scores.values()) + LIKELY]
        near = {known.index(likely[0]), known.index(likely[-1]) + 1, *around_best(known, scores)}
        for i in near:
            if 0 < i < len(known):
                _try(scene, best, math.sqrt(known[i - 1] * known[i]))
    scores = _scores(scene, best)
    time = min(scores, key=lambda t: scores[t])
    known = sorted(scores)
    low, high = (crossing(order, scores) for order in (known, known[::-1]))
    return _Profile(min(best[time], key=lambda one: _score(scene, one)), time, (low, high))


def _try(scene: _Scene, best: dict[float, list[Fit]], time: float) -> None:
    """Fit at one time, beginning from scratch and from what is known at the times next to it."""
    near = sorted(
        (other for other in best if other != time), key=lambda t: abs(math.log(t / time))
    )[:2]
    starts = tuple(fit.cells for other in near for fit in best[other])
    found = _fits(scene, scene.operator.with_time(time), starts)
    held = best.get(time, found)
    best[time] = [
        min((fits[min(k, len(fits) - 1)] for fits in (found, held)), key=lambda fit: fit.square)
        for k in range(max(len(found), len(held)))
    ]


def _scores(scene: _Scene, best: dict[float, list[Fit]]) -> dict[float, float]:
    return {time: min(_score(scene, fit) for fit in fits) for time, fits in best.items()}


def _score(scene: _Scene, fit: Fit) -> float:
    """The square in sigmas, with what each source must earn if their number is not given."""
    return (fit.square + _earn(scene) * fit.cells.size) / scene.sigma**2


def _earn(scene: _Scene) -> float:
    """By how much a source must lower the square."""
    return 2 * math.log(len(scene.readings)) * scene.sigma**2 if scene.sources is None else 0.0


def _fits(scene: _Scene, operator: Operator, starts: tuple[IntArray, ...]) -> list[Fit]:
    m, n = operator.shape
    cells = np.arange(n)
    if m * n > LARGE:
        pull = operator.adjoint(
            free_of(scene.readings, scene.level) if scene.offset else scene.readings
        )
        cells = np.sort(np.argpartition(-pull, LARGE // m)[: LARGE // m])
        known = {cell: i for i, cell in enumerate(cells.tolist())}
        starts = tuple(
            np.array([known[c] for c in s.tolist() if c in known], dtype=np.int64) for s in starts
        )
    columns, target = operator.columns(cells), scene.readings
    columns, target = (
        whitened(values, scene.sigma, scene.offset, scene.level) for values in (columns, target)
    )
    # A rotation into the few directions that columns have; what is read outside is the same for all
    # fits.
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    basis = left[:, sizes > 1e-9 * sizes[0]]
    if not basis.size:  # at this time, or but for an offset, sensors read nothing
        return [Fit(np.empty(0, dtype=np.int64), np.empty(0), float(target @ target))]
    inner = basis.T @ target
    outside = max(0.0, float(target @ target) - float(inner @ inner))
    most = min(MAX_SOURCES if scene.sources is None else scene.sources, len(target))
    fits = few_sources(
        columns.T @ basis,
        inner,
        most=most,
        max_mass=scene.max_mass,
        earn=_earn(scene),
        starts=starts,
    )
    return [Fit(cells[fit.cells], fit.masses, fit.square + outside) for fit in fits]


def _field(
    stated: Operator,
    scene: _Scene,
    profile: _Profile,
    bad: tuple[FaultySensor, ...],
    times: list[float] | None,
    unit: ReadingUnit,
) -> Field:
    told = (
        times is not None and profile.fit.cells.size > 0
    )  # without sources all times are the same
    operator = scene.operator.with_time(profile.time) if told else scene.operator
    explained = operator.columns(profile.fit.cells) @ profile.fit.masses
    offset = _offset(scene, scene.readings - explained)
    error = _offset_error(scene, operator.columns(profile.fit.cells))
    left = misfit(
        *_tested(scene, operator),
        sigma=scene.sigma,
        max_mass=scene.max_mass,
        min_sigma=scene.min_sigma,
        laplace=scene.laplace,
    )
    at_most = None if times is None else _at_most(scene, times)
    field = Field(
        operator,
        read_only(scene.readings - offset * scene.level),
        scene.sigma,
        offset,
        error,
        profile.time if told else None,
        profile.interval if told else None,
        at_most,
        profile.fit.cells.size,
        bad,
        left,
        (),
    )
    return replace(
        field, messages=messages_of(stated, field, times, offset=scene.offset > 0, unit=unit)
    )


def _offset(scene: _Scene, left: FloatArray) -> float:
    """The mean of what sources leave, drawn to 0 as far as the offset's own deviation says.

    Readings times gains g of b g + noise of one sigma say b by g'left / g'g: each sensor by 1 / sigma_k**2.
    """
    if scene.offset == 0:
        return 0.0
    size = float(scene.level @ scene.level)
    trust = 1 / (1 + (scene.sigma / scene.offset) ** 2 / size)
    return trust * float(scene.level @ left) / size


def _offset_error(scene: _Scene, columns: FloatArray) -> float:
    """The deviation of the offset given all masses' places: Fisher's information with masses as nuisance.

    It is what a constant has outside the sources' columns, over sigma**2, and the offset's own.
    """
    if scene.offset == 0:
        return 0.0
    level = scene.level
    rest = (
        level - columns @ np.linalg.lstsq(columns, level, rcond=None)[0] if columns.size else level
    )
    left = float(rest @ rest)
    told = math.hypot(
        math.sqrt(left) / scene.sigma if left > ALIKE * float(level @ level) else 0.0,
        1 / scene.offset,
    )
    return 1 / told if told > 0 else math.inf


def _tested(scene: _Scene, operator: Operator) -> tuple[Operator, FloatArray]:
    return remove_offset(operator, scene.readings) if scene.offset else (operator, scene.readings)


def _at_most(scene: _Scene, times: list[float]) -> float | None:
    """The least of the given times from which on no sources leave as little as noise would; None if none.

    The least square over the box is at most that of the true sources: chi-square, a degree for each
    reading.
    """
    above = None
    for time in reversed(times):
        given, readings = _tested(scene, scene.operator.with_time(time))
        left = misfit(given, readings, sigma=scene.sigma, max_mass=scene.max_mass).square
        if chdtrc(readings.size, left) >= 0.05:
            break
        above = time
    return above


def _without(scene: _Scene, bad: tuple[FaultySensor, ...]) -> _Scene:
    if not bad:
        return scene
    rows = rows_without(scene.operator, bad)
    return replace(
        scene,
        operator=part_of(scene.operator, rows),
        rounds=scene.rounds[:, rows],
        readings=scene.readings[rows],
    )
