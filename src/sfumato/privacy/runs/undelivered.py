"""What a ledger was charged for and nobody got: told before more is charged, and not paid for twice."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import LedgerError, ReleasedAlready
from sfumato.privacy.accounting.codec import canonical
from sfumato.privacy.ledger import delivery
from sfumato.privacy.ledger.ledger import Ledger
from sfumato.privacy.ledger.storage.store import Kept
from sfumato.privacy.runs.locks import is_taken

if TYPE_CHECKING:
    from sfumato.privacy.runs.run import Request

COMMANDS = {"heatmap": "heatmap", "readings": "sense", "whisper": "sense", "blocks": "graph"}
"""Which command finishes requests of a kind."""


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A request that paid, and whose process ended before its results were written.

    Attributes:
        ledger: The ledger that paid.
        entries: Numbers of the entries that paid and were not delivered.
        kind: What was asked for, e.g. "heatmap/1".

    """

    ledger: str
    entries: tuple[int, ...]
    kind: str

    @property
    def finish(self) -> str:
        """How it is finished, at no further cost."""
        what = self.kind.split("/")[0]
        command = COMMANDS.get(what)
        if command is None:
            same = "run the same joint command again at all parties"
            return same if what == "joint" else "by whatever asked for it"
        return f"sfumato {command} resume {shlex.quote(self.ledger)}"

    @property
    def paid(self) -> str:
        """Which entries paid, in words that begin a sentence."""
        numbers = ", ".join(map(str, self.entries))
        if len(self.entries) == 1:
            return f"entry {numbers} of {self.ledger} was paid for"
        return f"entries {numbers} of {self.ledger} were paid for"

    def __str__(self) -> str:
        return f"{self.paid} and not delivered: {self.finish}"

    def to_json(self) -> dict[str, Any]:
        """What `ledger show --json` and a dry run print of it."""
        return {
            "ledger": self.ledger,
            "entries": list(self.entries),
            "kind": self.kind,
            "finish": self.finish,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Undelivered:
        """What `to_json` gave."""
        entries = tuple(map(int, data["entries"]))
        return Undelivered(str(data["ledger"]), entries, str(data["kind"]))


def undelivered_runs(ledger: Ledger | str | Path) -> tuple[Undelivered, ...]:
    """What a ledger paid for and nobody got, request by request; not what a process is at just now.

    Args:
        ledger: The ledger, or its file.

    Returns:
        The requests, by their first entry.

    """
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    return tuple(_told(book, parts) for parts in _standing(book).values())


def check_repeat(
    ledgers: Iterable[Ledger], request: Request, *, run: str = "", anew: bool = False
) -> tuple[Undelivered, ...]:
    """Refuse a request that a ledger has paid for and not delivered, before it is paid for again.

    Args:
        ledgers: The ledgers that would pay.
        request: What is asked of them.
        run: The run that carries it out: what it has paid for itself it finds again.
        anew: Whether to pay again all the same.

    Returns:
        What else was paid for and not delivered: to be told, and no reason to refuse.

    Raises:
        ReleasedAlready: The same request was paid for and not delivered; nothing was charged.

    """
    others = []
    for ledger in ledgers:
        for name, parts in _standing(ledger).items():
            if name == run:
                continue
            told = _told(ledger, parts)
            if request.telling and _asks_the_same(parts[0].request, request):
                if anew:
                    continue
                raise ReleasedAlready(
                    f"{told.paid} by the same request and not delivered; finish it at no cost: "
                    f"{told.finish}; or pay again with `anew`; nothing was charged",
                    told.entries[0],
                )
            others.append(told)
    return tuple(others)


def warn_of(others: Iterable[Undelivered]) -> None:
    """Say what was paid for and not delivered, as warnings of Python."""
    for one in others:
        warnings.warn(str(one), stacklevel=2)


def _standing(ledger: Ledger) -> dict[str, list[Kept]]:
    """What is kept and was not delivered, by run, but for what some process is at."""
    try:
        left = {name for name in _by_run(ledger) if not is_taken(ledger, name)}
        # Whoever was at work delivers before it lets go of its run. So what is read after its lock was
        # found free is the truth; what was read before may have been delivered between the two looks.
        found = _by_run(ledger) if left else {}
    except (OSError, LedgerError):  # what cannot be read stops `resume`, which says so
        return {}
    return {name: parts for name, parts in found.items() if name in left}


def _by_run(ledger: Ledger) -> dict[str, list[Kept]]:
    """What is kept, not delivered and not being drawn, by run."""
    found: dict[str, list[Kept]] = {}
    for one in delivery.standing(ledger):
        if isinstance(one.request, dict) and "run" in one.request and not one.alive:
            found.setdefault(str(one.request["run"]), []).append(one)
    return found


def _told(ledger: Ledger, parts: list[Kept]) -> Undelivered:
    entries = tuple(one.entry.number for one in parts)
    return Undelivered(str(ledger.path), entries, str(parts[0].request["kind"]))


def _asks_the_same(kept: Mapping[str, Any], request: Request) -> bool:
    """Whether two requests are one: notes may differ, and where results go; times of readings may not."""
    if kept["kind"] != request.kind:
        return False
    told = (
        (kept["asked"], kept["delivery"].get("times")),
        (request.asked, request.delivery.get("times")),
    )
    first, second = ({**asked, "note": "", "times": times} for asked, times in told)
    return bool(canonical(first) == canonical(second))
