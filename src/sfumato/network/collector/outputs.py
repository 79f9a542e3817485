"""Rounds as lines of JSON: one file that is only appended to, with the packets for who holds the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sfumato.files import LineLog
from sfumato.network.collector.recoveries import Recovered
from sfumato.network.collector.state import CollectorState

FORMAT = "sfumato-network-round/1"


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
        "faulty": []
        if done.track is None
        else [one.message for one in done.track.faulty_sensors],
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
