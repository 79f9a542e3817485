"""Tables of readings as they come: a row for each reading, or a column for each sensor; gaps and odd clocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import read_rows
from sfumato.sensing.column_values import numbers_in, states_of, texts_of
from sfumato.sensing.history import held_states, public_rounds
from sfumato.sensing.rounding import (
    EPOCH,
    UNDONE,
    Schedule,
    date_of,
    parse_round,
    round_of,
    written,
)
from sfumato.sensing.table_form import Columns, TableForm

if TYPE_CHECKING:
    from sfumato.sensing.model.site import Site

HOME_ASSISTANT = ("entity_id", "state", "last_changed")
"""Columns of the history that Home Assistant exports: a row whenever a state changes."""
CHANGED = {"last_changed", "last_updated"}

Snapshots = list[tuple[str, dict[str, float]]]
"""Readings by sensor, for each time in the order in which times come."""


class Frame(Protocol):
    """What tables of pandas, polars and pyarrow can be asked, so that none of these is needed."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""
        ...

    def __getitem__(self, name: str, /) -> Any:
        """A column."""
        ...


@dataclass(frozen=True, slots=True)
class _Reading:
    row: int
    time: str
    name: str
    value: Any  # a number of its own type, or None where there is a gap


def read_snapshots(
    path: str | Path,
    site: Site,
    *,
    form: TableForm | None = None,
    schedule: Schedule | None = None,
) -> Snapshots:
    """Exact readings of a file by sensor, one set for each time in the order in which times come.

    A round stays in the window of time, if the schedule has any, that its readings lie in.
    """
    if Path(path).suffix == ".parquet":
        # As columns: item by item, floats of a short type come as doubles, and nobody sees their rounding.
        return snapshots_of(_parquet(path), site, form=form, schedule=schedule, where=str(path))
    rows = read_rows(path)
    header = dict.fromkeys(name for row in rows for name in row if name)
    held = {name: [row.get(name) for row in rows] for name in header}
    return _snapshots(held, len(rows), site, form, schedule, str(path))


def snapshots_of(
    frame: Frame,
    site: Site,
    *,
    form: TableForm | None = None,
    schedule: Schedule | None = None,
    where: str = "the table",
) -> Snapshots:
    """The same from a table in memory, of pandas, polars or pyarrow; numbers keep their type."""
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    called = (form or TableForm()).columns
    held = {name: frame[name] for name in names}
    long = {called.sensor, called.value} <= set(held)
    if not (long or _is_wide(held, called, site) or _is_export(held, called)):
        raise InvalidInput(
            f"a table of readings has columns {called.sensor} and {called.value}, perhaps {called.time}, "
            f"got others; {UNDONE}"
        )
    size = len(next(iter(held.values()))) if held else 0
    return _snapshots(held, size, site, form, schedule, where)


def snapshots_of_pairs(
    pairs: Sequence[tuple[str, Mapping[str, Any]]],
    site: Site,
    *,
    form: TableForm | None = None,
    schedule: Schedule | None = None,
) -> list[tuple[str, Mapping[str, Any]]]:
    """The same from pairs of a time and values by sensor; as they are where nobody says what times mean."""
    told, times, where = form or TableForm(), schedule or Schedule(), "the readings"
    step = parse_round(told.round_time, times.window) if told.round_time else None
    known = _known(site)

    def read() -> list[_Reading]:
        for number, (_, values) in enumerate(pairs, 1):
            if not all(name in known for name in values):
                raise InvalidInput(
                    f"row {number} of {where} is of no sensor that site {site.name!r} has; {UNDONE}"
                )
        return [
            _Reading(number, time, name, value)
            for number, (time, values) in enumerate(pairs, 1)
            for name, value in values.items()
        ]

    if told.history:
        rounds, since = _rounds_of_history(site, told, times, step, where)
        return [*_held(read(), rounds, since, where)]
    _check_no_history(told)
    return [*pairs] if step is None else [*_rounded(read(), step, times.window, where)]


def _parquet(path: str | Path) -> Frame:
    import pyarrow.parquet

    try:
        found: Frame = pyarrow.parquet.read_table(path)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "it is not Parquet"
        raise InvalidInput(f"cannot read {path}: {why}; {UNDONE}") from None
    return found


def _is_export(held: dict[str, Any], called: Columns) -> bool:
    return called.sensor not in held and set(HOME_ASSISTANT) <= set(held)


