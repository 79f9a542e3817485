"""Earth mover's distance on any rectangle of cells, by a square grid that holds it.

Of two cells of a rectangle every shortest walk stays between them, so within it: empty cells around it change
no distance and carry no flow.
"""

from __future__ import annotations

import numpy as np

from sfumato._types import FloatArray
from sfumato.spaces import Bounds, Grid
from sfumato.transport.distance import emd
from sfumato.transport.results import GridFlow, Transport


def emd_rectangle(
    p: FloatArray,
    q: FloatArray,
    *,
    bounds: Bounds | None = None,
    normalize: bool = False,
    flow: bool = False,
) -> Transport:
    """The distance between two images of any shape, with the l1 metric between centers of cells.

    Args:
        p: Masses [row, column], row 0 in the south.
        q: Masses of the same shape.
        bounds: West, south, east and north; None for cells that are square, the longer side being 1.
        normalize: Whether to scale both masses to 1.
        flow: Whether the result says where mass moves.

    Returns:
        The distance between proven bounds, and the flow on request.

    Raises:
        InvalidInput: Masses are not equal, or none.

    >>> emd_rectangle(np.array([[1.0, 0, 0]]), np.array([[0, 0, 1.0]]), bounds=(0, 0, 30, 5)).value
    20.0
    """
    rows, columns = p.shape
    levels = (max(rows, columns) - 1).bit_length()
    side = 1 << levels
    longest = max(rows, columns)
    west, south, east, north = bounds or (0.0, 0.0, columns / longest, rows / longest)
    width, height = (east - west) / columns, (north - south) / rows
    around = Grid(levels, (west, south, west + side * width, south + side * height))
    a, b = (np.pad(one, ((0, side - rows), (0, side - columns))) for one in (p, q))
    found = emd(a, b, around, normalize=normalize, flow=flow)
    if not isinstance(found.flow, GridFlow):
        return found
    inside = GridFlow(found.flow.east[:rows, : columns - 1], found.flow.north[: rows - 1, :columns])
    return Transport(found.value, found.lower, found.upper, inside)
