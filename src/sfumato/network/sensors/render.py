"""What a sensor will do and did, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.network.sensors.daemon import SensorRun
from sfumato.network.sensors.plan import SensorPlan

if TYPE_CHECKING:
    from sfumato.network.sensors.microcontroller import DeviceTable
    from sfumato.network.unseal import UnsealedPackets


def plan_lines(result: SensorPlan) -> str:
    """What a sensor will do, in a few lines.

    Args:
        result: What `plan_sensor` or `describe_sensor` found.

    Returns:
        The lines.
    """
    seconds = result.period_ms / 1000
    paid = (
        "all of them are paid for"
        if result.paid_rounds == result.rounds
        else f"its budget pays for the first {result.paid_rounds:,}, then nothing is sent until the next"
    )
    return "\n".join(
        (
            f"site {result.site}: {', '.join(result.sensors)} every {seconds:g} s",
            f"noise of deviation {result.sigma:.4g} on each reading ({result.file})",
            f"{result.budget} in each {result.window}, {result.rounds:,} rounds: {paid}",
        )
    )


def table_lines(result: DeviceTable) -> str:
    """The table of a small device, and the whole numbers of each of its sensors.

    Args:
        result: What `write_device_table` wrote.

    Returns:
        The lines.
    """
    head = f"{result.file}: {result.size:,} bytes, {result.law}"
    rows = [
        f"sensor {one.sensor!r} (place {one.place}): count of {one.count}, multiplier {one.multiplier}, shift "
        f"{one.shift}, zero {one.zero}, limit {one.limit}; noise of deviation {one.sigma:.4g} on a lattice "
        f"of {one.lattice:.3g}"
        for one in result.lattices
    ]
    return "\n".join([head, *rows])


def run_line(result: SensorRun) -> str:
    """What a run did, in a line.

    Args:
        result: What `run_sensor` did.

    Returns:
        The line.
    """
    more = [
        (result.again, "sent again"),
        (result.refused, "refused by the budget"),
        (result.failed, "lost to faults"),
    ]
    said = "".join(f", {count} {what}" for count, what in more if count)
    return f"device {result.device}, start {result.step}: {result.rounds} rounds sent{said}"


def unsealed_lines(result: UnsealedPackets) -> str:
    """One line for each reading; as private as they are.

    Args:
        result: What `unseal_packets` revealed.

    Returns:
        Time, device, sensor, value, and whether it is a dummy.
    """
    return "\n".join(
        f"{row.time} {row.device} {row.sensor} {row.value!r}"
        + ("" if row.status == "read" else f" ({row.status})")
        for row in result.rows
    )