def _has_changes(held: dict[str, Any]) -> bool:
    """Whether a table has a row for each change of an entity, whatever its columns are said to hold."""
    return HOME_ASSISTANT[0] in held and not CHANGED.isdisjoint(held)


def _is_wide(held: dict[str, Any], called: Columns, site: Site) -> bool:
    return called.sensor not in held and any(name in held for name in site.sensors.names)


def _snapshots(
    held: dict[str, Any],
    size: int,
    site: Site,
    form: TableForm | None,
    schedule: Schedule | None,
    where: str,
) -> Snapshots:
    told, times = form or TableForm(), schedule or Schedule()
    step = parse_round(told.round_time, times.window) if told.round_time else None
    if told.history or _has_changes(held):
        rounds, since = _rounds_of_history(site, told, times, step, where)
        exported = _is_export(held, told.columns)
        said = _exported(held, site, where) if exported else _long(held, site, told.columns, where)
        return _held(said, rounds, since, where)
    _check_no_history(told)
    called = told.columns
    wide = _is_wide(held, called, site)
    read = _wide(held, size, site, called, where) if wide else _long(held, site, called, where)
    if step is not None:
        return _rounded(read, step, times.window, where)
    return _by_time(read, called, where, dated=called.time in held)


def _check_no_history(form: TableForm) -> None:
    """Refuse rounds of a history for a table that is none."""
    if form.since or form.until:
        raise InvalidParameter(
            "`since` and `until` are of windows, or of a history of changes, which this table is not unless "
            f"`history` says so; {UNDONE}"
        )


def _rounds_of_history(
    site: Site, form: TableForm, schedule: Schedule, step: timedelta | None, where: str
) -> tuple[list[datetime], datetime]:
    """The public rounds of a history, and when they begin; all that must be said of one was said."""
    since, until = form.since or schedule.since, form.until or schedule.until
    if step is None or not since or not until:
        raise InvalidParameter(
            f"{where} is a history of changes: a row is there because a reading changed, and its times would "
            "tell when; say `round_time`, `since` and `until`, which are public, and the states at the rounds "
            f"between are released; {UNDONE}"
        )
    if not site.step:
        raise InvalidParameter(
            f"between two changes a sensor is off by what it does not report, and site {site.name!r} says that "
            "its sensors are exact: it must say `step`, at least twice the smallest change they report; "
            f"{UNDONE}"
        )
    return public_rounds(since, until, step), date_of(since) or EPOCH


def _held(read: list[_Reading], rounds: list[datetime], since: datetime, where: str) -> Snapshots:
    """The states of a history at public rounds."""
    changes = ((_moment(one, where), one.name, one.value) for one in read)
    states = held_states(changes, rounds, since=since)
    return [(written(moment), at) for moment, at in states]


def _exported(held: dict[str, Any], site: Site, where: str) -> list[_Reading]:
    """States of Home Assistant: of entities called like sensors, with or without what is before the dot.

    Other entities are left alone.
    """
    entity_id, state, changed = HOME_ASSISTANT
    entities = texts_of(held[entity_id], entity_id, where)
    known = set(_known(site))
    names = [one if one in known else one.partition(".")[2] for one in entities]
    rows = [row for row, name in enumerate(names) if name in known]
    meant: dict[str, str] = {}
    for row in rows:
        if meant.setdefault(names[row], entities[row]) != entities[row]:
            raise InvalidInput(
                f"{where} has two entities that are called like sensor {names[row]!r}; {UNDONE}"
            )
    if not rows:
        raise InvalidInput(f"{where} has no entity that is a sensor of {site.name!r}; {UNDONE}")
    times = texts_of(held[changed], changed, where)
    # Other entities have states like "on": only those of sensors are numbers.
    values = states_of(_rows_of(held[state], rows), state, where)
    return [
        _Reading(row + 1, times[row], names[row], value)
        for row, value in zip(rows, values, strict=True)
    ]


def _rows_of(column: Any, rows: list[int]) -> Any:
    if isinstance(column, list):
        return [column[row] for row in rows]
    taken = column.iloc if hasattr(column, "iloc") else column
    return column.take(rows) if hasattr(column, "to_pylist") else taken[rows]


