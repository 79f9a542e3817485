"""The protocol of [ghazi23, sec. 4]: places, sampled users, rehearsed releases, four metrics.

Real check-ins when their folder is there, a made-up city otherwise. Everything is simulated:
releases are rehearsals with known noise, so that every number can be had again.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.heatmap.benchmark import (
    CITIZENS,
    LEVELS,
    BuiltinMethod,
    Place,
    Score,
    digest,
    score_sample,
    standard_methods,
    synthetic_places,
)
from sfumato.heatmap.methods import Method
from sfumato.heatmap.methods.baselines import TopMethod

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
USERS = 200
CELLS = 30
TRIALS = 2

# The paper's own comparison, and the rivals it does not measure; zoom came later, and has zoom.py.
TOPS: dict[str, Method[Any]] = {
    "top 0.01%": TopMethod(Fraction(1, 10_000)),
    "top 0.1%": TopMethod(Fraction(1, 1000)),
    "top 1%": TopMethod(Fraction(1, 100)),
}
COMPARED = ("laplace", *TOPS, "pyramid", "gaussian", "coarse", "privtree", "adaptive", "hierarchy")
METHODS = {name: (TOPS | standard_methods(USERS))[name] for name in COMPARED}

# The box and the grid of sec. 4, "Datasets".
WEST, SOUTH, EAST, NORTH = -135.0, 0.0, -60.0, 50.0
COARSE = 300
# The paper's files are not to be had; see README.md beside the data for what these are.
FILES = {
    "gowalla": "gowalla_world_u18737_sample30_visits.parquet",
    "brightkite": "brightkite_u600_checkins.parquet",
}

# Beside the repository; nothing that a user runs needs it.
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@dataclass(frozen=True, slots=True)
class Options:
    """What every script takes on its command line."""

    quick: bool
    out: Path
    data: Path

    @property
    def source(self) -> str:
        """Where the check-ins come from: "real", if their folder is there, or "city"."""
        return "real" if self.data.is_dir() else "city"


def options(description: str, argv: list[str] | None = None) -> Options:
    """The command line: --quick, --out, --data."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a small part, in seconds")
    parser.add_argument(
        "--out", type=Path, default=Path("demo/heatmaps"), help="folder for what is made"
    )
    parser.add_argument(
        "--data", type=Path, default=DATA, help="folder of check-ins; absent: made-up"
    )
    given = parser.parse_args(argv)
    chosen = Options(given.quick, given.out, given.data)
    chosen.out.mkdir(parents=True, exist_ok=True)
    return chosen


def generator(*words: object) -> np.random.Generator:
    """Simulation randomness from SHA-256 of what it is for: nobody chooses a seed."""
    return chance(digest(*words))


def chance(seed: bytes) -> np.random.Generator:
    """A generator of a hash."""
    return np.random.default_rng(list(seed))


def places(chosen: Options, count: int = CELLS, *, least_users: int = USERS) -> list[Place]:
    """The busiest places with enough people: cells of the paper's grid, or made-up cities."""
    if chosen.source == "real":
        return real_places(chosen.data, count, least_users)
    return synthetic_places(count, people=max(CITIZENS, least_users), chance=chance)


def real_places(folder: Path, count: int, least_users: int) -> list[Place]:
    """The cells with most check-ins over both files, each file's cells for themselves."""
    import pyarrow.parquet

    found: list[tuple[int, Place]] = []
    for name, file in FILES.items():
        table = pyarrow.parquet.read_table(folder / file)
        lon, lat = table["lon"].to_numpy(), table["lat"].to_numpy()
        user = table["user_id"].to_numpy().astype(np.int64)
        visits = np.ones(user.size, dtype=np.int64)
        if "visits" in table.column_names:
            visits = table["visits"].to_numpy().astype(np.int64)
        inside = (lon > WEST) & (lon < EAST) & (lat > SOUTH) & (lat < NORTH)
        lon, lat, user, visits = lon[inside], lat[inside], user[inside], visits[inside]
        x, y = (lon - WEST) / (EAST - WEST) * COARSE, (lat - SOUTH) / (NORTH - SOUTH) * COARSE
        column, row = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
        cell = COARSE * row + column
        sums = np.bincount(cell, visits)
        for code in np.argsort(-sums, kind="stable")[: 4 * count]:
            here = cell == code
            label = f"{name} {code // COARSE}-{code % COARSE}"
            place = Place(
                label, user[here], x[here] - column[here], y[here] - row[here], visits[here]
            )
            if place.users >= least_users:
                found.append((int(sums[code]), place))
    found.sort(key=lambda pair: -pair[0])
    return [place for _, place in found[:count]]


def run(
    chosen: Options, where: list[Place], *, epsilons: tuple[float, ...], trials: int,
    methods: list[str], users: tuple[int, ...] = (USERS,), levels: tuple[int, ...] = (LEVELS,),
) -> list[Score]:  # fmt: skip
    """All combinations; epsilon runs outermost, so that tables of noise are built once."""
    contenders = [BuiltinMethod(name, METHODS[name]) for name in methods]
    return [
        score
        for epsilon in epsilons
        for n in users
        for level in levels
        for place in where
        for trial in range(trials)
        for score in score_sample(
            place, contenders, source=chosen.source, users=n, epsilon=epsilon, sample=trial, chance=chance,
            levels=level,
        )
    ]  # fmt: skip
