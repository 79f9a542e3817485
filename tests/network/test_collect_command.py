"""`sfumato collect` as a command: what a network.toml may say, and one sentence for a mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.network.networks import corridor
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.network.collector import read_network

pytestmark = pytest.mark.unit

WHOLE = 'site = "site.json"\nperiod = "1s"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("network")
    corridor(3).write(made / "site.json")
    return made


def written(folder: Path, text: str) -> Path:
    file = folder / "network.toml"
    file.write_text(text)
    return file


def test_every_key_is_read(folder: Path) -> None:
    text = (
        WHOLE
        + 'grace = "250ms"\nhorizon = "1h"\nrevoked = ["old"]\ntrack = 0\nserve = 0\nkeep_days = 30\n'
        + 'store = "postgres://u@h/d"\nmax_mass = 2\nestimator = "least"\n[devices]\nhub = ["1", "2"]\n'
        + '[broker]\nhost = "broker.local"\nca_file = "ca.pem"\n'
    )
    found = read_network(written(folder, text))
    assert (found.period_ms, found.grace_ms, found.horizon_ms) == (1000, 250, 3_600_000)
    assert found.broker.address == ("broker.local", 8883)
    assert found.broker.ca_file == folder / "ca.pem"
    assert found.store == "postgres://u@h/d"
    assert len(found.places()["hub"]) == 2
    assert found.places(["hub~2", "thief~2"]).keys() == {"hub", "hub~2"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("period = 1", "does not say 'site'"),
        ('site = "site.json"', "does not say 'period'"),
        ('site = "site.json"\nperiod = "1 minute"', "a time is a number with ms, s, m or h"),
        (WHOLE + "chek = 1", "sets 'chek', which is none of"),
        (WHOLE + "serve = 99999", "a whole number from 0 to 65535"),
        (WHOLE + "track = 1", "two rounds or more"),
        (WHOLE + '[broker]\npassword = "p"', "a password is in a file of its own"),
        (WHOLE + "[broker]\nport = true", "'port' is a int, got bool"),
        (WHOLE + '[devices]\nhub = ["attic"]', "a sensor 'attic' that the site lacks"),
        (WHOLE + 'check_keys = "none.key"', "none.key"),
        ("site = ", "is not TOML"),
    ],
)
def test_a_mistake_is_one_sentence(folder: Path, text: str, told: str) -> None:
    file = written(folder, text)
    result = CliRunner().invoke(app, ["collect", str(file), "--dry-run"])
    assert result.exit_code == 4
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_dry_run_says_what_would_be_collected(folder: Path) -> None:
    file = written(folder, WHOLE)
    result = CliRunner().invoke(app, ["collect", str(file), "--dry-run"])
    assert result.exit_code == 0
    assert "3 sensors of 3 devices, a round every 1 s" in result.stdout
    assert "codes are NOT checked" in result.stdout
    as_json = CliRunner().invoke(app, ["collect", str(file), "--dry-run", "--json"])
    assert json.loads(as_json.stdout)["sensors"] == 3
    assert (folder / "rounds.sqlite").exists()  # beside the file, wherever it is run


def test_options_of_one_demo_are_not_of_the_other() -> None:
    result = CliRunner().invoke(app, ["demo", "--roads"])
    assert result.exit_code == 2
    assert "are of `demo network`" in result.stderr
    assert CliRunner().invoke(app, ["demo", "network", "--epsilon", "1"]).exit_code == 2