def _long(held: dict[str, Any], site: Site, called: Columns, where: str) -> list[_Reading]:
    """A row for each reading."""
    for name in (called.sensor, called.value):
        if name not in held:
            raise InvalidInput(
                f"there is no column {name!r} among the {len(held)} of {where}; {UNDONE}"
            )
    names = texts_of(held[called.sensor], called.sensor, where)
    values = numbers_in(held[called.value], called.value, where)
    times = (
        texts_of(held[called.time], called.time, where)
        if called.time in held
        else [""] * len(names)
    )
    known = _known(site)
    for row, name in enumerate(names, 1):
        if name not in known:  # not quoted: where columns are mixed up it is a reading
            raise InvalidInput(
                f"row {row} of {where} is of no sensor that site {site.name!r} has; {UNDONE}"
            )
    rows = zip(range(1, len(names) + 1), times, names, values, strict=True)
    return [_Reading(*one) for one in rows]


def _wide(
    held: dict[str, Any], size: int, site: Site, called: Columns, where: str
) -> list[_Reading]:
    """A column for each sensor; other columns are left alone, if every sensor has its own."""
    check_columns(held, site, (called.time,), where)
    times = texts_of(held[called.time], called.time, where) if called.time in held else [""] * size
    found = []
    for name in _known(site):
        if name in held:
            values = numbers_in(held[name], name, where)
            found += [
                _Reading(row, time, name, value)
                for row, (time, value) in enumerate(zip(times, values, strict=True), 1)
            ]
    # As a table of rows would have it: time by time.
    return sorted(found, key=lambda one: one.row)


def _known(site: Site) -> tuple[str, ...]:
    """Sensors of the site, and the public reference that is taken off their readings."""
    running = "" if site.level is None else site.level.running
    return (*site.sensors.names, *([running] if running else []))


def check_columns(
    header: Iterable[str], site: Site, beside: Sequence[str], where: str, *, undone: str = UNDONE
) -> None:
    """Refuse a wide table that lacks sensors and has columns of nobody: a misspelt sensor would be a gap."""
    held = dict.fromkeys(header)
    lacking = [name for name in site.sensors.names if name not in held]
    other = [name for name in held if name not in (*_known(site), *beside)]
    if not lacking or not other:
        return
    # What looks like a number or a date is not quoted: a table without a header has readings there.
    named = [name for name in other if not _is_value(name)]
    quoted = ", ".join(map(repr, named[:5])) + (", ..." if len(named) > 5 else "")
    raise InvalidInput(
        f"{where} has no column for {len(lacking)} of {len(site.sensors)} sensors, {lacking[0]!r} first, and "
        f"{len(other)} of no sensor{': ' + quoted if named else ''}. Is a name misspelt? Rename these columns, "
        f"or leave them out; {undone}"
    )


def _is_value(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return date_of(text) is not None
    return True


def _by_time(read: Iterable[_Reading], called: Columns, where: str, *, dated: bool) -> Snapshots:
    """Readings of one time together, of each sensor one; a gap is a reading that is not there."""
    found: dict[str, dict[str, Any]] = {}
    for one in read:
        at = found.setdefault(one.time, {})
        if one.name in at:
            why = "" if dated else f": there is no column {called.time!r}; `time` says which it is"
            raise InvalidInput(
                f"row {one.row} of {where} reads sensor {one.name!r} again at its time{why}; {UNDONE}"
            )
        at[one.name] = one.value
    return _without_gaps(found.items())


def _rounded(
    read: list[_Reading], step: timedelta, window: timedelta | None, where: str
) -> Snapshots:
    """Readings of one round together; of a sensor that read twice in one, the one nearest to it."""
    nearest: dict[datetime, dict[str, tuple[timedelta, Any]]] = {}
    for one in read:
        moment = _moment(one, where)
        whole = round_of(moment, step, window)
        at = nearest.setdefault(whole, {})
        off = abs(moment - whole)
        kept = at.get(one.name)
        closer = kept is None or kept[1] is None or (one.value is not None and off < kept[0])
        if closer:
            at[one.name] = off, one.value
    found = (
        (written(moment), {name: value for name, (_, value) in at.items()})
        for moment, at in sorted(nearest.items())
    )
    return _without_gaps(found)


def _without_gaps(found: Iterable[tuple[str, dict[str, Any]]]) -> Snapshots:
    """What was read; a time at which nobody read is no time."""
    read = ((time, {k: v for k, v in at.items() if v is not None}) for time, at in found)
    return [(time, at) for time, at in read if at]


def _moment(one: _Reading, where: str) -> datetime:
    found = date_of(one.time)
    if found is None:
        raise InvalidInput(
            f"with `round_time` every time is written like 2026-11-16T09:30Z, row {one.row} of {where} is "
            f"not; {UNDONE}"
        )
    return found
