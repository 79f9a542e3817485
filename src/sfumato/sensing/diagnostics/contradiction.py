"""What a sensor may read beside the others: proved from positive sources of a largest mass alone.

Where every sensor is a direction of its own, as sensors of a floor are that stand far apart, no
linear combination of readings is free of sources. But masses are not negative, and have a ceiling:
a combination c of readings is at most

    c'y = c'M f + c'noise <= max_mass sum (M'c)_+ + c'noise

whatever the sources are. Every c is a test of its own, with exactly normal noise of sigma |c|, as
long as nobody looks at the readings when choosing it. These look at the operator only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.diagnostics.field_offset import free_of
from sfumato.sensing.diagnostics.laplace_tails import log_chance_beyond
from sfumato.sensing.diagnostics.misfit import box_fit, gram_fit
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.recovery.solver.operator_cache import cached_by_key

LARGE = 1 << 22
"""Entries of a matrix of cells to explain readings with; beyond it, some cells stand for the others."""
MAX_SENSORS = 400
"""Sensors up to which each is looked at: two fits for every one of them."""
SEEN = 5.0
"""Deviations of noise at which a fault is looked for: what is larger is found as well."""
PAIRED = 2048
"""Cells up to which the products of all pairs are computed once, and not in each step of each fit."""
LEAST = 1e-3
"""Of a reading: what the others leave of it at least, where a fault is looked for."""
KEPT = 8
"""Sets of sensors, with their noise, whose tests are kept with an operator."""
ROUNDS, JOIN = 60, 8
CLOSE = 1e-4
"""A fit ends when no cell would still better it by so much of the square that it leaves."""


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """Combinations of readings of length 1, one of each sensor, and what sources can make of them at most."""

    weights: FloatArray
    bounds: FloatArray

    def deviations(self, readings: FloatArray, sigma: float) -> FloatArray:
        """By how many deviations of its noise each is beyond what sources can make of it."""
        return np.asarray(((self.weights @ readings).T - self.bounds).T / sigma)

    def log_chances(
        self, readings: FloatArray, sigma: float, *, laplace: bool = False
    ) -> FloatArray:
        """The log of the chance of that by noise, at most, for each sensor."""
        far = self.deviations(readings, sigma)
        return log_chance_beyond(far) if laplace else np.asarray(log_ndtr(-far))

    def allowed(self, readings: FloatArray, sensor: int, sigma: float) -> tuple[float, float]:
        """The end of what a sensor may read beside the others, and its standard error."""
        row = self.weights[sensor]
        own = float(row[sensor])
        others = float(row @ readings) - own * float(readings[sensor])
        return (float(self.bounds[sensor]) - others) / own, sigma / abs(own)


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """What each of some sensors may read beside the others: tests, and who is to blame where one fails."""

    operator: Operator
    rows: IntArray
    columns: FloatArray
    sigma: float
    max_mass: float
    offset: bool

    def contrasts(self) -> list[Contrasts]:
        """For each sensor: that it reads too much, too little, and nothing where there is something.

        Each is what no sources explain of readings that one makes up: a single sensor at a high
        level (above the others' 0), at a low one, and one that is dead beside a source. With an
        offset all readings may share any constant, and combinations know nothing of it. None of it looks at
        readings, so rounds with the same noise and sensors share it.
        """
        key = self.rows.tobytes(), self.sigma, self.max_mass, self.offset
        return cached_by_key(self.operator, "contrasts", key, self._contrasts, most=KEPT)

    def _contrasts(self) -> list[Contrasts]:
        found: list[Contrasts] = []
        seen, count = SEEN * self.sigma, self.rows.size
        explaining = _Explaining.of(self._free(self.columns, self.level).T)
        for made_up in (_high, _low, _dead):
            kept = np.zeros((count, len(self.operator.sensors)))
            for i in range(count):
                readings = self._free(made_up(self.columns, i, seen, self.max_mass), self.level)
                kept[i, self.rows] = _unexplained(explaining, readings, self.max_mass, seen)
            found.append(_contrasts(self.operator, kept, self.rows, max_mass=self.max_mass))
        return found

    def culprit(self, readings: FloatArray) -> tuple[int, float]:
        """The sensor without which sources explain the others best, and what they then say that it reads."""
        squares, said = np.empty(self.rows.size), np.empty(self.rows.size)
        for i in range(self.rows.size):
            others = np.arange(self.rows.size) != i
            level = self.level[others]
            left, cells, masses = _fitted(
                _Explaining(self._free(self.columns[others], level).T, None),
                self._free(readings[others], level),
                self.max_mass,
            )
            squares[i] = left @ left
            rest = readings[others] - self.columns[np.ix_(others, cells)] @ masses
            shared = float(level @ rest / (level @ level)) if self.offset else 0.0
            said[i] = self.columns[i, cells] @ masses + shared * self.level[i]
        worst = int(squares.argmin())
        return worst, float(said[worst])

    @property
    def level(self) -> FloatArray:
        """What an offset of 1 adds to each reading."""
        return gains_of(self.operator)[self.rows]

    def _free(self, values: FloatArray, level: FloatArray) -> FloatArray:
        """Without what an offset may add to all of them."""
        return free_of(values, level) if self.offset else values


def beside_others(
    operator: Operator, rows: IntArray, *, sigma: float, max_mass: float, offset: bool
) -> Beside | None:
    """What these sensors may read beside each other; None where they are too many to look at each."""
    m, n = operator.shape
    if rows.size > MAX_SENSORS:
        return None
    cells = np.arange(n) if m * n <= LARGE else np.linspace(0, n - 1, LARGE // m).astype(np.int64)
    return Beside(operator, rows, operator.columns(cells)[rows], sigma, max_mass, offset)


def _high(columns: FloatArray, i: int, seen: float, _: float) -> FloatArray:
    return np.where(np.arange(len(columns)) == i, seen, 0.0)


def _low(columns: FloatArray, i: int, seen: float, _: float) -> FloatArray:
    return np.where(np.arange(len(columns)) == i, -seen, 0.0)


def _dead(columns: FloatArray, i: int, _: float, max_mass: float) -> FloatArray:
    """One source where the sensor would read it best, which it does not."""
    source = max_mass * columns[:, int(columns[i].argmax())]
    return np.where(np.arange(len(columns)) == i, 0.0, source)


def _contrasts(
    operator: Operator, weights: FloatArray, rows: IntArray, *, max_mass: float
) -> Contrasts:
    """Of length 1, with their bounds over all cells, for the sensors of these rows."""
    sizes = np.linalg.norm(weights, axis=1)
    some = np.maximum(sizes, 1e-300)[:, np.newaxis]
    unit = np.where(sizes[:, np.newaxis] > 0, weights / some, 0.0)
    bounds = [max_mass * float(np.maximum(operator.adjoint(row), 0).sum()) for row in unit]
    # Nothing is left of what was made up: that says nothing of the sensor.
    return Contrasts(unit[:, rows], np.where(sizes > 0, bounds, math.inf))


@dataclass(frozen=True, slots=True, eq=False)
class _Explaining:
    """What a unit in each cell reads, and the products of all pairs where these are not too many."""

    level: FloatArray
    gram: FloatArray | None

    @classmethod
    def of(cls, level: FloatArray) -> _Explaining:
        return cls(level, level @ level.T if len(level) <= PAIRED else None)

    def fit(
        self,
        cells: IntArray,
        target: FloatArray,
        wanted: FloatArray,
        max_mass: float,
        start: FloatArray,
    ) -> FloatArray:
        """The masses in these cells that are nearest to the target, of which cells read `wanted`."""
        if self.gram is None:
            return box_fit(self.level[cells], target, max_mass=max_mass, start=start)
        # Products of many columns with each other were most of what a search for faulty sensors took.
        return gram_fit(
            self.gram[np.ix_(cells, cells)], wanted[cells], max_mass=max_mass, start=start
        )


def _unexplained(
    level: _Explaining, readings: FloatArray, max_mass: float, seen: float
) -> FloatArray:
    """What no sources in the box explain of made-up readings, scaled until as much is left as is seen.

    The share that is left grows with the readings, because of the ceiling, so one step suffices.
    """
    left = _left(level, readings, max_mass)
    size, whole = float(np.linalg.norm(left)), float(np.linalg.norm(readings))
    if size >= seen or whole == 0:
        return left
    more = seen / max(size, LEAST * whole)
    return _left(level, more * readings, max_mass)


def _left(level: _Explaining, target: FloatArray, max_mass: float) -> FloatArray:
    return _fitted(level, target, max_mass)[0]


def _fitted(
    explaining: _Explaining, target: FloatArray, max_mass: float
) -> tuple[FloatArray, IntArray, FloatArray]:
    """What the best sources in the box leave of readings, their cells and masses; as in `misfit`."""
    cells, masses = np.empty(0, dtype=np.int64), np.empty(0)
    left, level = target, explaining.level
    wanted = level @ target
    for _ in range(ROUNDS):
        pull = level @ left
        pull[cells] = 0.0
        # Convexity: the square falls by at most twice what all cells pull, within their masses.
        if 2 * max_mass * float(np.maximum(pull, 0).sum()) <= CLOSE * float(left @ left):
            break
        best = np.argpartition(-pull, min(JOIN, pull.size - 1))[:JOIN]
        cells = np.concatenate([cells, best[pull[best] > 0]])
        start = np.concatenate([masses, np.zeros(cells.size - masses.size)])
        masses = explaining.fit(cells, target, wanted, max_mass, start)
        used = masses > 0
        cells, masses = cells[used], masses[used]
        left = target - masses @ level[cells]
    return np.asarray(left), cells, masses
