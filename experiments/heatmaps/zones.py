"""Whether the totals of zones lie in their intervals, zone by zone: the same people, fresh noise each time.

python -m experiments.heatmaps.zones [--quick] [--tuned] [--out DIR] [--data DIR]

Zones are those of districts.py, around the people of four places that nothing was tuned on: Gowalla
and Foursquare in New York, GeoLife in Beijing (a track is a user), Brightkite in Denver. Asked for
more people than a place has, every row is a user, drawn again and again. `--tuned` shows the places
that the prior of cut cells was chosen on instead. Without their folder there are made-up cities.
Asked is that no zone is refuted: that none holds so seldom that a chance of 90 % would show that
once in a hundred zones. Writes zones.csv and zones.md.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from experiments.heatmaps.districts import KINDS, coordinates, zones
from experiments.heatmaps.protocol import Options, chance, generator, options
from scipy.stats import binom

from sfumato.heatmap import HeatmapRelease, price, release_sums
from sfumato.heatmap.benchmark import (
    Place,
    known_noise,
    sample_sums,
    standard_methods,
    synthetic_places,
)
from sfumato.heatmap.methods import Method
from sfumato.privacy import REHEARSAL, Ledger
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Area, Grid

FloatArray = npt.NDArray[np.float64]

UNIT = Area(Grid(8), (0.0, 0.0, 1.0, 1.0), "plane")
COVERAGE = 0.9
EPSILON = "1"
# How often each map is released; a pyramid's draws take their time, so it has few users here.
RELEASES = {
    "zoom": {200: 20, 2_000: 20, 20_000: 10, 400_000: 6},
    "pyramid": {200: 10, 2_000: 10},
}
# What a chance of 90 % shows less often than once in a hundred zones.
REFUTED = 0.01

HELD_OUT = {
    "gowalla new york": ("gowalla_nyc_checkins", (-74.259, 40.484, -73.701, 40.918)),
    "foursquare new york": ("foursquare_nyc_u1083_checkins", (-74.3, 40.5, -73.65, 41.0)),
    "geolife beijing": ("geolife_10min_points", (116.15, 39.75, 116.6, 40.15)),
    "brightkite denver": ("brightkite_u600_checkins", (-105.3, 39.5, -104.7, 40.1)),
}
TUNED = {
    "gowalla austin": ("gowalla_world_u5628_visits", (-98.0, 30.0, -97.5, 30.5)),
    "gowalla san francisco": ("gowalla_world_u5628_visits", (-122.55, 37.55, -122.2, 37.9)),
    "gowalla stockholm": ("gowalla_world_u18737_sample30_visits", (17.8, 59.2, 18.3, 59.45)),
    "gowalla dallas": ("gowalla_world_u18737_sample30_visits", (-97.1, 32.6, -96.5, 33.1)),
    "homes in the united states": ("gowalla_user_homes", (-125.0, 25.0, -66.0, 49.0)),
}


@dataclass(frozen=True, slots=True)
class Tried:
    """One zone over all releases of one map: its true users, how often limits held, and how wide they were.

    `held` and `width` are of low to high, `surely_held` and `full_width` of least to most; widths
    are medians over the releases, in users.
    """

    source: str
    place: str
    method: str
    users: int
    kind: str
    zone: int
    truth: float
    releases: int
    held: int
    surely_held: int
    width: float
    full_width: float

    @property
    def refuted(self) -> bool:
        """Whether so few held that 90 % is not to be believed of this zone."""
        return bool(binom.cdf(self.held, self.releases, COVERAGE) < REFUTED)


def real_places(folder: Path, boxes: dict[str, Any]) -> Iterator[Place]:
    """Places stretched to the unit square, who was there, where, and how often."""
    import pyarrow.parquet

    for name, (file, (west, south, east, north)) in boxes.items():
        table = pyarrow.parquet.read_table(folder / f"{file}.parquet")
        who = "traj" if "traj" in table.column_names else "user_id"
        user = np.unique(table[who].to_numpy(), return_inverse=True)[1].astype(np.int64)
        x = (table["lon"].to_numpy() - west) / (east - west)
        y = (table["lat"].to_numpy() - south) / (north - south)
        visits = np.ones(user.size, dtype=np.int64)
        if "visits" in table.column_names:
            visits = table["visits"].to_numpy().astype(np.int64)
        here = (x >= 0) & (x < 1) & (y >= 0) & (y < 1)
        yield Place(name, user[here], x[here], y[here], visits[here])


def people(place: Place, users: int, rng: np.random.Generator) -> Place:
    """So many people of a place, or as many of its rows, each of them a user, drawn with replacement."""
    if users <= place.users:
        chosen = np.isin(place.user, rng.choice(np.unique(place.user), users, replace=False))
        return Place(
            place.name, place.user[chosen], place.x[chosen], place.y[chosen], place.visits[chosen]
        )
    rows = rng.choice(place.user.size, users, p=place.visits / place.visits.sum())
    return Place(
        place.name, np.arange(users), place.x[rows], place.y[rows], np.ones(users, dtype=np.int64)
    )


def masses_in(shapes: Sequence[Any], some: Place) -> FloatArray:
    """The true mass in each shape: everybody's 1 is shared over their visits. By points, not by cells."""
    mass = some.visits / np.bincount(some.user, some.visits)[some.user]
    spots, at = np.unique(np.stack([some.x, some.y], axis=1), axis=0, return_inverse=True)
    weights = np.bincount(at.ravel(), mass)
    return np.array([weights[shapely.contains_xy(one, *spots.T)].sum() for one in shapes])


