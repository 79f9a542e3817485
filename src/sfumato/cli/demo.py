"""`sfumato demo`, `sfumato demo network` and `sfumato heatmap city`: made up, and the main job done on it."""

from __future__ import annotations

import threading
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.aloud import SpokenGroup
from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.heatmap.options import four_numbers


class Family(StrEnum):
    """Kinds of made-up people."""

    town = "town"
    street = "street"
    gaze = "gaze"


app = typer.Typer(invoke_without_command=True, cls=SpokenGroup)


@app.callback()
@sentences
def demo(
    context: typer.Context,
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
    refused. `sfumato demo network` runs a network of sensors instead.
    """
    if context.invoked_subcommand is not None:
        return
    from sfumato.report import run_demo

    result = run_demo(
        out,
        epsilon=epsilon,
        watch=lambda message: say(message, quiet=quiet or json),
    )
    show(result.to_json(), f"report: {result.report}", json=json)


@app.command("network")
@sentences
def network(
    out: Annotated[
        Path | None,
        typer.Option(help="A new folder for keys, ledgers, rounds and the page; else one named by the time."),
    ] = None,
    roads: Annotated[
        bool, typer.Option("--roads", help="Sensors at crossings of streets, not in a corridor.")
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(help="Stop after so many rounds; else at Ctrl-C.", min=1)
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a network on this machine: a broker, 30 sensors, a source that walks, and a collector.

    Each sensor has its own key and ledger, pays before it draws noise, and publishes over MQTT once a second.
    What is recovered is shown beside the truth until Ctrl-C; then a page with a slider over all rounds is
    written. The budget is for a look, far too large for people.
    """
    from sfumato.cli.network.collect import demo_shown, stopped_by_signals
    from sfumato.network.demo import demo_lines, run_network_demo, started_at

    stop = threading.Event()
    with stopped_by_signals(stop), demo_shown(quiet=quiet or json) as shown:
        result = run_network_demo(
            out or Path(started_at()),
            stop=stop,
            roads=roads,
            rounds=rounds,
            shown=shown,
            watch=lambda told: say(told, quiet=quiet or json),
        )
    show(result.to_json(), demo_lines(result), json=json)


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
