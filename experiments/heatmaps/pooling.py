"""What sharing strength between frames or images is worth, and where it misleads.

python -m experiments.heatmaps.pooling [--quick] [--out DIR] [--data DIR]

Maps of one release, each by itself, partially pooled, and fully pooled (one common map for all), held
against the truth through the usual blur: made-up towns of 24 hours and 537 people, alike, or with all
or a third of the last hour in a corner where nobody is otherwise; check-ins of 537 people in New York
by hour of the day; and 15 pictures that 47 people looked at, which have nothing in common. The two of
real people are left out where their files are not there. Of some maps also: how often the 90 % band,
the marks and the stated errors hold. Writes pooling.csv, pooling_bands.csv and pooling.md.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from experiments.heatmaps.calibration import check
from experiments.heatmaps.protocol import Options, generator, options

from sfumato.heatmap import HeatmapRelease, compare, pool_maps, price, release_sums, smooth
from sfumato.heatmap.accuracy import ZOOM_CORRECTIONS, calibrated, drawn_errors
from sfumato.heatmap.benchmark import known_noise
from sfumato.heatmap.inference import CountsPosterior, common_counts
from sfumato.privacy import REHEARSAL, UNITS, Ledger
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Area, Grid

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# A cell of 64 a side is narrower than the blur; distances are solved there anyway.
UNIT = Area(Grid(6), (0.0, 0.0, 1.0, 1.0), "plane")
EPSILONS = (1.0, 0.5, 4.0)
TRIALS = 1
PEOPLE, HOURS, IMAGES, VISITS = 537, 24, 15, 9
BLUR = 0.02
BOX = (-74.03, 40.68, -73.90, 40.81)
WAYS = ("alone", "partial", "full")
# Every third map of a release is judged, and odd ones; of every sixth, at epsilon 1, its bands too.
JUDGED, LOOKED_AT = 3, 6


@dataclass(frozen=True, slots=True)
class Scene:
    """People with places in the unit square and the frame of each row; `odd` frames are unlike the rest."""

    name: str
    user: IntArray
    x: FloatArray
    y: FloatArray
    frame: IntArray
    frames: int
    odd: tuple[int, ...] = ()

    def sums(self) -> CellSums:
        """Everybody's mass of 1, shared over their rows."""
        grid = UNIT.grid
        _, who, rows = np.unique(self.user, return_inverse=True, return_counts=True)
        cells = grid.cells_of(self.x, self.y) + self.frame * grid.size
        codes, at = np.unique(cells, return_inverse=True)
        units = np.zeros(codes.size, dtype=np.int64)
        np.add.at(units, at.ravel(), (UNITS // rows)[who.ravel()])
        return CellSums(grid, codes, units, self.frames, UNIT)


@dataclass(frozen=True, slots=True)
class Row:
    """One map held against the truth, blurred."""

    scene: str
    epsilon: float
    trial: int
    frame: int
    odd: bool
    way: str
    similarity: float
    pearson: float
    emd: float
    strength: float
    in_corner: float
    truly_in_corner: float


@dataclass(frozen=True, slots=True)
class Held:
    """Whether what one map says of its own uncertainty holds."""

    scene: str
    frame: int
    odd: bool
    way: str
    in_band: float
    width: float
    marks: int
    false_marks: int
    emd_held: bool
    similarity_held: bool


def town(trial: int, *, elsewhere: float) -> Scene:
    """Twelve places that hours visit in nearly the same parts; in the last hour some may be elsewhere."""
    rng = generator("pooled town", trial)
    middle, part = rng.uniform(0.15, 0.85, (12, 2)), rng.dirichlet(np.ones(12))
    wide = rng.uniform(0.01, 0.05, 12)
    rows = PEOPLE * VISITS
    user, frame = rng.integers(0, PEOPLE, rows), rng.integers(0, HOURS, rows)
    parts = rng.dirichlet(50 * part, HOURS)
    at = (rng.random(rows)[:, None] > np.cumsum(parts, axis=1)[frame]).sum(axis=1).clip(0, 11)
    where = middle[at] + rng.normal(size=(rows, 2)) * wide[at, None]
    name = "town, hours alike"
    if elsewhere:
        last = np.flatnonzero(frame == HOURS - 1)
        corner = [0.9, 0.1] + rng.normal(size=(last.size, 2)) * 0.03
        gone = rng.random(last.size) < elsewhere
        where[last[gone]] = corner[gone]
        crowd = "a crowd" if elsewhere == 1 else f"{elsewhere:.0%}"
        name = f"town, {crowd} elsewhere at the last hour"
    where = np.clip(where, 0, 0.9999)
    odd = elsewhere > 0
    return Scene(name, user, where[:, 0], where[:, 1], frame, HOURS, (HOURS - 1,) if odd else ())


def check_ins(file: Path, trial: int) -> Scene:
    """Some people of New York by hour of the day."""
    table = pq.read_table(file)
    user, minute, lat, lon = (
        table[name].to_numpy() for name in ("user_id", "minute", "lat", "lon")
    )
    west, south, east, north = BOX
    inside = (lon > west) & (lon < east) & (lat > south) & (lat < north)
    rng = generator("pooled check-ins", trial)
    some = rng.permutation(np.unique(user[inside]))[:PEOPLE]
    kept = inside & np.isin(user, some)
    x, y = (lon[kept] - west) / (east - west), (lat[kept] - south) / (north - south)
    hour = (minute[kept] // 60 % 24).astype(np.int64)
    return Scene("check-ins in New York by hour", user[kept], x, y, hour, HOURS)


def gaze(file: Path, trial: int) -> Scene:
    """Fixations on some pictures, others in each trial."""
    table = pq.read_table(file)
    user, image, x, y = (table[name].to_numpy() for name in ("user_id", "image_id", "x", "y"))
    some = np.sort(generator("pooled gaze", trial).permutation(np.unique(image))[:IMAGES])
    kept = np.isin(image, some) & (x >= 0) & (x < 800) & (y >= 0) & (y < 600)
    frame = np.searchsorted(some, image[kept]).astype(np.int64)
    return Scene("gaze on 15 pictures", user[kept], x[kept] / 800, y[kept] / 600, frame, IMAGES)


def scenes(chosen: Options) -> list[Callable[[int], Scene]]:
    """What is simulated; real people where their files are there."""
    found: list[Callable[[int], Scene]] = [
        lambda trial: town(trial, elsewhere=0.0),
        lambda trial: town(trial, elsewhere=1.0),
        lambda trial: town(trial, elsewhere=1 / 3),
    ]
    places = chosen.data / "foursquare_nyc_u1083_checkins.parquet"
    fixations = chosen.data / "gaze_scene_fixations.parquet"
    if chosen.quick:
        return found[1:2]
    if places.is_file():
        found.append(lambda trial: check_ins(places, trial))
    if fixations.is_file():
        found.append(lambda trial: gaze(fixations, trial))
    return found


def released(scene: Scene, epsilon: float, trial: int) -> tuple[HeatmapRelease, ...]:
    """Simulated maps of all frames, each by itself."""
    groups = tuple(f"{number:02d}" for number in range(scene.frames))
    cost = price("zoom", str(epsilon), UNIT, groups=scene.frames)
    return release_sums(
        guard_sums(scene.sums(), source=REHEARSAL),
        UNIT,
        ledger=Ledger.rehearsal(cost),
        epsilon=str(epsilon),
        groups=groups,
        noise=known_noise("pooling", scene.name, epsilon, trial),
    )


def fully_pooled(maps: Sequence[HeatmapRelease]) -> FloatArray:
    """The common map of all frames [row, column]: its shares are shown for each."""
    counts = [one.posterior.counts for one in maps if one.posterior is not None]
    users = np.array([one.tiles.total for one in maps])
    common = common_counts([one for one in counts if one is not None], users)
    level = UNIT.grid.levels
    mean = CountsPosterior(common, mean_is_map=True, area=UNIT).means(level)
    return np.asarray(UNIT.grid.image(mean / mean.sum()))


def truths(sums: CellSums) -> list[FloatArray | None]:
    """The exact shares of each frame; None where nobody is."""
    found: list[FloatArray | None] = []
    for frame in range(sums.groups):
        here = sums.codes // sums.grid.size == frame
        mass = np.zeros(sums.grid.size)
        mass[sums.codes[here] - frame * sums.grid.size] = sums.units[here]
        found.append(sums.grid.image(mass / mass.sum()) if mass.sum() > 0 else None)
    return found


def judged(
    scene: Scene, epsilon: float, trial: int, *, bands: bool
) -> tuple[list[Row], list[Held]]:
    """The maps of one release, each way, against the truth."""
    alone = released(scene, epsilon, trial)
    pooled = pool_maps(alone)
    common = fully_pooled(alone)
    rows, held = [], []
    for frame, truth in enumerate(truths(scene.sums())):
        odd = frame in scene.odd
        if truth is None or (frame % JUDGED and not odd):
            continue
        seen = smooth(truth, BLUR)
        ways = {
            "alone": alone[frame].image(sigma=BLUR),
            "partial": pooled.maps[frame].image(sigma=BLUR),
            "full": smooth(common, BLUR),
        }
        strength = pooled.pooled[frame].strength
        for way, picture in ways.items():
            found = compare(seen, picture, UNIT)
            rows.append(
                Row(
                    scene.name, epsilon, trial, frame, odd, way,
                    found.similarity, found.pearson, found.emd, strength,
                    in_corner(picture), in_corner(seen),
                )
            )  # fmt: skip
        if bands and (odd or frame % LOOKED_AT == 0):
            for way, one in (("alone", alone[frame]), ("partial", pooled.maps[frame])):
                held.append(_held(scene, frame, way, one, truth, odd=odd))
    return rows, held


def in_corner(picture: FloatArray) -> float:
    """The share of a map where the last hour of a town may be: its south-eastern fifths."""
    side = len(picture)
    return float(picture[: side // 5, side - side // 5 :].sum())


def _held(
    scene: Scene, frame: int, way: str, one: HeatmapRelease, truth: FloatArray, *, odd: bool
) -> Held:
    checked = check(one.uncertainty(), truth, UNIT.grid)
    found = compare(smooth(truth, BLUR), one.image(sigma=BLUR), UNIT)
    if one.posterior is None:
        raise ValueError("a map by zoom knows how far off it is")
    # Pooled maps do not state it: this is what they would say.
    drawn = drawn_errors(one.posterior, one.shares, UNIT)
    said = calibrated(drawn, one.tiles.total, one.map_epsilon, ZOOM_CORRECTIONS)
    off, alike = said["emd"], said["similarity"]
    return Held(
        scene.name, frame, odd, way, checked.coverage, checked.width, checked.marks,
        checked.false_marks, off.low <= found.emd <= off.high,
        alike.low <= found.similarity <= alike.high,
    )  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """Means over maps and trials as Markdown, odd frames apart."""
    lines = [
        "| maps | epsilon | similarity alone | partial | full | correlation alone | partial | full | "
        "off by alone | partial | full | worst change of a map | pooled |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for scene, odd, epsilon in dict.fromkeys((row.scene, row.odd, row.epsilon) for row in rows):
        some = [row for row in rows if (row.scene, row.odd, row.epsilon) == (scene, odd, epsilon)]
        ways = {way: [row for row in some if row.way == way] for way in WAYS}
        told = [
            f"{np.mean([getattr(row, name) for row in ways[way]]):.{digits}f}"
            for name, digits in (("similarity", 2), ("pearson", 2), ("emd", 3))
            for way in WAYS
        ]
        change = min(
            b.similarity - a.similarity for a, b in zip(ways["alone"], ways["partial"], strict=True)
        )
        strength = np.mean([row.strength for row in ways["partial"]])
        name = f"{scene}: that hour" if odd else scene
        lines.append(
            " | ".join([f"| {name}", f"{epsilon:g}", *told, f"{change:+.2f}", f"{strength:.2f}"])
            + " |"
        )
    return "\n".join(lines) + "\n"


def corner_table(rows: Sequence[Row]) -> str:
    """The share of an odd hour in the corner where only that hour is, each way."""
    lines = [
        "| maps | epsilon | truly in the corner | alone | partial | full |",
        "|---|---|---|---|---|---|",
    ]
    some = [row for row in rows if row.odd]
    for scene, epsilon in dict.fromkeys((row.scene, row.epsilon) for row in some):
        mine = [row for row in some if (row.scene, row.epsilon) == (scene, epsilon)]
        told = [f"{np.mean([row.in_corner for row in mine if row.way == way]):.0%}" for way in WAYS]
        truth = f"{np.mean([row.truly_in_corner for row in mine]):.0%}"
        lines.append(" | ".join([f"| {scene}", f"{epsilon:g}", truth, *told]) + " |")
    return "\n".join(lines) + "\n"


def band_table(rows: Sequence[Held]) -> str:
    """How often what maps say of themselves holds, at epsilon 1."""
    lines = [
        "| maps | way | looked at | in the 90 % band | width | marks | false | "
        "distance in its 90 % interval | similarity in its 90 % interval |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for scene, odd, way in dict.fromkeys((row.scene, row.odd, row.way) for row in rows):
        some = [row for row in rows if (row.scene, row.odd, row.way) == (scene, odd, way)]
        lines.append(
            f"| {f'{scene}: that hour' if odd else scene} | {way} | {len(some)} | "
            f"{np.mean([row.in_band for row in some]):.0%} | "
            f"{np.mean([row.width for row in some]):.2f} | {sum(row.marks for row in some)} | "
            f"{sum(row.false_marks for row in some)} | "
            f"{np.mean([row.emd_held for row in some]):.0%} | "
            f"{np.mean([row.similarity_held for row in some]):.0%} |"
        )
    return "\n".join(lines) + "\n"


def run(chosen: Options) -> Iterator[tuple[list[Row], list[Held]]]:
    """One release after the other."""
    for epsilon in (1.0,) if chosen.quick else EPSILONS:
        for make in scenes(chosen):
            for trial in range(1 if chosen.quick else TRIALS):
                bands = epsilon == 1 and trial == 0 and not chosen.quick
                yield judged(make(trial), epsilon, trial, bands=bands)


def write(path: Path, rows: Sequence[Any]) -> None:
    """A table of rows as CSV."""
    with path.open("w", newline="") as target:
        out = csv.DictWriter(target, [one.name for one in fields(rows[0])], lineterminator="\n")
        out.writeheader()
        out.writerows(asdict(row) for row in rows)


def main(argv: list[str] | None = None) -> None:
    """Run, write the tables, and print them."""
    chosen = options("Partial pooling of frames and images", argv)
    chosen.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    held: list[Held] = []
    for found, bands in run(chosen):
        rows += found
        held += bands
        # What is there so far: a run takes a quarter of an hour.
        write(chosen.out / "pooling.csv", rows)
        text = f"{table(rows)}\n{corner_table(rows)}" + (f"\n{band_table(held)}" if held else "")
        (chosen.out / "pooling.md").write_text(text, encoding="utf-8")
    if held:
        write(chosen.out / "pooling_bands.csv", held)
    print(text)


if __name__ == "__main__":
    main()
