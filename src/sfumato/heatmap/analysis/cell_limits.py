"""Between what the users of cells and hexagons lie, by maps that could have led to what was released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.accuracy.uncertainty import FINEST_DRAWS, maps_inside
from sfumato.heatmap.inference.known_sums import NEXT_TO_NOBODY, TAIL

if TYPE_CHECKING:
    from sfumato.heatmap.private_map import HeatmapRelease

COVERAGE = 0.9
# Parts of a cell are sums of rounded ones: from here on they are the whole.
WHOLE = 1e-9


def finest_known(release: HeatmapRelease) -> int | None:
    """The finest level whose cells have intervals; None for a map without a posterior."""
    if release.posterior is None:
        return None
    return min(release.area.grid.levels, FINEST_DRAWS)


def limits_of_sums(
    release: HeatmapRelease, weights: Any, amounts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Low and high ends of sums of cells, each for itself with a chance of 90 %.

    `weights` is a sparse matrix [cell of level `finest_known`, row by row from the lowest y; sum], the
    part of each cell in each sum; `amounts` are the estimates, in what the map counts, which the
    intervals hold. Where in a cell its mass lies nobody knows: a cell that a border cuts counts
    wholly at the high end and not at all at the low one. Taken to be even, intervals of hexagons
    held half of what they should (`tests/heatmap/export/test_hexagon_limits.py`).
    """
    maps = _maps(release)
    flat = maps.reshape(len(maps), -1)
    inside, touched = weights.copy(), weights.copy()
    inside.data = (weights.data > 1 - WHOLE).astype(np.float64)
    touched.data = (weights.data > 0).astype(np.float64)
    return _ends(release, np.asarray(flat @ inside), amounts, np.asarray(flat @ touched))


def limits_of_cells(
    release: HeatmapRelease, levels: IntArray, codes: IntArray, amounts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same for cells by level and code; not a number for those finer than `finest_known`."""
    finest = finest_known(release) or 0
    maps = _maps(release)
    order = np.argsort(release.area.grid.at_level(finest).codes_of_image().ravel())
    sums = np.zeros((len(maps), order.size + 1))
    np.cumsum(maps.reshape(len(maps), -1)[:, order], axis=1, out=sums[:, 1:])
    known = levels <= finest
    # A cell's finest parts follow one another in Z-order.
    first = codes[known] << 2 * (finest - levels[known])
    held = sums[:, first + (1 << 2 * (finest - levels[known]))] - sums[:, first]
    low, high = (np.full(levels.size, np.nan) for _ in range(2))
    low[known], high[known] = _ends(release, held, amounts[known])
    return low, high


def _maps(release: HeatmapRelease) -> FloatArray:
    if release.posterior is None:
        raise ValueError("a map without a posterior has no intervals")
    return maps_inside(release.posterior, release.area, finest_known(release) or 0)


def _ends(
    release: HeatmapRelease,
    held: FloatArray,
    amounts: FloatArray,
    at_most: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Quantiles over the draws, whose tails are too light: as for totals of zones."""
    tail, scale = TAIL * (1 - COVERAGE) / 2, release.measure.scale
    least = np.quantile(held, tail, axis=0)
    most = np.quantile(held if at_most is None else at_most, 1 - tail, axis=0)
    least = np.where(least < NEXT_TO_NOBODY, 0.0, least)
    return np.minimum(scale * least, amounts), np.maximum(scale * most, amounts)
