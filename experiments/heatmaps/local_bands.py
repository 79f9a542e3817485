"""Whether a local map knows how good it is: its stated errors, bands and rings against simulated truths.

python -m experiments.heatmaps.local_bands [--cities N]

Cities are those of the second set of local_forecast: nothing was fitted to them. For each number of users and
epsilon: how many maps have a true error in the interval that was stated (nine in ten are meant), which part
of cells lies in the 90 % band, of all and of those that hold nine tenths of the true mass, and how many
maps had a ring that was not over twice the average (at most one in twenty). Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from experiments.heatmaps.local_forecast import SETS, SIGMA, clustered
from experiments.heatmaps.protocol import generator

from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.analysis import emd_share, similarity, smooth
from sfumato.heatmap.local import (
    FINEST_CELL,
    LocalMap,
    Tally,
    design,
    first_question,
    simulate_local_map,
)
from sfumato.spaces import Area, Grid

CELLS: dict[int, tuple[str, ...]] = {
    100: ("1", "5"),
    1000: ("0.3", "1", "3", "8"),
    10_000: ("0.1", "1", "5"),
    100_000: ("0.5", "3"),
}
HEAVY, TIMES = 0.9, 2.0
LEVEL = 7
AREA = Area(Grid(LEVEL), (0.0, 0.0, 1.0, 1.0), "plane")


def local_map(codes: IntArray, epsilon: str, rng: np.random.Generator) -> LocalMap:
    """The map of these people as a collector would have it."""
    asked = first_question(
        design(codes.size, epsilon), bounds=(0.0, 0.0, 1.0, 1.0), campaign="bands"
    )
    return LocalMap(
        (asked,),
        Tally((codes.size,), 0, 0, 0, 0, 0),
        simulate_local_map(codes, epsilon, rng=rng),
    )


def judged(codes: IntArray, epsilon: str, rng: np.random.Generator) -> tuple[float, ...]:
    """1 or 0 for both errors, parts of cells in the band, and how many rings, true and not, there were."""
    found = local_map(codes, epsilon, rng)
    fine = coarse(codes, LEVEL)
    shown = found.image(LEVEL, sigma=SIGMA)
    seen = smooth(fine, SIGMA)
    distance, alike = found.errors["emd"], found.errors["similarity"]
    held = (
        distance.low <= emd_share(shown, seen, AREA, level=5) <= distance.high,
        alike.low <= similarity(shown, seen) <= alike.high,
    )
    band = found.uncertainty.band
    truth = smooth(coarse(codes, band.level), band.sigma)
    inside = (truth >= band.low) & (truth <= band.high)
    order = np.argsort(-truth, axis=None)
    many = int(np.searchsorted(np.cumsum(truth.ravel()[order]), HEAVY * truth.sum())) + 1
    x, y = centers(codes)
    reach = found.uncertainty.shown.reach
    wrong = sum(
        np.mean((x - mark.x) ** 2 + (y - mark.y) ** 2 <= reach**2) < TIMES * np.pi * reach**2
        for mark in found.uncertainty.marks
    )
    return (
        *map(float, held),
        float(inside.mean()),
        float(inside.ravel()[order[:many]].mean()),
        float(len(found.uncertainty.marks)),
        float(wrong > 0),
    )


def coarse(codes: IntArray, level: int) -> FloatArray:
    """Shares of the cells of a level."""
    return Grid(level).image(
        np.bincount(codes >> 2 * (FINEST_CELL - level), minlength=4**level) / codes.size
    )


def centers(codes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Where they are, in sides."""
    columns, rows = Grid(FINEST_CELL).decode(codes)
    side = 1 << FINEST_CELL
    return (np.asarray(columns) + 0.5) / side, (np.asarray(rows) + 0.5) / side


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Stated errors, bands and rings of local maps")
    parser.add_argument("--cities", type=int, default=9, help="how many of the second set")
    given = parser.parse_args(argv)
    numbers = [3 * one + kind for one in SETS["check"][1] for kind in range(3)][: given.cities]
    head = [
        "users, epsilon",
        "distance",
        "Similarity",
        "band",
        "band, heavy",
        "rings",
        "with a wrong one",
    ]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    every = []
    for users, epsilon in [(users, one) for users, some in CELLS.items() for one in some]:
        found = [
            judged(clustered(one, users), epsilon, generator("bands", one, users, epsilon))
            for one in numbers
        ]
        every += found
        print(line(f"{users:,}, {epsilon}", found), flush=True)
    print(line("all", every))
    return 0


def line(name: str, found: Sequence[tuple[float, ...]]) -> str:
    """Counts of maps, parts of cells."""
    told, many = np.array(found), len(found)
    distance, alike, rings, wrong = (int(told[:, at].sum()) for at in (0, 1, 4, 5))
    return (
        f"| {name} | {distance} of {many} | {alike} of {many} | {told[:, 2].mean():.0%} | "
        f"{told[:, 3].mean():.0%} | {rings} | {wrong} of {many} |"
    )


if __name__ == "__main__":
    sys.exit(main())
