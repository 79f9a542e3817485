"""Lists, rotations and ends of keys are the same by command and by call; a locked key asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.sense_runs import alone, answer, done, hall, refused, run

from sfumato.sensing.pipeline import (
    list_keys,
    make_device_key,
    make_master_key,
    retire_device_key,
    rotate_device_key,
)
from sfumato.sensing.render import key_lines
from sfumato.sensing.results import KeyListing, KeyResult

pytestmark = pytest.mark.unit
RELEASE = (
    "release",
    "readings.csv",
    "--site",
    "site.json",
    "--ledger",
    "hall.ledger",
    "--rho",
    "1",
)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


def timeless(listing: dict[str, Any]) -> Any:
    return [
        listing["devices"] and [{**one, "made": ""} for one in listing["devices"]],
        [{**one, "time": ""} for one in listing["events"]],
    ]


def test_a_life_of_a_key_is_the_same_by_command_and_by_call() -> None:
    hall()
    Path("call").mkdir()
    answer("key", "new", "m.key")
    make_master_key("call/m.key")
    for name in ("door", "wall"):
        told = answer("key", "device", "m.key", f"{name}.key", "--name", name)
        made = make_device_key("call/m.key", f"call/{name}.key", name=name)
        assert (told["device"], made.device) == (name, name)
    told = answer("key", "rotate", "m.key", "door2.key", "--name", "door", "--replaced", "door.key")
    made = rotate_device_key("call/m.key", "call/door2.key", name="door", replaced="call/door.key")
    assert told["device"] == made.device == KeyResult.from_json(told).device == "door~2"
    told = answer("key", "retire", "m.key", "--name", "wall")
    found = retire_device_key("call/m.key", name="wall")
    same = json.loads(json.dumps(found.to_json()).replace("call/", ""))
    assert timeless(told) == timeless(same)
    listed = answer("key", "list", "m.key")
    assert listed == told == list_keys("m.key").to_json()
    assert KeyListing.from_json(listed) == list_keys("m.key")
    assert (
        done("key", "list", "m.key").stdout.splitlines()
        == key_lines(list_keys("m.key")).splitlines()
    )
    assert "has a key of this master key already" in refused(
        8, "key", "device", "m.key", "x.key", "--name", "door"
    )


def test_a_locked_key_asks_for_its_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    hall()
    Path("secret").write_text("correct horse\nnot this\n")
    Path("wrong").write_text("correct hors\n")
    answer("key", "new", "m.key", "--passphrase-file", "secret")
    answer("key", "device", "m.key", "d.key", "--name", "d", "--passphrase-file", "secret")
    done(*RELEASE, "--device", "d.key", "--out", "r.json")
    words = ("unseal", "r.json", "--key", "m.key")
    assert "does not open with this passphrase" in refused(4, *words, "--passphrase-file", "wrong")
    told = answer(*words, "--passphrase-file", "secret")
    assert len(told["readings"]) == 4
    asked: list[str] = []

    def prompt(text: str, **options: Any) -> str:
        asked.append(text)
        assert options["hide_input"]
        return "correct horse"

    monkeypatch.setattr("typer.prompt", prompt)
    assert run(*words, "--json").exit_code == 0
    assert asked == ["Passphrase of m.key"]
    assert len(list_keys("m.key").unsealings) == 2
    assert "cannot read none" in refused(4, *words, "--passphrase-file", "none")
