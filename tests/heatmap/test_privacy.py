"""Every mechanism on cell sums: its cost, what it draws, and what an event can tell of one user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import e
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.chance import LEVEL, assert_law
from tests.heatmap.baselines.towns import sums_of, town
from tests.records.plain import opened

from sfumato.errors import InvalidParameter
from sfumato.heatmap import PyramidMethod, ZoomMethod, check_ins, release
from sfumato.heatmap.methods import (
    JointMechanism,
    PrivateBounds,
    Pyramid,
    Zoom,
    ZoomTree,
    baselines,
)
from sfumato.heatmap.methods.baselines import (
    AdaptiveGrid,
    FlatGaussian,
    FlatLaplace,
    HierarchyLaplace,
    PrivTree,
)
from sfumato.heatmap.methods.protocol import NoisyLevel, NoisyTree
from sfumato.heatmap.methods.zoom_tree import PricedLevel
from sfumato.privacy import (
    REHEARSAL,
    UNITS,
    ApproxDP,
    Joint,
    KeyedNoise,
    LaplaceLaw,
    Ledger,
    Loss,
    Mechanism,
    PureDP,
)
from sfumato.records import CellSums, Columns, bound_of_sums, guard_sums, open_table, sum_cells
from sfumato.spaces import Grid, area_in_degrees, area_of_plane

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
U = UNITS


# --- what they cost ---

GAUSSIAN = FlatGaussian.within(ApproxDP(1, "1e-6"), bound_of_sums(Grid(4)), level=4)
BY_HAND: list[tuple[Mechanism[CellSums, Any], Loss]] = [
    (Pyramid((Fraction(2 * U), Fraction(4 * U), Fraction(8 * U)), 1, 4), PureDP("7/8")),
    (FlatLaplace(4, 2 * U), PureDP("1/2")),
    (FlatLaplace(2, 2 * U), PureDP("1/2")),
    (GAUSSIAN, ApproxDP(1, "1e-6")),
    (HierarchyLaplace(2, 4, scale=4 * U), PureDP("3/4")),
    (AdaptiveGrid(4, total_scale=8 * U, first_scale=4 * U, second_scale=2 * U), PureDP("7/8")),
    # Four levels are asked: 1 + 1 + 1/7 + 1/31 of what one decision costs; then the leaves.
    (PrivTree(4, scale=4 * U, leaf_scale=2 * U), PureDP(Fraction(472, 217) / 4 + Fraction(1, 2))),
    (PrivateBounds(Fraction(4 * U)), PureDP("1/2")),
    (Zoom(4, part_scale=128 * U), PureDP("1/2")),
    # What parties that are not curious add is the noise of one hand.
    (JointMechanism(Zoom(4, part_scale=128 * U), Joint(3)), PureDP("1/2")),
]  # fmt: skip


@pytest.mark.unit
@pytest.mark.parametrize(("mechanism", "cost"), BY_HAND, ids=lambda one: getattr(one, "name", ""))
@pytest.mark.parametrize("groups", [1, 3])
def test_costs_by_hand_whatever_the_number_of_groups(
    mechanism: Mechanism[CellSums, Any], cost: Loss, groups: int
) -> None:
    assert mechanism.cost(bound_of_sums(Grid(4), groups)) == cost


@pytest.mark.unit
def test_every_mechanism_is_here() -> None:
    from tests.docs.test_proofs import NAMES

    on_vectors = {
        "discrete-gaussian/1",
        "discrete-laplace/1",
        "flipped-dyads/1",
        "permute-and-flip/1",
        "randomised-response/1",
        "shared-laplace/1",
    }
    # Devices answer alone or through a shuffler: tests/heatmap/local and tests/heatmap/shuffled have these.
    on_devices = {"local-answer/1", "shuffled/1"}
    named = {mechanism.name for mechanism, _ in BY_HAND}
    assert named == set(NAMES) - on_vectors - on_devices - {"rounded-gaussian/1"}
    # A joint map is seen with a party's own share: tests/audit/curious.py has its events.
    assert {one.mechanism.name for one in EVENTS} == named - {"joint/1"}


# --- what they draw ---


class Counting(KeyedNoise):
    """Keyed noise that writes down what is asked of it."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key)
        self.calls: list[tuple[str, Any, int]] = []

    def laplace(self, scale: Any, size: int) -> IntArray:
        self.calls.append(("laplace", scale, size))
        return super().laplace(scale, size)

    def gaussian(self, sigma: Any, size: int) -> IntArray:
        self.calls.append(("gaussian", sigma, size))
        return super().gaussian(sigma, size)

    @property
    def drawn(self) -> int:
        return sum(size for _, _, size in self.calls)


