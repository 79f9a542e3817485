"""Joint maps: what a secure sum between three processes takes beside the parties' own work.

Prints Markdown; `--quick` is a smoke test that says nothing. Three parties on loopback with TLS, each with
its own made-up people, 256 x 256 cells. *Own sums* are the seconds to count the rows; *joint* those of
agreeing, charging, noise and secure sums, of the slowest party, by the clock and of its processors (its own
process and MPyC's): three parties share this machine, which they would not. The peer is the central
release of the same method on one party's rows, from counted rows to counts; the ratio is of processor times.
"""

from __future__ import annotations

import resource
import socket
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.heatmap.distributed import make_certificates, plan_joint
from sfumato.heatmap.methods import method_named
from sfumato.privacy import Joint, Ledger, PureDP
from sfumato.records import Columns, bound_of_sums, open_table, sum_cells
from sfumato.spaces import area_of_plane

NAMES = ("ticino", "uri", "vaud")
LEVELS = 8
ROWS = 1_000_000
QUICK = 20_000


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one party."""

    own: float
    joint: float
    busy: float
    central: float
    rounds: int
    counts: int
    sent: int


def write_people(path: Path, rows: int, seed: int) -> None:
    """Rows of made-up people in a few crowds, five rows each."""
    rng = np.random.default_rng(seed)
    places = rng.random((40, 2))
    of = places[rng.zipf(1.6, rows) % len(places)]
    at = np.clip(of + 0.02 * rng.standard_normal((rows, 2)), 0, 0.999)
    users = rng.integers(0, rows // 5, rows)
    pq.write_table(pa.table({"user": users, "x": at[:, 0], "y": at[:, 1]}), path)


def one_party(folder: str, number: int, method: str) -> Times:
    """Count, plan and run one party, each timed."""
    place, name = Path(folder), NAMES[number]
    area = area_of_plane((0.0, 0.0, 1.0, 1.0), LEVELS)
    columns = Columns("user", "x", "y")
    rows = str(place / f"{name}.parquet")
    kind = method_named(method)

    def count(source: str) -> Any:
        return sum_cells(open_table(rows), columns, area, source=source)

    central = Ledger.create(
        place / f"{name}-{method}-central.ledger", PureDP(2), unit="user", source=name
    )
    bound = bound_of_sums(area.grid)
    mechanism = kind.mechanism(PureDP(1).epsilon, bound, area.grid)
    counted = count(name)  # libraries are read, and compiled, before anything is timed
    central.release(mechanism, counted, pay=PureDP(1))
    start = time.perf_counter()
    counted = count(name)
    own = time.perf_counter() - start
    start = time.process_time()
    central.release(mechanism, counted, pay=PureDP(1))
    alone = time.process_time() - start
    ledger = Ledger.create(
        place / f"{name}-{method}.ledger", PureDP(1), unit="user", source=name, model=Joint(3)
    )
    plan = plan_joint(
        rows,
        columns,
        area,
        parties=place / "parties.toml",
        me=name,
        ledger=ledger,
        epsilon=1,
        method=kind,
    )
    steps: list[tuple[float, float, str]] = []

    def watch(step: str) -> None:
        steps.append((time.perf_counter(), time.process_time(), step))

    result = plan.run(watch=watch)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = [used.ru_utime + used.ru_stime, 0.0]
    for begin, end in (
        ("connected", "counting"),
        ("waiting until all parties have ch", "waiting until all parties have k"),
    ):
        first = next(one for one in steps if one[2].startswith(begin))
        last = next(one for one in steps if one[2].startswith(end))
        spent[0] += last[1] - first[1]
        spent[1] += last[0] - first[0]
    busy, clock = spent
    return Times(own, clock, busy, alone, result.rounds, result.counts, result.traffic.sent)


def main() -> None:
    """Print the table."""
    rows = QUICK if "--quick" in sys.argv else ROWS
    print(
        "| method | rows a party | own sums, s | joint, s | busy, s | rounds | counts | kB sent | "
        "central, busy, s | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for method in ("zoom", "pyramid"):
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            place = Path(folder)
            make_certificates(place / "certificates", NAMES)
            ports = [stack.enter_context(socket.socket()) for _ in NAMES]
            for one in ports:
                one.bind(("127.0.0.1", 0))
            (place / "parties.toml").write_text(
                "".join(
                    f'[[party]]\nname = "{name}"\naddress = "127.0.0.1:{one.getsockname()[1]}"\n'
                    for name, one in zip(NAMES, ports, strict=True)
                )
            )
            for one in ports:
                one.close()
            for number, name in enumerate(NAMES):
                write_people(place / f"{name}.parquet", rows, number)
            with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
                work = [pool.submit(one_party, folder, number, method) for number in range(3)]
                found = [one.result() for one in work]
            slowest = max(found, key=lambda one: one.joint)
            own = max(one.own for one in found)
            central = max(one.central for one in found)
            print(
                f"| {method} | {rows:,} | {own:.2f} | {slowest.joint:.2f} | {slowest.busy:.2f} | "
                f"{slowest.rounds} | {slowest.counts:,} | {slowest.sent / 1e3:,.0f} | {central:.2f} | "
                f"{slowest.busy / central:.1f} |"
            )


if __name__ == "__main__":
    main()
