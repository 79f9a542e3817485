"""The pyramid costs what it says, looks where it may, and lazy noise has the law of noise everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.chance import assert_law, assert_share

from sfumato.errors import InvalidParameter
from sfumato.heatmap.inference.tree_fit import objective, reconstruct
from sfumato.heatmap.methods.budget_split import split_epsilon
from sfumato.heatmap.methods.protocol import NoisyTree
from sfumato.heatmap.methods.pyramid import Pyramid, PyramidMethod
from sfumato.privacy import (
    REHEARSAL,
    UNITS,
    AddRemoveUser,
    Bound,
    KeyedNoise,
    LaplaceLaw,
    Ledger,
    PureDP,
    SystemNoise,
)
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Grid

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


class Silence(SystemNoise):
    """No noise at all; counts how many draws were asked for, and how often."""

    def __init__(self) -> None:
        self.drawn = self.calls = 0

    def laplace(self, scale: object, size: int) -> IntArray:  # noqa: ARG002
        self.drawn, self.calls = self.drawn + size, self.calls + 1
        return np.zeros(size, dtype=np.int64)


def bound_of(sums: CellSums) -> Bound:
    return guard_sums(sums, source=REHEARSAL).bound


def sums_of(masses: dict[int, int], levels: int, *, groups: int = 1, unit: int = 1) -> CellSums:
    codes = np.array(sorted(masses), dtype=np.int64)
    units = np.array([masses[int(code)] * unit for code in codes], dtype=np.int64)
    return CellSums(Grid(levels), codes, units, groups)


def random_sums(rng: np.random.Generator, points: int, *, levels: int, groups: int = 1) -> CellSums:
    codes, counts = np.unique(rng.integers(groups << 2 * levels, size=points), return_counts=True)
    return CellSums(Grid(levels), codes, counts * UNITS, groups)


# --- what it costs ---


@pytest.mark.unit
def test_the_cost_is_the_sum_over_the_levels() -> None:
    bound = Bound(AddRemoveUser(), 4**5, l1=6)
    assert Pyramid((Fraction(2), Fraction(3), Fraction(4)), 1, 4).cost(bound) == PureDP("13/2")


@pytest.mark.property
@given(
    epsilon=st.fractions(min_value=Fraction(1, 1000), max_value=50),
    levels=st.integers(0, 16),
    width=st.integers(1, 5000),
    groups=st.integers(1, 3),
)
def test_a_method_costs_at_most_epsilon_and_wastes_nothing(
    epsilon: Fraction, levels: int, width: int, groups: int
) -> None:
    grid = Grid(levels)
    bound = Bound(AddRemoveUser(), groups * grid.size, l1=UNITS)
    pyramid = PyramidMethod(width).mechanism(epsilon, bound, grid)
    spent = pyramid.cost(bound).epsilon
    assert spent == sum(UNITS / scale for scale in pyramid.scales)
    assert epsilon * (1 - Fraction(1, 2**50)) <= spent <= epsilon
    assert pyramid.last_level == levels
    # Each level alone keeps to its share.
    shares = split_epsilon(epsilon, levels, width=width)
    assert all(UNITS / pyramid.law(level).scale <= share for level, share in shares.items())


@pytest.mark.unit
def test_closed_cells_count_points_on_borders_several_times() -> None:
    """[ghazi23, def. 3.1] prints [a, a + 2**-i] x [b, b + 2**-i] for points i / side: borders are in 2 or 4.

    So a user of mass 1 changes the counts of a level by up to 4, where the proof and the noise have
    1. Cells of ours hold each point once, at every level.
    """
    levels = 3
    side, grid = 2**levels, Grid(levels)
    codes = np.arange(grid.size)
    columns, rows = grid.decode(codes)
    for level in range(1, levels + 1):
        wide = side >> level
        corners = wide * np.arange(2**level)
        inside = (corners <= columns[:, None]) & (columns[:, None] <= corners + wide)
        above = (corners <= rows[:, None]) & (rows[:, None] <= corners + wide)
        times = inside.sum(axis=1) * above.sum(axis=1)
        assert (times.min(), times.max()) == (1, 4)
        ours = np.bincount(codes >> 2 * (levels - level), minlength=4**level)
        assert ours.tolist() == [4 ** (levels - level)] * 4**level


@pytest.mark.unit
def test_the_cost_bounds_the_loss_of_selecting_and_counting() -> None:
    """The max divergence of (which quarter was selected, its noisy count), by its definition."""
    law, width = LaplaceLaw(2), np.arange(-60, 61)
    before = np.array([3, 1, 0, 2])
    changes = np.array([[1, 0, 0, 0], [0, 0, 2, 0], [1, 1, 0, 1], [-1, 0, 0, -2]])
    for change in changes:
        loss = np.abs(
            np.log(selected_with(before, law, width) / selected_with(before + change, law, width))
        )
        moved = Fraction(int(np.abs(change).sum()))
        paid = float(
            Pyramid((Fraction(2),), 0, 1).cost(Bound(AddRemoveUser(), 4, l1=moved)).epsilon
        )
        assert loss.max() <= paid + 1e-9
        # Not vacuous: the loss of the selected cell's own noise is reached.
        assert loss.max() >= np.abs(change).max() / 2 - 1e-9


@pytest.mark.unit
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pyramid((), 0, 1), "at least 1 level, got no scale; nothing was charged"),
        (
            lambda: Pyramid((Fraction(1),), 1, 3),
            r"at most width = 3 cells, got 4; nothing was charged",
        ),
        (
            lambda: Pyramid((Fraction(1),) * 2, 16, 4**16),
            "first_level must be a whole number from 0 to 15",
        ),
        (lambda: Pyramid((Fraction(0),), 0, 1), "scale must lie in"),
        (lambda: PyramidMethod(width=0), "width must be a whole number, at least 1"),
        (lambda: PyramidMethod(decay=2.0), r"decay must lie in \(0, 1\], got 2.0"),
        (
            lambda: Pyramid((Fraction(1),) * 3, 0, 1).cost(Bound(AddRemoveUser(), 15, l1=1)),
            "down to level 2 counts 16 cells, the data has 15; nothing was charged",
        ),
        (
            lambda: Pyramid((Fraction(1),), 0, 1).cost(Bound(AddRemoveUser(), 16, linf=1)),
            "a pyramid needs a bound on l1",
        ),
        (
            lambda: Pyramid((Fraction(1),) * 3, 0, 1).sample(sums_of({}, 1, groups=4), Silence()),
            "down to level 2 needs data of that level, got 1; nothing was released",
        ),
    ],
    ids=range(9),
)
def test_a_broken_rule_is_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        make()


# --- where it looks ---


def assert_paths(tree: NoisyTree, pyramid: Pyramid) -> None:
    """Every cell is reached from the top, and no level has more than `width` cells in a group."""
    for above, below in zip(tree.levels, tree.levels[1:], strict=False):
        assert below.level == above.level + 1
        assert np.isin(below.codes >> 2, above.codes).all()
    for one in tree.levels:
        assert np.all(np.diff(one.codes) > 0)
        in_group = np.bincount(one.codes >> 2 * one.level, minlength=tree.groups)
        largest = min(pyramid.width, 4**one.level)
        # T_i is 4 |S_{i-1}| or all, never fewer than `width` once there are that many.
        assert in_group.tolist() == [largest] * tree.groups


@pytest.mark.property
@given(
    levels=st.integers(0, 6),
    width=st.integers(1, 70),
    groups=st.integers(1, 3),
    points=st.integers(0, 40),
)
def test_paths_draws_and_sizes_are_the_same_for_all_data(
    levels: int, width: int, groups: int, points: int
) -> None:
    sums = random_sums(np.random.default_rng(points), points, levels=levels, groups=groups)
    bound = bound_of(sums)
    pyramid = PyramidMethod(width).mechanism(Fraction(1), bound, sums.grid)
    for noise in (counter := Silence(), KeyedNoise(bytes(32), epoch=bytes(12))):
        assert_paths(pyramid.sample(sums, noise), pyramid)
    assert counter.drawn == pyramid.draws(bound)
    assert counter.calls == len(pyramid.scales)


@pytest.mark.unit
def test_a_coarser_pyramid_draws_no_more_than_it_says() -> None:
    sums = sums_of({5: 1, 40: 2}, 3)
    pyramid, counter = Pyramid((Fraction(1), Fraction(1)), 0, 2), Silence()
    assert [one.level for one in pyramid.sample(sums, counter).levels] == [0, 1]
    assert counter.drawn == 5 <= pyramid.draws(bound_of(sums))


@pytest.mark.unit
def test_the_largest_are_followed_and_a_tie_goes_to_the_smaller_code() -> None:
    tree = Pyramid((Fraction(1),) * 3, 0, 2).sample(
        sums_of({0: 3, 5: 9, 6: 9, 10: 3, 15: 4}, 2), Silence()
    )
    assert [one.codes.tolist() for one in tree.levels] == [[0], [1, 3], [5, 6]]
    assert [one.values.tolist() for one in tree.levels] == [[28], [18, 4], [9, 9]]
    tied = Pyramid((Fraction(1),) * 2, 0, 2).sample(sums_of({0: 1, 1: 1, 2: 1, 3: 1}, 1), Silence())
    assert tied.levels[1].codes.tolist() == [0, 1]


@pytest.mark.unit
def test_groups_are_followed_apart() -> None:
    """A busy map takes no place from an empty one."""
    busy = dict.fromkeys(range(16), 100)
    tree = Pyramid((Fraction(1),) * 3, 0, 2).sample(
        sums_of(busy | {16 + 7: 1}, 2, groups=2), Silence()
    )
    assert tree.levels[2].codes.tolist() == [0, 1, 16, 16 + 7]


@pytest.mark.property
@given(seed=st.integers(0, 2**32), points=st.integers(0, 300), levels=st.integers(0, 5))
def test_without_noise_a_parent_is_the_sum_of_its_quarters(
    seed: int, points: int, levels: int
) -> None:
    sums = random_sums(np.random.default_rng(seed), points, levels=levels, groups=2)
    tree = Pyramid((Fraction(1),) * (levels + 1), 0, 4**levels).sample(sums, Silence())
    for above, below in zip(tree.levels, tree.levels[1:], strict=False):
        assert below.values.reshape(-1, 4).sum(axis=1).tolist() == above.values.tolist()


@pytest.mark.property
@given(
    seed=st.integers(0, 2**32),
    levels=st.integers(1, 6),
    width=st.integers(1, 40),
    groups=st.integers(1, 3),
)
def test_without_noise_a_sparse_map_comes_back_exactly(
    seed: int, levels: int, width: int, groups: int
) -> None:
    rng = np.random.default_rng(seed)
    points = {
        g * 4**levels + int(c) for g in range(groups) for c in rng.integers(4**levels, size=width)
    }
    # Masses of users split over cells: any integers of units.
    sums = sums_of({code: int(rng.integers(1, 2**30)) for code in points}, levels, groups=groups)
    pyramid = PyramidMethod(width).mechanism(Fraction(1), bound_of(sums), sums.grid)
    tree = pyramid.sample(sums, Silence())
    maps = reconstruct(tree, sums.grid)
    found = np.concatenate([tiles.values(levels) for tiles in maps])
    assert (found * UNITS).tolist() == sums.of_level(levels).tolist()
    assert objective(tree, maps, grid=sums.grid) == 0


@pytest.mark.unit
def test_no_rows_make_a_map_of_noise(key: bytes) -> None:
    empty = np.zeros(0, dtype=np.int64)
    sums = CellSums(Grid(8), empty, empty, groups=2)
    method = PyramidMethod()
    tree = method.mechanism(Fraction(1), bound_of(sums), sums.grid).sample(sums, KeyedNoise(key))
    assert [one.codes.size for one in tree.levels] == [32, 40, 40, 40, 40, 40, 40]
    maps = method.estimate(tree, sums.grid)
    assert len(maps) == 2
    assert all(tiles.total >= 0 for tiles in maps)


@pytest.mark.unit
def test_sixteen_levels(rng: np.random.Generator, key: bytes) -> None:
    sums = random_sums(rng, 1000, levels=16)
    method = PyramidMethod(width=100)
    pyramid = method.mechanism(Fraction(1), bound_of(sums), sums.grid)
    tree = pyramid.sample(sums, KeyedNoise(key))
    assert_paths(tree, pyramid)
    assert tree.levels[-1].level == 16
    (tiles,) = method.estimate(tree, sums.grid)
    top = int(np.maximum(tree.levels[0].values, 0).sum()) / UNITS
    assert tiles.total == pytest.approx(top, rel=1e-12)


# --- the law of lazy noise ---

LAW = LaplaceLaw(4)
MAPS = 60_000
# Counts of 16 cells in units comparable with the noise, so that selection errs often.
COUNTS = np.array([3, 0, 5, 1, 0, 9, 0, 2, 6, 6, 0, 0, 1, 1, 1, 1])
RANGE = np.arange(-400, 401)


def selected_with(counts: IntArray, law: LaplaceLaw, values: IntArray) -> FloatArray:
    """P(cell j has the largest noisy count, and it is v) at [j, v]; a tie goes to the smaller code."""
    out = law.pmf(values - counts[:, None])
    for j in range(counts.size):
        for k in range(counts.size):
            if k != j:
                out[j] *= law.cdf(values - counts[k] - (1 if k < j else 0))
    return out


def full_law(values: IntArray) -> FloatArray:
    """The cdf of the count at the end of the path when every cell of the pyramid gets its noise."""
    wins = selected_with(COUNTS.reshape(4, 4).sum(axis=1), LAW, RANGE).sum(axis=1)
    quarters = COUNTS.reshape(4, 4)
    return np.asarray(
        sum(wins[j] * np.prod([LAW.cdf(values - x) for x in quarters[j]], axis=0) for j in range(4))
    )


def selected_exactly(values: IntArray) -> FloatArray:
    """Rival: the path follows the exact counts, noise comes after."""
    best = COUNTS.reshape(4, 4)[int(np.argmax(COUNTS.reshape(4, 4).sum(axis=1)))].max()
    return LAW.cdf(values - int(best))


def drawn_again(values: IntArray) -> FloatArray:
    """Rival: the selected cell gets fresh noise for the count that is released."""
    wins = selected_with(COUNTS.reshape(4, 4).sum(axis=1), LAW, RANGE).sum(axis=1)
    out = np.zeros(values.shape)
    for j, counts in enumerate(COUNTS.reshape(4, 4)):
        ends = selected_with(counts, LAW, RANGE).sum(axis=1)
        out += wins[j] * sum(ends[k] * LAW.cdf(values - int(x)) for k, x in enumerate(counts))
    return out


def many_maps() -> CellSums:
    """The same counts in MAPS groups: one release draws MAPS independent paths."""
    codes = (np.arange(MAPS)[:, None] * 16 + np.arange(16)).ravel()
    return CellSums(Grid(2), codes, np.tile(COUNTS, MAPS).astype(np.int64), MAPS)


def everywhere(rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
    """Cell and count of level 1, count of level 2 from noise on all 21 cells: Algorithm 1 as printed."""
    q = np.exp(-1 / 4)
    z = rng.geometric(1 - q, (2, MAPS, 20))
    noisy = np.concatenate([COUNTS.reshape(4, 4).sum(axis=1), COUNTS]) + z[0] - z[1]
    first = np.argmax(noisy[:, :4], axis=1)
    below = noisy[:, 4:].reshape(MAPS, 4, 4)[np.arange(MAPS), first]
    return first, noisy[np.arange(MAPS), first], below.max(axis=1)


def lazily(key: bytes) -> tuple[IntArray, IntArray, IntArray]:
    tree = Pyramid((LAW.scale,) * 3, 0, 1).sample(many_maps(), KeyedNoise(key))
    return tree.levels[1].codes % 4, tree.levels[1].values, tree.levels[2].values


@pytest.mark.statistical
def test_lazy_noise_has_the_law_of_noise_everywhere(key: bytes) -> None:
    assert_law(lazily(key)[2], full_law, rivals=[selected_exactly, drawn_again])


@pytest.mark.statistical
def test_noise_everywhere_has_the_law_we_say(rng: np.random.Generator) -> None:
    assert_law(everywhere(rng)[2], full_law, rivals=[selected_exactly, drawn_again])


@pytest.mark.statistical
def test_levels_are_noised_independently(rng: np.random.Generator, key: bytes) -> None:
    """A joint event of three: the cell of level 1, its count, and the count below it."""
    cell, high, end = 2, 14, 8
    one = selected_with(COUNTS.reshape(4, 4).sum(axis=1), LAW, RANGE)[cell]
    largest = np.prod(
        [LAW.cdf(np.array([end - 1]) - x) for x in COUNTS.reshape(4, 4)[cell]], axis=0
    )[0]
    share = float(one[high <= RANGE].sum() * (1 - largest))
    alone = [float(one[high <= RANGE].sum()), float(1 - largest)]
    for first, value, below in (lazily(key), everywhere(rng)):
        hits = int(np.sum((first == cell) & (value >= high) & (below >= end)))
        # Were the two levels noised by the same numbers, the event would be as likely as the rarer
        # part.
        assert_share(hits, MAPS, share, rivals=[min(alone), 0.9 * share, 1.1 * share])


@pytest.mark.statistical
def test_selected_cells_are_noisier_than_the_proof_says(key: bytes) -> None:
    """On four empty cells the largest noise is above a scale more often than one noise alone.

    Its absolute value on S_i has not the mean 1 / epsilon_i that the utility proof of Theorem 3.1
    takes.
    """
    empty = np.zeros(0, dtype=np.int64)
    tree = Pyramid((LAW.scale,) * 2, 0, 1).sample(
        CellSums(Grid(1), empty, empty, MAPS), KeyedNoise(key)
    )
    above = int(np.sum(tree.levels[1].values > 4))
    one = float(LAW.cdf(np.array([4]))[0])
    assert_share(above, MAPS, 1 - one**4, rivals=[1 - one, 2 * (1 - one)])


# --- the whole pipeline ---


def rehearsed() -> tuple[NoisyTree, list[list[tuple[int, int, int]]]]:
    sums = sums_of({3: 5, 9: 2, 10: 1, 40: 7, 64 + 8: 3}, 3, groups=2, unit=UNITS)
    method = PyramidMethod(width=4)
    guarded = guard_sums(sums, source=REHEARSAL)
    ledger = Ledger.rehearsal(PureDP(1))
    noise = KeyedNoise(bytes(range(32)), epoch=bytes(12))
    released = ledger.release(
        method.mechanism(Fraction(1), guarded.bound, sums.grid), guarded, noise=noise
    )
    assert released.exponent == -20
    assert released.entry.mechanism == "pyramid/1"
    assert released.entry.parameters["first_level"] == 1
    assert released.guarantee.computational == noise.distance * 2 * (4 + 16 + 16)
    json.dumps(released.to_json())
    maps = released.then(lambda tree: method.estimate(tree, sums.grid)).value
    return released.value, [
        [
            (level, code, round(mass * UNITS))
            for level, code, mass in zip(
                tiles.levels.tolist(), tiles.codes.tolist(), tiles.masses.tolist(), strict=True
            )
        ]
        for tiles in maps
    ]


@pytest.mark.golden
def test_a_known_key_gives_known_integers() -> None:
    tree, maps = rehearsed()
    assert [one.codes.tolist() for one in tree.levels] == CODES
    assert [one.values.tolist() for one in tree.levels] == VALUES
    assert maps == MAPS_FOUND


CODES = [[0, 1, 2, 3, 4, 5, 6, 7], [0, 5, 7, 8, 16, 18, 21, 24], [0, 3, 28, 29, 65, 66, 84, 87]]
VALUES = [
    [8403614, -2603986, 9015042, 7473031, 3431884, -3078258, 627349, 4582653],
    [8968468, 7932721, 11729045, 3753675, 8056953, 14933436, 7249758, 7391080],
    [7229473, 21253963, 6137053, 12097748, 3472948, 3119889, 4784004, 2724315],
]
# By hand: cell 0 of level 1 has 8403614; below it 7229473 and 21253963 are tied, so each gives the
# share 8403614 / 28483436 of itself. Cell 2 has 9015042, of which its one selected quarter claims
# 3753675.
MAPS_FOUND = [
    [(1, 2, 5261367), (1, 3, 7473031), (2, 8, 3753675), (3, 0, 2132948), (3, 3, 6270666)],
    [(1, 3, 4582653), (2, 8, 627349), (3, 1, 1807834), (3, 2, 1624050)],
]
