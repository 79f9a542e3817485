"""What is kept of a closed round: a row of the store, a line of JSON, and what its devices promise together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidParameter
from sfumato.files import LineLog
from sfumato.network.collector.recoveries import Recovered, Window, loss_of
from sfumato.network.collector.state import CollectorState, Promise
from sfumato.network.collector.store import State, StoredRound
from sfumato.network.wire import Packet
from sfumato.sensing.pipeline import LiveReading, LiveRound, epsilon_after
from sfumato.sensing.release import describe_window

FORMAT = "sfumato-network-round/1"
SPENT_DELTA = 1e-6
"""The delta at which what rounds of a rho cost together is told."""


def state_of(done: Recovered) -> State:
    """Whether a round was recovered, skipped or failed."""
    if done.problem.startswith("skipped"):
        return "skipped"
    return "failed" if done.found is None or done.found.recovery is None else "recovered"


def row_of(done: Recovered) -> StoredRound:
    """A round as it is kept: its recovery whole, but for the site."""
    closed = done.closed
    recovery = ""
    if done.found is not None and done.found.recovery is not None:
        whole = done.found.recovery.to_json()
        del whole["site"]
        recovery = json.dumps(whole, separators=(",", ":"))
    return StoredRound(
        closed.number, closed.time, state_of(done), "\t".join(closed.packets), recovery
    )


def promise_of(packets: list[Packet], window: Window, rounds: int) -> Promise:
    """What devices state, the dearest of them; what is left, the least.

    Raises:
        InvalidParameter: They state costs of different kinds, so that no one of them bounds all, or an epsilon
            alone of noise that is not Laplace, which no such noise keeps.
    """
    if any(
        one.cost.kind == "epsilon" and not one.cost.delta and one.law != "laplace"
        for one in packets
    ):
        raise InvalidParameter(
            "epsilon without a delta is of Laplace noise, a device states it of Gaussian; nothing was added up"
        )
    stated = {one.device: LiveReading(0.0, one.deviation, loss_of(one.cost)) for one in packets}
    most = LiveRound("", stated).cost
    if most is None:
        raise InvalidParameter(
            "what one round cost is one number, devices state costs of different kinds; nothing was added up"
        )
    cost = next(one.cost for one in packets if loss_of(one.cost) == most)
    left = min((one.left for one in packets), key=lambda one: one.amount)
    return Promise(
        cost.kind,
        cost.amount,
        cost.delta,
        left.amount,
        "" if window is None else describe_window(*window),
        rounds,
        epsilon_after(loss_of(cost), rounds) if cost.amount > 0 else 0.0,
        cost.delta or SPENT_DELTA,
        any(one.rehearsal for one in packets),
    )


def round_line(done: Recovered) -> dict[str, Any]:
    """A round as one JSON object: what was recovered, and the packets it was recovered from.

    Args:
        done: What came of a round.

    Returns:
        The object; `packets` are those that `sfumato unseal` takes.
    """
    found = done.found
    recovery = None if found is None or found.recovery is None else found.recovery.summary()
    packets = {id(packet): packet for packet, _ in done.closed.packets.values()}
    return {
        "format": FORMAT,
        "time": done.closed.time,
        "sensors": sorted(done.closed.packets),
        "missing": list(done.closed.missing),
        "problem": done.problem,
        "recovery": recovery,
        "faulty": [] if done.track is None else [one.message for one in done.track.faulty_sensors],
        "packets": [packet.to_json() for packet in packets.values()],
    }


class RoundLines:
    """A file of lines; each round is one."""

    def __init__(self, path: str | Path) -> None:
        self._log = LineLog(path, undone="nothing was collected")

    def round(self, done: Recovered, _: CollectorState) -> None:
        """Append a round."""
        self._log.add(json.dumps(round_line(done), separators=(",", ":")))

    def close(self) -> None:
        """Close the file."""
        self._log.close()
