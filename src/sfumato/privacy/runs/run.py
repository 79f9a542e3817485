"""Carry out a request: each part is released, or found as an earlier attempt has paid for it."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sfumato.errors import InvalidInput, LedgerBusy, LedgerMismatch, ReleasedAlready, SfumatoError
from sfumato.privacy.accounting.codec import canonical, parameters
from sfumato.privacy.accounting.losses import PureDP
from sfumato.privacy.ledger import delivery
from sfumato.privacy.ledger.guarded import Guarded
from sfumato.privacy.ledger.ledger import Ledger
from sfumato.privacy.ledger.release import Release
from sfumato.privacy.ledger.storage.store import Kept
from sfumato.privacy.mechanisms.protocol import Mechanism
from sfumato.privacy.noise.protocol import Noise
from sfumato.privacy.runs.kept import KeptRun
from sfumato.privacy.runs.locks import alone
from sfumato.privacy.runs.undelivered import check_repeat, warn_of

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a ledger, as JSON can hold it, without passwords.

    Attributes:
        kind: What it is, with its version: "heatmap/1".
        command: The command that finishes it: "heatmap" for `sfumato heatmap resume`.
        asked: What makes it this request: data, columns, area, method, epsilon.
        delivery: Where and how results are written, which may change and costs nothing.
        what: What is kept of it, in the plural, for messages.
        finish: How it is finished, where that is not by `resume`.
        telling: Whether `asked` tells this request from the next one of its kind.

    """

    kind: str
    command: str
    asked: dict[str, Any]
    delivery: dict[str, Any]
    what: str = "counts"
    finish: str = ""
    telling: bool = True


