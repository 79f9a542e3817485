"""Exact readings as they are handed over, checked whole before anything is charged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.sensing.clocks import scattered, with_reference
from sfumato.sensing.model.site import Site
from sfumato.sensing.reading_tables import (
    Frame,
    read_snapshots,
    snapshots_of,
    snapshots_of_pairs,
)
from sfumato.sensing.release.noise_plan import NoisePlan
from sfumato.sensing.release.readings import check_snapshot
from sfumato.sensing.rounding import Schedule
from sfumato.sensing.table_form import TableForm

ReadingsGiven = str | Path | Mapping[str, float] | Sequence[tuple[str, Mapping[str, float]]] | Frame
"""Exact readings: a file, values by sensor, such values for several times, or a table in memory."""


def checked_snapshots(
    readings: ReadingsGiven,
    site: Site,
    planned: NoisePlan,
    *,
    some: bool,
    form: TableForm | None = None,
    schedule: Schedule | None = None,
) -> Sequence[tuple[str, Mapping[str, float]]]:
    """Readings by time, all that a release would refuse of them refused; nothing is charged.

    Where windows of time pay, `schedule` is theirs: no reading gets a time in another one.
    """
    told = form or TableForm()
    snapshots = with_reference(_snapshots(readings, site, told, schedule), site, told)
    what = readings if isinstance(readings, str | Path) else "the table"
    odd = (
        None
        if told.round_time
        else scattered(
            snapshots, site.sensors.names, window=None if schedule is None else schedule.window
        )
    )
    if odd is not None:
        # Said with `some` too: each of these times would be paid for as if it were a reading of all sensors.
        raise InvalidInput(
            f"{what} has {odd.times} times, each with {odd.mean:.1f} of its {odd.sensors} sensors on average, "
            "and each would cost as much as one of all: do clocks differ? "
            f"`round_time` {odd.step} makes {odd.rounds} rounds of them, `round_time` 0 "
            "takes every time as it is; nothing was charged"
        )
    off = set(site.off)
    for number, (_, values) in enumerate(snapshots, 1):
        missing = [name for name in site.sensors.names if name not in values and name not in off]
        if missing and not some:
            # The time is not quoted: where columns are mixed up it is a reading.
            raise InvalidInput(
                f"{what} has no reading of sensor {missing[0]!r} at time {number} of {len(snapshots)}; "
                "`some` releases a part; nothing was charged"
            )
    for time, values in snapshots:
        check_snapshot(values, site, planned, time=time)
    return snapshots


def _snapshots(
    readings: ReadingsGiven, site: Site, form: TableForm, schedule: Schedule | None
) -> list[tuple[str, Mapping[str, float]]]:
    """Values by sensor for each time, at least one; what is wrong is named by its number, and not quoted."""
    if isinstance(readings, str | Path):
        found: list[Any] = [*read_snapshots(readings, site, form=form, schedule=schedule)]
    elif isinstance(readings, Mapping | Sequence):
        pairs = [("", readings)] if isinstance(readings, Mapping) else _pairs(readings)
        found = snapshots_of_pairs(pairs, site, form=form, schedule=schedule)
    elif hasattr(readings, "columns"):
        found = [*snapshots_of(readings, site, form=form, schedule=schedule)]
    else:
        raise InvalidInput(
            "readings are a file, values by sensor, a list of pairs of a time and such values, or a table "
            f"with columns sensor and value, got {type(readings).__name__}; nothing was charged"
        )
    if not found:
        raise InvalidInput("there must be at least one reading, got none; nothing was charged")
    return found


def _pairs(readings: Sequence[Any]) -> list[tuple[str, Mapping[str, Any]]]:
    for number, one in enumerate(readings, 1):
        if not (isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[1], Mapping)):
            raise InvalidInput(
                f"number {number} of the readings is no pair of a time and values by sensor; "
                "nothing was charged"
            )
    return [(time, values) for time, values in readings]
