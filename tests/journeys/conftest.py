"""A day of somebody who uses the command: in a folder, with deaths."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.warm import variables, warm_command

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Day:
    """Commands in a folder, from a process that has read all libraries."""

    folder: Path
    env: dict[str, str]

    def run(self, *words: str) -> tuple[int, str, str]:
        """How a command ended, and what it said on both sides."""
        done = subprocess.run(
            ["sfumato", *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def done(self, *words: str, code: int = 0) -> str:
        """What a command printed, which must end with a code."""
        ended, out, error = self.run(*words)
        assert ended == code, (words, ended, out, error)
        return out if code in (0, 7) else error

    def told(self, *words: str) -> Any:
        """The JSON of a command that must succeed."""
        return json.loads(self.done(*words, "--json"))

    def killed(
        self, stage: str, *words: str, number: int = signal.SIGKILL, part: int = 1, second: str = ""
    ) -> str:
        """What a command said that was ended at a stage."""
        head = [sys.executable, "-m", "tests.journeys.killed", "--at"]
        done = subprocess.run(
            [*head, stage, str(part), str(int(number)), second, *words],
            cwd=self.folder,
            env={**self.env, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == -number, (done.returncode, done.stderr)
        return done.stderr

    def left(self, ledger: str) -> float:
        """What is left of a budget of epsilon."""
        return float(self.told("ledger", "show", ledger)["floats"]["left"]["epsilon"])


@pytest.fixture(scope="session")
def warm() -> Iterator[dict[str, str]]:
    env = variables()
    with warm_command(env) as folder:
        yield variables(folder)


@pytest.fixture
def day(warm: dict[str, str], tmp_path: Path) -> Day:
    return Day(tmp_path, warm)
