"""The table behind `sfumato local plan`: local maps simulated on made-up cities, by information.

python -m experiments.heatmaps.local_forecast [--only 300:1,1000:1] [--check]

It prints the lines of FORECAST_TABLE in sfumato/heatmap/local/forecast.py, the same on every run. `--check`
ends with exit code 1 where a line is not that of the package; `--only` makes some of them.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import numpy as np
from experiments.heatmaps.protocol import chance

from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.analysis import emd_share, similarity, smooth
from sfumato.heatmap.benchmark import Place, synthetic_places
from sfumato.heatmap.local import FORECAST_TABLE, simulate_local_map
from sfumato.spaces import Grid

Quantiles = tuple[float, ...]
Line = tuple[float, Quantiles, Quantiles]

CITIES, PEOPLE = 9, 60_000
GRID = Grid(6)
SIGMA = 0.02
# Users and epsilon of each line. Two samples of a city where maps vary most.
DESIGN = (
    (40, 1.0),
    (100, 1.0),
    (300, 1.0),
    (1000, 1.0),
    (2000, 1.5),
    (3000, 2.0),
    (10_000, 2.0),
    (20_000, 2.5),
    (50_000, 3.0),
    (60_000, 4.0),
    (60_000, 5.0),
    (200_000, 5.0),
)
MANY = 20_000
QUANTILES = (0.05, 0.5, 0.95)


def drawn(place: Place, users: int, rng: np.random.Generator) -> IntArray:
    """The cell [row * 64 + column] of one place of each of so many people, again if there are fewer."""
    order = rng.permutation(place.user.size)
    _, first = np.unique(place.user[order], return_index=True)
    x, y = place.x[order[first]], place.y[order[first]]
    chosen = rng.integers(0, x.size, users) if users > x.size else rng.permutation(x.size)[:users]
    columns, rows = (
        np.clip((axis[chosen] * GRID.side).astype(np.int64), 0, GRID.side - 1) for axis in (x, y)
    )
    return np.asarray(rows * GRID.side + columns)


def scored(
    place: Place, users: int, epsilon: float, *, rng: np.random.Generator
) -> tuple[float, float]:
    """EMD and Similarity of one simulated map."""
    cells = drawn(place, users, rng)
    truth = np.bincount(cells, minlength=GRID.size).reshape(GRID.side, GRID.side) / users
    z_order = GRID.image(np.arange(GRID.size, dtype=np.float64)).ravel().astype(np.int64)
    codes = z_order[cells] * 16 + rng.integers(0, 16, users)
    means = GRID.image(simulate_local_map(codes, epsilon, rng=rng).means(GRID.levels))
    shown = means / means.sum()
    return emd_share(truth, shown, GRID), similarity(smooth(truth, SIGMA), smooth(shown, SIGMA))


def line(where: Sequence[Place], users: int, epsilon: float) -> Line:
    """A line of the table: information, then quantiles of EMD and of Similarity."""
    found = np.array(
        [
            scored(place, users, epsilon, rng=np.random.default_rng([number, sample, users, 7]))
            for number, place in enumerate(where)
            for sample in range(2 if users < MANY else 1)
        ]
    )
    odds = math.exp(epsilon)
    return (
        round(users * (odds - 1) ** 2 / (4 * odds), 1),
        quantiles(found[:, 0]),
        quantiles(found[:, 1]),
    )


def quantiles(values: FloatArray) -> Quantiles:
    """5, 50 and 95 %, to four digits after the point."""
    return tuple(round(float(one), 4) for one in np.quantile(values, QUANTILES))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the lines; with --check, fail where the package has others."""
    parser = argparse.ArgumentParser(description="The table behind `sfumato local plan`")
    parser.add_argument("--only", default="", help="users:epsilon of some lines, with commas")
    parser.add_argument("--check", action="store_true", help="hold lines against the package")
    given = parser.parse_args(argv)
    asked = [
        (int(one.split(":")[0]), float(one.split(":")[1])) for one in given.only.split(",") if one
    ]
    if odd := [one for one in asked if one not in DESIGN]:
        raise SystemExit(f"the table has no line of {odd[0]}; nothing was run")
    where = synthetic_places(CITIES, people=PEOPLE, chance=chance)
    others = 0
    for users, epsilon in asked or DESIGN:
        found = line(where, users, epsilon)
        print(f"    {found},", flush=True)
        others += found not in FORECAST_TABLE
    if given.check and others:
        print(f"{others} lines are not those of the package", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
