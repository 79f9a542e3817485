"""Whether a map's uncertainty is right: its band, its marks, and silent ground.

python -m experiments.heatmaps.calibration [--quick] [--out DIR] [--data DIR]

Real check-ins are the 30 cells of expected.toml; without their folder there are made-up cities.
Asked is that the 90 % band holds 85 to 95 % of the cells with 90 % of the true mass, and that at
most 5 % of maps have a mark that is false. One sample of users a place: maps of one place are
alike. Intervals of zones have zones.py. Writes calibration.csv and calibration.md.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from experiments.heatmaps.protocol import CELLS, USERS, Options, generator, options, places
from scipy import stats

from sfumato.heatmap import HeatmapRelease, price, release_sums
from sfumato.heatmap.accuracy import HEAVY, TIMES, Uncertainty, heaviest, ring
from sfumato.heatmap.analysis import smooth
from sfumato.heatmap.benchmark import (
    LEVELS,
    Place,
    known_noise,
    sample_sums,
    standard_methods,
    true_shares,
)
from sfumato.heatmap.methods import Method
from sfumato.privacy import REHEARSAL, Ledger
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Area, Grid

FloatArray = npt.NDArray[np.float64]

METHODS = ("zoom", "pyramid")
EPSILONS = (0.5, 1.0, 5.0)
COVERED = (0.85, 0.95)
FALSE = 0.05
UNIT = Area(Grid(LEVELS), (0.0, 0.0, 1.0, 1.0), "plane")


@dataclass(frozen=True, slots=True)
class Checked:
    """How right the uncertainty of one map is: shares of cells in the band, below and above, and the rest."""

    coverage: float
    below: float
    above: float
    width: float
    marks: int
    false_marks: int
    silent: float


@dataclass(frozen=True, slots=True)
class Row:
    """One map, checked."""

    source: str
    place: str
    trial: int
    epsilon: float
    method: str
    checked: Checked


def check(found: Uncertainty, truth: FloatArray, grid: Grid) -> Checked:
    """What the true shares [row, column], not yet blurred, say of a map's uncertainty."""
    band = found.band
    side = 1 << band.level
    truth = truth.reshape(side, len(truth) // side, side, -1).sum(axis=(1, 3))
    blurred = smooth(truth, band.sigma)
    here = heaviest(blurred, HEAVY)
    # Draws are in single precision; the truth is not.
    below = (blurred < band.low * (1 - 1e-5))[here].mean()
    above = (blurred > band.high * (1 + 1e-5))[here].mean()
    discs = [ring(mark, grid, level=band.level, sigma=band.sigma) for mark in found.marks]
    false = sum(float(truth[disc].sum()) <= TIMES * disc.mean() for disc in discs)
    return Checked(
        float(1 - below - above), float(below), float(above), band.width, len(discs), false,
        found.silent_share,
    )  # fmt: skip


def rehearsed(
    method: Method[Any], sums: CellSums, epsilon: float, *, words: Sequence[Any]
) -> HeatmapRelease:
    """One simulated release of a place, with what it knows of itself."""
    return release_sums(
        guard_sums(sums, source=REHEARSAL),
        UNIT,
        ledger=Ledger.rehearsal(price(method, str(epsilon), UNIT)),
        epsilon=str(epsilon),
        method=method,
        noise=known_noise(method.name, *words),
    )[0]


def run(
    chosen: Options,
    where: Iterable[Place],
    *,
    epsilons: Sequence[float],
    trials: int,
    methods: Sequence[Method[Any]],
) -> list[Row]:
    """Every map of the protocol, by the same samples and noise as its metrics; those with a posterior."""
    rows = []
    for place in where:
        for trial in range(trials):
            rng = generator("users", place.name, USERS, trial)
            sums = sample_sums(place, USERS, UNIT.grid, rng=rng)
            for epsilon in epsilons:
                for method in methods:
                    words = (place.name, USERS, LEVELS, epsilon, trial)
                    found = rehearsed(method, sums, epsilon, words=words)
                    if found.posterior is None:
                        continue
                    checked = check(found.uncertainty(), true_shares(sums), UNIT.grid)
                    rows.append(
                        Row(chosen.source, place.name, trial, epsilon, method.name, checked)
                    )
    return rows


def table(rows: Sequence[Row]) -> str:
    """Means over maps as Markdown; ± is half of a 95 % t interval over places."""
    lines = [
        "| method | epsilon | maps | in the 90 % band | below | above | width | marks | "
        "maps with a false mark | silent |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for method in dict.fromkeys(row.method for row in rows):
        for epsilon in sorted({row.epsilon for row in rows}):
            some = [row for row in rows if (row.method, row.epsilon) == (method, epsilon)]
            if not some:
                continue
            means = {
                field.name: float(np.mean([getattr(row.checked, field.name) for row in some]))
                for field in fields(Checked)
            }
            wrong = sum(row.checked.false_marks > 0 for row in some)
            told = [f"{100 * means[name]:.1f} %" for name in ("coverage", "below", "above")]
            told[0] = told[0].replace(" %", f" ± {100 * half_width(some):.1f} %")
            told += [f"{means['width']:.2f}", f"{means['marks']:.1f}"]
            told += [f"{wrong} ({100 * wrong / len(some):.1f} %)", f"{100 * means['silent']:.0f} %"]
            lines.append(" | ".join([f"| {method}", f"{epsilon:g}", str(len(some)), *told]) + " |")
    return "\n".join(lines) + "\n"


def half_width(rows: Sequence[Row]) -> float:
    """Half of a 95 % t interval of the mean coverage; maps of one place are one observation."""
    byplace = [
        float(np.mean([row.checked.coverage for row in rows if row.place == place]))
        for place in dict.fromkeys(row.place for row in rows)
    ]
    if len(byplace) < 2:
        return math.nan
    spread = float(np.std(byplace, ddof=1)) / math.sqrt(len(byplace))
    return float(stats.t.ppf(0.975, len(byplace) - 1)) * spread


def missed(rows: Sequence[Row]) -> list[str]:
    """What is not as asked, in words: mean coverage outside its range, or too many maps with false marks."""
    found = []
    for method, epsilon in dict.fromkeys((row.method, row.epsilon) for row in rows):
        some = [row.checked for row in rows if (row.method, row.epsilon) == (method, epsilon)]
        coverage = float(np.mean([one.coverage for one in some]))
        wrong = float(np.mean([one.false_marks > 0 for one in some]))
        if not COVERED[0] <= coverage <= COVERED[1]:
            found.append(
                f"{method} at epsilon {epsilon:g}: {100 * coverage:.1f} % of cells in the band"
            )
        if wrong > FALSE:
            found.append(
                f"{method} at epsilon {epsilon:g}: {100 * wrong:.1f} % of maps with a false mark"
            )
    return found


def main(argv: list[str] | None = None) -> None:
    """Run, write calibration.csv and calibration.md, and say what is not as asked."""
    chosen = options("Calibration of bands and marks", argv)
    known = standard_methods(USERS)
    methods = [known[name] for name in METHODS if name in known]
    rows = run(
        chosen,
        places(chosen, 1 if chosen.quick else CELLS),
        epsilons=(1.0,) if chosen.quick else EPSILONS,
        trials=1,
        methods=methods,
    )
    _write(chosen.out / "calibration.csv", rows)
    wanting = missed(rows)
    page = f"### Calibration ({chosen.source})\n\n{table(rows)}\n"
    good = "All as asked.\n" if rows else "No method says how sure it is.\n"
    page += "".join(f"- not as asked: {line}\n" for line in wanting) or good
    (chosen.out / "calibration.md").write_text(page, encoding="utf-8")
    print(page)


def _write(path: Path, rows: Sequence[Row]) -> None:
    named = [name.name for name in fields(Row) if name.name != "checked"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*named, *(field.name for field in fields(Checked))])
        writer.writeheader()
        for row in rows:
            writer.writerow({name: getattr(row, name) for name in named} | asdict(row.checked))


if __name__ == "__main__":
    main()
