"""`sfumato demo`, `sfumato demo network` and `sfumato heatmap city`: made up, and the main job done on it."""

from __future__ import annotations

import threading
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.endings import stopped_by_signals
from sfumato.cli.heatmap.options import four_numbers
from sfumato.errors import InvalidParameter


class Family(StrEnum):
    """Kinds of made-up people."""

    town = "town"
    street = "street"
    gaze = "gaze"


class Shown(StrEnum):
    """What there is to look at."""

    map = "map"
    network = "network"


@sentences
def demo(
    what: Annotated[
        Shown,
        typer.Argument(help="A private map with its report, or a running network of sensors."),
    ] = Shown.map,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for all files; `demo`, or for the network a new one named by the time.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="What the map may cost; 1 unless said.", show_default=False)
    ] = None,
    roads: Annotated[
        bool,
        typer.Option("--roads", help="For the network: sensors at crossings, not in a corridor."),
    ] = False,
    rounds: Annotated[
        int | None,
        typer.Option(help="For the network: stop after so many rounds; else at Ctrl-C.", min=1),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release a private map of a synthetic city, recover sources from private sensors, and draw it all.

    Each run makes a new city and new sources, so it starts new ledgers in the folder and replaces
    the files of the demo before, without --overwrite. A folder with ledgers of other sources is
    refused. `demo network` runs a broker, 30 sensors with keys and ledgers, a source that walks and a
    collector, shows what is recovered beside the truth, and writes a page when Ctrl-C ends it.
    """
    if what is Shown.network:
        if epsilon is not None:
            raise InvalidParameter("`epsilon` is of the map; nothing was started")
        _network(out, roads=roads, rounds=rounds, json=json, quiet=quiet)
        return
    if roads or rounds is not None:
        raise InvalidParameter("`roads` and `rounds` are of `demo network`; nothing was started")
    from sfumato.report import run_demo

    result = run_demo(
        out or Path("demo"),
        epsilon="1" if epsilon is None else epsilon,
        watch=lambda message: say(message, quiet=quiet or json),
    )
    show(result.to_json(), f"report: {result.report}", json=json)


def _network(out: Path | None, *, roads: bool, rounds: int | None, json: bool, quiet: bool) -> None:
    from sfumato.cli.network.collect import demo_shown
    from sfumato.network import demo_lines, run_network_demo, started_at

    stop = threading.Event()
    with stopped_by_signals(stop.set), demo_shown(quiet=quiet or json) as shown:
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
