"""Bounds on transport in one pass, and what normalising costs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.spaces import Grid
from sfumato.transport.distance import as_image, check_penalty


def tree_bound(z: npt.ArrayLike, grid: Grid, *, penalty: float = 2.0) -> float:
    """An upper bound on the EMD norm from the quadtree, in O(cells): |P z|_1 and a correction.

    P z has, for each cell of level i, its mass times 2**-i, in units of the side of the grid. The lemma
    without the correction [ghazi23, lem. 3.5] holds for balanced mass only: for one unit in one cell the norm
    is the penalty 2, the sum 2 - 2**-levels. So |total| (penalty - (2 - 2**-levels) side) is added
    (proof: docs/explain/transport.md).
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
    """How far two normalised masses can be in EMD norm, if the masses are within `error`: 4 error / mass.

    For |s - s'| <= mass / 2 in the norm with penalty 2 on the unit square, mass that of s [ghazi23, lem.
    2.1].
    """
    if not (mass > 0 and 0 <= error <= mass / 2):
        raise InvalidParameter(f"error must lie in [0, mass / 2 = {mass / 2:g}], got {error}")
    return 4 * error / mass


def _square_side(grid: Grid) -> float:
    if grid.cell_width != grid.cell_height:
        raise InvalidParameter(
            f"the tree bound needs square cells, got {grid.cell_width:g} by {grid.cell_height:g}"
        )
    return grid.cell_width * grid.side
