"""A process that is in the middle of a write, or of a query, until somebody ends it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from sfumato.files import scratch_folder, whole_file


def wait() -> None:
    """Say that it is the middle, and stay there until a signal comes."""
    print("ready", flush=True)
    os.read(0, 1)


def stay_in(name: str, *, after: bool) -> None:
    """Make a function of the system the middle: before it does its work, or after."""
    true = getattr(os, name)

    def stay(*args: Any, **rest: Any) -> None:
        if after:
            true(*args, **rest)
        wait()

    setattr(os, name, stay)


def main(work: str, folder: Path) -> None:
    result = folder / "result.txt"
    match work:
        case "new" | "over":
            with whole_file(result, overwrite=work == "over") as file:
                file.write(b"half")
                file.flush()
                wait()
        case "scratch":
            spill, _ = scratch_folder()
            (spill / "rows").write_text("of somebody")
            wait()
        case "fork":
            with whole_file(result) as file:
                file.write(b"whole")
                file.flush()
                here, there = os.pipe()
                print("ready", flush=True)
                child = os.fork()
                if child == 0:
                    os.write(there, b".")
                    os.read(0, 1)
                os.read(here, 1)  # a signal before this is lost: Python forgets them in a fork
                os.kill(child, signal.SIGTERM)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
        case "create" | "created":
            from sfumato.privacy import Ledger, PureDP

            stay_in("link", after=work == "created")
            Ledger.create(folder / "a.ledger", PureDP(1), unit="user", source="city")
        case "charge" | "charged":
            from sfumato.privacy import DiscreteLaplace, Ledger, histogram

            ledger, rows = Ledger(folder / "a.ledger"), histogram([0, 1], 2, source="city")
            stay_in("replace", after=work == "charged")
            ledger.release(DiscreteLaplace(8), rows)
        case "query":
            from sfumato.records.engines import duckdb_engine

            engine = duckdb_engine()
            print("ready", flush=True)
            engine.raw_sql(
                "select sum(a.range) from range(10000000) a, range(10000000) b"
            ).fetchall()
        case _:
            raise ValueError(work)


if __name__ == "__main__":
    if name := os.environ.get("SFUMATO_SABOTEUR"):
        from tests.saboteurs import SABOTEURS  # half the package: only where one strikes

        SABOTEURS[name].strike()
    main(sys.argv[1], Path(sys.argv[2]))
