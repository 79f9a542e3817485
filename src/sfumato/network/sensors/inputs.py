"""Where readings come from: lines, a CSV replay, files, a command, other MQTT topics.

An input never decides when something is sent. It keeps the newest reading of each sensor; a round takes
what is there. What is no number is no reading, and nobody is told what it was.
"""

from __future__ import annotations

import csv
import json
import math
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, Protocol

from sfumato.errors import InvalidInput
from sfumato.network.mqtt import MqttClient
from sfumato.network.sensors.config import InputConfig, SensorConfig

LONGEST = 4096  # characters of a line
LARGEST = 1e100


class Input(Protocol):
    """What a round asks for readings."""

    def take(self) -> Mapping[str, float]:
        """What is new of each sensor since the last round; a sensor without a new reading is not in it."""

    def close(self) -> None:
        """Let go of files, processes and connections."""


class Newest:
    """The newest reading of each sensor, put by one thread and taken by another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, float] = {}

    def put(self, values: Mapping[str, float]) -> None:
        """Keep readings until they are taken, or newer ones come."""
        with self._lock:
            self._values.update(values)

    def take(self) -> Mapping[str, float]:
        """What is new since the last time."""
        with self._lock:
            taken, self._values = self._values, {}
        return taken

    def close(self) -> None:
        """Nothing is held."""


class Replay:
    """A CSV file with a column for each sensor: one row for each round, and none after the last."""

    def __init__(self, path: Path, names: tuple[str, ...], scale: float) -> None:
        self._names, self._scale = names, scale
        try:
            self._file = path.open(encoding="utf-8", newline="")
            self._rows = csv.reader(self._file)
            self._columns = next(self._rows, [])
            missing = [name for name in names if name not in self._columns]
        except (OSError, UnicodeDecodeError, csv.Error) as problem:
            raise InvalidInput(f"cannot read {path}: {problem}; nothing was started") from None
        if missing:
            self._file.close()
            raise InvalidInput(f"{path} has no column {missing[0]!r}; nothing was started")

    def take(self) -> Mapping[str, float]:
        """The readings of the next row."""
        try:
            row = next(self._rows, [])  # a blank line is a round without a reading
        except (UnicodeDecodeError, csv.Error):
            return {}
        return numbers(dict(zip(self._columns, row, strict=False)), self._names, self._scale)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Polled(Newest):
    """Readings that a thread asks for again and again: files, a command."""

    def __init__(self, ask: Callable[[], Mapping[str, float]], every: float) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._ask, self._every = ask, every
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.put(self._ask())
            self._stopped.wait(self._every)

    def close(self) -> None:
        """Ask no more."""
        self._stopped.set()


class Lines(Newest):
    """Lines of a stream, as they come: stdin, or a serial device."""

    def __init__(
        self, stream: IO[str], names: tuple[str, ...], *, field: str = "", scale: float = 1.0
    ) -> None:
        super().__init__()
        self._stream, self._names, self._field, self._scale = stream, names, field, scale
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            for line in short_lines(self._stream):
                self.put(parsed(line, self._names, field=self._field, scale=self._scale))
        except (OSError, ValueError):
            return  # the stream was closed


def short_lines(stream: IO[str]) -> Iterator[str]:
    """The lines of a stream but those that are too long, of which no more than fits is held.

    >>> import io
    >>> [len(line) for line in short_lines(io.StringIO("1\\n" + "2" * 10_000 + "\\n345"))]
    [2, 3]
    """
    begins = True
    while piece := stream.readline(LONGEST + 1):
        ends = piece.endswith("\n")
        if begins and (ends or len(piece) <= LONGEST):
            yield piece
        begins = ends


class Topics(Newest):
    """Messages of other MQTT topics, one for each sensor: an ESPHome sensor's, say."""

    def __init__(self, config: SensorConfig, device: str) -> None:
        super().__init__()
        told = config.input
        sensors = {topic: name for name, topic in (told.topics or {}).items()}

        def heard(topic: str, payload: bytes) -> None:
            if topic in sensors and len(payload) <= LONGEST:
                text = payload.decode(errors="replace")
                self.put(parsed(text, (sensors[topic],), field=told.field, scale=told.scale))

        self._client = MqttClient(
            told.broker or config.broker,
            client_id=f"sfumato-input-{token_hex(4)}",  # nobody must find it again
            username=device,
            subscribe=tuple(sensors),
            on_message=heard,
        )
        self._client.start()

    def close(self) -> None:
        """Disconnect."""
        self._client.stop()


