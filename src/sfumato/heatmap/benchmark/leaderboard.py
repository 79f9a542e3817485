"""All methods on the same samples of public or made-up places: who makes the best map, and by how much.

Everything here is simulated: releases are rehearsals with known noise, so that every number but the
times can be had again, and nothing here may see a private row.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.analysis.blur import smooth
from sfumato.heatmap.analysis.metrics import compare
from sfumato.heatmap.benchmark.synthetic_city import Family, check_ins
from sfumato.heatmap.methods.baselines import (
    AdaptiveGridMethod,
    CoarseMethod,
    FlatMethod,
    GaussianMethod,
    HierarchyMethod,
    PrivTreeMethod,
    TopMethod,
)
from sfumato.heatmap.methods.protocol import Method
from sfumato.heatmap.methods.pyramid import PyramidMethod
from sfumato.heatmap.methods.zoom import ZoomMethod
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import REHEARSAL, UNITS, KeyedNoise, Ledger
from sfumato.records import CellSums, Columns, as_double, guard_sums, open_table, quietly
from sfumato.spaces import Bounds, Grid

Metric = Literal["similarity", "pearson", "kl", "emd"]

METRICS: tuple[Metric, ...] = ("similarity", "pearson", "kl", "emd")
# Whether a metric grows or falls as the map gets better.
GROWS: dict[str, float] = {"similarity": 1.0, "pearson": 1.0, "kl": -1.0, "emd": -1.0}
LEVELS = 8  # 256 x 256 cells
# Deviation of the heatmap's filter in sides of the map.
SIGMA = 0.02
FAMILIES: tuple[Family, ...] = ("town", "street", "gaze")
# People of a made-up city, of whom a sample is drawn.
CITIZENS = 1000


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
class Score:
    """One map compared with the truth; maps of one place and sample can be paired.

    `seconds` is what the release and its estimate took, drawing excluded.
    """

    source: str
    place: str
    sample: int
    users: int
    side: int
    epsilon: float
    method: str
    similarity: float
    pearson: float
    kl: float
    emd: float
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Ours:
    """A method of the house, run through a rehearsal ledger that charges what it costs."""

    name: str
    method: Method[Any]


@dataclass(frozen=True, slots=True)
class Own:
    """A researcher's function of (counts, epsilon, rng); its privacy is its author's word, nothing more.

    `counts` are floats [row, column], row 0 at the lowest y, in users: everybody has mass 1 over
    all cells. It gives back an array of the same shape, none below 0; its scale does not matter.
    """

    name: str
    function: Callable[..., Any]


Contender = Ours | Own


def standard_methods(users: int) -> dict[str, Method[Any]]:
    """Every method of the house by its word on the command line, the default first.

    `users` is what the coarse method is told in public; no other is.

    >>> list(standard_methods(200))[-3:]
    ['laplace', 'top', 'gaussian']
    """
    methods: list[Method[Any]] = [
        ZoomMethod(),
        PyramidMethod(),
        PrivTreeMethod(),
        AdaptiveGridMethod(),
        HierarchyMethod(),
        CoarseMethod(users=users),
        FlatMethod(),
        TopMethod(Fraction(1, 10_000)),
        GaussianMethod(),
    ]
    return {method.name: method for method in methods}


def digest(*words: object) -> bytes:
    """What chance is made of: SHA-256 of what it is for, so that nobody chooses a seed."""
    return hashlib.sha256("|".join(map(str, ("heatmaps", *words))).encode()).digest()


def known_noise(*words: object) -> KeyedNoise:
    """Noise for one rehearsal, from such a hash: fast, and the same every time."""
    seed = digest(*words)
    return KeyedNoise(seed, epoch=seed[:12])


def synthetic_places(
    count: int, *, people: int = CITIZENS, chance: Callable[[bytes], np.random.Generator]
) -> list[Place]:
    """Made-up cities, the families taking turns; `chance` makes a generator of a hash."""
    found = []
    for number in range(count):
        family = FAMILIES[number % len(FAMILIES)]
        which = number // len(FAMILIES)
        table = check_ins(people, family=family, rng=chance(digest("city", family, which)))
        user, x, y, _ = (table[name].to_numpy() for name in table.column_names)
        found.append(Place(f"{family} {which}", user, x, y, np.ones(user.size, dtype=np.int64)))
    return found


def public_place(
    source: str, columns: Columns, *, name: str, bounds: Bounds | None = None
) -> Place:
    """A place from a table that is public, stretched to the unit square; every row counts 1.

    Without bounds, those of its rows: which only public rows may show. West above east crosses the
    antimeridian.
    """
    if columns.user is None:
        raise InvalidParameter(
            "a sample is of users: name their column with --user; nothing was read"
        )
    table = open_table(source, columns=columns)
    chosen = table.select(
        user=table[columns.user].cast("string"),
        x=as_double(table[columns.x], columns.x),
        y=as_double(table[columns.y], columns.y),
    )
    rows = quietly(
        chosen.to_pyarrow, f"the rows of {source} could not be read; nothing was compared"
    )
    x, y = (rows[axis].to_numpy().astype(np.float64) for axis in ("x", "y"))
    named = np.array([who not in (None, "", "nan") for who in rows["user"].to_pylist()], dtype=bool)
    keep = named & np.isfinite(x) & np.isfinite(y)
    if bounds is None and keep.any():
        bounds = (x[keep].min(), y[keep].min(), x[keep].max(), y[keep].max())
    west, south, east, north = bounds or (0.0, 0.0, 0.0, 0.0)
    if west > east:
        east, x = east + 360, np.where(x < west, x + 360, x)
    if not (west < east and south < north):
        raise InvalidInput(
            f"the bounds of {source} must rise from low to high, got {bounds}; nothing was compared"
        )
    keep &= (x >= west) & (x <= east) & (y >= south) & (y <= north)
    user = rows["user"].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
    return Place(
        name,
        user[keep].astype(np.int64),
        (x[keep] - west) / (east - west),
        (y[keep] - south) / (north - south),
        np.ones(int(keep.sum()), dtype=np.int64),
    )


def sample_sums(place: Place, users: int, grid: Grid, *, rng: np.random.Generator) -> CellSums:
    """The sums of so many people of a place; each owns UNITS, split over the cells by integer division."""
    if users > place.users:
        raise InvalidInput(
            f"{place.name} has {place.users} people, a sample of {users} was asked for; nothing was compared"
        )
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


def rehearse_sums(
    method: Method[Any], sums: CellSums, epsilon: float, *, noise: KeyedNoise
) -> Tiles:
    """One simulated release of public sums, through a ledger that holds just what it costs."""
    guarded = guard_sums(sums, source=REHEARSAL)
    mechanism = method.mechanism(Fraction(str(epsilon)), guarded.bound, sums.grid)
    ledger = Ledger.rehearsal(mechanism.cost(guarded.bound))
    return method.estimate(ledger.release(mechanism, guarded, noise=noise).value, sums.grid)[0]


def exact_counts(sums: CellSums) -> FloatArray:
    """The exact map of public sums in users, before any filter."""
    return sums.grid.image(sums.of_level(sums.grid.levels) / UNITS)


def true_shares(sums: CellSums) -> FloatArray:
    """The exact map of public sums with mass 1, before any filter."""
    counts = exact_counts(sums)
    return np.asarray(counts / counts.sum())


def heatmap(tiles: Tiles, level: int, *, sigma: float = SIGMA) -> FloatArray:
    """The heatmap of an estimate."""
    return smooth(tiles.normalized().image(level), sigma)


def maps_of_sample(
    place: Place,
    contenders: Sequence[Contender],
    *,
    users: int,
    epsilon: float,
    sample: int,
    chance: Callable[[bytes], np.random.Generator],
    levels: int = LEVELS,
) -> Iterator[tuple[str, FloatArray, float]]:
    """Name, heatmap and seconds: of the truth ("") and of every contender, on one sample of a place."""
    rng = chance(digest("users", place.name, users, sample))
    sums = sample_sums(place, users, Grid(levels), rng=rng)
    yield "", smooth(true_shares(sums), SIGMA), 0.0
    for contender in contenders:
        words = (place.name, users, levels, epsilon, sample)
        match contender:
            case Ours(name, method):
                # The same noise for the plain baseline and its thresholds: they differ in what is
                # kept.
                label = "flat" if name.startswith(("laplace", "top")) else name
                noise = known_noise(label, *words)
                begin = time.perf_counter()
                tiles = rehearse_sums(method, sums, epsilon, noise=noise)
                seconds = time.perf_counter() - begin
                yield name, heatmap(tiles, levels), seconds
            case Own(name):
                counts, own_rng = exact_counts(sums), chance(digest(name, *words))
                begin = time.perf_counter()
                shares = _own_shares(contender, counts, epsilon, rng=own_rng, where=place.name)
                seconds = time.perf_counter() - begin
                yield name, smooth(shares, SIGMA), seconds


def score_sample(
    place: Place,
    contenders: Sequence[Contender],
    *,
    source: str,
    users: int,
    epsilon: float,
    sample: int,
    chance: Callable[[bytes], np.random.Generator],
    levels: int = LEVELS,
) -> list[Score]:
    """Every contender on one sample of a place, compared with the truth."""
    drawn = maps_of_sample(
        place, contenders, users=users, epsilon=epsilon, sample=sample, chance=chance, levels=levels
    )
    _, truth, _ = next(drawn)
    scores = []
    for name, image, seconds in drawn:
        found = compare(truth, image, Grid(levels))
        scores.append(
            Score(
                source, place.name, sample, users, 1 << levels, epsilon, name,
                found.similarity, found.pearson, found.kl, found.emd, seconds,
            )
        )  # fmt: skip
    return scores


def _own_shares(
    own: Own, counts: FloatArray, epsilon: float, *, rng: np.random.Generator, where: str
) -> FloatArray:
    """What a researcher's function makes of counts, with mass 1; its mistakes are one sentence."""
    blame = f"{own.name} at epsilon {epsilon:g} on {where}"
    try:
        made = np.asarray(own.function(counts.copy(), epsilon, rng), dtype=np.float64)
    except Exception as problem:
        raise InvalidInput(
            f"{blame} failed: {type(problem).__name__}: {problem}; nothing was compared"
        ) from problem
    if made.shape != counts.shape:
        raise InvalidInput(
            f"{blame} must give back an array of shape {counts.shape}, got {made.shape}; nothing was compared"
        )
    if not (np.isfinite(made).all() and (made >= 0).all()):
        raise InvalidInput(
            f"{blame} must give back finite numbers, none below 0, and gave others; nothing was compared"
        )
    total = float(made.sum())
    # As for our own: where nothing is left, the even map.
    return made / total if total > 0 else np.full(counts.shape, 1 / counts.size)
