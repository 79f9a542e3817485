"""`sfumato demo` and `sfumato heatmap city`: people made up, and the main job done on them."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import demo_sensors
from sfumato.cli.chance import chance
from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.heatmap_options import four_numbers
from sfumato.errors import BudgetExceeded, InvalidInput, InvalidParameter
from sfumato.files import whole_file, write_file

if TYPE_CHECKING:
    from sfumato.heatmap import HeatmapRelease

PEOPLE = 20_000
LEVELS = 8
BOUNDS = (11.20, 43.74, 11.32, 43.81)
SIGMA = 0.01
SOURCE = "demo city (synthetic)"
FILES = ("map.png", "map.html", "map.json", "map.geojson")


class Family(StrEnum):
    """Kinds of made-up people."""

    town = "town"
    street = "street"
    gaze = "gaze"


@sentences
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the check-ins, the maps, the report and the ledger.")
    ] = Path("demo"),
    epsilon: Annotated[str, typer.Option(help="What the map may cost.")] = "1",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release a private map of a synthetic city, recover sources from private sensors, and draw it all.

    Each run makes a new city and new sources, so it starts new ledgers in the folder and replaces
    the files of the demo before, without --overwrite. A folder with ledgers of other sources is
    refused.
    """
    import pyarrow.parquet

    from sfumato.heatmap import ZoomMethod, price, release
    from sfumato.privacy import Ledger, PureDP
    from sfumato.records import Columns
    from sfumato.spaces import area_in_degrees

    hush = quiet or json
    budget = PureDP(epsilon)
    area, columns = area_in_degrees(BOUNDS, LEVELS), Columns("user", "lon", "lat")
    price(ZoomMethod(), budget.epsilon, area)  # a bad epsilon is said before anything is made
    out.mkdir(parents=True, exist_ok=True)
    file, rows = out / "city.ledger", out / "checkins.parquet"
    if file.exists() and Ledger(file).header.source != SOURCE:
        raise InvalidInput(f"{file} accounts for another source and is kept; choose another --out")
    ours = (rows.name, *FILES, *demo_sensors.FILES, "report.html", "side-by-side.png")
    there = [name for name in ours if (out / name).exists()]
    if there and not file.exists():
        raise InvalidInput(f"{out / there[0]} is not of a demo and is kept; choose another --out")
    demo_sensors.keep_others(out)
    file.unlink(missing_ok=True)
    with whole_file(rows, overwrite=True) as written:
        pyarrow.parquet.write_table(made_up(PEOPLE, Family.street, BOUNDS), written)
    say(f"a synthetic city of {PEOPLE:,} people: {rows}", quiet=hush)
    ledger = Ledger.create(file, budget, unit="user", source=SOURCE)
    asked: dict[str, Any] = {
        "ledger": ledger,
        "epsilon": budget.epsilon,
        "method": ZoomMethod(),
    }
    released = release(rows, columns, area, **asked, note="the demo's map")
    say(f"released: {released.statement}", quiet=hush)
    try:
        release(rows, columns, area, **asked, note="once more")
    except BudgetExceeded as refusal:
        refused = str(refusal)
        say(f"asked again, refused: {refused}", quiet=hush)

    # Everything from here on is post-processing of what was released: it costs nothing.
    for name in FILES:
        released.write(out / name, overwrite=True)
    sections, sensed = demo_sensors.sensors(out)
    say("recovered a corridor and a network from private readings", quiet=hush)
    errors = _report(out / "report.html", released, rows, refused, ledger, sections)
    result = {
        "report": str(out / "report.html"),
        "check_ins": str(rows),
        "maps": [str(out / name) for name in FILES],
        "ledger": str(file),
        "guarantee": str(released.receipt.guarantee),
        "refused": refused,
        **errors,
        **sensed,
    }
    show(result, f"report: {out / 'report.html'}", json=json)


