"""Between what the users of a zone lie: the noise on its cells, and where mass is in cells a border cuts.

The two doubts add up. The noise is another one in every release, and its law is known. Where the
mass of a cut cell stands is the same in every release, so an interval has to hold it for this zone,
not for most zones: one zone in a thousand may be beyond the prior below, and next to it stands what
no prior is needed for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sfumato._types import BoolArray, FloatArray
from sfumato.heatmap.analysis.map_total import total_limits
from sfumato.heatmap.analysis.zone_shapes import ROUNDING, ZoneMask
from sfumato.heatmap.inference.bounded import window
from sfumato.heatmap.inference.filters import any_around
from sfumato.heatmap.inference.known_sums import KnownSums, known_sums
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease

# Cells of a thousandth of the side: below them a map's mass is taken to be even.
FINEST_ZONES = 10
# The prior of cells that a border cuts: the mass of each stands in one place, which is in the zone
# with the chance that is the zone's part of it, apart from the others. The sum of their masses, as
# estimated, in the zone is beyond either end with this chance at most.
BEYOND = 1e-3
# And for all of them together, as a border may follow a street or a river: the odds of that chance
# may be exp(TILT) times higher or lower. Both were chosen on other places than the page on
# uncertainty tells of.
TILT = 0.5
# A cut cell has some of its mass on either side.
LEAST_PART = 1e-4


@dataclass(frozen=True, slots=True)
class ZoneLimits:
    """Users of a zone: from `low` to `high` by the prior of cut cells, from `least` to `most` without it."""

    low: float
    high: float
    least: float
    most: float


def zone_limits(
    release: HeatmapRelease,
    masks: Sequence[ZoneMask],
    users: Sequence[float],
    *,
    coverage: float,
) -> list[ZoneLimits | None]:
    """Limits of each zone around its estimate; None for a map without a posterior.

    Of zones that lie in one another the inner one never has a higher end than the outer one: the
    wider interval is given to both, so that neither holds less often.
    """
    if release.posterior is None:
        return [None] * len(masks)
    cells = _Cells.of(release, release.posterior)
    tail = (1 - coverage) / 2
    found = [
        cells.limits(mask, estimate, tail=tail) for mask, estimate in zip(masks, users, strict=True)
    ]
    return [*_nested(masks, found)]


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The cells whose sums are known: estimated users of each, and how many finest places it has inside."""

    known: KnownSums
    posterior: MapPosterior
    area: Area
    image: FloatArray
    masses: FloatArray
    places: FloatArray
    outside: BoolArray

    @classmethod
    def of(cls, release: HeatmapRelease, posterior: MapPosterior) -> _Cells:
        """The cells of a map that was released, on the level of its masks."""
        known = known_sums(posterior, release.area)
        level = min(release.area.grid.levels, FINEST_ZONES)
        image = release.tiles.image(level)
        owner = known.owner.ravel()
        here = window(release.area, level)
        masses, places = (
            np.asarray(np.bincount(owner, _pooled(values, known.level).ravel()), dtype=np.float64)
            for values in (image * here, here.astype(np.float64))
        )
        outside = ~window(release.area, known.level)
        return cls(known, posterior, release.area, image, masses, places, outside)

    def limits(self, mask: ZoneMask, estimate: float, *, tail: float) -> ZoneLimits:
        """Both kinds of limits, which hold the estimate."""
        whole, touched, part = self.parts(mask)
        if whole[self.places > 0].all():  # of the whole map more is known than its last counts say
            ends = total_limits(self.posterior, self.area, coverage=1 - 2 * tail)
            ends = min(ends[0], estimate), max(ends[1], estimate)
            return ZoneLimits(*ends, *ends)
        low, high = self.border(whole, touched, part)
        inner = self.known.limits(low, high, tail=tail)
        outer = self.known.bounds(whole.astype(float), touched.astype(float), tail=tail)
        return ZoneLimits(
            min(inner[0], estimate),
            max(inner[1], estimate),
            min(inner[0], outer[0], estimate),
            max(inner[1], outer[1], estimate),
        )

    def parts(self, mask: ZoneMask) -> tuple[BoolArray, BoolArray, FloatArray]:
        """Which cells are wholly in a zone, which are touched by it, and the part of each one's mass in it.

        The part is that of the estimated mass, or of the area where there is none.
        """
        side = 1 << self.known.level
        block = len(self.image) // side
        rows, columns = (
            slice(one.start // block, -(-one.stop // block)) for one in (mask.rows, mask.columns)
        )
        shape = (rows.stop - rows.start, block, columns.stop - columns.start, block)
        weights = np.zeros((shape[0] * block, shape[2] * block))
        top, left = mask.rows.start - rows.start * block, mask.columns.start - columns.start * block
        height, width = mask.weights.shape
        weights[top : top + height, left : left + width] = mask.weights
        fine = self.image[
            rows.start * block : rows.stop * block, columns.start * block : columns.stop * block
        ]
        owner = self.known.owner[rows, columns].ravel()
        full, some, area, held = (
            np.bincount(
                owner,
                np.asarray(values, dtype=np.float64).reshape(shape).sum(axis=(1, 3)).ravel(),
                minlength=self.masses.size,
            )
            for values in (weights >= 1 - ROUNDING, weights > ROUNDING, weights, weights * fine)
        )
        touched = some > 0
        even = area / np.maximum(self.places, 1)
        part = np.where(self.masses > 0, held / np.where(self.masses > 0, self.masses, 1), even)
        return touched & (full >= self.places), touched, np.clip(part, 0.0, 1.0)

    def border(
        self, whole: BoolArray, touched: BoolArray, part: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The least and the largest part of each cell's mass that the prior gives the zone."""
        cut = touched & ~whole
        chance = np.clip(part, LEAST_PART, 1 - LEAST_PART)
        odds = chance / (1 - chance)
        less, more = (
            odds * times / (1 + odds * times) for times in (math.exp(-TILT), math.exp(TILT))
        )
        # A zone may be drawn around the very place where a cell's mass stands, or leave it out: where
        # it is too narrow to hold a whole cell next to a cut one, or what it leaves out is, no
        # prior says anything.
        free = cut & ~(self.next_to(whole, edge=False) & self.next_to(~touched, edge=True))
        low, high = np.where(free, 0.0, less), np.where(free, 1.0, more)
        left = np.flatnonzero(cut & ~free)
        low[left] = 1 - furthest(self.masses[left], 1 - less[left])
        high[left] = furthest(self.masses[left], more[left])
        return np.where(cut, low, whole), np.where(cut, high, whole)

    def next_to(self, some: BoolArray, *, edge: bool) -> BoolArray:
        """Which cells touch one of some cells, if only at a corner; outside the bounds counts as `edge`."""
        picture = np.where(self.outside, edge, some[self.known.owner])
        around = np.pad(picture, 1, constant_values=edge)
        near = any_around(around)[1:-1, 1:-1]
        return np.asarray(
            np.bincount(self.known.owner.ravel(), near.ravel(), minlength=some.size) > 0
        )


def furthest(masses: FloatArray, chances: FloatArray) -> FloatArray:
    """Parts of masses whose sum is exceeded with chance BEYOND at most, if each is there or not by its chance.

    By Chernoff's bound, in its dual form: of all parts whose relative entropies to the chances add
    up to log(1 / BEYOND), those with the largest sum. Few deviations would be no bound: a single
    mass is there with its chance, be it one in twenty, and is then all there. So where masses of
    higher chances than BEYOND make up the sum, all of them are counted.

    >>> furthest(np.array([600.0, 40.0]), np.array([0.05, 0.2])).tolist()
    [1.0, 1.0]
    """
    allowed = math.log(1 / BEYOND)
    if not masses.size or -np.log(chances[masses > 0]).sum() <= allowed:
        return np.where(masses > 0, 1.0, chances)
    odds = np.log(chances) - np.log1p(-chances)

    def parts(steepness: float) -> FloatArray:
        # Beyond 700 a part is 0 or 1.
        return 1 / (1 + np.exp(-np.clip(odds + steepness * masses, -700.0, 700.0)))

    def spare(exponent: float) -> float:
        found = parts(math.exp(exponent))
        return allowed - float((_entropy(found, chances) + _entropy(1 - found, 1 - chances)).sum())

    low = -math.log(masses.max()) - 20  # too flat to cost anything
    high = low + 1
    while spare(high) > 0:
        high += 5
    return parts(math.exp(_root(spare, low, high)))


def _entropy(part: FloatArray, chance: FloatArray) -> FloatArray:
    """The relative entropy of parts to chances; 0 of no part."""
    return np.where(part > 0, part * np.log(np.maximum(part, 1e-300) / chance), 0.0)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0, from above 0 at `low` to not above it at `high`: the Illinois method.

    >>> round(_root(lambda x: 2 - x**3, 0.0, 4.0), 9)
    1.25992105
    """
    above, below, side = falling(low), falling(high), 0
    while high - low > 1e-12 and below < 0:
        middle = (low * below - high * above) / (below - above)
        if not low < middle < high:  # as near as numbers go
            break
        found = falling(middle)
        if found > 0:
            low, above = middle, found
            below = below / 2 if side > 0 else below
            side = 1
        else:
            high, below = middle, found
            above = above / 2 if side < 0 else above
            side = -1
    return high


def _pooled(image: FloatArray, level: int) -> FloatArray:
    """A picture summed up to the cells of a coarser level."""
    side = 1 << level
    return np.asarray(image.reshape(side, len(image) // side, side, -1).sum(axis=(1, 3)))


def _nested(masks: Sequence[ZoneMask], limits: Sequence[ZoneLimits]) -> list[ZoneLimits]:
    """Ends that rise from inner to outer zones: low ends pass inward, high ends outward."""
    found = list(limits)
    spans = np.array(
        [[one.rows.start, -one.rows.stop, one.columns.start, -one.columns.stop] for one in masks]
    )
    for outer, mask in enumerate(masks):
        for inner in np.flatnonzero((spans >= spans[outer]).all(axis=1)).tolist():
            if inner != outer and masks[inner].within(mask):
                a, b = found[inner], found[outer]
                its, own = limits[inner], limits[outer]
                found[inner] = replace(a, low=min(a.low, own.low), least=min(a.least, own.least))
                found[outer] = replace(b, high=max(b.high, its.high), most=max(b.most, its.most))
    return found
