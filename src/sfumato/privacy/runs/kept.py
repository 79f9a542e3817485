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
from sfumato.privacy.ledger import delivery
from sfumato.privacy.ledger.ledger import Ledger
from sfumato.privacy.ledger.storage.store import Kept
from sfumato.privacy.runs.locks import is_taken

STATES = ("in progress", "charged", "drawn", "delivered in part", "incomplete")


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
            "drawn", "delivered in part" (all was written, and not all of it ticked off), or
            "incomplete" (a part before the others is not beside these ledgers, and was not
            delivered: `Ledger.recover` has what is).
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
    found = _parts(one if isinstance(one, Ledger) else Ledger(one) for one in ledgers)
    runs = [
        _run(name, parts, taken=any(is_taken(ledger, name) for ledger, _ in parts))
        for name, parts in found.items()
    ]
    return tuple(
        sorted((run for run in runs if run is not None), key=lambda run: (run.time, run.entries))
    )


def kept_run(ledgers: Iterable[Ledger], name: str) -> KeptRun | None:
    """One of them as it is now, for whoever holds its lock; None where another process has finished it."""
    parts = _parts(ledgers).get(name)
    return None if parts is None else _run(name, parts, taken=False)


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


def _parts(ledgers: Iterable[Ledger]) -> dict[str, list[tuple[Ledger, Kept]]]:
    """What is kept beside some ledgers, by run."""
    found: dict[str, list[tuple[Ledger, Kept]]] = {}
    for ledger in ledgers:
        for kept in delivery.all_kept(ledger):
            if isinstance(kept.request, dict) and "run" in kept.request:
                found.setdefault(str(kept.request["run"]), []).append((ledger, kept))
    return found


def _run(name: str, found: list[tuple[Ledger, Kept]], *, taken: bool) -> KeptRun | None:
    """A run with the parts that are to be delivered, or taken away; None where there are none."""
    parts = sorted(
        (one for one in found if not (one[1].delivered and one[1].entry.once)),
        key=lambda one: int(one[1].request["number"]),
    )
    if not parts:
        return None
    (first, kept), request = parts[0], parts[0][1].request
    if taken:
        state = "in progress"
    elif any(one.delivered for _, one in found) and all(one.drawn for _, one in parts):
        # All is written before the first is said to be delivered, and all are before one goes.
        state = "delivered in part"
    elif {int(one.request["number"]) for _, one in found} != set(range(len(found))):
        state = "incomplete"  # parts are made in order
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
