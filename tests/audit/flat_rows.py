"""Outputs of the package's mechanisms as flat rows, with all in them that a user would get."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.heatmap.methods.protocol import NoisyTree
from sfumato.privacy import Noise
from sfumato.privacy.ledger.guarded import LARGEST
from sfumato.records import CellSums
from sfumato.spaces import Grid

IntArray = npt.NDArray[np.int64]

MISSING = -(2**50)
"""Stands for a cell that was not released; no count here comes near it."""


def many(mechanism: Any, data: Any, runs: int, noise: Noise) -> npt.NDArray[Any]:
    """Rows of a mechanism that treats every entry alike: one long vector is many short ones."""
    values = np.asarray(data, dtype=np.int64)
    released = mechanism.sample(np.tile(values, runs), noise).reshape(runs, -1)
    return np.asarray(released - ends_of(values))


def ends_of(values: IntArray) -> IntArray:
    """The end of the range that each value is near, else 0: doubles only tell integers to 2**53.

    A public shift, the same for both inputs of a pair, so it takes nothing away.
    """
    return np.asarray(np.where(np.abs(values) > 2**52, np.sign(values) * LARGEST, 0))


def one_by_one(mechanism: Any, data: Any, runs: int, noise: Noise) -> npt.NDArray[Any]:
    """Rows of a mechanism on vectors, run by run."""
    values = np.asarray(data, dtype=np.int64)
    return np.array([mechanism.sample(values, noise) for _ in range(runs)])


def maps(mechanism: Any, data: Any, runs: int, noise: Noise) -> npt.NDArray[Any]:
    """Rows of a mechanism that treats every map of a group alike: each group is one run."""
    return listed(mechanism.sample(sums_of(data, runs), noise))


def map_by_map(mechanism: Any, data: Any, runs: int, noise: Noise) -> npt.NDArray[Any]:
    """Rows of a mechanism whose groups share something, run by run."""
    sums = sums_of(data)
    found = [mechanism.sample(sums, noise) for _ in range(runs)]
    return (
        np.concatenate([listed(tree) for tree in found])
        if isinstance(found[0], NoisyTree)
        else np.array(found)
    )


def shapes(mechanism: Any, data: Any, runs: int, noise: Noise) -> npt.NDArray[Any]:
    """Rows of a mechanism that decides itself which cells to release; each group is one run."""
    return scattered(mechanism.sample(sums_of(data, runs), noise), mechanism.levels)


def shape_by_shape(mechanism: Any, data: Any, runs: int, noise: Noise) -> npt.NDArray[Any]:
    """The same of an adaptive grid, run by run: the total, the first grid, and what it was cut into."""
    sums, found = sums_of(data), []
    for _ in range(runs):
        total, first, *rest = mechanism.sample(sums, noise).levels
        parts = [
            scattered(NoisyTree(1, levels), mechanism.levels) for levels in ((first,), tuple(rest))
        ]
        found.append(np.concatenate([total.values, *(part[0] for part in parts)]))
    return np.array(found)


def zooms(mechanism: Any, data: Any, runs: int, noise: Noise) -> npt.NDArray[Any]:
    """Rows of a zoom from the root to its quarters, a row for each group: every count and what it cost."""
    return zoom_rows(mechanism.sample(sums_of(data, runs), noise).levels, runs)


def zoom_rows(levels: Any, runs: int) -> npt.NDArray[Any]:
    """The same of what was released."""
    counts = np.full((runs, 2, 5), MISSING, dtype=np.int64)
    paid = np.zeros((runs, 2, 5), dtype=np.int64)
    for one in levels:
        group, code = np.divmod(one.codes, 4**one.level)
        # A cell is bought at most twice.
        turn = (paid[group, 0, code + one.level] > 0).astype(np.int64)
        counts[group, turn, code + one.level] = one.values
        paid[group, turn, code + one.level] = one.parts
    return np.concatenate([counts.reshape(runs, -1), paid.reshape(runs, -1)], axis=1)


def listed(tree: NoisyTree) -> IntArray:
    """Codes and values of every level in the order they are released in, a row for each group."""
    parts = []
    for level in tree.levels:
        codes = (
            level.codes.reshape(tree.groups, -1)
            - (np.arange(tree.groups) << 2 * level.level)[:, None]
        )
        parts += [codes, level.values.reshape(tree.groups, -1)]
    return np.concatenate(parts, axis=1)


def scattered(tree: NoisyTree, levels: int) -> IntArray:
    """The value of every cell of all levels, or MISSING, a row for each group."""
    begin = [(4**level - 1) // 3 for level in range(levels + 2)]
    rows = np.full((tree.groups, begin[-1]), MISSING, dtype=np.int64)
    for level in tree.levels:
        # In this order nothing is hidden by a table: codes that are not in order would tell
        # something.
        assert np.all(np.diff(level.codes) > 0)
        group, code = np.divmod(level.codes, 4**level.level)
        rows[group, begin[level.level] + code] = level.values
    return rows


def sums_of(units: Any, runs: int = 1) -> CellSums:
    """The same map again and again, as groups, from the units of all its cells."""
    dense = np.tile(np.asarray(units, dtype=np.int64), runs)
    grid = Grid((len(units).bit_length() - 1) // 2)
    codes = np.flatnonzero(dense)
    return CellSums(grid, codes, dense[codes], runs)
