"""A module of mechanisms to run `sfumato audit` on, and what a command must end in."""

from __future__ import annotations

import functools
import json
import sys
import types
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from tests.audit.drifting import drifting
from tests.cli.sense_runs import alone
from typer.main import get_command
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.figures import sheet

_command = functools.cache(get_command)
PAIR = ("--pair", "[0, 1]")
FEW = ("--budget", "20000")
MANY = ("--budget", "10000000")
"""Runs, and no seconds: whether a certificate is begun must not depend on how fast the machine is."""
LOG3 = "1.09862"


def chatty(data: int) -> int:
    print("a word of my own")
    return data


def mechanisms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """An empty folder, and a module `mech` whose chance is the test's own."""
    alone(tmp_path, monkeypatch)
    monkeypatch.setattr(sys, "path", list(sys.path))
    # A quarter of the pixels a side: nothing here needs more, and drawing is slow.
    monkeypatch.setattr(sheet, "DPI", 50)
    module = types.ModuleType("mech")
    module.__dict__.update(
        response=lambda data, runs: np.where(rng.random(runs) < 0.75, data, 1 - data),
        leak=lambda data, runs: np.full(runs, data),
        noisy=lambda data, runs: data + rng.laplace(scale=0.25, size=runs),
        slow=lambda data: int(rng.random() < 0.5),
        broken=lambda data: 1 // (data - data),
        law=lambda data: [0.75, 0.25] if data == 0 else [0.25, 0.75],
        draw=lambda rng: (0, 1),
        strange=lambda rng: 0,
        number=3,
        nothing=lambda data: None,
        nan=lambda data, runs: np.full(runs, np.nan),
        drifting=drifting(200, rng).run,
        drawn_by_nobody=lambda: (0, 1),
        ends=lambda data: sys.exit(1),
        chatty=chatty,
        lowbits=lambda data, runs: rng.integers(0, 2, runs) + data * 2.0**-30,
    )
    monkeypatch.setitem(sys.modules, "mech", module)


def run(*words: str) -> Result:
    with mock.patch("typer.testing._get_command", _command):
        result = CliRunner().invoke(app, ["audit", *words])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def ended(code: int, *words: str) -> str:
    result = run(*words)
    assert result.exit_code == code, result.output
    return result.stdout


def answer(code: int, *words: str) -> Any:
    """The JSON of a command that says nothing else."""
    result = run(*words, "--json")
    assert result.exit_code == code, result.output
    assert result.stderr == ""
    return json.loads(result.stdout)
