"""The table that zoom is judged on: data and samples fixed in expected.toml, rivals beside it, losses shown.

python -m experiments.heatmaps.zoom [--quick] [--only cells,gaze] [--workers 2] [--out DIR] [--page
FILE]

The page in the docs, docs/reference/leaderboard.md, is what `--page docs/reference/leaderboard.md`
writes. It ends with the made-up cities of `sfumato leaderboard`, on which nothing is decided.
`--again` makes the page of the scores that an earlier run left in --out, without running anything.
"""

from __future__ import annotations

import argparse
import csv
import math
import multiprocessing
import sys
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from experiments.heatmaps.claims import write_rows
from experiments.heatmaps.protocol import CELLS, DATA, USERS, chance, real_places

from sfumato.heatmap.analysis import Metric
from sfumato.heatmap.benchmark import (
    HEADS,
    SIGNS,
    BuiltinMethod,
    PairedComparison,
    Place,
    Score,
    epsilons_of,
    first_table,
    markdown,
    mean_table,
    methods_of,
    paired_comparison,
    paired_comparisons,
    score_sample,
    sign_table,
    standard_methods,
    synthetic_places,
    tally,
    tally_table,
    times,
)

METHODS = ("zoom", "pyramid", "privtree", "adaptive", "hierarchy", "coarse")
BASE = "pyramid"
TITLES = {
    "cells": "Check-ins: 30 cells of Gowalla and Brightkite",
    "gaze": "Gaze: 14 pictures",
    "new_york": "New York: Foursquare and Gowalla",
    "city": "Made-up cities, those of `sfumato leaderboard`",
}
HEAD = """# Leaderboard

Every method on the same samples of the same places, so that differences are paired. The data, the cells and
the samples were fixed in `experiments/heatmaps/expected.toml` before `{leader}` was tuned, on other data.
Metrics are of maps of 256 x 256 cells blurred by 0.02 sides: KL is KL(true || estimate) with 2.2e-16, EMD is
l1 in sides of the map, on 64 x 64 cells; ± is half of a 95 % t interval. The coarse method is told the number
of people; no other is. Samples and noise come from hashes: the same run gives the same numbers, times
excepted. Compare on data of your own, or a method of your own with these, by
[`sfumato leaderboard`](../how-to/compare.md). This page is made by

```
python -m experiments.heatmaps.zoom --page docs/reference/leaderboard.md
```

{signs}
"""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Places whose scores are taken together: so many samples of so many people of each."""

    name: str
    places: tuple[Place, ...]
    users: int
    samples: int


@dataclass(frozen=True, slots=True)
class Requirement:
    """One number of the issue: what is measured against a rival, and between what it must lie.

    kind "better" and "worse" count cells of epsilon and metric, "ratio" is that of the means,
    "gain" their difference, "time" a ratio. `holds` says for each source what the last full run
    found.
    """

    name: str
    text: str
    kind: Literal["better", "worse", "ratio", "gain", "time"]
    rival: str
    holds: dict[str, bool]
    least: float = -math.inf
    most: float = math.inf
    metric: Metric = "similarity"
    epsilon: float = 1.0
    note: dict[str, str] = field(default_factory=dict)

    def measure(self, scores: Sequence[Score], leader: str) -> float:
        """The number that decides."""
        match self.kind:
            case "better":
                return tally(paired_comparisons(scores, leader, self.rival)).better
            case "worse":
                return tally(paired_comparisons(scores, leader, self.rival)).worse
            case "time":
                return times(scores, self.rival)[leader]
            case "ratio" | "gain":
                found = paired_comparison(
                    scores, leader, self.rival, epsilon=self.epsilon, metric=self.metric
                )
                return found.ratio if self.kind == "ratio" else found.gain.mean

    def met(self, number: float) -> bool:
        """Whether the number is what the issue asks for."""
        return self.least <= number <= self.most


def settings() -> dict[str, Any]:
    """What is fixed."""
    text = (Path(__file__).parent / "expected.toml").read_text("utf-8")
    found: dict[str, Any] = tomllib.loads(text)["zoom"]
    return found


def requirements() -> list[Requirement]:
    """What is asked for."""
    return [Requirement(**table) for table in settings()["requirement"]]


def sources(data: Path, *, quick: bool, only: Sequence[str] = ()) -> list[Source]:
    """The places of expected.toml; without their folder made-up cities, on which nothing is decided."""
    fixed = settings()
    if not data.is_dir():
        places = synthetic_places(4 if quick else CELLS, chance=chance)
        return [Source("city", tuple(places), USERS, 1 if quick else 2)]
    found = []
    for name in only or ("cells", "gaze", "new_york", "city"):
        match name:
            case "city":
                places, asked = (
                    synthetic_places(CELLS, chance=chance),
                    {"users": USERS, "trials": 2},
                )
            case "cells":
                places, asked = _cells(data, fixed), fixed
            case "gaze":
                asked = fixed["gaze"]
                places = [scene(data / asked["file"], image) for image in asked["images"]]
            case "new_york":
                asked = fixed["new_york"]
                places = [_box(data / file, asked["bounds"]) for file in asked["files"]]
            case _:
                raise SystemExit(
                    f"sources are cells, gaze, new_york and city, got {name!r}; nothing was run"
                )
        few = (places[:2], 1) if quick else (places, asked["trials"])
        found.append(Source(name, tuple(few[0]), asked["users"], few[1]))
    return found


def _cells(data: Path, fixed: dict[str, Any]) -> list[Place]:
    cells = real_places(data, CELLS, fixed["users"])
    if [place.name for place in cells] != fixed["cells"]:
        raise SystemExit("the cells found are not those fixed in expected.toml; nothing was run")
    return cells


def scene(file: Path, image: int) -> Place:
    """The fixations on one picture, in the square of its height in the middle of its width; y upward."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(file, filters=[("image_id", "=", image)])
    wide, high = 800.0, 600.0
    x = (table["x"].to_numpy() - (wide - high) / 2) / high
    return _inside(
        f"gaze {image}", table["user_id"].to_numpy(), x, 1 - table["y"].to_numpy() / high
    )


