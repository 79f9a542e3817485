"""Places that say whether maps know how far off they are: some to tune on, others to test on.

Every source is cut into boxes that do not touch; in the order of a hash of their names they go to
one side and the other in turn, so that no ground of a source is on both. Of a box the whole and its
heaviest quarter are places. People may be on both sides, and every source is: `how_far --fit` says
what happens to places of a source that nothing was tuned on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from experiments.heatmaps.forecast import histogram
from experiments.heatmaps.protocol import chance
from experiments.heatmaps.zoom import scene

from sfumato.heatmap.benchmark import Place, digest, sample_sums, synthetic_places
from sfumato.records import CellSums
from sfumato.spaces import Bounds, Grid

PEOPLE = 40_000
LEAST = 4_000  # rows of the smallest box
DEEP = 2  # a box, and its heaviest quarter
# A file, the square that is cut, and how often it is cut in four.
SOURCES: dict[str, tuple[str, Bounds, int]] = {
    "gowalla NYC": ("gowalla_nyc_checkins.parquet", (-74.26, 40.48, -73.70, 40.92), 1),
    "gowalla US": ("gowalla_world_u18737_sample30_visits.parquet", (-125, 24, -66, 50), 3),
    "gowalla Europe": ("gowalla_world_u18737_sample30_visits.parquet", (-10, 36, 30, 70), 3),
    "brightkite US": ("brightkite_u600_checkins.parquet", (-125, 24, -66, 50), 3),
    "brightkite Asia": ("brightkite_u600_checkins.parquet", (100, -50, 180, 60), 2),
    "homes US": ("gowalla_user_homes.parquet", (-125, 24, -66, 50), 1),
    "homes Europe": ("gowalla_user_homes.parquet", (-10, 36, 30, 70), 1),
    "foursquare NYC": ("foursquare_nyc_u1083_checkins.parquet", (-74.28, 40.55, -73.68, 41.0), 1),
    "geolife Beijing": ("geolife_10min_points.parquet", (116.2, 39.8, 116.5, 40.1), 1),
}
HISTOGRAMS = ("TWITTER", "BEIJING-CABS-S", "GOWALLA")
SCENES = range(1, 30)
MADE_UP = 24


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
    """The places to tune on."""
    return _sides(data, people)[0]


def held_out(data: Path, *, people: int = PEOPLE) -> list[Sampled]:
    """The places to test on: none of their ground was tuned on."""
    return _sides(data, people)[1]


def _sides(data: Path, people: int) -> tuple[list[Sampled], list[Sampled]]:
    """Boxes of each family in turn to one side and the other, by a hash of their names."""
    boxes = _made_up(people) + (_real(data, people) if data.is_dir() else [])
    sides: tuple[list[Sampled], list[Sampled]] = ([], [])
    for family in dict.fromkeys(one.family for one in boxes):
        here = [one for one in boxes if one.family == family]
        here.sort(key=lambda one: digest("how far", one.place.name))
        for number, box in enumerate(here):
            sides[number % 2].extend(Sampled(family, one) for one in quarters(box.place, DEEP))
    return sides


def _made_up(people: int) -> list[Sampled]:
    """Towns, streets and gaze, each a family."""
    places = synthetic_places(MADE_UP, people=people, chance=chance)
    return [Sampled(f"made-up {one.name.split()[0]}", one) for one in places]


def _real(data: Path, people: int) -> list[Sampled]:
    found = [Sampled(name, box) for name in SOURCES for box in _boxes(data, name)]
    for name in HISTOGRAMS:
        whole = histogram(data, name, 4 * people)
        found += [Sampled(whole.name, box) for box in cells(whole, 1)]
    gaze = data / "gaze_scene_fixations.parquet"
    return found + [Sampled("gaze", scene(gaze, image)) for image in SCENES]


def _boxes(data: Path, name: str) -> list[Place]:
    import pyarrow.parquet

    file, box, deep = SOURCES[name]
    table = pyarrow.parquet.read_table(data / file, columns=["user_id", "lon", "lat"])
    lon, lat, user = (table[column].to_numpy() for column in ("lon", "lat", "user_id"))
    _, who = np.unique(user, return_inverse=True)
    return cells(_cut(name, who, lon, lat, box), deep)


def _cut(
    name: str, who: np.ndarray, lon: np.ndarray, lat: np.ndarray, box: Sequence[float]
) -> Place:
    west, south, east, north = box
    x, y = (lon - west) / (east - west), (lat - south) / (north - south)
    here = (x >= 0) & (x < 1) & (y >= 0) & (y < 1)
    return Place(name, who[here], x[here], y[here], np.ones(int(here.sum()), dtype=np.int64))


def cells(place: Place, level: int) -> list[Place]:
    """A place cut in four so often: the parts that have enough rows, stretched to the unit square."""
    side = 2**level
    column, row = (np.floor(side * at).astype(np.int64) for at in (place.x, place.y))
    found = []
    for which in np.unique(row * side + column).tolist():
        here = row * side + column == which
        if here.sum() >= LEAST:
            x, y = side * place.x[here] - which % side, side * place.y[here] - which // side
            name = f"{place.name} {which}"
            found.append(Place(name, place.user[here], x, y, place.visits[here]))
    return found


def quarters(place: Place, deep: int) -> list[Place]:
    """A place, its heaviest quarter, the heaviest of that, and so on: so many in all, if they have rows."""
    found = [place]
    while len(found) < deep:
        best = max(cells(found[-1], 1), key=lambda one: one.user.size, default=None)
        if best is None:
            break
        found.append(replace(best, name=f"{place.name} /{2 ** len(found)}"))
    return found
