"""How often two releases of one and the same table are said to differ: asked is one pair in twenty.

python -m experiments.heatmaps.unchanged_pairs [--method NAME] [--places N] [--quick]
    [--out DIR] [--data DIR]

Two maps of the same people, of the places that how_far.py tests on, each with noise of its own, for
200, 2,000 and 20,000 users and epsilon 0.1, 1 and 10. Any square is a false one. Writes
unchanged_pairs.csv and unchanged_pairs.md.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeVar

from experiments.heatmaps.calibration import UNIT, rehearsed
from experiments.heatmaps.how_far_places import Sampled, held_out
from experiments.heatmaps.protocol import DATA, generator
from scipy.stats import binom

from sfumato.heatmap.benchmark import digest, standard_methods
from sfumato.heatmap.comparison import counted, find_changes, of_shares

T = TypeVar("T")
USERS = (200, 2_000, 20_000)
EPSILONS = (0.1, 1.0, 10.0)
PLACES = 14  # of each number of users
FALSE = 0.05


@dataclass(frozen=True, slots=True)
class Pair:
    """Two maps of one table: how many squares they are said to differ in, and how many were tested."""

    method: str
    place: str
    users: int
    epsilon: float
    in_users: int
    in_shares: int
    tested: int


def tried(name: str, places: Sequence[Sampled], many: int) -> Iterator[Pair]:
    """A pair of every place at every epsilon."""
    method = standard_methods(many)[name]
    for epsilon in EPSILONS:
        for one in places:
            words = ("unchanged", one.place.name, many, epsilon)
            sums = one.sums(many, UNIT.grid, generator(*words))
            maps = [rehearsed(method, sums, epsilon, words=(*words, which)) for which in (0, 1)]
            before, after = (_known(counted(each)) for each in maps)
            found = find_changes(before, after, UNIT)
            shares = of_shares(before), of_shares(after)
            wrong = 0
            if shares[0] is not None and shares[1] is not None:
                wrong = len(find_changes(shares[0], shares[1], UNIT).changes)
            yield Pair(name, one.place.name, many, epsilon, len(found.changes), wrong, found.tested)


def _known(one: T | None) -> T:
    if one is None:
        raise RuntimeError("a method that does not say how sure it is")
    return one


def table(pairs: Sequence[Pair]) -> str:
    """Pairs with a false square, by users and epsilon, as Markdown; and whether one in twenty is refuted."""
    lines = ["| users | epsilon | pairs | false in users | in shares |", "|" + "---|" * 5]
    for key in sorted({(pair.users, pair.epsilon) for pair in pairs}):
        some = [pair for pair in pairs if (pair.users, pair.epsilon) == key]
        wrong = [sum(count > 0 for count in found) for found in _counts(some)]
        lines.append(f"| {key[0]:,} | {key[1]:g} | {len(some)} | {wrong[0]} | {wrong[1]} |")
    all_wrong = [sum(count > 0 for count in found) for found in _counts(pairs)]
    lines.append(f"| all | all | {len(pairs)} | {all_wrong[0]} | {all_wrong[1]} |")
    chance = [float(binom.sf(wrong - 1, len(pairs), FALSE)) for wrong in all_wrong]
    said = " and ".join(f"{part:.2g}" for part in chance)
    return "\n".join(lines) + f"\n\nAt one in twenty, so many or more have a chance of {said}.\n"


def _counts(pairs: Sequence[Pair]) -> tuple[list[int], list[int]]:
    return [pair.in_users for pair in pairs], [pair.in_shares for pair in pairs]


def main(argv: list[str] | None = None) -> None:
    """Run, write, and print the table."""
    parser = argparse.ArgumentParser(description="False squares of maps that did not change")
    parser.add_argument("--method", default="pyramid", choices=("pyramid", "zoom"))
    parser.add_argument("--quick", action="store_true", help="a small part, in seconds")
    parser.add_argument("--places", type=int, default=PLACES, help="of each number of users")
    parser.add_argument("--out", type=Path, default=Path("demo/heatmaps"))
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    every = held_out(given.data, people=500) if given.quick else held_out(given.data)
    every.sort(key=lambda one: digest("pairs", one.family, one.place.name))
    pairs: list[Pair] = []
    with (given.out / "unchanged_pairs.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Pair)])
        writer.writeheader()
        for turn in range(1 if given.quick else given.places):
            for many in USERS[:1] if given.quick else USERS:
                some = [one for one in every if one.most() >= many][turn : turn + 1]
                for pair in tried(given.method, some, many):
                    pairs.append(pair)
                    writer.writerow(asdict(pair))
                    file.flush()
    page = table(pairs)
    (given.out / "unchanged_pairs.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
