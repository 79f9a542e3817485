"""Local maps against those of others, under the same guarantee: who is better where, and by how much.

python -m experiments.heatmaps.local [--quick] [--places N] [--minutes M] [--out DIR] [--page FILE]

Cells are numbers of users by epsilon; places and goals are fixed in expected.toml. A cell is run in all
its places or not at all; the page says how many were. Nothing is decided unless all were, in all places.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from experiments.heatmaps.local_rivals import RIVALS, SHOWN, WEAKER, Crowd
from experiments.heatmaps.protocol import DATA, chance, generator, real_places
from scipy.special import stdtr

from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.analysis import emd_share, similarity, smooth
from sfumato.heatmap.benchmark import Place, check_ins, digest, known_noise, rehearse_sums
from sfumato.heatmap.local import FINEST_CELL, simulate_local_map
from sfumato.heatmap.methods import method_named
from sfumato.privacy import UNITS
from sfumato.records import CellSums
from sfumato.spaces import Area, Grid

AREA = Area(Grid(SHOWN), (0.0, 0.0, 1.0, 1.0), "plane")
SIGMA = 0.02
OURS, EVEN, CENTRAL = "local", "even map", "central"
MetricName = Literal["emd", "similarity"]
METRICS: tuple[MetricName, ...] = ("emd", "similarity")
Cell = tuple[int, float]
Scores = dict[tuple[str, str], list[tuple[float, float]]]
"""Of one cell: for a method and a way to run it, EMD and Similarity in each place."""

PAGE = """\
# Local maps and their rivals

`{command}` made this page: {cells} of 24 cells of users and epsilon, in {places} places ({names}), one
sample each, {minutes:.1f} minutes of CPU. {decided} Design, places and goals were fixed in
`experiments/heatmaps/expected.toml` before the run, after a quick look at one cell of two of the places.

People are drawn with replacement; the truth is the map of all their places, each person with mass 1, on 64
x 64 cells, and a device reports one place, drawn by mass. EMD is in sides and smaller is better, Similarity
is 1 for a perfect map; both maps are blurred by 2 % of the side. All but `central` and `Laplace, weaker`
promise epsilon for each replaced user, on the device. Each rival is our own code
(`experiments/heatmaps/local_rivals.py`) with its best size *in hindsight*, for each cell and metric; ours
has no such help. Signs: the rival is significantly worse (+) or better (-) than `local`, paired by place, t
test, Holm over the {tests} comparisons with that rival at {level:g}. No sign: open, and with {places}
places much is open.

- **local**: ours, two rounds. **grid**: optimised local hashing on an even grid, norm-sub. **k-ary**: k-ary
  response, norm-sub.
- **hierarchy**: hierarchical intervals, users split over the levels of a quadtree. **AHEAD**: the adaptive
  hierarchy. **quadtree**: a local quadtree, split above two deviations.
- **disk**: the disk area mechanism with expectation-maximisation. **Laplace**: planar Laplace, epsilon at
  the diagonal, so that it is local epsilon.
- **Laplace, weaker**: geo-indistinguishable, epsilon at a tenth of the side. Corner to corner it allows 14
  epsilon: *not the same promise*.
- **even map**: no data at all. **central**: `zoom`, whoever gathers is trusted.

## Earth mover's distance

{emd}

## Similarity

{similarity}

## What was asked for

{asked}

Signs against each rival, both metrics together:

{tally}

## Channel or decoder?

Reports of rivals under our decoder, as own / decoded, means over {ablated} of the places, best size in
hindsight for either. `local` beside them on the same places.

### EMD

{ablation_emd}

### Similarity

