"""`sfumato demo` and `sfumato heatmap city`: people made up, and the main job done on them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.heatmap.options import four_numbers


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
    from sfumato.report import run_demo

    result = run_demo(
        out,
        epsilon=epsilon,
        watch=lambda message: say(message, quiet=quiet or json),
    )
    show(result.to_json(), f"report: {result.report}", json=json)


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
    bounds: Annotated[
        str, typer.Option(help="Where: west,south,east,north.")
    ] = "11.2,43.74,11.32,43.81",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make up a city: check-ins of people who do not exist, to try everything on."""
    from sfumato.heatmap.benchmark import write_city

    box = four_numbers(bounds)
    written = write_city(file, users=users, family=family.value, bounds=box)
    say(f"made up {users:,} people", quiet=quiet or json)
    show(written.to_json(), written.written, json=json)
