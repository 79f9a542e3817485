"""Whether the totals of zones lie in their intervals, zone by zone: the same people, fresh noise each time.

python -m experiments.heatmaps.zones [--quick] [--tuned] [--place NAME]... [--method NAME]...
    [--users N]... [--releases N] [--out DIR] [--data DIR]

Zones are those of districts.py, around the people of six places that nothing was tuned on: Gowalla
and Foursquare in New York, GeoLife in Beijing (a track is a user), Brightkite in Denver, and two that
were looked at for the last table only, Gowalla in Chicago and in Gothenburg. Asked for
more people than a place has, every row is a user, drawn again and again. `--tuned` shows the places
that the prior of cut cells was chosen on instead. Without their folder there are made-up cities.
Asked is that no zone is refuted: that none holds so seldom that a chance of 90 % would show that
once in a hundred zones. Writes zones.csv, place by place, and zones.md.
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
EPSILONS = ("0.1", "1", "10")
# How often each map is released. Where mass stands is the same in every release: few of them show it.
RELEASES = {200: 4, 2_000: 4, 20_000: 4, 400_000: 4}
METHODS = ("zoom", "pyramid")
# What a chance of 90 % shows less often than once in a hundred zones.
REFUTED = 0.01

HELD_OUT = {
    "gowalla new york": ("gowalla_nyc_checkins", (-74.259, 40.484, -73.701, 40.918)),
    "foursquare new york": ("foursquare_nyc_u1083_checkins", (-74.3, 40.5, -73.65, 41.0)),
    "geolife beijing": ("geolife_10min_points", (116.15, 39.75, 116.6, 40.15)),
    "brightkite denver": ("brightkite_u600_checkins", (-105.3, 39.5, -104.7, 40.1)),
    "gowalla chicago": ("gowalla_world_u18737_sample30_visits", (-88.0, 41.6, -87.4, 42.1)),
    "gowalla gothenburg": ("gowalla_world_u18737_sample30_visits", (11.7, 57.55, 12.2, 57.85)),
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
    epsilon: str
    users: int
    kind: str
    zone: int
    truth: float
    releases: int
    held: int
    surely_held: int
    width: float
    full_width: float


def refuted(held: int, releases: int) -> bool:
    """Whether so few held that 90 % is not to be believed of a zone."""
    return bool(binom.cdf(held, releases, COVERAGE) < REFUTED)


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
    method: Method[Any], epsilon: str, sums: CellSums, words: Sequence[Any], count: int
) -> Iterator[HeatmapRelease]:
    """Simulated releases of the same people."""
    for number in range(count):
        yield release_sums(
            guard_sums(sums, source=REHEARSAL), UNIT,
            ledger=Ledger.rehearsal(price(method, epsilon, UNIT)), epsilon=epsilon, method=method,
            noise=known_noise(method.name, "zones", epsilon, *words, number),
        )[0]  # fmt: skip


def tried(
    source: str,
    place: Place,
    users: int,
    wanted: Sequence[tuple[str, str]],
    count: int,
    **sizes: int,
) -> Iterator[Tried]:
    """All zones of a place over so many releases of so many of its people, by each method and epsilon."""
    rng = generator("zones", place.name, users)
    some = people(place, users, rng)
    sums = sample_sums(some, users, UNIT.grid, rng=rng)
    rng = generator("districts", place.name)  # the same zones for all numbers of users
    drawn = zones(np.stack([place.x, place.y], axis=1), rng, **sizes)
    shapes = [(kind, one) for kind, several in drawn.items() for one in several]
    truth = masses_in([one for _, one in shapes], some)
    named = {str(number): coordinates(one) for number, (_, one) in enumerate(shapes)}
    for name, epsilon in wanted:
        method = standard_methods(users)[name]
        found = np.array(
            [
                [
                    (one.low, one.high, one.least, one.most)
                    for one in release.totals(named, coverage=COVERAGE)
                ]
                for release in releases(method, epsilon, sums, (place.name, users), count)
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
        for number, (kind, _) in enumerate(shapes):
            yield Tried(
                source, place.name, name, epsilon, users, kind, number, float(truth[number]), count,
                int(held[number]), int(sure[number]), float(wide[number]), float(full[number]),
            )  # fmt: skip


def table(rows: Sequence[Tried]) -> str:
    """A line for each method, epsilon and number of users as Markdown.

    Widths are medians in parts of the truth, or of one user where there is less, of districts of
    all kinds, nested ones too, and of thin and tiny zones.
    """
    lines = [
        "| method | epsilon | users | zones | releases | held | weakest | refuted | width: districts | "
        "small | bounds held | weakest | refuted | width: districts | small |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys((row.method, row.epsilon, row.users) for row in rows):
        some = [row for row in rows if (row.method, row.epsilon, row.users) == key]
        small = [row.kind in ("thin", "tiny") for row in some]
        cells = [key[0], key[1], f"{key[2]:,}", str(len(some)), str(some[0].releases)]
        for held, wide in (("held", "width"), ("surely_held", "full_width")):
            rates = [getattr(row, held) / row.releases for row in some]
            parts = np.array([getattr(row, wide) / max(row.truth, 1.0) for row in some])
            cells += [
                f"{100 * np.mean(rates):.1f} %",
                f"{100 * min(rates):.0f} %",
                str(sum(refuted(getattr(row, held), row.releases) for row in some)),
                *(f"{np.median(parts[np.array(small) == which]):.2g}" for which in (False, True)),
            ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def missed(rows: Sequence[Tried]) -> list[str]:
    """The zones that are refuted, in words."""
    return [
        f"{row.place}, {row.method}, epsilon {row.epsilon}, {row.users:,} users, {row.kind} {row.zone}: "
        f"held in {row.held} of {row.releases}, by its bounds in {row.surely_held}; {row.truth:,.1f} users"
        for row in rows
        if refuted(row.held, row.releases) or refuted(row.surely_held, row.releases)
    ]


def main(argv: list[str] | None = None) -> None:
    """Run, write zones.csv and zones.md, and say which zones are refuted."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--place", action="append")
    parser.add_argument("--releases", type=int)
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument("--users", choices=RELEASES, type=int, action="append")
    own, rest = parser.parse_known_args(argv)
    chosen = options("Calibration of zones (--tuned: places the prior was chosen on)", rest)
    rows: list[Tried] = []
    boxes = TUNED if own.tuned else HELD_OUT
    source, where = _places(chosen, {key: boxes[key] for key in own.place or boxes})
    pairs = [(name, epsilon) for name in own.method or METHODS for epsilon in EPSILONS]
    for place in where:
        for users, count in RELEASES.items():
            if users not in (own.users or RELEASES):
                continue
            if not chosen.quick:
                rows += tried(source, place, users, pairs, own.releases or count)
                print(f"{place.name}, {users:,} users", file=sys.stderr)
            elif users <= 2_000:
                rows += tried(source, place, users, [("zoom", "1")], 4, districts=4, others=4)
            _write(chosen.out / "zones.csv", rows)  # what a stopped run has
    rows.sort(
        key=lambda row: (
            METHODS.index(row.method),
            float(row.epsilon),
            row.users,
            KINDS.index(row.kind),
        )
    )
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
