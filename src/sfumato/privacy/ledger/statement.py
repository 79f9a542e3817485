"""What a ledger says: its header, fixed when it is made, and its entries with what they add up to."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidInput, InvalidParameter, LedgerError
from sfumato.files import decoding
from sfumato.privacy.accounting.codec import (
    canonical,
    decode_loss,
    decode_neighbors,
    encode,
    parameters,
)
from sfumato.privacy.accounting.guarantee import Guarantee
from sfumato.privacy.accounting.losses import ZCDP, Loss
from sfumato.privacy.accounting.neighbors import AddRemoveUser, Neighbors
from sfumato.privacy.accounting.numbers import Number, exact
from sfumato.privacy.accounting.trust import Model, decode_model, encode_model
from sfumato.privacy.accounting.units import (
    NAMED,
    Clock,
    ValueColumns,
    is_named,
    period_of,
    told_by,
)
from sfumato.privacy.ledger.accounts import WHOLE, Accounts, budgets_of
from sfumato.privacy.ledger.budget import Spent
from sfumato.privacy.ledger.guarded import REHEARSAL, Source, Table
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
    teams: Mapping[str, Loss] = field(default_factory=dict)
    format: int = 2

    @property
    def budgets(self) -> dict[str, Loss]:
        """The budget of the whole, of each team, and what no team was given."""
        return budgets_of(self.budget, self.teams)

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
            "model": encode_model(self.model),
            "rehearsal": self.rehearsal,
            **({"format": self.format} if self.format > 1 else {}),
            **(
                {"teams": {team: encode(share) for team, share in self.teams.items()}}
                if self.teams
                else {}
            ),
        }

    @staticmethod
    def from_json(data: Any, *, in_memory: bool = False) -> Header:
        """The header a JSON object states; only one in memory can be that of a rehearsal."""
        if data["rehearsal"] is not in_memory:
            raise InvalidInput("a file is no rehearsal")
        unknown = [*data.get("requires", ())]
        try:
            model = decode_model(data["model"])
        except InvalidInput:
            unknown.append(canonical(data["model"]))
        if data.get("format", 1) not in (1, 2) or unknown:
            raise LedgerError(later(" and ".join(map(str, unknown or [data["format"]]))))
        header = Header(
            id=str(data["id"]),
            created=str(data["created"]),
            budget=decode_loss(data["budget"]),
            neighbors=decode_neighbors(data["neighbors"]),
            unit=str(data["unit"]),
            source=REHEARSAL if in_memory else str(data["source"]),
            model=model,
            teams={str(team): decode_loss(one) for team, one in data.get("teams", {}).items()},
            format=int(data.get("format", 1)),
        )
        Guarantee(header.budget, header.neighbors, header.unit, header.model)
        budgets_of(header.budget, header.teams)
        return header


def later(what: str) -> str:
    """What is said of a word that this version does not know."""
    return f"was written by a later version of sfumato, this one does not know {what}; nothing was charged"


@dataclass(frozen=True, slots=True)
class Closed:
    """That a ledger pays for nothing any more: since when, why, and where it went on, if it was moved."""

    time: str
    note: str = ""
    successor: str = ""
    draft: str = ""

    def to_json(self) -> dict[str, Any]:
        """The row that closes a ledger."""
        return {
            "kind": "closed",
            "time": self.time,
            "note": self.note,
            "successor": self.successor,
            "draft": self.draft,
        }

    @staticmethod
    def from_json(data: Any) -> Closed:
        """What a row says; a missing part is a KeyError that names it."""
        return Closed(*(str(data[name]) for name in ("time", "note", "successor", "draft")))


@dataclass(frozen=True, slots=True)
class LedgerStatement:
    """A ledger at one moment: its header, its entries, and what they add up to.

    Attributes:
        header: What the ledger accounts for, and its budget.
        entries: Every charge, in order; or the last ones of them.
        accounts: What was spent: of the whole, of teams, in periods.
        clock: The clock that the first charge bound, if the unit names a period.
        tables: The tables that were counted, as far as releases named them.
        closed: Since when it pays for nothing, if it was closed.
        head: The last hash of the chain.
        count: How many charges there are.
        format: The format of the file.
    """

    header: Header
    entries: tuple[Entry, ...]
    accounts: Accounts
    clock: Clock | ValueColumns | None
    tables: tuple[Table, ...]
    closed: Closed | None
    head: str
    count: int
    format: int = 2

    @property
    def spent(self) -> Spent:
        """What was charged to every period: all of it, unless the unit names one."""
        return self.accounts.of()

    @property
    def left(self) -> Loss:
        """What the budget still holds; in each period that was not charged, if the unit names one."""
        return self.accounts.left()

    @property
    def periods(self) -> dict[str, Spent]:
        """What was spent in each period that was charged, in order of their names."""
        of = self.accounts.spent[WHOLE]
        return {period: of[period] for period in sorted(of) if period}

    def left_of(self, team: str = "", period: str = "") -> Loss:
        """What is left of a team's budget or the whole, in one period or in any that was not charged.

        Args:
            team: The name of a team; empty for the whole.
            period: The name of a period, e.g. 2026-01-31; empty for one that was not charged.

        Returns:
            The loss that is left.

        Raises:
            InvalidParameter: There is no such team, the unit names no period, or none of this name.

        """
        if team not in (WHOLE, *self.header.teams):
            raise InvalidParameter(
                f"teams are {', '.join(self.header.teams) or 'none'}, got {team!r}"
            )
        within = period_of(self.header.unit)
        if period and within is None:
            raise InvalidParameter(
                f"a ledger that protects each {self.header.unit} has one budget for all time, got the "
                f"period {period!r}"
            )
        charged = self.accounts.spent[WHOLE]
        if period and within and period not in charged and not is_named(period, within):
            raise InvalidParameter(
                f"a ledger that protects each {self.header.unit} has periods such as "
                f"{NAMED[within][1]}, got {period!r}"
            )
        return self.accounts.left(team, (period,) if period else None)

    def is_below(self, limit: Number, team: str = "", period: str = "") -> bool:
        """Whether less is left than a limit: of epsilon, or of rho where that is what is left."""
        rest = self.left_of(team, period)
        return (rest.rho if isinstance(rest, ZCDP) else rest.epsilon) < exact(limit, name="limit")

    def to_json(self) -> dict[str, Any]:
        """Everything, with exact numbers as text and beside them as floats; `ledger show` adds the file."""
        return {
            **self.header.to_json(),
            "file_format": self.format,
            "clock": None if self.clock is None else self.clock.to_json(),
            "tables": [table.to_json() for table in self.tables],
            "closed": None if self.closed is None else self.closed.to_json(),
            "spent": parameters(self.spent),
            "left": encode(self.left),
            "floats": {
                "budget": _floats(self.header.budget),
                "spent": _floats(self.spent),
                "left": _floats(self.left),
            },
            "periods": _sums(self.accounts, WHOLE, *self.periods),
            "teams_spent": {
                team: _sums(self.accounts, team, *sorted(of))
                for team, of in self.accounts.spent.items()
                if team
            },
            "head": self.head,
            "count": self.count,
            "entries": [entry.to_json() for entry in self.entries],
        }

    @staticmethod
    def from_json(data: Any) -> LedgerStatement:
        """The statement a JSON object makes; its chain is not checked, the file itself is not there.

        Raises:
            InvalidInput: The object is no whole statement, or does not add up.

        """
        with decoding("a whole statement of a ledger"):
            header = Header.from_json(data, in_memory=data["rehearsal"] is True)
            accounts = Accounts(header.budgets)
            accounts.spent[WHOLE][WHOLE] = _spent(data["spent"])
            for team, of in {WHOLE: data["periods"], **data["teams_spent"]}.items():
                for period, one in of.items():
                    accounts.spent[team][period] = _spent(one["spent"])
            found = LedgerStatement(
                header,
                tuple(Entry.from_json(one) for one in data["entries"]),
                accounts,
                None if data["clock"] is None else told_by(data["clock"]),
                tuple(map(Table.from_json, data["tables"])),
                None if data["closed"] is None else Closed.from_json(data["closed"]),
                str(data["head"]),
                int(data["count"]),
                int(data["file_format"]),
            )
            if encode(found.left) != data["left"]:
                raise ValueError("what is left is not the budget less what was spent")
            return found

    def _repr_html_(self) -> str:
        """The statement as a table, for notebooks."""
        from sfumato.privacy.ledger.render import statement_html

        return statement_html(self)


def _sums(accounts: Accounts, team: str, *periods: str) -> dict[str, Any]:
    """What was spent and is left of a budget, by period."""
    found = {}
    for period in periods:
        spent, rest = accounts.of(team, period), accounts.left(team, (period,))
        found[period] = {
            "spent": parameters(spent),
            "left": encode(rest),
            "floats": {"spent": _floats(spent), "left": _floats(rest)},
        }
    return found


def _floats(value: Loss | Spent) -> dict[str, float]:
    """The numbers of a loss or a sum as floats, for plots and alarms; the text beside them is exact."""
    numbers = (
        (name, getattr(value, name, None)) for name in ("epsilon", "delta", "rho", "account")
    )
    return {name: _float(number) for name, number in numbers if number is not None}


def _float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return sys.float_info.max  # JSON has no infinity


def _spent(data: Any) -> Spent:
    account = data["account"]
    epsilon, delta, rho = (exact(data[name]) for name in ("epsilon", "delta", "rho"))
    return Spent(epsilon, delta, rho, None if account is None else exact(account))


def new_header(
    budget: Loss,
    unit: str,
    source: Source,
    neighbors: Neighbors | None,
    model: Model,
    teams: Mapping[str, Loss] | None = None,
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
    shares = dict(teams or {})
    budgets_of(budget, shares)
    header = Header(
        secrets.token_hex(16), timestamp(), budget, relation, unit, source, model, shares
    )
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
