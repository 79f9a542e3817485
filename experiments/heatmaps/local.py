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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from experiments.heatmaps import local_rivals
from experiments.heatmaps.local_page import (
    CENTRAL,
    EVEN,
    METRICS,
    OURS,
    Cell,
    Scores,
    best,
    cell_text,
    page,
    settings,
)
from experiments.heatmaps.local_rivals import SHOWN, Crowd
from experiments.heatmaps.protocol import DATA, chance, generator, real_places

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
    for rival in (*local_rivals.RIVALS, local_rivals.WEAKER):
        for size in rival.sizes:
            made = rival.run(crowd, size, generator("local", rival.name, size, *words))
            for number, shares in enumerate(made.own):
                yield rival.name, f"{size} {number}", shares
            if made.decoded is not None:
                yield f"{rival.name}, decoded", f"{size}", made.decoded


def _in_z_order(image: FloatArray) -> FloatArray:
    columns, rows = AREA.grid.decode(np.arange(AREA.grid.size))
    return np.asarray(image[rows, columns])


def run(
    cells: Sequence[Cell],
    where: Sequence[Place],
    *,
    ablated: Sequence[str],
    minutes: float,
    watch: Callable[[str], None],
    keep: Callable[[dict[Cell, Scores]], None] = lambda _: None,
) -> dict[Cell, Scores]:
    """Cells one after the other, until so many minutes are over; all found are kept after each."""
    begin = time.monotonic()
    found: dict[Cell, Scores] = {}
    for cell in cells:
        if time.monotonic() - begin > 60 * minutes and found:
            watch(f"{minutes:g} minutes are over: {len(found)} of {len(cells)} cells were run")
            break
        found[cell] = cell_scores(cell, where, ablated=ablated)
        keep(found)
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
    given = parser.parse_args(argv)
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

    def keep(ran: dict[Cell, Scores]) -> None:
        write_scores(given.out / "local.csv", dict(sorted({**known, **ran}.items())), where)

    ran = run(
        left,
        where,
        ablated=[one.name for one in firsts],
        minutes=given.minutes,
        watch=watch,
        keep=keep,
    )
    found = dict(sorted({**known, **ran}.items()))
    keep(ran)
    whole = len(found) == 24 and len(where) == len(fixed["cities"]) + fixed["real"]
    # Where files are does not change what was run.
    parts = ["--quick"] * given.quick + [
        f"--{name} {value}"
        for name, value in (
            ("places", given.places),
            ("most-users", given.most_users),
            ("minutes", None if math.isinf(given.minutes) else f"{given.minutes:g}"),
            ("page", given.page),
        )
        if value is not None
    ]
    command = " ".join(["python -m experiments.heatmaps.local", *parts])
    text = page(found, where, command=command, ablated=len(firsts), whole=whole)
    for path in (given.out / "local.md", given.page):
        if path is not None:
            path.write_text(text, encoding="utf-8")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
