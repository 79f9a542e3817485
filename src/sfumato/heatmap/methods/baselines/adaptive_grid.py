"""Two grids, the second finer where the first found more; the number of users is bought [qardaji13]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.methods.baselines.flat import FINEST_WHOLE
from sfumato.heatmap.methods.baselines.privtree import maps_of_cells
from sfumato.heatmap.methods.protocol import NoiseAwareMethod, NoisyLevel, NoisyTree, check_level
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import Bound, DiscreteLaplace, LaplaceLaw, Noise, PureDP, laplace_scale
from sfumato.privacy.accounting import Number, exact
from sfumato.records import CellSums
from sfumato.spaces import Grid

# The coarsest first grid has 4 x 4 cells.
COARSEST_FIRST = 2
MOST_CELLS = 2**20


@dataclass(frozen=True, slots=True, init=False)
class AdaptiveGrid:
    """Buy the total; measure a grid that fits it; measure each of its cells again, cut as its count allows.

    With n the noisy total (the mean over groups) and e = 1 / first_scale + 1 / second_scale, the
    first grid has m1 = sqrt(n e / coarse) / 4 cells a side, and a cell of noisy count c is cut into
    m2 = sqrt(c / second_scale / fine) a side [qardaji13, sec. IV]; both are rounded to the nearest
    power of two in ratio, m1 at least 4.

    Privacy: PureDP(l1 / total_scale + l1 / first_scale + l1 / second_scale).
    Proof: docs/proofs/adaptive-grid.md
    """

    levels: int
    total_scale: Fraction
    first_scale: Fraction
    second_scale: Fraction
    coarse: Fraction
    fine: Fraction
    name: ClassVar[str] = "adaptive-grid/1"
    additive: ClassVar[bool] = True

    def __init__(
        self,
        levels: int,
        *,
        total_scale: Number,
        first_scale: Number,
        second_scale: Number,
        coarse: Number = 10,
        fine: Number = 5,
    ) -> None:
        object.__setattr__(self, "levels", levels)
        for label, scale in (
            ("total", total_scale),
            ("first", first_scale),
            ("second", second_scale),
        ):
            object.__setattr__(self, f"{label}_scale", LaplaceLaw(scale).scale)
        for label, number in (("coarse", coarse), ("fine", fine)):
            object.__setattr__(self, label, _positive(number, label))

    @property
    def law(self) -> LaplaceLaw:
        """The law of the noise on the cells that are drawn."""
        return LaplaceLaw(self.second_scale)

    def cost(self, bound: Bound) -> PureDP:
        """Three releases of disjoint cells, each moved by at most l1."""
        check_level(self.levels, bound, by="an adaptive grid")
        scales = (self.total_scale, self.first_scale, self.second_scale)
        return PureDP(
            sum((DiscreteLaplace(scale).cost(bound).epsilon for scale in scales), Fraction(0))
        )

    def draws(self, bound: Bound) -> int:
        """The total, the cells of the first grid, and those they are cut into."""
        groups = max(1, bound.size >> 2 * self.levels)
        first = groups << 2 * min(self.levels, FINEST_WHOLE)
        return 1 + first + min(bound.size, max(first, MOST_CELLS))

    def restore(self, data: Any) -> NoisyTree:
        """What was sampled, from the JSON that a ledger keeps of it."""
        return NoisyTree.from_json(data)

    def sample(self, values: CellSums, noise: Noise) -> NoisyTree:
        """The total, then the cells of the first grid, then those of the second, level by level."""
        everything = np.array([values.prefix[-1]], dtype=np.int64)
        total = DiscreteLaplace(self.total_scale).sample(everything, noise)
        level = self.first_level(int(total[0]) / values.groups)
        codes = np.arange(values.groups << 2 * level, dtype=np.int64)
        first = DiscreteLaplace(self.first_scale).sample(values.of_cells(level, codes), noise)
        found = [NoisyLevel(0, np.zeros(1, dtype=np.int64), total), NoisyLevel(level, codes, first)]
        cuts = self.cuts(first, level)
        for cut in np.unique(cuts).tolist():
            cells = _inside(codes[cuts == cut], cut)
            counts = values.of_cells(level + cut, cells)
            noisy = DiscreteLaplace(self.second_scale).sample(counts, noise)
            found.append(NoisyLevel(level + cut, cells, noisy))
        return NoisyTree(values.groups, tuple(found))

    def first_level(self, total: float) -> int:
        """The level of the first grid, from the noisy total of a map."""
        epsilon = float(1 / self.first_scale + 1 / self.second_scale)
        side = math.sqrt(max(total, 0.0) * epsilon / float(self.coarse)) / 4
        wanted = max(COARSEST_FIRST, round(math.log2(max(side, 1.0))))
        return min(wanted, self.levels, FINEST_WHOLE)

    def cuts(self, counts: IntArray, level: int) -> IntArray:
        """How many levels each cell of the first grid is cut by, from its noisy count.

        Should they make too many cells, all are cut less: a function of noisy counts alone.
        """
        sides = np.sqrt(np.maximum(counts, 0) / float(self.second_scale) / float(self.fine))
        wanted = np.rint(np.log2(np.maximum(sides, 1.0))).astype(np.int64)
        cuts = np.minimum(wanted, self.levels - level)
        while cuts.any() and float(np.sum(4.0**cuts)) > MOST_CELLS:
            cuts = np.maximum(cuts - 1, 0)
        return np.asarray(cuts, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class AdaptiveGridMethod(NoiseAwareMethod[NoisyTree]):
    """The adaptive grid: total_share of epsilon for the total, `alpha` of the rest for the first grid."""

    alpha: Fraction = Fraction(1, 2)
    total_share: Fraction = Fraction(1, 10)
    coarse: Fraction = Fraction(10)
    fine: Fraction = Fraction(5)
    name: ClassVar[str] = "adaptive"

    def __post_init__(self) -> None:
        for label in ("alpha", "total_share"):
            value = exact(getattr(self, label), name=label)
            if not 0 < value < 1:
                raise InvalidParameter(f"{label} must lie in (0, 1), got {value}")
            object.__setattr__(self, label, value)
        for label in ("coarse", "fine"):
            object.__setattr__(self, label, _positive(getattr(self, label), label))

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> AdaptiveGrid:
        """Scales l1 / share for each of the three shares of epsilon, rounded up."""
        moved = bound.required("l1", by="the adaptive grid")
        rest = (1 - self.total_share) * epsilon
        return AdaptiveGrid(
            grid.levels,
            total_scale=laplace_scale(self.total_share * epsilon, sensitivity=moved),
            first_scale=laplace_scale(self.alpha * rest, sensitivity=moved),
            second_scale=laplace_scale((1 - self.alpha) * rest, sensitivity=moved),
            coarse=self.coarse,
            fine=self.fine,
        )

    def noise_scale(self, mechanism: AdaptiveGrid) -> Fraction:
        """That of the cells of the second grid."""
        return mechanism.second_scale

    def estimate(self, released: NoisyTree, grid: Grid) -> tuple[Tiles, ...]:
        """Both grids made consistent by least squares, then negative counts set to 0."""
        first, second = released.levels[1], released.levels[2:]
        fitted = []
        for level in second:
            across = 4 ** (level.level - first.level)
            parents = first.values[np.unique(Grid.ancestor(level.codes, level.level - first.level))]
            counts = agreed(parents, level.values.reshape(-1, across), alpha=float(self.alpha))
            fitted.append(
                NoisyLevel(level.level, level.codes, np.rint(counts.ravel()).astype(np.int64))
            )
        return maps_of_cells(tuple(fitted), grid, groups=released.groups)


def agreed(parents: npt.ArrayLike, parts: npt.ArrayLike, *, alpha: float) -> FloatArray:
    """Counts of the parts of cells by least squares from noisy parents and noisy parts, row by row.

    The best estimate of a parent weighs its own count by w = a**2 m / ((1 - a)**2 + a**2 m), m
    parts a row; what it has more than its parts is shared among them evenly [qardaji13, sec. IV].
    """
    rows = np.asarray(parts, dtype=np.float64)
    sums, many = rows.sum(axis=1), rows.shape[1]
    weight = alpha**2 * many / ((1 - alpha) ** 2 + alpha**2 * many)
    more = weight * (np.asarray(parents, dtype=np.float64) - sums)
    return np.asarray(rows + more[:, None] / many)


def _inside(codes: IntArray, levels_down: int) -> IntArray:
    """The cells some levels down inside these, in order."""
    many = 1 << 2 * levels_down
    return np.asarray(
        (codes[:, None] * many + np.arange(many, dtype=np.int64)).ravel(), dtype=np.int64
    )


def _positive(number: Number, label: str) -> Fraction:
    value = exact(number, name=label)
    if value <= 0:
        raise InvalidParameter(f"{label} must be above 0, got {value}")
    return value
