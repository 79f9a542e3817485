"""Draw the pictures of the explanations: `python docs/make_pictures.py`. Same code, same bytes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sfumato.figures import arrows, flow_field
from sfumato.figures.heatmap import palette, shades
from sfumato.heatmap import PyramidMethod, check_ins, rehearse_exactly
from sfumato.privacy import KeyedNoise
from sfumato.records import Columns
from sfumato.spaces import Grid, area_of_plane
from sfumato.transport import GridFlow, emd

HERE = Path(__file__).parent / "pictures"
PEOPLE = 10_000
LEVELS = 6
# Cells followed at each level, and the share at which the color of the city's cells ends.
WIDTH = 20
TOP = 0.02


def town(quarters: list[tuple[float, float, float, float]]) -> npt.NDArray[np.float64]:
    """People per cell of a made-up town; each quarter has a share of them, a place and a width."""
    at = (np.arange(1 << LEVELS) + 0.5) / (1 << LEVELS)
    spread = sum(
        share / width**2 * np.exp(-((at[None, :] - x) ** 2 + (at[:, None] - y) ** 2) / (2 * width**2))
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
    area = area_of_plane((0, 0, 1, 1), LEVELS)
    people = check_ins(PEOPLE, rng=np.random.default_rng(0))
    # Known noise, so that the picture comes again: for made-up people only.
    made, truth = rehearse_exactly(
        people,
        Columns("user", "lon", "lat"),
        area,
        public=True,
        epsilon=1,
        method=PyramidMethod(width=WIDTH),
        noise=KeyedNoise(bytes(32), epoch=bytes(12)),
    )
    figure = Figure(figsize=(12.4, 4.75), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3)
    for axis, title, shares in (
        (left, f"{PEOPLE:,} made-up people", truth),
        (right, "the map made of the counts", made.image()),
    ):
        shade = shades(shares, top=TOP)
        axis.imshow(palette()[np.round(255 * shade).astype(np.int64)], origin="lower", extent=(0, 1, 0, 1))
        axis.set_title(title, fontsize=11)
    levels = made.receipt.value.levels
    colors = colormaps["viridis_r"](np.linspace(0.15, 1, len(levels)))
    for one, color in zip(levels, colors, strict=True):
        side = 1 / (1 << one.level)
        columns, rows = area.grid.at_level(one.level).decode(one.codes)
        corners = [(column * side, row * side) for column, row in zip(columns, rows, strict=True)]
        middle.add_collection(
            PatchCollection(
                [Rectangle(corner, side, side) for corner in corners],
                facecolor=(*color[:3], 0.25),
                edgecolor=color,
                linewidth=0.8,
            )
        )
    handles = [Rectangle((0, 0), 1, 1, facecolor=(*color[:3], 0.35), edgecolor=color) for color in colors]
    names = [f"level {one.level}: {one.codes.size} of {4**one.level:,}" for one in levels]
    middle.set_title("the cells that are counted", fontsize=11)
    middle.set_aspect("equal")
    for axis in (left, middle, right):
        axis.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
    figure.legend(handles, names, loc="outside lower center", ncols=len(levels), fontsize=9, frameon=False)
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


PICTURES = {"flow.png": flow, "pyramid.png": pyramid}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (HERE / name).write_bytes(draw())
