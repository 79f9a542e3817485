"""Sensors that do not tell what they should: single ones that the others contradict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, assert_never

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr
from scipy.special import chdtrc, log_ndtr

from sfumato._types import FloatArray, IntArray
from sfumato._validate import real_array
from sfumato.errors import InvalidParameter
from sfumato.sensing.diagnostics.contradiction import KEPT, Beside, Contrasts, beside_others
from sfumato.sensing.diagnostics.laplace_tails import log_chance_beyond
from sfumato.sensing.diagnostics.misfit import checked_readings, p_value_text
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.model.reading_unit import AS_READ, ReadingUnit
from sfumato.sensing.recovery.solver.compress import range_of
from sfumato.sensing.recovery.solver.operator_cache import cached_by_key
from sfumato.sensing.tracking.average import checked_rounds, combine

Shows = Literal["level", "drift", "loose", "dead", "above", "below"]

SAMPLE = 512
"""Cells that stand for all others where heat is smooth, to find the directions they move readings in."""
MAX_READINGS = 1500
"""Sensors up to which directions are looked for where every direction of readings is reached."""
FAINT = 0.05
"""Signal of one source, in sigma, that may stay outside the directions taken for signal."""
ALONE = 1e-3
"""The least share of its own reading in its residual with which a sensor can be judged by the others."""
DOUBTFUL = 0.01
"""The level of the tests that say how a bad sensor is bad."""
MAX_FAULTY = 1 / 4
"""The share of all sensors at which no more are suspected: then it is the physics that does not fit."""


@dataclass(frozen=True, slots=True)
class FaultySensor:
    """A sensor that the others contradict: how, by how much, and how likely noise alone does so.

    `off` is what it read less what the others say, with its standard error `off_error`, as the
    operator reads without gains; of several rounds, on average; `unit` is what the message tells it in.
    `drift` is by how much that grew from one round to the next, with `drift_error`; None where there was one
    round. `shows` says what its rounds look like: off by the same (`level`), by more and more
    (`drift`), neither (`loose`), nothing but noise around 0 (`dead`), or more (`above`) or less
    (`below`) than any sources give it beside what the others read; then `off` is counted from the
    end of what they may give, which is `limit`. `p_value` is after Bonferroni: the chance that any
    of the sensors would be as far off by noise.
    """

    sensor: str
    shows: Shows
    p_value: float
    off: float
    off_error: float
    drift: float | None = None
    drift_error: float | None = None
    limit: float | None = None
    unit: ReadingUnit = AS_READ

    @property
    def message(self) -> str:
        """What is wrong with it, as a sentence."""
        number, text = self.unit.number, self.unit.text
        off = f"{number(self.off, '+.3g')} ± {text(self.off_error, '.2g')}"
        match self.shows:
            case "level":
                how = f"reads {off} off what the others say"
            case "drift":
                grows = (
                    f"{number(self.drift or 0.0, '+.3g')} ± {text(self.drift_error or 0.0, '.2g')}"
                )
                how = f"drifts by {grows} a round from what the others say, and is {off} off on average"
            case "loose":
                how = "does not go along with the others from round to round"
            case "dead":
                how = "reads nothing but noise where the others say that there is something to be read"
            case "above" | "below":
                least = "at most" if self.shows == "above" else "at least"
                limit = self.limit or 0.0
                how = (
                    f"reads {text(limit + self.off)}, and beside what the others read sources give it "
                    f"{least} {number(limit)} ± {text(self.off_error, '.2g')}"
                )
            case _:
                assert_never(self.shows)
        return f"sensor {self.sensor!r} {how} ({p_value_text(self.p_value)})"


def check_reach(operator: Operator) -> None:
    """Refuse sensors of which none reads anything of any source."""
    m, n = operator.shape
    # One product mostly tells; entries of a matrix may cancel in it.
    if not operator.readings(np.ones(n)).any() and not any(
        operator.adjoint(row).any() for row in np.eye(m)
    ):
        raise InvalidParameter(
            f"at least one sensor must be in reach of a source, got {m} that read 0 of all {n} cells; "
            "no field was fitted"
        )


def faulty_sensors(
    operator: Operator,
    y: npt.ArrayLike,
    *,
    sigma: float | npt.ArrayLike,
    max_mass: float = 1.0,
    offset: bool = False,
    level: float = 0.01,
    laplace: bool = False,
) -> tuple[FaultySensor, ...]:
    """The sensors to go and look at: dead, stuck or drifting ones, found one after another.

    The few directions in which sources move readings are fitted freely; what a sensor reads beyond
    what the others then say, in its deviations, is standard normal if all sensors are well,
    whatever the sources are. The worst leaves if Bonferroni's p-value is below `level`, and all is
    fitted anew, until none is or a quarter of the sensors has left. So all sensors are well and one
    is suspected at most `level` of the time. With several rounds (rows of y, evenly spaced, with
    one sigma or one for each), the mean over rounds shows a sensor that is off, their slope one
    that drifts, and the sum of squares one that is dead while the scene changes.

    Where sensors stand far apart, as on a floor, every one is a direction of its own and that finds
    nothing. There three more tests of the mean do, for which sources must be positive and at most
    `max_mass` in a cell: that a sensor reads more than any sources give it beside what the others
    read, less, or nothing beside a source (`contradiction`). All tests share the level evenly.

    Limits: signal of which one source of mass `max_mass` has less than 0.05 sigma counts as noise in
    the first tests, so very many sources at the same place would raise the level. A sensor is only
    as testable as others read the same: a dead one where nothing was to be read looks well, and two
    bad ones side by side may excuse each other. With `offset` all readings may share an unknown
    constant.

    Args:
        operator: Maps masses of cells to readings of sensors.
        y: One noisy reading for each sensor, or a row of them for each round.
        sigma: Standard deviation of the noise, one or one for each round.
        max_mass: The largest mass of one source.
        offset: Whether all readings may share an unknown constant.
        level: The chance that any sensor is suspected where all are well.
        laplace: Whether the noise is Laplace. Then chances are bounds of any combination of it, so fewer
            sensors are suspected, and none by sums of squares, which have no such bound.

    Returns:
        The faulty sensors, the worst first.

    Raises:
        InvalidParameter: If a parameter is out of range.

    >>> from sfumato.sensing import heat_line
    >>> hall = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> read = hall.columns([30])[:, 0]
    >>> read[14] = 0.5
    >>> [found.message for found in faulty_sensors(hall, read, sigma=0.1)]
    ["sensor '14' reads -0.761 ± 0.1 off what the others say (p = 7.1e-11)"]
    """
    rounds, noises = rounds_of(operator, y, sigma)
    if not 0 < level < 1:
        raise InvalidParameter(f"level must be between 0 and 1, got {level}; nobody was suspected")
    mean, noise = combine(rounds, noises)
    signal = cached_by_key(
        operator,
        "signal",
        (noise, max_mass, offset),
        lambda: _signal(operator, noise, max_mass=max_mass, offset=offset),
        most=KEPT,
    )
    names, m, gains = operator.sensors.names, rounds.shape[1], gains_of(operator)
    rows, found = np.arange(m), list[FaultySensor]()
    # Of two that differ and may share an offset, neither is known to be the bad one.
    while len(found) < MAX_FAULTY * m and rows.size > 1 + offset:
        left, own = _left(rounds[:, rows], _orthonormal(signal[rows]))
        tests = _tests(left, own, noises, laplace=laplace)
        beside = beside_others(operator, rows, sigma=noise, max_mass=max_mass, offset=offset)
        limits = [] if beside is None else beside.contrasts()
        by_limit = [one.log_chances(mean[rows], noise, laplace=laplace) for one in limits]
        share = math.log((len(tests) + len(by_limit)) * m)
        chance = np.min(tests, axis=0)
        worst = int(np.argmin(chance))
        p_value = math.exp(min(0.0, share + float(chance[worst])))
        if p_value < level:
            one = _off(rounds[:, rows[worst]], left[:, worst], float(own[worst]), noises)
        elif beside is not None:
            # The free fit says nothing, so it is left to what sources can give.
            p_value = math.exp(min(0.0, share + float(np.min(by_limit))))
            if p_value < level:
                worst, one = _beyond(beside, limits, mean[rows])
        if p_value >= level:
            break
        one = _as_it_reads(one, float(gains[rows[worst]]))
        found.append(replace(one, sensor=names[rows[worst]], p_value=p_value))
        rows = np.delete(rows, worst)
    return tuple(found)


def _as_it_reads(one: FaultySensor, gain: float) -> FaultySensor:
    """The same without the gain that its readings were multiplied by."""
    if gain == 1:
        return one
    parts = ("off", "off_error", "drift", "drift_error", "limit")
    told = {name: getattr(one, name) for name in parts}
    return replace(one, **{name: at / gain for name, at in told.items() if at is not None})


def _off(reads: FloatArray, left: FloatArray, own: float, noises: FloatArray) -> FaultySensor:
    """A sensor that leaves something over where sources are fitted freely to all readings."""
    # What is fitted goes along with its own reading too: that share is taken out.
    told = left / own, noises / math.sqrt(own)
    off, drift = ([float(value) for value in pair] for pair in _line(*told))
    grows, error = drift if noises.size > 1 else (None, None)
    shows = "dead" if _dead(reads, told[0], noises, own) else _shows(*told)
    return FaultySensor("", shows, 0.0, off[0], off[1], grows, error)


def _beyond(
    beside: Beside, limits: list[Contrasts], readings: FloatArray
) -> tuple[int, FaultySensor]:
    """A sensor that reads beyond what sources can give it beside the others, and its row.

    That there is one the tests say; which, the sources that explain the others best: a bad one
    makes its neighbors look bad as well.
    """
    worst, said = beside.culprit(readings)
    reads = float(readings[worst])
    far = [float(one.deviations(readings, beside.sigma)[worst]) for one in limits]
    best = int(np.argmax(far))
    if far[best] <= 0:  # it is its neighbors' readings that say so, not its own limit
        return worst, FaultySensor("", "level", 0.0, reads - said, beside.sigma)
    limit, error = limits[best].allowed(readings, worst, beside.sigma)
    shows: Shows = "above" if reads > limit else "below"
    return worst, FaultySensor("", shows, 0.0, reads - limit, error, limit=limit)


def rows_without(operator: Operator, bad: Iterable[FaultySensor]) -> IntArray:
    """The rows of the sensors that nobody suspects."""
    names = {suspect.sensor for suspect in bad}
    return np.array(
        [i for i, name in enumerate(operator.sensors.names) if name not in names], dtype=np.int64
    )


def rounds_of(
    operator: Operator, y: npt.ArrayLike, sigma: float | npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Readings of every sensor, a row for each round, and the noise of each round."""
    rounds, noises = checked_rounds(np.atleast_2d(real_array("readings", y)), sigma)
    checked_readings(operator, rounds[0], what="nothing was computed")
    return rounds, noises


