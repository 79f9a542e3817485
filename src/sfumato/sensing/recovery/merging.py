"""Noisy readings of one or several devices as one value, ready for a recovery or a track."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.sensing.model.site import Site
from sfumato.sensing.recovery.round_times import matching_times
from sfumato.sensing.release.readings import Readings, Snapshot
from sfumato.sensing.tracking.average import combine

NO_PROMISE = "nothing was promised by sfumato for these readings"


@dataclass(frozen=True, slots=True, eq=False)
class MergedReadings:
    """Noisy readings of a site, of all devices together: as one, and each of `rounds` in the order of time.

    Attributes:
        site: The site that was read.
        names: The sensors that were read, in the site's order.
        values: One number for each of them, in the unit of the site's operator.
        noise: Standard deviation of the noise of `values`: the largest where devices differ; None if unknown.
        statement: What was promised for the readings.
        rehearsal: Whether any came from a ledger for rehearsals.
        time: When they were read; "" where nobody said or several times were averaged.
        rounds: The readings of each time, a row each.
        noises: The noise of each round.
        min_noise: The smallest noise of any device, of `values`; None if unknown.
        averaged: Whether several times were averaged.
    """

    site: Site
    names: tuple[str, ...]
    values: FloatArray
    noise: float | None
    statement: str
    rehearsal: bool
    time: str
    rounds: FloatArray
    noises: tuple[float, ...]
    min_noise: float | None = None
    averaged: bool = False


def merge(read: Sequence[Readings], *, time: str = "", average: bool = False) -> MergedReadings:
    """Put snapshots of one time by several devices side by side, or average all times.

    Args:
        read: Readings of devices of one site.
        time: Which time, where there are several.
        average: Whether to average all times: for sources that stay where they are.

    Returns:
        One reading of every sensor, and the noise it has.

    Raises:
        InvalidInput: If sites differ, a receipt or a sensor comes twice, or sensors change over time.
        InvalidParameter: If there is no such time, or there are several and nobody chose.
    """
    ground = read[0].site
    if any(other.site.to_json() != ground.to_json() for other in read[1:]):
        raise InvalidInput("the files are of different sites; nothing was recovered")
    moments = _chosen(_by_time(read), time, average=average)
    values, noises, smallest = [], [], []
    names: tuple[str, ...] = ()
    for snapshots in moments.values():
        at = _side_by_side(snapshots)
        here = tuple(name for name in ground.sensors.names if name in at)
        if names and here != names:
            raise InvalidInput("other sensors were read at other times; choose one with `time`")
        names = here
        values.append([at[name][0] for name in names])
        noises.append(max(at[name][1] for name in names))
        smallest.append(min(at[name][1] for name in names))
    mean, noise = combine(values, noises)
    # Of a sensor with the least noise, by the weights that the most of it has.
    weights = np.square(noise) / np.square(noises)
    promises = dict.fromkeys(str(s.guarantee) for group in moments.values() for s in group)
    several = len(moments) > 1
    return MergedReadings(
        ground,
        names,
        mean,
        noise=noise,
        statement=(f"{len(moments)} readings, each " if several else "") + "; or ".join(promises),
        rehearsal=any(s.release.rehearsal for group in moments.values() for s in group),
        time="" if several else next(iter(moments)),
        rounds=np.array(values),
        noises=tuple(noises),
        min_noise=float(np.linalg.norm(weights * smallest)),
        averaged=several,
    )


def _by_time(read: Sequence[Readings]) -> dict[str, list[Snapshot]]:
    moments: dict[str, list[Snapshot]] = {}
    paid: set[tuple[str, str]] = set()
    for snapshot in (snapshot for other in read for snapshot in other.snapshots):
        moments.setdefault(snapshot.time, []).append(snapshot)
        receipt = snapshot.release.ledger, snapshot.release.entry.hash
        if receipt in paid:
            raise InvalidInput(
                "a reading is there twice, with the same receipt; nothing was recovered"
            )
        paid.add(receipt)
    return moments


def _chosen(
    moments: dict[str, list[Snapshot]], time: str, *, average: bool
) -> dict[str, list[Snapshot]]:
    """The time that was asked for, or all of them in their order."""
    times = times_of(moments, time)
    if len(times) > 1 and not average:
        raise InvalidParameter(
            f"there are {len(times)} times, from {times[0]} on: choose one with `time`, or `average` them, or "
            "recover each of them with `recover_rounds`; nothing was recovered"
        )
    return {when: moments[when] for when in times}


def times_of(moments: Iterable[str], asked: str) -> list[str]:
    """The times that are asked for, all of them if none is, in their order."""
    given = list(moments)
    if not asked:
        return in_order(given)
    found = matching_times(given, asked)
    if not found:
        there = ", ".join(when or "one without a time" for when in given[:5])
        more = ", ..." if len(given) > 5 else ""
        raise InvalidParameter(
            f"there is no reading at {asked!r}, only {there}{more}; nothing was recovered"
        )
    return in_order(found)


def merge_each(read: Sequence[Readings], *, time: str = "") -> list[MergedReadings]:
    """Put snapshots of all devices side by side, for each time apart, in the order of times.

    Args:
        read: Readings of devices of one site.
        time: Which times, one or a range; "" for all.

    Returns:
        One value for each time; sensors that were not read at a time are not in it.

    Raises:
        InvalidInput: If sites differ, or a receipt or a sensor comes twice.
        InvalidParameter: If there is no such time.
    """
    ground = read[0].site
    if any(other.site.to_json() != ground.to_json() for other in read[1:]):
        raise InvalidInput("the files are of different sites; nothing was recovered")
    moments = _by_time(read)
    return [
        merge([Readings(ground, tuple(moments[when]))], time=when)
        for when in times_of(moments, time)
    ]


def _side_by_side(snapshots: Iterable[Snapshot]) -> dict[str, tuple[float, float]]:
    """The reading of each sensor and its noise."""
    at: dict[str, tuple[float, float]] = {}
    for snapshot in snapshots:
        for name, value in zip(snapshot.names, snapshot.numbers().tolist(), strict=True):
            if name in at:
                raise InvalidInput(
                    f"sensor {name!r} was read twice at one time; nothing was recovered"
                )
            at[name] = value, snapshot.sigma
    return at


def unpromised(
    values: Mapping[str, float], site: Site, *, noise: float | None, time: str = ""
) -> MergedReadings:
    """Readings that were not released by sfumato: a number for each sensor that was read."""
    names = tuple(name for name in site.sensors.names if name in values)
    read = np.array([float(values[name]) for name in names])
    return MergedReadings(
        site,
        names,
        read,
        noise=noise,
        statement=NO_PROMISE,
        rehearsal=False,
        time=time,
        rounds=read[np.newaxis],
        noises=() if noise is None else (noise,),
    )


def in_order(times: Iterable[str]) -> list[str]:
    """Times in their order: as dates if all are dates, as numbers if all are numbers, else as they come."""
    given = list(times)
    moments = moments_of(given)
    return given if moments is None else sorted(given, key=moments.__getitem__)


def moments_of(times: list[str]) -> dict[str, Any] | None:
    """What the times mean: all are dates (in UTC unless they name a zone), or all are numbers; or nothing."""
    for kind in (_date, float):
        try:
            known = {time: kind(time) for time in times}
        except ValueError:
            continue
        if len(set(known.values())) < len(known):
            raise InvalidInput(
                f"two of the times are one moment: {', '.join(times)}; nothing was recovered"
            )
        return known
    return None


def _date(time: str) -> datetime:
    found = datetime.fromisoformat(time)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
