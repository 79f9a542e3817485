"""Clocks of sensors and of what is public beside them: rounds that are none, and a reference for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidParameter
from sfumato.files import read_rows
from sfumato.sensing.column_values import numbers_in, texts_of
from sfumato.sensing.reading_tables import Snapshots, TableForm
from sfumato.sensing.rounding import EPOCH, UNDONE, parse_round

if TYPE_CHECKING:
    from sfumato.sensing.model.site import Site

FILLED = 0.5
"""The share of sensors that must be in a round, on average, for rounds to be worth proposing."""


@dataclass(frozen=True, slots=True)
class Scattered:
    """That rounds of a table are not rounds: so many times, each with few of the sensors that read."""

    times: int
    sensors: int
    mean: float
    step: str
    rounds: int


def scattered(snapshots: Sequence[tuple[str, Any]], names: Sequence[str]) -> Scattered | None:
    """Whether times look like clocks that differ by seconds: each would be paid for like a round of all.

    A device that reads on its own has all of its sensors in each round. Where the table has several
    sensors and a time has less than half of them on average, and a `round_time` would put them
    together, it is that.
    """
    known = set(names)
    sizes = [sum(name in known for name in at) for _, at in snapshots]
    there = {name for _, at in snapshots for name in at if name in known}
    if len(snapshots) < 3 or len(there) < 2 or sum(sizes) > len(there) * len(sizes) / 2:
        return None
    moments = sorted({moment for time, _ in snapshots if (moment := _date(time)) is not None})
    if len(moments) < len(snapshots):
        return None
    filled: dict[str, tuple[float, int]] = {}
    for word in ("1s", "10s", "30s", "1m", "5m", "10m", "15m", "30m", "1h"):
        step = parse_round(word) or timedelta(seconds=1)
        rounds = len({(moment - EPOCH + step / 2) // step for moment in moments})
        filled[word] = min(1.0, sum(sizes) / (rounds * len(there))), rounds
    fullest = max(share for share, _ in filled.values())
    if fullest < FILLED:
        return None
    # The finest that leaves as few gaps as any: coarser ones would leave readings out.
    word = next(word for word, (share, _) in filled.items() if share >= 0.95 * fullest)
    return Scattered(len(snapshots), len(there), sum(sizes) / len(sizes), word, filled[word][1])


def with_reference(snapshots: Sequence[tuple[str, Any]], site: Site, form: TableForm) -> Snapshots:
    """Readings with what the site's public baseline read at their times, or last before.

    It is public, so that any rule does; before its first reading that one is taken.
    """
    running = "" if site.level is None else site.level.running
    if form.reference is not None:
        if not running:
            raise InvalidParameter(
                f"`reference` is of a site with a running baseline, {site.name!r} has none; {UNDONE}"
            )
        snapshots = [*_reference(form.reference, running), *snapshots]
    if not running:
        return list(snapshots)
    known = {time: at[running] for time, at in snapshots if running in at}
    if not known:
        return list(snapshots)  # whose release says that there is none
    dated = sorted(
        (moment, value) for t, value in known.items() if (moment := _date(t)) is not None
    )
    found = []
    for time, at in snapshots:
        read = {name: value for name, value in at.items() if name != running}
        if read:
            found.append((time, {**read, running: _last(known, dated, time)}))
    return found


def _reference(path: str, running: str) -> Snapshots:
    """What a public reference read, by time."""
    rows = read_rows(path)
    times = texts_of([row.get("time") for row in rows], "time", path)
    values = numbers_in([row.get("value") for row in rows], "value", path)
    both = zip(times, values, strict=True)
    return [(time, {running: value}) for time, value in both if value is not None]


def _last(known: dict[str, float], dated: list[tuple[datetime, float]], time: str) -> float:
    """What a public reference read at a time, or last before it."""
    moment = _date(time)
    if time in known or moment is None or not dated:
        return known.get(time, next(iter(known.values())))
    before = [value for when, value in dated if when <= moment]
    return before[-1] if before else dated[0][1]


def _date(time: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(time)
        return (found.replace(tzinfo=UTC) if found.tzinfo is None else found).astimezone(UTC)
    except (ValueError, OverflowError, TypeError):
        return None
