"""What epsilon means to one person, in odds that a jury would understand."""

from __future__ import annotations

import math

from sfumato.privacy.accounting import Number, exact


def odds_words(epsilon: Number, unit: str = "user") -> str:
    """What a map of this epsilon can tell about one person: odds before it, and after.

    Args:
        epsilon: What the map would cost, above 0.
        unit: What the ledger protects.

    Returns:
        Two sentences. Odds are rounded outward, never towards a better promise.

    Raises:
        InvalidParameter: Epsilon is no number.

    >>> odds_words(1).partition(": ")[2]
    'odds of 1 to 1 become at most 2.72 to 1.'
    """
    times = math.exp(min(float(exact(epsilon, name="epsilon")), 700.0))
    chance = min(100.0, math.ceil(1000 * times / (1 + times)) / 10)
    sure = f"{chance:g} %" if chance < 100 else "almost 100 %"
    if times < 1000:
        worth = f"{math.ceil(100 * times) / 100:,.2f}"
    else:
        worth = f"{math.ceil(times):,}" if times < 1e9 else f"{times * 1.01:.2g}"
    return (
        f"Say somebody thinks it 50:50 that one {unit} is in the data. Whatever the map shows, and "
        f"whatever else they know, it takes them no further than {sure} sure that the {unit} is, or "
        f"{sure} sure that not: odds of 1 to 1 become at most {worth} to 1."
    )
