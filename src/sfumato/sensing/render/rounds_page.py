"""Recovered rounds as a page with a slider, over the site or a floor plan of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.figures import PageRound, RoundsPage, graph_layout, rounds_page
from sfumato.files import NO_PLAN, FloorPlan
from sfumato.sensing.recovery.answer import on_cells
from sfumato.sensing.render.figure import node_positions
from sfumato.sensing.render.rounds import missing_words, round_words
from sfumato.spaces import Graph, Grid, Line, Points

if TYPE_CHECKING:
    from sfumato.sensing.model.site import Site
    from sfumato.sensing.results.recovered_rounds import RecoveredRound, RecoveredRounds


def draw_rounds(
    result: RecoveredRounds,
    *,
    plan: FloorPlan = NO_PLAN,
    layout: str | Path | Mapping[str, tuple[float, float]] | None = None,
) -> bytes:
    """Draw recovered rounds as one HTML page with a slider; it is whole in itself and fetches nothing.

    On a line the floor plan lies such that the line is its axis y = 0.

    Args:
        result: Recovered rounds.
        plan: A floor plan, from `read_floor_plan`.
        layout: On a graph: where to draw the nodes, a table of node, x, y, or a mapping.

    Returns:
        The bytes of an HTML file.

    Raises:
        InvalidParameter: If places have more than two coordinates.
    """
    site = result.site
    space = site.operator.space
    cells = cell_places(site, layout)
    sensors = site.sensors.positions
    edges: IntArray | None = None
    if isinstance(space, Graph):
        sensors, edges = cells[sensors[:, 0].astype(np.int64)], space.edges
    elif isinstance(space, Line):
        sensors = np.column_stack([sensors[:, 0], np.zeros(len(sensors))])
    kinds: dict[type, Literal["line", "graph"]] = {Line: "line", Graph: "graph"}
    near = {}
    if isinstance(space, Graph):
        for one in result.rounds:
            for region in () if one.recovery is None else one.recovery.regions:
                node = int(region.place[0])
                if (node, region.radius) not in near:
                    held = space.distances_from(node) <= region.radius
                    near[node, region.radius] = np.flatnonzero(held)
    page = RoundsPage(
        title=f"{site.name}: recovered sources",
        statement=result.statement,
        facts=_facts(result, plan),
        cells=cells,
        cell_size=_cell_size(space),
        sensors=sensors,
        sensor_names=site.sensors.names,
        kind=kinds.get(type(space), "plane"),
        norm="l1" if space.metric.endswith("l1") else "euclidean",
        edges=edges,
        near=near,
        image=plan.image_uri(),
        image_bounds=plan.bounds,
        lines=plan.lines,
        rehearsal=result.rehearsal,
    )
    return rounds_page(
        page, [_round(one, number, site) for number, one in enumerate(result.rounds, 1)]
    )


def cell_places(
    site: Site, layout: str | Path | Mapping[str, tuple[float, float]] | None = None
) -> FloatArray:
    """Where to draw each cell, x and y; on a line y is 0."""
    space = site.operator.space
    if isinstance(space, Graph):
        names = tuple(map(site.cell, range(space.size)))
        at = node_positions(layout, names)
        return graph_layout(space) if at is None else at
    places = space.places(np.arange(space.size))
    if places.shape[1] > 2:
        raise InvalidParameter(
            f"a page shows one or two coordinates, the site has {places.shape[1]}; nothing was drawn"
        )
    return places if places.shape[1] == 2 else np.column_stack([places, np.zeros(len(places))])


def _cell_size(space: Line | Grid | Graph | Points) -> tuple[float, float]:
    if not isinstance(space, Grid):
        return 0.0, 0.0
    west, south, east, north = space.bounds
    return (east - west) / space.side, (north - south) / space.side


def _round(one: RecoveredRound, number: int, site: Site) -> PageRound:
    readings = np.full(len(site.sensors), np.nan)
    found = one.recovery
    masses = None
    if found is not None:
        at = {name: index for index, name in enumerate(site.sensors.names)}
        readings[[at[name] for name in found.names]] = found.certificate.readings
        if found.answer is not None:
            masses = on_cells(site.operator, found.answer.estimate)
    words = round_words(one, site)
    gaps = missing_words(one)
    return PageRound(
        one.time or f"round {number}",
        masses,
        []
        if found is None
        else [(part.place, part.radius, part.probability) for part in found.regions],
        readings,
        one.total,
        masses is not None,
        f"{words} ({gaps})" if gaps else words,
    )


def _facts(result: RecoveredRounds, plan: FloorPlan) -> list[tuple[str, str]]:
    rounds = result.rounds
    first, last = rounds[0].time, rounds[-1].time
    found = [one.recovery for one in rounds if one.recovery is not None]
    names = sorted({one.answer.estimator for one in found if one.answer is not None})
    promises = list(dict.fromkeys(one.statement for one in found))
    return [
        ("rounds", f"{len(rounds)}" + (f", {first} to {last}" if first and last else "")),
        ("each reading", "; or ".join(promises)),
        *([("estimator", ", ".join(names))] if names else []),
        ("sensors", str(len(result.site.sensors))),
        *((f"floor plan {name}, public", f"sha256 {digest}") for name, digest in plan.files),
    ]
