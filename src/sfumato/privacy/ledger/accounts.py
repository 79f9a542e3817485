"""Who has spent how much: the whole, its teams, and each period of a unit that names one."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sfumato.errors import BudgetExceeded, InvalidParameter, NotComparable
from sfumato.privacy.accounting.losses import ZCDP, ApproxDP, Loss, PureDP
from sfumato.privacy.accounting.numbers import written
from sfumato.privacy.ledger.budget import Spent, charge, left

WHOLE = ""  # the team of all, and the period that stands for every one
REST = "*"  # who pays where teams have budgets and none is named: what no team was given
Key = tuple[str, str]  # a team and a period
Changes = dict[Key, Spent]


class Accounts:
    """What was spent: of the whole and of each team, and of each in every period that was charged.

    A charge that names periods is one to each of them: a unit lies in one period, and data of
    others does not move with it (docs/proofs/ledger.md). One that names none is one to all periods,
    those to come too.
    """

    def __init__(self, budgets: Mapping[str, Loss]) -> None:
        self.budgets = dict(budgets)
        self.spent = {team: {WHOLE: Spent()} for team in budgets}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Accounts):
            return NotImplemented
        return (self.budgets, self.spent) == (other.budgets, other.spent)

    __hash__ = None  # type: ignore[assignment]

    def after(
        self,
        cost: Loss,
        *,
        team: str = WHOLE,
        periods: tuple[str, ...] | None = None,
        sizes: Mapping[Key, Fraction] | None = None,
        before: Changes | None = None,
    ) -> Changes:
        """What a cost will have changed, or a refusal that names the period or team; nothing is written.

        `sizes` are those of accounts that this cost has opened already, when entries are read
        again; `before` are changes that count as made.
        """
        changes: Changes = {}
        for who in (WHOLE, team) if team else (WHOLE,):
            for period in periods or self.spent[who]:
                size = None if sizes is None else sizes.get((who, period))
                try:
                    changes[who, period] = charge(
                        self.budgets[who], self.of(who, period, before), cost, account=size
                    )
                except (BudgetExceeded, NotComparable) as refusal:
                    raise type(refusal)(f"{refusal}{_whose(who, period)}") from None
        return changes

    def of(self, team: str = WHOLE, period: str = WHOLE, before: Changes | None = None) -> Spent:
        """What is spent of a team's budget in a period: what was charged to all, if it is untouched."""
        for place in (period, WHOLE):
            found = (before or {}).get((team, place)) or self.spent[team].get(place)
            if found is not None:
                return found
        raise AssertionError("every team has a sum for all periods")

    def opened(self, changes: Changes) -> dict[Key, Fraction]:
        """The sizes of the accounts that changes open."""
        return {
            key: now.account
            for key, now in changes.items()
            if now.account is not None and self.of(*key).account is None
        }

    def take(self, changes: Changes) -> None:
        """Write changes down."""
        for (team, period), now in changes.items():
            self.spent[team][period] = now

    def left(self, team: str = WHOLE, periods: tuple[str, ...] | None = None) -> Loss:
        """The least that is left in these periods; without any, in one that is untouched."""
        found = [left(self.budgets[team], self.of(team, period)) for period in periods or (WHOLE,)]
        # Where some accounts are open, they are those that were charged more.
        open_ = [loss for loss in found if isinstance(loss, ZCDP)]
        return min(open_ or found, key=_size)

    def to_json(self) -> dict[str, Any]:
        """Every sum: team, then period."""
        return {
            team: {period: _row(spent) for period, spent in of.items()}
            for team, of in self.spent.items()
        }

    @staticmethod
    def from_json(budgets: Mapping[str, Loss], data: Any) -> Accounts:
        """The sums a JSON object states."""
        found = Accounts(budgets)
        if data.keys() != found.spent.keys() or any(WHOLE not in of for of in data.values()):
            raise ValueError("its sums are not those of its teams")
        for team, of in data.items():
            for period, row in of.items():
                epsilon, delta, rho = map(_read, row[:3])
                account = None if row[3] is None else _read(row[3])
                found.spent[team][period] = Spent(epsilon, delta, rho, account)
        return found


def budgets_of(budget: Loss, teams: Mapping[str, Loss]) -> dict[str, Loss]:
    """The whole, each team, and what no team was given; refused where teams were given more than all."""
    if not teams:
        return {WHOLE: budget}
    rest = budget
    for team, share in teams.items():
        try:
            rest = _less(rest, share)
        except InvalidParameter:
            raise InvalidParameter(
                f"the budgets of teams must add up to at most the whole, {budget}, and be of its kind, "
                f"got {' and '.join(f'{one} for {name}' for name, one in teams.items())}; nothing was made"
            ) from None
        if not team or team == REST or not team.isprintable():
            raise InvalidParameter(
                f"a team is a printable name other than {REST!r}, got {team!r}; nothing was made"
            )
    return {WHOLE: budget, **teams, REST: rest}


def _less(whole: Loss, share: Loss) -> Loss:
    match whole, share:
        case PureDP(all_), PureDP(part):
            return PureDP(all_ - part)
        case ApproxDP(all_, most), ApproxDP(part, some):
            return ApproxDP(all_ - part, most - some)
        case ZCDP(all_), ZCDP(part):
            return ZCDP(all_ - part)
        case _:
            raise InvalidParameter("they are of different kinds")


def _whose(team: str, period: str) -> str:
    of = {WHOLE: "", REST: " of what no team has (name one)"}.get(team, f" of the team {team}")
    return f"{of}{f' for {period}' if period else ''}"


def _size(loss: Loss) -> Fraction:
    return loss.rho if isinstance(loss, ZCDP) else loss.epsilon


def _row(spent: Spent) -> list[str | None]:
    numbers = (spent.epsilon, spent.delta, spent.rho)
    return [*map(_text, numbers), None if spent.account is None else _text(spent.account)]


def _text(number: Fraction) -> str:
    """A sum as text: sums of long fractions can have more digits than Python reads, which hex has not."""
    if number.denominator.bit_length() < 10_000 and number.numerator.bit_length() < 10_000:
        return written(number)
    return f"{number.numerator:#x}/{number.denominator:#x}"


def _read(text: str) -> Fraction:
    top, _, bottom = text.partition("/")
    return Fraction(int(top, 0), int(bottom or "1", 0))
