"""The largest share of all mass that sources which explain the readings can have in a set of cells.

In units of how far noise may move a direction and of the largest mass, sources f with 0 <= f <= limit explain
readings y where no entry of M f - y is larger than 1. Their share in a set c is at most b if some z has

    y'z + |z|_1 + sum_i limit_i (c_i - b - M_i'z)_+ <= 0,

since (c - b)'f = (c - b - M'z)'f + z'(M f), for every such f (weak duality). The smallest b over all z is
the answer, a linear program; any z proves some b, so the search need not be exact, and a check asks only for
z. A source anywhere in a cell reads what is within `bend`, in every direction, of a mixture of the cell's
nodes: then M_i'z stands for the least over the nodes, less bend |z|_1.

Two hundred such programs of one line differ in c alone. HiGHS takes 6 to 47 ms for each; here they are solved
together, in a fifth of the time or less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray

GAP = 2e-3
"""How far above the best a bound may be: what is certified is wider than that by far."""
START, GROW = (
    0.1,
    12.0,
)  # the weight of the objective, for each term of the barrier, and how it grows
NEAR = 1.0  # of a Newton decrement: then it does
INSIDE, BISECTIONS = 0.99, 7
NOTHING = 1e-4  # so little of one source's mass is what so short a z weighs: it proves nothing
MAX_STEPS = 200
MAX_HELD = 1 << 24  # numbers of one step that are held at a time


@dataclass(frozen=True, slots=True, eq=False)
class ScaledProblem:
    """Readings and nodes in units of how far noise may move a direction, for a source of the largest mass.

    Attributes:
        nodes: What a source at each node of each cell reads: cells by nodes by directions.
        readings: One number for each direction.
        bend: How far a source of a cell is at most from a mixture of its nodes in any direction.
        limit: How many times the largest mass each cell may hold.
    """

    nodes: FloatArray
    readings: FloatArray
    bend: FloatArray
    limit: FloatArray


def largest_shares(
    problem: ScaledProblem, sets: npt.NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """An upper bound of the share of each set, and the vector z that proves it.

    A bound below 0 proves that nothing explains the readings. Where no reading is above 1 nothing is known:
    the bounds are 1, and z is 0.

    Args:
        problem: The readings, and what sources read.
        sets: One row for each set, True for its cells.

    Returns:
        A bound for each set, at most 1, and a row z for each.
    """
    n, k, r = problem.nodes.shape
    if np.abs(problem.readings).max() <= 1:
        return np.ones(len(sets)), np.zeros((len(sets), r))
    at_a_time = max(1, MAX_HELD // (n * k * (r + 2)))
    parts = np.array_split(np.arange(len(sets)), -(-len(sets) // at_a_time))
    duals = np.concatenate([_search(problem, sets[part].astype(np.float64)) for part in parts])
    return shares_proved(problem, sets, duals), duals


def shares_proved(
    problem: ScaledProblem, sets: npt.NDArray[np.bool_], duals: FloatArray
) -> FloatArray:
    """The smallest bound that each z proves, at most 1.

    y'z + |z|_1 + sum_i limit_i (h_i - b)_+ falls as b grows and is 0 at the largest of
    (limit_1 h_1 + ... + limit_j h_j - room) / (limit_1 + ... + limit_j) over j, with the h_i in falling
    order and room = -y'z - |z|_1.
    """
    n, k, _ = problem.nodes.shape
    reads = (duals @ problem.nodes.reshape(n * k, -1).T).reshape(-1, n, k).min(axis=2)
    size = np.abs(duals).sum(axis=1)
    room = -(duals @ problem.readings) - size
    excess = sets - reads + problem.bend * size[:, np.newaxis]
    order = np.argsort(-excess, axis=1)
    limits = problem.limit[order]
    together = (limits * np.take_along_axis(excess, order, axis=1)).cumsum(axis=1)
    bounds = (together - room[:, np.newaxis]) / limits.cumsum(axis=1)
    return np.where(room > 0, np.minimum(bounds.max(axis=1), 1.0), 1.0)


def _search(problem: ScaledProblem, inside: FloatArray) -> FloatArray:
    """A good z for each set, by a barrier method on all of them at once.

    z = p - q with p, q > 0, and t = sum (p + q). Minimise b with w_i >= 0, w_i >= c_i - b - M_ij'z + bend_i t
    for every node j of cell i, and y'z + t + sum limit_i w_i <= 0.
    """
    n, k, r = problem.nodes.shape
    # In (z, t, b).
    rows = np.concatenate(
        [
            problem.nodes.reshape(n * k, r),
            -np.repeat(problem.bend, k)[:, np.newaxis],
            np.ones((n * k, 1)),
        ],
        axis=1,
    )
    budget = np.concatenate([problem.readings, [1.0, 0.0]])
    # From (p, q, b) to (z, t, b).
    onto = np.zeros((r + 2, 2 * r + 1))
    onto[:r, :r], onto[:r, r : 2 * r] = np.eye(r), -np.eye(r)
    onto[r, : 2 * r], onto[r + 1, 2 * r] = 1.0, 1.0
    x, w = _start(problem, inside)
    terms = n * k + n + 2 * r + 1
    weight, last = np.full(len(inside), START * terms), terms / GAP
    nothing = NOTHING / float(np.abs(problem.nodes).max())
    going: IntArray = np.arange(len(inside))
    for _ in range(MAX_STEPS):
        shared = rows, budget, onto, problem.limit
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step_x, step_w, decrement = _newton(
                shared, inside[going], x[going], w[going], weight[going]
            )
        # Where hardly any sources explain the readings z has no end: the last that is a number proves enough.
        lost = ~np.isfinite(np.concatenate([step_x, step_w], axis=1)).all(axis=1)
        step_x[lost], step_w[lost] = 0.0, 0.0
        x[going] += step_x
        w[going] += step_w
        near = decrement < NEAR
        # A bound of 1 is that of z = 0, which no step reaches; one below 0 has no end, and proves enough.
        short = x[going, : 2 * r].sum(axis=1) < nothing
        done = lost | short | (x[going, 2 * r] < -GAP) | (near & (weight[going] >= last))
        weight[going[near]] *= GROW
        going = going[~done]
        if not going.size:
            break
    found: FloatArray = x[:, :r] - x[:, r : 2 * r]
    return found


def _start(problem: ScaledProblem, inside: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Strictly inside all constraints: z against the largest reading, and a bound far above 1."""
    y, (n, _, r) = problem.readings, problem.nodes.shape
    top = int(np.abs(y).argmax())
    length = 1 / float(np.abs(problem.nodes).max())
    room = length * (abs(float(y[top])) - 1)
    pair = np.full(2 * r, min(room, length) / (8 * r))
    pair[top if y[top] < 0 else r + top] += length
    z, t = pair[:r] - pair[r:], float(pair.sum())
    room = -float(y @ z) - t
    highest = max(0.0, -float((problem.nodes @ z).min()))
    bound = 1 + highest + float(problem.bend.max()) * t + room
    sets = len(inside)
    x = np.repeat(np.concatenate([pair, [bound]])[np.newaxis], sets, axis=0)
    return x, np.full((sets, n), room / (2 * float(problem.limit.sum())))


