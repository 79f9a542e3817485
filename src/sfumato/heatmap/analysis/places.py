"""Read a few places off a map: the k-median of its mass."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.analysis.k_median import (
    WORTH,
    best_centers,
    lower_bound,
    prices,
)
from sfumato.heatmap.tiles import Tiles
from sfumato.spaces import Grid

# Mass of tiles coarser than this is spread over cells of this level; finer tiles are points of
# their own.
SPREAD = 5
# Centers are sought among so many places at first, each the middle of a group of nearby points.
CANDIDATES = 512
GROUPS = 4096


@dataclass(frozen=True, slots=True)
class Hotspot:
    """A place on the map, in the units of its bounds, and the share of the mass that is nearest to it."""

    x: float
    y: float
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """Mass on points [n, 2] of the unit square, adding up to 1."""

    places: FloatArray
    masses: FloatArray


@dataclass(frozen=True, slots=True)
class FoundHotspots:
    """Places of a map, how far its mass is from the nearest on average, and what no k places can be below.

    Both in sides of the map, l1. `gap` is how much of the distance a better choice could save at
    most: 0 where the choice is proved to be the best.
    """

    spots: tuple[Hotspot, ...]
    distance: float
    lower: float

    @property
    def gap(self) -> float:
        """The share of the distance that is not proved to be needed."""
        return 1 - self.lower / self.distance if self.distance > 0 else 0.0


def find_hotspots(tiles: Tiles, k: int) -> FoundHotspots:
    """The k places of `hotspots` with a bound that proves how near to the best choice they are.

    Below, the Lagrangian dual of the k-median problem, over all crossings, for prices found by
    subgradient steps: any prices give a bound. A map of more than 512 crossings is first moved to
    cells of level 5, and how far it moved is taken off.

    Args:
        tiles: The map.
        k: How many places, at least 1.

    Returns:
        The places, their mean distance from the mass, and a lower bound on it.

    Raises:
        InvalidParameter: k is below 1.

    Example:
        >>> from sfumato.spaces import Grid
        >>> grid = Grid(6, bounds=(0, 0, 64, 64))
        >>> codes = grid.cells_of([3.0, 5.0, 60.0], [3.0, 5.0, 60.0])
        >>> found = find_hotspots(Tiles(grid, np.full(3, 6), codes, np.array([1.0, 2.0, 1.0])), 2)
        >>> found.distance, round(found.lower, 9), round(found.gap, 9)
        (0.015625, 0.015625, 0.0)

    """
    if k < 1:
        raise InvalidParameter(f"hotspots need k of at least 1, got {k}; no place was sought")
    points = _points(tiles)
    centers, nearest, away = _found(points, k)
    spots = _spots(tiles.grid, points, centers, nearest)
    distance = float(points.masses @ away)
    if distance == 0 or len(points.places) <= k:
        return FoundHotspots(spots, distance, distance)
    return FoundHotspots(spots, distance, min(_lower(points, k, distance), distance))


def _lower(points: _Points, k: int, upper: float) -> float:
    moved = 0.0
    if not _has_best(points):
        points, moved = _snapped(points)
    crossings = _crossings(points)
    if len(crossings) <= k:  # all mass is in so few coarse cells that k places have it where it is
        return 0.0
    away = _distances(points.places, crossings)
    offered = prices(points.masses, away, k, upper=upper + moved)
    return max(0.0, lower_bound(points.masses, away, offered, k) - moved)


def _snapped(points: _Points) -> tuple[_Points, float]:
    """The mass moved to the middles of the cells of a coarse level, and how far: no cost falls by more."""
    middles = (np.floor(points.places * (1 << SPREAD)) + 0.5) / (1 << SPREAD)
    moved = float(points.masses @ np.abs(points.places - middles).sum(axis=1))
    return _joined(middles, points.masses), moved


def hotspots(tiles: Tiles, k: int) -> tuple[Hotspot, ...]:
    """The k places nearest to the mass of a map in l1, those with the largest share first.

    Minimises the sum of mass times distance to the nearest place: the k-sparse map closest in EMD
    [ghazi23, sec. 1.1]. The best of all choices of candidates where they are few; else greedy, then
    swaps until none helps, from several starts; then medians of each place's own mass. Candidates
    are all crossings of the map's x and y, which hold a best choice, if there are at most 512, else
    the 512 heaviest places. `find_hotspots` says how near to the best it came. No chance is
    involved, and no privacy spent. Fewer than k places come back when the map has no more, and of
    more than 512 crossings at most 512.

    Args:
        tiles: The map.
        k: How many places, at least 1.

    Returns:
        At most k places, those with the largest share first.

    Raises:
        InvalidParameter: k is below 1.

    Example:
        >>> from sfumato.spaces import Grid
        >>> grid = Grid(6, bounds=(0, 0, 64, 64))
        >>> codes = grid.cells_of([3.0, 5.0, 60.0], [3.0, 5.0, 60.0])
        >>> hotspots(Tiles(grid, np.full(3, 6), codes, np.array([1.0, 2.0, 1.0])), 2)
        (Hotspot(x=5.5, y=5.5, share=0.75), Hotspot(x=60.5, y=60.5, share=0.25))

    """
    if k < 1:
        raise InvalidParameter(f"hotspots need k of at least 1, got {k}; no place was sought")
    points = _points(tiles)
    centers, nearest, _ = _found(points, k)
    return _spots(tiles.grid, points, centers, nearest)


def _found(points: _Points, k: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """The centers, which of them is nearest to each point, and how far away it is."""
    centers = _settled(points, _seeds(_grouped(points), k))
    return centers, *_nearest(points.places, centers)


def _spots(
    grid: Grid, points: _Points, centers: FloatArray, nearest: IntArray
) -> tuple[Hotspot, ...]:
    shares = np.bincount(nearest, points.masses, minlength=len(centers))
    west, south, east, north = grid.bounds
    spots = [
        Hotspot(float(west + x * (east - west)), float(south + y * (north - south)), float(share))
        for (x, y), share in zip(centers, shares, strict=True)
        if share > 0
    ]
    return tuple(sorted(spots, key=lambda spot: (-spot.share, spot.x, spot.y)))


def _points(tiles: Tiles) -> _Points:
    """The map as points; sides of the grid are 1, so that l1 treats east and north as its cells do."""
    shown = tiles.normalized()
    level = min(SPREAD, tiles.grid.levels)
    coarse = shown.levels < level
    spread = Tiles(
        tiles.grid, shown.levels[coarse], shown.codes[coarse], shown.masses[coarse]
    ).values(level)
    levels = np.concatenate([shown.levels[~coarse], np.full(spread.size, level)])
    codes = np.concatenate([shown.codes[~coarse], np.arange(spread.size)])
    masses = np.concatenate([shown.masses[~coarse], spread])
    some = masses > 0
    levels, codes, masses = levels[some], codes[some], masses[some]
    places = np.empty((levels.size, 2))
    for one in np.unique(levels):
        here = levels == one
        columns, rows = tiles.grid.at_level(int(one)).decode(codes[here])
        places[here] = (np.stack([columns, rows], axis=-1) + 0.5) / (1 << int(one))
    return _joined(places, masses)


def _joined(places: FloatArray, masses: FloatArray) -> _Points:
    """Masses of the same place as one."""
    # As complex numbers, by x and then by y: rows would be sorted as bytes, in several times the time.
    together = places[:, 0] + 1j * places[:, 1]
    different, which = np.unique(together, return_inverse=True)
    different = np.stack([different.real, different.imag], axis=1)
    return _Points(different, np.bincount(which, masses).astype(np.float64))


def _grouped(points: _Points) -> _Points:
    """At most about GROUPS points: those that share a cell are joined in their median, as finely as fits."""
    if len(points.places) <= GROUPS:
        return points
    for level in range(16, -1, -1):
        cell = np.floor(points.places * (1 << level)).astype(np.int64) @ np.array([1 << 20, 1])
        _, which = np.unique(cell, return_inverse=True)
        if which.max() < GROUPS:
            break
    medians = _medians(points, which.astype(np.int64), int(which.max()) + 1)
    return _Points(medians, np.bincount(which, points.masses).astype(np.float64))


def _seeds(points: _Points, k: int) -> FloatArray:
    """Centers among the candidates."""
    if len(points.places) <= k:
        return points.places
    candidates = _candidates(points)
    away = _distances(points.places, candidates)
    return candidates[best_centers(points.masses, away, min(k, len(candidates)))]


def _candidates(points: _Points) -> FloatArray:
    """Where a center may be: every crossing of an x and a y, if they are few, else the heaviest points.

    Some best choice of centers lies on crossings: a median is one, in each coordinate.
    """
    if _has_best(points):
        return _crossings(points)
    heaviest = np.argsort(-points.masses, kind="stable")[:CANDIDATES]
    return points.places[np.sort(heaviest)]


def _crossings(points: _Points) -> FloatArray:
    x, y = (np.unique(points.places[:, axis]) for axis in (0, 1))
    return np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)


def _has_best(points: _Points) -> bool:
    """Whether the candidates are all crossings, and so hold a best choice."""
    return math.prod(np.unique(points.places[:, axis]).size for axis in (0, 1)) <= CANDIDATES


def _settled(points: _Points, centers: FloatArray) -> FloatArray:
    """Centers moved to the medians of the mass nearest to them, as long as that helps."""
    nearest, away = _nearest(points.places, centers)
    cost = float(points.masses @ away)
    while True:
        moved = centers.copy()
        busy = np.unique(nearest)
        moved[busy] = _medians(points, np.searchsorted(busy, nearest), busy.size)
        nearest, away = _nearest(points.places, moved)
        now = float(points.masses @ away)
        if now >= cost * (1 - WORTH):
            return centers
        centers, cost = moved, now


def _medians(points: _Points, which: IntArray, groups: int) -> FloatArray:
    """The weighted median of each group, east and north apart; of an even split the lower one."""
    out = np.empty((groups, 2))
    total = np.bincount(which, points.masses, minlength=groups)
    for axis in (0, 1):
        order = np.lexsort((points.places[:, axis], which))
        sums = np.cumsum(points.masses[order])
        before = np.concatenate([[0.0], np.cumsum(total)[:-1]])
        # Rounding of the sums must not push an even split to the upper side.
        reached = sums - before[which[order]] >= (0.5 - 1e-12) * total[which[order]]
        first = np.flatnonzero(reached)
        groups_of, at = np.unique(which[order][first], return_index=True)
        out[groups_of, axis] = points.places[order[first[at]], axis]
    return out


def _nearest(places: FloatArray, centers: FloatArray) -> tuple[IntArray, FloatArray]:
    """The nearest center of each place, and how far it is."""
    nearest = np.zeros(len(places), dtype=np.int64)
    away = np.full(len(places), np.inf)
    for at, center in enumerate(centers):
        distance = np.abs(places - center).sum(axis=1)
        closer = distance < away
        nearest[closer], away[closer] = at, distance[closer]
    return nearest, away


def _distances(places: FloatArray, centers: FloatArray) -> FloatArray:
    """The l1 distances [place, center]."""
    x, y = (
        np.abs(places[:, None, 0] - centers[None, :, 0]),
        np.abs(places[:, None, 1] - centers[None, :, 1]),
    )
    return np.asarray(x + y)
