"""What noisy counts say of a map: its mean, and maps that could have led to them. All of it is free.

The prior is the cascade of `cascade.py`; the likelihood is that of the law of the noise, exactly. Cells
form a tree of halves, so that likelihoods are passed up it and masses come down it, one variable at
a time: no sampling chain has to mix, and no noise is taken for Gaussian.

Long because a tree, its fit and its draws are of one shape.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.inference import posterior_kernel as kernel
from sfumato.heatmap.inference.bounded import (
    bounded_center,
    counted_tiles,
    counts_inside,
    parts_of_nodes,
)
from sfumato.heatmap.inference.cascade import (
    MASSES,
    Shares,
    by_shape,
    fit_mixture,
    mixed,
    usual_shares,
)
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.posterior_kernel import POINTS
from sfumato.heatmap.inference.surroundings import FINEST, centers_of, quarters_of
from sfumato.heatmap.tiles import Tiles
from sfumato.spaces import Area, Grid

# A mean of so many maps, each with its parents drawn and its own share integrated.
MEAN_OF = 16
PRIMES = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59])
# Points and bins of a first pass: half as many are enough to choose among a few levels, shapes or
# centers.
ROUGH = 10
SMALL = 2**14  # counts of maps that are worked on together
# What is at most so much of its map is halved evenly, without a search: together the 16,384 cells of
# level 7 hold under 1 in 60,000 of a map so.
TRACE = 1e-9
# Numbers that are worked on at once, 8 MB of them, and that are kept of each of the last few sets of
# maps: one map is looked at on cells of several sizes.
AT_ONCE, KEPT, SETS = 2**20, 2**22, 3
# Where the splits of a level's cells are centered, by the masses of that level: as `centers_of`.
CenterRule = Callable[[FloatArray, int], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class _Tree(kernel.Nodes):
    """The same nodes with the binary depth and the code of each."""

    depth: IntArray
    code: IntArray

    def level(self, level: int) -> IntArray:
        """Where the cells of a level are among the nodes."""
        return np.flatnonzero(self.depth == 2 * level)


class CountsPosterior:
    """What is known of a map after its noisy counts were released; worked out when first used.

    `mean_is_map` says that the map shown is the mean of this posterior: then mass below the counted
    cells was spread by the prior, and `counted` gives it back to them. Outside the bounds of `area`
    is nobody, whatever was counted there.
    """

    def __init__(
        self, counts: NoisyCounts, *, mean_is_map: bool = False, area: Area | None = None
    ) -> None:
        if counts.finest > FINEST or counts.groups != 1:
            raise InvalidParameter(
                f"counts of one map and of levels 0..{FINEST} have a posterior, got {counts.groups} maps and "
                f"level {counts.finest}; none was made"
            )
        self.counts = counts
        self.mean_is_map = mean_is_map
        self.pooled_maps = 1
        self.area = area
        self._laid: list[FloatArray] = []
        self._around: list[FloatArray] = []

    @property
    def noise_scale(self) -> float | None:
        """The usual scale of its last counts, in users, where each was paid for by itself."""
        return self.counts.usual_scale if self.mean_is_map else None

    def counted(self, tiles: Tiles) -> Tiles:
        """The masses of the map on the finest cells that were counted."""
        return counted_tiles(tiles, self.counts) if self.mean_is_map else tiles

    @cached_property
    def _fit(self) -> Fit:
        return _fitted(self.counts, self.area)

    def _masses(self, count: int, numbers: IntArray) -> FloatArray:
        """Of `count` maps these ones [map, node]."""
        if count * self._fit.tree.first.size > KEPT:
            return self._fit.drawn(self.totals(count)[numbers], numbers)
        return np.asarray(_kept(self._fit, count)[numbers])

    def totals(self, count: int) -> FloatArray:
        """The total of each of so many maps: evenly spaced quantiles of what is known of it."""
        return self._fit.totals(count)[:, 0]

    def totals_inside(self, area: Area, count: int) -> FloatArray | None:
        """The same inside the bounds: nobody is outside those it was made with; None for other ones."""
        return self.totals(count) if area == self.area else None

    @cached_property
    def _mean(self) -> FloatArray:
        return self._fit.mean()

    def means(self, level: int) -> FloatArray:
        """The expected mass of every cell of a level, in users, by Z-order code."""
        while len(self._laid) <= _seen(level):
            at = len(self._laid)
            self._laid.append(
                self._fit.below(self._mean, self._laid[-1], self._centers(at)[-1], at)
                if at
                else self._mean[:1]
            )
        return self._laid[level].copy()

    def _centers(self, level: int) -> list[FloatArray]:
        """Where the splits of all levels above this one are centered: as the mean map lies around them."""
        while len(self._around) < level:
            at = len(self._around)
            self._around.append(centers_of(self.means(at), at, self.area))
        return self._around[:level]

    def maps(self, count: int, level: int) -> FloatArray:
        """So many maps [map, row, column], in users: each could have led to what was released.

        Below the cells that were counted, mass falls as the prior says. The same counts give the
        same maps.
        """
        if count < 1:
            raise InvalidParameter(f"at least one map can be drawn, got {count}; none was")
        return self.some_maps(count, np.arange(count), level)

    def some_maps(self, count: int, which: IntArray, level: int) -> FloatArray:
        """Of so many maps of a level these ones."""
        fit, grid = self._fit, Grid(FINEST).at_level(_seen(level))
        # Surroundings are those of the mean map: one blur a level, not one a map.
        centers = self._centers(level)
        found = np.empty((which.size, grid.side, grid.side))
        some = max(1, AT_ONCE // max(fit.tree.first.size, grid.size))
        for begin in range(0, which.size, some):
            numbers = which[begin : begin + some]
            drawn = fit.scattered(self._masses(count, numbers), centers, numbers)
            for at, cells in enumerate(drawn, start=begin):
                found[at] = grid.image(cells)
        return found


def _seen(level: int) -> int:
    if not 0 <= level <= FINEST:
        raise InvalidParameter(
            f"a posterior shows cells of level 0..{FINEST}, got {level}; none was drawn"
        )
    return level


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A tree with its likelihoods, the prior they were passed up with, and where uniform numbers start.

    Of several maps each has a seed of its own; draws are of one.
    """

    tree: _Tree
    shares: Shares
    seeds: tuple[int, ...]
    area: Area | None = None

    def only(self, number: int) -> tuple[Fit, IntArray]:
        """The fit of one of several maps, and which nodes are of it: in the order they have by itself."""
        tree, classes = self.tree, len(MASSES) + 1
        nodes = np.flatnonzero(tree.of_map == number)
        first = tree.first[nodes]
        first = np.where(first >= 0, np.searchsorted(nodes, first), -1)
        # The code of a cell begins with the number of its map.
        code = tree.code[nodes] - (number << tree.depth[nodes])
        own = _Tree(
            first, tree.facts[nodes], tree.table[nodes], tree.noise, np.zeros_like(first),
            tree.depth[nodes], code,
        )  # fmt: skip
        mine = slice(number * classes, (number + 1) * classes)
        shares = Shares(self.shares.below[mine].copy(), self.shares.part[mine].copy())
        return Fit(own, shares, (self.seeds[number],), self.area), nodes

    def mean(self, draws: int = MEAN_OF) -> FloatArray:
        """The expected mass of each node: over some draws of its parent, exactly given that.

        The numbers of a node turn round the circle from draw to draw, by steps that no two depths
        share: they cover it more evenly than chance would.
        """
        tree = self.tree
        seeds = np.array(self.seeds, dtype=np.uint64)[tree.of_map]
        starts, steps = kernel.hashed(seeds, _numbers(tree.of_map)), np.sqrt(PRIMES)[tree.depth]
        uniforms = (starts + np.arange(draws)[:, None] * steps) % 1.0
        _, given = kernel.descend(self.tree, self.shares, self.totals(draws), uniforms)
        mean = np.zeros(self.tree.first.size)
        for one in given:
            mean += one
        mean /= draws
        kernel.agree(self.tree, mean)
        return mean

    def drawn(self, totals: FloatArray, numbers: IntArray) -> FloatArray:
        """The masses of all nodes in maps of these totals [map, node]."""
        uniforms = kernel.uniform(self.seeds[0], numbers, np.arange(self.tree.first.size))
        return kernel.descend(self.tree, self.shares, totals[:, None], uniforms)[0]

    def totals(self, count: int) -> FloatArray:
        """Evenly spaced quantiles of the whole mass of each map [quantile, map]."""
        points, weights = kernel.totals(self.tree, self.shares, len(self.seeds))
        reached = np.cumsum(weights, axis=1) - weights / 2
        at = (np.arange(count) + 0.5) / count
        found = [np.interp(at, *one) for one in zip(reached, points, strict=True)]
        return np.stack(found, axis=1)

    def laid_out(self, mass: FloatArray, level: int) -> FloatArray:
        """A level's masses, of maps one after another; where nothing was counted as surroundings say."""
        return self.levels(mass, level)[0][-1]

    def levels(self, mass: FloatArray, level: int) -> tuple[list[FloatArray], list[FloatArray]]:
        """The same of all levels down to this one, and where the splits between them are centered."""
        laid, around = [mass[: len(self.seeds)]], list[FloatArray]()
        for at in range(level):
            around.append(centers_of(laid[at], at, self.area))
            laid.append(self.below(mass, laid[at], around[at], at + 1))
        return laid, around

    def below(
        self, mass: FloatArray, above: FloatArray, centers: FloatArray, level: int
    ) -> FloatArray:
        """A level's masses from those of the level above, and from where its splits are centered."""
        now: FloatArray = (above[:, None] * quarters_of(centers)).ravel()
        here = self.tree.level(level)
        now[self.tree.code[here]] = mass[here]
        return now

    def scattered(
        self, masses: FloatArray, centers: list[FloatArray], numbers: IntArray
    ) -> FloatArray:
        """All cells of the level below the last centers [map, cell]; the prior splits what was not counted."""
        now, starts = np.ascontiguousarray(masses[:, :1]), kernel.starts_of(self.seeds[0], numbers)
        least = np.maximum(masses[:, 0] * TRACE, kernel.LEAST)
        for at, here in enumerate(centers):
            now = kernel.scatter(now, here, self.shares, starts, at, least)
            counted = self.tree.level(at + 1)
            now[:, self.tree.code[counted]] = masses[:, counted]
        return now


