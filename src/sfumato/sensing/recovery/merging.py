"""Noisy readings of one or several devices as one value, ready for a recovery or a track."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import DiscreteLaplace
from sfumato.sensing.model.operators.weighted import (
    LARGEST_GAIN,
    Weighted,
    weighted,
    without_gains,
)
from sfumato.sensing.model.site import Site
from sfumato.sensing.recovery.certified_error import LaplaceNoise
from sfumato.sensing.recovery.round_times import matching_times
from sfumato.sensing.release.readings import Readings, Snapshot
from sfumato.sensing.tracking.average import combine

LOUDEST = 2**0.5
"""How many times the least noise a mean over rounds with gaps may have: of equal noise, half of the rounds."""
NO_PROMISE = "nothing was promised by sfumato for these readings"


@dataclass(frozen=True, slots=True, eq=False)
class MergedReadings:
    """Noisy readings of a site, of all devices together: as one, and each of `rounds` in the order of time.

    Attributes:
        site: The site that was read.
        names: The sensors that were read, in the site's order.
        values: One number for each of them, in the unit of the site's operator.
        noise: Standard deviation of the noise of `values`: the largest where devices differ and are not
            weighed; None if unknown.
        statement: What was promised for the readings.
        rehearsal: Whether any came from a ledger for rehearsals.
        time: When they were read; "" where nobody said or several times were averaged.
        rounds: The readings of each time, a row each.
        noises: The noise of each round.
        min_noise: The smallest noise of any device, of `values`; None if unknown.
        averaged: Whether several times were averaged.
        remarks: What must be known of them: readings that are missing.
        laplace: What the noise is if it is Laplace; None if it is Gaussian.
        mixed: Whether some of the noise is Laplace and some is Gaussian.
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
    remarks: tuple[str, ...] = ()
    laplace: LaplaceNoise | None = None
    mixed: bool = False


def merge(
    read: Sequence[Readings], *, time: str = "", average: bool = False, weigh: bool = False
) -> MergedReadings:
    """Put snapshots of one time by several devices side by side, or average all times.

    Args:
        read: Readings of devices of one site.
        time: Which time, where there are several.
        average: Whether to average all times: for sources that stay where they are.
        weigh: Whether readings of devices with less noise count for more, so that not all count as having
            the most of it: the site then has a gain for each sensor. Not where sources are known between
            cells, which gains would end, and not of Laplace noise.

    Returns:
        One reading of every sensor, and the noise it has.

    Raises:
        InvalidInput: If sites differ, or a receipt or a sensor comes twice.
        InvalidParameter: If there is no such time, or there are several and nobody chose.
    """
    ground = _one_site(read)
    moments = _chosen(_by_time(read), time, average=average)
    return _averaged(ground, moments, weigh=weigh)


def merge_each(read: Sequence[Readings], *, time: str = "") -> list[MergedReadings]:
    """Snapshots of each time by several devices side by side, in the order of the times.

    Args:
        read: Readings of devices of one site.
        time: Which times, one or a range "A..B"; "" for all.

    Returns:
        One value for each time; sensors may differ, where some did not read.

    Raises:
        InvalidInput: If sites differ, or a receipt or a sensor comes twice.
        InvalidParameter: If there is no such time.
    """
    ground, moments = _one_site(read), _by_time(read)
    return [_averaged(ground, {when: moments[when]}) for when in times_of(moments, time)]


def _one_site(read: Sequence[Readings]) -> Site:
    ground = read[0].site
    told = ground.to_json() if len(read) > 1 else None
    if any(other.site is not ground and other.site.to_json() != told for other in read[1:]):
        raise InvalidInput("the files are of different sites; nothing was recovered")
    return ground


def _averaged(
    ground: Site, moments: dict[str, list[Snapshot]], *, weigh: bool = False
) -> MergedReadings:
    """All moments as one, each sensor by what there is of it."""
    rounds = [_side_by_side(snapshots) for snapshots in moments.values()]
    names = tuple(name for name in ground.sensors.names if any(name in at for at in rounds))
    promises = dict.fromkeys(str(s.guarantee) for group in moments.values() for s in group)
    several = len(moments) > 1
    told: dict[str, Any] = {
        "statement": (f"{len(moments)} readings, each " if several else "")
        + "; or ".join(promises),
        "rehearsal": any(s.release.rehearsal for group in moments.values() for s in group),
        "time": "" if several else next(iter(moments)),
        "averaged": several,
        "mixed": len({_is_laplace(s) for group in moments.values() for s in group}) > 1,
    }
    laplace = any(_is_laplace(s) for group in moments.values() for s in group)
    if any(len(at) < len(names) for at in rounds):
        return _with_gaps(ground, names, rounds, told, laplace=laplace)
    values = np.array([[at[name][0] for name in names] for at in rounds])
    sigmas = np.array([[at[name][1] for name in names] for at in rounds])
    if weigh and not laplace and ground.operator.kernel_width is None:
        ground, times = _weighed(ground, names, sigmas)
        values, sigmas = values * times, sigmas * times
    noises, smallest = sigmas.max(axis=1).tolist(), sigmas.min(axis=1).tolist()
    mean, noise = combine(values, noises)
    # Of a sensor with the least noise, by the weights that the most of it has.
    weights = np.square(noise) / np.square(noises)
    least = float(np.linalg.norm(weights * smallest))
    return MergedReadings(
        ground,
        names,
        mean,
        noise=noise,
        rounds=values,
        noises=tuple(noises),
        min_noise=least,
        laplace=_mean_of_laplace(noise, [noises]) if laplace else None,
        **told,
    )


