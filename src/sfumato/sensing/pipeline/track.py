"""Follow sources through several rounds of readings: what `sense track` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from sfumato._random import generator, seed_of
from sfumato._types import FloatArray
from sfumato.errors import InvalidInput
from sfumato.privacy import Loss
from sfumato.sensing.diagnostics.field_sensors import MAX_FAULTY, FaultySensor, rows_without
from sfumato.sensing.diagnostics.shared_level import SharedLevel, shared_level
from sfumato.sensing.diagnostics.track_fit import faulty_in_rounds, faulty_in_track, fit_rounds
from sfumato.sensing.model.operators.protocol import Operator, part_of
from sfumato.sensing.model.site import Site, part_of_site
from sfumato.sensing.pipeline.inputs import Released, all_readings
from sfumato.sensing.recovery.answer import place_of
from sfumato.sensing.recovery.merging import (
    MergedReadings,
    gaps_of,
    merge,
    merge_each,
    moments_of,
)
from sfumato.sensing.release.readings import Readings
from sfumato.sensing.results.track import TrackedRound, TrackedSource, TrackResult
from sfumato.sensing.results.verdict import (
    UNLIKELY,
    LeftOut,
    Verdict,
    verdict_of_track,
    verdicts_of_rounds,
)
from sfumato.sensing.tracking.cost import cost_of, losses_of
from sfumato.sensing.tracking.rounds import Track, track

UNEVEN = 1.5  # times the shortest gap between rounds: longer ones are remarked on


def track_sources(
    readings: Released | Sequence[Released],
    *,
    site: Site | str | Path | None = None,
    count: int = 1,
    speed: float | None = None,
    max_mass: float = 1.0,
    seed: int | None = None,
    leave_out_faulty: bool = False,
    watch: Callable[[str], None] | None = None,
) -> TrackResult:
    """Follow sources that move: where each was in each round, and how sure that is.

    Costs nothing beyond what the rounds have cost; that is added up from their receipts, because
    whoever is followed is in all of them.

    Args:
        readings: Noisy readings of one site at several times: files of `sense release`, `Readings`,
            or snapshots with their `site`.
        site: The site, for snapshots.
        count: How many sources there are; it is not learned.
        speed: How far a source goes in a round, as a deviation in the unit of the space; None means
            that it is learned.
        max_mass: The largest mass of one source.
        seed: Seed of the draws for several sources; None means a hash of the readings.
        leave_out_faulty: Whether sensors that the others contradict are left out.
        watch: Called with a sentence when the work begins.

    Returns:
        The track with 90 % radii, masses, speed, the cost of all rounds, faulty sensors, and a verdict on
        every round and on the whole.

    Raises:
        InvalidInput: If readings cannot be read, are of different sites, or of one round only.
        InvalidParameter: If a parameter is out of range.

    >>> import tempfile
    >>> from sfumato.privacy import ApproxDP
    >>> from sfumato.sensing import describe_site, heat_line, open_ledger, release_readings
    >>> line = heat_line(sources=100, sensors=20, diffusion_time=0.05)
    >>> hall = describe_site("hall", operator=line, radius="1/100", unit="mass", per_source=1).site
    >>> first, second = (dict(zip(hall.sensors.names, line.columns([i])[:, 0])) for i in (30, 35))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = open_ledger(hall, f"{folder}/hall.ledger", ApproxDP(4, "2e-6")).ledger
    ...     rounds = [("1", first), ("2", second)]
    ...     noisy = release_readings(rounds, hall, ledger=book, loss=ApproxDP(2, "1e-6"))
    >>> found = track_sources(noisy.readings)
    >>> [one.time for one in found.rounds], str(found.cost)
    (['1', '2'], 'epsilon 4, delta 2e-06')
    """
    read = all_readings(readings, site=site)
    rounds = rounds_in_order(read)
    if watch is not None:
        watch(f"looking for a path through {len(rounds)} rounds")
    return tracked(
        rounds,
        cost=cost_of(losses_of(read)),
        count=count,
        speed=speed,
        max_mass=max_mass,
        seed=seed,
        leave_out_faulty=leave_out_faulty,
    )


def tracked(
    rounds: list[MergedReadings],
    *,
    cost: tuple[Loss | None, str],
    count: int = 1,
    speed: float | None = None,
    max_mass: float = 1.0,
    seed: int | None = None,
    leave_out_faulty: bool = False,
) -> TrackResult:
    """Follow sources through rounds that are merged already; `cost` is what these cost, and in words."""
    ground = rounds[0].site
    there = {name for one in rounds for name in one.names}
    names = tuple(name for name in ground.sensors.names if name in there)
    values = _side_by_side(rounds, names)
    rng = generator(seed_of(values) if seed is None else seed)
    scene = _Scene(part_of_site(ground, names), values, tuple(rounds))
    faulty, looked_at = faulty_in_track(
        scene.operator, values, noises=scene.noises, max_mass=max_mass, laplace=scene.laplace
    )
    remarks = _gaps(scene, names, looked_at)
    if leave_out_faulty:
        scene = scene.without(faulty)
    while True:
        found = track(
            scene.operator, scene.values, sigma=scene.noises, speed=speed, max_mass=max_mass,
            count=count, rng=rng, anywhere=True,
        )  # fmt: skip
        fits = fit_rounds(
            found, scene.values, noises=scene.noises, max_mass=max_mass,
            min_noises=[one.min_noise for one in scene.rounds], laplace=scene.laplace,
        )  # fmt: skip
        new = faulty_in_rounds(
            scene.operator, scene.values, fits, noises=scene.noises, max_mass=max_mass,
            unlikely=UNLIKELY, known=faulty, laplace=scene.laplace,
        )  # fmt: skip
        faulty = (*faulty, *new)
        too_many = len(faulty) > MAX_FAULTY * len(names)
        if not (new and leave_out_faulty) or too_many:
            break
        scene = scene.without(new)
    faulty = tuple(replace(one, unit=ground.reading_unit) for one in faulty)
    times = [one.time for one in scene.rounds]
    verdict = verdict_of_track(
        fits,
        times=times,
        count=count,
        suspects=() if leave_out_faulty else faulty,
        looked_at=looked_at,
        mixed=found.mixed,
        fewer=found.fewer,
        left_out=LeftOut(len(faulty), len(names), too_many) if leave_out_faulty else None,
        level=_level(scene, ground),
    )
    verdicts = verdicts_of_rounds(fits, count=count, whole=verdict)
    if leave_out_faulty:
        remarks += [f"{one.message} and was left out" for one in faulty]
    gone = len(rounds) - len(scene.rounds)
    if gone:
        remarks.append(
            f"{gone} of {len(rounds)} rounds have readings of faulty sensors only, and were left out"
        )
    return TrackResult(
        ground.name,
        tuple(
            _round(found, one, number, verdicts[number]) for number, one in enumerate(scene.rounds)
        ),
        tuple(found.masses.tolist()),
        found.speed,
        found.rhat,
        found.mixed,
        found.fewer,
        max_mass,
        *cost,
        faulty,
        leave_out_faulty,
        (*remarks, *uneven(times)),
        any(one.rehearsal for one in rounds),
        verdict,
        found,
        ground.cells,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Scene:
    """What is followed: the operator to the sensors, a row of readings for each round, and the rounds."""

    operator: Operator
    values: FloatArray
    rounds: tuple[MergedReadings, ...]

    @property
    def noises(self) -> list[float]:
        return [one.noise or 0.0 for one in self.rounds]

    @property
    def laplace(self) -> bool:
        """Whether any of the noise is Laplace: then tests allow for its tails."""
        return any(one.laplace is not None for one in self.rounds)

    def without(self, faulty: Sequence[FaultySensor]) -> _Scene:
        """Without these sensors, and without rounds that nobody else read."""
        if not faulty:
            return self
        rows = rows_without(self.operator, faulty)
        values = self.values[:, rows]
        kept = np.flatnonzero(~np.isnan(values).all(axis=1)).tolist()
        if len(kept) < 2:
            raise InvalidInput(
                "less than two rounds have a reading of another sensor than the faulty ones; nothing was "
                "followed"
            )
        return _Scene(
            part_of(self.operator, rows), values[kept], tuple(self.rounds[at] for at in kept)
        )


def _level(scene: _Scene, ground: Site) -> SharedLevel | None:
    """What all sensors read above their level on average, where that is more than sources make alike."""
    if ground.level is None:
        return None
    read = np.isfinite(scene.values).sum(axis=0)
    there = np.flatnonzero(read)
    sigma = max(scene.noises) / float(np.sqrt(read[there].min()))
    means = np.nanmean(scene.values[:, there], axis=0)
    operator = part_of(scene.operator, there)
    return shared_level(operator, means, sigma=sigma, unit=ground.reading_unit)


def _gaps(scene: _Scene, names: tuple[str, ...], looked_at: int) -> list[str]:
    """What is to be said of readings that are missing."""
    if not np.isnan(scene.values).any():
        return []
    told = [gaps_of([one.names for one in scene.rounds], names)]
    if 0 < looked_at < len(scene.rounds):
        told.append(
            f"broken sensors were looked for in {looked_at} of {len(scene.rounds)} rounds, which have the same "
            "sensors, and in each that does not fit"
        )
    return told


def _round(found: Track, read: MergedReadings, number: int, verdict: Verdict) -> TrackedRound:
    places = found.estimate(number).places
    return TrackedRound(
        read.time,
        tuple(
            TrackedSource(int(cell), place_of(read.site, place), float(radius))
            for cell, place, radius in zip(
                found.cells[number], places, found.radii[number], strict=True
            )
        ),
        verdict,
    )


def _side_by_side(rounds: list[MergedReadings], names: tuple[str, ...]) -> FloatArray:
    """A row for each round and a column for each sensor; not a number where it did not read."""
    place = {name: number for number, name in enumerate(names)}
    values = np.full((len(rounds), len(names)), np.nan)
    for row, one in zip(values, rounds, strict=True):
        row[[place[name] for name in one.names]] = one.values
    return values


def rounds_in_order(read: list[Readings]) -> list[MergedReadings]:
    """One round for each time, in the order of the times: as dates, as numbers, or as they come.

    Readings without a time are rounds in the order of the files.
    """
    times = list(dict.fromkeys(snapshot.time for one in read for snapshot in one.snapshots))
    if times == [""]:
        if any(len(one.snapshots) > 1 for one in read):
            raise InvalidInput("a file has several readings without a time; nothing was followed")
        _all_different(read)
        rounds = [merge([one]) for one in read]
    else:
        if "" in times:
            raise InvalidInput("some readings have a time and some have none; nothing was followed")
        rounds = merge_each(read)
    if len(rounds) < 2:
        raise InvalidInput(
            "one round is no track: give readings of several times; `sense recover` is for one"
        )
    return rounds


def _all_different(read: list[Readings]) -> None:
    """Refuse readings of other sites, and the same reading twice."""
    if any(other.site.to_json() != read[0].site.to_json() for other in read[1:]):
        raise InvalidInput("the files are of different sites; nothing was followed")
    receipts = [
        (one.release.ledger, one.release.entry.hash) for other in read for one in other.snapshots
    ]
    if len(set(receipts)) < len(receipts):
        raise InvalidInput("a reading is there twice, with the same receipt; nothing was followed")


def uneven(times: list[str]) -> list[str]:
    """That rounds are not evenly spaced, where their times say so: a step is a step to the track."""
    moments = moments_of(times) if all(times) else None
    if moments is None:
        return []
    gaps = [moments[after] - moments[before] for before, after in pairwise(times)]
    if not gaps or max(gaps) <= UNEVEN * min(gaps):
        return []
    return ["rounds are not evenly spaced in time, and every step counts as one all the same"]
