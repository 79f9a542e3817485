"""May this be spent? A privacy filter over adaptively chosen releases, in exact fractions.

Proof that what it lets through keeps the budget: docs/proofs/ledger.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR
from fractions import Fraction
from typing import assert_never

from sfumato.errors import BudgetExceeded, NotComparable
from sfumato.privacy.accounting.conversion import as_zcdp, rho_within
from sfumato.privacy.accounting.losses import ZCDP, ApproxDP, Loss, PureDP
from sfumato.privacy.accounting.numbers import plain


@dataclass(frozen=True, slots=True)
class Spent:
    """What has been charged: pure and approximate losses by sum, Gaussian ones by a zCDP account.

    `account` is the size of that account in rho. It opens at the first Gaussian charge with all
    that is left of epsilon and delta then, and pays for everything from there on.
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    account: Fraction | None = None

    def __str__(self) -> str:
        if self.rho or self.account is not None:
            before = (
                f"{ApproxDP(self.epsilon, self.delta)} and " if self.epsilon or self.delta else ""
            )
            size = "" if self.account is None else f" of {plain(self.account)}"
            return f"{before}rho {plain(self.rho)}{size}"
        return str(ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon))


def charge(budget: Loss, spent: Spent, cost: Loss, *, account: Fraction | None = None) -> Spent:
    """What will have been spent after a cost, or BudgetExceeded when the budget does not hold it.

    `account` is the size of an account that this cost has opened already, when entries are read
    again.

    >>> charge(PureDP(1), Spent(epsilon=Fraction(1, 2)), PureDP("1/2")).epsilon
    Fraction(1, 1)
    """
    match budget:
        case PureDP():
            return _add(budget, spent, cost)
        case ZCDP(rho):
            return _draw(rho, spent, cost)
        case ApproxDP(epsilon, delta):
            if spent.account is None and not isinstance(cost, ZCDP):
                return _add(budget, spent, cost)
            # Pure DP bounds the loss so far; what is left is one (epsilon, delta) statement for all
            # that follows.
            size = account if spent.account is None else spent.account
            if size is None:
                size = rho_within(epsilon - spent.epsilon, delta - spent.delta)
            return replace(_draw(size, spent, cost), account=size)
        case _:
            assert_never(budget)


def left(budget: Loss, spent: Spent) -> Loss:
    """What the budget still holds."""
    match budget:
        case PureDP(epsilon):
            return PureDP(epsilon - spent.epsilon)
        case ZCDP(rho):
            return ZCDP(rho - spent.rho)
        case ApproxDP(epsilon, delta):
            if spent.account is not None:
                return ZCDP(spent.account - spent.rho)
            return ApproxDP(epsilon - spent.epsilon, delta - spent.delta)
        case _:
            assert_never(budget)


def at_most(loss: Loss) -> str:
    """A loss as people read it, to 6 digits, never more than it is: for what is left of a budget.

    Args:
        loss: The loss.

    Returns:
        The words, rounded down.

    Example:
        >>> at_most(PureDP("2/3")), str(PureDP("2/3"))
        ('epsilon 0.666666', 'epsilon 0.666667')

    """
    match loss:
        case PureDP(epsilon):
            return f"epsilon {_left(epsilon)}"
        case ApproxDP(epsilon, delta):
            return f"epsilon {_left(epsilon)}, delta {_left(delta)}"
        case ZCDP(rho):
            return f"rho {_left(rho)}"
        case _:
            assert_never(loss)


def several_refused(costs: Sequence[Loss], fit: int, remaining: Loss, refusal: str) -> str:
    """What was asked and what is left, where some of several costs fit; which of epsilon and delta ended."""
    if len(costs) == 1:
        return refusal
    if len(set(costs)) == 1:
        what = f"asked {len(costs)} times {costs[0]}, {at_most(remaining)} left, enough for {fit}"
    else:
        what = f"asked {' and '.join(map(str, costs))}, {at_most(remaining)} left"
    name = refusal.split()[1]
    both = isinstance(remaining, ApproxDP) and name in ("epsilon", "delta")
    return f"{what}: {name} runs out first" if both else what


def _add(budget: PureDP | ApproxDP, spent: Spent, cost: Loss) -> Spent:
    match cost:
        case PureDP(epsilon):
            delta = Fraction(0)
        case ApproxDP(epsilon, delta):
            pass
        case ZCDP():
            raise NotComparable(
                f"a budget of {budget} has no delta and cannot pay for Gaussian noise ({cost})"
            )
        case _:
            assert_never(cost)
    allowed = budget.delta if isinstance(budget, ApproxDP) else Fraction(0)
    if spent.epsilon + epsilon > budget.epsilon:
        raise BudgetExceeded(
            f"asked epsilon {plain(epsilon)}, {_left(budget.epsilon - spent.epsilon)} left"
        )
    if spent.delta + delta > allowed:
        raise BudgetExceeded(f"asked delta {plain(delta)}, {_left(allowed - spent.delta)} left")
    return replace(spent, epsilon=spent.epsilon + epsilon, delta=spent.delta + delta)


def _draw(size: Fraction, spent: Spent, cost: Loss) -> Spent:
    asked = as_zcdp(cost).rho
    if spent.rho + asked > size:
        meant = f" (for {cost})" if not isinstance(cost, ZCDP) else ""
        raise BudgetExceeded(f"asked rho {plain(asked)}{meant}, {_left(size - spent.rho)} left")
    return replace(spent, rho=spent.rho + asked)


def _left(amount: Fraction) -> str:
    return plain(amount, rounding=ROUND_FLOOR)
