"""Communities of a graph as pictures have them: numbers in order, and outlines where they lie apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial import ConvexHull, QhullError

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter


def community_numbers(labels: npt.ArrayLike, size: int) -> IntArray:
    """Labels of any kind, one for each node, as numbers 0, 1, ... in the order of the labels."""
    array = np.asarray(labels)
    if array.shape != (size,) or array.dtype.kind not in "biufU":
        raise InvalidParameter(
            f"labels must be one number or name for each of {size} nodes, got shape {array.shape} and type "
            f"{array.dtype}; nothing was drawn"
        )
    return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64)


def community_outlines(at: FloatArray, groups: IntArray) -> list[FloatArray]:
    """Outlines around the communities, if they lie apart; none at all where they are mixed.

    An outline holds the nearest 95 % of a community's nodes, with a margin; communities lie apart
    if at most a tenth of all nodes are within another one's outline. One of fewer than 3 nodes has
    an empty one.
    """
    from matplotlib.path import Path

    outlines, astray = [], 0
    for group in range(int(groups.max(initial=0)) + 1):
        own = at[groups == group]
        outline = _outline(own)
        outlines.append(outline)
        if len(outline):
            astray += int(Path(outline).contains_points(at[groups != group]).sum())
    return outlines if astray <= len(at) / 10 else []


def _outline(own: FloatArray) -> FloatArray:
    middle = np.median(own, axis=0)
    far = np.hypot(*(own - middle).T)
    kept = own[far <= np.quantile(far, 0.95)] if len(own) > 20 else own
    try:
        corners = kept[ConvexHull(kept).vertices]
    except (QhullError, ValueError):  # fewer than three places, or all on one line
        return np.empty((0, 2))
    return np.asarray(middle + 1.08 * (corners - middle))
