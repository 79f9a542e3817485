"""A small hall and a small network to run `sfumato sense` on, and what must hold after a mistake."""

from __future__ import annotations

import csv
import functools
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from sfumato.cli.aloud import flags_of
from sfumato.cli.console import in_flags
from sfumato.cli.main import app
from sfumato.privacy import Ledger
from sfumato.privacy.ledger import Entry
from sfumato.sensing import read_site

HALL = {"door": 0.1, "left": 0.35, "right": 0.6, "wall": 0.9}
VALUES = {"door": 0.5, "left": 2.25, "right": 1.5, "wall": -0.125}
# Noise of less than 1e-5 of the sensitivity: what is found is as good as the truth, to far below
# 1e-6.
CLEAR = "1e10"
# A radius that this noise never leaves, and in which rounding is nothing. The default one is, by
# its meaning, left in up to one draw of ten.
ROOMY = ("--radius", "0.001")


_command: Any = functools.cache(get_command)


def run(*words: str) -> Result:
    # The tree of commands is the same each time, and building it takes longer than most of them.
    with mock.patch("typer.testing._get_command", _command):
        result = CliRunner().invoke(app, ["sense", *words])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def spelled(command: str, text: str) -> str:
    """A text of the library, as a command of `sfumato sense` says it."""
    return in_flags(text, flags_of(_command(app).commands["sense"].commands[command]))


def done(*words: str, codes: Sequence[int] = (0,)) -> Result:
    """A command that must succeed, or end with one of these codes."""
    result = run(*words)
    assert result.exit_code in codes, result.stderr
    return result


def answer(*words: str, codes: Sequence[int] = (0,)) -> Any:
    """The JSON of a command that must succeed, which says nothing else."""
    result = done(*words, "--json", codes=codes)
    assert result.stderr == ""
    return json.loads(result.stdout)


def listing() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def refused(code: int, *words: str, but: Sequence[str] = ()) -> str:
    """The one sentence of a mistake, after which all files `but` these, ledgers too, are what they were."""
    before = listing()
    result = run(*words)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    # Before a mistake comes to light a command may have said what it does, never how that ended.
    *remarks, sentence = result.stderr.splitlines()
    assert all(line.startswith(("planning", "recovering", "looking")) for line in remarks), remarks
    assert sentence.startswith("sfumato: ")
    after = listing()
    assert [name for name in {**before, **after} if before.get(name) != after.get(name)] == list(
        but
    )
    return sentence.removeprefix("sfumato: ")


def table(path: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    return path


def rows(path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(path).read_text(encoding="utf-8").splitlines()))


_MADE: dict[str, dict[str, bytes]] = {}


def made(name: str, build: Callable[[], None]) -> None:
    """The files that building leaves in an empty folder: built once, then copied."""
    if name not in _MADE:
        assert not listing(), "files here would be taken for files of the building"
        build()
        _MADE[name] = listing()
    for path, data in _MADE[name].items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_bytes(data)
        if path.endswith(".ledger"):
            Ledger(path).move()  # a copy pays only where that was said


TOLD = ("--unit", "mass", "--per-source", "1")
"""What every site says that is read: here as its operator is."""


def hall() -> None:
    """sensors.csv, site.json, hall.ledger, clear.ledger and readings.csv of a line with four sensors."""
    made("hall", _hall)


def _hall() -> None:
    table("sensors.csv", ["sensor", "x"], HALL.items())
    done(
        "site", "site.json", "--name", "hall", *TOLD, "--line", "20", "--sensors", "sensors.csv",
        "--diffusion-time", "0.02", "--radius", "1/10",
    )  # fmt: skip
    done("ledger", "site.json", "hall.ledger", "--rho", "100")
    done("ledger", "site.json", "clear.ledger", "--rho", "1e11")
    table("readings.csv", ["sensor", "value"], VALUES.items())


def hall_readings(*cells: int) -> list[float]:
    """What the hall's sensors read of a unit in each of these cells."""
    masses = np.zeros(20)
    masses[list(cells)] = 1
    return [float(reading) for reading in read_site("site.json").operator.readings(masses)]


def clear(*cells: int) -> None:
    """r.json and r.csv: readings of unit sources in these cells of the hall, with next to no noise."""

    def build() -> None:
        _hall()
        table("readings.csv", ["sensor", "value"], zip(HALL, hall_readings(*cells), strict=True))
        done(*release("--ledger", "clear.ledger", out=["r.json", "r.csv"], rho=CLEAR))

    made(f"clear {cells}", build)


def release(*more: str, out: Sequence[str] = ("r.json",), rho: str = "1") -> list[str]:
    """The words of a release of the hall's readings."""
    cost = ["--rho", rho] if rho else []
    outs = [word for path in out for word in ("--out", path)]
    return [
        "release",
        "readings.csv",
        "--site",
        "site.json",
        "--ledger",
        "hall.ledger",
        *cost,
        *outs,
        *more,
    ]


def entries(ledger: str = "hall.ledger") -> tuple[Entry, ...]:
    return Ledger(ledger).statement().entries


def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative names, no config file and no variables from outside."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)
