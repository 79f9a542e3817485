"""The difference of two blurred maps, cell by cell, between what it lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato._random import generator
from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.accuracy.uncertainty import FINEST_DRAWS, SIGMA, maps_inside
from sfumato.heatmap.analysis.blur import smooth, smooth_each
from sfumato.heatmap.analysis.map_total import TOTAL_TAIL, beside_noise, drawn_totals
from sfumato.heatmap.inference.bounded import window
from sfumato.heatmap.inference.known_sums import noisy_total

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease

COVERAGE = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class MapDifference:
    """What a blurred map has more than another, and between what that lies, by the draws of both.

    All [row, column] in users or in shares, row 0 at the lowest y; `low` and `high` are None if a
    map has no posterior. The interval is for each cell by itself, with `coverage`.
    """

    level: int
    sigma: float
    coverage: float
    before: FloatArray
    after: FloatArray
    low: FloatArray | None
    high: FloatArray | None

    @property
    def change(self) -> FloatArray:
        """What the second map has more."""
        return self.after - self.before


def map_difference(
    before: HeatmapRelease, after: HeatmapRelease, *, shares: bool = False
) -> MapDifference:
    """The difference of two blurred maps of one area, in users or in shares.

    Draws of the two are independent, as their noise is: each of the one is taken with one of the
    other.

    Args:
        before: One map.
        after: Another of the same area and grid.
        shares: Whether to compare shares of the whole instead of users.

    Returns:
        The difference with its band.

    """
    area = before.area
    level = min(area.grid.levels, FINEST_DRAWS)
    images = [
        smooth((one.shares if shares else one.tiles).image(level), SIGMA) for one in (before, after)
    ]
    if not shares:
        images = [one * before.measure.scale for one in images]
    if before.posterior is None or after.posterior is None:
        return MapDifference(level, SIGMA, COVERAGE, images[0], images[1], None, None)
    here = window(area, level)
    drawn = []
    for known in (before.posterior, after.posterior):
        maps = maps_inside(known, area, level)
        if shares:
            totals = maps.sum(axis=(1, 2), keepdims=True)
            maps = np.where(totals > 0, maps / np.where(totals > 0, totals, 1.0), here / here.sum())
        drawn.append(smooth_each(maps.astype(np.float32), SIGMA))
    differences = drawn[1] - drawn[0][_other(len(drawn[0]))]
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(differences, (tail, 1 - tail), axis=0)
    if not shares:
        low, high = low * before.measure.scale, high * before.measure.scale
    change = images[1] - images[0]
    return MapDifference(
        level,
        SIGMA,
        COVERAGE,
        images[0],
        images[1],
        np.minimum(low, change),
        np.maximum(high, change),
    )


def total_change(
    before: HeatmapRelease, after: HeatmapRelease, *, coverage: float
) -> tuple[float, float] | None:
    """Between what the change of the whole map lies, with chance `coverage`; None if a map cannot say.

    Every draw of the one map against every draw of the other; both are too sure of sums, by TOTAL_TAIL.
    """
    if before.posterior is None or after.posterior is None:
        return None
    area = before.area
    then, now = (drawn_totals(one, area) for one in (before.posterior, after.posterior))
    tail = (1 - coverage) / 2
    low, high = np.quantile(
        now[:, None] - then[None, :], (TOTAL_TAIL * tail, 1 - TOTAL_TAIL * tail)
    )
    first, last = (noisy_total(one, area) for one in (before.posterior, after.posterior))
    known = None if first is None or last is None else last.minus(first)
    low, high = beside_noise((low, high), known, tail=tail)
    scale = before.measure.scale
    return float(scale * low), float(scale * high)


def _other(count: int) -> IntArray:
    """Which draw goes with each: draws come in the order of their totals, so not its own number.

    Two and two change places, so that it does not matter which map is the first.
    """
    pairs = generator(0).permutation(count - count % 2).reshape(-1, 2)
    found = np.arange(count)
    found[pairs[:, 0]], found[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return found
