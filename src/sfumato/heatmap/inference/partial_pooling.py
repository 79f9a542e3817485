"""Partial pooling of maps of one release: each follows what all have in common as far as its counts say.

A hierarchical model [gelman13, ch. 5], fitted by empirical Bayes to released counts and to nothing else: it is
post-processing, and costs nothing. The common map of a map is made of the counts of all *others*, so
that no count speaks twice. A map's splits are centered between its own surroundings and the common
map, at one of STRENGTHS. Which strength, and how closely shares keep to their centers, is as likely
as the counts of the map make it, and before that as usual as it is among all maps. A map unlike the
others finds its counts unlikely around the common map, and keeps to itself. Totals are not shared:
how many a map is of, its own counts say alone. docs/explain/pooling.md has what it is good for, and
where it misleads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.inference import posterior_kernel as kernel
from sfumato.heatmap.inference.bounded import inside_bounds
from sfumato.heatmap.inference.cascade import MASSES, SHAPES, fit_mixture
from sfumato.heatmap.inference.common_map import center_rule, common_centers, common_counts
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.heatmap.inference.posterior import (
    CenterRule,
    CountsPosterior,
    FirstPass,
    Fit,
    first_passes,
    rough_maps,
)
from sfumato.heatmap.inference.surroundings import FINEST
from sfumato.heatmap.tiles import Tiles, dense_tiles, inside
from sfumato.spaces import Area

# How far a split is centered from a map's own surroundings towards the common map.
STRENGTHS = (0.0, 0.5, 1.0)
# Before any map is seen, each strength is as usual as that of so many maps; then expectation and
# maximisation in turn, which changes chances by less than a thousandth after so many steps.
PSEUDO_MAPS, STEPS = 1.0, 200
# A strength of less than this chance is left out: it would take as long as the others.
LEAST_CHANCE = 0.01
# Which strength a draw has turns round the circle by this step, so that any few draws have them all.
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True, eq=False)
class Pooling:
    """What one map has from the others: all that is needed, besides its counts, to draw it again.

    Attributes:
        maps: How many maps were pooled, this one among them.
        common: Counts of the others taken together, in users of all of them.
        chances: How likely each of STRENGTHS is for this map.
        mixtures: How common each shape is at each of them, by class of mass [strength, class, shape].

    """

    maps: int
    common: NoisyCounts
    chances: FloatArray
    mixtures: FloatArray

    def __post_init__(self) -> None:
        sizes = (len(STRENGTHS), len(MASSES) + 1, len(SHAPES))
        if self.maps < 2 or self.chances.shape != sizes[:1] or self.mixtures.shape != sizes:
            raise InvalidInput("what a map has from others is not whole; no map was made")
        for one in (self.chances, self.mixtures):
            if not (np.all(one >= 0) and np.allclose(one.sum(axis=-1), 1.0)):
                raise InvalidInput("chances of a pooled map must add up to 1; no map was made")

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        return {
            "kind": "partial",
            "maps": self.maps,
            "strengths": list(STRENGTHS),
            "chances": self.chances.tolist(),
            "mixtures": self.mixtures.tolist(),
            "common": self.common.to_json(),
        }

    @classmethod
    def from_json(cls, data: Any) -> Pooling:
        """What `to_json` wrote; InvalidInput, KeyError, TypeError or ValueError for anything else."""
        if data["kind"] != "partial" or tuple(data["strengths"]) != STRENGTHS:
            raise ValueError("its pooling is of a kind that is not known")
        chances, mixtures = (
            np.array(data[name], dtype=np.float64) for name in ("chances", "mixtures")
        )
        common = NoisyCounts.from_json(data["common"])
        return cls(int(data["maps"]), common, chances, mixtures)


class PooledPosterior(MapPosterior):
    """What is known of one of several maps after all were released: a mixture over strengths of pooling.

    The mean of it is the map that is shown. Its counts are those of the map alone.
    """

    def __init__(
        self,
        counts: NoisyCounts,
        pooling: Pooling,
        area: Area | None = None,
        *,
        fits: Sequence[Fit] | None = None,
    ) -> None:
        if pooling.common.finest > FINEST:
            raise InvalidInput("counts of other maps are of too fine a level; no map was made")
        self.alone = CountsPosterior(counts, mean_is_map=True, area=area)
        self.pooling = pooling
        self._given = fits

    @property
    def counts(self) -> NoisyCounts:
        """Those of the map alone."""
        return self.alone.counts

    @property
    def mean_is_map(self) -> bool:
        """It is."""
        return True

    @property
    def noise_scale(self) -> float | None:
        """That of the map alone."""
        return self.alone.noise_scale

    @property
    def pooled_maps(self) -> int:
        """How many maps share strength."""
        return self.pooling.maps

    @property
    def strength(self) -> float:
        """How far its splits are centered on the others, from 0 to 1, as its counts have it."""
        return float(self.pooling.chances @ np.array(STRENGTHS))

    def counted(self, tiles: Tiles) -> Tiles:
        """The masses of the map on the finest cells that were counted."""
        return self.alone.counted(tiles)

    @cached_property
    def _fits(self) -> tuple[Fit, ...]:
        """The counts with the prior of each strength."""
        if self._given is not None:
            return tuple(self._given)
        passes = _passes(self.counts, self.pooling.common, self.alone.area)
        pairs = zip(passes, self.pooling.mixtures, strict=True)
        return tuple(one.finish(mixture) for one, mixture in pairs)

    def _parts(self) -> list[tuple[float, CountsPosterior]]:
        """The posterior at each strength that is likely, and how likely it is.

        Made anew each time: their finest levels take megabytes, and there may be a map for each hour
        of a week.
        """
        area, chances = self.alone.area, self.pooling.chances
        common = common_centers(self.pooling.common, area)
        some = np.flatnonzero(chances >= LEAST_CHANCE)
        whole = float(chances[some].sum())
        return [
            (
                float(chances[at]) / whole,
                _Centered(
                    self.counts, area, self._fits[at], center_rule(STRENGTHS[at], common, area)
                ),
            )
            for at in some
        ]

    def means(self, level: int) -> FloatArray:
        """The expected mass of every cell of a level, in users, by Z-order code."""
        mean = np.zeros(4**level)
        total = float(self.alone.means(0)[0])
        for chance, one in self._parts():
            part = one.means(level)
            mean += chance * total / max(float(part.sum()), kernel.LEAST) * part
        return mean

    def maps(self, count: int, level: int) -> FloatArray:
        """So many maps [map, row, column], in users, each at one of the strengths."""
        if count < 1:
            raise InvalidParameter(f"at least one map can be drawn, got {count}; none was")
        parts = self._parts()
        reached = np.cumsum([chance for chance, _ in parts])
        turn = (np.arange(count) + 0.5) * GOLDEN % 1.0
        which = np.minimum(np.searchsorted(reached, turn), len(parts) - 1)
        totals = self.alone.totals(count)
        found = np.empty((count, 1 << level, 1 << level))
        for at, (_, one) in enumerate(parts):
            numbers = np.flatnonzero(which == at)
            # How many there are is as the map's own counts have it: the same quantile of that.
            own = totals[numbers] / np.maximum(one.totals(count)[numbers], kernel.LEAST)
            found[numbers] = one.some_maps(count, numbers, level) * own[:, None, None]
        return found

    def totals_inside(self, area: Area, count: int) -> FloatArray | None:
        """As the map's own counts have them: totals are not shared."""
        return self.alone.totals_inside(area, count)

    def __hash__(self) -> int:
        """By identity."""
        return object.__hash__(self)


