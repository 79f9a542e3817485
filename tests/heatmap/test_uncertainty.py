"""Bands, silence and marks against what they say: the truth a draw like the others, and cases by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.chance import LEVEL, assert_share
from tests.heatmap.export.maps import town
from tests.heatmap.posteriors import Given, pooled

from sfumato.errors import InvalidParameter
from sfumato.heatmap.accuracy.uncertainty import (
    CONFIDENCE,
    DRAWS,
    SPARE,
    TIMES,
    MapBand,
    Mark,
    heaviest,
    in_a_ring,
    maps_inside,
    ring,
    silent,
    uncertainty,
)
from sfumato.heatmap.analysis.blur import smooth
from sfumato.heatmap.inference.bounded import hold_inside, last_counted, window
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.posterior import CountsPosterior
from sfumato.heatmap.methods.zoom import ZoomMethod
from sfumato.heatmap.pipeline.charging import price, release_sums
from sfumato.privacy import REHEARSAL, UNITS, KeyedNoise, Ledger
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Area, Grid
from sfumato.spaces.area import area_in_degrees, area_of_plane

FloatArray = npt.NDArray[np.float64]

SMALL = area_of_plane((0, 0, 1, 1), 3)
# Narrower than its grid.
NARROW = area_in_degrees((-74.06, 40.57, -73.75, 40.92), 6)
PEAKS = area_of_plane((0, 0, 1, 1), 4)


def shares(image: FloatArray) -> FloatArray:
    return np.asarray(image / image.sum())


# a truth that is one more draw


@pytest.mark.statistical
def test_the_band_holds_nine_of_ten_truths(rng: np.random.Generator) -> None:
    """One cell of each of 800 maps; the 10th from either end of 200 leaves 181 of 201 places for a truth."""
    law = rng.gamma(1.0, size=(8, 8)) * 3
    inside = 0
    for _ in range(800):
        drawn = rng.gamma(np.broadcast_to(law, (DRAWS + 1, 8, 8)))
        band = uncertainty(Given(drawn[1:]), SMALL, sigma=0.1).band
        cell = tuple(rng.integers(0, 8, 2))
        truth = smooth(shares(drawn[0]), 0.1)[cell]
        inside += int(band.low[cell] <= truth <= band.high[cell])
    assert_share(inside, 800, 1 - 20 / 201, rivals=[0.75, 0.98])


@pytest.mark.statistical
def test_the_band_holds_where_the_true_mass_is(rng: np.random.Generator) -> None:
    """A few cells of 256 have all the mass, nobody knows which: the heavy ones are those that came out high.

    The misses it may have there are SPARE of one in ten: 0.94 are inside, but for whole draws; from
    map to map with a deviation of at most 0.065, so the mean of 100 is within 5 deviations of
    0.0065. The rival, the 10th from either end at every cell, held 0.80, deviation 0.083.
    """
    held, plain = [], []
    for _ in range(100):
        drawn = rng.gamma(np.full((DRAWS + 1, 16, 16), 0.02)) + 1e-12
        band = uncertainty(Given(drawn[1:]), PEAKS, sigma=0.05).band
        truth = smooth(shares(drawn[0]), 0.05)
        heavy = heaviest(truth, 0.9)
        slow = np.sort([smooth(shares(one), 0.05) for one in drawn[1:]], axis=0)
        held.append(((band.low <= truth) & (truth <= band.high))[heavy].mean())
        plain.append(((slow[9] <= truth) & (truth <= slow[-10]))[heavy].mean())
    # A draw further from the top is at most 1 / 201 of all cells, and about three times that of
    # heavy ones.
    assert -5 * 0.0065 <= np.mean(held) - (1 - SPARE / 10) <= 5 * 0.0065 + 0.015
    assert np.mean(plain) < 0.9 - 5 * 0.0065


@pytest.mark.statistical
def test_all_marks_are_real_at_once(rng: np.random.Generator) -> None:
    """Sixteen places, each a gamma(2.2): borderline, so that false marks are common.

    The rival marks every place that is sure by itself; it has a false mark in far more maps. That
    the marks are not too few: over one a map.
    """
    law = np.full((16, 16), 0.02)
    law[2::4, 2::4] = 2.2
    maps, wrong, naive, marks = 200, 0, 0, 0
    for _ in range(maps):
        drawn = rng.gamma(np.broadcast_to(law, (DRAWS + 1, 16, 16)))
        found = uncertainty(Given(drawn[1:]), PEAKS, sigma=0.03).marks
        truth = shares(drawn[0])
        discs = [ring(mark, PEAKS.grid, level=4, sigma=0.03) for mark in found]
        wrong += any(truth[disc].sum() <= TIMES * disc.mean() for disc in discs)
        marks += len(found)
        spots = drawn[:, 2::4, 2::4] / drawn.sum(axis=(1, 2))[:, None, None]
        alone = (spots[1:] > TIMES / 256).mean(axis=0) >= CONFIDENCE
        naive += bool((spots[0][alone] <= TIMES / 256).any())
    most = stats.binom.isf(LEVEL, maps, 1 - CONFIDENCE)
    assert wrong <= most
    assert naive > most, "marking each place for itself must be caught"
    assert marks > maps


# against a slower way


def from_top(band: MapBand, slow: FloatArray) -> int:
    """Which of the sorted draws, counted from the top, is the high end everywhere."""
    alike = [np.allclose(band.high, one, rtol=1e-4, atol=0) for one in slow[::-1]]
    assert sum(alike) == 1
    return alike.index(True) + 1


@pytest.mark.reference
def test_bands_are_order_statistics_of_the_draws(rng: np.random.Generator) -> None:
    drawn = rng.gamma(0.3, size=(DRAWS, 32, 32))
    area = area_of_plane((0, 0, 1, 1), 5)
    slow = np.sort([smooth(shares(one), 0.05) for one in drawn], axis=0)
    for coverage, k in ((0.9, 10), (0.5, 50), (0.99, 1)):
        band = uncertainty(Given(drawn), area, sigma=0.05, coverage=coverage).band
        # Single precision: 24 bits, a few roundings.
        for found, wanted in ((band.low, slow[k - 1]), (band.middle, slow[100])):
            np.testing.assert_allclose(found, wanted, rtol=1e-4)
        assert 1 <= from_top(band, slow) <= k


@pytest.mark.reference
def test_a_coarser_level_is_the_band_of_pooled_maps(rng: np.random.Generator) -> None:
    drawn = rng.gamma(0.3, size=(DRAWS, 16, 16))
    coarse = uncertainty(Given(drawn), PEAKS, level=3, sigma=0.1).band
    again = uncertainty(Given(pooled(drawn, 3)), SMALL, sigma=0.1).band
    np.testing.assert_array_equal(coarse.low, again.low)
    assert coarse.level == 3


# by hand


def towns(rng: np.random.Generator, area: Area) -> tuple[Given, tuple[int, int], tuple[int, int]]:
    """Two sure places, and a doubtful one that is in one draw of four; a little everywhere."""
    side = area.grid.side
    drawn = rng.gamma(2.0, size=(DRAWS, side, side)) * 0.001
    big, small, doubtful = (
        (side // 2, side // 2),
        (side // 4, side // 2),
        (3 * side // 4, side // 2),
    )
    drawn[:, *big] += rng.normal(300, 5, DRAWS)
    drawn[:, *small] += rng.normal(100, 5, DRAWS)
    drawn[::4, *doubtful] += 400
    return Given(drawn), big, small


@pytest.mark.unit
def test_sure_places_are_marked_and_doubtful_ones_are_not(rng: np.random.Generator) -> None:
    posterior, big, small = towns(rng, NARROW)
    found = uncertainty(posterior, NARROW)
    grid = NARROW.grid
    centers = [grid.centers(grid.encode([place[1]], [place[0]]))[0] for place in (big, small)]
    assert [(mark.x, mark.y) for mark in found.marks] == [
        pytest.approx(tuple(center)) for center in centers
    ]
    first, second = found.marks
    assert first.low < first.share < first.high
    # The draws with the doubtful place have 400 users more; nobody outside the bounds counts.
    first_column, first_row, last_column, last_row = NARROW.window(6)
    total = posterior.drawn[:, first_row:last_row, first_column:last_column].sum(axis=(1, 2))
    assert first.share == pytest.approx(np.median(300 / total), rel=0.05)
    assert second.high < first.low
    assert all(in_a_ring(mark.x, mark.y, marks=found.marks, grid=grid) for mark in found.marks)
    assert not in_a_ring(*NARROW.bounds[:2], marks=found.marks, grid=grid)


@pytest.mark.unit
def test_the_map_is_silent_where_it_cannot_tell(rng: np.random.Generator) -> None:
    """Left known and busy, middle known and empty, right busy in half of the draws, empty in the others."""
    drawn = np.zeros((DRAWS, 16, 16))
    drawn[:, :, :4] = 1.0
    drawn[::2, :, 12:] = 3.0
    mute = uncertainty(Given(drawn), PEAKS, sigma=0.02).silent
    assert not mute[:, :11].any()
    assert mute[:, 13:].all()


@pytest.mark.unit
def test_slopes_between_known_places_are_not_silent() -> None:
    """Where a sure map crosses its average, the band is narrow around it."""
    even = np.full((1, 1), 0.01)
    low, high = np.full((1, 1), 0.008), np.full((1, 1), 0.012)
    assert not silent(MapBand(0, 0.02, 0.9, low, low, high), even).any()


@pytest.mark.unit
def test_nothing_is_said_outside_the_bounds(rng: np.random.Generator) -> None:
    """NARROW is narrower than its grid: what draws have outside is nobody's."""
    drawn = rng.gamma(0.3, size=(DRAWS, 64, 64))
    first_column, first_row, last_column, last_row = NARROW.window(6)
    window = np.zeros((64, 64), dtype=bool)
    window[first_row:last_row, first_column:last_column] = True
    more = np.where(window, drawn, 1e3)
    one, other = uncertainty(Given(drawn), NARROW), uncertainty(Given(more), NARROW)
    np.testing.assert_allclose(one.band.high, other.band.high, rtol=1e-5)
    assert not (one.silent & ~window).any()
    assert one.silent_share == pytest.approx(one.silent.sum() / window.sum())


