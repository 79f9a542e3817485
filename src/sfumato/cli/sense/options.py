"""Options that several sensor commands share, and what is shown while they work."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.heatmap.options import four_numbers
from sfumato.cli.ledger import budget_of
from sfumato.cli.option_groups import OptionGroup
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.files import FloorPlan
    from sfumato.sensing.planning import Ground, SyntheticOptions
    from sfumato.sensing.release import SensorLoss

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files of --out and --plot.")]
SiteFile = Annotated[
    Path,
    typer.Argument(
        help="The site, as `sense site` or `sense simulate` wrote it.", show_default=False
    ),
]
Epsilon = Annotated[
    str, typer.Option(help="What one reading of all sensors may cost.", show_default=False)
]
Delta = Annotated[
    str, typer.Option(help="And its delta; 0 for epsilon alone, by Laplace noise of one scale.")
]
Rho = Annotated[
    str,
    typer.Option(
        help="Its cost in rho of zCDP instead: better for many readings.", show_default=False
    ),
]


SensorColumn = Annotated[str, typer.Option(help="The column that names sensors.")]
ValueColumn = Annotated[str, typer.Option(help="The column of readings.")]
TimeColumn = Annotated[str, typer.Option(help="The column of times, if there is one.")]
XColumn = Annotated[str, typer.Option(help="The column of places along a line, or east.")]
YColumn = Annotated[str, typer.Option(help="The column of places north.")]
RoundTime = Annotated[
    str,
    typer.Option(
        help="Rounds are so far apart, 30s, 1m, 1h: a reading is of the nearest one in its window; 0 for times "
        "as they are.",
        show_default=False,
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


class Where(StrEnum):
    """What a made-up site looks like."""

    line = "line"
    plane = "plane"
    graph = "graph"


@dataclass(frozen=True)
class SyntheticSite(OptionGroup):
    """What a made-up site looks like, beside what it lies on."""

    sensors: Annotated[
        int | None,
        typer.Option(
            help="Sensors (50, in the plane 49); on the graph one at every node, or so many.", min=1
        ),
    ] = None
    cells: Annotated[
        int | None, typer.Option(help="Cells of the line (100), nodes of the graph (200).", min=2)
    ] = None
    length: Annotated[float | None, typer.Option(help="Length of the line (1).", min=0)] = None
    diffusion_time: Annotated[
        float | None,
        typer.Option(
            help="T: 0.05 of the length squared on the line, 0.01 in the plane; rate on the graph: 0.5."
        ),
    ] = None
    radius: Annotated[
        str,
        typer.Option(
            help="How far mass may move without anybody telling: 1/100 of the length, on the graph 1/8."
        ),
    ] = ""

    def on(self, ground: Where | None) -> SyntheticOptions:
        """The options of a made-up site on such a ground."""
        from sfumato.sensing.planning import SyntheticOptions

        where: Ground | None = None if ground is None else ground.value
        said = self.keywords() | {"radius": self.radius or None}
        return SyntheticOptions(where, **said)


@dataclass(frozen=True)
class FloorPlanOptions(OptionGroup):
    """A public floor plan under pictures and pages."""

    over: Annotated[
        Path | None,
        typer.Option(
            help="PUBLIC floor plan under pictures and pages: an image, with --over-bounds.",
            show_default=False,
        ),
    ] = None
    over_bounds: Annotated[
        str,
        typer.Option(
            help="Where --over lies: x0,y0,x1,y1, in the site's unit.", show_default=False
        ),
    ] = ""
    outline: Annotated[
        Path | None,
        typer.Option(
            help="PUBLIC floor plan of lines and areas, GeoJSON in the site's unit.",
            show_default=False,
        ),
    ] = None

    def read(self) -> FloorPlan:
        """The floor plan that is asked for; an empty one if none is."""
        from sfumato.files import read_floor_plan

        bounds = four_numbers(self.over_bounds) if self.over_bounds else None
        return read_floor_plan(self.over, bounds=bounds, outline=self.outline)


@dataclass(frozen=True)
class SpreadOptions(OptionGroup):
    """How a whisper spreads, by the numbers of its model."""

    rate: Annotated[
        float | None,
        typer.Option(help="independent: how far it spreads, with --strength.", show_default=False),
    ] = None
    strength: Annotated[
        float | None,
        typer.Option(
            help="independent: how many people the start tells, on average.", show_default=False
        ),
    ] = None
    chance: Annotated[
        float | None,
        typer.Option(
            help="independent-cascade, si: with which a neighbor listens.", show_default=False
        ),
    ] = None
    steps: Annotated[
        int | None, typer.Option(help="si: how many steps it has gone; else 5.", show_default=False)
    ] = None
    weight: Annotated[
        float | None,
        typer.Option(
            help="linear-threshold: how likely a node listens to some neighbor.", show_default=False
        ),
    ] = None


def reading_loss(epsilon: str, delta: str, rho: str) -> SensorLoss | None:
    """What one reading may cost, as asked for; None if nothing was. A delta of 0 asks for Laplace noise."""
    if not epsilon and not rho:
        return None
    return budget_of(epsilon, "0" if rho else delta, rho)


def required_loss(epsilon: str, delta: str, rho: str) -> SensorLoss:
    """What one reading may cost, which must be said."""
    asked = reading_loss(epsilon, delta, rho)
    if asked is None:
        raise InvalidParameter(
            "say what one reading costs: --epsilon with --delta (0 for epsilon alone), or --rho (or, to "
            "release, a --share of the ledger); nothing was charged"
        )
    return asked
