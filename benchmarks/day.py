"""A day's work: CPU time of seven heatmap commands, of this tree and, with `--against`, of another one.

Each job is a command in a process of its own, what machines keep between processes (bytecode,
machine code, fonts) already there; libraries that start threads are told to take one, so that
nobody's waiting counts as work. With `--against PATH`, the root of another checkout, both trees run
in turn on the same tables, so that what else a machine does weighs on both. Prints Markdown, a row as
soon as it is there; `--runs N` (3) and `--only NAME` for less.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent.parent
COMMAND = "from sfumato.cli.main import main; main()"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
BOX = (-122.52, 37.70, -122.35, 37.82)
CITY = f"--bounds={','.join(map(str, BOX))}"
LEDGER = "--ledger day.ledger --epsilon 1 --quiet"
CABS = f"heatmap release cabs.parquet --user user {CITY} {LEDGER}"
FORMATS = ("png", "tif", "geojson", "csv", "html", "json")
IMAGES = ",".join(f"image{number}" for number in range(15))
JOBS = {
    "release of 460,000 rows, six formats": f"{CABS} "
    + " ".join(f"--out map.{end}" for end in FORMATS),
    "totals of 41 zones": "heatmap totals saved.json zones.geojson --quiet --out totals.csv",
    "hotspots": "heatmap hotspots saved.json -k 10 --quiet",
    "24 frames": f"{CABS} --time time --by hour --from 2008-05-17 --to 2008-05-18 --out film.html",
    "15 gaze maps": f"heatmap release gaze.parquet --user user --x x --y y --image scene.png {LEDGER}"
    f" --by image --values {IMAGES} --out gaze-{{by}}.png",
    "SQLite, 300,000 rows": "heatmap release points --connection sqlite://rows.sqlite --user user"
    f" {CITY} {LEDGER} --out lite.png",
    "draw": "heatmap draw saved.json --out drawn.png --quiet",
}


def places(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a city: most around 60 centers of very different weight, some anywhere."""
    low_x, low_y, high_x, high_y = BOX
    weights = rng.pareto(1.0, 60) + 0.05
    centers = rng.random((60, 2))
    chosen = centers[rng.choice(60, count, p=weights / weights.sum())]
    points = chosen + rng.normal(0, 0.02, (count, 2))
    anywhere = rng.random(count) < 0.1
    points[anywhere] = rng.random((int(anywhere.sum()), 2))
    x, y = np.clip(points, 0, 1).T
    return low_x + x * (high_x - low_x), low_y + y * (high_y - low_y)


def prepare(folder: Path) -> None:
    """Tables of the shapes asked for, zones, an image and a ledger."""
    from PIL import Image

    rng = np.random.default_rng(20)
    lon, lat = places(rng, 460_000)
    user = rng.choice(537, 460_000, p=rng.dirichlet(np.full(537, 5.0)))
    when = np.datetime64("2008-05-17T00:00:00") + rng.integers(0, 86_400, 460_000)
    cabs = [f"cab{one}" for one in user]
    columns = {"user": cabs, "lon": lon, "lat": lat}
    pq.write_table(
        pa.table({**columns, "time": when.astype("datetime64[ms]")}), folder / "cabs.parquet"
    )
    with sqlite3.connect(folder / "rows.sqlite") as file:
        file.execute("create table points (user text, lon real, lat real)")
        rows = zip(cabs[:300_000], lon[:300_000].tolist(), lat[:300_000].tolist(), strict=True)
        file.executemany("insert into points values (?, ?, ?)", rows)
    look = {
        "user": [f"observer{one}" for one in np.repeat(np.arange(40), 15 * 60)],
        "image": [f"image{one}" for one in np.tile(np.repeat(np.arange(15), 60), 40)],
        "x": np.clip(rng.normal(400, 120, 36_000), 0, 799),
        "y": np.clip(rng.normal(300, 90, 36_000), 0, 599),
    }
    pq.write_table(pa.table(look), folder / "gaze.parquet")
    Image.fromarray(np.full((600, 800, 3), 200, dtype=np.uint8)).save(folder / "scene.png")
    (folder / "zones.geojson").write_text(json.dumps(zones()), "utf-8")


def zones() -> dict[str, object]:
    """Forty-one zones: columns and rows of a board that is a little turned."""
    low_x, low_y, high_x, high_y = BOX
    found = []
    for number in range(41):
        column, row = number % 7, number // 7
        corners = [
            (column + a, row + b) for a, b in ((0, 0), (1, 0.1), (1.1, 1), (0.1, 0.9), (0, 0))
        ]
        ring = [
            [low_x + x / 8 * (high_x - low_x), low_y + y / 7 * (high_y - low_y)] for x, y in corners
        ]
        shape = {"type": "Polygon", "coordinates": [ring]}
        found.append(
            {"type": "Feature", "properties": {"name": f"zone {number}"}, "geometry": shape}
        )
    return {"type": "FeatureCollection", "features": found}


def run(tree: Path, line: str, folder: Path, *more: str) -> float:
    """User seconds of a processor that a command of the package in this tree takes."""
    env = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "NUMBA_CACHE_DIR": str(folder / "kept"),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "COLUMNS": "100",
        **dict.fromkeys(THREADS, "1"),
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(  # noqa: S603 - it runs Python on the text above
        [sys.executable, "-c", COMMAND, *line.split(), *more],
        cwd=folder,
        env=env,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{line}\n{done.stderr}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="the root of another checkout")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="jobs whose name has this in it")
    asked = parser.parse_args()
    trees = [HERE] if asked.against is None else [asked.against.resolve(), HERE]
    print("\n## A day's work\n")
    print(f"`benchmarks/day.py`, user seconds of whole commands, median of {asked.runs}.\n")
    print(
        "| command | CPU |" if len(trees) == 1 else f"| command | {trees[0].name} | now | ratio |",
        flush=True,
    )
    print("|---|---:|" if len(trees) == 1 else "|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name, str(number)) for number in range(len(trees))]
        folders[0].mkdir()
        prepare(folders[0])
        for other in folders[1:]:
            shutil.copytree(folders[0], other)
        budget = "--epsilon 1000 --unit user --source day --quiet"
        for tree, folder in zip(trees, folders, strict=True):
            run(tree, f"ledger create day.ledger {budget}", folder)
            run(tree, f"{CABS} --out saved.json", folder)
        for job, line in JOBS.items():
            if asked.only not in job:
                continue
            more = [] if job == "hotspots" else ["--overwrite"]
            # Another table of the same people each time, as far as a ledger knows.
            more += ["--other-table"] if "release" in line else []
            spent: list[list[float]] = [[] for _ in trees]
            for number in range(asked.runs + 1):
                for tree, folder, found in zip(trees, folders, spent, strict=True):
                    taken = run(tree, line, folder, *more)
                    if number:  # the first one compiles
                        found.append(taken)
            middle = [statistics.median(one) for one in spent]
            cells = [f"{one:.1f} s" for one in middle]
            if len(trees) > 1:
                cells.append(f"{middle[1] / middle[0]:.2f}")
            print(f"| {job} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
