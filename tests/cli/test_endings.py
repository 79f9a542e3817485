"""How commands end: codes that mean one thing each, signals that are seen as signals, readers who have gone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.warm import variables
from typer.testing import CliRunner

from sfumato.cli.console import sentences
from sfumato.cli.endings import ENDS, MEANINGS, Interrupted, code_of, told_of_signals
from sfumato.cli.main import app
from sfumato.privacy import Ledger, PureDP

pytestmark = pytest.mark.fault

MAIN = "from sfumato.cli.main import main; main()"
NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def run_main(words: list[str], *, before: str = "", **rest: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", f"{before}\n{MAIN}", *words],
        env=variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **rest,
    )


@pytest.mark.parametrize("number", NUMBERS, ids=lambda one: one.name)
def test_an_interrupted_command_ends_by_the_signal(tmp_path: Path, number: signal.Signals) -> None:
    """A shell shows 128 and its number; a loop of a shell stops."""
    Ledger.create(tmp_path / "a.ledger", PureDP(1), unit="user", source="city")
    # The command is interrupted by itself, in the middle: nothing depends on how long it takes.
    before = (
        "import os, sfumato.privacy.ledger.verify as verify\n"
        f"verify.verify_ledger = lambda *a, **b: os.kill(os.getpid(), {int(number)})"
    )
    with run_main(["ledger", "verify", str(tmp_path / "a.ledger")], before=before) as process:
        said = process.communicate()[1].decode()
    assert process.returncode == -number
    assert "Traceback" not in said
    if number == signal.SIGINT:
        assert said == "sfumato: interrupted\n"


@pytest.mark.parametrize("words", [["--help"], ["ledger", "show", "a.ledger", "--json"]])
def test_a_reader_who_has_gone_is_no_failed_check(tmp_path: Path, words: list[str]) -> None:
    Ledger.create(tmp_path / "a.ledger", PureDP(1), unit="user", source="city")
    # What nobody reads from the first letter on: a pipe whose other end is closed.
    ours, theirs = os.pipe()
    os.close(ours)
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, *words],
        env=variables(),
        cwd=tmp_path,
        stdout=theirs,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(theirs)
        said = process.communicate()[1].decode()
    assert (process.returncode, said) == (141, "")


@pytest.mark.parametrize("name", ENDS)
def test_a_signal_is_an_exception_once_while_a_command_pays(name: str) -> None:
    number = signal.Signals[name]
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(Interrupted) as caught, told_of_signals():
            signal.raise_signal(number)
        assert code_of(caught.value) == 128 + number
        assert signal.getsignal(number) is signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # nohup
        with told_of_signals():
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_an_interrupt_says_what_its_pipeline_noted() -> None:
    house = typer.Typer()

    @house.command()
    @sentences
    def pay(json: bool = False) -> None:
        del json
        end = KeyboardInterrupt()
        end.add_note("entry 3 of city.ledger was charged")
        raise end

    result = CliRunner().invoke(house, [])
    assert result.exit_code == 130
    assert result.stderr == "sfumato: interrupted; entry 3 of city.ledger was charged\n"
    result = CliRunner().invoke(house, ["--json"])
    assert '"exit": 130' in result.stderr


def test_help_and_the_page_say_what_every_code_means() -> None:
    said = " ".join(re.sub(r"[│\s]+", " ", CliRunner().invoke(app, ["--help"]).stdout).split())
    page = (Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md").read_text()
    for code, means in MEANINGS.items():
        assert f"{code} {means}" in said
        assert re.search(rf"^\| {code} \|", page, re.MULTILINE), f"{code} is not on the page"
