"""Intervals of zones hold for every zone: over fresh noise, wherever mass stands in a cut cell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import binom, gamma, laplace
from tests.heatmap.export.maps import heatmap
from tests.heatmap.test_overlap import star

from sfumato.heatmap import HeatmapRelease, price, release_sums
from sfumato.heatmap.accuracy.uncertainty import maps_inside
from sfumato.heatmap.analysis.zone_intervals import furthest
from sfumato.heatmap.analysis.zone_shapes import ZoneMask, read_zones
from sfumato.heatmap.benchmark import Place, sample_sums
from sfumato.heatmap.inference import CountsPosterior, NoisyCounts
from sfumato.heatmap.inference.known_sums import (
    CountedSums,
    KeptSums,
    _Level,
    deviations,
    known_sums,
)
from sfumato.heatmap.methods import ZoomMethod
from sfumato.privacy import REHEARSAL, Ledger
from sfumato.privacy.noise.keyed import KeyedNoise
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Area, Grid, area_of_plane

FloatArray = npt.NDArray[np.float64]

UNIT = Area(Grid(5), (0.0, 0.0, 1.0, 1.0), "plane")
CELL = 1 / 32
USERS = 6_000
# Of a zone that holds with chance 0.9 so few would hold once in a million times.
BELIEVED = 1e-6
RELEASES, RIVALS = 12, 8


# people and releases


def city(rng: np.random.Generator) -> Place:
    """Half of the people at forty venues, the others anywhere around two middles; all a user a row."""
    venues = np.clip(rng.normal(0.5, 0.12, (40, 2)), 0.02, 0.98)
    chosen = venues[rng.choice(40, USERS // 2, p=zipf(40))]
    middles = np.array([[0.35, 0.4], [0.6, 0.62]])[rng.integers(0, 2, USERS - USERS // 2)]
    around = np.clip(rng.normal(middles, 0.1), 0, 0.999)
    x, y = np.concatenate([chosen, around]).T
    return Place("city", np.arange(USERS), x, y, np.ones(USERS, dtype=np.int64))


def zipf(count: int) -> FloatArray:
    found = 1 / np.arange(1.0, count + 1)
    return np.asarray(found / found.sum())


def busiest(place: Place) -> FloatArray:
    spots, counts = np.unique(np.stack([place.x, place.y], axis=1), axis=0, return_counts=True)
    return np.asarray(spots[np.argsort(-counts)])


def shapes(place: Place, rng: np.random.Generator) -> dict[str, Any]:
    """Districts within one another, a strip over the busiest venues, and discs less than a cell wide."""
    outline = star(rng, 30, center=np.array([0.5, 0.5]), radius=0.3)
    first, second, third = busiest(place)[:3]
    return {
        "district": shapely.Polygon(outline),
        "inner": shapely.Polygon(0.5 + 0.6 * (outline - 0.5)),
        "half": shapely.box(0, 0, 0.5 + CELL / 3, 1),
        "road": shapely.LineString([first, second, third]).buffer(0.15 * CELL),
        "stadium": shapely.Point(first).buffer(0.2 * CELL, quad_segs=2),
        "park": shapely.Point(second + 0.4 * CELL).buffer(0.2 * CELL, quad_segs=2),
    }


def rings(zones: dict[str, Any]) -> dict[str, Any]:
    return {name: [np.asarray(one.exterior.coords).tolist()] for name, one in zones.items()}


def released(sums: CellSums, key: bytes, number: int) -> HeatmapRelease:
    method = ZoomMethod()
    return release_sums(
        guard_sums(sums, source=REHEARSAL), UNIT,
        ledger=Ledger.rehearsal(price(method, "1", UNIT)), epsilon="1", method=method,
        noise=KeyedNoise(key, epoch=number.to_bytes(12, "big")),
    )[0]  # fmt: skip


def even_below(release: HeatmapRelease, zones: dict[str, Any]) -> list[tuple[float, float]]:
    """The rival: quantiles over drawn maps, a zone's part of each cell fixed at its part of the area."""
    assert release.posterior is not None
    maps = maps_inside(release.posterior, UNIT, 5)
    found = []
    for zone in read_zones(zones):
        mask = ZoneMask.of(zone, UNIT, 5)
        sums = np.tensordot(maps[:, mask.rows, mask.columns], mask.weights, axes=2)
        found.append((float(np.quantile(sums, 0.015)), float(np.quantile(sums, 0.985))))
    return found


