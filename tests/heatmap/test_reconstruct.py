"""The tree recursion against a linear program, and what of tied optima it chooses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from sfumato.errors import InvalidInput
from sfumato.heatmap.inference.tree_fit import objective, reconstruct
from sfumato.heatmap.methods.protocol import NoisyLevel, NoisyTree
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import UNITS
from sfumato.spaces import Grid

FloatArray = npt.NDArray[np.float64]


def tree_of(levels: dict[int, dict[int, int]], *, groups: int = 1, unit: int = UNITS) -> NoisyTree:
    """A tree written as {level: {code: count in users}}."""
    return NoisyTree(
        groups,
        tuple(
            NoisyLevel(
                level,
                np.array(sorted(cells), dtype=np.int64),
                np.array([cells[code] * unit for code in sorted(cells)], dtype=np.int64),
            )
            for level, cells in levels.items()
        ),
    )


def random_tree(rng: np.random.Generator) -> tuple[NoisyTree, Grid]:
    """Any tree that could be: skipped levels, groups, cells without selected quarters, ties, negatives."""
    levels, width, groups = (
        int(rng.integers(1, 8)),
        int(rng.integers(1, 41)),
        int(rng.integers(1, 4)),
    )
    first = int(rng.integers(0, min(levels, 2) + 1))
    last = int(rng.integers(first, levels + 1)) if rng.random() < 0.2 else levels
    ties = rng.random() < 0.5
    noise = float(np.exp(rng.uniform(-3, 3)))
    cells = np.arange(groups << 2 * first, dtype=np.int64)
    mass = rng.gamma(0.3, 30.0, cells.size)
    found = []
    for level in range(first, last + 1):
        if level > first:
            shares = rng.dirichlet(np.full(4, 0.3), cells.size)
            mass = (mass[:, None] * shares).ravel()
            cells = (4 * cells[:, None] + np.arange(4)).ravel()
        noisy = mass + rng.laplace(scale=noise, size=mass.size)
        # Sometimes the heaviest, as the mechanism selects; sometimes any, which leaves selected
        # cells barren.
        order = np.argsort(-noisy) if rng.random() < 0.7 else rng.permutation(cells.size)
        kept = np.sort(order[: min(width * groups, cells.size)])
        cells, mass, noisy = cells[kept], mass[kept], noisy[kept]
        counts = np.rint(noisy) * UNITS if ties else np.rint(noisy * UNITS)
        found.append(NoisyLevel(level, cells, counts.astype(np.int64)))
    return NoisyTree(groups, tuple(found)), Grid(levels)


class Program(NamedTuple):
    """Least prices x + weights |counts - inside x| over x >= 0."""

    inside: Any
    prices: FloatArray
    counts: FloatArray
    weights: FloatArray


def least(programs: list[Program]) -> list[float]:
    """The least of each, by HiGHS: they share no variable, so one call solves all of them."""
    rows, prices, counts = [], [], []
    for one in programs:
        n = one.counts.size
        rows.append(sp.hstack([one.inside, -sp.eye(n), sp.eye(n)]))
        prices.append(np.concatenate([one.prices, one.weights, one.weights]))
        counts.append(one.counts)
    whole: Any = sp.block_diag(rows, format="csr")
    solved = linprog(
        np.concatenate(prices),
        A_eq=whole,
        b_eq=np.concatenate(counts),
        bounds=(0, None),
        method="highs-ds",
    )
    assert solved.status == 0
    assert solved.x is not None
    ends = np.cumsum([len(one) for one in prices])[:-1]
    return [
        float(price @ part) for price, part in zip(prices, np.split(solved.x, ends), strict=True)
    ]


def program_of(tree: NoisyTree, grid: Grid) -> Program:
    """The objective, with a variable for each quarter left out and each selected finest cell."""
    selected = [
        {int(code): int(value) for code, value in zip(one.codes, one.values, strict=True)}
        for one in tree.levels
    ]
    cells = [(one.level, int(code)) for one in tree.levels for code in one.codes]
    number = {cell: row for row, cell in enumerate(cells)}
    first, last = tree.levels[0].level, tree.levels[-1].level
    rows: list[int] = []
    columns: list[int] = []
    prices: list[float] = []
    for level, code in number:
        if level == grid.levels:
            free, price = [(level, code)], 0.0
        else:
            quarters = [(level + 1, 4 * code + k) for k in range(4)]
            free = [cell for cell in quarters if cell not in number]
            price = sum(2.0**-j for j in range(level + 1, grid.levels + 1))
        for _ in free:
            for up in range(first, min(level, last) + 1):
                rows.append(number[up, code >> 2 * (level - up)])
                columns.append(len(prices))
            prices.append(price)
    n = len(number)
    inside = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, len(prices)))
    weights = np.array([2.0**-level for level, _ in number])
    counts = np.array([selected[level - first][code] for level, code in number]) / UNITS
    return Program(inside, np.array(prices), counts, weights)


def program_by_definition(tree: NoisyTree, grid: Grid) -> Program:
    """The objective over the mass of every finest cell: line 9 of the paper as it stands."""
    first, size = tree.levels[0].level, tree.groups * grid.size
    blocks, counts, weights = [], [], []
    for level in range(first, grid.levels + 1):
        cells = tree.groups << 2 * level
        below = grid.size >> 2 * level
        blocks.append(sp.kron(sp.eye(cells), np.ones((1, below))))
        level_counts = np.zeros(cells)
        for one in tree.levels:
            if one.level == level:
                level_counts[one.codes] = one.values / UNITS
        counts.append(level_counts)
        weights.append(np.full(cells, 2.0**-level))
    pyramid: Any = sp.vstack(blocks)
    return Program(pyramid, np.zeros(size), np.concatenate(counts), np.concatenate(weights))


@pytest.mark.reference
def test_the_recursion_is_the_linear_program(rng: np.random.Generator) -> None:
    for _ in range(100):
        trees = [random_tree(rng) for _ in range(10)]
        wanted = least([program_of(*one) for one in trees])
        for (tree, grid), found in zip(trees, wanted, strict=True):
            ours = objective(tree, reconstruct(tree, grid), grid=grid)
            assert float(ours) == pytest.approx(found, rel=1e-9, abs=1e-12)


@pytest.mark.reference
def test_the_small_program_is_the_one_of_the_paper(rng: np.random.Generator) -> None:
    checked = 0
    while checked < 60:
        tree, grid = random_tree(rng)
        if grid.levels > 3:
            continue
        checked += 1
        wanted, found = least([program_by_definition(tree, grid), program_of(tree, grid)])
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)
        ours = objective(tree, reconstruct(tree, grid), grid=grid)
        assert float(ours) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@pytest.mark.property
def test_no_small_move_of_mass_is_better(rng: np.random.Generator) -> None:
    """The problem is convex, so a map that no move improves is best: a check that needs no solver."""
    for _ in range(60):
        tree, grid = random_tree(rng)
        best = reconstruct(tree, grid)
        least = objective(tree, best, grid=grid)
        for _ in range(8):
            group = int(rng.integers(tree.groups))
            moved = list(best)
            tiles = best[group]
            masses = tiles.masses * np.where(
                rng.random(tiles.masses.size) < 0.3, rng.uniform(0, 1), 1.0
            )
            level = int(rng.integers(grid.levels + 1))
            moved[group] = Tiles(
                grid,
                np.append(tiles.levels, level),
                np.append(tiles.codes, rng.integers(1 << 2 * level)),
                np.append(masses, rng.exponential(rng.choice([0.01, 1.0]))),
            )
            assert objective(tree, tuple(moved), grid=grid) >= least * (1 - Fraction(1, 10**12))


@pytest.mark.unit
def test_the_objective_by_hand() -> None:
    tree, grid = tree_of({0: {0: 5}, 1: {1: 2}}), Grid(2)
    # One user on the whole area, two on quarter 1: |5 - 3| + (|2 - 9/4| + 3/4) / 2 + 3 / 4.
    tiles = Tiles(grid, np.array([0, 1]), np.array([0, 1]), np.array([1.0, 2.0]))
    assert objective(tree, (tiles,), grid=grid) == 2 + Fraction(1, 2) + Fraction(3, 4)
    nothing = Tiles(grid, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    assert objective(tree, (nothing,), grid=grid) == 6


@pytest.mark.unit
def test_tied_quarters_share_alike_in_proportion() -> None:
    (tiles,) = reconstruct(tree_of({0: {0: 6}, 1: {0: 2, 1: 4, 2: 6, 3: -1}}), Grid(1))
    assert tiles.masses.tolist() == [1.0, 2.0, 3.0]
    assert tiles.codes.tolist() == [0, 1, 2]


@pytest.mark.unit
def test_mass_that_nothing_claims_is_spread_over_the_cell() -> None:
    (tiles,) = reconstruct(tree_of({0: {0: 10}, 1: {2: 4}}), Grid(3))
    assert (tiles.levels.tolist(), tiles.codes.tolist(), tiles.masses.tolist()) == (
        [0, 1],
        [0, 2],
        [6.0, 4.0],
    )
    assert tiles.values(1).tolist() == [1.5, 1.5, 5.5, 1.5]


@pytest.mark.unit
def test_the_total_is_what_the_top_says() -> None:
    """The count of a first cell outweighs all that lies below it."""
    tree = tree_of({1: {0: 7, 1: -3, 2: 0, 3: 2}, 2: {0: 20, 5: 9, 12: 1}})
    (tiles,) = reconstruct(tree, Grid(2))
    assert tiles.values(1).tolist() == [7.0, 0.0, 0.0, 2.0]
    assert tiles.total == 9.0


@pytest.mark.unit
def test_groups_are_solved_apart(rng: np.random.Generator) -> None:
    tree, grid = random_tree(rng)
    while tree.groups < 3:
        tree, grid = random_tree(rng)
    together = reconstruct(tree, grid)
    for group, tiles in enumerate(together):
        alone = []
        for one in tree.levels:
            mine = one.codes >> 2 * one.level == group
            alone.append(
                NoisyLevel(one.level, one.codes[mine] - (group << 2 * one.level), one.values[mine])
            )
        (wanted,) = reconstruct(NoisyTree(1, tuple(alone)), grid)
        assert tiles.levels.tolist() == wanted.levels.tolist()
        assert tiles.codes.tolist() == wanted.codes.tolist()
        assert tiles.masses.tolist() == wanted.masses.tolist()


@pytest.mark.unit
def test_nothing_is_a_map_of_nothing() -> None:
    for tree in (
        tree_of({}, groups=2),
        tree_of({0: {}}, groups=2),
        tree_of({0: {0: -4, 1: 0}}, groups=2),
    ):
        maps = reconstruct(tree, Grid(3))
        assert [tiles.total for tiles in maps] == [0.0, 0.0]
        assert objective(tree, maps, grid=Grid(3)) == (
            4 if tree.levels and tree.levels[0].codes.size else 0
        )


@pytest.mark.unit
def test_the_largest_counts_do_not_wrap() -> None:
    tree = tree_of({0: {0: 2**61}, 1: dict.fromkeys(range(4), 2**61)}, unit=1)
    (tiles,) = reconstruct(tree, Grid(1))
    assert tiles.masses.tolist() == [2.0**39] * 4


@pytest.mark.unit
@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (
            tree_of({0: {0: 1}, 2: {0: 1}}),
            r"must follow one another down to at most 2, got \[0, 2\]",
        ),
        (tree_of({2: {0: 1}, 3: {0: 1}}), r"down to at most 2, got \[2, 3\]; no map was made"),
        (tree_of({1: {0: 1}, 2: {4: 1}}), "lie in a cell of the level above; no map was made"),
        (tree_of({1: {1: 1}, 2: {3: 1}}), "lie in a cell of the level above"),
        (tree_of({1: {4: 1}}), "lie in a cell of the level above"),
        (tree_of({1: {-1: 1}}), "lie in a cell of the level above"),
        (
            NoisyTree(1, (NoisyLevel(1, np.array([1, 0]), np.array([1, 1])),)),
            "the cells of a tree must increase",
        ),
        (
            NoisyTree(1, (NoisyLevel(1, np.array([1, 1]), np.array([1, 1])),)),
            "the cells of a tree must increase",
        ),
        (
            NoisyTree(1, (NoisyLevel(1, np.array([0, 1]), np.array([1])),)),
            "one count for each cell",
        ),
    ],
    ids=range(9),
)
def test_what_is_no_tree_is_refused(tree: NoisyTree, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        reconstruct(tree, Grid(2))
