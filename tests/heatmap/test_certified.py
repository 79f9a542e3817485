"""The certified bound against truths of any kind: with the noise that was drawn, and by its quantile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chance import assert_share

from sfumato.heatmap import MapMethod, PyramidMethod, ZoomMethod, price, public_tiles, release_sums
from sfumato.heatmap.accuracy import certified
from sfumato.heatmap.accuracy.certified import certified_emd
from sfumato.heatmap.analysis.blur import smooth
from sfumato.heatmap.analysis.metrics import emd_share
from sfumato.heatmap.analysis.theory import packing_lower_bound
from sfumato.heatmap.inference.bounded import last_counted
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.private_map import HeatmapRelease
from sfumato.privacy import REHEARSAL, UNITS, KeyedNoise, Ledger
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Area, Grid
from sfumato.spaces.area import area_of_plane

AREA = area_of_plane((0, 0, 1, 1), 4)
NARROW = area_of_plane((0, 0, 1, 0.4), 4)
METHODS: dict[str, MapMethod[Any]] = {"zoom": ZoomMethod(), "pyramid": PyramidMethod(width=6)}


def people(codes: list[int], users: list[int], grid: Grid) -> CellSums:
    cells, at = np.unique(np.array(codes), return_inverse=True)
    units = np.bincount(at, users[: len(codes)]).astype(np.int64) * UNITS
    return CellSums(grid, cells, units)


def released(sums: CellSums, area: Area, method: str, epsilon: str, key: bytes) -> HeatmapRelease:
    way = METHODS[method]
    return release_sums(
        guard_sums(sums, source=REHEARSAL),
        area,
        ledger=Ledger.rehearsal(price(way, epsilon, area)),
        epsilon=epsilon,
        method=way,
        noise=KeyedNoise(key),
    )[0]


def counts_of(found: HeatmapRelease) -> NoisyCounts:
    assert found.posterior is not None
    assert found.posterior.counts is not None
    return found.posterior.counts


def drawn_noise(terms: certified._Terms, truth: np.ndarray) -> float:
    """The weighted sum of the noise that was drawn; of a ceiling, what its truth proves of it."""
    off = terms.counts - certified._inside(terms, truth)
    off = np.where(terms.ceiling, np.minimum(off, 0), off)
    return float(terms.noise @ np.abs(off))


CASES = st.fixed_dictionaries(
    {
        "codes": st.lists(st.integers(0, 4**4 - 1), min_size=1, max_size=6),
        "users": st.lists(st.integers(1, 200), min_size=6, max_size=6),
        "epsilon": st.sampled_from(["0.1", "1", "10"]),
        "method": st.sampled_from(sorted(METHODS)),
        "key": st.binary(min_size=32, max_size=32),
        "map_of": st.lists(st.floats(0, 9), min_size=16, max_size=16).filter(lambda m: sum(m) > 1),
    }
)


@pytest.mark.property
@settings(max_examples=25)
@given(CASES)
def test_the_bound_holds_for_the_noise_that_was_drawn(case: dict[str, object]) -> None:
    """Whatever the truth, the map and the noise: by geometry alone, at every cut of the tree."""
    sums = people(case["codes"], case["users"], AREA.grid)  # type: ignore[arg-type]
    found = released(sums, AREA, case["method"], case["epsilon"], case["key"])  # type: ignore[arg-type]
    counts, level = counts_of(found), 4
    truth = public_tiles(sums).values(level)
    maps = [found.shares.values(level)]
    anything = np.repeat(np.array(case["map_of"], dtype=float), 16)  # any map, not only its own
    maps.append(anything / anything.sum())
    grid = AREA.grid
    columns, rows = grid.decode(np.arange(grid.size))
    x, y = (columns + 0.5) / grid.side, (rows + 0.5) / grid.side
    leaves = last_counted(counts, level)
    assert certified._tile(counts)
    for shares in maps:
        off = emd_share(grid.image(truth), grid.image(shares), grid)
        assert certified._farthest(shares, x, y, AREA, level) >= off - 1e-12
        for cut in range(int(counts.levels.min()), counts.finest + 1):
            terms = certified._terms(counts, cut)
            mapped = certified._inside(terms, shares)
            noise = drawn_noise(terms, truth)
            room = certified._room(shares, x, y, leaves, cut)
            for total in (0.5 * truth.sum(), truth.sum(), 3 * truth.sum()):
                everywhere = np.ones(terms.counts.size, dtype=np.bool_)
                apart = certified._apart(terms, total * mapped, everywhere, noise)
                assert room + apart / total >= off - 1e-9


@pytest.mark.property
@settings(max_examples=25)
@given(CASES)
def test_certified_is_above_the_truth_and_above_what_nobody_can_beat(
    case: dict[str, object],
) -> None:
    """95 % is what is promised; the slack of its parts makes it hold in every case tried."""
    sums = people(case["codes"], case["users"], AREA.grid)  # type: ignore[arg-type]
    found = released(sums, AREA, case["method"], case["epsilon"], case["key"])  # type: ignore[arg-type]
    bound = certified_emd(counts_of(found), found.tiles, AREA)
    off = emd_share(public_tiles(sums).image(), found.shares.image(), AREA)
    assert off <= bound <= 2
    error = found.error()
    assert error.certified == (bound if bound < 0.5 else None)  # half of what nothing knows
    assert error.lower is not None
    assert error.lower <= bound
    assert error.emd is not None
    assert error.emd.high <= bound
    users = max(1, round(found.tiles.total))
    assert error.lower >= packing_lower_bound(33, float(str(case["epsilon"])), users=users)


@pytest.mark.statistical
@pytest.mark.parametrize("method", sorted(METHODS))
def test_the_quantile_of_the_noise_is_one(method: str, rng: np.random.Generator) -> None:
    """Noise exceeds its quantile seldom; a quantile for noise of a quarter of the scale often.

    100 releases of one truth: at most 5 may exceed; a quantile for a quarter of the scale most do.
    """
    sums = people([3, 3, 77, 200], [60, 40, 150, 30], AREA.grid)
    truth = public_tiles(sums).values(4)
    over, thin = 0, 0
    for _ in range(100):
        counts = counts_of(released(sums, AREA, method, "1", rng.bytes(32)))
        terms = certified._terms(counts, counts.finest)
        noise = drawn_noise(terms, truth)
        over += noise > certified._noise_quantile(terms, 0.05)
        thinner = replace(terms, scales=terms.scales / 4)
        thin += noise > certified._noise_quantile(thinner, 0.05)
    assert over <= 5
    assert thin > 50


@pytest.mark.statistical
def test_the_noise_of_first_counts_has_its_simulated_quantile(rng: np.random.Generator) -> None:
    """Sums of 16 cells, of their four parents and of all: one in forty exceeds it."""
    noise = rng.laplace(size=(5000, 16))
    fours = np.abs(noise.reshape(-1, 4, 4).sum(axis=2)).sum(axis=1)
    sums = 0.25 * np.abs(noise).sum(axis=1) + 0.5 * fours + np.abs(noise.sum(axis=1))
    above = int((sums > certified._first_quantile(2, 0.25, 0.025)).sum())
    assert_share(above, sums.size, 0.025, rivals=[0.005, 0.06])


@pytest.mark.property
@given(
    st.lists(st.floats(0, 1), min_size=64, max_size=64),
    st.lists(st.floats(0, 1), min_size=64, max_size=64),
    st.sampled_from([0.01, 0.02, 0.06, 0.3]),
)
def test_a_blur_brings_maps_nearer(p: list[float], q: list[float], sigma: float) -> None:
    """So what is certified of the map is certified of what is seen."""
    a, b = (np.array(one).reshape(8, 8) + 1e-3 for one in (p, q))
    a, b = a / a.sum(), b / b.sum()
    grid = Grid(3)
    assert emd_share(smooth(a, sigma), smooth(b, sigma), grid) <= emd_share(a, b, grid) + 1e-9


@pytest.mark.unit
def test_what_is_known_to_be_empty_uses_up_noise() -> None:
    """Counts outside the bounds are noise, seen: the bound is no worse for a narrow area."""
    sums = people([3, 7], [60, 40], NARROW.grid)
    found = released(sums, NARROW, "zoom", "1", b"n" * 32)
    counts = counts_of(found)
    whole = Area(NARROW.grid, NARROW.grid.bounds, "plane")
    assert certified_emd(counts, found.tiles, NARROW) <= certified_emd(counts, found.tiles, whole)


@pytest.mark.unit
def test_counts_that_do_not_tile_certify_the_farthest_corner_alone() -> None:
    two = np.array([1, 1])
    some = NoisyCounts(two, np.array([0, 3]), np.array([5.0, 5.0]), np.ones(2), np.zeros(2, bool))
    found = released(people([3], [9], AREA.grid), AREA, "zoom", "1", b"n" * 32)
    columns, rows = AREA.grid.decode(np.arange(AREA.grid.size))
    x, y = (columns + 0.5) / 16, (rows + 0.5) / 16
    far = certified._farthest(found.shares.values(4), x, y, AREA, 4)
    assert certified_emd(some, found.tiles, AREA) == far
