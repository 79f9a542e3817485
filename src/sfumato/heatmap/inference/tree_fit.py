"""Masses from a noisy tree: the map whose pyramid is nearest to the released counts in l1, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import InvalidInput
from sfumato.heatmap.inference import tree_fit_kernel as reconstruct_kernel
from sfumato.heatmap.methods.protocol import NoisyTree
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import UNITS
from sfumato.spaces import Grid

NO_TREE = "the cells of a tree must increase and lie in a cell of the level above; no map was made"


def reconstruct(tree: NoisyTree, grid: Grid) -> tuple[Tiles, ...]:
    """The maps, one for each group, whose pyramids are nearest to the counts: to be drawn and measured.

    With t(c) the count of a selected cell of level i and m(c) >= 0 the mass a map has inside c, it
    minimises the sum of 2**-i |t(c) - m(c)| over selected cells plus 2**-i m(c) over all other
    cells of the measured levels and below, down to the finest of the grid [ghazi23, alg. 2 line 9].
    The least cost F_c of mass m inside c is convex and piecewise linear:

        F_c(m) = 2**-i |t(c) - m|  +  min of the sum of F over the quarters of c, their masses adding to m.

    The minimum over quarters lists all their pieces by slope; the first term cuts the list at t(c).
    A slope is a string of signs, so lists are merged as integers, and lengths are units: everything
    is exact until the shares of tied pieces become doubles at the end.

    Beyond the finite pieces of its quarters, mass inside c may lie anywhere in c at the same cost.
    With l the finest level, a unit in a quarter that was not selected costs 2**-(i+1) + ... + 2**-l
    = 2**-i - 2**-l. A selected quarter beyond its pieces costs 2**-(i+1) for itself plus, by
    induction, 2**-(i+1) - 2**-l below, which is the same; and a finite piece costs less, having a
    minus in its string. So that mass is a tile c of its own, spread evenly over the cell. Of tied
    pieces the even choice is made: all give the same share of their length.

    Args:
        tree: Released counts, level by level.
        grid: The grid of the maps.

    Returns:
        One map for each group.

    Raises:
        InvalidInput: The counts are of cells that the grid does not have.

    Example:
        >>> from sfumato.heatmap.methods.protocol import NoisyLevel
        >>> top = NoisyLevel(0, np.array([0]), np.array([6 * UNITS]))
        >>> quarters = NoisyLevel(1, np.array([0, 3]), np.array([4 * UNITS, 4 * UNITS]))
        >>> (tiles,) = reconstruct(NoisyTree(1, (top, quarters)), Grid(2))
        >>> tiles.levels, tiles.codes, tiles.masses
        (array([1, 1]), array([0, 3]), array([3., 3.]))

    """
    starts, codes, counts = _flat(tree, grid)
    if codes.size == 0:
        return tuple(Tiles(grid, codes, codes, np.zeros(0)) for _ in range(tree.groups))
    try:
        units = reconstruct_kernel.solve(starts, codes, counts)
    except ValueError:
        raise InvalidInput(NO_TREE) from None
    levels, chosen, masses = reconstruct_kernel.pick(starts, tree.levels[0].level, units, codes)
    masses /= UNITS
    if tree.groups == 1:
        return (Tiles(grid, levels, chosen, masses),)
    groups = chosen >> 2 * levels
    chosen -= groups << 2 * levels
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(1, tree.groups))
    return tuple(
        Tiles(grid, levels[mine], chosen[mine], masses[mine]) for mine in np.split(order, ends)
    )


def objective(tree: NoisyTree, tiles: tuple[Tiles, ...], *, grid: Grid) -> Fraction:
    """How far the pyramids of maps are from the counts in l1, in users and exactly: what is minimised.

    The sum of 2**-i |t - m| as in `reconstruct`, of any maps, with every double taken at its exact
    value.

    Args:
        tree: Released counts, level by level.
        tiles: A map for each group.
        grid: The grid of the maps.

    Returns:
        The cost, exactly, in users.

    Raises:
        InvalidInput: The counts are of cells that the grid does not have.

    """
    _flat(tree, grid)
    masses = [_Masses(one, grid) for one in tiles]
    everything = sum((one.total for one in masses), Fraction(0))
    cost = Fraction(0)
    for level in range(tree.levels[0].level if tree.levels else 0, grid.levels + 1):
        # Every level holds all mass; what is not in selected cells is paid for in the others.
        off, others = Fraction(0), everything
        for code, count in _selected(tree, level):
            group, cell = divmod(code, 1 << 2 * level)
            inside = masses[group].inside(level, cell)
            off += abs(Fraction(count, UNITS) - inside)
            others -= inside
        cost += (off + others) / 2**level
    return cost


class _Masses:
    """The exact mass of tiles inside any cell."""

    def __init__(self, tiles: Tiles, grid: Grid) -> None:
        self.total = Fraction(0)
        self._within: list[dict[int, Fraction]] = [{} for _ in range(grid.levels + 1)]
        self._of_tile: list[dict[int, Fraction]] = [{} for _ in range(grid.levels + 1)]
        rows = zip(tiles.levels.tolist(), tiles.codes.tolist(), tiles.masses.tolist(), strict=True)
        for level, code, number in rows:
            mass = Fraction(number)
            self.total += mass
            self._of_tile[level][code] = self._of_tile[level].get(code, Fraction(0)) + mass
            for above in range(level + 1):
                cell = code >> 2 * (level - above)
                self._within[above][cell] = self._within[above].get(cell, Fraction(0)) + mass

    def inside(self, level: int, cell: int) -> Fraction:
        """Tiles inside the cell, and its share of the larger tiles around it."""
        found = self._within[level].get(cell, Fraction(0))
        for above in range(level):
            down = 2 * (level - above)
            found += self._of_tile[above].get(cell >> down, Fraction(0)) / (1 << down)
        return found


def _selected(tree: NoisyTree, level: int) -> Iterator[tuple[int, int]]:
    for one in tree.levels:
        if one.level == level:
            yield from zip(one.codes.tolist(), one.values.tolist(), strict=True)


def _flat(tree: NoisyTree, grid: Grid) -> tuple[IntArray, IntArray, IntArray]:
    """Where each level begins, and all codes and counts one after another; refused unless they are a tree."""
    if not tree.levels:
        return np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    first = tree.levels[0].level
    starts = np.zeros(len(tree.levels) + 1, np.int64)
    for at, one in enumerate(tree.levels):
        if one.level != first + at or not 0 <= one.level <= grid.levels:
            raise InvalidInput(
                f"the levels of a tree must follow one another down to at most {grid.levels}, got "
                f"{[level.level for level in tree.levels]}; no map was made"
            )
        if one.codes.shape != one.values.shape:
            raise InvalidInput(
                f"level {one.level} of a tree needs one count for each cell; no map was made"
            )
        starts[at + 1] = starts[at] + one.codes.size
    codes = np.concatenate([one.codes for one in tree.levels])
    counts = np.concatenate([one.values for one in tree.levels])
    if starts[1] and codes[starts[1] - 1] >= tree.groups << 2 * first:
        raise InvalidInput(NO_TREE)
    return starts, codes, counts
