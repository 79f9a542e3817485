"""What a device does: find its cell, pay its own ledger, answer once. Nothing heavy is imported here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.local.channels import Channel
from sfumato.heatmap.local.odds import Report, Uniform, odds_below
from sfumato.heatmap.local.question import Question
from sfumato.privacy.accounting import Number, exact, plain

if TYPE_CHECKING:
    from sfumato._types import IntArray
    from sfumato.privacy import Bound, Guarded, Ledger, Noise, PureDP, Release

FORMAT = "sfumato-local-answer/1"
SOURCE = "this device"
# Masses of a device's places are integers up to this.
MAX_MASS = 2**32
LONGEST_NAME = 120
# How often, and with what pause in seconds, an answer that another process draws is looked for.
TRIES, PAUSE = 50, 0.1


class RandomBytes:
    """Integers from random bytes, by rejection: the rule of docs/reference/local-answers.md.

    Args:
        read: Gives so many bytes, all values equally likely; the system's by default.
    """

    def __init__(self, read: Callable[[int], bytes] = os.urandom) -> None:
        self.read = read

    def uniform(self, below: int, size: int) -> list[int]:
        """Each from the fewest bytes that hold below - 1, big endian, upper bits off; again if too large."""
        bits = (below - 1).bit_length()
        found: list[int] = []
        while len(found) < size:
            raw = self.read(-(-bits // 8))
            drawn = int.from_bytes(raw, "big") & ((1 << bits) - 1)
            if drawn < below:
                found.append(drawn)
        return found


@dataclass(frozen=True, slots=True)
class LocalAnswer:
    """Draw one of a user's places by mass, and report its cell through a channel.

    A user without a place in the map has one drawn evenly from all cells.

    Privacy: PureDP(epsilon), local, for a replaced user. Proof: docs/proofs/local-channels.md
    """

    channel: Channel
    epsilon: Fraction
    name: ClassVar[str] = "local-answer/1"
    additive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.channel.odds > odds_below(self.epsilon):
            raise InvalidParameter(
                f"the odds of a channel must be at most e**{self.epsilon}, got "
                f"{float(self.channel.odds):.6g}: it would tell more than it pays for; nothing was charged"
            )

    @property
    def law(self) -> Channel:
        """What a report is drawn from, given the cell."""
        return self.channel

    def cost(self, bound: Bound) -> PureDP:
        """Epsilon, whatever the places are."""
        from sfumato.privacy import PureDP, ReplaceUser

        if not isinstance(bound.neighbors, ReplaceUser) or bound.model != "local":
            raise InvalidParameter(
                "a local answer is of the local model and of replaced users, got "
                f"{bound.model} and {bound.neighbors}; nothing was charged"
            )
        return PureDP(self.epsilon)

    def draws(self, bound: Bound) -> int:
        """One for the place, and at most two for each cell."""
        return 1 + 2 * bound.size

    def sample(self, values: IntArray, noise: Noise) -> IntArray:
        """One report, as integers."""
        import numpy as np

        return np.array(report_of(self.channel, values.tolist(), noise), dtype=np.int64)


def report_of(channel: Channel, masses: Iterable[int], noise: Uniform) -> Report:
    """The report of a user with these masses in the cells: one cell by mass, then the channel.

    Args:
        channel: How it is told.
        masses: A non-negative integer for each cell.
        noise: Where integers come from.

    Returns:
        The report.

    """
    held = list(masses)
    total = sum(held)
    if total == 0:
        held, total = [1] * channel.cells, channel.cells
    drawn = noise.uniform(total, 1)[0]
    cell = 0
    while drawn >= held[cell]:
        drawn -= held[cell]
        cell += 1
    return channel.sample(cell, noise)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a device sends: which question, who it is, and its report.

    Attributes:
        question: The digest of the question.
        device: Its name, by which a second answer is refused; a pseudonym will do.
        report: What the channel drew.
        again: Whether it is the answer that was given before, and cost nothing now.
    """

    question: str
    device: str
    report: Report
    again: bool = False

    def to_json(self) -> dict[str, Any]:
        """What is sent; whether it was sent before is not."""
        return {
            "format": FORMAT,
            "question": self.question,
            "device": self.device,
            "report": list(self.report),
        }

    @classmethod
    def from_json(cls, data: Any) -> Answer:
        """What `to_json` wrote; InvalidInput for anything else."""
        try:
            if data["format"] != FORMAT:
                raise ValueError(f"its format is {data['format']!r}")
            report = tuple(data["report"])
            if any(type(one) is not int for one in report):
                raise ValueError("a report is integers")
            question, device = data["question"], data["device"]
            if type(question) is not str or type(device) is not str:
                raise ValueError("question and device are text")
        except (KeyError, TypeError, ValueError) as problem:
            raise InvalidInput(f"this is no answer to a local question: {problem}") from None
        return cls(question, _named(device), report)


