"""What numba compiles and what is loaded as the command runs: `python -m tests.compilations FILE words...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from numba.core import event


def main() -> None:
    """Run the command with these words, then write the names of what was compiled and loaded to a file."""
    out, sys.argv = sys.argv[1], ["sfumato", *sys.argv[2:]]
    with event.install_recorder("numba:compile") as recorder:
        try:
            from sfumato.cli.main import main as command

            command()
        finally:
            started = [one for _, one in recorder.buffer if one.is_start]
            functions = [one.data["dispatcher"].py_func for one in started]
            names = [f"{function.__module__}.{function.__qualname__}" for function in functions]
            found = {"compiled": names, "loaded": sorted(sys.modules)}
            Path(out).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
