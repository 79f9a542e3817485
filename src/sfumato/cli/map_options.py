"""What the heatmap commands ask for: columns, method, engine and files, and the values made of them."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.console import say
from sfumato.errors import InvalidInput, InvalidParameter, SfumatoError

if TYPE_CHECKING:
    from sfumato.heatmap import HeatmapRelease, Method
    from sfumato.records import Columns


class Engine(StrEnum):
    """Who counts the rows."""

    duckdb = "duckdb"
    polars = "polars"
    spark = "spark"


class Way(StrEnum):
    """Names of methods on the command line."""

    zoom = "zoom"
    pyramid = "pyramid"
    laplace = "laplace"
    top = "top"
    gaussian = "gaussian"
    coarse = "coarse"
    privtree = "privtree"
    adaptive = "adaptive"
    hierarchy = "hierarchy"


Input = Annotated[
    str,
    typer.Argument(
        help="CSV, Parquet or JSON file, a glob of them, file.duckdb::table, or a table of --connection.",
        show_default=False,
    ),
]
User = Annotated[
    str,
    typer.Option(
        help="Column that says whose row it is.",
        show_default=False,
        rich_help_panel="Rows",
        show_envvar=False,
    ),
]
X = Annotated[
    str,
    typer.Option(help="Column of longitudes, or of x.", rich_help_panel="Rows", show_envvar=False),
]
Y = Annotated[
    str,
    typer.Option(help="Column of latitudes, or of y.", rich_help_panel="Rows", show_envvar=False),
]
Weight = Annotated[
    str,
    typer.Option(
        help="Column of weights, e.g. fixation times; else every row counts 1.",
        show_default=False,
        rich_help_panel="Rows",
        show_envvar=False,
    ),
]
WeightStep = Annotated[
    str,
    typer.Option(
        help="Public lattice of the weights, e.g. 0.001 for seconds.",
        rich_help_panel="Rows",
        show_envvar=False,
    ),
]
WeightCap = Annotated[
    int,
    typer.Option(
        help="Public cap on one row's weight, in steps.", rich_help_panel="Rows", show_envvar=False
    ),
]
Alone = Annotated[
    bool,
    typer.Option(
        "--one-row-one-user",
        help="There is no user column: each row is somebody else.",
        rich_help_panel="Rows",
        show_envvar=False,
    ),
]
Epsilon = Annotated[
    str,
    typer.Option(
        help="What the map may cost: 1 is usual, less is more private.", show_default=False
    ),
]
EngineOption = Annotated[
    Engine, typer.Option(help="Who counts the rows.", rich_help_panel="Rows", show_envvar=False)
]
Connection = Annotated[
    str,
    typer.Option(
        help="Ibis or Spark address of a database; INPUT is a table in it.",
        show_default=False,
        rich_help_panel="Rows",
        show_envvar=False,
    ),
]
Delimiter = Annotated[
    str,
    typer.Option(
        help="Between the fields of a CSV file.", rich_help_panel="Rows", show_envvar=False
    ),
]
MethodOption = Annotated[
    Way,
    typer.Option(
        help="How the map is made; zoom and pyramid also say how sure they are.",
        rich_help_panel="Method",
        show_envvar=False,
    ),
]
Width = Annotated[
    int,
    typer.Option(
        help="Cells kept at each level, for the pyramid.",
        rich_help_panel="Method",
        show_envvar=False,
    ),
]
Delta = Annotated[
    str,
    typer.Option(help="Delta of the gaussian method.", rich_help_panel="Method", show_envvar=False),
]
Users = Annotated[
    int,
    typer.Option(
        help="A public guess of the number of users, for the coarse method.",
        rich_help_panel="Method",
        show_envvar=False,
    ),
]
Out = Annotated[
    list[Path],
    typer.Option(
        help="A file to write; again for more. By suffix: .png .tif .geojson .csv .h3.csv .h3.parquet .npz "
        ".html .json",
        show_default=False,
        rich_help_panel="Files",
        show_envvar=False,
    ),
]
Title = Annotated[
    str,
    typer.Option(
        help="What the map is called, in pictures and pages.",
        show_default=False,
        rich_help_panel="Files",
        show_envvar=False,
    ),
]
Top = Annotated[
    str,
    typer.Option(
        help="Per cent of the cells that the top method keeps.",
        rich_help_panel="Method",
        show_envvar=False,
    ),
]
H3 = Annotated[
    int | None,
    typer.Option(
        help="Resolution of H3 tables; else about the size of a cell.",
        min=0,
        max=15,
        rich_help_panel="Files",
        show_envvar=False,
    ),
]
Over = Annotated[
    Path | None,
    typer.Option(
        help="Draw the map over this image, in .png files.",
        show_default=False,
        rich_help_panel="Files",
        show_envvar=False,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite", help="Replace files that exist.", rich_help_panel="Files", show_envvar=False
    ),
]


def named_columns(
    user: str, x: str, y: str, weight: str, step: str, cap: int, by: str, alone: bool
) -> Columns:
    """The columns the options name."""
    from sfumato.privacy.accounting import exact
    from sfumato.records import Columns

    return Columns(
        user or None,
        x,
        y,
        weight=weight or None,
        step=exact(step, name="weight step") if step else None,
        cap=cap,
        by=by or None,
        one_row_one_user=alone,
    )


def named_method(way: Way, *, width: int, delta: str, users: int, top: str) -> Method[Any]:
    """The method the options name, with the parameters it takes."""
    from sfumato.heatmap import PyramidMethod, ZoomMethod
    from sfumato.heatmap.methods import baselines as rivals
    from sfumato.privacy.accounting import exact

    match way:
        case Way.zoom:
            return ZoomMethod()
        case Way.pyramid:
            return PyramidMethod(width=width)
        case Way.laplace:
            return rivals.FlatMethod()
        case Way.top:
            return rivals.TopMethod(share=exact(top, name="top") / 100)
        case Way.gaussian:
            return rivals.GaussianMethod(delta=exact(delta, name="delta"))
        case Way.coarse:
            return rivals.CoarseMethod(users=users)
        case Way.privtree:
            return rivals.PrivTreeMethod()
        case Way.adaptive:
            return rivals.AdaptiveGridMethod()
        case Way.hierarchy:
            return rivals.HierarchyMethod()


def write_maps(
    maps: tuple[HeatmapRelease, ...],
    targets: dict[str, list[Path]],
    films: Sequence[Path] = (),
    *,
    over: Path | None,
    h3_resolution: int | None,
    overwrite: bool,
    hush: bool,
) -> list[str]:
    """Write each map to its files, and all to each film; what is paid for is kept, whatever goes wrong."""
    from sfumato.heatmap import write_timelapse

    written = []
    work: list[tuple[Path, Callable[[], None]]] = [
        (
            path,
            partial(one.write, path, over=over, h3_resolution=h3_resolution, overwrite=overwrite),
        )
        for one in maps
        for path in targets[one.group]
    ]
    work += [(path, partial(write_timelapse, maps, path, overwrite=overwrite)) for path in films]
    if any(one.posterior is not None for one in maps):
        say("drawing, and working out how sure the map is", quiet=hush)
    for path, write in work:
        try:
            write()
        except BaseException as problem:  # an interrupt too: what is paid for is not thrown away
            rescued = _rescued(maps, path, problem)
            if isinstance(problem, Exception):
                raise rescued from problem
            say(str(rescued), quiet=False)
            raise
        say(f"wrote {path}", quiet=hush)
        written.append(str(path))
    return written


def _rescued(maps: tuple[HeatmapRelease, ...], path: Path, problem: BaseException) -> InvalidInput:
    """What was paid for is not lost with the file that could not be written."""
    kept = []
    for folder in (path.parent, Path(tempfile.gettempdir())):
        try:
            for number, one in enumerate(maps):
                name = folder / f"{path.name}.{one.receipt.entry.hash[:12]}-{number}.json"
                one.write(name)
                kept.append(str(name))
            break
        except (OSError, SfumatoError):
            kept = []
    saved = (
        f"kept in {', '.join(kept)}: draw it from there"
        if kept
        else "and it could not be kept anywhere"
    )
    return InvalidInput(
        f"could not write {path} ({str(problem) or type(problem).__name__}); the map is paid for, {saved}"
    )


def keep_apart(outputs: list[Path], others: list[Path | None], rows: str) -> None:
    """Refuse outputs that would replace what a command reads: the ledger, an image, the rows themselves."""
    read = [
        Path(rows),
        *map(Path, glob.glob(rows, recursive=True)),
        *(one for one in others if one),
    ]
    places = {path.resolve() for path in read}
    for path in outputs:
        if path.resolve() in places or path.resolve().parent == Path(rows).resolve():
            raise InvalidParameter(
                f"{path} must not replace the ledger, an image or rows that are read; nothing was charged"
            )
