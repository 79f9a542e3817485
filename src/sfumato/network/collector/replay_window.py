"""Which packets of a device are new: each is taken once, whatever comes again or far out of order is not."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from sfumato.network.wire import Packet

SIZE = 64
"""Packets of a device that are remembered, and so how far out of order one may come."""

Freshness = Literal["new", "resent", "conflict", "reordered", "old-epoch", "cloned"]


@dataclass(slots=True)
class ReplayWindow:
    """What was taken of one device last: its epoch, and the numbers of the first draws of packets.

    A device goes to a new epoch with each start, and its step never falls; within an epoch the
    first draw of each packet is another one. So a packet of an earlier step is a replay, and one of
    the same step with another epoch is of a copy of the device or of a key file that was put back.
    """

    size: int = SIZE
    step: int = -1
    epoch: bytes = b""
    seen: dict[int, bytes] = field(default_factory=dict)

    def judge(self, packet: Packet, payload: bytes) -> Freshness:
        """Whether a packet is new, or why it is not; nothing is remembered.

        "resent" are the same bytes again, which MQTT does and which is harmless; "conflict" is another packet
        of the same draws, "reordered" one older than all that are remembered.
        """
        if packet.step < self.step:
            return "old-epoch"
        if packet.step > self.step:
            return "new"
        if packet.epoch != self.epoch:
            return "cloned"
        known = self.seen.get(packet.first)
        if known is not None:
            return "resent" if known == _digest(payload) else "conflict"
        if len(self.seen) >= self.size and packet.first < min(self.seen):
            return "reordered"
        return "new"

    def remember(self, packet: Packet, payload: bytes) -> None:
        """Take a packet that was judged to be new."""
        if packet.step > self.step:
            self.step, self.epoch, self.seen = packet.step, packet.epoch, {}
        self.seen[packet.first] = _digest(payload)
        if len(self.seen) > self.size:
            del self.seen[min(self.seen)]


def _digest(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()[:16]
