"""The ledger: who paid. It charges first and samples second; it is the only door out."""

from __future__ import annotations

import secrets
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sfumato.errors import (
    BudgetExceeded,
    InvalidParameter,
    LedgerDamaged,
    LedgerMismatch,
    NotComparable,
    SfumatoError,
)
from sfumato.privacy import ledger_file
from sfumato.privacy.budget import Spent, at_most, charge, left
from sfumato.privacy.codec import decode_loss, decode_neighbors, encode, parameters
from sfumato.privacy.guarantee import Guarantee, Model
from sfumato.privacy.guarded import Guarded, open_for_release
from sfumato.privacy.losses import Loss, PureDP
from sfumato.privacy.mechanisms import Mechanism
from sfumato.privacy.neighbors import AddRemoveUser, Neighbors
from sfumato.privacy.noise import Noise
from sfumato.privacy.release import Entry, Release
from sfumato.privacy.system import SystemNoise

T = TypeVar("T")
U = TypeVar("U")

REHEARSAL = "rehearsal"


@dataclass(frozen=True, slots=True)
class Header:
    """What a ledger accounts for; fixed when it is made."""

    id: str
    created: str
    budget: Loss
    neighbors: Neighbors
    unit: str
    source: str
    model: Model
    rehearsal: bool

    def to_json(self) -> dict[str, Any]:
        """The header as it is stored."""
        return {
            "id": self.id,
            "created": self.created,
            "budget": encode(self.budget),
            "neighbors": encode(self.neighbors),
            "unit": self.unit,
            "source": self.source,
            "model": self.model,
            "rehearsal": self.rehearsal,
        }


@dataclass(frozen=True, slots=True)
class Statement:
    """A ledger at one moment: its header, its entries, and what they add up to."""

    header: Header
    entries: tuple[Entry, ...]
    spent: Spent
    head: str

    @property
    def left(self) -> Loss:
        """What the budget still holds."""
        return left(self.header.budget, self.spent)


