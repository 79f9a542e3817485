"""Whether maps know how far off they are: stated distance, similarity and correlation against the truth.

python -m experiments.heatmaps.how_far [--fit] [--quick] [--rows CSV] [--samples N] [--out DIR]
    [--data DIR]

By default on the places to test on, none of which was tuned on: asked is that the 90 % interval
holds the true number in 85 to 95 % of maps, for 50, 200, 2,000 and 20,000 users and epsilon 0.1 to
10, and that its median width is at most the number itself. `--fit` simulates the places to tune on
and prints the corrections that are in the package, and how often intervals hold places of a family
that is left out of the fit. `--rows` takes rows that were simulated before. Writes how_far.csv and
how_far.md; a sample of every place takes eight minutes of a processor.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from experiments.heatmaps.calibration import UNIT, rehearsed
from experiments.heatmaps.how_far_places import PEOPLE, Sampled, held_out, tuning
from experiments.heatmaps.protocol import DATA, generator
from scipy import sparse
from scipy.optimize import linprog

from sfumato.heatmap import ZoomMethod
from sfumato.heatmap.accuracy import (
    WORTH_STATING,
    ZOOM_CORRECTIONS,
    Corrections,
    ErrorInterval,
    ErrorName,
    between,
    calibrated,
    certified_emd,
    drawn_errors,
    known_of_nothing,
    on_scale,
)
from sfumato.heatmap.analysis import compare, emd_share, smooth
from sfumato.heatmap.benchmark import digest, true_shares
from sfumato.records import CellSums

NAMES: tuple[ErrorName, ...] = ("emd", "similarity", "pearson")
USERS = (50, 200, 2000, 20_000)
EPSILONS = (0.1, 1.0, 10.0)
# Places of a turn of the simulation: maps of many people take longer.
TURN = {50: 12, 200: 12, 2000: 8, 20_000: 4}
HELD = (0.85, 0.95)
BLUR = 0.02
SAMPLES = 2
# Ends are fitted a little further out than 5 %: of n maps that tell of an end, one more like them is
# beyond the k-th with chance k / (n + 1), and n is some 50.
TAIL = 0.04
# What a bend of the corrections costs, beside the misfit of a row. Five times as much held 73 % of
# distances at 20,000 users and epsilon 10 on places that were left out of the fit.
BEND = 0.0002
# How much a made-up map counts, beside a real one.
MADE_UP = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """One map: what its draws said before any correction, and what was true; `plain` is without a blur."""

    family: str
    place: str
    users: int
    epsilon: float
    sample: int
    total: float
    emd: float
    emd_low: float
    emd_middle: float
    emd_high: float
    similarity: float
    similarity_low: float
    similarity_middle: float
    similarity_high: float
    pearson: float
    pearson_low: float
    pearson_middle: float
    pearson_high: float
    plain: float
    certified: float

    def drawn(self, name: ErrorName) -> ErrorInterval:
        """What the draws said of a number."""
        return ErrorInterval(*(getattr(self, f"{name}_{end}") for end in ("middle", "low", "high")))


def simulated(
    places: Sequence[Sampled], users: Sequence[int], epsilons: Sequence[float], samples: int
) -> Iterator[Row]:
    """A zoom of every sample of every place that has so many people, or rows.

    In turns of a few places for each number of users, in the order of a hash, so that what a
    stopped run has is like the rest; in a turn epsilon comes before places, so that noise is
    tabulated once.
    """
    shuffled = sorted(places, key=lambda one: digest("order", one.family, one.place.name))
    able = {many: [one for one in shuffled if _has(one, many)] for many in users}
    turns = max(-(-len(some) // TURN[many]) for many, some in able.items())
    for sample in range(samples):
        for turn in range(turns):
            people = [
                (one, many, _people(one, many, sample))
                for many, some in able.items()
                for one in some[turn * TURN[many] : (turn + 1) * TURN[many]]
            ]
            for epsilon in epsilons:
                for one, many, sums in people:
                    yield _row(one, sums, many, epsilon, sample)


def _has(one: Sampled, users: int) -> bool:
    """Whether a place has so many people. A picture has 43 to 46 observers: all of them stand for 50."""
    return one.most() >= users or (users == min(USERS) and one.family == "gaze")


def _people(one: Sampled, users: int, sample: int) -> CellSums:
    all_of_them = users == min(USERS) and one.family == "gaze"
    return one.sums(
        one.place.users if all_of_them else users,
        UNIT.grid,
        generator("how far", one.place.name, users, sample),
    )


def _row(one: Sampled, sums: CellSums, users: int, epsilon: float, sample: int) -> Row:
    """One map of one sample: what it says, and what is true."""
    words = ("how far", one.place.name, users, epsilon, sample)
    found = rehearsed(ZoomMethod(), sums, epsilon, words=words)
    known, truth = found.posterior, true_shares(sums)
    if known is None or known.counts is None:
        raise RuntimeError("a zoom without a posterior")
    drawn = drawn_errors(known, found.shares, UNIT)
    seen = compare(smooth(truth, BLUR), found.image(sigma=BLUR), UNIT.grid)
    numbers: dict[str, Any] = {}
    for name in NAMES:
        said = drawn[name]
        numbers[name] = getattr(seen, name)
        numbers[f"{name}_low"], numbers[f"{name}_high"] = said.low, said.high
        numbers[f"{name}_middle"] = said.value
    return Row(
        one.family, one.place.name, users, epsilon, sample, found.tiles.total,
        plain=emd_share(truth, found.image(), UNIT),
        certified=certified_emd(known.counts, found.tiles, UNIT),
        **numbers,
    )  # fmt: skip


def stated(row: Row, table: Corrections = ZOOM_CORRECTIONS) -> dict[ErrorName, ErrorInterval]:
    """What the map of a row says of itself, corrected."""
    drawn = {name: row.drawn(name) for name in NAMES}
    return calibrated(drawn, row.total, row.epsilon, table)


@dataclass(frozen=True, slots=True)
class Cell:
    """How the maps of some rows did: the share of intervals that held, and widths in parts of the value."""

    maps: int
    held: dict[ErrorName, float]
    width: dict[ErrorName, float]
    typical: float
    certified_held: float
    certified: float
    certified_stated: float


def cell_of(rows: Sequence[Row], table: Corrections = ZOOM_CORRECTIONS) -> Cell:
    """Coverage and median width of every number, and the certified bound against the plain distance."""
    said = [stated(row, table) for row in rows]
    held: dict[ErrorName, float] = {}
    width: dict[ErrorName, float] = {}
    for name in NAMES:
        inside = [
            s[name].low <= getattr(r, name) <= s[name].high for s, r in zip(said, rows, strict=True)
        ]
        held[name] = float(np.mean(inside))
        width[name] = float(
            np.median([(s[name].high - s[name].low) / abs(s[name].value) for s in said])
        )
    return Cell(
        len(rows),
        held,
        width,
        float(np.median([row.emd for row in rows])),
        float(np.mean([row.plain <= row.certified for row in rows])),
        float(np.median([row.certified / row.plain for row in rows])),
        float(np.mean([row.certified < WORTH_STATING * known_of_nothing(UNIT) for row in rows])),
    )


def table(rows: Sequence[Row]) -> str:
    """Users and epsilon against coverage and width, as Markdown; then by family of places."""
    head = (
        "maps | true EMD, sides | EMD held | width / value | Similarity held | width | Pearson held "
        "| width | certified held | certified / true | stated |"
    )
    lines = [f"| users | epsilon | {head}", "|" + "---|" * 13]
    cells = sorted({(row.users, row.epsilon) for row in rows})
    for users, epsilon in cells:
        some = [row for row in rows if (row.users, row.epsilon) == (users, epsilon)]
        lines.append(f"| {users:,} | {epsilon:g} | {_line(cell_of(some))}")
    lines += ["", f"| places | {head}", "|" + "---|" * 12]
    for family in dict.fromkeys(row.family for row in rows):
        some = [row for row in rows if row.family == family]
        lines.append(f"| {family} | {_line(cell_of(some))}")
    return "\n".join(lines) + "\n"


def _line(cell: Cell) -> str:
    found = [str(cell.maps), f"{cell.typical:.4f}"]
    for name in NAMES:
        found += [f"{100 * cell.held[name]:.0f} %", f"{cell.width[name]:.2f}"]
    found += [f"{100 * cell.certified_held:.0f} %", f"{cell.certified:.0f}"]
    found.append(f"{100 * cell.certified_stated:.0f} %")
    return " | ".join(found) + " |"


def missed(rows: Sequence[Row]) -> list[str]:
    """What is not as asked of the distance, in words."""
    found = []
    for users, epsilon in sorted({(row.users, row.epsilon) for row in rows}):
        cell = cell_of([row for row in rows if (row.users, row.epsilon) == (users, epsilon)])
        where = f"{users:,} users at epsilon {epsilon:g}"
        found += [
            f"{where}: {name} held in {100 * cell.held[name]:.0f} % of {cell.maps}"
            for name in NAMES
            if not HELD[0] <= cell.held[name] <= HELD[1]
        ]
        if cell.width["emd"] > 1:
            found.append(f"{where}: the interval of emd is {cell.width['emd']:.2f} of its value")
    return found


def fitted(rows: Sequence[Row]) -> Corrections:
    """The corrections: quantiles of where the truth lay, made-up maps counting less."""
    weights = np.array([between(row.total, row.epsilon) for row in rows])
    count = np.array([MADE_UP if row.family.startswith("made-up") else 1.0 for row in rows])
    found: Corrections = {}
    for name in NAMES:
        steps = []
        for row in rows:
            said = row.drawn(name)
            low, middle, high = (on_scale(name, end) for end in (said.low, said.value, said.high))
            steps.append((on_scale(name, getattr(row, name)) - middle) / ((high - low) / 2))
        entries = [
            quantiles(weights, np.array(steps), part, count) for part in (TAIL, 0.5, 1 - TAIL)
        ]
        # Entries fitted one by one may cross where there are few rows.
        ordered = np.sort(np.round(entries, 2), axis=0).reshape(3, len(USERS), len(EPSILONS))
        low_end, value, high_end = (tuple(tuple(row) for row in one.tolist()) for one in ordered)
        found[name] = low_end, value, high_end
    return found


def quantiles(
    weights: np.ndarray, steps: np.ndarray, part: float, count: np.ndarray | float = 1.0
) -> np.ndarray:
    """Entries whose weighted sums [row] this part of the steps lies below, by the pinball loss; bends cost.

    A bend is a change of slope from entry to entry of a table, over the logarithm of users or of
    epsilon. `count` is how much a row counts.
    """
    rows, many = weights.shape
    across, down = (bends(np.log10(knots)) for knots in (EPSILONS, USERS))
    bent = np.vstack([np.kron(np.eye(len(USERS)), across), np.kron(down, np.eye(len(EPSILONS)))])
    few = len(bent)
    cost = np.concatenate(
        [
            np.zeros(many),
            np.full(rows, part) * count,
            np.full(rows, 1 - part) * count,
            np.full(2 * few, BEND * rows),
        ]
    )
    one, other = sparse.identity(rows), sparse.identity(few)
    equal: Any = sparse.block_array(
        [
            [sparse.csr_array(weights), one, -one, None, None],
            [sparse.csr_array(bent), None, None, other, -other],
        ]
    )  # taken sparse, whatever the stubs say
    solved = linprog(
        cost,
        A_eq=equal,
        b_eq=np.concatenate([steps, np.zeros(few)]),
        bounds=[(None, None)] * many + [(0, None)] * (2 * rows + 2 * few),
        method="highs",
    )
    if solved.x is None:
        raise RuntimeError(f"no entries were fitted: {solved.message}")
    return np.asarray(solved.x[:many])


def bends(knots: np.ndarray) -> np.ndarray:
    """The changes of slope at inner knots, of values at the knots.

    >>> bends(np.array([0.0, 1.0, 3.0])) @ [0.0, 1.0, 1.0]
    array([-1.])
    """
    slopes = np.diff(np.eye(knots.size), axis=0) / np.diff(knots)[:, None]
    return np.diff(slopes, axis=0)


def left_out(rows: Sequence[Row]) -> str:
    """How often intervals hold the maps of a family of places that is left out of the fit, as Markdown."""
    lines = ["| left out | maps | EMD held | Similarity held | Pearson held |", "|" + "---|" * 5]
    for family in dict.fromkeys(row.family for row in rows):
        some = [row for row in rows if row.family == family]
        held = cell_of(some, fitted([row for row in rows if row.family != family])).held
        told = " | ".join(f"{100 * held[name]:.0f} %" for name in NAMES)
        lines.append(f"| {family} | {len(some)} | {told} |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> None:
    """Simulate or read rows; write them, and the table or the corrections."""
    parser = argparse.ArgumentParser(description="Whether maps know how far off they are")
    parser.add_argument("--fit", action="store_true", help="tune: print the corrections")
    parser.add_argument("--quick", action="store_true", help="a small part, in seconds")
    parser.add_argument("--rows", type=Path, help="rows of a run before, how_far.csv")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="samples of a place")
    parser.add_argument("--out", type=Path, default=Path("demo/heatmaps"))
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.rows is not None:
        rows = read_rows(given.rows)
    else:
        people = 500 if given.quick else PEOPLE
        places = (tuning if given.fit else held_out)(given.data, people=people)
        users, epsilons = (USERS[:1], EPSILONS[1:2]) if given.quick else (USERS, EPSILONS)
        few = places[:3] if given.quick else places
        write_rows(
            given.out / "how_far.csv",
            simulated(few, users, epsilons, 1 if given.quick else given.samples),
        )
        rows = read_rows(given.out / "how_far.csv")
    if given.fit:
        page = "".join(f'"{name}": {steps},\n' for name, steps in fitted(rows).items())
        page += "" if given.quick else f"\n{left_out(rows)}"
    else:
        page = table(rows) + "".join(f"- not as asked: {line}\n" for line in missed(rows))
    (given.out / "how_far.md").write_text(page, encoding="utf-8")
    print(page)


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Rows as CSV, each as soon as it is there: `--rows` takes what a stopped run has."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        for row in rows:
            writer.writerow(asdict(row))
            file.flush()


def read_rows(path: Path) -> list[Row]:
    """Rows that `write_rows` wrote."""
    kinds = {"family": str, "place": str, "users": int, "sample": int}
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Row(**{name: kinds.get(name, float)(text) for name, text in line.items()})
            for line in csv.DictReader(file)
        ]


if __name__ == "__main__":
    main()
