"""sensor.toml: what a sensor reads, what it promises, and where it sends."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.network.mqtt import BrokerConfig
from sfumato.network.sensors.schedule import parse_period
from sfumato.privacy import ApproxDP, PureDP
from sfumato.sensing.release import parse_window

InputKind = Literal["stdin", "csv", "file", "command", "mqtt"]

_TOP = {"site", "noise_plan", "device_key", "state", "sensors", "period", "outbox"}
_TABLES = {"budget", "input", "broker"}


@dataclass(frozen=True, slots=True)
class InputConfig:
    """Where readings come from.

    Attributes:
        kind: stdin: a line for each reading. csv: a row for each round. file: a file whose content is
            the reading (hwmon), or a serial device that writes lines. command: its output is a line.
            mqtt: the messages of other topics.
        path: The CSV file.
        paths: For `file`, the file of each sensor.
        command: The program and its arguments.
        timeout: Seconds that a command may take.
        topics: For `mqtt`, the topic of each sensor.
        field: The field of a JSON message that is the reading; "" for a plain number.
        broker: For `mqtt`, another broker than the one that gets the packets.
        scale: What every reading is multiplied by: 0.001 for the millidegrees of hwmon.
    """

    kind: InputKind = "stdin"
    path: Path | None = None
    paths: Mapping[str, Path] | None = None
    command: tuple[str, ...] = ()
    timeout: float = 5.0
    topics: Mapping[str, str] | None = None
    field: str = ""
    broker: BrokerConfig | None = None
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class SensorConfig:
    """What sensor.toml says, checked; relative paths are those of its folder.

    Attributes:
        site: The site's file.
        noise_plan: The noise, as `sfumato sensor plan` wrote it.
        device_key: The key file of this device.
        state: A folder for the ledgers of windows and for packets that wait.
        sensors: The sensors of the site that this device reads.
        period_ms: How far apart rounds are.
        window: The length of a window of time with a budget of its own.
        budget: What the rounds of one window may cost together; epsilon alone where its delta is 0.
        input: Where readings come from.
        broker: Where packets go.
        outbox: How many packets may wait for the broker; then no more are made.
    """

    site: Path
    noise_plan: Path
    device_key: Path
    state: Path
    sensors: tuple[str, ...]
    period_ms: int
    window: str
    budget: ApproxDP | PureDP
    input: InputConfig
    broker: BrokerConfig
    outbox: int = 10_000

    @property
    def window_length(self) -> timedelta:
        """The length of a window."""
        return parse_window(self.window)

    @property
    def rounds_per_window(self) -> int:
        """How many rounds share the budget of a window."""
        return self.window_length // timedelta(milliseconds=self.period_ms)


def read_sensor_config(path: str | Path) -> SensorConfig:
    """What a sensor.toml says.

    Args:
        path: The file.

    Returns:
        The configuration, checked; files that it names are not opened.

    Raises:
        InvalidInput: It cannot be read, has a key that is none, or lacks one; nothing was started.
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise _wrong(path, problem.strerror or "it cannot be read") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise _wrong(path, f"it is not TOML: {problem}") from None
    try:
        return _config(data, Path(path).resolve().parent)
    except InvalidParameter as problem:
        raise _wrong(path, str(problem)) from None


def _config(data: dict[str, Any], folder: Path) -> SensorConfig:
    _known(data, _TOP | _TABLES, "")
    budget = _table(data, "budget", {"window", "epsilon", "delta"})
    found = SensorConfig(
        site=folder / _text(data, "site"),
        noise_plan=folder / _text(data, "noise_plan"),
        device_key=folder / _text(data, "device_key"),
        state=folder / _text(data, "state"),
        sensors=_names(data),
        period_ms=parse_period(_text(data, "period")),
        window=_text(budget, "window", "budget.", default="1d"),
        budget=_budget(_text(budget, "epsilon", "budget."), _text(budget, "delta", "budget.")),
        input=_input(_table(data, "input", set(InputConfig.__dataclass_fields__)), folder),
        broker=_broker(_table(data, "broker", set(BrokerConfig.__dataclass_fields__)), folder),
        outbox=_whole(data, "outbox", 10_000),
    )  # fmt: skip
    if found.window_length % timedelta(milliseconds=found.period_ms):
        raise InvalidParameter(
            f"a window is some whole rounds long: {found.window} is no multiple of the `period`"
        )
    if found.input.kind in ("file", "mqtt"):
        of = found.input.paths if found.input.kind == "file" else found.input.topics
        missing = [name for name in found.sensors if name not in (of or {})]
        if missing:
            raise InvalidParameter(f"`input` names nothing to read for sensor {missing[0]!r}")
    return found