@pytest.mark.unit
def test_maps_of_nobody_say_nothing(rng: np.random.Generator) -> None:
    none = uncertainty(Given(np.zeros((DRAWS, 8, 8))), SMALL, sigma=0.1)
    assert none.silent.all()
    assert none.silent_share == 1
    assert none.marks == ()
    assert (none.band.low.max(), none.band.high.min()) == (0, 1)
    # A few such draws widen the band by as many ranks.
    drawn = rng.gamma(3.0, size=(DRAWS, 8, 8))
    drawn[:4] = 0
    slow = np.sort([smooth(shares(one), 0.1) for one in drawn[4:]], axis=0)
    band = uncertainty(Given(drawn), SMALL, sigma=0.1).band
    np.testing.assert_allclose(band.low, slow[5], rtol=1e-4)
    assert 1 <= from_top(band, slow) <= 6


@pytest.mark.unit
def test_width_is_over_the_heavy_cells() -> None:
    middle = np.array([[0.6, 0.3], [0.08, 0.02]])
    band = MapBand(1, 0.02, 0.9, middle / 2, middle, middle * [[2, 1.5], [50, 50]])
    assert heaviest(middle, 0.9).tolist() == [[True, True], [False, False]]
    assert band.width == pytest.approx(np.mean([0.9, 0.3]) / 0.45)


