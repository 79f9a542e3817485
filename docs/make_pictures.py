"""Draw the pictures of the explanations: `python docs/make_pictures.py [NAME...]`. Same code, same bytes."""

from __future__ import annotations

import io
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sfumato.figures import (
    arrows,
    draw_graph_recovery,
    draw_line_recovery,
    flow_field,
    palette,
    shades,
)
from sfumato.heatmap import HeatmapRelease, PyramidMethod, ZoomMethod, check_ins, rehearse_exactly
from sfumato.heatmap.methods import Method
from sfumato.privacy import ApproxDP, KeyedNoise, MovedMass
from sfumato.records import Columns
from sfumato.sensing import (
    NoisePlan,
    Operator,
    Site,
    bayes_median,
    graph_diffusion,
    heat_line,
    plan,
    posterior,
    recover,
)
from sfumato.sensing.planning import block_graph
from sfumato.sensing.recovery.estimators import bands
from sfumato.spaces import Area, Grid, area_in_degrees, area_of_plane
from sfumato.transport import GridFlow, emd

HERE = Path(__file__).parent / "pictures"
PEOPLE, FEW = 10_000, 300
LEVELS = 6
BOUNDS = (11.20, 43.74, 11.32, 43.81)
# Cells followed at each level, and the share at which the color of the city's cells ends.
WIDTH = 20
TOP = 0.02


def town(quarters: list[tuple[float, float, float, float]]) -> npt.NDArray[np.float64]:
    """People per cell of a made-up town; each quarter has a share of them, a place and a width."""
    at = (np.arange(1 << LEVELS) + 0.5) / (1 << LEVELS)
    spread = sum(
        share
        / width**2
        * np.exp(-((at[None, :] - x) ** 2 + (at[:, None] - y) ** 2) / (2 * width**2))
        for share, x, y, width in quarters
    )
    return np.asarray(PEOPLE * spread / np.sum(spread))


def flow() -> bytes:
    """A town by night and by day: most go to work in the east, some to the market in the south."""
    night = town([(0.45, 0.25, 0.70, 0.09), (0.30, 0.30, 0.30, 0.07), (0.25, 0.75, 0.60, 0.10)])
    day = town([(0.15, 0.25, 0.70, 0.09), (0.30, 0.50, 0.20, 0.06), (0.55, 0.75, 0.60, 0.08)])
    found = emd(night, day, Grid(LEVELS), flow=True)
    if not isinstance(found.flow, GridFlow):
        raise TypeError("a grid has a grid flow")
    field = arrows(found.flow.east, found.flow.north, night.shape)
    return flow_field(
        night,
        day,
        found.flow.east,
        found.flow.north,
        caption=f"{PEOPLE:,} made-up people move {found.value / PEOPLE:.3f} of the town's side on average: "
        "no plan can do with less",
        unit="people per cell",
        top=32,
        longest=float(field.mass.max()),
        names=("by night", "by day"),
    )


def pyramid() -> bytes:
    """A made-up city, the cells that the pyramid counts in it, and the map made of their counts."""
    return counted_cells(PyramidMethod(width=WIDTH), LEVELS)


def zoom() -> bytes:
    """The same city, the cells that zoom counts in it, and the map made of their counts."""
    return counted_cells(ZoomMethod(), LEVELS)


def doubts() -> bytes:
    """A map of a few hundred made-up people that says how sure it is: hatch and rings."""
    people = check_ins(FEW, bounds=BOUNDS, rng=np.random.default_rng(0))
    area = area_in_degrees(BOUNDS, 8)
    made, _ = rehearsed(people, area, ZoomMethod())
    made = replace(made, title=f"{FEW} made-up people, and what the map does not know")
    with tempfile.TemporaryDirectory() as folder:
        made.write(Path(folder) / "map.png")
        return (Path(folder) / "map.png").read_bytes()


def rehearsed(
    people: Any, area: Area, method: Method[Any]
) -> tuple[HeatmapRelease, npt.NDArray[np.float64]]:
    """A map at epsilon 1 and the truth; the noise is known, so that the picture comes again."""
    return rehearse_exactly(
        people,
        Columns("user", "lon", "lat"),
        area,
        public=True,
        epsilon=1,
        method=method,
        noise=KeyedNoise(bytes(32), epoch=bytes(12)),
    )