METHODS: list[Any] = [
    ZoomMethod(),
    PyramidMethod(),
    baselines.FlatMethod(),
    baselines.TopMethod(),
    baselines.GaussianMethod(),
    baselines.CoarseMethod(),
    baselines.HierarchyMethod(),
    baselines.AdaptiveGridMethod(),
    baselines.PrivTreeMethod(),
]
GRID = Grid(4)
# The others look where noisy counts send them: how much they draw is part of what they release.
ADAPTIVE = ("adaptive", "privtree", "zoom")


def calls_of(
    mechanism: Mechanism[CellSums, Any], sums: CellSums, key: bytes
) -> list[tuple[str, Any, int]]:
    noise = Counting(key)
    mechanism.sample(sums, noise)
    assert 0 < noise.drawn <= mechanism.draws(bound_of_sums(sums.grid, sums.groups))
    return noise.calls


def towns(rng: np.random.Generator, groups: int) -> list[CellSums]:
    """Nobody, one user, a few, and very many in one place."""
    crowd = np.zeros(groups * GRID.size)
    crowd[7] = 10**6 * U
    return [
        *(town(rng, GRID, users=users, groups=groups) for users in (0, 1, 40)),
        sums_of(crowd, GRID, groups=groups),
    ]


@pytest.mark.unit
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("groups", [1, 3])
def test_draws_are_at_most_those_stated_and_blind_where_that_is_promised(
    method: Any, groups: int, key: bytes, rng: np.random.Generator
) -> None:
    mechanism = method.mechanism(Fraction(1), bound_of_sums(GRID, groups), GRID)
    calls = [calls_of(mechanism, sums, key) for sums in towns(rng, groups)]
    if method.name not in ADAPTIVE:
        assert all(one == calls[0] for one in calls), "what is drawn depends on the data"


@pytest.mark.unit
@pytest.mark.parametrize("groups", [1, 3])
def test_strips_draw_the_same_for_all_data(
    groups: int, key: bytes, rng: np.random.Generator
) -> None:
    calls = [calls_of(PrivateBounds(Fraction(U)), sums, key) for sums in towns(rng, groups)]
    assert calls == [[("laplace", Fraction(U), 2 * GRID.side)]] * 4


