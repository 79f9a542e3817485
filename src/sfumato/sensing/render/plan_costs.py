"""What many readings cost, in words: together, by a ledger, and if they share a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.privacy import ZCDP, ApproxDP
from sfumato.sensing.render.words import listed, many, up

if TYPE_CHECKING:
    from sfumato.sensing.release.rounds import RoundsCost
    from sfumato.sensing.results.plan import SensorPlan


def cost_lines(plan: SensorPlan) -> list[str]:
    """What many readings cost; and if so many share the cost, what each of them may."""
    rows, shared = plan.costs, plan.shared
    numbers = listed([f"{row.readings:,}" for row in rows])
    what = "reading" if len(rows) == 1 and rows[0].readings == 1 else "readings"
    # One reading costs what was asked; computed from its noise, it is that up to rounding.
    loss = plan.design.loss
    asked = float(loss.epsilon) if isinstance(loss, ApproxDP) else math.inf
    costs = listed(
        [up(min(row.epsilon, asked) if row.readings == 1 else row.epsilon) for row in rows]
    )
    lines = [
        f"after {numbers} {what} of the same sources epsilon is {costs}, at delta {float(plan.delta):g}"
    ]
    if plan.readings is None:
        lines += _charged(rows)
    if shared is not None:
        count, stated = shared.readings, shared.stated
        lines.insert(
            0,
            f"{many(count, 'reading')} together may cost {shared.total}, so each has {shared.each}, as "
            f"`sfumato sense release --share {count}` pays it; it states all of them as {shared.together} "
            f"(epsilon {up(float(stated.epsilon))} at delta {float(stated.delta):g}), the same promise",
        )
    return lines


def _charged(rows: Sequence[RoundsCost]) -> list[str]:
    """What a ledger adds up if each reading is paid like this one: epsilon and delta add, and so does rho."""
    paid = "a ledger that pays each reading like this one adds up"
    shared = "`readings=24` plans 24 of them"
    rho = [up(float(row.charged.rho), 5) for row in rows if isinstance(row.charged, ZCDP)]
    if rho:
        return [
            f"{paid} rho {listed(rho)}, which is that epsilon",
            f"readings can share a budget: {shared}",
        ]
    said = [
        f"after {row.readings:,} epsilon {up(float(row.charged.epsilon), 5)}, delta "
        f"{up(float(row.charged.delta), 5)}"
        for row in rows
        if row.readings > 1 and isinstance(row.charged, ApproxDP)
    ]
    beyond = [row.readings for row in rows if row.charged is None]
    if beyond:
        said.append(f"after {beyond[0]:,} a delta of 1 or more, which no budget has")
    return [
        f"{paid} epsilon and delta: {'; '.join(said)}",
        f"readings that share a budget take less of it: {shared}",
    ]
