"""Every saboteur is caught by the test that says so: that test fails, and fails because of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.saboteurs import SABOTEURS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def zygote() -> Iterator[subprocess.Popen[str]]:
    """Forty saboteurs would read the same slow libraries forty times."""
    asked, told = subprocess.PIPE, subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-m", "tests.zygote"], cwd=ROOT, stdin=asked, stdout=told, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.fault
@pytest.mark.parametrize("name", sorted(SABOTEURS))
def test_the_suite_catches(name: str, zygote: subprocess.Popen[str], tmp_path: Path) -> None:
    assert zygote.stdin is not None
    assert zygote.stdout is not None
    said = tmp_path / "said"
    print(json.dumps([name, SABOTEURS[name].caught_by, str(said)]), file=zygote.stdin, flush=True)
    code, out = int(zygote.stdout.readline()), said.read_text(encoding="utf-8")
    # 1 is "tests ran and failed"; 2 to 5 would be a broken call, a collection error or no test at
    # all.
    assert code == 1, out
    assert "1 failed" in out
    # It failed by what it checks, not because the broken part fell over.
    reasons = [line for line in out.splitlines() if line.startswith("E  ")]
    assert any(SABOTEURS[name].because in line for line in reasons), out


@pytest.mark.unit
def test_there_are_enough_of_them() -> None:
    assert len(SABOTEURS) >= 8
    assert len({saboteur.caught_by for saboteur in SABOTEURS.values()}) == len(SABOTEURS)