def _left(rounds: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What readings leave, and the share of its variance that each sensor keeps in it: nan if too small."""
    own = 1 - np.sum(basis**2, axis=1)
    return rounds - (rounds @ basis) @ basis.T, np.where(own > ALONE, own, math.nan)


def _tests(
    left: FloatArray, own: FloatArray, noises: FloatArray, *, laplace: bool
) -> list[FloatArray]:
    """For each sensor the log of the chance of what it leaves if all is well, by each test there is.

    Logs, so that of two that are both beyond doubles the worse one is the worst.
    """
    scaled = left / np.sqrt(own)
    level, slope = _line(scaled, noises)
    if laplace:
        pairs = [level, slope] if noises.size > 1 else [level]
        tests = [math.log(2) + log_chance_beyond(np.abs(one) / error) for one, error in pairs]
        return [np.where(np.isnan(own), 0.0, chance) for chance in tests]
    tests = [_two_sided(*level)]
    if noises.size > 1:
        squares = np.sum((scaled / noises[:, np.newaxis]) ** 2, axis=0)
        tests += [_two_sided(*slope), _log_chi_square(noises.size, squares)]
    return [np.where(np.isnan(own), 0.0, chance) for chance in tests]


def _dead(reads: FloatArray, off: FloatArray, noises: FloatArray, own: float) -> bool:
    """Whether a bad sensor reads noise alone, by its squares, mean and slope, where the others say more."""
    level, slope = _line(reads, noises)
    chances = [
        math.exp(_two_sided(*level)),
        float(chdtrc(reads.size, np.sum((reads / noises) ** 2))),
    ]
    chances += [math.exp(_two_sided(*slope))] if reads.size > 1 else []
    # What the others say of it has the variance sigma**2 (1 - own) / own.
    said = np.sum(((reads - off) / noises) ** 2) * own / max(1 - own, ALONE)
    return min(chances) >= DOUBTFUL > float(chdtrc(reads.size, said))


def _shows(values: FloatArray, errors: FloatArray) -> Shows:
    """What a bad sensor's rounds look like: a level, one that drifts, or neither, each by a test at 1 %."""
    (level, _), (slope, slope_error) = _line(values, errors)
    number = np.arange(values.size)
    beside = values - level - slope * (number - np.average(number, weights=1 / errors**2))
    if values.size > 2 and chdtrc(values.size - 2, np.sum((beside / errors) ** 2)) < DOUBTFUL:
        return "loose"
    drifts = values.size > 1 and _two_sided(slope, slope_error) < math.log(DOUBTFUL)
    return "drift" if drifts else "level"


def _line(
    values: FloatArray, noises: FloatArray
) -> tuple[tuple[FloatArray, float], tuple[FloatArray, float]]:
    """The mean of rounds and, of two or more, their slope by weighted least squares, with standard errors."""
    weights = 1 / noises**2
    number = np.arange(noises.size)
    away = number - weights @ number / weights.sum()
    told = float(weights @ away**2)
    mean = weights @ values / weights.sum(), 1 / math.sqrt(weights.sum())
    return mean, ((weights * away) @ values / told, 1 / math.sqrt(told)) if told > 0 else mean


def _two_sided(value: FloatArray, error: float) -> FloatArray:
    return np.asarray(math.log(2) + log_ndtr(-np.abs(value) / error))


def _log_chi_square(degrees: int, squares: FloatArray) -> FloatArray:
    """The log of the chance of a larger square; beyond doubles, Chernoff's bound [boucheron13, sec. 2.2]."""
    chance = chdtrc(degrees, squares)
    ratio = np.maximum(squares / degrees, 1.0)
    bound = degrees / 2 * (1 - ratio + np.log(ratio))
    return np.asarray(np.log(chance, out=bound, where=chance > 0))


def _signal(operator: Operator, sigma: float, *, max_mass: float, offset: bool) -> FloatArray:
    """Directions of readings with more than FAINT of a source, and the constant one if asked for."""
    m, n = operator.shape
    found = range_of(operator)
    if found.basis is None and m > MAX_READINGS:
        return np.eye(m)  # nobody looks for fewer, so nobody is suspected
    smooth = operator.kernel_width is not None and n > SAMPLE
    cells = np.linspace(0, n - 1, SAMPLE).astype(np.int64) if smooth else np.arange(n)
    columns = found.into(operator.columns(cells))
    _, _, directions = np.linalg.svd(columns, full_matrices=False)
    weights = columns @ directions.T
    beyond = np.sqrt(np.cumsum(weights[:, ::-1] ** 2, axis=1)[:, ::-1]).max(axis=0)
    kept = directions[max_mass * beyond > FAINT * sigma].T
    basis = kept if found.basis is None else found.basis @ kept
    return np.column_stack([basis, gains_of(operator)]) if offset else basis


def _orthonormal(directions: FloatArray) -> FloatArray:
    """A basis of the same directions: fewer where some coincide, as a constant and the signal may."""
    if not directions.size:
        return directions
    basis, triangle, _ = qr(directions, mode="economic", pivoting=True)
    sizes = np.abs(np.diagonal(triangle))
    return np.asarray(basis[:, sizes > 1e-9 * sizes[0]])
