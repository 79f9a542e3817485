"""What a ledger says: its header, fixed when it is made, and its entries with what they add up to."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import decoding
from sfumato.privacy.accounting.codec import (
    canonical,
    decode_loss,
    decode_neighbors,
    encode,
    parameters,
)
from sfumato.privacy.accounting.guarantee import Guarantee, Model
from sfumato.privacy.accounting.losses import Loss
from sfumato.privacy.accounting.neighbors import AddRemoveUser, Neighbors
from sfumato.privacy.accounting.numbers import exact
from sfumato.privacy.accounting.units import Clock
from sfumato.privacy.ledger.budget import Spent, left
from sfumato.privacy.ledger.guarded import REHEARSAL, Source
from sfumato.privacy.ledger.release import Entry


@dataclass(frozen=True, slots=True)
class Header:
    """What a ledger accounts for; fixed when it is made."""

    id: str
    created: str
    budget: Loss
    neighbors: Neighbors
    unit: str
    source: Source
    model: Model

    @property
    def rehearsal(self) -> bool:
        """Whether it is for public or made-up data: no file says that of itself."""
        return self.source is REHEARSAL

    def to_json(self) -> dict[str, Any]:
        """The header as it is stored."""
        return {
            "id": self.id,
            "created": self.created,
            "budget": encode(self.budget),
            "neighbors": encode(self.neighbors),
            "unit": self.unit,
            "source": str(self.source),
            "model": self.model,
            "rehearsal": self.rehearsal,
        }

    @staticmethod
    def from_json(data: Any, *, in_memory: bool = False) -> Header:
        """The header a JSON object states; only one in memory can be that of a rehearsal."""
        if data["rehearsal"] is not in_memory:
            raise InvalidInput("a file is no rehearsal")
        header = Header(
            id=str(data["id"]),
            created=str(data["created"]),
            budget=decode_loss(data["budget"]),
            neighbors=decode_neighbors(data["neighbors"]),
            unit=str(data["unit"]),
            source=REHEARSAL if in_memory else str(data["source"]),
            model=data["model"],
        )
        Guarantee(header.budget, header.neighbors, header.unit, header.model)
        return header


@dataclass(frozen=True, slots=True)
class LedgerStatement:
    """A ledger at one moment: its header, its entries, and what they add up to.

    Attributes:
        header: What the ledger accounts for, and its budget.
        entries: Every charge, in order.
        spent: What the entries add up to.
        head: The last hash of the chain.
    """

    header: Header
    entries: tuple[Entry, ...]
    spent: Spent
    head: str

    @property
    def left(self) -> Loss:
        """What the budget still holds."""
        return left(self.header.budget, self.spent)

    @property
    def clock(self) -> Clock | None:
        """The clock that the first charge bound, if the unit names a period."""
        return self.entries[0].clock if self.entries else None

    def to_json(self) -> dict[str, Any]:
        """Everything, with exact numbers as text; `sfumato ledger show --json` adds the file."""
        return {
            **self.header.to_json(),
            "clock": None if self.clock is None else self.clock.to_json(),
            "spent": parameters(self.spent),
            "left": encode(self.left),
            "head": self.head,
            "entries": [entry.to_json() for entry in self.entries],
        }

    @staticmethod
    def from_json(data: Any) -> LedgerStatement:
        """The statement a JSON object makes; its chain is not checked, the file itself is not there.

        Raises:
            InvalidInput: The object is no whole statement, or does not add up.

        """
        with decoding("a whole statement of a ledger"):
            found = LedgerStatement(
                Header.from_json(data, in_memory=data["rehearsal"] is True),
                tuple(Entry.from_json(one) for one in data["entries"]),
                _spent(data["spent"]),
                str(data["head"]),
            )
            if encode(found.left) != data["left"]:
                raise ValueError("what is left is not the budget less what was spent")
            return found

    def _repr_html_(self) -> str:
        """The statement as a table, for notebooks."""
        from sfumato.privacy.ledger.render import statement_html

        return statement_html(self)


def _spent(data: Any) -> Spent:
    account = data["account"]
    epsilon, delta, rho = (exact(data[name]) for name in ("epsilon", "delta", "rho"))
    return Spent(epsilon, delta, rho, None if account is None else exact(account))


def new_header(
    budget: Loss, unit: str, source: Source, neighbors: Neighbors | None, model: Model
) -> Header:
    """A header that reads as it is written, its values checked where they are born."""
    if not isinstance(budget, Loss):
        raise InvalidParameter(
            f"a budget is a PureDP, ApproxDP or ZCDP loss, got {budget!r}; nothing was made"
        )
    if not (str(source).isprintable() and unit.isprintable()):
        raise InvalidParameter("source and unit must be printable on one line; nothing was made")
    if not source:
        raise InvalidParameter(
            "a ledger needs the name of its data source, got an empty name; nothing was made"
        )
    relation = AddRemoveUser() if neighbors is None else neighbors
    Guarantee(budget, relation, unit, model)  # validates unit and model
    header = Header(secrets.token_hex(16), timestamp(), budget, relation, unit, source, model)
    try:
        if (
            Header.from_json(json.loads(canonical(header.to_json())), in_memory=header.rehearsal)
            != header
        ):
            raise ValueError("it reads otherwise")
    except (TypeError, ValueError, ArithmeticError) as problem:
        raise InvalidParameter(
            f"a ledger must read as it was written, this one would not ({problem}); nothing was made"
        ) from problem
    return header


def timestamp() -> str:
    """The time of an entry."""
    # Microseconds, so that the same release paid for in two copies of a ledger makes two different
    # entries.
    return datetime.now(UTC).isoformat(timespec="microseconds")