@pytest.mark.unit
def test_the_same_map_is_worked_out_once_and_alike(rng: np.random.Generator) -> None:
    drawn = rng.gamma(0.5, size=(DRAWS, 16, 16))
    posterior = Given(drawn)
    one, other = (uncertainty(posterior, PEAKS) for _ in range(2))
    assert one is other
    assert posterior.asked == [4]
    again = uncertainty(Given(drawn), PEAKS)
    np.testing.assert_array_equal(one.band.low, again.band.low)
    assert one.marks == again.marks


@pytest.mark.unit
def test_what_cannot_be_worked_out_is_said() -> None:
    posterior = Given(np.ones((DRAWS, 8, 8)))
    with pytest.raises(InvalidParameter, match="levels 0 to 3, got 4; nothing was drawn"):
        uncertainty(posterior, SMALL, level=4)
    with pytest.raises(InvalidParameter, match="sigma must be finite and above 0, got 0"):
        uncertainty(posterior, SMALL, sigma=0)
    for coverage in (0.0, 0.995, 1.0, float("nan")):
        with pytest.raises(InvalidParameter, match=f"coverage must lie in .* got {coverage}"):
            uncertainty(posterior, SMALL, coverage=coverage)
    with pytest.raises(InvalidParameter, match="by made-up, has none; nothing was drawn"):
        town().band()
    assert posterior.asked == []


