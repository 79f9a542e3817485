"""Windows of time: a budget that renews, one ledger for each window.

A window that renews does not protect a source that stays: what is promised is promised for the
readings within one window, and a source that is there in ten windows has lost ten budgets.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import Ledger, Loss, Neighbors
from sfumato.privacy.accounting import Model
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.release.noise_plan import unit_of

_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_window(text: str) -> timedelta:
    """The length of a window: minutes, hours or days.

    Args:
        text: A whole number above 0 with m, h or d behind it.

    Returns:
        The length.

    Raises:
        InvalidParameter: It is another text.

    >>> parse_window("6h")
    datetime.timedelta(seconds=21600)
    """
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text.strip())
    if found is None:
        raise InvalidParameter(f"a window is a number of m, h or d, e.g. 30m, 6h, 1d, got {text!r}")
    return int(found[1]) * _UNITS[found[2]]


def window_of(moment: datetime, length: timedelta) -> datetime:
    """When the window began that holds this moment: windows tile time from 1970 on, in UTC.

    Args:
        moment: The moment, with its time zone.
        length: The length of a window, in whole minutes.

    Returns:
        The beginning of the window.

    Raises:
        InvalidParameter: The moment has no time zone, or the length is no window's; nothing was charged.
    """
    if moment.tzinfo is None:
        raise InvalidParameter("a moment needs its time zone, got one without; nothing was charged")
    _checked(length)
    try:
        return _EPOCH + (moment - _EPOCH) // length * length
    except OverflowError:
        raise InvalidParameter(
            "a moment must lie in years 1 to 9999 in UTC; nothing was charged"
        ) from None


def describe_window(start: datetime, length: timedelta) -> str:
    """The window as it stands in a guarantee.

    Args:
        start: When it begins; told in UTC.
        length: Its length, in whole minutes.

    Returns:
        A few words.

    >>> describe_window(datetime(2026, 11, 16, tzinfo=UTC), timedelta(days=1))
    'within 1d from 2026-11-16T00:00Z'
    """
    return f"within {_span(length)} from {start.astimezone(UTC):%Y-%m-%dT%H:%MZ}"


def window_start(file: Path) -> datetime | None:
    """When the window of a ledger began, from its name.

    Args:
        file: The file of a ledger.

    Returns:
        The beginning of the window; None for another file.
    """
    try:
        return datetime.strptime(file.name.partition("-")[0], "%Y%m%dT%H%MZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _span(length: timedelta) -> str:
    minutes = _checked(length) // timedelta(minutes=1)
    return next(
        f"{minutes // size}{name}"
        for name, size in (("d", 1440), ("h", 60), ("m", 1))
        if minutes % size == 0
    )


def _checked(length: timedelta) -> timedelta:
    if length <= timedelta(0) or length % timedelta(minutes=1):
        raise InvalidParameter(
            f"a window is some whole minutes long, got {length}; nothing was charged"
        )
    return length


def window_ledger(
    folder: str | Path,
    moment: datetime,
    *,
    length: timedelta,
    budget: Loss,
    sensors: Sensors,
    source: str,
    neighbors: Neighbors,
    model: Model = "local",
) -> Ledger:
    """The ledger of the window that holds a moment: opened, or made if this is its first reading.

    Its unit names the window, so a ledger of another one is refused. A folder holds windows of one
    length: others would be more budgets for the same time.

    Args:
        folder: Where the ledgers of all windows are; made if there is none.
        moment: When the reading was made, with its time zone.
        length: How long a window is: whole minutes, more than 0.
        budget: What the readings of one window may cost together.
        sensors: The sensors that read jointly.
        source: What the ledger is about: the name of the site.
        neighbors: What is protected.
        model: Who adds the noise: "local", each device, unless given.

    Returns:
        The ledger of the window.

    Raises:
        InvalidInput: The ledger cannot be written or read.
        InvalidParameter: The folder has windows of another length or budget, or the moment has no
            time zone; nothing was charged.
    """
    start = window_of(moment, length)
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    path = where / f"{start:%Y%m%dT%H%MZ}-{_span(length)}.ledger"
    for other in where.glob("*.ledger"):
        if not other.stem.endswith(f"-{_span(length)}"):
            raise InvalidParameter(
                f"{where} has windows of another length ({other.name}), asked for {_span(length)}; "
                "nothing was charged"
            )
    unit = unit_of(sensors, window=describe_window(start, length))
    if not path.exists():
        try:
            Ledger.create(path, budget, unit=unit, source=source, neighbors=neighbors, model=model)
        except InvalidInput:
            if not path.exists():  # another process was not first; the folder cannot be written
                raise
    ledger = Ledger(path)
    if ledger.header.budget != budget:
        raise InvalidParameter(
            f"{path} has a budget of {ledger.header.budget}, asked for {budget}; nothing was charged"
        )
    return ledger
