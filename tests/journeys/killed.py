"""Deaths of commands that release: run as a script, it reports what each left, and what resume made of it.

A script of its own, because only a process without threads may fork safely: it reads all libraries,
and each command runs in a fork of it. A command ends itself at a stage by a signal, so nothing
depends on how long anything takes.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.warm import READ, build_commands

from sfumato.files import atomic
from sfumato.privacy import FlippedEdge, Ledger, PureDP
from sfumato.privacy.ledger import delivery, guarded
from sfumato.privacy.ledger import ledger as ledger_module
from sfumato.privacy.runs import kept_runs

STAGES = ("before", "charged", "sampled", "kept", "writing", "written")
"""Before the charge; after it; after the draw, of which nothing is kept yet; after it is kept; when the
first output has its name and the second not; when all have theirs."""


@dataclass(frozen=True)
class Job:
    """A command that releases, in a folder of its own."""

    prepare: Callable[[], None]
    words: tuple[str, ...]
    outputs: tuple[str, ...]
    resume: tuple[str, ...]
    parts: int = 1
    ledger: str = "a.ledger"


def city() -> None:
    rng = np.random.default_rng(3)
    rows = [f"{user},{x},{y}" for user, (x, y) in enumerate(rng.uniform(0.4, 0.6, (60, 2)))]
    Path("rows.csv").write_text("\n".join(["user,lon,lat", *rows]) + "\n")
    Ledger.create("a.ledger", PureDP(2), unit="user", source="city")


MAP = ("heatmap", "release", "rows.csv", "--user", "user", "--levels", "3", "--epsilon", "1",
       "--ledger", "a.ledger", "--out", "m.csv", "--out", "m.json", "--method", "laplace",
       "--plane")  # fmt: skip


def hall() -> None:
    from sfumato.privacy import ZCDP
    from sfumato.sensing import describe_site, heat_line, open_ledger
    from sfumato.sensing.pipeline import make_device_key, make_master_key

    line = heat_line(sources=20, sensors=4, diffusion_time=0.02)
    site = describe_site(
        "hall", operator=line, radius="1/10", unit="mass", per_source=1, out="site.json"
    ).site
    open_ledger(site, "a.ledger", ZCDP(9))
    rows = [f"{time},{name},{2 + time}" for time in range(3) for name in site.sensors.names]
    Path("rows.csv").write_text("\n".join(["time,sensor,value", *rows]) + "\n")
    make_master_key("m.key")
    make_device_key("m.key", "d.key", name="d")


SENSE = ("sense", "release", "rows.csv", "--site", "site.json", "--rho", "1", "--ledger", "a.ledger",
         "--out", "r.csv", "--out", "r.json", "--device", "d.key")  # fmt: skip


def club() -> None:
    edges = [f"{i},{j}" for j in range(16) for i in range(j) if i // 8 == j // 8]
    Path("rows.csv").write_text("\n".join(["u,v", *edges]) + "\n")
    Path("nodes.txt").write_text("\n".join(map(str, range(16))) + "\n")
    Ledger.create("a.ledger", PureDP(9), unit="edge", source="club", neighbors=FlippedEdge())


JOBS = {
    "heatmap": Job(city, (*MAP, "--bounds", "0,0,1,1"), ("m.csv", "m.json"), ("heatmap",)),
    "bounds": Job(
        city,
        (*MAP, "--bounds", "private", "--outer", "0,0,1,1"),
        ("m.csv", "m.json"),
        ("heatmap",),
        parts=3,
    ),
    "sense": Job(hall, SENSE, ("r.csv", "r.json"), ("sense",), parts=3),
    "graph": Job(
        club,
        ("graph", "blocks", "rows.csv", "--nodes", "nodes.txt", "--epsilon", "3", "--ledger", "a.ledger",
         "--k", "2", "--out", "b.json", "--labels", "b.csv"),
        ("b.json", "b.csv"),
        ("graph",),
        parts=2,
    ),
}  # fmt: skip


def end_at(stage: str, part: int, number: int, second: str) -> None:
    """Make this process end itself when its n-th release comes to a stage."""
    calls = [0]

    def end() -> None:
        os.kill(os.getpid(), number)

    def counting(true: Any, *, when: str) -> Any:
        def call(*args: Any, **rest: Any) -> Any:
            calls[0] += 1
            here = calls[0] == part
            if here and when == "before":
                end()
            made = true(*args, **rest)
            if here and when == "after":
                end()
            return made

        return call

    match stage:
        case "before":
            Ledger.release = counting(Ledger.release, when="before")  # type: ignore[method-assign]
        case "charged":
            opening = guarded.open_for_release
            setattr(ledger_module, "open_for_release", counting(opening, when="before"))  # noqa: B010
        case "sampled":
            setattr(delivery, "keep", counting(delivery.keep, when="before"))  # noqa: B010
        case "kept":
            setattr(delivery, "keep", counting(delivery.keep, when="after"))  # noqa: B010
        case "writing":
            publish = atomic._publish

            def stop(draft: Path, target: Path, *, overwrite: bool) -> None:
                if target.name == second and target.parent.resolve() == Path.cwd():
                    end()
                publish(draft, target, overwrite=overwrite)

            setattr(atomic, "_publish", stop)  # noqa: B010
        case "written":
            Ledger.delivered = counting(Ledger.delivered, when="before")  # type: ignore[method-assign]
        case _:
            raise ValueError(stage)


def in_fork(words: tuple[str, ...], folder: Path, before: Callable[[], None]) -> tuple[int, str]:
    """Run the command in a fork: how it ended, and what it said."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        os.chdir(folder)
        for file in (1, 2):
            os.dup2(theirs, file)
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            usual = signal.default_int_handler if one == signal.SIGINT else signal.SIG_DFL
            signal.signal(one, usual)
        sys.argv = ["sfumato", *words]
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        before()
        code: Any = 70
        try:
            importlib.import_module("sfumato.cli.main").main()
        except SystemExit as end:
            code = end.code or 0
        sys.stdout.flush()
        os._exit(int(code))
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def kept_values(folder: Path) -> dict[str, Any]:
    """What lies beside the ledger as drawn, by entry."""
    found = {}
    for file in sorted((folder / "a.ledger.d").glob("*.jsonl")):
        for line in file.read_text().splitlines():
            told = json.loads(line.partition(" ")[2])
            if told["kind"] == "drawn":
                found[str(told["release"]["entry"]["number"])] = told["release"]["value"]
    return found


