"""Places that say whether maps know how far off they are: some to tune on, others to test on.

Ground is split, not files: all check-ins, homes and tracks are put on one map of the world, which is
cut in four again and again until no box has more than `MOST` of their rows. Boxes of about as many
rows are paired and chance sends one of each pair to either side; so no ground, no city and no row
is on both, whichever file it is in. Histograms are cut into sixteen and pictures taken one by one.
Of a box the whole, its heaviest sixteenth, and the heaviest sixteenth of that are places, each file
for itself. Made-up places are tuned on only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from experiments.heatmaps.made_up_places import made_up_places
from experiments.heatmaps.protocol import chance, generator
from experiments.heatmaps.zoom import scene

from sfumato.heatmap.benchmark import Place, digest, sample_sums, synthetic_places
from sfumato.records import CellSums
from sfumato.spaces import Grid

T = TypeVar("T")

PEOPLE = 24_000
MOST = 50_000  # rows of a box of the world, of all files together
LEAST = 2_000  # rows of the smallest place
MANY = 10_000  # rows that can stand for 20,000 people
DEEPEST = 16
FILES = {
    "gowalla NYC": "gowalla_nyc_checkins",
    "gowalla": "gowalla_world_u18737_sample30_visits",
    "gowalla heavy": "gowalla_world_u5628_visits",
    "gowalla times": "gowalla_world_u1000_checkins",
    "homes": "gowalla_user_homes",
    "brightkite": "brightkite_u600_checkins",
    "foursquare NYC": "foursquare_nyc_u1083_checkins",
    "geolife": "geolife_10min_points",
}
SAME = ("gowalla", "gowalla heavy", "gowalla times")
# Not that of Gowalla, whose rows are those of the files above.
HISTOGRAMS = ("TWITTER", "BEIJING-CABS-S")
SCENES = range(1, 30)
MADE_UP = (15, 24)  # cities of the package, and of other sorts


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A place of a family; where it has too few people, each row stands for one, or for two."""

    family: str
    place: Place

    def most(self) -> int:
        """How many people can be sampled of it."""
        return max(self.place.users, 2 * self.place.user.size)

    def sums(self, users: int, grid: Grid, rng: np.random.Generator) -> CellSums:
        """The sums of so many people."""
        place = self.place
        if place.users < users:
            rows = np.arange(place.user.size)
            if rows.size < users:
                rows = rng.choice(rows, users)
            place = Place(
                place.name,
                np.arange(rows.size),
                place.x[rows],
                place.y[rows],
                np.ones(rows.size, dtype=np.int64),
            )
        return sample_sums(place, users, grid, rng=rng)


def tuning(data: Path, *, people: int = PEOPLE) -> list[Sampled]:
    """The places to tune on; made-up ones alone where the folder is not there."""
    cities, others = MADE_UP
    found = [
        Sampled(f"made-up {one.name.split()[0]}", one)
        for one in [
            *synthetic_places(cities, people=people, chance=chance),
            *made_up_places(others, people),
        ]
    ]
    return found + (list(_real(data, 0)) if data.is_dir() else [])


def held_out(data: Path, *, people: int = PEOPLE) -> list[Sampled]:
    """The places to test on, all real; where the folder is not there, cities that nothing was tuned on."""
    if data.is_dir():
        return list(_real(data, 1))
    cities = synthetic_places(2 * MADE_UP[0], people=people, chance=chance)[MADE_UP[0] :]
    return [Sampled(f"made-up {one.name.split()[0]}", one) for one in cities]


def _real(data: Path, side: int) -> Iterator[Sampled]:
    yield from on_side({family: _world(data, family) for family in FILES}, side)
    for name in HISTOGRAMS:
        parts = sorted(_sixteenths(data, name), key=lambda one: (-one.user.size, one.name))
        for part in _half({part.name: part for part in parts}, side):
            yield Sampled(f"histogram {name}", part)
    gaze = data / "gaze_scene_fixations.parquet"
    for image in _half({f"gaze {image}": image for image in SCENES}, side):
        yield Sampled("gaze", scene(gaze, image))


def on_side(files: Mapping[str, Place], side: int) -> Iterator[Sampled]:
    """The places of one side, 0 or 1, of files whose world is the unit square."""
    boxes = _boxes(list(files.values()))
    sizes = {box: sum(int(_inside(one, box).sum()) for one in files.values()) for box in boxes}
    boxes.sort(key=lambda box: (-sizes[box], box))
    for box in _half({str(box): box for box in boxes}, side):
        here = {family: _cut(world, box) for family, world in files.items()}
        # Three files have much the same check-ins of Gowalla: of them one stands for a box.
        same = {family: one for family, one in here.items() if family in SAME}
        kept = _one_of(same, str(box)) if same else ""
        for family, one in here.items():
            if family not in SAME or family == kept:
                yield from _places(family, one, 2)


