"""`sfumato sense simulate`: a site, sources and their exact readings, made up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.chance import chance
from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.sense_imagined import (
    CellsOption,
    Imagined,
    LengthOption,
    RadiusOption,
    SensorsOption,
    TimeOption,
    Where,
    imagined,
)
from sfumato.cli.sense_words import many
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import write_table

FILES = (("site", "json"), ("readings", "csv"), ("sources", "csv"))


@sentences
def simulate(
    folder: Annotated[Path, typer.Argument(help="A new folder for the files.", show_default=False)],
    on: Annotated[
        Where | None,
        typer.Option(
            help="A line (unless said), a plane, or a graph of two communities.", show_default=False
        ),
    ] = None,
    site: Annotated[
        Path | None,
        typer.Option(help="Instead: make up sources on this site of your own.", show_default=False),
    ] = None,
    sources: Annotated[
        int | None, typer.Option(help="How many sources, of mass 1 each: 2, on a graph 1.", min=1)
    ] = None,
    cells: CellsOption = None,
    sensors: SensorsOption = None,
    length: LengthOption = None,
    diffusion_time: TimeOption = None,
    radius: RadiusOption = "",
    seed: Annotated[int | None, typer.Option(help="The same site again.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make up a site, sources and their exact readings: to try everything on."""
    import numpy as np

    from sfumato.sensing import read_site, synthetic_sources
    from sfumato.sensing.recovery import places_of
    from sfumato.spaces import Graph

    rng = chance(seed)
    asked = Imagined(on, sensors, cells, diffusion_time, radius, length)
    if site is None:
        made = imagined(asked, kind="simulated", rng=rng, undone="nothing was made")
    elif asked.given:
        raise InvalidParameter(
            f"a site says its own {asked.given[0]}; leave one out; nothing was made"
        )
    else:
        made = read_site(site)
    count = sources or (1 if site is None and on is Where.graph else 2)
    space = made.operator.space
    truth = synthetic_sources(space, count, rng=rng)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InvalidInput(f"{folder} exists already and is kept; choose a new folder") from None
    made.write(folder / "site.json")
    read = made.operator.readings(truth) * float(made.per_source or 1)
    write_table(
        folder / "readings.csv",
        ["sensor", "value"],
        zip(made.sensors.names, read.tolist(), strict=True),
    )
    held = np.flatnonzero(truth)
    # A node has no coordinates; its name is its place.
    places = np.empty((held.size, 0)) if isinstance(space, Graph) else places_of(space, held)
    axes = list("xyz"[: places.shape[1]])
    placed = zip(map(made.cell, held.tolist()), places.tolist(), truth[held].tolist(), strict=True)
    # The number of a cell is exact, its coordinates are for people: 3.6, not 3.5999999999999996.
    told = ((cell, *(f"{value:.12g}" for value in at), mass) for cell, at, mass in placed)
    write_table(folder / "sources.csv", ["cell", *axes, "mass"], told)
    say(
        f"made up {many(count, 'source')} and what {many(len(made.sensors), 'sensor')} read of them",
        quiet=quiet or json,
    )
    files = {name: str(folder / f"{name}.{end}") for name, end in FILES}
    show(files, "\n".join(files.values()), json=json)