class _Centered(CountsPosterior):
    """A posterior whose splits are centered by a rule, with a fit made beforehand."""

    def __init__(self, counts: NoisyCounts, area: Area | None, fit: Fit, rule: CenterRule) -> None:
        super().__init__(counts, mean_is_map=True, area=area)
        self.__dict__["_fit"] = fit
        self._rule = rule

    def _centers(self, level: int) -> list[FloatArray]:
        while len(self._around) < level:
            at = len(self._around)
            self._around.append(self._rule(self.means(at), at))
        return self._around[:level]


def mean_tiles(posterior: PooledPosterior, area: Area, level: int = FINEST) -> Tiles:
    """The map of a pooled posterior: its mean inside the bounds, no finer than a level.

    Args:
        posterior: The pooled posterior of one map.
        area: Its area.
        level: The finest level of its tiles.

    Returns:
        Mass in users.

    """
    level = min(area.grid.levels, level)
    masses = inside_bounds(posterior.means(level), posterior.counts, area)
    tiles = dense_tiles(area.grid, level, masses)
    return inside(tiles, area) if level < area.grid.levels else tiles


@dataclass(frozen=True, slots=True, eq=False)
class PoolingModel:
    """What all maps say together: the common map, how usual strengths are, and shapes at each of them.

    A further map of the same kind, such as one of nobody, is pooled with them by `posterior`.
    """

    maps: int
    common: NoisyCounts
    usual: FloatArray
    mixtures: FloatArray
    area: Area | None

    def posterior(self, counts: NoisyCounts) -> PooledPosterior:
        """The posterior of one more map."""
        passes = _passes(counts, self.common, self.area)
        mixtures, fits, logs = _fitted(passes, self.mixtures)
        (chances,) = _responsibilities(logs[None], self.usual)
        pooling = Pooling(self.maps, self.common, chances, mixtures)
        return PooledPosterior(counts, pooling, self.area, fits=fits)


