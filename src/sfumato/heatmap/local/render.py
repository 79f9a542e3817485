"""Plans of local maps, and what was collected for them, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.heatmap.local.maps import OUTSIDE
from sfumato.heatmap.measure import amount_of
from sfumato.privacy.accounting import plain

if TYPE_CHECKING:
    from sfumato.heatmap.local.collect import Tally
    from sfumato.heatmap.local.results import Collected, Expected, LocalPlan


def plan_text(plan: LocalPlan) -> str:
    """A plan in words.

    Args:
        plan: What `plan_local` returned.

    Returns:
        The lines, without a line end after the last.

    """
    asked, epsilon = plan.design, plain(plan.design.epsilon)
    lines = [
        f"{amount_of(asked.users, 'devices')}, epsilon {epsilon} each, randomised on the device: "
        "nobody is trusted"
    ]
    if asked.cells:
        first = round(float(asked.first_part) * asked.users)
        lines.append(
            f"round 1: about {amount_of(first, 'devices')} over {4**asked.first_level} cells; "
            f"round 2: the others, once, over {asked.cells} cells of about equal mass"
        )
    else:
        lines.append(f"one round: all devices over {4**asked.first_level} cells")
    if plan.emd is None or plan.similarity is None:
        lines.append(
            "how good the map will be is not known: so few, or so many, were not simulated"
        )
    else:
        lines.append(
            f"earth mover's distance {_told(plan.emd)} of a side, Similarity {_told(plan.similarity)} "
            "(nine in ten simulated cities, or more)"
        )
    if plan.hopeless:
        lines.append(
            f"hopeless: below about {_about(plan.hopeless_below)} devices at this epsilon a map shares "
            "less than half of its mass with the truth"
        )
    else:
        lines.append(f"hopeless below about {_about(plan.hopeless_below)} devices at this epsilon")
    if plan.target is not None:
        lines.append(
            f"Similarity {plan.target:g} takes about {_about(plan.required_users)} devices"
            if plan.required_users is not None
            else f"Similarity {plan.target:g} is beyond what was simulated"
        )
    return "\n".join(lines)


def _about(users: int) -> str:
    """Two digits, rounded up: cities differ by more than the third."""
    step = 10 ** max(len(str(users)) - 2, 0)
    return f"{-(-users // step) * step:,}"


def _told(one: Expected) -> str:
    return f"{one.middle:.2g} ({one.low:.2g} to {one.high:.2g})"


def collected_text(result: Collected) -> str:
    """What was collected, in words.

    Args:
        result: What `collect_answers` returned.

    Returns:
        The lines, without a line end after the last.

    """
    tally = result.tally
    rounds = ", ".join(f"{one:,} in round {number}" for number, one in enumerate(tally.counted, 1))
    lines = [f"{counted_text(tally)}: {rounds}"]
    lines += not_counted(tally)
    if result.asked is not None:
        lines.append(f"round 2 asks over {len(result.asked.cells)} cells of about equal mass")
    if result.map is not None:
        emd, alike = result.map.errors["emd"], result.map.errors["similarity"]
        lines += [
            f"{result.map.guarantee}",
            f"off by {emd.low:.3f} to {emd.high:.3f} of a side in earth mover's distance; Similarity "
            f"{alike.low:.2f} to {alike.high:.2f} (a chance of about 90%)",
            OUTSIDE,
        ]
    lines += [f"wrote {one}" for one in result.files]
    return "\n".join(lines)


def counted_text(tally: Tally) -> str:
    """How many answers count."""
    number = sum(tally.counted)
    return "1 answer counts" if number == 1 else f"{number:,} answers count"


def not_counted(tally: Tally) -> list[str]:
    """How many do not, and why."""
    refused = [
        (tally.repeated, "the same answer again"),
        (tally.conflicting, "a second answer of a device: its first one counts"),
        (tally.not_asked, "of a device that this round does not ask"),
        (tally.other_question, "to another question"),
        (tally.malformed, "no answer, or in another device's name"),
    ]
    return [f"not counted: {count:,} ({why})" for count, why in refused if count]
