"""Every saboteur is caught by the test that says so: that test fails, and fails because of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.saboteurs import SABOTEURS

ROOT = Path(__file__).parent.parent


@pytest.mark.fault
@pytest.mark.parametrize("name", sorted(SABOTEURS))
def test_the_suite_catches(name: str) -> None:
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-o",
            "addopts=--import-mode=importlib",
            SABOTEURS[name].caught_by,
        ],
        cwd=ROOT,
        env={**os.environ, "SFUMATO_SABOTEUR": name},
        capture_output=True,
        text=True,
        check=False,
    )
    # 1 is "tests ran and failed"; 2 to 5 would be a broken call, a collection error or no test at all.
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 failed" in run.stdout
    # It failed by what it checks, not because the broken part fell over.
    reasons = [line for line in run.stdout.splitlines() if line.startswith("E  ")]
    assert any(SABOTEURS[name].because in line for line in reasons), run.stdout


@pytest.mark.unit
def test_there_are_enough_of_them() -> None:
    assert len(SABOTEURS) >= 8
    assert len({saboteur.caught_by for saboteur in SABOTEURS.values()}) == len(SABOTEURS)
