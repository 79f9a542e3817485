"""Earth mover's distance on any space, with its certificate."""

from __future__ import annotations

import math
from functools import singledispatch
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.spaces import Graph, Grid, Line, Points, Space
from sfumato.transport.graph import emd_graph
from sfumato.transport.grid import emd_grid, norm_grid
from sfumato.transport.line import emd_line
from sfumato.transport.mass_files import Masses, grid_levels, masses_of, usual_space
from sfumato.transport.masses import as_array, checked, difference, shaped
from sfumato.transport.points import emd_points
from sfumato.transport.results import Transport


def emd(
    p: Masses,
    q: Masses,
    space: Space | None = None,
    *,
    normalize: bool = False,
    flow: bool = False,
) -> Transport:
    """The least mass times distance that turns p into q [gilbert18, def. 1], between proven bounds.

    The metric is the space's own: positions on a line, l1 on a grid, shortest paths on a graph, and
    between points their norm, for which all pairs with excess and want are compared.

    Args:
        p: Masses, finite and not negative: an array, a table (pandas), or the path of a .npy, .csv
            or grey .png file. On a grid an image [row, column], row 0 in the south, or one number
            for each cell code; on other spaces one number for each cell.
        q: Masses of the same shape.
        space: A Line, Grid, Graph or Points. By default a list is on a `Line` of as many cells,
            1/n apart, and a square whose side is a power of two on a `Grid` over the unit square.
        normalize: Whether to scale both masses to 1; otherwise unequal masses are refused.
        flow: Whether the result also says where mass moves.

    Returns:
        The distance in mass times the unit of the space, its proven bounds, and the flow on request.

    Raises:
        InvalidInput: The masses do not fit the space, or are not equal.
        InvalidParameter: The space is none that a distance is known for.
        SolverFailed: A solution did not pass its own check.

    Example:
        >>> from sfumato.spaces import Line
        >>> emd([1, 0, 0], [0, 0, 1], Line(3, length=3)).value
        2.0
        >>> emd([[1, 0], [0, 0]], [[0, 0], [0, 1]]).value  # across a unit square of 2 x 2 cells
        1.0

    """
    if space is None or isinstance(p, str | Path) or isinstance(q, str | Path):
        p, q = masses_of(p, "p"), masses_of(q, "q")
    if space is None:
        shape = np.shape(p)
        on_line = usual_space(shape, "p") == "line"
        space = Line(shape[0]) if on_line else Grid(grid_levels(shape) or 0)
    return solve_on(space, p, q, normalize=normalize, flow=flow)


@singledispatch
def solve_on(space: object, *masses: object, **options: object) -> Transport:  # noqa: ARG001
    """The distance on one kind of space, chosen by its type.

    `solve_on.register(Kind, solver)` adds a kind: `emd` then takes it. A solver is called as
    `solver(space, p, q, normalize=..., flow=...)`, with masses not yet checked.

    Args:
        space: The space; its type chooses the solver.
        *masses: The masses p and q, one number for each cell, as `emd` takes them.
        **options: `normalize` and `flow`, as `emd` takes them.

    Returns:
        The distance between proven bounds, in mass times the unit of the space.

    Raises:
        InvalidParameter: There is no solver for this kind of space.

    """
    raise InvalidParameter(
        f"a distance needs a Line, Grid, Graph or Points, got {type(space).__name__}; none was computed"
    )


@solve_on.register
def _(space: Line, p: npt.ArrayLike, q: npt.ArrayLike, *, normalize: bool, flow: bool) -> Transport:
    shape = (space.positions.size,)
    a, b = shaped(p, shape, name="p"), shaped(q, shape, name="q")
    return emd_line(a, b, space, normalize=normalize, flow=flow)


@solve_on.register
def _(space: Grid, p: npt.ArrayLike, q: npt.ArrayLike, *, normalize: bool, flow: bool) -> Transport:
    z = difference(as_image(p, space, "p"), as_image(q, space, "q"), normalize=normalize)
    return emd_grid(z, space, flow=flow)


@solve_on.register
def _(
    space: Graph, p: npt.ArrayLike, q: npt.ArrayLike, *, normalize: bool, flow: bool
) -> Transport:
    shape = (space.size,)
    z = difference(checked(p, shape, name="p"), checked(q, shape, name="q"), normalize=normalize)
    return emd_graph(z, space, flow=flow)


@solve_on.register
def _(
    space: Points, p: npt.ArrayLike, q: npt.ArrayLike, *, normalize: bool, flow: bool
) -> Transport:
    return emd_points(p, q, space.positions, norm=space.norm, normalize=normalize, flow=flow)


def emd_norm(
    w: npt.ArrayLike, grid: Grid, *, penalty: float = 2.0, flow: bool = False
) -> Transport:
    """The EMD norm of a signed mass: the least EMD(p, q) + penalty |r|, p - q + r = w [ghazi23, sec. 2.1].

    Args:
        w: Signed masses: an image [row, column], row 0 in the south, or one number for each cell.
        grid: A grid with square cells.
        penalty: What a unit of mass that is left costs, at least half the diameter: below that it
            can pay to leave mass on both sides.
        flow: Whether the result also says where mass moves.

    Returns:
        The norm between proven bounds.

    Raises:
        InvalidParameter: The cells are not square, or the penalty is too small.
        InvalidInput: The masses do not fit the grid.

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
