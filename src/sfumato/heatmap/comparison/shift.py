"""How far mass moved from one map to another, and how far noise alone moves it when nothing changed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._random import seed_of
from sfumato._types import FloatArray
from sfumato.heatmap.accuracy.noise_mark import EmptyMaps, SimulatedNoise
from sfumato.heatmap.accuracy.uncertainty import FINEST_DRAWS, maps_inside
from sfumato.heatmap.analysis.metrics import POOLED, emd_ground
from sfumato.heatmap.inference.bounded import window
from sfumato.heatmap.inference.sketch import SKETCH, sketches
from sfumato.heatmap.methods.protocol import sketches_of
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import UNITS
from sfumato.records import CellSums
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.inference.map_posterior import MapPosterior
    from sfumato.heatmap.results import HeatmapRelease

# Pairs of maps of one simulated truth. If nothing changed, the two maps at hand are like one more
# pair: with 19 they are beyond the furthest with a chance of 1 in 20, and within all with 90 %.
PAIRS = 19
COVERAGE = 0.9


@dataclass(frozen=True, slots=True)
class Shift:
    """How far mass moved on average, beside what noise alone gives.

    Attributes:
        value: The earth mover's distance of the two maps as shares, in `unit`.
        unit: "m", "px", or "" for the units of a plane; east-west and north-south added.
        noise: What two releases of one and the same table typically differ by; None if a map does
            not say how sure it is, or its method cannot be simulated.
        low: The low end of what they differ by, with 90 %.
        high: The high end.
        exceeds: Whether the maps differ by more than noise: one pair in twenty of one table would.

    """

    value: float
    unit: str
    noise: float | None = None
    low: float | None = None
    high: float | None = None
    exceeds: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Shift:
        """What `to_json` gave."""
        return cls(**data)


def shift_between(before: HeatmapRelease, after: HeatmapRelease) -> Shift:
    """How far mass moved from one map to another of the same area, beside what noise alone gives.

    Both releases are simulated around the same made-up truths, with their own methods and budgets.
    Truths are drawn by the posteriors of the maps. Simulated maps are estimated in fewer steps
    where a method knows a way (`sketches`), and so are the two at hand for the comparison; what is
    said is in proportion to the maps shown.

    Privacy: made of released values and public parameters; it costs nothing.

    Args:
        before: One map.
        after: Another of the same area and grid.

    Returns:
        The distance, and what noise alone gives.

    """
    area = before.area
    level = min(area.grid.levels, POOLED)
    shown = emd_ground(before.shares.image(level), after.shares.image(level), area, level=level)
    drawn = simulated_shifts(before, after)
    if drawn is None:
        return Shift(shown, area.unit)
    rough = _distance(_sketch(before), _sketch(after), area)
    scale = shown / rough if rough > 0 else 1.0
    low, middle, high = scale * drawn[0], scale * float(np.median(drawn)), scale * drawn[-1]
    return Shift(shown, area.unit, middle, float(low), float(high), bool(rough > drawn[-1]))


def simulated_shifts(before: HeatmapRelease, after: HeatmapRelease) -> FloatArray | None:
    """How far apart pairs of maps of one table are, rising; None where that is not known."""
    # The total of a map without a posterior holds noise too: simulations of it would have too little.
    if before.posterior is None or after.posterior is None:
        return None
    truths = _truths(before.area, before.posterior, after.posterior)
    # A method of somebody's own may do anything, and may not be here: then nothing is known.
    with contextlib.suppress(Exception):
        seeds = [seed_of(one.tiles.masses) for one in (before, after)]
        if seeds[0] == seeds[1]:  # a map compared with itself, as if released twice
            seeds[1] = seeds[1][::-1]
        sides = [
            _simulated(one, truths, seed) for one, seed in zip((before, after), seeds, strict=True)
        ]
        found = [_distance(p, q, before.area) for p, q in zip(*sides, strict=True)]
        return np.sort(np.array(found))
    return None


def _truths(area: Area, *known: MapPosterior) -> FloatArray:
    """Shares of made-up truths [truth, row, column]: draws of both maps in turn."""
    level = min(area.grid.levels, FINEST_DRAWS)
    drawn = [maps_inside(one, area, level) for one in known]
    here = window(area, level)
    drawn.sort(key=lambda one: seed_of(one[0]))  # the same truths whichever map is the first
    # Draws come in the order of their totals: some from all over it, of either map in turn.
    picked = np.linspace(0, len(drawn[0]) - 1, PAIRS).astype(np.int64)
    maps = np.stack([drawn[turn % len(drawn)][at] for turn, at in enumerate(picked)])
    totals = maps.sum(axis=(1, 2), keepdims=True)
    return np.where(totals > 0, maps / np.where(totals > 0, totals, 1.0), here / here.sum())


def _simulated(release: HeatmapRelease, truths: FloatArray, seed: bytes) -> tuple[Tiles, ...]:
    """A map of each truth, as the release's own mechanism would have made it of so many users."""
    own, area = EmptyMaps.of(release), release.area
    sums = _sums(truths, release.tiles.total, area)
    released = own.mechanism.sample(sums, SimulatedNoise(seed))
    return sketches_of(own.method, released, own.mechanism, area)


def _sums(truths: FloatArray, users: float, area: Area) -> CellSums:
    """So many users at the places of each truth, one group for each; whole units, inside the bounds."""
    level = truths.shape[1].bit_length() - 1
    below = area.grid.levels - level
    first_column, first_row, end_column, end_row = area.window(area.grid.levels)
    steps = (np.arange(1 << level) << below) + ((1 << below) >> 1)
    columns = np.clip(steps, first_column, end_column - 1)
    rows = np.clip(steps, first_row, end_row - 1)
    # The middle of each cell, or the nearest place to it inside the bounds.
    fine = area.grid.encode(*np.meshgrid(columns, rows)).ravel()
    units = np.rint(truths.reshape(len(truths), -1) * users * UNITS).astype(np.int64)
    every = (np.arange(len(truths))[:, None] * area.grid.size + fine).ravel()
    some = units.ravel() > 0
    found, owner = np.unique(every[some], return_inverse=True)
    sums = np.zeros(found.size, dtype=np.int64)
    np.add.at(sums, owner.ravel(), units.ravel()[some])
    return CellSums(area.grid, found, sums, len(truths), area)


def _sketch(release: HeatmapRelease) -> Tiles:
    """A map as simulated ones are estimated: zoom in one pass, other methods as they are."""
    known = release.posterior
    if known is None or known.counts is None or not known.mean_is_map:
        return release.tiles
    return sketches([known.counts], release.area)[0]


def _distance(p: Tiles, q: Tiles, area: Area) -> float:
    level = min(area.grid.levels, SKETCH)
    first, second = (one.normalized().image(level) for one in (p, q))
    return emd_ground(first, second, area, level=level)
