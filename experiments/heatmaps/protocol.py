"""The protocol of [ghazi23, sec. 4]: places, sampled users, rehearsed releases, four metrics.

Real check-ins when their folder is there, a made-up city otherwise. Everything is simulated: releases are
rehearsals with known noise, so that every number can be had again.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.heatmap.city import Family, check_ins
from sfumato.heatmap.method import Method
from sfumato.heatmap.metrics import Comparison, compare
from sfumato.heatmap.pyramid import PyramidMethod
from sfumato.heatmap.rivals import (
    AdaptiveGridMethod,
    CoarseMethod,
    FlatMethod,
    GaussianMethod,
    HierarchyMethod,
    PrivTreeMethod,
    TopMethod,
)
from sfumato.heatmap.smooth import smooth
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import KeyedNoise, Ledger
from sfumato.records import UNITS, CellSums, guard_sums
from sfumato.spaces import Grid

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
LEVELS = 8  # Delta = 256
USERS = 200
CELLS = 30
TRIALS = 2
# Deviation of the heatmap's filter in sides of the map. The paper does not state its own.
SIGMA = 0.02

METHODS: dict[str, Method[Any]] = {
    "laplace": FlatMethod(),
    "top 0.01%": TopMethod(Fraction(1, 10_000)),
    "top 0.1%": TopMethod(Fraction(1, 1000)),
    "top 1%": TopMethod(Fraction(1, 100)),
    "pyramid": PyramidMethod(),
    "gaussian": GaussianMethod(),
    "coarse": CoarseMethod(),
    "privtree": PrivTreeMethod(),
    "adaptive": AdaptiveGridMethod(),
    "hierarchy": HierarchyMethod(),
}

# The box and the grid of sec. 4, "Datasets".
WEST, SOUTH, EAST, NORTH = -135.0, 0.0, -60.0, 50.0
COARSE = 300
# The paper's files are not to be had; see README.md beside the data for what these are.
FILES = {
    "gowalla": "gowalla_world_u18737_sample30_visits.parquet",
    "brightkite": "brightkite_u600_checkins.parquet",
}
FAMILIES: tuple[Family, ...] = ("town", "street", "gaze")

# Beside the repository; nothing that a user runs needs it.
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Check-ins in one place: who, where in the unit square, how often."""

    name: str
    user: IntArray
    x: FloatArray
    y: FloatArray
    visits: IntArray

    @property
    def users(self) -> int:
        """How many different people were here."""
        return int(np.unique(self.user).size)


@dataclass(frozen=True, slots=True)
class Row:
    """One release compared with the truth."""

    source: str
    place: str
    trial: int
    users: int
    side: int
    epsilon: float
    method: str
    similarity: float
    pearson: float
    kl: float
    emd: float


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
    parser.add_argument("--out", type=Path, default=Path("demo/heatmaps"), help="folder for what is made")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of check-ins; absent: made-up")
    given = parser.parse_args(argv)
    chosen = Options(given.quick, given.out, given.data)
    chosen.out.mkdir(parents=True, exist_ok=True)
    return chosen


def generator(*words: object) -> np.random.Generator:
    """Simulation randomness from SHA-256 of what it is for: nobody chooses a seed."""
    return np.random.default_rng(list(_digest(words)))


def known_noise(*words: object) -> KeyedNoise:
    """Noise for one rehearsal, from the same hash: fast, and the same every time."""
    digest = _digest(words)
    return KeyedNoise(digest, epoch=digest[:12])


def _digest(words: tuple[object, ...]) -> bytes:
    return hashlib.sha256("|".join(map(str, ("heatmaps", *words))).encode()).digest()


