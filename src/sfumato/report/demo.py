"""The demo: a private map of a made-up city and private sensors, released, recovered and reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato._random import generator
from sfumato.figures import draw_maps
from sfumato.files import write_file
from sfumato.heatmap import HeatmapRelease
from sfumato.heatmap.benchmark import (
    DEMO_LEDGER,
    DEMO_MAPS,
    DEMO_PEOPLE,
    DEMO_ROWS,
    DemoCity,
    check_demo_folder,
    release_demo_city,
)
from sfumato.report import demo_sensors
from sfumato.report.page import Section, write_report
from sfumato.report.results import DemoResult

if TYPE_CHECKING:
    import numpy as np

REPORT, BESIDE = "report.html", "side-by-side.png"


def run_demo(
    out: str | Path = "demo",
    *,
    epsilon: str | int | float = 1,
    rng: np.random.Generator | None = None,
    watch: Callable[[str], None] | None = None,
) -> DemoResult:
    """Release a private map of a synthetic city, recover sources from private sensors, and draw it all.

    Each run makes a new city and new sources, so it starts new ledgers in the folder and replaces
    the files of the demo before.

    Args:
        out: Folder of the check-ins, the maps, the report and the ledgers; made if missing.
        epsilon: What the map may cost, above 0.
        rng: Draws the city and the sources, never noise; others each time if left out.
        watch: Called with each step once it is done.

    Returns:
        The files, the guarantee, the refusal of a second map, and the exact errors.

    Raises:
        InvalidParameter: For an epsilon that is no budget.
        InvalidInput: For a folder with files or ledgers that are not of a demo.
    """
    folder, chance = Path(out), rng or generator()
    tell = watch or (lambda _: None)
    budget = check_demo_folder(folder, epsilon, others=(*demo_sensors.FILES, REPORT, BESIDE))
    demo_sensors.keep_others(folder)
    city = release_demo_city(folder, budget, rng=chance, watch=tell)
    sections, sensed = demo_sensors.sensors(folder, rng=chance)
    tell("recovered a corridor and a network from private readings")
    _write(folder, city, sections)
    return DemoResult(
        report=str(folder / REPORT),
        check_ins=str(folder / DEMO_ROWS),
        maps=tuple(str(folder / name) for name in DEMO_MAPS),
        ledger=str(folder / DEMO_LEDGER),
        guarantee=str(city.released.receipt.guarantee),
        refused=city.refused,
        errors=city.errors,
        sensors=sensed,
    )


def _write(out: Path, city: DemoCity, sensors: list[Section]) -> None:
    """The report, and its first picture."""
    released, area = city.released, city.released.area
    picture = draw_maps(
        [
            ("the synthetic city", 100 * city.truth),
            ("what sfumato releases", 100 * city.image),
        ],
        top=100 * float(city.image.max()),
        caption=released.statement,
        unit="% of the people, per cell",
    )
    write_file(out / BESIDE, picture, overwrite=True)
    spots = [
        [f"{spot.x:.4f}", f"{spot.y:.4f}", f"{spot.share:.0%}"] for spot in released.hotspots(5)
    ]
    write_report(
        out / REPORT,
        "A private map of a synthetic city, and private sensors",
        sections=[
            Section(
                "The map",
                f"Check-ins of {DEMO_PEOPLE:,} made-up people; each has mass 1, however many check-ins, on "
                f"{area.grid.side} x {area.grid.side} cells of {area.cell_size[0]:.0f} m. Left, the truth, "
                "which may be shown because nobody in it exists; right, what is released. map.html beside "
                "this report pans and zooms.",
                picture=picture,
                description="Two maps of the same city side by side, exact and private",
            ),
            Section(
                "What was promised",
                f"{released.statement}.\n\n{released.plainly}",
                table=[["entry", "mechanism", "cost", "note"], *city.entries],
            ),
            _how_sure(released, (out / "map.png").read_bytes()),
            Section(
                "What was refused", f"The same map was asked for a second time: {city.refused}."
            ),
            Section(
                "Where people are",
                "The five places that best stand for the private map (k-median), and the share near each.",
                table=[["longitude", "latitude", "share"], *spots],
            ),
            Section(
                "How far it is off",
                "Exact errors, known only because the city is made up. The earth mover's distance is how far "
                "the average person's mass would have to move to turn one map into the other.",
                table=[
                    ["measure", "value"],
                    *[
                        [name.replace("_", " "), f"{value:.4g}"]
                        for name, value in asdict(city.errors).items()
                    ],
                ],
            ),
            *sensors,
        ],
    )


def _how_sure(released: HeatmapRelease, picture: bytes) -> Section:
    """The map's picture with hatch and rings, and how much there is of each."""
    known = released.uncertainty()
    return Section(
        "How sure the map is",
        "Worked out from what was released alone, so it costs nothing. Rings are around places with over "
        "twice the average, all of them at once with a chance of 95 %; where it is hatched the map says "
        "nothing. The blurred map has a band of 90 %, which map.html reads out wherever you point; its width "
        "is in parts of the map's own height, on average over the places where most people are.",
        picture=picture,
        description="The private map with rings around places that are real, hatched where it says nothing",
        table=[
            ["how sure", "value"],
            ["rings", str(len(known.marks))],
            ["hatched, of the area", f"{known.silent_share:.1%}"],
            ["width of the band", f"{known.band.width:.2f}"],
        ],
    )
