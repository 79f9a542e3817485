"""Deaths of runs and of resumes at every system call: as a script, it reports what each left.

A script of its own, like `ledger_worker`, whose deaths these are: only a process without threads may fork
safely.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.privacy.ledger_worker import COST, Record, city, killed_at_calls

from sfumato.privacy import REHEARSAL, Ledger, PureDP, histogram
from sfumato.privacy.runs import KeptRun, Request, ResumeResult, Run, kept_runs
from sfumato.privacy.runs.resume import resume_runs

REQUEST = Request("map/1", "heatmap", {"map": "monday"}, {"outputs": []})
PARTS = "ab"


@dataclass(frozen=True)
class Done:
    """What a run gave: nothing but its file."""

    def to_json(self) -> dict[str, Any]:
        return {}


class Died(Exception):
    """What stops a run."""


def carried_out(run: Run, path: Path, *, stop: str = "") -> Done:
    """Two releases, and a file of their values; a file that is there holds the same, or it is an error."""
    ledger, values = Ledger(path), []
    with run.on(ledger):
        for part in PARTS:
            if part == stop:
                raise Died
            made, _ = run.release(ledger, COST, city, part=part)
            values.append(made.value.tolist())
        out = path.with_name("out.json")
        if out.exists():
            assert json.loads(out.read_text()) == values, "other values were handed out"
        draft = path.with_name("draft.json")
        draft.write_text(json.dumps(values))
        draft.rename(out)
        run.delivered()
    return Done()


def finish(path: Path) -> ResumeResult[Done]:
    def one(kept: KeptRun) -> Done:
        return carried_out(Run(REQUEST, kept=kept), path)

    ledger = Ledger(path)
    return resume_runs(path, lambda: [ledger], kinds=("map/1",), finish=one)


def stopped_and_finished(path: Path) -> None:
    """A run that stopped before its second part, and whoever finishes it."""
    try:
        carried_out(Run(REQUEST), path, stop="b")
    except Died:
        finish(path)


def aftermath(path: Path) -> Record:
    """What lies there, and what resume makes of it, twice."""
    ledger, out = Ledger(path), path.with_name("out.json")
    charged = ledger.statement().count - 1
    there = json.loads(out.read_text()) if out.exists() else None
    states = [run.state for run in kept_runs([ledger])]
    finish(path)
    again = finish(path)
    found = json.loads(out.read_text()) if out.exists() else None
    folder = path.with_name("city.ledger.d")
    return {
        "charged": charged,
        "states": states,
        "there": there,
        "found": found,
        "entries": ledger.statement().count - 1,
        "draws": path.read_bytes().count(b'"kind":"drawn"'),
        "again": len(again.finished) + len(again.waiting),
        "left": sorted(file.name for file in folder.iterdir()) if folder.exists() else [],
    }


def runs(path: Path) -> Iterator[Record]:
    return killed_at_calls(path, lambda file: carried_out(Run(REQUEST), file), aftermath)


def resumes(path: Path) -> Iterator[Record]:
    return killed_at_calls(path, stopped_and_finished, aftermath)


WORKS: dict[str, Callable[[Path], Iterator[Record]]] = {"runs": runs, "resumes": resumes}


def main() -> None:
    Ledger.rehearsal(PureDP(1)).release(COST, histogram([0], 1, source=REHEARSAL))
    for record in WORKS[sys.argv[1]](Path(sys.argv[2]) / "city.ledger"):
        print(json.dumps(record))


if __name__ == "__main__":
    main()
