"""What a charge costs, at 10, 1,600 and 100,000 entries: times over that of writing and waiting for the disk.

Run with python benchmarks/ledger.py. Ratios, since disks differ: how long a charge takes compared
with one row appended and two waits for the disk.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sfumato.privacy import DiscreteLaplace, Ledger, PureDP, histogram
from sfumato.privacy.accounting import canonical
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.privacy.ledger.tally import tally_of

SIZES = (10, 1_600, 100_000)
RUNS = 41


def median_ms(work: Callable[[], object], runs: int = RUNS) -> float:
    """The median time of some runs, in milliseconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def filled(path: Path, entries: int) -> Ledger:
    """A ledger with so many entries, appended in large steps and not waited for one by one."""
    ledger = Ledger.create(path, PureDP(10**6), unit="user", source="city")
    people = histogram([0, 1], 4, source="city")
    ledger.release(DiscreteLaplace(10), people)
    body = ledger.statement().entries[0].to_json()
    del body["hash"]
    with ledger_file.locked(path) as book:
        now = tally_of(book.first, book.rows, str(path))
        since = 0
        for number in range(2, entries + 1):
            text = {**body, "number": number}
            head = ledger_file.append(book, text)
            now.take(ledger_file.Row(text, head, 0, ""))
            since += len(canonical(text))
            if since >= ledger_file.SPACING:
                ledger_file.append(book, now.checkpoint(head))
                since = 0
    return Ledger(path)


def bare(path: Path) -> None:
    """One row and two waits for the disk: what no charge can be faster than."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        for size in (300, 1024):
            os.pwrite(handle, b"x" * size, os.fstat(handle).st_size)
            os.fsync(handle)
    finally:
        os.close(handle)


def main() -> None:
    """Print the table."""
    people = histogram([0, 1], 4, source="city")
    print("entries  charge/bare  read all/charge  bytes an entry")
    with tempfile.TemporaryDirectory() as folder:
        least = median_ms(lambda: bare(Path(folder) / "bare"))
        for entries in SIZES:
            ledger = filled(Path(folder) / f"{entries}.ledger", entries)
            charge = median_ms(lambda: ledger.release(DiscreteLaplace(10**6), people))  # noqa: B023
            whole = median_ms(ledger.statement, 1)
            size = ledger.path.stat().st_size / entries
            print(f"{entries:7}  {charge / least:11.1f}  {whole / charge:15.1f}  {size:14.0f}")
        print(f"bare: {least:.2f} ms")


if __name__ == "__main__":
    main()