class Ledger:
    """A privacy budget in a file; `release` is the only way from `Guarded` to numbers.

    Make one with `Ledger.create`, open one with `Ledger(path)`. Nothing is held open between calls, so it
    may be used by many processes; they cannot overspend it together.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._memory: sqlite3.Connection | None = None
        self.header = self.statement().header

    @classmethod
    def create(
        cls,
        path: str | Path,
        budget: Loss,
        *,
        unit: str,
        source: str,
        neighbors: Neighbors | None = None,
        model: Model = "central",
    ) -> Ledger:
        """Make a ledger file with a budget for one source of data and one unit of privacy."""
        ledger_file.create(
            Path(path), _header(budget, unit, source, neighbors, model, rehearsal=False).to_json()
        )
        return cls(path)

    @classmethod
    def rehearsal(cls, budget: Loss, *, unit: str = "user", neighbors: Neighbors | None = None) -> Ledger:
        """A ledger in memory for simulations on public data; its releases are marked, and protect nobody.

        It takes data of the source "rehearsal" only, so that data under guard for a real ledger is refused.
        """
        ledger = cls.__new__(cls)
        ledger.path = Path("rehearsal")
        ledger._memory = sqlite3.connect(":memory:", isolation_level=None)
        weakref.finalize(ledger, ledger._memory.close)
        ledger._memory.executescript(ledger_file.SCHEMA)
        header = _header(budget, unit, REHEARSAL, neighbors, "central", rehearsal=True)
        ledger_file.append(ledger._memory, 0, header.to_json(), ledger_file.GENESIS)
        ledger.header = header
        return ledger

    def statement(self) -> Statement:
        """Everything in the ledger, its chain checked; LedgerDamaged when it is broken."""
        with self._connected() as connection:
            return self._read(connection)

    def release(
        self,
        mechanism: Mechanism[T, U],
        guarded: Guarded[T],
        *,
        noise: Noise | None = None,
        pay: PureDP | None = None,
        note: str = "",
    ) -> Release[U]:
        """Pay for a mechanism, then run it on private data.

        A mechanism costs a little less than was meant when its scales had to be rounded up; `pay` is then
        what is charged and promised instead of its cost, which must not be more.

        Order: check the relation and the source; compute the cost; append the entry and wait for the disk;
        open the data; sample. A refusal comes before anything is read. A crash after the charge leaves it
        standing.
        """
        source = SystemNoise() if noise is None else noise
        self._admit(guarded, source, note)
        if not isinstance(getattr(mechanism, "name", None), str):
            raise InvalidParameter(f"release takes a mechanism, got {mechanism!r}; nothing was charged")
        cost = _paid(mechanism.cost(guarded.bound), pay)
        distance = None if source.distance is None else source.distance * mechanism.draws(guarded.bound)
        entry = self._charge(mechanism, cost, distance, note)
        value = mechanism.sample(open_for_release(guarded), source)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        guarantee = Guarantee(cost, self.header.neighbors, self.header.unit, self.header.model, distance)
        exponent = guarded.exponent if mechanism.additive else 0
        return Release(value, exponent, guarantee, self.header.id, entry, self.header.rehearsal)

    def afford(self, *costs: Loss) -> None:
        """Refuse costs that the budget does not hold now; it charges nothing and reserves nothing."""
        now = self.statement()
        spent = now.spent
        fit = 0
        try:
            for cost in costs:
                spent = charge(now.header.budget, spent, cost)
                fit += 1
        except (BudgetExceeded, NotComparable) as refusal:
            if len(costs) == 1:
                what = str(refusal)
            elif len(set(costs)) == 1:
                what = f"asked {len(costs)} times {costs[0]}, {at_most(now.left)} left, enough for {fit}"
            else:
                what = f"asked {' and '.join(map(str, costs))}, {at_most(now.left)} left"
            raise type(refusal)(f"{what} in {self.path}; nothing was released") from None

    def check(self, release: Release[Any]) -> None:
        """Refuse a release that this ledger did not pay for as it says."""
        entries = {entry.number: entry for entry in self.statement().entries}
        if release.ledger != self.header.id:
            raise LedgerMismatch(
                f"the release is of ledger {release.ledger}, {self.path} is {self.header.id}"
            )
        paid = entries.get(release.entry.number)
        if paid is None:
            raise LedgerMismatch(f"entry {release.entry.number} of the release is missing in {self.path}")
        if paid != release.entry:
            raise LedgerMismatch(f"entry {paid.number} in {self.path} differs from the one of the release")
        header, promised = self.header, release.guarantee
        if promised != Guarantee(paid.cost, header.neighbors, header.unit, header.model, paid.computational):
            raise LedgerMismatch(
                f"the release promises '{promised}', but entry {paid.number} paid for {paid.cost}"
            )
        if release.rehearsal != header.rehearsal:
            raise LedgerMismatch(f"the release hides that {self.path} is, or is not, a rehearsal")

    def _admit(self, guarded: Guarded[Any], noise: Noise, note: str) -> None:
        if not note.isprintable():
            raise InvalidParameter("a note must be printable on one line; nothing was charged")
        if not isinstance(guarded, Guarded):
            raise InvalidParameter(
                f"release takes guarded data, got {type(guarded).__name__}; nothing was charged"
            )
        if guarded.bound.neighbors != self.header.neighbors:
            raise LedgerMismatch(
                f"{self.path} accounts for '{self.header.neighbors}', the data is bounded for "
                f"'{guarded.bound.neighbors}'; nothing was charged"
            )
        if guarded.bound.unit != self.header.unit:
            raise LedgerMismatch(
                f"{self.path} protects each {self.header.unit!r}, the data is bounded per "
                f"{guarded.bound.unit!r}; nothing was charged"
            )
        if guarded.source != self.header.source:
            raise LedgerMismatch(
                f"{self.path} accounts for the source {self.header.source!r}, the data is "
                f"{guarded.source!r}; nothing was charged"
            )
        if noise.known and not self.header.rehearsal:
            raise InvalidParameter(
                "noise that can be drawn again is for rehearsals only; nothing was charged"
            )

    def _charge(
        self, mechanism: Mechanism[Any, Any], cost: Loss, distance: Fraction | None, note: str
    ) -> Entry:
        with self._connected() as connection, ledger_file.locked(connection):
            now = self._read(connection)
            if now.header != self.header:
                raise LedgerMismatch(f"{self.path} was replaced since it was opened; nothing was charged")
            try:
                after = charge(now.header.budget, now.spent, cost)
            except (BudgetExceeded, NotComparable) as refusal:
                raise type(refusal)(f"{refusal} in {self.path}; nothing was released") from None
            entry = Entry(
                number=len(now.entries) + 1,
                time=_now(),
                mechanism=mechanism.name,
                parameters=parameters(mechanism),
                cost=cost,
                computational=distance,
                account=after.account if now.spent.account is None else None,
                note=note,
                hash="",
            )
            body = entry.to_json()
            del body["hash"]
            head = ledger_file.append(connection, entry.number, body, now.head)
        return Entry.from_json({**body, "hash": head})

    def _read(self, connection: sqlite3.Connection) -> Statement:
        (head_row, genesis), *rest = ledger_file.rows(connection, str(self.path))
        try:
            header = Header(
                **{
                    **head_row,
                    "budget": decode_loss(head_row["budget"]),
                    "neighbors": decode_neighbors(head_row["neighbors"]),
                }
            )
            entries = tuple(Entry.from_json({**body, "hash": head}) for body, head in rest)
            spent = Spent()
            for entry in entries:
                # The size of an account is what was written when it opened, not computed again.
                spent = charge(header.budget, spent, entry.cost, account=entry.account)
        except (SfumatoError, KeyError, TypeError) as problem:
            raise LedgerDamaged(f"{self.path} is damaged: {problem}") from problem
        return Statement(header, entries, spent, rest[-1][1] if rest else genesis)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if self._memory is not None:
            yield self._memory
            return
        with ledger_file.connected(self.path) as connection:
            yield connection


def _paid(cost: Loss, pay: PureDP | None) -> Loss:
    if pay is None:
        return cost
    if not (isinstance(cost, PureDP) and cost.epsilon <= pay.epsilon):
        raise InvalidParameter(
            f"a release must pay its cost of {cost} at least, got {pay}; nothing was charged"
        )
    return pay


def _header(
    budget: Loss, unit: str, source: str, neighbors: Neighbors | None, model: Model, *, rehearsal: bool
) -> Header:
    if not isinstance(budget, Loss):
        raise InvalidParameter(
            f"a budget is a PureDP, ApproxDP or ZCDP loss, got {budget!r}; nothing was made"
        )
    if not (source.isprintable() and unit.isprintable()):
        raise InvalidParameter("source and unit must be printable on one line; nothing was made")
    if not source:
        raise InvalidParameter(
            "a ledger needs the name of its data source, got an empty name; nothing was made"
        )
    relation = AddRemoveUser() if neighbors is None else neighbors
    Guarantee(budget, relation, unit, model)  # validates unit and model where they are born
    return Header(secrets.token_hex(16), _now(), budget, relation, unit, source, model, rehearsal)


def _now() -> str:
    # Microseconds, so that the same release paid for in two copies of a ledger makes two different entries.
    return datetime.now(UTC).isoformat(timespec="microseconds")
