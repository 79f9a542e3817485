"""Public or made-up places, and samples of their people: what methods are compared on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.benchmark.synthetic_city import Family, check_ins
from sfumato.privacy import UNITS
from sfumato.records import CellSums, Columns, as_double, open_table, quietly
from sfumato.spaces import Bounds, Grid

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


def digest(*words: object) -> bytes:
    """What chance is made of: SHA-256 of what it is for, so that nobody chooses a seed.

    Args:
        *words: What randomness is for.

    Returns:
        32 bytes.
    """
    return hashlib.sha256("|".join(map(str, ("heatmaps", *words))).encode()).digest()


def synthetic_places(
    count: int, *, people: int = CITIZENS, chance: Callable[[bytes], np.random.Generator]
) -> list[Place]:
    """Made-up cities, the families taking turns.

    Args:
        count: How many cities.
        people: How many live in each.
        chance: Makes a generator of a hash.

    Returns:
        The cities, the same for the same numbers.
    """
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

    Bounds are west, south, east, north: those of the rows if left out, which only public rows may show.
    West above east crosses the antimeridian.
    """
    if columns.user is None:
        raise InvalidParameter(
            "a sample is of users: name their column with `user`; nothing was read"
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
    """The sums of so many people of a place; each owns UNITS, split over the cells by integer division.

    Args:
        place: Where the people are.
        users: How many of them.
        grid: The cells.
        rng: Draws the people.

    Returns:
        Units of mass in each cell.

    Raises:
        InvalidInput: For a place with fewer people.
    """
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


def exact_counts(sums: CellSums) -> FloatArray:
    """The exact map of public sums in users, before any filter."""
    return sums.grid.image(sums.of_level(sums.grid.levels) / UNITS)


def true_shares(sums: CellSums) -> FloatArray:
    """The exact map of public sums with mass 1, before any filter.

    Args:
        sums: Sums of public rows.

    Returns:
        Shares [row, column], row 0 at the lowest y.
    """
    counts = exact_counts(sums)
    return np.asarray(counts / counts.sum())