def _weighed(ground: Site, names: tuple[str, ...], sigmas: FloatArray) -> tuple[Site, FloatArray]:
    """The site with gains that make all noise alike, and what readings are multiplied by.

    A sensor whose noise is a third of the most has its reading and its row times 3: the same equation, now with
    the noise of the others. Of several rounds a sensor counts as what it is in its worst beside the others.
    """
    times = (sigmas.max(axis=1, keepdims=True) / sigmas).min(axis=0)
    rows = [ground.sensors.names.index(name) for name in names]
    gains = ground.gains.copy()
    times = np.minimum(times, LARGEST_GAIN / gains[rows])
    if not (times > 1).any():
        return ground, np.ones(len(names))
    gains[rows] *= times
    made = weighted(without_gains(ground.operator), np.minimum(gains, LARGEST_GAIN))
    return replace(ground, operator=made), times


def _is_laplace(snapshot: Snapshot) -> bool:
    return snapshot.release.entry.mechanism == DiscreteLaplace.name


def _mean_of_laplace(noise: float, sigmas: Iterable[Sequence[float]]) -> LaplaceNoise:
    """No narrower than the weighted mean of each sensor's rounds, whose noise has these sigmas.

    The weight of a round is the variance of the mean over its own, so its part has the deviation variance /
    sigma. Parts that are no larger and no more together are more peaked [proschan65]: at most so large, and
    as many as add up to the most there is.
    """
    largest, total = 0.0, 0.0
    for each in sigmas:
        inverse = 1 / np.array(each)
        parts = inverse / float(inverse @ inverse)
        largest, total = max(largest, float(parts.max())), max(total, float(parts.sum()))
    return LaplaceNoise(largest / noise, math.ceil(total / largest * (1 - 1e-12)))


def _with_gaps(
    ground: Site,
    names: tuple[str, ...],
    rounds: list[dict[str, tuple[float, float]]],
    told: dict[str, Any],
    *,
    laplace: bool,
) -> MergedReadings:
    """The mean of each sensor over the rounds that have it, by the weights 1 / sigma**2 of its noise.

    Sensors then differ in their noise. It is told as the largest, which nothing exceeds; so that one
    with a single reading does not speak for all, those whose noise is above `LOUDEST` times the least are
    left out: where all devices have the same noise, these were read in less than half of the rounds.
    """
    each = {name: [at[name] for at in rounds if name in at] for name in names}
    weights = {name: sum(sigma**-2 for _, sigma in pairs) for name, pairs in each.items()}
    sigmas = {name: weight**-0.5 for name, weight in weights.items()}
    least = min(sigmas.values())
    kept = tuple(name for name in names if sigmas[name] <= LOUDEST * least)
    mean = np.array(
        [sum(value * sigma**-2 for value, sigma in each[name]) / weights[name] for name in kept]
    )
    noise = max(sigmas[name] for name in kept)
    return MergedReadings(
        ground,
        kept,
        mean,
        noise=noise,
        rounds=mean[np.newaxis],
        noises=(noise,),
        min_noise=least,
        remarks=(
            gaps_of(rounds, names),
            *_left_out(
                {name: len(each[name]) for name in names if name not in kept},
                len(rounds),
                times=min((sigmas[name] for name in names if name not in kept), default=0.0)
                / least,
            ),
        ),
        laplace=_mean_of_laplace(noise, [[one for _, one in each[name]] for name in kept])
        if laplace
        else None,
        **told,
    )


def gaps_of(rounds: Sequence[Collection[str]], names: Sequence[str]) -> str:
    """How many readings are missing, of how many, and of whom most."""
    missing = {name: sum(name not in at for at in rounds) for name in names}
    total = sum(missing.values())
    worst = max(missing, key=lambda name: missing[name])
    return (
        f"{total} of {len(rounds) * len(names)} readings are missing, {missing[worst]} of them of sensor "
        f"{worst!r}: used what is there"
    )


def _left_out(gone: Mapping[str, int], rounds: int, *, times: float) -> list[str]:
    """Which sensors are not in an average, in how many of the rounds each was read, and why that is."""
    if not gone:
        return []
    listed = ", ".join(
        f"{name!r} (read in {count} of {rounds} rounds)" for name, count in list(gone.items())[:5]
    )
    listed += ", ..." if len(gone) > 5 else ""
    who, whose = ("sensor", "its mean has") if len(gone) == 1 else ("sensors", "their means have")
    more = "" if len(gone) == 1 else " or more"
    return [
        f"{who} {listed} left out of the average: {whose} {times:.2g} times the noise of the surest{more}"
    ]


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
    """Readings that were not released by sfumato: a number for each sensor that was read.

    Where each sensor has its own noise these are as sensors have them, without gains; `noise` is the most
    that any of them has.
    """
    off = set(site.off)
    names = tuple(name for name in site.sensors.names if name in values and name not in off)
    read = np.array([float(values[name]) for name in names])
    if isinstance(site.operator, Weighted) and names:
        gain = dict(zip(site.sensors.names, site.gains.tolist(), strict=True))
        gains = np.array([gain[name] for name in names])
        read, noise = read * gains, None if noise is None else noise * float(gains.min())
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
        remarks=_as_the_operator_has_them(site),
    )


def _as_the_operator_has_them(site: Site) -> tuple[str, ...]:
    """What readings of no release are taken for, where the site's own unit is another."""
    if site.level is None:
        return ()
    unit = f"{float(site.per_source or 1):.3g} {site.unit}"
    return (
        f"these readings were not released: they are taken as what is above the level of the site, in units of "
        f"{unit}, not as sensors show them",
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