def counted_cells(method: Method[Any], finest: int) -> bytes:
    """Three panels: the city, the cells that a method counts in it, coarse to fine, and its map."""
    area = area_of_plane((0, 0, 1, 1), finest)
    made, truth = rehearsed(check_ins(PEOPLE, rng=np.random.default_rng(0)), area, method)
    figure = Figure(figsize=(12.4, 4.75), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3)
    for axis, title, shares in (
        (left, f"{PEOPLE:,} made-up people", truth),
        (right, "the map made of the counts", made.image()),
    ):
        shade = shades(shares, top=TOP)
        axis.imshow(
            palette()[np.round(255 * shade).astype(np.int64)], origin="lower", extent=(0, 1, 0, 1)
        )
        axis.set_title(title, fontsize=11)
    codes: dict[int, npt.NDArray[np.int64]] = {}
    for one in made.receipt.value.levels:  # zoom may come to a level twice: to split, and to close
        codes[one.level] = np.union1d(codes.get(one.level, one.codes), one.codes)
    levels = sorted(codes)
    colors = colormaps["viridis_r"](np.linspace(0.15, 1, len(levels)))
    for level, color in zip(levels, colors, strict=True):
        side = 1 / (1 << level)
        columns, rows = area.grid.at_level(level).decode(codes[level])
        corners = [(column * side, row * side) for column, row in zip(columns, rows, strict=True)]
        middle.add_collection(
            PatchCollection(
                [Rectangle(corner, side, side) for corner in corners],
                facecolor=(*color[:3], 0.25),
                edgecolor=color,
                linewidth=0.8,
            )
        )
    handles = [
        Rectangle((0, 0), 1, 1, facecolor=(*color[:3], 0.35), edgecolor=color) for color in colors
    ]
    names = [f"level {level}: {codes[level].size} of {4**level:,}" for level in levels]
    middle.set_title("the cells that are counted", fontsize=11)
    middle.set_aspect("equal")
    for axis in (left, middle, right):
        axis.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
    figure.legend(
        handles, names, loc="outside lower center", ncols=len(levels), fontsize=9, frameon=False
    )
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def line() -> bytes:
    """Two sources on a line, what 50 sensors send of them, and what is recovered."""
    hall = heat_line(sources=100, sensors=50, diffusion_time=0.01)
    truth = np.zeros(hall.space.size)
    truth[[29, 69]] = 1
    noise = plan(Site("hall", hall, MovedMass("1/100", "line")), ApproxDP(2, "1e-6"))
    sent = noisy(hall, truth, noise)
    found = recover(hall, sent, sigma=noise.sigma)
    beliefs = posterior(hall, sent, sigma=noise.sigma, rng=np.random.default_rng(1))
    answer = bayes_median(beliefs)
    return draw_line_recovery(
        hall.space,
        found.estimate,
        sensors=hall.sensors.positions[:, 0],
        readings=sent,
        sigma=noise.sigma,
        fitted=hall.readings(found.estimate),
        sources=truth,
        answer=(answer.places[:, 0], answer.masses),
        bands=[(band.place, band.radius, band.probability) for band in bands(beliefs)],
        caption=f"Made-up sources; {noise.cost} for all 50 sensors together, radius 1/100 of the line",
    )


def network() -> bytes:
    """A rumour in a network of two communities, what its nodes send, and what is recovered."""
    graph, labels = block_graph([40, 40], inside=0.2, across=0.005, rng=np.random.default_rng(3))
    friends = graph_diffusion(graph, 0.15)
    truth = np.zeros(graph.size)
    truth[12] = 1
    noise = plan(Site("friends", friends, MovedMass("1/16", "graph")), ApproxDP(4, "1e-6"))
    sent = noisy(friends, truth, noise)
    found = recover(friends, sent, sigma=noise.sigma)
    return draw_graph_recovery(
        graph,
        found.estimate,
        labels=labels,
        sources=truth,
        readings=sent,
        caption=f"A made-up rumour; {noise.cost} for all {graph.size} nodes together, "
        "radius 1/16 of an edge's length",
    )


def noisy(
    operator: Operator, truth: npt.NDArray[np.float64], noise: NoisePlan
) -> npt.NDArray[np.float64]:
    """What sensors send of made-up sources, with known noise, so that the picture comes again."""
    exact = np.rint(np.ldexp(operator.readings(truth), -noise.exponent)).astype(np.int64)
    sent = noise.mechanism.sample(exact, KeyedNoise(bytes(32), epoch=bytes(12)))
    return np.ldexp(sent.astype(np.float64), noise.exponent)


PICTURES = {
    "flow.png": flow,
    "pyramid.png": pyramid,
    "zoom.png": zoom,
    "doubts.png": doubts,
    "line.png": line,
    "network.png": network,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        (HERE / name).write_bytes(PICTURES[name]())
