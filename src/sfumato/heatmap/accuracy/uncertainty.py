"""What a map does not know, from released values alone: a band, where it says nothing, and sure places.

All of it is read off maps that could have led to what was released, drawn by the map's posterior:
none of it costs anything. docs/explain/heatmap-uncertainty.md says in plain words what each of them
means.

Long because the band, the silence and the marks are read off one set of draws.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from sfumato._types import BoolArray, FloatArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.analysis.blur import smooth, smooth_each
from sfumato.heatmap.inference.bounded import hold_inside, last_counted, window
from sfumato.heatmap.inference.filters import highest_around, mostly_around
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.spaces import Area, Grid

SmallFloats = npt.NDArray[np.float32]

SIGMA = 0.02
COVERAGE = 0.9
CONFIDENCE = 0.95
# The 10th from either end of 200 is the 90 % band, and 9 of 200 may fail where 95 % are asked for.
DRAWS = 200
# 200 maps of 128 x 128 cells take a second; a cell of them is four tenths of the usual blur.
FINEST_DRAWS = 7
# The draws know the noise; what maps look like they guess. So of the misses that a band may have
# where the true mass is, its draws may show this part: chosen on places that are not among those it
# is judged by.
SPARE = 0.6
# A mark says "more than twice the average", a hatch "maybe under half of it, maybe over twice".
TIMES = 2.0
# A disc of radius 2 sigma has the area 4 pi sigma**2, over which a Gaussian of deviation sigma
# spreads a point (one over the integral of its square). Discs twice their radius apart do not
# overlap.
REACH = 2.0
MOST_MARKS = 30
HEAVY = 0.9

# What was worked out of a posterior lives as long as it does: as long as the map it belongs to.
_KNOWN: WeakKeyDictionary[MapPosterior, dict[tuple[Area, int, float, float], Uncertainty]] = (
    WeakKeyDictionary()
)


@dataclass(frozen=True, slots=True, eq=False)
class MapBand:
    """Between what the blurred map lies: each true value is inside with chance `coverage` or more.

    So are, on average, the cells that hold most of the true mass. All [row, column] in shares of
    the whole, row 0 at the lowest y; `middle` is the median.
    """

    level: int
    sigma: float
    coverage: float
    low: FloatArray
    middle: FloatArray
    high: FloatArray

    @property
    def width(self) -> float:
        """The mean of high - low over that of the map, where the heaviest 90 % of its mass is."""
        here = heaviest(self.middle, HEAVY)
        return float(
            (self.high - self.low)[here].mean() / max(float(self.middle[here].mean()), 1e-300)
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """A place that is busy for sure, and the share of all mass within reach of it, from `low` to `high`.

    x and y are in the units of the map's bounds. The interval is for this place alone; that every
    mark holds more than `TIMES` the average is said of all of them at once.
    """

    x: float
    y: float
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class ShownUncertainty:
    """What pictures show of a map's uncertainty: cells that say nothing [row, column], and places."""

    silent: BoolArray
    marks: tuple[Mark, ...]
    untested: tuple[tuple[float, float], ...] = ()
    sigma: float = SIGMA

    @property
    def level(self) -> int:
        """The level of the cells."""
        return len(self.silent).bit_length() - 1

    @property
    def reach(self) -> float:
        """The radius around a mark that its share is of, in sides of the grid."""
        return REACH * self.sigma

    def to_json(self) -> dict[str, Any]:
        """The cells as bits, row by row; marks and places are told with the map's uncertainty."""
        bits = b64encode(np.packbits(self.silent).tobytes()).decode()
        return {"level": self.level, "cells": bits}

    @staticmethod
    def silent_cells(data: Any) -> BoolArray:
        """The cells that `to_json` told; ValueError, KeyError or TypeError for anything else."""
        level = int(data["level"])
        if not 0 <= level <= FINEST_DRAWS:
            raise ValueError(f"its silent cells are not of a level in 0..{FINEST_DRAWS}")
        bits = np.frombuffer(b64decode(data["cells"], validate=True), dtype=np.uint8)
        if bits.size != -(-(4**level) // 8):
            raise ValueError("its silent cells are not all there")
        cells = np.unpackbits(bits, count=4**level).astype(np.bool_)
        return cells.reshape(1 << level, 1 << level)


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """The band of a blurred map, where it says nothing (`silent`), and the `marks` that are real.

    `untested` are x and y of further peaks: their discs would overlap one that was tested.
    """

    band: MapBand
    silent: BoolArray
    marks: tuple[Mark, ...]
    silent_share: float
    untested: tuple[tuple[float, float], ...] = ()

    @property
    def reach(self) -> float:
        """The radius around a mark that its share is of, in sides of the grid."""
        return REACH * self.band.sigma

    @property
    def shown(self) -> ShownUncertainty:
        """What pictures show of it."""
        return ShownUncertainty(self.silent, self.marks, self.untested, self.band.sigma)

    def to_json(self) -> dict[str, Any]:
        """What a report says of it: numbers and marks, no arrays."""
        return {
            "sigma": self.band.sigma,
            "level": self.band.level,
            "coverage": self.band.coverage,
            "width": self.band.width,
            "silent_share": self.silent_share,
            "confidence": CONFIDENCE,
            "times_average": TIMES,
            "reach": self.reach,
            "marks": [asdict(mark) for mark in self.marks],
            "untested": [list(place) for place in self.untested],
        }

    def of_nothing(self, area: Area) -> Uncertainty:
        """The same of a map that cannot be told from one of nobody: it says nothing anywhere."""
        return replace(
            self, silent=window(area, self.band.level), marks=(), silent_share=1.0, untested=()
        )


def uncertainty(
    posterior: MapPosterior,
    area: Area,
    *,
    level: int | None = None,
    sigma: float = SIGMA,
    coverage: float = COVERAGE,
) -> Uncertainty:
    """All that is said of a map's uncertainty, from one set of draws; kept as long as the posterior.

    `level` is at most FINEST_DRAWS; `sigma` is the blur in sides of the grid.
    """
    chosen = min(area.grid.levels, FINEST_DRAWS) if level is None else level
    if not 0 <= chosen <= min(area.grid.levels, FINEST_DRAWS):
        raise InvalidParameter(
            f"uncertainty is worked out for levels 0 to {min(area.grid.levels, FINEST_DRAWS)}, got {chosen}; "
            "nothing was drawn"
        )
    if not (math.isfinite(sigma) and sigma > 0):
        raise InvalidParameter(f"sigma must be finite and above 0, got {sigma}; nothing was drawn")
    if not 2 / (DRAWS + 1) <= 1 - coverage < 1:
        raise InvalidParameter(
            f"coverage must lie in (0, {1 - 2 / (DRAWS + 1):.2f}], got {coverage}; nothing was drawn"
        )
    known = _KNOWN.setdefault(posterior, {})
    asked = (area, chosen, sigma, coverage)
    if asked not in known:
        known[asked] = _worked_out(posterior, area, chosen, sigma, coverage)
    return known[asked]


def _worked_out(
    posterior: MapPosterior, area: Area, level: int, sigma: float, coverage: float
) -> Uncertainty:
    here = window(area, level)
    shares = maps_inside(posterior, area, level).astype(np.float32)
    totals = shares.sum(axis=(1, 2), dtype=np.float64)
    empty: BoolArray = ~(totals > 0)
    even = here / here.sum()
    shares[empty] = even
    shares /= np.where(empty, 1.0, totals)[:, None, None].astype(np.float32)
    blurred = smooth_each(shares, sigma)
    band = _band(blurred, empty, level=level, sigma=sigma, coverage=coverage)
    mute = here & _mostly(silent(band, smooth(even, sigma)), sigma)
    chosen = np.where(here, blurred[::2].mean(axis=0), 0.0)
    places, untested = _peaks(chosen, sigma, least=1 / float(here.sum()))
    marks = _marks(shares, places, empty, here, area=area, sigma=sigma, coverage=coverage)
    beside = tuple(_middle(place, area, len(here)) for place in untested)
    return Uncertainty(band, mute, marks, float(mute.sum() / here.sum()), beside)


@lru_cache(maxsize=2)
def maps_inside(posterior: MapPosterior, area: Area, level: int, count: int = DRAWS) -> FloatArray:
    """So many maps that could have led to what was released, in users, with nobody outside the bounds."""
    maps = posterior.maps(count, level)
    grid = area.grid.at_level(level)
    leaves = np.arange(grid.size).reshape(grid.side, -1)
    if posterior.counts is not None:
        leaves = last_counted(posterior.counts, level)[grid.codes_of_image()]
    found = hold_inside(maps.reshape(len(maps), -1), leaves.ravel(), window(area, level).ravel())
    found = found.reshape(maps.shape)
    found.setflags(write=False)
    return found


def _band(
    blurred: SmallFloats, empty: BoolArray, *, level: int, sigma: float, coverage: float
) -> MapBand:
    """Order statistics of the draws, a few rows at a time.

    If the truth is one more draw like these, it is below the k-th of n with chance k / (n + 1); k
    is the largest that leaves `coverage` between the k-th from either end, and above it
    `_upper_tail` may take a higher one. A draw of nobody has no shares: it counts as below and as
    above.
    """
    count, rows, columns = blurred.shape
    k, lost = _tail(count, coverage), int(empty.sum())
    if lost >= k:
        nothing, all_of_it = np.zeros((rows, columns)), np.ones((rows, columns))
        return MapBand(
            level, sigma, coverage, nothing, np.median(blurred, axis=0).astype(float), all_of_it
        )
    there = blurred[~empty] if lost else blurred
    upper = max(_upper_tail(there, coverage, most=k), lost + 1)
    places = [k - 1 - lost, (count - lost) // 2, count - upper]
    found = np.empty((3, rows, columns))
    for first in range(0, rows, 8):
        # Draws side by side: so few are sorted faster than parted.
        some = np.ascontiguousarray(there[:, first : first + 8].reshape(count - lost, -1).T)
        some.sort(axis=1)
        found[:, first : first + 8] = some[:, places].T.reshape(3, -1, columns)
    return MapBand(level, sigma, coverage, found[0], found[1], found[2])


def _upper_tail(blurred: SmallFloats, coverage: float, *, most: int) -> int:
    """Which draw from the top is the high end of a band, so that it holds where the true mass is.

    Cells that turn out heavy are those where the truth is high: of them more lie above a band than
    of all. How many is seen on the draws, each taken for the truth in turn: the end is the lowest
    that leaves no more than SPARE of the misses `coverage` allows among each one's heaviest cells,
    on average, but no lower than the `most`-th. A grid of 64 will do.
    """
    step = max(1, blurred.shape[1] // 64)
    some = blurred[:, ::step, ::step].reshape(len(blurred), -1)
    from_top = np.empty(some.shape, dtype=np.int64)
    np.put_along_axis(
        from_top, np.argsort(some, axis=0), np.arange(len(some), 0, -1)[:, None], axis=0
    )
    order = np.argsort(-some, axis=1)
    held = np.cumsum(np.take_along_axis(some, order, axis=1), axis=1, dtype=np.float64)
    enough = (held < HEAVY * held[:, -1:]).sum(axis=1, keepdims=True) + 1
    heavy = np.arange(some.shape[1]) < enough
    places = np.take_along_axis(from_top, order, axis=1)[heavy]
    weights = np.broadcast_to(1 / (enough * len(some)), heavy.shape)[heavy]
    above = np.bincount(places, weights, minlength=len(some) + 1)
    below = above[len(some) + 1 - most :].sum()
    within = (
        int(np.searchsorted(np.cumsum(above), SPARE * (1 - coverage) - below, side="right")) - 1
    )
    return int(np.clip(within, 1, most))


def silent(band: MapBand, even: FloatArray) -> BoolArray:
    """Where a map says nothing: there may be under half and there may be over twice what an even map has.

    Both ends of the band must be that far out. A place known to be busy or known to be empty is no
    silence, however wide its band; nor is the slope between the two, where the band is narrow
    around the average.

    >>> low, high = np.array([[0.0, 0.0, 0.3]]), np.array([[0.2, 0.9, 0.9]])
    >>> silent(MapBand(0, 0.02, 0.9, low, low, high), np.full((1, 3), 1 / 3))
    array([[False,  True, False]])
    """
    return np.asarray((band.low <= even / TIMES) & (band.high >= even * TIMES), dtype=np.bool_)


def _mostly(mask: BoolArray, sigma: float) -> BoolArray:
    """What most cells within about a blur of each say: the map has no detail finer than that."""
    return mostly_around(mask, 2 * round(sigma * len(mask)) + 1)


def _marks(
    shares: SmallFloats,
    places: list[tuple[int, int]],
    empty: BoolArray,
    window: BoolArray,
    *,
    area: Area,
    sigma: float,
    coverage: float,
) -> tuple[Mark, ...]:
    """Peaks of the mean map, as many as hold more than TIMES the average in all but a few of the draws.

    Every second draw chooses the places and lines them up, the surest first. The others say how far
    down the line one may go: as long as those in which any place so far fails are few, at most 1 -
    CONFIDENCE of them and one more. If the truth is one more draw like them, any mark is false with
    at most that chance: how far down the line it first fails is as likely to have one rank among
    theirs as another. Whole draws are counted, so what places have to do with each other is used.
    To choose and test by the same draws would flatter.
    """
    count, side = len(shares), len(window)
    if not len(places):
        return ()
    discs = np.stack([_disc(place, side, REACH * sigma) & window for place in places])
    within = (
        shares.reshape(count, -1) @ discs.reshape(len(discs), -1).astype(np.float32).T
    )  # [draw, place]
    average = discs.sum(axis=(1, 2)) / window.sum()
    fails = ~(within > TIMES * average) | empty[:, None]
    line = np.lexsort((-within[::2].mean(axis=0), fails[::2].sum(axis=0)))
    failed = np.maximum.accumulate(fails[1::2, line], axis=1).sum(axis=0)
    taken = line[failed + 1 <= (1 - CONFIDENCE) * (count // 2 + 1)]
    k = _tail(count, coverage)
    ordered = np.sort(within, axis=0)
    found = [
        Mark(
            *_middle(places[at], area, side),
            float(np.median(within[:, at])),
            float(ordered[k - 1, at]),
            float(ordered[count - k, at]),
        )
        for at in taken
    ]
    return tuple(sorted(found, key=lambda mark: (-mark.share, mark.x, mark.y)))


def _middle(place: tuple[int, int], area: Area, side: int) -> tuple[float, float]:
    """The x and y of the middle of the cell at a row and a column, in map units."""
    west, south, east, north = area.grid.bounds
    row, column = place
    return (
        float(west + (column + 0.5) / side * (east - west)),
        float(south + (row + 0.5) / side * (north - south)),
    )


def _peaks(
    image: FloatArray, sigma: float, *, least: float
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Rows and columns of the highest places within a blur of each, far enough apart for their discs.

    And of those that lie outside the discs of all these, but too near for one of their own, if they
    look as busy as a mark says.
    """
    side = len(image)
    around = 2 * max(1, round(sigma * side)) + 1
    summits = np.argwhere((image >= highest_around(image, around)) & (image > least))
    order = np.argsort(-image[summits[:, 0], summits[:, 1]], kind="stable")
    kept: list[tuple[int, int]] = []
    beside: list[tuple[int, int]] = []
    reach = REACH * sigma * side
    for row, column in summits[order]:
        away = min((math.hypot(row - r, column - c) for r, c in kept), default=math.inf)
        if away >= 2 * reach:
            kept.append((int(row), int(column)))
        elif (
            image[row, column] > TIMES * least
            and away > reach
            and all(math.hypot(row - r, column - c) > reach for r, c in beside)
        ):
            beside.append((int(row), int(column)))
        if len(kept) == MOST_MARKS:
            break
    return kept, beside


def _disc(place: tuple[int, int], side: int, reach: float) -> BoolArray:
    """The cells whose middle is within reach of that of a cell, both in sides of the grid."""
    steps = np.arange(side)
    away = ((steps - place[0]) ** 2)[:, None] + ((steps - place[1]) ** 2)[None, :]
    return np.asarray(away <= (reach * side) ** 2, dtype=np.bool_)


def ring(mark: Mark, grid: Grid, *, level: int, sigma: float = SIGMA) -> BoolArray:
    """The cells [row, column] of a level within reach of a mark: what its share is the share of.

    Args:
        mark: The mark.
        grid: The grid of the map.
        level: The level of the cells.
        sigma: The blur of the mark, in sides of the grid.

    Returns:
        Which cells they are [row, column].

    Example:
        >>> int(ring(Mark(0.501, 0.501, 0.1, 0.05, 0.2), Grid(8), level=4).sum())
        1

    """
    west, south, east, north = grid.bounds
    side = 1 << level
    row, column = (mark.y - south) / (north - south) * side, (mark.x - west) / (east - west) * side
    return _disc((math.floor(row), math.floor(column)), side, REACH * sigma)


def in_a_ring(
    x: float, y: float, *, marks: Sequence[Mark], grid: Grid, sigma: float = SIGMA
) -> bool:
    """Whether a place, in map units, is within reach of any of the marks of a map blurred by sigma.

    Args:
        x: The place, in the units of the map's bounds.
        y: The same.
        marks: The marks of a map.
        grid: The grid of the map.
        sigma: The blur of the marks, in sides of the grid.

    Returns:
        Whether it is.

    Example:
        >>> in_a_ring(0.5, 0.53, marks=[Mark(0.5, 0.5, 0.1, 0.05, 0.2)], grid=Grid(4))
        True

    """
    west, south, east, north = grid.bounds
    away = (math.hypot((x - one.x) / (east - west), (y - one.y) / (north - south)) for one in marks)
    return any(distance <= REACH * sigma for distance in away)


def _tail(count: int, coverage: float) -> int:
    """How many of the draws lie beyond either end of a band, that end with them."""
    return max(1, math.floor((1 - coverage) / 2 * (count + 1) + 1e-9))


def heaviest(image: FloatArray, share: float) -> BoolArray:
    """The fewest cells that hold this share of a map's mass.

    Args:
        image: Masses [row, column].
        share: The share of the mass, in (0, 1].

    Returns:
        Which cells they are.

    Example:
        >>> heaviest(np.array([[6.0, 1.0], [0.0, 3.0]]), 0.9)
        array([[ True, False],
               [False,  True]])

    """
    order = np.argsort(-image, axis=None, kind="stable")
    held = np.cumsum(image.ravel()[order])
    enough = int(np.searchsorted(held, share * held[-1] * (1 - 1e-12))) + 1
    out = np.zeros(image.size, dtype=np.bool_)
    out[order[:enough]] = True
    return out.reshape(image.shape)
