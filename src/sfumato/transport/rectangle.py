"""Earth mover's distance on any rectangle of cells: by a square grid around it, or, if it is long, by a graph.

Of two cells of a rectangle every shortest walk stays between them, so within it: empty cells around it change
no distance and carry no flow.
"""

from __future__ import annotations

import numpy as np

from sfumato._types import FloatArray
from sfumato.spaces import Bounds, Graph, Grid
from sfumato.transport.distance import emd
from sfumato.transport.results import GridFlow, Transport

# A square around a rectangle may have so many times its cells; a long one is a graph of its own cells.
MAX_PADDED = 8


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
    if side * side > MAX_PADDED * rows * columns:
        return _emd_long(p, q, width, height, normalize=normalize, flow=flow)
    around = Grid(levels, (west, south, west + side * width, south + side * height))
    a, b = (np.pad(one, ((0, side - rows), (0, side - columns))) for one in (p, q))
    found = emd(a, b, around, normalize=normalize, flow=flow)
    if not isinstance(found.flow, GridFlow):
        return found
    inside = GridFlow(found.flow.east[:rows, : columns - 1], found.flow.north[: rows - 1, :columns])
    return Transport(found.value, found.lower, found.upper, inside)


def _emd_long(
    p: FloatArray, q: FloatArray, width: float, height: float, *, normalize: bool, flow: bool
) -> Transport:
    """The same on the graph of neighboring cells: as much memory as the rectangle has cells."""
    rows, columns = p.shape
    cells = np.arange(rows * columns).reshape(rows, columns)
    across = np.column_stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()])
    upward = np.column_stack([cells[:-1].ravel(), cells[1:].ravel()])
    lengths = np.repeat([width, height], [len(across), len(upward)])
    sides = Graph(np.concatenate([across, upward]), lengths, nodes=rows * columns)
    found = emd(p.ravel(), q.ravel(), sides, normalize=normalize, flow=flow)
    if not isinstance(found.flow, np.ndarray):
        return found
    begin, end = sides.edges.T
    eastward = begin // columns == end // columns
    east, north = np.zeros((rows, columns - 1)), np.zeros((rows - 1, columns))
    for moved, here in ((east, eastward), (north, ~eastward)):
        moved[np.divmod(begin[here], columns)] = found.flow[here]
    return Transport(found.value, found.lower, found.upper, GridFlow(east, north))
