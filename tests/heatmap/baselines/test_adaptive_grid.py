"""The adaptive grid buys its total, chooses from noisy counts alone, and agrees by least squares."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from tests.chance import assert_law
from tests.heatmap.baselines.towns import EPSILON, sums_of, town

from sfumato.heatmap.methods.baselines import AdaptiveGrid, AdaptiveGridMethod
from sfumato.heatmap.methods.baselines.adaptive_grid import MOST_CELLS, agreed
from sfumato.privacy import UNITS, AddRemoveUser, Bound, KeyedNoise, LaplaceLaw, PureDP
from sfumato.spaces import Grid

BOUND = Bound(AddRemoveUser(), 4**8, l1=UNITS, linf=UNITS)
UNIFORM = AdaptiveGrid(8, total_scale=UNITS, first_scale=2 * UNITS, second_scale=2 * UNITS)


@pytest.mark.unit
def test_cost_by_hand() -> None:
    mechanism = AdaptiveGrid(
        8, total_scale=10 * UNITS, first_scale=4 * UNITS, second_scale=2 * UNITS
    )
    assert mechanism.cost(BOUND) == PureDP(Fraction(1, 10) + Fraction(1, 4) + Fraction(1, 2))
    chosen = AdaptiveGridMethod().mechanism(EPSILON, BOUND, Grid(8))
    assert chosen.total_scale == 10 * UNITS
    assert float(chosen.first_scale) == float(chosen.second_scale) == pytest.approx(UNITS / 0.45)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("users", "level"),
    # e = 1: m1 = sqrt(users / 10) / 4, at least 4: 8 at 10240, and halfway in ratio at 8 sqrt(2) ->
    # 16.
    [(-5, 2), (0, 2), (200, 2), (5000, 2), (10_240, 3), (20_400, 3), (20_600, 4), (10**12, 8)],
)
def test_the_first_grid_by_hand(users: int, level: int) -> None:
    assert UNIFORM.first_level(users * UNITS) == level


@pytest.mark.unit
def test_cuts_by_hand() -> None:
    # m2 = sqrt(users / 2 / 5): 1 below 20, 2 up to 80, 4 up to 320.
    counts = np.array([-3, 0, 10, 19, 21, 40, 79, 81, 160, 10**7], dtype=np.int64) * UNITS
    assert UNIFORM.cuts(counts, 4).tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 4]


@pytest.mark.unit
def test_cuts_never_make_too_many_cells() -> None:
    counts = np.full(4**8, 2**60, dtype=np.int64)
    deep = AdaptiveGrid(16, total_scale=UNITS, first_scale=UNITS, second_scale=UNITS)
    cuts = deep.cuts(counts, 8)
    assert cuts.tolist() == [2] * 4**8
    assert np.sum(4.0**cuts) <= MOST_CELLS


@pytest.mark.unit
def test_the_second_grid_covers_the_map_once(key: bytes, rng: np.random.Generator) -> None:
    grid = Grid(6)
    sums = town(rng, grid, users=2000, groups=2)
    tree = AdaptiveGridMethod().mechanism(EPSILON, BOUND, grid).sample(sums, KeyedNoise(key))
    total, first, *second = tree.levels
    assert (total.level, total.codes.tolist()) == (0, [0])
    assert first.codes.tolist() == list(range(2 * 4**first.level))
    over = np.zeros(2 * grid.size, dtype=np.int64)
    for one in second:
        over += np.repeat(np.isin(np.arange(2 * 4**one.level), one.codes), 4 ** (6 - one.level))
    assert np.all(over == 1)
    assert len({one.level for one in second}) > 1


@pytest.mark.statistical
def test_each_stage_has_its_law(key: bytes) -> None:
    trials = 20_000
    grid = Grid(2)
    sums = sums_of(np.tile([UNITS] + [0] * 15, trials), grid, groups=trials)
    mechanism = AdaptiveGrid(2, total_scale=UNITS, first_scale=2 * UNITS, second_scale=5 * UNITS)
    tree = mechanism.sample(sums, KeyedNoise(key))
    exact = sums.of_level(2)
    for stage, scale in ((tree.levels[1], 2.0), (tree.levels[2], 5.0)):
        rivals = [LaplaceLaw(factor * scale * UNITS).cdf for factor in (0.9, 1.1)]
        assert_law(stage.values - exact, LaplaceLaw(scale * UNITS).cdf, rivals=rivals)


@pytest.mark.statistical
def test_the_total_has_its_law(key: bytes) -> None:
    sums = sums_of([3 * UNITS], Grid(0))
    mechanism = AdaptiveGrid(0, total_scale=4 * UNITS, first_scale=UNITS, second_scale=UNITS)
    noise = KeyedNoise(key)
    totals = [int(mechanism.sample(sums, noise).levels[0].values[0]) for _ in range(3000)]
    rivals = [LaplaceLaw(factor * 4 * UNITS).cdf for factor in (0.7, 1.4)]
    assert_law(np.array(totals) - 3 * UNITS, LaplaceLaw(4 * UNITS).cdf, rivals=rivals)


@pytest.mark.reference
@pytest.mark.parametrize("alpha", [0.5, 0.3])
@pytest.mark.parametrize("many", [1, 4, 16])
def test_agreement_is_weighted_least_squares(
    alpha: float, many: int, rng: np.random.Generator
) -> None:
    parents, parts = rng.normal(10, 3, 5), rng.normal(2, 3, (5, many))
    ours = agreed(parents, parts, alpha=alpha)
    # Deviations are 1 / alpha and 1 / (1 - alpha): rows of the design are divided by them.
    design = np.vstack([alpha * np.ones((1, many)), (1 - alpha) * np.eye(many)])
    for parent, row, found in zip(parents, parts, ours, strict=True):
        seen: npt.NDArray[np.float64] = np.concatenate([[alpha * parent], (1 - alpha) * row])
        np.testing.assert_allclose(found, np.linalg.lstsq(design, seen, rcond=None)[0], atol=1e-10)
