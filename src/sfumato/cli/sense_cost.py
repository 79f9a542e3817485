"""What many readings cost, in words: together, by a ledger, and if they share a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfumato.cli.sense_words import listed, many, up

if TYPE_CHECKING:
    from sfumato.privacy import ZCDP, ApproxDP
    from sfumato.sensing import NoisePlan
    from sfumato.sensing.planning import Design
    from sfumato.sensing.release import RoundsCost

STATED = "1e-6"  # the delta at which `sense release` says what a rho means


def after_readings(
    design: Design, planned: NoisePlan, total: ZCDP | ApproxDP, readings: int | None
) -> tuple[dict[str, Any], list[str]]:
    """What many readings cost; and if so many share the cost, what each of them may."""
    from sfumato.privacy import ZCDP, as_approx
    from sfumato.privacy.accounting import encode
    from sfumato.sensing.release import DAY, cost_after

    delta = delta_of(total)
    rows = cost_after(planned, DAY if readings is None else sorted({1, readings}), delta=delta)
    numbers = listed([f"{row.readings:,}" for row in rows])
    what = "reading" if len(rows) == 1 and rows[0].readings == 1 else "readings"
    # One reading costs what was asked; computed from its noise, it is that up to rounding.
    asked = getattr(design.loss, "epsilon", math.inf)
    costs = listed(
        [up(min(row.epsilon, asked) if row.readings == 1 else row.epsilon) for row in rows]
    )
    lines = [
        f"after {numbers} {what} of the same sources epsilon is {costs}, at delta {float(delta):g}",
    ]
    if readings is None:
        lines += _charged(rows)
    result: dict[str, Any] = {
        "after_readings": [
            {
                "readings": row.readings,
                "epsilon": row.epsilon,
                "by_rho": row.by_rho,
                "delta": float(delta),
                "charged": None if row.charged is None else encode(row.charged),
            }
            for row in rows
        ]
    }
    if readings is not None and isinstance(planned.cost, ZCDP):  # a share always is
        # The noise is rounded up, so that a reading costs, and is charged, a little less than its
        # share.
        together = ZCDP(planned.cost.rho * readings)
        stated = as_approx(together, STATED)
        result["shared"] = {
            "readings": readings,
            "total": encode(total),
            "each": encode(planned.cost),
            "together": encode(together),
            "stated": encode(stated),
        }
        lines.insert(
            0,
            f"{many(readings, 'reading')} together may cost {total}, so each has {planned.cost}, as "
            f"`sense release --share {readings}` pays it; it states all of them as {together} "
            f"(epsilon {up(float(stated.epsilon))} at delta {float(stated.delta):g}), the same promise",
        )
    return result, lines


def _charged(rows: Sequence[RoundsCost]) -> list[str]:
    """What a ledger adds up if each reading is paid like this one: epsilon and delta add, and so does rho."""
    from sfumato.privacy import ZCDP, ApproxDP

    paid = "a ledger that pays each reading like this one adds up"
    shared = "--readings 24 plans 24 of them"
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


def delta_of(loss: ZCDP | ApproxDP) -> Any:
    """The delta of a loss, or that at which a rho is stated."""
    from fractions import Fraction

    from sfumato.privacy import ApproxDP

    return loss.delta if isinstance(loss, ApproxDP) else Fraction(STATED)
