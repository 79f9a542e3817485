"""The smoothed map as few cells: whole quarters where it is flat or may be noise, fine ones where it is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato._types import BoolArray, FloatArray
from sfumato.heatmap.accuracy.noise_mark import FINEST_SEEN
from sfumato.heatmap.export.picture import drawn
from sfumato.heatmap.export.shapes import Cells

if TYPE_CHECKING:
    from sfumato.heatmap.private_map import HeatmapRelease

# Of the color scale: cells whose shades differ by less are taken together.
STEP = 1 / 16
# A share that is nothing: what a blur leaves far from where anybody is.
NOBODY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class MergedCells:
    """Cells of the smoothed map inside the bounds, and which of them may be noise."""

    cells: Cells
    noise: BoolArray


def merged_cells(release: HeatmapRelease, level: int | None = None) -> MergedCells:
    """Cells of at most a level (the picture's blur has no detail below 2**8 to a side) as few as do.

    Four cells become one if the shades of all that is in it lie in a sixteenth of the color scale,
    or all of it is below the noise mark; its mass is theirs. All mass inside the bounds is
    there; cells of nobody are not.
    """
    grid = release.area.grid
    finest = min(grid.levels, FINEST_SEEN if level is None else level)
    found = drawn(release, finest)
    first_column, first_row, last_column, last_row = release.area.window(finest)
    window = np.s_[first_row:last_row, first_column:last_column]
    masses, inside = np.zeros((1 << finest, 1 << finest)), np.zeros((1 << finest,) * 2, dtype=bool)
    masses[window], inside[window] = found.shares, True
    shade = np.sqrt(np.minimum(masses, found.top) / found.top)
    mark = np.sqrt(min(found.floor / found.top, 1.0)) if found.floor > 0 else 0.0
    low, high, whole = shade, shade, inside
    parts: list[tuple[int, BoolArray, FloatArray]] = []
    for depth in range(finest, 0, -1):
        least, most, sums = (
            pick(_quarters(one), axis=(1, 3))
            for pick, one in ((np.min, low), (np.max, high), (np.sum, masses))
        )
        flat = (most - least <= STEP) | (most < mark)
        joined = _quarters(whole).all(axis=(1, 3)) & flat
        parts.append((depth, whole & ~_spread(joined), masses))
        low, high, masses, whole = least, most, sums, joined
    parts.append((0, whole, masses))
    return _cells(release, parts, found.floor * 4.0**finest)


def _quarters(image: FloatArray | BoolArray) -> FloatArray | BoolArray:
    half = len(image) // 2
    return image.reshape(half, 2, half, 2)


def _spread(image: BoolArray) -> BoolArray:
    return np.repeat(np.repeat(image, 2, axis=0), 2, axis=1)


def _cells(
    release: HeatmapRelease, parts: list[tuple[int, BoolArray, FloatArray]], density: float
) -> MergedCells:
    levels, codes, shares, boxes = [], [], [], []
    for depth, chosen, masses in reversed(parts):
        grid = release.area.grid.at_level(depth)
        found = grid.codes_of_image()[chosen]
        order = np.argsort(found)
        levels.append(np.full(found.size, depth, dtype=np.int64))
        codes.append(found[order])
        shares.append(masses[chosen][order])
        boxes.append(grid.boxes(found[order]))
    depths, share = np.concatenate(levels), np.concatenate(shares)
    some = share > NOBODY
    amount = release.measure.scale * release.tiles.total
    places, sides = np.concatenate(codes)[some], np.concatenate(boxes)[some]
    depths, share = depths[some], share[some]
    return MergedCells(
        Cells(depths, places, sides, share, share * amount), share * 4.0**depths < density
    )
