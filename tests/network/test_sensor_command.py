"""`sfumato sensor` and `sfumato unseal` as a user meets them, and how little a sensor's process loads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.network.ready import SITE, FakeClock, Given, Kept, make_sensor, make_site
from tests.test_light_path import HEAVY, MEASURE, MOST_MEGABYTES
from typer.testing import CliRunner, Result

from sfumato.__main__ import main
from sfumato.cli.main import app
from sfumato.cli.network import light
from sfumato.network import decode, embedded_broker
from sfumato.network.sensors import Sensor, keep_rounds
from sfumato.sensing.model.operators.weighted import weighted

pytestmark = pytest.mark.unit


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_site(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)
    return tmp_path


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, list(words))
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def test_a_dry_run_says_what_a_round_costs_and_touches_nothing(folder: Path) -> None:
    make_sensor(folder, epsilon="1", window="1d")
    before = (folder / "door.key").read_text()
    result = run("sensor", "run", "door.toml", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "site hall: 0 every 1 s" in result.stdout
    assert (
        "epsilon 1, delta 1e-06 in each 1d, 86,400 rounds: all of them are paid for"
        in result.stdout
    )
    found = json.loads(run("sensor", "run", "door.toml", "--dry-run", "--json").stdout)
    assert found["paid_rounds"] == found["rounds"] == 86_400
    assert (folder / "door.key").read_text() == before
    assert not (folder / "door").exists()


def test_plan_and_table_are_made_once(folder: Path) -> None:
    config = make_sensor(folder)
    config.noise_plan.unlink()
    result = run("sensor", "run", "door.toml", "--dry-run")
    assert (result.exit_code, "`sfumato sensor plan` makes it" in result.stderr) == (4, True)
    assert run("sensor", "plan", "door.toml").exit_code == 0
    assert run("sensor", "plan", "door.toml").exit_code == 8
    made = json.loads(run("sensor", "table", "door.toml", "table.bin", "--json").stdout)
    assert made["size"] == (folder / "table.bin").stat().st_size
    assert made["law"].startswith("gaussian|")


def test_the_table_of_a_site_with_noise_for_each_says_each_sensors_lattice(folder: Path) -> None:
    line = SITE.operator
    gains = np.linspace(1, 4, len(SITE.sensors))
    weighed = replace(SITE, operator=weighted(line, gains), step=Fraction(1, 64))
    (folder / "site.json").unlink()
    weighed.write(folder / "site.json")
    config = make_sensor(folder, sensors=("0", "1"))
    made = json.loads(run("sensor", "table", "door.toml", "table.bin", "--json").stdout)
    assert [one["sensor"] for one in made["lattices"]] == ["0", "1"]
    first, second = made["lattices"]
    assert first["sigma"] / second["sigma"] == pytest.approx(gains[1] / gains[0])
    told = run("sensor", "table", "door.toml", "again.bin").stdout
    assert f"multiplier {second['multiplier']}, shift {second['shift']}" in told
    # The largest of its own sensors is what the device is said to add.
    assert (
        f"noise of deviation {first['sigma'] / float(SITE.per_source or 1):.4g}"
        in run("sensor", "run", "door.toml", "--dry-run").stdout
    )
    (folder / "site.json").unlink()
    replace(weighed, step=Fraction(0)).write(folder / "site.json")
    config.noise_plan.unlink()
    assert run("sensor", "plan", "door.toml").exit_code == 0
    refused = run("sensor", "table", "door.toml", "none.bin")
    assert (refused.exit_code, "step 0" in refused.stderr) == (4, True)
    assert not (folder / "none.bin").exists()


def test_a_run_by_the_command_is_light_and_a_mistake_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = make_sensor(folder, rows=((1.0,),))
    with embedded_broker() as broker:
        text = (folder / "door.toml").read_text()
        text = text.replace("port = 1\n", f"port = {broker.port}\n").replace('"1s"', '"100ms"')
        (folder / "door.toml").write_text(text)
        whole = run("sensor", "run", "door.toml", "--rounds", "1", "--json", "--quiet")
        assert json.loads(whole.stdout)["rounds"] == 1
        monkeypatch.setattr(
            sys, "argv", ["sfumato", "sensor", "run", "door.toml", "--rounds", "1", "-q"]
        )
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
        assert capsys.readouterr().out == "device door, start 1: 1 rounds sent\n"
    assert not list((config.state / "outbox").iterdir())
    assert light.run_light(["none.toml"]) == 4
    assert "none.toml: No such file" in capsys.readouterr().err
    for words in (["--help"], ["a", "b"], ["a", "--rounds", "x"], ["a", "--dry-run"], []):
        assert light.run_light(words) is None
    (folder / "sfumato.toml").write_text("")
    assert light.run_light(["none.toml"]) is None


def test_unseal_is_for_the_key_holder(folder: Path) -> None:
    config = make_sensor(folder)
    sensor, clock = Sensor(config), FakeClock()
    client = Kept(clock, sensor.outbox)
    keep_rounds(sensor, Given({"0": 2.0}), client, clock=clock, rounds=2)
    sensor.close()
    lines = [json.dumps(decode(payload).to_json()) for _, _, payload in client.sent]
    (folder / "rounds.jsonl").write_text("\n".join(lines) + "\n{}\n")
    said = run("unseal", "rounds.jsonl", "--key", "master.key", "--site", "site.json")
    assert said.exit_code == 0, said.output
    first, second = said.stdout.splitlines()
    assert first.startswith("2026-11-18T11:06:41.000Z door 0 ")
    assert second.endswith(" (held)")
    assert "1 packets were refused" in said.stderr
    out = run("unseal", "rounds.jsonl", "--key", "master.key", "--out", "exact.csv", "--json")
    assert json.loads(out.stdout) == {"readings": 2, "refused": 1, "out": "exact.csv"}
    assert (folder / "exact.csv").stat().st_mode & 0o777 == 0o600
    assert "noise was taken off" not in run("keys", "show", "master.key").stderr
    assert run("keys", "show", "master.key").stdout.count("unsealed") == 2


def test_check_keys_are_of_devices_in_use(folder: Path) -> None:
    assert run("keys", "device", "master.key", "w.key", "--name", "window").exit_code == 0
    assert run("keys", "check", "master.key", "check.key").exit_code == 8
    assert run("keys", "check", "master.key", "check.key", "--overwrite").exit_code == 0
    assert list(json.loads((folder / "check.key").read_text())["devices"]) == ["door", "window"]
    assert run("keys", "rotate", "master.key", "w2.key", "--name", "window").exit_code == 0
    assert run("keys", "check", "master.key", "new.key").exit_code == 0
    assert list(json.loads((folder / "new.key").read_text())["devices"]) == ["door", "window~2"]
    for name in ("door", "window"):
        assert run("keys", "retire", "master.key", "--name", name).exit_code == 0
    assert run("keys", "check", "master.key", "new.key", "--overwrite").exit_code == 0
    assert json.loads((folder / "new.key").read_text())["devices"] == {}  # nobody is let in


LIVE = """
import os, sys, threading
from sfumato.__main__ import main
sys.argv = ["sfumato", "sensor", "run", "door.toml", "--rounds", "2", "--json"]
try:
    main()
