"""Zoom: no path pays more than its budget, and what is paid depends on nothing but what was released."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.audit.twins import ExactPrices
from tests.heatmap.baselines.towns import release, sums_of, town

from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.heatmap import PyramidMethod, ZoomMethod, compare
from sfumato.heatmap.analysis.blur import smooth
from sfumato.heatmap.methods import Zoom, ZoomTree
from sfumato.heatmap.methods.noisy_sums import CentralNoise
from sfumato.heatmap.methods.zoom import PARTS, _Budget
from sfumato.heatmap.methods.zoom_tree import PricedLevel, dearest_path
from sfumato.heatmap.tiles import public_tiles
from sfumato.privacy import UNITS, AddRemoveUser, Bound, KeyedNoise, ReplaceUser
from sfumato.records import CellSums, bound_of_sums
from sfumato.spaces import Grid

IntArray = npt.NDArray[np.int64]
GRID = Grid(5)


def zoom_of(epsilon: Fraction, grid: Grid = GRID, *, groups: int = 1) -> Zoom:
    return ZoomMethod().mechanism(epsilon, bound_of_sums(grid, groups), grid)


def loss_of(tree: ZoomTree, zoom: Zoom, first: CellSums, second: CellSums) -> Fraction:
    """The logarithm of P(transcript | second) / P(transcript | first), by the law of every count in it."""
    found = Fraction(0)
    for one in tree.levels:
        a, b = (sums.of_cells(one.level, one.codes) for sums in (first, second))
        for price in np.unique(one.parts).tolist():
            here = one.parts == price
            nearer = np.abs(one.values[here] - a[here]) - np.abs(one.values[here] - b[here])
            found += int(nearer.sum()) / zoom.scale(price)
    return found


def with_user(sums: CellSums, cells: IntArray, units: IntArray) -> CellSums:
    dense = np.zeros(sums.groups * sums.grid.size, dtype=np.int64)
    dense[sums.codes] = sums.units
    np.add.at(dense, cells, units)
    return sums_of(dense, sums.grid, groups=sums.groups)


class Shifted:
    """Noise that was drawn for other data, moved so that every count comes out as it did there."""

    distance: Fraction | None = None
    known = True

    def __init__(self, tree: ZoomTree, zoom: Zoom, values: CellSums) -> None:
        self._queue = [
            (zoom.scale(price), one.values[here] - values.of_cells(one.level, one.codes[here]))
            for one in tree.levels
            for price in np.unique(one.parts).tolist()
            for here in [one.parts == price]
        ]

    def laplace(self, scale: Any, size: int) -> IntArray:
        wanted, draws = self._queue.pop(0)
        assert (scale, size) == (wanted, draws.size), "what is counted depends on the data"
        return np.asarray(draws)

    def gaussian(self, sigma: Any, size: int) -> IntArray:
        raise NotImplementedError

    rounded_gaussian = gaussian

    def uniform(self, below: int, size: int) -> list[int]:
        raise NotImplementedError


def equal(a: ZoomTree, b: ZoomTree) -> bool:
    return a.to_json() == b.to_json()


# --- what it costs ---


@pytest.mark.unit
@pytest.mark.parametrize("epsilon", ["1/10", "1", "10"])
def test_a_method_costs_at_most_epsilon_and_wastes_nothing(epsilon: str) -> None:
    asked = Fraction(epsilon)
    cost = zoom_of(asked).cost(bound_of_sums(GRID)).epsilon
    assert asked * (1 - Fraction(1, 2**40)) < cost <= asked
    # Noise bought part by part has at least the scale that is charged, whatever is rounded.
    zoom = zoom_of(asked)
    assert all(zoom.scale(parts) * parts >= zoom.part_scale for parts in range(1, PARTS + 1))


@pytest.mark.unit
def test_replacing_a_user_costs_twice() -> None:
    zoom = zoom_of(Fraction(1))
    moved = Bound(ReplaceUser(), GRID.size, l1=2 * UNITS)
    assert (
        zoom.cost(moved).epsilon
        == 2 * zoom.cost(Bound(AddRemoveUser(), GRID.size, l1=UNITS)).epsilon
    )


@pytest.mark.property
@pytest.mark.parametrize("epsilon", ["1/4", "1", "8"])
def test_every_path_pays_its_whole_budget_and_no_more(
    epsilon: str, key: bytes, rng: np.random.Generator
) -> None:
    zoom, noise = zoom_of(Fraction(epsilon), groups=2), KeyedNoise(key)
    for users in (0, 3, 300):
        tree = zoom.sample(town(rng, GRID, users=users, groups=2), noise)
        assert dearest_path(tree) == PARTS
        paid = np.zeros(2 * GRID.size, dtype=np.int64)
        for one in tree.levels:
            below = 4 ** (GRID.levels - one.level)
            inside = (one.codes[:, None] * below + np.arange(below)).ravel()
            np.add.at(paid, inside, np.repeat(one.parts, below))
        assert (paid == PARTS).all()  # a count of the same, and nobody's budget is left over


@pytest.mark.unit
def test_the_purse_refuses_what_a_cell_cannot_pay(key: bytes) -> None:
    zoom = zoom_of(Fraction(1))
    purse = _Budget(zoom, sums_of(np.zeros(GRID.size), GRID), CentralNoise(KeyedNoise(key)))
    cells, whole = np.arange(4), np.full(4, PARTS)
    for parts in (np.full(4, PARTS + 1), np.zeros(4, dtype=np.int64)):
        with pytest.raises(SolverFailed, match="nothing was released"):
            purse.count(1, cells, whole, parts)
    assert not purse.tree.levels
    purse.count(1, cells, whole, whole)
    # Somebody who forgot that it was spent is refused by the path.
    with pytest.raises(SolverFailed, match="more than its budget; nothing was released"):
        purse.count(2, np.arange(4), whole, np.ones(4, dtype=np.int64))
    assert len(purse.tree.levels) == 1


@pytest.mark.unit
def test_the_dearest_path_by_hand() -> None:
    one = PricedLevel(1, np.arange(4), np.zeros(4, np.int64), np.array([5, 1, 1, 1]))
    two = PricedLevel(2, np.array([0, 4, 5]), np.zeros(3, np.int64), np.array([2, 9, 3]))
    assert dearest_path(ZoomTree(1, Fraction(1), (one, two))) == 10


# --- what depends on what ---


@pytest.mark.property
def test_the_loss_of_a_transcript_is_at_most_epsilon(key: bytes, rng: np.random.Generator) -> None:
    """Users of any shape, on one path or on many: by the definition, transcript by transcript."""
    noise = KeyedNoise(key)
    for epsilon in (Fraction(1, 2), Fraction(4)):
        zoom = zoom_of(epsilon)
        for _ in range(4):
            sums = town(rng, GRID, users=int(rng.integers(1, 200)))
            cells = rng.choice(GRID.size, int(rng.integers(1, 9)), replace=False)
            units = rng.multinomial(UNITS, rng.dirichlet(np.ones(cells.size)))
            other = with_user(sums, cells, units)
            for data in (sums, other):
                tree = zoom.sample(data, noise)
                assert (
                    abs(loss_of(tree, zoom, sums, other)) <= zoom.cost(bound_of_sums(GRID)).epsilon
                )


@pytest.mark.unit
def test_the_loss_is_reached_by_a_user_in_one_place(key: bytes) -> None:
    """Nobody else is there: a transcript whose every count is above the user's loses all of epsilon."""
    zoom = zoom_of(Fraction(1))
    nobody = sums_of(np.zeros(GRID.size), GRID)
    one = with_user(nobody, np.array([17]), np.array([UNITS]))
    crowd = with_user(nobody, np.array([17]), np.array([10**4 * UNITS]))
    tree = zoom.sample(crowd, KeyedNoise(key))
    lost = loss_of(tree, zoom, nobody, one)
    assert Fraction(999, 1000) < lost / zoom.cost(bound_of_sums(GRID)).epsilon <= 1


