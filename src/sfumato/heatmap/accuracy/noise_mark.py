"""Where noise ends: the height that one map in twenty of nothing exceeds, and maps that have no more to show.

All of it is made of public parameters and released values: it costs nothing.
docs/explain/heatmap-uncertainty.md says in plain words what it means.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from sfumato._random import generator
from sfumato._types import FloatArray, IntArray
from sfumato.heatmap.accuracy.uncertainty import SIGMA, TIMES
from sfumato.heatmap.analysis.blur import smooth_each, smooth_part
from sfumato.heatmap.inference.bounded import (
    counted_tiles,
    hold_inside,
    last_counted,
    window,
)
from sfumato.heatmap.inference.count_noise import count_noise
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.heatmap.tiles import Tiles, inside
from sfumato.privacy import UNITS, ZCDP
from sfumato.privacy.accounting import InShares, Number
from sfumato.records import CellSums, bound_of_sums
from sfumato.spaces import Area

if TYPE_CHECKING:
    from fractions import Fraction

    from sfumato.heatmap.methods.protocol import MapMethod
    from sfumato.heatmap.private_map import HeatmapRelease

# Deviation of the blur that pictures have, in sides of the grid: about the thickness of a pencil on
# the sheet.
PICTURE_SIGMA = 0.01
# Maps of nothing that a mark is read off. With 99, the fifth highest is exceeded by one more such
# map with a chance of 5 in 100; for one simulation the rate is 5 % give or take 2.2.
MAPS, HIGHER, MORE = 99, 5, 1
EXCEEDED = HIGHER / (MAPS + 1)
# Peaks are looked for on cells of at most this level: a blur of 1 % has no detail that is finer.
FINEST_SEEN = 8
# Of a map that knows how sure it is: so many draws say where it may be quiet, on cells of so fine a
# level. The second lowest of 39 is the 5 % end of a band.
FEW, LOWEST, COARSE = 39, 2, 6
# Noise of simulations is drawn for about so many cells at once.
LOT = 2**22


@dataclass(frozen=True, slots=True)
class NoiseMark:
    """Up to which height a map may show noise, and whether it shows anything else.

    Attributes:
        density: The height of the smoothed map below which it may be noise, in users on the whole
            grid if it stood so high everywhere; a cell of level i has 4**-i of them.
        empty: Whether the map cannot be told from one of nobody; None where that is not known: the
            method could not be simulated, or the file is of before it was asked.

    """

    density: float
    empty: bool | None = None

    def share(self, level: int, users: float) -> float:
        """The mark as a share of all mass in a cell of a level; infinite for a map that shows nothing."""
        if self.empty or users <= 0:
            return float("inf")
        return self.density / 4.0**level / users

    def following(
        self,
        tiles: Tiles,
        area: Area,
        sharpened: Callable[[Tiles], Tiles],
        *,
        posterior: MapPosterior | None,
        nothing: EmptyMaps | None,
    ) -> NoiseMark:
        """The mark of the same map when it follows a prior: that of maps of nothing which follow it too.

        Of a map that cannot be simulated, such as a saved one, it is as much higher as even mass on
        its own `tiles`, or on the whole area, becomes.
        """
        peaks = None if nothing is None else nothing.peaks_following(sharpened)
        if peaks is not None:
            known = None if posterior is None else _doubtful(sharpened(tiles), area, posterior)
            return replace(self, density=max(float(peaks[-HIGHER]), known or 0.0))
        one = np.zeros(1, dtype=np.int64)
        whole = Tiles(area.grid, one, one, np.ones(1))
        own = Tiles(area.grid, tiles.levels, tiles.codes, 0.25 ** tiles.levels.astype(np.float64))
        grown = [
            peak(sharpened(even), area) / peak(even, area)
            for even in (inside(whole, area), inside(own, area))
            if peak(even, area) > 0
        ]
        return replace(self, density=self.density * max(grown))

    def to_json(self) -> dict[str, Any]:
        """Density, emptiness, and how many maps of nothing exceed the mark."""
        return {"density": self.density, "empty": self.empty, "exceeded_by_nothing": EXCEEDED}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NoiseMark:
        """What `to_json` gave."""
        density, empty = float(data["density"]), data["empty"]
        if not (np.isfinite(density) and density >= 0) or type(empty) not in (bool, type(None)):
            raise ValueError("its noise mark is none")
        return cls(density, empty)


@dataclass(frozen=True, slots=True, eq=False)
class EmptyMaps:
    """Maps that a method makes of nobody at all: simulated with its own mechanism when first asked for."""

    method: MapMethod[Any]
    mechanism: Any
    area: Area

    @classmethod
    def of(cls, release: HeatmapRelease) -> EmptyMaps:
        """Those of a saved map: its method and mechanism, made again of what it says of itself.

        TypeError for a map that was paid for in zCDP; InvalidParameter if its method is not there.
        """
        from sfumato.heatmap.methods.registry import method_named
        from sfumato.heatmap.methods.shuffled import method_for

        loss = release.receipt.guarantee.loss
        if isinstance(loss, ZCDP):
            raise TypeError("maps are asked for by epsilon")
        one = method_named(release.method, options=release.parameters)
        method = method_for(one, release.receipt.guarantee.model)
        moved = (release.receipt.entry.bound or {}).get("l1")
        masses = 1 if moved is None else int(int(moved) / UNITS)
        grid = release.area.grid
        bound = bound_of_sums(grid, 1, masses=masses)
        return cls(method, method.mechanism(loss.epsilon, bound, grid), release.area)

    def heights(self) -> tuple[FloatArray, FloatArray] | None:
        """The peak and the total of each, rising; None for a method that cannot be simulated."""
        # A method of somebody's own may do anything: then nothing is known.
        with contextlib.suppress(Exception):
            method: Any = self.method
            try:
                return _heights(method, self.mechanism, self.area)
            except TypeError:  # it cannot be hashed
                return _heights.__wrapped__(method, self.mechanism, self.area)
        return None

    def peaks_following(self, sharpened: Callable[[Tiles], Tiles]) -> FloatArray | None:
        """The peak of each when it follows a prior, rising; None for a method that cannot be simulated."""
        with contextlib.suppress(Exception):
            found = []
            for tiles, released, group in _simulated(self.method, self.mechanism, self.area):
                one = tiles
                if getattr(self.method, "mean_is_map", False):  # finer than what it counted
                    one = inside(counted_tiles(tiles, released.counts(group)), self.area)
                found.append(peak(sharpened(one), self.area))
            return np.sort(found)
        return None


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedEmptyMaps(EmptyMaps):
    """Maps that are made of counts of nobody in another way than the method's own."""

    estimate: Callable[[NoisyCounts], Tiles]

    def heights(self) -> tuple[FloatArray, FloatArray] | None:
        """The peak and the total of each, rising; None where none can be made."""
        with contextlib.suppress(Exception):
            return _estimated_heights(self)
        return None

    def peaks_following(self, sharpened: Callable[[Tiles], Tiles]) -> FloatArray | None:
        """The peak of each when it follows a prior, rising; None where none can be made."""
        with contextlib.suppress(Exception):
            found = []
            for released in _sampled(self.mechanism, self.area):
                for counts in map(released.counts, range(released.groups)):
                    one = inside(counted_tiles(self.estimate(counts), counts), self.area)
                    found.append(peak(sharpened(one), self.area))
            return np.sort(found)
        return None