@sentences
def city(
    file: Annotated[Path, typer.Argument(help="A .parquet file to write.", show_default=False)],
    users: Annotated[int, typer.Option(help="How many made-up people.", min=0)] = 2000,
    family: Annotated[
        Family,
        typer.Option(
            help="A town, streets (columns user, lon, lat, time), or gaze (user, x, y, ms)."
        ),
    ] = Family.town,
    bounds: Annotated[str, typer.Option(help="Where: west,south,east,north.")] = ",".join(
        map(str, BOUNDS)
    ),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make up a city: check-ins of people who do not exist, to try everything on."""
    import pyarrow.parquet

    if file.suffix != ".parquet" or file.exists():
        raise InvalidParameter(
            f"a city is written to a new .parquet file, got {file}; nothing was made"
        )
    table = made_up(users, family, four_numbers(bounds))
    with whole_file(file) as written:
        pyarrow.parquet.write_table(table, written)
    say(f"made up {users:,} people", quiet=quiet or json)
    show({"written": str(file), "rows": table.num_rows, "users": users}, str(file), json=json)


def made_up(users: int, family: Family, bounds: tuple[float, float, float, float]) -> Any:
    """Rows of made-up people; others each time."""
    from sfumato.heatmap import check_ins

    return check_ins(users, family=family.value, bounds=bounds, rng=chance())


def _report(
    path: Path, released: HeatmapRelease, rows: Path, refused: str, ledger: Any, more: list[Any]
) -> dict[str, Any]:
    """Write the report; give back the errors of the map, known only because the city is made up."""
    from sfumato.figures import draw_maps
    from sfumato.heatmap import compare, public_tiles, smooth
    from sfumato.records import Columns, open_table, sum_public_cells
    from sfumato.report import Section, write_report

    area = released.area
    # The exact map may be shown only because nobody in this city exists.
    exact = public_tiles(sum_public_cells(open_table(rows), Columns("user", "lon", "lat"), area))
    truth = exact.normalized().image()
    shown = [
        ("the synthetic city", smooth(truth, SIGMA)),
        ("what sfumato releases", released.image(sigma=SIGMA)),
    ]
    top = 100 * float(shown[1][1].max())
    picture = draw_maps(
        [(title, 100 * image) for title, image in shown],
        top=top,
        caption=released.statement,
        unit="% of the people, per cell",
    )
    write_file(path.with_name("side-by-side.png"), picture, overwrite=True)
    errors = asdict(compare(truth, released.image(), area))
    spots = [
        [f"{spot.x:.4f}", f"{spot.y:.4f}", f"{spot.share:.0%}"] for spot in released.hotspots(5)
    ]
    write_report(
        path,
        "A private map of a synthetic city, and private sensors",
        sections=[
            Section(
                "The map",
                f"Check-ins of {PEOPLE:,} made-up people; each has mass 1, however many check-ins, on "
                f"{area.grid.side} x {area.grid.side} cells of {area.cell_size[0]:.0f} m. Left, the truth, "
                "which may be shown because nobody in it exists; right, what is released. map.html beside "
                "this report pans and zooms.",
                picture=picture,
                description="Two maps of the same city side by side, exact and private",
            ),
            Section(
                "What was promised",
                f"{released.statement}.\n\n{released.plainly}",
                table=[
                    ["entry", "mechanism", "cost", "note"],
                    *[
                        [str(e.number), e.mechanism, str(e.cost), e.note]
                        for e in ledger.statement().entries
                    ],
                ],
            ),
            _how_sure(released, path.with_name("map.png").read_bytes()),
            Section("What was refused", f"The same map was asked for a second time: {refused}."),
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
                    *[[name.replace("_", " "), f"{value:.4g}"] for name, value in errors.items()],
                ],
            ),
            *more,
        ],
    )
    return errors


def _how_sure(released: HeatmapRelease, picture: bytes) -> Any:
    """The section on the map's doubts: its picture with hatch and rings, and how much there is of each."""
    from sfumato.report import Section

    found = released.uncertainty()
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
            ["rings", str(len(found.marks))],
            ["hatched, of the area", f"{found.silent_share:.1%}"],
            ["width of the band", f"{found.band.width:.2f}"],
        ],
    )