@pytest.mark.property
def test_what_is_bought_depends_on_what_was_released_alone(
    key: bytes, rng: np.random.Generator
) -> None:
    """On other data with noise that gives the same counts, zoom buys the same cells for the same parts."""
    for epsilon in (Fraction(1), Fraction(6)):
        zoom = zoom_of(epsilon)
        sums = town(rng, GRID, users=150)
        tree = zoom.sample(sums, KeyedNoise(key))
        assert len(tree.levels) > 2  # it did adapt
        for users in (0, 1, 149, 1000):
            other = town(rng, GRID, users=users)
            assert equal(zoom.sample(other, Shifted(tree, zoom, other)), tree)


@pytest.mark.unit
def test_prices_from_exact_counts_are_noticed(key: bytes, rng: np.random.Generator) -> None:
    honest = zoom_of(Fraction(6))
    zoom = ExactPrices(honest.levels, part_scale=honest.part_scale)
    sums, other = (town(rng, GRID, users=users) for users in (150, 20))
    tree = zoom.sample(sums, KeyedNoise(key))
    with pytest.raises(AssertionError, match="depends on the data"):
        zoom.sample(other, Shifted(tree, zoom, other))


@pytest.mark.unit
def test_groups_are_followed_apart(key: bytes, rng: np.random.Generator) -> None:
    """A crowd in one map changes nothing of what is decided in another."""
    full, empty = town(rng, GRID, users=200), np.zeros(GRID.size, dtype=np.int64)
    dense = empty.copy()
    dense[full.codes] = full.units
    zoom = zoom_of(Fraction(4), groups=2)
    tree = zoom.sample(sums_of(np.concatenate([dense, empty]), GRID, groups=2), KeyedNoise(key))
    rich, poor = (tree.counts(group) for group in range(2))
    assert rich.finest > poor.finest
    maps = ZoomMethod().estimate(tree, GRID)
    assert maps[0].total > 5 * maps[1].total
    crowded = replace(
        tree,
        levels=tuple(
            replace(
                one, values=np.where(one.codes >> 2 * one.level == 0, 50 * one.values, one.values)
            )
            for one in tree.levels
        ),
    )
    cells = np.arange(16, 32)
    assert np.array_equal(zoom.masses(tree, 2, cells), zoom.masses(crowded, 2, cells))
    assert not np.allclose(zoom.masses(tree, 2, cells - 16), zoom.masses(crowded, 2, cells - 16))


