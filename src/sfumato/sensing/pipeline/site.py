"""What is public before anything is read: a site, its ledger, or one that is made up."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._random import generator
from sfumato.errors import InvalidParameter
from sfumato.files import new_folder, write_table
from sfumato.privacy import Ledger, Loss, MovedMass, SwappedCells
from sfumato.privacy.accounting import Number
from sfumato.sensing.model.level import level_of, with_unit
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.registry import operator_of_kind
from sfumato.sensing.model.operators.weighted import without_gains
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.model.site import Site, read_site
from sfumato.sensing.model.site_templates import template_arguments
from sfumato.sensing.pipeline.ground import (
    added,
    bounds_in_metres,
    check_places,
    given_or_refused,
    ground_of,
    heat_from,
    on_graph,
    placed,
    space_and_sensors,
)
from sfumato.sensing.release.noise_plan import unit_of
from sfumato.sensing.results.release import LedgerResult, SimulationResult, SiteResult
from sfumato.sensing.table_form import Columns
from sfumato.sensing.tables import (
    read_matrix,
    read_offsets,
    read_sensors,
)
from sfumato.spaces import Grid, Line

if TYPE_CHECKING:
    from sfumato.sensing.model.operators.protocol import Operator
    from sfumato.sensing.planning.synthetic import SyntheticOptions
    from sfumato.spaces import Points


def describe_site(
    name: str,
    *,
    operator: Operator | str | None = None,
    operator_options: Mapping[str, Any] | None = None,
    sensors: Sensors | str | Path | None = None,
    line: int | Line | None = None,
    length: float | None = None,
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
    step: Number | None = None,
    unit: str = "",
    per_source: Number | None = None,
    beside: Number | None = None,
    ambient: Number | None = None,
    offsets: Mapping[str, Number] | str | Path | None = None,
    baseline: str = "",
    largest: Number | None = None,
    columns: Columns | None = None,
    origin: tuple[float, float] | None = None,
    out: str | Path | None = None,
) -> SiteResult:
    """Describe a site: where sources may be, where sensors are, how heat spreads, what is protected.

    Args:
        name: What the site is called; its ledger names it.
        operator: How sources spread to sensors; or its kind, one of `operator_kinds`, which stands on one of
            `line`, `grid`, `places`, `graph`. None is heat, or diffusion on a graph.
        operator_options: Parameters of an operator that is given by its kind, as a site file holds them.
        sensors: The sensors, or a table: sensor, x (and y; on a graph x is the node); or sensor, lat, lon,
            of which metres are made.
        line: Sources on a line, or the number of its cells.
        length: Length of the line: cells are at length/n, 2 length/n, ..., length; 1 unless given.
        grid: Sources in a plane, or its levels: 2**grid by 2**grid cells of `bounds`.
        bounds: West, south, east and north of the plane; in degrees where sensors are.
        places: Sources at these places only, or a table with x and y.
        graph: Sources on a graph: an edge list with u, v (length, weight).
        largest_part: Whether to keep the largest connected part of the graph only.
        matrix: Any operator instead of heat: a .csv or .npy file, sensors by cells.
        diffusion_time: T = diffusivity times time, for heat.
        rate: Rate of diffusion on the graph.
        radius: How far mass may move without anybody telling: an earth mover's distance.
        swapped: Instead of `radius`: two adjacent cells, each up to this mass, may be swapped.
        step: The sensors' own resolution, in their unit; it costs noise. 0 says that they do not round, None
            that nobody said: they are then taken not to, and the result has it (`step_given`).
        unit: What the sensors read in; without it nothing can be released.
        per_source: How much of it a source of mass 1 adds to a reading where the operator is 1; it may carry
            the unit, "0.8C".
        beside: Instead of `per_source`: how much it adds to a sensor right where it stands.
        ambient: What all sensors read where nobody is, which is taken off; in degrees one must say it.
        offsets: How much more single sensors read there, by name; or a table of sensor, offset.
        baseline: The name of a public reference, outdoors say, that is in the tables of readings (no sensor of
            the site): what it reads at a time is taken off too.
        largest: How far from that level readings go, in their unit; those further are cut.
        columns: What the columns of the table of sensors are called.
        origin: Latitude and longitude of the place 0, 0; the middle of the sensors unless given.
        out: A new .json file for the site.

    Returns:
        The site, and its file.

    Raises:
        InvalidParameter: Something is missing, given twice, or contradicts the rest; nothing was built.
        InvalidInput: A file cannot be read, or `out` exists already.

    >>> from sfumato.sensing import Sensors
    >>> hall = describe_site(
    ...     "hall", line=100, sensors=Sensors([0.2, 0.5, 0.8]), diffusion_time=0.05, radius="1/100",
    ...     beside="1C", ambient="20C",
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
    if length is not None and line is None:
        raise InvalidParameter("`length` is of a `line`; a plane has `bounds`; nothing was built")
    sensors, start = placed(sensors, columns, origin, graph=graph is not None)
    if start is not None and bounds is not None:
        bounds = bounds_in_metres(bounds, start)
    cells: tuple[str, ...] | None = None
    own = {"matrix": matrix, "diffusion_time": diffusion_time, "rate": rate}
    if kind is not None:
        other = [name for name, value in own.items() if value is not None]
        if other:
            raise InvalidParameter(
                f"an `operator` by its kind takes its parameters from `operator_options`, got `{other[0]}`; "
                "nothing was built"
            )
        space, read, cells = space_and_sensors(
            sensors,
            graph,
            largest_part,
            lambda: ground_of(line, length, grid, bounds, places, sensors),
        )
        made_of = operator_of_kind(kind, operator_options or {}, space, read)
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
        made_of, cells = on_graph(graph, rate, sensors, largest_part=largest_part)
    else:
        at = read_sensors(sensors) if isinstance(sensors, str | Path) else sensors
        ground = ground_of(line, length, grid, bounds, places, sensors)
        if matrix is not None:
            made_of = linear(read_matrix(matrix), ground, sensors=at)
        elif at is None:
            raise InvalidParameter("say where sensors are: `sensors`; nothing was built")
        else:
            made_of = heat_from(ground, at, given_or_refused(diffusion_time, "diffusion_time"))
    adds, unit = added(per_source, beside, unit, made_of)
    given_offsets = read_offsets(offsets) if isinstance(offsets, str | Path) else offsets
    level, unit = level_of(ambient, given_offsets, baseline, unit)
    made = Site(
        name,
        made_of,
        relation_of(radius, swapped, made_of),
        with_unit(step, "step", unit)[0] or Fraction(0),
        cells,
        unit,
        adds,
        with_unit(largest, "largest", unit)[0],
        level,
        start,
    )
    check_places(made)
    if out is not None:
        made.write(out)
    return SiteResult(made, None if out is None else Path(out), step_given=step is not None)


def site_from_template(
    name: str,
    template: str,
    *,
    length: float | None = None,
    count: int | None = None,
    height: float | None = None,
    **given: Any,
) -> SiteResult:
    """Describe a site that many have: a corridor, a floor, a thermal array on a ceiling, roads.

    A template places sensors and says how heat spreads, in metres and degrees Celsius; whatever is given
    beside it counts instead. What a source adds to a reading (`beside` or `per_source`) must be given: noise
    follows from it.

    Args:
        name: What the site is called; its ledger names it.
        template: "corridor": `count` sensors along `length`. "floor": at the places of `sensors`. "amg8833":
            the 8 by 8 pixels of a Grid-EYE, `height` above heads. "roads": on a `graph`, its largest part.
        length: Of a corridor, in metres; 30 unless given.
        count: Sensors of a corridor; 30 unless given.
        height: Of an array above heads, in metres; 1.5 unless given.
        given: Other parameters of `describe_site`.

    Returns:
        The site, and its file.

    Raises:
        InvalidParameter: There is no such template, or something contradicts it; nothing was built.
        InvalidInput: A file cannot be read, or `out` exists already.

    >>> array = site_from_template("desk", "amg8833", beside="2C").site
    >>> len(array.sensors), array.sensors.names[9], str(array.step)
    (64, 'r1c1', '1/4')
    """
    said = {key: value for key, value in given.items() if value not in (None, "", False, {})}
    if template == "floor" and isinstance(said.get("sensors"), str | Path):
        said["sensors"], origin = placed(
            said["sensors"], said.pop("columns", None), said.get("origin"), graph=False
        )
        if isinstance(said["sensors"], str | Path):
            said["sensors"] = read_sensors(said["sensors"])
        if origin is not None:
            raise InvalidParameter(
                "the template floor takes places in metres; with latitudes give `bounds` and no template; "
                "nothing was built"
            )
    found = template_arguments(
        template, length=length, count=count, height=height, sensors=said.get("sensors")
    )
    if length is not None:
        found["length"] = length
    if said.get("swapped") is not None:
        found.pop("radius", None)
    return describe_site(name, **(found | said))


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
    read = without_gains(made.operator).readings(truth) * float(made.per_source or 1)
    if made.level is not None:
        read = read + np.array(list(map(float, made.level.of(made.sensors.names, 0.0))))
    result = SimulationResult(made, truth, read, None if folder is None else Path(folder))
    if result.folder is not None:
        _write_simulation(result, result.folder)
    return result


def _write_simulation(result: SimulationResult, folder: Path) -> None:
    from sfumato.spaces import Graph

    made, space = result.site, result.site.operator.space
    new_folder(folder)
    made.write(folder / "site.json")
    rows = [*zip(made.sensors.names, result.readings.tolist(), strict=True)]
    if made.level is not None and made.level.running:
        rows.append((made.level.running, 0.0))
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
