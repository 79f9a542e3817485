"""`sfumato sense place`: of all places that could have a sensor, the best few."""

from __future__ import annotations

import csv
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.chance import chance
from sfumato.cli.console import Json, Quiet, say, sentences, show, working
from sfumato.cli.heatmap_options import four_numbers
from sfumato.cli.sense_files import AXES, read_sensors
from sfumato.cli.sense_outputs import check_outputs
from sfumato.cli.sense_site import Delta, Epsilon, Rho, reading_loss
from sfumato.cli.sense_words import plain
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import write_file

if TYPE_CHECKING:
    from sfumato.sensing import Operator, Site
    from sfumato.sensing.planning import Placement, Ratio


@sentences
def place(
    count: Annotated[
        int, typer.Option(help="How many sensors there will be.", min=1, show_default=False)
    ],
    candidates: Annotated[
        Path | None,
        typer.Argument(
            help="Places that could have a sensor: table of sensor, x, perhaps y.",
            show_default=False,
        ),
    ] = None,
    site: Annotated[
        Path | None,
        typer.Option(
            help="Instead of CANDIDATES: the sensors of this site, on a graph or by a matrix too.",
            show_default=False,
        ),
    ] = None,
    diffusion_time: Annotated[
        float | None, typer.Option(help="T = diffusivity times time.", show_default=False)
    ] = None,
    epsilon: Epsilon = "",
    delta: Delta = "1e-6",
    rho: Rho = "",
    line: Annotated[
        int | None, typer.Option(help="Sources on a line of so many cells.", min=2)
    ] = None,
    length: Annotated[float | None, typer.Option(help="Length of the line (1).")] = None,
    grid: Annotated[
        int | None,
        typer.Option(help="Sources in a plane: 2**GRID by 2**GRID cells of --bounds.", min=1),
    ] = None,
    bounds: Annotated[str, typer.Option(help="The plane's west,south,east,north (0,0,1,1).")] = "",
    radius: Annotated[
        str, typer.Option(help="How far mass may move without anybody telling.")
    ] = "",
    swapped: Annotated[
        str,
        typer.Option(
            help="Instead of --radius: two adjacent cells, each up to this, may be swapped."
        ),
    ] = "",
    mass: Annotated[float, typer.Option(help="The mass of a source.")] = 1.0,
    trials: Annotated[
        int | None,
        typer.Option(help="Simulate so many recoveries from both sets: the gain.", min=2),
    ] = None,
    sources: Annotated[
        int, typer.Option(help="How many sources to simulate; places are chosen for one.", min=1)
    ] = 1,
    seed: Annotated[int | None, typer.Option(help="The same simulation again.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A new .csv table of the chosen, for `sense site --sensors`."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw candidates and the chosen: a .png file.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Choose which of many possible places should have a sensor; nothing is read or charged.

    Noise grows with how much all sensors tell together, so the best places are not simply the most,
    nor those spread out evenly, which are shown beside them. They are chosen for the place of one
    source, wherever it is; for several they mostly help too, but less: --trials with --sources says
    how much.
    """
    from sfumato.sensing import read_site
    from sfumato.sensing.planning import place_sensors, simulated_gain

    check_outputs([out] if out else [], {".csv"}, reads=[candidates, site])
    check_outputs([plot] if plot else [], {".png"}, reads=[candidates, site])
    loss = reading_loss(epsilon, delta, rho)
    asked = _Asked(line, length, grid, bounds, diffusion_time, radius, swapped)
    if site is None and candidates is not None:
        ground = _site(candidates, asked)
    elif site is not None and candidates is None:
        if asked.given:
            raise InvalidParameter(
                f"a site says its own {asked.given[0]}; leave one out; nothing was placed"
            )
        ground = read_site(site)
    else:
        raise InvalidParameter(
            "say where sensors could be: a table of candidates or --site, got "
            f"{'neither' if site is None else 'both'}; nothing was placed"
        )
    operator, relation = ground.operator, ground.neighbors
    hush = quiet or json
    with working(f"looking at {len(operator.sensors)} candidates", quiet=hush) as tell:
        found = place_sensors(
            operator, count, loss=loss, neighbors=relation, mass=mass, progress=tell
        )
    result: dict[str, Any] = {
        "candidates": len(operator.sensors),
        "chosen": list(found.names),
        "sigma": found.sigma,
        "error": found.error,
        "uniform": [operator.sensors.names[row] for row in found.uniform.tolist()],
        "uniform_sigma": found.uniform_sigma,
        "uniform_error": found.uniform_error,
        "said": found.said,
    }
    lines = [
        f"{count} of {len(operator.sensors)} candidates: {', '.join(found.names)}",
        f"each adds noise of sigma {found.sigma:.4g}, spread out evenly it would be "
        f"{found.uniform_sigma:.4g}",
        found.said,
    ]
    if trials is not None:
        with working(f"simulating {trials} recoveries from both", quiet=hush):
            gain = simulated_gain(found, trials=trials, sources=sources, rng=chance(seed))
        result["gain"] = asdict(gain)
        failed = (
            f"; {gain.failed} of {trials} had no proven answer and are left out"
            if gain.failed
            else ""
        )
        lines.append(
            f"simulated, {gain.trials} times {sources} source{'s' * (sources > 1)}: the least mass is off by "
            f"{gain.chosen:.3g}, from evenly spread sensors by {gain.uniform:.3g}"
            f"{_compared(gain.ratio)}{failed}"
        )
    made = [] if out is None else [(out, _table(found, ground))]
    made += [] if plot is None else [(plot, _picture(found, lines[-1]))]
    for path, data in made:
        write_file(path, data)
        say(f"wrote {path}", quiet=hush)
    show(plain(result), "\n".join(lines), json=json)


def _compared(ratio: Ratio | None) -> str:
    if ratio is None:
        return ": nothing to gain"
    if not math.isfinite(ratio.high):
        return ": too few trials were wrong to compare them"
    said = f"; the ratio is {ratio.value:.2f} (95 %: {ratio.low:.2f} to {ratio.high:.2f})"
    return said if ratio.high < 1 or ratio.low > 1 else f"{said}: no gain beyond chance"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is said of the site that candidates are of; what is None or empty is not."""

    line: int | None
    length: float | None
    grid: int | None
    bounds: str
    diffusion_time: float | None
    radius: str
    swapped: str

    @property
    def given(self) -> list[str]:
        """The options that were given: with a site of one's own, each is one too many."""
        said = asdict(self).items()
        return [f"--{name.replace('_', '-')}" for name, value in said if value not in (None, "")]


def _site(path: Path, asked: _Asked) -> Site:
    from sfumato.privacy import MovedMass, SwappedCells
    from sfumato.sensing import Site

    if bool(asked.radius) == bool(asked.swapped):
        raise InvalidParameter(
            "say what is protected: --radius (mass moved so far) or --swapped, not both"
        )
    operator = _operator(path, asked)
    if asked.swapped:
        return Site("candidates", operator, SwappedCells(asked.swapped))
    return Site("candidates", operator, MovedMass(asked.radius, operator.space.metric))


def _operator(path: Path, asked: _Asked) -> Operator:
    from sfumato.sensing import heat_line, heat_plane
    from sfumato.spaces import Grid

    line, grid, time = asked.line, asked.grid, asked.diffusion_time
    if (line is None) == (grid is None):
        raise InvalidParameter(
            "say where sources may be: either --line or --grid; nothing was placed"
        )
    if time is None:
        raise InvalidParameter("say how far heat spreads: --diffusion-time; nothing was placed")
    placed = read_sensors(path)
    if line is not None:
        length = 1.0 if asked.length is None else asked.length
        inside = int(((placed.positions >= 0) & (placed.positions <= length)).all(axis=1).sum())
        if 2 * inside < len(placed):
            raise InvalidParameter(
                f"only {inside} of {len(placed)} candidates lie where sources may be (0 to {length:g}); is "
                "--length missing? nothing was placed"
            )
        return heat_line(sources=line, sensors=placed, diffusion_time=time, length=length)
    plane = Grid(grid or 1, four_numbers(asked.bounds or "0,0,1,1"))
    return heat_plane(sources=plane, sensors=placed, diffusion_time=time)


def _table(found: Placement, ground: Site) -> bytes:
    """The chosen as `sense site --sensors` reads them: on a graph x is the name of a node."""
    import io

    from sfumato.sensing.model.operators import GraphDiffusion

    chosen = found.operator
    places: list[list[Any]] = chosen.sensors.positions.tolist()
    if isinstance(chosen, GraphDiffusion):
        places = [[ground.cell(node)] for node in chosen.nodes.tolist()]
    if len(places[0]) > len(AXES):
        raise InvalidInput(
            f"a table of sensors has x and perhaps y, got {len(places[0])} coordinates; nothing was written"
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["sensor", *AXES[: len(places[0])]])
    writer.writerows([name, *place] for name, place in zip(found.names, places, strict=True))
    return text.getvalue().encode()


def _picture(found: Placement, caption: str) -> bytes:
    from sfumato.figures import draw_placement, graph_layout
    from sfumato.sensing.model.operators import GraphDiffusion

    all_of_them = found.candidates
    if isinstance(all_of_them, GraphDiffusion):
        places = graph_layout(all_of_them.space)[all_of_them.nodes]
        caption += "\nx and y are of a drawing of the graph, by its edges alone"
    else:
        places = all_of_them.sensors.positions
    return draw_placement(
        places, chosen=places[found.chosen], uniform=places[found.uniform], caption=caption
    )
