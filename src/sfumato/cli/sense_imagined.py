"""Even sites that do not exist: for `sense plan` to plan and `sense simulate` to make."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.sensing import Operator, Site


class Where(StrEnum):
    """What a made-up site looks like."""

    line = "line"
    plane = "plane"
    graph = "graph"


SensorsOption = Annotated[
    int | None,
    typer.Option(
        help="Sensors (50, in the plane 49); on the graph one at every node, or so many.", min=1
    ),
]
CellsOption = Annotated[
    int | None, typer.Option(help="Cells of the line (100), nodes of the graph (200).", min=2)
]
LengthOption = Annotated[float | None, typer.Option(help="Length of the line (1).", min=0)]
TimeOption = Annotated[
    float | None,
    typer.Option(
        help="T: 0.05 of the length squared on the line, 0.01 in the plane; rate on the graph: 0.5."
    ),
]
RadiusOption = Annotated[
    str,
    typer.Option(
        help="How far mass may move without anybody telling: 1/100 of the length, on the graph 1/8."
    ),
]


@dataclass(frozen=True, slots=True)
class Imagined:
    """What is asked of a made-up site; what is None is as usual."""

    on: Where | None
    sensors: int | None
    cells: int | None
    diffusion_time: float | None
    radius: str
    length: float | None = None

    @property
    def given(self) -> list[str]:
        """The options that were given: with a site of one's own, each is one too many."""
        asked = {
            "--on": self.on,
            "--sensors": self.sensors,
            "--cells": self.cells,
            "--length": self.length,
            "--diffusion-time": self.diffusion_time,
            "--radius": self.radius or None,
        }
        return [name for name, value in asked.items() if value is not None]

    def assumed(self, site: Site) -> list[str]:
        """What was not given and is not known of any real place, though answers hang on it: a sentence."""
        from sfumato.privacy import MovedMass
        from sfumato.sensing.model.operators import time_of

        time = time_of(site.operator) or 0.0
        name = "rate" if self.on is Where.graph else "T"
        missing = (
            [] if self.diffusion_time is not None else [(f"{name} {time:.4g}", "--diffusion-time")]
        )
        if not self.radius and isinstance(
            site.neighbors, MovedMass
        ):  # as every made-up site has it
            missing.append((f"a radius of {float(site.neighbors.radius):.4g}", "--radius"))
        if not missing:
            return []
        values, options = (" and ".join(part) for part in zip(*missing, strict=True))
        return [f"assumed: {values}; what follows hangs on it, so give your own {options}"]


def imagined(asked: Imagined, *, kind: str, rng: Any, undone: str) -> Site:
    """An even site of some kind ("planned", "simulated"); `undone` ends what is said of contradictions."""
    import numpy as np

    from sfumato.privacy import MovedMass
    from sfumato.privacy.accounting import exact
    from sfumato.sensing import block_graph, graph_diffusion, heat_line, heat_plane, synthetic_site
    from sfumato.sensing.model.operators import even_nodes, even_places
    from sfumato.spaces import Grid

    on = asked.on or Where.line
    if asked.length is not None and on is not Where.line:
        raise InvalidParameter(f"--length is of a line, got a {on.value}; {undone}")
    if asked.cells is not None and on is Where.plane:
        raise InvalidParameter(f"a plane has 32 by 32 cells, got --cells; {undone}")
    length = 1.0 if asked.length is None else asked.length
    count = asked.sensors or (49 if on is Where.plane else 50)  # 7 by 7
    time = asked.diffusion_time
    operator: Operator
    match on:
        case Where.line:
            operator = heat_line(
                sources=asked.cells or 100,
                sensors=count,
                # Heat spreads as the root of T: on a line twice as long, four times as much looks
                # the same.
                diffusion_time=0.05 * length**2 if time is None else time,
                length=length,
            )
        case Where.plane:
            places = even_places(count, np.zeros(2), np.ones(2))
            operator = heat_plane(
                sources=Grid(5), sensors=places, diffusion_time=0.01 if time is None else time
            )
        case Where.graph:
            size = asked.cells or 200
            graph, _ = block_graph([size // 2, size - size // 2], inside=0.2, across=0.002, rng=rng)
            nodes = even_nodes(size, asked.sensors or size)
            operator = graph_diffusion(graph, 0.5 if time is None else time, sensors=nodes)
    # A hundredth of the line, whatever its length.
    reach = asked.radius or ("1/8" if on is Where.graph else str(exact(length) / 100))
    return synthetic_site(f"{kind} {on.value}", operator, MovedMass(reach, operator.space.metric))