def refuted(held: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which zones [release, zone] hold so seldom that a chance of 0.9 is not believed."""
    return np.asarray(binom.cdf(held.sum(axis=0), len(held), 0.9) < BELIEVED)


@pytest.mark.statistical
def test_every_zone_is_held_and_an_even_spread_is_not_believed(
    rng: np.random.Generator, key: bytes
) -> None:
    """The same people, fresh noise: each zone by itself, not most of them.

    Of twelve releases three that hold refute 0.9, of eight one does (chances 2e-7 and 7e-7): by the
    rival a disc around a busy place holds in none.
    """
    place = city(rng)
    zones = shapes(place, rng)
    named = rings(zones)
    truth = np.array([shapely.contains_xy(one, place.x, place.y).sum() for one in zones.values()])
    sums = sample_sums(place, USERS, UNIT.grid, rng=rng)
    held, sure, even = [], [], []
    for number in range(RELEASES):
        release = released(sums, key, number)
        found = release.totals(named)
        ends = np.array([(one.low, one.high, one.least, one.most) for one in found], dtype=float).T
        held.append((ends[0] <= truth + 0.1) & (truth - 0.1 <= ends[1]))
        sure.append((ends[2] <= truth + 0.1) & (truth - 0.1 <= ends[3]))
        if number < RIVALS:
            low, high = np.array(even_below(release, named)).T
            even.append((low <= truth + 0.1) & (truth - 0.1 <= high))
        assert np.all(ends[2] <= ends[0])
        assert np.all(ends[1] <= ends[3])
    assert not refuted(np.array(held)).any()
    assert not refuted(np.array(sure)).any()
    assert refuted(np.array(even))[[3, 4, 5]].any()


@pytest.mark.statistical
def test_bounds_hold_where_a_border_runs_between_all_people_and_the_rest_of_their_cells(
    rng: np.random.Generator, key: bytes
) -> None:
    """A street of venues in one column of cells, just outside a border: no prior would expect it."""
    rows = rng.integers(0, 32, USERS)
    place = Place(
        "street", np.arange(USERS), np.full(USERS, 16.8 * CELL), CELL * (rows + 0.5).astype(np.float64),
        np.ones(USERS, dtype=np.int64),
    )  # fmt: skip
    sums = sample_sums(place, USERS, UNIT.grid, rng=rng)
    zone = {"west": [[0, 0], [16.7 * CELL, 0], [16.7 * CELL, 1], [0, 1]]}
    sure, even = [], []
    for number in range(RELEASES):
        release = released(sums, key, number)
        (one,) = release.totals(zone)
        assert one.least is not None
        sure.append([one.least <= 0.1])
        if number < RIVALS:
            even.append([even_below(release, zone)[0][0] <= 0.1])
    assert not refuted(np.array(sure)).any()
    assert refuted(np.array(even)).all()


# the law of sums


def above(deviation: float, count: int) -> float:
    """The chance that so many Laplace noises of scale 1 add up to more: a difference of two gammas."""
    t = deviation * np.sqrt(2 * count)
    return float(
        quad(lambda x: gamma.pdf(x, count) * gamma.sf(t + x, count), 0, 20 * count + 60, limit=400)[
            0
        ]
    )


@pytest.mark.reference
@pytest.mark.parametrize("count", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("tail", [0.05, 0.025, 0.005])
def test_no_sum_of_noise_is_further_off_than_said(count: int, tail: float) -> None:
    assert above(deviations(tail), count) <= tail * 1.02
    # A quarter less would not do.
    assert above(0.75 * deviations(tail), count) > tail


@pytest.mark.reference
@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.7])
@pytest.mark.parametrize("tail", [0.05, 0.025])
def test_nor_is_one_of_unequal_scales(ratio: float, tail: float) -> None:
    t = deviations(tail) * np.sqrt(2 * (1 + ratio**2))
    chance = quad(
        lambda x: laplace.pdf(x) * laplace.sf(t - x, scale=ratio), -40, 40, limit=400, points=[0, t]
    )[0]
    assert chance <= tail * 1.02


# by hand


def counts(*some: tuple[int, int, float, float], kept_back: bool = False) -> NoisyCounts:
    """Of level, code, value and scale."""
    levels, codes, values, scales = (np.array(column) for column in zip(*some, strict=True))
    ceiling = np.zeros(levels.size, dtype=bool)
    ceiling[-1] = kept_back
    return NoisyCounts(levels, codes, values.astype(float), scales.astype(float), ceiling)


QUARTERS = ((1, 0, 100.0, 1.0), (1, 1, 60.0, 2.0), (1, 2, 40.0, 1.0), (1, 3, 30.0, 1.0))


def of_counts(some: NoisyCounts, area: Area) -> HeatmapRelease:
    last = some.last
    columns = some.levels[last].tolist(), some.codes[last].tolist(), some.values[last].tolist()
    tiles = list(zip(*columns, strict=True))
    return replace(heatmap(area, tiles), posterior=CountsPosterior(some, mean_is_map=True))


@pytest.mark.unit
def test_limits_by_hand() -> None:
    """A whole cell, and a quarter of the next one: noise of each, and all or none of what is cut."""
    area = area_of_plane((0, 0, 2, 2), 4)
    zone = {"a": [[0, 0], [1.25, 0], [1.25, 1], [0, 1]]}
    (one,) = of_counts(counts(*QUARTERS), area).totals(zone)
    assert one.users == pytest.approx(115)
    far = deviations(0.05)
    assert one.least == pytest.approx(100 - far * 2**0.5)
    assert one.most == pytest.approx(160 + far * 10**0.5)
    # One cell is in the zone or not: a chance of 1/4 is no reason to leave either out.
    assert (one.low, one.high) == (one.least, one.most)
    assert one.low is not None
    assert one.low < one.users < one.high  # type: ignore[operator]


@pytest.mark.unit
def test_many_cut_cells_are_not_all_on_one_side() -> None:
    """A border through the middles of 64 cells: the furthest of as many coins, by Chernoff's bound."""
    some = counts(*((6, code, 10.0, 1e-6) for code in range(4096)))
    (one,) = of_counts(some, area_of_plane((0, 0, 64, 64), 6)).totals(
        {"a": [[0, 0], [31.5, 0], [31.5, 64], [0, 64]]}
    )
    assert (one.least, one.users, one.most) == pytest.approx((19840, 20160, 20480), rel=1e-4)
    chance = 1 / (1 + np.exp(-0.5))
    part = brentq(
        lambda q: rel_entr(q, chance) + rel_entr(1 - q, 1 - chance) - np.log(1000) / 64, chance, 1
    )
    off = 640 * (part - 0.5)
    assert (one.low, one.high) == pytest.approx((20160 - off, 20160 + off), rel=1e-4)


@pytest.mark.reference
@pytest.mark.parametrize("chance", [0.003, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("count", [1, 3, 10, 100])
def test_coins_are_beyond_the_furthest_once_in_a_thousand_times(count: int, chance: float) -> None:
    """Coins of one mass have a binomial sum: no more of it is beyond, and four coins fewer are too few."""
    masses, chances = np.full(count, 7.0), np.full(count, chance)
    reach = float(furthest(masses, chances).sum())
    assert binom.sf(np.floor(reach + 1e-9), count, chance) <= 1e-3
    if reach > 4 + count * chance:
        assert binom.sf(reach - 4, count, chance) > 1e-3


@pytest.mark.unit
def test_one_crowd_in_a_corner_is_in_the_zone_or_not() -> None:
    """The crowd stands in a cell of which a twentieth is the zone's: three deviations of that are 0.7 of it.

    A district of Foursquare, 653 people, was held in none of six releases for this reason.
    """
    area = area_of_plane((0, 0, 16, 16), 4)
    corner = Grid(4).encode(np.array([5]), np.array([3]))[0]
    some = counts(*((4, code, 600.0 if code == corner else 0.01, 1e-6) for code in range(256)))
    (one,) = of_counts(some, area).totals({"a": [[0, 0], [5.05, 0], [5.05, 9], [0, 9]]})
    assert one.users == pytest.approx(30, abs=2)
    assert one.high == pytest.approx(600, abs=1)
    assert one.low == pytest.approx(0, abs=1)


# what a pyramid kept back


@pytest.mark.statistical
def test_a_crowd_below_a_ceiling_is_held(rng: np.random.Generator) -> None:
    """The law of cells that were looked at and not kept, again and again, where it is at its worst.

    A crowd a little above what is kept: drawn maps believe that it is not there.
    """
    scale, tries = 5.0, 4000
    crowd = np.zeros(16)
    crowd[0] = 18.0
    noise = rng.laplace(0, scale, (tries, 16))
    seen = crowd + noise
    ceilings = np.sort(seen, axis=1)[:, -4]
    kept = seen >= ceilings[:, None]
    zone = slice(0, 2)
    truth, held, sure = crowd[zone].sum(), 0, 0
    for at in range(tries):
        cells = _Level(
            np.ones(2), np.where(kept[at], seen[at], max(ceilings[at], 0.0))[zone], np.full(2, scale),
            ~kept[at, zone],
        )  # fmt: skip
        held += cells.ceiling(0.05) >= truth
        sure += cells.floor(0.05) <= truth
    assert binom.cdf(held, tries, 0.95) > BELIEVED
    assert binom.cdf(sure, tries, 0.95) > BELIEVED


@pytest.mark.reference
@pytest.mark.parametrize("count", [1, 4, 30])
def test_excess_over_ceilings_is_bounded(count: int, rng: np.random.Generator) -> None:
    """Cells s scales above their ceiling, each left out with chance exp(-s) / 2: no s makes more of them."""
    tries = 20_000
    scales = np.ones(count)
    level = _Level(np.ones(count), np.zeros(count), scales, np.ones(count, dtype=bool))
    for s in (0.5, 1.0, 2.0, 3.0):
        left_out = rng.random((tries, count)) < np.exp(-s) / 2
        beyond = (s * left_out.sum(axis=1) > level.ceiling(0.05)).sum()
        assert binom.sf(beyond - 1, tries, 0.05) > BELIEVED
    if count == 1:
        # A single cell: the bound is no more than a scale above what is needed.
        assert np.log(0.5 / 0.05) < level.ceiling(0.05) < np.log(0.5 / 0.05) + 1.2


@pytest.mark.unit
def test_one_cell_may_have_what_its_noise_allows() -> None:
    """A quarter that was kept back at a ceiling of 30: its high end is above it, whatever draws say."""
    area = area_of_plane((0, 0, 2, 2), 4)
    known = known_sums(CountsPosterior(counts(*QUARTERS, kept_back=True)), area)
    assert isinstance(known, KeptSums)
    last = np.zeros(known.drawn.masses.shape[1])
    last[known.owner[-1, -1]] = 1.0
    drawn, limits = known.drawn.limits(last, last, tail=0.05), known.limits(last, last, tail=0.05)
    assert limits[0] == drawn[0]
    assert limits[1] == pytest.approx(max(drawn[1], 30 + np.log(10)))
    bounds = known.bounds(last, last, tail=0.05)
    assert bounds[0] <= limits[0]
    assert bounds[1] >= limits[1]


@pytest.mark.unit
def test_the_count_that_decided_is_not_the_one_that_is_summed() -> None:
    """A cell that looked empty was closed, and counted again: only the second count was not chosen."""
    area = area_of_plane((0, 0, 2, 2), 4)
    again = counts(*QUARTERS, (1, 0, 110.0, 0.5))
    known = known_sums(CountsPosterior(again), area)
    assert isinstance(known, CountedSums)
    weights = (known.owner == known.owner[0, 0]).sum() * np.eye(4)[known.owner[0, 0]]
    assert known.limits(weights, weights, tail=0.5) == pytest.approx((110, 110))


@pytest.mark.unit
def test_counts_that_were_chosen_have_no_law_of_their_own() -> None:
    area = area_of_plane((0, 0, 2, 2), 4)
    kept_back = CountsPosterior(counts(*QUARTERS, kept_back=True))
    assert isinstance(known_sums(kept_back, area), KeptSums)
    lacking = CountsPosterior(counts(*QUARTERS[:3], (0, 0, 230.0, 1.0)))
    assert isinstance(known_sums(lacking, area), KeptSums)
    # What lies outside the bounds need not be counted.
    outside = replace(area, bounds=(0.0, 0.0, 2.0, 0.9))
    two = CountsPosterior(counts(*QUARTERS[:2], (0, 0, 230.0, 1.0)))
    assert isinstance(known_sums(two, outside), CountedSums)
    assert isinstance(known_sums(two, area), KeptSums)


# properties


def noisy(rng: np.random.Generator) -> HeatmapRelease:
    values = rng.gamma(0.3, 20, 256) + rng.laplace(size=256)
    some = counts(*((4, code, float(value), 1.0) for code, value in enumerate(values)))
    made = of_counts(replace(some, values=np.maximum(values, 0)), area_of_plane((0, 0, 1, 1), 6))
    return replace(made, posterior=CountsPosterior(some, mean_is_map=True))


@pytest.mark.property
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), corners=st.integers(3, 12), radius=st.floats(0.005, 0.4))
def test_ends_rise_from_inner_to_outer_zones(seed: int, corners: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    release = noisy(rng)
    middle = rng.uniform(0.1, 0.9, 2)
    outline = star(rng, corners, center=middle, radius=radius)
    zones = {str(part): (middle + part * (outline - middle)).tolist() for part in (0.3, 0.7, 1.0)}
    zones["all"] = [[-1, -1], [2, -1], [2, 2], [-1, 2]]
    zones["two"] = [[[*zones["1.0"], zones["1.0"][0]]], [[[3, 3], [4, 3], [4, 4], [3, 3]]]]
    found = release.totals(zones)
    ends = np.array([(one.least, one.low, one.users, one.high, one.most) for one in found], float)
    assert np.all(np.diff(ends, axis=1) >= -1e-9)
    assert np.all(np.diff(ends[:4], axis=0) >= -1e-6)
    # What lies outside adds nothing, to a union as to anything else.
    assert ends[4] == pytest.approx(ends[2], abs=1e-6)


@pytest.mark.property
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), width=st.floats(0.001, 0.9))
def test_a_zone_narrower_than_cells_may_have_all_or_nothing_of_them(
    seed: int, width: float
) -> None:
    rng = np.random.default_rng(seed)
    release = noisy(rng)
    line = shapely.LineString(rng.uniform(0.1, 0.9, (2, 2)))
    strip = line.buffer(width / 16 / 2 * 0.7, cap_style="flat")
    (one,) = release.totals({"strip": [np.asarray(strip.exterior.coords).tolist()]})
    assert (one.low, one.high) == (one.least, one.most)
    assert one.low == 0


@pytest.mark.property
def test_a_partition_has_the_whole_inside_the_sums_of_its_ends(rng: np.random.Generator) -> None:
    release = noisy(rng)
    middle, corners = rng.uniform(0.3, 0.7, 2), np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    parts = release.totals({str(k): [corners[k - 1], corners[k], middle] for k in range(4)})
    (whole,) = release.totals({"all": corners.tolist()})
    assert whole.users == pytest.approx(sum(one.users for one in parts))
    assert (whole.low, whole.high) == (whole.least, whole.most)  # no border cuts a cell
    assert sum(one.least or 0 for one in parts) <= (whole.high or 0)
    assert sum(one.most or 0 for one in parts) >= (whole.low or 0)


@pytest.mark.unit
def test_a_zone_outside_has_nobody_for_sure(rng: np.random.Generator) -> None:
    (one,) = noisy(rng).totals({"away": [[5, 5], [6, 5], [6, 6]]})
    assert (one.least, one.low, one.users, one.high, one.most) == (0, 0, 0, 0, 0)
