"""From coarse grids to fine: each solution's potentials start the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from sfumato.transport.grid_kernel import solve
from sfumato.transport.masses import IntArray

COARSEST = 4


@njit(cache=True)
def halve(z):
    """The excess of the grid with cells four times as large."""
    side = z.shape[0] // 2
    out = np.empty((side, side), np.int64)
    for i in range(side):
        for j in range(side):
            out[i, j] = z[2 * i, 2 * j] + z[2 * i + 1, 2 * j] + z[2 * i, 2 * j + 1] + z[2 * i + 1, 2 * j + 1]
    return out


@njit(cache=True)
def refine(u):
    """Potentials for cells a quarter the size: 2 u, interpolated and floored, is 1-Lipschitz again."""
    side = u.shape[0]
    out = np.empty((2 * side, 2 * side), np.int32)
    for i in range(2 * side):
        near_i = i // 2
        far_i = min(max(near_i + (1 if i % 2 else -1), 0), side - 1)
        for j in range(2 * side):
            near_j = j // 2
            far_j = min(max(near_j + (1 if j % 2 else -1), 0), side - 1)
            total = 9 * u[near_i, near_j] + 3 * u[far_i, near_j] + 3 * u[near_i, far_j] + u[far_i, far_j]
            out[i, j] = total >> 3
    return out


def solve_scales(z: IntArray, surplus: int) -> tuple[Any, int, IntArray, IntArray, IntArray]:
    """Solve from the coarsest grid down; each solution's potentials start the next.

    Not compiled: a compiled caller makes the solver a third slower, for a few microseconds a level saved.
    """
    coarse = [z]
    while coarse[-1].shape[0] > COARSEST:
        coarse.append(halve(coarse[-1]))
    u, ground = np.zeros(coarse[-1].shape, np.int32), 0
    while True:
        u, ground, east, north, given = solve(coarse.pop(), u, ground, surplus)
        if not coarse:
            return u, ground, east, north, given
        u = refine(u)
        if surplus > 0:  # the ground may not lie above a cell it serves; the larger of two potentials is one
            ground *= 2
            u = np.maximum(u, np.int32(ground))