@lru_cache(maxsize=SETS)
def _kept(fit: Fit, count: int) -> FloatArray:
    """The masses of all nodes in so many maps [map, node], a few maps at once."""
    totals, some = fit.totals(count)[:, 0], max(1, AT_ONCE // fit.tree.first.size)
    starts = range(0, count, some)
    return np.concatenate(
        [fit.drawn(totals[at : at + some], np.arange(at, min(at + some, count))) for at in starts]
    )


def rough_masses(
    counts: NoisyCounts, level: int, codes: IntArray, area: Area | None = None
) -> FloatArray:
    """Expected masses of cells that were counted, from one pass: what zoom decides by. Maps of all groups."""
    fit = _first_fit(counts, ROUGH, area)
    here = fit.tree.level(level)
    return np.asarray(_rough(fit)[here][np.searchsorted(fit.tree.code[here], codes)])


def rough_maps(counts: Sequence[NoisyCounts], level: int, area: Area | None = None) -> FloatArray:
    """Masses of all cells of a level [map, cell], by Z-order code, from one pass each.

    Near the means, in a sixth of their time: for simulations that compare many maps of one kind
    with each other. Small maps are worked on together; their numbers are the same.
    """
    found, part, held = [], list[NoisyCounts](), 0
    for one in counts:
        if part and held + one.codes.size > SMALL:
            found.append(_rough_maps(part, level, area))
            part, held = [], 0
        part.append(one)
        held += one.codes.size
    return np.concatenate([*found, _rough_maps(part, level, area)])


def _rough_maps(counts: Sequence[NoisyCounts], level: int, area: Area | None) -> FloatArray:
    fit = _first_fit(_side_by_side(counts), ROUGH, area)
    return fit.laid_out(_rough(fit), _seen(level)).reshape(len(counts), -1)


@dataclass(frozen=True, slots=True, eq=False)
class FirstPass:
    """Counts whose splits were centered, and how likely each is under every shape [split, shape].

    `masses` are those of the cells that are split, as the first pass found them; `of_map` is the map
    of each.
    """

    fit: Fit
    masses: FloatArray
    evidence: FloatArray
    of_map: IntArray

    def finish(self, mixture: FloatArray) -> Fit:
        """The posterior with shapes as common as a mixture says; of several maps one after another."""
        tree, shares = self.fit.tree, mixed(mixture)
        tree = replace(tree, table=np.zeros((tree.first.size, kernel.POINTS)))
        kernel.upward(tree, shares)
        return Fit(tree, shares, self.fit.seeds, self.fit.area)


def first_passes(
    counts: NoisyCounts, area: Area | None, rules: Sequence[CenterRule]
) -> Iterator[FirstPass]:
    """A pass with even centers and the usual shapes; then splits are centered by each rule in turn."""
    return _first_passes(_first_fit(counts, ROUGH, area), counts.finest, rules)


def _first_passes(first: Fit, finest: int, rules: Sequence[CenterRule]) -> Iterator[FirstPass]:
    rough = _rough(first)
    split = first.tree.first >= 0
    for rule in rules:
        tree = replace(first.tree, facts=first.tree.facts.copy())
        masses = rough[: len(first.seeds)]
        for level in range(finest):
            centers = rule(masses, level)
            _center(tree, centers, level)
            masses = first.below(rough, masses, centers, level + 1)
        # A split of which the bounds leave one side only says nothing of shapes.
        center = tree.facts[:, kernel.CENTER]
        two = (center >= 0) & (center <= 1)
        evidence = kernel.evidence(tree, by_shape(), rough)[two[split]]
        here = split & two
        yield FirstPass(replace(first, tree=tree), rough[here], evidence, tree.of_map[here])


def _fitted(counts: NoisyCounts, area: Area | None) -> Fit:
    """The posterior, with the shapes of its prior and its centers fitted to the counts themselves.

    Twice: first with even centers and the usual shapes; then each split is centered where the
    surroundings of its cell lie, and shapes are as common as the first pass found them.
    """
    (one,) = first_passes(counts, area, [lambda masses, level: centers_of(masses, level, area)])
    return one.finish(fit_mixture(one.evidence, one.masses))


def mean_maps(counts: Sequence[NoisyCounts], level: int, area: Area | None = None) -> FloatArray:
    """The masses of all cells of a level [map, cell] that `CountsPosterior.means` has of each, at once.

    The same numbers in a tenth of the time, where maps are small: for simulations of many.
    """
    fit = _fitted_together(counts, area)
    return fit.laid_out(fit.mean(), _seen(level)).reshape(len(counts), -1)


def posteriors(
    counts: Sequence[NoisyCounts], level: int, area: Area | None = None
) -> list[CountsPosterior]:
    """The posteriors of several maps of zoom, worked out at once with their means down to a level."""
    fit, many = _fitted_together(counts, area), len(counts)
    mean = fit.mean()
    laid, around = fit.levels(mean, _seen(level))
    found = []
    for number, one in enumerate(counts):
        posterior = CountsPosterior(one, mean_is_map=True, area=area)
        alone, nodes = fit.only(number)
        posterior.__dict__.update(_fit=alone, _mean=mean[nodes])
        posterior._laid = [cells.reshape(many, -1)[number] for cells in laid]
        posterior._around = [cells.reshape(many, -1, 3)[number] for cells in around]
        found.append(posterior)
    return found


def _fitted_together(counts: Sequence[NoisyCounts], area: Area | None) -> Fit:
    """What `_fitted` finds of each map, as one tree with a root for each."""
    every = _side_by_side(counts)
    first = replace(_first_fit(every, ROUGH, area), seeds=tuple(map(_seed, counts)))
    (one,) = _first_passes(
        first, every.finest, [lambda masses, level: centers_of(masses, level, area)]
    )
    mine = [np.flatnonzero(one.of_map == number) for number in range(len(counts))]
    return one.finish(
        np.concatenate([fit_mixture(one.evidence[here], one.masses[here]) for here in mine])
    )


def _side_by_side(counts: Sequence[NoisyCounts]) -> NoisyCounts:
    """The counts of several maps as those of one tree with a root for each."""
    shifted = [one.codes + (number << 2 * one.levels) for number, one in enumerate(counts)]
    names = ("levels", "values", "scales", "ceiling")
    levels, values, scales, ceiling = (
        np.concatenate([getattr(one, name) for one in counts]) for name in names
    )
    return NoisyCounts(
        levels, np.concatenate(shifted), values, scales, ceiling, len(counts), counts[0].law
    )


def _first_fit(counts: NoisyCounts, points: int = POINTS, area: Area | None = None) -> Fit:
    tree, shares = _grown(counts, points, area), usual_shares()
    kernel.upward(tree, shares)
    return Fit(tree, shares, (_seed(counts),) * counts.groups, area)


def _seed(counts: NoisyCounts) -> int:
    digest = hashlib.sha256(counts.values.tobytes() + counts.codes.tobytes()).digest()
    return int.from_bytes(digest[:7], "big")


def _numbers(of_map: IntArray) -> IntArray:
    """The number of each node among those of its own map."""
    order = np.argsort(of_map, kind="stable")
    found = np.empty(of_map.size, dtype=np.int64)
    found[order] = np.arange(of_map.size) - np.searchsorted(of_map[order], of_map[order])
    return found


def _rough(fit: Fit) -> FloatArray:
    """The expected mass of each node, given the expected mass of its parent."""
    return kernel.expect(fit.tree, fit.shares, len(fit.seeds))


def _grown(counts: NoisyCounts, points: int, area: Area | None) -> _Tree:
    """The tree over all counted cells: with a cell come its siblings, its parent, and so on to the root.

    What lies outside the bounds is known to be empty, however it was counted.
    """
    if area is not None:
        counts = counts_inside(counts, area)
    depths, codes = 2 * counts.levels, counts.codes
    deepest = int(depths.max(initial=0))
    wanted = [np.unique(codes[depths == at]) for at in range(deepest + 1)]
    for at in range(deepest, 0, -1):
        if at % 2 == 0:
            wanted[at] = (4 * np.unique(wanted[at] >> 2)[:, None] + np.arange(4)).ravel()
        parents = np.unique(wanted[at] >> 1)
        wanted[at] = (2 * parents[:, None] + np.arange(2)).ravel()
        wanted[at - 1] = np.union1d(wanted[at - 1], parents)
    wanted[0] = np.arange(counts.groups)
    starts = np.concatenate([[0], np.cumsum([one.size for one in wanted])])
    depth = np.repeat(np.arange(deepest + 1), [one.size for one in wanted])
    code = np.concatenate(wanted)
    first = np.full(code.size, -1, dtype=np.int64)
    for at in range(deepest):
        above = starts[at] + np.searchsorted(wanted[at], wanted[at + 1][::2] >> 1)
        first[above] = starts[at + 1] + 2 * np.arange(above.size)
    node = np.empty(codes.size, dtype=np.int64)
    for at in range(0, deepest + 1, 2):
        here = depths == at
        node[here] = starts[at] + np.searchsorted(wanted[at], codes[here])
    parts = parts_of_nodes(area, depth, code)
    first[parts == 0] = -1
    return _counted(counts, node, depth, code, first, parts=parts, points=points)


def _counted(
    counts: NoisyCounts,
    node: IntArray,
    depth: IntArray,
    code: IntArray,
    first: IntArray,
    *,
    parts: FloatArray,
    points: int,
) -> _Tree:
    """The tree with its counts, and with a rough Gaussian guess of each node that says where to look.

    `parts` is how much of the map each node has inside the bounds: splits are centered so, and a
    node without any has no mass.
    """
    size = code.size
    order = np.argsort(node, kind="stable")
    turn = np.arange(node.size) - np.searchsorted(node[order], node[order])
    slots = int(turn.max(initial=0)) + 1
    kinds = np.zeros((size, slots), dtype=np.int8)
    values, scales = np.zeros((size, slots)), np.ones((size, slots))
    at = node[order], turn
    kinds[at] = np.where(counts.ceiling[order], kernel.CEILING, kernel.COUNT)
    values[at], scales[at] = counts.values[order], counts.scales[order]
    # Below a ceiling lies about half of it, give or take that and the noise.
    half = np.maximum(values, 0) / 2
    place = np.where(kinds == kernel.CEILING, half, values)
    wide = 3 * counts.widening * scales
    variance = np.where(
        kinds == kernel.CEILING, (half + wide) ** 2, counts.law.variance * scales**2
    )
    weight = np.where(kinds == kernel.NONE, 0.0, 1 / variance)
    own, own_place = weight.sum(axis=1), (weight * place).sum(axis=1)
    guess, spread = np.zeros(size), np.full(size, np.inf)
    low, high = np.zeros(size), np.ones(size)
    for level in range(int(depth.max(initial=0)), -1, -1):
        here = np.flatnonzero(depth == level)
        a = first[here]
        below = np.where(a >= 0, np.hypot(spread[a], spread[a + 1 - (a < 0)]), np.inf)
        sums = np.where(np.isfinite(below), guess[a] + guess[a + 1 - (a < 0)], 0.0)
        low[here] = np.where(np.isfinite(below), np.maximum(sums - 8 * below, 0.0), 0.0)
        high[here] = np.where(np.isfinite(below), np.maximum(sums, 0.0) + 8 * below, np.inf)
        total = own[here] + 1 / below**2
        guess[here] = np.where(total > 0, own_place[here] + sums / below**2, 0.0) / np.where(
            total > 0, total, 1.0
        )
        spread[here] = np.where(total > 0, 1 / np.sqrt(np.where(total > 0, total, 1.0)), np.inf)
        spread[here[parts[here] == 0]] = 0.0
    roots = code >> depth
    if not np.isfinite(spread[roots]).all():
        raise InvalidInput(
            "counts say nothing of how many there are on the whole map; none was made"
        )
    # No cell has many times more than its map.
    most = 3 * np.maximum(guess[roots], 1.0) + 10 * np.minimum(spread[roots], 1e6)
    high = np.maximum(np.minimum(high, most), low + 1e-3)
    split = first >= 0
    center = np.full(size, 0.5)
    center[split] = bounded_center(parts[first[split]], parts[first[split] + 1])
    # In the order of the columns CENTER, GUESS, SPREAD, LOW, HIGH and COUNTS of the kernel.
    told = np.stack([kinds, values, scales], axis=2).reshape(size, -1)
    facts = np.column_stack([center, guess, spread, low, high, told])
    # A copy: what is read only would have the kernel compiled once more.
    noise = np.array(counts.law.corrections)
    return _Tree(first, facts, np.zeros((size, points)), noise, roots, depth, code)


def _center(tree: _Tree, centers: FloatArray, level: int) -> None:
    """Center the splits of a level's cells, and those of their halves."""
    here, halves = tree.level(level), np.flatnonzero(tree.depth == 2 * level + 1)
    tree.facts[here, kernel.CENTER] = centers[tree.code[here], 0]
    tree.facts[halves, kernel.CENTER] = centers[tree.code[halves] >> 1, 1 + (tree.code[halves] & 1)]
