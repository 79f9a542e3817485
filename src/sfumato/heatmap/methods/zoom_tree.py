"""What zoom releases: counts of cells, and the parts of the budget that each was bought for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from sfumato._types import IntArray
from sfumato.heatmap.inference.count_noise import count_noise
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.methods.protocol import whole_numbers
from sfumato.privacy import UNITS
from sfumato.spaces import Area


@dataclass(frozen=True, slots=True, eq=False)
class PricedLevel:
    """Released counts, in units, of cells of one level, and the parts of the budget that each was bought for.

    Codes are group * 4**level + code.
    """

    level: int
    codes: IntArray
    values: IntArray
    parts: IntArray


@dataclass(frozen=True, eq=False)
class ZoomTree:
    """All counts in the order they were bought; noise of k parts has scale part_scale / k, in units.

    Outside the public `area` nothing was counted. `shape` is that of the noise: 1 for Laplace noise,
    more for noise in shares.
    """

    groups: int
    part_scale: Fraction
    levels: tuple[PricedLevel, ...]
    area: Area | None = None
    shape: Fraction = Fraction(1)

    @property
    def together(self) -> NoisyCounts:
        """What was counted of all maps, in users."""
        parts = np.concatenate([one.parts for one in self.levels])
        return NoisyCounts(
            np.concatenate(
                [np.full(one.codes.size, one.level, dtype=np.int64) for one in self.levels]
            ),
            np.concatenate([one.codes for one in self.levels]),
            np.concatenate([one.values for one in self.levels]) / UNITS,
            float(self.part_scale / UNITS) / parts,
            np.zeros(parts.size, dtype=np.bool_),
            self.groups,
            count_noise(self.shape),
        )

    def counts(self, group: int) -> NoisyCounts:
        """What was counted of one map, in users."""
        return self.each[group]

    @cached_property
    def each(self) -> tuple[NoisyCounts, ...]:
        """What was counted of each map, in users."""
        every = self.together
        group = every.codes >> 2 * every.levels
        own = every.codes - (group << 2 * every.levels)
        order = np.argsort(group, kind="stable")
        ends = np.searchsorted(group[order], np.arange(self.groups + 1))
        return tuple(
            NoisyCounts(
                every.levels[here],
                own[here],
                every.values[here],
                every.scales[here],
                every.ceiling[here],
                law=every.law,
            )
            for here in (order[low:high] for low, high in pairwise(ends))
        )

    @staticmethod
    def joined(trees: Sequence[ZoomTree]) -> ZoomTree:
        """The maps of several trees of one scale and area, one after another."""
        starts = np.cumsum([0, *(one.groups for one in trees)]).tolist()
        levels = tuple(
            PricedLevel(one.level, one.codes + (start << 2 * one.level), one.values, one.parts)
            for tree, start in zip(trees, starts, strict=False)
            for one in tree.levels
        )
        first = trees[0]
        return ZoomTree(starts[-1], first.part_scale, levels, first.area, first.shape)

    @staticmethod
    def from_json(data: Any) -> ZoomTree:
        """The tree that `to_json` gave."""
        names = ("codes", "values", "parts")
        return ZoomTree(
            int(data["groups"]),
            Fraction(data["part_scale"]),
            tuple(
                PricedLevel(int(one["level"]), *(whole_numbers(one[name]) for name in names))
                for one in data["levels"]
            ),
            shape=Fraction(data.get("shape", 1)),
        )

    def to_json(self) -> dict[str, Any]:
        """Integers, and the scale of one part as a fraction."""
        return {
            "groups": self.groups,
            "part_scale": str(self.part_scale),
            **({} if self.shape == 1 else {"shape": str(self.shape)}),
            "levels": [
                {
                    "level": one.level,
                    "codes": one.codes.tolist(),
                    "values": one.values.tolist(),
                    "parts": one.parts.tolist(),
                }
                for one in self.levels
            ],
        }


def dearest_path(tree: ZoomTree) -> int:
    """The most parts that were paid for all counts of cells around any one finest cell."""
    finest = max((one.level for one in tree.levels), default=0)
    paid: IntArray = np.zeros(tree.groups, dtype=np.int64)
    for level in range(finest + 1):
        if level:
            paid = np.repeat(paid, 4)
        for one in tree.levels:
            if one.level == level:
                np.add.at(paid, one.codes, one.parts)
    return int(paid.max())