@pytest.mark.unit
@pytest.mark.parametrize(
    ("mechanism", "times"),
    [
        (PyramidMethod(width=8).mechanism(Fraction(1), bound_of_sums(GRID), GRID), 1),
        (baselines.FlatMethod().mechanism(Fraction(1), bound_of_sums(GRID), GRID), 1),
        (baselines.CoarseMethod().mechanism(Fraction(1), bound_of_sums(GRID), GRID), 1),
        (baselines.HierarchyMethod().mechanism(Fraction(1), bound_of_sums(GRID), GRID), 1),
        (PrivateBounds(Fraction(2 * U)), 2),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_what_is_drawn_is_what_is_charged(
    mechanism: Mechanism[CellSums, Any], times: int, key: bytes, rng: np.random.Generator
) -> None:
    """Each draw is over disjoint cells (strips: twice over) and costs l1 / scale: together the whole cost."""
    calls = calls_of(mechanism, town(rng, GRID, users=40), key)
    drawn = sum((times * U / Fraction(scale) for _, scale, _ in calls), Fraction(0))
    assert mechanism.cost(bound_of_sums(GRID)) == PureDP(drawn)


@pytest.mark.statistical
@pytest.mark.parametrize("level", [0, 1, 2])
def test_every_level_of_a_pyramid_has_its_law(level: int, key: bytes) -> None:
    """With room for all cells nothing is selected; of nobody, the counts are the noise."""
    scales = (Fraction(2 * U), Fraction(3 * U), Fraction(4 * U))
    groups = 50_000 >> 2 * level
    tree = Pyramid(scales, 0, 16).sample(
        sums_of(np.zeros(16 * groups), Grid(2), groups=groups), KeyedNoise(key)
    )
    law = [
        LaplaceLaw(factor * scales[level]).cdf for factor in (1, Fraction(9, 10), Fraction(11, 10))
    ]
    assert_law(tree.levels[level].values, law[0], rivals=law[1:])


# --- what an event can tell ---


class Quieter(KeyedNoise):
    """The rival: noise of less scale than was charged."""

    def __init__(self, key: bytes, factor: Fraction) -> None:
        super().__init__(key)
        self.factor = factor

    def laplace(self, scale: Any, size: int) -> IntArray:
        return super().laplace(float(self.factor * Fraction(scale)), size)

    def gaussian(self, sigma: Any, size: int) -> IntArray:
        return super().gaussian(float(self.factor * Fraction(sigma)), size)


@dataclass(frozen=True)
class Event:
    """A mechanism of epsilon 1 and an event that is likelier with one user than without by nearly e**1.

    `seen` runs many trials of sums with (True) or without the user, and says of each whether it
    happened.
    """

    mechanism: Mechanism[CellSums, Any]
    seen: Callable[[Mechanism[CellSums, Any], bool, KeyedNoise], BoolArray]
    delta: float = 0.0


TWO = Grid(2)
BOUND = bound_of_sums(TWO)
CROWD, USER = np.zeros((2, 16), dtype=np.int64)
CROWD[4:6] = 40 * U  # two cells of quarter 1, never lost from sight
USER[4:6] = U // 2
ONE = Fraction(1)
LOOSE = ApproxDP(1, "1/10")  # at delta 1e-6 no event that a test can see is near its bound


def in_groups(
    mechanism: Mechanism[CellSums, Any], units: IntArray, noise: KeyedNoise, *, trials: int = 80_000
) -> NoisyTree | ZoomTree:
    """One release of many groups of 16 cells: each has noise of its own, so each is a trial."""
    guarded = guard_sums(sums_of(np.tile(units, trials), TWO, groups=trials), source=REHEARSAL)
    tree = Ledger.rehearsal(LOOSE).release(mechanism, guarded, noise=noise).value
    assert isinstance(tree, NoisyTree | ZoomTree)
    return tree


def counts(one: NoisyLevel | PricedLevel, cell: int, groups: int) -> IntArray:
    """The noisy count of a cell in every group; far below all others where it was not released."""
    out = np.full(groups, -(2**62), dtype=np.int64)
    mine = one.codes % 4**one.level == cell
    out[one.codes[mine] >> 2 * one.level] = one.values[mine]
    return out


def above(
    *places: tuple[int, int],
) -> Callable[[Mechanism[CellSums, Any], bool, KeyedNoise], BoolArray]:
    """Each of these cells, (number of its level in the tree, code), reaches its count with the user."""

    def seen(mechanism: Mechanism[CellSums, Any], there: bool, noise: KeyedNoise) -> BoolArray:
        tree = in_groups(mechanism, CROWD + USER * there, noise)
        reached = []
        for at, cell in places:
            one = tree.levels[at]
            wanted = int((CROWD + USER).reshape(4**one.level, -1)[cell].sum())
            reached.append(counts(one, cell, tree.groups) >= wanted)
        return np.asarray(np.all(reached, axis=0))

    return seen


def splits(mechanism: Mechanism[CellSums, Any], there: bool, noise: KeyedNoise) -> BoolArray:
    """Nobody else is there; root and quarter 1 split, and its two cells reach the user's mass."""
    finest = (tree := in_groups(mechanism, USER * there, noise, trials=300_000)).levels[2]
    return np.asarray(
        np.all([counts(finest, cell, tree.groups) >= U // 2 for cell in (4, 5)], axis=0)
    )


def crossed(mechanism: Mechanism[CellSums, Any], there: bool, noise: KeyedNoise) -> BoolArray:
    """A column and a row reach the user's mass: each column of a large grid, with its row, is a trial."""
    grid = Grid(12)
    place = np.arange(grid.side)
    diagonal = np.sort(grid.encode(place, place))
    sums = CellSums(grid, diagonal, np.full(grid.side, U * (1 + there), dtype=np.int64))
    ledger, seen = Ledger.rehearsal(PureDP(10)), []
    for _ in range(10):
        strips = ledger.release(mechanism, guard_sums(sums, source=REHEARSAL), noise=noise).value
        seen.append(np.all(strips.reshape(2, grid.side) >= 2 * U, axis=0))
    return np.concatenate(seen)


def method_of(method: Any) -> Any:
    return method.mechanism(ONE, BOUND, TWO)


EVENTS = [
    Event(method_of(PyramidMethod(width=4)), above((0, 1), (1, 4), (1, 5))),
    Event(method_of(baselines.FlatMethod()), above((0, 4), (0, 5))),
    Event(HierarchyLaplace(1, 2, scale=2 * U), above((0, 1), (1, 4), (1, 5))),
    Event(FlatGaussian.within(LOOSE, BOUND, level=1), above((0, 1)), delta=0.1),
    Event(method_of(baselines.PrivTreeMethod(most_leaves=2**40)), splits),
    # Its total, a tenth of epsilon, is of all groups; the event is in its two grids, both of level
    # 2.
    Event(method_of(baselines.AdaptiveGridMethod()), above((1, 4), (1, 5), (2, 4), (2, 5))),
    Event(PrivateBounds(Fraction(2 * U)), crossed),
    # On a map of 16 cells there is nothing to zoom into: all parts are for its cells.
    Event(method_of(ZoomMethod()), above((0, 4), (0, 5))),
]


def excess(event: Event, key: bytes, factor: Fraction) -> float:
    """By how much P(with) exceeds e P(without) + delta at least, or the reverse; also of the complement.

    Probabilities are Clopper-Pearson bounds from both samples, low of the one and high of the
    other.
    """
    with_user, without = (
        event.seen(event.mechanism, there, Quieter(bytes([there]) + key[1:], factor))
        for there in (True, False)
    )
    worst = -1.0
    for one, other in (
        (with_user, without),
        (without, with_user),
        (~with_user, ~without),
        (~without, ~with_user),
    ):
        low, high = (
            stats.binomtest(int(seen.sum()), seen.size).proportion_ci(1 - LEVEL, method="exact")
            for seen in (one, other)
        )
        worst = max(worst, float(low.low - e * high.high - event.delta))
    return worst


@pytest.mark.statistical
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.mechanism.name)
def test_an_event_tells_no_more_than_epsilon(event: Event, key: bytes) -> None:
    cost = event.mechanism.cost(BOUND)
    assert cost == LOOSE or near_one(cost)
    assert excess(event, key, ONE) <= 0, "an event tells more than e**epsilon"
    # The same event catches six tenths of the noise: the test could have failed.
    assert excess(event, key[::-1], Fraction(3, 5)) > 0, (
        "the event cannot tell noise of 0.6 the scale"
    )


def near_one(cost: Loss) -> bool:
    """Epsilon 1, short of it by the roundings of scales to doubles."""
    return isinstance(cost, PureDP) and 1 - Fraction(1, 2**50) <= cost.epsilon <= 1


# --- what one user moves ---

PLACE = st.one_of(
    st.floats(-1.2, 3.2), st.sampled_from([None, float("nan"), float("inf"), -1.0, 3.0, 1e300])
)
GROUP = st.sampled_from(["a", "b", "c", "z", None])
ROW = st.tuples(PLACE, PLACE, GROUP, st.one_of(st.none(), st.integers(-2, 2**62)))
SMALL = area_of_plane((-1.0, -1.0, 3.0, 2.0), 2)


def summed(rows: list[tuple[Any, ...]], weight: str | None, *, grouped: bool) -> dict[int, int]:
    kinds = {
        "user": pa.int64(),
        "x": pa.float64(),
        "y": pa.float64(),
        "by": pa.string(),
        "w": pa.int64(),
    }
    table = pa.table(
        {
            name: pa.array([row[at] for row in rows], kind)
            for at, (name, kind) in enumerate(kinds.items())
        }
    )
    columns = Columns("user", "x", "y", weight=weight, by="by" if grouped else None)
    groups = ["a", "b", "c"] if grouped else None
    return opened(sum_cells(open_table(table), columns, SMALL, source="test", groups=groups))


def moved(rows: list[tuple[Any, ...]], weight: str | None, *, grouped: bool) -> int:
    """How far adding user 0 moves the sums, in l1 over all cells of all groups."""
    before = summed([row for row in rows if row[0]], weight, grouped=grouped)
    after = summed(rows, weight, grouped=grouped)
    return sum(
        abs(after.get(cell, 0) - before.get(cell, 0)) for cell in before.keys() | after.keys()
    )


def as_rows(
    others: list[tuple[int, tuple[Any, ...]]], own: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    return [(user, *row) for user, row in others] + [(0, *row) for row in own]


OTHERS = st.lists(st.tuples(st.integers(1, 3), ROW), max_size=12)
OWN = st.lists(ROW, min_size=1, max_size=12)
WEIGHT = st.sampled_from([None, "w"])


@pytest.mark.property
@settings(max_examples=15)
@given(others=OTHERS, own=OWN, weight=WEIGHT)
def test_a_user_more_moves_one_map_by_at_most_units(
    others: list[tuple[int, tuple[Any, ...]]], own: list[tuple[Any, ...]], weight: str | None
) -> None:
    assert moved(as_rows(others, own), weight, grouped=False) <= U


@pytest.mark.property
@settings(max_examples=15)
@given(others=OTHERS, own=OWN, weight=WEIGHT)
def test_a_user_more_moves_all_maps_together_by_at_most_units(
    others: list[tuple[int, tuple[Any, ...]]], own: list[tuple[Any, ...]], weight: str | None
) -> None:
    assert moved(as_rows(others, own), weight, grouped=True) <= U


HERE: list[tuple[Any, ...]] = [(0, 0.5, 0.5, "a", 1), (0, 2.5, 0.5, "b", 1), (1, 0.5, 0.5, "a", 1)]


@pytest.mark.unit
def test_a_user_with_two_rows_moves_one_map_by_all_of_units() -> None:
    """The bound is kept, and not loose: half of the mass in each of two cells."""
    assert moved(HERE, None, grouped=False) == U


@pytest.mark.unit
def test_a_user_on_two_maps_moves_both_together_by_all_of_units() -> None:
    assert moved(HERE, None, grouped=True) == U


# --- what a map shows besides ---

AREA = area_in_degrees((11.20, 43.74, 11.32, 43.81), 4)


@pytest.mark.unit
@pytest.mark.parametrize("users", [0, 1, 300])
def test_the_area_of_a_map_is_the_one_that_was_asked_for(
    users: int, tmp_path: Path, rng: np.random.Generator
) -> None:
    rows = check_ins(users, bounds=AREA.bounds, rng=rng)
    ledger = Ledger.create(tmp_path / "city.ledger", PureDP(1), unit="user", source="city")
    made = release(rows, Columns("user", "lon", "lat"), AREA, ledger=ledger, epsilon=1)
    assert made.area == AREA, "the area follows the data"
    assert made.tiles.grid == AREA.grid, "the grid follows the data"


@pytest.mark.unit
@pytest.mark.parametrize(
    "mechanism",
    [
        baselines.FlatLaplace(3, U),
        baselines.HierarchyLaplace(0, 3, scale=U),
        PrivTree(3, scale=U, leaf_scale=U),
        AdaptiveGrid(3, total_scale=U, first_scale=U, second_scale=U),
    ],
    ids=lambda one: one.name,
)
def test_a_level_finer_than_the_data_is_refused_before_the_charge(mechanism: Any) -> None:
    sums = CellSums(Grid(1), np.array([0]), np.array([U]))
    ledger = Ledger.rehearsal(PureDP(9))
    with pytest.raises(
        InvalidParameter, match="counts 64 cells, the data has 4; nothing was charged"
    ):
        ledger.release(mechanism, guard_sums(sums, source=REHEARSAL))
    assert not ledger.statement().entries
    with pytest.raises(InvalidParameter, match="level must be"):
        sums.of_level(3)
