"""The demo: what it makes for three parties, how it starts them, and what it says of their ledgers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.heatmap.distributed.in_threads import NAMES, Together, charged, run_all

from sfumato.errors import ExistsAlready, SessionStopped
from sfumato.heatmap.distributed import (
    DemoParty,
    demo,
    joint_text,
    plan_joint,
    read_parties,
    run_joint_demo,
)

pytestmark = pytest.mark.unit


def test_three_parties_and_one_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parties: list[DemoParty] = []

    def command(party: DemoParty) -> list[str]:
        parties.append(party)
        return ["joint", "release", party.name]

    def run(commands: list[list[str]], say: Any) -> list[str]:
        plans = [
            plan_joint(
                one.folder / f"{one.name}.parquet",
                user="user",
                bounds=one.bounds,
                levels=3,
                parties=one.folder / "parties.toml",
                me=one.number,
                ledger=one.folder / f"{one.name}.ledger",
                epsilon=1,
                outputs=one.outputs[:1],
            )
            for one in parties
        ]
        say("running")
        return [joint_text(one) for one in run_all(plans, Together())]

    monkeypatch.setattr(demo, "_run", run)
    said: list[str] = []
    found = run_joint_demo(tmp_path / "demo", command=command, users=30, watch=said.append)
    assert said == [*(f"{one}: sfumato joint release {one}" for one in NAMES), "running"]
    assert found.check.same
    assert found.picture == str(tmp_path / "demo" / "ticino.png")
    assert parties[0].outputs[1] == Path(found.picture)
    assert charged(tmp_path / "demo") == [1, 1, 1]
    assert "3 of 3 parties' ledgers and 3 maps tell the same story" in joint_text(found)
    assert "3 parties keep their own rows" in found.to_json()["statement"]
    ports = {one.port for one in read_parties(tmp_path / "demo" / "parties.toml").parties}
    assert len(ports) == 3
    with pytest.raises(ExistsAlready, match="exists and is kept; nothing was made"):
        run_joint_demo(tmp_path / "demo", command=command)


@pytest.mark.parametrize(("program", "ends"), [("/bin/echo", True), ("/bin/false", False)])
def test_each_party_is_a_process_of_its_own(
    program: str, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    words = [[name, "joint"] for name in NAMES]
    if ends:
        assert demo._run(words, print) == [f"-m sfumato {name} joint" for name in NAMES]
    else:
        with pytest.raises(SessionStopped, match="ticino ended with exit code 1"):
            demo._run(words, print)