def pool_counts(
    maps: Sequence[NoisyCounts], area: Area | None = None
) -> tuple[tuple[PooledPosterior, ...], PoolingModel]:
    """Pool maps of one kind partially: the posterior of each, and the model they share.

    Args:
        maps: The released counts of each map, at least two, none of them kept back.
        area: Their area.

    Returns:
        A posterior for each map, in order: whatever the order, each is the same.

    Raises:
        InvalidParameter: There are fewer than two maps, or counts were kept back.

    """
    if len(maps) < 2:
        raise InvalidParameter(f"pooling takes at least two maps, got {len(maps)}; none was made")
    if any(one.ceiling.any() or not one.levels.size for one in maps):
        raise InvalidParameter(
            "pooling takes maps all of whose counts were released, as those of zoom; none was made"
        )
    # In an order of their own, so that sums are the same to the last digit.
    order = sorted(range(len(maps)), key=lambda at: _digest(maps[at]))
    users = rough_maps(maps, 0, area)[:, 0]
    commons, passes = [], []
    for at in range(len(maps)):
        others = [other for other in order if other != at]
        commons.append(common_counts([maps[other] for other in others], users[others]))
        passes.append(_passes(maps[at], commons[at], area))
    joint = np.stack(
        [
            fit_mixture(
                np.concatenate([passes[at][strength].evidence for at in order]),
                np.concatenate([passes[at][strength].masses for at in order]),
            )
            for strength in range(len(STRENGTHS))
        ]
    )
    fitted = [_fitted(mine, joint) for mine in passes]
    logs = np.stack([one[2] for one in fitted])
    usual = usual_strengths(logs[order])
    chances = _responsibilities(logs, usual)
    every = common_counts([maps[at] for at in order], users[order])
    found = tuple(
        PooledPosterior(
            maps[at],
            Pooling(len(maps), commons[at], chances[at], fitted[at][0]),
            area,
            fits=fitted[at][1],
        )
        for at in range(len(maps))
    )
    return found, PoolingModel(len(maps), every, usual, joint, area)


def _fitted(
    passes: Sequence[FirstPass], usual: FloatArray
) -> tuple[FloatArray, list[Fit], FloatArray]:
    """Of each strength the shapes of one map, its counts with them, and how likely that makes them."""
    pairs = list(zip(passes, usual, strict=True))
    mixtures = np.stack([fit_mixture(one.evidence, one.masses, joint) for one, joint in pairs])
    fits = [one.finish(mixture) for one, mixture in zip(passes, mixtures, strict=True)]
    return mixtures, fits, np.array([log_evidence(fit) for fit in fits])


def usual_strengths(logs: FloatArray) -> FloatArray:
    """How usual each strength is among maps, from how likely it makes the counts of each [map, strength].

    Args:
        logs: Logarithms of how likely the counts of each map are at each strength.

    Returns:
        The chances that make all counts most likely, with PSEUDO_MAPS more maps of each strength.

    """
    usual = np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(STEPS):
        owed = _responsibilities(logs, usual).sum(axis=0) + PSEUDO_MAPS
        usual = owed / owed.sum()
    return usual


def _responsibilities(logs: FloatArray, usual: FloatArray) -> FloatArray:
    found = np.exp(logs - logs.max(axis=1, keepdims=True)) * usual
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _passes(counts: NoisyCounts, common: NoisyCounts, area: Area | None) -> list[FirstPass]:
    centers = common_centers(common, area)
    return list(first_passes(counts, area, [center_rule(one, centers, area) for one in STRENGTHS]))


def log_evidence(fit: Fit) -> float:
    """The logarithm of how likely all counts of a map are, but for what does not depend on the prior.

    Totals are as likely as each other beforehand, on the points where any have weight.

    Args:
        fit: The counts with a prior.

    Returns:
        Comparable between priors of the same counts.

    """
    from scipy.special import logsumexp

    guess, spread = fit.tree.facts[0, [kernel.GUESS, kernel.SPREAD]]
    points = np.linspace(max(0.0, guess - 8 * spread), max(0.0, guess) + 8 * spread, kernel.TOTALS)
    root, itself = np.zeros(points.size, dtype=np.int64), np.full(points.size, kernel.ITSELF)
    logs = kernel.integrate(fit.tree, fit.shares, root, np.maximum(points, kernel.LEAST), itself)[0]
    return float(logsumexp(logs) - np.log(points.size))


def _digest(counts: NoisyCounts) -> bytes:
    parts = (counts.levels, counts.codes, counts.values, counts.scales)
    return hashlib.sha256(b"".join(one.tobytes() for one in parts)).digest()
