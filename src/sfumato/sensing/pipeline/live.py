"""Recover rounds of a running network as they come, and follow what moves: what `collect` does with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np

from sfumato.errors import InvalidInput, InvalidParameter, SolverFailed
from sfumato.privacy import ZCDP, ApproxDP, Guarantee, Loss, PureDP
from sfumato.sensing.model.operators.protocol import parts_of
from sfumato.sensing.model.site import Site, rows_of
from sfumato.sensing.pipeline.inputs import site_from
from sfumato.sensing.pipeline.recover import recovered
from sfumato.sensing.pipeline.track import tracked
from sfumato.sensing.recovery.certified_error import LaplaceNoise
from sfumato.sensing.recovery.estimators.registry import (
    DEFAULT_ESTIMATOR,
    Estimator,
    estimator_named,
)
from sfumato.sensing.recovery.merging import MergedReadings
from sfumato.sensing.recovery.options import RecoveryOptions
from sfumato.sensing.release.noise_plan import unit_of
from sfumato.sensing.release.rounds import cost_after
from sfumato.sensing.release.windows import describe_window
from sfumato.sensing.results.recovered_rounds import RecoveredRound, RecoveredRounds
from sfumato.sensing.results.track import TrackResult
from sfumato.sensing.tracking.cost import DELTA, cost_of, dearest

KEYED_DISTANCE = Fraction(1, 2**100)
"""How far a draw of keyed noise is from its law at most: docs/proofs/keyed-noise.md."""


@dataclass(frozen=True, slots=True)
class LiveReading:
    """One noisy reading as a sensor sent it.

    Attributes:
        value: In the unit of the site's operator.
        sigma: The deviation of its noise, in the same unit.
        cost: What its round cost, for all sensors together.
        laplace: Whether its noise is Laplace; else it is Gaussian.
    """

    value: float
    sigma: float
    cost: ZCDP | ApproxDP | PureDP
    laplace: bool = False


@dataclass(frozen=True, slots=True)
class LiveRound:
    """Noisy readings of one round, by sensor.

    Attributes:
        time: When the round was, as text; rounds of one network are in the order of their times.
        readings: At least one.
        window: When the window of the budget began and how long it is; None for one budget for all time.
        rehearsal: Whether any of them protects nobody.
    """

    time: str
    readings: Mapping[str, LiveReading]
    window: tuple[datetime, timedelta] | None = None
    rehearsal: bool = False

    @property
    def cost(self) -> Loss | None:
        """What the round cost; None where sensors state costs that one number does not bound."""
        return dearest([one.cost for one in self.readings.values()])


class LiveRecovery:
    """Rounds of one site, recovered as they come: holds what depends on the site alone.

    It works on what was released, and costs nothing.
    """

    def __init__(
        self,
        site: Site | str | Path,
        *,
        estimator: str | Estimator = DEFAULT_ESTIMATOR,
        max_mass: float = 1.0,
    ) -> None:
        """Check that site and options go together.

        Args:
            site: The site, or its file.
            estimator: As for `recover_sources`.
            max_mass: The largest mass of one source.

        Raises:
            InvalidInput: The file cannot be read.
            InvalidParameter: An option is out of range.
        """
        found = site_from(site)
        if found is None:
            raise InvalidParameter("rounds are of a `site`, got none; nothing was recovered")
        self.site = found
        chosen = estimator_named(estimator) if isinstance(estimator, str) else estimator
        self._options = RecoveryOptions(chosen, max_mass)
        self._part = parts_of(self.site.operator)

    def prepare(self) -> None:
        """Recover a made-up round, so that the first real one does not wait for machine code to be made."""
        operator = self.site.operator
        reads = operator.columns([operator.shape[1] // 2])[:, 0]
        sigma = float(abs(reads).max()) / 10 or 1.0
        made_up = {
            name: LiveReading(float(value), sigma, ZCDP(1))
            for name, value in zip(operator.sensors.names, reads, strict=True)
        }
        self.recover(LiveRound("", made_up))

    def recover(self, one: LiveRound) -> RecoveredRound:
        """Where sources were in one round, from the sensors that were read.

        Args:
            one: The round.

        Returns:
            The recovery with its certificate and bands, and which sensors are missing; where no answer could
            be proved, why.

        Raises:
            InvalidInput: It has no reading.
            InvalidParameter: It has one of a sensor that the site has not.
        """
        read = self._merged(one)
        there = set(read.names)
        missing = tuple(name for name in self.site.sensors.names if name not in there)
        part = self._part(rows_of(self.site, read.names))
        try:
            return RecoveredRound(one.time, recovered(read, self._options, operator=part), missing)
        except SolverFailed as problem:
            return RecoveredRound(one.time, None, missing, str(problem))

    def track(
        self, rounds: Sequence[LiveRound], *, count: int = 1, speed: float | None = None
    ) -> TrackResult:
        """Follow sources through the last rounds; sensors that are faulty or drift in them are named.

        Args:
            rounds: Two rounds or more, in the order of their times.
            count: How many sources there are.
            speed: How far a source goes in a round, as a deviation; None means that it is learned.

        Returns:
            The track, its faulty sensors, and a verdict.

        Raises:
            InvalidInput: There are less than two rounds, or one has no reading.
        """
        if len(rounds) < 2:
            raise InvalidInput("one round is no track; nothing was followed")
        return tracked(
            [self._merged(one) for one in rounds],
            cost=cost_of([one.cost for one in rounds]),
            count=count,
            speed=speed,
            max_mass=self._options.max_mass,
        )

    def together(
        self, rounds: Sequence[RecoveredRound], costs: Sequence[Loss | None]
    ) -> RecoveredRounds:
        """Recovered rounds as one result, which can be saved, checked and drawn.

        Args:
            rounds: Rounds of this site, in the order of their times; at least one.
            costs: What each of them cost.

        Returns:
            The rounds and what they cost a source that was there in all of them.
        """
        cost, statement = cost_of(costs)
        rehearsal = any(one.recovery is not None and one.recovery.rehearsal for one in rounds)
        return RecoveredRounds(self.site, tuple(rounds), cost, statement, rehearsal)

    def _merged(self, one: LiveRound) -> MergedReadings:
        if not one.readings:
            raise InvalidInput(f"round {one.time!r} has no reading; nothing was recovered")
        rows_of(self.site, tuple(one.readings))
        names = tuple(name for name in self.site.sensors.names if name in one.readings)
        read = [one.readings[name] for name in names]
        values = np.array([each.value for each in read])
        sigmas = [each.sigma for each in read]
        return MergedReadings(
            self.site,
            names,
            values,
            noise=max(sigmas),
            statement=self._statement(one),
            rehearsal=one.rehearsal,
            time=one.time,
            rounds=values[np.newaxis],
            noises=(max(sigmas),),
            min_noise=min(sigmas),
            laplace=LaplaceNoise() if any(each.laplace for each in read) else None,
            mixed=len({each.laplace for each in read}) > 1,
        )

    def _statement(self, one: LiveRound) -> str:
        """What sensors promise for the round, each in its own words where they differ."""
        window = "" if one.window is None else describe_window(*one.window)
        unit = unit_of(self.site.sensors, window=window)
        distance = KEYED_DISTANCE * len(self.site.sensors)
        return "; or ".join(
            str(Guarantee(loss, self.site.neighbors, unit, "local", distance))
            for loss in dict.fromkeys(each.cost for each in one.readings.values())
        )


def epsilon_after(cost: ZCDP | ApproxDP | PureDP, rounds: int) -> float:
    """What so many rounds cost a source that was there in all of them: the least epsilon that is proved.

    Args:
        cost: What one round costs.
        rounds: How many, at least 1.

    Returns:
        Epsilon, rounded up, at the delta of the cost, or at 1e-6 for a rho or an epsilon alone.
    """
    delta = cost.delta if isinstance(cost, ApproxDP) else DELTA
    (row,) = cost_after(cost, [rounds], delta=delta)
    return row.epsilon