@pytest.mark.unit
def test_less_noise_than_was_paid_for_is_refused(
    key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    zoom, true = zoom_of(Fraction(1)), Zoom.scale
    monkeypatch.setattr(Zoom, "scale", lambda self, parts: true(self, parts) / 2)
    with pytest.raises(SolverFailed, match="less than was paid for; nothing was released"):
        zoom.sample(sums_of(np.zeros(GRID.size), GRID), KeyedNoise(key))


@pytest.mark.unit
def test_what_could_not_be_run_is_refused_before_the_charge() -> None:
    for wrong in (
        {"worth": 10**400},
        {"crowd": Fraction(1, 10**400)},
        {"part_scale": Fraction(1, 1000)},
    ):
        with pytest.raises(InvalidParameter):
            Zoom(4, **{"part_scale": 64 * UNITS, **wrong})  # type: ignore[arg-type]
    # A map finer than what is counted is no reason to refuse.
    fine = Grid(14)
    assert (
        ZoomMethod().mechanism(Fraction(1), bound_of_sums(fine), fine).draws(bound_of_sums(fine))
        < 2**18
    )
    with pytest.raises(InvalidParameter, match="data of 4 levels cannot count data of 5"):
        Zoom(4, part_scale=64 * UNITS).sample(
            sums_of(np.zeros(GRID.size), GRID), KeyedNoise(bytes(32))
        )


# --- what comes out ---


@pytest.mark.unit
def test_without_noise_the_map_comes_back(key: bytes, rng: np.random.Generator) -> None:
    grid = Grid(6)
    sums = town(rng, grid, users=60)
    _, (tiles,) = release(ZoomMethod(), sums, noise=KeyedNoise(key), epsilon=Fraction(10**5))  # type: ignore[arg-type]
    found = compare(public_tiles(sums).image(), tiles.image(), grid)
    assert found.similarity > 0.99
    assert found.emd < 0.002


@pytest.mark.unit
def test_detail_below_the_blur_is_not_paid_for(key: bytes, rng: np.random.Generator) -> None:
    grid = Grid(8)
    sums = town(rng, grid, users=500)
    for blur, finest in ((0.02, 7), (0.1, 5), (1.0, 2)):
        method = ZoomMethod(blur=blur)
        assert method.finest(grid) == finest
        zoom = method.mechanism(Fraction(9), bound_of_sums(grid), grid)
        assert max(one.level for one in zoom.sample(sums, KeyedNoise(key)).levels) <= finest
    with pytest.raises(InvalidParameter, match="blur must lie in"):
        ZoomMethod(blur=0)


@pytest.mark.statistical
def test_zoom_is_better_than_the_pyramid_on_towns(key: bytes, rng: np.random.Generator) -> None:
    """Eight towns, epsilon 1: the mean difference in similarity is five of its standard errors at least."""
    grid, gains = Grid(7), []
    noise = KeyedNoise(key)
    for _ in range(8):
        sums = town(rng, grid, users=200)
        truth = smooth(public_tiles(sums).normalized().image(), 0.02)
        methods: tuple[Any, ...] = (ZoomMethod(), PyramidMethod())
        maps = [release(method, sums, noise=noise)[1][0] for method in methods]
        seen = [compare(truth, smooth(one.normalized().image(), 0.02), grid) for one in maps]
        gains.append(seen[0].similarity - seen[1].similarity)
    assert np.mean(gains) > 5 * np.std(gains, ddof=1) / np.sqrt(len(gains))


@pytest.mark.unit
def test_a_known_key_gives_known_parts() -> None:
    sums = sums_of(np.bincount([5, 5, 5, 9, 200, 201, 900], minlength=1024) * 20 * UNITS, GRID)
    tree = zoom_of(Fraction(2)).sample(sums, KeyedNoise(bytes(32), epoch=bytes(12)))
    assert [(one.level, one.codes.size, int(one.parts.sum())) for one in tree.levels] == KNOWN


KNOWN = [
    (2, 16, 256),
    (2, 11, 528),
    (3, 4, 192),
    (4, 16, 768),
    (3, 12, 76),
    (3, 6, 240),
    (4, 12, 540),
    (4, 12, 92),
    (4, 6, 180),
    (5, 12, 424),
    (5, 12, 92),
    (5, 12, 396),
]