# By identity, with the counts of all maps of a release behind it: one release is looked at at a time.
@lru_cache(maxsize=1)
def _estimated_heights(empty: EstimatedEmptyMaps) -> tuple[FloatArray, FloatArray]:
    made = (
        empty.estimate(released.counts(group))
        for released in _sampled(empty.mechanism, empty.area)
        for group in range(released.groups)
    )
    peaks, totals = np.array([(peak(one, empty.area), one.total) for one in made]).T
    return np.sort(peaks), np.sort(totals)


@lru_cache(maxsize=256)
def _heights(method: Any, mechanism: Any, area: Area) -> tuple[FloatArray, FloatArray]:
    found = [(peak(one, area), one.total) for one, _, _ in _simulated(method, mechanism, area)]
    peaks, totals = np.array(found).T
    return np.sort(peaks), np.sort(totals)


def _simulated(method: Any, mechanism: Any, area: Area) -> Iterator[tuple[Tiles, Any, int]]:
    """Maps of nobody, each with what it was made of and its number in that."""
    from sfumato.heatmap.methods.protocol import batches_of, outlines_of

    for released in batches_of(method, _sampled(mechanism, area)):
        for group, one in enumerate(outlines_of(method, released, mechanism, area)):
            yield one, released, group


def _sampled(mechanism: Any, area: Area) -> Iterator[Any]:
    """What a mechanism releases of nobody: MAPS maps, some at a time."""
    none = np.zeros(0, dtype=np.int64)
    noise = SimulatedNoise()
    lot = max(1, min(MAPS, LOT >> 2 * area.grid.levels))
    for first in range(0, MAPS, lot):
        count = min(lot, MAPS - first)
        yield mechanism.sample(CellSums(area.grid, none, none, count, area), noise)


class SimulatedNoise:
    """Noise for simulated maps, the same for the same seed: quick, and good for no release."""

    distance: Fraction | None = None
    known = True

    def __init__(self, seed: int | bytes = 0) -> None:
        self._rng = generator(seed)

    def laplace(self, scale: Number, size: int) -> IntArray:
        """Laplace noise, rounded."""
        return np.asarray(np.rint(self._rng.laplace(0.0, float(scale), size)), dtype=np.int64)

    def gaussian(self, sigma: Number, size: int) -> IntArray:
        """Gaussian noise, rounded."""
        return np.asarray(np.rint(self._rng.normal(0.0, float(sigma), size)), dtype=np.int64)

    def rounded_gaussian(self, sigma: Number, size: int) -> IntArray:
        """The same."""
        return self.gaussian(sigma, size)

    def noisy_sum(
        self, values: IntArray, scales: Sequence[Fraction], which: IntArray, trust: InShares
    ) -> IntArray:
        """Values of all parties with noise in shares of all, rounded."""
        drawn = count_noise(trust.sum_shape).draw(self._rng, (values.size,))
        scale = np.array([float(one) for one in scales])[which]
        return np.asarray(values + np.rint(drawn * scale), dtype=np.int64)

    def uniform(self, below: int, size: int) -> list[int]:
        """Whole numbers below a bound."""
        return [int(below * one) for one in self._rng.random(size)]


