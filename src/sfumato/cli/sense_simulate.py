"""`sfumato sense simulate`: a site, sources and their exact readings, made up."""

from __future__ import annotations

import csv
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.chance import chance
from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.errors import InvalidInput, InvalidParameter

if TYPE_CHECKING:
    from sfumato.sensing import Operator, Site

FILES = (("site", "json"), ("readings", "csv"), ("sources", "csv"))


class Where(StrEnum):
    """What a made-up site looks like."""

    line = "line"
    plane = "plane"
    graph = "graph"


@sentences
def simulate(
    folder: Annotated[Path, typer.Argument(help="A new folder for the files.", show_default=False)],
    on: Annotated[Where, typer.Option(help="A line, a plane, or a graph of two communities.")] = Where.line,
    site: Annotated[
        Path | None,
        typer.Option(help="Instead: make up sources on this site of your own.", show_default=False),
    ] = None,
    sources: Annotated[
        int | None, typer.Option(help="How many sources, of mass 1 each: 2, on a graph 1.", min=1)
    ] = None,
    cells: Annotated[
        int | None, typer.Option(help="Cells on the line (100), nodes of the graph (200).", min=2)
    ] = None,
    sensors: Annotated[
        int | None, typer.Option(help="Sensors (50); on the graph every node has one.", min=1)
    ] = None,
    diffusion_time: Annotated[
        float | None, typer.Option(help="T: 0.05 on the line, 0.01 in the plane; rate on the graph: 0.5.")
    ] = None,
    radius: Annotated[
        str, typer.Option(help="How far mass may move without anybody telling: 1/100, on the graph 1/8.")
    ] = "",
    seed: Annotated[int | None, typer.Option(help="The same site again.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make up a site, sources and their exact readings: to try everything on."""
    import numpy as np

    from sfumato.sensing import made_up_sources, read_site

    rng = chance(seed)
    if site is not None and (cells or diffusion_time or radius or sensors is not None):
        raise InvalidParameter("--site says its own cells, sensors, time and radius; nothing was made")
    made = (
        _made_up(on, cells, sensors or 50, diffusion_time, radius, rng) if site is None else read_site(site)
    )
    count = sources or (1 if site is None and on is Where.graph else 2)
    truth = made_up_sources(made.operator.space, count, rng=rng)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InvalidInput(f"{folder} exists already and is kept; choose a new folder") from None
    made.write(folder / "site.json")
    read = made.operator.readings(truth)
    _table(folder / "readings.csv", ["sensor", "value"], zip(made.sensors.names, read.tolist(), strict=True))
    cell_masses = ((made.cell(int(i)), truth[i]) for i in np.flatnonzero(truth))
    _table(folder / "sources.csv", ["cell", "mass"], cell_masses)
    say(f"made up {count} sources and what {len(made.sensors)} sensors read of them", quiet=quiet or json)
    files = {name: str(folder / f"{name}.{end}") for name, end in FILES}
    show(files, "\n".join(files.values()), json=json)


def _made_up(on: Where, cells: int | None, sensors: int, time: float | None, radius: str, rng: Any) -> Site:
    import numpy as np

    from sfumato.privacy import MovedMass
    from sfumato.sensing import Site, block_graph, graph_diffusion, heat_line, heat_plane
    from sfumato.spaces import Grid

    operator: Operator
    match on:
        case Where.line:
            operator = heat_line(
                sources=cells or 100, sensors=sensors, diffusion_time=0.05 if time is None else time
            )
        case Where.plane:
            side = max(1, round(float(np.sqrt(sensors))))
            middle = (np.arange(side) + 0.5) / side
            places = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
            operator = heat_plane(
                sources=Grid(5), sensors=places, diffusion_time=0.01 if time is None else time
            )
        case Where.graph:
            half, size = (cells or 200) // 2, cells or 200
            graph, _ = block_graph([half, size - half], inside=0.2, across=0.002, rng=rng)
            operator = graph_diffusion(graph, 0.5 if time is None else time)
    reach = radius or ("1/8" if on is Where.graph else "1/100")
    return Site(f"simulated {on.value}", operator, MovedMass(reach, operator.space.metric))


def _table(path: Path, header: list[str], rows: Any) -> None:
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
