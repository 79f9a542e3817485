"""How far three jobs walk: files and functions of the package that one map, one recovery and one audit touch.

Counted, not timed: `python benchmarks/walks.py`, with `--list` to name the files. Functions that
numba compiles do not show; the body of a class, which runs when its file is loaded, is no function.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

JOBS = {
    "a map (heatmap release, PNG)": (
        "heatmap city rows.parquet --users 300 --quiet",
        "ledger create city.ledger --epsilon 2 --unit user --source city",
        "heatmap release rows.parquet --user user --bounds 11.20,43.74,11.32,43.81 --epsilon 1"
        " --ledger city.ledger --out map.png --quiet",
    ),
    "a recovery (sense recover, JSON)": (
        "sense simulate hall --quiet",
        "sense ledger hall/site.json hall.ledger --epsilon 2 --quiet",
        "sense release hall/readings.csv --site hall/site.json --ledger hall.ledger --epsilon 2"
        " --out noisy.json --quiet",
        "sense recover noisy.json --out found.json --quiet",
    ),
    "an audit (audit run)": (
        "audit run sfumato.audit.catalogue:half_noise --claim epsilon=1 --inputs numbers"
        " --out verdict.json --quiet",
    ),
}


def walked(call: Callable[[], Any]) -> tuple[set[str], set[tuple[str, str]]]:
    """The files and the named functions of the package that a call enters."""
    import sfumato

    house = str(Path(str(sfumato.__file__)).parent)
    files: set[str] = set()
    functions: set[tuple[str, str]] = set()

    def entered(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        named = code.co_flags & inspect.CO_OPTIMIZED and code.co_name[0] != "<"
        if event == "call" and named and code.co_filename.startswith(house):
            files.add(code.co_filename)
            functions.add((code.co_filename, code.co_qualname))

    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return files, functions


def command(line: str) -> None:
    """Run one command of ours in this process, silently."""
    from sfumato.cli.main import app

    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        app(line.split(), standalone_mode=True)


def main() -> None:
    """Print a table of the three walks."""
    print("\n## How far a job walks\n\n| job | files | functions |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, (*before, last) in JOBS.items():
            for line in before:
                command(line)
            files, functions = walked(partial(command, last))
            print(f"| {name} | {len(files)} | {len(functions)} |")
            if "--list" in sys.argv:
                for file in sorted(files):
                    entered = sorted(function for inside, function in functions if inside == file)
                    print(f"    {file.rpartition('sfumato/')[2]}: {', '.join(entered)}")


if __name__ == "__main__":
    main()