def _budget(epsilon: str, delta: str) -> ApproxDP | PureDP:
    """Epsilon alone where delta is 0: that takes Laplace noise."""
    found = ApproxDP(epsilon, delta)
    return found if found.delta else PureDP(found.epsilon)


def _input(table: dict[str, Any], folder: Path) -> InputConfig:
    kind = _text(table, "kind", "input.")
    if kind not in get_args(InputKind):
        raise InvalidParameter(
            f"`input.kind` is one of {', '.join(get_args(InputKind))}, got {kind!r}"
        )
    more: dict[str, Any] = {"kind": kind}
    if kind == "csv":
        more["path"] = folder / _text(table, "path", "input.")
    if kind == "file":
        more["paths"] = {name: folder / path for name, path in _texts(table, "paths").items()}
    if kind == "mqtt":
        more["topics"] = _texts(table, "topics")
    if kind == "command":
        command = table.get("command")
        if (
            not isinstance(command, list)
            or not command
            or not all(isinstance(word, str) for word in command)
        ):
            raise InvalidParameter("`input.command` is a list of words, the program first")
        more["command"] = tuple(command)
    if "broker" in table:
        more["broker"] = _broker(
            _table(table, "broker", set(BrokerConfig.__dataclass_fields__)), folder
        )
    more["field"] = _text(table, "field", "input.", default="")
    more["scale"] = _number(table, "scale", 1.0)
    more["timeout"] = _number(table, "timeout", 5.0)
    return InputConfig(**more)


def _broker(table: dict[str, Any], folder: Path) -> BrokerConfig:
    files = {
        name: folder / _text(table, name, "broker.")
        for name in ("password_file", "ca_file")
        if name in table
    }
    texts = {
        name: _text(table, name, "broker.")
        for name in ("host", "username", "protocol")
        if name in table
    }
    tls = table.get("tls")
    if not isinstance(tls, bool | None):
        raise InvalidParameter("`broker.tls` is true or false")
    return BrokerConfig(**files, **texts, tls=tls, port=_whole(table, "port", 0))  # type: ignore[arg-type]


def _names(data: dict[str, Any]) -> tuple[str, ...]:
    names = data.get("sensors")
    if (
        not isinstance(names, list)
        or not names
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) != len(names)
    ):
        raise InvalidParameter("`sensors` is a list of different names of the site's sensors")
    return tuple(names)


def _table(data: dict[str, Any], name: str, known: set[str]) -> dict[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise InvalidParameter(f"`{name}` is a table")
    _known(table, known, f"{name}.")
    return table


def _known(table: dict[str, Any], known: set[str], where: str) -> None:
    for key in table:
        if key == "password":
            raise InvalidParameter(
                "a password is in a file of its own, of mode 0600, that `broker.password_file` names"
            )
        if key not in known:
            raise InvalidParameter(
                f"`{where}{key}` is no key; there are {', '.join(sorted(known))}"
            )


def _text(table: dict[str, Any], key: str, where: str = "", *, default: str | None = None) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or (not value and default is None):
        raise InvalidParameter(f"`{where}{key}` is a text, and must be there")
    return value


def _texts(table: dict[str, Any], key: str) -> dict[str, str]:
    value = table.get(key)
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise InvalidParameter(f"`input.{key}` is a table with a text for each sensor")
    return value


def _whole(table: dict[str, Any], key: str, default: int) -> int:
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidParameter(f"`{key}` is a whole number, at least 0")
    return value


def _number(table: dict[str, Any], key: str, default: float) -> float:
    value = table.get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e100:
        raise InvalidParameter(f"`input.{key}` is a number above 0")
    return float(value)


def _wrong(path: str | Path, why: str) -> InvalidInput:
    return InvalidInput(f"{path}: {why}; nothing was started")
