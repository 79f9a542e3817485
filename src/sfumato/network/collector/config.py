"""network.toml: what a collector is told about its network, checked whole before anything is collected."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.network.mqtt import BrokerConfig
from sfumato.network.topics import COLLECTOR
from sfumato.sensing import Site, read_site

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """A network as its file describes it; paths are from the folder of the file.

    Attributes:
        site: The site.
        period_ms: How far apart rounds are.
        broker: How the broker is reached.
        store: A file of SQLite, or a URL as Ibis takes it.
        check_keys: The file of check keys; None where codes are not checked.
        key_id: The public id of the master key; "" where any will do.
        devices: Sensors of each device; empty where each sensor is a device of its own name.
        revoked: Devices of which nothing is taken any more.
        grace_ms: How long after its end a round waits for sensors that are late.
        horizon_ms: How old a round may be that packets are still taken for.
        estimator: As for `recover_sources`.
        max_mass: The largest mass of one source.
        track: How many of the last rounds are followed through; 0 for none.
        count: How many sources are followed.
        lines: A file to which every round is appended as a line of JSON; None for none.
        serve: The port on loopback where state and metrics are served; None for none.
        home_assistant: The prefix of discovery topics; "" for none.
        keep_days: Packets and rounds older than this are deleted from a SQLite store; None for never.
    """

    site: Site
    period_ms: int
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    store: str = "rounds.sqlite"
    check_keys: Path | None = None
    key_id: str = ""
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    revoked: tuple[str, ...] = ()
    grace_ms: int = 500
    horizon_ms: int = 600_000
    estimator: str = "bayes-median"
    max_mass: float = 1.0
    track: int = 12
    count: int = 1
    lines: Path | None = None
    serve: int | None = None
    home_assistant: str = ""
    keep_days: int | None = None

    def places(self, known: Iterable[str] = ()) -> dict[str, frozenset[int]]:
        """Places of the sensors in the site's list that each device may send.

        A device whose key was rotated is called door~2: it has the sensors of door, if it is among the `known`.
        """
        number = {name: place for place, name in enumerate(self.site.sensors.names)}
        devices = self.devices or {name: (name,) for name in number}
        found = {
            device: frozenset(number[name] for name in sensors)
            for device, sensors in devices.items()
        }
        later = [name for name in known if name not in found and name.rpartition("~")[0] in found]
        return found | {name: found[name.rpartition("~")[0]] for name in later}


def read_network(path: str | Path) -> NetworkConfig:
    """A network from its file.

    Args:
        path: A .toml file; docs/how-to/network.md lists its keys.

    Returns:
        The network, with its site.

    Raises:
        InvalidInput: The file cannot be read, or a key is unknown, missing or out of range; nothing was
            collected.
    """
    file = Path(path)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise _wrong(file, f"cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise _wrong(file, "is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as problem:
        raise _wrong(file, f"is not TOML: {problem}") from None
    known = {*NetworkConfig.__dataclass_fields__, "period", "grace", "horizon"}
    known -= {"period_ms", "grace_ms", "horizon_ms"}
    for name in data:
        if name not in known:
            raise _wrong(file, f"sets {name!r}, which is none of {', '.join(sorted(known))}")
    for name in ("site", "period"):
        if name not in data:
            raise _wrong(file, f"does not say {name!r}")
    told: dict[str, Any] = _store("rounds.sqlite", file)
    for name, value in data.items():
        read = _READERS[name]
        try:
            told.update(read(value, file))
        except InvalidInput:
            raise
        except (InvalidParameter, TypeError, ValueError) as problem:
            raise _wrong(file, f"sets {name!r}: {problem}") from None
    found = NetworkConfig(**told)
    _check(found, file)
    return found


def duration_ms(text: object) -> int:
    """Milliseconds from a number with ms, s, m or h behind it.

    >>> duration_ms("1.5s"), duration_ms("10m")
    (1500, 600000)
    """
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h)", str(text).strip())
    if found is None:
        raise ValueError(f"a time is a number with ms, s, m or h, e.g. 1s, got {text!r}")
    value = float(found[1]) * _UNITS[found[2]]
    if value != round(value):
        raise ValueError(f"a time is in whole milliseconds, got {text!r}")
    return round(value)


def _text(name: str) -> Any:
    def read(value: object, _: Path) -> dict[str, Any]:
        if not isinstance(value, str):
            raise TypeError(f"it is text, got {value!r}")
        return {name: value}

    return read


def _whole(name: str, low: int, high: int) -> Any:
    def read(value: object, _: Path) -> dict[str, Any]:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"it is a whole number from {low} to {high}, got {value!r}")
        return {name: value}

    return read


def _path(name: str) -> Any:
    def read(value: object, file: Path) -> dict[str, Any]:
        if not isinstance(value, str) or not value:
            raise TypeError(f"it is the name of a file, got {value!r}")
        return {name: file.parent / value}

    return read


def _time(name: str, low: int) -> Any:
    def read(value: object, _: Path) -> dict[str, Any]:
        found = duration_ms(value)
        if found < low:
            raise ValueError(f"it is {low} ms or more, got {value!r}")
        return {name: found}

    return read


def _site(value: object, file: Path) -> dict[str, Any]:
    return {"site": read_site(file.parent / str(value))}


def _store(value: object, file: Path) -> dict[str, Any]:
    text = str(value)
    return {"store": text if "://" in text else str(file.parent / text)}


def _max_mass(value: object, _: Path) -> dict[str, Any]:
    if not isinstance(value, int | float) or not 0 < float(value) < float("inf"):
        raise ValueError(f"it is a number above 0, got {value!r}")
    return {"max_mass": float(value)}


def _names(value: object, _: Path) -> dict[str, Any]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError(f"it is a list of names, got {value!r}")
    return {"revoked": tuple(value)}


def _broker(value: object, file: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("it is a table with host, port, ...")
    if "password" in value:
        raise ValueError("a password is in a file of its own, of mode 0600: say password_file")
    fields = {one.name: str(one.type) for one in dataclass_fields(BrokerConfig)}
    told: dict[str, Any] = {}
    for name, one in value.items():
        if name not in fields:
            raise ValueError(f"{name!r} is none of {', '.join(sorted(fields))}")
        kind = {"int": int, "bool | None": bool}.get(fields[name], str)
        if type(one) is not kind:
            raise TypeError(f"{name!r} is a {kind.__name__}, got {type(one).__name__}")
        told[name] = file.parent / str(one) if "Path" in fields[name] else one
    return {"broker": BrokerConfig(**told)}


def _devices(value: object, _: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("it is a table of devices and their sensors")
    found = {}
    for device, sensors in value.items():
        listed = [sensors] if isinstance(sensors, str) else sensors
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise TypeError(f"device {device!r} has a list of sensors, got {sensors!r}")
        found[device] = tuple(listed)
    return {"devices": found}


_READERS: dict[str, Any] = {
    "site": _site,
    "period": _time("period_ms", 1),
    "grace": _time("grace_ms", 0),
    "horizon": _time("horizon_ms", 1000),
    "broker": _broker,
    "store": _store,
    "check_keys": _path("check_keys"),
    "key_id": _text("key_id"),
    "devices": _devices,
    "revoked": _names,
    "estimator": _text("estimator"),
    "max_mass": _max_mass,
    "track": _whole("track", 0, 1000),
    "count": _whole("count", 1, 64),
    "lines": _path("lines"),
    "serve": _whole("serve", 0, 65535),
    "home_assistant": _text("home_assistant"),
    "keep_days": _whole("keep_days", 1, 36500),
}


def _check(found: NetworkConfig, file: Path) -> None:
    """What only all keys together tell."""
    known = set(found.site.sensors.names)
    for device, sensors in found.devices.items():
        for name in sensors:
            if name not in known:
                raise _wrong(file, f"gives device {device!r} a sensor {name!r} that the site lacks")
    if COLLECTOR in found.places():
        raise _wrong(file, f"has a device called {COLLECTOR!r}, which is the collector's own name")
    if found.track == 1:
        raise _wrong(file, "sets 'track' to 1: a track has two rounds or more, 0 is for none")
    if any(mark in found.home_assistant for mark in "#+ "):
        raise _wrong(file, "sets 'home_assistant' to what is no prefix of a topic")


def _wrong(file: Path, why: str) -> InvalidInput:
    return InvalidInput(f"{file} {why}; nothing was collected")
