"""Who pays for a reading: one ledger, or that of the window of time it falls into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sfumato.errors import InvalidInput, InvalidParameter, LedgerMismatch
from sfumato.privacy import Ledger, Loss
from sfumato.sensing.model.site import Site
from sfumato.sensing.release.noise_plan import unit_of
from sfumato.sensing.release.windows import (
    describe_window,
    parse_window,
    window_ledger,
    window_of,
    window_start,
)
from sfumato.sensing.rounding import Schedule, date_of, parse_round

AHEAD = timedelta(minutes=5)
"""By how much a clock may be ahead."""


@dataclass(frozen=True, slots=True)
class Windows:
    """A budget that renews: a folder with one ledger for each window of time.

    Attributes:
        folder: Where the ledgers are.
        budget: What each window may spend.
        length: How long a window is: 30m, 6h, 1d.
        since: When the first window begins, like 2026-11-16; "" for that of the first ledger in the folder, and
            without any for the present one. A reading dated before opens no window: every window is a budget
            of its own, and a clock that is wrong, or lies, would choose among them.
        until: When the last window ends; "" for now.
    """

    folder: str | Path
    budget: Loss | None
    length: str = "1d"
    since: str = ""
    until: str = ""


def with_schedule(
    windows: Windows | None, since: str, until: str
) -> tuple[Windows | None, str, str]:
    """Windows that begin and end as was said beside them; and what of it is left for a history's rounds.

    What windows say themselves stays theirs. Without windows all of it is of the history.
    """
    if windows is None:
        return None, since, until
    whole = replace(windows, since=windows.since or since, until=windows.until or until)
    return whole, since if windows.since else "", until if windows.until else ""


def schedule_of(windows: Windows | None) -> Schedule:
    """What windows say of the rounds in them; nothing where one ledger pays for all times."""
    if windows is None:
        return Schedule()
    return Schedule(parse_window(windows.length), windows.since, windows.until)


def opened(ledger: Ledger | str | Path) -> Ledger:
    """A ledger, or that of a file."""
    return ledger if isinstance(ledger, Ledger) else Ledger(ledger)


def payer_of(
    site: Site, ledger: Ledger | str | Path | None, windows: Windows | None
) -> tuple[Loss, Callable[[str], tuple[Ledger, str]]]:
    """The whole budget, and who pays for the reading of a time: the one ledger, or that of its window."""
    if (ledger is None) == (windows is None):
        raise InvalidParameter("say who pays: `ledger` or `windows`; nothing was charged")
    if ledger is not None:
        if isinstance(ledger, str | Path) and not Path(ledger).exists():
            raise InvalidInput(
                f"there is no ledger at {ledger}; `sfumato sense ledger` makes one; nothing was charged"
            )
        book = opened(ledger)
        _pays_for(book, site, "")
        return book.header.budget, lambda _: (book, "")
    return _windows_payer(site, windows)


def _windows_payer(
    site: Site, windows: Windows | None
) -> tuple[Loss, Callable[[str], tuple[Ledger, str]]]:
    if windows is None or windows.budget is None:
        raise InvalidParameter("`windows` needs a `budget`, that of each; nothing was charged")
    length, budget, folder = parse_window(windows.length), windows.budget, windows.folder

    def of_window(time: str) -> tuple[Ledger, str]:
        moment = _moment(time)
        book = window_ledger(
            folder,
            moment,
            length=length,
            budget=budget,
            sensors=site.sensors,
            source=site.name,
            neighbors=site.neighbors,
        )
        during = describe_window(window_of(moment, length), length)
        _pays_for(book, site, during)
        return book, during

    return budget, of_window


def check_moments(windows: Windows, times: Sequence[str], round_time: str = "") -> None:
    """Refuse times that lie in no window of the schedule, which is public; nothing is opened or charged.

    Args:
        windows: The windows that pay.
        times: When readings were taken; "" for now.
        round_time: How far apart rounds are: the nearest one may be half of it ahead of its readings, but
            lies in their window (`round_of`).

    Raises:
        InvalidInput: A time is before the first window, after the last, or no time at all.
        InvalidParameter: A window is not some whole rounds long.
    """
    length = parse_window(windows.length)
    step = parse_round(round_time, length) if round_time else None
    ahead = AHEAD if step is None else AHEAD + step / 2
    first = _first_window(windows, length)
    last = _said(windows.until, "until") if windows.until else None
    for number, time in enumerate(times, 1):
        moment = _moment(time, ahead=ahead)
        # A round may be ahead within its window; no window is opened that the readings could not lie in.
        _not_to_come(window_of(moment, length), AHEAD)
        what = f"time {number} of {len(times)} lies" if len(times) > 1 else "a reading lies"
        if moment < first:
            raise InvalidInput(
                f"{what} before {first:%Y-%m-%dT%H:%MZ}, when windows begin: is a clock wrong? `since` says "
                "that they begin earlier; nothing was charged"
            )
        if last is not None and moment >= last:
            raise InvalidInput(
                f"{what} after `until`, when windows end: is a clock wrong? nothing was charged"
            )


def _first_window(windows: Windows, length: timedelta) -> datetime:
    """When the first window begins: as was said, as the folder has it, or now."""
    if windows.since:
        return window_of(_said(windows.since, "since"), length)
    found = [
        start for file in Path(windows.folder).glob("*.ledger") if (start := window_start(file))
    ]
    return min(found) if found else window_of(_now(), length)


def _now() -> datetime:
    return datetime.now(UTC)


def _said(text: str, name: str) -> datetime:
    found = date_of(text)
    if found is None:
        raise InvalidParameter(
            f"`{name}` is a date like 2026-11-16 or 2026-11-16T09:30Z, got {text!r}; nothing was charged"
        )
    return found


def _pays_for(book: Ledger, site: Site, window: str) -> None:
    """Refuse a ledger of other sensors or another promise before anything is read."""
    unit = unit_of(site.sensors, window=window)
    if book.header.source != site.name:
        raise LedgerMismatch(
            f"{book.path} accounts for the source {book.header.source!r}, the site is {site.name!r}; "
            "nothing was charged"
        )
    if (book.header.neighbors, book.header.unit) != (site.neighbors, unit):
        raise LedgerMismatch(
            f"{book.path} accounts for each {book.header.unit} ({book.header.neighbors}), the site for each "
            f"{unit} ({site.neighbors}); nothing was charged"
        )


def _moment(time: str, *, ahead: timedelta = timedelta.max) -> datetime:
    """When a reading was taken: as its table says, in UTC unless it names a zone; or now."""
    if not time:
        return _now()
    moment = date_of(time)
    if moment is None:  # not quoted: where columns are mixed up it is a reading
        raise InvalidInput(
            "with `windows` every time is written like 2026-11-16T09:30Z, got another; nothing was charged"
        )
    _not_to_come(moment, ahead)
    return moment


def _not_to_come(moment: datetime, ahead: timedelta) -> None:
    if moment - _now() > ahead:
        raise InvalidInput("a reading cannot be of a time to come, got one; nothing was charged")
