"""From coarse grids to fine: the potentials and the flow of each solution start the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._compiled import inner, njit
from sfumato._types import IntArray
from sfumato.transport.grid_kernel import solve

COARSEST = 4


@njit
def halve(z):
    """The excess of the grid with cells four times as large."""
    side = z.shape[0] // 2
    out = np.empty((side, side), np.int64)
    for i in range(side):
        for j in range(side):
            out[i, j] = (
                z[2 * i, 2 * j]
                + z[2 * i + 1, 2 * j]
                + z[2 * i, 2 * j + 1]
                + z[2 * i + 1, 2 * j + 1]
            )
    return out


@njit
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
            total = (
                9 * u[near_i, near_j]
                + 3 * u[far_i, near_j]
                + 3 * u[near_i, far_j]
                + u[far_i, far_j]
            )
            out[i, j] = total >> 3
    return out


@njit
def carry(z, u, ground, east, north, given):
    """Flows for cells a quarter the size, on tight arcs of the refined potentials u only.

    Halves of a flow cross the two halves of its border; then excess and want meet within each old
    cell. If no less excess is left than there was, no flow is better: then excess never adds up to
    more than z has, and fits its integers.
    """
    side = z.shape[0]
    new_east = np.zeros((side, side - 1), np.int64)
    new_north = np.zeros((side - 1, side), np.int64)
    new_given = np.zeros((side, side), np.int64)
    rest = z.copy()
    before, after = 0.0, 0.0
    _cross(east, u, new_east, rest)
    _cross(north.T, u.T, new_north.T, rest.T)
    hold, fall, moved = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4, np.int64)
    row, column = (0, 0, 1, 1), (0, 1, 1, 0)  # the four cells of an old one, round about
    for i in range(0, side, 2):
        for j in range(0, side, 2):
            left = given[i // 2, j // 2]
            for t in range(4):
                a, b = i + row[t], j + column[t]
                if left > 0 and z[a, b] < 0 and u[a, b] == ground and rest[a, b] < 0:
                    new_given[a, b] = min(left, -rest[a, b])
                    rest[a, b] += new_given[a, b]
                    left -= new_given[a, b]
                hold[t] = rest[a, b]
                before += max(z[a, b], 0)
                fall[t] = u[a, b] - u[i + row[(t + 1) % 4], j + column[(t + 1) % 4]]
            _meet(hold, fall, moved)
            after += max(hold[0], 0) + max(hold[1], 0) + max(hold[2], 0) + max(hold[3], 0)
            new_east[i, j] = moved[0]
            new_north[i, j + 1] = moved[1]
            new_east[i + 1, j] = -moved[2]
            new_north[i, j] = -moved[3]
    if after >= before:
        new_east[:], new_north[:], new_given[:] = 0, 0, 0
    return new_east, new_north, new_given


@inner
def _cross(flow, u, new_flow, rest):
    """Send each flow east over the tight ones of the two arcs that cross its border."""
    for i in range(flow.shape[0]):
        for j in range(flow.shape[1]):
            sign = np.sign(flow[i, j])
            k = 2 * j + 1
            low = sign != 0 and u[2 * i, k] - u[2 * i, k + 1] == sign
            high = sign != 0 and u[2 * i + 1, k] - u[2 * i + 1, k + 1] == sign
            part = flow[i, j] // 2 if low and high else flow[i, j]
            if low:
                new_flow[2 * i, k] = part
            if high:
                new_flow[2 * i + 1, k] = flow[i, j] - part if low else part
            for t in range(2 * i, 2 * i + 2):
                rest[t, k] -= new_flow[t, k]
                rest[t, k + 1] += new_flow[t, k]


@inner
def _meet(hold, fall, moved):
    """In a ring of four cells move excess to want, the nearest first; moved[t] goes from cell t to t + 1."""
    moved[:] = 0
    for far in range(1, 4):
        for a in range(4):
            for turn in (1, -1):
                b = (a + turn * far) % 4
                amount = min(hold[a], -hold[b])
                if amount <= 0:
                    continue
                for t in range(far):
                    k = (a + t if turn == 1 else a - t - 1) % 4
                    if fall[k] != turn:  # then only what moved the other way can be undone
                        amount = min(amount, -turn * moved[k])
                if amount <= 0:
                    continue
                hold[a] -= amount
                hold[b] += amount
                for t in range(far):
                    moved[(a + t if turn == 1 else a - t - 1) % 4] += turn * amount


def solve_scales(z: IntArray, surplus: int) -> tuple[Any, int, IntArray, IntArray, IntArray]:
    """Solve from the coarsest grid down; each solution's potentials and flow start the next.

    Not compiled: a compiled caller makes the solver a third slower, for a few microseconds a level
    saved.
    """
    coarse = [z]
    while coarse[-1].shape[0] > COARSEST:
        coarse.append(halve(coarse[-1]))
    side = coarse[-1].shape[0]
    u, ground = np.zeros((side, side), np.int32), 0
    east, north = np.zeros((side, side - 1), np.int64), np.zeros((side - 1, side), np.int64)
    given = np.zeros((side, side), np.int64)
    while True:
        u, ground, east, north, given = solve(coarse.pop(), u, ground, surplus, east, north, given)
        if not coarse:
            return u, ground, east, north, given
        u = refine(u)
        if (
            surplus > 0
        ):  # the ground may not lie above a cell it serves; the larger of two potentials is one
            ground *= 2
            u = np.maximum(u, np.int32(ground))
        east, north, given = carry(coarse[-1], u, ground, east, north, given)