def releases(
    method: Method[Any], sums: CellSums, words: Sequence[Any], count: int
) -> Iterator[HeatmapRelease]:
    """Simulated releases of the same people."""
    for number in range(count):
        yield release_sums(
            guard_sums(sums, source=REHEARSAL), UNIT,
            ledger=Ledger.rehearsal(price(method, EPSILON, UNIT)), epsilon=EPSILON, method=method,
            noise=known_noise(method.name, "zones", *words, number),
        )[0]  # fmt: skip


def tried(
    source: str, place: Place, method: Method[Any], users: int, count: int, **sizes: int
) -> list[Tried]:
    """All zones of a place over so many releases of so many of its people."""
    rng = generator("zones", place.name, users)
    some = people(place, users, rng)
    sums = sample_sums(some, users, UNIT.grid, rng=rng)
    rng = generator("districts", place.name)  # the same zones for all numbers of users
    drawn = zones(np.stack([place.x, place.y], axis=1), rng, **sizes)
    shapes = [(kind, one) for kind, several in drawn.items() for one in several]
    truth = masses_in([one for _, one in shapes], some)
    named = {str(number): coordinates(one) for number, (_, one) in enumerate(shapes)}
    found = np.array(
        [
            [
                (one.low, one.high, one.least, one.most)
                for one in release.totals(named, coverage=COVERAGE)
            ]
            for release in releases(method, sums, (place.name, users), count)
        ],
        dtype=float,
    )  # [release, zone, end]
    # Units of a user that did not divide by their visits are nobody's.
    slack = 1e-6 * users
    held, sure = (
        ((found[..., a] <= truth + slack) & (found[..., b] >= truth - slack)).sum(axis=0)
        for a, b in ((0, 1), (2, 3))
    )
    wide, full = (np.median(found[..., b] - found[..., a], axis=0) for a, b in ((0, 1), (2, 3)))
    return [
        Tried(
            source, place.name, method.name, users, kind, number, float(truth[number]), count,
            int(held[number]), int(sure[number]), float(wide[number]), float(full[number]),
        )
        for number, (kind, _) in enumerate(shapes)
    ]  # fmt: skip


def table(rows: Sequence[Tried]) -> str:
    """A line for each kind and number of users as Markdown; widths in parts of the truth, at least a user."""
    lines = [
        "| method | users | zones | of them | releases | held | weakest | refuted | width | "
        "bounds held | weakest | width |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for method, users, kind in dict.fromkeys((row.method, row.users, row.kind) for row in rows):
        some = [row for row in rows if (row.method, row.users, row.kind) == (method, users, kind)]
        parts = [
            f"{100 * np.mean(rates):.0f} % | {100 * min(rates):.0f} %"
            for rates in (
                [row.held / row.releases for row in some],
                [row.surely_held / row.releases for row in some],
            )
        ]
        widths = [
            f"{np.median([wide / max(row.truth, 1.0) for wide, row in pairs]):.2g}"
            for pairs in (
                [(row.width, row) for row in some],
                [(row.full_width, row) for row in some],
            )
        ]
        refuted = sum(row.refuted for row in some)
        lines.append(
            f"| {method} | {users:,} | {kind} | {len(some)} | {some[0].releases} | {parts[0]} | "
            f"{refuted} | {widths[0]} | {parts[1]} | {widths[1]} |"
        )
    return "\n".join(lines) + "\n"


def missed(rows: Sequence[Tried]) -> list[str]:
    """The zones that are refuted, in words."""
    return [
        f"{row.place}, {row.method}, {row.users:,} users, {row.kind} {row.zone}: held in {row.held} of "
        f"{row.releases}, by its bounds in {row.surely_held}; {row.truth:,.1f} users"
        for row in rows
        if row.refuted
    ]


def main(argv: list[str] | None = None) -> None:
    """Run, write zones.csv and zones.md, and say which zones are refuted."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--tuned", action="store_true")
    own, rest = parser.parse_known_args(argv)
    chosen = options("Calibration of zones (--tuned: places the prior was chosen on)", rest)
    rows: list[Tried] = []
    source, where = _places(chosen, TUNED if own.tuned else HELD_OUT)
    for place in where:
        for name, counts in RELEASES.items():
            for users, count in counts.items():
                if chosen.quick and (users > 2_000 or name != "zoom"):
                    continue
                method = standard_methods(users)[name]
                if chosen.quick:
                    rows += tried(source, place, method, users, 4, districts=4, others=4)
                else:
                    rows += tried(source, place, method, users, count)
                    print(f"{place.name}, {name}, {users:,} users", file=sys.stderr)
    rows.sort(key=lambda row: (list(RELEASES).index(row.method), row.users, KINDS.index(row.kind)))
    _write(chosen.out / "zones.csv", rows)
    wanting = missed(rows)
    page = f"### Zones ({source}{', tuned' if own.tuned else ''})\n\n{table(rows)}\n"
    page += "".join(f"- refuted: {line}\n" for line in wanting) or "All as asked.\n"
    (chosen.out / "zones.md").write_text(page, encoding="utf-8")
    print(page)


def _places(chosen: Options, boxes: dict[str, Any]) -> tuple[str, list[Place]]:
    if chosen.source == "real" and not chosen.quick:
        return "real", list(real_places(chosen.data, boxes))
    return "city", synthetic_places(1 if chosen.quick else 3, people=2_000, chance=chance)


def _write(path: Path, rows: Sequence[Tried]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Tried)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


if __name__ == "__main__":
    main()