def _newton(
    shared: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    inside: FloatArray,
    x: FloatArray,
    w: FloatArray,
    weight: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A Newton step of every problem, as long as is best, and its decrement.

    w is eliminated: its Hessian is diagonal but for the one constraint that adds all of it up, whose
    multiplier is one unknown more.
    """
    rows, budget, onto, limit = shared
    (sets, n), size, pairs = w.shape, x.shape[1], x.shape[1] - 1
    k = len(rows) // n
    v = x @ onto.T
    left = -(v @ budget) - w @ limit
    slack = np.repeat(w - inside, k, axis=1) + v @ rows.T
    over = 1 / slack
    square = over * over
    diagonal = 1 / w**2 + square.reshape(sets, n, k).sum(axis=2)
    grad_w = -1 / w - over.reshape(sets, n, k).sum(axis=2) + np.outer(1 / left, limit)
    grad_x = (np.outer(1 / left, budget) - over @ rows) @ onto
    grad_x[:, :pairs] -= 1 / x[:, :pairs]
    grad_x[:, pairs] += weight
    crossed = square[:, :, np.newaxis] * rows
    by_cell = crossed.reshape(sets, n, k, -1).sum(axis=2)
    scaled = by_cell / diagonal[:, :, np.newaxis]
    inner = np.matmul(crossed.transpose(0, 2, 1), rows)
    inner -= np.matmul(by_cell.transpose(0, 2, 1), scaled)
    system = np.zeros((sets, size + 1, size + 1))
    system[:, :size, :size] = onto.T @ inner @ onto
    system[:, range(pairs), range(pairs)] += 1 / x[:, :pairs] ** 2
    system[:, :size, size] = system[:, size, :size] = (budget - limit @ scaled) @ onto
    system[:, size, size] = -(1 / diagonal) @ limit**2 - left**2
    right = np.empty((sets, size + 1))
    right[:, :size] = np.matmul(grad_w[:, np.newaxis, :], scaled)[:, 0] @ onto - grad_x
    right[:, size] = (grad_w / diagonal) @ limit
    unit = 1 / np.sqrt(np.abs(np.diagonal(system, axis1=1, axis2=2)))
    system *= unit[:, :, np.newaxis] * unit[:, np.newaxis, :]
    # What rounding may have lost, on a diagonal of 1 and -1: no processor's arithmetic finds it singular.
    system[:, range(size + 1), range(size + 1)] *= 1 + 4 * (size + 1) * np.finfo(np.float64).eps
    solved = np.linalg.solve(system, (right * unit)[..., np.newaxis])[..., 0] * unit
    move_x, multiplier = solved[:, :size], solved[:, size]
    move_v = move_x @ onto.T
    reach = np.matmul(by_cell, move_v[..., np.newaxis])[..., 0]
    move_w = -(grad_w + reach + np.outer(multiplier, limit)) / diagonal
    decrement = np.sqrt(
        np.maximum(-((grad_x * move_x).sum(axis=1) + (grad_w * move_w).sum(axis=1)), 0.0)
    )
    less = -(move_v @ budget) - move_w @ limit
    values = np.concatenate([x[:, :pairs], w, slack, left[:, np.newaxis]], axis=1)
    moves = np.concatenate(
        [
            move_x[:, :pairs],
            move_w,
            np.repeat(move_w, k, axis=1) + move_v @ rows.T,
            less[:, np.newaxis],
        ],
        axis=1,
    )
    step = _line_search(values, moves, weight * move_x[:, pairs])[:, np.newaxis]
    return step * move_x, step * move_w, decrement


def _line_search(values: FloatArray, moves: FloatArray, slope: FloatArray) -> FloatArray:
    """Where the barrier is least along each step, by bisection of its derivative, which rises."""
    falling = moves < 0
    ways = np.where(falling, -values / np.where(falling, moves, -1.0), np.inf)
    low, high = np.zeros(len(values)), np.minimum(16.0, INSIDE * ways.min(axis=1))
    step = np.minimum(1.0, high)  # near the end the whole step is right
    for _ in range(BISECTIONS):
        up = slope - (moves / (values + step[:, np.newaxis] * moves)).sum(axis=1) > 0
        low, high = np.where(up, low, step), np.where(up, step, high)
        step = (low + high) / 2
    return np.where(low > 0, low, step)
