"""Commands that are ended at every stage: what was paid for is delivered by resume, once, as it was drawn."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.killed import JOBS, STAGES

pytestmark = pytest.mark.fault

ROOT = Path(__file__).parents[2]
SPENT = {"heatmap": "epsilon 1", "bounds": "epsilon 1", "sense": "rho 3", "graph": "epsilon 3"}


def values_of(result: dict[str, Any]) -> dict[str, Any]:
    """The released numbers in a file of readings, by entry.

    A map that was written before the death is left only where resume makes the same of its counts;
    that it is there, and that resume did not refuse, says so of maps and blocks.
    """
    if "snapshots" in result:
        return {
            str(one["release"]["entry"]["number"]): one["release"]["value"]
            for one in result["snapshots"]
        }
    return {}


@pytest.fixture(scope="module")
def deaths(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The deaths of all commands: one process reads the libraries for them."""
    words = [sys.executable, "-m", "tests.journeys.killed", str(tmp_path_factory.mktemp("deaths"))]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", JOBS)
def test_what_was_paid_for_is_delivered_once(deaths: list[dict[str, Any]], name: str) -> None:
    job = JOBS[name]
    records = [one for one in deaths if one["job"] == name]
    assert {one["stage"] for one in records} == set(STAGES)
    for one in records:
        case = f"{name} {one['stage']} {one['part']} {one['signal']}: {one['said']}"
        stage, part = one["stage"], one["part"]
        assert one["ended"] == -one["signal"], case
        paid = job.parts if stage in ("writing", "written") else part - (stage == "before")
        assert one["charged"] == paid, case
        assert len(one["drawn"]) == paid - (stage in ("charged", "sampled")), case
        if one["signal"] != signal.SIGKILL:
            assert "interrupted; " in one["said"], case
            told = f"sfumato {job.resume[0]} resume a.ledger"
            assert told in one["said"] if paid else "nothing was charged" in one["said"], case
            assert "Traceback" not in one["said"], case
        there = {"writing": 1, "written": 2}.get(stage, 0)
        assert one["there"] == list(job.outputs[:there]), case
        # And then: all is there, paid for once, and as it was drawn.
        assert one["resumed"][0] == 0, (case, one["resumed"])
        assert (one["waiting"], one["left"]) == (0, []), case
        if not paid:
            assert "nothing to finish" in one["resumed"][1], case
            assert one["outputs"] == [], case
            continue
        assert one["outputs"] == list(job.outputs), case
        assert (one["entries"], one["spent"]) == (job.parts, SPENT[name]), case
        for number, value in values_of(one["result"]).items():
            assert one["drawn"].get(number, value) == value, case
        if name == "sense":
            assert all(snapshot["seal"] is not None for snapshot in one["result"]["snapshots"])
