"""`sfumato sense site|ledger|simulate`: all that is public, before anything is read."""

from __future__ import annotations

import json as json_
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato._random import generator
from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.heatmap.options import four_numbers
from sfumato.cli.ledger import budget_of
from sfumato.cli.option_groups import grouped
from sfumato.cli.sense.options import (
    SensorColumn,
    SiteFile,
    SyntheticSite,
    Where,
    XColumn,
    YColumn,
)
from sfumato.errors import InvalidParameter


@sentences
def site(
    file: Annotated[
        Path, typer.Argument(help="A new .json file for the site.", show_default=False)
    ],
    name: Annotated[str, typer.Option(help="What the site is called; its ledger names it.")],
    template: Annotated[
        str,
        typer.Option(
            help="Begin with: corridor (--length, --count), floor (--sensors), amg8833 (an 8 by 8 thermal "
            "array, --height above heads), roads (--graph). Other options count instead; --beside must be "
            "said.",
            show_default=False,
        ),
    ] = "",
    count: Annotated[
        int | None, typer.Option(help="Sensors along a corridor (30).", show_default=False)
    ] = None,
    height: Annotated[
        float | None,
        typer.Option(help="Of an array above heads, in metres (1.5).", show_default=False),
    ] = None,
    radius: Annotated[
        str,
        typer.Option(
            help="How far mass may move without anybody telling: an earth mover's distance."
        ),
    ] = "",
    sensors: Annotated[
        Path | None,
        typer.Option(
            help="Table of sensors: sensor, x (and y; on a graph x is the node), or sensor, lat, lon.",
            show_default=False,
        ),
    ] = None,
    line: Annotated[int | None, typer.Option(help="Sources on a line of so many cells.")] = None,
    length: Annotated[
        float | None,
        typer.Option(
            help="Length of the line (1): cells are at length/n, 2 length/n, ..., length.",
            show_default=False,
        ),
    ] = None,
    grid: Annotated[
        int | None, typer.Option(help="Sources in a plane: 2**GRID by 2**GRID cells of --bounds.")
    ] = None,
    bounds: Annotated[
        str,
        typer.Option(help="The plane's west,south,east,north; in degrees if sensors are."),
    ] = "",
    places: Annotated[
        Path | None, typer.Option(help="Sources at these places only: table with x and y.")
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(help="Sources on a graph: edge list u, v (length, weight).")
    ] = None,
    largest_part: Annotated[
        bool, typer.Option("--largest-part", help="Keep the largest connected part of the graph.")
    ] = False,
    matrix: Annotated[
        Path | None,
        typer.Option(help="Any operator instead of heat: a .csv or .npy matrix, sensors by cells."),
    ] = None,
    operator: Annotated[
        str,
        typer.Option(
            help="How sources spread to sensors, by name; else heat, or diffusion on a graph.",
            metavar="[{operators}]",
            show_default=False,
        ),
    ] = "",
    operator_option: Annotated[
        list[str] | None,
        typer.Option(
            help="A parameter of --operator, name=value; again for more.", show_default=False
        ),
    ] = None,
    diffusion_time: Annotated[
        float | None, typer.Option(help="T = diffusivity times time, for heat.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Rate of diffusion on the graph.")] = None,
    swapped: Annotated[
        str,
        typer.Option(
            help="Instead of --radius: two adjacent cells, each up to this, may be swapped."
        ),
    ] = "",
    step: Annotated[
        str,
        typer.Option(
            help="The sensors' own resolution in their unit, e.g. 0.0625; it costs noise. 0: they do not "
            "round.",
            show_default=False,
        ),
    ] = "",
    unit: Annotated[
        str,
        typer.Option(
            help="What the sensors read in, e.g. 'degrees'; without it nothing is released."
        ),
    ] = "",
    per_source: Annotated[
        str,
        typer.Option(
            help="What a source of mass 1 adds to a reading where the operator is 1, e.g. 0.8C."
        ),
    ] = "",
    beside: Annotated[
        str,
        typer.Option(
            help="Instead: what a source adds to a sensor right where it stands, e.g. 1C."
        ),
    ] = "",
    ambient: Annotated[
        str,
        typer.Option(
            help="What sensors read where nobody is, e.g. 20C: it is taken off. In degrees one must say it."
        ),
    ] = "",
    offsets: Annotated[
        Path | None,
        typer.Option(
            help="How much more single sensors read: table of sensor, offset.", show_default=False
        ),
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(
            help="A public reference (outdoors, say) in the tables of readings, to be taken off too."
        ),
    ] = "",
    largest: Annotated[
        str,
        typer.Option(help="How far from there readings go, in their unit; those further are cut."),
    ] = "",
    sensor: SensorColumn = "sensor",
    x: XColumn = "x",
    y: YColumn = "y",
    origin: Annotated[
        str,
        typer.Option(help="Latitude,longitude of the place 0,0; else the middle of the sensors."),
    ] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Describe a site: where sources may be, where sensors are, how heat spreads, what is protected."""
    from sfumato.sensing import Columns
    from sfumato.sensing.pipeline import describe_site, site_from_template
    from sfumato.sensing.render import site_remarks

    if not template and (count is not None or height is not None):
        raise InvalidParameter("`count` and `height` are of a `template`; nothing was built")
    describe: Any = describe_site
    if template:
        describe = partial(site_from_template, template=template, count=count, height=height)
    result = describe(
        name,
        operator=operator or None,
        operator_options=dict(map(_setting, operator_option or ())),
        sensors=sensors,
        line=line,
        length=length,
        grid=grid,
        bounds=four_numbers(bounds) if bounds and grid is not None and line is None else None,
        places=places,
        graph=graph,
        largest_part=largest_part,
        matrix=matrix,
        diffusion_time=diffusion_time,
        rate=rate,
        radius=radius or None,
        swapped=swapped or None,
        step=step or None,
        unit=unit,
        per_source=per_source or None,
        beside=beside or None,
        ambient=ambient or None,
        offsets=offsets,
        baseline=baseline,
        largest=largest or None,
        columns=Columns(sensor=sensor, x=x, y=y),
        origin=_origin(origin),
        out=file,
    )
    for remark in site_remarks(result):
        say(remark, quiet=quiet or json)
    show(result.to_json(), str(file), json=json)


def _origin(text: str) -> tuple[float, float] | None:
    if not text:
        return None
    try:
        north, east = map(float, text.split(","))
    except ValueError:
        raise InvalidParameter(
            f"--origin is two numbers latitude,longitude, got {text!r}; nothing was built"
        ) from None
    return north, east


def _setting(text: str) -> tuple[str, Any]:
    """A parameter and its value: a number or a list as JSON has it, else text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidParameter(f"--operator-option is name=value, got {text!r}; nothing was built")
    try:
        return name.strip(), json_.loads(value)
    except ValueError:
        return name.strip(), value.strip()


@sentences
def ledger(
    site: SiteFile,
    file: Annotated[Path, typer.Argument(help="A new ledger file.", show_default=False)],
    epsilon: Annotated[str, typer.Option(help="Budget: total epsilon.", show_default=False)] = "",
    delta: Annotated[str, typer.Option(help="Budget: total delta.")] = "1e-5",
    rho: Annotated[str, typer.Option(help="Budget: total rho instead.", show_default=False)] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the ledger of a site: its budget is for this set of sensors, and no other."""
    from sfumato.sensing.pipeline import open_ledger
    from sfumato.sensing.render import ledger_remark

    result = open_ledger(site, file, budget_of(epsilon, "0" if rho else delta, rho))
    say(ledger_remark(result), quiet=quiet or json)
    show(result.to_json(), str(file), json=json)


@grouped
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
    *,
    made_up: SyntheticSite,
    seed: Annotated[int | None, typer.Option(help="The same site again.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make up a site, sources and their exact readings: to try everything on."""
    from sfumato.sensing.pipeline import simulate_site
    from sfumato.sensing.render import simulation_remark

    result = simulate_site(
        options=made_up.on(on),
        site=site,
        sources=sources,
        rng=generator(seed),
        folder=folder,
    )
    say(simulation_remark(result), quiet=quiet or json)
    files = result.to_json()
    show(files, "\n".join(files.values()), json=json)
