"""Results of shuffled maps in words."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from sfumato.heatmap.measure import amount_of
from sfumato.heatmap.render.release import as_text as release_text
from sfumato.heatmap.shuffled.results import PlannedShuffle, ShuffledResult
from sfumato.heatmap.shuffled.sending import SentReports


@singledispatch
def shuffled_text(result: Any) -> str:
    """A result of shuffled maps as lines for people.

    Args:
        result: What a function of this folder returned.

    Returns:
        The lines, without a line end after the last.

    Raises:
        TypeError: It is no such result.

    """
    raise TypeError(f"no words for {type(result).__name__}")


@shuffled_text.register
def _planned(result: PlannedShuffle) -> str:
    plan = result.plan
    spent, mixed = plan.cost
    wraps = "below 1e-12" if result.wrap_chance < 1e-12 else f"{result.wrap_chance:.1g}"
    wide = max(len(one.model) for one in result.noises)
    lines = [
        f"plan {plan.digest.hex()[:16]}: epsilon {float(spent):.6g}, delta {float(mixed):.2g} for each device; "
        f"{plan.trust.batch} to {plan.trust.devices} devices a round, {plan.trust.curious} of a batch may be "
        "curious",
        f"{amount_of(len(plan.scales), 'rounds')}, {plan.cells} cells x {plan.messages} messages x "
        f"{plan.record} bytes = {bytes_text(plan.bytes_a_device)} a device, "
        f"{result.device_seconds:.2g} s of its CPU; {result.adder_hours:.2g} CPU hours at the adder, "
        f"for {result.round_hours:.2g} of which devices wait for the next round; "
        f"{bytes_text(plan.shuffler_bytes)} of memory at the shuffler",
        f"chance that a count wraps: {wraps}",
        "noise on a count of the first level (standard deviation, in people):",
    ]
    lines += [f"  {one.model:<{wide}}  {one.deviation:8.1f}   {one.sees}" for one in result.noises]
    lines.append(advice(result))
    return "\n".join(lines)


def advice(result: PlannedShuffle) -> str:
    """When it is worth it, in one sentence."""
    by = {one.model: one.deviation for one in result.noises}
    gain = by["local"] / by["shuffled"]
    if gain < 2:
        return (
            "worth little here: local noise would be about as good, with one small message a device and "
            "nobody trusted"
        )
    return (
        f"worth it where no one may gather the rows and two hands are known not to work together: {gain:.0f} "
        "times less noise than local; with one trusted hand central is as good, with a few organisations "
        "joint, and either costs a device a few bytes"
    )


@shuffled_text.register
def _collected(result: ShuffledResult) -> str:
    rounds = result.rounds
    spoilt = sum(one.spoilt for one in rounds)
    return (
        f"{release_text(result.release)}\n"
        f"plan {result.digest[:16]}: {sum(one.cells for one in rounds)} counts in "
        f"{amount_of(len(rounds), 'rounds')} of {min(one.arrived for one in rounds)} to "
        f"{amount_of(max(one.arrived for one in rounds), 'devices')}, "
        f"{bytes_text(sum(one.received for one in rounds))} received"
        + (
            f"; {amount_of(spoilt, 'messages')} could not be read: some device lies"
            if spoilt
            else ""
        )
        + (
            "; only enrolled devices could report"
            if result.enrolled
            else "; anybody could report, and whoever did often counts as many: the guarantee holds if at most "
            "the curious of a batch were not honest devices"
        )
    )


@shuffled_text.register
def _sent(result: SentReports) -> str:
    who, rounds = amount_of(result.devices, "devices"), amount_of(result.rounds, "rounds")
    return f"{who} answered {rounds}, {bytes_text(result.sent)} each"


def bytes_text(count: int) -> str:
    """A number of bytes as people say it."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return amount_of(count, "bytes")
