"""Clocks of sensors and of what is public beside them: rounds that are none, and a reference for each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import read_rows
from sfumato.sensing.column_values import numbers_in, texts_of
from sfumato.sensing.reading_tables import Snapshots
from sfumato.sensing.rounding import EPOCH, UNDONE, date_of, parse_round, round_of
from sfumato.sensing.table_form import TableForm

if TYPE_CHECKING:
    from sfumato.sensing.model.site import Site

FILLED = 0.5
"""The share of sensors that must be in a round, on average, for rounds to be worth proposing."""
NEARLY = 0.8
"""Of the share that any rounds have: rounds this full are as good, and finer ones are better."""
LENGTHS = ("1s", "10s", "30s", "1m", "5m", "10m", "15m", "30m", "1h")


@dataclass(frozen=True, slots=True)
class Scattered:
    """That rounds of a table are not rounds: so many times, each with few of the sensors that read."""

    times: int
    sensors: int
    mean: float
    step: str
    rounds: int


def scattered(
    snapshots: Sequence[tuple[str, Any]], names: Sequence[str], *, window: timedelta | None = None
) -> Scattered | None:
    """Whether times look like clocks that differ by seconds: each would be paid for like a round of all.

    A device that reads on its own has all of its sensors in each round. Where the table has several
    sensors and a time has less than half of them on average, and a `round_time` would put them
    together, it is that. Of rounds that are nearly full the finest are proposed: in coarser ones
    sensors read several times, and all but one of these readings are left out.
    """
    known = set(names)
    sizes = [sum(name in known for name in at) for _, at in snapshots]
    there = {name for _, at in snapshots for name in at if name in known}
    if len(snapshots) < 3 or len(there) < 2 or sum(sizes) > len(there) * len(sizes) / 2:
        return None
    moments = [(date_of(time), at) for time, at in snapshots]
    dated = [(moment, at) for moment, at in moments if moment is not None]
    if len(dated) < len(snapshots):
        return None
    filled: dict[str, tuple[float, int]] = {}
    for word in LENGTHS:
        step = parse_round(word) or timedelta(seconds=1)
        if window is not None and window % step:
            continue
        rounds: dict[Any, set[str]] = {}
        for moment, at in dated:
            rounds.setdefault(round_of(moment, step, window) - EPOCH, set()).update(known & set(at))
        held = sum(map(len, rounds.values()))
        filled[word] = held / (len(rounds) * len(there)), len(rounds)
    fullest = max((share for share, _ in filled.values()), default=0.0)
    if fullest < FILLED:
        return None
    word = next(word for word, (share, _) in filled.items() if share >= NEARLY * fullest)
    return Scattered(len(snapshots), len(there), sum(sizes) / len(sizes), word, filled[word][1])


def with_reference(snapshots: Sequence[tuple[str, Any]], site: Site, form: TableForm) -> Snapshots:
    """Readings with what the site's public baseline read at their times, or last before.

    It is public, so that any rule does; before its first reading that one is taken. Times that are no dates
    have no last before: the baseline must have them.
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
    last = _last(known)
    found: Snapshots = []
    for time, at in snapshots:
        read = {name: value for name, value in at.items() if name != running}
        if read:
            level = last(time)
            if level is None:
                raise InvalidInput(
                    f"the public baseline {running!r} has no reading at time {len(found) + 1} of the table, "
                    f"nor one that is dated before; {UNDONE}"
                )
            found.append((time, {**read, running: level}))
    return found


def _reference(path: str, running: str) -> Snapshots:
    """What a public reference read, by time."""
    rows = read_rows(path)
    times = texts_of([row.get("time") for row in rows], "time", path)
    values = numbers_in([row.get("value") for row in rows], "value", path)
    both = zip(times, values, strict=True)
    return [(time, {running: value}) for time, value in both if value is not None]


def _last(known: dict[str, float]) -> Callable[[str], float | None]:
    """What a public reference read at a time, or last before it; None where there is no such."""
    dated = sorted(
        ((moment, value) for t, value in known.items() if (moment := date_of(t)) is not None),
        key=lambda pair: pair[0],
    )
    moments = [moment for moment, _ in dated]

    def last(time: str) -> float | None:
        if time in known:
            return known[time]
        moment = date_of(time)
        if moment is None or not dated:
            return None
        return dated[max(bisect_right(moments, moment) - 1, 0)][1]

    return last
