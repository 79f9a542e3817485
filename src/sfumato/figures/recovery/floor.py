"""A floor plan under a picture of sensors: an image that fills its bounds, and lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.figures.overlay import draw_outline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Box = tuple[float, float, float, float]
FADED = 0.75  # of an image: what is drawn on it stays the darkest


@dataclass(frozen=True, slots=True, eq=False)
class Floor:
    """RGB pixels, row 0 on top, and the box they fill; lines [position, x and y]; in units of the picture."""

    pixels: npt.NDArray[np.uint8] | None = None
    bounds: Box | None = None
    lines: tuple[FloatArray, ...] = ()

    @property
    def places(self) -> FloatArray:
        """Corners and positions that a picture must have room for."""
        corners = np.zeros((0, 2)) if self.bounds is None else np.reshape(self.bounds, (2, 2))
        return np.concatenate([corners, *self.lines])


NO_FLOOR = Floor()


def draw_floor(axis: Axes, floor: Floor) -> None:
    """The image and the lines, under everything; the limits of the axis stay as they are."""
    (low_x, high_x), (low_y, high_y) = axis.get_xlim(), axis.get_ylim()
    if floor.pixels is not None and floor.bounds is not None:
        west, south, east, north = floor.bounds
        axis.imshow(
            floor.pixels, extent=(west, east, south, north), aspect="auto", alpha=FADED, zorder=0.1,
            interpolation="bilinear",
        )  # fmt: skip
    if floor.lines:
        draw_outline(axis, floor.lines)
    axis.set_xlim(low_x, high_x)
    axis.set_ylim(low_y, high_y)
