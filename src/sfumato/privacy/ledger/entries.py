"""How an entry is made, and read back before it is committed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting.codec import canonical, parameters
from sfumato.privacy.accounting.losses import ZCDP, ApproxDP, Loss, PureDP
from sfumato.privacy.accounting.numbers import Number, exact
from sfumato.privacy.ledger.guarded import Guarded
from sfumato.privacy.ledger.release import Entry
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.privacy.mechanisms.protocol import Mechanism
from sfumato.privacy.noise.protocol import Noise


def share_of(whole: Loss, share: Loss | Number) -> Loss:
    """The budget of a team: a loss, or a number that has its part of delta."""
    if isinstance(share, Loss):
        return share
    part = exact(share, name="the budget of a team")
    match whole:
        case ZCDP():
            return ZCDP(part)
        case ApproxDP(epsilon, delta) if epsilon:
            return ApproxDP(part, delta * part / epsilon)
        case PureDP() | ApproxDP():  # an epsilon of 0 has no part of a delta
            return PureDP(part)


def draft(
    mechanism: Mechanism[Any, Any], guarded: Guarded[Any], cost: Loss | None, noise: Noise
) -> Entry:
    """What an entry says of a mechanism and its data, before it has a number."""
    bound = guarded.bound
    return Entry(
        number=0,
        time="",
        mechanism=mechanism.name,
        parameters=parameters(mechanism),
        cost=mechanism.cost(bound) if cost is None else cost,
        computational=None if noise.distance is None else noise.distance * mechanism.draws(bound),
        account=None,
        note="",
        hash="",
        clock=bound.clock,
        periods=bound.periods,
        table=guarded.table,
        bound=bound.to_json() if cost is None else None,
    )


def appended(book: ledger_file.Book, entry: Entry) -> Entry:
    """The entry as it reads when it is written; refused, before it is committed, where that differs."""
    try:
        body = entry.to_json()
        del body["hash"]
        ledger_file.append(book, body)
        text, _, head = book.pending[-1]
        kept = Entry.from_json({**json.loads(text), "hash": head})
        same = canonical(kept.to_json()) == canonical({**body, "hash": head})
    except (TypeError, ValueError, ArithmeticError, RecursionError) as problem:
        raise otherwise(str(problem)) from problem
    # Parameters are compared as text: tuples in them read as lists.
    if not same or replace(kept, parameters={}) != replace(entry, parameters={}, hash=head):
        raise otherwise("it would read otherwise")
    return kept


def otherwise(why: str) -> InvalidParameter:
    """The refusal of an entry that could not be read again."""
    return InvalidParameter(f"an entry must read as it was written: {why}; nothing was charged")


def paid(cost: Loss, pay: PureDP | None) -> Loss:
    """What is charged for a cost: itself, or what is paid instead, if that covers it."""
    if pay is None:
        return cost
    if not (isinstance(cost, PureDP) and cost.epsilon <= pay.epsilon):
        raise InvalidParameter(
            f"a release must pay its cost of {cost} at least, got {pay}; nothing was charged"
        )
    return pay
