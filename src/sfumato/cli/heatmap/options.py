"""Options of the heatmap commands: rows, area, method, groups and files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.console import say
from sfumato.errors import InvalidParameter

ENGINE = "duckdb"


class Shape(StrEnum):
    """What cells look like: nearly square on the ground, or as stretched as the bounds."""

    square = "square"
    stretched = "stretched"


def _option(panel: str, help: str, *names: str, **more: Any) -> Any:  # noqa: A002 - typer's word
    return typer.Option(*names, help=help, rich_help_panel=panel, show_envvar=False, **more)


Input = Annotated[
    str,
    typer.Argument(
        help="CSV, Parquet or JSON file, a glob of them, file.duckdb::table, or a table of --connection.",
        show_default=False,
    ),
]
SavedMap = Annotated[Path, typer.Argument(help="A map saved as .json.", show_default=False)]
Epsilon = Annotated[
    str,
    typer.Option(
        help="What the map may cost: 1 is usual, less is more private.", show_default=False
    ),
]
Public = Annotated[
    bool,
    typer.Option("--public", help="The rows are public or made up; exact errors may be shown."),
]

# -- rows
User = Annotated[str, _option("Rows", "Column that says whose row it is.", show_default=False)]
X = Annotated[str, _option("Rows", "Column of longitudes, or of x.")]
Y = Annotated[str, _option("Rows", "Column of latitudes, or of y.")]
Weight = Annotated[
    str,
    _option(
        "Rows",
        "Column of weights, e.g. fixation times; else every row counts 1.",
        show_default=False,
    ),
]
WeightStep = Annotated[
    str,
    _option(
        "Rows",
        "Public lattice of the weights, e.g. 0.001 for seconds; 1 for columns of whole numbers, "
        "said for all others (any of a CSV).",
    ),
]
WeightCap = Annotated[int, _option("Rows", "Public cap on one row's weight, in steps.")]
Alone = Annotated[
    bool,
    _option("Rows", "There is no user column: each row is somebody else.", "--one-row-one-user"),
]
RowsPerUser = Annotated[
    int | None,
    _option(
        "Rows",
        "Count rows, not users: at most so many of each user. The noise is that of so many rows.",
        show_default=False,
    ),
]


def _known_engine(name: str) -> str:
    """An engine that there is, registered or installed by others too; else a mistake of usage."""
    if name != ENGINE:
        from sfumato.records.engines import engine_names

        if name not in engine_names():
            raise typer.BadParameter(f"{name!r} is none of {', '.join(engine_names())}")
    return name


EngineOption = Annotated[
    str,
    _option("Rows", "Who counts the rows.", metavar="[{engines}]", callback=_known_engine),
]
Connection = Annotated[
    str,
    _option(
        "Rows", "Ibis or Spark address of a database; INPUT is a table in it.", show_default=False
    ),
]
Delimiter = Annotated[str, _option("Rows", "Between the fields of a CSV file.")]
TextCoordinates = Annotated[
    bool,
    _option(
        "Rows", "x and y are columns of text: decimal numbers like 43.77.", "--text-coordinates"
    ),
]
By = Annotated[
    list[str] | None,
    _option(
        "Rows",
        "Column of maps, e.g. image: one map for each value. With --time: hour, day, week, month, "
        "weekday, weekend, hour-of-day, or whole for one map of all days. Twice for a map of each pair.",
        show_default=False,
    ),
]
Values = Annotated[
    list[str] | None,
    _option(
        "Rows",
        "The public values of --by, with commas; again for its second column. {by} in --out names the "
        "file.",
        show_default=False,
    ),
]
PerValue = Annotated[
    bool,
    _option(
        "Rows",
        "Everyone has mass 1 in each value. Costs epsilon for each, unless the ledger protects "
        "user-image (for --by image, and so on).",
        "--mass-per-value",
    ),
]

# -- time
Time = Annotated[
    str,
    _option("Time", "Column of times: one map for each period of --by, also if nobody was there."),
]
From = Annotated[
    str,
    _option("Time", "When the first period begins, e.g. 2026-01-01 or 2026-01-01T06:00.", "--from"),
]
To = Annotated[str, _option("Time", "When the last period ends; not in it any more.", "--to")]
Zone = Annotated[
    str,
    _option(
        "Time",
        "Whose clock the periods follow, e.g. Europe/Rome. Else times as written, or in UTC.",
    ),
]
PerPeriod = Annotated[
    bool,
    _option(
        "Time",
        "Everyone has mass 1 in each period. Costs epsilon for each, unless the ledger protects "
        "user-days (for days, and so on).",
        "--mass-per-period",
    ),
]

# -- area
Bounds = Annotated[
    str,
    _option(
        "Area",
        "Public area: west,south,east,north; west above east crosses the antimeridian. "
        "Or 'private', to find it inside --outer.",
        show_default=False,
    ),
]
BoundsFile = Annotated[
    Path | None,
    _option("Area", "Public area: the box around a GeoJSON file.", show_default=False),
]
Image = Annotated[
    Path | None,
    _option("Area", "Public area: the pixels of this image, for gaze.", show_default=False),
]
Outer = Annotated[str, _option("Area", "Public outer box of --bounds private.", show_default=False)]
BoundsShare = Annotated[str, _option("Area", "Share of epsilon that --bounds private may spend.")]
Plane = Annotated[bool, _option("Area", "Coordinates are not degrees but any units.", "--plane")]
Crs = Annotated[
    str,
    _option(
        "Area",
        "Reference system of rows and bounds, e.g. EPSG:3857 or EPSG:32632; else degrees.",
        show_default=False,
    ),
]
Cells = Annotated[
    Shape, _option("Area", "Nearly square on the ground, or as stretched as the bounds.")
]
Levels = Annotated[int, _option("Area", "2**levels cells to a side.", min=0, max=16)]

# -- method
MethodOption = Annotated[
    str,
    _option(
        "Method",
        "How the map is made; zoom and pyramid also say how sure they are.",
        metavar="[{methods}]",
    ),
]
MethodSettings = Annotated[
    list[str] | None,
    _option(
        "Method",
        "A parameter of the method, name=value; again for more.",
        "--method-option",
        show_default=False,
    ),
]
Width = Annotated[int, _option("Method", "Cells kept at each level, for the pyramid.")]
Delta = Annotated[str, _option("Method", "Delta of the gaussian method.")]
Users = Annotated[
    int | None,
    _option(
        "Method",
        "A public guess of the number of users: what to expect of the maps is said before they are paid "
        "for. The coarse method takes 200 if there is none.",
        show_default=False,
    ),
]
Top = Annotated[str, _option("Method", "Per cent of the cells that the top method keeps.")]
PriorFile = Annotated[
    Path | None,
    _option(
        "Method",
        "PUBLIC roads.geojson, prior.npy or saliency.png, which the map follows within its tiles, free. "
        "You declare it public, and the map says so.",
        "--prior",
        show_default=False,
    ),
]

# -- files
Out = Annotated[
    list[Path],
    _option(
        "Files",
        "A file to write; again for more. By suffix: {suffixes}",
        show_default=False,
    ),
]
SomeOut = Annotated[
    list[Path] | None,
    _option(
        "Files",
        "A file to write, if any; again for more. By suffix: {suffixes}",
        show_default=False,
    ),
]
Title = Annotated[
    str, _option("Files", "What the map is called, in pictures and pages.", show_default=False)
]
H3 = Annotated[
    int | None,
    _option("Files", "Resolution of H3 tables; else about the size of a cell.", min=0, max=15),
]
Over = Annotated[
    Path | None,
    _option(
        "Files",
        "PUBLIC image under pictures and pages: a stimulus of the map's size ({by} in its name is the "
        "group), or a GeoTIFF.",
        show_default=False,
    ),
]
OutlineFile = Annotated[
    Path | None,
    _option(
        "Files",
        "PUBLIC lines or areas drawn on pictures and pages, GeoJSON.",
        "--outline",
        show_default=False,
    ),
]


class Shared(StrEnum):
    """Whether the maps of one release share strength."""

    none = "none"
    partial = "partial"


PoolingOption = Annotated[
    Shared,
    _option(
        "Rows",
        "Share strength between the maps, at no cost: clearer where they are alike; one unlike the "
        "others may be drawn towards them.",
        "--pooling",
    ),
]


class Numbers(StrEnum):
    """What the numbers of a legend are: people to a square kilometre, or shares of the map."""

    density = "density"
    share = "share"


LegendOption = Annotated[
    Numbers,
    _option("Files", "Numbers of the legend: per km² (per megapixel), or shares.", "--legend"),
]
EveryCell = Annotated[
    bool,
    _option(
        "Files",
        ".geojson has every cell as released; else few, of the smoothed map.",
        "--every-cell",
    ),
]
Overwrite = Annotated[bool, _option("Files", "Replace files that exist.", "--overwrite")]


def four_numbers(text: str) -> tuple[float, float, float, float]:
    """West, south, east, north as written with commas."""
    try:
        west, south, east, north = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidParameter(
            f"bounds are four numbers west,south,east,north, got {text!r}; nothing was read"
        ) from None
    return west, south, east, north


def keep_apart(outputs: list[Path], others: list[Path | None], rows: str) -> None:
    """Refuse outputs that would replace what a command reads: the ledger, an image, the rows."""
    from sfumato.heatmap.export import keep_apart

    keep_apart(outputs, others, rows)


def aloud(message: str) -> None:
    """What must be seen, also when quiet: on stderr."""
    say(message, quiet=False)


@contextmanager
def watching(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Say each step of a pipeline on stderr; on a terminal a clock runs beside the last one."""
    if quiet or not sys.stderr.isatty():
        yield lambda message: say(message, quiet=quiet)
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    console = Console(stderr=True)
    with Progress(SpinnerColumn(), TimeElapsedColumn(), console=console, transient=True) as clock:
        clock.add_task("", total=None)
        yield lambda message: console.print(message, markup=False, highlight=False)
