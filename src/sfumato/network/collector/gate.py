"""What the collector takes: packets of devices it knows, with a right code, in time, each once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sfumato.errors import InvalidInput
from sfumato.network.collector.config import NetworkConfig
from sfumato.network.collector.replay_window import ReplayWindow
from sfumato.network.topics import device_of
from sfumato.network.wire import MAX_BYTES, Packet, decode, is_checked
from sfumato.sensing.release import read_check_keys

Refusal = Literal[
    "too-long",
    "malformed",
    "wrong-topic",
    "unknown-device",
    "revoked",
    "wrong-key",
    "wrong-site",
    "wrong-sensors",
    "wrong-period",
    "wrong-code",
    "resent",
    "conflict",
    "reordered",
    "old-epoch",
    "cloned",
    "late",
    "duplicate",
    "odd-noise",
    "too-late",
    "too-early",
    "queue-full",
]
MEANINGS: dict[Refusal, str] = {
    "too-long": "longer than any packet",
    "malformed": "no packet of this version",
    "wrong-topic": "not on the topic of the device that it names",
    "unknown-device": "of a device that the network does not have, or that has no check key any more",
    "revoked": "of a device whose key was revoked",
    "wrong-key": "under another master key than the network's",
    "wrong-site": "of another site, or of the site before it was changed",
    "wrong-sensors": "of sensors that are not the device's",
    "wrong-period": "of another period than the network's",
    "wrong-code": "with a wrong check code: forged or damaged",
    "resent": "the same bytes again, as MQTT sends them: harmless",
    "conflict": "another packet of the same draws: two devices with one key",
    "reordered": "too far out of order, or replayed",
    "old-epoch": "of an earlier start of the device: replayed",
    "cloned": "of a copy of the device, or its key file was put back",
    "late": "in time to be kept, but after its round was closed",
    "duplicate": "of sensors that were read in that round already",
    "odd-noise": "with noise unlike that of the round's other devices: kept, and left out",
    "too-late": "of a round too long ago: kept, and no round is made of it",
    "too-early": "of a round to come: the device's clock is ahead",
    "queue-full": "more than the collector could take; not acknowledged",
}
"""What each reason says, in words; "late", "too-late" and "odd-noise" packets are kept, all others are not."""


@dataclass(slots=True)
class Gate:
    """The checks that every packet passes before anything is kept of it, the cheapest first.

    Attributes:
        site: The first 32 hexadecimal digits of the site's digest.
        sensors: How many sensors the site has.
        devices: Places of the sensors in the site's list that each device may send.
        period_ms: How far apart rounds are.
        key_id: The public id of the master key; "" where any will do.
        check_keys: The check key of each device, of which one without is refused; None for codes unchecked.
        revoked: Names of devices of which nothing is taken any more.
        windows: What was taken of each device.
    """

    site: str
    sensors: int
    devices: Mapping[str, frozenset[int]]
    period_ms: int
    key_id: str = ""
    check_keys: Mapping[str, bytes] | None = None
    revoked: Collection[str] = ()
    windows: dict[str, ReplayWindow] = field(default_factory=dict)

    def admit(self, topic: str, payload: bytes) -> Packet | Refusal:
        """The packet, if it is to be taken; else why not. Only `remember` changes anything."""
        if len(payload) > MAX_BYTES:
            return "too-long"
        name = device_of(topic)
        if name is None:
            return "wrong-topic"
        if name in self.revoked:
            return "revoked"
        if name not in self.devices:
            return "unknown-device"
        try:
            packet = decode(payload)
        except InvalidInput:
            return "malformed"
        return self._judge(name, packet, payload) or packet

    def _judge(self, name: str, packet: Packet, payload: bytes) -> Refusal | None:
        if packet.device != name:
            return "wrong-topic"
        if self.check_keys is not None:
            key = self.check_keys.get(name)
            if key is None:
                return "unknown-device"
            if not is_checked(packet, key):
                return "wrong-code"
        if self.key_id and packet.key_id != self.key_id:
            return "wrong-key"
        if packet.site != self.site:
            return "wrong-site"
        if not self.devices[name].issuperset(packet.sensors):
            return "wrong-sensors"
        if packet.period_ms != self.period_ms:
            return "wrong-period"
        fresh = self.windows.setdefault(name, ReplayWindow()).judge(packet, payload)
        return None if fresh == "new" else fresh

    def remember(self, packet: Packet, payload: bytes) -> None:
        """Take a packet that was admitted: it is not taken again."""
        self.windows.setdefault(packet.device, ReplayWindow()).remember(packet, payload)


def gate_of(config: NetworkConfig) -> Gate:
    """The gate that a network's file describes, with its check keys."""
    keys = None if config.check_keys is None else read_check_keys(config.check_keys)
    if keys is not None and config.key_id and keys.key_id != config.key_id:
        raise InvalidInput(
            f"the check keys are of the master key {keys.key_id}, the network's is {config.key_id}; nothing "
            "was collected"
        )
    return Gate(
        config.site.digest[:32],
        len(config.site.sensors),
        config.places(() if keys is None else keys.devices),
        config.period_ms,
        config.key_id if keys is None else keys.key_id,
        None if keys is None else keys.devices,
        frozenset(config.revoked),
    )
