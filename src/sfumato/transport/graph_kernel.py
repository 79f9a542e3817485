"""The compiled solver for mass on a graph: min-cost flow on the graph itself, integer lengths and masses.

The same scheme as on the grid, with Dijkstra in place of buckets: `potential` falls by at most the
length of an edge along it, and by exactly that where it carries flow.

A first map waits for the compiler: arrays are made by NumPy outside, and filled in loops.
"""

from __future__ import annotations

import numpy as np

from sfumato._compiled import inner, njit
from sfumato._types import IntArray

FAR = 2**62
BUSY = (
    64  # nodes of more edges than this are left to the next round of distances, not to local pushes
)


@inner
def _lift(keys, nodes, count, key, node):
    """Put a node into a binary heap."""
    at = count
    while at > 0:
        above = (at - 1) // 2
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        nodes[at] = nodes[above]
        at = above
    keys[at] = key
    nodes[at] = node


@inner
def _sink(keys, nodes, count):
    """Close the gap at the top of a binary heap of `count` entries with its last one."""
    key = keys[count]
    node = nodes[count]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at] = keys[child]
        nodes[at] = nodes[child]
        at = child
    keys[at] = key
    nodes[at] = node


def solve(
    first: IntArray,
    heads: IntArray,
    edge: IntArray,
    sign: IntArray,
    length: IntArray,
    z: IntArray,
    start: IntArray | None = None,
) -> tuple[IntArray, IntArray]:
    """Potentials and signed edge flows of an optimal transport of integer excess z to want.

    The graph is in rows: the arcs of node i are first[i] .. first[i+1], arc t leads to heads[t]
    along edge[t], in its direction if sign[t] is 1 and against it if -1. Every component must be
    balanced. Potentials to start from fall by at most the length of an edge along it; zeros do.
    """
    n, entries = z.size, heads.size + z.size + 1
    potential = np.zeros(n, np.int64) if start is None else start.copy()
    flow = np.zeros(length.size, np.int64)
    heap, of_nodes = np.empty((2, entries), np.int64), np.empty((4, n), np.int64)
    _solve(
        first, heads, edge, sign, length, z.copy(), potential, flow,
        *of_nodes, *heap, np.empty(n + 1, np.int64), np.zeros(n, np.bool_),
    )  # fmt: skip
    return potential, flow


@njit(error_model="numpy")
def _solve(
    first,
    heads,
    edge,
    sign,
    length,
    excess,
    potential,
    flow,
    reach,
    hops,
    place,
    order,
    keys,
    nodes,
    queue,
    waiting,
):
    """Fill `flow`, which is 0, better `potential`, and leave no excess; the rest is room to work in."""
    n = excess.size
    while True:
        n_excess = 0
        for i in range(n):
            if excess[i] > 0:
                n_excess += 1
            place[i] = -1
            hops[i] = n + 1
            reach[i] = FAR
        if n_excess == 0:
            break
        # (a) Distances from the nodes in want under reduced costs, until half of the nodes with
        # excess are settled: a few far ones would make every search a full one. Most steps cost
        # nothing: they pass by the heap, first come first served, which also keeps hops few.
        heap = 0
        head = 0
        tail = 0
        for i in range(n):
            if excess[i] < 0:
                reach[i] = 0
                hops[i] = 0
                queue[tail] = i
                tail += 1
        left = (n_excess + 1) // 2
        settled = 0
        d = np.int64(0)
        while left > 0:
            if head < tail:
                j = queue[head]
                head += 1
            else:
                d = keys[0]
                j = nodes[0]
                heap -= 1
                if heap > 0:
                    _sink(keys, nodes, heap)
                if place[j] >= 0 or d != reach[j]:
                    continue
            place[j] = settled
            order[settled] = j
            settled += 1
            if excess[j] > 0:
                left -= 1
                if left == 0:
                    break
            for t in range(first[j], first[j + 1]):
                i = heads[t]
                if place[i] >= 0:
                    continue
                cost = length[edge[t]] - potential[i] + potential[j]
                if sign[t] * flow[edge[t]] > 0:  # flow from j to i can be undone, for nothing
                    cost = np.int64(0)
                if d + cost < reach[i]:
                    reach[i] = d + cost
                    hops[i] = hops[j] + 1
                    if cost == 0:
                        queue[tail] = i
                        tail += 1
                    else:
                        _lift(keys, nodes, heap, d + cost, i)
                        heap += 1
        for t in range(settled):
            potential[order[t]] += reach[order[t]] - d

        # (b) One wave in reverse order of settlement.
        for at in range(settled - 1, -1, -1):
            i = order[at]
            e = excess[i]
            if e <= 0:
                continue
            tight = 0
            for t in range(first[i], first[i + 1]):
                j = heads[t]
                if place[j] < 0 or place[j] >= at:
                    continue
                back = -sign[t] * flow[edge[t]]
                if back > 0:
                    if back > e:
                        back = e
                    flow[edge[t]] += sign[t] * back
                    excess[j] += back
                    e -= back
                    if e == 0:
                        break
                elif length[edge[t]] == potential[i] - potential[j]:
                    tight += 1
            if e > 0 and tight > 0:
                for t in range(first[i], first[i + 1]):
                    j = heads[t]
                    if place[j] < 0 or place[j] >= at or sign[t] * flow[edge[t]] < 0:
                        continue
                    if length[edge[t]] == potential[i] - potential[j]:
                        part = e // tight if tight > 1 else e
                        tight -= 1
                        flow[edge[t]] += sign[t] * part
                        excess[j] += part
                        e -= part
                        if e == 0:
                            break
            excess[i] = e

        # (c) Local pushes towards fewer hops, with bounded work.
        head = 0
        tail = 0
        n_waiting = 0
        for t in range(settled):
            i = order[t]
            if excess[i] > 0 and first[i + 1] - first[i] <= BUSY:
                queue[tail] = i
                tail += 1
                waiting[i] = True
                n_waiting += 1
        if tail == n + 1:
            tail = 0
        work = settled // 2
        while n_waiting > 0 and work > 0:
            i = queue[head]
            head = head + 1 if head < n else 0
            n_waiting -= 1
            waiting[i] = False
            while excess[i] > 0 and work > 0:
                work -= 1
                best = np.int64(n + 1)
                way = np.int64(-1)
                for t in range(first[i], first[i + 1]):
                    j = heads[t]
                    if place[j] < 0 or hops[j] >= best:
                        continue
                    if (
                        sign[t] * flow[edge[t]] < 0
                        or length[edge[t]] == potential[i] - potential[j]
                    ):
                        best = hops[j]
                        way = t
                if way < 0:
                    break
                if best >= hops[i]:
                    hops[i] = best + 1
                j = heads[way]
                part = excess[i]
                back = -sign[way] * flow[edge[way]]
                if 0 < back < part:
                    part = back
                flow[edge[way]] += sign[way] * part
                excess[i] -= part
                excess[j] += part
                if excess[j] > 0 and not waiting[j] and first[j + 1] - first[j] <= BUSY:
                    waiting[j] = True
                    queue[tail] = j
                    tail = tail + 1 if tail < n else 0
                    n_waiting += 1
        for _ in range(n_waiting):
            waiting[queue[head]] = False
            head = head + 1 if head < n else 0
