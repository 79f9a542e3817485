"""PrivTree: a quadtree that splits while its noisy, depth-biased count is positive [zhang16]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import mpmath
import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.heatmap.methods.baselines.flat import in_users
from sfumato.heatmap.methods.protocol import NoiseAwareMethod, NoisyLevel, NoisyTree, check_level
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import Bound, DiscreteLaplace, LaplaceLaw, Noise, PureDP, laplace_scale
from sfumato.privacy.accounting import WORKING, Number, exact, real, up
from sfumato.records import CellSums
from sfumato.spaces import Grid

MOST_LEAVES = 2**20


@dataclass(frozen=True, slots=True, init=False)
class PrivTree:
    """Split a cell of level d while max(count - d decay, -decay) + noise > 0; then count the leaves.

    Level by level; the finest level is not asked, nor is any further one once splitting all its
    cells could make more than `most_leaves` leaves. decay = ceil(scale ln 4) + 1 units.

    Privacy: PureDP(split_factor(levels) l1 / scale + l1 / leaf_scale), for mass spread over any
    number of cells. Proof: docs/proofs/privtree.md
    """

    levels: int
    scale: Fraction
    leaf_scale: Fraction
    most_leaves: int
    name: ClassVar[str] = "privtree/1"
    additive: ClassVar[bool] = True

    def __init__(
        self, levels: int, *, scale: Number, leaf_scale: Number, most_leaves: int = MOST_LEAVES
    ) -> None:
        if levels < 0:
            raise InvalidParameter(f"levels must be at least 0, got {levels}; nothing was charged")
        if most_leaves < 1:
            raise InvalidParameter(
                f"most_leaves must be at least 1, got {most_leaves}; nothing was charged"
            )
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "scale", LaplaceLaw(scale).scale)
        object.__setattr__(self, "leaf_scale", LaplaceLaw(leaf_scale).scale)
        object.__setattr__(self, "most_leaves", most_leaves)

    @property
    def decay(self) -> int:
        """What each level takes off a count, in units: it makes the loss of a path a geometric sum."""
        return decay_of(self.scale)

    @property
    def law(self) -> LaplaceLaw:
        """The law of the noise of each decision."""
        return LaplaceLaw(self.scale)

    def cost(self, bound: Bound) -> PureDP:
        """The tree costs split_factor * l1 / scale, its leaves l1 / leaf_scale."""
        check_level(self.levels, bound, by="PrivTree")
        moved = bound.required("l1", by="PrivTree")
        return PureDP(split_factor(self.levels) * moved / self.scale + moved / self.leaf_scale)

    def draws(self, bound: Bound) -> int:
        """One for each decision and one for each leaf; a tree of n leaves has at most 4/3 n cells."""
        groups = max(1, bound.size >> 2 * self.levels)
        leaves = min(bound.size, max(self.most_leaves, groups))
        return 4 * leaves // 3 + leaves

    def restore(self, data: Any) -> NoisyTree:
        """What was sampled, from the JSON that a ledger keeps of it."""
        return NoisyTree.from_json(data)

    def sample(self, values: CellSums, noise: Noise) -> NoisyTree:
        """The leaves, level by level, with fresh noise on each; noise only for cells that are visited."""
        frontier = np.arange(values.groups, dtype=np.int64)
        found, leaves = [], 0
        for level in range(self.levels + 1):
            counts = values.of_cells(level, frontier)
            # Both conditions are public or follow from earlier decisions alone.
            if level == self.levels or leaves + 4 * frontier.size > self.most_leaves:
                split = np.zeros(frontier.size, dtype=bool)
            else:
                biased = np.maximum(counts - level * self.decay, -self.decay)
                split = DiscreteLaplace(self.scale).sample(biased, noise) > 0
            noisy = DiscreteLaplace(self.leaf_scale).sample(counts[~split], noise)
            found.append(NoisyLevel(level, frontier[~split], noisy))
            leaves += noisy.size
            frontier = Grid.children(frontier[split]).ravel()
            if not frontier.size:
                break
        return NoisyTree(values.groups, tuple(found))


@lru_cache(maxsize=64)
def decay_of(scale: Fraction) -> int:
    """The bias of one level, ceil(scale ln 4) + 1 units; the 1 is what integers cost over real numbers."""
    with mpmath.workprec(WORKING):
        return math.ceil(up(real(scale) * mpmath.log(4))) + 1


def split_factor(levels: int) -> Fraction:
    """How many times l1 / scale all decisions together can cost, when `levels` levels are asked.

    1 + sum over j < levels - 1 of 1 / (2 4**j - 1): below 2.1857, where [zhang16, sec. 3] has 7/3.
    The sum holds for mass on any number of paths (proof: docs/proofs/privtree.md).

    >>> split_factor(1), split_factor(3), float(split_factor(16)) < 2.1857
    (Fraction(1, 1), Fraction(15, 7), True)
    """
    if levels == 0:
        return Fraction(0)
    return 1 + sum((Fraction(1, 2 * 4**j - 1) for j in range(levels - 1)), Fraction(0))


@dataclass(frozen=True, slots=True)
class PrivTreeMethod(NoiseAwareMethod[NoisyTree]):
    """PrivTree with `share` of epsilon for the shape of the tree and the rest for its leaves [zhang16]."""

    share: Fraction = Fraction(1, 2)
    most_leaves: int = MOST_LEAVES
    name: ClassVar[str] = "privtree"

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", exact(self.share, name="share"))
        if not 0 < self.share < 1:
            raise InvalidParameter(f"the share of the tree must lie in (0, 1), got {self.share}")

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> PrivTree:
        """Scales split_factor * l1 / (share epsilon) and l1 / ((1 - share) epsilon), rounded up."""
        moved = bound.required("l1", by="PrivTree")
        # A grid of one cell asks nothing; its scale is a formality.
        factor = max(split_factor(grid.levels), Fraction(1))
        return PrivTree(
            grid.levels,
            scale=laplace_scale(self.share * epsilon, sensitivity=factor * moved),
            leaf_scale=laplace_scale((1 - self.share) * epsilon, sensitivity=moved),
            most_leaves=self.most_leaves,
        )

    def noise_scale(self, mechanism: PrivTree) -> Fraction:
        """The larger of that of decisions and that of leaves."""
        return max(mechanism.scale, mechanism.leaf_scale)

    def estimate(self, released: NoisyTree, grid: Grid) -> tuple[Tiles, ...]:
        """The leaves, negative counts set to 0, each spread evenly."""
        return maps_of_cells(released.levels, grid, groups=released.groups)


def maps_of_cells(levels: tuple[NoisyLevel, ...], grid: Grid, *, groups: int) -> tuple[Tiles, ...]:
    """One map for each group, from counted cells of several levels; negative counts are set to 0."""
    depths = np.concatenate([np.full(one.codes.size, one.level, dtype=np.int64) for one in levels])
    codes = np.concatenate([one.codes for one in levels])
    masses = in_users(np.concatenate([one.values for one in levels]))
    owners = codes >> 2 * depths
    codes = codes - (owners << 2 * depths)
    maps = []
    for group in range(groups):
        mine = (owners == group) & (masses > 0)
        maps.append(Tiles(grid, depths[mine], codes[mine], masses[mine]))
    return tuple(maps)
