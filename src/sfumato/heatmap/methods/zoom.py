"""Zoom: every cell buys its own split, and hands the rest of its budget down to its quarters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato._validate import whole
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.heatmap.inference.bounded import inside_bounds
from sfumato.heatmap.inference.posterior import CountsPosterior, mean_maps, posteriors, rough_masses
from sfumato.heatmap.inference.sketch import sketches
from sfumato.heatmap.inference.surroundings import FINEST
from sfumato.heatmap.methods.noisy_sums import CentralNoise, NoisySums
from sfumato.heatmap.methods.protocol import (
    MapEstimate,
    NoiseAwareMethod,
    check_level,
)
from sfumato.heatmap.methods.zoom_tree import PricedLevel, ZoomTree, dearest_path
from sfumato.heatmap.tiles import Tiles, dense_tiles, inside
from sfumato.privacy import UNITS, Bound, LaplaceLaw, Noise, PureDP, laplace_scale
from sfumato.privacy.accounting import Number, exact
from sfumato.records import CellSums
from sfumato.spaces import MAX_LEVELS, Area, Grid

# A budget is spent in so many equal parts: few enough for a table of noise each, and fine enough.
PARTS = 64
FIRST_LEVEL, FIRST_PARTS = 2, 16
# So many levels below the counted cells the mean is smooth: pictures of it are as high with fewer.
OUTLINE = 3
# Means of many maps are worked out at once, for about so many cells: a megabyte an array.
TOGETHER = 2**17
# Posteriors of so many maps are fitted at once: of one at a time it takes 1.7 times as long.
FITTED = 8


@dataclass(frozen=True, slots=True, init=False)
class Zoom:
    """Count the cells of the first level for a quarter of the budget; then each cell splits or closes.

    A cell with estimate m (users) and budget left *splits* if noise of m / `worth` on its quarters
    costs at most half of what it has left: it pays for that, in whole parts, and each quarter
    inherits the rest. Otherwise it *closes*: all it has left is spent once, on all its descendants
    some levels down, as many as make them hold `crowd` / epsilon users each; on itself if they
    would hold less. Estimates are made of the counts released so far, and of nothing else; no total
    is known. Cells outside the public bounds of the data are not counted: they hold 0 for all rows.
    `grid_levels` are those of the data, which may be finer than what is counted.

    Privacy: PureDP(PARTS l1 / part_scale): no path from the root pays more than PARTS parts, which
    is asserted before noise is drawn. Proof: docs/proofs/zoom.md
    """

    levels: int
    part_scale: Fraction
    worth: Fraction
    crowd: Fraction
    first_level: int
    grid_levels: int
    name: ClassVar[str] = "zoom/1"
    additive: ClassVar[bool] = True

    def __init__(
        self,
        levels: int,
        *,
        part_scale: Number,
        worth: Number = 6,
        crowd: Number = Fraction(6, 5),
        first_level: int | None = None,
        grid_levels: int | None = None,
    ) -> None:
        object.__setattr__(self, "levels", whole("levels", levels, low=0, high=FINEST))
        first = min(FIRST_LEVEL, levels) if first_level is None else first_level
        object.__setattr__(self, "first_level", whole("first_level", first, low=0, high=levels))
        finest = levels if grid_levels is None else grid_levels
        object.__setattr__(
            self, "grid_levels", whole("grid_levels", finest, low=levels, high=MAX_LEVELS)
        )
        # A double, rounded up: what is charged is what is drawn.
        object.__setattr__(self, "part_scale", LaplaceLaw(part_scale).scale)
        for label, number in (("worth", worth), ("crowd", crowd)):
            value = exact(number, name=label)
            if not Fraction(1, 10**6) <= value <= 10**6:
                raise InvalidParameter(
                    f"{label} must lie in 1e-6..1e6, got {number}; nothing was charged"
                )
            object.__setattr__(self, label, value)
        self.scale(
            PARTS
        )  # the least noise there is: refused here, before a charge, if no law has it

    @property
    def law(self) -> LaplaceLaw:
        """The law of the noise on a count that all parts were paid for: no count has less noise."""
        return LaplaceLaw(self.scale(PARTS))

    def scale(self, parts: int) -> Fraction:
        """The scale of the noise on a count bought for so many parts: at least part_scale / parts."""
        return _scale(self.part_scale, parts)

    def cost(self, bound: Bound) -> PureDP:
        """PARTS times l1 / part_scale, exactly: what the dearest path may cost."""
        check_level(self.levels, bound, by="zoom")
        return PureDP(PARTS * bound.required("l1", by="zoom") / self.part_scale)

    def draws(self, bound: Bound) -> int:
        """At most one for each cell that is split into or closed on: all cells of all levels, and a level."""
        groups: int = max(1, bound.size >> 2 * self.grid_levels)
        cells: int = 4**self.levels
        return groups * ((4 * cells - 1) // 3 + cells)

    def restore(self, data: Any) -> ZoomTree:
        """What was sampled, from the JSON that a ledger keeps of it."""
        return ZoomTree.from_json(data)

    def sample(self, values: CellSums, noise: Noise) -> ZoomTree:
        """Level by level; what a cell pays is a function of what was released before."""
        return self.sample_by(CentralNoise(noise), values)

    def sample_by(self, sums: NoisySums, values: CellSums) -> ZoomTree:
        """The same with counts that are made noisy in another way, round by round."""
        if values.grid.levels != self.grid_levels:
            raise InvalidParameter(
                f"a zoom of data of {self.grid_levels} levels cannot count data of {values.grid.levels}; "
                "nothing was released"
            )
        level = self.first_level
        cells = np.arange(values.groups << 2 * level, dtype=np.int64)
        cells = cells[values.can_hold(level, cells)]
        first = PARTS if level == self.levels else FIRST_PARTS
        purse = _Budget(self, values, sums)
        left = purse.count(level, cells, np.full(cells.size, PARTS), np.full(cells.size, first))
        while left.any():
            masses = self.masses(purse.tree, level, cells)
            price = self.prices(masses, sums.shape)
            splits = (2 * price <= left) & (level < self.levels)
            self._close(purse, level, cells[~splits], left[~splits], masses[~splits], sums.shape)
            quarters = Grid.children(cells[splits]).ravel()
            inside = values.can_hold(level + 1, quarters)
            quarters = quarters[inside]
            left = purse.count(
                level + 1,
                quarters,
                np.repeat(left[splits], 4)[inside],
                np.repeat(price[splits], 4)[inside],
            )
            level, cells = level + 1, quarters
        return purse.tree

    def masses(self, seen: ZoomTree, level: int, cells: IntArray) -> FloatArray:
        """The estimates, in users, on which all decisions rest: made of released counts alone."""
        # No number would be an estimate: what is not a number is nobody.
        found = rough_masses(seen.together, level, cells, seen.area)
        return np.nan_to_num(found, nan=0.0, posinf=1e12)

    def prices(self, masses: FloatArray, shape: Fraction = Fraction(1)) -> IntArray:
        """The parts that make the noise of a quarter at most mass / worth; more than PARTS where none do."""
        wide = math.sqrt(shape) * float(self.worth * self.part_scale / UNITS)
        parts = np.ceil(wide / np.maximum(masses, 1e-9))
        return np.asarray(np.clip(parts, 1, 2 * PARTS), dtype=np.int64)

    def depths(self, masses: FloatArray, left: IntArray, shape: Fraction = Fraction(1)) -> IntArray:
        """How many levels down a cell closes: sqrt(mass epsilon / crowd) cells a side, rounded in ratio."""
        epsilon = left / (math.sqrt(shape) * float(self.part_scale / UNITS))
        sides = np.sqrt(np.maximum(masses, 0.0) * epsilon / float(self.crowd))
        return np.asarray(np.rint(np.log2(np.maximum(sides, 1.0))), dtype=np.int64)

    def _close(
        self, purse: _Budget, level: int, cells: IntArray, left: IntArray, masses: FloatArray, shape: Fraction
    ) -> None:  # fmt: skip
        depths = np.minimum(self.depths(masses, left, shape), self.levels - level)
        for depth in np.unique(depths).tolist():
            here = depths == depth
            many = 1 << 2 * depth
            below = (cells[here][:, None] * many + np.arange(many)).ravel()
            inside = purse.values.can_hold(level + depth, below)
            rest = np.repeat(left[here], many)[inside]
            purse.count(level + depth, below[inside], rest, rest)


@lru_cache(maxsize=16 * PARTS)
def _scale(part_scale: Fraction, parts: int) -> Fraction:
    return LaplaceLaw(part_scale / parts).scale


class _Budget:
    """Counts cells for parts of their budget, and keeps what was released; refuses what a cell cannot pay."""

    def __init__(self, zoom: Zoom, values: CellSums, sums: NoisySums) -> None:
        self._zoom, self.values, self._sums = zoom, values, sums
        self.tree = ZoomTree(values.groups, zoom.part_scale, (), values.area, sums.shape)

    def count(self, level: int, cells: IntArray, left: IntArray, parts: IntArray) -> IntArray:
        """Buy noisy counts, if there is any cell to count; what each cell has left after it."""
        if not cells.size:
            return left
        if np.any(parts < 1) or np.any(parts > left) or np.any(left > PARTS):
            raise SolverFailed(
                "a cell of zoom was to pay more than it has left; nothing was released"
            )
        noisy = np.zeros(cells.size, dtype=np.int64)
        grown = (*self.tree.levels, PricedLevel(level, cells, noisy, parts))
        tree = replace(self.tree, levels=grown)
        if dearest_path(tree) > PARTS:
            raise SolverFailed(
                "a path of zoom was to cost more than its budget; nothing was released"
            )
        prices, which = np.unique(parts, return_inverse=True)
        scales = tuple(self._zoom.scale(price) for price in prices.tolist())
        for scale, price in zip(scales, prices.tolist(), strict=True):
            if scale * price < self._zoom.part_scale:
                raise SolverFailed(
                    "noise of zoom was to be less than was paid for; nothing was released"
                )
        noisy[:] = self._sums.noisy(self.values.of_cells(level, cells), scales, which.ravel())
        for array in (cells, noisy, parts):
            array.setflags(write=False)
        self.tree = tree
        return np.asarray(left - parts, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ZoomMethod(NoiseAwareMethod[ZoomTree]):
    """Zoom with the mean of its posterior as the map; detail finer than `blur` is not paid for.

    `blur` is the deviation of the filter the map will be seen through, in sides of the map: cells
    of less than four tenths of it are not counted. `worth` and `crowd` are those of `Zoom`.
    """

    blur: float = 0.01
    worth: Fraction = Fraction(6)
    crowd: Fraction = Fraction(6, 5)
    name: ClassVar[str] = "zoom"
    mean_is_map: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.blur <= 1:
            raise InvalidParameter(f"blur must lie in (0, 1], in sides of the map, got {self.blur}")
        for label in ("worth", "crowd"):
            object.__setattr__(self, label, exact(getattr(self, label), name=label))

    def finest(self, grid: Grid) -> int:
        """The finest level that is counted.

        >>> ZoomMethod().finest(Grid(12)), ZoomMethod(blur=0.05).finest(Grid(12))
        (8, 6)
        """
        seen = math.ceil(math.log2(1 / (0.4 * self.blur)))
        return max(0, min(grid.levels, FINEST, seen))

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> Zoom:
        """The zoom that costs at most epsilon: the scale of a part is rounded up, towards more noise."""
        moved = bound.required("l1", by="zoom")
        scale = laplace_scale(epsilon / PARTS, sensitivity=moved)
        return Zoom(
            self.finest(grid),
            part_scale=scale,
            worth=self.worth,
            crowd=self.crowd,
            grid_levels=grid.levels,
        )

    def estimate(self, released: ZoomTree, grid: Grid) -> tuple[Tiles, ...]:
        """The mean of each map's posterior."""
        level = min(grid.levels, FINEST)
        return tuple(
            dense_tiles(grid, level, CountsPosterior(released.counts(group)).means(level))
            for group in range(released.groups)
        )

    def maps(self, released: ZoomTree, mechanism: Zoom, area: Area) -> tuple[MapEstimate, ...]:
        """The mean of each map's posterior inside the bounds, and the posterior."""
        del mechanism
        level = min(area.grid.levels, FINEST)
        found = []
        for at in range(0, released.groups, FITTED):
            for one in posteriors(released.each[at : at + FITTED], level, area):
                tiles = _mean_tiles(one, area, level)
                if level < area.grid.levels:  # bounds that cut finer cells than these
                    tiles = inside(tiles, area)
                found.append(MapEstimate(tiles, one))
        return tuple(found)

    def outlines(self, released: ZoomTree, mechanism: Zoom, area: Area) -> tuple[Tiles, ...]:
        """The same means, laid out no finer than OUTLINE levels below the cells that were counted."""
        del mechanism
        counts = released.each
        levels = [min(area.grid.levels, FINEST, one.finest + OUTLINE) for one in counts]
        found: dict[int, Tiles] = {}
        for level in sorted(set(levels)):
            alike = [group for group, one in enumerate(levels) if one == level]
            some = max(1, TOGETHER >> 2 * level)
            for groups in (alike[at : at + some] for at in range(0, len(alike), some)):
                means = mean_maps([counts[group] for group in groups], level, area)
                for group, masses in zip(groups, means, strict=True):
                    inner = inside_bounds(masses, counts[group], area)
                    found[group] = dense_tiles(area.grid, level, inner)
        return tuple(found[group] for group in range(released.groups))

    def batches(self, released: Iterable[ZoomTree]) -> Iterable[ZoomTree]:
        """All maps at once: their trees are small."""
        return [ZoomTree.joined(list(released))]

    def sketches(self, released: ZoomTree, mechanism: Zoom, area: Area) -> tuple[Tiles, ...]:
        """What one pass of the posterior finds."""
        del mechanism
        return sketches([released.counts(group) for group in range(released.groups)], area)


def _mean_tiles(posterior: CountsPosterior, area: Area, level: int) -> Tiles:
    masses = inside_bounds(posterior.means(level), posterior.counts, area)
    return dense_tiles(area.grid, level, masses)
