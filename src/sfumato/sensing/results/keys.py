"""What making and listing keys returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.files import decoding
from sfumato.sensing.release.key_log import KeyEvent, KnownDevice, devices_of


@dataclass(frozen=True, slots=True)
class KeyResult:
    """A key file that was made: of a master key, or of a device under it."""

    file: Path
    id: str
    device: str = ""

    def to_json(self) -> dict[str, Any]:
        """The file, the public id of the master key, and the device."""
        device = {"device": self.device} if self.device else {}
        return {"key": str(self.file), **device, "id": self.id}

    @staticmethod
    def from_json(data: Any) -> KeyResult:
        """The key file that a JSON object names."""
        return KeyResult(Path(data["key"]), str(data["id"]), str(data.get("device", "")))


@dataclass(frozen=True, slots=True)
class KeyListing:
    """What a master key was used for, from the log beside it.

    Attributes:
        file: The master key.
        id: Its public name.
        locked: Whether it takes a passphrase.
        events: All that was done with it, oldest first.
    """

    file: Path
    id: str
    locked: bool
    events: tuple[KeyEvent, ...] = ()

    @property
    def devices(self) -> tuple[KnownDevice, ...]:
        """Devices that have or had a key."""
        return tuple(devices_of(self.events).values())

    @property
    def unsealings(self) -> tuple[KeyEvent, ...]:
        """Every time that noise was taken off."""
        return tuple(one for one in self.events if one.what == "unsealed")

    def to_json(self) -> dict[str, Any]:
        """The key, its devices, and every event."""
        return {
            "key": str(self.file),
            "id": self.id,
            "locked": self.locked,
            "devices": [
                {
                    "name": one.name,
                    "made": one.made,
                    "file": one.file,
                    "status": one.status,
                    "last_step": one.last_step,
                }
                for one in self.devices
            ],
            "events": [one.to_json() for one in self.events],
        }

    @staticmethod
    def from_json(data: Any) -> KeyListing:
        """The listing that a JSON object states."""
        with decoding("a whole list of keys"):
            return KeyListing(
                Path(data["key"]),
                str(data["id"]),
                bool(data["locked"]),
                tuple(map(KeyEvent.from_json, data["events"])),
            )
