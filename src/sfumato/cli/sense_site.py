"""`sfumato sense site|ledger`: all that is public, before anything is read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.heatmap_options import four_numbers
from sfumato.cli.ledger import budget_of
from sfumato.cli.sense_files import column, numbers, read_graph, read_rows, read_sensors
from sfumato.errors import InvalidInput, InvalidParameter

if TYPE_CHECKING:
    from sfumato.privacy import ZCDP, ApproxDP, Loss, MovedMass, SwappedCells
    from sfumato.sensing import NoisePlan, Operator, Sensors, Site
    from sfumato.spaces import Graph, Grid, Line, Points

SiteFile = Annotated[
    Path,
    typer.Argument(
        help="The site, as `sense site` or `sense simulate` wrote it.", show_default=False
    ),
]
Epsilon = Annotated[
    str, typer.Option(help="What one reading of all sensors may cost.", show_default=False)
]
Delta = Annotated[str, typer.Option(help="And its delta.")]
Rho = Annotated[
    str,
    typer.Option(
        help="Its cost in rho of zCDP instead: better for many readings.", show_default=False
    ),
]


class Calibrations(StrEnum):
    """How wide the noise is."""

    analytic = "analytic"
    papers = "papers"


CalibrationOption = Annotated[
    Calibrations,
    typer.Option(
        help="The least noise that keeps the promise, or the papers' formula, to reproduce them."
    ),
]


@sentences
def site(
    file: Annotated[
        Path, typer.Argument(help="A new .json file for the site.", show_default=False)
    ],
    name: Annotated[str, typer.Option(help="What the site is called; its ledger names it.")],
    radius: Annotated[
        str,
        typer.Option(
            help="How far mass may move without anybody telling: an earth mover's distance."
        ),
    ] = "",
    sensors: Annotated[
        Path | None,
        typer.Option(
            help="Table of sensors: sensor, x (and y; on a graph x is the node).",
            show_default=False,
        ),
    ] = None,
    line: Annotated[int | None, typer.Option(help="Sources on a line of so many cells.")] = None,
    length: Annotated[
        float,
        typer.Option(help="Length of the line: cells are at length/n, 2 length/n, ..., length."),
    ] = 1.0,
    grid: Annotated[
        int | None, typer.Option(help="Sources in a plane: 2**GRID by 2**GRID cells of --bounds.")
    ] = None,
    bounds: Annotated[str, typer.Option(help="The plane's west,south,east,north.")] = "",
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
            help="The sensors' own resolution in their unit, e.g. 0.0625; it costs noise."
        ),
    ] = "0",
    unit: Annotated[
        str,
        typer.Option(
            help="What the sensors read in, e.g. 'degrees'; without it nothing is released."
        ),
    ] = "",
    per_source: Annotated[
        str,
        typer.Option(
            help="How much of it a source of mass 1 adds to a reading where the operator is 1."
        ),
    ] = "",
    largest: Annotated[
        str, typer.Option(help="How far from 0 readings go, in their unit; those further are cut.")
    ] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Describe a site: where sources may be, where sensors are, how heat spreads, what is protected."""
    from sfumato.privacy.accounting import exact
    from sfumato.sensing import Site, graph_diffusion

    if file.suffix != ".json":
        raise InvalidParameter(f"a site is written to a .json file, got {file}; nothing was built")
    kinds = [line is not None, grid is not None, places is not None, graph is not None]
    if sum(kinds) != 1:
        raise InvalidParameter("say where sources may be: one of --line, --grid, --places, --graph")
    cells: tuple[str, ...] | None = None
    operator: Operator
    if graph is not None:
        if matrix is not None:
            raise InvalidParameter(
                "--matrix goes with --line, --grid or --places; nothing was built"
            )
        space, cells, weights = read_graph(graph, largest_part=largest_part)
        operator = graph_diffusion(
            space, _needed(rate, "--rate"), sensors=_on_nodes(sensors, cells), weights=weights
        )
    else:
        placed = None if sensors is None else read_sensors(sensors)
        ground = _ground(line, length, grid, bounds, places)
        if matrix is not None:
            operator = _matrix(matrix, ground, placed)
        elif placed is None:
            raise InvalidParameter("say where sensors are: --sensors TABLE; nothing was built")
        else:
            operator = _heat(ground, placed, _needed(diffusion_time, "--diffusion-time"))
    relation = _relation(radius, swapped, operator)
    made = Site(
        name,
        operator,
        relation,
        exact(step, name="step"),
        cells,
        unit,
        exact(per_source, name="per-source") if per_source else None,
        exact(largest, name="largest") if largest else None,
    )
    where = _extent(made)
    made.write(file)
    say(
        f"a site of {len(made.sensors)} sensors and {operator.space.size} cells{where}: {file}",
        quiet=quiet or json,
    )
    if not unit:
        say(
            "it can be planned with, not released from: that takes --unit and --per-source",
            quiet=quiet or json,
        )
    show({"site": str(file), "set": made.sensors.digest}, str(file), json=json)


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
    from sfumato.privacy import Ledger
    from sfumato.sensing import read_site, unit_of

    found = read_site(site)
    made = Ledger.create(
        file,
        budget_of(epsilon, "0" if rho else delta, rho),
        unit=unit_of(found.sensors),
        source=found.name,
        neighbors=found.neighbors,
        model="local",
    )
    say(f"made {file} with {made.header.budget} for each {made.header.unit}", quiet=quiet or json)
    show({"ledger": str(file), **made.header.to_json()}, str(file), json=json)


