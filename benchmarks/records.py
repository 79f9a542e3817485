"""Sums of rows: sfumato beside hand-written DuckDB SQL and Spark, the same Parquet and CSV files, one run.

Prints Markdown; `make bench` keeps it in docs/reference/benchmarks.md. DuckDB's work is CPU time of
this process; Spark works in another one, so that beside Spark the clock on the wall is used for
both. The best of three calls counts. With --hundred-million, 100 million rows are made and counted
in a process of their own, whose peak memory is shown.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

from sfumato.privacy import UNITS, Guarded
from sfumato.records import CellSums, Columns, open_table, sum_cells
from sfumato.spaces import Area, area_in_degrees

AREA = area_in_degrees((-74.3, 40.5, -73.7, 40.9), 8)
ROWS = 10_000_000
REPEATS = 3


def make(path: Path, rows: int) -> None:
    """Made-up visits, about 100 for each user; hashes of the row number, so that every run has the same."""
    west, south, east, north = AREA.bounds
    with duckdb.connect() as database:
        database.sql("set preserve_insertion_order = false")
        database.sql("set enable_progress_bar = false")
        database.sql("set memory_limit = '2GB'")
        database.sql(
            f"""copy (
                select (hash(i) % {rows // 100})::bigint as user,
                  {west} + {east - west} * (hash(3 * i + 1) % 1000003) / 1000003.0::double as x,
                  {south} + {north - south} * (hash(5 * i + 2) % 1000003) / 1000003.0::double as y,
                  (hash(7 * i) % 1000)::integer as milliseconds
                from range({rows}) as numbers(i)
            ) to '{path}' (format parquet)"""  # noqa: S608 - numbers and a path of our own
        )


def by_hand(path: Path, area: Area, weight: str | None) -> Any:
    """What a careful engineer would write for DuckDB, without our edge corrections, casts and clamps."""
    grid, count = area.grid, "count(*)" if weight is None else f"sum({weight})::bigint"
    west, south, east, north = area.bounds
    low_x, low_y, _, _ = grid.bounds
    database = duckdb.connect()
    database.sql("set preserve_insertion_order = false")
    database.sql("set enable_progress_bar = false")
    return database.sql(
        f"""with visits as (
              select "user", n_row * {grid.side} + n_column as cell, {count} as n from (
                select *,
                  least(floor((x - {low_x!r}) / {grid.cell_width!r}), {grid.side - 1})::bigint as n_column,
                  least(floor((y - {low_y!r}) / {grid.cell_height!r}), {grid.side - 1})::bigint as n_row
                from '{path}'
                where x between {west} and {east} and y between {south} and {north} and "user" is not null)
              group by all),
            totals as (select "user", sum(n)::bigint as total from visits group by all)
            select cell, sum(n * {UNITS} // total)::bigint as units
            from visits join totals using ("user") group by all"""  # noqa: S608 - public numbers, a path of our own
    ).to_arrow_table()


def by_sfumato(path: Path, area: Area, weight: str | None) -> Guarded[CellSums]:
    """Ours, from opening the file to guarded sums."""
    columns = Columns("user", "x", "y", weight=weight)
    return sum_cells(open_table(path, columns=columns), columns, area, source="bench")


def by_spark(path: Path, area: Area, weight: str | None) -> Guarded[CellSums]:
    """The same expression on Spark, two threads; the session is there already."""
    table = open_table(path, engine="spark")
    return sum_cells(table, Columns("user", "x", "y", weight=weight), area, source="bench")


def timed(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Seconds of one call."""
    start = clock()
    work()
    return clock() - start


def compared(path: Path) -> None:
    """Ours and by hand, in turn; then Spark."""
    print(f"| {ROWS:,} rows | sfumato CPU s | / by hand | asked for |")
    print("|---|---|---|---|")
    text = path.with_suffix(".csv")
    with duckdb.connect() as database:
        database.sql(f"copy (from '{path}') to '{text}' (format csv, header)")
    for name, file, weight in (
        ("rows counted", path, None),
        ("weighted by milliseconds", path, "milliseconds"),
        ("rows of a CSV counted", text, None),
    ):
        ways = (partial(way, file, AREA, weight) for way in (by_sfumato, by_hand))
        ours, theirs = (min(timed(way, time.process_time) for _ in range(REPEATS)) for way in ways)
        met = "met" if ours <= 1.3 * theirs else "MISSED"
        print(f"| {name} | {ours:.2f} | {ours / theirs:.2f}x | at most 1.3x: {met} |", flush=True)
    print()
    ours = min(
        timed(lambda: by_sfumato(path, AREA, None), time.perf_counter) for _ in range(REPEATS)
    )
    open_table(path, engine="spark")  # starts the session, which is not counted
    theirs = min(timed(lambda: by_spark(path, AREA, None), time.perf_counter) for _ in range(2))
    met = "met" if theirs >= 8 * ours else "MISSED"
    print(f"| {ROWS:,} rows, clock on the wall | s | Spark local[2] / us | asked for |")
    print("|---|---|---|---|")
    print(f"| rows counted | {ours:.2f} | {theirs / ours:.1f}x | 8x: {met} |", flush=True)


MEASURE = """
import resource, sys, time
from benchmarks.records import AREA, by_sfumato
start = time.perf_counter(), time.process_time()
by_sfumato(sys.argv[1], AREA, None)
spent = time.perf_counter() - start[0], time.process_time() - start[1]
print(*spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def hundred_million(path: Path) -> None:
    """Peak memory over 100 million rows."""
    make(path, 100_000_000)
    root = Path(__file__).parents[1]
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", MEASURE, str(path)],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    wall, cpu, peak = map(float, done.stdout.split())
    size, met = path.stat().st_size / 2**30, "met" if peak <= 4 else "MISSED"
    print(
        f"| 100,000,000 rows, {size:.1f} GB of Parquet | wall s | CPU s | peak memory GB | asked for |"
    )
    print("|---|---|---|---|---|")
    print(f"| rows counted | {wall:.0f} | {cpu:.0f} | {peak:.2f} | at most 4 GB: {met} |")


def main() -> None:
    """All tables."""
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("duckdb", "ibis-framework", "pyspark")
    )
    print("\n## Records\n")
    print(f"`benchmarks/records.py`, one run, the machine's own number of threads; {packages}.\n")
    with tempfile.TemporaryDirectory() as folder:
        if "--hundred-million" in sys.argv[1:]:
            hundred_million(Path(folder) / "hundred.parquet")
        else:
            make(Path(folder) / "ten.parquet", ROWS)
            compared(Path(folder) / "ten.parquet")
    print()


if __name__ == "__main__":
    main()
