"""Recover every round of readings by itself, in one process: what `sense recover --each` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from sfumato.errors import InvalidInput, SolverFailed
from sfumato.privacy import Loss
from sfumato.sensing.model.operators.protocol import Operator, parts_of
from sfumato.sensing.model.site import Site, rows_of
from sfumato.sensing.pipeline.inputs import ReadingsInput, complete, merged_each, not_a_site
from sfumato.sensing.pipeline.recover import Watch, recovered
from sfumato.sensing.recovery.estimators.registry import (
    DEFAULT_ESTIMATOR,
    Estimator,
    estimator_named,
)
from sfumato.sensing.recovery.merging import NO_PROMISE, MergedReadings
from sfumato.sensing.recovery.options import RecoveryOptions, Unknown
from sfumato.sensing.recovery.radius import CONFIDENCE
from sfumato.sensing.release.readings import Readings
from sfumato.sensing.results.recovered_rounds import RecoveredRound, RecoveredRounds
from sfumato.sensing.tracking.cost import cost_of, losses_of

MANY = 10  # rounds, from which on some are expected to have an answer by noise alone


def recover_rounds(
    readings: ReadingsInput,
    *,
    site: Site | str | Path | None = None,
    noise: float | None = None,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    max_mass: float = 1.0,
    max_sources: int | None = None,
    count: int | None = None,
    seed: int | None = None,
    fit: Sequence[Unknown] = (),
    time: str = "",
    radius: float | Literal["papers"] | None = None,
    communities: int = 2,
    watch: Watch | None = None,
) -> RecoveredRounds:
    """Recover where sources were in each round of readings, every round by itself.

    Costs no privacy: it works on what was released. Each round has the answer that
    `recover_sources` gives for its time alone; what depends on the site only is computed once for
    all rounds. Sensors that were not read in a round are left out of it, and it says so.

    Args:
        readings: As for `recover_sources`; of several times.
        site: The site, or its file, for readings that do not hold their own.
        noise: Standard deviation of the noise of one reading, for readings that do not say it.
        estimator: As for `recover_sources`. "least" takes about a hundredth of a second a round,
            "bayes-median", which has bands, thirty times as much.
        max_mass: The largest mass of one source.
        max_sources: The most sources to consider.
        count: The number of sources, for "mixture", "off-grid" or `fit`.
        seed: Seed of the draws; None means a hash of each round's readings.
        fit: What is not known of the field and is estimated too, for each round by itself.
        time: Which rounds: one time or a range "A..B" of clocks, dates or numbers; "" for all.
        radius: How far R may be from the readings, as for `recover_sources`.
        communities: On a graph: say which of so many communities the source is in; 1 for none.
        watch: Called with a sentence when the work begins, and with how far it is.

    Returns:
        The rounds in the order of their times, and what they cost together.

    Raises:
        InvalidInput: If readings or site cannot be read or do not fit together.
        InvalidParameter: If options do not go together or are out of range, or no time matches.

    >>> from sfumato.sensing import describe_site, heat_line
    >>> line = heat_line(sources=20, sensors=8, diffusion_time=0.01)
    >>> hall = describe_site("hall", operator=line, radius="1/10").site
    >>> table = {"time": [], "sensor": [], "value": []}
    >>> for hour, cell in (("09:00", 5), ("10:00", 12)):
    ...     for name, value in zip(hall.sensors.names, line.columns([cell])[:, 0]):
    ...         for column, entry in zip(table, (hour, name, value)):
    ...             table[column].append(entry)
    >>> import pandas as pd
    >>> found = recover_rounds(pd.DataFrame(table), site=hall, noise=0.05, estimator="least")
    >>> [(one.time, one.recovery.sources()[0]["cell"]) for one in found.rounds]
    [('09:00', 5), ('10:00', 12)]
    """
    chosen = estimator_named(estimator) if isinstance(estimator, str) else estimator
    options = RecoveryOptions(
        chosen, max_mass, max_sources, count, seed, tuple(fit), radius, communities
    )
    complete(readings, site=site, known=noise is not None or radius is not None)
    try:
        rounds, released = merged_each(readings, site=site, noise=noise, time=time)
    except InvalidInput:
        not_a_site(readings)
        raise
    step = f"recovering each of {len(rounds)} rounds"
    if watch is not None:
        watch(step)
    ground = rounds[0].site
    part = parts_of(ground.operator)
    found = []
    for number, read in enumerate(rounds, 1):
        found.append(_round(read, options, part(rows_of(ground, read.names))))
        if watch is not None:
            watch(f"{step}: {number} of {len(rounds)}{', ' + read.time if read.time else ''}")
    cost, statement = _cost(released, {read.time for read in rounds})
    return RecoveredRounds(
        ground,
        tuple(found),
        cost,
        statement,
        any(read.rehearsal for read in rounds),
        _remarks(options, len(rounds)),
    )


def _round(read: MergedReadings, options: RecoveryOptions, operator: Operator) -> RecoveredRound:
    there = set(read.names)
    missing = tuple(name for name in read.site.sensors.names if name not in there)
    try:
        result = recovered(read, options, operator=operator)
    except SolverFailed as problem:  # the other rounds are none the worse for it
        return RecoveredRound(read.time, None, missing, str(problem))
    return RecoveredRound(read.time, result, missing)


def _remarks(options: RecoveryOptions, count: int) -> tuple[str, ...]:
    """That of many rounds some have an answer by noise alone: the default radius leaves that chance."""
    if options.radius is not None or count < MANY:
        return ()
    return (
        f"where nobody is there, noise alone still has an answer in about {100 * (1 - CONFIDENCE):.0f} % of "
        "rounds, mostly of small mass",
    )


def _cost(released: list[Readings], times: set[str]) -> tuple[Loss | None, str]:
    """What the rounds that were recovered cost together."""
    if not released:
        return None, NO_PROMISE
    kept = [
        Readings(one.site, tuple(shot for shot in one.snapshots if shot.time in times))
        for one in released
    ]
    return cost_of(losses_of(kept))