def _box(file: Path, bounds: Sequence[float]) -> Place:
    """The check-ins of a file inside a box, stretched to the unit square."""
    import pyarrow.parquet

    west, south, east, north = bounds
    table = pyarrow.parquet.read_table(file)
    x, y = table["lon"].to_numpy(), table["lat"].to_numpy()
    return _inside(
        file.stem,
        table["user_id"].to_numpy(),
        (x - west) / (east - west),
        (y - south) / (north - south),
    )


def _inside(name: str, user: Any, x: Any, y: Any) -> Place:
    keep = (x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)
    return Place(
        name,
        user[keep].astype(np.int64),
        x[keep],
        y[keep],
        np.ones(int(keep.sum()), dtype=np.int64),
    )


def scored(source: Source, epsilon: float, methods: Sequence[str]) -> list[Score]:
    """All samples of a source at one epsilon."""
    begin = time.monotonic()
    standard = standard_methods(source.users)
    contenders = [BuiltinMethod(name, standard[name]) for name in methods]
    scores = [
        score
        for place in source.places
        for sample in range(source.samples)
        for score in score_sample(
            place, contenders, source=source.name, users=source.users, epsilon=epsilon, sample=sample,
            chance=chance,
        )
    ]  # fmt: skip
    print(f"{source.name}, epsilon {epsilon:g}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    return scores


def all_scores(
    chosen: Sequence[Source], epsilons: Sequence[float], methods: Sequence[str], *, workers: int
) -> list[Score]:
    """Every source at every epsilon, in this process or in two."""
    tasks = [(source, epsilon, tuple(methods)) for source, epsilon in product(chosen, epsilons)]
    if workers == 1:
        return [score for task in tasks for score in scored(*task)]
    # A process keeps the tables of noise of an epsilon, so that each epsilon is one task.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        return [score for part in pool.map(scored, *zip(*tasks, strict=True)) for score in part]


def kept_scores(path: Path) -> list[Score]:
    """What `write_rows` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Score(
                row["source"], row["place"], int(row["sample"]), int(row["users"]), int(row["side"]),
                float(row["epsilon"]), row["method"], float(row["similarity"]), float(row["pearson"]),
                float(row["kl"]), float(row["emd"]), float(row["seconds"]),
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


def losses(found: Sequence[PairedComparison]) -> str:
    """Where a rival is significantly better, in words."""
    lost = [
        f"{HEADS[one.metric][:-2]} at epsilon {one.epsilon:g} ({one.gain.mean:+.4f} ± {one.gain.half:.4f})"
        for one in found
        if one.sign == "-"
    ]
    return "significantly better in " + "; ".join(lost) if lost else "significantly better nowhere"


def section(
    scores: Sequence[Score], leader: str, asked: Sequence[Requirement]
) -> tuple[str, list[str]]:
    """The page's part about one source, and what came out otherwise than `holds` says."""
    source = scores[0].source
    runs = len(scores) // len(methods_of(scores)) // len(epsilons_of(scores))
    fights = {
        rival: paired_comparisons(scores, leader, rival)
        for rival in methods_of(scores)
        if rival != leader
    }
    parts = [
        f"## {TITLES[source]}",
        f"{runs} runs of {scores[0].users} people at each epsilon.",
        markdown(first_table(scores, BASE)),
        f"Where `{leader}` loses:",
        "\n".join(f"- to `{rival}`: {losses(found)}" for rival, found in fights.items()),
        markdown(tally_table(scores, leader)),
        markdown(mean_table(scores)),
    ]
    for rival, found in fights.items():
        parts += [f"### {leader} against {rival}: {tally(found)}", markdown(sign_table(found))]
    surprises = []
    if asked:
        rows = [["asked for", "measured", ""]]
        for one in asked:
            number = one.measure(scores, leader)
            met = one.met(number)
            remark = one.note.get(source, "")
            rows.append(
                [
                    one.text,
                    f"{number:.3g}",
                    ("met" if met else "**not met**") + (f": {remark}" if remark else ""),
                ]
            )
            if met != one.holds[source]:
                surprises.append(
                    f"{source}: {one.name} was {'met' if met else 'not met'}: {number:.4g}"
                )
        parts += ["### What was asked for", markdown(rows)]
    return "\n\n".join(parts), surprises


def main(argv: Sequence[str] | None = None) -> None:
    """Run, write zoom.csv, zoom.md and the page; fail where a requirement came out otherwise than written."""
    parser = argparse.ArgumentParser(description="The table that zoom is judged on", prog="zoom")
    parser.add_argument(
        "--quick", action="store_true", help="a small part, in seconds; decides nothing"
    )
    parser.add_argument("--only", default="", help="some of cells, gaze, new_york, with commas")
    parser.add_argument("--workers", type=int, default=1, choices=(1, 2), help="processes")
    parser.add_argument(
        "--methods", default=",".join(METHODS), help="the first is held against the others"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo/heatmaps"), help="folder for what is made"
    )
    parser.add_argument(
        "--data", type=Path, default=DATA, help="folder of the data; absent: made-up cities"
    )
    parser.add_argument("--page", type=Path, help="the page to write too")
    parser.add_argument(
        "--again", action="store_true", help="the page of scores that --out has already"
    )
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    methods = given.methods.split(",")
    if missing := [name for name in methods if name not in standard_methods(USERS)]:
        raise SystemExit(f"there is no method {', '.join(missing)}; nothing was run")
    epsilons = [1.0, 5.0] if given.quick else [float(epsilon) for epsilon in settings()["epsilons"]]
    only = given.only.split(",") if given.only else ()
    chosen = sources(given.data, quick=given.quick, only=only)
    if given.again:
        scores = kept_scores(given.out / "zoom.csv")
    else:
        scores = all_scores(chosen, epsilons, methods, workers=given.workers)
        write_rows(given.out / "zoom.csv", scores)
    parts, surprises = [HEAD.format(leader=methods[0], signs=SIGNS)], []
    for source in chosen:
        decides = not given.quick and source.name != "city" and methods[0] == METHODS[0]
        asked = [one for one in requirements() if one.rival in methods] if decides else []
        text, odd = section([s for s in scores if s.source == source.name], methods[0], asked)
        parts.append(text)
        surprises += odd
    page = "\n".join([parts[0], *(part + "\n" for part in parts[1:])])
    for path in (given.out / "zoom.md", given.page):
        if path is not None:
            path.write_text(page, encoding="utf-8")
    print(page)
    for surprise in surprises:
        print(f"SURPRISE: {surprise}")
    if surprises:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
