"""What was done with a master key: devices that got a key of it, and every time that noise was taken off.

A line of JSON for each event, in a file beside the key that only its owner may read. It is for who holds the
key: whoever can write the file can also leave lines out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from sfumato.errors import ExistsAlready, InvalidInput, InvalidParameter
from sfumato.files import write_file

What = Literal["device", "rotated", "retired", "unsealed"]
GENERATION = re.compile(r"~([2-9]|[1-9][0-9]+)$")  # how the later keys of a device are called


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """One line of the log: when, who, and what.

    Attributes:
        what: A device got its key, got a later one, was retired; or readings were unsealed.
        device: The device, as seals name it; "" for readings.
        more: The file, the last step of a retired device, the readings and where they went.
        time: When, in UTC.
        by: The user of the system, if it has a name.
    """

    what: What
    device: str = ""
    more: dict[str, Any] = field(default_factory=dict)
    time: str = ""
    by: str = ""

    def to_json(self) -> dict[str, Any]:
        """The line."""
        about = {"device": self.device} if self.device else {}
        return {"time": self.time, "by": self.by, "what": self.what, **about, **self.more}

    @staticmethod
    def from_json(data: Any) -> KeyEvent:
        """The event that a line states."""
        more = {k: v for k, v in data.items() if k not in ("time", "by", "what", "device")}
        return KeyEvent(
            data["what"], str(data.get("device", "")), more, str(data["time"]), str(data["by"])
        )


@dataclass(frozen=True, slots=True)
class KnownDevice:
    """A device that got a key: since when, whether it still has it, and the step from which it has not."""

    name: str
    made: str
    file: str
    status: Literal["in use", "rotated", "retired"] = "in use"
    last_step: int | None = None


def devices_of(events: Iterable[KeyEvent]) -> dict[str, KnownDevice]:
    """Devices by name, in the order in which they got their keys."""
    found: dict[str, KnownDevice] = {}
    for one in events:
        old = found.get(one.device)
        if one.what == "device":
            found[one.device] = KnownDevice(one.device, one.time, str(one.more.get("file", "")))
        elif one.what != "unsealed" and old is not None:
            step = one.more.get("last_step")
            found[one.device] = KnownDevice(old.name, old.made, old.file, one.what, step)
    return found


class KeyLog:
    """The log beside the file of a master key."""

    def __init__(self, key: str | Path) -> None:
        self.key, self.path = Path(key), Path(f"{key}.log")

    def events(self) -> tuple[KeyEvent, ...]:
        """All events, oldest first; none where there is no log yet."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ()
        except (OSError, UnicodeDecodeError):
            raise InvalidInput(f"cannot read {self.path}; nothing was done") from None
        try:
            return tuple(KeyEvent.from_json(json.loads(line)) for line in text.splitlines())
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InvalidInput(f"{self.path} is not a log of a key; nothing was done") from None

    def devices(self) -> dict[str, KnownDevice]:
        """Devices by name, in the order in which they got their keys."""
        return devices_of(self.events())

    def unused(self, name: str) -> None:
        """Refuse a name that a device has, or had: two keys of one name would draw the same noise twice."""
        if GENERATION.search(name):
            raise InvalidParameter(
                f"names that end in ~ and a number are those of rotated keys, got {name!r}; no key was made"
            )
        if name in self.devices():
            raise ExistsAlready(
                f"a device named {name!r} has a key of this master key already, and keys of one name draw the "
                "same noise: choose another name, or rotate its key; no key was made"
            )

    def current(self, name: str) -> KnownDevice:
        """The latest key of a device; refused where it has none in use."""
        plain = GENERATION.sub("", name)
        named = [one for one in self.devices().values() if GENERATION.sub("", one.name) == plain]
        used = [one for one in named if one.status == "in use"]
        if not used:
            why = "was retired" if named else "is not in the log"
            raise InvalidInput(f"device {name!r} {why} of {self.path}; nothing was done")
        return used[-1]

    @contextmanager
    def held(self) -> Iterator[None]:
        """The log to this process alone, by a lock on the key that it is of."""
        import fcntl

        try:
            handle = os.open(self.key, os.O_RDONLY)
        except OSError as problem:
            raise InvalidInput(
                f"cannot read {self.key}: {problem.strerror}; nothing was done"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def add(self, *events: KeyEvent) -> None:
        """Write events down, on the disk before this returns; with `held`."""
        now, by = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", _user()
        told = [*(one.to_json() for one in self.events())]
        told += [{**one.to_json(), "time": now, "by": by} for one in events]
        text = "".join(json.dumps(one) + "\n" for one in told)
        write_file(self.path, text, overwrite=True, private=True, lost="nothing was done")


def next_generation(name: str) -> str:
    """What the next key of a device is called.

    >>> next_generation("door"), next_generation("door~2")
    ('door~2', 'door~3')
    """
    found = GENERATION.search(name)
    number = int(found[1]) if found else 1
    return f"{GENERATION.sub('', name)}~{number + 1}"


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except (KeyError, OSError):
        return str(os.getuid())
