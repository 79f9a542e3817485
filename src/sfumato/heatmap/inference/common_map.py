"""What maps of one release have in common: their counts taken together, and how that splits cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.inference.bounded import bounded_center, parts_inside
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.posterior import CenterRule, rough_maps
from sfumato.heatmap.inference.surroundings import FINEST, centers_of
from sfumato.spaces import Area, Grid

# No map is of fewer users where its share of all is asked.
FEWEST = 1e-3


def common_counts(maps: Sequence[NoisyCounts], users: FloatArray) -> NoisyCounts:
    """Counts of several maps taken together, if all were alike but for how many they are of.

    Args:
        maps: Counts of each.
        users: How many each is of, about.

    Returns:
        One count a cell, in users of all maps: with w the share of a map among all, y / w is a count
        of the common map with noise of scale b / w, and counts are weighed by their precision. Sums
        of noise are given the Laplace noise of the same variance, which has the longer tails.
        Counts that were kept back (`ceiling`) are left out.

    """
    some = np.maximum(users, FEWEST)
    whole = float(some.sum())
    shares = some / whole
    rows = [
        (
            4**one.levels + one.codes,
            one.values,
            one.widening * one.scales,
            np.full(one.levels.size, share),
        )
        for one, share in zip(maps, shares, strict=True)
    ]
    numbers, values, scales, share = (np.concatenate(part) for part in zip(*rows, strict=True))
    seen = ~np.concatenate([one.ceiling for one in maps])
    cells, owner = np.unique(numbers[seen], return_inverse=True)
    precision = np.bincount(owner.ravel(), (share**2 / scales**2)[seen])
    weighed = np.bincount(owner.ravel(), (share * values / scales**2)[seen])
    # Counts of maps of next to nobody say nothing of the common map.
    kept = precision > (1e-6 / whole) ** 2
    cells, precision, weighed = cells[kept], precision[kept], weighed[kept]
    # A cell of level i has a number from 4**i to 2 * 4**i - 1.
    levels = np.searchsorted(4 ** np.arange(31, dtype=np.int64), cells, side="right") - 1
    return NoisyCounts(
        levels.astype(np.int64),
        cells - 4**levels,
        weighed / precision,
        1 / np.sqrt(precision),
        np.zeros(cells.size, dtype=np.bool_),
    )


# Half a megabyte each, and asked for again while one map is looked at: there may be hundreds of maps.
@lru_cache(maxsize=4)
def common_centers(common: NoisyCounts, area: Area | None) -> tuple[FloatArray, ...]:
    """Where the splits of every level are centered by the common map, level by level [cell, 3]."""
    return centers_within(rough_maps([common], FINEST, area)[0], area)


def centers_within(masses: FloatArray, area: Area | None) -> tuple[FloatArray, ...]:
    """How a map splits its cells, level by level from the whole map on, as `centers_of` says it [cell, 3].

    Args:
        masses: The masses of all cells of a level, by Z-order code.
        area: Its area: what lies outside the bounds has no share.

    Returns:
        For each level above that one the share of the first half, and of the first of each half.

    """
    found, now = [], masses
    while now.size > 1:
        level = (now.size.bit_length() - 1) // 2
        inside = parts_inside(area, level)
        some = (
            np.ones(now.size) if inside is None else inside[Grid(level).decode(_all(level))[::-1]]
        )
        least = 1e-9 * max(float(masses.sum()), 1.0) / now.size
        quarters = (np.where(some > 0, now, 0.0) + least * some).reshape(-1, 4)
        halves = quarters[:, ::2] + quarters[:, 1::2]
        found.append(
            np.column_stack(
                [
                    bounded_center(halves[:, 0], halves[:, 1]),
                    bounded_center(quarters[:, 0], quarters[:, 1]),
                    bounded_center(quarters[:, 2], quarters[:, 3]),
                ]
            )
        )
        now = now.reshape(-1, 4).sum(axis=1)
    return tuple(found[::-1])


def _all(level: int) -> IntArray:
    return np.arange(4**level, dtype=np.int64)


def center_rule(strength: float, common: Sequence[FloatArray], area: Area | None) -> CenterRule:
    """Centers so far between the surroundings of a cell and the common map."""

    def centers(masses: FloatArray, level: int) -> FloatArray:
        own = centers_of(masses, level, area)
        return own + strength * (common[level] - own)

    return centers
