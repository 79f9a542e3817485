"""The posterior against the definition of it: weighted draws of the prior, and ranks of the truth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from tests.chance import LEVEL

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.accuracy.noise_mark import SimulatedNoise
from sfumato.heatmap.inference import posterior
from sfumato.heatmap.inference.cascade import MASSES, SHAPES, fit_mixture, mixed, usual_mixture
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.posterior import (
    CountsPosterior,
    _first_fit,
    mean_maps,
    posteriors,
    rough_masses,
)
from sfumato.heatmap.inference.posterior_kernel import scatter, share_at, starts_of, uniform
from sfumato.heatmap.methods.zoom import ZoomMethod
from sfumato.heatmap.methods.zoom_tree import ZoomTree
from sfumato.privacy import UNITS
from sfumato.records import CellSums, bound_of_sums
from sfumato.spaces import Area, Grid, area_of_plane

FloatArray = npt.NDArray[np.float64]
RNG = np.random.Generator


def counts_of(
    rows: list[tuple[int, int, float, float]], ceiling: tuple[int, ...] = (), *, groups: int = 1
) -> NoisyCounts:
    levels, codes, values, scales = (np.array(column) for column in zip(*rows, strict=True))
    above = np.zeros(len(rows), dtype=np.bool_)
    above[list(ceiling)] = True
    return NoisyCounts(levels, codes, values.astype(float), scales.astype(float), above, groups)


def prior_shares(masses: FloatArray, rng: RNG) -> FloatArray:
    """Shares of the prior with even centers: a shape of the mixture of the mass, then a Beta."""
    mixture = usual_mixture()
    classes = np.searchsorted(np.array(MASSES), masses)
    shapes = np.array(SHAPES)[
        (rng.random(masses.size)[:, None] > np.cumsum(mixture, axis=1)[classes][:, :-1]).sum(axis=1)
    ]
    return np.asarray(rng.beta(shapes, shapes))


def prior_maps(totals: FloatArray, levels: int, rng: RNG) -> list[FloatArray]:
    """The masses [map, cell] of levels 0.. by Z-order code."""
    found = [totals[:, None]]
    for _ in range(levels):
        now = found[-1]
        for _ in range(2):
            shares = prior_shares(now.ravel(), rng).reshape(now.shape)
            now = np.stack([now * shares, now * (1 - shares)], axis=-1).reshape(len(totals), -1)
        found.append(now)
    return found


def quarters(*values: float, scale: float) -> list[tuple[int, int, float, float]]:
    return [(1, code, value, scale) for code, value in enumerate(values)]


CASES = {
    "a cell and its quarters": counts_of([(0, 0, 12.0, 3.0), *quarters(8, 0, -1, 3, scale=2)]),
    "counted twice": counts_of(
        [(0, 0, 5.0, 4.0), (1, 0, 3.0, 2.0), (1, 0, 5.5, 1.0), (1, 1, 0.2, 1.0)]
    ),
    "two below a ceiling": counts_of([(0, 0, 20.0, 4.0), *quarters(9, 3, 3, scale=2)], (2, 3)),
    "nothing but noise": counts_of([(0, 0, -2.0, 2.0), *quarters(0, -0.5, -1, -1.5, scale=2)]),
    "sharp": counts_of([(0, 0, 30.0, 2.0), *quarters(25, 1, 0.1, 2, scale=1)]),
}


def weighted(counts: NoisyCounts, rng: RNG, size: int = 400_000) -> tuple[FloatArray, FloatArray]:
    """Maps [map, quarter] from the prior with even totals, and how likely each makes the counts."""
    totals = rng.uniform(0, 60, size)
    levels = prior_maps(totals, 1, rng)
    logs = np.zeros(size)
    for level, code, value, scale, above in zip(
        counts.levels, counts.codes, counts.values, counts.scales, counts.ceiling, strict=True
    ):
        away = (value - levels[level][:, code]) / scale
        logs += np.log(stats.laplace.cdf(away)) if above else -np.abs(away)
    weights = np.exp(logs - logs.max())
    return levels[1], weights / weights.sum()


@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_means_are_those_of_weighted_draws_of_the_prior(name: str, rng: RNG) -> None:
    """To six standard errors of the weighted draws, and 1.5 % of the mass, or of a user, for the bins.

    A bin is 0.6 deviations wide, over which a density bends by 0.6**2 / 24 = 1.5 % at most.
    """
    counts = CASES[name]
    maps, weights = weighted(counts, rng)
    wanted = weights @ maps
    error = np.sqrt(weights**2 @ (maps - wanted) ** 2)
    assert (error < 0.08 * np.maximum(wanted, 1.0)).all()  # the reference can tell
    fit = _first_fit(counts)
    found = fit.laid_out(fit.mean(512), 1)
    allowed = 6 * error + 0.015 * np.maximum(wanted, 1.0)
    assert (np.abs(found - wanted) < allowed).all(), (found, wanted, allowed)
    # The arm that fails: counts that are a user or two off.
    moved = NoisyCounts(
        counts.levels, counts.codes, counts.values + 2, counts.scales, counts.ceiling
    )
    other = _first_fit(moved)
    assert (np.abs(other.laid_out(other.mean(512), 1) - wanted) > allowed).any()


@pytest.mark.unit
@pytest.mark.parametrize("name", CASES)
def test_sixteen_draws_are_near_the_mean(name: str) -> None:
    """Within a third of a deviation of the posterior: a mean of 16 drawn by chance would be a quarter off."""
    fit = _first_fit(CASES[name])
    found, wanted = (fit.laid_out(fit.mean(draws), 1) for draws in (16, 512))
    drawn = fit.drawn(fit.totals(200)[:, 0], np.arange(200))
    maps = [fit.laid_out(mass, 1) for mass in drawn]
    assert (np.abs(found - wanted) <= np.std(maps, axis=0) / 3).all()


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [1.0, 0.5], ids=["right", "half the noise said"])
def test_the_truth_has_an_even_rank_among_the_maps(factor: float, rng: RNG) -> None:
    """Truth from the prior, counts from the truth: its rank among posterior maps is uniform, cell by cell.

    Ranks of 400 truths in 9 classes by chi-square; with the wrong noise the same test fails.
    """
    runs, draws = 400, 17
    totals = rng.uniform(5, 60, runs)
    truth = prior_maps(totals, 1, rng)
    ranks = []
    for run in range(runs):
        rows = [(0, 0, float(totals[run] + rng.laplace(0, 4)), 4 * factor)]
        rows += [(1, k, float(truth[1][run, k] + rng.laplace(0, 3)), 3 * factor) for k in range(4)]
        fit = _first_fit(counts_of(rows))
        drawn = fit.drawn(rng.permutation(fit.totals(draws)[:, 0]), np.arange(draws))
        seen = np.array([fit.laid_out(mass, 1)[0] for mass in drawn])
        ranks.append(int((seen + 1e-9 * rng.random(draws) < truth[1][run, 0]).sum()))
    observed = np.bincount(np.array(ranks) // 2, minlength=9)
    p = float(stats.chisquare(observed).pvalue)
    assert p > LEVEL if factor == 1 else p < 1e-3


@pytest.mark.unit
def test_maps_of_several_groups_are_looked_at_apart(rng: RNG) -> None:
    """Together they have the masses that each has alone."""
    rows = [(2, k, float(rng.laplace(4, 3)), 2.0) for k in range(48)]
    rows += [(3, k, float(rng.laplace(1, 1)), 1.0) for k in range(64, 128)]
    both = counts_of(rows, groups=3)
    found = rough_masses(both, 2, np.arange(48)).reshape(3, 16)
    for group in range(3):
        mine = [
            (level, code - (group << 2 * level), value, scale)
            for level, code, value, scale in rows
            if code >> 2 * level == group
        ]
        assert found[group] == pytest.approx(rough_masses(counts_of(mine), 2, np.arange(16)))


@pytest.mark.golden
def test_known_counts_have_known_maps() -> None:
    """Integers that these maps had when each was drawn by itself; libraries may differ in their last bits."""
    rows = [(0, 0, 30.0, 2.0), *((1, k, v, 1.5) for k, v in enumerate((19.0, -1.0, 4.0, 9.0)))]
    rows += [(2, k, v, 1.0) for k, v in enumerate((14.0, 2.0, 0.0, 1.0))]
    found = CountsPosterior(counts_of(rows))
    maps = [np.rint(1e6 * found.maps(200, level)).astype(np.int64) for level in (3, 1)]
    assert maps[0][0, 0].tolist() == [11662023, 2704939, 0, 0, 4, 3, 0, 0]
    assert maps[0][199, 0].tolist() == [5243760, 7580464, 297837, 889358, 0, 0, 0, 0]
    assert maps[1][57].tolist() == [[17190276, 12452], [3312629, 8853941]]
    means = np.rint(1e6 * found.means(1)).astype(np.int64)
    assert means.tolist() == [17195229, 198811, 4201052, 8669208]


@pytest.mark.property
@pytest.mark.parametrize("at_once", [1, 70, 2**20])
def test_maps_are_the_same_however_many_are_worked_on_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch, rng: RNG
) -> None:
    """Alone, a few, all; kept from another level or drawn again."""
    rows = [(2, k, float(rng.laplace(8, 3)), 2.0) for k in range(16)]
    wanted = CountsPosterior(counts_of(rows)).maps(7, 4)
    monkeypatch.setattr(posterior, "AT_ONCE", at_once)
    found = CountsPosterior(counts_of(rows))
    coarse = found.maps(7, 3)
    assert (found.maps(7, 4) == wanted).all()
    assert coarse == pytest.approx(wanted.reshape(7, 8, 2, 8, 2).sum(axis=(2, 4)), abs=1e-6)
    assert (found.maps(3, 4) != wanted[:3]).any()  # other totals: quantiles of 3, not of 7


@pytest.mark.unit
def test_without_noise_the_counts_come_back() -> None:
    values = [40.0, 0.0, 3.0, 7.0]
    rows = [(0, 0, 50.0, 1e-3), *((1, k, v, 1e-3) for k, v in enumerate(values))]
    assert CountsPosterior(counts_of(rows)).means(1) == pytest.approx(values, abs=0.02)


@pytest.mark.property
def test_mass_is_kept_on_the_way_down(rng: RNG) -> None:
    rows = [(2, k, float(rng.laplace(8, 3)), 2.0) for k in range(16)]
    rows += [(4, k, float(rng.laplace(1, 1)), 1.0) for k in range(32)]
    found = CountsPosterior(counts_of(rows))
    for level in range(6):
        assert (found.means(level) >= 0).all()
        assert found.means(level + 1).reshape(-1, 4).sum(axis=1) == pytest.approx(
            found.means(level), rel=1e-6
        )
    maps = found.maps(5, 6)
    assert maps.shape == (5, 64, 64)
    assert (maps >= 0).all()
    assert maps.sum(axis=(1, 2)).std() > 0
    again = CountsPosterior(found.counts).maps(5, 6)
    assert np.array_equal(maps, again)  # the same counts, the same maps
    assert rough_masses(found.counts, 2, np.arange(16)).sum() == pytest.approx(
        found.means(0)[0], rel=0.1
    )


@pytest.mark.unit
def test_the_mixture_finds_the_shape_it_was_drawn_from(rng: RNG) -> None:
    """Splits seen without noise, of one shape: it gets most of the weight of its class and of no other."""
    tables = mixed(np.eye(len(SHAPES))[[1, 1, 5, 5]])
    assert tables.below.shape[0] == len(MASSES) + 1
    masses = np.repeat([1.0, 100.0], 300)
    shapes = np.repeat([SHAPES[1], SHAPES[5]], 300)
    shares = np.clip(rng.beta(shapes, shapes), 1e-12, 1 - 1e-12)
    evidence = np.asarray(stats.beta.logpdf(shares[:, None], SHAPES, SHAPES))
    found = fit_mixture(evidence, masses)
    assert found[0].argmax() == 1
    assert found[-1].argmax() == 5
    assert found[1] == pytest.approx(usual_mixture()[1])  # nothing seen, nothing learned
    assert found.sum(axis=1) == pytest.approx(1)


@pytest.mark.unit
def test_what_is_no_posterior_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="level 9"):
        CountsPosterior(counts_of([(9, 0, 1.0, 1.0)]))
    found = CountsPosterior(CASES["sharp"])
    for count, level in ((0, 3), (3, 9)):
        with pytest.raises(InvalidParameter):
            found.maps(count, level)
    with pytest.raises(InvalidInput, match="nothing of how many"):
        CountsPosterior(counts_of([(3, 5, 1.0, 1.0)])).means(2)
    with pytest.raises(InvalidInput, match="codes of cells"):
        counts_of([(1, 4, 1.0, 1.0)])
    with pytest.raises(InvalidInput, match="scales above 0"):
        counts_of([(1, 0, 1.0, 0.0)])


@pytest.mark.unit
def test_counts_survive_json() -> None:
    counts = CASES["two below a ceiling"]
    again = NoisyCounts.from_json(counts.to_json())
    assert again.to_json() == counts.to_json()
    assert np.array_equal(CountsPosterior(again).means(3), CountsPosterior(counts).means(3))


@pytest.mark.unit
@pytest.mark.parametrize("area", [None, area_of_plane((0, 0, 5, 3), 6)])
def test_means_of_many_maps_at_once_are_those_of_each(area: Area | None) -> None:
    """To the last digit: trees of other depths and counts beside it change nothing of a map."""
    grid = Grid(6) if area is None else area.grid
    mechanism = ZoomMethod().mechanism(Fraction(1), bound_of_sums(grid, 5), grid)
    rng = np.random.default_rng(3)
    codes = np.sort(rng.choice(grid.size, 40, replace=False)) + grid.size * np.repeat(range(5), 8)
    sums = CellSums(grid, np.sort(codes), UNITS * np.repeat([0, 1, 3, 20, 90], 8), 5, area)
    one = mechanism.sample(sums, SimulatedNoise(4))
    tree = ZoomTree.joined([one, mechanism.sample(sums, SimulatedNoise(5))])
    assert tree.groups == 10
    assert np.array_equal(tree.counts(3).values, one.counts(3).values)
    assert len({counts.finest for counts in tree.each}) > 1
    found = mean_maps(tree.each, 6, area)
    for counts, masses in zip(tree.each, found, strict=True):
        assert np.array_equal(CountsPosterior(counts, area=area).means(6), masses)
    # And so are whole posteriors that are fitted at once, with what is drawn from them.
    for counts, joint in zip(tree.each, posteriors(tree.each, 6, area), strict=True):
        alone = CountsPosterior(counts, mean_is_map=True, area=area)
        assert joint.counts is counts
        for level in (0, 3, 6, 7):
            assert np.array_equal(joint.means(level), alone.means(level))
        assert np.array_equal(joint.maps(5, 6), alone.maps(5, 6))
        assert np.array_equal(joint.totals(9), alone.totals(9))


@pytest.mark.property
def test_narrow_ends_of_a_search_find_the_same_shares(rng: RNG) -> None:
    """Where a share is looked for changes nothing of where it is: rows between the centers bound it too."""
    for sharpness in (0.05, 0.5, 5.0):
        shares = mixed(rng.dirichlet(np.full(len(SHAPES), sharpness), len(MASSES) + 1))
        size = 2000
        # Ends of the parts, in which shares are looked for, are numbers too.
        uniforms = np.where(
            rng.random(size) < 0.1, rng.integers(1, 128, size) / 128, rng.random(size)
        )
        center, more = rng.integers(0, 14, size), rng.random(size)
        more[::9] = rng.integers(0, 16, more[::9].size) / 16
        which = rng.integers(0, len(MASSES) + 1, size)
        found = [
            [
                share_at(u, n, c, far, shares.below, ends)
                for u, n, c, far in zip(uniforms, which, center, more, strict=True)
            ]
            for ends in (shares.slots, shares.narrow)
        ]
        assert found[0] == found[1]


@pytest.mark.property
def test_a_cell_is_split_by_its_prior_and_next_to_nobody_evenly(rng: RNG) -> None:
    """Against the definition: for each halving a number of its own, the inverse of its prior, NumPy's masks."""
    shares = mixed(rng.dirichlet(np.ones(len(SHAPES)), len(MASSES) + 1))
    mass = np.exp(rng.normal(0, 4, (7, 64)))
    mass[:, ::5] = rng.choice([0.0, 1e-12, 1e-9, 1.5, 6.0, 25.0], mass[:, ::5].shape)
    centers = rng.random((64, 3))
    centers[::6] = rng.choice([-0.5, 0.0, 0.5, 1.0, 1.5], centers[::6].shape)
    starts, least = starts_of(5, np.arange(7)), np.exp(rng.normal(-6, 3, 7))
    found = scatter(mass, centers, shares, starts, 3, least).reshape(7, 64, 4)

    cells = (4 << 40) + 4 * np.arange(64) + np.arange(3)[:, None]
    uniforms = uniform(5, np.arange(7), cells)

    def first(whole: FloatArray, side: int) -> FloatArray:
        place, halves = np.log(np.clip(centers[:, side], 1e-9, 1 - 1e-9)), np.empty(whole.shape)
        place = place - np.log1p(-np.clip(centers[:, side], 1e-9, 1 - 1e-9))
        place = np.clip((place + 3.5) / 0.5, 0, 13.999999)
        for (one, cell), m in np.ndenumerate(whole):
            c, center = int(place[cell]), centers[cell, side]
            far, size = place[cell] - c, np.searchsorted(MASSES, m)
            row = shares.below[size, c] * (1 - far) + shares.below[size, c + 1] * far
            logit = np.interp(uniforms[one, side, cell], row, np.linspace(-18, 18, row.size))
            share = 1 / (1 + np.exp(-logit)) if 0 <= center <= 1 else float(center > 1)
            halves[one, cell] = m * (0.5 if m <= least[one] else share)
        return halves

    whole = np.maximum(mass, 1e-9)
    left = first(whole, 0)
    quarters = [first(left, 1), first(whole - left, 2)]
    expected = np.stack(
        [quarters[0], left - quarters[0], quarters[1], whole - left - quarters[1]], axis=2
    )
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert np.allclose(found.sum(axis=2), whole, rtol=1e-12)
    few = mass <= np.minimum(least, 1.0)[:, None]
    assert few.any()
    assert np.allclose(found[few], whole[few][:, None] / 4)
