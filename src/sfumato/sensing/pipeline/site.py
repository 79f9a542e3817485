"""What is public before anything is read: a site, its ledger, or one that is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._random import generator
from sfumato.errors import ExistsAlready, InvalidParameter
from sfumato.files import write_table
from sfumato.privacy import Ledger, Loss, MovedMass, SwappedCells
from sfumato.privacy.accounting import Number, exact
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.registry import operator_of_kind
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.model.site import Site, read_site
from sfumato.sensing.release.noise_plan import unit_of
from sfumato.sensing.results.release import LedgerResult, SimulationResult, SiteResult
from sfumato.sensing.tables import (
    read_graph,
    read_matrix,
    read_nodes_with_sensors,
    read_places,
    read_sensors,
)
from sfumato.spaces import Grid, Line

if TYPE_CHECKING:
    from sfumato.sensing.model.operators.protocol import Operator, SourceSpace
    from sfumato.sensing.planning.synthetic import SyntheticOptions
    from sfumato.spaces import Points


def describe_site(
    name: str,
    *,
    operator: Operator | str | None = None,
    operator_options: Mapping[str, Any] | None = None,
    sensors: Sensors | str | Path | None = None,
    line: int | Line | None = None,
    length: float = 1.0,
    grid: int | Grid | None = None,
    bounds: tuple[float, float, float, float] | None = None,
    places: Points | str | Path | None = None,
    graph: str | Path | None = None,
    largest_part: bool = False,
    matrix: str | Path | None = None,
    diffusion_time: float | None = None,
    rate: float | None = None,
    radius: Number | None = None,
    swapped: Number | None = None,
    step: Number = 0,
    unit: str = "",
    per_source: Number | None = None,
    largest: Number | None = None,
    out: str | Path | None = None,
) -> SiteResult:
    """Describe a site: where sources may be, where sensors are, how heat spreads, what is protected.

    Args:
        name: What the site is called; its ledger names it.
        operator: How sources spread to sensors; or its kind, one of `operator_kinds`, which stands on one of
            `line`, `grid`, `places`, `graph`. None is heat, or diffusion on a graph.
        operator_options: Parameters of an operator that is given by its kind, as a site file holds them.
        sensors: The sensors, or a table: sensor, x (and y; on a graph x is the node).
        line: Sources on a line, or the number of its cells.
        length: Length of the line: cells are at length/n, 2 length/n, ..., length.
        grid: Sources in a plane, or its levels: 2**grid by 2**grid cells of `bounds`.
        bounds: West, south, east and north of the plane.
        places: Sources at these places only, or a table with x and y.
        graph: Sources on a graph: an edge list with u, v (length, weight).
        largest_part: Whether to keep the largest connected part of the graph only.
        matrix: Any operator instead of heat: a .csv or .npy file, sensors by cells.
        diffusion_time: T = diffusivity times time, for heat.
        rate: Rate of diffusion on the graph.
        radius: How far mass may move without anybody telling: an earth mover's distance.
        swapped: Instead of `radius`: two adjacent cells, each up to this mass, may be swapped.
        step: The sensors' own resolution, in their unit; it costs noise.
        unit: What the sensors read in; without it nothing can be released.
        per_source: How much of it a source of mass 1 adds to a reading where the operator is 1.
        largest: How far from 0 readings go, in their unit; those further are cut.
        out: A new .json file for the site.

    Returns:
        The site, and its file.

    Raises:
        InvalidParameter: Something is missing, given twice, or contradicts the rest; nothing was built.
        InvalidInput: A file cannot be read, or `out` exists already.

    >>> from sfumato.sensing import Sensors
    >>> hall = describe_site(
    ...     "hall", line=100, sensors=Sensors([0.2, 0.5, 0.8]), diffusion_time=0.05, radius="1/100",
    ...     unit="degC", per_source=1,
    ... ).site
    >>> len(hall.sensors), hall.operator.space.size, str(hall.neighbors)
    (3, 100, "sources moved by an earth mover's distance of at most 0.01 (line)")
    """
    if out is not None and Path(out).suffix != ".json":
        raise InvalidParameter(f"a site is written to a .json file, got {out}; nothing was built")
    kind = operator if isinstance(operator, str) else None
    whole = None if isinstance(operator, str) else operator
    given = [value is not None for value in (line, grid, places, graph, whole)]
    if sum(given) != 1:
        raise InvalidParameter("say where sources may be: one of `line`, `grid`, `places`, `graph`")
    cells: tuple[str, ...] | None = None
    own = {"matrix": matrix, "diffusion_time": diffusion_time, "rate": rate}
    if kind is not None:
        other = [name for name, value in own.items() if value is not None]
        if other:
            raise InvalidParameter(
                f"an `operator` by its kind takes its parameters from `operator_options`, got `{other[0]}`; "
                "nothing was built"
            )
        space, placed, cells = _space_and_sensors(
            sensors, graph, largest_part, lambda: _ground(line, length, grid, bounds, places)
        )
        made_of = operator_of_kind(kind, operator_options or {}, space, placed)
    elif operator_options:
        raise InvalidParameter(
            "`operator_options` are of an `operator` given by its kind; nothing was built"
        )
    elif whole is not None:
        made_of = whole
    elif graph is not None:
        if matrix is not None:
            raise InvalidParameter(
                "`matrix` goes with `line`, `grid` or `places`; nothing was built"
            )
        made_of, cells = _on_graph(graph, rate, sensors, largest_part=largest_part)
    else:
        at = read_sensors(sensors) if isinstance(sensors, str | Path) else sensors
        ground = _ground(line, length, grid, bounds, places)
        if matrix is not None:
            made_of = linear(read_matrix(matrix), ground, sensors=at)
        elif at is None:
            raise InvalidParameter("say where sensors are: `sensors`; nothing was built")
        else:
            made_of = heat_from(ground, at, _given(diffusion_time, "diffusion_time"))
    made = Site(
        name,
        made_of,
        relation_of(radius, swapped, made_of),
        exact(step, name="step"),
        cells,
        unit,
        None if per_source is None else exact(per_source, name="per-source"),
        None if largest is None else exact(largest, name="largest"),
    )
    _check_places(made)
    if out is None:
        return SiteResult(made)
    made.write(out)
    return SiteResult(made, Path(out))


def open_ledger(site: Site | str | Path, file: str | Path, budget: Loss) -> LedgerResult:
    """Make the ledger of a site: its budget is for this set of sensors, and no other.

    Args:
        site: The site, or its file.
        file: A new file for the ledger.
        budget: What all readings together may cost.

    Returns:
        The ledger.

    Raises:
        InvalidInput: The file exists already, or the site cannot be read.
    """
    found = site_of(site)
    made = Ledger.create(
        Path(file),
        budget,
        unit=unit_of(found.sensors),
        source=found.name,
        neighbors=found.neighbors,
        model="local",
    )
    return LedgerResult(made)


def simulate_site(
    *,
    options: SyntheticOptions | None = None,
    site: Site | str | Path | None = None,
    sources: int | None = None,
    rng: np.random.Generator | None = None,
    folder: str | Path | None = None,
) -> SimulationResult:
    """Make up a site, sources and their exact readings: to try everything on.

    Args:
        options: What the made-up site looks like; a line of 100 cells and 50 sensors unless given.
        site: Instead: make up sources on this site, or that of a file.
        sources: How many sources, of mass 1 each: 2 unless given, on a made-up graph 1.
        rng: Where chance comes from; None means other sources each time. Nobody in a simulation is
            protected.
        folder: A new folder for site.json, readings.csv and sources.csv.

    Returns:
        The site, the sources and the readings.

    Raises:
        InvalidParameter: Options are given beside a site, or contradict each other.
        InvalidInput: The folder exists already, or the site cannot be read.
    """
    from sfumato.sensing.planning.synthetic import (
        SyntheticOptions,
        synthetic_even_site,
        synthetic_sources,
    )

    chance = rng or generator()
    chosen = SyntheticOptions() if options is None else options
    if site is None:
        made = synthetic_even_site(chosen, kind="simulated", rng=chance, undone="nothing was made")
    elif chosen.given:
        raise InvalidParameter(
            f"a site says its own `{chosen.given[0]}`; leave one out; nothing was made"
        )
    else:
        made = site_of(site)
    count = sources or (1 if site is None and chosen.on == "graph" else 2)
    truth = synthetic_sources(made.operator.space, count, rng=chance)
    read = made.operator.readings(truth) * float(made.per_source or 1)
    result = SimulationResult(made, truth, read, None if folder is None else Path(folder))
    if result.folder is not None:
        _write_simulation(result, result.folder)
    return result


def _write_simulation(result: SimulationResult, folder: Path) -> None:
    from sfumato.spaces import Graph

    made, space = result.site, result.site.operator.space
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ExistsAlready(f"{folder} exists already and is kept; choose a new folder") from None
    made.write(folder / "site.json")
    rows = zip(made.sensors.names, result.readings.tolist(), strict=True)
    write_table(folder / "readings.csv", ["sensor", "value"], rows)
    held = np.flatnonzero(result.sources)
    # A node has no coordinates; its name is its place.
    places = np.empty((held.size, 0)) if isinstance(space, Graph) else space.places(held)
    axes = list("xyz"[: places.shape[1]])
    masses = result.sources[held].tolist()
    placed = zip(map(made.cell, held.tolist()), places.tolist(), masses, strict=True)
    # The number of a cell is exact, its coordinates are for people: 3.6, not 3.5999999999999996.
    told = ((cell, *(f"{value:.12g}" for value in at), mass) for cell, at, mass in placed)
    write_table(folder / "sources.csv", ["cell", *axes, "mass"], told)


def site_of(site: Site | str | Path) -> Site:
    """A site, or that of a file."""
    return site if isinstance(site, Site) else read_site(site)


def relation_of(
    radius: Number | None, swapped: Number | None, operator: Operator
) -> MovedMass | SwappedCells:
    """Whom sources are protected against being told from: mass moved so far, or two cells swapped."""
    if (radius is None) == (swapped is None):
        raise InvalidParameter(
            "say what is protected: `radius` (mass moved so far) or `swapped`, not both"
        )
    if swapped is not None:
        return SwappedCells(swapped)
    return MovedMass(0 if radius is None else radius, operator.space.metric)


def heat_from(ground: Line | Grid | Points, sensors: Sensors, time: float) -> Operator:
    """Heat on a line or in a plane."""
    if isinstance(ground, Line):
        return heat_line(sources=ground, sensors=sensors, diffusion_time=time)
    return heat_plane(sources=ground, sensors=sensors, diffusion_time=time)


def _on_graph(
    path: str | Path,
    rate: float | None,
    sensors: Sensors | str | Path | None,
    *,
    largest_part: bool,
) -> tuple[Operator, tuple[str, ...]]:
    """Diffusion on a graph, read at every node unless sensors name some; and the names of nodes."""
    from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion

    space, names, weights = read_graph(path, largest_part=largest_part)
    speed = _given(rate, "rate")
    placed = _on_nodes(sensors, names)
    return graph_diffusion(space, speed, sensors=placed, weights=weights), names


def _on_nodes(sensors: Sensors | str | Path | None, names: tuple[str, ...]) -> Sensors:
    """Sensors on nodes: at every one of them unless some are named."""
    if sensors is None:
        return Sensors(list(range(len(names))), names)
    return sensors if isinstance(sensors, Sensors) else read_nodes_with_sensors(sensors, names)


def _space_and_sensors(
    sensors: Sensors | str | Path | None,
    graph: str | Path | None,
    largest_part: bool,
    ground: Callable[[], Line | Grid | Points],
) -> tuple[SourceSpace, Sensors, tuple[str, ...] | None]:
    """Where sources and sensors of an operator given by its kind are, and the names of nodes."""
    if graph is not None:
        space, names, _ = read_graph(graph, largest_part=largest_part)
        return space, _on_nodes(sensors, names), names
    if sensors is None:
        raise InvalidParameter("say where sensors are: `sensors`; nothing was built")
    placed = sensors if isinstance(sensors, Sensors) else read_sensors(sensors)
    return ground(), placed, None


def _ground(
    line: int | Line | None,
    length: float,
    grid: int | Grid | None,
    bounds: tuple[float, float, float, float] | None,
    places: Points | str | Path | None,
) -> Line | Grid | Points:
    if line is not None:
        return line if isinstance(line, Line) else Line(line, length)
    if grid is not None:
        if isinstance(grid, Grid):
            return grid
        if bounds is None:
            raise InvalidParameter(
                "bounds are four numbers west,south,east,north, got ''; nothing was read"
            )
        return Grid(grid, bounds)
    if isinstance(places, str | Path):
        return read_places(places)
    if places is None:
        raise InvalidParameter("say where sources may be: one of `line`, `grid`, `places`, `graph`")
    return places


def _given(value: float | None, name: str) -> float:
    if value is None:
        raise InvalidParameter(f"this site needs `{name}`; nothing was built")
    return value


def _check_places(site: Site) -> None:
    """Sensors that mostly lie where no source may be are a mistake of units."""
    places = site.sensors.positions
    if site.box is None or places.shape[1] > 2 or places.shape[1] != len(site.box[0]):
        return
    low, high = site.box
    inside = int(((places >= low) & (places <= high)).all(axis=1).sum())
    if 2 * inside < len(places):
        words = " by ".join(f"{a:g} to {b:g}" for a, b in zip(low, high, strict=True))
        number = f"only {inside} of {len(places)} sensors lie" if inside else "no sensor lies"
        raise InvalidParameter(
            f"{number} where sources may be ({words}); is `length` missing? nothing was built"
        )