{ablation_similarity}
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Ours against a rival in one cell and metric: `gain` is above 0 where ours is better."""

    cell: Cell
    rival: str
    metric: MetricName
    gain: float
    chance: float
    sign: str = ""


def settings() -> dict[str, Any]:
    """What is fixed."""
    text = (Path(__file__).parent / "expected.toml").read_text("utf-8")
    found: dict[str, Any] = tomllib.loads(text)["local"]
    return found


def places(data: Path, count: int | None) -> list[Place]:
    """So many made-up cities and as many real places, where their folder is there."""
    fixed = settings()
    found = []
    for name in fixed["cities"][:count]:
        family, which = name.split()
        table = check_ins(fixed["people"], family=family, rng=chance(digest("city", family, which)))
        user, x, y, _ = (table[column].to_numpy() for column in table.column_names)
        found.append(Place(name, user, x, y, np.ones(user.size, dtype=np.int64)))
    if data.is_dir():
        found += real_places(data, fixed["real"], 200)[:count]
    else:
        print(f"{data} is not there: made-up cities only", file=sys.stderr)
    return found


def drawn(place: Place, users: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """The code of one place of each of so many people, and the shares of all their places."""
    code = Grid(FINEST_CELL).cells_of(place.x, place.y)
    inside = np.flatnonzero(code >= 0)
    order = inside[np.argsort(place.user[inside], kind="stable")]
    _, who = np.unique(place.user[order], return_inverse=True)
    ends = np.cumsum(place.visits[order])
    total = np.bincount(who, place.visits[order])
    chosen = rng.integers(0, total.size, users)
    begins = np.concatenate([[0], np.cumsum(total)[:-1]])
    at = begins[chosen] + np.floor(rng.random(users) * total[chosen])
    codes = code[order][np.searchsorted(ends, at, side="right")]
    times = np.bincount(chosen, minlength=total.size)
    mass = times[who] * place.visits[order] / total[who]
    shown = code[order] >> 2 * (FINEST_CELL - SHOWN)
    return codes, np.bincount(shown, mass, minlength=AREA.grid.size) / users


def cell_scores(cell: Cell, where: Sequence[Place], *, ablated: Sequence[str]) -> Scores:
    """Every method in every place."""
    users, epsilon = cell
    found: Scores = {}
    for place in where:
        words = (place.name, users, epsilon)
        codes, truth = drawn(place, users, generator("local", "people", *words))
        seen = smooth(AREA.grid.image(truth), SIGMA)
        for name, way, shares in maps(codes, epsilon, truth, words=words, ablated=ablated):
            shown = smooth(AREA.grid.image(shares), SIGMA)
            score = emd_share(shown, seen, AREA, level=5), similarity(shown, seen)
            found.setdefault((name, way), []).append(score)
    return found


def maps(
    codes: IntArray,
    epsilon: float,
    truth: FloatArray,
    *,
    words: tuple[object, ...],
    ablated: Sequence[str],
) -> Iterator[tuple[str, str, FloatArray]]:
    """Name, way and shares of every map of these people."""
    means = simulate_local_map(codes, str(epsilon), rng=generator("local", OURS, *words)).means(
        SHOWN
    )
    yield OURS, "", means / means.sum()
    yield EVEN, "", np.full(truth.size, 1 / truth.size)
    held = np.flatnonzero(truth)
    sums = CellSums(AREA.grid, held, np.rint(truth[held] * codes.size * UNITS).astype(np.int64))
    tiles = rehearse_sums(
        method_named("zoom"), sums, epsilon, noise=known_noise("local", CENTRAL, *words)
    )
    yield CENTRAL, "", _in_z_order(tiles.normalized().image(SHOWN))
    crowd = Crowd(codes, epsilon, decoding=words[0] in ablated)
    for rival in (*RIVALS, WEAKER):
        for size in rival.sizes:
            made = rival.run(crowd, size, generator("local", rival.name, size, *words))
            for number, shares in enumerate(made.own):
                yield rival.name, f"{size} {number}", shares
            if made.decoded is not None:
                yield f"{rival.name}, decoded", f"{size}", made.decoded


def _in_z_order(image: FloatArray) -> FloatArray:
    columns, rows = AREA.grid.decode(np.arange(AREA.grid.size))
    return np.asarray(image[rows, columns])


def best(scores: Scores, name: str, metric: MetricName, *, of: slice = slice(None)) -> FloatArray:
    """Scores of a method in each place, by its best way in the mean: hindsight."""
    at = METRICS.index(metric)
    sign = 1 if metric == "similarity" else -1
    ways = [np.array(found)[:, at][of] for (method, _), found in scores.items() if method == name]
    return max(ways, key=lambda one: sign * one.mean())


def verdicts(found: Mapping[Cell, Scores], level: float) -> list[Verdict]:
    """Ours against every rival and the even map, signs by Holm over all comparisons with one rival."""
    judged = []
    for rival in (*(one.name for one in RIVALS), EVEN):
        family = []
        for (cell, scores), metric in product(found.items(), METRICS):
            gains = best(scores, OURS, metric) - best(scores, rival, metric)
            gains = gains if metric == "similarity" else -gains
            family.append(Verdict(cell, rival, metric, float(gains.mean()), paired(gains)))
        judged += holm(family, level)
    return judged


def paired(gains: FloatArray) -> float:
    """The two-sided chance of such a mean difference, by Student's t; 1 of fewer than two."""
    if gains.size < 2:
        return 1.0
    spread = float(gains.std(ddof=1)) / math.sqrt(gains.size)
    if spread == 0:
        return 1.0 if gains.mean() == 0 else 0.0
    return float(2 * stdtr(gains.size - 1, -abs(float(gains.mean())) / spread))


