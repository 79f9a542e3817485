"""Where mass had to move, as PNG: before, after, and arrows between them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.figures.map_sheet import Frame, place_marks
from sfumato.figures.style import ARROW, FONT_LABEL, FONT_NOTE, FONT_PANEL, FONT_TICK, MAP, MOVES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MAX_ARROWS = 24  # arrows along a side: more cannot be read
SHORTEST = 0.15  # of the longest arrow: below that it is a dot


@dataclass(frozen=True, slots=True)
class Arrows:
    """A flow on blocks of cells: where their centers are, in cells, and mass times steps east and north."""

    x: FloatArray
    y: FloatArray
    east: FloatArray
    north: FloatArray
    block: int

    @property
    def mass(self) -> FloatArray:
        """How much passes through each block: what all its cells pass on, over the cells along its side."""
        return np.asarray(np.hypot(self.east, self.north) / self.block)


def flow_field(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    east: npt.ArrayLike,
    north: npt.ArrayLike,
    *,
    caption: str,
    unit: str,
    top: float,
    longest: float | None = None,
    names: tuple[str, str] = ("before", "after"),
    frame: Frame | None = None,
) -> bytes:
    """One PNG of two maps and, between them, what moves: where mass leaves and arrives, and its way.

    Arrows stand for square blocks of cells, at most 24 along a side. Their length grows with the square root
    of the mass that passes through; where hardly anything moves there is none.

    Args:
        p: The map before, [row, column], row 0 in the south.
        q: The map after, of the same shape.
        east: Mass that crosses each border eastward, signed, [row, column - 1], as a `GridFlow` has
            it.
        north: Mass that crosses each border northward, signed, [row - 1, column].
        caption: Words below the picture, wrapped.
        unit: What the color scale measures.
        top: The top of the color scale, above 0: given, never read off the data.
        longest: The mass of the longest arrow; what a quarter of a row holds at `top` if left out.
        names: What the two maps are called.
        frame: Where the cells lie: the panels then have its axes, and show its window as it stretches.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For shapes that do not fit, or scales that are not above 0.
    """
    before, after = _image(p, "p"), _image(q, "q")
    if before.shape != after.shape:
        raise InvalidParameter(f"p and q must have one shape, got {before.shape} and {after.shape}")
    flow = arrows(east, north, before.shape)
    if not top > 0:
        raise InvalidParameter(f"the top of the color scale must be above 0, got {top}")
    full = top * max(before.shape) / 4 if longest is None else longest
    if not full > 0:
        raise InvalidParameter(f"the mass of the longest arrow must be above 0, got {longest}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.2, 5.75), layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3)
    _map(left, before, title=names[0], colors=MAP, scale=(0, top), unit=unit)
    _map(
        middle,
        after - before,
        title="what moves",
        colors=MOVES,
        scale=(-top, top),
        unit=f"{unit}: - leave, + arrive",
    )
    _map(right, after, title=names[1], colors=MAP, scale=(0, top), unit=unit)
    _draw(middle, flow, full)
    if frame is not None:
        for panel in (left, middle, right):
            _place(panel, frame, before.shape)
    said = f"{float(f'{full:.3g}'):,g}"
    middle.set_xlabel(
        f"longest arrow: a mass of {said} passes; half as long: a quarter of it", fontsize=FONT_NOTE
    )
    for other in (left, right):
        other.set_xlabel(" ", fontsize=FONT_NOTE)
    figure.supxlabel(caption, fontsize=FONT_LABEL, wrap=True, parse_math=False)
    out = io.BytesIO()
    # No date and no version in the file: the same values give the same bytes.
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()


def arrows(east: npt.ArrayLike, north: npt.ArrayLike, shape: tuple[int, ...]) -> Arrows:
    """A flow across borders, gathered into at most 24 x 24 blocks; its total east and its total north stay.

    What crosses a border belongs in equal parts to the two cells it divides.

    Args:
        east: Mass that crosses each border eastward, [row, column - 1].
        north: Mass that crosses each border northward, [row - 1, column].
        shape: Rows and columns of the cells.

    Returns:
        The middle of each block, and the mass that passes through it east and north.

    Raises:
        InvalidParameter: For flows that are not those of such cells.
    """
    rows, columns = shape
    across, up = _image(east, "east"), _image(north, "north")
    if across.shape != (rows, columns - 1) or up.shape != (rows - 1, columns):
        raise InvalidParameter(
            f"for {rows} x {columns} cells east must have shape {(rows, columns - 1)} and north "
            f"{(rows - 1, columns)}, got {across.shape} and {up.shape}"
        )
    block = 1
    while max(shape) > MAX_ARROWS * block:
        block *= 2
    eastward = (np.pad(across, ((0, 0), (1, 0))) + np.pad(across, ((0, 0), (0, 1)))) / 2
    northward = (np.pad(up, ((1, 0), (0, 0))) + np.pad(up, ((0, 1), (0, 0)))) / 2
    x, y = np.meshgrid(_centers(columns, block), _centers(rows, block))
    return Arrows(x, y, _gathered(eastward, block), _gathered(northward, block), block)


def _gathered(values: FloatArray, block: int) -> FloatArray:
    for axis in (0, 1):
        values = np.add.reduceat(values, np.arange(0, values.shape[axis], block), axis=axis)
    return values


def _centers(count: int, block: int) -> FloatArray:
    begin = np.arange(0, count, block)
    return np.asarray((begin + np.minimum(begin + block, count) - 1) / 2)


def _map(
    axis: Axes,
    values: FloatArray,
    *,
    title: str,
    colors: str,
    scale: tuple[float, float],
    unit: str,
) -> None:
    drawn = axis.imshow(
        values, origin="lower", cmap=colors, vmin=scale[0], vmax=scale[1], interpolation="nearest"
    )
    axis.set_title(title, fontsize=FONT_PANEL, parse_math=False)
    axis.set_xticks([])
    axis.set_yticks([])
    bar = axis.figure.colorbar(
        drawn, ax=axis, orientation="horizontal", shrink=0.8, aspect=30, pad=0.02
    )
    bar.set_label(unit, parse_math=False)


def _place(axis: Axes, frame: Frame, shape: tuple[int, ...]) -> None:
    """Show the window of a frame, and its longitudes and latitudes or other coordinates, on axes of cells."""
    west, south, east, north = frame.extent
    low_x, low_y, high_x, high_y = frame.window
    wide, high = (east - west) / shape[1], (north - south) / shape[0]

    def column(x: float) -> float:
        return (x - west) / wide - 0.5

    def row(y: float) -> float:
        return (y - south) / high - 0.5

    across, up = place_marks(frame)
    axis.set_xticks([column(at) for at, _ in across], [said for _, said in across])
    axis.set_yticks([row(at) for at, _ in up], [said for _, said in up])
    axis.tick_params(labelsize=FONT_TICK)
    axis.set_xlim(column(low_x), column(high_x))
    axis.set_ylim(*((row(high_y), row(low_y)) if frame.downward else (row(low_y), row(high_y))))
    axis.set_aspect(frame.stretch * high / wide)


def _draw(axis: Axes, flow: Arrows, full: float) -> None:
    share = np.sqrt(np.minimum(flow.mass / full, 1))
    shown = share >= SHORTEST
    size = np.hypot(flow.east, flow.north)[shown]
    along = 1.3 * flow.block * share[shown] / size
    style: dict[str, Any] = {
        "angles": "xy", "scale_units": "xy", "scale": 1, "pivot": "mid", "units": "xy", "minlength": 0,
        "width": 0.12 * flow.block, "headwidth": 3.6, "headlength": 3.6, "headaxislength": 3.2,
    }  # fmt: skip
    axis.quiver(
        flow.x[shown], flow.y[shown], flow.east[shown] * along, flow.north[shown] * along,
        color=ARROW, edgecolor="white", linewidth=0.4, **style,
    )  # fmt: skip


def _image(values: npt.ArrayLike, name: str) -> FloatArray:
    image = np.asarray(values, dtype=np.float64)
    if image.ndim != 2:
        raise InvalidParameter(f"{name} must be an array [row, column], got shape {image.shape}")
    if not np.isfinite(image).all():
        raise InvalidParameter(f"{name} must be finite, got NaN or infinity; nothing was drawn")
    return image