@pytest.mark.unit
def test_a_saved_map_knows_its_marks_and_no_others() -> None:
    mark = Mark(-73.9, 40.7, 0.1, 0.05, 0.2)
    saved = replace(town(), known_marks=(mark,))
    assert saved.marks() == (mark,)
    with pytest.raises(InvalidParameter, match="needs method zoom or pyramid"):
        saved.marks(sigma=0.01)


@pytest.mark.unit
def test_a_ring_is_a_disc_of_two_sigma() -> None:
    grid = Grid(8, (10, 20, 14, 22))
    disc = ring(Mark(12.01, 21.01, 0, 0, 0), grid, level=8, sigma=0.02)
    # Pi (2 sigma side)**2 cells, but for the edge of the circle: at most its length in cells.
    radius = 2 * 0.02 * 256
    assert disc.sum() == pytest.approx(np.pi * radius**2, abs=2 * np.pi * radius)
    assert disc[128, 128]
    assert not disc[128, 128 + 11]


# bounds


@pytest.mark.unit
def test_a_counted_cell_across_the_bounds_keeps_its_mass(key: bytes) -> None:
    """A thousand users in a strip at the edge: maps and draws hold them inside, in the same cells.

    The area is a third of its grid high, so cells of level 2 lie across its edge. The rival, what
    was drawn outside thrown away, loses some of them.
    """
    area = Area(Grid(6), (0.0, 0.0, 1.0, 0.34), "plane")
    codes = area.grid.encode(np.arange(64), np.full(64, 20))
    sums = CellSums(area.grid, np.sort(codes), np.full(64, UNITS * 1000 // 64, dtype=np.int64))
    method = ZoomMethod()
    release = release_sums(
        guard_sums(sums, source=REHEARSAL),
        area,
        ledger=Ledger.rehearsal(price(method, "0.05", area)),
        epsilon="0.05",
        method=method,
        noise=KeyedNoise(key, epoch=key[:12]),
    )[0]
    posterior = release.posterior
    assert isinstance(posterior, CountsPosterior)
    whole, drawn = posterior.maps(DRAWS, 6), maps_inside(posterior, area, 6)
    within = window(area, 6)
    assert not drawn[:, ~within].any()
    counted = last_counted(posterior.counts, 6)[area.grid.codes_of_image()]
    kept = np.isin(counted, counted[within])
    np.testing.assert_allclose(drawn.sum(axis=(1, 2)), whole[:, kept].sum(axis=1))
    assert release.tiles.total == pytest.approx(
        posterior.means(6)[area.grid.codes_of_image()][kept].sum()
    )
    # The posterior knows the bounds: of a cell across them everybody is inside.
    assert whole[:, ~within].sum() < 1e-9 * whole.sum()
    unaware = CountsPosterior(posterior.counts, mean_is_map=True).maps(DRAWS, 6)
    lost = unaware[:, ~within].sum() - unaware[:, ~kept].sum()
    assert lost > 0.01 * unaware.sum(), "thrown away outside"


@pytest.mark.unit
def test_cells_know_the_finest_count_around_them() -> None:
    """One quarter was counted further: its quarters are by themselves, the other three are whole."""
    levels, codes = np.array([1, 1, 1, 1, 2, 2, 2, 2]), np.array([0, 1, 2, 3, 4, 5, 6, 7])
    counts = NoisyCounts(levels, codes, np.ones(8), np.ones(8), np.zeros(8, dtype=bool))
    found = last_counted(counts, 2)
    assert [np.unique(one).size for one in found.reshape(4, 4)] == [1, 4, 1, 1]
    assert np.unique(found).size == 7


@pytest.mark.property
@given(data=st.data())
def test_cells_across_the_edge_are_those_with_places_on_both_sides(data: st.DataObject) -> None:
    """Marks find what sorting would: what a cell across the edge scattered outside goes to its part inside."""
    places = data.draw(st.integers(1, 40))
    whole = st.lists(st.integers(0, 7), min_size=places, max_size=places)
    leaves = np.array(data.draw(whole))
    within = np.array(data.draw(whole)) < 4
    maps = np.array([data.draw(whole)], dtype=np.float64)
    held = hold_inside(maps, leaves, within)
    for leaf in np.unique(leaves):
        here = leaves == leaf
        inside = here & within
        kept, all_of_it = maps[0, inside].sum(), maps[0, here].sum()
        shared = inside.any() and (here & ~within).any() and kept > 0
        assert held[0, inside].sum() == pytest.approx(all_of_it if shared else kept)
    assert not held[0, ~within].any()
