"""A day of somebody who uses the command: in a folder, with deaths."""

from __future__ import annotations

import json
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.warm import END_AT, variables


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
        done = subprocess.run(
            ["sfumato", *words],
            cwd=self.folder,
            env={**self.env, END_AT: f"{stage} {part} {int(number)} {second}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == -number, (done.returncode, done.stderr)
        return done.stderr

    def left(self, ledger: str) -> float:
        """What is left of a budget of epsilon."""
        return float(self.told("ledger", "show", ledger)["floats"]["left"]["epsilon"])


@pytest.fixture
def day(warm: Path, tmp_path: Path) -> Day:
    return Day(tmp_path, variables(warm))
