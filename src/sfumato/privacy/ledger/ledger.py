"""The ledger: who paid. It charges first and samples second; it is the only door out."""

from __future__ import annotations

import json
import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
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
from sfumato.privacy.accounting.codec import canonical, parameters
from sfumato.privacy.accounting.guarantee import Guarantee, Model
from sfumato.privacy.accounting.losses import Loss, PureDP
from sfumato.privacy.accounting.neighbors import Neighbors
from sfumato.privacy.accounting.numbers import Number, exact
from sfumato.privacy.accounting.units import Clock, period_of
from sfumato.privacy.ledger import file as ledger_file
from sfumato.privacy.ledger.budget import Spent, at_most, charge
from sfumato.privacy.ledger.guarded import REHEARSAL, Bound, Guarded, open_for_release
from sfumato.privacy.ledger.release import Entry, Release
from sfumato.privacy.ledger.statement import Header, LedgerStatement, new_header, timestamp
from sfumato.privacy.mechanisms.protocol import Mechanism
from sfumato.privacy.noise.protocol import Noise
from sfumato.privacy.noise.system import SystemNoise

T = TypeVar("T")
U = TypeVar("U")


class Ledger:
    """A privacy budget in a file; `release` is the only way from `Guarded` to numbers.

    Make one with `Ledger.create`, open one with `Ledger(path)`. Nothing is held open between calls,
    so it may be used by many processes; they cannot overspend it together.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(f"{folder}/city.ledger", 2, unit="user", source="city")
    ...     print(ledger.statement().left)
    epsilon 2
    """

    def __init__(self, path: str | Path) -> None:
        self.path = _file(path)
        self._memory: sqlite3.Connection | None = None
        self.header = self.statement().header

    @classmethod
    def create(
        cls,
        path: str | Path,
        budget: Loss | Number,
        *,
        unit: str,
        source: str,
        neighbors: Neighbors | None = None,
        model: Model = "central",
    ) -> Ledger:
        """Make a ledger file with a budget for one source of data and one unit of privacy.

        Args:
            path: The new file; an existing one is refused.
            budget: A loss, or a number: the epsilon of pure differential privacy.
            unit: Whom one mass belongs to, e.g. "user", or a period of one: "user-day", told by one
                clock, that of the first charge.
            source: The name of the data that the budget is for.
            neighbors: Between which data sets nobody can tell; one user added or removed by default.
            model: "central", or "local" for noise that is added before anybody sees the data; such
                a ledger pays for nothing that was gathered.

        Returns:
            The ledger, with nothing spent.

        Raises:
            InvalidParameter: A value breaks a rule; nothing was made.
            LedgerError: The file exists, or cannot be written.
        """
        if not isinstance(source, str):
            raise InvalidParameter(
                f"the source of a ledger is a name, got {source!r}; nothing was made"
            )
        loss = budget if isinstance(budget, Loss) else PureDP(exact(budget, name="budget"))
        ledger_file.create(_file(path), new_header(loss, unit, source, neighbors, model).to_json())
        return cls(path)

    @classmethod
    def rehearsal(
        cls, budget: Loss, *, unit: str = "user", neighbors: Neighbors | None = None
    ) -> Ledger:
        """A ledger in memory for simulations on public data; its releases are marked, and protect nobody.

        It takes data whose source is the mark `REHEARSAL`, which is no name: data under guard for a
        real ledger is refused, whatever that is called.
        """
        ledger = cls.__new__(cls)
        ledger.path = Path(str(REHEARSAL))
        ledger.header = new_header(budget, unit, REHEARSAL, neighbors, "central")
        ledger._memory = ledger_file.in_memory(ledger.header.to_json())
        weakref.finalize(ledger, ledger._memory.close)
        return ledger

    def statement(self) -> LedgerStatement:
        """Everything in the ledger, its chain checked; LedgerDamaged when it is broken."""
        if self._memory is not None:
            return self._read(self._memory)
        with ledger_file.opened(self.path) as connection:
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

        A mechanism costs a little less than was meant when its scales had to be rounded up; `pay`
        is then what is charged and promised instead of its cost, which must not be more.

        Order: check the relation, the unit, whose trust it is and the source; compute the cost;
        check the clock, append the entry and wait for the disk; open the data; sample. A refusal
        comes before anything is read. A crash after the charge leaves it standing.
        """
        source = SystemNoise() if noise is None else noise
        self._admit(guarded, source, note)
        if not isinstance(getattr(mechanism, "name", None), str):
            raise InvalidParameter(
                f"release takes a mechanism, got {mechanism!r}; nothing was charged"
            )
        cost = _paid(mechanism.cost(guarded.bound), pay)
        distance = (
            None if source.distance is None else source.distance * mechanism.draws(guarded.bound)
        )
        entry = self._charge(mechanism, cost, distance, note, guarded.bound.clock)
        value = mechanism.sample(open_for_release(guarded), source)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        guarantee = Guarantee(
            cost, self.header.neighbors, self.header.unit, self.header.model, distance
        )
        exponent = guarded.exponent if mechanism.additive else 0
        return Release(value, exponent, guarantee, self.header.id, entry, self.header.rehearsal)

    def afford(self, *costs: Loss, bound: Bound | None = None) -> None:
        """Refuse costs that the budget does not hold now; it charges nothing and reserves nothing.

        With the `bound` of what will be released, what `release` would refuse it for is refused as
        well.
        """
        now = self.statement()
        if bound is not None:
            self._accounts_for(bound)
            self._keeps_to(now, bound.clock)
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
            raise LedgerMismatch(
                f"entry {release.entry.number} of the release is missing in {self.path}"
            )
        if paid != release.entry:
            raise LedgerMismatch(
                f"entry {paid.number} in {self.path} differs from the one of the release"
            )
        header, promised = self.header, release.guarantee
        if promised != Guarantee(
            paid.cost, header.neighbors, header.unit, header.model, paid.computational
        ):
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
        self._accounts_for(guarded.bound)
        if guarded.source != self.header.source:
            raise LedgerMismatch(
                f"{self.path} accounts for the source {self.header.source!r}, the data is "
                f"{guarded.source!r}; nothing was charged"
            )
        if noise.known and not self.header.rehearsal:
            raise InvalidParameter(
                "noise that can be drawn again is for rehearsals only; nothing was charged"
            )

    def _accounts_for(self, bound: Bound) -> None:
        """Refuse data that this ledger makes no promise about: of another relation, unit or trust."""
        header = self.header
        if bound.neighbors != header.neighbors:
            raise LedgerMismatch(
                f"{self.path} accounts for '{header.neighbors}', the data is bounded for "
                f"'{bound.neighbors}'; nothing was charged"
            )
        if bound.unit != header.unit:
            raise LedgerMismatch(
                f"{self.path} protects each {header.unit!r}, the data is bounded per {bound.unit!r}; "
                "nothing was charged"
            )
        # The other way round promises less than is done.
        if header.model == "local" and bound.model != "local":
            raise LedgerMismatch(
                f"{self.path} is of the local model: it pays for noise that each device or person adds to "
                "their own data, and this was gathered, which takes a ledger of the central model; nothing "
                "was charged"
            )

    def _keeps_to(self, now: LedgerStatement, clock: Clock | None) -> None:
        """Refuse another clock than the one that tells the periods of the unit so far."""
        if period_of(self.header.unit) is None or not now.entries:
            return
        if now.clock is None:
            raise LedgerMismatch(
                f"{self.path} protects each {self.header.unit} and was charged before clocks were written "
                "down: whose periods those were is not known, make a new one; nothing was charged"
            )
        if clock != now.clock:
            raise LedgerMismatch(
                f"{self.path} protects each {self.header.unit} by the clock {now.clock}, the data is bounded "
                f"by {clock}; nothing was charged"
            )

    def _charge(
        self,
        mechanism: Mechanism[Any, Any],
        cost: Loss,
        distance: Fraction | None,
        note: str,
        clock: Clock | None,
    ) -> Entry:
        with self._locked() as connection:
            now = self._read(connection)
            if now.header != self.header:
                raise LedgerMismatch(
                    f"{self.path} was replaced since it was opened; nothing was charged"
                )
            self._keeps_to(now, clock)
            try:
                after = charge(now.header.budget, now.spent, cost)
            except (BudgetExceeded, NotComparable) as refusal:
                raise type(refusal)(f"{refusal} in {self.path}; nothing was released") from None
            entry = Entry(
                number=len(now.entries) + 1,
                time=timestamp(),
                mechanism=mechanism.name,
                parameters=parameters(mechanism),
                cost=cost,
                computational=distance,
                account=after.account if now.spent.account is None else None,
                note=note,
                hash="",
                clock=clock,
            )
            kept = _appended(connection, now, entry)
            if charge(now.header.budget, now.spent, kept.cost, account=kept.account) != after:
                raise _otherwise("its cost would be another")
        return kept

    def _read(self, connection: sqlite3.Connection) -> LedgerStatement:
        (first, genesis), *rest = ledger_file.rows(connection, str(self.path))
        try:
            header = Header.from_json(first, in_memory=self._memory is not None)
            entries = tuple(Entry.from_json({**body, "hash": head}) for body, head in rest)
            spent = Spent()
            for entry in entries:
                # The size of an account is what was written when it opened, not computed again.
                spent = charge(header.budget, spent, entry.cost, account=entry.account)
        except (SfumatoError, KeyError, TypeError) as problem:
            raise LedgerDamaged(f"{self.path} is damaged: {problem}") from problem
        return LedgerStatement(header, entries, spent, rest[-1][1] if rest else genesis)

    @contextmanager
    def _locked(self) -> Iterator[sqlite3.Connection]:
        if self._memory is not None:
            with ledger_file.unlocked(self._memory) as connection:
                yield connection
            return
        with ledger_file.locked(self.path) as connection:
            yield connection


def _file(path: str | Path) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InvalidParameter(
            "a ledger is a file, made once by Ledger.create(path, budget, unit=..., source=...), "
            f"got {path!r}; nothing was charged"
        )
    return Path(path)


def _appended(connection: sqlite3.Connection, now: LedgerStatement, entry: Entry) -> Entry:
    """The entry as it reads when it is written; refused, before it is committed, where that differs."""
    try:
        body = entry.to_json()
        del body["hash"]
        ledger_file.append(connection, entry.number, body, now.head)
        text, head = ledger_file.row(connection, entry.number)
        kept = Entry.from_json({**json.loads(text), "hash": head})
        same = canonical(kept.to_json()) == canonical({**body, "hash": head})
    except (TypeError, ValueError, ArithmeticError, RecursionError) as problem:
        raise _otherwise(str(problem)) from problem
    # Parameters are compared as text: tuples in them read as lists.
    if not same or replace(kept, parameters={}) != replace(entry, parameters={}, hash=head):
        raise _otherwise("it would read otherwise")
    return kept


def _otherwise(why: str) -> InvalidParameter:
    return InvalidParameter(f"an entry must read as it was written: {why}; nothing was charged")


def _paid(cost: Loss, pay: PureDP | None) -> Loss:
    if pay is None:
        return cost
    if not (isinstance(cost, PureDP) and cost.epsilon <= pay.epsilon):
        raise InvalidParameter(
            f"a release must pay its cost of {cost} at least, got {pay}; nothing was charged"
        )
    return pay
