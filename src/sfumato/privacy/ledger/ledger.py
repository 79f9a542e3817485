"""The ledger: who paid. It charges first and samples second; it is the only door out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerMismatch, NotComparable
from sfumato.privacy.accounting.guarantee import Guarantee
from sfumato.privacy.accounting.losses import Loss, PureDP
from sfumato.privacy.accounting.neighbors import Neighbors
from sfumato.privacy.accounting.numbers import Number, exact
from sfumato.privacy.accounting.trust import Model
from sfumato.privacy.ledger import charging, delivery, entries, moving, terms
from sfumato.privacy.ledger.accounts import Changes
from sfumato.privacy.ledger.budget import several_refused
from sfumato.privacy.ledger.guarded import REHEARSAL, Bound, Guarded, Table, open_for_release
from sfumato.privacy.ledger.release import Entry, Release
from sfumato.privacy.ledger.statement import Header, LedgerStatement, new_header
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.privacy.ledger.storage.rows import Row
from sfumato.privacy.ledger.storage.store import Kept
from sfumato.privacy.ledger.tally import Tally, replayed, tally_of
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
        self._memory: ledger_file.Book | None = None
        self.header: Header = self._now().header

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
        teams: Mapping[str, Loss | Number] | None = None,
    ) -> Ledger:
        """Make a ledger file with a budget for one source of data and one unit of privacy.

        Args:
            path: The new file; an existing one is refused.
            budget: A loss, or a number: the epsilon of pure differential privacy.
            unit: Whom one mass belongs to, e.g. "user", a period of one ("user-day", told by the
                clock of the first charge; the budget is for each), or one in a value: "user-image".
            source: The name of the data that the budget is for.
            neighbors: Between which data sets nobody can tell; one user added or removed by default.
            model: "central"; "local" for noise that is added before anybody sees the data, and
                for nothing that was gathered; `Joint` or `Shuffled` for noise in shares alone.
            teams: Sub-budgets by name, which add up to at most the budget. A number is the epsilon
                (or rho) of one, with its share of delta.

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
        shares = {team: entries.share_of(loss, share) for team, share in (teams or {}).items()}
        header = new_header(loss, unit, source, neighbors, model, shares)
        ledger_file.create(_file(path), header.to_json())
        return cls(path)

    @classmethod
    def rehearsal(
        cls,
        budget: Loss,
        *,
        unit: str = "user",
        neighbors: Neighbors | None = None,
        model: Model = "central",
    ) -> Ledger:
        """A ledger in memory for simulations on public data; its releases are marked, and protect nobody.

        It takes data whose source is the mark `REHEARSAL`, which is no name: data under guard for a
        real ledger is refused, whatever that is called. It keeps no values.
        """
        ledger = cls.__new__(cls)
        ledger.path = Path(str(REHEARSAL))
        ledger.header = new_header(budget, unit, REHEARSAL, neighbors, model)
        ledger._memory = ledger_file.new_book(ledger.header.to_json())
        return ledger

    def statement(self) -> LedgerStatement:
        """Everything in the ledger, its chain and checkpoints checked; LedgerDamaged when it is broken."""
        book = self._memory or ledger_file.opened(self.path, whole=True)
        memory = self._memory is not None
        now, found = replayed(book.first, book.rows, str(self.path), in_memory=memory)
        return _stated(now, found, book.format)

    def recent(self, last: int = 10) -> LedgerStatement:
        """The same with the last entries alone, checked from the last checkpoint on: fast at any length."""
        if last < 0:
            raise InvalidParameter(f"the number of entries must be at least 0, got {last}")
        if self._memory is not None or self._book().format == 1:
            whole = self.statement()
            return replace(whole, entries=whole.entries[max(0, whole.count - last) :])
        rows = [r for r in ledger_file.last_rows(self.path, 2 * last + 16) if r.kind == "entry"]
        found = [Entry.from_json({**row.body, "hash": row.hash}) for row in rows]
        return _stated(self._now(), tuple(found[max(0, len(found) - last) :]), 2)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, per {self.header.unit} of {str(self.header.source)!r})"

    def _repr_html_(self) -> str:
        return self.recent()._repr_html_()

    def release(
        self,
        mechanism: Mechanism[T, U],
        guarded: Guarded[T],
        *,
        noise: Noise | None = None,
        pay: PureDP | None = None,
        note: str = "",
        team: str = "",
        request: Any = None,
        once: str = "",
        other_table: bool = False,
        attach: Callable[[Release[U]], Any] | None = None,
    ) -> Release[U]:
        """Pay for a mechanism, then run it on private data.

        A mechanism costs a little less than was meant when its scales had to be rounded up; `pay`
        is then what is charged and promised instead of its cost, which must not be more.

        Order: check the relation, the unit, whose trust it is and the source; compute the cost;
        check clock and table, write down what is asked, append the entry, wait for the disk; open
        the data; sample; write the values beside the ledger, wait for the disk. A refusal comes
        before anything is read. A crash after the charge leaves it standing, for `redraw`, `recover`.

        Args:
            mechanism: What draws.
            guarded: The private data.
            noise: Where the noise comes from; the system, if none is given.
            pay: What is charged instead of the cost.
            note: A line for the ledger.
            team: Whose sub-budget pays, in a ledger with teams.
            request: What was asked for, as JSON without passwords. The values are then kept beside
                the ledger until `delivered`. What is under "delivery" may differ in the same one.
            once: A key under which this request is released once.
            other_table: Whether another table than before holds the same people.
            attach: Makes JSON of what was drawn, to be kept with it: a seal.

        Returns:
            What was drawn, with the promise and the entry that paid.

        Raises:
            BudgetExceeded: The budget does not hold it; nothing was charged or read.
            LedgerMismatch: The ledger makes no promise about this data; nothing was charged.
            LedgerClosed: It pays for nothing any more.
            ReleasedAlready: The key was used for this request; nothing was charged again.
        """
        source = SystemNoise() if noise is None else noise
        if not note.isprintable():
            raise InvalidParameter("a note must be printable on one line; nothing was charged")
        terms.check_guarded(self.header, guarded, source, self.path)
        terms.check_mechanism(self.header, mechanism, source, self.path)
        cost = entries.paid(mechanism.cost(guarded.bound), pay)
        entry = entries.draft(mechanism, guarded, cost, source)
        entry = replace(entry, note=note, team=team)
        if request is not None:
            entry = replace(
                entry, bound=guarded.bound.to_json(), request=delivery.hash_of(request), once=once
            )
        elif once:
            raise InvalidParameter("a key is that of a request, got none; nothing was charged")
        charged, handle = charging.charge_entry(
            self, entry, request=request, other_table=other_table
        )
        return self._drawn(charged, mechanism, guarded, source, handle, attach)

    def afford(
        self,
        *costs: Loss,
        bound: Bound | None = None,
        team: str = "",
        table: Table | None = None,
        other_table: bool = False,
    ) -> None:
        """Refuse costs that the budget does not hold now; it charges nothing and reserves nothing.

        With the `bound` and the `table` of what will be released, what `release` would refuse it
        for is refused as well.
        """
        now = self._now()
        terms.check_open(now, self.path)
        if bound is not None:
            terms.check_bound(self.header, bound, self.path)
            terms.check_clock(now, bound.clock, self.path)
        terms.check_table(now, table, self.path, other=other_table)
        periods = None if bound is None else bound.periods
        payer = terms.payer(now, team, self.path)
        spent: Changes = {}
        fit = 0
        try:
            for cost in costs:
                spent |= now.accounts.after(cost, team=payer, periods=periods, before=spent)
                fit += 1
        except (BudgetExceeded, NotComparable) as refusal:
            left = now.accounts.left(payer, periods)
            what = several_refused(costs, fit, left, str(refusal))
            raise type(refusal)(f"{what} in {self.path}; nothing was released") from None

    def left(self, *, bound: Bound | None = None, team: str = "") -> Loss:
        """What is left: of a team's budget or the whole, the least in the periods of a bound."""
        now = self._now()
        payer = team and terms.payer(now, team, self.path)
        return now.accounts.left(payer, None if bound is None else bound.periods)

    def check(self, release: Release[Any], *, now: LedgerStatement | None = None) -> None:
        """Refuse a release that this ledger did not pay for as it says.

        To check many, read the ledger once: `now` is its statement.
        """
        delivery.check(self.statement() if now is None else now, release, self.path)

    def made_once(self, key: str, request: Any) -> Entry | None:
        """The entry of a request that was released under a key, or None; LedgerMismatch for another request."""
        return delivery.made_once(self, key, request)

    def undelivered(self) -> tuple[Kept, ...]:
        """What was paid for and not delivered, oldest first."""
        return delivery.undelivered(self)

    def kept(self, number: int) -> Kept:
        """What lies beside the ledger of one entry; InvalidInput where nothing does."""
        return delivery.kept(self, number)[0]

    def recover(self, number: int) -> Release[Any]:
        """The values that were drawn for an entry, from beside the ledger; it costs nothing."""
        return delivery.recover(self, number)

    def redraw(
        self,
        number: int,
        mechanism: Mechanism[T, U],
        guarded: Guarded[T],
        *,
        noise: Noise | None = None,
        attach: Callable[[Release[U]], Any] | None = None,
    ) -> Release[U]:
        """Draw the values of an entry whose process died before anybody saw any; it costs nothing.

        LedgerMismatch where it is not what the entry paid for, or values were drawn; LedgerBusy
        where a process draws them. Proof that it is one release: docs/proofs/ledger.md
        """
        source = SystemNoise() if noise is None else noise
        terms.check_guarded(self.header, guarded, source, self.path)
        terms.check_mechanism(self.header, mechanism, source, self.path)
        asked = entries.draft(mechanism, guarded, None, source)
        repeats = getattr(source, "repeats", False)
        entry, handle = delivery.take_over(self, number, asked, repeats=repeats)
        try:
            meant = entry.cost if isinstance(entry.cost, PureDP) else None
            if entries.paid(mechanism.cost(guarded.bound), meant) != entry.cost:
                raise delivery.another(self, entry, "cost")
        except BaseException:
            os.close(handle)
            raise
        return self._drawn(entry, mechanism, guarded, source, handle, attach)

    def delivered(self, number: int, *, remove: bool = True) -> None:
        """Say that values are where they belong: kept only if they have a key, or without `remove`."""
        delivery.delivered(self, number, remove=remove)

    def close(self, note: str = "") -> None:
        """End a ledger: it can be read, and pays for nothing any more."""
        moving.close(self, note)

    def move(self, to: str | Path | None = None) -> Ledger:
        """Move a ledger with what lies beside it; without a target, say that this file is the ledger now.

        The file that was moved is closed, and names its successor.
        """
        return moving.move(self, None if to is None else _file(to))

    def convert(self) -> None:
        """Bring a file of format 1 to format 2, as the next charge would."""
        with self.locked():
            pass

    @contextmanager
    def locked(self) -> Iterator[tuple[ledger_file.Book, Tally]]:
        """The ledger to this process alone; for this room."""
        if self._memory is not None:
            with ledger_file.unlocked(self._memory) as book:
                yield book, self._tally(book)
            return
        with self.held() as (held, now):
            yield held.book, now

    @contextmanager
    def held(self, *, anywhere: bool = False) -> Iterator[tuple[ledger_file.Held, Tally]]:
        """The same with its file, also of a copy if it may be `anywhere`; for this room."""
        with ledger_file.locked(self.path, anywhere=anywhere) as held:
            now = self._tally(held.book)
            if now.header != self.header:
                raise LedgerMismatch(
                    f"{self.path} was replaced since it was opened; nothing was charged"
                )
            yield held, now

    def find_row(self, words: str, fits: Callable[[Row], bool]) -> Row | None:
        """The last row with these words in it that fits; for this room."""
        if self._memory is not None:
            return next((row for row in reversed(self._memory.rows) if fits(row)), None)
        return ledger_file.find_row(self.path, words.encode("ascii"), fits)

    def _drawn(
        self,
        entry: Entry,
        mechanism: Mechanism[T, U],
        guarded: Guarded[T],
        noise: Noise,
        handle: int,
        attach: Callable[[Release[U]], Any] | None,
    ) -> Release[U]:
        """Open the data and sample; keep the values before anybody sees them."""
        try:
            value = mechanism.sample(open_for_release(guarded), noise)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            of = self.header
            promise = Guarantee(entry.cost, of.neighbors, of.unit, of.model, entry.computational)
            exponent = guarded.exponent if mechanism.additive else 0
            drawn = Release(value, exponent, promise, self.header.id, entry, self.header.rehearsal)
            if handle >= 0:
                delivery.keep(self, handle, drawn, None if attach is None else attach(drawn))
            return drawn
        finally:
            if handle >= 0:
                os.close(handle)

    def _book(self) -> ledger_file.Book:
        return self._memory or ledger_file.opened(self.path, whole=False)

    def _now(self) -> Tally:
        return self._tally(self._book())

    def _tally(self, book: ledger_file.Book) -> Tally:
        return tally_of(book.first, book.rows, str(self.path), in_memory=self._memory is not None)


def _stated(now: Tally, found: tuple[Entry, ...], written_as: int) -> LedgerStatement:
    return LedgerStatement(
        now.header,
        found,
        now.accounts,
        now.clock,
        now.tables,
        now.closed,
        now.head,
        now.entries,
        written_as,
    )


def _file(path: str | Path) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InvalidParameter(
            "a ledger is a file, made once by Ledger.create(path, budget, unit=..., source=...), "
            f"got {path!r}; nothing was charged"
        )
    return Path(path)
