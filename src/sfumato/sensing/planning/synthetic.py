"""Made-up sites and sources, to try everything on: nobody in them exists."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.privacy import MovedMass, SwappedCells
from sfumato.privacy.accounting import Number, exact
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.places import even_nodes, even_places
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.reading_unit import SOURCES
from sfumato.sensing.model.site import Site
from sfumato.spaces import Graph, Grid, Line, Points

Ground = Literal["line", "plane", "graph"]


@dataclass(frozen=True, slots=True)
class SyntheticOptions:
    """What a made-up site looks like; what is None is as usual.

    Attributes:
        on: A line (unless given), a plane, or a graph of two communities.
        sensors: Sensors: 50, in the plane 49, on the graph one at every node.
        cells: Cells of the line (100), nodes of the graph (200); the plane has 32 by 32.
        diffusion_time: T: 0.05 of the length squared on the line, 0.01 in the plane; rate 0.5 on the graph.
        radius: How far mass may move without anybody telling: 1/100 of the length, on the graph 1/8.
        length: Length of the line (1).
    """

    on: Ground | None = None
    sensors: int | None = None
    cells: int | None = None
    diffusion_time: float | None = None
    radius: Number | None = None
    length: float | None = None

    @property
    def given(self) -> list[str]:
        """The names of the options that were given: a site has its own."""
        names = ("on", "sensors", "cells", "length", "diffusion_time", "radius")
        return [name for name in names if getattr(self, name) is not None]


def synthetic_even_site(
    options: SyntheticOptions, *, kind: str, rng: np.random.Generator, undone: str
) -> Site:
    """An even site, made up to plan or to simulate on.

    `kind` is the first word of its name, "planned line"; `undone` ends messages: "nothing was planned". Only
    the edges of a graph are drawn from `rng`.
    """
    on = options.on or "line"
    if options.length is not None and on != "line":
        raise InvalidParameter(f"`length` is of a line, got a {on}; {undone}")
    if options.cells is not None and on == "plane":
        raise InvalidParameter(f"a plane has 32 by 32 cells, got `cells`; {undone}")
    length = 1.0 if options.length is None else options.length
    count = options.sensors or (49 if on == "plane" else 50)  # 7 by 7
    time = options.diffusion_time
    operator: Operator
    match on:
        case "line":
            operator = heat_line(
                sources=options.cells or 100,
                sensors=count,
                # Heat spreads as the root of T: on a line twice as long, four times as much looks
                # the same.
                diffusion_time=0.05 * length**2 if time is None else time,
                length=length,
            )
        case "plane":
            places = even_places(count, np.zeros(2), np.ones(2))
            operator = heat_plane(
                sources=Grid(5), sensors=places, diffusion_time=0.01 if time is None else time
            )
        case "graph":
            size = options.cells or 200
            graph, _ = block_graph([size // 2, size - size // 2], inside=0.2, across=0.002, rng=rng)
            nodes = even_nodes(size, options.sensors or size)
            operator = graph_diffusion(graph, 0.5 if time is None else time, sensors=nodes)
    # A hundredth of the line, whatever its length.
    reach = options.radius
    if reach is None:
        reach = "1/8" if on == "graph" else str(exact(length) / 100)
    return synthetic_site(f"{kind} {on}", operator, MovedMass(reach, operator.space.metric))


def synthetic_site(name: str, operator: Operator, neighbors: MovedMass | SwappedCells) -> Site:
    """A made-up site whose sensors read of a source of mass 1 as much as the operator says.

    Args:
        name: What the site is called.
        operator: How sources spread to sensors.
        neighbors: What is protected: mass moved so far, or two adjacent cells swapped.

    Returns:
        The site. Its unit is "mass of sources", and `per_source` is 1.
    """
    return Site(name, operator, neighbors, unit=SOURCES, per_source=Fraction(1))


def synthetic_sources(
    space: Line | Grid | Graph | Points, count: int, *, rng: np.random.Generator
) -> FloatArray:
    """Unit sources in so many different cells, chosen at random.

    Args:
        space: Where sources may be.
        count: How many sources, from 1 to the number of cells.
        rng: Where the choice comes from.

    Returns:
        One mass for each cell of the space: 1 where a source is, otherwise 0.

    Raises:
        InvalidParameter: `count` is out of its range.
    """
    count = whole("sources", count, low=1, high=space.size)
    masses = np.zeros(space.size)
    masses[rng.choice(space.size, count, replace=False)] = 1.0
    return masses


def block_graph(
    sizes: list[int], *, inside: float, across: float, rng: np.random.Generator
) -> tuple[Graph, IntArray]:
    """A network of communities and the community of each node: a stochastic block model, made connected.

    Two nodes share an edge with probability `inside` within a community, `across` between two.
    Parts that end up alone are tied by one edge to a random node, of their own community where
    there is one.

    Args:
        sizes: How many nodes each community has.
        inside: The chance of an edge between two nodes of one community, in [0, 1].
        across: The chance of an edge between nodes of two communities, in [0, 1].
        rng: Where chance comes from.

    Returns:
        The connected graph, and for each node the number of its community, from 0: nodes of one
        community follow each other.

    Raises:
        InvalidParameter: `inside` or `across` is no probability; no graph was made.
    """
    for name, share in (("inside", inside), ("across", across)):
        if not 0 <= share <= 1:
            raise InvalidParameter(f"{name} must be a probability, got {share}; no graph was made")
    labels = np.repeat(np.arange(len(sizes)), sizes)
    low, high = np.triu_indices(labels.size, 1)
    chosen = rng.random(low.size) < np.where(labels[low] == labels[high], inside, across)
    edges = np.column_stack([low[chosen], high[chosen]])
    graph = Graph(edges, nodes=labels.size)
    while (parts := graph.components()).any():
        # Tie the part of the first node that node 0 does not reach to another part, at home if
        # possible.
        lonely = int(np.flatnonzero(parts != 0)[0])
        others = np.flatnonzero((parts != parts[lonely]) & (labels == labels[lonely]))
        if not others.size:
            others = np.flatnonzero(parts != parts[lonely])
        edges = np.concatenate([edges, [[lonely, int(rng.choice(others))]]])
        graph = Graph(edges, nodes=labels.size)
    return graph, labels