def reading_loss(epsilon: str, delta: str, rho: str) -> ZCDP | ApproxDP:
    """What one reading may cost, as asked for."""
    from sfumato.privacy import ZCDP, ApproxDP

    if not epsilon and not rho:
        raise InvalidParameter(
            "say what one reading costs: --epsilon with --delta, or --rho (or, to release, a --share of the "
            "ledger); nothing was charged"
        )
    asked: Loss = budget_of(epsilon, "0" if rho else delta, rho)
    if not isinstance(asked, ZCDP | ApproxDP):
        raise InvalidParameter(
            "sensors add Gaussian noise, which needs --delta above 0; nothing was planned"
        )
    return asked


def planned_noise(site: Site, loss: ZCDP | ApproxDP, calibration: Calibrations) -> NoisePlan:
    """The plan of a site for a loss."""
    from sfumato.sensing import plan as plan_site

    return plan_site(site, loss, calibration=calibration.value)


def _relation(radius: str, swapped: str, operator: Operator) -> MovedMass | SwappedCells:
    from sfumato.privacy import MovedMass, SwappedCells

    if bool(radius) == bool(swapped):
        raise InvalidParameter(
            "say what is protected: --radius (mass moved so far) or --swapped, not both"
        )
    return SwappedCells(swapped) if swapped else MovedMass(radius, operator.space.metric)


def _extent(site: Site) -> str:
    """Where sources may be, in words; sensors that all lie elsewhere are a mistake of units."""
    from sfumato.spaces import Grid, Line

    space = site.operator.space
    if not isinstance(space, Line | Grid) or site.sensors.positions.shape[1] > 2:
        return ""
    if isinstance(space, Line):
        low, high = [min(0.0, float(space.positions[0]))], [float(space.positions[-1])]
    else:
        low, high = list(space.bounds[:2]), list(space.bounds[2:])
    places = site.sensors.positions
    if places.shape[1] != len(low):
        return ""
    words = " by ".join(f"{a:g} to {b:g}" for a, b in zip(low, high, strict=True))
    inside = int(((places >= low) & (places <= high)).all(axis=1).sum())
    if 2 * inside < len(places):
        number = f"only {inside} of {len(places)} sensors lie" if inside else "no sensor lies"
        raise InvalidParameter(
            f"{number} where sources may be ({words}); is --length missing? nothing was built"
        )
    return f" at {words}"


def _needed(value: float | None, name: str) -> float:
    if value is None:
        raise InvalidParameter(f"this site needs {name}; nothing was built")
    return value


def _on_nodes(path: Path | None, names: tuple[str, ...]) -> Sensors:
    """Sensors on a graph: named after their nodes, or a table whose x is the name of a node."""
    from sfumato.sensing import Sensors

    if path is None:
        return Sensors(list(range(len(names))), names)
    rows = read_rows(path)
    number = {name: i for i, name in enumerate(names)}
    nodes = []
    for name in map(str, column(rows, "x", path)):
        if name not in number:
            raise InvalidInput(f"the graph has no node {name!r}; nothing was built")
        nodes.append(number[name])
    return Sensors(nodes, map(str, column(rows, "sensor", path)))


def _ground(
    line: int | None, length: float, grid: int | None, bounds: str, places: Path | None
) -> Line | Grid | Points:
    from sfumato.spaces import Grid, Line

    if line is not None:
        return Line(line, length)
    if grid is not None:
        return Grid(grid, four_numbers(bounds))
    if places is not None:
        return _places(places)
    raise InvalidParameter("say where sources may be: one of --line, --grid, --places, --graph")


def _heat(ground: Line | Grid | Points, sensors: Sensors, time: float) -> Operator:
    from sfumato.sensing import heat_line, heat_plane
    from sfumato.spaces import Line

    if isinstance(ground, Line):
        return heat_line(sources=ground, sensors=sensors, diffusion_time=time)
    return heat_plane(sources=ground, sensors=sensors, diffusion_time=time)


def _places(path: Path) -> Points:
    from sfumato.spaces import Points

    rows = read_rows(path)
    return Points(list(zip(numbers(rows, "x", path), numbers(rows, "y", path), strict=True)))


def _matrix(path: Path, space: Line | Grid | Points | Graph, sensors: Sensors | None) -> Operator:
    import numpy as np

    from sfumato.sensing import linear

    try:
        if path.suffix == ".npy":
            read = np.load(path)
        else:
            # Line by line, because an empty file is a warning of loadtxt, not an error.
            lines = path.read_text(encoding="utf-8-sig").splitlines()
            read = np.array(
                [[float(entry) for entry in line.split(",")] for line in lines if line.strip()]
            )
    except (OSError, EOFError, ValueError):
        raise InvalidInput(f"{path} is not a matrix in .npy or .csv; nothing was built") from None
    return linear(read, space, sensors=sensors)
