"""The numbers behind `sfumato heatmap plan`: zoom simulated on places that it is not judged on, and checked.

python -m experiments.heatmaps.forecast [--quick] [--rows CSV] [--check] [--out DIR] [--data DIR]
    [--table FILE] [--few]

The first run simulates the tuning data of expected.toml, writes forecast.csv, and fits
forecast.json, which `--table src/sfumato/heatmap/analysis/forecast.json` puts into the package;
`--rows` fits rows that are there already. `--check` holds the package's forecast against the places
that zoom is judged on; `--few` simulates 2 to 20 users, whose lines are put beside the others of the
table; `--levels` says how much the fineness of the grid matters, on tuning places.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from experiments.heatmaps.claims import write_rows
from experiments.heatmaps.forecast_fit import KINDS, fit
from experiments.heatmaps.protocol import (
    DATA,
    EAST,
    FILES,
    NORTH,
    SOUTH,
    WEST,
    chance,
    generator,
)
from experiments.heatmaps.zoom import scene, settings, sources

from sfumato.heatmap.analysis import FORMAT, METRICS, TABLE, USUAL_USERS, Metric, forecast
from sfumato.heatmap.benchmark import (
    FAMILIES,
    BuiltinMethod,
    Place,
    Score,
    score_sample,
    synthetic_places,
)
from sfumato.heatmap.methods import ZoomMethod

METHOD = BuiltinMethod("zoom", ZoomMethod())
CITIES = 9
PEOPLE = 20_000
# Users, and for each epsilon the samples of every place: more where noise moves the scores more.
DESIGN: dict[int, dict[float, int]] = {
    20: {0.2: 2, 1: 2, 5: 2, 20: 2},
    40: {0.1: 4, 0.5: 4, 1: 4, 2: 2, 5: 2, 10: 2},
    200: {0.05: 4, 0.1: 4, 0.2: 4, 0.5: 2, 1: 3, 2: 2, 5: 1, 10: 1, 20: 1},
    600: {0.05: 2, 0.2: 2, 1: 1, 5: 1},
    2000: {0.05: 2, 0.2: 1, 2: 1, 10: 1},
    20_000: {0.05: 1, 0.5: 1, 5: 1, 20: 1},
}
# Many users take seconds a map: fewer places do, since places differ less there.
FEWER = {
    40: ("scene",),
    2000: ("out", "town 0", "street", "hist"),
    20_000: ("town 0", "street 0", "gaze 0", "hist"),
}

# So few users are no crowd: they have lines of their own, which must not bend those of many.
FEW_DESIGN: dict[int, dict[float, int]] = {
    2: {0.2: 1, 1: 2, 5: 2, 20: 2},
    5: {0.2: 1, 1: 2, 5: 2, 20: 2},
    10: {0.1: 1, 0.5: 2, 1: 2, 5: 2, 20: 1},
    20: {0.05: 1},
}
FEW_PEOPLE = 2000

CHECKED = (0.5, 1.0, 5.0)
SAMPLES = 8


def tuning_places(data: Path, *, cities: int = CITIES, people: int = PEOPLE) -> list[Place]:
    """What expected.toml names as tuning data; made-up cities alone where its folder is not there."""
    found = synthetic_places(cities, people=people, chance=chance)
    if not data.is_dir():
        return found
    images = settings()["gaze"]["images"]
    odd = [image for image in range(1, max(images) + 2) if image not in images]
    file = data / settings()["gaze"]["file"]
    # Made-up pictures are called gaze too.
    scenes = [replace(scene(file, image), name=f"scene {image}") for image in odd]
    histograms = [histogram(data, name, people) for name in settings()["tuning"]["histograms"]]
    return [*outer_cells(data, settings()["users"]), *scenes, *found, *histograms]


def outer_cells(data: Path, least: int) -> list[Place]:
    """Cells of 1/4 by 1/6 degree outside the paper's box with so many people: none of them is judged."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(data / FILES["gowalla"])
    lon, lat = table["lon"].to_numpy(), table["lat"].to_numpy()
    user, visits = (table[name].to_numpy().astype(np.int64) for name in ("user_id", "visits"))
    outside = ~((lon > WEST) & (lon < EAST) & (lat > SOUTH) & (lat < NORTH))
    x, y, user, visits = lon[outside] * 4, lat[outside] * 6, user[outside], visits[outside]
    column, row = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    cells, which = np.unique(np.column_stack([column, row]), axis=0, return_inverse=True)
    which = which.ravel()
    found = []
    for number in np.flatnonzero(np.bincount(which) >= least).tolist():
        here = which == number
        name = f"out {cells[number, 0]} {cells[number, 1]}"
        place = Place(name, user[here], x[here] - column[here], y[here] - row[here], visits[here])
        if place.users >= least:
            found.append(place)
    return found