def places(chosen: Options, count: int = CELLS, *, least_users: int = USERS) -> list[Place]:
    """The busiest places with enough people: cells of the paper's grid, or made-up cities."""
    if chosen.source == "real":
        return _real_places(chosen.data, count, least_users)
    return [_city(FAMILIES[number % 3], number // 3, max(1000, least_users)) for number in range(count)]


def _real_places(folder: Path, count: int, least_users: int) -> list[Place]:
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
            place = Place(label, user[here], x[here] - column[here], y[here] - row[here], visits[here])
            if place.users >= least_users:
                found.append((int(sums[code]), place))
    found.sort(key=lambda pair: -pair[0])
    return [place for _, place in found[:count]]


def _city(family: Family, number: int, users: int) -> Place:
    table = check_ins(users, family=family, rng=generator("city", family, number))
    user, x, y, _ = (table[name].to_numpy() for name in table.column_names)
    return Place(f"{family} {number}", user, x, y, np.ones(user.size, dtype=np.int64))


def sample_sums(place: Place, users: int, grid: Grid, *, rng: np.random.Generator) -> CellSums:
    """The sums of so many people of a place; each owns UNITS, split over the cells by integer division."""
    chosen = rng.choice(np.unique(place.user), users, replace=False)
    cell = grid.cells_of(place.x, place.y)
    mine = np.isin(place.user, chosen) & (cell >= 0)
    who = np.unique(place.user[mine], return_inverse=True)[1]
    pair, which = np.unique(who * grid.size + cell[mine], return_inverse=True)
    counts = np.bincount(which, place.visits[mine]).astype(np.int64)
    totals = np.bincount(who, place.visits[mine]).astype(np.int64)
    units = counts * UNITS // totals[pair // grid.size]
    codes, at = np.unique(pair % grid.size, return_inverse=True)
    sums = np.zeros(codes.size, dtype=np.int64)
    np.add.at(sums, at, units)
    return CellSums(grid, codes, sums)


def rehearse(method: Method[Any], sums: CellSums, epsilon: float, *, noise: KeyedNoise) -> Tiles:
    """One simulated release of public data, through a ledger that holds just what it costs."""
    guarded = guard_sums(sums, source="rehearsal")
    mechanism = method.mechanism(Fraction(str(epsilon)), guarded.bound, sums.grid)
    ledger = Ledger.rehearsal(mechanism.cost(guarded.bound))
    return method.estimate(ledger.release(mechanism, guarded, noise=noise).value, sums.grid)[0]


def true_shares(sums: CellSums) -> FloatArray:
    """The exact map, before any filter."""
    image = sums.grid.image(sums.of_level(sums.grid.levels).astype(np.float64))
    return np.asarray(image / image.sum())


def heatmap(tiles: Tiles, level: int, *, sigma: float = SIGMA) -> FloatArray:
    """The heatmap of an estimate."""
    return smooth(tiles.normalized().image(level), sigma)


def measured(
    place: Place, *, users: int, levels: int, epsilon: float, trial: int, methods: list[str]
) -> Iterator[tuple[str, Comparison]]:
    """Every method on one sample of a place."""
    grid = Grid(levels)
    sums = sample_sums(place, users, grid, rng=generator("users", place.name, users, trial))
    truth = smooth(true_shares(sums), SIGMA)
    for name in methods:
        # The same noise for the plain baseline and its thresholds: they differ in what is kept.
        label = "flat" if name.startswith(("laplace", "top")) else name
        noise = known_noise(label, place.name, users, levels, epsilon, trial)
        tiles = rehearse(METHODS[name], sums, epsilon, noise=noise)
        yield name, compare(truth, heatmap(tiles, levels), grid)


def run(
    chosen: Options, where: list[Place], *, epsilons: tuple[float, ...], trials: int,
    methods: list[str], users: tuple[int, ...] = (USERS,), levels: tuple[int, ...] = (LEVELS,),
) -> list[Row]:  # fmt: skip
    """All combinations; epsilon runs outermost, so that tables of noise are built once."""
    return [
        Row(
            chosen.source, place.name, trial, n, 1 << level, epsilon, name,
            found.similarity, found.pearson, found.kl, found.emd,
        )
        for epsilon in epsilons
        for n in users
        for level in levels
        for place in where
        for trial in range(trials)
        for name, found in measured(
            place, users=n, levels=level, epsilon=epsilon, trial=trial, methods=methods
        )
    ]  # fmt: skip
