"""First use: CPU time of the first and of the second process that draws a map, and what they compile.

Prints Markdown; `make bench` keeps it in docs/reference/benchmarks.md. Machine code is kept in a new
empty folder, so that the first process finds nothing compiled; matplotlib's list of fonts is there.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

COMMAND = "from sfumato.cli.main import main; main()"
COUNTED = """
import json, sys
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    from sfumato.cli.main import main
    try:
        main()
    finally:
        started = [one.data["dispatcher"].py_func for _, one in recorder.buffer if one.is_start]
        ours = [one for one in started if one.__module__.startswith("sfumato.")]
        open("compiled.json", "w").write(json.dumps(len(ours)))
"""
RUNS = 5
PLACES = ["--user", "user", "--bounds", "11.20,43.74,11.32,43.81", "--epsilon", "1", "--quiet"]


def cpu(code: str, *words: str, folder: str, cache: int = 0) -> float:
    """CPU seconds, user and system, of a new Python process that runs this code in a folder."""
    env = os.environ | {"NUMBA_CACHE_DIR": f"{folder}/cache{cache}", "COLUMNS": "100"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603 - it runs Python on the text above
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env=env,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def release(folder: str, name: str, run: int) -> tuple[float, int]:
    """CPU seconds of a release, and how many functions of ours it compiled; each run has its own cache."""
    made = [f"{name} {run}.{end}" for end in ("png", "html", "json")]
    outs = [word for name in made for word in ("--out", name)]
    words = ["heatmap", "release", "city.parquet", "--ledger", "city.ledger", *PLACES, *outs]
    spent = cpu(COUNTED, *words, folder=folder, cache=run)
    return spent, int(json.loads(Path(folder, "compiled.json").read_text("utf-8")))


def main() -> None:
    """One table."""
    print("\n## First use\n")
    print(
        f"`benchmarks/first_use.py`, CPU time of whole processes, median of {RUNS}; numba {version('numba')}.\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        budget = ["--epsilon", str(2 * RUNS), "--unit", "user", "--source", "city", "--quiet"]
        cpu(COMMAND, "heatmap", "city", "city.parquet", "--users", "5000", "--quiet", folder=folder)
        cpu(COMMAND, "ledger", "create", "city.ledger", *budget, folder=folder)
        nothing, imported, helped = (
            statistics.median(cpu(code, *words, folder=folder) for _ in range(RUNS))
            for code, words in (("pass", ()), ("import sfumato", ()), (COMMAND, ("--help",)))
        )
        print("| process | CPU | compiled |")
        print("|---|---:|---:|")
        print(
            f"| `import sfumato`, beyond an empty process | {1000 * (imported - nothing):.0f} ms | 0 |"
        )
        print(f"| `sfumato --help` | {1000 * helped:.0f} ms | 0 |")
        for name in ("first map of a user", "second map"):
            spent, compiled = zip(
                *(release(folder, name, run) for run in range(1, RUNS + 1)), strict=True
            )
            print(f"| {name} | {statistics.median(spent):.1f} s | {max(compiled)} |")


if __name__ == "__main__":
    main()
