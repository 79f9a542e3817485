"""Tables of readings as they come: a row for each reading, or a column for each sensor; gaps and odd clocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import read_rows
from sfumato.sensing.column_values import numbers_in, texts_of
from sfumato.sensing.rounding import UNDONE, parse_round, round_of

if TYPE_CHECKING:
    from sfumato.sensing.model.site import Site

HOME_ASSISTANT = ("entity_id", "state", "last_changed")
"""Columns of the history that Home Assistant exports: a row whenever a state changes."""

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
class Columns:
    """What the columns of a table are called.

    Attributes:
        sensor: Who read; a table without it has a column for each sensor.
        value: What was read.
        time: When; a table may have none.
        x: Where along a line, or east.
        y: Where north.
    """

    sensor: str = "sensor"
    value: str = "value"
    time: str = "time"
    x: str = "x"
    y: str = "y"

    def __post_init__(self) -> None:
        for part in fields(self):
            if not getattr(self, part.name):
                raise InvalidParameter(f"a column needs a name, `{part.name}` has none; {UNDONE}")


@dataclass(frozen=True, slots=True)
class TableForm:
    """How a table of readings is to be read.

    Attributes:
        columns: What its columns are called.
        round_time: How far apart rounds are, 30s, 1m, 1h: readings belong to the nearest one, of their own
            window if windows pay; "0" says that every time is a round of its own, "" that nobody said.
        reference: A table of time and value of the public baseline that the site takes off, where it is not
            in the table of readings itself.
    """

    columns: Columns = field(default_factory=Columns)
    round_time: str = ""
    reference: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What is not as usual."""
        called = {
            part.name: getattr(self.columns, part.name)
            for part in fields(self.columns)
            if getattr(self.columns, part.name) != part.default
        }
        return {
            **({"columns": called} if called else {}),
            **({"round_time": self.round_time} if self.round_time else {}),
            **({"reference": self.reference} if self.reference is not None else {}),
        }

    @staticmethod
    def from_json(data: Any) -> TableForm:
        """The form that a JSON object states."""
        return TableForm(
            Columns(**data.get("columns", {})),
            str(data.get("round_time", "")),
            data.get("reference"),
        )


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
    columns: Columns | None = None,
    round_time: str = "",
    window: timedelta | None = None,
) -> Snapshots:
    """Exact readings of a file by sensor, one set for each time in the order in which times come.

    A round stays in the `window` of time, if there are any, that its readings lie in.
    """
    if Path(path).suffix == ".parquet":
        # As columns: item by item, floats of a short type come as doubles, and nobody sees their rounding.
        return snapshots_of(
            _parquet(path),
            site,
            columns=columns,
            round_time=round_time,
            window=window,
            where=str(path),
        )
    rows = read_rows(path)
    header = dict.fromkeys(name for row in rows for name in row if name)
    held = {name: [row.get(name) for row in rows] for name in header}
    return _snapshots(held, len(rows), site, columns or Columns(), round_time, window, str(path))


def snapshots_of(
    frame: Frame,
    site: Site,
    *,
    columns: Columns | None = None,
    round_time: str = "",
    window: timedelta | None = None,
    where: str = "the table",
) -> Snapshots:
    """The same from a table in memory, of pandas, polars or pyarrow; numbers keep their type."""
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    called = columns or Columns()
    used = {called.sensor, called.value, called.time, *HOME_ASSISTANT, *site.sensors.names}
    used |= {site.level.running} if site.level is not None else set()
    held = {name: frame[name] for name in names if name in used}
    long = {called.sensor, called.value} <= set(held)
    if not (long or _is_wide(held, called, site) or _is_history(held, called)):
        raise InvalidInput(
            f"a table of readings has columns {called.sensor} and {called.value}, perhaps {called.time}, "
            f"got others; {UNDONE}"
        )
    size = len(next(iter(held.values()))) if held else 0
    return _snapshots(held, size, site, called, round_time, window, where)


def _parquet(path: str | Path) -> Frame:
    import pyarrow.parquet

    try:
        found: Frame = pyarrow.parquet.read_table(path)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "it is not Parquet"
        raise InvalidInput(f"cannot read {path}: {why}; {UNDONE}") from None
    return found


def _is_history(held: dict[str, Any], called: Columns) -> bool:
    return called.sensor not in held and set(HOME_ASSISTANT) <= set(held)


def _is_wide(held: dict[str, Any], called: Columns, site: Site) -> bool:
    return called.sensor not in held and any(name in held for name in site.sensors.names)


def _snapshots(
    held: dict[str, Any],
    size: int,
    site: Site,
    called: Columns,
    round_time: str,
    window: timedelta | None,
    where: str,
) -> Snapshots:
    if _is_history(held, called):
        # States held at a schedule would still begin and end with a change, and the rounds would tell of it.
        raise InvalidParameter(
            f"{where} is a history of changes: a row is there because a reading changed, and would tell of "
            "it; write the states down at fixed times, a column for each sensor, and release that; "
            f"{UNDONE}"
        )
    step = parse_round(round_time, window) if round_time else None
    wide = _is_wide(held, called, site)
    read = _wide(held, size, site, called, where) if wide else _long(held, site, called, where)
    return _by_time(read, where) if step is None else _rounded(read, step, window, where)


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
    """A column for each sensor; other columns are left alone."""
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


def _by_time(read: Iterable[_Reading], where: str) -> Snapshots:
    """Readings of one time together, of each sensor one; a gap is a reading that is not there."""
    found: dict[str, dict[str, Any]] = {}
    for one in read:
        at = found.setdefault(one.time, {})
        if one.name in at:
            raise InvalidInput(
                f"row {one.row} of {where} reads sensor {one.name!r} again at its time; {UNDONE}"
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
        (_written(moment), {name: value for name, (_, value) in at.items()})
        for moment, at in sorted(nearest.items())
    )
    return _without_gaps(found)


def _without_gaps(found: Iterable[tuple[str, dict[str, Any]]]) -> Snapshots:
    """What was read; a time at which nobody read is no time."""
    read = ((time, {k: v for k, v in at.items() if v is not None}) for time, at in found)
    return [(time, at) for time, at in read if at]


def _moment(one: _Reading, where: str) -> datetime:
    try:
        found = datetime.fromisoformat(one.time)
        return (found.replace(tzinfo=UTC) if found.tzinfo is None else found).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"with `round_time` every time is written like 2026-11-16T09:30Z, row {one.row} of {where} is "
            f"not; {UNDONE}"
        ) from None


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M}{f':{moment:%S}' if moment.second else ''}Z"
