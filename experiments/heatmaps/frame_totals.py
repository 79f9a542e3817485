"""How often the interval of a frame's total holds: simulated cabs by the hour, and frames of nobody.

python -m experiments.heatmaps.frame_totals [--quick] [--out DIR]

Everybody has mass 1 in a day and drives between a few hubs; a film is a day of 24 frames by zoom.
Writes frame_totals.csv and frame_totals.md.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt
from experiments.heatmaps.protocol import generator

from sfumato.heatmap import price, release_sums
from sfumato.heatmap.benchmark import known_noise
from sfumato.heatmap.methods import ZoomMethod
from sfumato.privacy import REHEARSAL, UNITS, Ledger
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Area, Grid

# The bounds cut cells of every level.
AREA = Area(Grid(8), (0.03, 0.1, 0.97, 0.9), "plane")
HOURS, HUBS = 24, 6
# Cabs, epsilon, days.
FILMS = (
    (537, "1", 30), (537, "4", 50), (537, "10", 30), (3_000, "1", 6), (24, "1", 10), (0, "1", 25),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """Films of so many cabs: their frames, how many intervals hold the true total, and their median width."""

    cabs: int
    epsilon: str
    frames: int
    users_per_frame: float
    held: int
    width: float


def day(cabs: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The units of every hour and cell [hour, cell]."""
    hubs, busy = rng.uniform(0.15, 0.85, (HUBS, 2)), rng.dirichlet(np.full(HOURS, 2.0))
    sums = np.zeros((HOURS, AREA.grid.size))
    west, south, east, north = AREA.bounds
    for _ in range(cabs):
        rides = int(rng.integers(4, 40))
        at = hubs[rng.integers(0, HUBS, rides)] + rng.normal(0, 0.06, (rides, 2))
        x, y = np.clip(at[:, 0], west, east - 1e-9), np.clip(at[:, 1], south, north - 1e-9)
        when = rng.choice(HOURS, rides, p=busy)
        np.add.at(sums, (when, AREA.grid.cells_of(x, y)), 1 / rides)
    return np.rint(sums * UNITS).astype(np.int64)


def tried(cabs: int, epsilon: str, days: int) -> Row:
    """The films of so many days."""
    method, held, true, widths = ZoomMethod(), 0, [], []
    for number in range(days):
        words = ("frame totals", cabs, epsilon, number)
        units = day(cabs, generator(*words))
        codes = np.flatnonzero(units)
        sums = CellSums(AREA.grid, codes, units.ravel()[codes], HOURS, AREA)
        maps = release_sums(
            guard_sums(sums, source=REHEARSAL),
            AREA,
            ledger=Ledger.rehearsal(price(method, epsilon, AREA, groups=HOURS)),
            epsilon=epsilon,
            method=method,
            groups=tuple(f"{hour:02d}" for hour in range(HOURS)),
            noise=known_noise(method.name, *words),
        )
        for one, total in zip(maps, units.sum(axis=1) / UNITS, strict=True):
            found = one.total()
            low, high = found.low or 0.0, found.high or 0.0
            held += bool(low <= total <= high)
            true.append(total)
            widths.append(high - low)
    return Row(cabs, epsilon, len(true), float(np.mean(true)), held, float(np.median(widths)))


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = [
        "| cabs | epsilon | frames | users a frame | 90 % intervals that hold | median width |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.cabs:,} | {one.epsilon} | {one.frames:,} | {one.users_per_frame:.1f} | "
        f"{100 * one.held / one.frames:.0f} % | {one.width:.1f} |"
        for one in rows
    ]
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> None:
    """Run, write, and print the table."""
    parser = argparse.ArgumentParser(description="Intervals of the totals of frames")
    parser.add_argument("--quick", action="store_true", help="a small part, in seconds")
    parser.add_argument("--out", type=Path, default=Path("demo/heatmaps"))
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    films = ((24, "1", 1), (0, "1", 1)) if given.quick else FILMS
    rows = [tried(*one) for one in films]
    with (given.out / "frame_totals.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(map(asdict, rows))
    page = table(rows)
    (given.out / "frame_totals.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
