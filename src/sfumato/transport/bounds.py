"""Bounds on transport in one pass, and what normalising costs."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.spaces import Grid
from sfumato.transport.distance import as_image, check_penalty


def tree_bound(z: npt.ArrayLike, grid: Grid, *, penalty: float = 2.0) -> float:
    """An upper bound on the EMD norm from the quadtree, in O(cells): |P z|_1 and a correction.

    P z has, for each cell of level i, its mass times 2**-i, in units of the side of the grid. The
    lemma without the correction [ghazi23, lem. 3.5] holds for balanced mass only: for one unit in
    one cell the norm is the penalty 2, the sum 2 - 2**-levels. So |total| (penalty - (2 -
    2**-levels) side) is added (proof: docs/explain/transport.md).

    Args:
        z: Signed masses: an image [row, column], or one number for each cell.
        grid: A grid with square cells.
        penalty: What a unit of mass that is left costs, at least half the diameter.

    Returns:
        The bound, in mass times the unit of the grid.

    Raises:
        InvalidParameter: The cells are not square, or the penalty is too small.
        InvalidInput: The masses do not fit the grid.

    """
    side = _square_side(grid)
    check_penalty(penalty, grid)
    level = as_image(z, grid, "z", signed=True)
    surplus = abs(float(level.sum()))
    result = 0.0
    for i in range(grid.levels, -1, -1):
        result += float(np.abs(level).sum()) * 2.0**-i
        if i:
            level = level[0::2] + level[1::2]
            level = level[:, 0::2] + level[:, 1::2]
    return result * side + surplus * (penalty - side * (2 - 2.0**-grid.levels))


def normalized_error(error: float, mass: float) -> float:
    """How far two masses can be in EMD once both are scaled to 1, if they were within `error`: error / mass.

    `error` is |s - s'| in the norm with penalty 2 on the unit square, `mass` that of one of the
    two, the larger if both are known. [ghazi23, lem. 2.1] has 4 error / mass, and only for errors
    up to mass / 2. But scale the lighter one up: what is added moves onto what was left over, by no
    more than the diameter, which is the penalty that was paid for it (docs/explain/transport.md).
    Nothing is farther than the diameter 2.

    Args:
        error: How far the masses are apart, at least 0.
        mass: The mass of one of them, above 0.

    Returns:
        The distance of the shares, at most 2.

    Raises:
        InvalidParameter: error or mass is out of range.

    Example:
        >>> normalized_error(1, 8), normalized_error(5, 8), normalized_error(40, 8)
        (0.125, 0.625, 2.0)

    """
    if not (mass > 0 and 0 <= error < math.inf):
        raise InvalidParameter(
            f"mass must be above 0 and error finite and at least 0, got {mass} and {error}; "
            "nothing was computed"
        )
    return min(2.0, error / mass)


def _square_side(grid: Grid) -> float:
    if grid.cell_width != grid.cell_height:
        raise InvalidParameter(
            f"the tree bound needs square cells, got {grid.cell_width:g} by {grid.cell_height:g}"
        )
    return grid.cell_width * grid.side
