"""Made-up sums for the tests, and the way of a method through a ledger."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.heatmap.methods.protocol import Method, NoisyTree
from sfumato.heatmap.tiles import Tiles
from sfumato.privacy import REHEARSAL, UNITS, ApproxDP, Ledger, Noise, Release
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Grid

EPSILON = Fraction(1)


def sums_of(units: npt.ArrayLike, grid: Grid, *, groups: int = 1) -> CellSums:
    """Cell sums from the units of every cell of every group."""
    dense = np.asarray(units, dtype=np.int64)
    assert dense.shape == (groups * grid.size,)
    codes = np.flatnonzero(dense)
    return CellSums(grid, codes.astype(np.int64), dense[codes], groups)


def town(rng: np.random.Generator, grid: Grid, *, users: int, groups: int = 1) -> CellSums:
    """Users who each share UNITS over up to eight cells near one of three places, in any group."""
    units = np.zeros(groups * grid.size, dtype=np.int64)
    places = rng.uniform(0.2, 0.8, (3, 2))
    for _ in range(users):
        rows = int(rng.integers(1, 9))
        at = np.clip(places[rng.integers(3)] + rng.normal(0, 0.05, (rows, 2)), 0, 0.999)
        cells = grid.cells_of(at[:, 0], at[:, 1]) + grid.size * rng.integers(groups, size=rows)
        np.add.at(units, cells, UNITS // rows)
    return sums_of(units, grid, groups=groups)


def release(
    method: Method[NoisyTree],
    sums: CellSums,
    *,
    noise: Noise | None = None,
    epsilon: Fraction = EPSILON,
) -> tuple[Release[Any], tuple[Tiles, ...]]:
    """One rehearsed release with a budget of exactly what was asked for, and its maps."""
    delta = getattr(method, "delta", Fraction(0))
    guarded = guard_sums(sums, source=REHEARSAL)
    ledger = Ledger.rehearsal(ApproxDP(epsilon, delta))
    receipt = ledger.release(
        method.mechanism(epsilon, guarded.bound, sums.grid), guarded, noise=noise
    )
    return receipt, method.estimate(receipt.value, sums.grid)
