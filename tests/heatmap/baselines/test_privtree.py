"""PrivTree's loss for fractional mass, computed exactly over all trees; its law; its limits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, exp, expm1, log, log1p

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chance import assert_law, assert_share
from tests.heatmap.baselines.towns import EPSILON, sums_of, town

from sfumato.errors import InvalidParameter
from sfumato.heatmap.methods.baselines import PrivTree, PrivTreeMethod
from sfumato.heatmap.methods.baselines.privtree import decay_of, split_factor
from sfumato.heatmap.methods.protocol import NoisyTree
from sfumato.privacy import UNITS, AddRemoveUser, Bound, KeyedNoise, LaplaceLaw, PureDP
from sfumato.records import CellSums
from sfumato.spaces import Grid

IntArray = npt.NDArray[np.int64]

# A user of few units, so that every unit matters: the proof does not know how many there are.
USER = 12
EPSILON_SPLIT = Fraction(1, 20)


def log_split(biased: int, scale: float) -> float:
    """The log probability that biased + noise > 0."""
    if biased <= 1:
        return (biased - 1) / scale - log1p(exp(-1 / scale))
    return log1p(-exp(-biased / scale) / (1 + exp(-1 / scale)))


def log_stop(biased: int, scale: float) -> float:
    """The log probability that biased + noise <= 0: the same law from the other side."""
    return log_split(1 - biased, scale)


def decisions(
    units: IntArray, levels: int, scale: float, decay: int
) -> list[list[tuple[float, float]]]:
    """Log probabilities of splitting and of stopping, for each cell of each level that is asked."""
    found = []
    for level in range(levels):
        counts = units.reshape(4**level, -1).sum(axis=1)
        biased = [max(int(count) - level * decay, -decay) for count in counts]
        found.append([(log_split(b, scale), log_stop(b, scale)) for b in biased])
    return found


def largest_loss(one: IntArray, other: IntArray, levels: int, *, scale: float, decay: int) -> float:
    """The largest of |ln P(tree | one) / P(tree | other)| over all trees, by recursion from the leaves."""
    first, second = decisions(one, levels, scale, decay), decisions(other, levels, scale, decay)
    worst = 0.0
    for a, b in ((first, second), (second, first)):
        best = np.zeros(4**levels)
        for level in reversed(range(levels)):
            ratios = np.array(
                [(x[0] - y[0], x[1] - y[1]) for x, y in zip(a[level], b[level], strict=True)]
            )
            best = np.maximum(ratios[:, 0] + best.reshape(-1, 4).sum(axis=1), ratios[:, 1])
        worst = max(worst, float(best[0]))
    return worst


def trees(levels: int) -> Iterator[tuple[object, ...]]:
    """Every tree of at most so many levels: () is a leaf."""
    yield ()
    if levels:
        below = list(trees(levels - 1))
        yield from itertools.product(below, repeat=4)


def log_probability(
    tree: tuple[object, ...], table: list[list[tuple[float, float]]], code: int = 0
) -> float:
    """The log probability of a tree, decision by decision."""
    if not table:
        return 0.0
    split, stop = table[0][code]
    if not tree:
        return stop
    rest = table[1:]
    below = (log_probability(part, rest, 4 * code + i) for i, part in enumerate(tree))  # type: ignore[arg-type]
    return split + sum(below)


def scale_for(levels: int) -> float:
    return float(split_factor(levels) * USER / EPSILON_SPLIT)


def worst_pair(levels: int, decay: int) -> tuple[IntArray, IntArray]:
    """All of the others' mass and of the user's in one cell; the path then stands at -decay, 0, decay, ..."""
    others, user = np.zeros((2, 4**levels), dtype=np.int64)
    others[0], user[0] = (levels - 2) * decay, USER
    return others, user


@pytest.mark.unit
def test_the_reference_probabilities_are_the_law() -> None:
    law = LaplaceLaw(5)
    for biased in (-9, -1, 0, 1, 2, 30):
        assert exp(log_split(biased, 5)) == pytest.approx(float(1 - law.cdf(-biased)), abs=1e-14)
        assert exp(log_split(biased, 5)) + exp(log_stop(biased, 5)) == pytest.approx(1)


@pytest.mark.unit
def test_every_tree_is_counted(rng: np.random.Generator) -> None:
    units = rng.integers(0, 40, 16)
    other = units + rng.multinomial(USER, np.full(16, 1 / 16))
    tables = [decisions(one, 2, 9.0, decay_of(Fraction(9))) for one in (units, other)]
    all_trees = list(trees(2))
    assert len(all_trees) == 17
    logs = [[log_probability(tree, table) for tree in all_trees] for table in tables]
    assert [sum(map(exp, one)) for one in logs] == pytest.approx([1, 1])
    by_hand = max(abs(a - b) for a, b in zip(*logs, strict=True))
    found = largest_loss(units, other, 2, scale=9.0, decay=decay_of(Fraction(9)))
    assert found == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.unit
def test_every_tree_of_three_levels_keeps_epsilon() -> None:
    scale = scale_for(3)
    decay = decay_of(Fraction(scale))
    others, user = worst_pair(3, decay)
    tables = [decisions(one, 3, scale, decay) for one in (others, others + user)]
    # One quarter has all the mass: only its 17 shapes matter, the others keep the same law.
    for first in trees(2):
        tree = (first, (), (), ())
        low, high = (log_probability(tree, table) for table in tables)
        assert abs(high - low) <= EPSILON_SPLIT


@pytest.mark.unit
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_the_loss_of_one_path_is_tight(levels: int) -> None:
    scale = scale_for(levels)
    decay = decay_of(Fraction(scale))
    others, user = worst_pair(max(levels, 2), decay)
    others, user = others[: 4**levels], user[: 4**levels]
    loss = largest_loss(others, others + user, levels, scale=scale, decay=decay)
    # The last digits are those of the logarithms: with one decision the bound is reached exactly.
    assert 0.95 * EPSILON_SPLIT < loss <= EPSILON_SPLIT * (1 + 1e-12)


@pytest.mark.unit
@pytest.mark.parametrize("levels", [2, 3])
def test_noise_of_seven_tenths_is_too_little(levels: int) -> None:
    scale = 0.7 * scale_for(levels)
    decay = decay_of(Fraction(scale))
    others, user = worst_pair(levels, decay)
    assert (
        largest_loss(others, others + user, levels, scale=scale, decay=decay) > 1.3 * EPSILON_SPLIT
    )


@pytest.mark.unit
def test_without_the_decay_the_loss_grows_with_every_level() -> None:
    scale = scale_for(3)
    others, user = np.zeros((2, 64), dtype=np.int64)
    user[0] = USER
    assert largest_loss(others, others + user, 3, scale=scale, decay=0) > 1.3 * EPSILON_SPLIT


@pytest.mark.property
@settings(max_examples=150)
@given(st.data())
def test_fractional_mass_costs_at_most_epsilon(data: st.DataObject) -> None:
    levels = data.draw(st.integers(1, 3))
    epsilon = data.draw(st.sampled_from([Fraction(1, 20), Fraction(1), Fraction(6)]))
    scale = float(split_factor(levels) * USER / epsilon)
    decay = decay_of(Fraction(scale))
    cells = 4**levels
    others = np.zeros(cells, dtype=np.int64)
    # Counts near the steps of the decay, where losses add up; in as many cells as it likes.
    for cell in data.draw(st.lists(st.integers(0, cells - 1), max_size=cells)):
        step, off = data.draw(st.integers(0, 4)), data.draw(st.integers(-USER, USER))
        others[cell] = max(0, step * decay // data.draw(st.sampled_from([1, 2, 4])) + off)
    user = np.zeros(cells, dtype=np.int64)
    for cell in data.draw(st.lists(st.integers(0, cells - 1), min_size=USER, max_size=USER)):
        user[cell] += 1
    loss = largest_loss(others, others + user, levels, scale=scale, decay=decay)
    assert loss <= epsilon * (1 + Fraction(1, 10**9))


@pytest.mark.property
@given(st.integers(0, 10**6), st.floats(0.5, 1e6))
def test_one_unit_loses_what_the_proof_says(above: int, scale: float) -> None:
    # The step of ln P(split) from b = 1 + above to b + 1, against 1 / (scale (2 exp(above / scale)
    # - 1)).
    if above / scale > 30:
        return
    step = log_split(2 + above, scale) - log_split(1 + above, scale)
    allowed = 1 / scale / (2 * expm1(above / scale) + 1)
    assert step <= allowed * (1 + 1e-6) + 1e-13


@pytest.mark.unit
def test_cost_and_decay_by_hand() -> None:
    bound = Bound(AddRemoveUser(), 4**8, l1=UNITS, linf=UNITS)
    tree = PrivTree(3, scale=30 * UNITS, leaf_scale=2 * UNITS)
    assert tree.cost(bound) == PureDP(Fraction(15, 7) / 30 + Fraction(1, 2))
    assert PrivTree(0, scale=1, leaf_scale=UNITS).cost(bound) == PureDP(1)
    assert tree.decay == ceil(30 * UNITS * log(4)) + 1
    assert split_factor(16) < Fraction(7, 3)
    mechanism = PrivTreeMethod().mechanism(EPSILON, bound, Grid(8))
    assert float(mechanism.scale) == pytest.approx(2.1856 * UNITS / 0.5, rel=1e-4)


@pytest.mark.statistical
def test_the_root_splits_as_often_as_it_should(key: bytes) -> None:
    trials, levels = 40_000, 1
    grid = Grid(levels)
    # Groups are independent trees over the same public grid: one sample holds all trials.
    mechanism = PrivTree(levels, scale=2 * UNITS, leaf_scale=UNITS)
    sums = sums_of(np.tile([UNITS, 0, 0, 0], trials), grid, groups=trials)
    tree = mechanism.sample(sums, KeyedNoise(key))
    split = trials - tree.levels[0].codes.size
    shares = [exp(log_split(UNITS, scale * UNITS)) for scale in (2.0, 1.7, 2.4)]
    assert_share(split, trials, shares[0], rivals=[*shares[1:], 1 - shares[0]])


@pytest.mark.statistical
def test_a_level_below_is_biased_by_the_decay(key: bytes) -> None:
    trials = 40_000
    mechanism = PrivTree(2, scale=UNITS, leaf_scale=UNITS)
    count = 40 * UNITS  # the root always splits, the first quarter mostly, the empty ones by chance
    sums = sums_of(np.tile([count] + [0] * 15, trials), Grid(2), groups=trials)
    tree = mechanism.sample(sums, KeyedNoise(key))
    stopped = tree.levels[1].codes
    empty = trials * 3 - int(np.sum(stopped % 4 != 0))
    # An empty quarter stands at -decay: it splits with half of exp(-decay / scale), 1/8.
    share = exp(log_split(-mechanism.decay, UNITS))
    assert_share(
        empty, 3 * trials, share, rivals=[share * 4, exp(log_split(-mechanism.decay // 2, UNITS))]
    )


@pytest.mark.statistical
def test_leaves_have_their_law(key: bytes, rng: np.random.Generator) -> None:
    sums = town(rng, Grid(4), users=500, groups=100)
    mechanism = PrivTree(4, scale=UNITS // 100, leaf_scale=3 * UNITS)
    noise, sample = KeyedNoise(key), list[IntArray]()
    while sum(map(len, sample)) < 60_000:
        tree = mechanism.sample(sums, noise)
        sample += [one.values - sums.of_cells(one.level, one.codes) for one in tree.levels]
    rivals = [LaplaceLaw(factor * UNITS).cdf for factor in (2.65, 3.35)]
    assert_law(np.concatenate(sample), LaplaceLaw(3 * UNITS).cdf, rivals=rivals)


def covered(tree: NoisyTree, grid: Grid) -> IntArray:
    """How many leaves lie over each finest cell."""
    over = np.zeros(tree.groups * grid.size, dtype=np.int64)
    for one in tree.levels:
        many = 4 ** (grid.levels - one.level)
        over += np.repeat(np.isin(np.arange(tree.groups * 4**one.level), one.codes), many)
    return over


@pytest.mark.unit
@pytest.mark.parametrize("most", [1, 3, 4, 30, 2**20])
def test_leaves_cover_the_map_once_and_are_not_too_many(
    most: int, key: bytes, rng: np.random.Generator
) -> None:
    grid = Grid(5)
    sums = town(rng, grid, users=3000, groups=2)
    mechanism = PrivTree(5, scale=UNITS, leaf_scale=UNITS, most_leaves=most)
    tree = mechanism.sample(sums, KeyedNoise(key))
    assert np.all(covered(tree, grid) == 1)
    assert sum(one.codes.size for one in tree.levels) <= max(most, 2)
    assert all(np.all(np.diff(one.codes) > 0) for one in tree.levels)


class Counting(KeyedNoise):
    """Keyed noise that counts what is asked of it."""

    drawn = 0

    def laplace(self, scale: float | int | str | Fraction, size: int) -> IntArray:
        self.drawn += size
        return super().laplace(scale, size)


@pytest.mark.unit
def test_noise_is_drawn_for_visited_cells_only(key: bytes) -> None:
    grid = Grid(16)
    sums = CellSums(
        grid, np.array([12345], dtype=np.int64), np.array([10**4 * UNITS], dtype=np.int64)
    )
    noise = Counting(key)
    bound = Bound(AddRemoveUser(), grid.size, l1=UNITS, linf=UNITS)
    mechanism = PrivTreeMethod().mechanism(EPSILON, bound, grid)
    tree = mechanism.sample(sums, noise)
    leaves = sum(one.codes.size for one in tree.levels)
    # A tree with m splits has 3 m + 1 leaves; each split and each leaf decides once, each leaf is
    # counted.
    assert noise.drawn <= (leaves - 1) // 3 + 2 * leaves < 2000
    assert mechanism.draws(bound) > noise.drawn


@pytest.mark.unit
@pytest.mark.parametrize(
    ("levels", "most", "words"),
    [(-1, 4, "levels must be at least 0"), (3, 0, "most_leaves must be at least 1")],
)
def test_parameters_are_checked(levels: int, most: int, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        PrivTree(levels, scale=1, leaf_scale=1, most_leaves=most)
