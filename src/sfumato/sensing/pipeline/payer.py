"""Who pays for a reading: one ledger, or that of the window of time it falls into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
)


@dataclass(frozen=True, slots=True)
class Windows:
    """A budget that renews: a folder with one ledger for each window of time.

    Attributes:
        folder: Where the ledgers are.
        budget: What each window may spend.
        length: How long a window is: 30m, 6h, 1d.
    """

    folder: str | Path
    budget: Loss | None
    length: str = "1d"


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


def _moment(time: str) -> datetime:
    """When a reading was taken: as its table says, in UTC unless it names a zone; or now."""
    now = datetime.now(UTC)
    if not time:
        return now
    # A time is not quoted: where columns are mixed up it is a reading.
    try:
        found = datetime.fromisoformat(time)
        moment = (found.replace(tzinfo=UTC) if found.tzinfo is None else found).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(
            "with `windows` every time is written like 2026-11-16T09:30Z, got another; nothing was charged"
        ) from None
    if moment > now + timedelta(minutes=5):
        raise InvalidInput("a reading cannot be of a time to come, got one; nothing was charged")
    return moment
