"""`sfumato shuffle`: a plan, a shuffler in a process of its own, two hundred devices, and one map."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.heatmap import read_heatmap
from sfumato.privacy import Ledger, Shuffled

pytestmark = pytest.mark.unit
WAIT = 600  # seconds; only a broken test waits so long
DEVICES = 200


def run(*words: str, group: str = "shuffle") -> Result:
    return CliRunner().invoke(app, [group, *words], env={"COLUMNS": "200"})


def plan_words(*more: str) -> list[str]:
    return [
        *("plan", "--bounds", "0,0,1,1", "--plane", "--levels", "1", "--width", "4"),
        *("--epsilon", "4", "--delta", "1/10", "--units", "1"),
        *("--adder", "adder.pub", "--shuffler", "shuffler.pub", *more),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keys, a plan, a ledger, and a table to play devices with; commands run in it."""
    made, before = tmp_path_factory.mktemp("shuffle"), Path.cwd()
    os.chdir(made)
    for name in ("adder", "shuffler"):
        found = run("keys", f"{name}.key")
        assert found.exit_code == 0, found.output
    numbers = ("--devices", str(DEVICES), "--batch", "160", "--curious", "10")
    found = run(*plan_words("--out", "plan.json", *numbers))
    assert found.exit_code == 0, found.output
    Path("plan.txt").write_text(found.output)
    create = ("create", "phones.ledger", "--epsilon", "4", "--delta", "1/10", "--unit", "user")
    found = run(*create, "--source", "phones", "--model", "shuffled", *numbers, group="ledger")
    assert found.exit_code == 0, found.output
    rows = ["user,lon,lat", *(f"u{i},{0.1 + i / 1000},0.2" for i in range(DEVICES))]
    Path("rows.csv").write_text("\n".join(rows) + "\n")
    yield made
    os.chdir(before)


def test_a_plan_says_what_a_device_sends(folder: Path) -> None:
    said = (folder / "plan.txt").read_text()
    assert "1 round, 4 cells x" in said
    assert "bytes = " in said
    assert "CPU hours at the adder" in said
    for model in ("central", "joint, 1 of 3 curious", "shuffled", "local"):
        assert f"  {model}" in said
    assert "worth it where no one may gather the rows" in said
    told = json.loads((folder / "plan.json").read_text())
    assert told["trust"] == {"kind": "shuffled", "batch": 160, "devices": 200, "curious": 10}


@pytest.mark.fault
def test_two_hundred_devices_through_a_shuffler_process(folder: Path) -> None:
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "sfumato",
            "shuffle",
            "serve",
            "plan.json",
            "--key",
            "shuffler.key",
            "--anybody",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        sent: list[Any] = []

        def play() -> None:
            sent.append(_played(address))

        devices = Thread(target=play)
        devices.start()
        found = run(
            *("collect", "plan.json", "--shuffler", address, "--key", "adder.key", "--quiet"),
            *("--ledger", "phones.ledger", "--out", "map.json", "--timeout", str(WAIT + 60)),
        )
        devices.join(WAIT)
        _, said = process.communicate(timeout=WAIT)
    assert found.exit_code == 0, found.output
    assert process.returncode == 0
    assert "of 200 to 200 devices" in found.output
    assert f"{DEVICES} devices answered 1 round," in str(sent)
    # The shuffler tells how many came, and nothing of whom or from where.
    assert "200 devices mixed and forgotten" in said
    assert "127.0.0.1" not in said
    made = read_heatmap(folder / "map.json")
    assert made.guarantee.model == Shuffled(160, 200, 10)
    assert 150 < made.tiles.total < 250
    assert Ledger(folder / "phones.ledger").statement().count == 1
    again = run(
        *("collect", "plan.json", "--shuffler", address, "--key", "adder.key"),
        *("--ledger", "phones.ledger", "--out", "again.json"),
    )
    assert again.exit_code != 0
    assert "this plan was paid for as entry 1" in again.output


def _played(address: str) -> str:
    """In threads nothing of the command line is run: its streams are those of the process."""
    from sfumato.heatmap.shuffled import devices_of_rows, read_plan, send_reports, shuffled_text

    devices = devices_of_rows(read_plan("plan.json"), "rows.csv")
    return shuffled_text(send_reports(devices, address, timeout=WAIT))


def test_a_device_by_itself_is_told_when_nobody_is_there(folder: Path) -> None:
    found = run(
        "send", "plan.json", "--shuffler", "127.0.0.1:1", "--memory", "m", "--at", "0.2,0.3"
    )
    assert found.exit_code == 10
    assert "does not answer" in found.output
    odd = run("send", "plan.json", "--shuffler", "127.0.0.1:1", "--memory", "m", "--at", "nowhere")
    assert odd.exit_code != 0
    assert "a place is two numbers" in odd.output
    forgets = run("send", "plan.json", "--shuffler", "127.0.0.1:1", "--at", "0.2,0.3")
    assert forgets.exit_code == 2
    assert "give --memory; nothing was sent" in forgets.output
    limit = ("--memory", "m", "--most-epsilon", "3")
    dear = run("send", "plan.json", "--shuffler", "127.0.0.1:1", *limit)
    assert dear.exit_code == 3
    assert "--most-epsilon is 3, with this plan it would be 4; nothing was sent" in dear.output


@pytest.mark.parametrize("words", [(), ("--anybody", "--enrolled", "devices.txt")])
def test_who_may_report_is_said(words: tuple[str, ...], folder: Path) -> None:
    found = run("serve", "plan.json", "--key", "shuffler.key", *words)
    assert found.exit_code == 2
    assert "--enrolled with a file, or --anybody; nothing was started" in found.output


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (("--devices", "200", "--batch", "4"), "at most 16"),
        (("--devices", "10", "--batch", "20"), "must be a whole number of 20"),
        (("--devices", "2", "--batch", "2"), "too few"),
    ],
)
def test_plans_that_protect_nobody_are_refused(
    words: tuple[str, ...], because: str, folder: Path
) -> None:
    found = run(*plan_words("--out", "none.json", *words))
    assert found.exit_code != 0
    assert because in found.output
    assert not (folder / "none.json").exists()


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (("--model", "shuffled"), "--batch"),
        (("--model", "shuffled", "--batch", "32", "--devices", "0"), "--devices"),
        (("--model", "joint", "--parties", "3", "--batch", "4"), "of the shuffled model"),
        (("--model", "central", "--curious", "4"), "joint model and the shuffled model"),
    ],
)
def test_ledgers_of_half_a_model_are_refused(words: tuple[str, ...], because: str) -> None:
    found = run(
        "create",
        "x.ledger",
        "--epsilon",
        "1",
        "--unit",
        "u",
        "--source",
        "s",
        *words,
        group="ledger",
    )
    assert found.exit_code != 0
    assert because in found.output
