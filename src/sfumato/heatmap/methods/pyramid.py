"""The private pyramid: noisy counts of the heaviest cells, level by level [ghazi23, alg. 1 and 2]."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato._types import IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.heatmap.inference.count_noise import count_noise
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.posterior import CountsPosterior
from sfumato.heatmap.inference.surroundings import FINEST
from sfumato.heatmap.inference.tree_fit import reconstruct
from sfumato.heatmap.methods.budget_split import DECAY, checked_decay, first_level, split_epsilon
from sfumato.heatmap.methods.noisy_sums import CentralNoise, NoisySums
from sfumato.heatmap.methods.protocol import (
    MapEstimate,
    NoiseAwareMethod,
    NoisyLevel,
    NoisyTree,
    check_level,
    plain_maps,
)
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import UNITS, Bound, DiscreteLaplace, LaplaceLaw, Noise, PureDP
from sfumato.records import CellSums
from sfumato.spaces import MAX_LEVELS, Area, Grid


@dataclass(frozen=True, slots=True)
class Pyramid:
    """Count cells from level `first_level` down with noise of scales[i], following the `width` largest.

    T_q is every cell of the first level, T_i the quarters of S_{i-1}; S_i is the `width` cells of
    T_i with the largest noisy counts, in each group (a tie goes to the smaller code). Released are
    the counts of S_i alone. Noise is drawn for T_i only, which has the law of noise on every cell
    (docs/proofs/lazy-noise.md). Cells outside the public bounds of the data are in no T_i: they hold
    0 for all rows.

    Privacy: PureDP(sum of l1 / scale over the levels) for one user, whatever the number of groups
    that share the user's mass. Proof: docs/proofs/pyramid.md
    """

    scales: tuple[Fraction, ...]
    first_level: int
    width: int
    name: ClassVar[str] = "pyramid/1"
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.scales:
            raise InvalidParameter(
                "a pyramid has at least 1 level, got no scale; nothing was charged"
            )
        whole("first_level", self.first_level, low=0, high=MAX_LEVELS + 1 - len(self.scales))
        whole("width", self.width, low=1)
        if 4**self.first_level > self.width:
            raise InvalidParameter(
                f"the first level must have at most width = {self.width} cells, got "
                f"{4**self.first_level}; nothing was charged"
            )
        # Doubles, rounded up: what is charged is what is drawn.
        object.__setattr__(self, "scales", tuple(LaplaceLaw(scale).scale for scale in self.scales))

    @property
    def last_level(self) -> int:
        """The finest level that is counted."""
        return self.first_level + len(self.scales) - 1

    def law(self, level: int) -> LaplaceLaw:
        """The law of the noise on each cell of a level."""
        return LaplaceLaw(
            self.scales[
                whole("level", level, low=self.first_level, high=self.last_level) - self.first_level
            ]
        )

    def cost(self, bound: Bound) -> PureDP:
        """The sum of l1 / scale over all levels, exactly."""
        check_level(self.last_level, bound, by="a pyramid")
        moved = bound.required("l1", by="a pyramid")
        return PureDP(sum((moved / scale for scale in self.scales), Fraction(0)))

    def draws(self, bound: Bound) -> int:
        """One for each cell of every T_i, in each group: a public number, the same for all data.

        Exact when the last level is that of the data; an upper bound when the data is finer.
        """
        groups = bound.size >> 2 * self.last_level
        looked_at, total = 4**self.first_level, 0
        for _ in self.scales:
            total += looked_at
            looked_at = 4 * min(looked_at, self.width)
        return groups * total

    def restore(self, data: Any) -> NoisyTree:
        """What was sampled, from the JSON that a ledger keeps of it."""
        return NoisyTree.from_json(data)

    def sample(self, values: CellSums, noise: Noise) -> NoisyTree:
        """One tree of noisy counts."""
        return self.sample_by(CentralNoise(noise), values)

    def sample_by(self, sums: NoisySums, values: CellSums) -> NoisyTree:
        """The same with counts that are made noisy in another way, level by level."""
        groups = values.groups
        if self.last_level > values.grid.levels:
            # The bound knows the number of cells of all groups together, so `cost` cannot always
            # tell.
            raise InvalidParameter(
                f"a pyramid down to level {self.last_level} needs data of that level, got "
                f"{values.grid.levels}; nothing was released"
            )
        cells = np.arange(groups << 2 * self.first_level, dtype=np.int64)
        levels = []
        for level, scale in enumerate(self.scales, start=self.first_level):
            if level > self.first_level:
                cells = Grid.children(cells).ravel()
            cells = cells[values.can_hold(level, cells)]
            same = np.zeros(cells.size, dtype=np.int64)
            noisy = sums.noisy(values.of_cells(level, cells), (scale,), same)
            kept = _largest(noisy, cells >> 2 * level, self.width)
            cells, noisy = cells[kept], noisy[kept]
            cells.setflags(write=False)
            noisy.setflags(write=False)
            levels.append(NoisyLevel(level, cells, noisy))
        return NoisyTree(groups, tuple(levels), sums.shape)


def _largest(noisy: IntArray, groups: IntArray, width: int) -> IntArray:
    """Where the `width` largest of each group are, in order; `groups` is whose each one is, in order."""
    if noisy.size <= width:
        return np.arange(noisy.size)
    # Stable, so that of equal values the earlier, with the smaller code, comes first. Negation is
    # safe: counts lie within 2**61.
    order = np.lexsort((-noisy, groups))
    rank = np.arange(noisy.size) - np.searchsorted(groups, groups)
    return np.sort(order[rank < width])


@dataclass(frozen=True, slots=True)
class PyramidMethod(NoiseAwareMethod[NoisyTree]):
    """A map from a pyramid of `width` cells a level, budget falling by `decay` from its first level on.

    The defaults are those of [ghazi23, sec. 4].
    """

    width: int = 20
    decay: float = DECAY
    name: ClassVar[str] = "pyramid"

    def __post_init__(self) -> None:
        whole("width", self.width, low=1)
        checked_decay(self.decay)

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> Pyramid:
        """The pyramid that costs at most epsilon: each level's scale is rounded up, towards more noise.

        >>> from sfumato.privacy import AddRemoveUser
        >>> bound = Bound(AddRemoveUser(), 4**8, l1=2**20)
        >>> pyramid = PyramidMethod().mechanism(Fraction(1), bound, Grid(8))
        >>> pyramid.first_level, len(pyramid.scales), pyramid.cost(bound).epsilon <= 1
        (2, 7, True)
        """
        shares = split_epsilon(epsilon, grid.levels, width=self.width, decay=self.decay)
        scales = (DiscreteLaplace.within(PureDP(share), bound).scale for share in shares.values())
        return Pyramid(tuple(scales), first_level(self.width, grid.levels), self.width)

    def estimate(self, released: NoisyTree, grid: Grid) -> tuple[Tiles, ...]:
        """The map of each group that fits the released counts best in l1."""
        return reconstruct(released, grid)

    def noise_scale(self, mechanism: Pyramid) -> Fraction:
        """That of the level with the most noise."""
        return max(mechanism.scales)

    def maps(self, released: NoisyTree, mechanism: Pyramid, area: Area) -> tuple[MapEstimate, ...]:
        """The best fit of each map with its posterior, which has no level finer than FINEST.

        Of cells that were looked at and not kept, the posterior knows a ceiling.
        """
        plain = plain_maps(self, released, area, noise_scale=self.noise_scale(mechanism))
        if mechanism.first_level > FINEST:
            return plain
        return tuple(
            replace(
                one,
                posterior=CountsPosterior(
                    _noisy_counts(released, mechanism, group, area), area=area
                ),
            )
            for group, one in enumerate(plain)
        )


def _noisy_counts(released: NoisyTree, pyramid: Pyramid, group: int, area: Area) -> NoisyCounts:
    """The counts of one map in users, and for each cell of T_i outside S_i the least count of S_i."""
    levels, codes, values, scales, ceiling = [], [], [], [], []
    looked_at = np.arange(4**pyramid.first_level, dtype=np.int64)
    for one, scale in zip(released.levels, pyramid.scales, strict=True):
        if one.level > FINEST:
            break
        looked_at = looked_at[area.touches(one.level, looked_at)]
        mine = one.codes >> 2 * one.level == group
        kept, counts = one.codes[mine] - (group << 2 * one.level), one.values[mine] / UNITS
        rest = np.setdiff1d(looked_at, kept, assume_unique=True)
        levels.append(np.full(kept.size + rest.size, one.level))
        codes.append(np.concatenate([kept, rest]))
        values.append(np.concatenate([counts, np.full(rest.size, counts.min())]))
        scales.append(np.full(kept.size + rest.size, float(scale / UNITS)))
        ceiling.append(np.arange(kept.size + rest.size) >= kept.size)
        looked_at = Grid.children(kept).ravel()
    return NoisyCounts(
        np.concatenate(levels),
        np.concatenate(codes),
        np.concatenate(values),
        np.concatenate(scales),
        np.concatenate(ceiling),
        law=count_noise(released.shape),
    )
