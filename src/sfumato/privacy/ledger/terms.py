"""What a ledger makes a promise about, and what it refuses: checked before anything is charged or read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.errors import InvalidParameter, LedgerClosed, LedgerMismatch
from sfumato.privacy.accounting.trust import model_name
from sfumato.privacy.accounting.units import Clock, ValueColumns, period_of
from sfumato.privacy.ledger.guarded import Bound, Guarded, Table
from sfumato.privacy.ledger.statement import Header
from sfumato.privacy.ledger.tally import Tally
from sfumato.privacy.noise.protocol import Noise


def check_guarded(header: Header, guarded: Guarded[Any], noise: Noise, path: Path) -> None:
    """Refuse data that is of another source, or noise that somebody knows."""
    if not isinstance(guarded, Guarded):
        raise InvalidParameter(
            f"release takes guarded data, got {type(guarded).__name__}; nothing was charged"
        )
    check_bound(header, guarded.bound, path)
    if guarded.source != header.source:
        raise LedgerMismatch(
            f"{path} accounts for the source {header.source!r}, the data is "
            f"{guarded.source!r}; nothing was charged"
        )
    if noise.known and not header.rehearsal:
        raise InvalidParameter(
            "noise that can be drawn again is for rehearsals only; nothing was charged"
        )


def check_bound(header: Header, bound: Bound, path: Path) -> None:
    """Refuse data that this ledger makes no promise about: of another relation, unit or trust."""
    if bound.neighbors != header.neighbors:
        raise LedgerMismatch(
            f"{path} accounts for '{header.neighbors}', the data is bounded for "
            f"'{bound.neighbors}'; nothing was charged"
        )
    if bound.unit != header.unit:
        raise LedgerMismatch(
            f"{path} protects each {header.unit!r}, the data is bounded per {bound.unit!r}; "
            "nothing was charged"
        )
    # The other way round promises less than is done.
    if header.model == "local" and bound.model != "local":
        raise LedgerMismatch(
            f"{path} is of the local model: it pays for noise that each device or person adds to "
            "their own data, and this was gathered, which takes a ledger of the central model; nothing "
            "was charged"
        )


def check_mechanism(header: Header, mechanism: Any, noise: Noise, path: Path) -> None:
    """Refuse noise in shares where one hand is to add all of it, the reverse, and shares of others.

    Mechanisms and sources of noise in shares have a `trust`; no others do.
    """
    if not isinstance(getattr(mechanism, "name", None), str):
        raise InvalidParameter(f"release takes a mechanism, got {mechanism!r}; nothing was charged")
    own = None if header.model in ("central", "local") else header.model
    for what, trust in (
        (mechanism.name, getattr(mechanism, "trust", None)),
        (type(noise).__name__, getattr(noise, "trust", None)),
    ):
        if trust == own:
            continue
        kind = "noise that one hand adds" if trust is None else f"for the {model_name(trust)}"
        raise LedgerMismatch(
            f"{path} is of the {model_name(header.model)} and pays for nothing else, {what} is {kind}; "
            "nothing was charged"
        )


def check_open(now: Tally, path: Path) -> None:
    """Refuse a ledger that was closed, and say where it went on."""
    if now.closed is None:
        return
    why = f" ({now.closed.note})" if now.closed.note else ""
    went = f", it is {now.closed.successor} now" if now.closed.successor else ""
    raise LedgerClosed(
        f"{path} was closed at {now.closed.time[:19]}{why}{went}; nothing was charged"
    )


def check_clock(now: Tally, clock: Clock | ValueColumns | None, path: Path) -> None:
    """Refuse another clock, or other columns, than those that tell the parts of the unit so far."""
    unit = now.header.unit
    if not now.entries:
        return
    if period_of(unit) is None:
        if clock != now.clock:
            raise LedgerMismatch(
                f"{path} protects each {unit} by {now.clock or 'its column of users alone'}, the data is "
                f"bounded by {clock or 'that of users alone'}; nothing was charged"
            )
        return
    if now.clock is None:
        raise LedgerMismatch(
            f"{path} protects each {unit} and was charged before clocks were written "
            "down: whose periods those were is not known, make a new one; nothing was charged"
        )
    if clock != now.clock:
        raise LedgerMismatch(
            f"{path} protects each {unit} by the clock {now.clock}, the data is bounded "
            f"by {clock}; nothing was charged"
        )


def check_table(now: Tally, table: Table | None, path: Path, *, other: bool) -> None:
    """Refuse another table than those that were counted so far, unless told."""
    if other or table is None or not now.tables or table in now.tables:
        return
    known = " and ".join(map(str, now.tables))
    raise LedgerMismatch(
        f"{path} has paid for {known}, this is {table}; if the same people are in it, say so with "
        "`other_table`, else use the ledger of that table; nothing was charged"
    )


def payer(now: Tally, team: str, path: Path) -> str:
    """Whose sub-budget pays; refused where there is no such team."""
    try:
        return now.payer(team)
    except LedgerMismatch as problem:
        raise LedgerMismatch(f"{path}: {problem}; nothing was charged") from None
