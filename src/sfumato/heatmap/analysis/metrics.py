"""How close an estimated heatmap is to the true one: the four numbers of the saliency literature."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.spaces import Area, Grid
from sfumato.transport import emd

# What the saliency benchmarks add to every share so that no logarithm is infinite [bylinskii19].
TINY = 2.2204e-16

# Distances are solved on 64 x 64 cells: exact there in a hundredth of a second, and a cell, 1/64 of
# a side, is narrower than the blur of 0.02 sides that heatmaps usually have.
POOLED = 6


@dataclass(frozen=True, slots=True)
class Comparison:
    """Similarity and pearson grow towards 1, kl and emd fall towards 0, as the estimate nears the truth.

    `emd` is in sides of the map; `emd_metres` the same on the ground, for a map in degrees.
    """

    similarity: float
    pearson: float
    kl: float
    emd: float
    emd_metres: float | None


def similarity(h: FloatArray, g: FloatArray) -> float:
    """The mass that two maps share: the sum of min(h, g) over cells, 1 for equal maps [bylinskii19, sec. 4].

    Args:
        h: A map; finite masses, none below 0.
        g: Another of the same shape.

    Returns:
        From 0 (no mass shared) to 1 (equal maps).

    Raises:
        InvalidInput: The maps differ in shape or have no mass.

    Example:
        >>> similarity(np.array([[3.0, 1.0]]), np.array([[1.0, 1.0]]))
        0.75

    """
    h, g = _shares(h, g)
    return float(np.minimum(h, g).sum())


def pearson(h: FloatArray, g: FloatArray) -> float:
    """The correlation of two maps, cell by cell; 0 when either is even [bylinskii19, sec. 4].

    Args:
        h: A map; finite masses, none below 0.
        g: Another of the same shape.

    Returns:
        From -1 to 1.

    Raises:
        InvalidInput: The maps differ in shape or have no mass.

    """
    h, g = _shares(h, g)
    a, b = h - h.mean(), g - g.mean()
    # What rounding leaves of an even map is no pattern.
    even = any(np.vdot(c, c) <= 2**-98 * np.vdot(share, share) for c, share in ((a, h), (b, g)))
    return (
        0.0
        if even
        else float(np.clip(np.vdot(a, b) / np.sqrt(np.vdot(a, a) * np.vdot(b, b)), -1.0, 1.0))
    )


def kl(true: FloatArray, estimate: FloatArray) -> float:
    """The divergence KL(true || estimate) in nats, kept finite by TINY [bylinskii19, sec. 4].

    The sum of h log(TINY + h / (g + TINY)): what the estimate leaves out costs most, up to 36 nats.

    Args:
        true: The true map; finite masses, none below 0.
        estimate: The estimated map, of the same shape.

    Returns:
        The divergence in nats, 0 for equal maps, at most about 36.

    Raises:
        InvalidInput: The maps differ in shape or have no mass.

    """
    h, g = _shares(true, estimate)
    return float((h * np.log(TINY + h / (g + TINY))).sum())


def emd_share(h: FloatArray, g: FloatArray, space: Area | Grid, *, level: int = POOLED) -> float:
    """The earth mover's distance of two maps of a grid, in sides of its square, l1 [ghazi23, sec. 2.1].

    Maps finer than `level` are pooled to it first; the distance of the pooled maps is exact, and
    differs from that of the maps by at most one diameter of a pooled cell, 2 * 2**-level: no mass
    of either moves further than half of it.

    Args:
        h: A map [row, column], row 0 at the lowest y.
        g: Another of the same shape.
        space: The area or grid the maps are of.
        level: The level to which both are pooled, at least 0.

    Returns:
        The distance in sides of the map, 0 for equal maps.

    Raises:
        InvalidInput: The maps differ in shape, or are no maps of the grid.

    Example:
        >>> emd_share(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0]]), Grid(1))
        1.0

    """
    a, b, grid = _pooled(h, g, space, level=level)
    return emd(a, b, Grid(grid.levels), normalize=True).value


def emd_ground(h: FloatArray, g: FloatArray, area: Area, *, level: int = POOLED) -> float:
    """The earth mover's distance of two maps on the ground: metres for degrees, else the area's own units.

    East and north are measured at the scale of the middle latitude, as the cells of the area are.

    Args:
        h: A map [row, column], row 0 at the lowest y.
        g: Another of the same shape.
        area: The area the maps are of.
        level: The level to which both are pooled, at least 0.

    Returns:
        The distance in metres for an area in degrees, else in its own units.

    Raises:
        InvalidInput: The maps differ in shape, or are no maps of the area.

    """
    a, b, grid = _pooled(h, g, area, level=level)
    width, height = area.cell_size
    side = area.grid.side
    if math.isclose(width, height, rel_tol=1e-9):
        # Cells square on the ground: one scale both ways, and the fast solver.
        return emd(a, b, Grid(grid.levels), normalize=True).value * width * side
    ground = Grid(grid.levels, (0.0, 0.0, width * side, height * side))
    return emd(a, b, ground, normalize=True).value


def compare(
    true: FloatArray, estimate: FloatArray, area: Area | Grid, *, level: int = POOLED
) -> Comparison:
    """All metrics of an estimated map against the true one; smooth both alike before, if at all.

    Args:
        true: The true map [row, column], row 0 at the lowest y; finite masses, none below 0.
        estimate: The estimated map, of the same shape.
        area: The area or grid the maps are of; an area in degrees gives metres too.
        level: The level to which maps are pooled before the earth mover's distance.

    Returns:
        Similarity, correlation, divergence and earth mover's distance.

    Raises:
        InvalidInput: The maps differ in shape, or are no maps of the area.

    """
    metres = None
    if isinstance(area, Area) and area.unit == "m":
        metres = emd_ground(true, estimate, area, level=level)
    return Comparison(
        similarity=similarity(true, estimate),
        pearson=pearson(true, estimate),
        kl=kl(true, estimate),
        emd=emd_share(true, estimate, area, level=level),
        emd_metres=metres,
    )


def _shares(h: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both maps with mass 1."""
    if h.shape != g.shape:
        raise InvalidInput(
            f"maps must have one shape, got {h.shape} and {g.shape}; nothing was compared"
        )
    for image in (h, g):
        total = float(image.sum())
        if not (math.isfinite(total) and total > 0 and image.min() >= 0):
            raise InvalidInput(
                "a map needs finite masses, none below 0 and some above; nothing was compared"
            )
    return h / h.sum(), g / g.sum()


def _pooled(
    h: FloatArray, g: FloatArray, space: Area | Grid, *, level: int
) -> tuple[FloatArray, FloatArray, Grid]:
    """Both maps summed up to cells of a level, and the grid of that level."""
    grid = space.grid if isinstance(space, Area) else space
    side = h.shape[0]
    if level < 0:
        raise InvalidParameter(f"level must be at least 0, got {level}; nothing was compared")
    if h.ndim != 2 or h.shape != (side, side) or side & (side - 1) or not 1 <= side <= grid.side:
        raise InvalidInput(
            f"a map of this grid is a square of at most {grid.side} cells a side, a power of two, "
            f"got {h.shape}; nothing was compared"
        )
    h, g = _shares(h, g)
    coarse = grid.at_level(min(level, side.bit_length() - 1))
    fine = side // coarse.side
    shape = (coarse.side, fine, coarse.side, fine)
    return h.reshape(shape).sum(axis=(1, 3)), g.reshape(shape).sum(axis=(1, 3)), coarse
