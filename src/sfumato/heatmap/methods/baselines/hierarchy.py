"""Every level of the quadtree with the same noise, made consistent by least squares [hay10]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.methods.baselines.flat import whole_level, whole_maps
from sfumato.heatmap.methods.protocol import NoiseAwareMethod, NoisyLevel, NoisyTree, check_level
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import UNITS, Bound, DiscreteLaplace, LaplaceLaw, Noise, PureDP, laplace_scale
from sfumato.privacy.accounting import Number
from sfumato.records import CellSums
from sfumato.spaces import Grid


@dataclass(frozen=True, slots=True, init=False)
class HierarchyLaplace:
    """Add discrete Laplace noise of one scale to every cell of the levels first..last, of all groups.

    Privacy: PureDP((last - first + 1) l1 / scale). Proof: docs/proofs/hierarchy.md
    """

    first: int
    last: int
    scale: Fraction
    name: ClassVar[str] = "hierarchy/1"
    additive: ClassVar[bool] = True

    def __init__(self, first: int, last: int, *, scale: Number) -> None:
        if not 0 <= first <= whole_level(last):
            raise InvalidParameter(f"first must lie in 0..{last} (the last level), got {first}")
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "last", last)
        object.__setattr__(self, "scale", LaplaceLaw(scale).scale)

    @property
    def law(self) -> LaplaceLaw:
        """The law of the noise on each cell."""
        return LaplaceLaw(self.scale)

    def cost(self, bound: Bound) -> PureDP:
        """Each level moves by at most l1: levels * l1 / scale, exactly."""
        check_level(self.last, bound, by="a hierarchy")
        return PureDP(
            (self.last - self.first + 1) * DiscreteLaplace(self.scale).cost(bound).epsilon
        )

    def draws(self, bound: Bound) -> int:
        """One for each cell: at most 4/3 of the finest level."""
        return 4 * bound.size // 3

    def restore(self, data: Any) -> NoisyTree:
        """What was sampled, from the JSON that a ledger keeps of it."""
        return NoisyTree.from_json(data)

    def sample(self, values: CellSums, noise: Noise) -> NoisyTree:
        """Every cell of the levels with fresh noise."""
        levels = []
        for level in range(self.first, self.last + 1):
            codes = np.arange(values.groups << 2 * level, dtype=np.int64)
            noisy = DiscreteLaplace(self.scale).sample(values.of_cells(level, codes), noise)
            levels.append(NoisyLevel(level, codes, noisy))
        return NoisyTree(values.groups, tuple(levels))


def consistent(levels: Sequence[FloatArray]) -> list[FloatArray]:
    """The tree nearest in least squares to noisy levels of equal variance: each cell the sum of its quarters.

    Upward, the best estimate z of a cell from its own count y and its quarters' estimates, of
    variance v, is z = (y + sum / 4v) / (1 + 1 / 4v), of variance 1 / (1 + 1 / 4v); downward, what a
    cell has more than its quarters is shared among them evenly [hay10, thm. 3]. Counts are in
    Z-order.

    >>> [level.tolist() for level in consistent([np.array([10.0]), np.array([1.0, 1.0, 1.0, 2.0])])]
    [[9.0], [2.0, 2.0, 2.0, 3.0]]
    """
    best, variance = [levels[-1]], 1.0
    for own in reversed(levels[:-1]):
        weight = 1 / (4 * variance)
        best.append((own + weight * _quarters(best[-1]).sum(axis=1)) / (1 + weight))
        variance = 1 / (1 + weight)
    best.reverse()
    out = [best[0]]
    for below in best[1:]:
        more = out[-1] - _quarters(below).sum(axis=1)
        out.append(below + np.repeat(more / 4, 4))
    return out


def non_negative(levels: Sequence[FloatArray], groups: int) -> FloatArray:
    """Masses at the finest of some levels, none negative, made from the top down.

    Each group's total is its sum at the first level, or 0. From there every cell's mass is divided
    among its quarters by the point nearest to their estimates that has no negative entry and adds
    up to it.
    """
    top = levels[0].reshape(groups, -1)
    masses = onto_simplex(top, np.maximum(top.sum(axis=1), 0)).ravel()
    for level in levels[1:]:
        masses = onto_simplex(_quarters(level), masses).ravel()
    return masses


def onto_simplex(rows: FloatArray, totals: FloatArray) -> FloatArray:
    """The nearest point in l2 to each row that has no negative entry and adds up to its total.

    By sorting [duchi08, fig. 1].

    >>> onto_simplex(np.array([[3.0, 1.0, -2.0]]), np.array([3.0]))
    array([[2.5, 0.5, 0. ]])
    """
    falling = -np.sort(-rows, axis=1)
    above = (np.cumsum(falling, axis=1) - totals[:, None]) / np.arange(1, rows.shape[1] + 1)
    # With a total of 0 no entry lies strictly above its cut; then the largest alone sets it.
    last = np.maximum((falling > above).sum(axis=1), 1) - 1
    return np.asarray(np.maximum(rows - above[np.arange(rows.shape[0]), last][:, None], 0))


def _quarters(level: FloatArray) -> FloatArray:
    return level.reshape(-1, 4)


@dataclass(frozen=True, slots=True)
class HierarchyMethod(NoiseAwareMethod[NoisyTree]):
    """Equal shares of epsilon for the levels from `first` (2: 16 cells) down, then consistency [hay10].

    On a grid of fewer levels the finest alone is measured.
    """

    first: int = 2
    name: ClassVar[str] = "hierarchy"

    def __post_init__(self) -> None:
        whole_level(self.first)

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> HierarchyLaplace:
        """Noise of scale levels * l1 / epsilon, rounded up."""
        last = whole_level(grid.levels)
        first = min(self.first, last)
        sensitivity = (last - first + 1) * bound.required("l1", by="hierarchy")
        return HierarchyLaplace(first, last, scale=laplace_scale(epsilon, sensitivity=sensitivity))

    def noise_scale(self, mechanism: HierarchyLaplace) -> Fraction:
        """That of every cell of every level."""
        return mechanism.scale

    def estimate(self, released: NoisyTree, grid: Grid) -> tuple[Tiles, ...]:
        """Least squares over all levels, then a non-negative division from the top down."""
        fitted = consistent([level.values / UNITS for level in released.levels])
        masses = non_negative(fitted, released.groups)
        return whole_maps(masses, grid, level=released.levels[-1].level, groups=released.groups)
