"""How many people a map is of, and between what that number lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sfumato._types import FloatArray
from sfumato.heatmap.accuracy.uncertainty import DRAWS, FINEST_DRAWS, maps_inside
from sfumato.heatmap.inference.known_sums import (
    NEXT_TO_NOBODY,
    NoisyTotal,
    deviations,
    noisy_total,
)
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.heatmap.measure import amount_of
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.private_map import HeatmapRelease

COVERAGE = 0.9
# A posterior takes a crowd at one place for somebody in many besides, and people at many places for
# fewer of them. With tails of three tenths, as other sums have, 75 % of intervals held 30 users at one
# place (zoom, epsilon 1), and with a 20th 94 %. docs/explain/heatmap-uncertainty.md has the sums.
TOTAL_TAIL = 0.05
# So many quantiles of what is known of a root: some are beyond these tails.
QUANTILES = 1000
# Of a map of nobody the noise pushes a total up. At what 5 % of such totals exceed the low end is a
# 165th of the high one where noise is that of one Laplace count, and a 198th where it is normal: a low
# end below a 20th is 0, which also allows for noise that is added up.
FAR_FROM_NOBODY = 20.0


@dataclass(frozen=True, slots=True)
class MapTotal:
    """The estimated total of a map, in what it counts.

    Attributes:
        value: The estimate.
        low: What the truth is below with a chance of 5 %; None for a method that cannot say.
        high: What it is above with the same chance.
        counted: What is counted, in the plural.
        coverage: The chance that the truth lies from `low` to `high`.

    """

    value: float
    low: float | None
    high: float | None
    counted: str = "users"
    coverage: float = COVERAGE

    def __str__(self) -> str:
        """In words, with no more digits than the interval is wide.

        >>> str(MapTotal(20_004.3, 19_951.2, 20_057.7))
        'about 20,000 users (90%: 19,950 to 20,060)'
        >>> str(MapTotal(12_345.6, None, None, "rows"))
        'about 12,300 rows'
        >>> str(MapTotal(1.2, 0.0, 7.5)), str(MapTotal(0.8, None, None, "rows"))
        ('about 1 user (90%: 0 to 8)', 'about 1 row')
        """
        if self.low is None or self.high is None:
            shown = f"{float(f'{self.value:.3g}'):,.0f}"
            return f"about {amount_of(shown, self.counted)}"
        step = 10 ** max(0, math.floor(math.log10(max(self.high - self.low, 1.0))) - 1)
        value = step * round(self.value / step)
        low, high = step * math.floor(self.low / step), step * math.ceil(self.high / step)
        sure = f"{100 * self.coverage:g}%"
        return f"about {amount_of(f'{value:,}', self.counted)} ({sure}: {low:,} to {high:,})"


def map_total(release: HeatmapRelease) -> MapTotal:
    """The total of a map, and between what it lies by the maps that could have led to what was released.

    Those use all counts; `compare_maps` says by the same ones how a total changed.

    Privacy: post-processing of what was released; it costs nothing.

    Args:
        release: The map.

    Returns:
        The total; without an interval where the map has no posterior.

    """
    measure, value = release.measure, release.tiles.total
    ends = total_ends(release)
    if ends is None:
        return MapTotal(measure.scale * value, None, None, measure.name)
    low, high = ends
    return MapTotal(
        measure.scale * value,
        measure.scale * min(low, value),
        measure.scale * max(high, value),
        measure.name,
    )


def total_ends(release: HeatmapRelease) -> tuple[float, float] | None:
    """Between what the total lies in users; a saved map says what it said then.

    Args:
        release: The map.

    Returns:
        The 90 % interval; None where the map has no posterior.

    """
    if release.known_total is not None or release.posterior is None:
        return release.known_total
    return _limits(release.posterior, release.area)


@lru_cache(maxsize=32)
def _limits(posterior: MapPosterior, area: Area) -> tuple[float, float]:
    return total_limits(posterior, area, coverage=COVERAGE)


def total_limits(
    posterior: MapPosterior, area: Area, *, coverage: float = COVERAGE
) -> tuple[float, float]:
    """Between what the total lies in users: a posterior is too sure of it, by TOTAL_TAIL.

    No map that could have been is of nobody: what may well be of nobody, by its noise, is from 0 on.
    Where counts were kept back the law of the noise is held too, as `beside_noise` says.
    """
    tail = (1 - coverage) / 2
    totals = drawn_totals(posterior, area, QUANTILES)
    low, high = np.quantile(totals, (TOTAL_TAIL * tail, 1 - TOTAL_TAIL * tail))
    low, high = beside_noise((low, high), noisy_total(posterior, area), tail=tail)
    return low if low >= max(NEXT_TO_NOBODY, high / FAR_FROM_NOBODY) else 0.0, max(high, 0.0)


def beside_noise(
    ends: tuple[float, float], known: NoisyTotal | None, *, tail: float
) -> tuple[float, float]:
    """The ends of an interval that holds that of the noise as well, where there is one.

    Of 40 users a pyramid's posterior held the total in 83 %: of cells that were kept back it believes
    what maps usually look like, and the sum of the first level believes nothing.
    """
    low, high = ends
    if known is None:
        return float(low), float(high)
    far = deviations(tail, known.law) * known.deviation
    return float(min(low, known.value - far)), float(max(high, known.value + far))


def drawn_totals(posterior: MapPosterior, area: Area, count: int = DRAWS) -> FloatArray:
    """The totals of the maps that could have led to what was released, in users.

    What a posterior knows of its root says them all at once. Its maps have these very totals, but for
    the least mass that every cell has: no more than LEAST a cell, 2e-5 users in all.
    """
    known = posterior.totals_inside(area, count)
    if known is not None:
        return known
    level = min(area.grid.levels, FINEST_DRAWS)
    return np.asarray(maps_inside(posterior, area, level).sum(axis=(1, 2)))
