"""What requests have paid for and not delivered, as it lies beside a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.privacy.accounting.codec import decode_loss, encode
from sfumato.privacy.accounting.composition import compose
from sfumato.privacy.accounting.losses import Loss
from sfumato.privacy.ledger.ledger import Ledger
from sfumato.privacy.ledger.storage.store import Kept
from sfumato.privacy.runs.locks import is_taken

STATES = ("in progress", "charged", "drawn", "delivered in part")


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One request that paid, and how far it got.

    Attributes:
        ledger: The ledger that paid first.
        run: What tells it from others.
        kind: What was asked for, e.g. "heatmap/1".
        entries: Numbers of the entries that paid.
        costs: What each of them cost.
        state: "in progress" (a process is at it), "charged" (something paid for was not drawn yet),
            "drawn", or "delivered in part" (all was written, and not all of it ticked off).
        time: When it first paid, in UTC.
        asked: What makes it this request.
        delivery: Where and how its results were to be written.
        parts: What is kept of each part, by its name.

    """

    ledger: str
    run: str
    kind: str
    entries: tuple[int, ...]
    costs: tuple[Loss, ...]
    state: str
    time: str
    asked: dict[str, Any] = field(repr=False)
    delivery: dict[str, Any] = field(repr=False)
    parts: dict[str, tuple[str, Kept]] = field(default_factory=dict, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """What `resume --list --json` prints of it."""
        return {
            "ledger": self.ledger,
            "run": self.run,
            "kind": self.kind,
            "entries": list(self.entries),
            "costs": [encode(cost) for cost in self.costs],
            "state": self.state,
            "time": self.time,
            "asked": self.asked,
            "delivery": self.delivery,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> KeptRun:
        """What `to_json` gave; the parts are found beside the ledger."""
        return KeptRun(
            str(data["ledger"]),
            str(data["run"]),
            str(data["kind"]),
            tuple(map(int, data["entries"])),
            tuple(decode_loss(cost) for cost in data["costs"]),
            str(data["state"]),
            str(data["time"]),
            dict(data["asked"]),
            dict(data["delivery"]),
        )

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.entries))
        many = "entries" if len(self.entries) > 1 else "entry"
        return f"{many} {numbers} of {Path(self.ledger).name}, {compose(list(self.costs))}"


def kept_runs(ledgers: Iterable[Ledger | str | Path]) -> tuple[KeptRun, ...]:
    """What was paid for and not delivered, request by request, the oldest first.

    Args:
        ledgers: The ledgers that paid, or their files.

    Returns:
        The requests; those that something other than a pipeline of this package made are left out.

    Raises:
        LedgerDamaged: A ledger, or what lies beside it, cannot be read.

    """
    found: dict[str, list[tuple[Ledger, Kept]]] = {}
    for one in ledgers:
        ledger = one if isinstance(one, Ledger) else Ledger(one)
        for kept in ledger.undelivered():
            if isinstance(kept.request, dict) and "run" in kept.request:
                found.setdefault(str(kept.request["run"]), []).append((ledger, kept))
    runs = [_run(name, parts) for name, parts in found.items()]
    return tuple(sorted(runs, key=lambda run: (run.time, run.entries)))


def ledger_files(path: str | Path) -> tuple[Path, ...]:
    """The ledgers that a path names: a file, or those in a folder of windows of time.

    Args:
        path: A ledger, or a folder of ledgers.

    Returns:
        Their files, by name.

    Raises:
        InvalidInput: The folder has no ledger in it.

    """
    place = Path(path)
    if not place.is_dir():
        return (place,)
    found = tuple(sorted(place.glob("*.ledger")))
    if not found:
        raise InvalidInput(f"there is no ledger in {place}; nothing was done")
    return found


def _run(name: str, parts: list[tuple[Ledger, Kept]]) -> KeptRun:
    parts = sorted(parts, key=lambda part: int(part[1].request["number"]))
    (first, kept), request = parts[0], parts[0][1].request
    if any(is_taken(ledger, name) for ledger, _ in parts):
        state = "in progress"
    elif int(request["number"]) > 0:
        # Parts are made in order, and ticked off in order once all is written.
        state = "delivered in part"
    else:
        state = "drawn" if all(one.drawn for _, one in parts) else "charged"
    return KeptRun(
        str(first.path),
        name,
        str(request["kind"]),
        tuple(one.entry.number for _, one in parts),
        tuple(one.entry.cost for _, one in parts),
        state,
        kept.entry.time,
        dict(request["asked"]),
        dict(request["delivery"]),
        {str(one.request["part"]): (str(ledger.path), one) for ledger, one in parts},
    )
