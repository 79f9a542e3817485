"""`resume` of every command that pays: the command with --json, the Python call and the saved file agree."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.cli.sense_runs import alone
from tests.journeys.killed import city, club, hall
from tests.seeded import seed_system
from typer.main import get_command
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.graphon import BlocksResult, release_blocks, resume_blocks
from sfumato.heatmap import release_heatmap, resume_heatmap
from sfumato.heatmap.results import ReleaseResult
from sfumato.privacy import ZCDP
from sfumato.privacy.ledger import delivery
from sfumato.privacy.runs import ResumeResult, render_resumed
from sfumato.sensing import release_readings, resume_readings
from sfumato.sensing.results.release import ReleaseResult as ReadingsResult

pytestmark = pytest.mark.unit

_command = functools.cache(get_command)


@dataclass(frozen=True)
class Verb:
    """A command that releases, what finishes it, and the file that holds its result."""

    prepare: Callable[[], None]
    release: Callable[[], Any]
    resume: Callable[..., ResumeResult[Any]]
    read: Callable[[Any], Any]
    out: str
    held: Callable[[Any], Any]
    """What the file holds of a result, as JSON."""


VERBS = {
    "heatmap": Verb(
        city,
        lambda: release_heatmap(
            "rows.csv",
            user="user",
            bounds=(0, 0, 1, 1),
            plane=True,
            levels=3,
            method="laplace",
            ledger="a.ledger",
            epsilon=1,
            outputs="m.json",
        ),
        resume_heatmap,
        ReleaseResult.from_json,
        "m.json",
        lambda result: result.maps[0].to_json(),
    ),
    "sense": Verb(
        hall,
        lambda: release_readings(
            "rows.csv", "site.json", ledger="a.ledger", loss=ZCDP(1), out=["r.json"]
        ),
        resume_readings,
        ReadingsResult.from_json,
        "r.json",
        lambda result: result.readings.to_json(),
    ),
    "graph": Verb(
        club,
        lambda: release_blocks(
            "rows.csv", 2, epsilon=3, ledger="a.ledger", nodes="nodes.txt", out=["b.json"]
        ),
        resume_blocks,
        BlocksResult.from_json,
        "b.json",
        lambda result: result.to_json(),
    ),
}


def timeless(found: Any) -> Any:
    """JSON without what two ledgers never share: names, places of files, times, ids and hashes."""
    if isinstance(found, dict):
        own = {
            "time",
            "hash",
            "ledger",
            "previous",
            "written",
            "request",
            "run",
            "asked",
            "delivery",
        }
        own |= {"files", "ledgers", "header"}
        return {key: timeless(value) for key, value in found.items() if key not in own}
    return [timeless(one) for one in found] if isinstance(found, list) else found


def command(*words: str) -> Any:
    with pytest.MonkeyPatch.context() as patch, mock.patch("typer.testing._get_command", _command):
        seed_system(patch, b"one seed for both")
        done = CliRunner().invoke(app, [*words, "--json"])
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return json.loads(done.stdout)


def stopped(verb: Verb) -> None:
    """A release that was paid for, and died before anything was kept of what it drew."""

    def deadly(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "keep", deadly)
        with pytest.raises(KeyboardInterrupt):
            verb.release()


@pytest.mark.parametrize("name", VERBS)
def test_what_resume_finishes_is_the_same_from_command_call_and_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb, found, saved, listed = VERBS[name], {}, {}, {}
    for way in ("command", "call"):
        (tmp_path / way).mkdir()
        alone(tmp_path / way, monkeypatch)
        verb.prepare()
        stopped(verb)
        if way == "command":
            listed[way] = command(name, "resume", "a.ledger", "--list")
            found[way] = command(name, "resume", "a.ledger")
        else:
            listed[way] = verb.resume("a.ledger", list_only=True).to_json()
            with monkeypatch.context() as patch:
                seed_system(patch, b"one seed for both")
                result = verb.resume("a.ledger")
            found[way] = json.loads(json.dumps(result.to_json()))
            again = ResumeResult.from_json(found[way], verb.read)
            assert again.to_json() == result.to_json()
            (made,) = result.results
        saved[way] = json.loads(Path(verb.out).read_text())
    for told in (found, saved, listed):
        assert timeless(told["command"]) == timeless(told["call"])
    assert [one["state"] for one in listed["call"]["waiting"]] == ["charged"]
    assert (len(found["call"]["finished"]), found["call"]["waiting"]) == (1, [])
    # And the file holds what was returned, but for its name.
    held = json.loads(json.dumps(verb.held(made)))
    assert {key: saved["call"][key] for key in held} == held
    assert len(held) >= 3
    also = {"format", "error", "uncertainty", "silent", "total"}
    assert saved["call"].keys() - held.keys() <= also
    assert VERBS[name].out in render_resumed(result)
