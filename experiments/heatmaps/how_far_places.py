"""Places that say whether maps know how far off they are: some to tune on, others to test on.

Split by source, so that no place, and no person, is on both sides. Boxes are cut in four again and
again, the heaviest quarter each time, so that one city is seen from a hundred kilometres and from
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from experiments.heatmaps.forecast import histogram, outer_cells
from experiments.heatmaps.protocol import chance
from experiments.heatmaps.zoom import scene

from sfumato.heatmap.benchmark import Place, sample_sums, synthetic_places
from sfumato.records import CellSums
from sfumato.spaces import Bounds, Grid

PEOPLE = 40_000
LEAST = 4_000  # rows of the smallest box
TUNING: dict[str, tuple[str, tuple[Bounds, ...], int]] = {
    "gowalla NYC": ("gowalla_nyc_checkins.parquet", ((-74.26, 40.48, -73.70, 40.92),), 4),
    "gowalla": (
        "gowalla_world_u18737_sample30_visits.parquet",
        ((-125, 24, -66, 50), (-100, 28, -94, 34), (-123, 37, -121, 39), (-10, 36, 30, 70)),
        2,
    ),
    "brightkite": (
        "brightkite_u600_checkins.parquet",
        ((-125, 24, -66, 50), (-105.3, 39.4, -104.6, 40.1), (138, 34, 142, 38)),
        2,
    ),
    "homes": (
        "gowalla_user_homes.parquet",
        ((-125, 24, -66, 50), (-10, 36, 30, 70), (-100, 28, -94, 34)),
        2,
    ),
}
TESTING: dict[str, tuple[str, tuple[Bounds, ...], int]] = {
    "foursquare": ("foursquare_nyc_u1083_checkins.parquet", ((-74.28, 40.55, -73.68, 41.0),), 4),
    "geolife": (
        "geolife_10min_points.parquet",
        ((115.4, 39.4, 117.6, 41.1), (73, 18, 135, 54)),
        3,
    ),
}
SCENES = (3, 8, 13, 18, 23, 28)


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A place of a family; where it has too few people, each row stands for one."""

    family: str
    place: Place

    def most(self) -> int:
        """How many people can be sampled of it."""
        return max(self.place.users, self.place.user.size)

    def sums(self, users: int, grid: Grid, rng: np.random.Generator) -> CellSums:
        """The sums of so many people."""
        place = self.place
        if place.users < users:
            rows = np.arange(place.user.size)
            place = replace(place, user=rows, visits=np.ones_like(place.visits))
        return sample_sums(place, users, grid, rng=rng)


def tuning(data: Path, *, people: int = PEOPLE) -> list[Sampled]:
    """Gowalla, brightkite, homes, cells outside the Americas, and made-up towns, streets and gaze."""
    made_up = _made_up(9, people)
    if not data.is_dir():
        return made_up
    cells = [Sampled("cells", one) for one in outer_cells(data, 200)[:8]]
    tweets = Sampled("histogram", histogram(data, "TWITTER", people))
    return [*_files(data, TUNING), *cells, tweets, *made_up]


def held_out(data: Path, *, people: int = PEOPLE) -> list[Sampled]:
    """Foursquare, Geolife, gaze on pictures, cabs of Beijing: none of it was tuned on."""
    if not data.is_dir():
        return _made_up(18, people)[9:]
    gaze = data / "gaze_scene_fixations.parquet"
    scenes = [Sampled("gaze", scene(gaze, image)) for image in SCENES]
    cabs = histogram(data, "BEIJING-CABS-S", people)
    return [*_files(data, TESTING), *scenes, *(Sampled("cabs", one) for one in quarters(cabs, 2))]


def _made_up(count: int, people: int) -> list[Sampled]:
    """Towns, streets and gaze, each a family."""
    places = synthetic_places(count, people=people, chance=chance)
    return [Sampled(f"made-up {one.name.split()[0]}", one) for one in places]


def _files(data: Path, wanted: dict[str, tuple[str, tuple[Bounds, ...], int]]) -> list[Sampled]:
    import pyarrow.parquet

    found = []
    for family, (file, boxes, deep) in wanted.items():
        table = pyarrow.parquet.read_table(data / file, columns=["user_id", "lon", "lat"])
        lon, lat, user = (table[name].to_numpy() for name in ("lon", "lat", "user_id"))
        _, who = np.unique(user, return_inverse=True)
        for number, box in enumerate(boxes):
            place = _cut(f"{family} {number}", who, lon, lat, box)
            found += [Sampled(family, one) for one in quarters(place, deep)]
    return found


def _cut(
    name: str, who: np.ndarray, lon: np.ndarray, lat: np.ndarray, box: Sequence[float]
) -> Place:
    west, south, east, north = box
    x, y = (lon - west) / (east - west), (lat - south) / (north - south)
    here = (x >= 0) & (x < 1) & (y >= 0) & (y < 1)
    return Place(name, who[here], x[here], y[here], np.ones(int(here.sum()), dtype=np.int64))


def quarters(place: Place, deep: int) -> list[Place]:
    """A place, its heaviest quarter, the heaviest of that, and so on: so many in all, if they have rows."""
    found = [place]
    while len(found) < deep:
        last = found[-1]
        which = (2 * last.y).astype(np.int64) * 2 + (2 * last.x).astype(np.int64)
        best = int(np.bincount(which, minlength=4).argmax())
        here = which == best
        if here.sum() < LEAST:
            break
        x, y = 2 * last.x[here] - best % 2, 2 * last.y[here] - best // 2
        name = f"{place.name} /{2 ** len(found)}"
        found.append(Place(name, last.user[here], x, y, last.visits[here]))
    return found
