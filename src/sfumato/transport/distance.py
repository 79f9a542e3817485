"""Earth mover's distance on any space, with its certificate."""

from __future__ import annotations

import math
from typing import assert_never

import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.spaces import Graph, Grid, Line, Points
from sfumato.transport.graph import emd_graph
from sfumato.transport.grid import emd_grid, norm_grid
from sfumato.transport.line import emd_line
from sfumato.transport.masses import as_array, checked, difference, shaped
from sfumato.transport.points import emd_points
from sfumato.transport.result import Transport


def emd(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    space: Line | Grid | Graph | Points,
    *,
    normalize: bool = False,
    flow: bool = False,
) -> Transport:
    """The least mass times distance that turns p into q [gilbert18, def. 1], between proven bounds.

    The metric is the space's own: positions on a line, l1 on a grid, shortest paths on a graph, and
    between points their norm, for which all pairs with excess and want are compared. Masses on a
    grid are an image [row, column], row 0 in the south, or one number for each cell code. Unequal
    masses are an error, unless `normalize` scales both to 1.

    >>> emd([1, 0, 0], [0, 0, 1], Line(3, length=3)).value
    2.0
    """
    if not isinstance(space, Line | Grid | Graph | Points):
        raise InvalidParameter(
            f"a distance needs a Line, Grid, Graph or Points, got {type(space).__name__}; none was computed"
        )
    match space:
        case Line():
            shape = (space.positions.size,)
            a, b = shaped(p, shape, name="p"), shaped(q, shape, name="q")
            return emd_line(a, b, space, normalize=normalize, flow=flow)
        case Grid():
            z = difference(as_image(p, space, "p"), as_image(q, space, "q"), normalize=normalize)
            return emd_grid(z, space, flow=flow)
        case Graph():
            shape = (space.size,)
            z = difference(
                checked(p, shape, name="p"), checked(q, shape, name="q"), normalize=normalize
            )
            return emd_graph(z, space, flow=flow)
        case Points():
            return emd_points(
                p, q, space.positions, norm=space.norm, normalize=normalize, flow=flow
            )
        case _:
            assert_never(space)


def emd_norm(
    w: npt.ArrayLike, grid: Grid, *, penalty: float = 2.0, flow: bool = False
) -> Transport:
    """The EMD norm of a signed mass: the least EMD(p, q) + penalty |r|, p - q + r = w [ghazi23, sec. 2.1].

    Square cells only, and a penalty of at least half the diameter: below that it can pay to leave
    mass on both sides.
    """
    if grid.cell_width != grid.cell_height:
        raise InvalidParameter(
            f"emd_norm needs square cells, got {grid.cell_width:g} by {grid.cell_height:g}"
        )
    check_penalty(penalty, grid)
    return norm_grid(as_image(w, grid, "w", signed=True), grid, penalty=penalty, flow=flow)


def check_penalty(penalty: float, grid: Grid) -> None:
    """Refuse a penalty below which it can pay to leave mass on both sides."""
    if not grid.diameter / 2 <= penalty < math.inf:
        raise InvalidParameter(
            f"penalty must be finite and at least half the diameter {grid.diameter:g}, got {penalty}"
        )


def as_image(values: npt.ArrayLike, grid: Grid, name: str, *, signed: bool = False) -> FloatArray:
    """Masses as an image, whether they came as one or by cell code."""
    array = as_array(values, name)
    if array.ndim == 1:
        return grid.image(checked(array, (grid.size,), name=name, signed=signed))
    return checked(array, (grid.side, grid.side), name=name, signed=signed)
