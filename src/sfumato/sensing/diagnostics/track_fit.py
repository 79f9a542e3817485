"""Whether the sources that a track follows explain each round, and which sensors are to blame where not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.diagnostics.field_sensors import FaultySensor, faulty_sensors, rows_without
from sfumato.sensing.diagnostics.laplace_tails import chance_of_squares
from sfumato.sensing.diagnostics.misfit import Misfit, box_fit, misfit
from sfumato.sensing.model.operators.protocol import Operator, part_of, parts_of
from sfumato.spaces import Graph, Grid, Line, Points

if TYPE_CHECKING:
    from sfumato.sensing.tracking.rounds import Track

LEVEL = 0.01
"""The chance that any sensor is suspected where all are well."""
SETS = 64
"""Sets of sensors that rounds have, of which the one with the most readings is looked for."""
SWEEPS = 3
"""How often each source of a round is moved to where it fits best beside the others."""
MAX_ROUNDS = 24
"""Rounds that do not fit in which faulty sensors are looked for, the worst first."""


@dataclass(frozen=True, slots=True)
class RoundFit:
    """How well a round of readings is explained.

    Attributes:
        square: What the followed sources leave of the readings at least, in squares of sigma: as many
            as are followed, each anywhere, of any mass up to the largest.
        sensors: How many sensors read in the round.
        misfit: The test of whether any sources at all explain it.
        laplace: Whether the noise is Laplace.
    """

    square: float
    sensors: int
    misfit: Misfit
    laplace: bool = False

    @property
    def p_value(self) -> float:
        """The chance of more than `square` by noise: the true sources leave it or more."""
        return chance_of_more(self.sensors, self.square, laplace=self.laplace)


def chance_of_more(count: int, square: float, *, laplace: bool) -> float:
    """The chance that squares of so many numbers of noise, of deviation 1, add up to more."""
    return chance_of_squares(count, square) if laplace else float(chdtrc(count, square))


def fit_rounds(
    found: Track,
    rounds: FloatArray,
    *,
    noises: Sequence[float],
    min_noises: Sequence[float | None],
    max_mass: float,
    laplace: bool = False,
) -> tuple[RoundFit, ...]:
    """How well each round is explained by so many sources as a track follows, and by any at all.

    The true sources leave a square of the readings with the chi-square law of as many degrees as
    sensors; the best of as many sources leave less. It is looked for from the track's own places: each
    source in turn goes to the cell that fits best beside the others, and where that does not
    explain a round, also between cells, as mass that neighboring cells share.

    Args:
        found: The track.
        rounds: A row of readings for each round; not a number where a sensor did not read.
        noises: The deviation of the noise of each round; the largest where sensors differ.
        min_noises: The smallest.
        max_mass: The largest mass of one source.
        laplace: Whether the noise is Laplace.

    Returns:
        The fit of each round.
    """
    columns = found.operator.columns(np.arange(found.operator.shape[1]))
    part = parts_of(found.operator)
    fits = []
    for at, read in enumerate(rounds):
        there = np.flatnonzero(~np.isnan(read))
        tested = misfit(
            part(tuple(there.tolist())), read[there], sigma=noises[at], max_mass=max_mass,
            min_sigma=min_noises[at], laplace=laplace,
        )  # fmt: skip
        rows, target = (columns[there] / noises[at]).T, read[there] / noises[at]
        square = _least(rows, target, found.cells[at], max_mass, found.operator.space)
        fits.append(RoundFit(square, there.size, tested, laplace))
    return tuple(fits)


def faulty_in_track(
    operator: Operator,
    rounds: FloatArray,
    *,
    noises: Sequence[float],
    max_mass: float,
    laplace: bool = False,
) -> tuple[tuple[FaultySensor, ...], int]:
    """Sensors that the others contradict in rounds with the same sensors; and how many rounds these are.

    Where sensors miss rounds, in the set of sensors and rounds with the most readings.
    """
    at, sensors = _most_complete(rounds)
    if sensors.size < 2:
        return (), 0
    some = operator if sensors.size == operator.shape[0] else part_of(operator, sensors)
    sigma = [noises[number] for number in at.tolist()]
    read = rounds[np.ix_(at, sensors)]
    found = faulty_sensors(some, read, sigma=sigma, max_mass=max_mass, level=LEVEL, laplace=laplace)
    return found, at.size


def faulty_in_rounds(
    operator: Operator,
    rounds: FloatArray,
    fits: Sequence[RoundFit],
    *,
    noises: Sequence[float],
    max_mass: float,
    unlikely: float,
    known: Sequence[FaultySensor] = (),
    laplace: bool = False,
) -> tuple[FaultySensor, ...]:
    """Sensors that the others contradict in single rounds that do not fit: one that broke on the way.

    In rounds that fit without those that are `known` already nobody else is looked for. Each round
    is tested at the level over the number of all rounds, so that all together keep it; p-values are
    after that. Of a sensor the round that shows it best.
    """
    part, count = parts_of(operator), len(rounds)
    others = rows_without(operator, known)
    chances = [min(one.p_value, one.misfit.p_value) for one in fits]
    worst = [at for at in np.argsort(chances).tolist() if count * chances[at] < unlikely]
    found: dict[str, FaultySensor] = {}
    for at in worst[:MAX_ROUNDS]:
        there = others[~np.isnan(rounds[at, others])]
        if there.size < 2:
            continue
        some, read = part(tuple(there.tolist())), rounds[at, there]
        if known and (
            count * misfit(some, read, sigma=noises[at], max_mass=max_mass, laplace=laplace).p_value
            >= unlikely
        ):
            continue
        for one in faulty_sensors(
            some, read, sigma=noises[at], max_mass=max_mass, level=LEVEL / count, laplace=laplace
        ):
            told = replace(one, p_value=min(1.0, count * one.p_value))
            if one.sensor not in found or told.p_value < found[one.sensor].p_value:
                found[one.sensor] = told
    return tuple(sorted(found.values(), key=lambda one: one.p_value))


def _most_complete(rounds: FloatArray) -> tuple[IntArray, IntArray]:
    """The rounds and sensors without a gap that have the most readings, of the sets that rounds have."""
    there = ~np.isnan(rounds)
    sets, counts = np.unique(there, axis=0, return_counts=True)
    best = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    for mask in sets[np.argsort(-counts, kind="stable")][:SETS]:
        at, sensors = np.flatnonzero(there[:, mask].all(axis=1)), np.flatnonzero(mask)
        if at.size * sensors.size > best[0].size * best[1].size:
            best = at, sensors
    return best


def _least(
    rows: FloatArray,
    target: FloatArray,
    cells: IntArray,
    max_mass: float,
    space: Line | Grid | Graph | Points,
) -> float:
    """What so many sources leave of readings at least, from cells to begin with: a row for each cell."""
    sizes = np.maximum((rows**2).sum(axis=1), 1e-300)
    chosen = cells.copy()
    masses = box_fit(rows[chosen], target, max_mass=max_mass, start=np.zeros(chosen.size))
    for _ in range(SWEEPS if chosen.size > 1 else 1):
        for source in range(chosen.size):
            left = target - masses @ rows[chosen] + masses[source] * rows[chosen[source]]
            seen = rows @ left
            mass = np.clip(seen / sizes, 0.0, max_mass)
            chosen[source] = int(np.argmax(2 * mass * seen - mass**2 * sizes))
            masses[source] = mass[chosen[source]]
        masses = box_fit(rows[chosen], target, max_mass=max_mass, start=masses)
    best = float(np.sum((target - masses @ rows[chosen]) ** 2))
    if best <= target.size:  # as noise leaves on average
        return best
    near = _around(space, chosen)
    shared = box_fit(rows[near], target, max_mass=max_mass, start=np.zeros(near.size))
    # All together may not be more than so many sources are.
    shared *= min(1.0, chosen.size * max_mass / max(float(shared.sum()), 1e-300))
    return min(best, float(np.sum((target - shared @ rows[near]) ** 2)))


def _around(space: Line | Grid | Graph | Points, cells: IntArray) -> IntArray:
    """These cells and those beside them; on a graph, where nobody is between nodes, these alone."""
    if isinstance(space, Graph):
        return np.unique(cells)
    far = space.distances_between(space.places(cells), space.places(np.arange(space.size)))
    beside = np.argsort(far, axis=1, kind="stable")[:, : 3 if isinstance(space, Line) else 9]
    return np.unique(np.concatenate([cells, beside.ravel()]))