except SystemExit as end:
    assert end.code == 0
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is counted as on Linux")
def test_a_sensors_process_loads_nothing_heavy(folder: Path) -> None:
    make_sensor(folder, rows=((1.0,),), epsilon="1", window="1d")
    with embedded_broker() as broker:
        text = (folder / "door.toml").read_text()
        text = text.replace("port = 1\n", f"port = {broker.port}\n").replace('"1s"', '"200ms"')
        (folder / "door.toml").write_text(text)
        found = subprocess.run(
            [sys.executable, "-c", LIVE + MEASURE], cwd=folder, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    assert found.returncode == 0, found.stderr
    seen = json.loads(found.stdout.splitlines()[-1])
    assert not {*HEAVY, "typer", "rich", "amqtt", "sqlite3", "pytest"} & set(seen["modules"])
    assert seen["megabytes"] < MOST_MEGABYTES


def test_a_signal_ends_a_sensor_in_order(folder: Path) -> None:
    make_sensor(folder, rows=((1.0,),))
    text = (folder / "door.toml").read_text().replace('"1s"', '"100ms"')
    (folder / "door.toml").write_text(text)
    process = subprocess.Popen(
        [sys.executable, "-m", "sfumato", "sensor", "run", "door.toml", "--json"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    while not list(folder.glob("door/outbox/*.packet")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert json.loads(out)["device"] == "door"


def test_what_is_planned_must_be_the_site(folder: Path) -> None:
    config = replace(make_sensor(folder), sensors=("7",))
    text = (folder / "door.toml").read_text().replace('["0"]', '["7"]')
    (folder / "door.toml").write_text(text)
    result = run("sensor", "run", "door.toml", "--dry-run", "--json")
    assert result.exit_code == 4
    assert "has no sensor '7'" in json.loads(result.stderr)["error"]["message"]
    assert not config.state.exists()