def peak(tiles: Tiles, area: Area) -> float:
    """The highest density of the smoothed map, in users on the whole grid."""
    finest = max(COARSE, int(tiles.levels.max(initial=0)))  # within tiles there is no detail
    return float(seen(tiles, area, min(area.grid.levels, FINEST_SEEN, finest)).max(initial=0.0))


def seen(tiles: Tiles, area: Area, level: int) -> FloatArray:
    """The smoothed map inside the bounds [row, column], as a picture shows it, in users on the whole grid."""
    return (_seen if level <= FINEST_SEEN else _seen.__wrapped__)(tiles, area, level)


# A frame is looked at for its peak and drawn right after: of one map at a time, half a megabyte each.
@lru_cache(maxsize=2)
def _seen(tiles: Tiles, area: Area, level: int) -> FloatArray:
    first_column, first_row, end_column, end_row = area.window(level)
    cut = tiles.image(level)[first_row:end_row, first_column:end_column]
    found = smooth_part(cut, PICTURE_SIGMA, side=1 << level) * 4.0**level
    found.setflags(write=False)
    return found


# What was worked out lives as long as the posterior, as of errors: a film of a week has 168 maps, and
# each is asked for more than once. The map and those of nobody are kept with it.
_KNOWN: WeakKeyDictionary[
    MapPosterior, dict[tuple[int, int], tuple[Tiles, EmptyMaps | None, NoiseMark | None]]
] = WeakKeyDictionary()


def noise_mark(
    tiles: Tiles, area: Area, posterior: MapPosterior | None, nothing: EmptyMaps | None
) -> NoiseMark | None:
    """The mark of a map, and whether it is like one of nobody; None where nothing is known of either.

    One map in twenty of nothing exceeds the mark anywhere. Of a map that knows how sure it is, 95 %
    of what it shows at places that may have under half the average is below it as well.
    """
    if posterior is None:
        return _plain_mark(tiles, area, nothing)
    known, at = _KNOWN.setdefault(posterior, {}), (id(tiles), id(nothing))
    if at not in known:
        known[at] = tiles, nothing, _mark(tiles, area, posterior, nothing)
    return known[at][2]


@lru_cache(maxsize=32)
def _plain_mark(tiles: Tiles, area: Area, nothing: EmptyMaps | None) -> NoiseMark | None:
    return _mark(tiles, area, None, nothing)


def _mark(
    tiles: Tiles, area: Area, posterior: MapPosterior | None, nothing: EmptyMaps | None
) -> NoiseMark | None:
    found = None if nothing is None else nothing.heights()
    mark = 0.0 if found is None else float(found[0][-HIGHER])
    doubtful = None if posterior is None else _doubtful(tiles, area, posterior, above=mark)
    if found is None:
        return None if doubtful is None else NoiseMark(doubtful)
    _, totals = found
    empty = peak(tiles, area) <= mark and tiles.total <= totals[-MORE]
    return NoiseMark(max(mark, doubtful or 0.0), bool(empty))


def _doubtful(tiles: Tiles, area: Area, posterior: MapPosterior, *, above: float = 0.0) -> float:
    """How high a map stands where there may be under half the average: 95 % of that mass is below it.

    0 where it is not `above` a height: of a map that is nowhere higher no map need be drawn.
    """
    level = min(area.grid.levels, COARSE)
    shown = seen(tiles, area, level).ravel()
    if shown.max(initial=0.0) <= above:
        return 0.0
    here = window(area, level)
    maps = posterior.maps(FEW, level)
    leaves = np.arange(maps[0].size).reshape(maps[0].shape)
    if posterior.counts is not None:
        leaves = last_counted(posterior.counts, level)[area.grid.at_level(level).codes_of_image()]
    held = hold_inside(maps.reshape(FEW, -1), leaves.ravel(), here.ravel()).reshape(maps.shape)
    totals = held.sum(axis=(1, 2), keepdims=True)
    shares = np.where(totals > 0, held / np.where(totals > 0, totals, 1.0), here / here.sum())
    blurred = smooth_each(shares.astype(np.float32), SIGMA)
    low = np.partition(blurred, LOWEST - 1, axis=0)[LOWEST - 1][here]
    doubtful = np.sort(shown[low <= 1 / (TIMES * here.sum())])
    if not doubtful.size:
        return 0.0
    mass = np.cumsum(doubtful)
    return float(doubtful[np.searchsorted(mass, 0.95 * mass[-1])])