def holm(family: Sequence[Verdict], level: float) -> list[Verdict]:
    """Signs of those that hold together at the level."""
    ordered = sorted(family, key=lambda one: one.chance)
    found, holding = [], True
    for number, one in enumerate(ordered):
        holding = holding and one.chance <= level / (len(ordered) - number)
        sign = ("+" if one.gain > 0 else "-") if holding else ""
        found.append(Verdict(one.cell, one.rival, one.metric, one.gain, one.chance, sign))
    return found


def asked(found: Mapping[Cell, Scores], judged: Sequence[Verdict]) -> list[list[str]]:
    """The goals, and how many of the cells that were run meet them."""
    rows = [["asked for", f"of {len(found)} cells", "which"]]
    for goal in settings()["requirement"]:
        rivals = [one for one in judged if one.rival != EVEN and one.metric == goal.get("metric")]
        match goal["kind"]:
            case "better":
                cells = [
                    cell for cell in found if all(v.sign == "+" for v in rivals if v.cell == cell)
                ]
            case "worse":
                cells = [
                    cell for cell in found if any(v.sign == "-" for v in rivals if v.cell == cell)
                ]
            case _:
                cells = [
                    cell
                    for cell in found
                    if any(v.gain < 0 for v in judged if v.cell == cell and v.rival == EVEN)
                ]
        rows.append([goal["text"], str(len(cells)), "; ".join(map(cell_text, cells)) or "-"])
    for metric in METRICS:
        lead = [
            cell
            for cell in found
            if all(
                v.gain > 0
                for v in judged
                if v.cell == cell and v.metric == metric and v.rival != EVEN
            )
        ]
        rows.append([f"(not asked: best mean {metric} of all)", str(len(lead)), "-"])
    return rows


def cell_text(cell: Cell) -> str:
    """Users and epsilon."""
    return f"{cell[0]:,} at {cell[1]:g}"


def table(
    found: Mapping[Cell, Scores], judged: Sequence[Verdict], metric: MetricName
) -> list[list[str]]:
    """Means of all methods in all cells, with signs."""
    names = [OURS, *(one.name for one in RIVALS), EVEN, CENTRAL, WEAKER.name]
    signs = {(one.cell, one.rival): one.sign for one in judged if one.metric == metric}
    rows = [["users, epsilon", *names]]
    for cell, scores in found.items():
        rows.append(
            [f"{cell[0]:,}, {cell[1]:g}"]
            + [
                f"{best(scores, name, metric).mean():.4f}{signs.get((cell, name), '')}"
                for name in names
            ]
        )
    return rows


def ablation(found: Mapping[Cell, Scores], metric: MetricName, *, of: slice) -> list[list[str]]:
    """Own estimates of rivals beside ours of the same reports."""
    names = [one.name for one in RIVALS if one.name != "Laplace"]
    rows = [["users, epsilon", OURS, *names]]
    for cell, scores in found.items():
        line = [f"{cell[0]:,}, {cell[1]:g}", f"{best(scores, OURS, metric, of=of).mean():.3f}"]
        for name in names:
            own = best(scores, name, metric, of=of).mean()
            line.append(f"{own:.3f} / {best(scores, f'{name}, decoded', metric).mean():.3f}")
        rows.append(line)
    return rows


def tally(judged: Sequence[Verdict]) -> list[list[str]]:
    """Signs against each rival."""
    rows = [["rival", "better", "open", "worse"]]
    for rival in dict.fromkeys(one.rival for one in judged):
        signs = [one.sign for one in judged if one.rival == rival]
        rows.append([rival, *(str(signs.count(sign)) for sign in ("+", "", "-"))])
    return rows


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def page(
    found: Mapping[Cell, Scores], where: Sequence[Place], *, command: str, ablated: int, whole: bool
) -> str:
    """All of it."""
    level = settings()["level"]
    judged = verdicts(found, level)
    few = slice(0, ablated)
    return PAGE.format(
        command=command,
        cells=len(found),
        places=len(where),
        names=", ".join(place.name for place in where),
        minutes=time.process_time() / 60,
        decided="All that is fixed was run."
        if whole
        else "That is a part of what is fixed, so the goals are *not decided*.",
        tests=2 * len(found),
        level=level,
        emd=markdown(table(found, judged, "emd")),
        similarity=markdown(table(found, judged, "similarity")),
        asked=markdown(asked(found, judged)),
        tally=markdown(tally(judged)),
        ablated=ablated,
        ablation_emd=markdown(ablation(found, "emd", of=few)),
        ablation_similarity=markdown(ablation(found, "similarity", of=few)),
    )


