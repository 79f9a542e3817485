"""Noisy readings as commands that work on them take them: from files of devices, or from one table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli.sense_files import read_sigma, read_snapshots
from sfumato.errors import InvalidInput, InvalidParameter

if TYPE_CHECKING:
    from sfumato._types import FloatArray
    from sfumato.sensing import Answer, Readings, Recovery, SavedRecovery, Site, Snapshot


@dataclass(frozen=True)
class Noisy:
    """Noisy readings, from wherever they came: as one, and each of `rounds` in the order of time.

    Where devices differ in their noise, all count as having the most of it; `least_sigma` is the
    least.
    """

    site: Site
    names: tuple[str, ...]
    values: FloatArray
    sigma: float | None
    statement: str
    rehearsal: bool
    time: str
    rounds: FloatArray
    noises: list[float]
    least_sigma: float | None = None
    averaged: bool = False

    def saved(self, found: Recovery, answer: Answer | None = None) -> SavedRecovery:
        """All of it in one value, with what was recovered from it."""
        from sfumato.sensing import SavedRecovery

        return SavedRecovery(
            self.site,
            self.names,
            found,
            self.sigma,
            self.statement,
            self.rehearsal,
            self.time,
            self.averaged,
            answer,
        )


def read_noisy(
    files: list[Path], *, site: Path | None, sigma: float | None, time: str, average: bool
) -> Noisy:
    """The readings of one moment, or the average of all, with the site they are of."""
    import numpy as np

    from sfumato.sensing import read_readings, read_site

    if site is not None and all(path.suffix == ".json" for path in files):
        raise InvalidParameter(
            "--site goes with .csv readings; a .json holds its own site; nothing was recovered"
        )
    if any(path.suffix != ".json" for path in files) or site is not None:
        if len(files) != 1 or site is None:
            raise InvalidParameter(
                "readings in a .csv come as one file, with --site; nothing was recovered"
            )
        ground = read_site(site)
        groups = read_snapshots(files[0], ground)
        if time:
            groups = [group for group in groups if group[0] == time]
        if not groups:
            raise InvalidParameter(
                f"there is no reading at {time!r} in {files[0]}; nothing was recovered"
            )
        if len(groups) > 1:
            raise InvalidParameter(f"{files[0]} has {len(groups)} times; choose one with --time")
        ((when, values),) = groups
        names = tuple(name for name in ground.sensors.names if name in values)
        read_values = np.array([values[name] for name in names])
        noise = read_sigma(files[0]) if sigma is None else sigma
        return Noisy(
            ground,
            names,
            read_values,
            sigma=noise,
            statement="nothing was promised by sfumato for these readings",
            rehearsal=False,
            time=when,
            rounds=read_values[np.newaxis],
            noises=[] if noise is None else [noise],
        )
    if sigma is not None:
        raise InvalidParameter(
            "--sigma goes with .csv readings; a .json says its own; nothing was recovered"
        )
    read = [read_readings(path) for path in files]
    return joined(read, time=time, average=average)


def joined(read: list[Readings], *, time: str, average: bool) -> Noisy:
    """Snapshots of one moment by several devices side by side; or all moments as one, by `combine`."""
    import numpy as np

    from sfumato.sensing import combine

    ground = read[0].site
    if any(other.site.to_json() != ground.to_json() for other in read[1:]):
        raise InvalidInput("the files are of different sites; nothing was recovered")
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
    if time:
        if time not in moments:
            there = ", ".join(when or "one without a time" for when in list(moments)[:5])
            more = ", ..." if len(moments) > 5 else ""
            raise InvalidParameter(
                f"there is no reading at {time!r}, only {there}{more}; nothing was recovered"
            )
        moments = {time: moments[time]}
    times = in_time(moments)
    if len(moments) > 1 and not average:
        raise InvalidParameter(
            f"there are {len(moments)} times, from {times[0]} on: choose one with --time, or --average them; "
            "nothing was recovered"
        )
    moments = {when: moments[when] for when in times}
    values = []
    noises = []
    least = []
    names: tuple[str, ...] = ()
    for snapshots in moments.values():
        at: dict[str, tuple[float, float]] = {}
        for snapshot in snapshots:
            for name, value in zip(snapshot.names, snapshot.numbers().tolist(), strict=True):
                if name in at:
                    raise InvalidInput(
                        f"sensor {name!r} was read twice at one time; nothing was recovered"
                    )
                at[name] = value, snapshot.sigma
        here = tuple(name for name in ground.sensors.names if name in at)
        if names and here != names:
            raise InvalidInput("other sensors were read at other times; choose one with --time")
        names = here
        values.append([at[name][0] for name in names])
        noises.append(max(at[name][1] for name in names))
        least.append(min(at[name][1] for name in names))
    mean, sigma = combine(values, noises)
    # Of a sensor with the least noise, by the weights that the most of it has.
    weights = np.square(sigma) / np.square(noises)
    promises = dict.fromkeys(str(s.guarantee) for group in moments.values() for s in group)
    return Noisy(
        ground,
        names,
        mean,
        sigma=sigma,
        statement=(f"{len(moments)} readings, each " if len(moments) > 1 else "")
        + "; or ".join(promises),
        rehearsal=any(s.release.rehearsal for group in moments.values() for s in group),
        time="" if len(moments) > 1 else next(iter(moments)),
        rounds=np.array(values),
        noises=noises,
        least_sigma=float(np.linalg.norm(weights * least)),
        averaged=len(moments) > 1,
    )


def in_time(times: Iterable[str]) -> list[str]:
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


def made_from(saved: SavedRecovery, read: list[Readings]) -> bool:
    """Whether these readings, joined as the recovery says, are those in it."""
    import numpy as np

    try:
        again = joined(read, time=saved.time, average=saved.averaged)
    except (InvalidInput, InvalidParameter):  # no such time, or another number of them
        return False
    same_site = again.site.to_json() == saved.site.to_json()
    if not same_site or again.names != saved.names:
        return False
    if not saved.averaged:
        return np.array_equal(again.values, saved.recovery.readings)
    # Sums in another order of the files differ in their last bits.
    slack = 1e-12 * (saved.sigma or 0.0)
    return np.allclose(again.values, saved.recovery.readings, rtol=1e-12, atol=slack)
