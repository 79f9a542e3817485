"""Local maps: what it takes to read and decode the answers of a million devices.

Prints Markdown; `--quick` is a smoke test that says nothing. People of a made-up crowd, epsilon 5 (the most
cells), both rounds. *Read* is JSON lines to counts, each device known by its name; *decode* is the map and
*bands and errors* what is said of it. CPU seconds of one thread; the peak is that of the whole process,
names of devices in it. Asked: a million reports decoded in at most 60 s and 4 GB.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from sfumato._types import IntArray
from sfumato.heatmap.local import (
    FINEST_CELL,
    Answer,
    Collector,
    Question,
    ask_next,
    decode_answers,
    design,
    first_question,
    leaf_of_cells,
    read_answers,
    simulate_reports,
)
from sfumato.spaces import Grid

Found = TypeVar("Found")
USERS, QUICK = 1_000_000, 3_000
EPSILON = 5
UNIT = (0.0, 0.0, 1.0, 1.0)


def crowd(users: int) -> IntArray:
    """Codes of level 8 of people around forty places."""
    rng = np.random.default_rng(3)
    middles, shares = rng.random((40, 2)), rng.dirichlet(np.ones(40))
    at = middles[rng.choice(40, users, p=shares)] + 0.03 * rng.standard_normal((users, 2))
    return np.asarray(Grid(FINEST_CELL).cells_of(*np.clip(at, 0, 1 - 1e-9).T))


def write_answers(path: Path, question: Question, codes: IntArray) -> None:
    """An answer of each device that a question asks; who got which report does not matter here."""
    asked = np.array([question.asks(f"device-{one}") for one in range(codes.size)])
    cells = leaf_of_cells(question.cells, FINEST_CELL)[codes[asked]]
    reports = simulate_reports(question.channel, cells, rng=np.random.default_rng(4))
    each = (report for report, count in reports.items() for _ in range(count))
    digest = question.digest  # worked out anew whenever it is asked for
    with path.open("w", encoding="ascii") as file:
        for device, report in zip(np.flatnonzero(asked), each, strict=True):
            sent = Answer(digest, f"device-{device}", report).to_json()
            file.write(json.dumps(sent, separators=(",", ":")) + "\n")


def timed(work: Callable[[], Found]) -> tuple[Found, float]:
    """What it gives, and its CPU seconds."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def decoding(questions: Sequence[Question], paths: Sequence[Path]) -> tuple[float, ...]:
    """Seconds to read, decode and judge; answers that count; gigabytes of this process at its peak."""
    collector = Collector(questions)
    _, read = timed(lambda: read_answers(collector, paths))
    found, decoded = timed(lambda: decode_answers(collector))
    _, judged = timed(lambda: (found.uncertainty, found.errors))
    status = Path("/proc/self/status").read_text("ascii").splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return read, decoded, judged, found.users, peak / 2**20


def main() -> None:
    """One table."""
    users = QUICK if "--quick" in sys.argv else USERS
    codes = crowd(users)
    print("\n## Local maps\n")
    print(f"`benchmarks/local.py`: {(__doc__ or '').partition('says nothing. ')[2]}")
    print("| epsilon | answers | cells of round 2 | read | decode | bands and errors | peak |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.jsonl") for number in (1, 2)]
        first = first_question(design(users, EPSILON), bounds=UNIT, campaign="bench")
        write_answers(paths[0], first, codes)
        early = Collector([first])
        read_answers(early, paths[:1])
        second = ask_next(early)
        write_answers(paths[1], second, codes)
        with spawn.Pool(1) as fresh:  # the peak of a process that does nothing else
            numbers = fresh.apply(decoding, ([first, second], paths))
        read, decoded, judged, counted, peak = numbers
        print(
            f"| {EPSILON} | {counted:,.0f} | {len(second.cells)} | {read:.1f} s | {decoded:.1f} s | "
            f"{judged:.1f} s | {peak:.2f} GB |"
        )


if __name__ == "__main__":
    main()
