"""Made-up check-ins of a made-up city: public data of any size to rehearse on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from sfumato._random import generator
from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.files import whole_file
from sfumato.spaces import Bounds

Family = Literal["town", "street", "gaze"]

MAX_VISITS = 200
START = 1_767_225_600  # 2026-01-01T00:00:00Z
MONTH = 30 * 24 * 3600


@dataclass(frozen=True, slots=True, eq=False)
class _Venues:
    """Places people go to, in the unit square, how popular each is, and how many people show their home."""

    places: FloatArray
    popularity: FloatArray
    homes: float


def check_ins(
    users: int,
    *,
    family: Family = "town",
    bounds: Bounds = (0.0, 0.0, 1.0, 1.0),
    rng: np.random.Generator,
) -> Any:
    """A pyarrow table of check-ins, one row a visit, that looks like a city's and is nobody's.

    "town": a few districts with Zipf-popular venues; "street": venues along roads; both with a
    heavy-tailed number of visits to a handful of favorites each, some of them at home. "gaze":
    fixations on a few parts of an image.

    Args:
        users: How many people, at least 0.
        family: "town", "street" or "gaze".
        bounds: West, south, east, north; points lie about them, a few outside.
        rng: Draws the city, the people and their visits.

    Returns:
        A pyarrow table: user, lon, lat and time, or user, x, y and ms.

    Raises:
        InvalidParameter: For another family, fewer than 0 users, or bounds that do not rise.

    >>> check_ins(3, bounds=(-74.3, 40.5, -73.7, 40.9), rng=np.random.default_rng(0)).column_names
    ['user', 'lon', 'lat', 'time']
    """
    import pyarrow

    if users < 0:
        raise InvalidParameter(f"users must number at least 0, got {users}; no city was made")
    if family not in get_args(Family):
        raise InvalidParameter(
            f"family must be one of {get_args(Family)}, got {family!r}; no city was made"
        )
    west, south, east, north = bounds
    if not (west < east and south < north):
        raise InvalidParameter(f"bounds must rise from low to high, got {bounds}; no city was made")
    if family == "gaze":
        user, places = _fixations(users, rng)
        names = ("x", "y")
        last = ("ms", np.minimum(rng.lognormal(5.5, 0.45, user.size), 5000).astype(np.int64))
    else:
        user, places = _visits(users, _town(rng) if family == "town" else _street(rng), rng)
        names = ("lon", "lat")
        stamps = START + rng.integers(0, MONTH, user.size)
        last = ("time", pyarrow.array(stamps, pyarrow.timestamp("s", tz="UTC")))
    return pyarrow.table(
        {
            "user": user,
            names[0]: west + places[:, 0] * (east - west),
            names[1]: south + places[:, 1] * (north - south),
            last[0]: last[1],
        }
    )


@dataclass(frozen=True, slots=True)
class CityFile:
    """A file of made-up check-ins: where it is, its rows, and how many people it has."""

    written: str
    rows: int
    users: int

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CityFile:
        """The value that `to_json` wrote."""
        return cls(data["written"], data["rows"], data["users"])


def write_city(
    path: str | Path,
    *,
    users: int = 2000,
    family: Family = "town",
    bounds: Bounds = (0.0, 0.0, 1.0, 1.0),
    rng: np.random.Generator | None = None,
) -> CityFile:
    """Write check-ins of people who do not exist to a new Parquet file.

    Args:
        path: A .parquet file that is not there yet.
        users: How many made-up people, at least 0.
        family: "town" or "street" (columns user, lon, lat, time), or "gaze" (user, x, y, ms).
        bounds: Where they are: west, south, east, north.
        rng: Draws the city, the people and their visits; others each time if left out.

    Returns:
        The file, its number of rows, and its number of people.

    Raises:
        InvalidParameter: For another suffix, a file that exists, or what `check_ins` refuses.
    """
    import pyarrow.parquet

    file = Path(path)
    if file.suffix != ".parquet" or file.exists():
        raise InvalidParameter(
            f"a city is written to a new .parquet file, got {file}; nothing was made"
        )
    table = check_ins(users, family=family, bounds=bounds, rng=rng or generator())
    with whole_file(file) as written:
        pyarrow.parquet.write_table(table, written)
    return CityFile(str(file), table.num_rows, users)


def _town(rng: np.random.Generator) -> _Venues:
    """Districts of different weight and width, with venues in each."""
    districts = int(rng.integers(3, 8))
    middle, width = rng.uniform(0.1, 0.9, (districts, 2)), rng.uniform(0.01, 0.07, districts)
    at = rng.choice(
        districts, int(rng.integers(150, 500)), p=rng.dirichlet(np.full(districts, 0.8))
    )
    places = middle[at] + rng.normal(size=(at.size, 2)) * width[at, None]
    return _inside(places, _zipf(at.size, rng.uniform(0.6, 1.1), rng), rng.uniform(0.12, 0.6))


def _street(rng: np.random.Generator) -> _Venues:
    """Venues along straight roads that pass near a hub."""
    hub, roads = rng.uniform(0.25, 0.75, 2), []
    for _ in range(int(rng.integers(5, 10))):
        angle, offset = rng.uniform(0, np.pi), rng.normal(scale=0.15)
        along, across = (
            np.array([np.cos(angle), np.sin(angle)]),
            np.array([-np.sin(angle), np.cos(angle)]),
        )
        steps = rng.normal(scale=0.22, size=int(rng.integers(20, 70)))
        jitter = rng.normal(scale=0.004, size=(steps.size, 2))
        roads.append(hub + offset * across + steps[:, None] * along + jitter)
    places = np.concatenate(roads)
    return _inside(places, _zipf(len(places), rng.uniform(0.5, 1.0), rng), rng.uniform(0.2, 1.0))


def _visits(users: int, venues: _Venues, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Who goes where: everyone has a few favorites, liked unequally, and visits by a Pareto law."""
    visits = 1 + np.minimum(MAX_VISITS - 1, rng.pareto(1.2, users) * 3).astype(np.int64)
    favorites = 1 + rng.poisson(3.0, users)
    owner = np.repeat(np.arange(users), favorites)
    venue = rng.choice(len(venues.places), owner.size, p=venues.popularity)
    user = np.repeat(np.arange(users), visits)
    chosen = _within(rng.exponential(size=owner.size), favorites, user, rng)
    places = venues.places[venue[chosen]] + rng.normal(scale=0.0015, size=(user.size, 2))
    # Some people show their home: one spot of their own, in a third of their visits.
    shows = rng.random(users) < venues.homes
    homes = venues.places[rng.integers(len(venues.places), size=users)] + rng.normal(
        scale=0.08, size=(users, 2)
    )
    home = shows[user] & (rng.random(user.size) < 0.3)
    places[home] = homes[user[home]]
    return user, places


