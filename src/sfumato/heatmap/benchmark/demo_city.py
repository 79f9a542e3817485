"""The map of the demo: a made-up city released once, refused the second time, and its exact errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import BudgetExceeded, InvalidInput
from sfumato.files import whole_file
from sfumato.heatmap.analysis.blur import smooth
from sfumato.heatmap.analysis.metrics import Comparison, compare
from sfumato.heatmap.benchmark.synthetic_city import check_ins
from sfumato.heatmap.methods.zoom import ZoomMethod
from sfumato.heatmap.pipeline.charging import price
from sfumato.heatmap.pipeline.one_map import release
from sfumato.heatmap.private_map import HeatmapRelease
from sfumato.heatmap.tiles import public_tiles
from sfumato.privacy import Ledger, PureDP
from sfumato.privacy.accounting import Number
from sfumato.records import Columns, open_table, sum_public_cells
from sfumato.spaces import area_in_degrees

DEMO_PEOPLE = 20_000
LEVELS = 8
BOUNDS = (11.20, 43.74, 11.32, 43.81)
SIGMA = 0.01
SOURCE = "demo city (synthetic)"
DEMO_ROWS, DEMO_LEDGER = "checkins.parquet", "city.ledger"
DEMO_MAPS = ("map.png", "map.html", "map.json", "map.geojson")


@dataclass(frozen=True, slots=True, eq=False)
class DemoCity:
    """A released map of the made-up city, and what is known only because nobody in it exists.

    `truth` is the exact map, blurred as `image` is; `errors` are those of the unblurred map.
    `entries` are the rows of the ledger: number, mechanism, cost and note.
    """

    released: HeatmapRelease
    refused: str
    truth: FloatArray
    image: FloatArray
    errors: Comparison
    entries: tuple[tuple[str, str, str, str], ...]


def check_demo_folder(folder: Path, epsilon: Number, *, others: Sequence[str] = ()) -> PureDP:
    """Make the folder of a demo, unless it holds files that are not of one.

    Args:
        folder: Where the demo writes; made if missing.
        epsilon: What the map may cost, above 0.
        others: Names of further files that the demo writes.

    Returns:
        The budget of the map.

    Raises:
        InvalidParameter: For an epsilon that is no budget.
        InvalidInput: For files or a ledger that are not of a demo.
    """
    budget = PureDP(epsilon)
    # A bad epsilon is said before anything is made.
    price(ZoomMethod(), budget.epsilon, area_in_degrees(BOUNDS, LEVELS))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / DEMO_LEDGER
    if file.exists() and Ledger(file).header.source != SOURCE:
        raise InvalidInput(f"{file} accounts for another source and is kept; choose another `out`")
    there = [name for name in (DEMO_ROWS, *DEMO_MAPS, *others) if (folder / name).exists()]
    if there and not file.exists():
        raise InvalidInput(
            f"{folder / there[0]} is not of a demo and is kept; choose another `out`"
        )
    return budget


def release_demo_city(
    folder: Path,
    budget: PureDP,
    *,
    rng: np.random.Generator,
    watch: Callable[[str], None],
) -> DemoCity:
    """Make up a city, release its map for the whole budget, ask again, and write the map's files.

    Args:
        folder: What `check_demo_folder` made.
        budget: What the map costs.
        rng: Draws the city, never noise.
        watch: Called with each step once it is done.

    Returns:
        The released map, the refusal of the second, and exact errors.
    """
    import pyarrow.parquet

    area, columns = area_in_degrees(BOUNDS, LEVELS), Columns("user", "lon", "lat")
    file, rows = folder / DEMO_LEDGER, folder / DEMO_ROWS
    file.unlink(missing_ok=True)
    with whole_file(rows, overwrite=True) as written:
        city = check_ins(DEMO_PEOPLE, family="street", bounds=BOUNDS, rng=rng)
        pyarrow.parquet.write_table(city, written)
    watch(f"a synthetic city of {DEMO_PEOPLE:,} people: {rows}")
    ledger = Ledger.create(file, budget, unit="user", source=SOURCE)

    def ask(note: str) -> HeatmapRelease:
        return release(
            rows,
            columns,
            area,
            ledger=ledger,
            epsilon=budget.epsilon,
            method=ZoomMethod(),
            note=note,
        )

    released = ask("the demo's map")
    watch(f"released: {released.statement}")
    refused = ""
    try:
        ask("once more")
    except BudgetExceeded as refusal:
        refused = str(refusal)
        watch(f"asked again, refused: {refused}")
    # Everything from here on is post-processing of what was released: it costs nothing.
    for name in DEMO_MAPS:
        released.write(folder / name, overwrite=True)
    # The exact map may be shown only because nobody in this city exists.
    exact = public_tiles(sum_public_cells(open_table(rows), columns, area)).normalized().image()
    entries = ledger.statement().entries
    return DemoCity(
        released,
        refused,
        smooth(exact, SIGMA),
        released.image(sigma=SIGMA),
        compare(exact, released.image(), area),
        tuple((str(e.number), e.mechanism, str(e.cost), e.note) for e in entries),
    )