def _one_of(same: Mapping[str, Place], name: str) -> str:
    """The file that has most rows of a box if these are many, else one that has enough, by a hash."""
    largest = max(same, key=lambda family: same[family].user.size)
    if same[largest].user.size >= MANY:
        return largest
    enough = [family for family in same if same[family].user.size >= LEAST]
    return min(enough, key=lambda family: digest("file", name, family), default=largest)


def _half(named: Mapping[str, T], side: int) -> Iterator[T]:
    """One of every two that follow each other, as a hash of their names says; an odd one is to tune on."""
    names = list(named)
    for first in range(0, len(names) - 1, 2):
        pair = names[first : first + 2]
        yield named[pair[(digest("side", *pair)[0] + side) % 2]]
    if len(names) % 2 and side == 0:
        yield named[names[-1]]


def _world(data: Path, family: str) -> Place:
    """All rows of a file, the world stretched to the unit square."""
    import pyarrow.parquet

    file = data / f"{FILES[family]}.parquet"
    table = pyarrow.parquet.read_table(file, columns=["user_id", "lon", "lat"])
    lon, lat = table["lon"].to_numpy(), table["lat"].to_numpy()
    known = (np.abs(lon) < 180) & (np.abs(lat) < 90) & ~((lon == 0) & (lat == 0))
    who = np.unique(table["user_id"].to_numpy()[known], return_inverse=True)[1]
    return Place(
        family,
        who.astype(np.int64),
        (lon[known] + 180) / 360,
        (lat[known] + 90) / 180,
        np.ones(who.size, dtype=np.int64),
    )


Box = tuple[int, int, int]  # a level, a column and a row of it


def _boxes(files: Sequence[Place]) -> list[Box]:
    """The boxes that the world is cut into."""
    points = np.concatenate([np.stack([one.x, one.y]) for one in files], axis=1)
    found: list[Box] = []
    waiting: list[tuple[Box, npt.NDArray[np.int64]]] = [((0, 0, 0), np.arange(points.shape[1]))]
    while waiting:
        (level, column, row), here = waiting.pop()
        if here.size < LEAST:
            continue
        if here.size <= MOST or level == DEEPEST:
            found.append((level, column, row))
            continue
        finer = np.floor(points[:, here] * 2 ** (level + 1)).astype(np.int64)
        for east in (0, 1):
            for north in (0, 1):
                there = (finer[0] == 2 * column + east) & (finer[1] == 2 * row + north)
                waiting.append(((level + 1, 2 * column + east, 2 * row + north), here[there]))
    return found


def _inside(place: Place, box: Box) -> npt.NDArray[np.bool_]:
    level, column, row = box
    return np.asarray(
        (np.floor(place.x * 2**level) == column) & (np.floor(place.y * 2**level) == row)
    )


def _cut(place: Place, box: Box) -> Place:
    """The rows in a box, stretched to the unit square."""
    level, column, row = box
    here = _inside(place, box)
    return Place(
        f"{place.name} {level}-{column}-{row}",
        place.user[here],
        place.x[here] * 2**level - column,
        place.y[here] * 2**level - row,
        place.visits[here],
    )


def _places(family: str, place: Place, deeper: int) -> Iterator[Sampled]:
    """A place with enough rows, its heaviest sixteenth, the heaviest of that, and so on, if they have them."""
    for step in range(deeper + 1):
        if place.user.size < LEAST:
            return
        yield Sampled(family, place)
        cell = (np.floor(4 * place.y) * 4 + np.floor(4 * place.x)).astype(np.int64)
        best = int(np.bincount(cell, minlength=16).argmax())
        inner = _cut(place, (2, best % 4, best // 4))
        place = replace(inner, name=f"{place.name.split(' /')[0]} /{4 ** (step + 1)}")


def _sixteenths(data: Path, name: str) -> list[Place]:
    """A histogram of DPBench cut into sixteen, with its rows, at most 4 PEOPLE, spread evenly in its cells."""
    counts = np.load(data / "dpbench" / "dpbench_2d_256x256.npz")[name].astype(np.float64)
    side, found = len(counts) // 4, []
    for which in range(16):
        row, column = (which // 4) * side, (which % 4) * side
        part = counts[row : row + side, column : column + side]
        rng = generator("histogram", name, which)
        rows = int(min(part.sum(), 4 * PEOPLE))
        if rows < LEAST:
            continue
        cell = rng.choice(part.size, rows, p=(part / part.sum()).ravel())
        x, y = ((at + rng.random(rows)) / side for at in (cell % side, cell // side))
        found.append(Place(f"{name} {which}", np.arange(rows), x, y, np.ones(rows, dtype=np.int64)))
    return found