class Several:
    """One input for each sensor, taken together: serial devices."""

    def __init__(self, inputs: list[Input], streams: list[IO[str]]) -> None:
        self._inputs, self._streams = inputs, streams

    def take(self) -> Mapping[str, float]:
        """What is new of each."""
        return {name: value for one in self._inputs for name, value in one.take().items()}

    def close(self) -> None:
        """Close all."""
        for one in self._inputs:
            one.close()


def open_input(config: SensorConfig, names: tuple[str, ...], device: str) -> Input:
    """The input that sensor.toml names.

    Args:
        config: The configuration of the sensor.
        names: Sensors whose readings are asked for, with the public baseline if the site has one.
        device: What the device is called.

    Returns:
        The input, which reads from now on.

    Raises:
        InvalidInput: A file cannot be read; nothing was started.
    """
    told = config.input
    half = config.period_ms / 2000
    match told.kind:
        case "stdin":
            return Lines(sys.stdin, names, field=told.field, scale=told.scale)
        case "csv":
            return Replay(told.path or Path(), names, told.scale)
        case "file":
            return _files(told, half)
        case "command":
            return Polled(lambda: _output(told, names), half)
        case "mqtt":
            return Topics(config, device)


def parsed(
    line: str, names: tuple[str, ...], *, field: str = "", scale: float = 1.0
) -> Mapping[str, float]:
    """The readings in a line: a number for the only sensor, or JSON with one for each.

    >>> parsed("21.5", ("door",))
    {'door': 21.5}
    >>> parsed('{"door": 21500, "hall": null}', ("door", "hall"), scale=0.001)
    {'door': 21.5}
    >>> parsed('{"value": 3}', ("door",), field="value")
    {'door': 3.0}
    """
    text = line.strip()
    if len(text) > LONGEST:
        return {}
    if not text.startswith("{"):
        return numbers({names[0]: text}, names, scale) if len(names) == 1 else {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if field:
        found = {names[0]: found.get(field)} if len(names) == 1 else {}
    return numbers(found, names, scale)


def numbers(found: Mapping[str, Any], names: tuple[str, ...], scale: float) -> dict[str, float]:
    """What of it is a finite number, of a sensor that is asked for, in the site's unit."""
    read = {name: _scaled(found.get(name), scale) for name in names}
    return {name: value for name, value in read.items() if value is not None}


def _scaled(value: Any, scale: float) -> float | None:
    """A number times the scale, rounded once, as a noise plan counts; None for what is no reading."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
        if not math.isfinite(number) or abs(number) > LARGEST or number == 0:
            return None if number else 0.0
        return number if scale == 1 else float(Fraction(value) * Fraction(repr(scale)))
    except (ValueError, OverflowError):
        return None


def _files(told: InputConfig, every: float) -> Input:
    """Files whose content is the reading are read again and again; devices that write lines are heard."""
    streams: list[IO[str]] = []
    inputs: list[Input] = []
    plain: dict[str, Path] = {}
    for name, path in (told.paths or {}).items():
        try:
            mode = os.stat(path).st_mode
            if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
                plain[name] = path
                continue
            streams.append(path.open(encoding="utf-8", errors="replace"))
        except OSError as problem:
            raise InvalidInput(
                f"cannot read {path}: {problem.strerror}; nothing was started"
            ) from None
        inputs.append(Lines(streams[-1], (name,), field=told.field, scale=told.scale))
    if plain:
        inputs.append(Polled(lambda: _contents(plain, told), every))
    return Several(inputs, streams)


def _contents(paths: Mapping[str, Path], told: InputConfig) -> Mapping[str, float]:
    read: dict[str, float] = {}
    for name, path in paths.items():
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                text = file.read(LONGEST)
        except OSError:
            continue
        read |= parsed(text, (name,), field=told.field, scale=told.scale)
    return read


def _output(told: InputConfig, names: tuple[str, ...]) -> Mapping[str, float]:
    import subprocess

    try:
        run = subprocess.run(  # noqa: S603 - the words of sensor.toml, without a shell
            told.command, capture_output=True, timeout=told.timeout, check=True, text=True,
            stdin=subprocess.DEVNULL, errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = run.stdout.strip().splitlines()
    return parsed(lines[-1], names, field=told.field, scale=told.scale) if lines else {}