def histogram(data: Path, name: str, people: int) -> Place:
    """So many people, one point each, drawn from a histogram of DPBench."""
    counts = np.load(data / "dpbench" / "dpbench_2d_256x256.npz")[name].astype(np.float64)
    side = counts.shape[0]
    cell = generator("histogram", name).choice(
        counts.size, people, p=(counts / counts.sum()).ravel()
    )
    x, y = (cell % side + 0.5) / side, (cell // side + 0.5) / side
    return Place(f"hist {name}", np.arange(people), x, y, np.ones(people, dtype=np.int64))


def simulated(places: Sequence[Place], design: dict[int, dict[float, int]]) -> Iterator[Score]:
    """Zoom on every place that has enough people; epsilon outermost, so that noise is tabulated once."""
    for epsilon in sorted({epsilon for samples in design.values() for epsilon in samples}):
        begin = time.monotonic()
        for users, samples in design.items():
            for place in places:
                if place.users < users or not place.name.startswith(FEWER.get(users, "")):
                    continue
                for sample in range(samples.get(epsilon, 0)):
                    yield from score_sample(
                        place, [METHOD], source="tuning", users=users, epsilon=epsilon, sample=sample,
                        chance=chance,
                    )  # fmt: skip
        print(f"epsilon {epsilon:g}: {time.monotonic() - begin:.0f} s", file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Checked:
    """One judged place: its mean over noise and samples, and what had been forecast."""

    source: str
    place: str
    users: int
    epsilon: float
    metric: Metric
    low: float
    middle: float
    high: float
    mean: float
    error: float

    @property
    def inside(self) -> bool:
        """Whether the mean is in the interval."""
        return self.low <= self.mean <= self.high


def checked(scores: Sequence[Score]) -> list[Checked]:
    """The forecast against the means of places; `error` is the standard error of a mean."""
    found = []
    for key in dict.fromkeys((s.source, s.place, s.users, s.epsilon) for s in scores):
        mine = [s for s in scores if (s.source, s.place, s.users, s.epsilon) == key]
        told = forecast(key[2], key[3], kind="gaze" if key[0] == "gaze" else "places")
        for metric in METRICS:
            runs = np.array([getattr(s, metric) for s in mine])
            error = float(runs.std(ddof=1)) / math.sqrt(runs.size) if runs.size > 1 else math.nan
            ends = told.of(metric)
            found.append(
                Checked(*key, metric, ends.low, ends.middle, ends.high, float(runs.mean()), error)
            )
    return found


def judged(data: Path, *, quick: bool) -> list[Score]:
    """Zoom on the places it is judged on; made-up cities in their stead where there is no data."""
    chosen = sources(data, quick=quick)
    samples, epsilons = (2, (1.0,)) if quick else (SAMPLES, CHECKED)
    return [
        score
        for epsilon in epsilons
        for source in chosen
        for place in source.places
        for sample in range(samples)
        for score in score_sample(
            place, [METHOD], source=source.name, users=source.users, epsilon=epsilon, sample=sample,
            chance=chance,
        )
    ]  # fmt: skip


def check_table(found: Sequence[Checked]) -> str:
    """How many places lie inside, how wide the interval is, and how far off its middle, as Markdown."""
    lines = [
        "| source | epsilon | metric | inside | forecast | mean of the places | forecast − true, average |",
        "|---|---|---|---|---|---|---|",
    ]
    for source, epsilon, metric in dict.fromkeys(
        (one.source, one.epsilon, one.metric) for one in found
    ):
        some = [
            one
            for one in found
            if (one.source, one.epsilon, one.metric) == (source, epsilon, metric)
        ]
        told, mean = some[0], float(np.mean([one.mean for one in some]))
        interval = f"{told.middle:.3g} ({told.low:.3g} to {told.high:.3g})"
        lines.append(
            f"| {source} | {epsilon:g} | {metric} | {sum(one.inside for one in some)} of {len(some)} | "
            f"{interval} | {mean:.3g} | {told.middle - mean:+.3f} |"
        )
    return "\n".join(lines) + "\n"


def families_table(scores: Sequence[Score]) -> str:
    """How Similarity differs from family to family, from place to place and from map to map, as Markdown."""
    lines = [
        "| users | epsilon | family | Similarity | from place to place | from map to map |",
        "|---|---|---|---|---|---|",
    ]
    keys = dict.fromkeys((s.users, s.epsilon, s.place.split()[0]) for s in scores)
    for users, epsilon, family in sorted(keys):
        runs: dict[str, list[float]] = {}
        for s in scores:
            if (s.users, s.epsilon, s.place.split()[0]) == (users, epsilon, family):
                runs.setdefault(s.place, []).append(s.similarity)
        means = [float(np.mean(values)) for values in runs.values()]
        within = [float(np.var(values, ddof=1)) for values in runs.values() if len(values) > 1]
        between = f"{np.std(means, ddof=1):.3f}" if len(means) > 1 else ""
        single = f"{math.sqrt(float(np.mean(within))):.3f}" if within else ""
        lines.append(
            f"| {users} | {epsilon:g} | {family} | {np.mean(means):.3f} | {between} | {single} |"
        )
    return "\n".join(lines) + "\n"


def levels_table(
    data: Path, *, levels: Sequence[int], places: int, epsilons: Sequence[float]
) -> str:
    """Means of the metrics at several levels, on the same people of tuning places, as Markdown."""
    lines = ["| epsilon | levels | Similarity | Pearson | KL | EMD |", "|---|---|---|---|---|---|"]
    chosen = [place for place in tuning_places(data, people=1000) if place.users >= USUAL_USERS][
        :places
    ]
    for epsilon in epsilons:
        for level in levels:
            scores = [
                score
                for place in chosen
                for sample in range(2)
                for score in score_sample(
                    place, [METHOD], source="tuning", users=USUAL_USERS, epsilon=epsilon, sample=sample,
                    chance=chance, levels=level,
                )
            ]  # fmt: skip
            means = [
                float(np.mean([getattr(score, metric) for score in scores])) for metric in METRICS
            ]
            lines.append(
                f"| {epsilon:g} | {level} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |"
            )
    return "\n".join(lines) + "\n"


def read_rows(path: Path) -> list[Score]:
    """Scores as `write_rows` saved them."""
    kinds: dict[str, type] = {"int": int, "float": float, "str": str}
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Score(
                **{field.name: kinds[str(field.type)](row[field.name]) for field in fields(Score)}
            )
            for row in csv.DictReader(file)
        ]


def main(argv: Sequence[str] | None = None) -> None:
    """Simulate and fit, or check; both write what they found, and print it."""
    parser = argparse.ArgumentParser(description="Forecasts of maps by zoom", prog="forecast")
    parser.add_argument(
        "--quick", action="store_true", help="a small part, in seconds; no table to keep"
    )
    parser.add_argument(
        "--check", action="store_true", help="hold the forecast against judged places"
    )
    parser.add_argument(
        "--few", action="store_true", help="2 to 20 users; the lines of many stay as they are"
    )
    parser.add_argument("--levels", action="store_true", help="compare grids of levels 6, 8 and 10")
    parser.add_argument("--rows", type=Path, help="rows that were simulated or checked before")
    parser.add_argument(
        "--out", type=Path, default=Path("demo/heatmaps"), help="folder for what is made"
    )
    parser.add_argument(
        "--data", type=Path, default=DATA, help="folder of the data; absent: made-up cities"
    )
    parser.add_argument(
        "--table",
        type=Path,
        help="the table to write too: src/sfumato/heatmap/analysis/forecast.json",
    )
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.check:
        scores = read_rows(given.rows) if given.rows else judged(given.data, quick=given.quick)
        write_rows(given.out / "forecast_check.csv", scores)
        page = check_table(checked(scores))
        (given.out / "forecast_check.md").write_text(page, encoding="utf-8")
        print(page)
        return
    if given.levels:
        few = (5, 6), 1, (1.0,)
        levels, places, epsilons = few if given.quick else ((6, 8, 10), 12, (0.5, 1.0, 5.0))
        print(levels_table(given.data, levels=levels, places=places, epsilons=epsilons))
        return
    if given.rows:
        scores = read_rows(given.rows)
    elif given.quick:
        cities = synthetic_places(len(FAMILIES), people=40, chance=chance)
        scores = list(simulated(cities, {5 if given.few else 20: {1: 2, 5: 2}}))
    elif given.few:
        scores = list(simulated(tuning_places(given.data, people=FEW_PEOPLE), FEW_DESIGN))
    else:
        scores = list(simulated(tuning_places(given.data), DESIGN))
    write_rows(given.out / ("forecast_few.csv" if given.few else "forecast.csv"), scores)
    made = {"format": FORMAT, "made_by": "python -m experiments.heatmaps.forecast"}
    fitted = {kind: fit(scores, kind) for kind in KINDS}
    kept = json.loads(files("sfumato.heatmap.analysis").joinpath(TABLE).read_text(encoding="utf-8"))
    parts = {**kept, "few": fitted} if given.few else {**kept, **fitted}
    text = json.dumps({**parts, **made}) + "\n"
    for path in (given.out / "forecast.json", given.table):
        if path is not None:
            path.write_text(
                text.replace('], "', '],\n"').replace('}, "', '},\n"'), encoding="utf-8"
            )
    print(families_table(scores))
    print(f"fitted {len(scores)} maps of {len({score.place for score in scores})} places")


if __name__ == "__main__":
    main()
