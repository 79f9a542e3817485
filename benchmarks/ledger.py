"""What a charge costs, at 10, 1,600 and 100,000 entries: times over that of writing and waiting for the disk.

Run with python benchmarks/ledger.py. Ratios, since disks and machines differ: how long a charge
takes compared with one row appended and two waits for the disk; and the processor time of a charge
and of reading everything, compared with a charge at 10 entries, which says the same on a machine
that others use too.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sfumato.privacy import DiscreteLaplace, Ledger, PureDP, histogram
from sfumato.privacy.accounting import canonical

SIZES = (10, 1_600, 100_000)
RUNS = 41


def median_ms(work: Callable[[], object], runs: int = RUNS) -> tuple[float, float]:
    """The median time of some runs, in milliseconds: by the clock, and of the processor."""
    times, busy = [], []
    for _ in range(runs):
        start, worked = time.perf_counter(), time.process_time()
        work()
        times.append(time.perf_counter() - start)
        busy.append(time.process_time() - worked)
    return 1000 * statistics.median(times), 1000 * statistics.median(busy)


def filled(path: Path, entries: int) -> Ledger:
    """A ledger with so many entries: written at once as a file of format 1, and converted."""
    ledger = Ledger.create(path, PureDP(10**6), unit="user", source="city")
    ledger.release(DiscreteLaplace(10), histogram([0, 1], 4, source="city"))
    header, entry = ledger.header.to_json(), ledger.statement().entries[0].to_json()
    del header["format"], entry["hash"]
    bodies = [header, *({**entry, "number": number + 1} for number in range(entries))]
    head, rows = "sfumato-ledger/1", []
    for number, body in enumerate(bodies):
        text = canonical(body)
        head = hashlib.sha256(f"{head}\n{text}".encode()).hexdigest()
        rows.append((number, text, head))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA application_id = 0x53464d54")
        connection.execute("CREATE TABLE chain (number INTEGER PRIMARY KEY, body TEXT, hash TEXT)")
        connection.executemany("INSERT INTO chain VALUES (?, ?, ?)", rows)
        connection.commit()
        path.write_bytes(connection.serialize())
    found = Ledger(path)
    found.release(DiscreteLaplace(10), histogram([0, 1], 4, source="city"))  # the first checkpoint
    return found


def bare(path: Path) -> None:
    """One row and two waits for the disk: what no charge can be faster than."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        for size in (300, 1024):
            os.pwrite(handle, b"x" * size, os.fstat(handle).st_size)
            os.fsync(handle)
    finally:
        os.close(handle)


def under_key(ledger: Ledger, key: str) -> None:
    """A charge that is made once: it looks for its key in the whole file, and keeps what it draws."""
    people = histogram([0, 1], 4, source="city")
    ledger.release(DiscreteLaplace(10**6), people, request={"key": key}, once=key)


def main() -> None:
    """Print the table."""
    people = histogram([0, 1], 4, source="city")
    print("entries  charge/bare  processor: charge  under a key  read all  bytes an entry")
    with tempfile.TemporaryDirectory() as folder:
        least, _ = median_ms(lambda: bare(Path(folder) / "bare"))
        first = 0.0
        for entries in SIZES:
            ledger = filled(Path(folder) / f"{entries}.ledger", entries)
            charge, busy = median_ms(lambda: ledger.release(DiscreteLaplace(10**6), people))  # noqa: B023
            keys = map(str, itertools.count())
            _, keyed = median_ms(lambda: under_key(ledger, next(keys)), 11)  # noqa: B023
            _, whole = median_ms(ledger.statement, 1)
            first = first or busy
            size = ledger.path.stat().st_size / entries
            print(
                f"{entries:7}  {charge / least:11.1f}  {busy / first:17.1f}  {keyed / first:11.1f}  "
                f"{whole / first:8.1f}  {size:14.0f}"
            )
        print(f"bare: {least:.2f} ms by the clock; a charge at 10: {first:.2f} ms of the processor")


if __name__ == "__main__":
    main()