def _fixations(users: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """What people look at: most of them at most of the parts, and one look in ten anywhere."""
    parts = int(rng.integers(3, 9))
    middle, width = rng.uniform(0.08, 0.92, (parts, 2)), rng.uniform(0.008, 0.05, (parts, 2))
    interest = rng.dirichlet(np.full(parts, 1.2))
    looks = 1 + rng.poisson(12.0, users)
    user = np.repeat(np.arange(users), looks)
    liking = rng.gamma(6 * interest + 0.05, size=(users, parts)).ravel() + 1e-12
    part = _within(liking, np.full(users, parts), user, rng) % parts
    places = middle[part] + rng.normal(size=(user.size, 2)) * width[part]
    anywhere = rng.random(user.size) < 0.1
    places[anywhere] = rng.normal(0.5, 0.2, (int(anywhere.sum()), 2))
    return user, places


def _within(
    weights: FloatArray, counts: IntArray, user: IntArray, rng: np.random.Generator
) -> IntArray:
    """For each row of a user, one of the user's own `counts` items by weight; items follow each other."""
    ends = np.cumsum(counts)
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    low, high = sums[ends - counts], sums[ends]
    drawn = low[user] + rng.random(user.size) * (high - low)[user]
    found = np.searchsorted(sums, drawn, side="right") - 1
    # A draw rounded up to the end of one's items would be the next user's.
    return np.asarray(np.clip(found, (ends - counts)[user], ends[user] - 1), dtype=np.int64)


def _zipf(size: int, power: float, rng: np.random.Generator) -> FloatArray:
    return rng.permutation(1.0 / np.arange(1, size + 1) ** power)


def _inside(places: FloatArray, popularity: FloatArray, homes: float) -> _Venues:
    """The venues inside the square, their popularity adding up to 1."""
    inside = np.all((places > 0) & (places < 1), axis=1)
    popularity = popularity[inside]
    return _Venues(places[inside], popularity / popularity.sum(), homes)