def death(job: Job, folder: Path, stage: str, part: int, number: int) -> dict[str, Any]:
    """One life, its death, and what resume made of it."""
    folder.mkdir(parents=True)
    here = Path.cwd()
    os.chdir(folder)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        job.prepare()
    os.chdir(here)
    ended, said = in_fork(job.words, folder, lambda: end_at(stage, part, number, job.outputs[1]))
    paid = Ledger(folder / job.ledger)
    charged = len(paid.statement().entries)
    drawn = kept_values(folder)
    there = [name for name in job.outputs if (folder / name).exists()]
    nothing = lambda: None  # noqa: E731
    ledger = str(folder / job.ledger)
    resumed, told = in_fork((*job.resume, "resume", ledger, "--quiet"), here, nothing)
    whole = folder / next(name for name in job.outputs if name.endswith(".json"))
    return {
        "stage": stage,
        "part": part,
        "signal": number,
        "ended": ended,
        "said": said,
        "charged": charged,
        "drawn": drawn,
        "there": there,
        "resumed": [resumed, told],
        "waiting": len(kept_runs([paid])),
        "entries": len(paid.statement().entries),
        "spent": str(paid.statement().spent),
        "outputs": [name for name in job.outputs if (folder / name).exists()],
        "result": json.loads(whole.read_text()) if whole.exists() else None,
        "left": sorted(path.name for path in (folder / "a.ledger.d").glob("*")),
    }


def deaths(name: str, folder: Path) -> Iterator[dict[str, Any]]:
    job = JOBS[name]
    signals = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
    for stage in STAGES:
        last = job.parts if stage not in ("writing", "written") else 1
        for part in range(1, last + 1):
            # All signals at the middle one, and by force at each.
            for number in signals if part == (last + 1) // 2 else signals[:1]:
                where = folder / f"{stage}-{part}-{int(number)}"
                yield death(job, where, stage, part, int(number))


def main() -> None:
    gc.disable()
    house = importlib.import_module("sfumato")
    for module in pkgutil.walk_packages(house.__path__, "sfumato."):
        importlib.import_module(module.name)
    for name in READ:
        importlib.import_module(name)
    build_commands()
    gc.freeze()
    gc.enable()
    for name in JOBS:
        for record in deaths(name, Path(sys.argv[1]) / name):
            print(json.dumps({"job": name, **record}))


if __name__ == "__main__":
    main()