def run(
    cells: Sequence[Cell],
    where: Sequence[Place],
    *,
    ablated: Sequence[str],
    minutes: float,
    watch: Callable[[str], None],
) -> dict[Cell, Scores]:
    """Cells one after the other, until so many minutes are over."""
    begin = time.monotonic()
    found: dict[Cell, Scores] = {}
    for cell in cells:
        if time.monotonic() - begin > 60 * minutes and found:
            watch(f"{minutes:g} minutes are over: {len(found)} of {len(cells)} cells were run")
            break
        found[cell] = cell_scores(cell, where, ablated=ablated)
        told = ", ".join(
            f"{name} {best(found[cell], name, 'emd').mean():.4f}" for name in (OURS, "AHEAD")
        )
        watch(f"{cell_text(cell)}: EMD {told}; {time.process_time():.0f} s of CPU")
    return dict(sorted(found.items()))


def write_scores(path: Path, found: Mapping[Cell, Scores], where: Sequence[Place]) -> None:
    """Every number."""
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["users", "epsilon", "place", "method", "way", *METRICS])
        for cell, scores in found.items():
            for (name, way), numbers in scores.items():
                for place, one in zip(where, numbers, strict=False):  # ablations: the first places
                    out.writerow([*cell, place.name, name, way, *one])


def read_scores(path: Path, where: Sequence[Place]) -> dict[Cell, Scores]:
    """The cells of an earlier run in these places, as `write_scores` wrote them."""
    found: dict[Cell, Scores] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            scores = found.setdefault((int(row["users"]), float(row["epsilon"])), {})
            held = scores.setdefault((row["method"], row["way"]), [])
            if row["place"] != where[len(held)].name:
                raise SystemExit(f"{path} is of other places than {where[len(held)].name}")
            held.append((float(row["emd"]), float(row["similarity"])))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run, write local.csv and local.md, and print the page."""
    parser = argparse.ArgumentParser(description="Local maps and their rivals", prog="local")
    parser.add_argument("--quick", action="store_true", help="one cell, two cities, in seconds")
    parser.add_argument("--places", type=int, help="the first so many of each source")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="no cell is begun after so many"
    )
    parser.add_argument("--out", type=Path, default=Path("demo/heatmaps"), help="folder")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of check-ins")
    parser.add_argument("--page", type=Path, help="the page to write too")
    parser.add_argument(
        "--known", type=Path, nargs="*", default=[], help="local.csv of earlier runs: not run again"
    )
    parser.add_argument("--most-users", type=int, help="only cells of at most so many users")
    words = list(sys.argv[1:] if argv is None else argv)
    given = parser.parse_args(words)
    given.out.mkdir(parents=True, exist_ok=True)
    fixed = settings()
    cells = [(users, float(one)) for one in fixed["epsilons"] for users in fixed["users"]]
    where = places(Path("none") if given.quick else given.data, 2 if given.quick else given.places)
    if given.quick:
        cells = [(1000, 1.0)]
    # One of each source is enough to see whose merit it is; they come first.
    made_up = [place for place in where if place.name in fixed["cities"]]
    firsts = [*made_up[:1], *[place for place in where if place not in made_up][:1]]
    where = [*firsts, *(place for place in where if place not in firsts)]

    def watch(step: str) -> None:
        print(step, file=sys.stderr, flush=True)

    known: dict[Cell, Scores] = {}
    for path in given.known:
        known |= read_scores(path, where)
    left = [
        cell
        for cell in cells
        if cell not in known and cell[0] <= (given.most_users or max(fixed["users"]))
    ]
    ran = run(left, where, ablated=[one.name for one in firsts], minutes=given.minutes, watch=watch)
    found = dict(sorted({**known, **ran}.items()))
    write_scores(given.out / "local.csv", found, where)
    whole = len(found) == 24 and len(where) == len(fixed["cities"]) + fixed["real"]
    command = " ".join(["python -m experiments.heatmaps.local", *words])
    text = page(found, where, command=command, ablated=len(firsts), whole=whole)
    for path in (given.out / "local.md", given.page):
        if path is not None:
            path.write_text(text, encoding="utf-8")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