def answer(
    question: Question,
    places: Iterable[tuple[float, float, int]],
    *,
    device: str,
    ledger: str | Path,
    budget: Number | None = None,
    at_most: Number | None = None,
) -> Answer:
    """Answer a question once: charge the device's own ledger, then draw.

    The same question again gets the same answer, at no cost: it is kept beside the ledger, and never
    drawn anew. Another question of the same campaign is refused. One of another campaign costs its own
    epsilon, and is refused when the budget does not hold it.

    Args:
        question: What is asked; its odds were checked against its epsilon when it was read.
        places: x, y and a mass, a whole number, of each of the user's places; those outside the
            bounds are left out.
        device: The device's name: which round asks it is a hash of this.
        ledger: The device's own ledger, of the local model.
        budget: Make the ledger, if there is none, with this epsilon for all campaigns together; one
            that exists must have this budget.
        at_most: The largest epsilon that a single question may ask for; no limit but the budget if
            None.

    Returns:
        The answer.

    Raises:
        InvalidInput: The question does not ask this device or asks for more than `at_most`, or a
            place is none.
        BudgetExceeded: The ledger does not hold its epsilon; nothing was drawn.
        LedgerMismatch: The device answered another question of this campaign, or its ledger has another
            budget; nothing was drawn.

    """
    from sfumato.errors import LedgerMismatch, ReleasedAlready
    from sfumato.privacy import Bound, Ledger, PureDP, ReplaceUser, guard

    name = _named(device)
    if not question.asks(name):
        raise InvalidInput(
            f"round {question.round} of {question.campaign!r} does not ask {name!r}: its lot is in the "
            "other part; nothing was charged"
        )
    if at_most is not None and question.epsilon > exact(at_most, name="at_most"):
        raise InvalidInput(
            f"a question may cost epsilon {at_most} here at most, this one costs "
            f"{plain(question.epsilon)}; nothing was charged"
        )
    masses = [0] * len(question.cells)
    for x, y, mass in places:
        if type(mass) is not int or not 0 < mass < MAX_MASS:
            raise InvalidInput(
                f"a mass is a whole number of 1..{MAX_MASS - 1}; nothing was charged"
            )
        if not (x == x and y == y):
            raise InvalidInput("a place is two numbers, one is none; nothing was charged")
        cell = question.cell_of(x, y)
        if cell is not None:
            masses[cell] += mass
    if max(masses) > MAX_MASS:
        raise InvalidInput(
            f"masses of places in one cell add up to at most {MAX_MASS}; nothing was charged"
        )
    path = Path(ledger)
    if budget is not None and not path.exists():
        Ledger.create(
            path, budget, unit="user", source=SOURCE, neighbors=ReplaceUser(), model="local"
        )
    book = Ledger(path)
    if budget is not None and book.header.budget != PureDP(exact(budget, name="budget")):
        raise LedgerMismatch(
            f"{path} has the budget {book.header.budget}, and keeps it, got `budget` {budget}; nothing was "
            "charged"
        )
    mechanism = LocalAnswer(question.channel, question.epsilon)
    key, request = f"local {question.campaign}", {"question": question.digest}
    bound = Bound(ReplaceUser(), len(masses), linf=MAX_MASS, model="local")
    guarded = guard(masses, bound, source=SOURCE)
    made = book.made_once(key, request)
    try:
        if made is None:
            paid = book.release(mechanism, guarded, request=request, once=key)
            book.delivered(paid.entry.number, remove=False)
            return Answer(question.digest, name, _report(paid))
        number = made.number
    except ReleasedAlready as other:  # by another process, just now
        number = other.number
    report, again = _paid_before(book, number, mechanism, guarded)
    return Answer(question.digest, name, report, again=again)


def _paid_before(
    book: Ledger, number: int, mechanism: LocalAnswer, guarded: Guarded[IntArray]
) -> tuple[Report, bool]:
    """The answer that an entry paid for, and whether it was drawn before.

    One that was lost in a crash before anybody saw it is drawn now, at no further cost. While another
    process draws it, it is waited for; LedgerBusy in the end.
    """
    from sfumato.errors import LedgerBusy

    tries = 0
    while True:
        tries += 1
        try:
            kept = book.kept(number)
            if kept.drawn:
                return _report(book.recover(number)), True
        except InvalidInput:
            raise InvalidInput(
                f"entry {number} of {book.path} paid for this question, but what was drawn is no longer "
                "beside it, and may have been seen; it is not drawn again"
            ) from None
        if not kept.alive or tries == TRIES:
            try:
                drawn = book.redraw(number, mechanism, guarded)
            except LedgerBusy:
                if tries == TRIES:
                    raise
            else:
                book.delivered(number, remove=False)
                return _report(drawn), False
        time.sleep(PAUSE)


def _report(drawn: Release[Any]) -> Report:
    return tuple(int(one) for one in drawn.value)


def _named(device: str) -> str:
    if not (device and device.isprintable() and len(device) <= LONGEST_NAME):
        raise InvalidInput(
            f"the name of a device is 1 to {LONGEST_NAME} printable letters, got {device[:40]!r}; nothing "
            "was done"
        )
    return device
