"""One benchmark in two trees, side by side, and what every number of its tables became.

python -m experiments.paired heatmap --before ../before [--turns 2] [--all]

Runs benchmarks/NAME.py of both trees, less its peers (they are the same in both) and with fewer
repetitions, as `LESS` says; each turn is one process a tree, on one thread, both at the same time,
so that whatever else the machine does falls on both. A row is printed where a number differs by
more than 15 %, with `--all` wherever there is one: medians before and after, and the median and
range of after / before over the turns.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

TOLD = 1.15
NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+(e[-+]?\d+)?")
PEERS = ("/ us", "asked", "HiGHS", "their time", "Clarabel", "times", "OpenDP", "river", "format")
"""Columns whose heads hold one of these tell of a peer, or of a target."""


def less_heatmap(script: Any) -> None:
    """HiGHS finds its objectives, untimed; three epsilons."""
    clock: Callable[..., float] = script.seconds
    script.EPSILONS = (0.1, 1, 10)

    def seconds(work: Callable[..., object], *given: object, **named: Any) -> float:
        return 1.0 if work is script.by_highs else clock(work, *given, **named)

    script.seconds = seconds


def less_transport(script: Any) -> None:
    """No peer on grids, no norms, sides of 64 and 128."""
    script.LIMIT = -1.0
    script.SIDES = (64, 128)
    script.wanted = script.norms = lambda *_: None


def less_sensors(script: Any) -> None:
    """Clarabel up to 1,000 cells, which checks our objectives; 60 random problems."""
    script.INSTANCES = {100: 4, 1000: 2}
    script.PROBLEMS = 60


def less_audit(script: Any) -> None:
    """No rival; 20,000 runs for a bound, two seeds, 10 bands, one audit of each false claim."""
    sizes = {"runs": 20_000, "seeds": 2, "bands": 10, "audits": 1, "epsilons": (1.0,)}
    script.QUICK = script.Size(**sizes)
    script.sniper = lambda *_: {"none": 1.0}
    sys.argv.append("--quick")


def less_noise(script: Any) -> None:
    """Fewer draws."""
    script.SINGLES, script.DRAWS, script.SLOW_DRAWS = 500, 1_000_000, 5000


def less_records(script: Any) -> None:
    """Two million rows, no Spark."""
    opened: Callable[..., object] = script.open_table
    script.ROWS = 2_000_000
    script.by_spark = lambda *_: None

    def open_table(path: Path, **named: Any) -> object:
        return None if named.get("engine") == "spark" else opened(path, **named)

    script.open_table = open_table


LESS: dict[str, Callable[[ModuleType], None]] = {
    "audit": less_audit,
    "estimators": lambda _: None,
    "graphon": lambda _: None,
    "heatmap": less_heatmap,
    "noise": less_noise,
    "online": lambda _: None,
    "records": less_records,
    "sensors": less_sensors,
    "transport": less_transport,
}


def run_here(tree: Path, name: str) -> None:
    """Load the script of a tree and print its tables."""
    spec = importlib.util.spec_from_file_location(name, tree / "benchmarks" / f"{name}.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{tree} has no benchmarks/{name}.py; nothing was run")
    script = importlib.util.module_from_spec(spec)
    sys.modules[name] = script  # its dataclasses look here
    spec.loader.exec_module(script)
    LESS[name](script)
    script.main()


def numbers(text: str) -> dict[tuple[str, str], float]:
    """Every number of the tables of a page, by its row and its column."""
    found: dict[tuple[str, str], float] = {}
    heads: list[str] = []
    for line, after in zip(lines := text.splitlines(), [*lines[1:], ""], strict=True):
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if after.startswith("|--"):
            heads = [
                f"{head}, again" if head in cells[:at] else head for at, head in enumerate(cells)
            ]
        elif not line.startswith("|--"):
            labels = [cell for cell in cells[:3] if not NUMBER.fullmatch(cell.rstrip("x"))]
            row = ", ".join([heads[0], *(labels or cells[:1])])
            row += f", {cells[1]}" if heads[1] in ("side", "levels", "sigma", "width") else ""
            for head, cell in list(zip(heads, cells, strict=False))[1:]:
                told = not any(peer in head for peer in PEERS)
                if told and (number := NUMBER.match(cell)) and cell not in labels:
                    found[(row, head)] = float(number[0].replace(",", ""))
    return found


def started(tree: Path, name: str) -> subprocess.Popen[str]:
    """The script of a tree in a process of its own."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return subprocess.Popen(  # noqa: S603 - our own file
        [sys.executable, __file__, name, "--before", str(tree), "--here"],
        env={**os.environ, **threads, "PYTHONPATH": str(tree / "src")},
        cwd=tree,
        stdout=subprocess.PIPE,
        text=True,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run both trees in turn and print the rows."""
    parser = argparse.ArgumentParser(description="One benchmark in two trees", prog="paired")
    parser.add_argument("name", choices=sorted(LESS))
    parser.add_argument("--before", type=Path, required=True, help="a checkout of what was before")
    parser.add_argument("--turns", type=int, default=2, help="runs of each tree")
    parser.add_argument("--all", action="store_true", help="every number, also what is the same")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    before, after = given.before.resolve(), Path(__file__).resolve().parents[1]
    if given.here:
        run_here(before, given.name)
        return
    old, new = [], []
    for _ in range(given.turns):
        runs = [started(tree, given.name) for tree in (before, after)]
        pages = [run.communicate()[0] for run in runs]
        if any(run.returncode for run in runs):
            raise SystemExit(f"benchmarks/{given.name}.py failed; nothing is compared")
        old.append(numbers(pages[0]))
        new.append(numbers(pages[1]))
    print(
        "| row | column | before | after | after / before | range |\n|---|---|---:|---:|---:|---|"
    )
    for key in old[0]:
        pairs = [(a[key], b[key]) for a, b in zip(old, new, strict=True) if key in a and key in b]
        ratios = [b / a for a, b in pairs if a]
        ratio = median(ratios) if ratios else float("nan")
        if pairs and (given.all or not 1 / TOLD <= ratio <= TOLD):
            print(
                f"| {key[0]} | {key[1]} | {median(a for a, _ in pairs):.4g} "
                f"| {median(b for _, b in pairs):.4g} | {ratio:.2f} "
                f"| {min(ratios, default=ratio):.2f} to {max(ratios, default=ratio):.2f} |"
            )


if __name__ == "__main__":
    main()
