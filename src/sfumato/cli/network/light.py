"""`sfumato sensor run` on a small machine: the same command without the library that parses all the others.

Whatever is not a plain run, a call for help or a mistake, is left to the whole program.
"""

from __future__ import annotations

import json as json_
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sfumato.cli.endings import stopped_by_signals
from sfumato.errors import SfumatoError
from sfumato.network.sensors import (
    SensorRun,
    SystemClock,
    read_sensor_config,
    run_line,
    run_sensor,
)


def run_until_stopped(sensor: Path, rounds: int | None, *, quiet: bool) -> SensorRun:
    """Run the sensor of a sensor.toml until its rounds are done, or a signal comes."""
    clock = SystemClock()
    with stopped_by_signals(clock.stop):
        return run_sensor(
            read_sensor_config(sensor), rounds=rounds, clock=clock, watch=None if quiet else _said
        )


def run_light(words: Sequence[str]) -> int | None:
    """Run `sfumato sensor run` with these words: its exit code, or None for what is no plain run."""
    plain = _plain(words)
    if plain is None or Path("sfumato.toml").exists() or any(map(_is_ours, os.environ)):
        return None
    sensor, rounds, flags = plain
    json = "--json" in flags
    try:
        done = run_until_stopped(sensor, rounds, quiet=bool({"--quiet", "-q"} & flags))
    except SfumatoError as error:
        return _failed(error, json=json)
    except OSError as error:
        return _failed(SfumatoError(f"{error.filename}: {error.strerror}"), json=json)
    print(json_.dumps(done.to_json(), indent=1) if json else run_line(done))  # noqa: T201
    return 0


def _plain(words: Sequence[str]) -> tuple[Path, int | None, set[str]] | None:
    flags: set[str] = set()
    files: list[str] = []
    rounds: int | None = None
    left = iter(words)
    for word in left:
        if word == "--rounds":
            number = next(left, "")
            if not number.isdecimal() or int(number) < 1:
                return None
            rounds = int(number)
        elif word in ("--json", "--quiet", "-q"):
            flags.add(word)
        elif word.startswith("-"):
            return None
        else:
            files.append(word)
    return (Path(files[0]), rounds, flags) if len(files) == 1 else None


def _failed(error: SfumatoError, *, json: bool) -> int:
    from sfumato.cli.console import exit_code

    code = exit_code(error)
    told = {"error": {"message": str(error), "exit": code}}
    print(json_.dumps(told) if json else f"sfumato: {error}", file=sys.stderr)  # noqa: T201
    return code


def _is_ours(name: str) -> bool:
    return name.startswith("SFUMATO_")


def _said(message: str) -> None:
    print(message, file=sys.stderr, flush=True)  # noqa: T201