class Run:
    """One request on its way: made of parts in order, each of them one release.

    With a key (`once`) the parts that were made under it are found again, whoever made them; so are
    those of a `KeptRun`. `charged` says how many this run has paid for itself. What the same request
    has paid for and not delivered is not paid for again, unless `anew` says so. Use it as a context:
    it holds a lock (that of a `KeptRun` is held by `resume_runs`, which has read it under it), and
    whatever goes wrong inside says what was charged.
    """

    def __init__(
        self,
        request: Request,
        *,
        once: str = "",
        kept: KeptRun | None = None,
        anew: bool = False,
    ) -> None:
        self.request, self.once, self._anew = request, once, anew
        self.charged = self._parts = 0
        if kept is not None:
            self.name = kept.run
            self.once = kept.run.removeprefix("once ") if kept.run.startswith("once ") else ""
        else:
            self.name = f"once {once}" if once else secrets.token_hex(16)
        self._kept = {} if kept is None else dict(kept.parts)
        self._resumed = kept is not None
        self._ledgers: list[Ledger] = []
        self._made: list[tuple[Ledger, int]] = []

    @property
    def made_before(self) -> bool:
        """Whether every part was there already, so that this run has charged nothing."""
        return self._parts > 0 and self.charged == 0

    def made(self, ledger: Ledger, part: str = "", *, number: int = 0) -> bool:
        """Whether a part was paid for before; LedgerMismatch where its key is another request's."""
        return self._number(ledger, part, number) is not None

    def drawn(self, ledger: Ledger, part: str = "", *, number: int = 0) -> bool:
        """Whether the values of a part are there already, so that no data is needed for it."""
        entry = self._number(ledger, part, number)
        return entry is not None and ledger.kept(entry).drawn

    def release(
        self,
        ledger: Ledger,
        mechanism: Mechanism[T, U],
        guarded: Callable[[], Guarded[T]],
        *,
        part: str = "",
        noise: Noise | None = None,
        pay: PureDP | None = None,
        note: str = "",
        attach: Callable[[Release[U]], Any] | None = None,
        **terms: Any,
    ) -> tuple[Release[U], Any]:
        """One part: what was released, and what was attached to it.

        `guarded` reads the data, and is called only where something is drawn; `terms` are further
        keywords of `Ledger.release`.
        """
        if ledger.header.rehearsal:
            drawn = ledger.release(mechanism, guarded(), noise=noise, pay=pay, note=note, **terms)
            self.charged, self._parts = self.charged + 1, self._parts + 1
            return drawn, None if attach is None else attach(drawn)
        at = self._parts
        self._parts += 1
        if all(one.path != ledger.path for one in self._ledgers):
            self._ledgers.append(ledger)
        number = self._number(ledger, part, at)
        if number is None:
            data = guarded()
            said: list[Any] = []

            def noted(made: Release[U]) -> Any:
                said.append(None if attach is None else attach(made))
                return said[-1]

            try:
                drawn = ledger.release(
                    mechanism,
                    data,
                    noise=noise,
                    pay=pay,
                    note=note,
                    request=self._request(part, at),
                    once=self._key(part),
                    attach=noted,
                    **terms,
                )
            except ReleasedAlready as made:  # by another process, just now
                number = made.number
            else:
                self.charged += 1
                self._made.append((ledger, drawn.entry.number))
                return drawn, said[-1]
        found = self._found(ledger, number, mechanism, guarded, noise, attach)
        self._made.append((ledger, number))
        return found

    def delivered(self) -> None:
        """Tick everything off: results are where they belong."""
        _tick_off(self._made)
        self._made.clear()

    def give_up(self) -> None:
        """Leave what was paid for and not drawn: it is not released, unless it has a key to come back by."""
        for path, one in self._kept.values():
            if not one.drawn and not one.entry.once:
                delivery.give_up(Ledger(path), one.entry.number)

    def tick_off(self) -> None:
        """The same for a run that had begun to, when all of its results were written."""
        _tick_off([(Ledger(path), one.entry.number) for path, one in self._kept.values()])

    @contextmanager
    def on(self, *ledgers: Ledger) -> Iterator[Run]:
        """Carry it out on these ledgers: alone, and whatever goes wrong says what was charged."""
        self._ledgers = list({one.path: one for one in ledgers}.values())
        if not self._resumed and not self.request.finish:
            warn_of(check_repeat(self._ledgers, self.request, run=self.name, anew=self._anew))
        with nullcontext() if self._resumed else alone(self._ledgers[0], self.name):
            try:
                yield self
            except BaseException as problem:
                told = self.undelivered_text()
                if not told and isinstance(problem, KeyboardInterrupt):
                    told = "nothing was charged"
                if told and isinstance(problem, SfumatoError):
                    problem.args = (f"{problem}; {told}", *problem.args[1:])
                elif told:
                    problem.add_note(told)
                raise

    def undelivered_text(self) -> str:
        """What this request has paid for and not delivered, in a sentence; nothing if there is none."""
        return "; ".join(filter(None, map(self._told, self._ledgers)))

    def _told(self, ledger: Ledger) -> str:
        try:
            mine = [
                one
                for one in ledger.undelivered()
                if isinstance(one.request, dict) and one.request.get("run") == self.name
            ]
        except (SfumatoError, OSError) as problem:
            return f"what was charged cannot be said ({problem}): sfumato ledger show {ledger.path}"
        if not mine:
            # Values that no file can hold are not kept; that they were paid for is said.
            lost = [str(number) for one, number in self._made if one.path == ledger.path]
            paid = f"entries {', '.join(lost)} of {ledger.path} were charged"
            return paid if lost and self.charged else ""
        path = shlex.quote(str(ledger.path))
        finish = self.request.finish or f"sfumato {self.request.command} resume {path}"
        if len(mine) == 1:
            (one,) = mine
            what = f"entry {one.entry.number} of {ledger.path}, {one.entry.cost}, was charged"
            kept = f"its {self.request.what} are kept" if one.drawn else "nothing was drawn yet"
        else:
            each = ", ".join(f"{one.entry.number} ({one.entry.cost})" for one in mine)
            what = f"entries {each} of {ledger.path} were charged"
            whole = all(one.drawn for one in mine)
            kept = f"their {self.request.what} are kept" if whole else "what was drawn is kept"
        return f"{what} and {kept}: {finish}"

    def _request(self, part: str, number: int) -> dict[str, Any]:
        return {
            "kind": self.request.kind,
            "run": self.name,
            "part": part,
            "number": number,
            "asked": self.request.asked,
            "delivery": self.request.delivery,
        }

    def _key(self, part: str) -> str:
        return f"{self.once} / {part}" if self.once and part else self.once

    def _number(self, ledger: Ledger, part: str, at: int) -> int | None:
        """The entry that has paid for a part, if one has."""
        if part in self._kept:
            return self._kept[part][1].entry.number
        if not self.once or ledger.header.rehearsal:
            return None
        entry = ledger.made_once(self._key(part), self._request(part, at))
        return None if entry is None else entry.number

    def _found(
        self,
        ledger: Ledger,
        number: int,
        mechanism: Mechanism[T, U],
        guarded: Callable[[], Guarded[T]],
        noise: Noise | None,
        attach: Callable[[Release[U]], Any] | None,
    ) -> tuple[Release[U], Any]:
        kept: Kept = ledger.kept(number)
        if kept.alive:
            raise LedgerBusy(
                f"entry {number} of {ledger.path} is being drawn by another process; try later"
            )
        if not kept.drawn:
            drawn = ledger.redraw(number, mechanism, guarded(), noise=noise, attach=attach)
            return drawn, ledger.kept(number).attached
        entry = kept.entry
        same = canonical(entry.parameters) == canonical(parameters(mechanism))
        if entry.mechanism != mechanism.name or not same:
            raise LedgerMismatch(
                f"entry {number} of {ledger.path} paid for {entry.mechanism} with other parameters than "
                f"{mechanism.name} would have now; nothing was made of it"
            )
        found = ledger.recover(number)
        restore = getattr(mechanism, "restore", None)
        if restore is not None:
            found = replace(found, value=restore(found.value))
        return found, kept.attached


def _tick_off(parts: list[tuple[Ledger, int]]) -> None:
    """Say of all that they were delivered, and only then take them away: one that says so vouches for all."""
    for remove in (False, True) if len(parts) > 1 else (True,):
        for ledger, number in parts:
            # Whoever moved the ledger meanwhile has taken it along.
            with suppress(InvalidInput):
                ledger.delivered(number, remove=remove)
